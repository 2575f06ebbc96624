//! How the output of a command gets through.

#![cfg(unix)]

mod support;

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use support::{Running, World, eventually, is_alive, let_go, run_words};

/// spec RUN.40: Output is passed on to the byte, whatever bytes they are.
#[test]
fn output_is_passed_on_to_the_byte() {
    let world = World::new();
    let mut bytes: Vec<u8> = (0..=255).collect();
    File::open("/dev/urandom").unwrap().take(1024 * 1024).read_to_end(&mut bytes).unwrap();
    std::fs::write(world.path("bytes"), &bytes).unwrap();
    let outcome = world.run(&["--shell", "sh", "--", "cat bytes; cat bytes >&2"]);
    assert!(outcome.stdout == bytes);
    let same_bytes = world.path("same");
    let mut command = world.program(run_words(&["--", "cat", "bytes"]));
    Running::start(command.stdout(File::create(&same_bytes).unwrap())).wait();
    assert!(std::fs::read(&same_bytes).unwrap() == bytes);
}

/// spec RUN.43: Output appears as it is written, also when its line has not ended.
#[test]
fn half_a_line_appears_before_the_command_ends() {
    let world = World::new();
    let go = world.fifo("go");
    let script = "printf 'half a line'; read word < go; echo ' and its end'";
    let mut running = world.start(&["--shell", "sh", "--", script]);
    assert_eq!(running.read_exactly(11), b"half a line");
    let_go(&go);
    let outcome = running.wait();
    assert_eq!((outcome.stdout(), outcome.code), ("half a line and its end\n", Some(0)));
}

/// spec RUN.44: When nobody reads the output any more the command is ended, without a word, and the
/// exit code is 141.
#[test]
fn a_reader_that_has_seen_enough_ends_the_command() {
    let world = World::new();
    let mut running = world.start(&["--shell", "sh", "--", "echo $$; exec yes"]);
    let pid = running.line().trim().parse().unwrap();
    drop(running.child.stdout.take());
    let outcome = running.wait();
    assert_eq!((outcome.code, outcome.notes().as_str()), (Some(141), ""));
    eventually("the command is gone", || (!is_alive(pid)).then_some(()));
}

#[test]
fn a_reader_that_is_gone_is_noticed_by_the_first_write() {
    let world = World::new();
    let go = world.fifo("go");
    let script = "echo one; read word < go; echo two; exec sleep 1000";
    let mut running = world.start(&["--shell", "sh", "--", script]);
    assert_eq!(running.line(), "one\n");
    drop(running.child.stdout.take());
    let_go(&go);
    assert_eq!(running.wait().code, Some(141));
}

/// spec RUN.45: Output that cannot be written for another reason ends the command too, with exit code
/// 125 and the reason.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let world = World::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = world.program(run_words(&["--", "yes", "x"]));
    let outcome = Running::start(command.stdout(full)).wait();
    assert_eq!(outcome.code, Some(125));
    let expected = "sandgate: cannot write the command's output: No space left on device";
    assert!(outcome.notes().starts_with(expected), "{}", outcome.stderr);
}

/// spec RUN.46: A reader that is slow holds the command up; nothing piles up in between.
#[test]
fn a_slow_reader_holds_the_command_up() {
    let world = World::new();
    let script = "head -c 50000000 /dev/zero; touch all-written; echo end >&2";
    let mut running = world.start(&["--shell", "sh", "--", script]);
    running.read_exactly(1_000_000);
    // The pipes and the queue hold a few megabytes at most, so the command cannot have finished.
    assert!(!world.path("all-written").exists());
    assert!(resident_bytes(running.child.id()) < 64 * 1024 * 1024);
    let outcome = running.wait();
    assert_eq!((outcome.stdout.len(), outcome.code), (50_000_000, Some(0)));
}

fn resident_bytes(pid: u32) -> u64 {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// spec RUN.47: A process that the command leaves behind does not hold it up by holding its output
/// open; it is ended, and a line says so.
#[test]
fn a_grandchild_that_holds_the_output_does_not_hold_up_the_call() {
    let world = World::new();
    let outcome = world.run(&["--shell", "sh", "--", "sleep 1000 & echo $!"]);
    assert_eq!(outcome.code, Some(0));
    let expected = "sandgate: the command left something running that held its output open";
    assert!(outcome.notes().starts_with(expected), "{}", outcome.stderr);
    let pid = outcome.stdout().trim().parse().unwrap();
    eventually("what was left is gone", || (!is_alive(pid)).then_some(()));
}

#[test]
fn pipes_inside_the_command_break_as_they_should() {
    let script = "yes | head -1; echo ${PIPESTATUS[0]}";
    let outcome = World::new().run(&["--shell", "bash", "--", script]);
    assert_eq!(outcome.stdout(), "y\n141\n");
}

#[test]
fn messages_and_output_share_a_file_in_the_order_they_came() {
    let world = World::new();
    let log = world.path("log");
    let file = File::create(&log).unwrap();
    let mut command = world.program(["run", "--timeout-ms", "2000", "--", "echo out; sleep 1000"]);
    command.stdout(file.try_clone().unwrap()).stderr(Stdio::from(file));
    assert_eq!(Running::start(&mut command).wait().code, Some(124));
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("unconfined") && lines[2].contains("time limit"), "{log}");
    assert_eq!(lines[1], "out");
}

/// spec RUN.48: The program's own lines have colours only on a terminal, and not there when `NO_COLOR`
/// is set.
#[test]
fn colours_are_for_terminals_that_want_them() {
    let world = World::new();
    let on_terminal = |no_color: Option<&str>| {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(path).unwrap();
        let mut command = world.program(run_words(&["--", "true"]));
        command.env("TERM", "xterm").envs(no_color.map(|value| ("NO_COLOR", value)));
        Running::start(command.stderr(theirs.try_clone().unwrap())).wait();
        drop((command, theirs));
        let mut text = Vec::new();
        // A terminal whose other side is closed ends in an error after its last byte.
        let _ = File::from(ours).read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    };
    let coloured = on_terminal(None);
    assert!(coloured.contains("unconfined") && coloured.contains('\u{1b}'), "{coloured:?}");
    for plain in [on_terminal(Some("1")), world.run(&["--", "true"]).stderr] {
        assert!(plain.contains("unconfined") && !plain.contains('\u{1b}'), "{plain:?}");
    }
}
