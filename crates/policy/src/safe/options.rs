//! The small engine that walks a program's words by its table of allowed options.
//!
//! It reads words as the strictest of all getopts would: short options in groups, values attached
//! or in the next word, options behind operands, `--`. Long names count only when they are written
//! out, as what an abbreviation means differs between versions.

use super::{NotSafe, shown};
use crate::command::{Shape, Word};

/// What a program may be called with. Whatever is not named here is not safe.
#[derive(Clone, Copy)]
pub(super) struct Program {
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    attached: &'static str,
    long: &'static [&'static [&'static str]],
    words: &'static [&'static str],
    dashed: &'static str,
    numbers: bool,
    never_bare: bool,
    options_first: bool,
    letters: Letters,
    operands: Operands,
    harmless: bool,
    option_files: bool,
}

/// How the letters after one dash are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// As getopt does: several flags, and a value in the same word.
    Grouped,
    /// Flags in groups, but every value in a word of its own.
    ValuesApart,
    /// One option a word, and its value, which begins with a digit, in the same word or the next.
    Single,
}

/// Which operands are allowed.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    /// None.
    None,
    /// Any number: all of them are read.
    Any,
    /// That many. A word behind the first operand counts as one even if it looks like an option:
    /// outside GNU it is.
    AtMost(usize),
    /// Those that this accepts, each known to the letter.
    Each(fn(&str) -> bool),
    /// Any number, but only beside one of these options; otherwise none.
    Beside(&'static [&'static str]),
    /// Any words at all, options or not: the program has no means to do harm.
    Free,
}

/// One thing that was found while walking.
pub(super) enum Seen<'a> {
    /// An option: its letter, or its long name without the dashes.
    Option { name: &'a str, value: Option<&'a str> },
    /// An operand.
    Operand(&'a Word),
}

/// A program that takes no options and no operands, for a table to add to.
pub(super) const fn named(name: &'static str) -> Program {
    Program {
        name,
        flags: "",
        valued: "",
        attached: "",
        long: &[],
        words: &[],
        dashed: "",
        numbers: false,
        never_bare: false,
        options_first: false,
        letters: Letters::Grouped,
        operands: Operands::None,
        harmless: false,
        option_files: false,
    }
}

impl Program {
    /// The same under another name.
    pub(super) const fn called(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Short options without a value.
    pub(super) const fn flags(mut self, letters: &'static str) -> Self {
        self.flags = letters;
        self
    }

    /// Short options with a value.
    pub(super) const fn valued(mut self, letters: &'static str) -> Self {
        self.valued = letters;
        self
    }

    /// Short options whose value, if there is one, is the rest of the word.
    pub(super) const fn attached(mut self, letters: &'static str) -> Self {
        self.attached = letters;
        self
    }

    /// Long options: `name`, `name=` with a value here or in the next word, `name[=]` with a value
    /// here or none, `name==` with two values in the next words.
    pub(super) const fn long(mut self, lists: &'static [&'static [&'static str]]) -> Self {
        self.long = lists;
        self
    }

    /// Whole words that are options as they stand.
    pub(super) const fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    /// Short options whose value may begin with a dash, as every version takes a value there.
    pub(super) const fn dashed(mut self, letters: &'static str) -> Self {
        self.dashed = letters;
        self
    }

    /// `-5` is an option.
    pub(super) const fn numbers(mut self) -> Self {
        self.numbers = true;
        self
    }

    /// Without any word it does more than with one of those that are allowed.
    pub(super) const fn never_bare(mut self) -> Self {
        self.never_bare = true;
        self
    }

    /// Behind the first operand every word is one.
    pub(super) const fn options_first(mut self) -> Self {
        self.options_first = true;
        self
    }

    /// A value is never attached to its letter: what follows it is more letters.
    pub(super) const fn values_apart(mut self) -> Self {
        self.letters = Letters::ValuesApart;
        self
    }

    /// Letters are not grouped.
    pub(super) const fn single_letters(mut self) -> Self {
        self.letters = Letters::Single;
        self
    }

    /// Which operands are allowed.
    pub(super) const fn operands(mut self, operands: Operands) -> Self {
        self.operands = operands;
        self
    }

    /// It reads any number of operands.
    pub(super) const fn reads(self) -> Self {
        self.operands(Operands::Any)
    }

    /// No option that any version of it has can do harm, listed or not, and neither can operands:
    /// so words that are not known before it runs cannot either.
    pub(super) const fn harmless(mut self) -> Self {
        self.harmless = true;
        self.reads()
    }

    /// A word that begins with `@` is a file of more words, options among them, and `--` does not change
    /// that: it is undone before any of them is looked at.
    pub(super) const fn option_files(mut self) -> Self {
        self.option_files = true;
        self
    }

    fn long_kind(&self, name: &str) -> Option<&'static str> {
        // Almost every name is told apart by its first letter, which is much faster to compare.
        let first = name.as_bytes().first()?;
        let kind_in = |spec: &&'static str| {
            let same_letter = spec.as_bytes().first() == Some(first);
            let kind = if same_letter { spec.strip_prefix(name) } else { None };
            kind.filter(|kind| is_kind(kind))
        };
        self.long.iter().find_map(|list| list.iter().find_map(kind_in))
    }
}

