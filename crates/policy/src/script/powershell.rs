//! Scripts for PowerShell: plain commands with plain arguments, joined by `;` and `|`.
//!
//! Only the kinds of nodes named here are understood. All else, from variables to redirections, is
//! not, and the commands in it are only searched for danger.

use tree_sitter::Node;

use super::first::{Bounded, by_letters};
use super::guard::{self, MAX_COMMANDS};
use crate::command::{Connective, Shape, SimpleCommand, Word};

const UNUSUAL: &str = "it uses more of PowerShell than plain commands";

/// Names that do not run the command that is written after them, or run text.
const HIDING: &[&str] = &[
    "foreach",
    "foreach-object",
    "iex",
    "invoke-expression",
    "icm",
    "invoke-command",
    "where",
    "where-object",
    "set-alias",
    "sal",
    "new-alias",
    "nal",
    "%",
    "?",
];

/// The commands of a script, and why it is not understood, if it is not.
pub(super) fn read(script: &str) -> (Vec<SimpleCommand>, Option<String>) {
    let searched = super::searched(script);
    // Some characters are quotes or dashes to it that are none to anybody else.
    let foreign = (!script.is_ascii())
        .then(|| "it has characters that PowerShell may read as quotes or dashes".to_owned());
    let refusal = guard::refusal(script).or(foreign);
    thread_local! {
        static PARSER: Bounded = Bounded::new(&tree_sitter_powershell::LANGUAGE.into());
    }
    let Some(tree) = PARSER.with(|parser| parser.parse(searched)) else {
        return (by_letters(searched), Some("it cannot be parsed".to_owned()));
    };
    let mut walk = Walk { source: searched, commands: Vec::new(), trouble: None };
    walk.visit(tree.root_node());
    let trouble = refusal.or(walk.trouble.map(str::to_owned));
    (walk.commands, trouble)
}

struct Walk<'s> {
    source: &'s str,
    commands: Vec<SimpleCommand>,
    trouble: Option<&'static str>,
}

impl<'s> Walk<'s> {
    fn note(&mut self, trouble: &'static str) {
        self.trouble.get_or_insert(trouble);
    }

    fn text(&self, node: Node<'_>) -> &'s str {
        &self.source[node.byte_range()]
    }

    /// Every node, without recursion: a script decides how deep its tree is.
    fn visit(&mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        let mut pending = Connective::First;
        let mut goes_down = true;
        loop {
            let node = cursor.node();
            if goes_down {
                match node.kind() {
                    "program" | "statement_list" | "pipeline" | "pipeline_chain"
                    | "empty_statement" | "command_name" | "command_elements" => {}
                    ";" => pending = Connective::Then,
                    "|" => pending = Connective::Pipe,
                    "command" => {
                        self.command(node, pending);
                        pending = Connective::Then;
                    }
                    _ if is_in_command(node) => {}
                    _ => self.note(UNUSUAL),
                }
                if node.is_error() || node.is_missing() {
                    self.note("it cannot be parsed");
                }
            }
            if goes_down && cursor.goto_first_child() {
                continue;
            }
            if cursor.goto_next_sibling() {
                goes_down = true;
            } else if cursor.goto_parent() {
                goes_down = false;
            } else {
                break;
            }
        }
    }

    fn command(&mut self, node: Node<'_>, connective: Connective) {
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "command_name" => words.push(self.name(child)),
                "command_elements" => self.elements(child, &mut words),
                _ => {
                    self.note(UNUSUAL);
                    words.push(Word { text: self.text(child).to_owned(), shape: Shape::Dynamic });
                }
            }
        }
        let name = words.first().map(|word| word.text.to_ascii_lowercase());
        if name.is_none_or(|name| HIDING.contains(&name.as_str())) {
            self.note("it runs text, or a command for each of many things");
        }
        if self.commands.len() >= MAX_COMMANDS {
            self.note("it has too many commands");
        } else {
            self.commands.push(SimpleCommand { connective, words, ..SimpleCommand::default() });
        }
    }

    fn name(&mut self, node: Node<'_>) -> Word {
        let text = self.text(node);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./\\".contains(&byte);
        if node.child_count() == 0 && text.bytes().all(is_plain) {
            return Word::literal(text);
        }
        self.note(UNUSUAL);
        Word { text: text.to_owned(), shape: Shape::Dynamic }
    }

    fn elements(&mut self, node: Node<'_>, words: &mut Vec<Word>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let text = self.text(child);
            match child.kind() {
                "command_argument_sep" if text.trim_matches(' ').is_empty() => {}
                "generic_token" | "command_parameter" => words.push(self.plain(text)),
                "array_literal_expression" => {
                    let word = self.quoted(child).unwrap_or_else(|| self.plain(text));
                    words.push(word);
                }
                _ => {
                    self.note(UNUSUAL);
                    words.push(Word { text: text.to_owned(), shape: Shape::Dynamic });
                }
            }
        }
    }

    /// A word without any character that PowerShell treats in its own way.
    fn plain(&mut self, text: &str) -> Word {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./\\:=+".contains(&byte);
        let is_pattern = text.contains(['*', '?']);
        let rest = text.bytes().filter(|byte| !b"*?".contains(byte));
        if text != "--%" && rest.clone().all(is_plain) {
            let shape = if is_pattern { Shape::Pattern } else { Shape::Literal };
            return Word { text: text.to_owned(), shape };
        }
        self.note(UNUSUAL);
        Word { text: text.to_owned(), shape: Shape::Dynamic }
    }

    /// A string without expansion in it.
    fn quoted(&mut self, node: Node<'_>) -> Option<Word> {
        let mut inner = node;
        for kind in ["unary_expression", "string_literal"] {
            inner =
                inner.child(0).filter(|child| child.kind() == kind && inner.child_count() == 1)?;
        }
        let text = self.text(inner);
        let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
        // Typographic quotes end a string too.
        let special = [
            '$', '`', '"', '\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}', '\u{201c}',
            '\u{201d}', '\u{201e}',
        ];
        if inside.contains(special) {
            self.note(UNUSUAL);
            return Some(Word { text: text.to_owned(), shape: Shape::Dynamic });
        }
        Some(Word::literal(inside))
    }
}

/// Whether a node is a part of a command that the command has looked at.
fn is_in_command(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "command_argument_sep"
            | " "
            | "generic_token"
            | "command_parameter"
            | "array_literal_expression"
            | "unary_expression"
            | "string_literal"
            | "expandable_string_literal"
            | "verbatim_string_characters"
            | "integer_literal"
            | "decimal_integer_literal"
    )
}
