//! Any bytes as the output of a program: they become text, and the text becomes harmless, line by line and once for
//! all; a model is given no more of it than there is room for, and a person nothing that hides.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_fuzz::shown::{assert_harmless, assert_harmless_line};
use sandgate_process::{CursorKeys, ModelFormat, decode, harmless, keys};
use sandgate_protocol::{visible, visible_line, visible_remark};

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode(bytes);
    if decoded.encoding == "UTF-8" && !decoded.had_errors {
        let mark = "\u{feff}".as_bytes();
        assert_eq!(decoded.text.as_bytes(), bytes.strip_prefix(mark).unwrap_or(bytes));
    }
    let text = decoded.text;

    let shown = harmless(&text);
    let moves = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!shown.contains(moves), "{shown:?} of {text:?}");
    assert_eq!(harmless(&shown), shown, "{text:?}");
    let lines: Vec<_> = text.split('\n').map(harmless).collect();
    assert_eq!(lines.join("\n"), shown, "{text:?}");

    assert_harmless(&visible(&text));
    assert_harmless_line(&visible_line(&text));
    assert_harmless_line(&visible_remark(&text));
    assert!(visible_remark(&text).chars().count() <= 400, "{text:?}");

    let format = ModelFormat::new(ModelFormat::MIN_TOKENS);
    // As long as may be, and as something that does not fit.
    for text in [text.clone(), text.repeat(1 + 8192 / text.len().max(1))] {
        let shortened = format.shorten(&text);
        assert!(shortened.len() <= format.max_bytes(), "{} bytes of {text:?}", shortened.len());
        assert!(!shortened.contains(moves), "{shortened:?}");
    }
    for cursor in [CursorKeys::Normal, CursorKeys::Application] {
        if let Err(unknown) = keys(&[&text], cursor) {
            assert_harmless(&unknown.to_string());
        }
    }
});
