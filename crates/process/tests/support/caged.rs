//! A session whose commands are confined, and ways to look at what is left of them.

use super::{Nowhere, eventually, eventually_async, program, script, skipped};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use sandgate_policy::{Extras, Grant};
use sandgate_process::{ExecuteOptions, Executed, SpawnError, Spawner, Stop, execute};
use sandgate_protocol::{ExecParams, SandboxPolicy};
use sandgate_sandbox::{ExecEnv, SandboxManager};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Who runs a test with this variable set has made namespaces impossible.
const REFUSED: &str = "SANDGATE_TEST_NAMESPACES";

const WITHOUT_NAMESPACES: &str = include_str!("../../../cli/tests/support/without_namespaces.py");

/// A workspace, something beside it that must stay as it is, and all that commands need to run.
pub(crate) struct Session {
    // In this order: the names that a spawner keeps free lie in the directory.
    pub(crate) spawner: Spawner,
    pub(crate) manager: SandboxManager,
    pub(crate) place: Place,
}

/// The directory of a session, which goes with it if it is its own.
pub(crate) struct Place {
    path: PathBuf,
    _owned: Option<TempDir>,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Session {
    pub(crate) fn new() -> Self {
        // Not below `/tmp`, which a confined command may write to.
        let place = tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").unwrap();
        for directory in ["ws", "outside"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("outside/victim"), "before").unwrap();
        Self::at(Place { path: place.path().to_owned(), _owned: Some(place) })
    }

    /// One more session in a place that belongs to another one.
    pub(crate) fn beside(place: &Path) -> Self {
        Self::at(Place { path: place.to_owned(), _owned: None })
    }

    fn at(place: Place) -> Self {
        let spawner = Spawner::start().unwrap();
        Self { spawner, manager: SandboxManager::new(), place }
    }

    pub(crate) fn ws(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.place.path().join("outside").join(name)
    }

    /// What is in the workspace.
    pub(crate) fn listing(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.ws()).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// A command that works in the workspace and may write there.
    pub(crate) fn confined(&self, params: ExecParams) -> ExecEnv {
        self.widened(params, &Extras::default())
    }

    /// The same with something opened to it.
    pub(crate) fn widened(&self, mut params: ExecParams, extras: &Extras) -> ExecEnv {
        if params.cwd == Path::new("/") {
            params.cwd = self.ws();
        }
        let policy = SandboxPolicy::workspace_write();
        let grant = Grant::sandboxed_by_person(params, policy, self.ws());
        self.manager.transform(grant.widened_by_person(extras)).expect("it can be confined")
    }

    /// A script that is told where the workspace is, and what lies beside it.
    pub(crate) fn script(&self, text: &str) -> ExecParams {
        let mut params = script(text);
        params.env.insert("WS".into(), self.ws().into());
        params.env.insert("OUT".into(), self.outside("").into());
        params
    }

    /// Runs a script to its end.
    pub(crate) async fn run(&self, text: &str) -> Executed {
        self.execute(self.script(text)).await.unwrap()
    }

    pub(crate) async fn execute(&self, params: ExecParams) -> Result<Executed, SpawnError> {
        self.execute_with(params, ExecuteOptions::default(), &Stop::default()).await
    }

    pub(crate) async fn execute_with(
        &self,
        params: ExecParams,
        options: ExecuteOptions,
        stop: &Stop,
    ) -> Result<Executed, SpawnError> {
        execute(&self.spawner, &self.confined(params), options, stop, &mut Nowhere).await
    }

    /// Whether commands have namespaces here.
    pub(crate) fn has_namespaces(&self) -> bool {
        let there_are = self.manager.status().namespaces;
        assert!(!(there_are && std::env::var_os(REFUSED).is_some()), "they are not refused");
        there_are
    }

    /// A named pipe in the workspace, whose writers are watched.
    pub(crate) fn pipe(&self, name: &str) -> Pipe {
        let path = self.ws().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        Pipe(fs::OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap())
    }
}

/// A pipe that tells whether anybody is there who has it open for writing.
pub(crate) struct Pipe(File);

impl Pipe {
    /// Waits until somebody wrote a line to it.
    pub(crate) async fn written(&mut self) {
        eventually_async("somebody writes to the pipe", || self.look().is_some_and(|n| n > 0))
            .await;
    }

    /// Waits until whoever had it open is gone.
    pub(crate) fn abandoned(&mut self) {
        eventually("the last writer is gone", || self.is_abandoned());
    }

    pub(crate) fn is_abandoned(&mut self) -> bool {
        self.look() == Some(0)
    }

