//! Seeing through programs that run other programs: `env`, `sudo`, `xargs`, `sh -c` and their like.
//!
//! What is found here only ever reveals: a danger, or a rule that asks or forbids. It never makes a
//! command safe, so it may see more than a wrapper would run, and must not see less.

pub(crate) mod arguments;
pub(crate) mod code;
mod finding;
pub(crate) mod running;
mod scripts;
mod table;

use crate::command::{Assignment, Shape, SimpleCommand, Word};
use crate::script::Reading;
use arguments::{Argument, arguments};
use table::{Form, WRAPPERS, Wrapper};

pub(crate) use finding::{UNKNOWN, found_by_find, found_by_others, starts};
pub(crate) use scripts::{piped, shell_of};

/// How many wrappers around each other are seen through.
pub const DEPTH: usize = 8;

/// How many commands are looked at inside the wrappers of one reading.
pub const TOTAL: usize = 1024;

/// What was found inside the wrappers of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped {
    /// The commands, each with the index of the reading's command that it was found in.
    pub commands: Vec<(usize, SimpleCommand)>,
    /// Whether that is all of them. If it is not, the reading was not understood.
    pub complete: bool,
}

/// Every command inside the wrappers of a reading, from the outside to the inside.
pub fn unwrapped(reading: &Reading) -> Unwrapped {
    let mut found = Unwrapped { commands: Vec::new(), complete: true };
    for index in 0..reading.commands.len() {
        layer(&reading.commands, index, index, DEPTH, &mut found);
    }
    found
}

fn layer(list: &[SimpleCommand], index: usize, origin: usize, depth: usize, found: &mut Unwrapped) {
    let mut inside = inner(&list[index]);
    inside.extend(piped(list, index));
    if inside.is_empty() {
        return;
    }
    if depth == 0 || found.commands.len() + inside.len() > TOTAL {
        found.complete = false;
        return;
    }
    for (index, command) in inside.iter().enumerate() {
        found.commands.push((origin, command.clone()));
        layer(&inside, index, origin, depth - 1, found);
    }
}

/// The commands that a wrapper runs, one layer of them. None if it is not a wrapper.
pub fn inner(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let mut found = by_variables(command);
    let Some(first) = command.words.first() else { return found };
    if let Some(plain) = spelled_out(command) {
        found.push(plain);
        return found;
    }
    if first.shape == Shape::Dynamic {
        found.extend(behind_unknown(command));
        return found;
    }
    let name = base_name(&first.text);
    // Where the file system does not tell letters apart, `BASH` is `bash`.
    let folded: String;
    let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        folded = name.to_ascii_lowercase();
        &folded
    } else {
        name
    };
    for wrapper in rows(name) {
        found.extend(unwrap(command, wrapper));
    }
    scripts::of(command, name, &mut found);
    found
}

/// Variables whose value is a command that programs run.
const RUN_BY_OTHERS: &[&str] = &[
    "BROWSER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "RSYNC_RSH",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "VISUAL",
];

/// The commands in variables that are set before another.
fn by_variables(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    for assignment in &command.assignments {
        if RUN_BY_OTHERS.contains(&assignment.name.as_str()) {
            scripts::read("bash", scripts::text(&assignment.value), &mut found);
        }
    }
    found
}

/// The same command in plain words, if it is written in quotes of the shell's own (`$'rm'`), in braces
/// (`git {push,}`), or as a file of git's (`git-push`).
fn spelled_out(command: &SimpleCommand) -> Option<SimpleCommand> {
    let mut words = Vec::new();
    let mut changed = false;
    for (index, word) in command.words.iter().enumerate() {
        let verb = base_name(&word.text).strip_prefix("git-").filter(|verb| !verb.is_empty());
        if let Some(inside) = ansi_quoted(word) {
            words.push(Word::literal(inside));
        } else if let Some(each) = in_braces(word) {
            words.extend(each);
        } else if let (0, Some(verb), true) = (index, verb, word.shape == Shape::Literal) {
            words.extend([Word::literal("git"), Word::literal(verb)]);
        } else {
            words.push(word.clone());
            continue;
        }
        changed = true;
    }
    let assignments = command.assignments.clone();
    changed.then(|| SimpleCommand { assignments, ..part(&words, command) })
}

/// The text of `$'…'`, its escapes undone.
fn ansi_quoted(word: &Word) -> Option<String> {
    let inside = word.text.strip_prefix("$'")?.strip_suffix('\'')?;
    let mut plain = String::new();
    let mut letters = inside.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        let kind = letters.next()?;
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            'n' | 'r' | 't' => {
                plain.push(' ');
                continue;
            }
            other => {
                plain.push(other);
                continue;
            }
        };
        let mut number = if radix == 8 { kind.to_digit(8)? } else { 0 };
        let mut count = u32::from(radix == 8);
        while count < most
            && let Some(digit) = letters.peek().and_then(|one| one.to_digit(radix))
        {
            number = number.checked_mul(radix)?.checked_add(digit)?;
            letters.next();
            count += 1;
        }
        plain.push(char::from_u32(number)?);
    }
    Some(plain)
}

