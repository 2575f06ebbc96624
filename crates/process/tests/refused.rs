//! What happens when the system makes no more processes.
//!
//! The only test of its file: it takes from the whole process.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sandgate_process::{SpawnError, Spawner, Stdin};
use support::{granted, parent_of, script, skipped};

/// spec PROCESS.29: When the system makes no further process, a command is refused with an error that
/// says so, and the next one is tried again.
#[tokio::test]
async fn a_refused_process_is_an_error_and_not_the_end() {
    if rustix::process::getuid().is_root() {
        return skipped("root may always make processes; run as an ordinary user");
    }
    let spawner = Spawner::start().unwrap();
    let env = granted(script("exit 4"));
    let first = spawner.spawn_pipe(&granted(script("read x")), Stdin::Piped).await.unwrap();
    let nursery = parent_of(parent_of(first.session.pid()));
    let nursery = Pid::from_raw(nursery.cast_signed()).unwrap();
    let before = rustix::process::getrlimit(Resource::Nproc);
    let limit = |current| {
        let limit = Rlimit { current, maximum: before.maximum };
        prlimit(Some(nursery), Resource::Nproc, limit).unwrap();
    };
    limit(Some(1));
    let mut refused = None;
    // The warden that was ready before the limit still serves.
    for _ in 0..2 {
        match spawner.spawn_pipe(&env, Stdin::Null).await {
            Ok(process) => assert_eq!(process.exit_rx.await, Ok(4)),
            Err(error) => refused = Some(error),
        }
    }
    assert!(matches!(refused, Some(SpawnError::NoMoreProcesses { .. })), "{refused:?}");
    limit(before.current);
    // The nursery tries again by itself; until it has, commands are refused.
    loop {
        match spawner.spawn_pipe(&env, Stdin::Null).await {
            Ok(process) => break assert_eq!(process.exit_rx.await, Ok(4)),
            Err(SpawnError::NoMoreProcesses { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
