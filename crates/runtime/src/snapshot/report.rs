//! What a shell says of itself: read from its output, whatever else start-up files have printed there.
//!
//! The shell prints one report, `MARK report LENGTH`, and then exactly so many bytes. The mark is new each time, so
//! nothing that a start-up file prints looks like one; the length tells whether something else was
//! printed in between, by a process in the background for instance. Then nothing of it is used.

use std::collections::{BTreeMap, BTreeSet};

/// The most that a shell may print, start-up files included.
pub(super) const LARGEST: usize = 1 << 20;

/// What a shell says of itself. Texts are in its own language.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Each variable as a declaration, and its value (of a list, something of it).
    pub(super) variables: BTreeMap<Vec<u8>, Variable>,
    /// Each function as a definition.
    pub(super) functions: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The functions that its children get.
    pub(super) exported: BTreeSet<Vec<u8>>,
    /// Each alias as a definition. One name may have several, of different kinds.
    pub(super) aliases: Vec<(Vec<u8>, Vec<u8>)>,
    /// What `set -o` is about.
    pub(super) options: Vec<u8>,
    /// What `shopt` is about.
    pub(super) choices: Vec<u8>,
    pub(super) umask: Vec<u8>,
}

/// A variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) declaration: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Finds the report with this mark in what was printed.
pub(super) fn read(printed: &[u8], mark: &str) -> Option<Report> {
    let opening = format!("{mark} report ");
    let mut begin = 0;
    let length = printed.split_inclusive(|byte| *byte == b'\n').find_map(|line| {
        begin += line.len();
        line.strip_prefix(opening.as_bytes())?.strip_suffix(b"\n")
    })?;
    let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
    let closing = format!("\n{mark} end");
    let body = printed[begin..].get(..length)?.strip_suffix(closing.as_bytes())?;
    parse(body, format!("{mark} ").as_bytes())
}

/// Takes a report apart at the lines that begin with the mark. Something that should not be there makes
/// it none.
fn parse(body: &[u8], mark: &[u8]) -> Option<Report> {
    let mut report = Report::default();
    let mut lines = body.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let (kind, name) = split_once(line.strip_prefix(mark)?, b' ')?;
        let mut text: Vec<&[u8]> = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(mark)) {
            text.push(line);
        }
        let (name, text) = (name.to_vec(), text.join(&b'\n'));
        match kind {
            b"variable" => report.variables.entry(name).or_default().declaration = text,
            b"value" => report.variables.entry(name).or_default().value = text,
            b"function" => drop(report.functions.insert(name, text)),
            b"exported" => drop(report.exported.insert(name)),
            b"alias" => report.aliases.push((name, text)),
            b"options" => report.options = text,
            b"choices" => report.choices = text,
            b"umask" => report.umask = text,
            _ => return None,
        }
    }
    // A shell that has no `HOME` could not say what it has.
    report.variables.contains_key(&b"HOME"[..]).then_some(report)
}

fn split_once(line: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = line.iter().position(|byte| *byte == at)?;
    Some((&line[..place], &line[place + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MARK: &str = "0123456789abcdef";

    /// Prints a report like a shell.
    fn printed(body: &str) -> Vec<u8> {
        let body = format!("{body}\n@ end").replace('@', MARK);
        format!("noise\n\n{MARK} report {}\n{body}\nmore noise", body.len()).into_bytes()
    }

    #[test]
    fn a_report_is_found_between_noise() {
        let body = "@ variable HOME\ndeclare -x HOME=\"/h\"\n@ value HOME\n/h\n\
                    @ function f\nf () \n{ \n    :\n}\n@ exported f\n@ alias ll\nalias ll='ls'\n@ umask \n0022";
        let report = read(&printed(body), MARK).unwrap();
        let home = &report.variables[&b"HOME"[..]];
        assert_eq!(home.declaration, b"declare -x HOME=\"/h\"");
        assert_eq!(home.value, b"/h");
        assert_eq!(report.functions[&b"f"[..]], b"f () \n{ \n    :\n}");
        assert!(report.exported.contains(&b"f"[..]));
        assert_eq!(report.aliases, [(b"ll".to_vec(), b"alias ll='ls'".to_vec())]);
        assert_eq!(report.umask, b"0022");
    }

    #[test]
    fn a_report_that_something_else_was_printed_into_is_none() {
        let good = printed("@ variable HOME\ndeclare -x HOME=\"/h\"");
        assert!(read(&good, MARK).is_some());
        let middle = good.windows(8).position(|window| window == b"variable").unwrap();
        let mut disturbed = good.clone();
        disturbed.splice(middle..middle, *b"background job\n");
        assert_eq!(read(&disturbed, MARK), None);
        assert_eq!(read(&good[..good.len() - 20], MARK), None, "it was cut off");
        assert_eq!(read(&good, "0123456789abcdee"), None, "it has another mark");
        assert_eq!(read(&printed("@ variable PATH\nx"), MARK), None, "it knows no home");
        assert_eq!(read(&printed("@ variable HOME\nx\n@ nonsense y\nz"), MARK), None);
    }

    proptest! {
        /// Whatever is printed, reading it ends and makes no more of it than there was.
        #[test]
        fn any_bytes_are_read(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just(format!("{MARK} ").into_bytes()),
                    Just(format!("\n{MARK} report 40\n").into_bytes()),
                    Just(format!("\n{MARK} end").into_bytes()),
                    Just(b"variable HOME\n".to_vec()),
                    Just(b"\n".to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..40),
                ],
                0..30,
            )
        ) {
            let bytes = parts.concat();
            for report in [read(&bytes, MARK), parse(&bytes, MARK.as_bytes())].into_iter().flatten() {
                let texts = report.variables.values().map(|one| one.declaration.len() + one.value.len());
                let texts: usize = texts.sum::<usize>() + report.aliases.iter().map(|one| one.1.len()).sum::<usize>();
                prop_assert!(texts <= bytes.len());
            }
        }

        #[test]
        fn what_a_shell_prints_is_what_is_read(value in "[^\u{0}]{0,80}", text in "[^\u{0}]{0,80}") {
            let body = format!("{MARK} variable HOME\n{text}\n{MARK} value HOME\n{value}\n{MARK} end");
            let report = read(format!("\n{MARK} report {}\n{body}\n", body.len()).as_bytes(), MARK).unwrap();
            let home = &report.variables[&b"HOME"[..]];
            prop_assert_eq!(&home.declaration, &text.into_bytes());
            prop_assert_eq!(&home.value, &value.into_bytes());
        }
    }
}
