//! Sentences of the specification, held against the tests that quote them.
//!
//! A sentence is a line `- **NAME.12** One sentence.` in `docs/spec/`. A test proves it when
//! `/// spec NAME.12: One sentence.` stands above its `#[test]`, word for word.

use super::rust::{Attribute, RustFile, attributes};
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The two forms, as findings explain them.
const SENTENCE_FORM: &str = "- **NAME.12** One sentence.";
const QUOTE_FORM: &str = "/// spec NAME.12: One sentence.";

/// A numbered sentence and its place.
struct Sentence<'a> {
    text: String,
    path: &'a str,
    line: usize,
}

/// What a comment says that a test proves.
struct Quote {
    id: String,
    text: String,
    line: usize,
    standing: Standing,
}

/// Where a quote stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Above a test that runs.
    Test,
    /// Above a test that is ignored, which proves nothing.
    IgnoredTest,
    /// Anywhere else.
    Elsewhere,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sentences = read_sentences(tree, &mut findings);
    let mut quoted: Vec<String> = Vec::new();
    for file in tree.rust_files() {
        for quote in read_quotes(&file, &mut findings) {
            if let Some(message) = fault_of(&quote, sentences.get(&quote.id)) {
                findings.push(Finding::new(file.path, quote.line, message));
            }
            quoted.push(quote.id);
        }
    }
    for (id, sentence) in sentences.iter().filter(|(id, _)| !quoted.contains(id)) {
        let message = format!(
            "no test proves {id}; write `/// spec {id}: …` with the whole sentence above the test \
             that does, or remove the sentence"
        );
        findings.push(Finding::new(sentence.path, sentence.line, message));
    }
    findings
}

/// The numbers of all sentences.
pub(super) fn numbers(tree: &Tree) -> BTreeSet<String> {
    read_sentences(tree, &mut Vec::new()).into_keys().collect()
}

fn fault_of(quote: &Quote, sentence: Option<&Sentence<'_>>) -> Option<String> {
    let id = &quote.id;
    let Some(sentence) = sentence else {
        return Some(format!("there is no sentence {id} in docs/spec; correct the number"));
    };
    match quote.standing {
        Standing::Elsewhere => Some(format!(
            "this quote of {id} is not above a test; move it directly above `#[test]`"
        )),
        Standing::IgnoredTest => {
            Some(format!("an ignored test cannot prove {id}; let it run, or quote it elsewhere"))
        }
        Standing::Test if quote.text != sentence.text => Some(format!(
            "this is not what {id} says in {}:{}; write: {}",
            sentence.path, sentence.line, sentence.text
        )),
        Standing::Test => None,
    }
}

fn read_sentences<'a>(
    tree: &'a Tree,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, Sentence<'a>> {
    let mut sentences: BTreeMap<String, Sentence<'a>> = BTreeMap::new();
    let pages =
        tree.texts().filter(|(path, _)| path.starts_with("docs/spec/") && path.ends_with(".md"));
    for (path, text) in pages {
        let mut in_code = false;
        let mut lines = text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            in_code ^= line.trim_start().starts_with("```");
            if in_code {
                continue;
            }
            let Some((id, start)) = line.strip_prefix("- **").and_then(sentence_start) else {
                if has_bold_id(line) {
                    let message = format!("this is no sentence of the form `{SENTENCE_FORM}`");
                    findings.push(Finding::new(path, index + 1, message));
                }
                continue;
            };
            let mut words: Vec<&str> = start.split_whitespace().collect();
            while let Some((_, more)) = lines.next_if(|(_, line)| continues_sentence(line)) {
                words.extend(more.split_whitespace());
            }
            if let Some(first) = sentences.get(id) {
                let message = format!(
                    "{id} is already the number of {}:{}; take a new one",
                    first.path, first.line
                );
                findings.push(Finding::new(path, index + 1, message));
                continue;
            }
            if words.is_empty() {
                findings.push(Finding::new(path, index + 1, format!("{id} says nothing")));
            }
            let sentence = Sentence { text: words.join(" "), path, line: index + 1 };
            sentences.insert(id.to_owned(), sentence);
        }
    }
    sentences
}

