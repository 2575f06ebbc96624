//! How confined commands end, and what is left of them.

#![cfg(target_os = "linux")]

mod support;

use rustix::process::Signal;
use sandgate_process::{ExecuteOptions, Stdin, Stop, Stragglers, execute};
use sandgate_protocol::ExecExpiration;
use std::fs;
use std::time::Duration;
use support::caged::{
    Guards, Pipe, Session, again_without_namespaces, descendants, in_its_own_process, kill,
    runaways, signal,
};
use support::{Nowhere, alive, eventually, eventually_async};

const HOUR: Duration = Duration::from_secs(3600);

/// How a call is brought to its end.
enum End {
    Limit,
    Cancel,
    Interrupt,
}

async fn ended(session: &Session, alive: &mut Pipe, how: &End) -> sandgate_process::Executed {
    // A shell that has just forked when it is interrupted may take no notice of it.
    let mut params = session.script(&runaways("exec sleep 300"));
    params.expiration = ExecExpiration::Timeout(HOUR);
    let stop = Stop::default();
    let call = session.execute_with(params, ExecuteOptions::default(), &stop);
    let lever = async {
        alive.written().await;
        match how {
            End::Cancel => stop.cancel.cancel(),
            End::Interrupt => stop.interrupt.cancel(),
            End::Limit => {
                tokio::time::pause();
                tokio::time::advance(HOUR).await;
                tokio::time::resume();
            }
        }
    };
    let (done, ()) = tokio::join!(call, lever);
    done.unwrap()
}

/// spec CAGED.20: A time limit, cancelling and interrupting end everything that a confined command
/// started.
#[tokio::test]
async fn a_call_that_is_ended_ends_the_whole_tree() {
    again_without_namespaces("a_call_that_is_ended_ends_the_whole_tree");
    let session = Session::new();
    let mut alive = session.pipe("alive");
    let done = ended(&session, &mut alive, &End::Limit).await.output;
    assert_eq!((done.timed_out, done.exit_code, done.left_running), (true, 124, 0));
    alive.abandoned();
    let done = ended(&session, &mut alive, &End::Cancel).await.output;
    assert_eq!((done.cancelled, done.exit_code, done.left_running), (true, 137, 0));
    alive.abandoned();
    let done = ended(&session, &mut alive, &End::Interrupt).await.output;
    assert_eq!((done.cancelled, done.exit_code, done.left_running), (true, 130, 0));
    alive.abandoned();
}

/// spec CAGED.21: A confined command that ends by itself, whose handle or whose call is dropped, takes
/// all that it started with it.
#[tokio::test]
async fn nothing_outlives_its_call() {
    again_without_namespaces("nothing_outlives_its_call");
    let session = Session::new();
    let mut alive = session.pipe("alive");
    assert_eq!(session.run(&runaways("exit 5")).await.output.exit_code, 5);
    alive.abandoned();

    let env = session.confined(session.script(&runaways("sleep 300")));
    let process = session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    alive.written().await;
    drop(process);
    eventually_async("the tree is gone", || alive.is_abandoned()).await;

    let (stop, mut nowhere) = (Stop::default(), Nowhere);
    {
        let options = ExecuteOptions::default();
        let call = execute(&session.spawner, &env, options, &stop, &mut nowhere);
        tokio::select! {
            _ = call => panic!("sleeps for five minutes"),
            () = alive.written() => {}
        }
    }
    alive.abandoned();
}

/// spec CAGED.22: A confined process outlives its spawner as long as its handle is there, and the names
/// of its cage stay taken until then.
#[tokio::test]
async fn a_process_may_outlive_its_spawner() {
    let session = Session::new();
    let env = session.confined(session.script("read x; mkdir .git 2>/dev/null || echo taken"));
    let mut process = session.spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    let git = session.ws().join(".git");
    let Session { spawner, place, manager } = session;
    drop(spawner);
    assert_eq!(git.exists(), manager.status().namespaces);
    process.session.writer_sender().unwrap().send("go\n".into()).await.unwrap();
    let Some(sandgate_process::Received::Chunk(chunk)) = process.output_rx.recv().await else {
        panic!("no output")
    };
    assert_eq!(chunk.bytes, "taken\n");
    assert_eq!((&mut process.exit_rx).await, Ok(0));
    eventually_async("the name is given back", || !git.exists()).await;
    drop(place);
}

/// spec CAGED.23: What a confined command may leave behind stays, confined as it was, and when it ends
/// everything is given back, whether its host is still there or not.
#[tokio::test]
async fn what_may_stay_stays_confined() {
    if !in_its_own_process("what_may_stay_stays_confined") {
        return;
    }
    let session = Session::new();
    let mut alive = session.pipe("alive");
    let _held = session.pipe("go");
    // It waits for us, tries what it may not do, and says whether it could.
    let text = r#"exec 9>"$WS/alive"
        setsid sh -c 'echo ready >&9; read x < "$WS/go"
            mkdir "$WS/.git" 2>/dev/null && echo git >> "$WS/escaped"
            echo x 2>/dev/null > "$OUT/victim" && echo victim >> "$WS/escaped"
            echo done > "$WS/tried"' >/dev/null 2>&1 &"#;
    let options = ExecuteOptions { stragglers: Stragglers::Leave, ..Default::default() };
    let params = session.script(text);
    let done = session.execute_with(params, options, &Stop::default()).await.unwrap().output;
    assert_eq!(done.exit_code, 0);
    alive.written().await;
    let git = session.ws().join(".git");
    let Session { spawner, place, manager } = session;
    drop(spawner);
    // Its spawner is gone: whoever would end it, or give its names back, has had the chance.
    assert!(!alive.is_abandoned());
    assert_eq!(git.exists(), manager.status().namespaces);
    fs::write(place.path().join("ws/go"), "go\n").unwrap();
    alive.abandoned();
    assert!(place.path().join("ws/tried").exists());
    assert!(!place.path().join("ws/escaped").exists());
    assert_eq!(fs::read_to_string(place.path().join("outside/victim")).unwrap(), "before");
    eventually("the names are given back", || !git.exists());
    eventually("no process is left, no zombie either", || {
        descendants(std::process::id()).is_empty()
    });
}

