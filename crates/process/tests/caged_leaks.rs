//! Many confined commands leave nothing behind, and neither does a host that is killed among them.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandgate_policy::Grant;
use sandgate_process::{SpawnError, Stdin, Stop, execute};
use sandgate_protocol::SandboxPolicy;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::caged::{
    Session, again_without_namespaces, caged_over, descendants, in_its_own_process, runaways,
};
use support::{Nowhere, eventually, eventually_async, program, skipped};

fn count(directory: &str) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// spec CAGED.40: A thousand confined commands in a row, and sixty-four at once, leave no process,
/// mount, namespace, descriptor or file behind.
#[tokio::test]
async fn a_thousand_in_a_row_leave_nothing_behind() {
    if !in_its_own_process("a_thousand_in_a_row_leave_nothing_behind") {
        return again_without_namespaces("a_thousand_in_a_row_leave_nothing_behind");
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = count("/proc/self/fd");
    let session = Session::new();
    let env = session.confined(session.script("exit 3"));
    let run = async || {
        let stop = Stop::default();
        let done = execute(&session.spawner, &env, Default::default(), &stop, &mut Nowhere).await;
        assert_eq!(done.unwrap().output.exit_code, 3);
    };
    run().await;
    // The nursery, its idle warden, and what waits for the next command.
    let first_guards = || descendants(std::process::id()).len() == 3;
    eventually_async("only the guards are left", first_guards).await;
    // And as many once more, because commands come one after the other.
    let guards = || descendants(std::process::id()).len() == 5;
    let warm = (count("/proc/self/fd"), count("/proc/self/task"));
    for _ in 0..1000 {
        run().await;
    }
    eventually_async("only the guards are left", guards).await;
    assert_eq!((count("/proc/self/fd"), count("/proc/self/task")), warm);

    let slow = session.confined(session.script("read x; exit 3"));
    let mut processes = Vec::new();
    for _ in 0..64 {
        processes.push(session.spawner.spawn_pipe(&slow, Stdin::Piped).await.unwrap());
    }
    let caged = caged_over(session.place.path());
    assert_eq!(caged.len() >= 64, session.has_namespaces(), "{caged:?}");
    for process in &processes {
        process.session.writer_sender().unwrap().send("go\n".into()).await.unwrap();
    }
    for process in processes {
        assert_eq!(process.exit_rx.await, Ok(3));
    }
    eventually_async("only the guards are left", guards).await;
    eventually_async("all is closed again", || count("/proc/self/fd") == warm.0).await;

    let Session { spawner, place, manager } = session;
    drop(spawner);
    assert!(descendants(std::process::id()).is_empty());
    assert_eq!(fs::read_dir(place.path().join("ws")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    assert!(caged_over(place.path()).is_empty());
    // The cage's rules are open as long as somebody may want it.
    drop((manager, env, slow));
    assert_eq!(count("/proc/self/fd"), before);
}

/// spec CAGED.74: A cage with namespaces holds 256 commands at once, or as many as its descriptors allow. One more is
/// refused, and there is room again when one has ended.
#[tokio::test]
async fn a_full_cage_refuses_commands_until_one_has_ended() {
    /// Each command needs two, and something else has to be left.
    const DESCRIPTORS: u64 = 160;
    const LEFT: usize = 24;
    if !in_its_own_process("a_full_cage_refuses_commands_until_one_has_ended") {
        return;
    }
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here, and so no mounts of a command's own");
    }
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(DESCRIPTORS), ..before };
    setrlimit(Resource::Nofile, few).unwrap();
    // The names that are kept free in a root have its descriptor together.
    let roots: Vec<_> = (0..10).map(|n| session.place.path().join(format!("root{n}"))).collect();
    roots.iter().for_each(|root| fs::create_dir(root).unwrap());
    let confined = |words: &[&str]| {
        let mut params = program(words);
        params.cwd = session.ws();
        let mut policy = SandboxPolicy::workspace_write();
        if let SandboxPolicy::WorkspaceWrite { writable_roots, .. } = &mut policy {
            writable_roots.clone_from(&roots);
        }
        let grant = Grant::sandboxed_by_person(params, policy, session.ws());
        session.manager.transform(grant).unwrap()
    };
    let done = session.spawner.spawn_pipe(&confined(&["/bin/true"]), Stdin::Null).await.unwrap();
    assert_eq!(done.exit_rx.await, Ok(0));
    // It is the cage that is to be full, not this process.
    setrlimit(Resource::Nofile, before).unwrap();
    let sleep = confined(&["/bin/sleep", "300"]);
    let start = || session.spawner.spawn_pipe(&sleep, Stdin::Null);
    let mut processes = Vec::new();
    let refused = loop {
        match start().await {
            Ok(process) => processes.push(process),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SpawnError::TooManyCommands), "{refused}");
    let nursery = support::parent_of(support::parent_of(processes[0].session.pid()));
    match fs::read_dir(format!("/proc/{nursery}/fd")) {
        Ok(open) => {
            let unused = DESCRIPTORS as usize - open.count();
            assert!((1..=LEFT).contains(&unused), "{unused} beside {}", processes.len());
        }
        // Nobody but root may look into it.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    assert!((5..DESCRIPTORS as usize / 2).contains(&processes.len()), "{}", processes.len());
    for _ in 0..3 {
        assert!(matches!(start().await, Err(SpawnError::TooManyCommands)));
    }
    for _ in 0..3 {
        processes.pop();
        let limit = Instant::now() + Duration::from_secs(30);
        let again = loop {
            match start().await {
                Err(SpawnError::TooManyCommands) if Instant::now() < limit => {}
                result => break result.unwrap(),
            }
        };
        processes.push(again);
    }
}

/// Where a host that is to be killed has its workspace.
const PLACE: &str = "SANDGATE_TEST_PLACE";

/// spec CAGED.41: When a host is killed among sixty-four confined commands, nothing is left of them, and
/// no name stays taken.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the host is to be killed, so it is another process")]
async fn a_killed_host_leaves_nothing_behind() {
    const TEST: &str = "a_killed_host_leaves_nothing_behind";
    if let Some(place) = std::env::var_os(PLACE) {
        return be_killed(place.into()).await;
    }
    again_without_namespaces(TEST);
    let session = Session::new();
    let mut alive = session.pipe("alive");
    let mut host = Command::new(std::env::current_exe().unwrap());
    host.args(["--exact", TEST, "--nocapture"]).env(PLACE, session.place.path());
    let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "all of them run"), "it ended early");
    let below = descendants(host.id());
    assert!(below.len() > 64 * 3, "{below:?}");
    let caged = caged_over(session.place.path());
    assert_eq!(caged.len() >= 64, session.has_namespaces(), "{caged:?}");
    host.kill().unwrap();
    host.wait().unwrap();
    alive.abandoned();
    eventually("nobody is left in a cage", || caged_over(session.place.path()).is_empty());
    eventually("the names are given back", || session.listing() == ["alive".to_owned()].into());
}

