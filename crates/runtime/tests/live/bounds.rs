//! What processes that live long cost: memory, descriptors, nothing more.

use crate::scene::{Place, Scene};
use serde_json::json;

/// How much memory this process has written to, in bytes. Not its share of what it has in common with others:
/// of the program's text that grows when another test of this program ends.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// What is open, by what it leads to.
fn descriptors() -> Vec<String> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut open: Vec<String> = open
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect();
    open.sort();
    open
}

/// Has so many processes print so many MiB each, and live on. How much memory each costs.
async fn memory_of_each(processes: u64, mib: u64) -> u64 {
    let scene = Scene::new(Place::Free);
    // Whatever the first one needs is not each one's.
    scene.start("first", &["cat"]).await;
    let before = resident();
    for number in 0..processes {
        let script =
            format!("yes 'some words on a line' | head -c {mib}M; echo; echo over; exec cat");
        let arguments = json!({
            "command": ["bash", "-c", script],
            "process_id": format!("p{number}"),
            "wait_for": "over\r?\n",
            "yield_time_ms": 250,
            "max_output_tokens": 10,
        });
        scene.reply("exec_command", arguments).await;
    }
    for number in 0..processes {
        let id = format!("p{number}");
        loop {
            let reply = scene.type_in(&id, "").await;
            if reply.returned() == "waiting_for_input" {
                break;
            }
        }
        let tail = scene.text("read_output", json!({"id": id, "first_line": -1})).await;
        assert_eq!(tail.lines().last(), Some("over"), "{id}");
    }
    let grown = resident().saturating_sub(before);
    println!("{processes} processes, {mib} MiB each: {} KiB each", grown / processes / 1024);
    grown / processes
}

const MIB: u64 = 1024 * 1024;

/// spec SESSION.50: A live process costs less than 3 MiB of memory, however much it has printed.
#[tokio::test]
async fn a_process_that_printed_much_costs_little() {
    let each = memory_of_each(8, 8).await;
    assert!(each < 3 * MIB, "{each} bytes");
}

#[tokio::test]
#[ignore = "prints 6.4 GB; see the profile long"]
async fn sixty_three_processes_that_printed_100_mib_cost_little() {
    let each = memory_of_each(63, 100).await;
    assert!(each < 3 * MIB, "{each} bytes");
}

/// Types to a shell again and again. By how much memory has grown since the first rounds.
async fn grown_by(rounds: u32) -> u64 {
    let scene = Scene::new(Place::Caged);
    scene.start("sh", &["bash", "-i"]).await;
    let round = async |number: u32| {
        let reply = scene.type_in("sh", &format!("echo {number}\n")).await;
        assert_eq!(reply.output(), format!("{number}\n"));
    };
    // So much that what is kept of it is in a file from now on.
    scene.type_in("sh", "seq 20000\n").await;
    for number in 0..100 {
        round(number).await;
    }
    let (memory, open) = (resident(), descriptors());
    for number in 0..rounds {
        round(number).await;
    }
    assert_eq!(descriptors(), open);
    resident().saturating_sub(memory)
}

/// spec SESSION.51: Calls on a live process leave neither memory nor descriptors behind.
#[tokio::test]
async fn calls_leave_nothing_behind() {
    let grown = grown_by(300).await;
    println!("300 rounds: {} KiB", grown / 1024);
    assert!(grown < 2 * MIB, "{grown} bytes");
}

#[tokio::test]
#[ignore = "takes minutes on a busy machine; see the profile long"]
async fn ten_thousand_calls_leave_nothing_behind() {
    let grown = grown_by(10_000).await;
    println!("10,000 rounds: {} KiB", grown / 1024);
    assert!(grown < 2 * MIB, "{grown} bytes");
}
