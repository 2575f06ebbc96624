//! What kind of word it is, once its quotes have been undone.
//!
//! Each reader undoes quoting in its own way and hands over the text together with its *bare*
//! characters: the same text, in which every character that was quoted is a NUL. What a shell would
//! do with a word depends on its bare characters only.

use super::ShellKind;
use crate::command::{Shape, Word};

/// Stands for a quoted character.
pub(super) const QUOTED: char = '\0';

/// Where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Among the words of a command, or as the target of a redirection.
    Command,
    /// The value of an assignment, in which no names of files are matched.
    Value,
}

/// A word whose quotes were undone.
#[derive(Debug, Default)]
pub(super) struct Undone {
    pub(super) text: String,
    pub(super) bare: String,
}

impl Undone {
    pub(super) fn push_bare(&mut self, character: char) {
        self.text.push(character);
        self.bare.push(character);
    }

    pub(super) fn push_quoted(&mut self, character: char) {
        self.text.push(character);
        self.bare.push(QUOTED);
    }
}

pub(super) const EXPANSION: &str = "it uses `$` expansion";
pub(super) const BACKTICK: &str = "it uses command substitution";
const UNREADABLE: &str = "it contains a word that could be read in two ways";
const BRACES: &str = "it uses brace expansion";
const HOME_OF_ANOTHER: &str = "it uses `~` for something other than the home directory";
const QUOTED_PATTERN: &str = "it uses a file name pattern with quotes in it";
const ZSH_ONLY: &str = "it contains a character that zsh may read in its own way";

/// The word, or why nothing certain is known about it.
pub(super) fn finish(undone: Undone, shell: ShellKind, place: Place) -> Result<Word, &'static str> {
    // Most words are made of nothing but these.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:@+%\0".contains(&byte);
    if undone.bare.bytes().all(is_plain) {
        return Ok(Word { text: undone.text, shape: Shape::Literal });
    }
    let shape = shape(&undone.bare, shell, place)?;
    Ok(Word { text: undone.text, shape })
}

fn shape(bare: &str, shell: ShellKind, place: Place) -> Result<Shape, &'static str> {
    if bare.contains(['$', '`']) {
        return Err(EXPANSION);
    }
    let breaks = [' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')', '\\', '"', '\''];
    if bare.starts_with('#') || bare.contains(breaks) {
        return Err(UNREADABLE);
    }
    check_braces(bare, shell)?;
    if shell == ShellKind::Zsh {
        check_zsh(bare)?;
    }
    let is_home = tilde(bare, place)?;
    let is_test = bare == "[" || bare == "]";
    let is_pattern = place == Place::Command && !is_test && bare.contains(['*', '?', '[']);
    match (is_home, is_pattern) {
        (true, true) => Err("it uses a file name pattern in the home directory"),
        (true, false) => Ok(Shape::Home),
        (false, true) if bare.contains(QUOTED) => Err(QUOTED_PATTERN),
        (false, true) => Ok(Shape::Pattern),
        (false, false) => Ok(Shape::Literal),
    }
}

/// `{}` and `{word}` are only themselves; with a comma or dots they would be expanded.
fn check_braces(bare: &str, shell: ShellKind) -> Result<(), &'static str> {
    let mut inside = None;
    for (at, character) in bare.char_indices() {
        match (character, inside) {
            ('{', None) => inside = Some(at),
            ('}', Some(start)) => {
                if shell == ShellKind::Zsh && at != start + 1 {
                    return Err(ZSH_ONLY);
                }
                inside = None;
            }
            ('{' | '}', _) => return Err(BRACES),
            (character, Some(_)) if !character.is_ascii_alphanumeric() => return Err(BRACES),
            _ => {}
        }
    }
    if inside.is_some() { Err(BRACES) } else { Ok(()) }
}

/// Whether the word begins with the home directory.
fn tilde(bare: &str, place: Place) -> Result<bool, &'static str> {
    if !bare.contains('~') {
        return Ok(false);
    }
    let name_ends = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_assignment = place == Place::Value
        || name_ends.is_some_and(|at| at > 0 && bare[at..].starts_with(['=', '+']));
    if is_assignment && (bare.starts_with('~') || bare.contains("=~") || bare.contains(":~")) {
        return Err(HOME_OF_ANOTHER);
    }
    match bare.strip_prefix('~') {
        None => Ok(false),
        Some(rest) if (rest.is_empty() || rest.starts_with('/')) && !rest.contains(QUOTED) => {
            Ok(true)
        }
        Some(_) => Err(HOME_OF_ANOTHER),
    }
}

/// Bare characters with a meaning in zsh, of which some depend on options that a start-up file may
/// have set. `HEAD~1` is let through: the worst that its pattern form can name is `HEAD`.
fn check_zsh(bare: &str) -> Result<(), &'static str> {
    let starts_as_name = bare.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_fine = |(at, character): (usize, char)| match character {
        '~' => at == 0 || starts_as_name,
        '=' => at > 0 || bare.len() == 1,
        '{' | '}' | '*' | '?' | '[' | ']' | QUOTED => true,
        _ => character.is_alphanumeric() || "-_./,:@+%".contains(character),
    };
    if bare.char_indices().all(is_fine) { Ok(()) } else { Err(ZSH_ONLY) }
}

/// Whether a `$` in double quotes stands for itself, by the character after it. Shells differ on
/// many of them; these few end a line or an alternative in a search pattern in all of them.
pub(super) fn dollar_is_itself(next: Option<char>) -> bool {
    matches!(next, None | Some(' ' | '|' | '/'))
}
