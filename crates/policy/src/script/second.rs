//! The second reading of a script, by the shuck parser, of what the first reading understood.
//!
//! It shares nothing with the first but the names of what a word can be: the tree is another
//! parser's, and quotes are undone character by character over the whole word. Where the two do not
//! say the same, nobody knows what the shell would do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuck_ast::{
    AssignmentValue, BackgroundOperator, BinaryOp, BuiltinCommand, Command, CompoundCommand,
    DeclOperand, HeredocBodyPart, LiteralText, Redirect, RedirectKind, RedirectTarget, Stmt,
    StmtSeq, StmtTerminator, WordPart, WordPartNode,
};
use shuck_parser::parser::{ParseStatus, Parser};
use shuck_parser::{ShellDialect, ShellProfile};

use super::ShellKind;
use super::guard::{MAX_COMMANDS, MAX_NESTING};
use super::redirection::{self, Operator};
use super::word::{self, Place, Undone};
use crate::command::{Assignment, Connective, Redirection, RedirectionKind, SimpleCommand, Word};

/// How many steps the parser may take: several for each character of the longest script.
const MAX_STEPS: usize = 200_000;

/// How deep its tree may be. The first reading has refused anything deeper already.
const MAX_TREE: usize = 100;

/// Reads a script that the first reading understood.
///
/// # Errors
/// When this parser does not understand it.
pub(super) fn read(source: &str, shell: ShellKind) -> Result<Vec<SimpleCommand>, &'static str> {
    // A parser that meets a text its authors did not think of must not end the gate.
    catch_unwind(AssertUnwindSafe(|| read_here(source, shell)))
        .unwrap_or(Err("a parser failed on it"))
}

fn read_here(source: &str, shell: ShellKind) -> Result<Vec<SimpleCommand>, &'static str> {
    let dialect = match shell {
        ShellKind::Bash => ShellDialect::Bash,
        ShellKind::Zsh => ShellDialect::Zsh,
        ShellKind::Posix => ShellDialect::Posix,
        ShellKind::PowerShell | ShellKind::Cmd => return Err("it is for another kind of shell"),
    };
    let profile = ShellProfile::native(dialect);
    let parsed = Parser::with_limits_and_profile(source, MAX_TREE, MAX_STEPS, profile).parse();
    if parsed.status != ParseStatus::Clean || !parsed.diagnostics.is_empty() {
        return Err("it cannot be parsed");
    }
    let mut reader =
        Reader { source, shell, commands: Vec::new(), pending: Connective::First, depth: 0 };
    reader.sequence(&parsed.file.body)?;
    Ok(reader.commands)
}

struct Reader<'s> {
    source: &'s str,
    shell: ShellKind,
    commands: Vec<SimpleCommand>,
    pending: Connective,
    depth: usize,
}

const DIFFERS: &str = "two parsers do not read it in the same way";