/// The words that a shell makes of one in braces, without those that are nothing.
fn in_braces(word: &Word) -> Option<Vec<Word>> {
    let plain = word.shape == Shape::Dynamic && !word.text.contains(['$', '`', '"', '\'']);
    let (before, rest) = word.text.split_once('{').filter(|_| plain)?;
    let (inside, after) = rest.split_once('}').filter(|(inside, _)| inside.contains(','))?;
    let each = inside.split(',').map(|one| format!("{before}{one}{after}"));
    Some(each.filter(|text| !text.is_empty()).map(Word::literal).collect())
}

/// A program's name without its directory and without `.exe`.
pub(crate) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let bare = name.len().saturating_sub(4);
    match name.get(bare..) {
        Some(end) if bare > 0 && end.eq_ignore_ascii_case(".exe") => &name[..bare],
        _ => name,
    }
}

/// The name of a program without the number of its version: `gcc-12` is gcc, and `python3.12` is python.
pub(crate) fn without_version(name: &str) -> &str {
    let plain = name.trim_end_matches(|end: char| end.is_ascii_digit() || matches!(end, '.' | '-'));
    if plain.is_empty() { name } else { plain }
}

/// A command made of some of another's words, with the other's redirections.
fn part(words: &[Word], of: &SimpleCommand) -> SimpleCommand {
    SimpleCommand {
        words: words.to_vec(),
        redirections: of.redirections.clone(),
        ..SimpleCommand::default()
    }
}

/// `$SUDO rm …`: what stands before a name may well be a wrapper. `$RM -rf …` can hardly be anything
/// but what it looks like, and `rm${IFS}-rf` is written by those who do not want to be read.
fn behind_unknown(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let first = command.words[0].text.as_str();
    if first.contains("IFS") {
        let apart = first.replace("${IFS}", " ").replace("$IFS", " ");
        let words = apart.split_whitespace().map(Word::literal);
        let words: Vec<Word> = words.chain(command.words[1..].iter().cloned()).collect();
        return vec![part(&words, command)];
    }
    match command.words.get(1) {
        Some(word) if matches!(word.text.as_str(), "-rf" | "-fr" | "-Rf" | "-fR") => {
            let mut words = vec![Word::literal("rm")];
            words.extend_from_slice(&command.words[1..]);
            vec![part(&words, command)]
        }
        Some(word) if word.shape == Shape::Literal && !word.text.starts_with('-') => {
            vec![part(&command.words[1..], command)]
        }
        _ => Vec::new(),
    }
}

/// Whether a program, called with this as its first operand, runs another one that its words name.
pub(crate) fn runs_another(name: &str, verb: &str) -> bool {
    rows(name).iter().any(|row| row.verb.is_empty() || row.verb == verb)
        || shell_of(name).is_some()
        || scripts::OTHERS.contains(&name)
}

/// Every wrapper of the table, with its verb and how many operands come before the command.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str, usize)> {
    WRAPPERS.iter().map(|row| (row.name, row.verb, row.skip))
}

/// The system's loader runs the program that it is given: `ld-linux-x86-64.so.2 /bin/rm`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld-") && name.contains(".so")
}

fn rows(name: &str) -> &'static [Wrapper] {
    let name = if is_loader(name) { "ld.so" } else { name };
    let start = WRAPPERS.partition_point(|row| row.name < name);
    let length = WRAPPERS[start..].iter().take_while(|row| row.name == name).count();
    &WRAPPERS[start..start + length]
}

fn unwrap(command: &SimpleCommand, wrapper: &Wrapper) -> Vec<SimpleCommand> {
    let words = &command.words;
    let mut found = Vec::new();
    let mut directory = None;
    let mut skip = wrapper.skip + usize::from(!wrapper.verb.is_empty());
    let mut assignments = Vec::new();
    let mut start = words.len();
    let mut verb_seen = wrapper.verb.is_empty();
    for (index, argument) in arguments(words, wrapper.letters, wrapper.long) {
        if let Some(script) = script_option(wrapper, &argument) {
            scripts::read("bash", script, &mut found);
        }
        match argument {
            Argument::Operand(word) if !verb_seen => {
                if word.text != wrapper.verb {
                    return found;
                }
                verb_seen = true;
                skip -= 1;
            }
            Argument::Operand(_) if skip > 0 => skip -= 1,
            Argument::Operand(word) if wrapper.form == Form::Assigned && is_assignment(word) => {
                assignments.push(assignment(word));
            }
            Argument::Operand(_) => {
                start = index;
                break;
            }
            option => {
                if matches!(wrapper.name, "env" | "sudo" | "proot") && is_directory(&option) {
                    directory = option.value();
                }
                if wrapper.name == "env" && option.is('S', "split-string") {
                    start = index + 1;
                    scripts::split(option.value().unwrap_or(""), words, start, &mut found);
                }
            }
        }
    }
    if let Some(directory) = directory {
        let words = vec![Word::literal("cd"), Word::literal(directory)];
        found.push(SimpleCommand { words, ..SimpleCommand::default() });
    }
    let rest = &words[start.min(words.len())..];
    if rest.is_empty() || names_only(command, wrapper) {
        if !assignments.is_empty() {
            found.push(SimpleCommand { assignments, ..SimpleCommand::default() });
        }
        return found;
    }
    match wrapper.form {
        Form::Rest | Form::Assigned => {
            found.push(SimpleCommand { assignments, ..part(rest, command) });
        }
        Form::ScriptOrRest => {
            scripts::later_script(rest, &mut found);
            found.push(part(rest, command));
        }
        Form::Appended => finding::appended(command, rest, wrapper.name, &mut found),
        Form::Joined if wrapper.name == "trap" => {
            scripts::read("bash", scripts::text(&rest[0]), &mut found);
        }
        Form::Joined => scripts::joined(rest, &mut found),
    }
    found
}

