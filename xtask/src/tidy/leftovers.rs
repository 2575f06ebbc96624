//! Words that mark work as unfinished, and lines that mark a merge as unfinished.
//!
//! This is the one check that reads text and not tokens: a note is as unfinished in a comment or a
//! string as it is in code.

use super::{Finding, Tree};

/// The words. They are written in two halves because this file is checked as well.
const WORDS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
];

/// What git puts at the beginning of a line around each side of what it could not merge.
const SIDES: &[&str] = &[concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            if SIDES.iter().any(|side| line.starts_with(side)) {
                let message = "a merge was left half done; keep one side, or both";
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    let sources = tree.texts().filter(|(path, _)| {
        path.ends_with(".rs") || path.starts_with("scripts/") || path.starts_with(".ci/")
    });
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            for word in WORDS.iter().filter(|word| has_word(line, word)) {
                let message =
                    format!("`{word}` marks unfinished work; finish it, or remove the note");
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    findings
}

/// Whether a line has a word that is not part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(is_part)
            && (word.ends_with('!') || !line[start + word.len()..].starts_with(is_part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_words_pass() {
        let text = "let template = \"/tmp/XXXXXX\";\nlet todos = 1;\n";
        assert!(check(&Tree::of(&[("crates/policy/src/lib.rs", text)])).is_empty());
    }

    /// spec TIDY.38: A line with which git marks what it could not merge is a finding, in a page too.
    #[test]
    fn half_a_merge_is_found() {
        for side in SIDES {
            let text = format!("one\n{side}HEAD\n a {side}HEAD\n");
            let findings = check(&Tree::of(&[("docs/spec/page.md", &text)]));
            assert_eq!(findings.len(), 1, "{text}");
            assert!(findings[0].to_string().starts_with("docs/spec/page.md:2: a merge"));
        }
    }

    /// spec TIDY.32: A word that marks unfinished work, in a Rust source or a script, is a finding,
    /// also in a comment or a string.
    #[test]
    fn notes_to_oneself_are_found() {
        for word in WORDS {
            for text in
                [format!("\n// {word} later"), format!("\n  {word}(x)"), format!("\n\"{word}")]
            {
                for path in ["crates/policy/src/lib.rs", "scripts/test"] {
                    let findings = check(&Tree::of(&[(path, &text)]));
                    assert_eq!(findings.len(), 1, "{text}");
                    assert!(findings[0].to_string().starts_with(&format!("{path}:2: `{word}`")));
                }
            }
        }
    }
}
