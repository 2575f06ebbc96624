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
    script.chars().find(|character| is_hidden(*character)).map(|character| {
        format!("it contains U+{:04X}, which does not show as what it is", u32::from(character))
    })
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