/// What may stand behind the name of a long option in a table.
fn is_kind(kind: &str) -> bool {
    matches!(kind, "" | "=" | "[=]" | "==")
}

/// The entry of a sorted table.
pub(super) fn named_in(table: &'static [Program], name: &str) -> Option<&'static Program> {
    table.binary_search_by(|entry| entry.name.cmp(name)).ok().map(|place| &table[place])
}

/// Whether the words after a program's name are all allowed by its table.
pub(super) fn check(program: &Program, arguments: &[Word]) -> Result<(), NotSafe> {
    walk(program, arguments, &mut |_| Ok(()))
}

/// As [`check`], and shows each option and operand to `see`, which may refuse it.
pub(super) fn walk<'a>(
    program: &'a Program,
    arguments: &'a [Word],
    see: &mut dyn FnMut(Seen<'a>) -> Result<(), NotSafe>,
) -> Result<(), NotSafe> {
    if matches!(program.operands, Operands::Free) {
        return Ok(());
    }
    if program.never_bare && arguments.is_empty() {
        return Err(NotSafe(format!("{} without options is not known to be safe", program.name)));
    }
    let mut walk = Walk { program, rest: arguments.iter(), see, operands: 0, beside: false };
    walk.all()
}

struct Walk<'a, 's> {
    program: &'a Program,
    rest: std::slice::Iter<'a, Word>,
    see: &'s mut dyn FnMut(Seen<'a>) -> Result<(), NotSafe>,
    operands: usize,
    /// Whether an option of [`Operands::Beside`] was among them.
    beside: bool,
}

