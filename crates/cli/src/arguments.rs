//! The command line: first parsed, then made sense of.

use crate::acp::{self, AcpArguments, CliAcp};
#[cfg(unix)]
use crate::approvals::{self, ApprovalsArguments, CliApprovals};
use crate::audit::{self, AuditArguments, CliAudit};
use crate::call::{self, CallArguments, CliCall};
use crate::config::CliConfig;
#[cfg(unix)]
use crate::console::CliConsole;
#[cfg(unix)]
use crate::daemon::DaemonArguments;
use crate::demo::CliDemo;
use crate::doctor::CliDoctor;
use crate::exec::{self, CliExec, CliResume, ExecArguments};
use crate::generate::{CliCompletions, CliMan};
#[cfg(unix)]
use crate::live::{self, AttachArguments, CliSessions, SessionArguments};
use crate::mcp::{self, CliMcp, McpArguments};
use crate::patch::{self, CliPatch, PatchArguments};
use crate::policy::{self, CliPolicy, PolicyArguments};
use crate::review::{self, CliReview, ReviewArguments};
use crate::run::{self, CliRun, RunArguments};
use crate::sandbox::{self, CliSandbox, SandboxArguments};
use crate::serve::{self, CliServe, ServeArguments};
use crate::sessions::CliSessionsOnDisk;
use crate::trust::CliTrust;
use crate::tui::{self, CliTui, TuiArguments};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use std::ffi::OsString;

/// What the person asked for.
#[derive(Debug)]
pub(crate) enum Verb {
    /// `sandgate` alone, and `sandgate resume` without a prompt.
    Tui(Box<TuiArguments>),
    /// `sandgate run`.
    Run(RunArguments),
    /// `sandgate sessions`.
    Sessions(CliSessionsOnDisk),
    /// `sandgate exec` and `sandgate resume`.
    Exec(ExecArguments),
    /// `sandgate review`.
    Review(ReviewArguments),
    /// `sandgate acp`.
    Acp(AcpArguments),
    /// `sandgate call`.
    Call(CallArguments),
    /// `sandgate mcp`.
    Mcp(McpArguments),
    /// `sandgate serve`.
    Serve(ServeArguments),
    /// `sandgate patch`.
    Patch(PatchArguments),
    /// `sandgate sandbox`.
    Sandbox(SandboxArguments),
    /// `sandgate policy`.
    Policy(PolicyArguments),
    /// `sandgate session`.
    #[cfg(unix)]
    Session(SessionArguments),
    /// `sandgate attach`.
    #[cfg(unix)]
    Attach(AttachArguments),
    /// `sandgate approvals`.
    #[cfg(unix)]
    Approvals(ApprovalsArguments),
    /// `sandgate console`.
    #[cfg(unix)]
    Console(CliConsole),
    /// `sandgate daemon`.
    #[cfg(unix)]
    Daemon(DaemonArguments),
    /// `sandgate audit`.
    Audit(AuditArguments),
    /// `sandgate config`.
    Config(CliConfig),
    /// `sandgate trust`.
    Trust(CliTrust),
    /// `sandgate demo`.
    Demo(CliDemo),
    /// `sandgate doctor`.
    Doctor(CliDoctor),
    /// `sandgate completions`.
    Completions(CliCompletions),
    /// `sandgate man`.
    Man(CliMan),
}

/// Reads this program's own command line.
///
/// # Errors
/// When it makes no sense, or asks for help or the version; the error is what is to be printed.
pub(crate) fn read() -> Result<Verb, clap::Error> {
    let words = meant(std::env::args_os().collect());
    match without_the_others(&words) {
        Some(verb) => understand(Cli { verb }),
        None => understand(among_all(&words)?),
    }
}

/// Reads a command line with all verbs at hand, and says what is wrong with it in words of ours.
fn among_all(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words).map_err(|error| match error.kind() {
        // Only who asks for help waits for its texts to be laid out.
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            flowing(Cli::command()).try_get_matches_from(words).err().unwrap_or(error)
        }
        _ => explain(error, words),
    })
}

