//! What may follow `sandgate session` and `sandgate attach`: first parsed, then made sense of.

use super::said;
use crate::arguments::{as_text, usage_error};
use crate::session::CliSession;
use clap::Subcommand;
use clap::error::ErrorKind;
use serde_json::{Value, json};
use std::ffi::OsString;

const HELP: &str = "\
Examples:
  sandgate session start --id web -- npm run dev     a server that stays when this terminal closes
  sandgate session start -- python3                  says its id, such as d1
  sandgate session send d1 'print(6 * 7)'            types a line and shows what came of it
  sandgate session send d1 --keys ctrl-c             presses keys
  sandgate session read web --lines -50              the last 50 lines
  sandgate attach web                                the process in this terminal; Ctrl-] leaves it

A process starts like any command: judged, asked about, confined and recorded. It lives until it
ends, or is killed, or session stop ends everything. Below is a small daemon of your own, which is
started when it is needed and ends when nothing has lived for a minute.

Exit codes: the process's own if it ended while it was waited for, otherwise 0; 77 if a decision was
needed and nobody could give it; 78 if you, a rule or the policy said no; 130 if you called it off;
125 if sandgate failed or there is no such process; 2 if this command line makes no sense.";

/// What may follow `sandgate session`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliSessions {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Start a process that lives on
    Start(CliStart),
    /// Type something to a process, and show what came of it
    Send(CliSend),
    /// Show what a process printed
    Read(CliRead),
    /// List the processes
    List(CliList),
    /// End processes, with all that they started
    Kill(CliKill),
    /// End all processes, and the daemon
    Stop,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "sandgate session start [OPTIONS] -- COMMAND...")]
struct CliStart {
    /// One word is a script for your shell, several are a program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    session: CliSession,

    /// What to call the process by [default: chosen]
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Give it a terminal, which is what happens anyway
    #[arg(long, conflicts_with = "no_tty")]
    tty: bool,

    /// Give it pipes instead of a terminal
    #[arg(long)]
    no_tty: bool,

    /// Keep its screen, for a program that draws on all of it
    #[arg(long, conflicts_with = "no_tty")]
    screen: bool,

    #[command(flatten)]
    waiting: CliWaiting,
}

#[derive(Debug, clap::Args)]
struct CliSend {
    /// The process
    #[arg(value_name = "ID")]
    id: String,

    /// What to type; nothing only shows what it printed
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,

    /// Keys to press after that: ctrl-c, esc, up, enter, …
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    keys: Vec<String>,

    /// A signal for what runs in the foreground: INT, TERM, HUP, QUIT, KILL, STOP, CONT, USR1, USR2
    #[arg(long, value_name = "SIGNAL")]
    signal: Option<String>,

    /// Do not end the line
    #[arg(long)]
    no_newline: bool,

    /// Answer questions without asking: approve, deny, or a file with an answer a line; or wait for sandgate
    /// approvals: approvals
    #[arg(long, value_name = "ANSWER")]
    decide: Option<String>,

    #[command(flatten)]
    waiting: CliWaiting,
}

/// How long, and for what, is waited.
#[derive(Debug, clap::Args)]
struct CliWaiting {
    /// Wait until this regular expression is printed
    #[arg(long, value_name = "RE")]
    wait_for: Option<String>,

    /// Wait for at most N milliseconds [default: 10000; 250 to 30000]
    #[arg(long, value_name = "N")]
    yield_ms: Option<u64>,

    /// Print the whole reply as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct CliRead {
    /// The process, or the name of a full output
    #[arg(value_name = "ID")]
    id: String,

    /// The first line, counted from the end if it is negative, and how many
    #[arg(long, value_name = "FIRST[:COUNT]", allow_hyphen_values = true)]
    lines: Option<String>,

    /// Only lines that this regular expression matches, with their numbers
    #[arg(long, value_name = "RE")]
    pattern: Option<String>,

    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct CliList {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct CliKill {
    /// The processes
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,

    /// All of them
    #[arg(long)]
    all: bool,
}

/// What may follow `sandgate attach`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What the process prints goes to your terminal as it is, and what you type goes to the process. It is
judged by nobody: it is you who types. Ctrl-] leaves the process, which goes on.

Exit codes: 0 when you left; the process's own when it ended; 125 if sandgate failed.")]
pub(crate) struct AttachArguments {
    /// The process
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

/// In what form something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What `sandgate session` is to do.
#[derive(Debug)]
pub(crate) struct SessionArguments {
    pub(super) verb: Verb,
    pub(super) form: Form,
}

#[derive(Debug)]
pub(super) enum Verb {
    Start(Box<Started>),
    Send(Sent),
    Read(Asked),
    List,
    Kill(Victims),
    Stop,
}

/// A process to start.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) session: CliSession,
    pub(super) arguments: Value,
}

/// Something to type.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: String,
    pub(super) decide: Option<String>,
    pub(super) arguments: Value,
}

/// Something to read.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) arguments: Value,
}

