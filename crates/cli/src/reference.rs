//! The pages that are made from the definition of the command line, and what is held against it. Only tests
//! need this: readers have the pages, and `--help`.

use crate::arguments::{definition, tests::understood};
use crate::{exit, generate, linux_sandbox};
use clap::{Arg, Command};
use std::fmt::Write as _;
use std::path::Path;

/// Commands that the help does not show, and why.
const HIDDEN: &[(&str, &str)] =
    &[("sandgate daemon", "sandgate session starts it, and people have no use for it by itself")];

const COMMANDS: &str = "\
# Commands

<!-- Made from the definition of the command line; `cargo xtask docs` writes it anew. -->

All commands and options of `sandgate`, as `sandgate help COMMAND` shows them. What they end with is on
[a page of its own](exit-codes.md), and so are [the variables](environment.md) that they heed.
";

const EXIT_CODES: &str = "\
# Exit codes

<!-- Made from crates/cli/src/exit.rs and the help of the commands; `cargo xtask docs` writes it anew. -->

| code | what it means | where |
| --- | --- | --- |
";

/// The codes by their meaning. Where one has several, it is the command that tells them apart.
fn exit_codes() -> Vec<(String, &'static str, &'static str)> {
    let one = |code: u8| code.to_string();
    vec![
        ("0".to_owned(), "It was done.", "everywhere"),
        (one(exit::DOES_NOT_FIT), "A patch is none, or does not fit the files.", "`patch`"),
        (
            one(exit::TURN_FAILED),
            "A model could not be asked, or took more than it may.",
            "`exec`, `resume`",
        ),
        (
            one(exit::FOUND),
            "Something was found.",
            "`review`, `doctor`, `audit verify`, `config validate`, `policy`",
        ),
        (one(exit::USAGE), "The command line makes no sense.", "everywhere"),
        (
            one(exit::NOBODY_DECIDED),
            "A decision was needed, and nobody could give it.",
            "whatever asks",
        ),
        (
            one(exit::REFUSED),
            "A person, a rule or the policy said no before anything ran.",
            "whatever asks",
        ),
        ("124".to_owned(), "The time of a command was over.", "`run`"),
        (one(exit::FAILED), "Sandgate itself failed.", "everywhere"),
        ("126".to_owned(), "The program of a command cannot be executed.", "`run`, `sandbox`"),
        ("127".to_owned(), "There is no such program.", "`run`, `sandbox`"),
        (
            "128+N".to_owned(),
            "Signal N ended the command, or Sandgate was sent it and ended the command.",
            "`run`, `sandbox`, `session`",
        ),
        ("130".to_owned(), "You called it off, by Ctrl-C or at a question.", "everywhere"),
        (one(exit::OUTPUT_CLOSED), "Whoever read the output went away.", "everywhere"),
        ("another".to_owned(), "The command's own.", "`run`, `sandbox`, `session`"),
    ]
}

/// Every command below one and itself, with its whole name.
fn all(command: &Command, name: &str) -> Vec<(String, Command)> {
    let mut found = vec![(name.to_owned(), command.clone())];
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        found.extend(all(verb, &format!("{name} {}", verb.get_name())));
    }
    found
}

/// Those that the help shows, the program under its other name too.
fn shown() -> Vec<(String, Command)> {
    let mut definition = definition();
    definition.build();
    let is_hidden = |name: &str| HIDDEN.iter().any(|(hidden, _)| name.starts_with(hidden));
    let mut commands = all(&definition, "sandgate");
    commands.retain(|(name, _)| !is_hidden(name));
    let mut other = linux_sandbox::definition();
    other.build();
    commands.push((linux_sandbox::NAME.to_owned(), other));
    commands
}

/// The words that a person can write, without those that every command has.
fn own(command: &Command) -> impl Iterator<Item = &Arg> {
    let common = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str());
    command.get_arguments().filter(common)
}

fn commands_page() -> String {
    let mut page = COMMANDS.to_owned();
    for (name, command) in shown() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let usage: Vec<&str> = usage.lines().map(str::trim).collect();
        let _ = write!(page, "\n## `{name}`\n\n{}.\n", about.trim_end_matches('.'));
        let _ = write!(page, "\n```text\n{}\n```\n", usage.join("\n"));
        let mut rows = own(&command).map(row).peekable();
        if rows.peek().is_some() {
            page += "\n| | |\n| --- | --- |\n";
            page.extend(rows);
        }
        if let Some(more) = command.get_after_help() {
            let _ = write!(page, "\n```text\n{}\n```\n", more.to_string().trim_end());
        }
    }
    page
}

/// One option or value in a table.
fn row(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values = arg.get_possible_values();
    if !values.is_empty() && arg.get_action().takes_values() {
        let told = values.iter().map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        });
        let _ = write!(text, ": {}", told.collect::<Vec<_>>().join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(text, " [default: {}]", defaults.join(", "));
    }
    let text = text.replace('|', "\\|").replace('<', "&lt;");
    format!("| `{}` | {text} |\n", spelled(arg))
}

