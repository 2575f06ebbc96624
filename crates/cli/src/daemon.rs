//! `sandgate daemon`: keeps processes alive for `sandgate session`, which starts it when it is needed.
//!
//! Its first word on standard output is for whoever started it: `ready`, `there is one`, or what went
//! wrong. After that it has no standard streams.

use crate::exit;
use rustix::fd::AsFd as _;
use sandgate_runtime::daemon::{Daemon, Place};
use sandgate_runtime::{Runtime, Stop};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What may follow `sandgate daemon`.
#[derive(Debug, clap::Args)]
pub(crate) struct DaemonArguments {
    /// The directory of the person's settings
    #[arg(long, value_name = "DIR")]
    settings: PathBuf,

    /// End when no process has lived for N milliseconds
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    idle_ms: u64,
}

/// Becomes the daemon, if there is none.
pub(crate) fn daemon(arguments: &DaemonArguments) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(arguments: &DaemonArguments) -> io::Result<()> {
    // What ends the terminal, the group or the session of whoever starts us must not end us. It fails
    // where we lead a group already, and then we were started by hand.
    let _ = rustix::process::setsid();
    let settings = std::path::absolute(&arguments.settings)?;
    std::env::set_current_dir("/")?;
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let idle = Duration::from_millis(arguments.idle_ms);
    asynchronous.block_on(serve(runtime, &settings, idle))
}

async fn serve(
    runtime: Arc<Runtime>,
    settings: &std::path::Path,
    idle: Duration,
) -> io::Result<()> {
    let stop = Stop::default();
    listen_to_signals(&stop)?;
    let daemon = Daemon::take(&Place::in_settings(settings)).map_err(io::Error::other)?;
    let word = if daemon.is_some() { "ready" } else { "there is one" };
    let _ = writeln!(io::stdout(), "{word}");
    let Some(daemon) = daemon else { return Ok(()) };
    lose_standard_streams()?;
    // All is gone by now; whoever waits for that hears of it when this is dropped.
    let _farewell = daemon.serve(runtime, idle, stop.cancel).await;
    Ok(())
}

fn listen_to_signals(stop: &Stop) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut arrivals = signal(kind)?;
        let stop = stop.cancel.clone();
        tokio::spawn(async move {
            arrivals.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

/// Whoever waits for the end of our output waits no longer.
fn lose_standard_streams() -> io::Result<()> {
    let null: File = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(null.as_fd())?;
    rustix::stdio::dup2_stdout(null.as_fd())?;
    rustix::stdio::dup2_stderr(null.as_fd())?;
    Ok(())
}
