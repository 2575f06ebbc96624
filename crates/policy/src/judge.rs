//! One command vector, judged: what it may run, what class each part is in, and what rules say.
//!
//! This says nothing of what follows from it: that depends on the session's policies, and is the
//! table in [`crate::requirement`].

use crate::command::SimpleCommand;
use crate::danger::{self, Danger};
use crate::rules::{
    Decision, Rule, RuleSandbox, Rules, Withheld, Writes, moves, rule_on, shown, writes_of,
};
use crate::safe::{self, NotSafe};
use crate::script::{self, Reading};
use crate::surroundings::Surroundings;
use crate::wrapper;
use sandgate_protocol::visible_line;
use std::borrow::Cow;

/// What became of judging a command vector.
///
/// Made by [`judge`].
#[derive(Debug, Clone)]
pub struct Judgement {
    /// What it may run.
    pub reading: Reading,
    /// What was found about each of the reading's commands.
    pub parts: Vec<Part>,
    /// The class of the whole.
    pub class: Class,
    /// What the rules say of the whole, if they say anything. It outweighs the class: where it
    /// allows a command of the class dangerous, a rule of the person's names that danger.
    pub ruling: Option<Ruling>,
    /// Why rules that allow some of it do not allow all of it.
    pub withheld: Option<Withheld>,
}

/// What was found about one simple command.
#[derive(Debug, Clone)]
pub struct Part {
    /// Whether it is known to be safe.
    pub safety: Result<(), NotSafe>,
    /// The rules that match it.
    pub rules: Vec<Rule>,
    /// The word that keeps rules which match from allowing it: they allow what the program does, and
    /// not what that word has it do.
    pub held_back: Option<String>,
    /// What its redirections write.
    pub writes: Writes,
    /// Whether it is safe in this repository, if it is safe elsewhere.
    pub(crate) in_repository: Result<(), NotSafe>,
}

impl Part {
    /// The rules that allow it. What stricter ones say of it is in the ruling.
    pub fn allowing(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.decision == Decision::Allow)
    }

    /// Whether a rule allows it.
    pub fn is_allowed(&self) -> bool {
        self.allowing().next().is_some()
    }
}

impl Judgement {
    /// Whether git runs in it that no rule allows and that is merely safe: that it is only while it is
    /// told to run nothing of the repository's.
    pub fn has_git_that_is_merely_safe(&self) -> bool {
        let parts = self.reading.commands.iter().zip(&self.parts);
        parts.into_iter().any(|(command, part)| !part.is_allowed() && safe::depends_on_git(command))
    }
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
///
/// ```
/// use sandgate_policy::rules::Rules;
/// use sandgate_policy::{Class, Surroundings, judge};
///
/// let around = Surroundings { cwd: Some("/work".into()), ..Surroundings::default() };
/// let class = |argv: &[&str]| {
///     let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
///     judge(&argv, &around, &Rules::default()).class
/// };
/// assert_eq!(class(&["grep", "-rn", "main", "src"]), Class::Safe);
/// assert!(matches!(class(&["make"]), Class::Unknown { .. }));
/// // Seen through the wrappers around it.
/// let Class::Dangerous(danger) = class(&["env", "sudo", "rm", "-rf", "/"]) else { panic!() };
/// assert_eq!(danger.reason, "deletes / and everything in it: the whole system");
/// ```
pub fn judge(argv: &[String], around: &Surroundings, rules: &Rules) -> Judgement {
    let reading = script::read(argv);
    let moved = moves(&reading);
    let parts: Vec<Part> = reading
        .commands
        .iter()
        .map(|command| {
            let (rules, held_back) = rules.covering(command);
            let in_repository = safe::check_repository(command, &around.git_runs);
            Part {
                safety: safe::check(command, reading.reader).and_then(|()| in_repository.clone()),
                in_repository,
                rules,
                held_back,
                writes: writes_of(command, around, moved),
            }
        })
        .collect();
    let find = |reading: &Reading| danger::find(reading, around);
    let danger = find(&reading);
    let (ruling, withheld) = rule_on(&reading, &parts, danger.as_ref(), find, rules, around);
    let class = classify(&reading, &parts, danger, around);
    Judgement { class, ruling, withheld, reading, parts }
}

/// Everything that can be made out of a reading, for those who look for what must not be: the
/// commands themselves and what the wrappers around them would run. What nobody looked at, because
/// a bound was reached, is said by a command that stands for it.
pub(crate) fn everything_seen(reading: &Reading) -> Cow<'_, [SimpleCommand]> {
    let inside = wrapper::unwrapped(reading);
    if inside.commands.is_empty() && inside.complete {
        return Cow::Borrowed(&reading.commands);
    }
    let rest = (!inside.complete).then(SimpleCommand::not_searched);
    let inside = inside.commands.into_iter().map(|(_, command)| command);
    Cow::Owned(reading.commands.iter().cloned().chain(inside).chain(rest).collect())
}

fn classify(
    reading: &Reading,
    parts: &[Part],
    danger: Option<Danger>,
    around: &Surroundings,
) -> Class {
    if let Some(danger) = danger {
        return Class::Dangerous(danger);
    }
    // It quotes what a model wrote, and a person is told it.
    let unknown = |reason: String| Class::Unknown { reason: visible_line(&reason) };
    if let Some(opacity) = &reading.opaque {
        return unknown(opacity.to_string());
    }
    if parts.is_empty() {
        return unknown("it runs nothing".to_owned());
    }
    for (command, part) in reading.commands.iter().zip(parts) {
        match &part.safety {
            Ok(()) => {}
            Err(not_safe) if parts.len() == 1 => return unknown(not_safe.to_string()),
            Err(not_safe) => return unknown(of_part(command, &not_safe.0)),
        }
    }
    match safe::together(&reading.commands, around) {
        Ok(()) => Class::Safe,
        Err(not_safe) => unknown(not_safe.to_string()),
    }
}

/// A reason with the part that it is about, unless it begins with that part's own words.
fn of_part(command: &SimpleCommand, reason: &str) -> String {
    let part = shown(command);
    let names_it = |text: &str| {
        let rest = reason.strip_prefix(text);
        rest.is_some_and(|rest| rest.starts_with(' '))
    };
    let begins_alike = command.program().is_some_and(names_it);
    match (names_it(&part), begins_alike) {
        (true, _) => reason.to_owned(),
        (false, true) => format!("{reason}: `{part}`"),
        (false, false) => format!("`{part}`: {reason}"),
    }
}
