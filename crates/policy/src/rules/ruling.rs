//! What the rules say of a whole command vector.
//!
//! The strictest decision wins. To ask or to forbid, one rule that matches anything in sight is
//! enough. To allow, everything has to be accounted for: the script was understood, each part is
//! allowed or safe, each write is known, and no danger is left that no rule was written for.

use super::{Author, Decision, PatternWord, Rule, RuleSandbox, Rules, Writes};
use crate::command::SimpleCommand;
use crate::danger::Danger;
use crate::judge::{Part, Ruling, everything_seen};
use crate::safe::{self, NotSafe};
use crate::script::{Opacity, Reader, Reading, ShellKind};
use crate::surroundings::Surroundings;

/// Why rules that allow some of a command do not allow all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// It was not understood.
    #[error("rules allow only what was understood to the last letter, and {0}")]
    Opaque(Opacity),
    /// One part is neither allowed nor safe.
    #[error("no rule allows `{shown}`, and it is not known to be safe: {reason}")]
    Part {
        /// Which of the reading's commands.
        command: usize,
        /// The part, for a person to read.
        shown: String,
        /// Why it is not safe.
        reason: NotSafe,
    },
    /// A word after a rule's prefix has the program do what the rule was not written for.
    #[error(
        "a rule allows how `{shown}` begins, and not {word}, by which it could run another program"
    )]
    Word {
        /// Which of the reading's commands.
        command: usize,
        /// The part, for a person to read.
        shown: String,
        /// The word.
        word: String,
    },
    /// A redirection writes where rules do not reach.
    #[error("no rule covers what `{shown}` redirects: {target}")]
    Writes {
        /// Which of the reading's commands.
        command: usize,
        /// The part, for a person to read.
        shown: String,
        /// The target, as it is written.
        target: String,
    },
    /// One part changes what the parts after it mean.
    #[error("`{shown}` changes what the commands after it do")]
    ChangesTheShell {
        /// Which of the reading's commands.
        command: usize,
        /// The part, for a person to read.
        shown: String,
    },
    /// The parts that are only safe are not safe together.
    #[error(transparent)]
    Together(NotSafe),
    /// A danger that no rule was written for.
    #[error("no rule spells out what is dangerous about it: it {0}")]
    Danger(Danger),
}

/// What the rules say, and why they do not allow what they partly allow. `danger` is the first that
/// was found in the reading, and `find` finds the first in another.
pub(crate) fn rule_on(
    reading: &Reading,
    parts: &[Part],
    danger: Option<&Danger>,
    find: impl Fn(&Reading) -> Option<Danger>,
    rules: &Rules,
    around: &Surroundings,
) -> (Option<Ruling>, Option<Withheld>) {
    if rules.is_empty() {
        return (None, None);
    }
    if let Some(ruling) = strictest(reading, rules) {
        return (Some(ruling), None);
    }
    if !parts.iter().any(Part::is_allowed) {
        let mut each = reading.commands.iter().zip(parts).enumerate();
        let unsafe_word = |(place, (command, part)): (usize, (&SimpleCommand, &Part))| {
            let held_back = held_back(place, command, part)?;
            (!is_safe_but_for_writes(command, part, reading.reader)).then_some(held_back)
        };
        return (None, each.find_map(unsafe_word));
    }
    match allow(reading, parts, danger, find, around) {
        Ok(ruling) => (Some(ruling), None),
        Err(withheld) => (None, Some(withheld)),
    }
}