    fn look(&mut self) -> Option<usize> {
        self.0.read(&mut [0; 64]).ok()
    }
}

/// A script whose processes try to get away in every way that a shell knows, and hold the pipe `alive`
/// open while they live. `after` is what the script itself does when all have started.
pub(crate) fn runaways(after: &str) -> String {
    format!(
        r#"
        exec 9>"$WS/alive"
        sleep 300 &
        setsid sleep 300 &
        setsid sh -c 'sleep 300 & exec setsid sh -c "sleep 300 & wait"' &
        (nohup sleep 300 >/dev/null 2>&1 &)
        (sh -c '(setsid sleep 300 >/dev/null 2>&1 </dev/null &)')
        echo ready >&9
        {after}
        "#
    )
}

/// Runs this test once more where namespaces are refused. Says whether this is that run: a test that
/// holds there too begins with
///
/// ```text
/// again_without_namespaces("its name");
/// ```
#[expect(clippy::disallowed_methods, reason = "the test itself is run again")]
pub(crate) fn again_without_namespaces(test: &str) {
    if std::env::var_os(REFUSED).is_some() {
        return;
    }
    let Some(python) = found("python3") else {
        return skipped("there is no python3 here to refuse namespaces with");
    };
    let mut again = std::process::Command::new(python);
    again.args(["-c", WITHOUT_NAMESPACES]).arg(std::env::current_exe().unwrap());
    pass(again.args(["--exact", test, "--nocapture"]).env(REFUSED, "yes"));
}

/// Runs a test that is about all of its process once more in a process of its own. Says whether this is
/// that run; the other one has nothing left to do.
pub(crate) fn in_its_own_process(test: &str) -> bool {
    started_by(&["env"], test)
}

/// Runs a test once more where a user has namespaces of every kind but for the network. Says whether this is that
/// run, as above.
#[expect(clippy::disallowed_methods, reason = "the test itself is run again")]
pub(crate) fn without_network_namespaces(test: &str) -> bool {
    const REFUSE: &str = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    let before = ["unshare", "--map-root-user", "sh", "-c", REFUSE, "sh"];
    let possible = std::process::Command::new("unshare").args(&before[1..]).arg("true").output();
    if !is_started_again() && !possible.is_ok_and(|tried| tried.status.success()) {
        skipped("namespaces for the network cannot be refused here");
        return false;
    }
    started_by(&before, test)
}

/// Who runs a test with this variable set has started it again.
const AGAIN: &str = "SANDGATE_TEST_AGAIN";

fn is_started_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

#[expect(clippy::disallowed_methods, reason = "the test itself is run again")]
pub(crate) fn started_by(before: &[&str], test: &str) -> bool {
    if is_started_again() {
        return true;
    }
    let mut again = std::process::Command::new(before[0]);
    again.args(&before[1..]).arg(std::env::current_exe().unwrap());
    pass(again.args(["--exact", test, "--nocapture"]).env(AGAIN, "yes"));
    false
}

fn pass(test: &mut std::process::Command) {
    let output = test.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "run again as another process:\n{text}{errors}");
}

/// Where a program is.
pub(crate) fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|at| at.join(program)).find(|file| file.is_file())
}

/// A Python program that works in a cage, if there is a Python that everybody can execute.
pub(crate) fn python(text: &str) -> Option<ExecParams> {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        skipped("there is no /usr/bin/python3 here");
        return None;
    }
    Some(program(&["/usr/bin/python3", "-c", text]))
}

/// A process, as the whole system sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) parent: u32,
    pub(crate) name: String,
    pub(crate) state: char,
}

/// All processes there are.
pub(crate) fn processes() -> BTreeMap<u32, Seen> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, fields)) = stat.rsplit_once(')') else { continue };
        let name = head.split_once('(').map_or("", |(_, name)| name).to_owned();
        let mut fields = fields.split_whitespace();
        let state = fields.next().and_then(|state| state.chars().next()).unwrap_or('?');
        let parent = fields.next().and_then(|parent| parent.parse().ok()).unwrap_or(0);
        all.insert(pid, Seen { parent, name, state });
    }
    all
}

/// Everything below a process.
pub(crate) fn descendants(of: u32) -> BTreeMap<u32, Seen> {
    let all = processes();
    let is_below = |mut pid: u32| {
        while let Some(seen) = all.get(&pid) {
            if seen.parent == of {
                return true;
            }
            pid = seen.parent;
        }
        false
    };
    all.iter().filter(|(pid, _)| is_below(**pid)).map(|(pid, seen)| (*pid, seen.clone())).collect()
}

/// The processes that are in a cage over a place: it is mounted there by its own name.
pub(crate) fn caged_over(place: &Path) -> BTreeSet<u32> {
    let place = format!(" {}/ws ", place.display());
    let mounts = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/mountinfo"));
    // Some processes are gone meanwhile, and others are somebody else's.
    let is_there = |pid: &u32| mounts(pid).is_ok_and(|mounts| mounts.contains(&place));
    processes().into_keys().filter(is_there).collect()
}

/// The guards of a running command: its warden and the nursery of its cage.
pub(crate) struct Guards {
    pub(crate) warden: u32,
    pub(crate) nursery: u32,
}

impl Guards {
    pub(crate) fn of(command: u32) -> Self {
        let warden = super::parent_of(command);
        let nursery = super::parent_of(warden);
        let all = processes();
        assert_eq!((&*all[&warden].name, &*all[&nursery].name), ("sg-warden", "sg-nursery"));
        Self { warden, nursery }
    }

    /// The wardens that wait for the next commands, with the processes that will become those.
    fn idle(&self) -> Vec<Idle> {
        let all = processes();
        let idle = all.iter().filter(|(pid, seen)| {
            seen.parent == self.nursery && **pid != self.warden && seen.name == "sg-warden"
        });
        let with_vestibule = |(warden, _): (&u32, &Seen)| {
            let is_its = |seen: &Seen| seen.parent == *warden && seen.name == "sg-vestibule";
            let vestibule = all.iter().find(|(_, seen)| is_its(seen));
            vestibule.map(|(vestibule, _)| Idle { warden: *warden, vestibule: *vestibule })
        };
        idle.filter_map(with_vestibule).collect()
    }

    /// The same once there are so many: one after the first command, and two from the second on.
    pub(crate) async fn at_rest(&self, count: usize) -> Vec<Idle> {
        let mut idle = Vec::new();
        let mut look = || {
            idle = self.idle();
            idle.len() == count
        };
        super::eventually_async("all that wait for commands are there", &mut look).await;
        idle
    }
}

/// Who waits for a command.
pub(crate) struct Idle {
    pub(crate) warden: u32,
    pub(crate) vestibule: u32,
}

pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
