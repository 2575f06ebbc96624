//! What is refused before anything is parsed: scripts that are too long, and characters that make
//! a script look different from what it is.

use sandgate_protocol::{is_invisible, is_odd_blank};

/// Longer scripts are not understood.
pub(super) const MAX_SCRIPT: usize = 32 * 1024;

/// The longest text in which commands are still looked for: what the kernel takes as one argument.
pub(super) const MAX_SEARCHED: usize = 128 * 1024;

/// More simple commands than this are not understood: nobody would read them in a prompt either.
pub(super) const MAX_COMMANDS: usize = 256;

/// How deep groups may be nested.
pub(super) const MAX_NESTING: usize = 32;

/// Why a script is refused unread, if it is.
pub(super) fn refusal(script: &str) -> Option<String> {
    if script.len() > MAX_SCRIPT {
        return Some(format!("it is longer than {} KiB", MAX_SCRIPT / 1024));
    }
    if let Some(character) = script.chars().find(|character| is_hidden(*character)) {
        let point = u32::from(character);
        return Some(format!("it contains U+{point:04X}, which does not show as what it is"));
    }
    is_read_by_locale(script).then(|| {
        "what stands behind a letter that is not ASCII is part of it in some locales".to_owned()
    })
}

/// Whether there are locales in which the script is another one. In those of GBK, Big5 or Shift JIS the last byte of a
/// letter in UTF-8 can begin a letter of two bytes, whose second is a backslash, a backquote or a bar. bash takes it for
/// that: in `echo 中\; rm x` it sees two commands.
fn is_read_by_locale(script: &str) -> bool {
    script.as_bytes().windows(2).any(|pair| !pair[0].is_ascii() && b"\\`|".contains(&pair[1]))
}

/// Characters that show nothing, show as a blank, or turn the order of what is shown. No shell
/// treats them as blanks, and a person who is asked would be shown something else. What chooses
/// between two shapes of the character before it, as in many an emoji, hides nothing.
fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' | ' '..='~' | '\u{fe00}'..='\u{fe0f}' => false,
        _ => character.is_control() || is_invisible(character) || is_odd_blank(character),
    }
}
