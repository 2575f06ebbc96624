//! Commands in the code that an interpreter or an editor is given in an argument.
//!
//! The code is not parsed: its quoted texts are taken for commands where a word in it says that it
//! starts programs, and for names of files where one says that it deletes.

use super::scripts::read;
use crate::command::{RedirectionKind, SimpleCommand, Word};

/// Programs that take code in an argument.
pub(crate) const INTERPRETERS: &[&str] = &[
    "python",
    "python3",
    "python2",
    "perl",
    "ruby",
    "node",
    "php",
    "osascript",
    "deno",
    "bun",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "tclsh",
];

/// Editors that run a command after `!`.
const EDITORS: &[&str] = &["vim", "vi", "nvim", "ex", "view"];

/// Words of code that start programs.
const STARTING: &[&str] = &[
    "system",
    "exec",
    "popen",
    "Popen",
    "subprocess",
    "spawn",
    "shell script",
    "shell_exec",
    "passthru",
    "qx",
    "IO.popen",
    "getline",
];

/// Words of code that delete.
const DELETING: &[&str] = &[
    "rmtree",
    "rmSync",
    "rmdirSync",
    "rm_rf",
    "rm_r",
    "remove_tree",
    "unlink",
    "remove_dir_all",
    "removeSync",
];

/// Adds the commands that can be made out in the code of a program's arguments.
pub(super) fn of(command: &SimpleCommand, name: &str, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    if EDITORS.contains(&name) {
        for word in words.iter().skip(1) {
            let text = word.text.trim_start_matches(['+', ':', 'c', '-']);
            if let Some(script) = text.strip_prefix('!') {
                read("bash", script, found);
            }
        }
    } else if matches!(name, "sed" | "gsed") {
        for word in words.iter().skip(1) {
            for (at, _) in word.text.match_indices('e') {
                let (before, after) = (&word.text[..at], &word.text[at + 1..]);
                let ends = before.is_empty()
                    || before.ends_with(['/', '$', ';', '{', '}', '!', '\n', ' ', ','])
                    || before.ends_with(|letter: char| letter.is_ascii_digit());
                if ends && after.starts_with([' ', '/']) {
                    read("bash", after.lines().next().unwrap_or_default(), found);
                }
            }
        }
    } else if INTERPRETERS.contains(&name) {
        for word in words.iter().skip(1).filter(|word| word.text.contains(['"', '\'', '`'])) {
            in_code(&word.text, found);
        }
        for code in fed(command) {
            in_code(&code.text, found);
        }
    }
}

/// The texts that are fed into a command: to an interpreter, more code.
pub(crate) fn fed(command: &SimpleCommand) -> impl Iterator<Item = &Word> {
    use RedirectionKind::{HereDocument, HereString};
    let texts = command.redirections.iter();
    let texts = texts.filter(|text| matches!(text.kind, HereDocument | HereString));
    texts.map(|text| &text.target)
}

fn in_code(code: &str, found: &mut Vec<SimpleCommand>) {
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    if has(STARTING) || code.contains('`') {
        let texts = quoted(code);
        for text in texts.iter().filter(|text| text.contains(' ')) {
            read("bash", text, found);
        }
        // `subprocess.run(["rm", "-rf", "/"])`: the texts are the words.
        if texts.len() > 1 {
            let words = texts.iter().map(|text| Word::literal(*text)).collect();
            found.push(SimpleCommand { words, ..SimpleCommand::default() });
        }
    }
    if has(DELETING) {
        for text in quoted(code) {
            if text.starts_with(['/', '~']) || text.starts_with("..") {
                let words = ["rm", "-rf", text].map(Word::literal).to_vec();
                found.push(SimpleCommand { words, ..SimpleCommand::default() });
            }
        }
    }
}

/// The texts between quotes.
fn quoted(code: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let quote = rest[at..].chars().next().unwrap_or('"');
        let after = &rest[at + 1..];
        let Some(end) = after.find(quote) else { break };
        texts.push(&after[..end]);
        rest = &after[end + 1..];
    }
    texts
}
