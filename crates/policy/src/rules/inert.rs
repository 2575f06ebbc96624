//! Variables that may stand before an allowed command, because they change how it looks and not
//! what it does.
//!
//! Any other assignment makes a command one that no rule allows: `PATH`, `LD_PRELOAD`,
//! `GIT_SSH_COMMAND`, `PAGER`, `EDITOR`, `RUSTC_WRAPPER`, `NODE_OPTIONS` and their like choose the
//! programs that run, and nobody can list them all.

use crate::command::Assignment;

/// Sorted. Whatever a program makes of these is colour, language, width or verbosity.
const INERT: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "TERM",
    "TZ",
];

/// Whether an assignment changes nothing that matters: the variable is in the table and its value is
/// a plain word. A locale, terminal or time zone with a slash in it would name a file to be read.
pub(super) fn is_inert(assignment: &Assignment) -> bool {
    let plain = |text: &str| {
        text.len() <= 64
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@,+".contains(&byte))
    };
    INERT.binary_search(&assignment.name.as_str()).is_ok()
        && assignment.value.as_literal().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Word;

    fn inert(name: &str, value: &str) -> bool {
        is_inert(&Assignment { name: name.to_owned(), value: Word::literal(value) })
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(INERT.is_sorted());
    }

    #[test]
    fn only_plain_values_of_listed_variables_are_inert() {
        assert!(inert("NO_COLOR", "1") && inert("LC_ALL", "C.UTF-8") && inert("CI", ""));
        assert!(!inert("LC_ALL", "/tmp/evil") && !inert("TZ", ":/etc/shadow"));
        for name in ["PATH", "LD_PRELOAD", "GIT_PAGER", "PAGER", "EDITOR", "BASH_ENV", "no_color"] {
            assert!(!inert(name, "1"), "{name}");
        }
    }
}
