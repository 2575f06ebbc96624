//! The first reading of a script, by the tree-sitter grammar of bash.
//!
//! One walk over the tree gives both the commands and the first thing in it that is not understood.
//! Only the kinds of nodes named here are understood: a tree without errors proves little, as the
//! grammar takes many texts that no shell does. The walk goes on past what it does not understand,
//! so that every command that can be made out is seen, also inside loops and substitutions.

use std::collections::VecDeque;
use std::ops::Range;

use tree_sitter::Node;

mod bounded;
mod redirects;
mod search;
mod words;

use super::ShellKind;
use super::guard::{MAX_COMMANDS, MAX_NESTING};
use super::word::Place;
use crate::command::{Assignment, Connective, Redirection, Shape, SimpleCommand, Word};
pub(super) use bounded::Bounded;
pub(super) use search::by_letters;
use words::is_word;

/// Commands past this many are not looked at. That there are more is said by the last.
const MAX_SEARCHED_COMMANDS: usize = 4096;

/// How deep the walk goes before it only picks out the commands below.
const MAX_WALK: usize = 200;

const UNPLACED: &str = "it contains text that could not be placed";

/// What was read.
pub(super) struct First {
    pub(super) commands: Vec<SimpleCommand>,
    /// The first thing that was not understood.
    pub(super) trouble: Option<String>,
}

/// Reads a script.
pub(super) fn read(source: &str, shell: ShellKind) -> First {
    thread_local! {
        static PARSER: Bounded = Bounded::new(&tree_sitter_bash::LANGUAGE.into());
    }
    let Some(tree) = PARSER.with(|parser| parser.parse(source)) else {
        let trouble = Some("it cannot be parsed, or is too long".to_owned());
        return First { commands: by_letters(source), trouble };
    };
    let mut walk = Walk {
        source,
        shell,
        commands: Vec::new(),
        trouble: None,
        pending: Connective::First,
        depth: 0,
        later: VecDeque::new(),
        complete: true,
    };
    walk.program(tree.root_node());
    walk.search();
    if !walk.complete {
        walk.commands.push(SimpleCommand::not_searched());
    }
    if walk.commands.len() > MAX_COMMANDS {
        walk.note(&format!("it has more than {MAX_COMMANDS} commands"));
    }
    First { commands: walk.commands, trouble: walk.trouble }
}

/// The commands that a redirection after a statement belongs to.
struct Tail {
    commands: Range<usize>,
    /// A group's redirections are set up before those of the commands in it.
    is_group: bool,
}

struct Walk<'t, 's> {
    source: &'s str,
    shell: ShellKind,
    commands: Vec<SimpleCommand>,
    trouble: Option<String>,
    /// How the next command hangs on the last.
    pending: Connective,
    depth: usize,
    /// Nodes whose substitutions are still to be searched.
    later: VecDeque<Node<'t>>,
    /// Whether everything was looked at.
    complete: bool,
}

/// A command that is being put together.
#[derive(Default)]
struct Draft {
    command: SimpleCommand,
    /// The program's name as it was written.
    name: Option<Range<usize>>,
}

