//! Text that somebody else chose, made fit to be shown: what a terminal would obey, and what an eye
//! cannot see, becomes a visible code.

/// The same text with nothing in it but what can be seen.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else if is_unseen(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Characters that change the direction of what is around them, join it, or take no room.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' // soft hyphen
        | '\u{34f}' // combining grapheme joiner
        | '\u{61c}' // Arabic letter mark
        | '\u{115f}'..='\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
        | '\u{17b4}'..='\u{17b5}' // Khmer vowels without a shape
        | '\u{180b}'..='\u{180f}' // Mongolian selectors
        | '\u{200b}'..='\u{200f}' // zero width, and marks of direction
        | '\u{2028}'..='\u{202e}' // separators, embeddings and overrides
        | '\u{2060}'..='\u{206f}' // joiners, isolates and deprecated controls
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' // variation selectors
        | '\u{feff}' // byte order mark
        | '\u{fff0}'..='\u{fffb}' // annotations
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' // shorthand and music
        | '\u{e0000}'..='\u{e007f}' // tags
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays_as_it_is() {
        let text = "grep -r 'naïve' 日本語 🦀 | wc";
        assert_eq!(shown(text), text);
    }

    #[test]
    fn what_cannot_be_seen_is_a_code() {
        for (text, code) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("rm\u{202e}gpj", "rm\\u{202e}gpj"),
            ("pay\u{200b}pal", "pay\\u{200b}pal"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(shown(text), code);
        }
    }
}