/// Processes to end.
#[derive(Debug)]
pub(super) enum Victims {
    Named(Vec<String>),
    All,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliSessions) -> Result<SessionArguments, clap::Error> {
    let (verb, json) = match cli.verb {
        CliVerb::Start(cli) => start(cli)?,
        CliVerb::Send(cli) => send(cli),
        CliVerb::Read(cli) => read(cli)?,
        CliVerb::List(cli) => (Verb::List, cli.json),
        CliVerb::Kill(cli) if cli.all => (Verb::Kill(Victims::All), false),
        CliVerb::Kill(cli) => (Verb::Kill(Victims::Named(cli.ids)), false),
        CliVerb::Stop => (Verb::Stop, false),
    };
    Ok(SessionArguments { verb, form: if json { Form::Json } else { Form::Text } })
}

fn start(cli: CliStart) -> Result<(Verb, bool), clap::Error> {
    const VERB: &str = "session start";
    let conflict = |message| Err(usage_error(VERB, ErrorKind::ArgumentConflict, message));
    if let Err(message) = cli.session.check() {
        return conflict(message);
    }
    if cli.session.decide.as_deref() == Some("stdin") {
        return conflict("--decide stdin is for sandgate call".to_owned());
    }
    let command = as_text(VERB, cli.command)?;
    let command = match &command[..] {
        [script] => json!(script),
        words => json!(words),
    };
    let arguments = said([
        ("command", Some(command)),
        ("process_id", cli.id.map(Value::from)),
        ("tty", cli.no_tty.then_some(json!(false))),
        ("screen", cli.screen.then_some(json!(true))),
        ("wait_for", cli.waiting.wait_for.map(Value::from)),
        ("yield_time_ms", cli.waiting.yield_ms.map(Value::from)),
    ]);
    let started = Started { session: cli.session, arguments };
    Ok((Verb::Start(Box::new(started)), cli.waiting.json))
}

fn send(cli: CliSend) -> (Verb, bool) {
    let end = if cli.no_newline { "" } else { "\n" };
    let arguments = said([
        ("process_id", Some(json!(cli.id))),
        ("input", cli.text.map(|text| json!(text + end))),
        ("keys", (!cli.keys.is_empty()).then(|| json!(cli.keys))),
        ("signal", cli.signal.map(Value::from)),
        ("wait_for", cli.waiting.wait_for.map(Value::from)),
        ("yield_time_ms", cli.waiting.yield_ms.map(Value::from)),
    ]);
    (Verb::Send(Sent { id: cli.id, decide: cli.decide, arguments }), cli.waiting.json)
}

fn read(cli: CliRead) -> Result<(Verb, bool), clap::Error> {
    let (first, count) = match cli.lines.as_deref().map(lines) {
        None => (None, None),
        Some(Some((first, count))) => (Some(json!(first)), count.map(Value::from)),
        Some(None) => {
            let message = "--lines is a number such as 1 or -50, and if you like how many: 1:20";
            let kind = ErrorKind::InvalidValue;
            return Err(usage_error("session read", kind, message.to_owned()));
        }
    };
    let arguments = said([
        ("id", Some(json!(cli.id))),
        ("first_line", first),
        ("lines", count),
        ("pattern", cli.pattern.map(Value::from)),
    ]);
    Ok((Verb::Read(Asked { id: cli.id, arguments }), cli.json))
}

/// The first line and how many, of `FIRST[:COUNT]`.
fn lines(text: &str) -> Option<(i64, Option<u64>)> {
    let (first, count) = match text.split_once(':') {
        Some((first, count)) => (first, Some(count.parse().ok()?)),
        None => (text, None),
    };
    let first = first.parse().ok().filter(|first| *first != 0)?;
    Some((first, count))
}

#[cfg(test)]
mod tests {
    use crate::arguments::Verb;
    use crate::arguments::tests::understood;

    fn arguments(words: &[&str]) -> serde_json::Value {
        let Ok(Verb::Session(arguments)) = understood(&[&["session"], words].concat()) else {
            panic!("{words:?} is not understood")
        };
        match arguments.verb {
            super::Verb::Start(started) => started.arguments,
            super::Verb::Send(sent) => sent.arguments,
            super::Verb::Read(asked) => asked.arguments,
            other => panic!("{other:?} has none"),
        }
    }

    #[test]
    fn one_word_is_a_script_and_several_are_a_program() {
        assert_eq!(arguments(&["start", "--", "a b"])["command"], "a b");
        assert_eq!(arguments(&["start", "--", "a", "b"])["command"][1], "b");
    }

    #[test]
    fn text_is_a_line_unless_it_is_not_to_be() {
        assert_eq!(arguments(&["send", "d1", "-x"])["input"], "-x\n");
        assert_eq!(arguments(&["send", "d1", "x", "--no-newline"])["input"], "x");
        let keys = arguments(&["send", "d1", "--keys", "esc,up"]);
        assert_eq!((&keys["keys"][1], &keys["input"]), (&"up".into(), &serde_json::Value::Null));
    }

    #[test]
    fn lines_are_a_place_and_a_count() {
        let read = arguments(&["read", "d1", "--lines", "-50:10"]);
        assert_eq!((&read["first_line"], &read["lines"]), (&(-50).into(), &10.into()));
        for wrong in ["0", "x", "1:x", ""] {
            assert!(understood(&["session", "read", "d1", "--lines", wrong]).is_err(), "{wrong}");
        }
    }
}
