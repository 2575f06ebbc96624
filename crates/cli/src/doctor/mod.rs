//! `sandgate doctor`: what works here, what does not, what that means and what would change it.

mod checks;
mod machine;

use crate::session::CliSession;
use crate::{agent::CliModel, exit, wrap};
use anstyle::{AnsiColor, Effects, Style};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  sandgate doctor              everything; a model's service is asked whether it is there
  sandgate doctor --offline    everything that needs no network
  sandgate doctor --json       for programs: one object

Nothing is changed. Exit codes: 0 when all that is needed works, with or without warnings; 1 when
something does not; 2 if this command line makes no sense.";

/// What may follow `sandgate doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliDoctor {
    /// Do not ask the model's service whether it is there
    #[arg(long)]
    offline: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    model: CliModel,

    #[command(flatten)]
    session: CliSession,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It works.
    Ok,
    /// It works, and could be better.
    Warning,
    /// It does not.
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// What it belongs to.
    area: &'static str,
    /// What it is.
    name: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// What that means, where it is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<String>,
    /// What changes it: commands, one a line, or what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fix: Vec<String>,
}

impl Check {
    fn new(area: &'static str, name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self { area, name, state, found: found.into(), means: None, fix: Vec::new() }
    }

    fn means(mut self, what: impl Into<String>) -> Self {
        self.means = Some(what.into());
        self
    }

    fn fix(mut self, what: impl Into<String>) -> Self {
        self.fix.push(what.into());
        self
    }
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    state: State,
    checks: &'a [Check],
}

/// Looks at everything and says how this program is to end.
pub(crate) fn doctor(cli: &CliDoctor) -> ExitCode {
    let checks = checks::all(cli);
    let state = checks.iter().map(|check| check.state).max().unwrap_or(State::Ok);
    let mut stdout = anstream::AutoStream::auto(io::stdout().lock());
    let said = match cli.json {
        true => {
            let report = Report { version: env!("CARGO_PKG_VERSION"), state, checks: &checks };
            serde_json::to_string_pretty(&report)
                .map_or_else(|error| error.to_string(), |text| text + "\n")
        }
        false => in_words(&checks, state, wrap::columns(io::stdout())),
    };
    match stdout.write_all(said.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) if state == State::Failed => ExitCode::from(exit::FOUND),
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::OUTPUT_CLOSED),
    }
}

const TITLE: Style = Style::new().effects(Effects::BOLD);
const DIM: Style = Style::new().effects(Effects::DIMMED);
const GOOD: Style = AnsiColor::Green.on_default();
const FAIR: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

/// For people: an area after the other, what is wrong with what to do about it.
fn in_words(checks: &[Check], state: State, columns: Option<usize>) -> String {
    let widest = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{TITLE}{area}{TITLE:#}");
        }
        let (style, mark) = match check.state {
            State::Ok => (GOOD, "ok  "),
            State::Warning => (FAIR, "fair"),
            State::Failed => (BAD, "bad "),
        };
        let margin = widest + 10;
        let indent = " ".repeat(margin);
        let name = check.name;
        let found = match check.found.contains('\n') {
            // A file that is not in order is shown with the line that is wrong.
            true => check.found.replace('\n', &format!("\n{indent}")),
            false => wrap::wrapped(&check.found, columns, margin),
        };
        let _ = writeln!(text, "  {style}{mark}{style:#}  {name:widest$}  {found}");
        if let Some(means) = &check.means {
            let means = wrap::wrapped(means, columns, margin);
            let _ = writeln!(text, "{indent}{DIM}{means}{DIM:#}");
        }
        for fix in &check.fix {
            // A command is not broken, so that it can be copied; what is said of it may go below.
            let fits = columns.is_none_or(|columns| margin + 2 + fix.len() <= columns);
            let fix = match fix.split_once("   (") {
                Some((command, about)) if !fits => {
                    let about = wrap::wrapped(&format!("({about}"), columns, margin + 3);
                    format!("{command}\n{indent}  {about}")
                }
                _ => fix.clone(),
            };
            let _ = writeln!(text, "{indent}> {fix}");
        }
    }
    let bad = checks.iter().filter(|check| check.state == State::Failed).count();
    let fair = checks.iter().filter(|check| check.state == State::Warning).count();
    let end = match state {
        State::Ok => "Everything works.".to_owned(),
        State::Warning => format!("It works; {fair} could be better."),
        State::Failed => format!("{bad} bad, {fair} could be better."),
    };
    let _ = writeln!(text, "\n{end}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec DOC.9: On a narrow terminal a command that is advised stays in one piece, and what is said of it goes
    /// below.
    #[test]
    fn what_is_said_of_a_command_goes_below_it() {
        let fix = "export HOME=/home/you   (a directory that is there and yours)";
        let check = Check::new("You", "home", State::Failed, "none").fix(fix);
        let told = |columns| in_words(std::slice::from_ref(&check), State::Failed, columns);
        assert!(told(None).contains(fix), "{}", told(None));
        assert!(told(Some(100)).contains(fix), "{}", told(Some(100)));
        let narrow = told(Some(40));
        let below = "> export HOME=/home/you\n                (a directory that is\n                 \
                     there and yours)\n";
        assert!(narrow.contains(below), "{narrow}");
    }
}
