//! `sandgate audit`: what was recorded, for people and for programs, and whether it can be trusted.

mod calls;
mod moment;
mod stats;
mod table;
mod words;

use crate::arguments::usage_error;
use crate::settings::config_home;
use crate::{exit, notes, wrap};
use calls::Row;
use clap::error::ErrorKind;
use jiff::{Timestamp, Zoned};
use moment::Edge;
use sandgate_protocol::visible_line;
use sandgate_runtime::audit::{
    AuditEntry, AuditError, Finding, Notice, Problem, Record, Verification,
};
use sandgate_runtime::audit::{audit_directory, entries, verify, verify_since};
use serde::Serialize;
use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  sandgate audit show --since today               what happened today
  sandgate audit show --since 2h --denied         what was refused in the last two hours
  sandgate audit show --session 3f2a9c1d --json   one session, for programs: one object a line
  sandgate audit verify                           whether the log is as it was written
  sandgate audit stats --since 7d                 what it was about

WHEN is a length of time before now (90s, 15m, 2h, 3d, 1w), today, yesterday, a date, or a date and
a time, in your own time zone unless it names another.

The log is in the directory audit of CODEX_HOME, or of ~/.codex.

Exit codes: 0; 1 if verify found something wrong; 125 if the log cannot be read; 2 if this command
line makes no sense.";

/// What may follow `sandgate audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliAudit {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, clap::Subcommand)]
enum CliVerb {
    /// Show what was recorded, a line for each call
    Show(CliShow),
    /// Check that no line was changed, lost, moved or cut off
    Verify(CliVerify),
    /// Count commands, decisions and what was blocked
    Stats(CliStats),
}

#[derive(Debug, clap::Args)]
struct CliShow {
    /// Only what happened from then on
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only what happened before, that day included
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Only this session, by its id or the end of it
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only what somebody or the sandbox refused
    #[arg(long)]
    denied: bool,

    /// Only the last N
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    #[command(flatten)]
    place: CliPlace,
}

#[derive(Debug, clap::Args)]
struct CliVerify {
    /// Only the files from that day on; older ones may be gone
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    #[command(flatten)]
    place: CliPlace,
}

#[derive(Debug, clap::Args)]
struct CliStats {
    /// Only what happened from then on
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    #[command(flatten)]
    place: CliPlace,
}

#[derive(Debug, clap::Args)]
struct CliPlace {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Read the log of this home instead of CODEX_HOME or ~/.codex
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
}

/// What `sandgate audit` is to do.
#[derive(Debug)]
pub(crate) struct AuditArguments {
    task: Task,
    directory: PathBuf,
    json: bool,
}

#[derive(Debug)]
enum Task {
    Show(Wanted),
    Verify { since: Option<Timestamp> },
    Stats { since: Option<Timestamp> },
}

/// What is to be shown.
#[derive(Debug, Default)]
struct Wanted {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    session: Option<String>,
    denied: bool,
    limit: Option<usize>,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliAudit) -> Result<AuditArguments, clap::Error> {
    let now = Zoned::now();
    let time = |option: &str, text: Option<String>, edge| {
        text.map(|text| moment::read(&text, edge, &now))
            .transpose()
            .map_err(|why| usage_error("audit", ErrorKind::InvalidValue, format!("{option} {why}")))
    };
    let since = |text| time("--since", text, Edge::Since);
    let (task, place) = match cli.verb {
        CliVerb::Show(CliShow { since: from, until, session, denied, limit, place }) => {
            let until = time("--until", until, Edge::Until)?;
            (Task::Show(Wanted { since: since(from)?, until, session, denied, limit }), place)
        }
        CliVerb::Verify(verb) => (Task::Verify { since: since(verb.since)? }, verb.place),
        CliVerb::Stats(verb) => (Task::Stats { since: since(verb.since)? }, verb.place),
    };
    let CliPlace { json, home } = place;
    let home = home.or_else(config_home).ok_or_else(|| {
        let message = "neither CODEX_HOME nor HOME is set; name the log's home with --home";
        usage_error("audit", ErrorKind::MissingRequiredArgument, message.to_owned())
    })?;
    Ok(AuditArguments { task, directory: audit_directory(&home), json })
}

