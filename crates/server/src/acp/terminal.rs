//! Output of commands as a terminal of the editor's, which is only looked at.
//!
//! The protocol's own terminals run commands outside of the cage and are not used. Some editors show output
//! that an agent sends along: they say so with `terminal_output` among what they can do, and find it in
//! `_meta`. Others are given the output as text.

use agent_client_protocol::v1::schema::{ClientCapabilities, Meta, Terminal, ToolCallContent};
use serde_json::{Value, json};
use std::path::Path;

/// Whether an editor shows output that is sent along.
pub(super) fn is_shown(capabilities: &ClientCapabilities) -> bool {
    let meta = capabilities.meta.as_ref();
    meta.and_then(|meta| meta.get("terminal_output")).and_then(Value::as_bool) == Some(true)
}

/// Where it is shown.
pub(super) fn content(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(id.to_owned()))
}

/// It begins.
pub(super) fn info(id: &str, cwd: &Path) -> Meta {
    meta("terminal_info", json!({ "terminal_id": id, "cwd": cwd.to_string_lossy() }))
}

/// The next piece.
pub(super) fn output(id: &str, data: &str) -> Meta {
    meta("terminal_output", json!({ "terminal_id": id, "data": data }))
}

/// Output without what reaches beyond the picture: titles, links, the clipboard, and whatever else is said to a
/// terminal as a text of its own. A command that nobody was asked about must not write to the person's clipboard.
#[derive(Debug, Default)]
pub(super) struct Picture {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// An escape was the last character, and has not been passed on.
    Escape,
    /// In a text, after so many characters of it.
    Text(usize),
    /// The same, and an escape was the last of them.
    EscapeInText(usize),
}

/// The longest text that is left out; nobody writes more in good faith, and what follows is to be seen.
const LONGEST_TEXT: usize = 64 * 1024;

impl Picture {
    /// What of the next piece is passed on. A text may begin in one piece and end in another.
    pub(super) fn of(&mut self, piece: &str) -> String {
        let mut kept = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.state = match (self.state, c) {
                // Cancel and substitute end whatever was begun.
                (State::Escape | State::Text(_) | State::EscapeInText(_), '\u{18}' | '\u{1a}') => {
                    State::Plain
                }
                (State::Plain | State::Escape, '\u{1b}') => State::Escape,
                (State::Escape, 'P' | 'X' | ']' | '^' | '_') => State::Text(0),
                (
                    State::Plain | State::Escape,
                    '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}',
                ) => State::Text(0),
                (State::Escape, c) => {
                    kept.extend(['\u{1b}', c]);
                    State::Plain
                }
                (State::Plain, c) => {
                    kept.push(c);
                    State::Plain
                }
                (State::Text(_) | State::EscapeInText(_), '\u{7}' | '\u{9c}')
                | (State::EscapeInText(_), '\\') => State::Plain,
                (State::Text(length) | State::EscapeInText(length), _)
                    if length >= LONGEST_TEXT =>
                {
                    State::Plain
                }
                (State::Text(length) | State::EscapeInText(length), '\u{1b}') => {
                    State::EscapeInText(length + 1)
                }
                // A terminal takes these for the beginning of another one.
                (State::EscapeInText(length), 'P' | 'X' | ']' | '^' | '_')
                | (
                    State::EscapeInText(length),
                    '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}',
                ) => State::Text(length),
                (State::EscapeInText(_), c) => {
                    kept.extend(['\u{1b}', c]);
                    State::Plain
                }
                (State::Text(length), _) => State::Text(length + 1),
            };
        }
        kept
    }
}

/// It ended.
pub(super) fn exit(id: &str, exit_code: i32) -> Meta {
    let end = json!({ "terminal_id": id, "exit_code": exit_code, "signal": null });
    meta("terminal_exit", end)
}

fn meta(name: &str, value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert(name.to_owned(), value);
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> String {
        Picture::default().of(text)
    }

    /// spec ACP.21: Of output that is sent to be shown as a terminal nothing is passed on that sets a title, a link or the
    /// clipboard, or says anything else to the terminal as a text of its own.
    #[test]
    fn output_draws_and_says_nothing_else() {
        for (written, shown) in [
            ("\x1b[31mred\x1b[0m\r\n\x1b[2K\x1b(B", "\x1b[31mred\x1b[0m\r\n\x1b[2K\x1b(B"),
            ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
            ("a\x1b]0;title\x1b\\b", "ab"),
            ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("a\x1bP$q\"p\x1b\\b\x1b_x\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde"),
            ("a\u{9d}52;c;eA==\u{9c}b", "ab"),
            ("a\x1b\x1b]52;c;eA==\x07b", "ab"),
            ("a\x1b]x\x1b]52;c;eA==\x07b", "ab"),
            ("a\x1b]x\x1b[31mb", "a\x1b[31mb"),
            ("a\x1b]x\x18b", "ab"),
        ] {
            assert_eq!(whole(written), shown, "{written:?}");
        }
        let endless = format!("\x1b]52;c;{}seen", "A".repeat(LONGEST_TEXT));
        assert!(whole(&endless).ends_with("seen"));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in "[ab\x1b\\]P_\\\\\x07\x18;m\\[\u{9d}\u{9c}]{0,40}",
            cut in 0usize..40,
        ) {
            let all: Vec<char> = text.chars().collect();
            let cut = cut.min(all.len());
            let (one, two): (String, String) = (all[..cut].iter().collect(), all[cut..].iter().collect());
            let mut picture = Picture::default();
            let pieces = picture.of(&one) + &picture.of(&two);
            prop_assert_eq!(&pieces, &whole(&text));
            for text_begins in ["\x1b]", "\x1bP", "\x1b_", "\u{9d}"] {
                prop_assert!(!pieces.contains(text_begins), "{pieces:?}");
            }
            prop_assert_eq!(whole(&pieces), pieces);
        }
    }
}
