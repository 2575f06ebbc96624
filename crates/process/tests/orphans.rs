//! No process outlives its call, however it tries.

#![cfg(target_os = "linux")]

mod support;

use sandgate_process::{ExecuteOptions, Spawner, Stdin, Stop, Stragglers, execute};
use std::collections::BTreeSet;
use std::path::Path;
use support::{
    Nowhere, RUNAWAYS, alive, eventually, eventually_async, granted, memory_of, parent_of, pids,
    run, run_out_of_time, run_with, runaways, script,
};

fn all_gone(file: &Path) {
    let pids = pids(file);
    assert_eq!(pids.len(), RUNAWAYS, "{pids:?}");
    eventually("every process has ended", || !pids.iter().any(|&pid| alive(pid)));
}

/// A directory that an ordinary user's commands can write to, and a file in it.
fn pid_file() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    (directory, file)
}

/// spec PROCESS.20: A time limit ends every process that the command started, also those that made
/// a session or group of their own or were left by their parents.
#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let (_directory, file) = pid_file();
    let params = script(&runaways(&file, "sleep 300"));
    let started = || pids(&file).len() == RUNAWAYS;
    let done = run_out_of_time(params, "all have started", started).await.output;
    assert!(done.timed_out);
    all_gone(&file);
}

/// spec PROCESS.21: Cancelling a call ends every process that its command started.
#[tokio::test]
async fn cancelling_ends_the_whole_tree() {
    let (_directory, file) = pid_file();
    let stop = Stop::default();
    let (cancel, seen) = (stop.cancel.clone(), file.clone());
    let watcher = tokio::spawn(async move {
        eventually_async("all have started", || pids(&seen).len() == RUNAWAYS).await;
        cancel.cancel();
    });
    let params = script(&runaways(&file, "sleep 300"));
    let done = run_with(params, ExecuteOptions::default(), &stop).await.unwrap().output;
    watcher.await.unwrap();
    assert_eq!((done.cancelled, done.exit_code), (true, 137));
    all_gone(&file);
}

/// spec PROCESS.22: A command that ends by itself leaves nothing behind, unless its caller asked
/// for that.
#[tokio::test]
async fn a_command_that_ends_takes_its_children_with_it() {
    let (_directory, file) = pid_file();
    let done = run(script(&runaways(&file, "exit 5"))).await.unwrap().output;
    assert_eq!(done.exit_code, 5);
    all_gone(&file);
}

/// spec PROCESS.22: A command that ends by itself leaves nothing behind, unless its caller asked
/// for that.
#[tokio::test]
async fn what_may_stay_stays() {
    let (_directory, file) = pid_file();
    let text = format!("setsid sleep 300 >/dev/null 2>&1 & echo $! > '{}'", file.display());
    let options = ExecuteOptions { stragglers: Stragglers::Leave, ..Default::default() };
    let done = run_with(script(&text), options, &Stop::default()).await.unwrap().output;
    assert_eq!(done.exit_code, 0);
    let pids = pids(&file);
    assert_eq!(pids.len(), 1);
    // Its call is over and its spawner is gone: whoever would end it has had the chance.
    assert!(alive(pids[0]));
    kill(pids[0]);
}

/// spec PROCESS.23: A command that has ended is not waited for on behalf of a process that still
/// holds its output open: the result says so.
#[tokio::test]
async fn an_inherited_pipe_does_not_hold_up_the_call() {
    let done = run(script("sleep 300 & echo done")).await.unwrap().output;
    assert_eq!((done.exit_code, done.stdout.text.as_str()), (0, "done\n"));
    assert!(done.pipes_still_open);
}

/// spec PROCESS.23: A command that has ended is not waited for on behalf of a process that still
/// holds its output open: the result says so.
#[tokio::test]
async fn what_may_stay_may_hold_its_pipe() {
    let (_directory, file) = pid_file();
    let text = format!("sleep 300 & echo $! > '{}'; echo done", file.display());
    let options = ExecuteOptions { stragglers: Stragglers::Leave, ..Default::default() };
    let done = run_with(script(&text), options, &Stop::default()).await.unwrap().output;
    assert_eq!((done.stdout.text.as_str(), done.pipes_still_open), ("done\n", true));
    let pids = pids(&file);
    assert!(alive(pids[0]));
    kill(pids[0]);
}

/// spec PROCESS.24: Dropping a process, or a call that has not ended, ends its whole tree.
#[tokio::test]
async fn dropping_ends_the_whole_tree() {
    let spawner = Spawner::start().unwrap();
    let (_directory, file) = pid_file();
    let env = granted(script(&runaways(&file, "sleep 300")));
    let process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    eventually_async("all have started", || pids(&file).len() == RUNAWAYS).await;
    drop(process);
    tokio::task::yield_now().await;
    eventually_async("the tree is gone", || !pids(&file).iter().any(|&pid| alive(pid))).await;

    let (_directory, file) = pid_file();
    let env = granted(script(&runaways(&file, "sleep 300")));
    let stop = Stop::default();
    let mut nowhere = Nowhere;
    {
        let call = execute(&spawner, &env, ExecuteOptions::default(), &stop, &mut nowhere);
        tokio::select! {
            _ = call => panic!("sleeps for five minutes"),
            () = eventually_async("all have started", || pids(&file).len() == RUNAWAYS) => {}
        }
    }
    all_gone(&file);
}

