//! One command vector, judged: what it may run, what class each part is in, and what rules say.
//!
//! This says nothing of what follows from it: that depends on the session's policies, and is the
//! table in [`crate::requirement`].

use crate::danger::{self, Danger};
use crate::rules::{Decision, Rule, RuleSandbox, Rules};
use crate::safe::{self, NotSafe};
use crate::script::{self, Reading};
use crate::surroundings::Surroundings;

/// What became of judging a command vector.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What it may run.
    pub reading: Reading,
    /// What was found about each of the reading's commands.
    pub parts: Vec<Part>,
    /// The class of the whole.
    pub class: Class,
    /// What the rules say of the whole, if they say anything.
    pub ruling: Option<Ruling>,
}

/// What was found about one simple command.
#[derive(Debug, Clone)]
pub struct Part {
    /// Whether it is known to be safe.
    pub safety: Result<(), NotSafe>,
    /// The rules that match it.
    pub rules: Vec<Rule>,
}

/// How far a command can be trusted, by what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// It writes nothing, runs nothing else and reaches no network.
    Safe,
    /// Nothing is known for or against it.
    Unknown {
        /// Why it is not known to be safe.
        reason: String,
    },
    /// It can do lasting harm.
    Dangerous(Danger),
}

/// What the rules say of a whole command vector: the strictest decision, or that each part is
/// allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What is decided.
    pub decision: Decision,
    /// Whether it leaves the sandbox; only if every part's rule says so.
    pub sandbox: RuleSandbox,
    /// The rules behind it.
    pub rules: Vec<Rule>,
}

/// Judges a command vector.
pub fn judge(argv: &[String], around: &Surroundings, rules: &Rules) -> Judgement {
    let reading = script::read(argv);
    let parts: Vec<Part> = reading
        .commands
        .iter()
        .map(|command| Part {
            safety: safe::check(command, reading.reader),
            rules: rules.matching(command).cloned().collect(),
        })
        .collect();
    let class = classify(&reading, &parts, around);
    Judgement { class, ruling: None, reading, parts }
}

fn classify(reading: &Reading, parts: &[Part], around: &Surroundings) -> Class {
    if let Some(danger) = danger::find(reading, around) {
        return Class::Dangerous(danger);
    }
    if let Some(opacity) = &reading.opaque {
        return Class::Unknown { reason: opacity.to_string() };
    }
    match parts.iter().find_map(|part| part.safety.as_ref().err()) {
        Some(not_safe) => Class::Unknown { reason: not_safe.to_string() },
        None if parts.is_empty() => Class::Unknown { reason: "it runs nothing".to_owned() },
        None => Class::Safe,
    }
}
