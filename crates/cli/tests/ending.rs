//! How commands are ended, and that nothing of them is left.

#![cfg(target_os = "linux")]

mod support;

use rustix::fs::OFlags;
use rustix::process::Signal;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use support::{FULL_ACCESS, Outcome, Running, World, before_the_limit, eventually};
use support::{is_alive, let_go, run_words, until_asleep_for_good};

/// Starts processes that go to some length not to be found, each of which holds the pipe `held` open,
/// writes a line to `grown`, and then stays. The last one is the script itself.
const HIDING_TREE: &str = r#"
    stay='exec 9> held; echo here >> grown; exec sleep 1000'
    sh -c "$stay" &
    setsid sh -c "$stay" &
    nohup sh -c "$stay" > /dev/null 2>&1 &
    (setsid sh -c "(setsid sh -c '$stay' &) ; exit" &)
    (sh -c "$stay" > /dev/null 2>&1 < /dev/null &)
    sh -c "$stay" & disown
    echo partial
    exec 9> held; echo here >> grown
    exec sleep 1000
"#;
const HIDING_PROCESSES: usize = 7;

/// With the cage and without: what ends commands is not the same.
const WAYS: [&[&str]; 2] = [&[], &FULL_ACCESS];

/// The processes of a tree, wherever they are: whoever lives holds a pipe open that ends here.
struct Tree {
    held: fs::File,
    grown: PathBuf,
}

impl Tree {
    /// Prepares for a tree in a world.
    fn plant(world: &World) -> Self {
        use std::os::unix::fs::OpenOptionsExt as _;
        let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        let mut options = fs::OpenOptions::new();
        let held = options.read(true).custom_flags(nonblock).open(world.fifo("held")).unwrap();
        Self { held, grown: world.path("grown") }
    }

    fn has_grown(&self) -> bool {
        let grown = fs::read_to_string(&self.grown).unwrap_or_default();
        grown.lines().count() == HIDING_PROCESSES
    }

    fn is_alive(&self) -> bool {
        let read = (&self.held).read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[track_caller]
    fn until_grown(&self) {
        eventually("the tree has grown", || self.has_grown().then_some(()));
        assert!(self.is_alive());
    }

    #[track_caller]
    fn assert_gone(&self) {
        eventually("the whole tree is gone", || (!self.is_alive()).then_some(()));
    }
}

/// spec RUN.31: A command that outlives its time limit is ended with everything that it started; what
/// it printed until then is kept, the exit code is 124, and a line says how to change the limit.
#[test]
fn a_timeout_leaves_nothing_but_the_output() {
    for way in WAYS {
        let (outcome, tree, limit) = before_the_limit("the tree has grown", |limit| {
            let world = World::new();
            let tree = Tree::plant(&world);
            let options = ["run", "--timeout-ms", limit.ms, "--shell", "bash", "--no-login"];
            let outcome = world.sandgate(&[&options[..], way, &["--", HIDING_TREE]].concat());
            assert_eq!(outcome.code, Some(124));
            tree.has_grown().then_some((outcome, tree, limit))
        });
        assert_eq!(outcome.stdout(), "partial\n");
        let note = format!(
            "sandgate: the command was ended after {}, its time limit; --timeout-ms N sets another, 0 none\n",
            limit.spoken
        );
        assert_eq!(outcome.notes(), note);
        tree.assert_gone();
    }
}

#[test]
fn a_limit_that_is_over_before_the_command_starts_is_told_as_it_was_set() {
    let world = World::new();
    let outcome = world.sandgate(&["run", "--timeout-ms", "1", "--", "sleep", "1000"]);
    assert_eq!(outcome.code, Some(124));
    let expected = "sandgate: the command was ended after 1 ms, its time limit";
    assert!(outcome.notes().starts_with(expected), "{}", outcome.stderr);
}

/// spec RUN.53: SIGTERM to sandgate ends the command and everything that it started, and the exit code
/// is 143.
#[test]
fn a_terminated_sandgate_leaves_nothing() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let running = world.start(&[way, &["--shell", "bash", "--", HIDING_TREE]].concat());
        tree.until_grown();
        running.signal(Signal::TERM);
        let outcome = running.wait();
        assert_eq!((outcome.stdout(), outcome.code), ("partial\n", Some(143)));
        tree.assert_gone();
    }
}

/// spec RUN.54: Even a sandgate that is killed leaves nothing of the command alive.
#[test]
fn a_killed_sandgate_leaves_nothing() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let mut running = world.start(&[way, &["--shell", "bash", "--", HIDING_TREE]].concat());
        tree.until_grown();
        running.child.kill().unwrap();
        assert_eq!(running.wait().code, None);
        tree.assert_gone();
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let script = HIDING_TREE.replace("    exec sleep 1000\n", "    read word < go; exit 5\n");
        let go = world.fifo("go");
        let running = world.start(&[way, &["--shell", "bash", "--", &script]].concat());
        tree.until_grown();
        let_go(&go);
        assert_eq!(running.wait().code, Some(5));
        tree.assert_gone();
    }
}

