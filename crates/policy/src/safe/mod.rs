//! Commands that are known to be safe: they write nothing, run nothing else and reach no network,
//! whatever their operands are, so that nobody has to be asked about them.
//!
//! Everything here says what is *allowed*: programs, their options, how many operands they take.
//! What no table names is not safe. `docs/design/safe.md` says why.
//!
//! The tables are `text`, `files`, `search`, `system` and, for git, `git`; the small
//! languages that need a reader of their own are `find`, `sed` and `builtins`. What Windows'
//! shells run is in `powershell` and `cmd`.

mod builtins;
mod cmd;
mod files;
mod find;
mod git;
mod options;
mod places;
mod powershell;
mod search;
mod sed;
mod system;
mod text;
mod versions;

use crate::command::{Connective, Redirection, RedirectionKind, Shape, SimpleCommand, Word};
use crate::program::is_system_program;
use crate::script::{Reader, ShellKind};
use crate::surroundings::Surroundings;
use options::Program;
use std::path::Path;

/// Why a command is not known to be safe, in a person's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotSafe(pub String);

/// Whether one simple command is known to be safe.
///
/// # Errors
/// When it is not, with the first reason found.
pub fn check(command: &SimpleCommand, reader: Reader) -> Result<(), NotSafe> {
    if let Some(assignment) = command.assignments.first() {
        let name = shown(&assignment.name);
        return Err(NotSafe(format!("it sets {name}, which can change what programs do")));
    }
    for redirection in &command.redirections {
        check_redirection(redirection, reader)?;
    }
    let Some((first, arguments)) = command.words.split_first() else {
        return Err(NotSafe("it names no program".to_owned()));
    };
    let Some(name) = first.as_literal() else {
        return Err(NotSafe("the program's name is not known before it runs".to_owned()));
    };
    for word in arguments {
        check_word(word)?;
    }
    places::check(name, arguments)?;
    match reader {
        Reader::Kernel => check_program(name, arguments),
        Reader::Shell(ShellKind::Bash | ShellKind::Zsh | ShellKind::Posix) => {
            builtins::check(name, arguments).unwrap_or_else(|| check_program(name, arguments))
        }
        Reader::Shell(ShellKind::PowerShell) => powershell::check(name, arguments),
        Reader::Shell(ShellKind::Cmd) => cmd::check(name, arguments),
    }
}

/// Whether commands of one script, each of them safe alone, are also safe together.
///
/// # Errors
/// When they are not, with the first reason found.
pub fn together(commands: &[SimpleCommand], around: &Surroundings) -> Result<(), NotSafe> {
    let mut moved = false;
    for command in commands {
        if command.left_running || command.connective == Connective::Beside {
            return Err(NotSafe("a part of it goes on in the background".to_owned()));
        }
        let name = command.program().unwrap_or_default();
        // git obeys the configuration of the repository that it is run in, and the one that was
        // looked at before is the session's own. No other program here reads one.
        if moved && is_git(name) {
            return Err(NotSafe("it runs git in another directory".to_owned()));
        }
        moved |= moves(name) && !stays(command, around);
    }
    Ok(())
}

/// Whether a `cd` leads to where the commands run anyway: `cd .`, or the whole path of that directory.
/// Neither is looked up in `CDPATH`.
fn stays(command: &SimpleCommand, around: &Surroundings) -> bool {
    let [name, directory] = command.words.as_slice() else { return false };
    let (Some("cd"), Some(directory)) = (name.as_literal(), directory.as_literal()) else {
        return false;
    };
    let here = around.cwd.as_deref().and_then(Path::to_str);
    let directory = directory.strip_suffix('/').unwrap_or(directory);
    directory == "." || (directory.starts_with('/') && Some(directory) == here)
}

/// Whether a command that is safe alone is safe in a repository whose configuration has git run these
/// programs.
///
/// # Errors
/// When git would look at something that they are run for.
pub fn check_repository(command: &SimpleCommand, git_runs: &[String]) -> Result<(), NotSafe> {
    let name = command.program().unwrap_or_default();
    match git_runs.first() {
        Some(first) if is_git(name) && git::looks_inside(&command.words[1..]) => {
            let more = match git_runs.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let first = shown(first);
            Err(NotSafe(format!("this repository's configuration runs programs: {first}{more}")))
        }
        _ => Ok(()),
    }
}

/// Whether a command that is safe is so only because git is told, by its environment, to obey nothing of
/// the repository's.
pub fn depends_on_git(command: &SimpleCommand) -> bool {
    is_git(command.program().unwrap_or_default())
}

/// Whether a name is git's, in any shell.
fn is_git(name: &str) -> bool {
    let program = is_system_program(name).unwrap_or(name);
    program.eq_ignore_ascii_case("git") || program.eq_ignore_ascii_case("git.exe")
}

