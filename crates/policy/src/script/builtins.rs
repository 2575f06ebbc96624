//! Words that a shell does not hand to a program: what they make of a script is not seen in its
//! words, so a script with one of them is not understood.

use super::ShellKind;
use crate::command::{Shape, SimpleCommand};

/// A word in the place of a program's name, and why it hides what the script does.
type Row = (&'static str, &'static str);

const KEYWORD: &str = "is a keyword for more than plain lists of commands";
const EVALUATES: &str = "runs text as a script";
const LATER: &str = "runs text at another time";
const RENAMES: &str = "changes what names of commands mean";
const ASSIGNS: &str = "assigns to names, and can run what stands in an index";
const OPTIONS: &str = "changes how the shell reads";
const BUILTINS: &str = "reaches the shell's own commands by another way";
const SHELL_ITSELF: &str = "changes the shell itself";

/// In every shell.
const ANYWHERE: &[Row] = &[
    ("!", KEYWORD),
    (".", EVALUATES),
    ("[[", KEYWORD),
    ("]]", KEYWORD),
    ("alias", RENAMES),
    ("autoload", RENAMES),
    ("bind", LATER),
    ("bindkey", LATER),
    ("builtin", BUILTINS),
    ("case", KEYWORD),
    ("compctl", LATER),
    ("compgen", EVALUATES),
    ("complete", LATER),
    ("compopt", LATER),
    ("coproc", KEYWORD),
    ("declare", ASSIGNS),
    ("disable", RENAMES),
    ("do", KEYWORD),
    ("done", KEYWORD),
    ("elif", KEYWORD),
    ("else", KEYWORD),
    ("emulate", OPTIONS),
    ("enable", RENAMES),
    ("end", KEYWORD),
    ("esac", KEYWORD),
    ("eval", EVALUATES),
    ("exec", SHELL_ITSELF),
    ("fc", EVALUATES),
    ("fi", KEYWORD),
    ("float", ASSIGNS),
    ("for", KEYWORD),
    ("foreach", KEYWORD),
    ("function", KEYWORD),
    ("functions", RENAMES),
    ("getopts", ASSIGNS),
    ("hash", RENAMES),
    ("if", KEYWORD),
    ("integer", ASSIGNS),
    ("let", ASSIGNS),
    ("local", ASSIGNS),
    ("mapfile", ASSIGNS),
    ("nocorrect", BUILTINS),
    ("noglob", OPTIONS),
    ("private", ASSIGNS),
    ("read", ASSIGNS),
    ("readarray", ASSIGNS),
    ("readonly", ASSIGNS),
    ("rehash", RENAMES),
    ("repeat", KEYWORD),
    ("sched", LATER),
    ("select", KEYWORD),
    ("setopt", OPTIONS),
    ("shopt", OPTIONS),
    ("source", EVALUATES),
    ("then", KEYWORD),
    ("time", KEYWORD),
    ("trap", LATER),
    ("typeset", ASSIGNS),
    ("unalias", RENAMES),
    ("unfunction", RENAMES),
    ("unhash", RENAMES),
    ("unset", ASSIGNS),
    ("unsetenv", ASSIGNS),
    ("unsetopt", OPTIONS),
    ("until", KEYWORD),
    ("vared", ASSIGNS),
    ("while", KEYWORD),
    ("zcompile", RENAMES),
    ("zle", LATER),
    ("zmodload", RENAMES),
    ("zparseopts", ASSIGNS),
    ("zstyle", LATER),
    ("{", KEYWORD),
    ("}", KEYWORD),
];

/// The shells' own commands with one argument that has a hidden effect: name, how an argument that
/// has it begins, and why.
const WITH_ARGUMENT: &[(&str, &str, &str)] = &[
    ("printf", "-v", ASSIGNS),
    ("test", "-v", "can run what stands in an index"),
    ("test", "-R", "can run what stands in an index"),
    ("[", "-v", "can run what stands in an index"),
    ("[", "-R", "can run what stands in an index"),
    ("wait", "-p", ASSIGNS),
    ("jobs", "-x", EVALUATES),
    ("print", "-", "can write to places that are not seen, and expands its text"),
];