/// The same commands with the texts below their options in whole paragraphs, which the parser then breaks
/// where the terminal ends.
fn flowing(command: clap::Command) -> clap::Command {
    let command = match command.get_after_help().map(|text| flowed(&text.to_string())) {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Joins the lines of a paragraph. A line that is indented is an example, one with a gap in it a row of a table, and
/// both stay as they are.
fn flowed(text: &str) -> String {
    let mut flowed = String::new();
    let mut before = "";
    for line in text.lines() {
        let stands_alone =
            |line: &str| line.is_empty() || line.starts_with(' ') || line.contains("  ");
        if !flowed.is_empty() {
            flowed.push(if stands_alone(before) || stands_alone(line) { '\n' } else { ' ' });
        }
        flowed += line;
        before = line;
    }
    flowed
}

/// The same words with the verb that is meant where none is named: a prompt has several words, or stands
/// after `--`. One word alone is a verb, and a mistyped one is told of.
fn meant(mut words: Vec<OsString>) -> Vec<OsString> {
    const ASKS_ABOUT_ALL: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let is_prompt = match words.get(1).map(|word| word.to_string_lossy()) {
        None => true,
        Some(word) if ASKS_ABOUT_ALL.contains(&&*word) => false,
        Some(word) => word.starts_with('-') || word.contains(char::is_whitespace),
    };
    if is_prompt && !words.is_empty() {
        words.insert(1, OsString::from("tui"));
    }
    words
}

/// Reads the verbs that somebody waits for most by their own options alone: making a parser of all verbs
/// takes as long as starting a small program. Whatever this does not understand is left to that one,
/// which has the words for it.
fn without_the_others(words: &[OsString]) -> Option<CliVerb> {
    fn read<T: clap::Args>(words: &[OsString]) -> Option<T> {
        let parser = T::augment_args(clap::Command::new("sandgate"));
        T::from_arg_matches(&parser.try_get_matches_from(words).ok()?).ok()
    }
    let (_program, rest) = words.split_first()?;
    match rest.first()?.to_str()? {
        "run" => read(rest).map(CliVerb::Run),
        "sandbox" => read(rest).map(CliVerb::Sandbox),
        _ => None,
    }
}

const HELP: &str = "\
Examples:
  sandgate                             talk with a model here, and decide what it may do
  sandgate 'fix the failing test'      the same, with something to begin with
  sandgate run -- make test            one command through the gate
  sandgate help run                    more about one of them";

/// The gate between an AI agent and your machine.
#[derive(Debug, Parser)]
#[command(
    name = "sandgate",
    version,
    max_term_width = 100,
    subcommand_required = true,
    override_usage = "sandgate [PROMPT]\n       sandgate COMMAND",
    after_help = HELP
)]
struct Cli {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Work with a model in this terminal; so does sandgate alone
    Tui(Box<CliTui>),
    /// Run one command through the gate and end with its exit code
    Run(CliRun),
    /// Have a model do something, through the gate
    Exec(CliExec),
    /// Have a model look at a change, and change nothing
    Review(CliReview),
    /// Go on with a conversation
    Resume(CliResume),
    /// List, show and export conversations
    Sessions(CliSessionsOnDisk),
    /// Be the agent of an editor, which starts this
    Acp(CliAcp),
    /// Make the tool calls of a model, as JSON lines
    Call(CliCall),
    /// Be the MCP server of the program that starts this
    Mcp(CliMcp),
    /// Let programs use the gate over HTTP, and a person approve in a browser
    Serve(CliServe),
    /// Apply a patch, or say what it would change
    Patch(CliPatch),
    /// Run one command confined, in this terminal
    Sandbox(CliSandbox),
    /// Say what becomes of a command and why, and run nothing
    Policy(CliPolicy),
    /// Start processes that live on, and talk to them
    #[cfg(unix)]
    Session(CliSessions),
    /// Have a live process in this terminal
    #[cfg(unix)]
    Attach(AttachArguments),
    /// Answer what any sandgate of yours asks, from this terminal
    #[cfg(unix)]
    Approvals(CliApprovals),
    /// Say where the console of a running `sandgate serve` is
    #[cfg(unix)]
    Console(CliConsole),
    /// Keep processes alive for `sandgate session`, which starts this when it is needed
    #[cfg(unix)]
    #[command(hide = true)]
    Daemon(DaemonArguments),
    /// Show what was recorded, and check that it is as it was written
    Audit(CliAudit),
    /// Show, change and check your settings
    Config(CliConfig),
    /// Say that you trust a directory, or that you do not
    Trust(CliTrust),
    /// See what the gate does, in two minutes
    Demo(CliDemo),
    /// Say what works on this machine, what does not, and what to do about it
    Doctor(CliDoctor),
    /// Print what lets a shell complete sandgate's words
    Completions(CliCompletions),
    /// Write the manual pages
    Man(CliMan),
}

