//! What is wrong in a rules file, where, and what to do about it.

use super::parse::{MAX_PREFIX_WORDS, MAX_RULES, MAX_RULES_BYTES};
use sandgate_protocol::{is_invisible, is_odd_blank, visible_line};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// The most characters of a line that are shown.
const MAX_SHOWN: usize = 120;

/// A rules file that is not used, because of one thing in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct RulesError {
    /// The file, as a person would name it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: Problem,
    /// The part of the line that is shown, made harmless for a terminal.
    shown: String,
    /// Which characters of it are meant.
    marked: Range<usize>,
}

/// What can be wrong in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// It is larger than a person would write.
    #[error("the file has {bytes} bytes, and at most {MAX_RULES_BYTES} are read")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// It holds more rules than a person would write.
    #[error("the file has more than {MAX_RULES} rules")]
    TooManyRules,
    /// A key that means nothing here.
    #[error("there is no key called {key:?} {place}")]
    UnknownKey {
        /// As it was written.
        key: String,
        /// Where it stands, in a person's words.
        place: &'static str,
    },
    /// A table that means nothing here.
    #[error("there is no table called [[{name}]]")]
    UnknownTable {
        /// As it was written.
        name: String,
    },
    /// `rule` is something else than a list of tables.
    #[error("a rule begins with [[rule]] on a line of its own")]
    NotTables,
    /// A rule without a key that it needs.
    #[error("this rule has no {key}")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value of the wrong kind.
    #[error("{key} must be {wanted}")]
    WrongKind {
        /// The key.
        key: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// A prefix without words.
    #[error("an empty prefix would match every command")]
    EmptyPrefix,
    /// What is allowed names no program.
    #[error("a rule that allows must name the program, and `*` is any")]
    AnyProgramAllowed,
    /// A prefix with too many words.
    #[error("a prefix has at most {MAX_PREFIX_WORDS} words")]
    LongPrefix,
    /// An empty list of alternatives.
    #[error("a list of alternatives without one matches nothing")]
    NoAlternatives,
    /// An empty name of a program.
    #[error("no program has an empty name")]
    EmptyProgram,
    /// A star inside a word.
    #[error("a star stands for one whole word, and not for a part of one")]
    StarInWord {
        /// The word.
        word: String,
    },
    /// Several words in one.
    #[error("{word:?} is more than one word")]
    SpaceInWord {
        /// The word.
        word: String,
    },
    /// A decision that there is not.
    #[error("there is no decision called {found:?}")]
    UnknownDecision {
        /// As it was written.
        found: String,
    },
    /// A sandbox that there is not.
    #[error("sandbox cannot be {found:?}")]
    UnknownSandbox {
        /// As it was written.
        found: String,
    },
    /// `sandbox` in a rule that allows nothing.
    #[error("sandbox says how an allowed command runs, and this rule allows none")]
    SandboxWithoutAllow,
    /// A project's rule that leaves the sandbox.
    #[error("a project's rule cannot let commands out of the sandbox")]
    BypassOfProject,
    /// An example that the rule must match and does not.
    #[error("the rule does not match its own example{}", because(.reason))]
    ExampleNotMatched {
        /// Why, if it is not plain from the words.
        reason: Option<String>,
    },
    /// An example that the rule must not match and does.
    #[error("the rule matches the example that it must not match")]
    ExampleMatched,
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(", because {reason}")).unwrap_or_default()
}

