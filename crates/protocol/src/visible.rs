//! Text from a model, a repository or a program, fit to be shown to a person.
//!
//! Nothing is left out, overwritten, reordered or invisible: every character that does not show
//! itself is spelled out.

/// Spells out what does not show itself: control characters, escape sequences, marks that turn the
/// direction of reading, and characters without a shape. A newline stays one.
pub fn visible(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(visible_line).collect();
    lines.join("\n")
}

/// The same as one line: a newline is spelled out too.
pub fn visible_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else if is_invisible(c) || is_odd_blank(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
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
/// paragraphs, and the marks of interlinear notes.
const INVISIBLE: [(char, char); 22] = [
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
    ('\u{fff9}', '\u{fffb}'),   // interlinear notes
    ('\u{1bca0}', '\u{1bca3}'), // shorthand format controls
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
        }
    }
}
