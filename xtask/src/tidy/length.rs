//! Files that have grown past what one reader holds in mind.

use super::rust::{RustFile, attributes, is_ident};
use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenTree};
use std::collections::BTreeMap;

/// The most lines that a file has without a reason. Its tests at the end are not counted.
const LIMIT: usize = 600;

/// The files that may be longer, each on a line `path: reason`.
const ALLOW_LIST: &str = "xtask/long-files.txt";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed = read_allow_list(tree.text(ALLOW_LIST).unwrap_or_default(), &mut findings);
    for file in tree.rust_files().filter(|file| !is_all_tests(file.path)) {
        let lines = lines_without_tests(&file);
        if lines > LIMIT && allowed.remove(file.path).is_none() {
            let message = format!(
                "{lines} lines without the tests; split what is past {LIMIT}, or give the reason \
                 in {ALLOW_LIST}"
            );
            findings.push(Finding::new(file.path, LIMIT + 1, message));
        }
    }
    findings.extend(allowed.into_iter().map(|(path, line)| {
        let message = format!("`{path}` is not longer than {LIMIT} lines; remove this line");
        Finding::new(ALLOW_LIST, line, message)
    }));
    findings
}

/// The allowed paths and the lines that allow them.
fn read_allow_list<'a>(text: &'a str, findings: &mut Vec<Finding>) -> BTreeMap<&'a str, usize> {
    let mut allowed = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_once(": ") {
            Some((path, _reason)) => {
                allowed.insert(path, index + 1);
            }
            None => {
                let message = "this is not `path: reason`; say why the file may be long";
                findings.push(Finding::new(ALLOW_LIST, index + 1, message));
            }
        }
    }
    allowed
}

fn is_all_tests(path: &str) -> bool {
    path.split('/').any(|name| name == "tests" || name == "tests.rs")
}

/// How many lines come before `#[cfg(test)] mod tests { … }`, when that ends the file; all of them
/// otherwise.
fn lines_without_tests(file: &RustFile<'_>) -> usize {
    let tokens = file.top_level();
    let all = file.text.lines().count();
    let ends_in_tests = matches!(
        tokens.as_slice(),
        [.., keyword, name, TokenTree::Group(body)]
            if is_ident(Some(keyword), "mod")
                && is_ident(Some(name), "tests")
                && body.delimiter() == Delimiter::Brace
    );
    if !ends_in_tests {
        return all;
    }
    let before_module = &tokens[..tokens.len() - 3];
    // The longest run of attributes that leads up to the module.
    let run = (0..before_module.len())
        .map(|start| attributes(&before_module[start..]))
        .enumerate()
        .find(|(start, run)| {
            let width: usize = run.iter().map(|attribute| attribute.width).sum();
            width > 0 && start + width == before_module.len()
        })
        .map(|(_, run)| run)
        .unwrap_or_default();
    let is_tests = run.iter().any(|attribute| attribute.is_call("cfg", "test"));
    if is_tests { run[0].line - 1 } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/policy/src/table.rs";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    fn lines(count: usize) -> String {
        "const ROW: u8 = 0;\n".repeat(count)
    }

    fn with_tests(count: usize) -> String {
        format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(count), lines(300))
    }

    /// spec TIDY.8: A Rust file of more than 600 lines, not counting its test module at the end and
    /// not in a `tests` directory, is a finding.
    #[test]
    fn a_long_file_is_found() {
        for text in [lines(601), with_tests(601)] {
            assert_eq!(
                found(&[(PATH, &text)]),
                [
                    "crates/policy/src/table.rs:601: 601 lines without the tests; split what is past \
                  600, or give the reason in xtask/long-files.txt"
                ]
            );
        }
        let not_at_the_end = format!("#[cfg(test)]\nmod tests {{}}\n{}", lines(599));
        assert_eq!(found(&[(PATH, &not_at_the_end)]).len(), 1);
        let no_tests = format!("{}mod tests {{\n{}}}\n", lines(500), lines(200));
        assert_eq!(found(&[(PATH, &no_tests)]).len(), 1);
    }

    #[test]
    fn a_file_at_the_limit_passes_and_its_tests_are_not_counted() {
        for text in [lines(600), with_tests(600)] {
            assert_eq!(found(&[(PATH, &text)]), Vec::<String>::new());
        }
        assert!(found(&[("crates/policy/tests/corpus.rs", &lines(2000))]).is_empty());
    }

    /// spec TIDY.9: A long file with a reason in `xtask/long-files.txt` passes; a line there that
    /// no long file needs, or that gives no reason, is a finding.
    #[test]
    fn the_allow_list_is_honoured_and_kept_short() {
        let list = "# Long files and why.\n\ncrates/policy/src/table.rs: it is one table\n";
        assert!(found(&[(PATH, &lines(700)), (ALLOW_LIST, list)]).is_empty());
        assert_eq!(
            found(&[(PATH, &lines(7)), (ALLOW_LIST, list)]),
            ["xtask/long-files.txt:3: `crates/policy/src/table.rs` is not longer than 600 lines; \
              remove this line"]
        );
        assert_eq!(
            found(&[(ALLOW_LIST, "crates/policy/src/table.rs\n")]),
            ["xtask/long-files.txt:1: this is not `path: reason`; say why the file may be long"]
        );
    }
}
