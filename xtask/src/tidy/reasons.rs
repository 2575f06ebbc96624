//! Exceptions that do not say why.

use super::rust::{all_attributes, group_content, is_ident, is_punct};
use super::{Finding, Tree};
use proc_macro2::TokenTree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for attribute in file.sequences().iter().flat_map(|tokens| all_attributes(tokens)) {
            let mut report = |message| {
                findings.push(Finding::new(file.path, attribute.line, message));
            };
            for words in terms(&attribute.content) {
                if ignores_without_reason(&words) {
                    report("a test is ignored without a reason; write `#[ignore = \"why\"]`");
                }
                if is_ident(words.first(), "allow") && !gives_reason(&words) {
                    report(
                        "a lint is allowed without a reason; write `#[expect(…, reason = \"why\")]`",
                    );
                }
                if is_ident(words.first(), "expect") && !gives_reason(&words) {
                    report("a lint is expected without a reason; add `reason = \"why\"`");
                }
            }
        }
    }
    findings
}

/// What an attribute says: its content or, for `cfg_attr`, each thing that it says when the
/// condition holds.
fn terms(content: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let inner =
        content.get(1).and_then(group_content).filter(|_| is_ident(content.first(), "cfg_attr"));
    match inner {
        Some(inner) => {
            inner.split(|token| is_punct(Some(token), ',')).skip(1).flat_map(terms).collect()
        }
        None => vec![content.to_vec()],
    }
}

fn ignores_without_reason(words: &[TokenTree]) -> bool {
    is_ident(words.first(), "ignore") && !(is_punct(words.get(1), '=') && is_text(words.get(2)))
}

/// Whether the arguments of `allow(…)` or `expect(…)` have a reason with words in it.
fn gives_reason(words: &[TokenTree]) -> bool {
    let arguments = words.get(1).and_then(group_content).unwrap_or_default();
    arguments.windows(3).any(|window| {
        is_ident(window.first(), "reason") && is_punct(window.get(1), '=') && is_text(window.get(2))
    })
}

fn is_text(token: Option<&TokenTree>) -> bool {
    token.is_some_and(|token| token.to_string().chars().any(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/policy/src/lib.rs", text)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn exceptions_with_a_reason_pass() {
        let text = "#![expect(missing_docs, reason = \"generated\")]\n\
                    #[ignore = \"takes a minute\"]\n\
                    #[cfg_attr(windows, allow(dead_code, reason = \"Unix only\"))]\n\
                    #[cfg(allow)]\n\
                    fn allow() { let x = y.expect(\"there\"); }\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    /// spec TIDY.33: A test that is ignored without a reason is a finding.
    #[test]
    fn ignoring_needs_a_reason() {
        for attribute in ["#[ignore]", "#[ignore = \"\"]", "#[cfg_attr(windows, ignore)]"] {
            assert_eq!(
                found(&format!(
                    "mod tests {{\n    #[test]\n    {attribute}\n    fn f() {{}}\n}}\n"
                )),
                ["crates/policy/src/lib.rs:3: a test is ignored without a reason; write \
                  `#[ignore = \"why\"]`"]
            );
        }
    }

    /// spec TIDY.34: A lint that is allowed or expected without a reason is a finding.
    #[test]
    fn allowing_needs_a_reason() {
        for attribute in [
            "#![allow(dead_code)]",
            "#[allow(dead_code)]",
            "#[allow(dead_code, reason = \"\")]",
            "#[cfg_attr(windows, allow(dead_code))]",
        ] {
            assert_eq!(
                found(&format!("\n{attribute}\nfn f() {{}}\n")),
                ["crates/policy/src/lib.rs:2: a lint is allowed without a reason; write \
                  `#[expect(…, reason = \"why\")]`"]
            );
        }
        assert_eq!(found("#[expect(dead_code)]\nfn f() {}\n").len(), 1);
    }
}
