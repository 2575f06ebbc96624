//! Arguments told apart: grouped letters, long names, their values, and what is left.
//!
//! It knows nothing of any program but which of its options take a value, and that is told to it.

use crate::command::Word;

/// One argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    /// A letter of `-abc`, with its value if it takes one.
    Letter(char, Option<&'a str>),
    /// `--name`, `--name=value` or `--name value`; a program may accept it shortened.
    Long(&'a str, Option<&'a str>),
    /// Anything else, and everything after `--`.
    Operand(&'a Word),
}

impl<'a> Argument<'a> {
    /// Whether it is this option: the letter, or the long name in full or shortened.
    pub(crate) fn is(&self, letter: char, name: &str) -> bool {
        match self {
            Self::Letter(given, _) => *given == letter,
            Self::Long(given, _) => !given.is_empty() && name.starts_with(given),
            Self::Operand(_) => false,
        }
    }

    /// The value that came with an option.
    pub(crate) fn value(&self) -> Option<&'a str> {
        match self {
            Self::Letter(_, value) | Self::Long(_, value) => *value,
            Self::Operand(_) => None,
        }
    }
}

/// The arguments of a command, each with the index of the word it was found in.
pub(crate) struct Arguments<'a> {
    words: &'a [Word],
    at: usize,
    letters: &'a str,
    only_operands: bool,
    with_value: &'a str,
    long_with_value: &'a [&'a str],
}

/// Tells the words after a program's name apart. `with_value` are the letters that take a value,
/// `long_with_value` the long names that take one in the next word.
pub(crate) fn arguments<'a>(
    words: &'a [Word],
    with_value: &'a str,
    long_with_value: &'a [&'a str],
) -> Arguments<'a> {
    Arguments { words, at: 1, letters: "", only_operands: false, with_value, long_with_value }
}

impl<'a> Arguments<'a> {
    fn next_word(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(&word.text)
    }

    fn letter(&mut self) -> Option<Argument<'a>> {
        let letter = self.letters.chars().next()?;
        let rest = &self.letters[letter.len_utf8()..];
        if !self.with_value.contains(letter) {
            self.letters = rest;
            return Some(Argument::Letter(letter, None));
        }
        self.letters = "";
        let value = if rest.is_empty() { self.next_word() } else { Some(rest) };
        Some(Argument::Letter(letter, value))
    }

    fn long(&mut self, text: &'a str) -> Argument<'a> {
        if let Some((name, value)) = text.split_once('=') {
            return Argument::Long(name, Some(value));
        }
        let takes = self.long_with_value.contains(&text);
        let value = if takes { self.next_word() } else { None };
        Argument::Long(text, value)
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = (usize, Argument<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(letter) = self.letter() {
            return Some((self.at - 1, letter));
        }
        let word = self.words.get(self.at)?;
        let index = self.at;
        self.at += 1;
        let text = word.text.as_str();
        if self.only_operands || text.len() < 2 || !text.starts_with('-') {
            return Some((index, Argument::Operand(word)));
        }
        if text == "--" {
            self.only_operands = true;
            return self.next();
        }
        if let Some(name) = text.strip_prefix("--") {
            return Some((index, self.long(name)));
        }
        self.letters = &text[1..];
        self.letter().map(|letter| (index, letter))
    }
}