/// What is asked about or forbidden, wherever in the reading it is seen.
fn strictest(reading: &Reading, rules: &Rules) -> Option<Ruling> {
    if rules.is_empty() {
        return None;
    }
    let seen = everything_seen(reading);
    let mut strict: Vec<&Rule> = Vec::new();
    for rule in seen.iter().flat_map(|command| rules.matching(command)) {
        let known = strict.iter().any(|other| std::ptr::eq(*other, rule));
        if rule.decision != Decision::Allow && !known {
            strict.push(rule);
        }
    }
    // What nobody looked at may hold what any of them speaks of, and what is made while it runs may
    // turn out to be that.
    if strict.is_empty() {
        let unseen = seen.iter().any(SimpleCommand::is_not_searched);
        let could = |rule: &&Rule| {
            rule.decision != Decision::Allow
                && (unseen || seen.iter().any(|command| rule.could_match(command)))
        };
        let rules: Vec<Rule> = rules.iter().filter(could).cloned().collect();
        let sandbox = RuleSandbox::Keep;
        return (!rules.is_empty()).then_some(Ruling {
            decision: Decision::Prompt,
            sandbox,
            rules,
        });
    }
    let decision = strict.iter().map(|rule| rule.decision).max()?;
    let behind = strict.into_iter().filter(|rule| rule.decision == decision).cloned();
    Some(Ruling { decision, sandbox: RuleSandbox::Keep, rules: behind.collect() })
}

fn allow(
    reading: &Reading,
    parts: &[Part],
    danger: Option<&Danger>,
    find: impl Fn(&Reading) -> Option<Danger>,
    around: &Surroundings,
) -> Result<Ruling, Withheld> {
    if let Some(opacity) = &reading.opaque {
        return Err(Withheld::Opaque(opacity.clone()));
    }
    if reading.reader == Reader::Shell(ShellKind::Cmd) {
        let why = "cmd looks for programs in the working directory first";
        return Err(Withheld::Opaque(Opacity(why.to_owned())));
    }
    let last = parts.len().saturating_sub(1);
    let mut only_safe = Vec::new();
    for (place, (command, part)) in reading.commands.iter().zip(parts).enumerate() {
        let shown = || shown(command);
        if let Writes::Elsewhere { target } = &part.writes {
            let target = target.clone();
            return Err(Withheld::Writes { command: place, shown: shown(), target });
        }
        if !part.is_allowed() {
            if let Err(reason) = safety_but_for_writes(command, part, reading.reader) {
                if let Some(withheld) = held_back(place, command, part) {
                    return Err(withheld);
                }
                return Err(Withheld::Part { command: place, shown: shown(), reason });
            }
            only_safe.push(command.clone());
        } else if place < last && changes_the_shell(command, reading.reader) {
            return Err(Withheld::ChangesTheShell { command: place, shown: shown() });
        }
    }
    safe::together(&only_safe, around).map_err(Withheld::Together)?;
    if let Some(danger) = danger.and_then(|danger| uncovered(reading, parts, danger, find)) {
        return Err(Withheld::Danger(danger));
    }
    let mut behind: Vec<Rule> = Vec::new();
    for rule in parts.iter().flat_map(Part::allowing) {
        if !behind.contains(rule) {
            behind.push(rule.clone());
        }
    }
    let sandbox = sandbox_of(reading, parts);
    Ok(Ruling { decision: Decision::Allow, sandbox, rules: behind })
}

/// Why the rules that allow how a part begins do not allow the part, if there are such.
fn held_back(place: usize, command: &SimpleCommand, part: &Part) -> Option<Withheld> {
    let word = shown_text(std::iter::once(part.held_back.clone()?));
    Some(Withheld::Word { command: place, shown: shown(command), word })
}

/// The sandbox is left only if each part that is not merely safe is let out by a rule and nothing
/// is written by redirection: what those parts write is theirs to answer for, a redirection is
/// nobody's. Nor is it left by a git that is merely safe: it is that only while it is told to run
/// nothing of the repository's, and what a rule lets out is not told so.
fn sandbox_of(reading: &Reading, parts: &[Part]) -> RuleSandbox {
    let out = |(command, part): (&SimpleCommand, &Part)| {
        let by_rule = part.allowing().any(|rule| rule.sandbox == RuleSandbox::Bypass);
        let safe = || {
            is_safe_but_for_writes(command, part, reading.reader) && !safe::depends_on_git(command)
        };
        part.writes == Writes::Nothing && (by_rule || safe())
    };
    let all_out = reading.commands.iter().zip(parts).all(out);
    let one_by_rule =
        parts.iter().flat_map(Part::allowing).any(|rule| rule.sandbox == RuleSandbox::Bypass);
    if all_out && one_by_rule { RuleSandbox::Bypass } else { RuleSandbox::Keep }
}