/// How an option or value is written.
fn spelled(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let takes = arg.get_action().takes_values();
    match (arg.get_short(), arg.get_long()) {
        (None, None) => value,
        (short, long) => {
            let dashed = short.map(|letter| format!("-{letter}")).into_iter();
            let dashed = dashed.chain(long.map(|word| format!("--{word}")));
            let dashed = dashed.collect::<Vec<_>>().join(", ");
            if takes { format!("{dashed} {value}") } else { dashed }
        }
    }
}

fn exit_codes_page() -> String {
    let mut page = EXIT_CODES.to_owned();
    for (code, meaning, commands) in exit_codes() {
        let _ = writeln!(page, "| {code} | {meaning} | {commands} |");
    }
    page += "\nIn the words of each command:\n\n| command | |\n| --- | --- |\n";
    for (name, command) in shown() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let paragraphs = help.split("\n\n");
        for said in paragraphs.filter_map(|text| text.split_once("Exit codes")) {
            let said = said.1.trim_start_matches(':').trim_start().trim_start_matches("are ");
            let said = said.split_whitespace().collect::<Vec<_>>();
            let _ = writeln!(page, "| `{name}` | {} |", said.join(" ").replace('|', "\\|"));
        }
    }
    page
}

/// Compares a page with what it should be, or writes it if that is asked for.
#[track_caller]
fn holds(file: &str, made: &str) {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("the tests are run by cargo");
    let path = Path::new(&package).join("../..").join(file);
    if std::env::var_os("SANDGATE_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == written,
        "{file} is not what the program says; cargo xtask docs writes it anew"
    );
}

/// spec GEN.5: The pages about commands and exit codes are made from the definition of the command line and
/// the codes that the program ends with.
#[test]
fn the_pages_say_what_the_definition_says() {
    holds("docs/cli.md", &commands_page());
    holds("docs/exit-codes.md", &exit_codes_page());
    // Every code that has a name stands in the table.
    let source = include_str!("exit.rs");
    let named = source.lines().filter_map(|line| {
        let (_, value) = line.strip_prefix("pub(crate) const ")?.split_once(": u8 = ")?;
        Some(value.trim_end_matches(';').to_owned())
    });
    let table = exit_codes();
    for code in named {
        assert!(table.iter().any(|(known, ..)| *known == code), "{code} is not in the table");
    }
}

/// spec GEN.6: Every command is in the help, but for those that a table gives a reason for, and every command,
/// option and word to choose from has a sentence there.
#[test]
fn everything_is_in_the_help_with_a_sentence() {
    let mut definition = definition();
    definition.build();
    for (name, command) in all(&definition, "sandgate") {
        let reason = HIDDEN.iter().find(|(hidden, _)| *hidden == name);
        assert_eq!(command.is_hide_set(), reason.is_some(), "{name}");
    }
    for (name, command) in shown() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty(), "{name} does not say what it is for");
        for arg in own(&command) {
            assert!(arg.get_help().is_some(), "{name} does not say what {} is", spelled(arg));
            assert!(!arg.is_hide_set(), "{name} hides {}", spelled(arg));
            let is_switch = !arg.get_action().takes_values();
            for value in arg.get_possible_values() {
                let is_known = is_switch || value.get_help().is_some() || arg.get_id() == "shell";
                assert!(
                    is_known,
                    "{name} does not say what {} {} is",
                    spelled(arg),
                    value.get_name()
                );
            }
        }
    }
}

/// spec GEN.7: Every example in the help is a command line that the program understands.
#[test]
fn examples_in_the_help_are_understood() {
    let mut count = 0;
    for (name, command) in shown() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("  sandgate ")) {
            let words = words(line);
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            match words.first() {
                // Alone it is the terminal interface, and help is the parser's own.
                None | Some(&"help") => continue,
                Some(word) if word.starts_with('-') || word.contains(' ') => words.insert(0, "tui"),
                Some(_) => {}
            }
            count += 1;
            let parsed = definition().try_get_matches_from(["sandgate"].iter().chain(&words));
            let said = match words[0] {
                // These go on to look for a terminal, or at standard input.
                "exec" | "resume" | "review" => parsed.map(|_| ()),
                _ => understood(&words).map(|_| ()),
            };
            if let Err(error) = said {
                panic!("{name} shows `sandgate {line}`: {error}");
            }
        }
    }
    assert!(count > 40, "{count}");
}

/// The words of a line as a shell takes them, up to a redirection or the remark beside it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let line = line.split(" >").next().unwrap_or_default();
    let line = line.split(" | ").next().unwrap_or_default().split(" < ").next().unwrap_or_default();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (' ', None) if letters.peek() == Some(&' ') => break,
            (' ', None) => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// spec GEN.8: Every option that the help shows is on the manual page of its command.
#[test]
fn every_option_is_on_its_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut definition = definition();
    definition.build();
    generate::write_pages(directory.path(), &definition, "sandgate").unwrap();
    for (name, command) in shown().into_iter().filter(|(name, _)| *name != linux_sandbox::NAME) {
        let page = directory.path().join(format!("{}.1", name.replace(' ', "-")));
        let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        let page = page.replace('\\', "");
        for long in own(&command).filter_map(Arg::get_long) {
            assert!(page.contains(&format!("--{long}")), "{name} --{long} is not on its page");
        }
    }
}
