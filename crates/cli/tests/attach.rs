//! `sandgate attach`: a live process in a person's own terminal.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use rustix::process::{Pid, Signal, kill_process};
use std::io::BufRead as _;
use std::os::unix::net::UnixStream;
use support::{World, eventually, is_alive};
use terminal::Terminal;

/// A home with a shell called `shell`, whose daemon ends with the test.
struct Home(World);

impl Home {
    fn new() -> Self {
        let home = Self(World::new());
        let words = ["session", "start", "--id", "shell", "--", "bash", "--norc", "--noediting"];
        assert_eq!(home.0.sandgate(&words).code, Some(0));
        home.send("PS1='ready> '");
        home
    }

    fn send(&self, line: &str) -> String {
        let outcome = self.0.sandgate(&["session", "send", "shell", line]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout().to_owned()
    }

    fn attach(&self) -> Terminal {
        Terminal::start(&self.0, &["attach", "shell"])
    }

    fn is_listed(&self) -> bool {
        let listed = self.0.sandgate(&["session", "list"]);
        listed.stdout().contains("shell  waiting for input")
    }

    fn daemon(&self) -> i32 {
        let stream = UnixStream::connect(self.0.path(".codex/daemon/socket")).unwrap();
        let mut line = String::new();
        std::io::BufReader::new(stream).read_line(&mut line).unwrap();
        let hello: serde_json::Value = serde_json::from_str(&line).unwrap();
        i32::try_from(hello["pid"].as_i64().unwrap()).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.0.sandgate(&["session", "stop"]);
    }
}

/// spec ATTACH.1: What is typed goes to the process and what it prints to the terminal, as it is; Ctrl-]
/// leaves it, the exit code is 0, the terminal is as it was, and the process goes on.
///
/// spec ATTACH.9: Who attaches is told first, on standard error if that is a terminal, that Ctrl-] leaves.
///
/// spec ATTACH.2: Who attaches again sees the last screenful first.
#[test]
fn a_person_can_come_and_go() {
    let home = Home::new();
    let mut terminal = home.attach();
    let before = terminal.until("ready> ");
    let told = "sandgate: attached to shell; Ctrl-] leaves it, and it goes on";
    assert!(before.contains(told), "{before}");
    terminal.press("printf '%s\\033[31m%s\\n' so-o mething\r");
    terminal.until("so-o\x1b[31mmething\r\n");
    terminal.press("\x1d");
    terminal.until("sandgate: shell goes on");
    assert_eq!(terminal.end().1, Some(0));
    assert!(home.is_listed());
    let mut terminal = home.attach();
    terminal.until("so-o\x1b[31mmething\r\n");
    terminal.press("echo again-and-$((40 + 2))\r");
    terminal.until("again-and-42\r\n");
    // What is typed together with the key that leaves is typed all the same.
    terminal.press("echo last-$((1 + 1)) > last\r\x1d");
    assert_eq!(terminal.end().1, Some(0));
    eventually("it was typed", || home.0.path("last").exists().then_some(()));
}

/// spec ATTACH.3: The process has the size of the person's terminal, and hears when it changes.
#[test]
fn the_size_is_passed_on() {
    let home = Home::new();
    let mut terminal = home.attach();
    terminal.until("ready> ");
    for (rows, columns) in [(31, 97), (50, 120)] {
        terminal.resize(rows, columns);
        eventually("the size arrives", || {
            let size = home.send("stty size");
            (size.trim() == format!("{rows} {columns}")).then_some(())
        });
    }
    terminal.press("\x1d");
    assert_eq!(terminal.end().1, Some(0));
}

/// spec ATTACH.4: Others can talk to the process meanwhile, and the person sees it.
#[test]
fn others_can_talk_to_it_meanwhile() {
    let home = Home::new();
    let mut first = home.attach();
    let mut second = home.attach();
    first.until("ready> ");
    second.until("ready> ");
    assert_eq!(home.send("echo from-$((2 * 3))"), "from-6\n");
    for terminal in [&mut first, &mut second] {
        terminal.until("from-6\r\n");
    }
    first.press("\x1d");
    assert_eq!(first.end().1, Some(0));
    second.press("exit 5\r");
    let (shown, code) = second.end();
    assert!(shown.contains("sandgate: shell exited with 5"), "{shown}");
    assert_eq!(code, Some(5));
}

/// spec ATTACH.5: However it ends, by a signal or because the daemon is gone, the terminal is as it was.
#[test]
fn the_terminal_is_as_it_was_however_it_ends() {
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::KILL, 125)] {
        let home = Home::new();
        let daemon = home.daemon();
        let mut terminal = Terminal::start(&home.0, &["attach", "shell"]);
        terminal.until("ready> ");
        assert!(terminal.is_raw());
        match signal {
            Signal::KILL => {
                kill_process(Pid::from_raw(daemon).unwrap(), signal).unwrap();
                terminal.until("sandgate: the daemon has ended, and all its processes with it");
            }
            _ => terminal.signal(signal),
        }
        assert_eq!(terminal.left(), (Some(expected), false));
        if signal == Signal::KILL {
            eventually("the daemon is gone", || (!is_alive(daemon)).then_some(()));
        }
    }
}

/// spec ATTACH.8: A terminal that is held, so that nothing can be shown on it, keeps nobody from being ended.
#[test]
fn a_terminal_that_is_held_keeps_nobody_from_being_ended() {
    let home = Home::new();
    let flood = ["session", "start", "--id", "flood", "--yield-ms", "250", "--", "yes"];
    assert_eq!(home.0.sandgate(&flood).code, Some(0));
    let held = Terminal::start_unread(&home.0, &["attach", "flood"]);
    eventually("the terminal is full", || (held.is_raw() && held.is_full()).then_some(()));
    held.signal(Signal::TERM);
    assert_eq!(held.left(), (Some(143), false));
    let listed = home.0.sandgate(&["session", "list"]);
    assert!(listed.stdout().contains("flood  running"), "{listed:?}");
}

/// spec ATTACH.6: A program that has the whole screen draws it again, and its screen is given back at the
/// end.
#[test]
fn a_program_with_the_whole_screen_draws_it_again() {
    let home = Home::new();
    home.send("trap 'printf \"\\033[Hsize %s\" \"$(stty size)\"' WINCH");
    home.send("printf '\\033[?1049h\\033[2J\\033[Hdrawn'");
    let mut terminal = home.attach();
    terminal.until("\x1b[?1049h");
    terminal.until("drawn");
    terminal.press("\r");
    terminal.until("size ");
    terminal.press("\x1d");
    let (shown, code) = terminal.end();
    assert!(shown.contains("\x1b[?1049l"), "{shown:?}");
    assert_eq!(code, Some(0));
}

/// spec ATTACH.7: Without a terminal, and for a process that is not there, the exit code is 125 and the
/// reason is said.
#[test]
fn what_cannot_be_attached_is_said() {
    let home = Home::new();
    let mut words = home.0.other("setsid");
    let sandgate = home.0.program(["attach", "shell"]);
    words.arg("--wait").arg(sandgate.get_program()).args(sandgate.get_args());
    let outcome = support::Running::start(&mut words).wait();
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("there is no terminal here"), "{outcome:?}");
    let (shown, code) = Terminal::start(&home.0, &["attach", "nobody"]).end();
    assert!(shown.contains("there is no process \"nobody\""), "{shown}");
    assert_eq!(code, Some(125));
}