/// Splits `NAME.12** One sentence.` into the number and the words.
fn sentence_start(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = split_id(line)?;
    let words = rest.strip_prefix("**")?;
    (words.is_empty() || words.starts_with(' ')).then_some((id, words))
}

/// Whether a line has a number in bold, as only sentences do.
fn has_bold_id(line: &str) -> bool {
    line.match_indices("**").any(|(start, _)| {
        split_id(&line[start + 2..]).is_some_and(|(_, rest)| rest.starts_with("**"))
    })
}

/// A sentence goes on over indented lines, up to an empty one or a list inside the item.
fn continues_sentence(line: &str) -> bool {
    let words = line.trim_start();
    words.len() < line.len() && !words.is_empty() && !words.starts_with("- ")
}

/// Splits a leading `NAME.12` from what follows it.
fn split_id(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (name, rest) = text.split_once('.')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name);
    (named && digits > 0).then(|| text.split_at(name.len() + 1 + digits))
}

fn read_quotes(file: &RustFile<'_>, findings: &mut Vec<Finding>) -> Vec<Quote> {
    let mut quotes = Vec::new();
    for tokens in file.sequences() {
        let mut next = 0;
        while next < tokens.len() {
            let run = attributes(&tokens[next..]);
            next += run.iter().map(|attribute| attribute.width).sum::<usize>().max(1);
            let test = run.iter().rposition(Attribute::is_test);
            let ignored = run.iter().any(|attribute| attribute.is_named("ignore"));
            let mut open: Option<Quote> = None;
            for (index, attribute) in run.iter().enumerate() {
                let standing = match test {
                    Some(test) if index < test && ignored => Standing::IgnoredTest,
                    Some(test) if index < test => Standing::Test,
                    _ => Standing::Elsewhere,
                };
                match &attribute.doc {
                    Some(doc) => {
                        for (offset, line) in
                            doc.lines().chain(doc.is_empty().then_some("")).enumerate()
                        {
                            let place = (attribute.line + offset, standing);
                            read_quote_line(line, place, &mut open, &mut quotes, |line| {
                                let message = format!("write a quote as `{QUOTE_FORM}`");
                                findings.push(Finding::new(file.path, line, message));
                            });
                        }
                    }
                    None => quotes.extend(open.take()),
                }
            }
            quotes.extend(open.take());
        }
    }
    quotes
}