/// spec CAGED.24: A command that may leave something behind and leaves nothing is over when it ends.
#[tokio::test]
async fn nothing_stays_where_nothing_is_left() {
    if !in_its_own_process("nothing_stays_where_nothing_is_left") {
        return;
    }
    let session = Session::new();
    let options = ExecuteOptions { stragglers: Stragglers::Leave, ..Default::default() };
    let params = session.script("exit 3");
    let done = session.execute_with(params, options, &Stop::default()).await.unwrap().output;
    assert_eq!(done.exit_code, 3);
    let Session { spawner, place, .. } = session;
    drop(spawner);
    assert!(descendants(std::process::id()).is_empty());
    assert_eq!(fs::read_dir(place.path().join("ws")).unwrap().count(), 0);
}

/// A command that runs, and its guards.
async fn started(session: &Session) -> (sandgate_process::SpawnedProcess, Guards) {
    let env = session.confined(session.script(&runaways("sleep 300")));
    let process = session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    let guards = Guards::of(process.session.pid());
    (process, guards)
}

async fn works(session: &Session) {
    let text = "echo x >> ran; mkdir .git 2>/dev/null && rmdir .git || echo taken";
    let expected = if session.has_namespaces() { "taken\n" } else { "" };
    assert_eq!(session.run(text).await.output.stdout.text, expected);
    assert_eq!(fs::read_to_string(session.ws().join("ran")).unwrap(), "x\n", "run once");
    fs::remove_file(session.ws().join("ran")).unwrap();
}

/// Waits until the workspace is as it was, with no name kept free.
async fn nothing_is_left(session: Session) {
    let Session { spawner, place, .. } = session;
    drop(spawner);
    let ws = place.path().join("ws");
    let names = || fs::read_dir(&ws).unwrap().flatten().map(|entry| entry.file_name());
    eventually_async("the names are given back", || names().eq(["alive"])).await;
}

/// spec CAGED.30: When the process that keeps a cage is killed, what runs in the cage ends, the next
/// command works, and nothing is left.
#[tokio::test]
async fn a_killed_nursery_takes_its_cage_with_it() {
    for again in [false, true] {
        let session = Session::new();
        let mut alive = session.pipe("alive");
        let (process, guards) = started(&session).await;
        alive.written().await;
        if !session.has_namespaces() {
            return support::skipped("there are no namespaces here");
        }
        kill(guards.nursery);
        assert_eq!(process.exit_rx.await, Ok(137));
        alive.abandoned();
        if again {
            works(&session).await;
            works(&session).await;
        }
        drop(process.session);
        nothing_is_left(session).await;
    }
}

/// spec CAGED.31: When the process that watches over a confined command is killed, the command and all
/// that it started end with it, the next command works, and nothing is left.
#[tokio::test]
async fn a_killed_warden_takes_its_job_with_it() {
    again_without_namespaces("a_killed_warden_takes_its_job_with_it");
    let session = Session::new();
    let mut alive = session.pipe("alive");
    for how in [Signal::KILL, Signal::STOP] {
        let (process, guards) = started(&session).await;
        alive.written().await;
        signal(guards.warden, how);
        assert_eq!(process.exit_rx.await, Ok(137));
        alive.abandoned();
        works(&session).await;
    }
    nothing_is_left(session).await;
}

/// spec CAGED.32: When the processes that wait for the next command are killed or stopped, it works all
/// the same, and is run once.
#[tokio::test]
async fn killed_idle_guards_are_replaced() {
    again_without_namespaces("killed_idle_guards_are_replaced");
    let session = Session::new();
    let _alive = session.pipe("alive");
    let (process, guards) = started(&session).await;
    // What waits beside a warden lives as long as it does, and would begin a command that ends with both.
    let wait_for_the_end = |pid| eventually("it has ended", || !alive(pid));
    guards.at_rest(1).await;
    works(&session).await;
    for how in [Signal::KILL, Signal::STOP] {
        for _ in 0..5 {
            // All at once, so that there is a moment in which nobody waits.
            let all = guards.at_rest(2).await;
            all.iter().for_each(|idle| signal(idle.warden, how));
            if how == Signal::KILL {
                all.iter().for_each(|idle| wait_for_the_end(idle.warden));
            }
            works(&session).await;
        }
    }
    for _ in 0..5 {
        let all = guards.at_rest(2).await;
        all.iter().for_each(|idle| kill(idle.vestibule));
        all.iter().for_each(|idle| wait_for_the_end(idle.vestibule));
        works(&session).await;
    }
    for idle in guards.at_rest(2).await {
        signal(idle.vestibule, Signal::STOP);
    }
    works(&session).await;
    drop(process);
    nothing_is_left(session).await;
}
