//! A rule that would have spared the person a question, offered together with the question.
//!
//! It is offered only if it helps: if with it the same command would be allowed. And only if it is
//! narrow enough that a person sees what they say yes to.

use super::after::uncovered;
use super::append::pattern_of;
use super::breadth;
use super::inert::is_inert;
use super::matching::in_system;
use super::ruling::is_safe_but_for_writes;
use super::{Decision, Origin, Rule, RuleSandbox, Writes};
use crate::command::SimpleCommand;
use crate::judge::{Class, Judgement};

/// A rule to allow all commands that begin with some words. Made by [`propose`] only, so that none
/// is too broad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedRule {
    prefix: Vec<String>,
    sandbox: RuleSandbox,
    justification: Option<String>,
    /// Whether it may be a rule for commands without the sandbox, and would help there.
    may_leave: bool,
}

impl ProposedRule {
    /// The words.
    pub fn prefix(&self) -> &[String] {
        &self.prefix
    }

    /// Whether the commands leave the sandbox. They stay unless
    /// [`leaving_the_sandbox`](Self::leaving_the_sandbox) was called.
    pub fn sandbox(&self) -> RuleSandbox {
        self.sandbox
    }

    /// Why, if a reason was given.
    pub fn justification(&self) -> Option<&str> {
        self.justification.as_deref()
    }

    /// The same rule with a reason, for whoever reads the file later.
    #[must_use]
    pub fn with_justification(mut self, justification: impl Into<String>) -> Self {
        self.justification = Some(justification.into());
        self
    }

    /// The same rule for commands that leave the sandbox: for an approval that says so. None for all
    /// but a few programs, because whoever can write what a program obeys would decide what runs out
    /// there.
    pub fn leaving_the_sandbox(mut self) -> Option<Self> {
        self.sandbox = RuleSandbox::Bypass;
        self.may_leave.then_some(self)
    }

    /// The rule as it is once it has been written.
    pub fn as_rule(&self, origin: Origin) -> Rule {
        Rule {
            pattern: pattern_of(self),
            decision: Decision::Allow,
            sandbox: self.sandbox,
            justification: self.justification.clone(),
            origin,
        }
    }
}

/// The rule to offer with a question about a command: what the call suggests, if that is a prefix of
/// the part in question and narrow enough; otherwise the shortest prefix that is.
///
/// None for what was not understood or is dangerous, where a rule asks or forbids already, where a
/// file is written that no rule covers, and where several parts would need rules of their own.
///
/// ```
/// use sandgate_policy::rules::{Rules, append, propose};
/// use sandgate_policy::{Surroundings, judge};
///
/// let argv = ["cargo", "test", "--workspace"].map(str::to_owned);
/// let judgement = judge(&argv, &Surroundings::default(), &Rules::default());
/// let rule = propose(&judgement, None).expect("it could be allowed for good");
/// assert_eq!(rule.prefix(), ["cargo", "test"]);
/// // What a person's file looks like after a yes that is to last.
/// let file = append("", "default.toml", &rule)?;
/// assert!(file.contains(r#"prefix = ["cargo", "test"]"#), "{file}");
/// # Ok::<(), sandgate_policy::rules::RulesError>(())
/// ```
pub fn propose(judgement: &Judgement, suggested: Option<&[String]>) -> Option<ProposedRule> {
    let asked_by_rule =
        judgement.ruling.as_ref().is_some_and(|ruling| ruling.decision != Decision::Allow);
    let dangerous = matches!(judgement.class, Class::Dangerous(_));
    let elsewhere =
        judgement.parts.iter().any(|part| matches!(part.writes, Writes::Elsewhere { .. }));
    if judgement.reading.opaque.is_some() || dangerous || asked_by_rule || elsewhere {
        return None;
    }
    let mut in_question = in_question(judgement);
    let first = in_question.next()?;
    let prefix = prefix_for(first, suggested)?;
    // A script that runs `cargo test` twice needs one rule; one that also pushes needs two, and
    // those are two questions.
    let words: Vec<&str> = prefix.iter().map(String::as_str).collect();
    let may_leave = breadth::may_leave(&words);
    let sandbox = RuleSandbox::Keep;
    let mut rule = ProposedRule { prefix, sandbox, justification: None, may_leave };
    let kept = rule.as_rule(Origin::default());
    let out = Rule { sandbox: RuleSandbox::Bypass, ..kept.clone() };
    let covers = |rule: &Rule, command| rule.matches(command) && uncovered(rule, command).is_none();
    for command in std::iter::once(first).chain(in_question) {
        if !covers(&kept, command) {
            return None;
        }
        rule.may_leave &= covers(&out, command);
    }
    Some(rule)
}

/// The parts that are the reason for asking: those that are neither safe nor allowed. When there are
/// none, the question is whether to leave the sandbox, and it is about all that are not safe.
fn in_question(judgement: &Judgement) -> impl Iterator<Item = &SimpleCommand> {
    let reader = judgement.reading.reader;
    let parts = move || {
        let all = judgement.reading.commands.iter().zip(&judgement.parts);
        all.filter(move |(command, part)| !is_safe_but_for_writes(command, part, reader))
    };
    let unruled = parts().any(|(_, part)| !part.is_allowed());
    parts().filter(move |(_, part)| !(unruled && part.is_allowed())).map(|(command, _)| command)
}

fn prefix_for(command: &SimpleCommand, suggested: Option<&[String]>) -> Option<Vec<String>> {
    if !command.assignments.iter().all(is_inert) {
        return None;
    }
    // Known to the letter from the start up to the first word that is not.
    let mut words: Vec<&str> = command.words.iter().map_while(|word| word.as_literal()).collect();
    if let Some(name) = words.first().copied().and_then(in_system) {
        words[0] = name;
    }
    words.truncate(super::MAX_PREFIX_WORDS);
    let least = breadth::least(&words)?;
    let length = suggested
        .filter(|suggested| is_prefix(suggested, &words) && suggested.len() >= least)
        .filter(|suggested| is_short(&words[..suggested.len()]))
        .map_or(least, <[String]>::len);
    let prefix = &words[..length];
    is_short(prefix).then(|| prefix.iter().map(|word| (*word).to_owned()).collect())
}

/// The longest rule that is proposed, in characters. It is named among the answers, and what takes longer to read there
/// pushes the command away that it is about.
const LONGEST: usize = 200;

fn is_short(prefix: &[&str]) -> bool {
    prefix.iter().map(|word| word.chars().count() + 1).sum::<usize>() <= LONGEST
}

fn is_prefix(suggested: &[String], words: &[&str]) -> bool {
    suggested.len() <= words.len()
        && suggested.iter().zip(words).enumerate().all(|(place, (ours, word))| {
            ours == word || place == 0 && in_system(ours) == Some(*word)
        })
}
