//! `sandgate demo`: what the gate does, shown in a directory that is made for it and goes with it.

mod place;
mod steps;

use crate::{exit, notes, wrap};
use place::Place;
use sandgate_runtime::Runtime;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use steps::Tour;

const HELP: &str = "\
Six steps of a few seconds each: a safe command, one that is blocked, a narrow grant, a shell that
lives across calls, a patch, and the record of all that. At a terminal each waits for Enter; s skips
one and q ends the tour. Without a terminal it is told as a transcript.

Nothing of yours is touched: it works in a directory for temporary files, with settings of its own.";

/// What may follow `sandgate demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliDemo {
    /// Do not wait for Enter
    #[arg(long)]
    yes: bool,
}

/// What the person wants to happen to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Go,
    Skip,
    Quit,
}

/// Shows it and says how this program is to end.
pub(crate) fn demo(cli: &CliDemo) -> ExitCode {
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::from(exit::OUTPUT_CLOSED)
        }
        Err(error) => {
            let advice = Some("sandgate doctor says what is missing here.");
            let _ = io::stderr().write_all(&notes::error(&error.to_string(), advice));
            ExitCode::from(exit::FAILED)
        }
    }
}

fn start(cli: &CliDemo) -> io::Result<()> {
    // First of all, because it forks.
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    let waits = !cli.yes && io::stdin().is_terminal() && io::stdout().is_terminal();
    let place = Place::make()?;
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    asynchronous.block_on(async {
        let tour = Tour::begin(runtime, &place).await?;
        let columns = wrap::columns(io::stdout());
        say(&flowing(steps::WELCOME, columns))?;
        for (index, step) in steps::STEPS.iter().enumerate() {
            let title = format!("{} of {}  {}", index + 1, steps::STEPS.len(), step.title);
            let (rule, about) = ("-".repeat(title.len()), flowing(step.about, columns));
            say(&format!("\n{title}\n{rule}\n{about}"))?;
            match if waits { ask()? } else { Next::Go } {
                Next::Go => say(&tour.take(step.what).await?)?,
                Next::Skip => say("    skipped\n")?,
                Next::Quit => return say("\nThat was all, then.\n"),
            }
        }
        say(steps::FAREWELL)
    })
}

/// What the person wants.
fn ask() -> io::Result<Next> {
    say("    [Enter] go on   [s] skip   [q] quit  ")?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        say("\n")?;
        return Ok(Next::Quit);
    }
    Ok(match line.trim() {
        "q" | "quit" => Next::Quit,
        "s" | "skip" => Next::Skip,
        _ => Next::Go,
    })
}

/// A paragraph, broken where the terminal ends; what is no terminal has it as it is written.
fn flowing(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return format!("{}\n", text.trim_end()) };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    wrap::wrapped(&text, Some(columns.min(WIDEST)), 0) + "\n"
}

/// Longer lines are hard to read.
const WIDEST: usize = 96;

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec DEMO.4: At a terminal what is told of a step is broken between words where the terminal ends, and nowhere
    /// else.
    #[test]
    fn a_paragraph_flows() {
        for step in steps::STEPS {
            let narrow = flowing(step.about, Some(40));
            assert!(narrow.lines().all(|line| line.len() <= 40), "{narrow}");
            let mut lines = narrow.lines().zip(narrow.lines().skip(1));
            let next = |line: &str| line.split(' ').next().unwrap_or_default().len();
            assert!(lines.all(|(line, after)| line.len() + 1 + next(after) > 40), "{narrow}");
        }
        assert_eq!(flowing("as it\nis", None), "as it\nis\n");
    }
}
