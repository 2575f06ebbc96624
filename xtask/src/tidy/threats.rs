//! The threat model, held against the specification: every line of what holds names sentences that there are.

use super::{Finding, Tree, spec};

const PAGE: &str = "docs/threat-model.md";
/// The head of a table whose lines must be proven.
const PROVEN: &str = "| what holds | proof |";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else { return Vec::new() };
    let sentences = spec::numbers(tree);
    let (mut findings, mut is_proven) = (Vec::new(), false);
    for (index, line) in page.lines().enumerate() {
        is_proven = line == PROVEN || (is_proven && line.starts_with('|'));
        if !is_proven || line == PROVEN || line.starts_with("| ---") {
            continue;
        }
        let proof = line.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let named: Vec<&str> =
            proof.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
        if named.is_empty() {
            let message = "this line has no proof; name the sentence of docs/spec that says so";
            findings.push(Finding::new(PAGE, index + 1, message));
        }
        for id in named.into_iter().filter(|id| !sentences.contains(*id)) {
            let message = format!("there is no sentence {id} in docs/spec; name one that there is");
            findings.push(Finding::new(PAGE, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec TIDY.36: A line of what holds in the threat model that names no sentence of the specification, or
    /// one that there is not, is a finding.
    #[test]
    fn a_line_without_a_proof_is_found() {
        let page = "| what holds | proof |\n| --- | --- |\n| It stays | CAGE.1 |\n| It ends | CAGE.1, CAGE.9 |\n\
                    | It is quiet | |\n\n| who | what |\n| --- | --- |\n| a model | |\n";
        let spec = "- **CAGE.1** It stays.\n";
        let tree = Tree::of(&[(PAGE, page), ("docs/spec/cage.md", spec)]);
        let lines: Vec<usize> = check(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4, 5]);
    }
}