impl<'t, 's> Walk<'t, 's> {
    fn text(&self, node: Node<'_>) -> &'s str {
        &self.source[node.byte_range()]
    }

    fn note(&mut self, trouble: &str) {
        if self.trouble.is_none() {
            self.trouble = Some(trouble.to_owned());
        }
    }

    /// Whether only blanks lie between two places, which may run over a continued line.
    fn is_blank(&self, from: usize, to: usize) -> bool {
        let mut rest = self.source.get(from..to).unwrap_or("?").as_bytes();
        loop {
            rest = match rest {
                [b' ' | b'\t', rest @ ..] | [b'\\', b'\n', rest @ ..] => rest,
                rest => return rest.is_empty(),
            };
        }
    }

    /// Whether only blanks and line ends lie between two places.
    fn is_space(&self, from: usize, to: usize) -> bool {
        let text = self.source.get(from..to).unwrap_or("?");
        text.split('\n')
            .all(|line| line.trim_matches([' ', '\t']).trim_end_matches('\\').is_empty())
            && !text.ends_with('\\')
            && !text.contains("\\ ")
            && !text.contains("\\\t")
            && !text.contains("\\\\")
    }

    fn check_blank(&mut self, from: usize, to: usize) {
        if !self.is_blank(from, to) {
            self.note(UNPLACED);
        }
    }

    fn program(&mut self, root: Node<'t>) {
        if root.kind() != "program" {
            self.note("it is not a script that can be parsed");
        }
        self.sequence(root, 0..self.source.len());
    }

    /// Statements with what stands between them, inside `bounds`.
    fn sequence(&mut self, node: Node<'t>, bounds: Range<usize>) -> Range<usize> {
        let start = self.commands.len();
        let mut cursor = node.walk();
        let mut end = bounds.start;
        let mut separated = true;
        for child in node.children(&mut cursor) {
            if child.end_byte() > bounds.end || child.start_byte() < bounds.start {
                continue;
            }
            let gap = end..child.start_byte();
            if !self.is_space(gap.start, gap.end) {
                self.note(UNPLACED);
            }
            separated |= self.source.get(gap).is_some_and(|gap| gap.contains('\n'));
            match child.kind() {
                // Of a group that is not understood; its trouble has been noted.
                "(" | ")" | "{" | "}" | "((" | "))" => {}
                ";" | "\n" => {
                    self.follow(Connective::Then);
                    separated = true;
                }
                "&" => {
                    self.follow(Connective::Beside);
                    separated = true;
                }
                "comment" => {}
                _ => {
                    if !separated {
                        self.note("two commands in it are not separated");
                    }
                    self.statement(child);
                    separated = ends_a_line(child);
                }
            }
            end = child.end_byte();
        }
        if !self.is_space(end, bounds.end) {
            self.note(UNPLACED);
        }
        start..self.commands.len()
    }

    fn follow(&mut self, connective: Connective) {
        if let Some(last) = self.commands.last_mut() {
            self.pending = connective;
            last.left_running |= connective == Connective::Beside;
        }
    }

    fn statement(&mut self, node: Node<'t>) -> Tail {
        self.depth += 1;
        let tail = if self.depth > MAX_WALK {
            self.note("its commands are nested too deep");
            self.pick_out(node)
        } else {
            self.statement_here(node)
        };
        self.depth -= 1;
        tail
    }

    fn statement_here(&mut self, node: Node<'t>) -> Tail {
        let start = self.commands.len();
        match node.kind() {
            "command" => self.command(node),
            "test_command" => self.test_command(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "variable_assignment" | "variable_assignments" => self.assignments_only(node),
            "redirected_statement" => return self.redirected(node),
            "list" | "pipeline" => return self.joined(node),
            "negated_command" => return self.negated(node),
            "subshell" | "compound_statement" => return self.group(node),
            _ => {
                let trouble = why_not_understood(node);
                self.note(&trouble);
                self.descend(node);
            }
        }
        Tail { commands: start..self.commands.len(), is_group: false }
    }

    /// Statements joined by `&&`, `||`, `|` or `|&`.
    fn joined(&mut self, node: Node<'t>) -> Tail {
        let start = self.commands.len();
        let mut tail = Tail { commands: start..start, is_group: false };
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            if !self.is_space(end, child.start_byte()) {
                self.note(UNPLACED);
            }
            match child.kind() {
                "&&" => self.follow(Connective::And),
                "||" => self.follow(Connective::Or),
                "|" => self.follow(Connective::Pipe),
                "|&" => {
                    if self.shell == ShellKind::Posix {
                        self.note("`|&` is not the same in every sh");
                    }
                    self.follow(Connective::PipeBoth);
                }
                "comment" => {}
                _ => tail = self.statement(child),
            }
            end = child.end_byte();
        }
        tail
    }

    fn negated(&mut self, node: Node<'t>) -> Tail {
        let mut tail = Tail { commands: 0..0, is_group: false };
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            self.check_blank(end, child.start_byte());
            if child.kind() == "!" {
                if child.end_byte() == node.end_byte() {
                    self.note(UNPLACED);
                }
            } else {
                if child.start_byte() == end {
                    self.note("`!` in it is not a word of its own");
                }
                tail = self.statement(child);
            }
            end = child.end_byte();
        }
        tail
    }

    /// `( … )` and `{ …; }`.
    fn group(&mut self, node: Node<'t>) -> Tail {
        let text = self.text(node);
        let is_plain = (text.starts_with('(') && text.ends_with(')') && !text.starts_with("(("))
            || (text.starts_with(['{'])
                && text.ends_with('}')
                && text[1..].starts_with([' ', '\t', '\n']));
        if !is_plain {
            self.note("it uses arithmetic, or groups in an unusual way");
        }
        if self.depth > MAX_NESTING {
            self.note("its commands are nested too deep");
        }
        let inside = match text.len() {
            length if is_plain => node.start_byte() + 1..node.start_byte() + length - 1,
            _ => node.byte_range(),
        };
        let commands = self.sequence(node, inside);
        if commands.is_empty() {
            self.note("a group in it is empty");
        }
        Tail { commands, is_group: true }
    }