/// The host of sixty-four commands, and of one after the other beside them.
async fn be_killed(place: PathBuf) {
    let session = Session::beside(&place);
    let env = session.confined(session.script(&runaways("sleep 300")));
    let mut processes = Vec::new();
    for _ in 0..64 {
        processes.push(session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap());
    }
    println!("all of them run");
    loop {
        session.run("exit 0").await;
    }
}

/// spec CAGED.42: Whenever a host is killed while its first confined command is being made ready, no name stays taken.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the host is to be killed, so it is another process")]
async fn a_host_that_is_killed_at_its_first_command_leaves_no_name() {
    const TEST: &str = "a_host_that_is_killed_at_its_first_command_leaves_no_name";
    if let Some(place) = std::env::var_os(PLACE) {
        let session = Session::beside(&PathBuf::from(place));
        println!("ready");
        session.run("exec sleep 300").await;
        return;
    }
    let session = Session::new();
    for number in 0..60u32 {
        let mut host = Command::new(std::env::current_exe().unwrap());
        host.args(["--exact", TEST, "--nocapture"]).env(PLACE, session.place.path());
        let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(host.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "it ended early");
        // Each time a little later, as far as it goes; whichever moment this meets.
        std::thread::sleep(std::time::Duration::from_micros(u64::from(number) * 100));
        host.kill().unwrap();
        host.wait().unwrap();
        eventually("the names are given back", || session.listing().is_empty());
    }
}
