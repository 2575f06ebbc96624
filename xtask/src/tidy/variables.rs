//! Variables of the environment that the shipped sources name, held against the page that tells of them.

use super::rust::is_ident;
use super::{Finding, Tree};
use proc_macro2::{TokenStream, TokenTree};

const PAGE: &str = "docs/environment.md";
/// The page that has the rest of those of OpenTelemetry.
const TELEMETRY: &str = "docs/telemetry.md";
/// Words that begin like this are variables wherever they stand.
const OURS: [&str; 4] = ["CODEX_", "SANDGATE_", "OTEL_", "XDG_"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (Some(page), telemetry) = (tree.text(PAGE), tree.text(TELEMETRY)) else {
        return Vec::new();
    };
    let is_told = |name: &str| {
        let quoted = format!("`{name}`");
        page.contains(&quoted) || telemetry.is_some_and(|page| page.contains(&quoted))
    };
    let mut findings = Vec::new();
    for file in tree.rust_files().filter(|file| is_shipped(file.path)) {
        for (line, name) in variables(file.tokens.clone()) {
            if !is_told(&name) {
                let message =
                    format!("the variable {name} is not in {PAGE}; say there what it does");
                findings.push(Finding::new(file.path, line, message));
            }
        }
    }
    findings
}

/// Whether a file is part of what people install, as far as its path tells.
fn is_shipped(path: &str) -> bool {
    let is_for_tests = |name: &str| {
        ["tests", "tests.rs", "worked_example.rs", "reference.rs"].contains(&name)
            || name.ends_with("_tests.rs")
    };
    path.starts_with("crates/") && path.contains("/src/") && !path.split('/').any(is_for_tests)
}

/// What is read by `var` and `var_os`, and what begins like a variable of ours, outside of test modules.
fn variables(tokens: TokenStream) -> Vec<(usize, String)> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before = |steps: usize| index.checked_sub(steps).and_then(|at| tokens.get(at));
        match token {
            TokenTree::Group(group) => {
                if is_ident(before(2), "mod") && is_ident(before(1), "tests") {
                    continue;
                }
                let reads = is_ident(before(1), "var") || is_ident(before(1), "var_os");
                let first = group.stream().into_iter().next();
                if let Some((line, name)) = first.filter(|_| reads).and_then(|token| word(&token))
                    && !OURS.iter().any(|ours| name.starts_with(ours))
                {
                    found.push((line, name));
                }
                found.extend(variables(group.stream()));
            }
            token => {
                let ours = word(token).filter(|(_, name)| {
                    OURS.iter().any(|ours| name.starts_with(ours))
                        && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                        && !name.ends_with('_')
                });
                found.extend(ours);
            }
        }
    }
    found
}

/// The text of a token that is a plain string.
fn word(token: &TokenTree) -> Option<(usize, String)> {
    let TokenTree::Literal(literal) = token else { return None };
    let text = literal.to_string();
    let name = text.strip_prefix('"')?.strip_suffix('"')?;
    Some((literal.span().start().line, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec TIDY.37: A variable of the environment that shipped sources read and docs/environment.md does not
    /// name is a finding.
    #[test]
    fn a_variable_that_nobody_is_told_of_is_found() {
        let source = "fn a() { std::env::var_os(\"PAGER\"); env::var(\"HOME\"); get(\"SANDGATE_SPEED\"); }\n\
                      // CODEX_NOTE\nmod tests { const A: &str = \"CODEX_TEST\"; }\n";
        let tree = Tree::of(&[
            (PAGE, "| `HOME` | home |\n"),
            ("crates/cli/src/a.rs", source),
            ("crates/cli/tests/b.rs", "const A: &str = \"SANDGATE_BIN\";\n"),
        ]);
        let said: Vec<String> = check(&tree).iter().map(|found| found.message.clone()).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("PAGER") && said[1].contains("SANDGATE_SPEED"), "{said:?}");
    }
}