    /// A statement with redirections after it. The grammar hangs them on a whole list, where a
    /// shell gives them to its last command.
    fn redirected(&mut self, node: Node<'t>) -> Tail {
        let mut cursor = node.walk();
        let mut tail: Option<Tail> = None;
        let mut redirections = Vec::new();
        let mut words = Vec::new();
        let mut after: Option<Node<'_>> = None;
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            let gap = end..child.start_byte();
            match child.kind() {
                "file_redirect" | "herestring_redirect" => {
                    self.check_blank(gap.start, gap.end);
                    self.redirect(child, &mut redirections, &mut words);
                    self.search_later(child);
                }
                "heredoc_redirect" => {
                    // The grammar loses a lone dash before `<<`, as in `python3 - <<EOF`.
                    let between = self.source[gap.clone()].trim_matches([' ', '\t']);
                    if between == "-" && gap.len() > 2 {
                        words.push(Word::literal("-"));
                    } else {
                        self.check_blank(gap.start, gap.end);
                    }
                    if after.is_some() {
                        self.note("it feeds two texts in on one line");
                    }
                    self.here_document(child, &mut redirections, &mut words);
                    after = Some(child);
                }
                _ if tail.is_none() => {
                    self.check_blank(gap.start, gap.end);
                    tail = Some(self.statement(child));
                }
                _ => self.note(UNPLACED),
            }
            end = child.end_byte();
        }
        let tail = tail.unwrap_or_else(|| {
            if self.shell == ShellKind::Zsh {
                self.note("zsh runs a program of its own for a redirection without a command");
            }
            let at = self.commands.len();
            self.push(SimpleCommand::default());
            Tail { commands: at..self.commands.len(), is_group: false }
        });
        self.give(&tail, redirections, words);
        match after {
            Some(here) => self.after_here_document(here).unwrap_or(tail),
            None => tail,
        }
    }

    /// Gives redirections, and words that stood between them, to the commands they belong to.
    fn give(&mut self, tail: &Tail, redirections: Vec<Redirection>, words: Vec<Word>) {
        if tail.is_group {
            if !words.is_empty() {
                self.note("a group in it is followed by a word");
            }
            for command in &mut self.commands[tail.commands.clone()] {
                command.redirections.splice(0..0, redirections.iter().cloned());
            }
        } else if let Some(command) = self.commands[tail.commands.clone()].last_mut() {
            command.redirections.extend(redirections);
            command.words.extend(words);
        }
    }

    /// A simple command: assignments, redirections, a name and arguments, in their order.
    fn command(&mut self, node: Node<'t>) {
        let mut draft = Draft::default();
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            let start = child.start_byte();
            let is_redirection = matches!(child.kind(), "file_redirect" | "herestring_redirect");
            if start == end && start != node.start_byte() && !is_redirection {
                self.note("two words in it are not separated");
            }
            self.check_blank(end, start);
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" => {
                    let assignment = self.assignment(child);
                    draft.command.assignments.extend(assignment);
                }
                "command_name" => {
                    draft.name = Some(child.byte_range());
                    let word = match child.child(0) {
                        Some(word) if child.child_count() == 1 => self.word(word, Place::Command),
                        _ => self.dynamic(child, "the name of a command in it is unusual"),
                    };
                    draft.command.words.push(word);
                }
                _ if is_redirection => {
                    let SimpleCommand { redirections, words, .. } = &mut draft.command;
                    self.redirect(child, redirections, words);
                }
                "==" | "=~" => draft.command.words.push(Word::literal(self.text(child))),
                "subshell" | "comment" => self.note(UNPLACED),
                _ => {
                    let word = self.word(child, Place::Command);
                    draft.command.words.push(word);
                }
            }
        }
        self.without_time(&mut draft);
        self.push(draft.command);
        self.search_later(node);
    }

    /// In bash and zsh `time` is a keyword that measures what follows.
    fn without_time(&mut self, draft: &mut Draft) {
        let Some(name) = &draft.name else { return };
        if &self.source[name.clone()] != "time" || !draft.command.assignments.is_empty() {
            return;
        }
        let is_keyword = matches!(self.shell, ShellKind::Bash | ShellKind::Zsh)
            && !matches!(self.pending, Connective::Pipe | Connective::PipeBoth)
            && self.source[name.end..].starts_with([' ', '\t']);
        let words = &mut draft.command.words;
        let options = match words.get(1).map(|word| word.text.as_str()) {
            Some("-p") if self.shell == ShellKind::Bash => 1,
            Some(text) if !text.starts_with('-') && !text.contains('=') => 0,
            _ => return,
        };
        if !is_keyword || words.len() < 2 + options {
            return;
        }
        words.drain(..1 + options);
        if matches!(words.first().map(|word| word.text.as_str()), Some("time" | "!")) {
            self.note("it measures in an unusual way");
        }
    }

    /// `[ … ]`, of which the grammar makes an expression: its leaves are the words.
    fn test_command(&mut self, node: Node<'t>) {
        let mut command = SimpleCommand::default();
        let mut leaves = Vec::new();
        if !collect_leaves(node, &mut leaves, 0) {
            let trouble = why_not_understood(node);
            self.note(&trouble);
        }
        let mut end = node.start_byte();
        for (at, leaf) in leaves.iter().enumerate() {
            if at > 0 && leaf.start_byte() == end {
                self.note("two words in it are not separated");
            }
            self.check_blank(end, leaf.start_byte());
            let word = match leaf.kind() {
                "[" | "]" | "[[" | "]]" | "!" | "=" | "==" | "!=" | "test_operator" | "-o"
                | "-a" => Word::literal(self.text(*leaf)),
                _ => self.word(*leaf, Place::Command),
            };
            command.words.push(word);
            end = leaf.end_byte();
        }
        self.push(command);
        self.search_later(node);
    }

    /// `export NAME=value`, and its relatives, which are refused by name later.
    fn declaration(&mut self, node: Node<'t>) {
        let mut command = SimpleCommand::default();
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            if child.start_byte() == end && end != node.start_byte() {
                self.note("two words in it are not separated");
            }
            self.check_blank(end, child.start_byte());
            match child.kind() {
                "variable_assignment" => match self.assignment(child) {
                    Some(made) => {
                        let raw = self.text(child);
                        if made.value.shape != Shape::Literal || raw.contains(['*', '?', '[']) {
                            self.note("export changes what is seen of its words");
                        }
                        let text = format!("{}={}", made.name, made.value.text);
                        command.words.push(Word { text, shape: made.value.shape });
                    }
                    None => command.words.push(self.raw(child)),
                },
                "variable_name" => command.words.push(Word::literal(self.text(child))),
                _ if child.is_named() => command.words.push(self.word(child, Place::Command)),
                _ => command.words.push(Word::literal(self.text(child))),
            }
            end = child.end_byte();
        }
        self.push(command);
        self.search_later(node);
    }

    fn assignments_only(&mut self, node: Node<'t>) {
        let mut command = SimpleCommand::default();
        if node.kind() == "variable_assignment" {
            command.assignments.extend(self.assignment(node));
        } else {
            let mut cursor = node.walk();
            let mut end = node.start_byte();
            for child in node.children(&mut cursor) {
                self.check_blank(end, child.start_byte());
                command.assignments.extend(self.assignment(child));
                end = child.end_byte();
            }
        }
        self.push(command);
        self.search_later(node);
    }

    fn assignment(&mut self, node: Node<'_>) -> Option<Assignment> {
        let raw = self.text(node);
        let Some((name, written)) = raw.split_once('=') else {
            self.note("it assigns in an unusual way");
            return None;
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            self.note("it assigns to a part of a variable");
        }
        let value =
            node.child_by_field_name("value").filter(|value| !value.byte_range().is_empty());
        let value = match value {
            None if written.is_empty() => Word::literal(""),
            Some(value) if self.text(value) == written => self.word(value, Place::Value),
            _ => self.dynamic(node, "it assigns in an unusual way"),
        };
        Some(Assignment { name: name.to_owned(), value })
    }

    fn push(&mut self, mut command: SimpleCommand) {
        if self.commands.len() < MAX_SEARCHED_COMMANDS {
            command.connective = self.pending;
            self.commands.push(command);
        } else {
            self.complete = false;
        }
        self.pending = Connective::Then;
    }
}

