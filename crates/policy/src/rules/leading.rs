//! Options that may stand between a program and its subcommand: `git -C elsewhere push` is a push.
//!
//! Only rules that ask or forbid are read with these left out. An option that is not in the table
//! ends the search, and with it the chance to be taken for something that the person never meant.

use super::matching::name_of;
use crate::command::{Shape, Word};

/// A program whose first argument that is no option says what it does.
struct Leading {
    program: &'static str,
    /// Options that take no value, or one in the same word.
    alone: &'static [&'static str],
    /// Options whose value is the next word, unless it is attached with `=`.
    with_value: &'static [&'static str],
}

/// Sorted by program.
const TABLE: &[Leading] = &[
    Leading {
        program: "cargo",
        alone: &["-q", "--quiet", "-v", "-vv", "--verbose", "--locked", "--offline", "--frozen"],
        with_value: &["-C", "-Z", "--color", "--config"],
    },
    Leading {
        program: "docker",
        alone: &["-D", "--debug", "--tls", "--tlsverify"],
        with_value: &["-H", "--host", "-c", "--context", "--config", "-l", "--log-level"],
    },
    Leading { program: "gh", alone: &[], with_value: &["-R", "--repo"] },
    Leading {
        program: "git",
        alone: &[
            "-p",
            "-P",
            "--paginate",
            "--no-pager",
            "--bare",
            "--no-replace-objects",
            "--no-lazy-fetch",
            "--no-optional-locks",
            "--no-advice",
            "--literal-pathspecs",
            "--glob-pathspecs",
            "--noglob-pathspecs",
            "--icase-pathspecs",
        ],
        with_value: &[
            "-C",
            "-c",
            "--config-env",
            "--exec-path",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--super-prefix",
            "--attr-source",
        ],
    },
    Leading {
        program: "kubectl",
        alone: &["--insecure-skip-tls-verify"],
        with_value: &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user"],
    },
    Leading {
        program: "npm",
        alone: &["-s", "--silent", "-g", "--global", "-d", "--verbose"],
        with_value: &["--prefix", "-C", "-w", "--workspace", "--loglevel"],
    },
    Leading {
        program: "podman",
        alone: &["-r", "--remote"],
        with_value: &["-c", "--connection", "--url", "--root", "--log-level"],
    },
    Leading {
        program: "systemctl",
        alone: &["--user", "--system", "--no-pager", "-q", "--quiet", "--now"],
        with_value: &["-H", "--host", "-M", "--machine"],
    },
    Leading { program: "terraform", alone: &[], with_value: &["-chdir"] },
];

/// The words of a command without the options before its subcommand, which nobody may know: each of the
/// words that could be the subcommand, because an option may take a value or none.
pub(super) fn guessed(words: &[Word]) -> Vec<Vec<Word>> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let manages = |word: &Word| matches!(word.text.as_str(), "container" | "image");
    let of_containers = matches!(&*name_of(&program.text), "docker" | "podman")
        && rest.first().is_some_and(manages);
    let mut found = Vec::new();
    let mut may_be_value = of_containers;
    for (at, word) in rest.iter().enumerate() {
        if word.text.starts_with(['-', '+']) {
            may_be_value = !word.text.contains('=');
            continue;
        }
        if at > 0 {
            let words = std::iter::once(program.clone()).chain(rest[at..].iter().cloned());
            found.push(words.collect());
        }
        if !may_be_value {
            break;
        }
        may_be_value = false;
    }
    found
}

/// The words of a command without the options before its subcommand. None if there are none such.
pub(super) fn skipped(words: &[Word]) -> Option<Vec<Word>> {
    let program = words.first()?;
    let option = words.get(1)?;
    if program.shape == Shape::Dynamic || !option.text.starts_with(['-', '+']) {
        return None;
    }
    let name = name_of(&program.text);
    let place = TABLE.binary_search_by(|leading| leading.program.cmp(&name)).ok()?;
    let leading = &TABLE[place];
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let (option, attached) = match word.text.split_once('=') {
            Some((option, _)) => (option, true),
            None => (word.text.as_str(), false),
        };
        if leading.with_value.contains(&option) {
            at += if attached { 1 } else { 2 };
        } else if leading.alone.contains(&option) || is_toolchain(leading, option) {
            at += 1;
        } else {
            break;
        }
    }
    (at > 1 && at < words.len()).then(|| {
        let rest = words[at..].iter().cloned();
        std::iter::once(program.clone()).chain(rest).collect()
    })
}

/// `cargo +nightly publish`
fn is_toolchain(leading: &Leading, option: &str) -> bool {
    leading.program == "cargo" && option.starts_with('+')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split(' ').map(Word::literal).collect()
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by_key(|leading| leading.program));
    }

    #[test]
    fn options_before_the_subcommand_are_left_out() {
        let cases = [
            ("git -C /x push -f", Some("git push -f")),
            ("/usr/bin/git -c a=b --no-pager push", Some("/usr/bin/git push")),
            ("git --git-dir=/x push", Some("git push")),
            ("cargo +nightly -q publish", Some("cargo publish")),
            ("git push", None),
            ("git --unheard-of push", None),
            ("git -C", None),
            ("git -C /x", None),
            ("other -C /x push", None),
        ];
        for (text, expected) in cases {
            assert_eq!(skipped(&words(text)), expected.map(words), "{text}");
        }
    }
}