/// Commands of zsh itself that work out numbers from text, and run what stands in an index there.
const ZSH_ARITHMETIC: &[&str] = &[
    "[", "break", "bye", "cd", "chdir", "continue", "dirs", "exit", "kill", "limit", "logout",
    "popd", "printf", "pushd", "return", "shift", "test", "ulimit", "umask",
];

/// Options of `set` that leave the reading of a script alone.
const SET_LETTERS: &str = "euvx";
const SET_NAMES: &[&str] = &["errexit", "nounset", "pipefail", "verbose", "xtrace"];

/// Variables whose value changes how a shell goes on, or is run by it.
const SHELL_VARIABLES: &[&str] = &[
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "FIGNORE",
    "FPATH",
    "GLOBIGNORE",
    "HISTCHARS",
    "IFS",
    "NULLCMD",
    "OPTARG",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "READNULLCMD",
    "SHELLOPTS",
    "ZDOTDIR",
    "cdpath",
    "fpath",
    "histchars",
];

/// Why a command keeps a script from being understood, if it does.
pub(super) fn hides(command: &SimpleCommand, shell: ShellKind) -> Option<String> {
    for assignment in &command.assignments {
        if SHELL_VARIABLES.contains(&assignment.name.as_str()) {
            return Some(format!("it sets {}, which changes the shell itself", assignment.name));
        }
    }
    let words = past_command(&command.words);
    let first = words.first()?;
    if first.shape == Shape::Pattern {
        return Some("the name of a command in it is a file name pattern".to_owned());
    }
    let name = first.as_literal()?;
    if let Ok(at) = ANYWHERE.binary_search_by_key(&name, |row| row.0) {
        return Some(format!("{name} {}", ANYWHERE[at].1));
    }
    if name.starts_with('%') || name == "-" || name.starts_with('=') {
        return Some(format!("{name} {BUILTINS}"));
    }
    let arguments = &words[1..];
    let literals = || arguments.iter().filter_map(|word| word.as_literal());
    for (builtin, start, why) in WITH_ARGUMENT {
        if name == *builtin && literals().any(|word| word.starts_with(start)) {
            return Some(format!("{name} {start} {why}"));
        }
    }
    match name {
        "set" if !literals().count().eq(&arguments.len()) || !is_plain_set(literals()) => {
            Some(format!("set {OPTIONS}"))
        }
        "export"
            if arguments.iter().any(|word| !word.as_literal().is_some_and(is_plain_export)) =>
        {
            Some(format!("export {ASSIGNS}"))
        }
        _ if shell == ShellKind::Zsh && ZSH_ARITHMETIC.contains(&name) => literals()
            .find(|word| word.contains('[') && word.len() > 1 && word.contains(['$', '`', '(']))
            .map(|_| format!("{name} can run what stands in an index")),
        _ => None,
    }
}

/// The words after `command`, which runs the shell's own commands as well. Asking it where a
/// command lies (`-v`) runs nothing.
fn past_command(words: &[crate::command::Word]) -> &[crate::command::Word] {
    let mut rest = words;
    while rest.first().and_then(|word| word.as_literal()) == Some("command") {
        let options = rest[1..].iter().take_while(|word| word.text.starts_with('-'));
        let mut count = 0;
        for option in options {
            if option.text.contains(['v', 'V']) {
                return &words[..1];
            }
            count += 1;
        }
        rest = &rest[1 + count..];
    }
    if rest.is_empty() { &words[..words.len().min(1)] } else { rest }
}

fn is_plain_set<'a>(arguments: impl Iterator<Item = &'a str>) -> bool {
    let mut wants_name = false;
    let mut any = false;
    for argument in arguments {
        any = true;
        if wants_name {
            wants_name = false;
            if !SET_NAMES.contains(&argument) {
                return false;
            }
            continue;
        }
        let Some(letters) = argument.strip_prefix(['-', '+']) else {
            return false;
        };
        let mut letters = letters.chars();
        match letters.next_back() {
            Some('o') => wants_name = true,
            Some(last) if SET_LETTERS.contains(last) => {}
            _ => return false,
        }
        if !letters.all(|letter| SET_LETTERS.contains(letter)) {
            return false;
        }
    }
    any && !wants_name
}

fn is_plain_export(argument: &str) -> bool {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name && !SHELL_VARIABLES.contains(&name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted_for_its_search() {
        assert!(super::ANYWHERE.is_sorted_by(|a, b| a.0 < b.0));
    }
}
