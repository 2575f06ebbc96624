//! Whether a rule speaks of a command, and which rules could.
//!
//! A rule that allows is read to the letter: when in doubt it does not match. A rule that asks or
//! forbids is read the other way round, so that another spelling of the program, an option before
//! the subcommand or a file name pattern does not get past it.

use super::inert::is_inert;
use super::leading;
use super::{Decision, PatternWord, Rule};
use crate::command::{Shape, SimpleCommand, Word};
use crate::program::is_system_program;
use std::borrow::Cow;
use std::collections::HashMap;

/// What Windows leaves out of a program's name when it is called.
const EXTENSIONS: &[&str] = &[".exe", ".cmd", ".bat", ".com"];

impl Rule {
    /// Whether the rule speaks of a command.
    pub fn matches(&self, command: &SimpleCommand) -> bool {
        if self.decision == Decision::Allow {
            return command.assignments.iter().all(is_inert) && self.is_met_by(&command.words);
        }
        self.is_met_by(&command.words)
            || leading::skipped(&command.words).is_some_and(|words| self.is_met_by(&words))
            || leading::guessed(&command.words).iter().any(|words| self.is_met_by(words))
            || without_unknown(&command.words).is_some_and(|words| self.is_met_by(&words))
    }

    /// Whether a command could turn out to be what the rule speaks of: its program is called with words
    /// that are only known when it runs where the rule's would stand, or gets another name.
    pub(super) fn could_match(&self, command: &SimpleCommand) -> bool {
        let Some((program, arguments)) = self.pattern.split_first() else { return false };
        let Some((name, rest)) = command.words.split_first() else { return false };
        if name.as_literal() == Some("alias") {
            let names =
                |wanted: &str| rest.iter().any(|word| is_spelt_in(&name_of(wanted), &word.text));
            return match program {
                PatternWord::Exact(wanted) => names(wanted),
                PatternWord::OneOf(each) => each.iter().any(|wanted| names(wanted)),
                PatternWord::Any => false,
            };
        }
        if !meets(program, name, |wanted, word| program_meets(wanted, word, true), true) {
            return false;
        }
        let mut rest = rest.iter();
        for wanted in arguments {
            match rest.next() {
                Some(word) if word.shape == Shape::Dynamic => return true,
                Some(word) if meets(wanted, word, |a, b| word_meets(a, b, true), true) => {}
                _ => return false,
            }
        }
        false
    }

    fn is_met_by(&self, words: &[Word]) -> bool {
        let strict = self.decision != Decision::Allow;
        let Some((program, arguments)) = self.pattern.split_first() else { return false };
        let Some((name, rest)) = words.split_first() else { return false };
        arguments.len() <= rest.len()
            && meets(program, name, |wanted, word| program_meets(wanted, word, strict), strict)
            && arguments
                .iter()
                .zip(rest)
                .all(|(wanted, word)| meets(wanted, word, |a, b| word_meets(a, b, strict), strict))
    }
}

/// `git $OPTIONS push`: the words without those that may turn out to be none, if there are any.
fn without_unknown(words: &[Word]) -> Option<Vec<Word>> {
    let (program, rest) = words.split_first()?;
    let known = |word: &&Word| word.shape != Shape::Dynamic;
    let left = rest.iter().filter(known).cloned();
    rest.iter()
        .any(|word| !known(&word))
        .then(|| std::iter::once(program.clone()).chain(left).collect())
}

fn meets(
    wanted: &PatternWord,
    word: &Word,
    one: impl Fn(&str, &Word) -> bool,
    strict: bool,
) -> bool {
    match wanted {
        PatternWord::Exact(text) => one(text, word),
        PatternWord::OneOf(texts) => texts.iter().any(|text| one(text, word)),
        PatternWord::Any => strict || word.shape == Shape::Literal,
    }
}

fn word_meets(wanted: &str, word: &Word, strict: bool) -> bool {
    match word.shape {
        Shape::Literal => word.text == wanted,
        Shape::Pattern => strict && could_become(&word.text, wanted),
        Shape::Home | Shape::Dynamic => false,
    }
}

fn program_meets(wanted: &str, word: &Word, strict: bool) -> bool {
    if word.shape == Shape::Literal && word.text == wanted {
        return true;
    }
    if has_directory(wanted) {
        // Whoever spells out a path means that file and no other.
        return word_meets(wanted, word, strict);
    }
    match word.shape {
        Shape::Literal if strict => name_of(&word.text) == name_of(wanted),
        Shape::Literal => in_system(&word.text) == Some(wanted),
        Shape::Home => strict && name_of(&word.text) == name_of(wanted),
        Shape::Pattern => strict && could_become(&name_of(&word.text), &name_of(wanted)),
        Shape::Dynamic => strict && is_spelt_in(&name_of(wanted), &word.text),
    }
}

/// Whether a word that is made while the script runs has a name written out in it, as in
/// `$(which git)` and `$GIT`.
fn is_spelt_in(name: &str, written: &str) -> bool {
    let apart = |letter: char| !letter.is_ascii_alphanumeric() && !"-_.+".contains(letter);
    written.split(apart).any(|piece| name_of(piece) == name)
}

/// The bare name of a program that is called by its path in a directory of the system: `/usr/bin/git`
/// is what a rule means by `git`. The agent cannot write there, so nothing else can stand under such a
/// name.
pub(super) fn in_system(program: &str) -> Option<&str> {
    is_system_program(program).filter(|_| has_directory(program))
}

