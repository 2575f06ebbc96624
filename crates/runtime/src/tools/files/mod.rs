//! `read_file`, `list_dir` and `grep_files`: reading, in this process, without asking anybody.
//!
//! They read what any confined command could read, and no secrets: for those a model has to ask
//! through a command, about which a person decides. Everything is bounded: how much is looked at, how
//! long it takes, and how much is said.

mod careful_walk;
mod grep_files;
mod list_dir;
mod read_file;
mod regular;

use careful_walk::{Reached, entries};
pub(crate) use careful_walk::{careful_walk, said_of};
pub(crate) use grep_files::GrepFilesHandler;
pub(crate) use list_dir::ListDirHandler;
pub(crate) use read_file::ReadFileHandler;
pub(crate) use regular::open_regular;

use super::ToolInvocation;
use crate::audit::{CallAsked, DecidedBy, Decision, DecisionKind, Record};
use crate::detached;
use sandgate_policy::danger;
use sandgate_policy::{Surroundings, script};
use sandgate_protocol::{CodexErr, SandboxPermissions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The most that one call says, in bytes.
const MOST_SAID: usize = 40_000;

/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 500;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how long work is to come to an end by itself, so that what it found is not lost.
const WORK: Duration = Duration::from_secs(9);

/// The path that a call names.
fn resolve(named: &str, invocation: &ToolInvocation<'_>) -> Result<PathBuf, CodexErr> {
    if named.contains('\0') {
        return Err(failed("the path has a NUL in it".to_owned()));
    }
    let path = invocation.turn.cwd.join(named);
    dunce::canonicalize(&path).map_err(|error| failed(format!("{}: {error}", path.display())))
}

/// Records what is looked at, and refuses what holds secrets.
fn look_at(path: &Path, what: &str, invocation: &ToolInvocation<'_>) -> Result<(), CodexErr> {
    let ctx = invocation.ctx();
    let call_id = || invocation.call_id.clone();
    let config = &invocation.services.config;
    let path_text = path.to_string_lossy().into_owned();
    let argv = [what.to_owned(), path_text].into_iter().filter(|word| !word.is_empty()).collect();
    ctx.record(&Record::CallAsked(CallAsked {
        call_id: call_id(),
        front_end: config.front_end.clone(),
        tool: invocation.tool_name.to_owned(),
        argv,
        cwd: invocation.turn.cwd.to_string_lossy().into_owned(),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        agent: invocation.services.agent(),
    }))?;
    let refused = refuse_processes(path).and_then(|()| refuse_secrets(path, config.home()));
    let decision = match refused {
        Ok(()) => DecisionKind::Allowed,
        Err(_) => DecisionKind::Forbidden,
    };
    let by = DecidedBy::Policy;
    let decided = Decision { call_id: call_id(), decision, by, attempt: 1, feedback: None };
    ctx.record(&Record::Decided(decided))?;
    refused
}

/// What the kernel says of the machine that anybody may know.
const OF_THE_MACHINE: &[&str] =
    &["cpuinfo", "meminfo", "version", "loadavg", "uptime", "filesystems"];

/// Whether a path, absolute and without links, is what the kernel says of processes, ours among them. A
/// command in its sandbox sees its own only, and this process is in none.
fn is_of_processes(path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix("/proc") else { return false };
    !OF_THE_MACHINE.iter().any(|name| inside == Path::new(name))
}

fn refuse_processes(path: &Path) -> Result<(), CodexErr> {
    match is_of_processes(path) {
        false => Ok(()),
        true => Err(CodexErr::Forbidden {
            reason:
                "what is in /proc is not read by this tool, which runs outside the sandbox. Use \
                     shell with cat, which sees the processes of its own sandbox."
                    .to_owned(),
        }),
    }
}

/// Refuses what holds secrets.
fn refuse_secrets(path: &Path, home: Option<PathBuf>) -> Result<(), CodexErr> {
    // The same tables that a command is judged by.
    let words = ["cat".to_owned(), path.to_string_lossy().into_owned()];
    let around = Surroundings { home, ..Surroundings::default() };
    match danger::find(&script::read(&words), &around) {
        None => Ok(()),
        Some(danger) => Err(CodexErr::Forbidden {
            reason: format!(
                "{danger}, and this tool asks nobody. Use shell with cat, about which a person \
                 decides."
            ),
        }),
    }
}

fn failed(reason: String) -> CodexErr {
    CodexErr::ToolExecutionFailed(reason)
}

/// Whether something is looked at: not what git keeps for itself, nor what keeps a name free, nor what the
/// kernel says of processes.
fn is_listed(entry: &ignore::DirEntry) -> bool {
    let path = entry.path();
    entry.depth() == 0
        || (entry.file_name() != ".git"
            && !is_of_processes(path)
            && !sandgate_sandbox::keeps_a_name_free(path))
}

/// A line as it is shown: harmless, and cut if it is too long.
fn shown(line: &str) -> String {
    let line = sandgate_process::harmless(line.trim_end_matches(['\n', '\r']));
    match line.char_indices().nth(LONGEST_LINE) {
        None => line.into_owned(),
        Some((end, _)) => format!("{} […]", &line[..end]),
    }
}

/// Says when work has taken long enough.
#[derive(Debug, Clone)]
struct Limit {
    deadline: Instant,
    cancelled: Arc<AtomicBool>,
}

impl Limit {
    fn is_over(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || Instant::now() > self.deadline
    }
}

/// Does work that blocks, until it is done, its time or the turn is over.
async fn off_the_loop<T: Send + 'static>(
    cancellation: &CancellationToken,
    work: impl FnOnce(&Limit) -> Result<T, CodexErr> + Send + 'static,
) -> Result<T, CodexErr> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let limit = Limit { deadline: Instant::now() + WORK, cancelled: Arc::clone(&cancelled) };
    let working = detached::begin(move || work(&limit));
    tokio::select! {
        done = tokio::time::timeout(PATIENCE, working) => match done {
            Ok(Some(result)) => result,
            Ok(None) => Err(failed("it was cut off".to_owned())),
            Err(_) => {
                cancelled.store(true, Ordering::Relaxed);
                let seconds = PATIENCE.as_secs();
                Err(failed(format!("it was given up after {seconds} seconds: something there keeps a reader waiting")))
            }
        },
        () = cancellation.cancelled() => {
            cancelled.store(true, Ordering::Relaxed);
            Err(CodexErr::UserAborted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec CALL.31: A call of `read_file`, `list_dir` or `grep_files` is answered within ten seconds, also
    /// when what it reads never ends.
    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_is_given_up() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let began = tokio::time::Instant::now();
        let work = off_the_loop(&CancellationToken::new(), move |_| {
            // Nothing comes until the test is over.
            let _ = held.recv();
            Ok(())
        })
        .await;
        assert!(work.unwrap_err().to_string().starts_with("it was given up after 10 seconds"));
        assert_eq!(began.elapsed().as_secs(), 10, "by the clock of the test");
        drop(release);
    }
}