/// Whether a command changes the directory that later ones run in. Which shell reads it is not asked:
/// some of them take a name in any case.
fn moves(name: &str) -> bool {
    const MOVING: [&str; 7] =
        ["cd", "chdir", "popd", "push-location", "pushd", "set-location", "sl"];
    MOVING.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// A program of its own, with the words after its name.
fn check_program(name: &str, arguments: &[Word]) -> Result<(), NotSafe> {
    let Some(program) = is_system_program(name) else {
        return Err(unknown(name));
    };
    if cfg!(windows) && arguments.iter().any(|word| powershell::is_remote(&word.text)) {
        return Err(NotSafe("it names another computer".to_owned()));
    }
    match program {
        "date" => system::check_date(arguments),
        "find" => find::check(arguments),
        "git" => git::check(arguments),
        "sed" => sed::check(arguments),
        "unzip" => files::check_unzip(arguments),
        "jq" if arguments.iter().any(|word| text::may_go_on(&word.text)) => {
            Err(NotSafe("its program could go on for ever".to_owned()))
        }
        _ => match listed(program) {
            Some(entry) => options::check(entry, arguments),
            None if versions::asks_for_version(name, program, arguments) => Ok(()),
            None => Err(unknown(name)),
        },
    }
}

/// Every table of programs. Each is sorted by name.
const TABLES: [&[Program]; 4] =
    [text::PROGRAMS, files::PROGRAMS, search::PROGRAMS, system::PROGRAMS];

fn listed(name: &str) -> Option<&'static Program> {
    TABLES.iter().find_map(|table| options::named_in(table, name))
}

fn unknown(name: &str) -> NotSafe {
    NotSafe(format!("{} is not among the commands that are known to be safe", shown(name)))
}

/// Whether a word's shape leaves enough known about it.
fn check_word(word: &Word) -> Result<(), NotSafe> {
    // No program can be given one: whoever starts it cuts the word off there, or does not start it.
    if word.text.contains('\0') {
        return Err(NotSafe(format!("{} has a NUL in it", shown(&word.text))));
    }
    match word.shape {
        Shape::Literal | Shape::Home => Ok(()),
        // zsh runs code that is written in a pattern's qualifiers, and no plain pattern has these.
        Shape::Pattern if !word.text.contains(UNUSUAL_IN_PATTERNS) => Ok(()),
        Shape::Pattern => {
            Err(NotSafe(format!("the pattern {} is more than a plain one", shown(&word.text))))
        }
        Shape::Dynamic => {
            Err(NotSafe(format!("what {} stands for is not known", shown(&word.text))))
        }
    }
}

const UNUSUAL_IN_PATTERNS: [char; 15] =
    ['(', ')', '{', '}', '<', '>', '|', '&', ';', '$', '`', '"', '\'', '\\', '~'];

fn check_redirection(redirection: &Redirection, reader: Reader) -> Result<(), NotSafe> {
    let target = &redirection.target;
    let not_safe = |what: &str| Err(NotSafe(format!("{what} {}", shown(&target.text))));
    if matches!(target.shape, Shape::Dynamic | Shape::Pattern) {
        return not_safe("it is not known where a redirection leads:");
    }
    let literal = target.as_literal();
    match redirection.kind {
        RedirectionKind::HereDocument | RedirectionKind::HereString => Ok(()),
        RedirectionKind::Duplicate if literal.is_some_and(is_descriptor) => Ok(()),
        RedirectionKind::Duplicate => not_safe("it is not known where a redirection leads:"),
        // bash connects when these are opened, by these letters and not through the file system.
        RedirectionKind::Read if names_a_connection(&target.text) => not_safe("it connects to"),
        RedirectionKind::Read if powershell::is_remote(&target.text) && is_windows(reader) => {
            not_safe("it connects to")
        }
        RedirectionKind::Read if places::acts(target) => not_safe("it may act by opening"),
        RedirectionKind::Read if places::keeps_secrets(&target.text, false) => {
            not_safe("projects keep passwords and keys in")
        }
        RedirectionKind::Read => Ok(()),
        _ if literal == Some("/dev/null") && !is_windows(reader) => Ok(()),
        _ if reader == Reader::Shell(ShellKind::Cmd)
            && literal.is_some_and(|name| name.eq_ignore_ascii_case("nul")) =>
        {
            Ok(())
        }
        _ => not_safe("it writes to"),
    }
}

fn is_windows(reader: Reader) -> bool {
    matches!(reader, Reader::Shell(ShellKind::PowerShell | ShellKind::Cmd))
}

/// `1`, `-` (close) or `1-` (move).
fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    text == "-" || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn names_a_connection(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    path.starts_with('/')
        && parts.next() == Some("dev")
        && matches!(parts.next(), Some("tcp" | "udp"))
}

/// A word as a reason can quote it: short, and without characters that play with the screen.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut quoted = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST {
            quoted.push('…');
            break;
        }
        match character {
            '\u{20}'..='\u{7e}' => quoted.push(character),
            _ if character.is_alphanumeric() => quoted.push(character),
            _ => quoted.extend(character.escape_unicode()),
        }
    }
    if quoted.is_empty() { "''".to_owned() } else { quoted }
}

#[cfg(test)]
mod tests;
