//! What is refused before anything is parsed: scripts that are too long, and characters that make
//! a script look different from what it is.

/// Longer scripts are not understood.
pub(super) const MAX_SCRIPT: usize = 32 * 1024;

/// The longest text in which commands are still looked for: what the kernel takes as one argument.
pub(super) const MAX_SEARCHED: usize = 128 * 1024;

/// More simple commands than this are not understood: nobody would read them in a prompt either.
pub(super) const MAX_COMMANDS: usize = 256;

/// How deep groups may be nested.
pub(super) const MAX_NESTING: usize = 32;

/// Characters that show nothing, show as a blank, or turn the order of what is shown. No shell
/// treats them as blanks, and a person who is asked would be shown something else.
const HIDDEN: &[(char, char)] = &[
    ('\u{00}', '\u{08}'),
    ('\u{0b}', '\u{1f}'),
    ('\u{7f}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{200f}'),
    ('\u{2028}', '\u{202f}'),
    ('\u{205f}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Why a script is refused unread, if it is.
pub(super) fn refusal(script: &str) -> Option<String> {
    if script.len() > MAX_SCRIPT {
        return Some(format!("it is longer than {} KiB", MAX_SCRIPT / 1024));
    }
    script.chars().find(|character| is_hidden(*character)).map(|character| {
        format!("it contains U+{:04X}, which does not show as what it is", u32::from(character))
    })
}

fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' | ' '..='~' => false,
        _ => HIDDEN.iter().any(|(first, last)| (*first..=*last).contains(&character)),
    }
}
