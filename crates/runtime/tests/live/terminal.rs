//! A terminal of one's own: its size, its signals, its jobs, in the cage as outside.

use crate::scene::{PLACES, Place, Scene, is_here};
use serde_json::json;

/// spec SESSION.10: A shell in a session has job control, in the cage too: Ctrl-C ends and Ctrl-Z stops
/// what runs in the foreground and not the shell, `jobs`, `bg` and `fg` do what they do elsewhere.
#[tokio::test]
async fn jobs_are_controlled() {
    for place in PLACES {
        let scene = Scene::new(place);
        scene.start("sh", &["bash", "-i"]).await;
        let busy = json!({
            "process_id": "sh",
            "input": "bash -c 'echo be''gun; exec sleep 300'\n",
            "wait_for": "begun\r?\n",
        });
        let go = async || {
            let reply = scene.reply("write_stdin", busy.clone()).await;
            assert_eq!(reply.returned(), "pattern", "{place:?}: {}", reply.0);
        };
        go().await;
        let reply = scene.press("sh", &["ctrl-c"]).await;
        assert_eq!((reply.returned(), &reply.0["exit_status"]), ("waiting_for_input", &json!(130)));
        go().await;
        let reply = scene.press("sh", &["ctrl-z"]).await;
        assert_eq!(reply.returned(), "waiting_for_input");
        assert!(reply.output().contains("Stopped"), "{place:?}: {}", reply.0);
        let reply = scene.type_in("sh", "jobs\n").await;
        assert!(reply.output().contains("Stopped"), "{place:?}: {}", reply.0);
        let reply = scene.type_in("sh", "bg\n").await;
        assert_eq!(reply.returned(), "waiting_for_input");
        let reply = scene.type_in("sh", "jobs\n").await;
        assert!(reply.output().contains("Running"), "{place:?}: {}", reply.0);
        let arguments = json!({"process_id": "sh", "input": "fg\n", "yield_time_ms": 500});
        let reply = scene.reply("write_stdin", arguments).await;
        assert_eq!(reply.returned(), "yield_elapsed", "{place:?}: {}", reply.0);
        let arguments = json!({"process_id": "sh", "signal": "INT", "yield_time_ms": 30000});
        let reply = scene.reply("write_stdin", arguments).await;
        assert_eq!(reply.returned(), "waiting_for_input", "{place:?}: {}", reply.0);
        assert_eq!(scene.type_in("sh", "echo alive\n").await.output(), "alive\n");
    }
}

/// spec SESSION.11: A process has the size of terminal that was asked for, is told of a new one, and has
/// its terminal as `/dev/tty`.
#[tokio::test]
async fn a_terminal_has_a_size_and_a_name() {
    for place in PLACES {
        let scene = Scene::new(place);
        let start = json!({
            "command": ["bash", "-i"],
            "process_id": "sh",
            "size": {"rows": 30, "columns": 100},
            "yield_time_ms": 30000,
        });
        scene.reply("exec_command", start).await;
        assert_eq!(scene.type_in("sh", "stty size\n").await.output(), "30 100\n", "{place:?}");
        let work = json!({
            "process_id": "sh",
            "input": "bash -c \"trap 'echo new size \\$(stty size)' WINCH; echo be''gun; \
                      while sleep 0.01; do :; done\"\n",
            "wait_for": "begun\r?\n",
        });
        assert_eq!(scene.reply("write_stdin", work).await.returned(), "pattern", "{place:?}");
        let resize = json!({
            "process_id": "sh",
            "resize": {"rows": 50, "columns": 132},
            "wait_for": "new size 50 132",
            "yield_time_ms": 30000,
        });
        assert_eq!(scene.reply("write_stdin", resize).await.returned(), "pattern", "{place:?}");
        scene.press("sh", &["ctrl-c"]).await;
        let reply = scene.type_in("sh", "echo shown > /dev/tty; test -t 0 && echo yes\n").await;
        assert_eq!(reply.output(), "shown\nyes\n", "{place:?}");
        // At its prompt a shell shows that again for a new size, which is no answer to what is typed.
        let arguments = json!({
            "process_id": "sh",
            "input": "sleep 0.2; stty size\n",
            "resize": {"rows": 40, "columns": 90},
            "yield_time_ms": 30000,
        });
        let reply = scene.reply("write_stdin", arguments).await;
        assert!(reply.output().ends_with("40 90\n"), "{place:?}: {}", reply.0);
    }
}

