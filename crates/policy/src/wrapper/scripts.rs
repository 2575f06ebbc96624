//! Wrappers that run a script: shells, `eval`, here-documents into a shell, and options of other
//! programs whose value is handed to a shell.

use super::finding;
use super::running;
use super::table::SHELLS;
use super::{DEPTH, base_name, part};
use crate::command::{Connective, RedirectionKind, Shape, SimpleCommand, Word};
use crate::script::{self, Reader};
use std::borrow::Cow;

/// The shell whose grammar a program's scripts are read by, if it is a shell.
pub(crate) fn shell_of(name: &str) -> Option<&'static str> {
    SHELLS.iter().find(|(shell, _)| *shell == name).map(|(_, reader)| *reader)
}

/// Programs that run others and are not in the table of wrappers, because each finds them in its own
/// way.
pub(super) const OTHERS: &[&str] = &[
    "at",
    "batch",
    "bwrap",
    "cmd",
    "fd",
    "fdfind",
    "find",
    "gdb",
    "gfind",
    "iex",
    "invoke-expression",
    "lldb",
    "nix",
    "op",
    "powershell",
    "pwsh",
    "rust-gdb",
    "saps",
    "start",
    "start-process",
    "watchexec",
];

/// Adds what a program runs that is not in the table of wrappers.
pub(super) fn of(command: &SimpleCommand, name: &str, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    match name {
        "find" | "gfind" => finding::find(command, found),
        "fd" | "fdfind" => finding::fd(command, found),
        "gdb" | "lldb" | "rust-gdb" => {
            let marks = |word: &Word| matches!(word.text.as_str(), "--args" | "-args" | "--");
            if let Some(at) = words.iter().position(marks)
                && at + 1 < words.len()
            {
                found.push(part(&words[at + 1..], command));
            }
        }
        "git" => git(command, found),
        "at" | "batch" => here(command, "sh", found),
        "." | "source" => here(command, "bash", found),
        "iex" | "invoke-expression" => powershell_text(words, found),
        "start-process" | "saps" | "start" if words.len() > 1 => {
            found.push(part(&words[1..], command));
        }
        "bwrap" | "watchexec" | "nix" | "op" => {
            if let Some(at) = words.iter().position(|word| word.text == "--")
                && at + 1 < words.len()
            {
                found.push(part(&words[at + 1..], command));
            }
        }
        _ if name.eq_ignore_ascii_case("cmd") => windows(command, "cmd", found),
        _ if name.eq_ignore_ascii_case("powershell") || name.eq_ignore_ascii_case("pwsh") => {
            windows(command, "pwsh", found);
        }
        _ => {
            if let Some(shell) = shell_of(name) {
                shell_call(command, shell, found);
                return;
            }
            super::code::of(command, name, found);
        }
    }
    for script in running::scripts(words, name) {
        read("bash", script, found);
    }
}

/// Reads a script and adds its commands.
pub(super) fn read(shell: &str, script: &str, found: &mut Vec<SimpleCommand>) {
    let reading = script::read(&[shell.to_owned(), "-c".to_owned(), script.to_owned()]);
    if reading.reader != Reader::Kernel {
        found.extend(reading.commands);
    }
}

/// The text of a word that is a script. One that is not known to the letter is as it was written,
/// in its quotes.
pub(super) fn text(word: &Word) -> &str {
    let text = word.text.as_str();
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match word.shape {
        Shape::Dynamic => quoted.unwrap_or(text),
        _ => text,
    }
}

/// Reads words that a program joins by blanks.
pub(super) fn joined(words: &[Word], found: &mut Vec<SimpleCommand>) {
    let texts: Vec<&str> = words.iter().map(text).collect();
    read("bash", &texts.join(" "), found);
    // Words that hold nothing for a shell to read mean the same unread, and some are not readable.
    if words.len() > 1 {
        found.push(SimpleCommand { words: words.to_vec(), ..SimpleCommand::default() });
    }
}