/// All that can be written.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// Turns what was written into what is meant.
fn understand(cli: Cli) -> Result<Verb, clap::Error> {
    match cli.verb {
        CliVerb::Tui(cli) => tui::understand(*cli).map(Box::new).map(Verb::Tui),
        CliVerb::Run(run) => run::understand(run).map(Verb::Run),
        CliVerb::Resume(resume) => exec::understand_resume(resume),
        CliVerb::Sessions(sessions) => Ok(Verb::Sessions(sessions)),
        CliVerb::Exec(exec) => exec::understand(exec).map(Verb::Exec),
        CliVerb::Review(review) => review::understand(review).map(Verb::Review),
        CliVerb::Acp(acp) => acp::understand(acp).map(Verb::Acp),
        CliVerb::Call(call) => call::understand(call).map(Verb::Call),
        CliVerb::Mcp(mcp) => mcp::understand(mcp).map(Verb::Mcp),
        CliVerb::Serve(serve) => serve::understand(serve).map(Verb::Serve),
        CliVerb::Patch(patch) => patch::understand(patch).map(Verb::Patch),
        CliVerb::Sandbox(sandbox) => sandbox::understand(sandbox).map(Verb::Sandbox),
        CliVerb::Policy(policy) => policy::understand(policy).map(Verb::Policy),
        #[cfg(unix)]
        CliVerb::Session(session) => live::understand(session).map(Verb::Session),
        #[cfg(unix)]
        CliVerb::Attach(attach) => Ok(Verb::Attach(attach)),
        #[cfg(unix)]
        CliVerb::Approvals(approvals) => approvals::understand(approvals).map(Verb::Approvals),
        #[cfg(unix)]
        CliVerb::Console(console) => Ok(Verb::Console(console)),
        #[cfg(unix)]
        CliVerb::Daemon(daemon) => Ok(Verb::Daemon(daemon)),
        CliVerb::Audit(audit) => audit::understand(audit).map(Verb::Audit),
        CliVerb::Config(config) => Ok(Verb::Config(config)),
        CliVerb::Trust(trust) => Ok(Verb::Trust(trust)),
        CliVerb::Demo(demo) => Ok(Verb::Demo(demo)),
        CliVerb::Doctor(doctor) => Ok(Verb::Doctor(doctor)),
        CliVerb::Completions(completions) => Ok(Verb::Completions(completions)),
        CliVerb::Man(man) => Ok(Verb::Man(man)),
    }
}

/// Adds what the parser cannot know: that the command stands after `--`, and how a prompt is written.
fn explain(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    const TAKE_COMMANDS: [&str; 5] =
        ["run", "sandbox", "policy explain", "policy check", "session start"];
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::InvalidSubcommand
        && usage.contains("sandgate [PROMPT]")
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand).cloned()
    {
        if error.get(ContextKind::SuggestedSubcommand).is_none() {
            let close: Vec<String> = nearly(&word).collect();
            if !close.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(close));
            }
        }
        let tip = as_a_prompt(&word, words).into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        return error;
    }
    if let Some(tip) = what_there_is(&error, &usage) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    // The one word that may stand before `sandgate sandbox`'s command is taken for the name of a system.
    let (word, verb) = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => {
            let is_meant = |verb: &&str| usage.contains(&format!("sandgate {verb}"));
            (word, TAKE_COMMANDS.into_iter().find(is_meant))
        }
        (ErrorKind::InvalidValue, Some(ContextValue::String(arg))) if arg == "[SYSTEM]" => {
            match error.get(ContextKind::InvalidValue) {
                Some(ContextValue::String(word)) => (word, Some("sandbox")),
                _ => return error,
            }
        }
        _ => return error,
    };
    match verb {
        Some(verb) if !word.starts_with('-') => {
            let message = format!("write -- before the command: sandgate {verb} -- {word} …");
            usage_error(verb, ErrorKind::UnknownArgument, message)
        }
        _ => error,
    }
}

