//! The commands inside what is not understood, for the search for danger.

use tree_sitter::Node;

use super::words::is_word;
use super::{MAX_SEARCHED_COMMANDS, MAX_WALK, Tail, Walk};
use crate::command::{Connective, Shape, SimpleCommand, Word};
use crate::script::word::Place;

impl<'t> Walk<'t, '_> {
    /// Remembers a node whose substitutions are to be searched, after the list that it stands in:
    /// between its neighbours they would look like links of a pipeline. What is understood has none.
    pub(super) fn search_later(&mut self, node: Node<'t>) {
        if self.trouble.is_some() {
            self.later.push_back(node);
        }
    }

    /// Searches what was remembered.
    pub(super) fn search(&mut self) {
        while let Some(node) = self.later.pop_front() {
            self.pending = Connective::Then;
            self.depth = 0;
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.substitutions(child);
            }
        }
    }

    /// The commands inside what is not understood.
    pub(super) fn descend(&mut self, node: Node<'t>) {
        let mut loose = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                kind if is_word(kind) => loose.push(self.word(child, Place::Command)),
                "|" => self.follow(Connective::Pipe),
                _ => {}
            }
        }
        if node.is_error() && !loose.is_empty() {
            self.push(SimpleCommand { words: loose, ..SimpleCommand::default() });
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if is_statement(child.kind()) {
                self.statement(child);
            } else if child.child_count() > 0 {
                self.depth += 1;
                if self.depth > MAX_WALK {
                    self.pick_out(child);
                } else {
                    self.descend(child);
                }
                self.depth -= 1;
            }
        }
    }

    fn substitutions(&mut self, node: Node<'t>) {
        if node.child_count() == 0 {
            return;
        }
        self.depth += 1;
        if self.depth > MAX_WALK {
            self.pick_out(node);
        } else if is_statement(node.kind()) && node.kind() != "variable_assignment" {
            self.pending = Connective::Then;
            self.statement(node);
        } else {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.substitutions(child);
            }
        }
        self.depth -= 1;
    }

    /// Every simple command below, however deep, without what stands between them.
    pub(super) fn pick_out(&mut self, node: Node<'_>) -> Tail {
        let start = self.commands.len();
        // Redirections and assignments are lost on the way.
        self.complete = false;
        let mut cursor = node.walk();
        let mut goes_down = true;
        loop {
            let here = cursor.node();
            if goes_down && here.kind() == "command" {
                let mut below = here.walk();
                let words = here.children(&mut below).map(|child| match child.kind() {
                    "command_name" => child.child(0).unwrap_or(child),
                    _ => child,
                });
                let words: Vec<Word> = words
                    .filter(|child| is_word(child.kind()))
                    .map(|child| self.word(child, Place::Command))
                    .collect();
                self.push(SimpleCommand { words, ..SimpleCommand::default() });
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
        Tail { commands: start..self.commands.len(), is_group: false }
    }
}

fn is_statement(kind: &str) -> bool {
    matches!(
        kind,
        "command"
            | "test_command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
            | "redirected_statement"
            | "list"
            | "pipeline"
            | "negated_command"
            | "subshell"
            | "compound_statement"
            | "function_definition"
            | "if_statement"
            | "for_statement"
            | "while_statement"
            | "case_statement"
            | "c_style_for_statement"
    )
}

/// What looks like commands in a text that the grammar cannot make anything of: cut at whatever
/// could separate commands, without regard to quotes. What that misses is not known, and the last of
/// them says so.
pub(in crate::script) fn by_letters(source: &str) -> Vec<SimpleCommand> {
    let mut commands = Vec::new();
    let mut connective = Connective::First;
    for part in source.split_inclusive(['\n', ';', '|', '&', '(', ')', '`']) {
        let text = part.trim_end_matches(['\n', ';', '|', '&', '(', ')', '`']);
        let words: Vec<Word> = text.split([' ', '\t']).filter_map(loose_word).collect();
        if !words.is_empty() && commands.len() < MAX_SEARCHED_COMMANDS {
            commands.push(SimpleCommand { connective, words, ..SimpleCommand::default() });
        }
        connective = if part.ends_with('|') { Connective::Pipe } else { Connective::Then };
    }
    commands.push(SimpleCommand::not_searched());
    commands
}

fn loose_word(written: &str) -> Option<Word> {
    let text: String = written.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    let shape = if text.starts_with('~') {
        Shape::Home
    } else if text.contains('$') {
        Shape::Dynamic
    } else {
        Shape::Literal
    };
    (!text.is_empty()).then_some(Word { text, shape })
}
