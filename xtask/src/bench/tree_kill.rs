//! How long the last process of a tree lives on, after a timeout and after the program is killed.

use super::bare;
use super::library::{Library, Nowhere, granted_with};
use super::processes::{Watched, descendants};
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::Samples;
use super::session::{Impossible, Session};
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use sandgate_process::{ExecuteOptions, Stop, execute};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Grows a tree: each process starts four more, each in another way to get away, down to a depth,
/// and writes its id to a file.
const TREE: &str = r#"
echo $$ >> "$TREE_FILE"
if [ "$1" -gt 0 ]; then
    next=$(($1 - 1))
    setsid bash -c "$TREE" tree $next &
    (bash -c "$TREE" tree $next &)
    nohup bash -c "$TREE" tree $next > /dev/null 2>&1 &
    bash -c "$TREE" tree $next & disown
fi
exec sleep 300
"#;

const DEPTH: &str = "2";

/// One, four of its own, and four of each of these.
const PROCESSES: usize = 1 + 4 + 16;

/// How long a tree may take to grow, and to be gone.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn measure(session: &mut Session) {
    session.take("timeout to the last process gone", after_timeout);
    session.take("kill -9 of sandgate to the last process gone", after_kill);
}

fn after_timeout(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    ensure_programs()?;
    let library = Library::start()?;
    let rounds = session.times(20, 3);
    // Long enough for the tree to grow; doubled until it is.
    let mut limit = Duration::from_millis(500);
    let mut times = Vec::new();
    while times.len() < rounds {
        match timeout_once(session, &library, limit)? {
            Some(time) => times.push(time),
            None => limit *= 2,
        }
        anyhow::ensure!(limit < PATIENCE, "the tree did not grow within {PATIENCE:?}");
        progress.step(times.len(), rounds);
    }
    let what = format!("timeout to the last of {PROCESSES} processes gone, worst of {rounds}");
    let target = Target::Within(Duration::from_millis(100).into());
    Ok(vec![Row::of_worst(what, &Samples::new(times)?).target(target)])
}

/// `None` when the tree was not complete in time.
fn timeout_once(
    session: &Session,
    library: &Library,
    limit: Duration,
) -> anyhow::Result<Option<Duration>> {
    let tree = Tree::new(session)?;
    let env = granted_with(&bare::find("bash")?, &TREE_ARGS, &tree.environment(), limit)?;
    let began = Instant::now();
    let fires = began + limit;
    let watcher = std::thread::spawn({
        let file = tree.file.clone();
        move || -> anyhow::Result<Option<Instant>> {
            match grown(&file, fires) {
                Some(pids) => Watched::open(&pids)?.all_gone(PATIENCE).map(Some),
                None => Ok(None),
            }
        }
    });
    let stop = Stop::default();
    let options = ExecuteOptions::default();
    let executed =
        library.runtime.block_on(execute(&library.spawner, &env, options, &stop, &mut Nowhere))?;
    anyhow::ensure!(executed.output.timed_out, "the time limit did not end the tree");
    let Ok(gone) = watcher.join() else { anyhow::bail!("the watching thread panicked") };
    Ok(gone?.map(|gone| gone.saturating_duration_since(fires)))
}

fn after_kill(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    ensure_programs()?;
    let program = session.program()?;
    let rounds = session.times(20, 3);
    let mut times = Vec::new();
    for round in 0..rounds {
        times.push(kill_once(session, program)?);
        progress.step(round + 1, rounds);
    }
    let what = format!("kill -9 of sandgate to the last process gone, worst of {rounds}");
    let target = Target::Within(Duration::from_millis(500).into());
    let row = Row::of_worst(what, &Samples::new(times)?).target(target);
    Ok(vec![row.detail("processes of the command", Quantity::count(PROCESSES))])
}

fn kill_once(session: &Session, program: &Path) -> anyhow::Result<Duration> {
    let tree = Tree::new(session)?;
    // Without the cage, in which process ids are not those that are watched here.
    let mut args = vec!["run", "--sandbox", "danger-full-access"];
    args.extend(["--ask-for-approval", "on-request", "--", "bash"]);
    args.extend(TREE_ARGS);
    let mut sandgate = bare::quiet(program, &args)
        .envs(tree.environment())
        .env("CODEX_HOME", tree.directory.path())
        .spawn()
        .context("cannot start sandgate")?;
    let grown = grown(&tree.file, Instant::now() + PATIENCE);
    // The guards are to be gone as well, not only what they guard.
    let everybody = descendants(sandgate.id());
    let complete = grown.is_some_and(|pids| pids.iter().all(|pid| everybody.contains(pid)));
    let watched = Watched::open(&everybody);
    let pid = i32::try_from(sandgate.id()).ok().and_then(Pid::from_raw).context("no process id")?;
    let killed = Instant::now();
    kill_process(pid, Signal::KILL)?;
    let gone = watched.and_then(|watched| watched.all_gone(PATIENCE));
    sandgate.wait()?;
    anyhow::ensure!(complete, "the tree under sandgate did not grow as it should");
    Ok(gone?.saturating_duration_since(killed))
}

const TREE_ARGS: [&str; 4] = ["-c", TREE, "tree", DEPTH];

/// A tree that is to grow, and the file that its processes write their ids to.
struct Tree {
    file: PathBuf,
    /// Removed with the tree.
    directory: tempfile::TempDir,
}

impl Tree {
    fn new(session: &Session) -> anyhow::Result<Self> {
        let directory = session.scratch()?;
        Ok(Self { file: directory.path().join("pids"), directory })
    }

    fn environment(&self) -> [(&'static str, OsString); 2] {
        [("TREE", TREE.into()), ("TREE_FILE", self.file.clone().into())]
    }
}

/// The ids of a tree's processes, as soon as all of them are there; `None` when time is up.
fn grown(file: &Path, until: Instant) -> Option<Vec<u32>> {
    while Instant::now() < until {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if pids.len() == PROCESSES && text.ends_with('\n') {
            return Some(pids);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

fn ensure_programs() -> anyhow::Result<()> {
    for name in ["bash", "setsid", "nohup", "sleep"] {
        bare::find(name)?;
    }
    if !Path::new("/proc/thread-self/children").exists() {
        return Err(Impossible("the kernel lists no children in /proc".to_owned()).into());
    }
    Ok(())
}