/// What could have been written, where a verb of a verb is none, or what must be one of a few words is missing.
fn what_there_is(error: &clap::Error, usage: &str) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let words = usage.lines().next()?.split_whitespace().skip_while(|word| *word != "sandgate");
    for word in words.skip(1) {
        let Some(next) = command.find_subcommand(word).cloned() else { break };
        command = next;
    }
    let list = |names: Vec<String>| (!names.is_empty()).then(|| names.join(", "));
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, _) => {
            if error.get(ContextKind::SuggestedSubcommand).is_some() {
                return None;
            }
            let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
            let names = verbs.map(|verb| verb.get_name().to_owned()).collect();
            Some(format!("there are: {}", list(names)?))
        }
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => {
            let wanted = command.get_arguments().find(|arg| missing.contains(&arg.to_string()))?;
            let values = wanted.get_possible_values().into_iter();
            let names = values.map(|value| value.get_name().to_owned()).collect();
            Some(format!("it is one of: {}", list(names)?))
        }
        _ => None,
    }
}

/// How what looks like a mistyped verb would be written if it was meant for a model.
fn as_a_prompt(word: &str, words: &[OsString]) -> String {
    let said: Option<Vec<&str>> = words.iter().skip(1).map(|word| word.to_str()).collect();
    match said.as_deref() {
        Some(said) if said.len() > 1 && said[0] == word => {
            let said = said.join(" ");
            let said = if said.contains('\'') { "PROMPT" } else { &said };
            format!("a prompt of several words stands in quotes: sandgate '{said}'")
        }
        _ => format!("a prompt of one word stands after --: sandgate -- {word}"),
    }
}

/// The verbs that have the letters of this word in another order, or one more. The parser does not take `rnu` or `rn`
/// to be close to `run`, because so short a word is half wrong then.
fn nearly(word: &str) -> impl Iterator<Item = String> {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let typed = letters(word);
    let lacks_one = |name: &str, word: &str| {
        let without = |at: usize| name.chars().enumerate().filter(move |(other, _)| *other != at);
        (0..name.chars().count()).any(|at| without(at).map(|(_, letter)| letter).eq(word.chars()))
    };
    let word = word.to_owned();
    let names: Vec<String> = Cli::command()
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .map(|verb| verb.get_name().to_owned())
        .collect();
    names.into_iter().filter(move |name| letters(name) == typed || lacks_one(name, &word))
}

/// Commands are text in events and for models, so they must be text here.
pub(crate) fn as_text(verb: &str, words: Vec<OsString>) -> Result<Vec<String>, clap::Error> {
    let check = |(index, word): (usize, OsString)| {
        word.into_string().map_err(|word| {
            let message = format!(
                "word {} of the command is not valid UTF-8: {}\n\n  \
                 Name the file in another way, such as with a pattern in a script: 'cat caf*'",
                index + 1,
                shown(&word)
            );
            usage_error(verb, ErrorKind::InvalidUtf8, message)
        })
    };
    words.into_iter().enumerate().map(check).collect()
}