/// `env -S`: splits a text at its blanks; the words after it are more arguments.
pub(super) fn split(text: &str, words: &[Word], at: usize, found: &mut Vec<SimpleCommand>) {
    let bare = |word: &str| Word::literal(word.trim_matches(['"', '\'']));
    let mut inside: Vec<Word> = vec![Word::literal("env")];
    inside.extend(text.split_whitespace().map(bare));
    inside.extend_from_slice(words.get(at..).unwrap_or_default());
    if inside.len() > 1 {
        found.push(SimpleCommand { words: inside, ..SimpleCommand::default() });
    }
}

/// `su root -c SCRIPT`: the option after the operand.
pub(super) fn later_script(words: &[Word], found: &mut Vec<SimpleCommand>) {
    for pair in words.windows(2) {
        if matches!(pair[0].text.as_str(), "-c" | "--command" | "-lc") {
            read("bash", text(&pair[1]), found);
        }
    }
    for word in words {
        if let Some(script) = word.text.strip_prefix("--command=") {
            read("bash", script, found);
        }
    }
}

/// What the command at `index` runs because the one before it writes a script into it.
pub(crate) fn piped(list: &[SimpleCommand], index: usize) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    let command = &list[index];
    if index == 0 || !matches!(command.connective, Connective::Pipe | Connective::PipeBoth) {
        return found;
    }
    let before = &list[index - 1];
    let mut command = Cow::Borrowed(command);
    let mut depth = DEPTH;
    let shell = loop {
        let Some(name) = command.program() else { return found };
        match shell_of(base_name(name)) {
            Some(shell) => break shell,
            None if depth == 0 => return found,
            None => depth -= 1,
        }
        let Some(last) = super::inner(&command).pop() else { return found };
        command = Cow::Owned(last);
    };
    if !reads_input(&command) {
        return found;
    }
    match before.program().map(base_name) {
        Some("echo" | "printf") => {
            let says = |word: &&Word| !matches!(word.text.as_str(), "-e" | "-n" | "-en" | "-ne");
            let texts: Vec<&str> =
                before.words[1..].iter().filter(says).map(|word| word.text.as_str()).collect();
            read(shell, &texts.join(" ").replace("\\n", "\n"), &mut found);
        }
        Some("cat") => here(before, shell, &mut found),
        _ => {}
    }
    found
}

/// Whether a shell is called without a script or a file, so that it reads its input.
fn reads_input(command: &SimpleCommand) -> bool {
    let options = |word: &&Word| word.text.starts_with(['-', '+']);
    let rest: Vec<&Word> = command.words.iter().skip(1).take_while(options).collect();
    let from_input = rest.iter().any(|word| is_letter_option(&word.text, 's'));
    let script = rest.iter().any(|word| is_letter_option(&word.text, 'c'));
    !script && (from_input || rest.len() + 1 == command.words.len())
}

fn is_letter_option(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}

/// The texts that are fed into a command.
fn here(command: &SimpleCommand, shell: &str, found: &mut Vec<SimpleCommand>) {
    for redirection in &command.redirections {
        let kind = redirection.kind;
        if matches!(kind, RedirectionKind::HereDocument | RedirectionKind::HereString) {
            read(shell, &redirection.target.text, found);
        }
    }
}

fn shell_call(command: &SimpleCommand, shell: &str, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    let is_script = |word: &Word| {
        is_letter_option(&word.text, 'c')
            || word.text == "--command"
            || word.text == "--init-command"
    };
    let options_end = words
        .iter()
        .skip(1)
        .position(|word| !word.text.starts_with(['-', '+']) && word.text != "errexit")
        .map_or(words.len(), |at| at + 1);
    // `bash <(echo 'rm x')`: what is written into the file that it reads is a script.
    for word in words.iter().skip(1) {
        let inside = word.text.strip_prefix("<(").and_then(|inside| inside.strip_suffix(')'));
        if let Some(inside) = inside.filter(|_| word.shape == Shape::Dynamic) {
            read(shell, &format!("{inside} | {shell}"), found);
        }
    }
    let Some(at) = words.iter().take(options_end.max(2)).position(is_script).or_else(|| {
        // `bash -o pipefail -c …`: a value stands between the options.
        words.iter().take(6).position(is_script)
    }) else {
        if reads_input(command) {
            here(command, shell, found);
        }
        return;
    };
    let script_at = words[at + 1..]
        .iter()
        .position(|word| word.shape != Shape::Literal || !word.text.starts_with(['-', '+']));
    let Some(script_at) = script_at.map(|offset| at + 1 + offset) else { return };
    let script = text(&words[script_at]);
    read(shell, script, found);
    // `bash -c '"$@"' _ rm x`: the words after the script become commands in it.
    let parameters = ["$@", "$*", "$0", "$1", "${@", "${1", "${0", "${*"];
    if parameters.iter().any(|parameter| script.contains(parameter)) {
        for start in [script_at + 1, script_at + 2] {
            if start < words.len() {
                found.push(part(&words[start..], command));
            }
        }
    }
}

