//! Paths at which looking is doing: devices, which act when they are opened, and directories in which
//! naming a file asks another computer for it.
//!
//! Only absolute paths are looked at, by their letters. What leads there by another way meets the
//! sandbox, in which neither is.

use super::{NotSafe, shown};
use crate::command::Word;

/// What is in `/dev` and does nothing by being opened.
const QUIET: [&str; 10] =
    ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"];

/// Programs that look at the entries of directories and open nothing else.
const LOOKING: [&str; 14] = [
    "[", "cd", "df", "dir", "du", "file", "find", "ls", "pushd", "readlink", "realpath", "stat",
    "test", "vdir",
];

/// Programs to which a path is a text.
const TEXT: [&str; 8] = [":", "basename", "dirname", "echo", "expr", "false", "printf", "true"];

/// Whether no word of a program leads to such a place.
pub(super) fn check(program: &str, arguments: &[Word]) -> Result<(), NotSafe> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let looks = TEXT.contains(&name) || LOOKING.contains(&name);
    if let Some(word) = arguments.iter().find(|word| !looks && keeps_secrets(&word.text)) {
        let text = shown(&word.text);
        return Err(NotSafe(format!("{text} is where projects keep passwords and keys")));
    }
    let Some((word, place)) = arguments.iter().find_map(|word| Some((word, acting(&word.text)?)))
    else {
        return Ok(());
    };
    let harmless = TEXT.contains(&name) || (place == Acting::Device && LOOKING.contains(&name));
    if harmless {
        return Ok(());
    }
    let text = shown(&word.text);
    Err(NotSafe(match place {
        Acting::Device => format!("{text} is a device, and some act when they are opened"),
        Acting::Elsewhere => format!("{text} may lie on another computer, which is asked for it"),
    }))
}

/// Whether opening a path may do more than read what is in a file.
pub(super) fn acts(path: &str) -> bool {
    acting(path).is_some()
}

/// Whether a word, or the value that an option has, names a file of passwords as projects keep them:
/// `.env`, `.env.local`, or a pattern that meets them. Examples of such files hold none.
pub(super) fn keeps_secrets(text: &str) -> bool {
    let value = text.rsplit('=').next().unwrap_or(text);
    let file = value.rsplit('/').next().unwrap_or(value);
    let file = if text.starts_with('-') { &file[file.find(".e").unwrap_or(0)..] } else { file };
    let folded = file.to_ascii_lowercase();
    let example = ["example", "sample", "template", "dist"].iter().any(|end| folded.ends_with(end));
    let hidden = folded.starts_with('.') && folded.contains(['*', '?', '[']);
    let pattern =
        hidden && (folded.len() < 4 || folded.starts_with(".e") || folded.starts_with(".["));
    !example && (folded == ".env" || folded.starts_with(".env.") || folded == ".envrc" || pattern)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Acting {
    Device,
    Elsewhere,
}

/// What looking at a word's path would do: of the whole word, or of the value that an option has.
fn acting(text: &str) -> Option<Acting> {
    let at = text.find('/')?;
    let begins = at == 0 || text.starts_with('-') || text[..at].ends_with('=');
    if !begins {
        return None;
    }
    let mut parts = text[at..].split('/').filter(|part| !matches!(*part, "" | "."));
    match (parts.next()?, parts.next()?) {
        ("dev", name) if !QUIET.contains(&name) => Some(Acting::Device),
        // These wait for what comes next, and never end.
        ("proc", "kmsg") => Some(Acting::Device),
        ("sys", "kernel") if text.ends_with("/trace_pipe") => Some(Acting::Device),
        // Where automounters and the AFS keep the names of computers.
        ("net" | "afs", _) => Some(Acting::Elsewhere),
        _ => None,
    }
}
