//! `sandgate` alone: a person, a model and the gate between them, in a terminal.

mod arguments;
mod backstage;

pub(crate) use arguments::{CliTui, TuiArguments, understand};

use crate::trust::OpenTrust;
use crate::{exec, exit, notes, settings, telemetry};
use backstage::CliBackstage;
use sandgate_agent::rollout::Recorded;
use sandgate_config::TrustState;
use sandgate_runtime::Runtime;
use sandgate_tui::{Colours, Ended, Manner, Options, Trust, ask_trust, run};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Lets the person work, and says how this program is to end.
pub(crate) fn tui(mut arguments: TuiArguments) -> ExitCode {
    if is_dumb() {
        arguments.manner = Manner::Plain;
    }
    let there = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !there && arguments.manner == Manner::Drawn {
        let what = "there is no terminal here to work in";
        let advice = "Without one use sandgate exec 'PROMPT', or sandgate --plain for lines.";
        let _ = io::stderr().write_all(&notes::error(what, Some(advice)));
        return ExitCode::from(exit::USAGE);
    }
    let code = work(arguments).unwrap_or_else(|error| {
        let _ = io::stderr().write_all(&notes::error(&error, None));
        exit::FAILED
    });
    ExitCode::from(code)
}

fn work(mut arguments: TuiArguments) -> Result<u8, String> {
    let recorded = exec::recorded(&arguments.conversation).map_err(|error| error.to_string())?;
    if let Some(Recorded { meta, .. }) = &recorded {
        arguments.session.cd.get_or_insert_with(|| meta.cwd.clone());
        arguments.model.goes_on(meta);
    }
    // It forks, and that must come before threads.
    let runtime = Arc::new(Runtime::start().map_err(|error| error.to_string())?);
    let colours = colours();
    let workspace = arguments.session.cd.clone().unwrap_or_else(|| ".".into());
    if !trusted(&arguments, &workspace, colours)? {
        return Ok(exit::REFUSED);
    }
    let mut backstage = CliBackstage::new(runtime, arguments.session, arguments.model);
    let (opened, collector) =
        backstage.open(recorded.as_ref().map(|recorded| recorded.meta.id.as_str()))?;
    let _telemetry = telemetry::start(collector.as_deref());
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asynchronous = asynchronous.map_err(|error| error.to_string())?;
    let options = Options { prompt: arguments.prompt, colours, manner: arguments.manner };
    let ended = asynchronous.block_on(run(opened, &mut backstage, options));
    drop(backstage);
    // A thread may still wait for a key, and nobody waits for that.
    asynchronous.shutdown_background();
    let Ended { conversation, signal } = ended.map_err(|error| error.to_string())?;
    if let Some(id) = conversation {
        let hint = format!("go on with: sandgate resume {id}");
        let _ = io::stderr().write_all(&notes::hint(&hint));
    }
    Ok(signal.map_or(0, exit::of_signal))
}

/// Asks about a directory that the person has not been asked about. Whether work can begin.
fn trusted(arguments: &TuiArguments, workspace: &Path, colours: Colours) -> Result<bool, String> {
    let said = |error: settings::SettingsError| error.into_message();
    let sources = settings::sources(&arguments.session.settings, workspace, Vec::new());
    let loaded = sandgate_config::load(&sources).map_err(|error| error.to_string())?;
    if !matches!(loaded.trust, TrustState::Unknown | TrustState::ChangedSince { .. }) {
        return Ok(true);
    }
    let Some(open) = OpenTrust::of(&sources, &loaded) else { return Ok(true) };
    let answer = ask_trust(&open.text, open.changed, colours, arguments.manner);
    match answer.map_err(|error| error.to_string())? {
        Trust::Yes => open.settle(true).map_err(said)?,
        Trust::No => open.settle(false).map_err(said)?,
        Trust::Later => {}
        Trust::Leave => return Ok(false),
    }
    Ok(true)
}

/// Colours, unless the person wants none: see no-color.org.
fn colours() -> Colours {
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|word| !word.is_empty());
    if wants_none { Colours::Off } else { Colours::On }
}

/// Whether the terminal says that it cannot draw.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