/// spec PROCESS.24: Dropping a process, or a call that has not ended, ends its whole tree.
#[tokio::test]
async fn terminating_ends_the_whole_tree() {
    let spawner = Spawner::start().unwrap();
    let (_directory, file) = pid_file();
    let env = granted(script(&runaways(&file, "sleep 300")));
    let process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    eventually_async("all have started", || pids(&file).len() == RUNAWAYS).await;
    process.session.terminate();
    assert_eq!(process.exit_rx.await, Ok(137));
    all_gone(&file);
}

/// The processes that have this one as their parent.
fn children_of(parent: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        if fields.split_whitespace().nth(1).and_then(|ppid| ppid.parse().ok()) == Some(parent) {
            found.insert(pid);
        }
    }
    found
}

fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// spec PROCESS.25: When the process that watches over a command is killed, the command and all
/// that it started end with it, and the result says that it was killed.
#[tokio::test]
async fn a_killed_warden_takes_its_job_with_it() {
    let spawner = Spawner::start().unwrap();
    let (_directory, file) = pid_file();
    let env = granted(script(&runaways(&file, "sleep 300")));
    let process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    eventually_async("all have started", || pids(&file).len() == RUNAWAYS).await;
    kill(parent_of(process.session.pid()));
    assert_eq!(process.exit_rx.await, Ok(137));
    all_gone(&file);
}

/// spec PROCESS.25: When the process that watches over a command is killed, the command and all
/// that it started end with it, and the result says that it was killed.
#[tokio::test]
async fn a_command_dies_with_its_warden_even_alone() {
    let spawner = Spawner::start().unwrap();
    let env = granted(script("exec sleep 300"));
    let process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    let pid = process.session.pid();
    let warden = parent_of(pid);
    // Without the nursery there is nobody else who could end it.
    let nursery = parent_of(warden);
    kill(nursery);
    eventually("the nursery has ended", || !alive(nursery));
    kill(warden);
    eventually("the command has ended", || !alive(pid));
    assert_eq!(process.exit_rx.await, Ok(137));
}

/// spec PROCESS.31: A command that kills or stops the processes that watch over it gains nothing by
/// it: it is run once, it is ended, and so is all that it started.
#[tokio::test]
async fn a_command_that_kills_its_warden_is_not_run_again() {
    let spawner = Spawner::start().unwrap();
    let (_directory, file) = pid_file();
    let text = format!("echo $$ >> '{}'; kill -9 $PPID; sleep 300", file.display());
    for round in 1..=20 {
        let env = granted(script(&text));
        let (options, stop) = (ExecuteOptions::default(), Stop::default());
        let done = execute(&spawner, &env, options, &stop, &mut Nowhere).await.unwrap().output;
        assert_eq!(done.exit_code, 137);
        assert_eq!(pids(&file).len(), round);
    }
    eventually("every process has ended", || !pids(&file).iter().any(|&pid| alive(pid)));
}

/// spec PROCESS.31: A command that kills or stops the processes that watch over it gains nothing by
/// it: it is run once, it is ended, and so is all that it started.
#[tokio::test]
async fn a_deep_tree_ends_with_a_killed_warden_and_a_spawner_that_goes() {
    let (_directory, file) = pid_file();
    // Each level makes a session of its own and starts the next one.
    let deeper = format!(
        "[ $1 = 0 ] && exit; echo $$ >> '{}'; setsid sh \"$0\" $(($1 - 1)) & exec sleep 300",
        file.display()
    );
    let program_file = file.with_extension("sh");
    std::fs::write(&program_file, deeper).unwrap();
    let text = format!("sh '{}' 60 & read forever", program_file.display());
    let spawner = Spawner::start().unwrap();
    let env = granted(script(&text));
    let process = spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    eventually_async("all have started", || pids(&file).len() == 60).await;
    kill(parent_of(process.session.pid()));
    assert_eq!(process.exit_rx.await, Ok(137));
    drop(process.session);
    drop(spawner);
    // The spawner waited for its nursery, and that for the last of them.
    assert!(!pids(&file).iter().any(|&pid| alive(pid)));
}

