//! Words, with their quotes undone node by node.

use tree_sitter::Node;

use super::Walk;
use crate::command::{Shape, Word};
use crate::script::ShellKind;
use crate::script::word::{self, Place, Undone};

const PUT_TOGETHER: &str = "it contains a word that is put together in an unusual way";

impl Walk<'_, '_> {
    /// A word.
    pub(super) fn word(&mut self, node: Node<'_>, place: Place) -> Word {
        let mut undone = Undone::default();
        let made = match self.undo(node, &mut undone) {
            Ok(()) => word::finish(undone, self.shell, place),
            Err(trouble) => Err(trouble),
        };
        match made {
            Ok(word) => word,
            Err(trouble) => self.dynamic(node, trouble),
        }
    }

    fn undo(&self, node: Node<'_>, undone: &mut Undone) -> Result<(), &'static str> {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" | "test_operator" | "regex" | "extglob_pattern" => {
                if node.child_count() > 0 {
                    return Err(PUT_TOGETHER);
                }
                let mut escaped = false;
                for character in text.chars() {
                    match (escaped, character) {
                        (true, '\n') => return Err("it continues a line in the middle of a word"),
                        (true, character) => undone.push_quoted(character),
                        (false, '\\') => {}
                        (false, character) => undone.push_bare(character),
                    }
                    escaped = !escaped && character == '\\';
                }
                if escaped { Err("it ends in a backslash") } else { Ok(()) }
            }
            "raw_string" => {
                let inside = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                let inside = inside.ok_or("it contains a quote without its end")?;
                mark_empty(inside, undone);
                inside.chars().for_each(|character| undone.push_quoted(character));
                Ok(())
            }
            "string" => self.undo_string(node, undone),
            "concatenation" => {
                let mut cursor = node.walk();
                let mut end = node.start_byte();
                let mut was_raw = false;
                for child in node.children(&mut cursor) {
                    let is_raw = child.kind() == "raw_string";
                    if was_raw && is_raw && self.shell == ShellKind::Zsh {
                        return Err("zsh may read two quotes in a row as one");
                    }
                    if child.start_byte() != end {
                        return Err(PUT_TOGETHER);
                    }
                    self.undo(child, undone)?;
                    was_raw = is_raw;
                    end = child.end_byte();
                }
                if end == node.end_byte() { Ok(()) } else { Err(PUT_TOGETHER) }
            }
            "simple_expansion" | "expansion" | "arithmetic_expansion" | "$" => Err(word::EXPANSION),
            "command_substitution" => Err(word::BACKTICK),
            "process_substitution" => Err("it uses process substitution"),
            "ansi_c_string" | "translated_string" => Err("it uses `$'…'` or `$\"…\"` quoting"),
            "brace_expression" => Err("it uses brace expansion"),
            _ => Err(PUT_TOGETHER),
        }
    }

    fn undo_string(&self, node: Node<'_>, undone: &mut Undone) -> Result<(), &'static str> {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "\"" | "string_content" | "$" => {}
                "command_substitution" => return Err(word::BACKTICK),
                _ => return Err(word::EXPANSION),
            }
        }
        let text = self.text(node);
        let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let inside = inside.ok_or("it contains a quote without its end")?;
        mark_empty(inside, undone);
        let mut rest = inside;
        while let Some(at) = rest.find(['\\', '$', '`', '"']) {
            rest[..at].chars().for_each(|character| undone.push_quoted(character));
            let mut after = rest[at..].chars();
            let special = after.next();
            let next = after.clone().next();
            match (special, next) {
                (Some('\\'), Some('\n')) => {
                    after.next();
                }
                (Some('\\'), Some(next @ ('$' | '`' | '"' | '\\'))) => {
                    undone.push_quoted(next);
                    after.next();
                }
                (Some('\\'), Some(_)) => undone.push_quoted('\\'),
                (Some('$'), next) if word::dollar_is_itself(next) => undone.push_quoted('$'),
                (Some('$'), _) => return Err(word::EXPANSION),
                _ => return Err(word::BACKTICK),
            }
            rest = after.as_str();
        }
        rest.chars().for_each(|character| undone.push_quoted(character));
        Ok(())
    }

    /// A word that keeps the script from being understood.
    pub(super) fn dynamic(&mut self, node: Node<'_>, trouble: &str) -> Word {
        self.note(trouble);
        self.raw(node)
    }

    /// A word of which only the way it was written is known.
    pub(super) fn raw(&self, node: Node<'_>) -> Word {
        let text = self.text(node);
        let shape =
            if text == "~" || text.starts_with("~/") { Shape::Home } else { Shape::Dynamic };
        Word { text: text.to_owned(), shape }
    }
}

/// Quotes around nothing still make a word, and keep what is beside them from being a pattern.
fn mark_empty(inside: &str, undone: &mut Undone) {
    if inside.is_empty() {
        undone.bare.push(word::QUOTED);
    }
}

/// Whether a node is a word.
pub(super) fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "number"
            | "string"
            | "raw_string"
            | "concatenation"
            | "ansi_c_string"
            | "translated_string"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
            | "regex"
            | "variable_name"
            | "test_operator"
            | "extglob_pattern"
    )
}
