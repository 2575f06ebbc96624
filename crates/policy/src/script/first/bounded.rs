//! A tree-sitter parser that gives up in time.
//!
//! Both of its bounds are counts: the same text is always read in the same way, however busy the
//! machine is.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;

use tree_sitter::{Language, ParseOptions, ParseState, Parser, Tree};

/// How often the parser may report progress before it is stopped; each report is a hundred steps.
/// As many commands as are understood, with a dozen words each, need less than that. On broken text
/// the cost grows with the square of it, so this is what bounds the time.
const MAX_PROGRESS: usize = 250;

/// How often it may report progress after it met an error. From there on its steps cost more the
/// longer the text is, and what it finds is worth less.
const MAX_PROGRESS_IN_ERROR: usize = 60;

/// How many pieces of the text it may ask for. Grammars look far ahead in broken text, again and
/// again; a text of the greatest length that is searched has 128 pieces.
const MAX_PIECES: usize = 2048;

/// How long a piece is.
const PIECE: usize = 1024;

/// A parser that is used again and again.
pub(in crate::script) struct Bounded(RefCell<Option<Parser>>);

impl Bounded {
    /// Without a parser if the language does not fit the library; then nothing can be parsed.
    pub(in crate::script) fn new(language: &Language) -> Self {
        let mut parser = Parser::new();
        let is_usable = parser.set_language(language).is_ok();
        Self(RefCell::new(is_usable.then_some(parser)))
    }

    /// The tree, unless it takes too long to find.
    ///
    /// Its places are those of the text, but the parser is shown a letter for each byte that is not
    /// ASCII: the grammars' own code asks C's `isalpha` and its kin about whole characters, which
    /// read memory that is not theirs for large ones and so can end the program.
    pub(in crate::script) fn parse(&self, source: &str) -> Option<Tree> {
        let source = &*in_ascii(source);
        let mut slot = self.0.borrow_mut();
        let parser = slot.as_mut()?;
        let (mut reports, mut in_error, mut pieces) = (0, 0, 0);
        let mut progress = |state: &ParseState| {
            reports += 1;
            in_error += usize::from(state.has_error());
            if reports > MAX_PROGRESS || in_error > MAX_PROGRESS_IN_ERROR {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let mut text = |at: usize, _| {
            pieces += 1;
            let end = if pieces > MAX_PIECES { at } else { source.floor_char_boundary(at + PIECE) };
            source.as_bytes().get(at..end).unwrap_or_default()
        };
        let tree = parser.parse_with_options(&mut text, None, Some(options));
        // A parser that was stopped would go on with the old text.
        parser.reset();
        tree.filter(|_| pieces <= MAX_PIECES)
    }
}

/// A text of the same length, with a letter for each byte that is not ASCII.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let letter = |byte: u8| if byte.is_ascii() { char::from(byte) } else { 'x' };
    Cow::Owned(text.bytes().map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_too_large_for_the_grammars() {
        let bash = Bounded::new(&tree_sitter_bash::LANGUAGE.into());
        let powershell = Bounded::new(&tree_sitter_powershell::LANGUAGE.into());
        for c in ['é', '日', '\u{e016f}', '\u{10ffff}', '\u{a0}', '🦀'] {
            for before in ["", "{", "${", "$", "<<", "<<E\n", "a=", "[[ ", "\"", "'", "#", "(", "!"]
            {
                let text = format!("{before}{c}");
                for parser in [&bash, &powershell] {
                    let tree = parser.parse(&text).unwrap();
                    assert_eq!(tree.root_node().end_byte(), text.len(), "{text:?}");
                }
            }
        }
    }
}
