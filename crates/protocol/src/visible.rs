//! Text from a model, a repository or a program, fit to be shown to a person.
//!
//! Nothing is left out, overwritten, reordered or invisible: every character that does not show
//! itself is spelled out.

use unicode_segmentation::UnicodeSegmentation as _;

/// Spells out what does not show itself: control characters, escape sequences, marks that turn the
/// direction of reading, characters without a shape, and marks that are piled on one letter. A newline stays one.
pub fn visible(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(visible_line).collect();
    lines.join("\n")
}

/// The same as one line: a newline is spelled out too.
pub fn visible_line(text: &str) -> String {
    spelled_out(text, Marks::OfItsOwn, |_| false)
}

/// The same for what stands in a file: lines end as they do there, and tabs stay.
pub fn visible_code(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.strip_suffix('\r') {
        Some(line) => spelled_out(line, Marks::OfItsOwn, |c| c == '\t') + "\r",
        None => spelled_out(line, Marks::OfItsOwn, |c| c == '\t'),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The same for what somebody says at length: tabs stay too, and so do the characters that join letters of many
/// languages and parts of pictures. They cannot turn the order of others. It may come in pieces.
pub fn visible_prose(text: &str) -> String {
    let kept =
        |c: char| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    spelled_out(text, Marks::OfMore, kept)
}

/// The same for output that comes in pieces, however it is cut: lines and tabs stay.
pub fn visible_piece(text: &str) -> String {
    spelled_out(text, Marks::Any, |c| matches!(c, '\n' | '\t'))
}

/// How many marks one letter may carry before they are spelled out: hundreds of them reach into other lines.
const MOST_MARKS: usize = 4;

/// What marks of letters may be in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// Few on a letter, and none at the beginning: it would be put on words of ours.
    OfItsOwn,
    /// Few on a letter. More of the text may stand before it.
    OfMore,
    /// All that there are.
    Any,
}

fn spelled_out(text: &str, marks: Marks, kept: impl Fn(char) -> bool) -> String {
    let plain = |c: char| c.is_ascii() && !c.is_ascii_control();
    if text.chars().all(|c| plain(c) || kept(c)) && text.is_ascii() {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for (start, letter) in text.grapheme_indices(true) {
        // It may begin with a mark, if what was before it can carry none.
        let may_be_tower = start == 0 || letter.len() > MOST_MARKS;
        let is_on_nothing = may_be_tower && letter.chars().next().is_some_and(is_carried);
        for (at, c) in letter.chars().enumerate() {
            let is_mark = match marks {
                Marks::OfItsOwn if start == 0 && at == 0 && is_on_nothing => true,
                Marks::OfItsOwn | Marks::OfMore => at + usize::from(is_on_nothing) > MOST_MARKS,
                Marks::Any => false,
            };
            if kept(c) {
                shown.push(c);
            } else if c.is_control() {
                shown.extend(c.escape_default());
            } else if is_mark || is_invisible(c) || is_odd_blank(c) {
                shown.extend(c.escape_unicode());
            } else {
                shown.push(c);
            }
        }
    }
    shown
}

/// Whether a character is put on the one before it. At the beginning of a text that is none of the text's own.
fn is_carried(c: char) -> bool {
    !c.is_ascii() && format!("a{c}").graphemes(true).count() == 1
}

/// The longest remark, in characters.
const REMARK: usize = 400;

/// What a model says for itself, beside what a person decides about: one line, and not so long that it
/// could push that off the screen. Of what is left out it is said how much.
pub fn visible_remark(text: &str) -> String {
    let line = visible_line(text);
    let length = line.chars().count();
    if length <= REMARK {
        return line;
    }
    let kept = REMARK - 40;
    let start: String = line.chars().take(kept).collect();
    format!("{start} [{} more characters]", length - kept)
}

/// Characters that take no room: Unicode's default-ignorable ones, the separators of lines and
/// paragraphs, the marks of interlinear notes and of what is no text, and letters that are blank.
const INVISIBLE: [(char, char); 24] = [
    ('\u{00ad}', '\u{00ad}'),   // soft hyphen
    ('\u{034f}', '\u{034f}'),   // grapheme joiner
    ('\u{061c}', '\u{061c}'),   // Arabic direction mark
    ('\u{115f}', '\u{1160}'),   // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),   // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),   // Mongolian selectors
    ('\u{200b}', '\u{200f}'),   // zero-width space, joiners, direction marks
    ('\u{2028}', '\u{2029}'),   // line and paragraph separators
    ('\u{202a}', '\u{202e}'),   // direction embeddings and overrides
    ('\u{2060}', '\u{2065}'),   // word joiner, invisible operators
    ('\u{2066}', '\u{2069}'),   // direction isolates
    ('\u{206a}', '\u{206f}'),   // deprecated format characters
    ('\u{3164}', '\u{3164}'),   // Hangul filler
    ('\u{fe00}', '\u{fe0f}'),   // variation selectors
    ('\u{feff}', '\u{feff}'),   // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),   // halfwidth Hangul filler
    ('\u{fff0}', '\u{fff8}'),   // reserved, ignorable
    ('\u{fff9}', '\u{fffc}'),   // interlinear notes, what is no text
    ('\u{13430}', '\u{13442}'), // hieroglyphic format controls and blanks
    ('\u{1bca0}', '\u{1bca3}'), // shorthand format controls
    ('\u{1d159}', '\u{1d159}'), // an empty note
    ('\u{1d173}', '\u{1d17a}'), // musical format controls
    ('\u{e0000}', '\u{e007f}'), // tags: a whole invisible ASCII
    ('\u{e0080}', '\u{e0fff}'), // more selectors, reserved
];

/// Whether a character has no shape of its own: it can hide among others, or turn their order.
pub fn is_invisible(c: char) -> bool {
    c >= '\u{ad}' && INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Whether a character looks like a blank and is none to a shell or a parser.
pub fn is_odd_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_hides_is_spelled_out() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{7}"), r"a\u{202e}b\u{200b}c\u{7}");
        assert_eq!(visible("\x1b]52;c;aGk=\x07"), r"\u{1b}]52;c;aGk=\u{7}");
        assert_eq!(visible("two\nlines\t"), "two\nlines\\t");
        assert_eq!(visible_line("two\nlines"), "two\\nlines");
        assert_eq!(visible_line("a\u{a0}b\u{3000}c"), r"a\u{a0}b\u{3000}c");
        assert_eq!(visible_line("\u{1d159}\u{fffc}\u{13441}"), r"\u{1d159}\u{fffc}\u{13441}");
    }

    /// spec APPROVAL.60: Marks that are piled on a letter of a text, or begin it, are spelled out, so that they reach
    /// into nothing else.
    #[test]
    fn a_tower_of_marks_is_spelled_out() {
        let tower = format!("e{}x", "\u{301}".repeat(6));
        let shown = format!("e{}{}x", "\u{301}".repeat(4), r"\u{301}".repeat(2));
        for show in [visible, visible_line, visible_code, visible_prose] {
            assert_eq!(show(&tower), shown);
            for kept in ["e\u{301}te\u{301}", "한국어", "é", "ที่", "שָׁלוֹם"] {
                assert_eq!(show(kept), kept);
            }
        }
        for show in [visible, visible_line, visible_code] {
            assert_eq!(show("\u{338}[y] no"), r"\u{338}[y] no");
        }
        assert_eq!(visible_prose("\u{94d}\u{92f}"), "\u{94d}\u{92f}", "the rest of a word");
        assert_eq!(visible_piece(&tower[1..]), tower[1..]);
    }

    #[test]
    fn code_and_prose_stay_what_they_are() {
        assert_eq!(visible_code("a\tb\r\n\u{202e}c\r"), "a\tb\r\n\\u{202e}c\r");
        assert_eq!(visible_code("a\rb\u{200d}"), r"a\rb\u{200d}");
        assert_eq!(visible_prose("👩\u{200d}💻 a\tb\n❤\u{fe0f}"), "👩\u{200d}💻 a\tb\n❤\u{fe0f}");
        assert_eq!(visible_prose("\u{2066}a\u{1b}[2J\u{e0041}"), r"\u{2066}a\u{1b}[2J\u{e0041}");
    }

    /// spec APPROVAL.53: What a model says for itself is shown to a person as one line of at most 400
    /// characters, with the number of those that are left out.
    #[test]
    fn a_remark_is_a_short_line() {
        assert_eq!(visible_remark("a\nb"), "a\\nb");
        let short = "x".repeat(REMARK);
        assert_eq!(visible_remark(&short), short);
        let cut = visible_remark(&"\n".repeat(500));
        assert!(cut.ends_with("\\n [640 more characters]"), "{cut}");
        assert!(cut.chars().count() <= REMARK && !cut.contains('\n'));
        assert_eq!(visible_remark(&cut), cut);
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_can_move_a_cursor(text in any::<String>()) {
            let shown = visible(&text);
            prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert!(!shown.chars().any(is_invisible));
            prop_assert_eq!(visible(&shown), shown);
        }

        #[test]
        fn pieces_are_shown_as_the_whole_is(one in any::<String>(), two in any::<String>()) {
            let whole = visible_piece(&format!("{one}{two}"));
            prop_assert!(whole.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()));
            prop_assert!(!whole.chars().any(is_invisible));
            prop_assert_eq!(visible_piece(&one) + &visible_piece(&two), whole);
        }
    }
}