/// Does it and says how this program is to end.
pub(crate) fn audit(arguments: &AuditArguments) -> ExitCode {
    let AuditArguments { task, directory, json } = arguments;
    let said = match task {
        Task::Show(wanted) => show(directory, wanted, *json, columns()),
        Task::Verify { since } => check(directory, *since, *json),
        Task::Stats { since } => count(directory, *since, *json),
    };
    let (text, code) = said.unwrap_or_else(|error| {
        complain(&error.to_string(), None);
        (String::new(), exit::FAILED)
    });
    let code = match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(_) => exit::FAILED,
    };
    ExitCode::from(code)
}

/// All that a log has, as people see it, with so much room before each line.
pub(crate) fn shown(directory: &Path, indent: usize) -> String {
    let columns = columns().map(|columns| columns.saturating_sub(indent));
    let shown = show(directory, &Wanted::default(), false, columns);
    shown.map_or_else(|error| error.to_string(), |(text, _)| text)
}

fn show(
    directory: &Path,
    wanted: &Wanted,
    json: bool,
    columns: Option<usize>,
) -> Result<(String, u8), AuditError> {
    let rows = gather(directory, wanted)?;
    let text = match json {
        true => rows.iter().map(as_json).collect(),
        false if rows.is_empty() => nothing(directory)?,
        false => table::draw(&rows, &jiff::tz::TimeZone::system(), columns),
    };
    Ok((text, 0))
}

/// How wide the terminal is, if that is where it is shown.
fn columns() -> Option<usize> {
    wrap::columns(std::io::stdout())
}

/// What sessions and their subagents have had recorded since then: a moment and a line for each call.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn lines_of(
    sessions: &[String],
    since: Timestamp,
) -> Result<Vec<(String, String)>, AuditError> {
    let Some(home) = config_home() else { return Ok(Vec::new()) };
    let mut rows = calls::Rows::default();
    let mut sessions: HashSet<String> = sessions.iter().cloned().collect();
    for entry in entries(&audit_directory(&home), Some(since))? {
        let entry = entry?;
        if let Record::SessionStarted(started) = &entry.record
            && started.parent.as_ref().is_some_and(|parent| sessions.contains(parent))
        {
            sessions.insert(entry.session.clone());
        }
        if sessions.contains(&entry.session) {
            rows.add(entry, None);
        }
    }
    let zone = jiff::tz::TimeZone::system();
    let line = |row: &Row| match row {
        Row::Call(call) if call.asked.is_some() => {
            let time = call.time.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string();
            let parts = [words::decision(call), words::place(call), words::exit(call)];
            let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Some((time, format!("{}\n{}", words::what(call), said.join(" · "))))
        }
        _ => None,
    };
    Ok(rows.finish().iter().filter_map(line).collect())
}

fn count(
    directory: &Path,
    since: Option<Timestamp>,
    json: bool,
) -> Result<(String, u8), AuditError> {
    let rows = gather(directory, &Wanted { since, ..Wanted::default() })?;
    let text = match json {
        true => as_json(&stats::of(&rows)),
        false if rows.is_empty() => nothing(directory)?,
        false => stats::draw(&stats::of(&rows)),
    };
    Ok((text, 0))
}

/// The rows that are wanted. What could not be read of the log is said on standard error.
fn gather(directory: &Path, wanted: &Wanted) -> Result<Vec<Row>, AuditError> {
    let mut entries = entries(directory, wanted.since)?;
    let mut rows = calls::Rows::default();
    for entry in &mut entries {
        let entry = entry?;
        if wanted.session.as_deref().is_none_or(|id| is_session(&entry, id)) {
            rows.add(entry, wanted.until);
        }
    }
    if entries.unreadable() > 0 {
        let what = match entries.unreadable() {
            1 => "one line of the log cannot be read".to_owned(),
            lines => format!("{lines} lines of the log cannot be read"),
        };
        complain(&what, Some("sandgate audit verify says more."));
    }
    let mut rows = rows.finish();
    rows.retain(|row| !wanted.denied || row.was_denied());
    if let Some(limit) = wanted.limit {
        rows.drain(..rows.len().saturating_sub(limit));
    }
    Ok(rows)
}