/// spec SESSION.12: Without a terminal a process has pipes; its input can be written to and ended.
#[tokio::test]
async fn pipes_can_be_written_to_and_closed() {
    for place in PLACES {
        let scene = Scene::new(place);
        let start = json!({"command": ["sort"], "process_id": "p", "tty": false});
        assert_eq!(scene.reply("exec_command", start).await.returned(), "waiting_for_input");
        assert_eq!(scene.type_in("p", "b\na\n").await.output(), "", "{place:?}");
        let end = json!({"process_id": "p", "close_stdin": true, "yield_time_ms": 30000});
        let reply = scene.reply("write_stdin", end).await;
        assert_eq!((reply.returned(), reply.output()), ("exited", "a\nb\n"), "{place:?}");
    }
}

/// spec SESSION.14: An answer about a process with pipes holds all that it had printed when it began to wait.
#[tokio::test]
async fn what_a_pipe_still_holds_comes_before_the_answer() {
    for place in PLACES {
        let scene = Scene::new(place);
        let start = json!({"command": ["cat"], "process_id": "p", "tty": false});
        assert_eq!(scene.reply("exec_command", start).await.returned(), "waiting_for_input");
        for round in 0..100 {
            let line = format!("{round} {}\n", "x".repeat(round * 300));
            assert_eq!(scene.type_in("p", &line).await.output(), line, "{place:?}, {round}");
        }
    }
}

/// spec SESSION.15: A terminal that a process made itself is not taken for its own, whatever number it has.
#[tokio::test]
async fn a_terminal_of_the_same_number_is_another_one() {
    // Makes terminals until one has the number of the one that it runs on, and has somebody read there.
    const SCRIPT: &str = r#"
import os, pty, sys, time
wanted = os.minor(os.fstat(0).st_rdev)
while True:
    ours, theirs = pty.openpty()
    number = os.minor(os.fstat(theirs).st_rdev)
    if number >= wanted:
        break
if os.fork() == 0:
    os.login_tty(theirs)
    os.read(0 if sys.argv[1] == "its name" else os.open("/dev/tty", os.O_RDWR), 1)
print("same number" if number == wanted else f"{number} is not {wanted}")
time.sleep(60)
"#;
    if !is_here("python3") {
        println!("SKIPPED: python3 is not here");
        return;
    }
    for read in ["its name", "/dev/tty"] {
        // Outside the cage all terminals are numbered together.
        let scene = Scene::new(Place::Caged);
        let start = json!({
            "command": ["python3", "-c", SCRIPT, read],
            "process_id": "p",
            "yield_time_ms": 1500,
        });
        let reply = scene.reply("exec_command", start).await;
        let expected = ("yield_elapsed", "same number\n");
        assert_eq!((reply.returned(), reply.output()), expected, "{read}");
    }
}

/// spec SESSION.13: What the sandbox refused to a process is told with the next answer.
#[tokio::test]
async fn what_was_blocked_is_told() {
    let scene = Scene::new(Place::Caged);
    scene.start("sh", &["bash", "-i"]).await;
    let reply = scene.type_in("sh", "echo x > /etc/sandgate-made; echo status $?\n").await;
    assert!(reply.output().contains("status 1"), "{}", reply.0);
    let blocked = reply.0["blocked"].to_string();
    assert!(blocked.contains("/etc/sandgate-made"), "{}", reply.0);
    assert!(!std::path::Path::new("/etc/sandgate-made").exists());
    assert_eq!(scene.type_in("sh", "true\n").await.0.get("blocked"), None);
}
