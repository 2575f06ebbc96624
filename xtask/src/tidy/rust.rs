//! Rust sources as tokens.
//!
//! Tokens know what is a string and what is a comment, and unlike a syntax tree they also show what
//! is inside a macro. Every check that looks at code looks through here.

use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One source file, cut into tokens.
pub(crate) struct RustFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a TokenStream,
}

/// Reports sources that cannot be cut into tokens: every other check passes them by.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.broken_rust_files()
        .map(|(path, error)| {
            let line = error.span().start().line;
            Finding::new(path, line, "this cannot be read as Rust; make it compile first")
        })
        .collect()
}

impl RustFile<'_> {
    /// The tokens that no bracket encloses.
    pub(crate) fn top_level(&self) -> Vec<TokenTree> {
        self.tokens.clone().into_iter().collect()
    }

    /// The tokens that no bracket encloses, and those inside each pair of brackets, as one list of
    /// neighbours for each.
    pub(crate) fn sequences(&self) -> Vec<Vec<TokenTree>> {
        let mut sequences = vec![self.top_level()];
        let mut next = 0;
        while next < sequences.len() {
            let inner: Vec<_> = sequences[next].iter().filter_map(group_content).collect();
            sequences.extend(inner);
            next += 1;
        }
        sequences
    }
}

/// An attribute or a documentation comment.
pub(crate) struct Attribute {
    pub(crate) line: usize,
    /// Whether it speaks about what it stands in (`#![…]`, `//!`), not about what follows.
    pub(crate) is_inner: bool,
    /// The text of a documentation comment, without its slashes and stars.
    pub(crate) doc: Option<String>,
    /// What stands between the brackets.
    pub(crate) content: Vec<TokenTree>,
    /// How many tokens it takes.
    pub(crate) width: usize,
}

impl Attribute {
    /// The attribute that starts at the first of these tokens.
    pub(crate) fn at(tokens: &[TokenTree]) -> Option<Self> {
        if !is_punct(tokens.first(), '#') {
            return None;
        }
        let is_inner = is_punct(tokens.get(1), '!');
        let width = if is_inner { 3 } else { 2 };
        let TokenTree::Group(group) = tokens.get(width - 1)? else { return None };
        if group.delimiter() != Delimiter::Bracket {
            return None;
        }
        let span = tokens[0].span();
        // All tokens that stand for a comment have the place of the whole comment.
        let doc = span.source_text().filter(|text| text.starts_with('/')).map(|text| bare(&text));
        let content = group.stream().into_iter().collect();
        Some(Self { line: span.start().line, is_inner, doc, content, width })
    }

    /// Whether this marks a test: `#[test]`, `#[tokio::test(…)]` and their like.
    pub(crate) fn is_test(&self) -> bool {
        let path: Vec<&TokenTree> = self
            .content
            .iter()
            .take_while(|token| {
                !matches!(token, TokenTree::Group(_)) && !is_punct(Some(token), '=')
            })
            .collect();
        path.last().is_some_and(|last| is_ident(Some(last), "test"))
    }

    /// Whether this is `#[NAME]`, with or without something behind the name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        is_ident(self.content.first(), name)
    }

    /// Whether this is exactly `#[NAME(ARGUMENT)]`.
    pub(crate) fn is_call(&self, name: &str, argument: &str) -> bool {
        let arguments = self.content.get(1).and_then(group_content);
        self.is_named(name)
            && arguments.is_some_and(|arguments| {
                arguments.len() == 1 && is_ident(arguments.first(), argument)
            })
    }
}

/// The attributes that follow each other from the first of these tokens on.
pub(crate) fn attributes(tokens: &[TokenTree]) -> Vec<Attribute> {
    let mut found = Vec::new();
    let mut rest = tokens;
    while let Some(attribute) = Attribute::at(rest) {
        rest = &rest[attribute.width..];
        found.push(attribute);
    }
    found
}

/// Every attribute among these neighbours.
pub(crate) fn all_attributes(tokens: &[TokenTree]) -> Vec<Attribute> {
    (0..tokens.len()).filter_map(|start| Attribute::at(&tokens[start..])).collect()
}

/// A path as it is written, such as `std::fs::File`, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

impl NamedPath {
    /// Whether this is the path `prefix`, or something inside it.
    pub(crate) fn is_inside(&self, prefix: &str) -> bool {
        let mut segments = self.segments.iter();
        prefix.split("::").all(|wanted| segments.next().is_some_and(|segment| segment == wanted))
    }
}

