//! Calls on live processes: what wakes a caller, and what a name may be.

#![cfg(target_os = "linux")]

mod support;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use sandgate_protocol::{AskForApproval, Event, ReturnReason, SandboxPolicy};
use sandgate_runtime::audit::{DecidedBy, DecisionKind, Record};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::scene::{Scene, text};

fn scene() -> Scene {
    Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write())
}

#[tokio::test]
async fn the_echo_of_what_was_typed_wakes_nobody() {
    let scene = scene();
    let mut events = scene.events().await;
    let listening = async {
        loop {
            if let Event::ProcessWoke(woke) = &events.next().await.unwrap().event {
                return (woke.reason, woke.exit_code);
            }
        }
    };
    let calling = async {
        scene.call("exec_command", json!({"command": "bash", "process_id": "shell"})).await;
        let line = "until [ -e go ]; do sleep 0.05; done; echo gone; exit 7 # ready\n";
        let typed = json!({
            "process_id": "shell", "input": line, "wait_for": "ready", "yield_time_ms": 250,
        });
        let result = scene.call("write_stdin", typed).await;
        assert!(text(&result).contains("yield_elapsed"), "{}", text(&result));
        std::fs::write(scene.path().join("go"), "").unwrap();
    };
    let (woke, ()) = tokio::join!(listening, calling);
    assert_eq!(woke, (ReturnReason::Exited, Some(7)));
}

#[tokio::test]
async fn a_path_is_no_name_of_an_output_and_is_not_opened() {
    let scene = scene();
    let pipe = scene.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = std::thread::spawn({
        let (pipe, is_over) = (pipe.clone(), Arc::clone(&is_over));
        // A pipe can be opened for writing in this way only while somebody reads it.
        move || loop {
            if open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_ok() {
                return "opened";
            }
            if is_over.load(Ordering::Relaxed) {
                return "left alone";
            }
        }
    });
    let result = scene.call("read_output", json!({"id": pipe})).await;
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(watching.join().unwrap(), "left alone");
    assert!(text(&result).contains("there is no process"), "{}", text(&result));
}

/// spec SESSION.41: Every call on a process is in the audit log before it is made, with what was typed; of
/// what is typed while the terminal hides it, only how much it was.
#[tokio::test]
async fn calls_on_processes_are_recorded_without_what_is_hidden() {
    let scene = scene();
    let script = "read a; read -s -p secret: b; read c";
    let start = json!({"command": ["bash", "-c", script], "process_id": "p"});
    scene.call("exec_command", start).await;
    let typed = |input: &str| json!({"process_id": "p", "input": input});
    let asked = scene.call("write_stdin", typed("open\n")).await;
    assert!(text(&asked).contains("secret:"), "{}", text(&asked));
    scene
        .call("write_stdin", json!({"process_id": "p", "input": "hunter2\n", "keys": ["no"]}))
        .await;
    scene.call("write_stdin", typed("hunter2\n")).await;
    scene
        .call("write_stdin", json!({"process_id": "p", "resize": {"rows": 9, "columns": 40}}))
        .await;
    scene.call("read_output", json!({"id": "p", "pattern": "sec"})).await;
    scene.call("list_processes", json!({})).await;
    scene.call("write_stdin", json!({"process_id": "p", "keys": ["ctrl-c"]})).await;
    scene.call("kill_process", json!({"process_id": "p"})).await;

    let records = scene.recorded();
    assert!(!format!("{records:?}").contains("hunter2"), "{records:?}");
    let asked = records.iter().filter_map(|record| match record {
        Record::CallAsked(asked) if asked.tool != "exec_command" => Some(asked.argv.join("|")),
        _ => None,
    });
    let expected = [
        "write_stdin|p|input|open\n",
        "write_stdin|p|hidden input, 9 bytes",
        "write_stdin|p|hidden input, 8 bytes",
        "write_stdin|p|resize|40x9",
        "read_output|p|sec",
        "list_processes",
        "write_stdin|p|keys|ctrl-c",
        "kill_process|p",
    ];
    assert_eq!(asked.collect::<Vec<_>>(), expected);
    let allowed = records.iter().filter(|record| match record {
        Record::Decided(decided) => {
            decided.decision == DecisionKind::Allowed && decided.by == DecidedBy::Policy
        }
        _ => false,
    });
    assert!(allowed.count() >= expected.len() - 1, "all but the one that was refused");
}
