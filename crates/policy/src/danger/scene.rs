//! One command as the subjects look at it: with its name, and with where it would run.

use super::place::{Here, Place};
use crate::command::{Shape, SimpleCommand, Word};
use crate::surroundings::Surroundings;
use crate::wrapper::arguments::{Argument, arguments};

/// How much of a command is repeated in a reason.
const SHOWN: usize = 120;

pub(super) struct Scene<'a> {
    pub(super) command: &'a SimpleCommand,
    /// The program's name without its directory; nothing where it is not known.
    pub(super) name: &'a str,
    pub(super) here: &'a Here<'a>,
    pub(super) around: &'a Surroundings,
}

impl<'a> Scene<'a> {
    pub(super) fn place(&self, word: &Word) -> Place {
        Place::of_word(word, self.here.place(), self.around)
    }

    /// The words after the program's name.
    pub(super) fn rest(&self) -> &'a [Word] {
        self.command.words.get(1..).unwrap_or_default()
    }

    /// The words that are no options; nothing is known of options that take a value.
    pub(super) fn operands(&self) -> Vec<&'a Word> {
        self.operands_of("", &[])
    }

    pub(super) fn operands_of(&self, letters: &'a str, long: &'a [&'a str]) -> Vec<&'a Word> {
        let operand = |(_, argument)| match argument {
            Argument::Operand(word) => Some(word),
            _ => None,
        };
        arguments(&self.command.words, letters, long).filter_map(operand).collect()
    }

    /// Whether an option is given; no option takes a value.
    pub(super) fn has(&self, letter: char, name: &str) -> bool {
        arguments(&self.command.words, "", &[]).any(|(_, argument)| argument.is(letter, name))
    }

    /// Whether one of the words is this.
    pub(super) fn has_word(&self, text: &str) -> bool {
        self.rest().iter().any(|word| word.text == text)
    }

    /// The command as a person would recognise it.
    pub(super) fn line(&self) -> String {
        let mut line = String::new();
        for word in &self.command.words {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word.text);
        }
        shortened(&line)
    }
}

/// A word as a reason shows it: relative names by where they lead, if that is known.
pub(super) fn shown(word: &Word, place: &Place) -> String {
    let text = word.text.as_str();
    let told = word.shape == Shape::Dynamic
        || text.starts_with(['/', '~'])
        || text.get(1..2) == Some(":")
        || place.base != super::place::Base::Root;
    if told {
        shortened(&text.replace('"', ""))
    } else {
        format!("/{}", shortened(&place.parts.join("/")))
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