fn ends_a_line(node: Node<'_>) -> bool {
    let mut node = node;
    loop {
        if node.kind() == "heredoc_redirect" {
            return true;
        }
        let count = node.child_count();
        match count.checked_sub(1).and_then(|last| node.child(last)) {
            Some(last) => node = last,
            None => return node.kind() == "heredoc_end",
        }
    }
}

fn collect_leaves<'t>(node: Node<'t>, leaves: &mut Vec<Node<'t>>, depth: usize) -> bool {
    if depth > MAX_NESTING {
        return false;
    }
    let mut cursor = node.walk();
    let mut is_known = true;
    for child in node.children(&mut cursor) {
        match child.kind() {
            "unary_expression" | "binary_expression" => {
                is_known &= collect_leaves(child, leaves, depth + 1);
            }
            "[" | "]" | "!" | "=" | "==" | "!=" | "test_operator" | "-o" | "-a" => {
                leaves.push(child);
            }
            kind if is_word(kind) => leaves.push(child),
            "[[" | "]]" => {
                leaves.push(child);
                is_known = false;
            }
            _ => is_known = false,
        }
    }
    is_known
}

fn why_not_understood(node: Node<'_>) -> String {
    let what = match node.kind() {
        "for_statement" | "while_statement" | "c_style_for_statement" => "it uses a loop",
        "if_statement" => "it uses `if`",
        "case_statement" => "it uses `case`",
        "function_definition" => "it defines a function",
        "test_command" => "it uses `[[`, or an unusual test",
        "ERROR" => "it cannot be parsed",
        _ => "it uses something that is not understood",
    };
    what.to_owned()
}
