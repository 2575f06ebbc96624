//! Confined commands, through the library: what they get, and what comes back from them.

#![cfg(target_os = "linux")]

mod support;

use sandgate_process::{SpawnError, Stdin};
use sandgate_protocol::{DenialRule, DeniedOperation, ExecParams, SandboxType};
use sandgate_sandbox::Denial;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use support::caged::{Session, again_without_namespaces, without_network_namespaces};
use support::{granted, program, run};

/// spec CAGED.1: A confined command's output, exit code and signal come back as those of any other.
#[tokio::test]
async fn output_and_exit_come_back() {
    again_without_namespaces("output_and_exit_come_back");
    let session = Session::new();
    let done = session.run("echo out; echo err >&2; exit 7").await;
    assert_eq!(done.namespaces, session.has_namespaces());
    assert!(done.supervised);
    assert_eq!((done.output.exit_code, done.output.signal), (7, None));
    assert_eq!((&*done.output.stdout.text, &*done.output.stderr.text), ("out\n", "err\n"));
    let done = session.run("kill -TERM $$").await.output;
    assert_eq!((done.exit_code, done.signal), (143, Some(15)));
    let done = session.run("head -c 3000000 /dev/zero | tr '\\0' x").await.output;
    assert_eq!(done.stdout.total_bytes, 3_000_000);
}

/// spec CAGED.2: A confined command reads what it is sent, or finds the end at once, and has the
/// directory and the environment that it was given.
#[tokio::test]
async fn input_directory_and_environment_are_given() {
    again_without_namespaces("input_directory_and_environment_are_given");
    let session = Session::new();
    assert_eq!(session.run("wc -c; echo end").await.output.stdout.text, "0\nend\n");
    let env = session.confined(session.script("cat; echo over"));
    let mut process = session.spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    process.session.writer_sender().unwrap().send("one\ntwo\n".into()).await.unwrap();
    process.session.close_stdin().await;
    let mut shown = Vec::new();
    while let Some(sandgate_process::Received::Chunk(chunk)) = process.output_rx.recv().await {
        shown.extend_from_slice(&chunk.bytes);
    }
    assert_eq!(String::from_utf8_lossy(&shown), "one\ntwo\nover\n");
    assert_eq!(process.exit_rx.await, Ok(0));

    let mut params = program(&["/usr/bin/env"]);
    params.cwd = "/usr".into();
    params.env.insert("ODD NAME".into(), "two\nlines".into());
    let done = session.execute(params).await.unwrap().output;
    let expected = "CODEX_SANDBOX=linux\nCODEX_SANDBOX_NETWORK_DISABLED=1\nODD NAME=two\nlines\n\
                    PATH=/usr/local/bin:/usr/bin:/bin\n";
    assert_eq!(done.stdout.text, expected);
    let mut params = session.script("pwd; touch here 2>/dev/null || echo no");
    params.cwd = "/usr".into();
    assert_eq!(session.execute(params).await.unwrap().output.stdout.text, "/usr\nno\n");
}

/// A command whose environment has so many variables of a hundred thousand bytes.
fn heavy(variables: usize) -> ExecParams {
    let mut params = program(&["/usr/bin/env"]);
    for number in 0..variables {
        params.env.insert(format!("V{number}").into(), "x".repeat(100_000).into());
    }
    params
}

/// spec CAGED.3: Arguments and an environment of a MiB reach a confined command whole, and more than
/// the system takes is refused as it is without a cage.
#[tokio::test]
async fn large_environments_arrive_or_are_refused() {
    again_without_namespaces("large_environments_arrive_or_are_refused");
    let session = Session::new();
    let argument = "y".repeat(120_000);
    let mut params = program(&["/bin/sh", "-c", "echo ${#1} ${#2}", "sh", &argument, &argument]);
    params.env.insert("BIG".into(), "x".repeat(100_000).into());
    let done = session.execute(params).await.unwrap().output;
    assert_eq!(done.stdout.text, "120000 120000\n");
    let done = session.execute(heavy(10)).await.unwrap().output;
    assert!(done.stdout.total_bytes > 1_000_000, "{}", done.stdout.total_bytes);
    // Too long for one string, too many strings, and more than anybody keeps room for.
    for params in [program(&["/bin/echo", &"x".repeat(200_000)]), heavy(70), heavy(100)] {
        let plain = run(params.clone()).await.unwrap_err();
        let caged = session.execute(params).await.unwrap_err();
        assert!(matches!(caged, SpawnError::TooLarge { .. }), "{caged}");
        // The cage has two variables of its own to say what it is.
        let sizes = |text: String| text.split(|c: char| c.is_ascii_digit()).collect::<String>();
        assert_eq!(sizes(caged.to_string()), sizes(plain.to_string()));
    }
    assert_eq!(session.run("echo fine").await.output.stdout.text, "fine\n");
}