impl Problem {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Syntax(what) => syntax_advice(what),
            Self::TooLarge { .. } | Self::TooManyRules => {
                "split it into several files, or use alternatives and stars to say more with fewer \
                 rules"
            }
            Self::UnknownKey { place, .. } if *place == TOP_LEVEL => "write [[rule]] before it",
            Self::UnknownKey { .. } => {
                "a rule has prefix, decision, sandbox, justification, match and not_match"
            }
            Self::UnknownTable { .. } => "every rule begins with [[rule]], whatever it is about",
            Self::NotTables => "write [[rule]] with two brackets, and its keys on the lines below",
            Self::Missing { key: "prefix" } => r#"add the words, like prefix = ["git", "pull"]"#,
            Self::Missing { .. } => r#"add decision = "allow", "prompt" or "forbid""#,
            Self::WrongKind { key: "prefix", .. } => {
                r#"write each word on its own, like prefix = ["git", ["pull", "fetch"], "*"]"#
            }
            Self::WrongKind { key: "match" | "not_match", .. } => {
                r#"write a list of scripts or of lists of words, like ["git pull", ["git", "pull"]]"#
            }
            Self::WrongKind { .. } => "write it as text in quotes",
            Self::EmptyPrefix | Self::EmptyProgram | Self::AnyProgramAllowed => {
                "name at least the program that the rule is about"
            }
            Self::LongPrefix => "shorten it: the words after a prefix can be anything",
            Self::NoAlternatives => r#"name them, or write "*" for any one word"#,
            Self::StarInWord { .. } => {
                r#"write "*" alone for any one word, or the word in a list, like ["*.c"], to mean it as it is"#
            }
            Self::SpaceInWord { .. } => {
                r#"write each word on its own, like "git", "pull", or the word in a list, like ["a b"], to mean it as it is"#
            }
            Self::UnknownDecision { .. } => r#"write "allow", "prompt" or "forbid""#,
            Self::UnknownSandbox { .. } => r#"write "keep" or "bypass""#,
            Self::SandboxWithoutAllow => "leave sandbox out",
            Self::BypassOfProject => {
                "leave sandbox out, or write the rule into your own rules directory"
            }
            Self::ExampleNotMatched { .. } | Self::ExampleMatched => {
                "correct the prefix or the example"
            }
        }
    }
}

/// What to do about something that is not TOML, by what the parser says of it.
fn syntax_advice(what: &str) -> &'static str {
    const KNOWN: &[(&str, &str)] = &[
        ("unclosed array table", "close it with two brackets, like [[rule]]"),
        ("unclosed table", "close it with two brackets, like [[rule]]"),
        ("unclosed array", "close the list with ], and each word with a quote"),
        (
            "missing comma between array elements",
            "put a comma between the words, or close the list with ] at the end of its line",
        ),
        ("string", "write text in quotes, with one at its beginning and one at its end"),
        ("duplicate key", "leave one of the two out"),
    ];
    let known = KNOWN.iter().find(|(says, _)| what.contains(says));
    known.map_or("correct the line", |(_, advice)| advice)
}

/// How [`Problem::UnknownKey`] names the place outside all rules.
pub(super) const TOP_LEVEL: &str = "outside of a rule";
/// How it names the place inside one.
pub(super) const IN_RULE: &str = "in a rule";

impl RulesError {
    /// A problem at some bytes of a text.
    pub(super) fn new(file: &str, text: &str, place: Range<usize>, problem: Problem) -> Self {
        let start = border(text, place.start);
        let end = border(text, place.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[..line_start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        let before = text[line_start..start].chars().count();
        let meant = text[start..end.min(line_end)].trim_end().chars().count().max(1);

        // Of a long line, what is around the place.
        let from = if before + meant <= MAX_SHOWN { 0 } else { before.saturating_sub(20) };
        let content = text[line_start..line_end].trim_end_matches('\r');
        let shown = content.chars().skip(from).take(MAX_SHOWN).map(harmless).collect();
        let marked = before - from..(before - from + meant).min(MAX_SHOWN);
        Self { file: file.to_owned(), line, column: before + 1, problem, shown, marked }
    }
}

/// The last border of a character that is not past a byte.
fn border(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte.min(text.len()))
}

/// One column wide, and nothing that a terminal obeys, that changes how the line reads or that is not what it
/// looks like.
fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() || is_invisible(other) || is_odd_blank(other) => '\u{fffd}',
        other => other,
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = String::new();
        write!(number, "{}", self.line)?;
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.marked.start);
        let carets = "^".repeat(self.marked.len().max(1));
        let file = visible_line(&self.file);
        let problem = visible_line(&self.problem.to_string());
        writeln!(f, "{file}:{}:{}: {problem}", self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.shown)?;
        writeln!(f, "{gutter} | {indent}{carets}")?;
        write!(f, "{gutter} = {}; until then no rule of this file is used", self.problem.advice())
    }
}
