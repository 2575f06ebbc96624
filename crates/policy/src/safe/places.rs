//! Paths at which looking is doing: devices, which act when they are opened, and directories in which
//! naming a file asks another computer for it. And files in which projects keep passwords.
//!
//! Only absolute paths are looked at, by their letters. What leads there by another way meets the
//! sandbox, in which neither is.

use super::options::{self, Seen};
use super::{NotSafe, git, shown};
use crate::command::{Shape, Word};

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

/// Programs of [`LOOKING`] that read names from a file and repeat them, with the options that have them do so.
const REPEATING: [(&str, &[&str], Option<char>); 3] = [
    ("du", &["--exclude-from", "--files0-from"], Some('X')),
    ("file", &["--files-from"], Some('f')),
    ("find", &["-files0-from"], None),
];

/// Whether no word of a program leads to such a place.
pub(super) fn check(program: &str, arguments: &[Word]) -> Result<(), NotSafe> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let sought = sought(name, arguments);
    for (at, word) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &arguments[before]);
        let is_sought = sought.iter().any(|text| std::ptr::eq(*text, word.text.as_str()));
        if !is_sought && opens(name, arguments, before, word) && names_secrets(name, word) {
            let text = shown(&word.text);
            return Err(NotSafe(format!("{text} is where projects keep passwords and keys")));
        }
        let why = match acting(word) {
            // The shell looks for itself what a pattern meets.
            Some(Acting::Elsewhere) if !TEXT.contains(&name) || word.shape == Shape::Pattern => {
                "may lie on another computer, which is asked for it"
            }
            Some(Acting::Device) if !TEXT.contains(&name) && !LOOKING.contains(&name) => {
                "is a device, and some act when they are opened"
            }
            _ => continue,
        };
        return Err(NotSafe(format!("{} {why}", shown(&word.text))));
    }
    Ok(())
}

/// The words that are looked for, or are a program, and name no file: of grep, rg and jq.
fn sought<'a>(name: &str, arguments: &'a [Word]) -> Vec<&'a str> {
    let Some(entry) = Some(name).filter(|name| SEEKING.contains(name)).and_then(super::listed)
    else {
        return Vec::new();
    };
    let mut sought = Vec::new();
    let mut first_operand = None;
    let mut elsewhere = false;
    let walked = options::walk(entry, arguments, &mut |seen| {
        match seen {
            Seen::Option { name: "e" | "regexp", value } if name != "jq" => {
                elsewhere = true;
                sought.extend(value);
            }
            // What is looked for stands in a file, or nothing is.
            Seen::Option { name: "f" | "file" | "files" | "from-file" | "type-list", .. } => {
                elsewhere = true;
            }
            Seen::Operand(word) if first_operand.is_none() => first_operand = Some(word),
            _ => {}
        }
        Ok(())
    });
    if !elsewhere {
        sought.extend(first_operand.and_then(Word::as_literal));
    }
    if walked.is_ok() { sought } else { Vec::new() }
}

/// Programs whose first operand is no file.
const SEEKING: [&str; 3] = ["grep", "jq", "rg"];

/// Whether a program shows what is in a file that a word names, and not only that it is there.
fn opens(name: &str, arguments: &[Word], before: Option<&Word>, word: &Word) -> bool {
    if name == "git" {
        return git::shows_contents(arguments);
    }
    if TEXT.contains(&name) {
        return false;
    }
    let Some((_, long, letter)) = REPEATING.iter().find(|(own, ..)| *own == name) else {
        return !LOOKING.contains(&name);
    };
    let reads_list = |option: &Word| {
        let text = option.text.as_str();
        let is_short = text.starts_with('-') && !text.starts_with("--");
        long.contains(&text) || (is_short && letter.is_some_and(|letter| text.ends_with(letter)))
    };
    // With its value in the same word an option of theirs is not looked at closer.
    word.text.starts_with('-') || before.is_some_and(reads_list)
}

/// Whether opening a path may do more than read what is in a file.
pub(super) fn acts(path: &Word) -> bool {
    acting(path).is_some()
}

