//! The names of keys, and what a terminal sends for them.

use std::fmt;

/// What the arrow keys send, which the program on the terminal chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CursorKeys {
    /// `ESC [ A` and so on.
    #[default]
    Normal,
    /// `ESC O A` and so on, as full-screen programs ask for.
    Application,
}

/// A name that no key has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no key called {name:?}{}", Nearest(.nearest))]
pub struct UnknownKey {
    /// The name.
    pub name: String,
    /// Names of keys that look like it.
    pub nearest: Vec<String>,
}

struct Nearest<'a>(&'a [String]);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str(
                "; write a single character, a name such as \"enter\", or \"ctrl-\" and a key",
            ),
            names => write!(f, "; did you mean {}?", names.join(" or ")),
        }
    }
}

/// What a key sends.
#[derive(Debug, Clone, Copy)]
enum Sends {
    /// This character, whatever else is held down.
    Text(u8),
    /// `ESC [ X`, or `ESC O X` in application mode.
    Cursor(u8),
    /// `ESC O X`.
    Function(u8),
    /// `ESC [ N ~`.
    Numbered(u8),
}

/// All keys that have a name. Those with several have them in a row, the usual one first.
const KEYS: &[(&str, Sends)] = &[
    ("enter", Sends::Text(b'\r')),
    ("return", Sends::Text(b'\r')),
    ("esc", Sends::Text(0x1b)),
    ("escape", Sends::Text(0x1b)),
    ("tab", Sends::Text(b'\t')),
    ("space", Sends::Text(b' ')),
    ("backspace", Sends::Text(0x7f)),
    ("up", Sends::Cursor(b'A')),
    ("down", Sends::Cursor(b'B')),
    ("right", Sends::Cursor(b'C')),
    ("left", Sends::Cursor(b'D')),
    ("end", Sends::Cursor(b'F')),
    ("home", Sends::Cursor(b'H')),
    ("insert", Sends::Numbered(2)),
    ("ins", Sends::Numbered(2)),
    ("delete", Sends::Numbered(3)),
    ("del", Sends::Numbered(3)),
    ("pageup", Sends::Numbered(5)),
    ("pgup", Sends::Numbered(5)),
    ("pagedown", Sends::Numbered(6)),
    ("pgdn", Sends::Numbered(6)),
    ("f1", Sends::Function(b'P')),
    ("f2", Sends::Function(b'Q')),
    ("f3", Sends::Function(b'R')),
    ("f4", Sends::Function(b'S')),
    ("f5", Sends::Numbered(15)),
    ("f6", Sends::Numbered(17)),
    ("f7", Sends::Numbered(18)),
    ("f8", Sends::Numbered(19)),
    ("f9", Sends::Numbered(20)),
    ("f10", Sends::Numbered(21)),
    ("f11", Sends::Numbered(23)),
    ("f12", Sends::Numbered(24)),
];

/// What can be held down while a key is pressed, by its names, and what it adds to a sequence's number.
const MODIFIERS: &[(&str, u8)] = &[
    ("shift", SHIFT),
    ("s", SHIFT),
    ("alt", ALT),
    ("meta", ALT),
    ("m", ALT),
    ("a", ALT),
    ("ctrl", CTRL),
    ("control", CTRL),
    ("c", CTRL),
];

const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;

/// What a terminal sends when these keys are pressed one after the other. An element is a key or several
/// with spaces between them: `ctrl-c`, `c-c`, `^C`, `esc`, `shift-tab`, `alt-x`, `ctrl-up`, `f5`, `q`,
/// `up up enter`. Case matters for single characters only.
///
/// # Errors
/// When a name is no key's. Then nothing is sent at all.
pub fn keys(names: &[impl AsRef<str>], cursor: CursorKeys) -> Result<Vec<u8>, UnknownKey> {
    let mut bytes = Vec::new();
    for name in names {
        let name = name.as_ref();
        if single(name).is_some() {
            bytes.extend(key(name, cursor)?);
            continue;
        }
        let before = bytes.len();
        for name in name.split_whitespace() {
            bytes.extend(key(name, cursor)?);
        }
        if bytes.len() == before {
            return Err(unknown(name));
        }
    }
    Ok(bytes)
}

fn key(name: &str, cursor: CursorKeys) -> Result<Vec<u8>, UnknownKey> {
    let (held, base) = modifiers(name);
    let sent = match single(base) {
        Some(c) => character(c, held),
        None => named(base).and_then(|sends| with_modifiers(sends, held, cursor)),
    };
    sent.ok_or_else(|| unknown(name))
}

