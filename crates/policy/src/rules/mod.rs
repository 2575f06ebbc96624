//! Prefix rules: what a person has decided once for all commands that begin with these words.
//!
//! [`Rules::parse`] reads a file's text, [`Rules::matching`] finds what is said of one command, and
//! `ruling` what follows for a whole script. [`propose`] thinks of a rule that would have spared the
//! person a question, and [`append`] adds it to a file's text. Files themselves are read and written
//! by `runtime`.

mod after;
mod append;
mod breadth;
mod error;
mod examples;
mod inert;
mod leading;
mod matching;
mod parse;
mod propose;
mod ruling;
mod writes;

pub use append::append;
pub use error::{Problem, RulesError};
pub use parse::{MAX_PREFIX_WORDS, MAX_RULES, MAX_RULES_BYTES};
pub use propose::{ProposedRule, propose};
pub use ruling::Withheld;
pub use writes::Writes;

pub(crate) use ruling::{rule_on, shown};
pub(crate) use writes::{moves, writes_of};

use crate::command::SimpleCommand;
use matching::Index;
use std::fmt;

/// All rules that apply to a session.
///
/// ```
/// use sandgate_policy::rules::{Decision, Rules};
/// use sandgate_policy::{Surroundings, judge};
///
/// let text = r#"
///     [[rule]]
///     prefix = ["cargo", ["test", "build"]]
///     decision = "allow"
///
///     [[rule]]
///     prefix = ["git", "push", "--force"]
///     decision = "forbid"
///     justification = "history is shared"
/// "#;
/// let mut rules = Rules::default();
/// rules.extend(Rules::parse(text, "my.toml")?);
///
/// let ruling = |script: &str| {
///     let argv = ["bash", "-c", script].map(str::to_owned);
///     let around = Surroundings { cwd: Some("/work".into()), ..Surroundings::default() };
///     judge(&argv, &around, &rules).ruling.map(|ruling| ruling.decision)
/// };
/// assert_eq!(ruling("cargo test --workspace"), Some(Decision::Allow));
/// // A rule that forbids is found in every part of a script; one that allows must hold for each.
/// assert_eq!(ruling("cargo test && git push --force"), Some(Decision::Forbid));
/// assert_eq!(ruling("cargo test && make install"), None);
/// # Ok::<(), sandgate_policy::rules::RulesError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    index: Index,
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

/// Where a rule is written, and whose word it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The file, as a person would name it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Who wrote it.
    pub author: Author,
}

/// Who wrote a rule, as far as that matters for what it can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Author {
    /// The person, in their own settings.
    #[default]
    Person,
    /// A project that the person trusts: it lets nothing out of the sandbox and outweighs no
    /// danger.
    Project,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Prompt => "prompt",
            Self::Forbid => "forbid",
        })
    }
}

impl fmt::Display for RuleSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "keep",
            Self::Bypass => "bypass",
        })
    }
}

/// The prefix as it stands in a file: `["git", ["pull", "fetch"], "*"]`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&append::prefix_as_toml(&self.pattern))
    }
}

impl Rules {
    /// Reads the text of a file that a person keeps among their own settings.
    ///
    /// # Errors
    /// With the first thing that is wrong in it. No rule of such a file is used.
    pub fn parse(text: &str, file_label: &str) -> Result<Vec<Rule>, RulesError> {
        parse::parse(text, file_label, Author::Person)
    }

    /// Reads the text of a file that belongs to a project.
    ///
    /// # Errors
    /// With the first thing that is wrong in it, also if a rule leaves the sandbox, which only a
    /// person's own can. No rule of such a file is used.
    pub fn parse_of_project(text: &str, file_label: &str) -> Result<Vec<Rule>, RulesError> {
        parse::parse(text, file_label, Author::Project)
    }

    /// The rules that match a command, in the order they were written.
    pub fn matching<'a>(&'a self, command: &'a SimpleCommand) -> impl Iterator<Item = &'a Rule> {
        self.index
            .candidates(command)
            .filter_map(|place| self.rules.get(place))
            .filter(|rule| rule.matches(command))
    }

    /// The rules that match a command, without those that allow its beginning only, and the word that
    /// keeps them from allowing the rest.
    pub(crate) fn covering(&self, command: &SimpleCommand) -> (Vec<Rule>, Option<String>) {
        let mut rest = None;
        let covers = |rule: &&Rule| {
            let word = after::uncovered(rule, command);
            if rest.is_none() {
                rest = word.map(|word| word.text.clone());
            }
            word.is_none()
        };
        let rules = self.matching(command).filter(covers).cloned().collect();
        (rules, rest)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Whether what a program does is decided by files of the working directory, or wherever its words
/// say: a rule that lets it out of the sandbox lets out whatever somebody writes there.
pub fn obeys_files(program: &str) -> bool {
    breadth::obeys_files(program)
}

pub(crate) use breadth::obeys_recipes;

impl Extend<Rule> for Rules {
    fn extend<T: IntoIterator<Item = Rule>>(&mut self, rules: T) {
        for rule in rules {
            self.index.add(self.rules.len(), &rule);
            self.rules.push(rule);
        }
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> Self {
        let mut all = Self::default();
        all.extend(rules);
        all
    }
}