/// Whether a program is called by a path.
pub(super) fn has_directory(program: &str) -> bool {
    program.contains(['/', '\\'])
}

/// A program's name without directory, letter case and the extension of Windows: what two
/// spellings of one program have in common.
pub(super) fn name_of(program: &str) -> Cow<'_, str> {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let mut name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    };
    for extension in EXTENSIONS {
        if name.len() > extension.len() && name.ends_with(extension) {
            let end = name.len() - extension.len();
            name = match name {
                Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
                Cow::Owned(mut text) => {
                    text.truncate(end);
                    Cow::Owned(text)
                }
            };
            break;
        }
    }
    name
}

/// Whether a file name pattern could become this word. One without a letter of its own, like `*`,
/// is taken for what it nearly always is, a list of files.
fn could_become(pattern: &str, word: &str) -> bool {
    if !pattern.chars().any(char::is_alphanumeric) {
        return false;
    }
    // A set in brackets stands for one character; which ones is not worth the risk of reading it
    // otherwise than the shell does.
    let mut plain = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '[' if characters.as_str().contains(']') => {
                let set = characters.as_str();
                let end = set.char_indices().skip(1).find(|(_, one)| *one == ']');
                characters = set[end.map_or(set.len(), |(at, _)| at + 1)..].chars();
                plain.push(Glob::One);
            }
            '*' => plain.push(Glob::Several),
            '?' => plain.push(Glob::One),
            other => plain.push(Glob::Letter(other)),
        }
    }
    let word: Vec<char> = word.chars().collect();
    glob_matches(&plain, &word)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Glob {
    Letter(char),
    One,
    Several,
}

/// In time of at most one length by the other: a star that fails gives way to the last one only.
fn glob_matches(pattern: &[Glob], word: &[char]) -> bool {
    let (mut p, mut w) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while w < word.len() {
        match pattern.get(p) {
            Some(Glob::Several) => {
                retry = Some((p, w));
                p += 1;
                continue;
            }
            Some(Glob::One) => {
                (p, w) = (p + 1, w + 1);
                continue;
            }
            Some(Glob::Letter(letter)) if *letter == word[w] => {
                (p, w) = (p + 1, w + 1);
                continue;
            }
            _ => {}
        }
        let Some((star, taken)) = retry else { return false };
        retry = Some((star, taken + 1));
        (p, w) = (star + 1, taken + 1);
    }
    pattern[p..].iter().all(|rest| *rest == Glob::Several)
}

/// Rules by the name of the program that they begin with, so that the many that speak of other
/// programs cost nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    by_name: HashMap<String, Vec<usize>>,
    /// Those that begin with `*`.
    of_any: Vec<usize>,
    count: usize,
}

impl Index {
    pub(super) fn add(&mut self, place: usize, rule: &Rule) {
        self.count = self.count.max(place + 1);
        let names = match rule.pattern.first() {
            Some(PatternWord::Exact(name)) => std::slice::from_ref(name),
            Some(PatternWord::OneOf(names)) => names.as_slice(),
            Some(PatternWord::Any) => return self.of_any.push(place),
            None => return,
        };
        for name in names {
            let places = self.by_name.entry(name_of(name).into_owned()).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
    }

    /// The places of the rules that could match, in their order.
    pub(super) fn candidates(&self, command: &SimpleCommand) -> impl Iterator<Item = usize> {
        let (mut named, mut of_any, mut all): (&[usize], &[usize], _) = (&[], &[], 0..0);
        if let Some(program) = command.words.first().filter(|_| self.count > 0) {
            match program.shape {
                // It could be the name of any of them.
                Shape::Pattern | Shape::Dynamic => all = 0..self.count,
                Shape::Literal | Shape::Home => {
                    let name = name_of(&program.text);
                    named = self.by_name.get(name.as_ref()).map_or(&[], Vec::as_slice);
                    of_any = &self.of_any;
                }
            }
        }
        std::iter::from_fn(move || {
            let next = match (named.split_first(), of_any.split_first()) {
                (Some((one, rest)), Some((other, _))) if one < other => (one, rest, true),
                (_, Some((other, rest))) => (other, rest, false),
                (Some((one, rest)), None) => (one, rest, true),
                (None, None) => return None,
            };
            let (place, rest, from_named) = next;
            *(if from_named { &mut named } else { &mut of_any }) = rest;
            Some(*place)
        })
        .chain(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_becomes_what_the_shell_could_make_of_it() {
        let cases = [
            ("pus?", "push", true),
            ("p*", "push", true),
            ("p[a-z]sh", "push", true),
            ("p[]]sh", "push", true),
            ("*sh", "push", true),
            ("*.o", "push", false),
            ("push?", "push", false),
            ("*", "push", false),
            ("**a*", "banana", true),
            ("a[", "a[", true),
        ];
        for (pattern, word, expected) in cases {
            assert_eq!(could_become(pattern, word), expected, "{pattern} for {word}");
        }
    }

    #[test]
    fn a_name_is_the_same_in_every_spelling() {
        for spelling in ["git", "/usr/bin/git", "GIT.EXE", r"C:\bin\Git.cmd", "./git"] {
            assert_eq!(name_of(spelling), "git", "{spelling}");
        }
        assert_eq!(name_of(".exe"), ".exe");
        assert_eq!(name_of(""), "");
    }
}
