//! Prefix rules: what a person has decided once for all commands that begin with these words.

use crate::command::SimpleCommand;
use std::fmt;

mod propose;

pub use propose::{ProposedRule, propose};

/// All rules that apply to a session.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The words that a command must begin with.
    pub pattern: Vec<PatternWord>,
    /// What follows.
    pub decision: Decision,
    /// Whether an allowed command leaves the sandbox.
    pub sandbox: RuleSandbox,
    /// Why, in the person's words.
    pub justification: Option<String>,
    /// Where it is written.
    pub origin: Origin,
}

/// One word of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternWord {
    /// Exactly this word.
    Exact(String),
    /// One of these.
    OneOf(Vec<String>),
    /// `*`: any one word.
    Any,
}

/// What a rule decides, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It may run without a question.
    Allow,
    /// A person is asked.
    Prompt,
    /// It does not run.
    Forbid,
}

/// Whether a command that a rule allows stays in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleSandbox {
    /// It stays.
    #[default]
    Keep,
    /// It leaves it.
    Bypass,
}

/// Where a rule is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The file, as a person would name it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Rules {
    /// The rules that match a command, in the order they were written.
    pub fn matching<'a>(&'a self, _command: &'a SimpleCommand) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|_| false)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }
}

impl Extend<Rule> for Rules {
    fn extend<T: IntoIterator<Item = Rule>>(&mut self, rules: T) {
        self.rules.extend(rules);
    }
}