impl<'s> Reader<'s> {
    fn sequence(&mut self, sequence: &StmtSeq) -> Result<(), &'static str> {
        self.depth += 1;
        if self.depth > MAX_NESTING + 2 {
            return Err("its commands are nested too deep");
        }
        for statement in sequence.iter() {
            self.statement(statement)?;
            self.pending = match statement.terminator {
                None | Some(StmtTerminator::Semicolon) => Connective::Then,
                Some(StmtTerminator::Background(BackgroundOperator::Plain)) => {
                    if let Some(last) = self.commands.last_mut() {
                        last.left_running = true;
                    }
                    Connective::Beside
                }
                Some(StmtTerminator::Background(_)) => return Err(DIFFERS),
            };
        }
        self.depth -= 1;
        Ok(())
    }

    fn statement(&mut self, statement: &Stmt) -> Result<(), &'static str> {
        let mut redirections = Vec::with_capacity(statement.redirects.len());
        for redirect in &statement.redirects {
            // The parser adds a `2>&1` that nobody wrote after `&>>`.
            if redirect.span.slice(self.source) != "&>>" {
                redirections.push(self.redirect(redirect)?);
            }
        }
        let command = match &statement.command {
            Command::Binary(binary) if redirections.is_empty() => {
                self.statement(&binary.left)?;
                self.pending = match binary.op {
                    BinaryOp::And => Connective::And,
                    BinaryOp::Or => Connective::Or,
                    BinaryOp::Pipe => Connective::Pipe,
                    BinaryOp::PipeAll => Connective::PipeBoth,
                };
                return self.statement(&binary.right);
            }
            Command::Compound(
                CompoundCommand::Subshell(inside) | CompoundCommand::BraceGroup(inside),
            ) => {
                let start = self.commands.len();
                self.sequence(inside)?;
                self.pending = Connective::Then;
                for command in &mut self.commands[start..] {
                    command.redirections.splice(0..0, redirections.iter().cloned());
                }
                return Ok(());
            }
            Command::Compound(CompoundCommand::Time(time)) if redirections.is_empty() => {
                let measured = time.command.as_ref().ok_or(DIFFERS)?;
                return match self.shell {
                    ShellKind::Bash | ShellKind::Zsh => self.statement(measured),
                    _ => Err(DIFFERS),
                };
            }
            Command::Simple(simple) => {
                let mut command = self.assigning(&simple.assignments)?;
                if !simple.name.span.slice(self.source).is_empty() {
                    command.words.push(self.word(&simple.name)?);
                } else if !simple.args.is_empty() {
                    return Err(DIFFERS);
                }
                for argument in &simple.args {
                    command.words.push(self.word(argument)?);
                }
                command
            }
            Command::Builtin(builtin) => self.builtin(builtin)?,
            Command::Decl(declaration) => {
                let mut command = self.assigning(&declaration.assignments)?;
                command.words.push(Word::literal(declaration.variant.as_str()));
                for operand in &declaration.operands {
                    command.words.push(self.operand(operand)?);
                }
                command
            }
            _ => return Err(DIFFERS),
        };
        if self.commands.len() >= MAX_COMMANDS {
            return Err(DIFFERS);
        }
        let connective = std::mem::replace(&mut self.pending, Connective::Then);
        self.commands.push(SimpleCommand { connective, redirections, ..command });
        Ok(())
    }

    fn assigning(
        &self,
        assignments: &[shuck_ast::Assignment],
    ) -> Result<SimpleCommand, &'static str> {
        let assignments =
            assignments.iter().map(|one| self.assignment(one)).collect::<Result<_, _>>()?;
        Ok(SimpleCommand { assignments, ..SimpleCommand::default() })
    }

    fn assignment(&self, assignment: &shuck_ast::Assignment) -> Result<Assignment, &'static str> {
        let AssignmentValue::Scalar(value) = &assignment.value else { return Err(DIFFERS) };
        if assignment.append || assignment.target.subscript.is_some() {
            return Err(DIFFERS);
        }
        self.check_parts(&value.parts)?;
        let value = self.undo(value.span.slice(self.source), Place::Value)?;
        Ok(Assignment { name: assignment.target.name.as_str().to_owned(), value })
    }

    /// The builtins that the parser knows by name.
    fn builtin(&self, builtin: &BuiltinCommand) -> Result<SimpleCommand, &'static str> {
        let (name, first, rest, assignments) = match builtin {
            BuiltinCommand::Break(one) => ("break", &one.depth, &one.extra_args, &one.assignments),
            BuiltinCommand::Continue(one) => {
                ("continue", &one.depth, &one.extra_args, &one.assignments)
            }
            BuiltinCommand::Return(one) => ("return", &one.code, &one.extra_args, &one.assignments),
            BuiltinCommand::Exit(one) => ("exit", &one.code, &one.extra_args, &one.assignments),
        };
        let mut command = self.assigning(assignments)?;
        command.words.push(Word::literal(name));
        for word in first.iter().chain(rest) {
            command.words.push(self.word(word)?);
        }
        Ok(command)
    }

    /// An operand of `export`: only names and whole assignments are understood.
    fn operand(&self, operand: &DeclOperand) -> Result<Word, &'static str> {
        match operand {
            DeclOperand::Name(name) if name.subscript.is_none() => {
                Ok(Word::literal(name.name.as_str()))
            }
            DeclOperand::Assignment(assignment) => {
                let Assignment { name, value } = self.assignment(assignment)?;
                let text = format!("{name}={}", value.text);
                Ok(Word { text, shape: value.shape })
            }
            _ => Err(DIFFERS),
        }
    }

    fn redirect(&self, redirect: &Redirect) -> Result<Redirection, &'static str> {
        if redirect.fd_var.is_some() {
            return Err(DIFFERS);
        }
        // The parser fills in a descriptor that was not written.
        let written = redirect.span.slice(self.source);
        let is_written = written.starts_with(|first: char| first.is_ascii_digit());
        let descriptor = match redirect.fd.filter(|_| is_written) {
            None => None,
            Some(descriptor @ 0..=9) => u32::try_from(descriptor).ok(),
            Some(_) => return Err(DIFFERS),
        };
        let word = match &redirect.target {
            RedirectTarget::Heredoc(here) => {
                if descriptor.is_some() {
                    return Err(DIFFERS);
                }
                let target = Word::literal(self.here_document(here)?);
                return Ok(Redirection { descriptor, kind: RedirectionKind::HereDocument, target });
            }
            RedirectTarget::Word(word) => word,
        };
        let operator = match redirect.kind {
            RedirectKind::Output => Operator::Write,
            RedirectKind::Clobber => Operator::Clobber,
            RedirectKind::Append if written.starts_with('&') => Operator::AppendBoth,
            RedirectKind::Append => Operator::Append,
            RedirectKind::Input => Operator::Read,
            RedirectKind::ReadWrite => Operator::ReadWrite,
            RedirectKind::DupOutput => Operator::DuplicateWritten,
            RedirectKind::DupInput => Operator::DuplicateRead,
            RedirectKind::OutputBoth => Operator::WriteBoth,
            RedirectKind::HereString => Operator::HereString,
            RedirectKind::HereDoc | RedirectKind::HereDocStrip => return Err(DIFFERS),
        };
        let target = match word.parts.as_slice() {
            // Of `2>&1` the parser keeps the last digit without its place.
            [WordPartNode { kind: WordPart::Literal(LiteralText::Owned(text)), .. }]
                if written.len() == 4 && written.ends_with(&**text) =>
            {
                Word::literal(&**text)
            }
            _ => self.word(word)?,
        };
        redirection::redirection(self.shell, descriptor, operator, target)
            .map_err(|wrong| wrong.why)
    }

    fn here_document(&self, here: &shuck_ast::Heredoc) -> Result<String, &'static str> {
        let mut text = String::new();
        for (part, span) in here.body.parts_with_spans() {
            match part {
                HeredocBodyPart::Literal(literal) => {
                    text.push_str(literal.as_str(self.source, span));
                }
                _ => return Err(DIFFERS),
            }
        }
        if here.delimiter.expands_body && text.contains(['$', '`', '\\']) {
            return Err(DIFFERS);
        }
        Ok(text)
    }

    fn word(&self, word: &shuck_ast::Word) -> Result<Word, &'static str> {
        if word.has_active_brace_expansion() {
            return Err(DIFFERS);
        }
        self.check_parts(&word.parts)?;
        self.undo(word.span.slice(self.source), Place::Command)
    }

    /// Whether the parser saw nothing in a word but text and quotes.
    fn check_parts(&self, parts: &[WordPartNode]) -> Result<(), &'static str> {
        for part in parts {
            match &part.kind {
                WordPart::Literal(_) | WordPart::SingleQuoted { dollar: false, .. } => {}
                // A pattern; one with parentheses is refused by its letters.
                WordPart::ZshQualifiedGlob(_) => {}
                WordPart::DoubleQuoted { parts, dollar: false } => self.check_parts(parts)?,
                _ => return Err(DIFFERS),
            }
        }
        Ok(())
    }

    /// Undoes quoting, character by character.
    fn undo(&self, written: &str, place: Place) -> Result<Word, &'static str> {
        let mut undone = Undone::default();
        let mut rest = written.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '\\' => match rest.next() {
                    Some('\n') => {}
                    Some(character) => undone.push_quoted(character),
                    None => return Err(DIFFERS),
                },
                '\'' => {
                    undone.bare.push(word::QUOTED);
                    loop {
                        match rest.next() {
                            Some('\'') => break,
                            Some(character) => undone.push_quoted(character),
                            None => return Err(DIFFERS),
                        }
                    }
                }
                '"' => {
                    undone.bare.push(word::QUOTED);
                    undo_double(&mut rest, &mut undone)?;
                }
                '$' | '`' => return Err(DIFFERS),
                character => undone.push_bare(character),
            }
        }
        word::finish(undone, self.shell, place)
    }
}

/// The inside of double quotes, up to and with the closing one.
fn undo_double(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    undone: &mut Undone,
) -> Result<(), &'static str> {
    loop {
        match rest.next() {
            Some('"') => return Ok(()),
            Some('`') | None => return Err(DIFFERS),
            Some('$') => match rest.peek().copied() {
                Some('"') => undone.push_quoted('$'),
                next if next.is_some() && word::dollar_is_itself(next) => undone.push_quoted('$'),
                _ => return Err(DIFFERS),
            },
            Some('\\') => match rest.peek().copied() {
                Some('\n') => drop(rest.next()),
                Some(next @ ('$' | '`' | '"' | '\\')) => {
                    undone.push_quoted(next);
                    rest.next();
                }
                _ => undone.push_quoted('\\'),
            },
            Some(character) => undone.push_quoted(character),
        }
    }
}
