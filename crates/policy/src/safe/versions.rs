//! Programs that are safe only when they are asked for their version, and for nothing else.
//!
//! What a version manager may stand in front of counts only by its path in a directory of the system:
//! a bare `python3` is often pyenv's script, which reads `.python-version` in the working directory and
//! runs what that leads to. Left out for the same reason are cargo, rustc and go, which fetch or run
//! what `rust-toolchain.toml` and `go.mod` name, and npm and its kin, which are scripts for the first
//! `node` on the path.

use crate::command::Word;

/// The program, whether a bare name will do, and the words that ask for its version. Sorted.
const ASKED: [(&str, Name, &[&str]); 16] = [
    ("bash", Name::Any, &["--version"]),
    ("clang", Name::Path, &["--version"]),
    ("cmake", Name::Path, &["--version"]),
    ("g++", Name::Any, &["--version"]),
    ("gcc", Name::Any, &["--version"]),
    ("ld", Name::Any, &["--version"]),
    ("make", Name::Any, &["--version", "-v"]),
    ("node", Name::Path, &["--version", "-v"]),
    ("perl", Name::Path, &["--version", "-v"]),
    ("python", Name::Path, &["--version", "-V"]),
    ("python3", Name::Path, &["--version", "-V"]),
    ("ruby", Name::Path, &["--version", "-v"]),
    ("ssh", Name::Any, &["-V"]),
    ("tar", Name::Any, &["--version"]),
    ("tmux", Name::Any, &["-V"]),
    ("zsh", Name::Any, &["--version"]),
];

/// How a program must be named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// By its name or its path.
    Any,
    /// By its path.
    Path,
}

/// Whether a program, named as it was written, is asked for its version and for nothing else.
pub(super) fn asks_for_version(written: &str, program: &str, arguments: &[Word]) -> bool {
    let [word] = arguments else { return false };
    let Ok(place) = ASKED.binary_search_by(|(own, ..)| (*own).cmp(program)) else { return false };
    let (_, name, words) = ASKED[place];
    let named = name == Name::Any || written.starts_with('/');
    named && word.as_literal().is_some_and(|text| words.contains(&text))
}