/// An id or the end of one: ids of one day begin alike.
fn is_session(entry: &AuditEntry, id: &str) -> bool {
    entry.session == id || id.len() >= 4 && entry.session.ends_with(id)
}

/// What is said where there is nothing to show.
fn nothing(directory: &Path) -> Result<String, AuditError> {
    match entries(directory, None)?.next() {
        Some(_) => Ok("Nothing in the log is like that.\n".to_owned()),
        None => {
            let shown = visible_line(&directory.display().to_string());
            Ok(format!("Nothing has been recorded yet. The log will be in {shown}.\n"))
        }
    }
}

fn check(
    directory: &Path,
    since: Option<Timestamp>,
    json: bool,
) -> Result<(String, u8), AuditError> {
    let found = match since {
        Some(since) => verify_since(directory, since)?,
        None => verify(directory)?,
    };
    // A log that is not there cannot be told from one that was taken away as a whole.
    let exists = directory.try_exists().unwrap_or(true);
    let code = if exists && found.is_intact() { 0 } else { 1 };
    let text = match (json, exists) {
        (true, _) => as_json(&Verified::of(&found, exists)),
        (false, true) => spoken(directory, &found),
        (false, false) => {
            let shown = visible_line(&directory.display().to_string());
            format!(
                "There is no log in {shown}: nothing was ever recorded, or all of it is gone.\n"
            )
        }
    };
    Ok((text, code))
}

/// The result of a verification, for a program.
#[derive(Serialize)]
struct Verified<'a> {
    /// Whether there is a log at all.
    exists: bool,
    intact: bool,
    files: u64,
    lines: u64,
    findings: Vec<Told<'a, Problem>>,
    more_findings: u64,
    notices: Vec<Told<'a, Notice>>,
    more_notices: u64,
}

/// Something that was found, also in a person's words.
#[derive(Serialize)]
struct Told<'a, T> {
    #[serde(flatten)]
    found: &'a Finding<T>,
    message: String,
}

impl<'a, T: std::fmt::Display> Told<'a, T> {
    fn all(found: &'a [Finding<T>]) -> Vec<Self> {
        found.iter().map(|found| Self { found, message: found.what.to_string() }).collect()
    }
}

impl<'a> Verified<'a> {
    fn of(found: &'a Verification, exists: bool) -> Self {
        Self {
            exists,
            intact: exists && found.is_intact(),
            files: found.files,
            lines: found.lines,
            findings: Told::all(&found.findings),
            more_findings: found.more_findings,
            notices: Told::all(&found.notices),
            more_notices: found.more_notices,
        }
    }
}

fn spoken(directory: &Path, found: &Verification) -> String {
    let mut text = String::new();
    let mut say = |line: &str| text += &format!("{}\n", visible_line(line));
    for finding in &found.findings {
        say(&format!("{finding}."));
    }
    if found.more_findings > 0 {
        say(&format!("And {} more like these.", found.more_findings));
    }
    for notice in &found.notices {
        say(&format!("Note: {notice}."));
    }
    if found.more_notices > 0 {
        say(&format!("And {} more notes like these.", found.more_notices));
    }
    let read = format!("{} in {}", many(found.lines, "line"), many(found.files, "file"));
    match found.findings.len() as u64 + found.more_findings {
        0 if found.lines == 0 => say("The log is empty."),
        0 => say(&format!("The log is intact: {read}.")),
        wrong => say(&format!(
            "The log in {} is not as it was written: {} wrong ({read}).",
            directory.display(),
            if wrong == 1 { "one thing is".to_owned() } else { format!("{wrong} things are") },
        )),
    }
    text
}

fn many(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn as_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("text and numbers are valid JSON");
    json + "\n"
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str, advice: Option<&str>) {
    let _ = io::stderr().write_all(&notes::error(&visible_line(what), advice));
}