/// Reads one line of a comment: it begins a quote, goes on with the open one, or ends it.
fn read_quote_line(
    line: &str,
    (number, standing): (usize, Standing),
    open: &mut Option<Quote>,
    done: &mut Vec<Quote>,
    mut malformed: impl FnMut(usize),
) {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((id, rest)) = line.strip_prefix("spec ").and_then(split_id) {
        done.extend(open.take());
        match rest.strip_prefix(':') {
            Some(text) => {
                let (id, text) = (id.to_owned(), text.trim().to_owned());
                *open = Some(Quote { id, text, line: number, standing });
            }
            None => malformed(number),
        }
    } else if line.is_empty() {
        done.extend(open.take());
    } else if let Some(quote) = open {
        quote.text = format!("{} {line}", quote.text).trim().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Judging\n\n- **JUDGE.1** A judge reads\n  the whole command.\n- **JUDGE.2** It is `fair`.\n";
    const BOTH: &str = "/// spec JUDGE.1: A judge reads the whole\n/// command.\n///\n/// spec JUDGE.2: It is `fair`.\n#[test]\nfn f() {}\n";

    fn found(page: &str, source: &str) -> Vec<String> {
        let tree =
            Tree::of(&[("docs/spec/judge.md", page), ("crates/policy/src/judge.rs", source)]);
        let mut findings = check(&tree);
        findings.sort();
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn quoted_sentences_pass() {
        assert_eq!(found(PAGE, BOTH), Vec::<String>::new());
    }

    #[test]
    fn a_test_may_have_other_comments_and_attributes_and_may_be_in_a_macro() {
        let source = "proptest! {\n    /// What it is about.\n    ///\n    /// spec JUDGE.1: A judge reads the whole command.\n    #[cfg(unix)]\n    /// More.\n    #[tokio::test(flavor = \"current_thread\")]\n    async fn f() {}\n}\n/** spec JUDGE.2: It is `fair`. */\n#[test]\nfn g() {}\n";
        assert_eq!(found(PAGE, source), Vec::<String>::new());
    }

    /// spec TIDY.2: A sentence that no test quotes is a finding at the sentence.
    #[test]
    fn a_sentence_without_a_test_is_found() {
        let source = "/// spec JUDGE.1: A judge reads the whole command.\n#[test]\nfn f() {}\n";
        assert_eq!(
            found(PAGE, source),
            ["docs/spec/judge.md:5: no test proves JUDGE.2; write `/// spec JUDGE.2: …` with the \
              whole sentence above the test that does, or remove the sentence"]
        );
    }

    /// spec TIDY.3: A quote that differs from its sentence by more than white space is a finding at
    /// the quote.
    #[test]
    fn a_quote_that_differs_is_found() {
        let source = BOTH.replace("`fair`", "fair");
        assert_eq!(
            found(PAGE, &source),
            [
                "crates/policy/src/judge.rs:4: this is not what JUDGE.2 says in docs/spec/judge.md:5; \
              write: It is `fair`."
            ]
        );
    }

    /// spec TIDY.4: A quote of a number that no sentence has is a finding.
    #[test]
    fn an_unknown_number_is_found() {
        let source = format!("{BOTH}/// spec JUDGE.3: It is quick.\n#[test]\nfn g() {{}}\n");
        assert_eq!(
            found(PAGE, &source),
            [
                "crates/policy/src/judge.rs:7: there is no sentence JUDGE.3 in docs/spec; correct the \
              number"
            ]
        );
    }

    /// spec TIDY.5: Two sentences with one number are a finding at the second.
    #[test]
    fn a_number_that_is_taken_twice_is_found() {
        let page = format!("{PAGE}\n- **JUDGE.1** Again.\n");
        assert_eq!(
            found(&page, BOTH),
            [
                "docs/spec/judge.md:7: JUDGE.1 is already the number of docs/spec/judge.md:3; take a \
              new one"
            ]
        );
    }

    /// spec TIDY.6: A quote proves nothing unless it stands directly above the attribute of a test
    /// that is not ignored.
    #[test]
    fn a_quote_elsewhere_proves_nothing() {
        let quotes = "/// spec JUDGE.1: A judge reads the whole command.\n///\n/// spec JUDGE.2: It is `fair`.\n";
        for (source, words) in [
            (format!("{quotes}fn f() {{}}\n"), "is not above a test"),
            (format!("#[test]\n{quotes}fn f() {{}}\n"), "is not above a test"),
            (format!("{quotes}struct S;\n#[test]\nfn f() {{}}\n"), "is not above a test"),
            (format!("{quotes}#[test]\n#[ignore = \"slow\"]\nfn f() {{}}\n"), "an ignored test"),
        ] {
            let lines = found(PAGE, &source);
            assert_eq!(lines.len(), 2, "{source}{lines:?}");
            assert!(lines.iter().all(|line| line.contains(words)), "{source}{lines:?}");
        }
        let text = format!("const S: &str = r\"\n{BOTH}\";\n");
        assert_eq!(found(PAGE, &text).len(), 2);
    }

    /// spec TIDY.7: A line that is nearly a sentence or nearly a quote is a finding, so that
    /// nothing is left out by a slip of form.
    #[test]
    fn a_slip_of_form_is_found() {
        for slip in ["* **JUDGE.3** It is quick.", "**JUDGE.3** It is quick.", "- **JUDGE.3**: It."]
        {
            let lines = found(&format!("{PAGE}{slip}\n"), BOTH);
            assert_eq!(
                lines,
                ["docs/spec/judge.md:6: this is no sentence of the form \
                  `- **NAME.12** One sentence.`"],
                "{slip}"
            );
        }
        let source = format!("{BOTH}/// spec JUDGE.1 A judge.\n#[test]\nfn g() {{}}\n");
        assert_eq!(
            found(PAGE, &source),
            ["crates/policy/src/judge.rs:7: write a quote as `/// spec NAME.12: One sentence.`"]
        );
    }

    #[test]
    fn examples_in_code_blocks_are_no_sentences() {
        assert!(found(&format!("```\n- **X.1** Gone.\n```\n{PAGE}"), BOTH).is_empty());
    }
}
