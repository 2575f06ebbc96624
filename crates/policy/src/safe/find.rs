//! `find`: its expression is a language of its own, of which the parts that only look are allowed.
//!
//! Left out are `-exec`, `-execdir`, `-ok`, `-okdir` (run), `-delete` (removes), `-fprint`,
//! `-fprint0`, `-fprintf`, `-fls` (write) and `-user NAME`, `-group NAME` (ask the user database,
//! which may be on the network; numbers are allowed).

use super::{NotSafe, shown};
use crate::command::{Shape, Word};

/// Before the starting points. -E is BSD's; -D prints how the expression is understood.
const LEADING: [&str; 10] =
    ["-E", "-H", "-L", "-O0", "-O1", "-O2", "-O3", "-P", "--help", "--version"];

/// What stands alone.
const ALONE: [&str; 37] = [
    "!",
    "(",
    ")",
    ",",
    "-a",
    "-and",
    "-d",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-help",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-noignore_readdir_race",
    "-noleaf",
    "-not",
    "-nouser",
    "-nowarn",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-version",
    "-warn",
    "-writable",
    "-xdev",
    "--help",
    "--version",
];

/// What takes one value, which does not begin with a dash.
const WITH_TEXT: [&str; 24] = [
    "-anewer",
    "-cnewer",
    "-context",
    "-files0-from",
    "-fstype",
    "-ilname",
    "-iname",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-name",
    "-newer",
    "-path",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-type",
    "-wholename",
    "-xattrname",
    "-xtype",
];

/// What takes a number, with `+` or `-` before it and a unit behind it.
const WITH_NUMBER: [&str; 15] = [
    "-amin", "-atime", "-cmin", "-ctime", "-gid", "-group", "-inum", "-links", "-mmin", "-mtime",
    "-size", "-uid", "-used", "-user", "-Bmin",
];

/// Whether a call of `find` only looks.
pub(super) fn check(arguments: &[Word]) -> Result<(), NotSafe> {
    let mut words = arguments.iter().peekable();
    while words.next_if(|word| LEADING.contains(&word.text.as_str())).is_some() {}
    words.next_if(|word| word.as_literal() == Some("--"));
    while let Some(start) = words.next_if(|word| !begins_expression(&word.text)) {
        if start.shape == Shape::Pattern && start.text.starts_with(['*', '?', '[']) {
            return Err(refused(start, "could match a file whose name is an action"));
        }
    }
    while let Some(word) = words.next() {
        let Some(part) = word.as_literal() else {
            return Err(refused(word, "is not a part of an expression that is known to be safe"));
        };
        if ALONE.contains(&part) {
            continue;
        }
        let Some(accepts) = value_of(part) else {
            return Err(refused(word, "is not among the parts of find known to be safe"));
        };
        match words.next() {
            // find complains.
            None => break,
            Some(value) if value.shape != Shape::Literal && value.shape != Shape::Home => {
                return Err(refused(value, "could become several words"));
            }
            Some(value) if accepts(&value.text) => {}
            Some(value) => return Err(refused(value, &format!("is not a plain value of {part}"))),
        }
    }
    Ok(())
}

/// Which values a part of an expression takes, if it takes one and is allowed at all.
fn value_of(part: &str) -> Option<fn(&str) -> bool> {
    if WITH_TEXT.contains(&part) || is_newer(part) {
        return Some(|value| !value.starts_with('-') || value == "-");
    }
    match part {
        _ if WITH_NUMBER.contains(&part) => Some(is_amount),
        "-perm" => Some(is_mode),
        _ => None,
    }
}

fn begins_expression(text: &str) -> bool {
    (text.starts_with('-') && text.len() > 1) || matches!(text, "(" | ")" | "!" | ",")
}

/// `-newerXY`: X and Y are times of a file, Y may also be a time that is written out.
fn is_newer(part: &str) -> bool {
    let Some([first, second]) = part.strip_prefix("-newer").map(str::as_bytes) else {
        return false;
    };
    b"aBcm".contains(first) && b"aBcmt".contains(second)
}

fn is_amount(value: &str) -> bool {
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    let digits = digits.strip_suffix(|unit: char| unit.is_ascii_alphabetic()).unwrap_or(digits);
    super::options::is_number(digits)
}

/// `644`, `-u+x`, `/222`. No action is spelt with these letters.
fn is_mode(value: &str) -> bool {
    let mode = value.strip_prefix(['-', '/', '+']).unwrap_or(value);
    let octal = mode.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let symbolic = mode.bytes().all(|byte| b"ugoarwxstX+-=,".contains(&byte));
    !mode.is_empty() && (octal || (symbolic && mode.contains(['+', '=', '-'])))
}

fn refused(word: &Word, why: &str) -> NotSafe {
    NotSafe(format!("{} {why}", shown(&word.text)))
}
