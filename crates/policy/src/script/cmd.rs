//! Scripts for cmd.exe, of which only one plain command is understood.

use super::guard;
use crate::command::{SimpleCommand, Word};

/// Characters that cmd reads in its own way, some of them even inside quotes, and blanks other than
/// the space. `=`, `,` and `;` separate words in some commands and not in others.
const SPECIAL: &[char] =
    &['%', '^', '&', '|', '<', '>', '(', ')', '"', '!', '\n', '\t', '=', ',', ';', '@', '\'', '`'];

/// The command, and why the script is not understood, if it is not.
pub(super) fn read(script: &str) -> (Vec<SimpleCommand>, Option<String>) {
    let refusal = guard::refusal(script).or_else(|| {
        script
            .contains(SPECIAL)
            .then(|| "it uses characters that cmd reads in its own way".to_owned())
    });
    // Without quotes and operators nothing is left to undo; otherwise this is the nearest guess.
    let parts = script.split(['&', '|', '\n']).map(|part| {
        let words = part.split([' ', '\t', '"', '(', ')', '@']).filter(|word| !word.is_empty());
        SimpleCommand { words: words.map(Word::literal).collect(), ..SimpleCommand::default() }
    });
    let mut parts = parts.filter(|command| !command.words.is_empty());
    let mut commands: Vec<SimpleCommand> = parts.by_ref().take(guard::MAX_COMMANDS).collect();
    if parts.next().is_some() {
        commands.push(SimpleCommand::not_searched());
    }
    (commands, refusal)
}