/// A word with every byte that is not text made visible.
fn shown(word: &OsString) -> String {
    let mut shown = String::new();
    for chunk in word.as_encoded_bytes().utf8_chunks() {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

/// An error in the form of the parser's own, with the usage of the verb below it.
pub(crate) fn usage_error(verb: &str, kind: ErrorKind, message: String) -> clap::Error {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for name in verb.split(' ') {
        command = match command.find_subcommand(name) {
            Some(_) => command.find_subcommand_mut(name).expect("it was found"),
            None => return command.error(kind, message),
        };
    }
    command.error(kind, message)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What these words after `sandgate` are understood as.
    pub(crate) fn understood(words: &[&str]) -> Result<Verb, clap::Error> {
        let words: Vec<OsString> = ["sandgate"].iter().chain(words).map(OsString::from).collect();
        understand(among_all(&words)?)
    }

    #[test]
    fn a_verb_is_read_alone_as_it_is_among_all_others() {
        let lines: &[&[&str]] = &[
            &["sandbox", "--", "ls", "-l", "--", "x"],
            &["sandbox", "linux", "--full-auto", "--writable", "a b", "--json", "--", "ls"],
            &["sandbox", "--sandbox=workspace-write", "-c", "a=1", "--cd", "x", "--", "ls"],
            &["sandbox", "--status"],
            &["run", "--", "ls", "-l"],
            &["run", "--shell", "bash", "--", "ls | wc"],
        ];
        for line in lines {
            let words: Vec<OsString> =
                ["sandgate"].iter().chain(*line).map(OsString::from).collect();
            let alone = without_the_others(&words).expect("it makes sense");
            let among = Cli::try_parse_from(&words).unwrap().verb;
            assert_eq!(format!("{alone:?}"), format!("{among:?}"));
        }
    }

    #[test]
    fn what_a_verb_alone_does_not_understand_is_left_to_all() {
        let lines: &[&[&str]] = &[
            &[],
            &["--version"],
            &["help"],
            &["sandbox"],
            &["sandbox", "--help"],
            &["sandbox", "--version"],
            &["sandbox", "ls"],
            &["sandbox", "--full-auto", "--sandbox", "read-only", "--", "ls"],
            &["run", "-h"],
            &["policy", "explain", "--", "ls"],
        ];
        for line in lines {
            let words: Vec<OsString> =
                ["sandgate"].iter().chain(*line).map(OsString::from).collect();
            assert!(without_the_others(&words).is_none(), "{line:?}");
        }
    }

    #[test]
    fn the_parser_is_consistent() {
        Cli::command().debug_assert();
    }

    /// spec RUN.96: A command that stands without `--` before it is shown with it, a prompt without quotes with
    /// them, and a verb with letters swapped or one missing as it is spelled; where a word is one of a few, those
    /// are named.
    #[test]
    fn what_was_meant_is_shown_as_it_is_written() {
        let error = understood(&["run", "echo", "hi"]).unwrap_err();
        assert!(error.to_string().contains("sandgate run -- echo"), "{error}");
        assert_eq!(error.exit_code(), i32::from(crate::exit::USAGE));
        let error = understood(&["sandbox", "ls"]).unwrap_err();
        assert!(error.to_string().contains("sandgate sandbox -- ls"), "{error}");
        // What takes no command is not told to.
        let error = understood(&["patch", "apply", "a", "b"]).unwrap_err();
        assert!(!error.to_string().contains("before the command"), "{error}");
        let error = understood(&["fix", "the", "test"]).unwrap_err();
        assert!(error.to_string().contains("in quotes: sandgate 'fix the test'"), "{error}");
        let error = understood(&["don't", "do", "it"]).unwrap_err();
        assert!(error.to_string().contains("in quotes: sandgate 'PROMPT'"), "{error}");
        let error = understood(&["rnu"]).unwrap_err();
        assert!(error.to_string().contains("similar subcommand exists: 'run'"), "{error}");
        assert!(error.to_string().contains("after --: sandgate -- rnu"), "{error}");
        let error = understood(&["rn", "--", "ls"]).unwrap_err();
        assert!(error.to_string().contains("similar subcommand exists: 'run'"), "{error}");
        let error = understood(&["policy", "add"]).unwrap_err();
        assert!(error.to_string().contains("there are: explain, check, list"), "{error}");
        let error = understood(&["mcp", "install"]).unwrap_err();
        assert!(error.to_string().contains("it is one of: claude, codex, cursor"), "{error}");
        let error = understood(&["completions"]).unwrap_err();
        assert!(error.to_string().contains("it is one of: bash"), "{error}");
    }

    /// spec GEN.10: The texts of the help are broken where the terminal ends and nowhere else.
    #[test]
    fn texts_of_the_help_are_broken_where_the_terminal_ends() {
        let text = "Examples:\n  sandgate run -- ls   lists\n  sandgate run -- cd   goes\n\n\
                    One thing is\nsaid here.\n\nargv  words\ncwd   where\n\nAnd another.";
        let expected = "Examples:\n  sandgate run -- ls   lists\n  sandgate run -- cd   goes\n\n\
                        One thing is said here.\n\nargv  words\ncwd   where\n\nAnd another.";
        assert_eq!(flowed(text), expected);
        for words in [&["exec", "-h"][..], &["mcp", "--help"], &["help", "run"], &["--help"]] {
            let words: Vec<OsString> =
                ["sandgate"].iter().chain(words).map(OsString::from).collect();
            let help = among_all(&words).unwrap_err().to_string();
            let begin = help.find("Examples:").or(help.find("The program"));
            let texts = &help[begin.expect("there are texts below the options")..];
            // At least so wide is what it was laid out for.
            let widest = help.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            for paragraph in texts.split("\n\n").filter(|text| !text.contains("\n  ")) {
                for (line, next) in paragraph.lines().zip(paragraph.lines().skip(1)) {
                    let word = next.split(' ').next().unwrap_or_default();
                    let would_fit = line.chars().count() + 1 + word.chars().count() <= widest;
                    assert!(!would_fit, "{word:?} fits behind {line:?}");
                }
            }
        }
    }
}