impl<'a> Walk<'a, '_> {
    fn all(&mut self) -> Result<(), NotSafe> {
        let mut options_ended = false;
        while let Some(word) = self.rest.next() {
            let text = word.text.as_str();
            self.option_file(word)?;
            let limited = matches!(self.program.operands, Operands::AtMost(_));
            let options_first = limited || self.program.options_first;
            if word.shape == Shape::Pattern {
                self.pattern(word, options_ended)?;
            } else if options_ended || !text.starts_with('-') || text == "-" {
                self.operand(word)?;
            } else if options_first && self.operands > 0 {
                return Err(self.refused(text, "stands behind an operand"));
            } else if text == "--" {
                options_ended = true;
            } else if self.program.words.contains(&text) {
                self.option(text, None)?;
            } else if let Some(long) = text.strip_prefix("--") {
                self.long(text, long)?;
            } else {
                self.short(text)?;
            }
        }
        self.enough()
    }

    /// Whether a word may stand for more words, which are in a file.
    fn option_file(&self, word: &Word) -> Result<(), NotSafe> {
        let pattern = word.shape == Shape::Pattern && word.text.starts_with(['*', '?', '[']);
        if self.program.option_files && (pattern || word.text.starts_with('@')) {
            let (text, name) = (shown(&word.text), self.program.name);
            return Err(NotSafe(format!("{text} can be a file of more options to {name}")));
        }
        Ok(())
    }

    /// What can only be said when all words were seen.
    fn enough(&self) -> Result<(), NotSafe> {
        let name = self.program.name;
        match self.program.operands {
            Operands::Beside(options) if self.operands > 0 && !self.beside => Err(NotSafe(
                format!("{name} may change something unless it is told to list ({})", options[0]),
            )),
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, word: &'a Word, options_ended: bool) -> Result<(), NotSafe> {
        let many = matches!(self.program.operands, Operands::Any | Operands::Beside(_));
        let plain = options_ended || !word.text.starts_with(['-', '*', '?', '[']);
        if self.program.harmless || (many && plain) {
            return self.operand(word);
        }
        let name = self.program.name;
        let pattern = shown(&word.text);
        Err(NotSafe(format!("a file that {pattern} matches could be more than input to {name}")))
    }

    fn operand(&mut self, word: &'a Word) -> Result<(), NotSafe> {
        self.operands += 1;
        let name = self.program.name;
        let text = &word.text;
        let allowed = match self.program.operands {
            Operands::None => false,
            Operands::Any | Operands::Beside(_) | Operands::Free => true,
            Operands::AtMost(limit) => self.operands <= limit,
            Operands::Each(accepts) => word.as_literal().is_some_and(accepts),
        };
        if !allowed {
            let text = shown(text);
            return Err(NotSafe(format!("what {name} does with {text} is not known to be safe")));
        }
        (self.see)(Seen::Operand(word))
    }

    fn option(&mut self, name: &'a str, value: Option<&'a str>) -> Result<(), NotSafe> {
        if let Operands::Beside(options) = self.program.operands {
            self.beside |= options.contains(&name);
        }
        (self.see)(Seen::Option { name, value })
    }

    fn long(&mut self, text: &'a str, long: &'a str) -> Result<(), NotSafe> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        match (self.program.long_kind(name), value) {
            (Some("=" | "[=]"), Some(_)) | (Some("" | "[=]"), None) => self.option(name, value),
            (Some("="), None) => {
                let value = self.next_value(text, false)?;
                self.option(name, value)
            }
            (Some("=="), None) => {
                self.next_value(text, false)?;
                let value = self.next_value(text, false)?;
                self.option(name, value)
            }
            _ => Err(self.refused(text, "is not among the options known to be safe")),
        }
    }

    fn short(&mut self, text: &'a str) -> Result<(), NotSafe> {
        let program = self.program;
        let letters = &text[1..];
        if program.numbers && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.option(letters, None);
        }
        for (at, letter) in letters.char_indices() {
            let after = at + letter.len_utf8();
            let (name, rest) = (&letters[at..after], &letters[after..]);
            if program.flags.contains(letter) {
                if program.letters == Letters::Single && !rest.is_empty() {
                    return Err(self.refused(text, "is not among the options known to be safe"));
                }
                self.option(name, None)?;
            } else if program.attached.contains(letter) {
                return self.option(name, (!rest.is_empty()).then_some(rest));
            } else if program.valued.contains(letter) {
                let attached = match program.letters {
                    _ if rest.is_empty() => true,
                    Letters::Grouped => true,
                    Letters::ValuesApart => false,
                    Letters::Single => rest.starts_with(|first: char| first.is_ascii_digit()),
                };
                if !attached {
                    return Err(self.refused(text, "can be read in more than one way"));
                }
                let value = match rest {
                    "" => self.next_value(text, program.dashed.contains(letter))?,
                    value => Some(value),
                };
                return self.option(name, value);
            } else {
                return Err(self.refused(text, "is not among the options known to be safe"));
            }
        }
        Ok(())
    }

    /// The value in the next word. There is none behind the last word: then the program complains.
    ///
    /// A value that looks like an option is one to a version of the program that takes no value
    /// here, so it is refused unless that does not matter.
    fn next_value(&mut self, option: &str, dashed: bool) -> Result<Option<&'a str>, NotSafe> {
        let Some(word) = self.rest.next() else { return Ok(None) };
        let text = word.text.as_str();
        if word.shape == Shape::Pattern && !self.program.harmless {
            return Err(self.refused(option, "gets a value that is not known before it runs"));
        }
        let number = text.strip_prefix('-').is_some_and(is_number);
        let plain = !text.starts_with('-') || text == "-" || number;
        if plain || dashed || self.program.harmless {
            return Ok(Some(text));
        }
        Err(self.refused(option, "gets a value that looks like an option"))
    }

    fn refused(&self, option: &str, why: &str) -> NotSafe {
        NotSafe(format!("the option {} of {} {why}", shown(option), self.program.name))
    }
}

/// Digits, and perhaps a fraction.
pub(super) fn is_number(text: &str) -> bool {
    let digit_first = text.starts_with(|first: char| first.is_ascii_digit());
    digit_first && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
pub(super) fn is_sorted(table: &[Program]) -> bool {
    table.is_sorted_by(|before, after| before.name < after.name)
}

/// The long options of a table that are not written as the engine reads them.
#[cfg(test)]
pub(super) fn misspelt(table: &[Program]) -> Vec<&'static str> {
    let specs = table.iter().flat_map(|program| program.long.iter().copied().flatten().copied());
    let name_ends = |spec: &str| spec.find(['=', '[']).unwrap_or(spec.len());
    specs.filter(|spec| !is_kind(&spec[name_ends(spec)..]) || spec.starts_with('-')).collect()
}