/// `command -v rm` only says where it is.
fn names_only(command: &SimpleCommand, wrapper: &Wrapper) -> bool {
    let asks = |word: &Word| matches!(word.text.as_str(), "-v" | "-V" | "-pv" | "-pV");
    wrapper.name == "command" && command.words.get(1).is_some_and(asks)
}

fn script_option<'a>(wrapper: &Wrapper, argument: &Argument<'a>) -> Option<&'a str> {
    let is_script = wrapper.form == Form::ScriptOrRest
        && match argument {
            Argument::Letter(letter, _) => *letter == 'c',
            Argument::Long(name, _) => {
                matches!(*name, "command" | "run" | "session-command" | "call")
            }
            Argument::Operand(_) => false,
        };
    if is_script { argument.value() } else { None }
}

fn is_directory(option: &Argument<'_>) -> bool {
    option.is('C', "chdir") || option.is('D', "chdir") || option.is('w', "cwd")
}

fn is_assignment(word: &Word) -> bool {
    let name = word.text.split('=').next().unwrap_or_default();
    word.text.len() > name.len()
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn assignment(word: &Word) -> Assignment {
    let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
    Assignment { name: name.to_owned(), value: Word { text: value.to_owned(), shape: word.shape } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_layer(line: &str) -> Vec<String> {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let texts = |command: &SimpleCommand| {
            command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
        };
        inner(&SimpleCommand::from_argv(&argv)).iter().map(texts).collect()
    }

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(WRAPPERS.is_sorted_by_key(|row| row.name));
    }

    /// spec DANGER.20: The command inside a wrapper is found behind the wrapper's options, their
    /// values and its own operands.
    #[test]
    fn the_command_is_found_behind_options_and_operands() {
        for (line, expected) in [
            ("env -i -u HOME A=1 rm x", "rm x"),
            ("/usr/bin/env -uHOME rm x", "rm x"),
            ("nice -n 5 rm x", "rm x"),
            ("nice --adjustment 5 rm x", "rm x"),
            ("timeout -s KILL --kill-after=3 10 rm -rf x", "rm -rf x"),
            ("sudo -u root -- rm -x", "rm -x"),
            ("sudo -Eu root A=b rm x", "rm x"),
            ("chroot /mnt rm x", "rm x"),
            ("stdbuf -oL rm x", "rm x"),
            ("busybox rm x", "rm x"),
            ("poetry run rm x", "rm x"),
            ("strace -f -o log rm x", "rm x"),
            ("gdb -q --args rm x", "rm x"),
            ("git bisect run rm x", "rm x"),
            ("xargs -n 1 -P4 rm", "rm …"),
            ("xargs -I {} rm a{}", "rm a…"),
            ("parallel rm ::: a b", "rm a b"),
            ("find src -name *.o -exec rm {} ;", "rm src/*.o"),
            ("find src -exec rm {} +", "rm src"),
            ("fd -e o -x rm {} ;", "rm ./*{}*"),
            ("sudo.exe rm x", "rm x"),
        ] {
            assert_eq!(one_layer(line), [expected], "{line}");
        }
    }

    #[test]
    fn what_runs_nothing_else_is_no_wrapper() {
        for line in ["ls -l", "command -v rm", "env", "poetry install x", "find . -name x", "sudo"]
        {
            assert_eq!(one_layer(line), Vec::<String>::new(), "{line}");
        }
    }

    /// spec DANGER.21: Wrappers are seen through to a depth of 8; what lies deeper is reported as
    /// not understood.
    #[test]
    fn nine_wrappers_are_one_too_many() {
        let reading = |wrappers: usize| {
            let mut argv = vec!["nice".to_owned(); wrappers];
            argv.push("ls".to_owned());
            Reading {
                reader: crate::script::Reader::Kernel,
                commands: vec![SimpleCommand::from_argv(&argv)],
                opaque: None,
            }
        };
        let eight = unwrapped(&reading(8));
        assert!(eight.complete);
        assert_eq!(eight.commands.len(), 8);
        assert_eq!(eight.commands[7].1.program(), Some("ls"));
        assert!(!unwrapped(&reading(9)).complete);
    }
}