/// spec CAGED.4: A confined command that cannot be started is refused with the same error as one that
/// is not confined.
#[tokio::test]
async fn what_cannot_be_started_is_refused_alike() {
    again_without_namespaces("what_cannot_be_started_is_refused_alike");
    let session = Session::new();
    let file = |name: &str, text: &str, mode| {
        let path = session.ws().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain_file = file("plain", "#!/bin/sh\n", 0o644);
    let no_program = file("text", "no program\n", 0o755);
    let lost = file("lost", "#!/nowhere/interpreter\n", 0o755);
    let mut elsewhere = program(&["/bin/true"]);
    elsewhere.cwd = session.ws().join("missing");
    let mut in_a_file = program(&["/bin/true"]);
    in_a_file.cwd = "/etc/passwd".into();
    for params in [
        program(&["/nowhere/program"]),
        program(&[&plain_file]),
        program(&[&no_program]),
        program(&[&lost]),
        program(&["/usr"]),
        program(&[]),
        program(&["/bin/true", "a\0b"]),
        elsewhere,
        in_a_file,
    ] {
        let plain = run(params.clone()).await.unwrap_err();
        let caged = session.execute(params).await.unwrap_err();
        assert_eq!(caged.to_string(), plain.to_string());
    }
    assert_eq!(session.run("echo fine").await.output.stdout.text, "fine\n");
}

/// spec CAGED.10: Everything that was refused to a confined command is in its result, each thing once
/// and in its order.
#[tokio::test]
async fn what_was_refused_is_told() {
    again_without_namespaces("what_was_refused_is_told");
    let session = Session::new();
    let text = "echo x > \"$OUT/victim\"; rm \"$OUT/victim\"; mkdir \"$OUT/new\"; \
                echo x > \"$OUT/victim\"; echo kept > \"$WS/kept\"; exit 3";
    let done = session.run(text).await;
    let told: Vec<_> =
        done.output.denials.evidence.iter().map(|d| (d.operation, &*d.target)).collect();
    let (victim, new) = (session.outside("victim"), session.outside("new"));
    let (victim, new) = (victim.to_str().unwrap(), new.to_str().unwrap());
    let expected = [
        (DeniedOperation::Write, victim),
        (DeniedOperation::Remove, victim),
        (DeniedOperation::Create, new),
    ];
    assert_eq!(told, expected);
    let rules = done.output.denials.evidence.iter().map(|d| d.rule);
    assert!(rules.into_iter().all(|rule| rule == DenialRule::OutsideWritableRoots));
    assert_eq!(done.output.denials.more, 0);
    assert_eq!(fs::read_to_string(session.outside("victim")).unwrap(), "before");
    assert_eq!(fs::read_to_string(session.ws().join("kept")).unwrap(), "kept\n");
    let denied = session.manager.denied(SandboxType::LinuxSeccomp, done.supervised, &done.output);
    assert_eq!(denied, Some(Denial::Evidence(done.output.denials.clone())));
}

/// spec CAGED.11: Nothing is told of a command that was refused nothing, whatever it prints.
#[tokio::test]
async fn honest_commands_were_refused_nothing() {
    again_without_namespaces("honest_commands_were_refused_nothing");
    let session = Session::new();
    let text = "echo 'permission denied: read-only file system, sandbox' >&2; cat /etc/passwd | \
                sort > sorted; mkdir d; mv sorted d/; rm -r d; cat /nowhere; (sleep 0.01 &); exit 1";
    let done = session.run(text).await;
    assert!(done.output.denials.is_empty(), "{:?}", done.output.denials);
    let denied = session.manager.denied(SandboxType::LinuxSeccomp, done.supervised, &done.output);
    assert_eq!(denied, None);
}

/// spec CAGED.12: A hundred refusals are told, and of the others how many there were.
#[tokio::test]
async fn a_hundred_refusals_are_told_and_the_rest_counted() {
    again_without_namespaces("a_hundred_refusals_are_told_and_the_rest_counted");
    let session = Session::new();
    let text = "for i in $(seq 150); do true > \"$OUT/new$i\"; done 2>/dev/null; exit 1";
    let done = session.run(text).await.output;
    assert_eq!((done.denials.evidence.len(), done.denials.more), (100, 50));
    assert_eq!(fs::read_dir(session.outside("")).unwrap().count(), 1);
}

/// spec CAGED.13: What is refused to processes that a command leaves behind is told too, until they
/// are gone.
#[tokio::test]
async fn refusals_of_what_is_left_behind_are_told() {
    again_without_namespaces("refusals_of_what_is_left_behind_are_told");
    let session = Session::new();
    // The shell has ended when its child begins, because the child waits for that.
    let child = "read end; for i in $(seq 150); do true > \"$OUT/new$i\"; done";
    let text =
        format!("rm -f gone; mkfifo gone; (exec <gone; {child}) 2>/dev/null & exec 4>gone; exit 1");
    // What is left behind has a moment to end by itself, which on a busy machine may be too short.
    for _ in 0..20 {
        let done = session.run(&text).await.output;
        assert_eq!(done.exit_code, 1);
        if (done.denials.evidence.len(), done.denials.more) == (100, 50) {
            return;
        }
    }
    panic!("some of it is missing each time");
}

/// spec CAGED.5: The process id of a confined command is the one that everybody else knows it by.
#[tokio::test]
async fn the_process_id_is_the_hosts() {
    again_without_namespaces("the_process_id_is_the_hosts");
    let session = Session::new();
    let env = session.confined(program(&["/bin/sleep", "297"]));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let process = session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
        let pid = process.session.pid();
        // A process that is being executed has no arguments for a moment.
        let arguments = loop {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            if !arguments.is_empty() {
                break arguments;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(arguments, b"/bin/sleep\x00297\x00");
        seen.push(process);
    }
}

/// spec CAGED.7: A confined command may use the processors that its caller may, and takes turns on them as its caller
/// does, however often its guards choose theirs.
#[tokio::test]
async fn a_command_is_given_turns_as_its_caller_is() {
    again_without_namespaces("a_command_is_given_turns_as_its_caller_is");
    let session = Session::new();
    // A kernel that does not say how long turns are has a line less in both.
    let line = |file: &str, start: &str| -> String {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with(start))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let own = line("/proc/self/status", "Cpus_allowed:") + &line("/proc/self/sched", "se.slice");
    let look =
        "grep '^Cpus_allowed:' /proc/self/status; grep -s '^se.slice' /proc/self/sched; nice";
    let nice = rustix::process::getpriority_process(None).unwrap();
    for _ in 0..60 {
        let seen = session.run(look).await.output.stdout.text;
        assert_eq!(seen, format!("{own}{nice}\n"));
    }
}

/// spec CAGED.6: A command that nothing confines and one that is confined can be started by the same
/// spawner in turn.
#[tokio::test]
async fn confined_and_unconfined_take_turns() {
    let session = Session::new();
    let text = "echo x > \"$OUT/made\" 2>/dev/null || echo refused";
    for _ in 0..3 {
        assert_eq!(session.run(text).await.output.stdout.text, "refused\n");
        let env = granted(session.script(text));
        let process = session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
        assert_eq!(process.exit_rx.await, Ok(0));
        fs::remove_file(session.outside("made")).unwrap();
    }
}

/// spec CAGED.14: Where other namespaces can be had but none for the network, a session's commands are held by what is
/// left, as where all are refused.
#[tokio::test]
async fn what_is_left_holds_where_no_network_can_be_made() {
    if !without_network_namespaces("what_is_left_holds_where_no_network_can_be_made") {
        return;
    }
    let session = Session::new();
    for round in ["first", "next"] {
        let text = "echo x > \"$OUT/victim\"; echo kept > \"$WS/kept\"; \
                    ! bash -c 'exec 3<>/dev/tcp/127.0.0.1/1' 2>&1";
        let done = session.run(text).await;
        assert_eq!((done.namespaces, done.supervised), (false, true), "{round}");
        assert_eq!(done.output.exit_code, 0, "{round}: {:?}", done.output);
        let told: Vec<_> = done.output.denials.evidence.iter().map(|d| d.operation).collect();
        assert_eq!(told, [DeniedOperation::Write, DeniedOperation::Socket], "{round}");
        assert_eq!(fs::read_to_string(session.outside("victim")).unwrap(), "before");
        assert_eq!(fs::read_to_string(session.ws().join("kept")).unwrap(), "kept\n");
    }
}
