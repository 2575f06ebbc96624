//! The text of a here-document, found line by line as a shell does.

use tree_sitter::Node;

use crate::command::{Redirection, RedirectionKind, Word};

const UNUSUAL: &str = "it uses a here-document in an unusual way";

/// The redirection that a here-document is. `whole` is the grammar's node for it, `start` the one
/// for the word that ends it; what the grammar took for its end has to be on the line found here.
///
/// # Errors
/// When the text is not known to the letter.
pub(super) fn read(
    source: &str,
    whole: Node<'_>,
    start: Node<'_>,
) -> Result<Redirection, &'static str> {
    let operator = source[whole.start_byte()..start.start_byte()].trim_end_matches([' ', '\t']);
    let strips_tabs = match operator {
        "<<" => false,
        "<<-" => true,
        _ => return Err(UNUSUAL),
    };
    let (end_word, is_quoted) = end_word(&source[start.byte_range()]).ok_or(UNUSUAL)?;

    let body_start = start.end_byte() + source[start.end_byte()..].find('\n').ok_or(UNUSUAL)? + 1;
    let mut text = String::new();
    let mut at = body_start;
    for line in source[body_start..].split_inclusive('\n') {
        let shown = if strips_tabs { line.trim_start_matches('\t') } else { line };
        if shown.trim_end_matches('\n') == end_word {
            return check(whole, body_start, at..at + line.len()).map(|()| Redirection {
                descriptor: None,
                kind: RedirectionKind::HereDocument,
                target: Word::literal(text),
            });
        }
        if !is_quoted && line.contains(['$', '`', '\\']) {
            return Err("it uses a here-document in which something is expanded");
        }
        text.push_str(shown);
        at += line.len();
    }
    Err("it uses a here-document without an end")
}

/// The word that ends it, and whether it was quoted, which keeps the text from being expanded.
fn end_word(written: &str) -> Option<(&str, bool)> {
    let (word, is_quoted) = if let Some(word) = written.strip_prefix('\'') {
        (word.strip_suffix('\'')?, true)
    } else if let Some(word) = written.strip_prefix('"') {
        (word.strip_suffix('"')?, true)
    } else if let Some(word) = written.strip_prefix('\\') {
        (word, true)
    } else {
        (written, false)
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (!word.is_empty() && !word.starts_with('-') && word.bytes().all(is_plain))
        .then_some((word, is_quoted))
}

/// Whether the grammar saw the same lines.
fn check(
    whole: Node<'_>,
    body_start: usize,
    last_line: std::ops::Range<usize>,
) -> Result<(), &'static str> {
    let mut cursor = whole.walk();
    for child in whole.children(&mut cursor) {
        let agrees = match child.kind() {
            "heredoc_body" => child.start_byte() >= body_start && child.end_byte() <= last_line.end,
            "heredoc_end" => last_line.contains(&child.start_byte()),
            _ => child.end_byte() <= body_start,
        };
        if !agrees || child.is_missing() {
            return Err(UNUSUAL);
        }
    }
    if whole.end_byte() <= last_line.end { Ok(()) } else { Err(UNUSUAL) }
}