/// Whether a word of a program names a file of passwords, also as a pattern that the program itself
/// matches with names.
fn names_secrets(name: &str, word: &Word) -> bool {
    const MATCHING: [&str; 5] = ["fd", "fdfind", "git", "grep", "rg"];
    keeps_secrets(&word.text, word.shape == Shape::Pattern || MATCHING.contains(&name))
}

/// Whether a word, or the value that an option has, names a file of passwords as projects keep them:
/// `.env`, `.env.local`, or a pattern that meets them. Examples of such files hold none.
pub(super) fn keeps_secrets(text: &str, is_pattern: bool) -> bool {
    // `HEAD:.env` is the file as it was.
    let value = text.rsplit(['=', ':']).next().unwrap_or(text);
    let file = value.rsplit('/').next().unwrap_or(value);
    let file = if text.starts_with('-') { &file[file.find(".e").unwrap_or(0)..] } else { file };
    let folded = file.to_ascii_lowercase();
    let example = ["example", "sample", "template", "dist"].iter().any(|end| folded.ends_with(end));
    let pattern = is_pattern
        && folded.starts_with('.')
        && folded.contains(['*', '?', '['])
        && [".env", ".envrc", ".env.local"].iter().any(|name| may_match(&folded, name));
    !example && (folded == ".env" || folded.starts_with(".env.") || folded == ".envrc" || pattern)
}

/// Whether a pattern may match a name. What is in brackets counts as any character.
fn may_match(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // How much of the pattern can have met the name so far, one place for each character of it.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let pass_stars = |reached: &mut Vec<bool>| {
        for (at, character) in pattern.iter().enumerate() {
            if reached[at] && *character == '*' {
                reached[at + 1] = true;
            }
        }
    };
    pass_stars(&mut reached);
    for letter in name.chars() {
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|at| reached[*at]) {
            match pattern[at] {
                '*' => next[at] = true,
                '?' => next[at + 1] = true,
                '[' => {
                    // It ends at any of the brackets that follow, or is a bracket itself.
                    let ends = (at + 2..pattern.len()).filter(|end| pattern[*end] == ']');
                    ends.for_each(|end| next[end + 1] = true);
                    next[at + 1] |= letter == '[';
                }
                own => next[at + 1] |= own == letter,
            }
        }
        reached = next;
        pass_stars(&mut reached);
    }
    reached[pattern.len()]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Acting {
    Device,
    Elsewhere,
}

/// What looking at a word's path would do: of the whole word, or of the value that an option has.
fn acting(word: &Word) -> Option<Acting> {
    let text = word.text.as_str();
    let at = text.find('/')?;
    let begins = at == 0 || text.starts_with('-') || text[..at].ends_with('=');
    if !begins {
        return None;
    }
    let mut parts = text[at..].split('/').filter(|part| !matches!(*part, "" | "."));
    let (first, second) = (parts.next()?, parts.next()?);
    let is = |part: &str, name: &str| match word.shape {
        Shape::Pattern => may_match(part, name),
        _ => part == name,
    };
    // Where automounters and the AFS keep the names of computers.
    if is(first, "net") || is(first, "afs") {
        return Some(Acting::Elsewhere);
    }
    let never_ends = (is(first, "proc") && is(second, "kmsg"))
        || (is(first, "sys")
            && is(second, "kernel")
            && parts.next_back().is_some_and(|last| is(last, "trace_pipe")));
    let acts = is(first, "dev") && !QUIET.contains(&second);
    (acts || never_ends).then_some(Acting::Device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_may_match_what_it_matches_and_little_else() {
        for (pattern, name) in [
            ("dev", "dev"),
            ("d*", "dev"),
            ("*", "dev"),
            ("*v", "dev"),
            ("?e?", "dev"),
            ("[a-z]ev", "dev"),
            ("[]d]ev", "dev"),
            ("d[^x]*", "dev"),
            (".??*", ".env"),
            (".e*v*", ".env"),
        ] {
            assert!(may_match(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("d", "dev"), ("dev?", "dev"), ("?", "dev"), ("e*", "dev"), (".g*", ".env"), ("", "a")]
        {
            assert!(!may_match(pattern, name), "{pattern} {name}");
        }
    }
}