/// Waits for the command to say that it is ready, and then sends the signal to sandgate.
fn signalled(script: &str, signal: Signal) -> Outcome {
    let world = World::new();
    let mut running = world.start(&["--shell", "bash", "--", script]);
    assert_eq!(running.line(), "ready\n");
    running.signal(signal);
    running.wait()
}

/// spec RUN.50: Ctrl-C reaches the command, which may answer it; the exit code is then the command's
/// own.
#[test]
fn a_command_may_answer_ctrl_c() {
    let script = "trap 'echo caught; exit 42' INT; sleep 1000 & echo ready; wait";
    let outcome = signalled(script, Signal::INT);
    assert_eq!((outcome.stdout(), outcome.code), ("ready\ncaught\n", Some(42)));
}

#[test]
fn a_command_that_does_not_care_dies_of_ctrl_c_with_everything_it_started() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let running = world.start(&[way, &["--shell", "bash", "--", HIDING_TREE]].concat());
        tree.until_grown();
        running.signal(Signal::INT);
        let outcome = running.wait();
        assert_eq!((outcome.stdout(), outcome.code), ("partial\n", Some(130)));
        tree.assert_gone();
    }
}

/// spec RUN.51: A command that does not end after Ctrl-C is ended with everything that it started, and
/// the exit code is 130.
#[test]
fn a_command_that_ignores_ctrl_c_is_ended() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let script = format!("trap '' INT\n{HIDING_TREE}");
        let running = world.start(&[way, &["--shell", "bash", "--", &script]].concat());
        tree.until_grown();
        running.signal(Signal::INT);
        let outcome = running.wait();
        assert_eq!((outcome.stdout(), outcome.code), ("partial\n", Some(130)));
        tree.assert_gone();
    }
}

/// spec RUN.57: A second Ctrl-C ends a command that goes on after the first, with everything that it
/// started.
#[test]
fn a_second_ctrl_c_ends_a_command_that_goes_on() {
    for way in WAYS {
        let world = World::new();
        let tree = Tree::plant(&world);
        let goes_on = "    trap 'echo asked' INT\n    exec 9> held; echo here >> grown\n    \
                       while :; do sleep 1000 & wait; done\n";
        let stays = "    exec 9> held; echo here >> grown\n    exec sleep 1000\n";
        let script = HIDING_TREE.replace(stays, goes_on);
        let mut running = world.start(&[way, &["--shell", "bash", "--", &script]].concat());
        assert_eq!(running.line(), "partial\n");
        tree.until_grown();
        running.signal(Signal::INT);
        assert_eq!(running.line(), "asked\n");
        running.signal(Signal::INT);
        assert_eq!(running.wait().code, Some(130));
        tree.assert_gone();
    }
}

/// spec RUN.55: SIGHUP to sandgate ends the command with exit code 129, unless sandgate was started
/// with that signal ignored, as `nohup` does.
#[test]
fn a_hangup_is_obeyed_unless_it_was_to_be_ignored() {
    let outcome = signalled("echo ready; exec sleep 1000", Signal::HUP);
    assert_eq!(outcome.code, Some(129));

    let world = World::new();
    let go = world.fifo("go");
    let sandgate = world.program(run_words(&["--", "echo ready; read word < go; echo done"]));
    let mut nohup = world.other("nohup");
    nohup.arg(sandgate.get_program()).args(sandgate.get_args());
    let mut running = Running::start(&mut nohup);
    assert_eq!(running.line(), "ready\n");
    running.signal(Signal::HUP);
    let_go(&go);
    let outcome = running.wait();
    assert_eq!((outcome.stdout(), outcome.code), ("ready\ndone\n", Some(0)));
}

/// spec RUN.56: A reader that does not read keeps sandgate from nothing: signals are obeyed all the
/// same.
#[test]
fn a_reader_that_does_not_read_does_not_keep_sandgate_from_ending() {
    for option in [&[][..], &["--json"]] {
        let world = World::new();
        let script = "echo $$ > pid; exec yes";
        let arguments = [option, &FULL_ACCESS, &["--shell", "sh", "--", script]].concat();
        let mut running = Running::start(&mut world.program(run_words(&arguments)));
        // The output is left alone, so that it fills every pipe and queue.
        running.read_exactly(1);
        let pid: i32 = eventually("the command runs", || {
            fs::read_to_string(world.path("pid")).ok()?.trim().parse().ok()
        });
        until_asleep_for_good(pid);
        running.signal(Signal::TERM);
        let status = running.child.wait().unwrap();
        assert_eq!(status.code(), Some(143), "{option:?}");
        eventually("the command is gone", || (!is_alive(pid)).then_some(()));
    }
}