fn windows(command: &SimpleCommand, shell: &str, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    let starts = |word: &Word| {
        let option = word.text.to_ascii_lowercase();
        match shell {
            "cmd" => matches!(option.as_str(), "/c" | "/k" | "/r"),
            _ => option.len() > 1 && "-command".starts_with(&option),
        }
    };
    let Some(at) = words.iter().position(starts) else { return };
    let rest = &words[at + 1..];
    let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let script = texts.join(" ");
    let argv = match shell {
        "cmd" => vec!["cmd".to_owned(), "/c".to_owned(), script],
        _ => vec!["pwsh".into(), "-NoLogo".into(), "-NoProfile".into(), "-Command".into(), script],
    };
    let reading = script::read(&argv);
    if reading.reader != Reader::Kernel {
        found.extend(reading.commands);
    }
    if rest.len() > 1 {
        found.push(part(rest, command));
    } else if let [only] = rest {
        // A best effort at what the reading gave up on.
        let words: Vec<Word> = only.text.split_whitespace().map(Word::literal).collect();
        if !words.is_empty() {
            found.push(SimpleCommand { words, ..SimpleCommand::default() });
        }
    }
}

/// `Invoke-Expression TEXT`.
fn powershell_text(words: &[Word], found: &mut Vec<SimpleCommand>) {
    let texts: Vec<&str> = words.iter().skip(1).map(|word| word.text.as_str()).collect();
    let argv = ["pwsh", "-NoProfile", "-Command", &texts.join(" ")].map(str::to_owned);
    found.extend(script::read(&argv).commands);
}

/// What git runs: `bisect run`, `submodule foreach`, and settings given with `-c`.
fn git(command: &SimpleCommand, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let after = |verb: &str| words[index - 1].text == verb;
        if text == "run" && after("bisect") && index + 1 < words.len() {
            found.push(part(&words[index + 1..], command));
        } else if text == "foreach" && after("submodule") {
            let options = |word: &&Word| word.text.starts_with('-');
            let skipped = words[index + 1..].iter().take_while(options).count();
            let rest = &words[index + 1 + skipped..];
            match rest {
                [] => {}
                [script] => read("bash", &script.text, found),
                _ => found.push(part(rest, command)),
            }
        } else if after("-c")
            && let Some((key, value)) = text.split_once('=')
            && key.to_ascii_lowercase().starts_with("alias.")
            && !value.starts_with('!')
        {
            // The alias is a verb of git with its first words.
            let verb = value.split_whitespace().map(Word::literal);
            let git = std::iter::once(words[0].clone());
            let rest = words.get(index + 2..).unwrap_or_default().iter().cloned();
            let words: Vec<Word> = git.chain(verb).chain(rest).collect();
            found.push(part(&words, command));
        } else if after("-c")
            && let Some((key, value)) = text.split_once('=')
            && let Some(script) = value.strip_prefix('!').or_else(|| runs_value(key, value))
        {
            read("bash", script, found);
        }
    }
}

/// Settings of git whose value is a command.
fn runs_value<'a>(key: &str, value: &'a str) -> Option<&'a str> {
    let key = key.to_ascii_lowercase();
    let named = ["core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "diff.external"];
    let ends = [".cmd", ".clean", ".smudge", ".textconv", ".helper", ".driver", ".process"];
    (named.contains(&key.as_str()) || ends.iter().any(|end| key.ends_with(end))).then_some(value)
}