/// The first danger that no rule was written for. Each that one was written for is taken out of the
/// reading, and what is left is searched again.
fn uncovered(
    reading: &Reading,
    parts: &[Part],
    danger: &Danger,
    find: impl Fn(&Reading) -> Option<Danger>,
) -> Option<Danger> {
    let mut found = danger.clone();
    let mut rest = reading.clone();
    loop {
        let place = found.command;
        let (part, words) = match (parts.get(place), rest.commands.get_mut(place)) {
            // Once its words are gone, what is dangerous about it is a redirection.
            (Some(part), Some(command)) if !command.words.is_empty() => (part, &mut command.words),
            _ => return Some(found),
        };
        let names_it = |rule: &Rule| {
            let named = words.get(..rule.pattern.len()).unwrap_or_default().to_vec();
            let named = SimpleCommand { words: named, ..SimpleCommand::default() };
            find(&Reading { commands: vec![named], ..reading.clone() }).is_some()
        };
        if !part.allowing().any(|rule| weighs(rule) && names_it(rule)) {
            return Some(found);
        }
        words.clear();
        found = find(&rest)?;
    }
}

/// Whether a rule can have weighed a danger: it is a person's own and spells out more than the
/// program. A project's is not theirs, and a star is whatever comes.
fn weighs(rule: &Rule) -> bool {
    rule.origin.author == Author::Person
        && rule.pattern.len() >= 2
        && !rule.pattern.contains(&PatternWord::Any)
}

/// Whether a part is safe, what its redirections write left aside.
pub(super) fn is_safe_but_for_writes(command: &SimpleCommand, part: &Part, reader: Reader) -> bool {
    safety_but_for_writes(command, part, reader).is_ok()
}

fn safety_but_for_writes(
    command: &SimpleCommand,
    part: &Part,
    reader: Reader,
) -> Result<(), NotSafe> {
    match (&part.safety, &part.writes) {
        (Err(_), Writes::InRoots) if command.words.is_empty() && command.assignments.is_empty() => {
            Ok(())
        }
        (Err(_), Writes::InRoots) => {
            let without = SimpleCommand { redirections: Vec::new(), ..command.clone() };
            safe::check(&without, reader).and_then(|()| part.in_repository.clone())
        }
        (safety, _) => safety.clone(),
    }
}

/// Builtins after which a word may not mean what it meant before, of all shells. Sorted.
const CHANGES_THE_SHELL: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "call",
    "command",
    "complete",
    "declare",
    "doskey",
    "enable",
    "eval",
    "exec",
    "export",
    "getopts",
    "hash",
    "iex",
    "import-module",
    "invoke-expression",
    "ipmo",
    "let",
    "local",
    "mapfile",
    "nal",
    "new-alias",
    "new-item",
    "ni",
    "path",
    "printf",
    "read",
    "readarray",
    "readonly",
    "sal",
    "set",
    "set-alias",
    "set-item",
    "set-variable",
    "setopt",
    "shopt",
    "si",
    "source",
    "sv",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "unsetopt",
    "zmodload",
];

fn changes_the_shell(command: &SimpleCommand, reader: Reader) -> bool {
    let listed = |program: &str| {
        CHANGES_THE_SHELL.binary_search(&program.to_ascii_lowercase().as_str()).is_ok()
    };
    reader != Reader::Kernel && command.program().is_none_or(listed)
}

/// A part for a person to read, on one line and not too long.
pub(crate) fn shown(command: &SimpleCommand) -> String {
    let names = command.assignments.iter().map(|assignment| format!("{}=…", assignment.name));
    let words = command.words.iter().map(|word| word.text.clone());
    shown_text(names.chain(words))
}

fn shown_text(words: impl Iterator<Item = String>) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for word in words {
        if shown.len() > LONGEST {
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.extend(
            word.chars()
                .take(LONGEST + 1)
                .map(|character| if character.is_control() { '\u{fffd}' } else { character }),
        );
    }
    if shown.chars().count() > LONGEST {
        shown = shown.chars().take(LONGEST).chain(['…']).collect();
    }
    shown
}

#[cfg(test)]
mod tests;
