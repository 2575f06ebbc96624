//! Programs that are safe only when they are asked for their version, and for nothing else.
//!
//! Left out are cargo, rustc and go, which first look in the working directory for the toolchain to
//! use (`rust-toolchain.toml`, `go.mod`) and fetch or run what they find there; npm and its kin, which
//! are scripts that the first `node` on the path runs.

use crate::command::Word;

/// The program and the words that ask for its version. Sorted.
const ASKED: [(&str, &[&str]); 19] = [
    ("bash", &["--version"]),
    ("cc", &["--version"]),
    ("clang", &["--version"]),
    ("cmake", &["--version"]),
    ("g++", &["--version"]),
    ("gcc", &["--version"]),
    ("ld", &["--version"]),
    ("make", &["--version", "-v"]),
    ("ninja", &["--version"]),
    ("node", &["--version", "-v"]),
    ("perl", &["--version", "-v"]),
    ("python", &["--version", "-V"]),
    ("python3", &["--version", "-V"]),
    ("ruby", &["--version", "-v"]),
    ("sqlite3", &["--version", "-version"]),
    ("ssh", &["-V"]),
    ("tar", &["--version"]),
    ("tmux", &["-V"]),
    ("zsh", &["--version"]),
];

/// Whether a program is asked for its version and for nothing else.
pub(super) fn asks_for_version(program: &str, arguments: &[Word]) -> bool {
    let [word] = arguments else { return false };
    let asked = ASKED.binary_search_by(|(name, _)| (*name).cmp(program));
    asked.is_ok_and(|place| word.as_literal().is_some_and(|text| ASKED[place].1.contains(&text)))
}