/// What is held down, and the key itself.
fn modifiers(name: &str) -> (u8, &str) {
    if let Some(key) = name.strip_prefix('^').filter(|key| single(key).is_some()) {
        return (CTRL, key);
    }
    let mut held = 0;
    let mut rest = name;
    while let Some(at) = rest.find(['-', '+']) {
        let (word, key) = (&rest[..at], &rest[at + 1..]);
        let modifier = MODIFIERS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        match modifier {
            Some((_, bit)) if !key.is_empty() => (held, rest) = (held | bit, key),
            _ => break,
        }
    }
    (held, rest)
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

fn named(name: &str) -> Option<Sends> {
    let found = KEYS.iter().find(|(key, _)| name.eq_ignore_ascii_case(key));
    found.map(|(_, sends)| *sends)
}

/// A character's key. There are fewer control characters than characters.
fn character(c: char, held: u8) -> Option<Vec<u8>> {
    let mut sent = if held & ALT == 0 { Vec::new() } else { vec![0x1b] };
    if held & CTRL == 0 {
        let c = if held & SHIFT == 0 { c } else { c.to_ascii_uppercase() };
        sent.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        return Some(sent);
    }
    sent.push(match c {
        '@'..='_' | 'a'..='z' => u8::try_from(c).ok()? & 0x1f,
        ' ' => 0,
        '/' => 0x1f,
        '?' => 0x7f,
        _ => return None,
    });
    Some(sent)
}

fn with_modifiers(sends: Sends, held: u8, cursor: CursorKeys) -> Option<Vec<u8>> {
    let number = held + 1;
    Some(match (sends, held) {
        (Sends::Text(b'\t'), _) if held & SHIFT != 0 => match held {
            SHIFT => b"\x1b[Z".to_vec(),
            _ => format!("\x1b[1;{number}Z").into_bytes(),
        },
        (Sends::Text(byte), _) => {
            let byte = match (byte, held & CTRL) {
                (b' ', CTRL) => 0,
                (0x7f, CTRL) => 0x08,
                _ => byte,
            };
            if held & ALT == 0 { vec![byte] } else { vec![0x1b, byte] }
        }
        (Sends::Cursor(letter), 0) if cursor == CursorKeys::Normal => vec![0x1b, b'[', letter],
        (Sends::Cursor(letter) | Sends::Function(letter), 0) => vec![0x1b, b'O', letter],
        (Sends::Cursor(letter) | Sends::Function(letter), _) => {
            format!("\x1b[1;{number}{}", char::from(letter)).into_bytes()
        }
        (Sends::Numbered(n), 0) => format!("\x1b[{n}~").into_bytes(),
        (Sends::Numbered(n), _) => format!("\x1b[{n};{number}~").into_bytes(),
    })
}

fn unknown(name: &str) -> UnknownKey {
    let (_, base) = modifiers(name);
    let held = &name[..name.len() - base.len()];
    let base = base.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = KEYS
        .iter()
        .map(|(key, _)| (distance(&base, key), *key))
        .filter(|(distance, key)| *distance <= 2 && *distance < key.len())
        .collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    near.retain(|(distance, _)| Some(*distance) == least);
    let nearest = near.iter().take(3).map(|(_, key)| format!("{held}{key}")).collect();
    // A name can be as long as whoever wrote it likes, and is shown.
    UnknownKey { name: name.chars().take(40).collect(), nearest }
}

/// How many characters must be added, left out or exchanged to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    if one.len() > other.len() + 2 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let exchanged = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_way_to_name_a_key_sends_what_a_terminal_sends() {
        for (names, sent) in [
            ("ctrl-c", "\x03"),
            ("c-c", "\x03"),
            ("C-c", "\x03"),
            ("^C", "\x03"),
            ("^c", "\x03"),
            ("Ctrl+C", "\x03"),
            ("ctrl-d ctrl-z ctrl-\\", "\x04\x1a\x1c"),
            ("ctrl-space", "\0"),
            ("ctrl-[", "\x1b"),
            ("esc", "\x1b"),
            ("Enter", "\r"),
            ("return", "\r"),
            ("tab", "\t"),
            ("shift-tab", "\x1b[Z"),
            ("backspace", "\x7f"),
            ("delete insert", "\x1b[3~\x1b[2~"),
            ("up down right left", "\x1b[A\x1b[B\x1b[C\x1b[D"),
            ("home end pageup pagedown", "\x1b[H\x1b[F\x1b[5~\x1b[6~"),
            ("f1 f4 f5 f12", "\x1bOP\x1bOS\x1b[15~\x1b[24~"),
            ("space", " "),
            ("alt-x", "\x1bx"),
            ("meta-x", "\x1bx"),
            ("alt-enter", "\x1b\r"),
            ("ctrl-alt-c", "\x1b\x03"),
            ("ctrl-up", "\x1b[1;5A"),
            ("shift-alt-left", "\x1b[1;4D"),
            ("ctrl-delete", "\x1b[3;5~"),
            ("shift-f1", "\x1b[1;2P"),
            (": w q enter", ":wq\r"),
            ("Q", "Q"),
            ("-", "-"),
            ("^", "^"),
            ("ctrl--", ""),
            ("ü", "ü"),
            (" ", " "),
        ] {
            match keys(&[names], CursorKeys::Normal) {
                Ok(bytes) => assert_eq!(bytes, sent.as_bytes(), "{names}"),
                Err(e) => assert_eq!(sent, "", "{names}: {e}"),
            }
        }
    }

    #[test]
    fn arrows_follow_the_mode_that_the_program_chose() {
        let sent = |names: &[&str]| keys(names, CursorKeys::Application).unwrap();
        assert_eq!(sent(&["up", "home"]), b"\x1bOA\x1bOH");
        assert_eq!(sent(&["ctrl-up", "delete"]), b"\x1b[1;5A\x1b[3~");
    }

    #[test]
    fn an_unknown_key_is_refused_with_those_that_look_like_it() {
        let error = |name: &str| keys(&["up", name], CursorKeys::Normal).unwrap_err().to_string();
        assert_eq!(error("entr"), "there is no key called \"entr\"; did you mean enter?");
        assert_eq!(
            error("ctrl-pgupp"),
            "there is no key called \"ctrl-pgupp\"; did you mean ctrl-pgup?"
        );
        let hint = "; write a single character, a name such as \"enter\", or \"ctrl-\" and a key";
        assert_eq!(
            error("hyper-enormous"),
            format!("there is no key called \"hyper-enormous\"{hint}")
        );
        assert_eq!(error(""), format!("there is no key called \"\"{hint}"));
        assert_eq!(error("ctrl-ü"), format!("there is no key called \"ctrl-ü\"{hint}"));
    }

    proptest! {
        #[test]
        fn any_name_is_a_key_or_an_error(name in ".{0,60}") {
            if let Err(e) = keys(&[&name], CursorKeys::Normal) {
                prop_assert!(e.to_string().len() < 600);
            }
        }
    }
}
