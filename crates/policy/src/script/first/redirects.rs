//! Redirections, and the text of here-documents, which the grammar mixes with what follows them.

use tree_sitter::Node;

use super::{Tail, UNPLACED, Walk};
use crate::command::{Connective, Redirection, RedirectionKind, Word};
use crate::script::here_document;
use crate::script::redirection::{Operator, redirection};
use crate::script::word::Place;

impl<'t> Walk<'t, '_> {
    /// One redirection. The grammar takes the words after its target for targets too.
    pub(super) fn redirect(
        &mut self,
        node: Node<'t>,
        into: &mut Vec<Redirection>,
        words: &mut Vec<Word>,
    ) {
        let mut cursor = node.walk();
        let mut descriptor = None;
        let mut operator = "";
        let mut targets = Vec::new();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            let start = child.start_byte();
            let is_apart = start != end;
            self.check_blank(end, start);
            end = child.end_byte();
            if child.kind() == "file_descriptor" {
                descriptor = match self.text(child).as_bytes() {
                    // Only one digit is a descriptor in every shell.
                    [digit @ b'0'..=b'9'] => Some(u32::from(digit - b'0')),
                    _ => {
                        self.note("it names a descriptor in an unusual way");
                        None
                    }
                };
            } else if operator.is_empty() && !child.is_named() {
                operator = self.text(child);
                // In `1&>file` the digit is a word to bash, and a descriptor to zsh.
                let before = start.checked_sub(1).and_then(|at| self.source.as_bytes().get(at));
                if operator.starts_with('&') && before.is_some_and(u8::is_ascii_digit) {
                    self.note("it names a descriptor in an unusual way");
                }
                if is_apart && descriptor.is_some() {
                    self.note("it names a descriptor in an unusual way");
                }
            } else {
                if !is_apart && (!targets.is_empty() || operator.ends_with('-')) {
                    self.note("two words in it are not separated");
                }
                targets.push(self.word(child, Place::Command));
            }
        }
        let closes = operator.ends_with('-');
        let mut targets = targets.into_iter();
        let target = if closes { Some(Word::literal("-")) } else { targets.next() };
        let Some(target) = target else {
            self.note("it redirects to nothing");
            return;
        };
        let operator = match operator.trim_end_matches('-') {
            "<" => Operator::Read,
            ">" => Operator::Write,
            ">|" => Operator::Clobber,
            ">>" => Operator::Append,
            "&>" => Operator::WriteBoth,
            "&>>" => Operator::AppendBoth,
            ">&" => Operator::DuplicateWritten,
            "<&" => Operator::DuplicateRead,
            "<<<" => Operator::HereString,
            _ => {
                self.note("it redirects in an unusual way");
                Operator::ReadWrite
            }
        };
        into.push(redirection(self.shell, descriptor, operator, target).unwrap_or_else(|wrong| {
            self.note(wrong.why);
            wrong.guess
        }));
        words.extend(targets);
    }

    /// A here-document, with what else stands on its first line for the same command.
    pub(super) fn here_document(
        &mut self,
        node: Node<'t>,
        into: &mut Vec<Redirection>,
        words: &mut Vec<Word>,
    ) {
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "heredoc_body" | "heredoc_end" => break,
                "<<" | "<<-" | "file_descriptor" => self.check_blank(end, child.start_byte()),
                "heredoc_start" => {
                    self.check_blank(end, child.start_byte());
                    match here_document::read(self.source, node, child) {
                        Ok(redirection) => into.push(redirection),
                        Err(trouble) => {
                            self.note(trouble);
                            let mut below = node.walk();
                            let body =
                                node.children(&mut below).find(|c| c.kind() == "heredoc_body");
                            let target = body.map_or(Word::literal(""), |body| self.raw(body));
                            let kind = RedirectionKind::HereDocument;
                            into.push(Redirection { descriptor: None, kind, target });
                        }
                    }
                }
                "file_redirect" | "herestring_redirect" => {
                    self.check_blank(end, child.start_byte());
                    self.redirect(child, into, words);
                    self.search_later(child);
                }
                // What follows on the same line is read after the command has been finished.
                "pipeline" | "&&" | "||" => return,
                _ if child.is_named() && !child.is_error() => {
                    self.check_blank(end, child.start_byte());
                    words.push(self.word(child, Place::Command));
                    self.search_later(child);
                }
                _ => self.note(UNPLACED),
            }
            end = child.end_byte();
        }
    }

    /// The statements that follow on the line on which a here-document begins.
    pub(super) fn after_here_document(&mut self, node: Node<'t>) -> Option<Tail> {
        let mut cursor = node.walk();
        let mut tail = None;
        let mut joined = false;
        for child in node.children(&mut cursor) {
            match child.kind() {
                "pipeline" => tail = Some(self.joined(child)),
                "&&" => {
                    self.follow(Connective::And);
                    joined = true;
                }
                "||" => {
                    self.follow(Connective::Or);
                    joined = true;
                }
                "heredoc_body" => self.search_later(child),
                "heredoc_end" => {}
                _ if joined => tail = Some(self.statement(child)),
                _ => {}
            }
        }
        self.pending = Connective::Then;
        tail
    }
}
