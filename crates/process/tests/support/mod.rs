//! What the tests of this crate share: commands that are ready to run, and waiting for the world.

#![allow(dead_code, reason = "each test file uses its own part of this")]

#[cfg(target_os = "linux")]
pub(crate) mod caged;

use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Executed, OutputSink, SpawnError, Spawner, Stop, execute};
use sandgate_protocol::{ExecExpiration, ExecParams, OutputStream, SandboxPermissions};
use sandgate_sandbox::{ExecEnv, SandboxManager};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A command for `/bin/sh`.
pub(crate) fn script(text: &str) -> ExecParams {
    program(&["/bin/sh", "-c", text])
}

/// A program and its arguments. The environment is a search path and nothing else.
pub(crate) fn program(command: &[&str]) -> ExecParams {
    ExecParams {
        command: command.iter().map(ToString::to_string).collect(),
        program: PathBuf::from(command.first().copied().unwrap_or_default()),
        cwd: PathBuf::from("/"),
        env: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        expiration: ExecExpiration::Timeout(Duration::from_secs(60)),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        arg0: None,
    }
}

/// A command that may run.
pub(crate) fn granted(params: ExecParams) -> ExecEnv {
    SandboxManager::new()
        .transform(Grant::unconfined_by_person(params))
        .expect("nothing to confine")
}

/// Runs a command with nothing special about it.
pub(crate) async fn run(params: ExecParams) -> Result<Executed, SpawnError> {
    run_with(params, ExecuteOptions::default(), &Stop::default()).await
}

/// Runs a command.
pub(crate) async fn run_with(
    params: ExecParams,
    options: ExecuteOptions,
    stop: &Stop,
) -> Result<Executed, SpawnError> {
    let spawner = Spawner::start().expect("start a spawner");
    execute(&spawner, &granted(params), options, stop, &mut Nowhere).await
}

/// Runs a command with a time limit of an hour, which is over as soon as `ready` is true.
pub(crate) async fn run_out_of_time(
    mut params: ExecParams,
    what: &str,
    ready: impl FnMut() -> bool,
) -> Executed {
    const LIMIT: Duration = Duration::from_secs(3600);
    params.expiration = ExecExpiration::Timeout(LIMIT);
    let stop = Stop::default();
    let call = run_with(params, ExecuteOptions::default(), &stop);
    let clock = async {
        eventually_async(what, ready).await;
        tokio::time::pause();
        tokio::time::advance(LIMIT).await;
        tokio::time::resume();
    };
    let (done, ()) = tokio::join!(call, clock);
    done.unwrap()
}

/// Output that nobody looks at while it comes.
pub(crate) struct Nowhere;

impl OutputSink for Nowhere {
    async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for something to become true, for as long as a test may take.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < limit, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same, while the runtime goes on.
pub(crate) async fn eventually_async(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < limit, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether a process is there and not only waiting to be waited for.
pub(crate) fn alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Whose child a process is.
pub(crate) fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The process ids that a script wrote into a file, one a line.
pub(crate) fn pids(file: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // A line without its end is still being written.
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
}

/// A script that starts processes which try to get away, in every way that a shell knows, and
/// writes all their ids to `file`. `after` is what the script itself does then.
pub(crate) fn runaways(file: &Path, after: &str) -> String {
    let file = file.display();
    format!(
        r#"
        note() {{ echo $1 >> '{file}'; }}
        sleep 300 & note $!
        setsid sleep 300 & note $!
        setsid sh -c 'sleep 300 & echo $! >> "{file}"; exec setsid sh -c "sleep 300 & echo \$! >> {file}; wait"' &
        (nohup sleep 300 >/dev/null 2>&1 & note $!)
        (sh -c '(setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! >> "{file}")')
        note $$
        while [ $(wc -l < '{file}') -lt {RUNAWAYS} ]; do sleep 0.01; done
        {after}
        "#
    )
}

/// How many processes [`runaways`] writes down.
pub(crate) const RUNAWAYS: usize = 7;

/// Says aloud that a test could not be run here, where the test script counts it.
pub(crate) fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// All that a process could read of its own memory, but for files.
#[cfg(target_os = "linux")]
pub(crate) fn memory_of(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut all = Vec::new();
    for line in
        maps.lines().filter(|line| line.contains(" rw-p ") || line.contains(" r--p 00000000 00:00"))
    {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        let mut block = vec![0; usize::try_from(end - start).unwrap()];
        if memory.read_exact_at(&mut block, start).is_ok() {
            all.extend_from_slice(&block);
        }
    }
    all
}
