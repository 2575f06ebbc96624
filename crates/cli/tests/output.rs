//! How the output of a command gets through.

#![cfg(unix)]

mod support;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use support::{FULL_ACCESS, Running, World, eventually, is_alive, let_go, run_words};

/// spec RUN.40: Output is passed on to the byte, whatever bytes they are.
#[test]
fn output_is_passed_on_to_the_byte() {
    let world = World::new();
    let mut bytes: Vec<u8> = (0..=255).collect();
    File::open("/dev/urandom").unwrap().take(200_000).read_to_end(&mut bytes).unwrap();
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
    let words = [&FULL_ACCESS[..], &["--shell", "sh", "--", "echo $$; exec yes"]].concat();
    let mut running = world.start(&words);
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
    let full = || File::options().write(true).open("/dev/full").unwrap();
    // One that ends by itself, and one that only ends because of this.
    for command in [&["--", "echo", "little"][..], &["--", "yes", "much"]] {
        for option in [&[][..], &["--json"]] {
            let mut command = world.program(run_words(&[option, command].concat()));
            let outcome = Running::start(command.stdout(full())).wait();
            assert_eq!(outcome.code, Some(125), "{option:?}");
            let expected = "sandgate: cannot write the command's output: No space left on device";
            assert!(outcome.notes().starts_with(expected), "{}", outcome.stderr);
        }
    }
    let mut command = world.program(run_words(&["--shell", "sh", "--", "echo lost >&2"]));
    let outcome = Running::start(command.stderr(full())).wait();
    assert_eq!((outcome.stdout(), outcome.code), ("", Some(125)));
}

/// spec RUN.49: A standard stream of sandgate that is closed leads nowhere, and nothing else is taken
/// for it.
#[test]
fn a_closed_stream_leads_nowhere() {
    let script = "cat > read; echo out; echo err >&2; exit 7";
    for (closed, out, err) in [
        ("<&-", "out\n", "err\n"),
        (">&-", "", "err\n"),
        ("2>&-", "out\n", ""),
        ("<&- >&-", "", "err\n"),
        (">&- 2>&-", "", ""),
        ("<&- >&- 2>&-", "", ""),
    ] {
        let world = World::new();
        let words = run_words(&["--stdin", "--shell", "sh", "--no-login", "--", script]);
        let outcome = closing(closed, &world, &world.program(words)).wait();
        assert_eq!((outcome.stdout(), outcome.code), (out, Some(7)), "{closed}");
        assert_eq!(outcome.stderr, err, "{closed}");
        assert_eq!(std::fs::read(world.path("read")).unwrap(), b"", "{closed}");
    }
    let world = World::new();
    let words = run_words(&["--json", "--", "echo", "out"]);
    let outcome = closing("<&- 2>&-", &world, &world.program(words)).wait();
    assert_eq!((outcome.events().len(), outcome.code), (3, Some(0)));
}

/// The same program, started with some of its streams closed.
fn closing(streams: &str, world: &World, program: &std::process::Command) -> Running {
    let mut shell = world.other("sh");
    shell.args(["-c", &format!("exec \"$@\" {streams}"), "sh"]);
    Running::start(shell.arg(program.get_program()).args(program.get_args()))
}

/// spec RUN.46: A reader that is slow holds the command up; nothing piles up in between.
#[cfg(target_os = "linux")]
#[test]
fn a_slow_reader_holds_the_command_up() {
    const READ: usize = 1_000_000;
    // What the pipes and the queue hold, and as much again for a system with larger pipes.
    const ON_THE_WAY: u64 = 2_000_000;
    let world = World::new();
    let script = "echo $$; exec head -c 100000000 /dev/zero";
    let words = ["--shell", "sh", "--no-login", "--", script];
    let mut running = world.start(&[&FULL_ACCESS[..], &words].concat());
    let line = running.line();
    let pid = line.trim().parse().unwrap();
    running.read_exactly(READ);
    support::until_asleep_for_good(pid);
    let written = number_in(&format!("/proc/{pid}/io"), "wchar:");
    assert!(written < READ as u64 + ON_THE_WAY, "{written} bytes were written");
    // What it holds, and not what of the program itself has been read.
    let resident = number_in(&format!("/proc/{}/status", running.child.id()), "RssAnon:");
    assert!(resident < 24 * 1024, "sandgate has grown to {resident} KiB");
    let outcome = running.wait();
    assert_eq!((outcome.stdout.len(), outcome.code), (line.len() + 100_000_000, Some(0)));
}

/// The number behind a word in one of the kernel's files.
#[cfg(target_os = "linux")]
fn number_in(file: &str, word: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let rest = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    rest.trim().trim_end_matches(" kB").parse().unwrap()
}

/// spec RUN.47: A process that the command leaves behind does not hold it up by holding its output
/// open; it is ended, and a line says so.
#[test]
fn a_grandchild_that_holds_the_output_does_not_hold_up_the_call() {
    let world = World::new();
    let words = ["--shell", "sh", "--", "sleep 1000 & echo $!"];
    let expected = "sandgate: the command left something running that held its output open";
    let confined = world.run(&words);
    let outcome = world.run(&[&FULL_ACCESS[..], &words].concat());
    for outcome in [&confined, &outcome] {
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.notes().starts_with(expected), "{}", outcome.stderr);
    }
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
    let script = "sleep 1000 & echo out";
    let words = ["--shell", "sh", "--no-login", "--", script];
    let mut command = world.program(run_words(&[&FULL_ACCESS[..], &words].concat()));
    command.stdout(file.try_clone().unwrap()).stderr(Stdio::from(file));
    assert_eq!(Running::start(&mut command).wait().code, Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("unconfined") && lines[2].contains("left something"), "{log}");
    assert_eq!(lines[1], "out");
}

/// spec RUN.48: The program's own lines have colours only on a terminal, and not there when `NO_COLOR`
/// is set.
#[test]
fn colours_are_for_terminals_that_want_them() {
    let world = World::new();
    let warned = [&FULL_ACCESS[..], &["--", "true"]].concat();
    let on_terminal = |no_color: Option<&str>| {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(path).unwrap();
        let mut command = world.program(run_words(&warned));
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
    for plain in [on_terminal(Some("1")), world.run(&warned).stderr] {
        assert!(plain.contains("unconfined") && !plain.contains('\u{1b}'), "{plain:?}");
    }
}

/// spec RUN.72: A command that writes no more than is kept in memory makes no directory, and neither
/// does `sandgate run`, whatever the command writes.
#[test]
fn much_output_leaves_the_file_system_alone() {
    let world = World::new();
    // This home lies among the temporary files. Where commands may write, our own directory is made before
    // they could make it, so these may not.
    let closed = ["--sandbox", "read-only"];
    for option in [&[][..], &["--json"]] {
        let arguments = [option, &closed, &["--", "head", "-c", "3000000", "/dev/zero"]].concat();
        assert_eq!(world.run(&arguments).code, Some(0));
    }
    // The record is there, and nothing else. Other cages that may write to all of /tmp can keep the
    // protected names of this home free for a moment longer.
    let names = |directory: &Path| {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    eventually("nothing else is there", || (names(world.home()) == [".codex"]).then_some(()));
    assert_eq!(names(&world.path(".codex")), ["audit", "config.toml"]);
}