/// spec PROCESS.31: A command that kills or stops the processes that watch over it gains nothing by
/// it: it is run once, it is ended, and so is all that it started.
#[tokio::test]
async fn stopped_guards_do_not_stop_the_rest() {
    let spawner = Spawner::start().unwrap();
    let (_directory, file) = pid_file();
    // The warden of the command itself.
    let text = format!("echo $$ > '{}'; kill -STOP $PPID; sleep 300", file.display());
    let env = granted(script(&text));
    let process = spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    assert_eq!(process.exit_rx.await, Ok(137));
    eventually("the command has ended", || !alive(pids(&file)[0]));
    // The idle ones that would serve the next.
    let first = spawner.spawn_pipe(&granted(script("read x")), Stdin::Piped).await.unwrap();
    let warden = parent_of(first.session.pid());
    let nursery = parent_of(warden);
    eventually_async("there are idle wardens", || children_of(nursery).len() == 3).await;
    let idle = children_of(nursery).into_iter().filter(|&pid| pid != warden);
    idle.for_each(|idle| signal(idle, rustix::process::Signal::STOP));
    let second = spawner.spawn_pipe(&granted(script("exit 6")), Stdin::Null).await.unwrap();
    assert_eq!(second.exit_rx.await, Ok(6));
    // The nursery: dropping the spawner waits for it, and must not wait for ever.
    signal(nursery, rustix::process::Signal::STOP);
    drop((first, spawner));
    assert!(!alive(nursery));
}

/// spec PROCESS.26: When the process that starts commands is killed, the next command starts
/// another one, and commands that are running are not disturbed.
#[tokio::test]
async fn a_killed_nursery_is_replaced() {
    let spawner = Spawner::start().unwrap();
    let env = granted(script("read line; echo got $line"));
    let mut first = spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    let nursery = parent_of(parent_of(first.session.pid()));
    assert_eq!(parent_of(nursery), std::process::id());
    let second = spawner.spawn_pipe(&granted(script("exit 7")), Stdin::Null).await.unwrap();
    assert_eq!(second.exit_rx.await, Ok(7));
    // Two guards wait now. They outlive the nursery, and could take what comes.
    eventually("two guards wait", || children_of(nursery).len() == 3);
    kill(nursery);
    eventually("the nursery has ended", || !alive(nursery));
    let waits = granted(script("read line; exit 7"));
    for _ in 0..3 {
        let third = spawner.spawn_pipe(&waits, Stdin::Piped).await.unwrap();
        let another = parent_of(parent_of(third.session.pid()));
        assert_ne!(another, nursery);
        assert_eq!(parent_of(another), std::process::id(), "nobody ends what it leaves behind");
        third.session.writer_sender().unwrap().send("on\n".into()).await.unwrap();
        assert_eq!(third.exit_rx.await, Ok(7));
    }
    first.session.writer_sender().unwrap().send("on\n".into()).await.unwrap();
    let Some(sandgate_process::Received::Chunk(chunk)) = first.output_rx.recv().await else {
        panic!("no output")
    };
    assert_eq!(chunk.bytes, "got on\n");
}

/// spec PROCESS.27: A command that multiplies faster than it can be looked at is ended too.
#[tokio::test]
async fn a_bomb_is_put_out() {
    let (_directory, file) = pid_file();
    // Each one starts two more and stays; the depth bounds the number.
    let text = format!(
        r#"bomb() {{ echo $(cut -d' ' -f4 /proc/self/stat) >> '{}'; if [ $1 -gt 0 ]; then (bomb $(($1 - 1))) & (bomb $(($1 - 1))) & fi; while :; do sleep 1; (:) & done; }}; bomb 6"#,
        file.display()
    );
    let many = || pids(&file).len() > 20;
    let done = run_out_of_time(script(&text), "there are many", many).await.output;
    assert!(done.timed_out && done.left_running == 0);
    let pids = pids(&file);
    eventually("every process has ended", || !pids.iter().any(|&pid| alive(pid)));
}

/// spec PROCESS.28: The processes that start and watch commands hold nothing of their host's heap,
/// arguments or environment.
#[tokio::test]
async fn the_guards_know_no_secrets() {
    // Made at run time, so that it is not in the program's own text; kept on the heap.
    let secret: String = (0..48u8).map(|i| char::from(b'a' + (i % 26) * 7 % 26)).rev().collect();
    let heap = vec![secret.clone(); 100];
    // Large enough to be a mapping of its own, which the kernel joins with its neighbours.
    let large = secret.repeat(20_000);
    let spawner = Spawner::start().unwrap();
    let process = spawner.spawn_pipe(&granted(script("read x")), Stdin::Piped).await.unwrap();
    let warden = parent_of(process.session.pid());
    let nursery = parent_of(warden);
    assert!(children_of(nursery).contains(&warden));
    assert!(memory_of(std::process::id()).windows(48).any(|w| w == secret.as_bytes()));
    for pid in [nursery, warden] {
        let memory = memory_of(pid);
        let found = memory.windows(48).filter(|w| *w == secret.as_bytes()).count();
        assert_eq!(found, 0, "in process {pid}");
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(environ.iter().all(|&byte| byte == 0));
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(cmdline.starts_with(b"sg-guard"), "{}", cmdline.escape_ascii());
    }
    drop((heap, large));
}
