//! A thousand commands leave nothing behind in the program that ran them.
//!
//! The only test of its file: it counts what belongs to the whole process.

#![cfg(target_os = "linux")]

mod support;

use sandgate_process::{ExecuteOptions, Spawner, Stop, execute};
use support::{Nowhere, eventually_async, granted, program};

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// Every process below this one, zombies included.
fn descendants() -> usize {
    fn below(pid: u32) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
            .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .map(|child| 1 + below(child.parse().unwrap()))
            .sum()
    }
    below(std::process::id())
}

/// spec PROCESS.30: A thousand commands in a row leave no descriptor, thread or process behind.
#[tokio::test]
async fn a_thousand_commands_leave_nothing_behind() {
    let spawner = Spawner::start().unwrap();
    let env = granted(program(&["/bin/true"]));
    let stop = Stop::default();
    let run = async || {
        let options = ExecuteOptions::default();
        let done = execute(&spawner, &env, options, &stop, &mut Nowhere).await.unwrap();
        assert_eq!(done.output.exit_code, 0);
    };
    run().await;
    // The nursery and one idle warden, as after the first command.
    eventually_async("only the guards are left", || descendants() == 2).await;
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    for _ in 0..1000 {
        run().await;
    }
    assert_eq!((count("/proc/self/fd"), count("/proc/self/task")), before);
    // And another one, because commands came one after the other.
    eventually_async("only the guards are left", || descendants() == 3).await;
    drop(spawner);
    assert_eq!(descendants(), 0);
}
