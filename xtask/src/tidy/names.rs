//! Module names that say nothing, and so collect everything.

use super::rust::is_ident;
use super::tree::package_of;
use super::{Finding, Tree};
use proc_macro2::TokenTree;

const BANNED: &[&str] = &["common", "core", "helper", "helpers", "misc", "util", "utils"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _) in tree.texts().filter(|(path, _)| package_of(path).is_some()) {
        let names = path.split('/').map(|name| name.strip_suffix(".rs").unwrap_or(name));
        findings.extend(
            names
                .filter(|name| BANNED.contains(name))
                .map(|name| Finding::new(path, 1, advice(name))),
        );
    }
    for file in tree.rust_files() {
        for tokens in file.sequences() {
            for pair in tokens.windows(2) {
                if let [keyword, TokenTree::Ident(name)] = pair
                    && is_ident(Some(keyword), "mod")
                    && BANNED.contains(&name.to_string().as_str())
                {
                    let line = name.span().start().line;
                    findings.push(Finding::new(file.path, line, advice(&name.to_string())));
                }
            }
        }
    }
    findings
}

fn advice(name: &str) -> String {
    format!("no module is called `{name}`; name it after what it does")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn telling_names_pass() {
        let text = "mod utility_bills;\nuse core::fmt;\nlet utils = 1;\n// mod utils;\n";
        assert!(found("crates/policy/src/common_prefix.rs", text).is_empty());
    }

    /// spec TIDY.30: A file, a directory or a `mod` called common, core, helper, helpers, misc,
    /// util or utils is a finding.
    #[test]
    fn names_that_say_nothing_are_found() {
        let advice = |name| format!("no module is called `{name}`; name it after what it does");
        for name in BANNED {
            let file = format!("crates/policy/src/{name}.rs");
            assert_eq!(found(&file, ""), [format!("{file}:1: {}", advice(name))]);
            let directory = format!("crates/policy/tests/{name}/shell.rs");
            assert_eq!(found(&directory, ""), [format!("{directory}:1: {}", advice(name))]);
            let text = format!("fn f() {{}}\npub(crate) mod {name} {{}}\n");
            assert_eq!(
                found("crates/policy/src/lib.rs", &text),
                [format!("crates/policy/src/lib.rs:2: {}", advice(name))]
            );
        }
    }
}
