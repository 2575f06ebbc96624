//! What a person may be shown.

/// Panics where a text could move a cursor, hide a part of itself or turn its order.
pub fn assert_harmless(text: &str) {
    let strange = text.chars().find(|c| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{3164}' | '\u{feff}')
            || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    });
    assert_eq!(strange, None, "in {text:?}");
}

/// The same of one line.
pub fn assert_harmless_line(text: &str) {
    assert_harmless(text);
    assert!(!text.contains('\n'), "{text:?}");
}