/// Every path among these neighbours, with the branches of `use a::{b, c}` written out.
pub(crate) fn paths(tokens: &[TokenTree]) -> Vec<NamedPath> {
    let mut found = Vec::new();
    let mut next = 0;
    while next < tokens.len() {
        next = match &tokens[next] {
            TokenTree::Ident(_) => read_path(tokens, next, &[], &mut found),
            _ => next + 1,
        };
    }
    found
}

/// Reads the path that starts at `start` and returns where the tokens behind it begin.
fn read_path(
    tokens: &[TokenTree],
    start: usize,
    prefix: &[String],
    found: &mut Vec<NamedPath>,
) -> usize {
    let line = tokens[start].span().start().line;
    let mut segments = prefix.to_vec();
    let mut next = start;
    while let Some(TokenTree::Ident(ident)) = tokens.get(next) {
        segments.push(ident.to_string());
        next += 1;
        if !is_punct(tokens.get(next), ':') || !is_punct(tokens.get(next + 1), ':') {
            break;
        }
        next += 2;
        match tokens.get(next) {
            Some(TokenTree::Ident(_)) => {}
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let branches: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut branch = 0;
                while branch < branches.len() {
                    branch = match &branches[branch] {
                        TokenTree::Ident(ident) if ident == "as" => branch + 2,
                        TokenTree::Ident(_) => read_path(&branches, branch, &segments, found),
                        _ => branch + 1,
                    };
                }
                return next + 1;
            }
            _ => break,
        }
    }
    found.push(NamedPath { line, segments });
    next
}

/// What a group encloses; nothing for any other token.
pub(crate) fn group_content(token: &TokenTree) -> Option<Vec<TokenTree>> {
    match token {
        TokenTree::Group(group) => Some(group.stream().into_iter().collect()),
        _ => None,
    }
}

pub(crate) fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

pub(crate) fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// The words of a documentation comment, line by line, without what marks it as a comment.
fn bare(comment: &str) -> String {
    if let Some(block) = comment.strip_prefix("/*") {
        let block = block.strip_suffix("*/").unwrap_or(block);
        let lines = block.lines().map(|line| line.trim().trim_start_matches(['*', '!']).trim());
        return lines.collect::<Vec<_>>().join("\n");
    }
    comment.trim_start_matches(['/', '!']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top_level(text: &str) -> Vec<TokenTree> {
        text.parse::<TokenStream>().unwrap().into_iter().collect()
    }

    fn written_out(text: &str) -> Vec<String> {
        paths(&top_level(text)).into_iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn what_is_not_rust_is_reported_where_it_breaks() {
        let tree = Tree::of(&[("crates/policy/src/lib.rs", "fn judge() {}\nfn (\n")]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().contains("cannot be read as Rust"));
    }

    #[test]
    fn branches_of_a_use_are_written_out() {
        assert_eq!(
            written_out("use std::{env, fs::{self, File as F}, path::Path};"),
            ["use", "std::env", "std::fs::self", "std::fs::File", "std::path::Path"]
        );
        assert_eq!(written_out("::std::fs::read(path)"), ["std::fs::read"]);
        assert_eq!(written_out("Vec::<std::fs::File>::new()"), ["Vec", "std::fs::File", "new"]);
    }

    #[test]
    fn strings_and_comments_hold_no_paths() {
        assert!(written_out("// std::fs::read\n\"std::fs\"").is_empty());
    }

    #[test]
    fn attributes_are_read_with_their_comments() {
        let tokens = top_level("/// One.\n#[cfg(unix)]\n#[tokio::test(flavor = \"x\")]\nfn f() {}");
        let attributes = attributes(&tokens);
        assert_eq!(attributes.len(), 3);
        assert_eq!(attributes[0].doc.as_deref(), Some("One."));
        assert!(attributes[1].is_call("cfg", "unix"));
        assert!(!attributes[1].is_test());
        assert!(attributes[2].is_test());
        assert_eq!(attributes[2].line, 3);
    }

    #[test]
    fn an_attribute_that_only_mentions_tests_marks_none() {
        let tokens = top_level("#[cfg(test)]\n#[doc = \"test\"]\nmod tests {}");
        assert!(attributes(&tokens).iter().all(|attribute| !attribute.is_test()));
    }
}
