//! `sandgate session`: processes that live on, and the daemon that keeps them.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]

#[path = "../../../testing/mangled.rs"]
mod mangled;
mod support;
#[path = "support/terminal.rs"]
mod terminal;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use support::{Outcome, Running, World, eventually, is_alive, skipped};
use terminal::Terminal;

/// A home whose daemon ends with the test.
struct Home {
    world: World,
}

impl Home {
    fn new() -> Self {
        let home = Self { world: World::new() };
        fs::create_dir(home.world.path("ws")).unwrap();
        home
    }

    fn session(&self, words: &[&str]) -> Outcome {
        self.world.sandgate(&[&["session"], words].concat())
    }

    /// Starts a process, and gives back the reply.
    #[track_caller]
    fn start(&self, words: &[&str]) -> Value {
        let outcome = self.session(&[&["start", "--json"], words].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        serde_json::from_slice(&outcome.stdout).unwrap()
    }

    fn list(&self) -> Vec<Value> {
        let outcome = self.session(&["list", "--json"]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        serde_json::from_slice(&outcome.stdout).unwrap()
    }

    /// What a process printed, all of it.
    fn read(&self, id: &str) -> String {
        self.session(&["read", id]).stdout().to_owned()
    }

    fn directory(&self) -> PathBuf {
        self.world.path(".codex/daemon")
    }

    /// The daemon's process id, as it says hello.
    fn daemon(&self) -> i32 {
        use std::io::BufRead as _;
        let stream = UnixStream::connect(self.directory().join("socket")).unwrap();
        let mut line = String::new();
        std::io::BufReader::new(stream).read_line(&mut line).unwrap();
        let hello: Value = serde_json::from_str(&line).unwrap();
        i32::try_from(hello["pid"].as_i64().unwrap()).unwrap()
    }

    /// Starts a process that runs for ever, and gives back its process id. Its id is `idler`.
    fn idler(&self) -> i32 {
        let command = "echo at $$; exec sleep 1000";
        let full = ["--sandbox", "danger-full-access", "--ask-for-approval", "never"];
        let reply = self.start(
            &[&full[..], &["--id", "idler", "--wait-for", "at [0-9]+", "--", command]].concat(),
        );
        let output = reply["output"].as_str().unwrap();
        let number = output.split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let outcome = self.session(&["stop"]);
        if !std::thread::panicking() {
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
    }
}

/// spec DAEMON.1: `session start` starts a process that lives on when sandgate has ended, and the daemon
/// if there is none; `send` types to it, `read` shows what it printed, `list` has it, and `kill` ends it.
#[test]
fn a_process_lives_across_calls() {
    let home = Home::new();
    let outcome = home.session(&["start", "--", "bash", "--norc"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""), "{outcome:?}");
    assert_eq!(outcome.stderr, "sandgate: d1: waiting for input\n");
    let outcome = home.session(&["send", "d1", "name=world"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""));
    let outcome = home.session(&["send", "d1", "echo hello $name"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "hello world\n"), "{outcome:?}");
    assert!(home.read("d1").contains("hello world"));
    let listed = home.list();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["process_id"], "d1");
    assert_eq!(listed[0]["state"], "waiting_for_input");
    let outcome = home.session(&["list"]);
    assert!(outcome.stdout().contains("d1  waiting for input"), "{outcome:?}");
    let outcome = home.session(&["kill", "d1"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "process d1 was ended\n"));
    assert_eq!(home.list()[0]["state"], "exited");
}

/// spec DAEMON.14: Where no process is alive, `list` says so on standard error and how to begin one.
#[test]
fn an_empty_list_says_so() {
    let home = Home::new();
    let outcome = home.session(&["list"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""));
    let said = "sandgate: no process is alive; sandgate session start begins one\n";
    assert_eq!(outcome.stderr, said);
    let outcome = home.session(&["list", "--json"]);
    assert_eq!((outcome.stdout(), &*outcome.stderr), ("[]\n", ""));
}

/// spec DAEMON.4: The exit code is the process's own if it ended while it was waited for, and otherwise
/// 0; one line on standard error says how things are.
#[test]
fn the_exit_code_is_the_processs_own() {
    let home = Home::new();
    let outcome = home.session(&["start", "--", "echo bye; exit 3"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(3), "bye\n"));
    assert_eq!(outcome.stderr, "sandgate: exited with 3\n");
    home.start(&["--id", "shell", "--", "bash", "--norc"]);
    let outcome = home.session(&["send", "shell", "exit 4"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let outcome = home.session(&["send", "nobody", "x"]);
    assert_eq!(outcome.code, Some(125));
    assert_eq!(outcome.stderr, "sandgate: there is no process \"nobody\"\n");
}

/// spec DAEMON.5: Processes of different workspaces and policies live in one daemon, each confined by its
/// own, and no two have the same id; an id whose process has ended can be had again.
#[test]
fn one_daemon_serves_several_workspaces() {
    let home = Home::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let other = outside.path().to_str().unwrap();
    let shell = ["--", "bash", "--norc"];
    let first = home.start(&[&["--cd", "ws"][..], &shell].concat());
    let second = home.start(&[&["--cd", other][..], &shell].concat());
    assert_eq!((&first["process_id"], &second["process_id"]), (&"d1".into(), &"d2".into()));
    let write = format!("echo x > {other}/made || echo refused");
    let outcome = home.session(&["send", "d1", &write]);
    assert!(outcome.stdout().contains("refused"), "{outcome:?}");
    assert!(!outside.path().join("made").exists());
    home.session(&["send", "d2", &write]);
    assert_eq!(fs::read_to_string(outside.path().join("made")).unwrap(), "x\n");
    let taken = home.session(&["start", "--id", "d1", "--cd", other, "--", "true"]);
    assert_eq!(taken.code, Some(125), "{taken:?}");
    home.session(&["kill", "d1"]);
    let again = home.session(&["start", "--id", "d1", "--cd", other, "--", "exit 7"]);
    assert_eq!(again.code, Some(7), "{again:?}");
}

/// spec DAEMON.6: A question is asked at the terminal of whoever made the call; without one the exit code
/// is 77, and no is 78.
#[test]
fn questions_are_asked_where_the_call_came_from() {
    let home = Home::new();
    let words = ["session", "start", "--ask-for-approval", "untrusted", "--", "touch ws/made"];
    let outcome = home.world.sandgate(&words);
    assert_eq!(outcome.code, Some(77), "{outcome:?}");
    assert!(outcome.stderr.contains("nobody could be asked: May this run?"), "{outcome:?}");
    let mut terminal = Terminal::start(&home.world, &words);
    let shown = terminal.answer("n");
    assert!(shown.contains("touch ws/made"), "{shown}");
    assert_eq!(terminal.end().1, Some(78));
    assert!(!home.world.path("ws/made").exists());
    let mut terminal = Terminal::start(&home.world, &words);
    terminal.answer("y");
    assert_eq!(terminal.end().1, Some(0));
    assert!(home.world.path("ws/made").exists());
    let shown = home.world.sandgate(&["audit", "show", "--json"]);
    assert!(shown.stdout().contains(r#""front_end":"session""#), "{shown:?}");
    assert_eq!(home.world.sandgate(&["audit", "verify"]).code, Some(0));
}

/// spec DAEMON.7: When the daemon ends, in whichever way, all its processes end; the next start begins
/// another.
#[test]
fn a_killed_daemon_leaves_nothing_alive_and_is_replaced() {
    for signal in [Signal::KILL, Signal::TERM] {
        let home = Home::new();
        let (idler, daemon) = (home.idler(), home.daemon());
        assert!(is_alive(idler));
        kill_process(Pid::from_raw(daemon).unwrap(), signal).unwrap();
        eventually("the daemon is gone", || (!is_alive(daemon)).then_some(()));
        eventually("its process is gone", || (!is_alive(idler)).then_some(()));
        assert_eq!(home.list().len(), 0);
        assert!(is_alive(home.idler()));
        assert_ne!(home.daemon(), daemon);
    }
}

/// spec DAEMON.8: `session stop` comes back when all processes have ended and nothing is left in the
/// daemon's directory; so does the daemon's own end when nothing has lived for a while.
#[test]
fn nothing_is_left_after_the_end() {
    let home = Home::new();
    let (idler, daemon) = (home.idler(), home.daemon());
    assert_eq!(home.session(&["stop"]).code, Some(0));
    eventually("the process is gone", || (!is_alive(idler)).then_some(()));
    eventually("the daemon is gone", || (!is_alive(daemon)).then_some(()));
    assert!(!home.directory().exists());
    let sessions = fs::read_dir(home.world.path(".cache/sandgate/sessions"));
    let left = sessions.map_or(0, |all| all.flatten().filter(|one| one.path().is_dir()).count());
    assert_eq!(left, 0, "no files of its commands are left");
    // One that has nothing to do.
    let settings = home.world.path(".codex");
    let idle = home.world.sandgate(&[
        "daemon",
        "--settings",
        settings.to_str().unwrap(),
        "--idle-ms",
        "50",
    ]);
    assert_eq!((idle.code, idle.stdout()), (Some(0), "ready\n"));
    assert!(!home.directory().exists());
}

/// spec DAEMON.16: A daemon whose socket was removed, alone or with the settings around it, ends as soon as none of its
/// processes lives, and removes nothing of another that has its place by then.
#[test]
fn a_daemon_that_nobody_can_reach_ends_with_its_last_process() {
    let home = Home::new();
    let (idler, daemon) = (home.idler(), home.daemon());
    fs::remove_dir_all(home.world.path(".codex")).unwrap();
    let (other, next) = (home.idler(), home.daemon());
    assert_ne!(daemon, next);
    assert!(is_alive(idler) && is_alive(daemon), "what was to live on does");
    kill_process(Pid::from_raw(idler).unwrap(), Signal::KILL).unwrap();
    // By itself it would stay for a minute.
    eventually("the daemon is gone", || (!is_alive(daemon)).then_some(()));
    assert!(is_alive(other) && is_alive(next));
    assert_eq!(home.daemon(), next, "it can still be reached");
    assert_eq!(home.session(&["stop"]).code, Some(0));
    eventually("the other is gone", || (!is_alive(other) && !is_alive(next)).then_some(()));
}

/// spec DAEMON.9: Of several that are started at once one becomes the daemon, and all starts succeed.
#[test]
fn two_that_start_at_once_settle_on_one() {
    let home = Home::new();
    let starts: Vec<Running> = (0..4)
        .map(|_| Running::start(&mut home.world.program(["session", "start", "--", "cat"])))
        .collect();
    for start in starts {
        let outcome = start.wait();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
    let mut ids: Vec<String> =
        home.list().iter().map(|one| one["process_id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, [r#""d1""#, r#""d2""#, r#""d3""#, r#""d4""#]);
}

/// spec DAEMON.11: Nothing in a cage can connect to the daemon's socket, also when the workspace is the
/// directory that holds the settings; a workspace in the settings that would open it is refused.
#[test]
fn a_cage_cannot_reach_the_socket() {
    let home = Home::new();
    let socket = home.directory().join("socket");
    let try_it = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n\
         try:\n    s.connect({:?})\n    print('connected', s.recv(100))\n\
         except OSError as error:\n    print('refused', error.errno)\n",
        socket.to_str().unwrap()
    );
    home.start(&["--id", "first", "--", "cat"]);
    // Outside it can be done, so it is the cage that keeps it from happening.
    let own = home.world.other("python3").args(["-c", &try_it]).output().unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).starts_with("connected"), "{own:?}");
    // Nor what gave up rights that the daemon has, were its cage as leaky as it may.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    if status.contains("NoNewPrivs:\t0") {
        let mut gave_up = home.world.other("setpriv");
        let gave_up = gave_up.args(["--no-new-privs", "python3", "-c", &try_it]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&gave_up.stdout), "connected b''\n", "{gave_up:?}");
    }
    for cd in [".", "ws"] {
        for network in [&[][..], &["--network"]] {
            let words = [&["--cd", cd, "--decide", "deny"], network].concat();
            let words = [&words[..], &["--", "python3", "-c", &try_it]].concat();
            let outcome = home.session(&[&["start"], &words[..]].concat());
            assert!(outcome.stdout().starts_with("refused"), "{cd}: {outcome:?}");
            let outcome = home.world.sandgate(&[&["run"], &words[..]].concat());
            assert!(outcome.stdout().starts_with("refused"), "{cd}: {outcome:?}");
        }
    }
    let sandgate = home.world.program(["sandbox", "--full-auto", "--", "python3", "-c", &try_it]);
    let mut alone = home.world.other("python3");
    alone.args(["-c", include_str!("support/without_namespaces.py")]);
    alone.arg(sandgate.get_program()).args(sandgate.get_args());
    let outcome = Running::start(&mut alone).wait();
    assert!(outcome.stdout().starts_with("refused"), "without namespaces: {outcome:?}");
    let replace = "mv .codex elsewhere || rm -r .codex/daemon || touch .codex/daemon/x";
    let outcome = home.world.sandgate(&["run", "--decide", "deny", "--", replace]);
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert!(socket.exists());
    for cd in [".codex", ".codex/daemon"] {
        let outcome = home.session(&["start", "--cd", cd, "--", "true"]);
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        assert!(outcome.stderr.contains("the daemon's own socket lies in it"), "{outcome:?}");
    }
}

/// spec DAEMON.12: A caller that is killed while it waits takes nothing along: its process lives on, and
/// its question is called off.
#[test]
fn a_caller_that_is_killed_takes_nothing_along() {
    let home = Home::new();
    let mut command = home.world.program([
        "session",
        "start",
        "--id",
        "busy",
        "--",
        "sh",
        "-c",
        "echo begun > ws/begun; sleep 1000",
    ]);
    let waiting = Running::start(&mut command);
    eventually("it has begun", || fs::read_to_string(home.world.path("ws/begun")).ok());
    waiting.signal(Signal::KILL);
    waiting.wait();
    eventually("it is listed", || {
        let listed = home.list();
        listed
            .iter()
            .any(|one| one["process_id"] == "busy" && one["state"] == "running")
            .then_some(())
    });
    assert_eq!(home.session(&["send", "busy", "--signal", "KILL"]).code, Some(137));
    let words = ["session", "start", "--ask-for-approval", "untrusted", "--", "touch ws/made"];
    let mut asked = Terminal::start(&home.world, &words);
    asked.until("\n> ");
    asked.signal(Signal::KILL);
    asked.left();
    eventually("the question is called off", || {
        let recorded = home.world.sandgate(&["audit", "show", "--json"]);
        let mut lines = recorded.stdout().lines();
        let called_off =
            |line: &str| line.contains("touch ws/made") && line.contains(r#""decision":"aborted""#);
        lines.any(called_off).then_some(())
    });
    assert!(!home.world.path("ws/made").exists());
}

/// spec DAEMON.13: Another user's daemon is neither seen nor reached.
#[test]
fn users_do_not_see_each_other() {
    let home = Home::new();
    home.start(&["--id", "mine", "--", "cat"]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.directory()), 0o700);
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can be another user as well");
    }
    let exists = Command::new("id").arg("sandgate-test").output().unwrap().status.success();
    if !exists {
        return skipped("there is no second user here");
    }
    // Everything but the daemon's own directory is open to them.
    fs::set_permissions(home.world.home(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(home.world.path(".codex"), fs::Permissions::from_mode(0o777)).unwrap();
    let sandgate = home.world.program(["session", "list", "--json"]);
    let mut as_other = home.world.other("setpriv");
    as_other.args(["--reuid", "sandgate-test", "--regid", "sandgate-test", "--clear-groups"]);
    as_other.arg(sandgate.get_program()).args(sandgate.get_args());
    let outcome = Running::start(&mut as_other).wait();
    if outcome.stderr.contains("setpriv") {
        return skipped("another user cannot execute the program here");
    }
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("belongs to another user"), "{outcome:?}");
}

/// Requests that make sense, and do nothing where there is no session. The process that they would use or attach to is not
/// there, and no few bytes make its name that of one that is.
const HONEST: [&str; 10] = [
    r#"{"type":"list"}"#,
    r#"{"type":"use","process_id":"none-such"}"#,
    r#"{"type":"call","calls":[{"type":"function_call","name":"shell_command","call_id":"c","arguments":"{\"command\":\"touch made\"}"}]}"#,
    r#"{"type":"answer","approval_id":"approval_1","decision":{"decision":"approved"}}"#,
    r#"{"type":"cancel"}"#,
    r#"{"type":"attach","process_id":"none-such","size":{"rows":24,"columns":80}}"#,
    r#"{"type":"input","bytes":"dG91Y2ggbWFkZQo="}"#,
    r#"{"type":"resize","size":{"rows":24,"columns":80}}"#,
    r#"{"type":"describe","process_id":"d1"}"#,
    r#"{"type":"type","params":{"process_id":"d1","input":"touch made\n"},"typed":""}"#,
];

/// spec DAEMON.15: What makes no sense on one connection runs nothing, ends no process and types to none, and the next
/// connection is answered.
#[test]
fn nothing_that_is_said_ends_the_daemon() {
    use mangled::mangled;
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::test_runner::{RngSeed, TestRunner};
    use std::io::{Read as _, Write as _};
    let home = Home::new();
    home.start(&["--", "cat"]);
    let socket = home.directory().join("socket");
    // What is told after the first line, which greets.
    let answers = |said: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(said).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let mut told = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(told.next().unwrap()["type"], "hello");
        told.collect::<Vec<_>>()
    };
    let lines = prop::collection::vec(select(&HONEST[..]).prop_flat_map(mangled), 0..6);
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&lines, |lines| {
        answers(&lines.join(&b'\n'));
        let listed = answers(format!("{}\n", HONEST[0]).as_bytes());
        prop_assert_eq!(listed[0]["processes"].as_array().map(Vec::len), Some(1), "{:?}", listed);
        Ok(())
    });
    ran.unwrap();
    assert_eq!(home.read("d1"), "[nothing there]\n", "nothing was typed to it");
    assert!(!home.world.path("made").exists() && !home.world.path("ws/made").exists());
}

/// spec DAEMON.10: A line that is no request, has a field that is not known, or is longer than 8 MiB is
/// answered by an error line; after one that is too long the connection is closed.
#[test]
fn what_makes_no_sense_is_answered_by_an_error() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let home = Home::new();
    home.start(&["--", "cat"]);
    let stream = UnixStream::connect(home.directory().join("socket")).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut next =
        || lines.next().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert_eq!(next().unwrap()["type"], "hello");
    for (line, reason) in [
        ("not JSON", "this is no request"),
        (r#"{"type":"list","more":1}"#, "unknown field `more`"),
        (r#"{"type":"be_nice"}"#, "unknown variant `be_nice`"),
        (r#"{"type":"call","calls":[]}"#, "there is no session yet"),
    ] {
        writeln!(&stream, "{line}").unwrap();
        let reply = next().unwrap();
        assert_eq!(reply["type"], "error", "{reply}");
        assert!(reply["message"].as_str().unwrap().contains(reason), "{reply}");
    }
    writeln!(&stream, r#"{{"type":"list"}}"#).unwrap();
    assert_eq!(next().unwrap()["type"], "processes");
    // The daemon closes before it has read all of it.
    let _ = (&stream).write_all(&vec![b'x'; (8 << 20) + (128 << 10)]);
    let reply = next().unwrap();
    assert!(reply["message"].as_str().unwrap().contains("longer than"), "{reply}");
    assert_eq!(home.list().len(), 1, "the others are served");
}
