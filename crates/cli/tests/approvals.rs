//! `sandgate approvals` and `sandgate console`: questions of other programs, answered from anywhere.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use support::{Running, World, eventually, skipped};
use terminal::Terminal;

/// Words that ask before everything that is not known to be safe.
const UNTRUSTED: [&str; 2] = ["--ask-for-approval", "untrusted"];

/// A program that waits for somebody to answer.
fn waiting(world: &World, verb: &str, words: &[&str]) -> Running {
    let words = [&[verb], &UNTRUSTED[..], &["--decide", "approvals"], words].concat();
    Running::start(&mut world.program(words))
}

fn list(world: &World) -> Vec<Value> {
    let outcome = world.sandgate(&["approvals", "list", "--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Waits until so many questions are open.
#[track_caller]
fn open(world: &World, count: usize) -> Vec<Value> {
    eventually("the questions are open", || {
        let listed = list(world);
        (listed.len() == count).then_some(listed)
    })
}

fn id(question: &Value) -> &str {
    question["id"].as_str().unwrap()
}

#[track_caller]
fn answer(world: &World, id: &str, words: &[&str]) {
    let outcome = world.sandgate(&[&["approvals", "answer", id], words].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// The only socket there is.
fn socket(world: &World) -> PathBuf {
    let names = fs::read_dir(world.path(".codex/desk")).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "sock")).unwrap()
}

/// spec DESK.17: Who said no elsewhere to another attempt is not told how to allow it.
#[test]
fn a_no_from_elsewhere_is_not_argued_with() {
    let world = World::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = format!("echo x > {}/file", outside.path().display());
    let words = ["run", "--full-auto", "--decide", "approvals", "--", &script];
    let running = Running::start(&mut world.program(words));
    answer(&world, id(&open(&world, 1)[0]), &["deny"]);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(!outcome.stderr.contains("to let it"), "{outcome:?}");
    assert!(!outside.path().join("file").exists());
}

/// spec DESK.10: With `--decide approvals`, `run`, `exec`, `call`, `patch` and `session` wait for an answer
/// that is given elsewhere; it counts as one given at their own terminal.
#[test]
fn a_program_waits_for_an_answer_from_elsewhere() {
    let world = World::new();
    let first = waiting(&world, "run", &["--", "touch", "one"]);
    let second = waiting(&world, "run", &["--", "touch", "two"]);
    let questions = open(&world, 2);
    let about = |name: &str| {
        let text = format!("touch {name}");
        questions.iter().find(|one| one["question"]["command_text"] == *text).unwrap()
    };
    assert_eq!(about("one")["front_end"], "run");
    assert_eq!(about("one")["workspace"], *world.home().to_string_lossy());
    let shown = world.sandgate(&["approvals", "list"]);
    assert!(shown.stdout().contains("May this run? touch one ("), "{shown:?}");
    answer(&world, id(about("one")), &["approve"]);
    assert_eq!(first.wait().code, Some(0));
    answer(&world, id(about("two")), &["deny", "--feedback", "not here"]);
    let outcome = second.wait();
    assert_eq!(outcome.code, Some(78), "{outcome:?}");
    assert!(outcome.stderr.contains("the answer was no: not here"), "{outcome:?}");
    assert_eq!(["one", "two"].map(|name| world.path(name).exists()), [true, false]);

    let call = json!({
        "type": "function_call", "name": "shell", "call_id": "c",
        "arguments": json!({ "command": ["touch", "three"] }).to_string(),
    });
    fs::write(world.path("calls"), format!("{call}\n")).unwrap();
    let calling = waiting(&world, "call", &["calls"]);
    answer(&world, id(&open(&world, 1)[0]), &["approve"]);
    assert_eq!(calling.wait().code, Some(0));
    assert!(world.path("three").exists());

    let arguments = json!({ "command": "touch four", "login": false });
    let turns = [
        json!([{ "type": "call", "name": "shell_command", "arguments": arguments }]),
        json!([{ "type": "message", "text": "done" }]),
    ];
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    fs::write(world.path("model.jsonl"), lines.join("\n")).unwrap();
    let model = format!("script:{}", world.path("model.jsonl").display());
    let talking = waiting(&world, "exec", &["--provider", &model, "go"]);
    let question = open(&world, 1).remove(0);
    assert!(question["conversation"].is_string(), "{question}");
    answer(&world, id(&question), &["session"]);
    let outcome = talking.wait();
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "done\n"), "{outcome:?}");
    assert!(world.path("four").exists());

    fs::write(world.path("fix"), "*** Begin Patch\n*** Add File: five\n+x\n*** End Patch\n")
        .unwrap();
    let words =
        ["patch", "apply", "--ask-for-approval", "untrusted", "--decide", "approvals", "fix"];
    let patching = Running::start(&mut world.program(words));
    answer(&world, id(&open(&world, 1)[0]), &["approve"]);
    assert_eq!(patching.wait().code, Some(0));
    assert!(world.path("five").exists());
    assert!(list(&world).is_empty());
    assert!(!world.path(".codex/desk").exists(), "nothing is left");
}

/// spec DESK.10: With `--decide approvals`, `run`, `exec`, `call`, `patch` and `session` wait for an answer
/// that is given elsewhere; it counts as one given at their own terminal.
#[test]
fn a_session_waits_for_an_answer_from_elsewhere() {
    let world = World::new();
    let words = ["session", "start", "--ask-for-approval", "untrusted", "--decide", "approvals"];
    let starting = Running::start(&mut world.program([&words[..], &["--", "touch six"]].concat()));
    let question = open(&world, 1).remove(0);
    assert_eq!(question["front_end"], "session", "{question}");
    answer(&world, id(&question), &["approve"]);
    let outcome = starting.wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(world.path("six").exists());
    world.sandgate(&["session", "stop"]);
}

/// spec DESK.14: What nobody answers in the time of `--approval-timeout` is a no; without a terminal and
/// without `--decide approvals` nobody is waited for. In both cases the exit code of `run`, `exec`, `call` and
/// `patch` is 77.
#[test]
fn nobody_is_waited_for_longer_than_was_said() {
    let world = World::new();
    let outcome = waiting(&world, "run", &["--approval-timeout", "1", "--", "touch", "one"]).wait();
    assert_eq!(outcome.code, Some(77), "{outcome:?}");
    let words = [&["run"], &UNTRUSTED[..], &["--", "touch", "one"]].concat();
    assert_eq!(world.sandgate(&words).code, Some(77));
    let arguments = json!({ "command": "touch one", "login": false });
    let turns = [
        json!([{ "type": "call", "name": "shell_command", "arguments": arguments }]),
        json!([{ "type": "message", "text": "done" }]),
    ];
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    fs::write(world.path("model.jsonl"), lines.join("\n")).unwrap();
    let model = format!("script:{}", world.path("model.jsonl").display());
    let words = ["--approval-timeout", "1", "--provider", &model, "go"];
    let outcome = waiting(&world, "exec", &words).wait();
    assert_eq!((outcome.code, outcome.stdout()), (Some(77), "done\n"), "{outcome:?}");
    let call = json!({
        "type": "function_call", "name": "shell", "call_id": "c",
        "arguments": json!({ "command": ["touch", "one"] }).to_string(),
    });
    fs::write(world.path("calls"), format!("{call}\n")).unwrap();
    let outcome = waiting(&world, "call", &["--approval-timeout", "1", "calls"]).wait();
    assert_eq!(outcome.code, Some(77), "{outcome:?}");
    assert!(!world.path("one").exists());
}

/// spec DESK.11: A question on a terminal that is answered elsewhere goes away and says who answered, and
/// what is typed after that answers nothing.
///
/// spec APPROVAL.59: What came of a question is told in the same words wherever it is told: who answered, what, and
/// what they wrote beside a no, in a line in which everything shows itself.
#[test]
fn a_question_that_was_answered_elsewhere_goes_away() {
    let world = World::new();
    let words =
        [&["run"], &UNTRUSTED[..], &["--", "touch made && read word && echo $word"]].concat();
    let mut terminal = Terminal::start(&world, &words);
    terminal.until("\n> ");
    answer(&world, id(&open(&world, 1)[0]), &["approve"]);
    terminal.until("Answered by approvals: yes, once.");
    eventually("it has run", || world.path("made").exists().then_some(()));
    assert_eq!(terminal.end().1, Some(1), "its standard input is empty");

    let arguments = json!({ "command": "touch two", "login": false });
    let turns = [
        json!([{ "type": "call", "name": "shell_command", "arguments": arguments }]),
        json!([{ "type": "message", "text": "that is all" }]),
    ];
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    fs::write(world.path("model.jsonl"), lines.join("\n")).unwrap();
    let model = format!("script:{}", world.path("model.jsonl").display());
    let words = [&["exec"], &UNTRUSTED[..], &["--provider", &model, "go"]].concat();
    let mut terminal = Terminal::start(&world, &words);
    terminal.until("\n> ");
    answer(&world, id(&open(&world, 1)[0]), &["deny"]);
    terminal.until("Answered by approvals: no.");
    let (shown, code) = terminal.end();
    assert!(shown.contains("that is all"), "{shown}");
    assert_eq!(code, Some(0));
    assert!(!world.path("two").exists());
}

/// spec DESK.12: `sandgate approvals` asks at its terminal whatever any program asks, with the program, its
/// workspace and since when; a question that was answered elsewhere is taken back, and says who answered if its program still runs.
///
/// spec DESK.19: What is written beside a no is said to be told to the model only where a model asks: a command
/// that a person typed has none, and it is recorded.
#[test]
fn a_person_answers_all_programs_at_one_terminal() {
    let world = World::new();
    let mut person = Terminal::start(&world, &["approvals"]);
    person.until("waiting for questions");
    let first = waiting(&world, "run", &["--", "touch", "one"]);
    let shown = person.until("\n> ");
    let heard = "[n] no; what you write after it is recorded";
    for expected in ["sandgate run (process ", "s ago", "$ touch one", "[y] yes", heard] {
        assert!(shown.contains(expected), "{expected:?} in {shown}");
    }
    assert!(shown.contains(&*world.home().to_string_lossy()), "{shown}");
    person.press("y\n");
    assert_eq!(first.wait().code, Some(0));
    assert!(world.path("one").exists());
    person.until("waiting for questions");
    let call = |name: &str| {
        let arguments = json!({ "command": ["touch", name] }).to_string();
        json!({ "type": "function_call", "name": "shell", "call_id": name, "arguments": arguments })
    };
    fs::write(world.path("calls"), format!("{}\n{}\n", call("two"), call("more"))).unwrap();
    let second = waiting(&world, "call", &["calls"]);
    let shown = person.until("\n> ");
    assert!(shown.contains("[n] no; what you write after it is told to the model"), "{shown}");
    answer(&world, id(&open(&world, 1)[0]), &["deny"]);
    person.until("Answered by approvals: no.");
    person.until("$ touch more");
    person.until("\n> ");
    person.press("n\n");
    second.wait();
    let third = waiting(&world, "run", &["--", "touch", "three"]);
    person.until("$ touch three");
    person.answer("n not this");
    let outcome = third.wait();
    assert!(outcome.stderr.contains("the answer was no: not this"), "{outcome:?}");
    person.press("\x03");
    person.end();
    let outcome = world.sandgate(&["approvals"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("there is no terminal"), "{outcome:?}");
}

/// spec DESK.16: `sandgate approvals` shows a question with what the list has left out.
#[test]
fn a_question_that_is_too_long_for_the_list_is_shown_in_whole() {
    let world = World::new();
    let mut person = Terminal::start(&world, &["approvals"]);
    person.until("waiting for questions");
    let lines = "+a line of a long file\n".repeat(5000);
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("long");
    let patch =
        format!("*** Begin Patch\n*** Add File: {}\n{lines}*** End Patch\n", file.display());
    let call = json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": "p", "input": patch });
    fs::write(world.path("calls"), format!("{call}\n")).unwrap();
    let asking = waiting(&world, "call", &["calls"]);
    let shown = person.until(" more lines are not shown]");
    let hidden = shown.rsplit_once('[').unwrap().1.split(' ').next().unwrap();
    // Of the list it would be a thousand.
    assert!(hidden.parse::<u32>().unwrap() >= 4800, "{hidden}");
    let listed = &open(&world, 1)[0];
    assert_eq!(listed["cut"], true, "{listed}");
    person.until("\n> ");
    person.press("n\n");
    asking.wait();
    assert!(!file.exists());
    person.press("\x03");
    person.end();
}

/// spec DESK.6: Who watches is told of all that is open, at once and whenever it changes, also in programs
/// that start later.
#[test]
fn what_is_open_can_be_watched() {
    let world = World::new();
    let mut watching = Running::start(&mut world.program(["approvals", "watch", "--json"]));
    let mut next = || serde_json::from_str::<Value>(&watching.line()).unwrap();
    assert_eq!(next(), json!({ "questions": [] }));
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    let told = next();
    assert_eq!(told["questions"][0]["question"]["command_text"], "touch one", "{told}");
    answer(&world, id(&told["questions"][0]), &["abort"]);
    assert_eq!(next(), json!({ "questions": [] }));
    assert_eq!(asking.wait().code, Some(130));
    watching.signal(Signal::TERM);
    watching.wait();
}

/// spec DESK.8: Nothing in a cage can connect to the socket, with namespaces or without, also when the
/// workspace is the directory that holds the settings, nor can it be moved or removed from there.
#[test]
fn a_cage_cannot_reach_the_socket() {
    let world = World::new();
    fs::create_dir(world.path("ws")).unwrap();
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    open(&world, 1);
    let socket = socket(&world);
    let try_it = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n\
         try:\n    s.connect({:?})\n    print('connected', s.recv(100))\n\
         except OSError as error:\n    print('refused', error.errno)\n",
        socket.to_str().unwrap()
    );
    // Outside it can be done, so it is the cage that keeps it from happening.
    let own = world.other("python3").args(["-c", &try_it]).output().unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).starts_with("connected"), "{own:?}");
    // Nor what gave up rights that the program has, were its cage as leaky as it may.
    if fs::read_to_string("/proc/self/status").unwrap().contains("NoNewPrivs:\t0") {
        let mut gave_up = world.other("setpriv");
        let gave_up = gave_up.args(["--no-new-privs", "python3", "-c", &try_it]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&gave_up.stdout), "connected b''\n", "{gave_up:?}");
    }
    for cd in [".", "ws"] {
        for network in [&[][..], &["--network"]] {
            let words = [&["run", "--cd", cd, "--decide", "deny"], network].concat();
            let words = [&words[..], &["--", "python3", "-c", &try_it]].concat();
            let outcome = world.sandgate(&words);
            assert!(outcome.stdout().starts_with("refused"), "{cd}: {outcome:?}");
        }
    }
    let sandgate = world.program(["sandbox", "--full-auto", "--", "python3", "-c", &try_it]);
    let mut alone = world.other("python3");
    alone.args(["-c", include_str!("support/without_namespaces.py")]);
    alone.arg(sandgate.get_program()).args(sandgate.get_args());
    let outcome = Running::start(&mut alone).wait();
    assert!(outcome.stdout().starts_with("refused"), "without namespaces: {outcome:?}");
    let replace = "mv .codex elsewhere || rm -r .codex/desk || touch .codex/desk/x";
    let outcome = world.sandgate(&["run", "--decide", "deny", "--", replace]);
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    answer(&world, id(&open(&world, 1)[0]), &["deny"]);
    assert_eq!(asking.wait().code, Some(78));
}

/// spec LOCKS.3: In a cage, with namespaces or without, none of these files can be opened.
#[test]
fn a_cage_holds_no_lock_of_ours() {
    let world = World::new();
    fs::write(world.path("fix"), "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n")
        .unwrap();
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    answer(&world, id(&open(&world, 1)[0]), &["rule"]);
    assert_eq!(asking.wait().code, Some(0));
    for words in
        [&["trust", "."][..], &["patch", "apply", "fix"], &["session", "start", "--", "cat"]]
    {
        let outcome = world.sandgate(words);
        assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
    }
    let serving = Running::start(&mut world.program(["serve", "--listen", "127.0.0.1:0"]));
    let lock = world.path(".codex/serve/.lock");
    eventually("the server has its lock", || lock.exists().then_some(()));
    // Those that there are, and those that can be held.
    let try_it = "import os\n\
        for top, _, names in os.walk('.'):\n \
          for name in names:\n  \
            if 'lock' in name:\n   \
              path = os.path.join(top, name)\n   \
              try:\n    os.open(path, os.O_RDONLY)\n    print('opened', path)\n   \
              except OSError:\n    print('closed', path)\n";
    let closed = |seen: &str| {
        let mut seen: Vec<String> = seen.lines().map(str::to_owned).collect();
        seen.sort();
        assert!(seen.iter().all(|line| line.starts_with("closed ")), "{seen:?}");
        let locks = ["audit/lock", "daemon/lock", "patches/lock", "rules/.lock", "serve/.lock"];
        for lock in locks.into_iter().chain([".config.lock"]) {
            assert!(seen.contains(&format!("closed ./.codex/{lock}")), "{lock}: {seen:?}");
        }
        assert!(seen.iter().any(|line| line.contains("/desk/")), "{seen:?}");
    };
    closed(world.sandgate(&["sandbox", "--full-auto", "--", "python3", "-c", try_it]).stdout());
    let sandgate = world.program(["sandbox", "--full-auto", "--", "python3", "-c", try_it]);
    let mut alone = world.other("python3");
    alone.args(["-c", include_str!("support/without_namespaces.py")]);
    alone.arg(sandgate.get_program()).args(sandgate.get_args());
    closed(Running::start(&mut alone).wait().stdout());
    serving.signal(Signal::TERM);
    serving.wait();
    assert_eq!(world.sandgate(&["session", "stop"]).code, Some(0));
}

/// spec DESK.15: A session does not begin whose workspace, or a directory that its commands may write to, is
/// the settings or lies in them, whichever program it belongs to and whatever its policy.
#[test]
fn nothing_works_in_the_settings() {
    let world = World::new();
    fs::create_dir_all(world.path(".codex/rules/deeper")).unwrap();
    fs::create_dir(world.path("ws")).unwrap();
    std::os::unix::fs::symlink(world.path(".codex"), world.path("link")).unwrap();
    fs::write(world.path("fix"), "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n")
        .unwrap();
    fs::write(world.path("calls"), "").unwrap();
    for cd in [".codex", ".codex/rules/deeper", "link", "link/rules"] {
        // A link is not followed this far.
        let refusals = ["lies in your settings", "is a link that a command could have made"];
        for words in [
            &["run", "--cd", cd, "--decide", "deny", "--", "touch made"][..],
            &["run", "--cd", cd, "--sandbox", "read-only", "--decide", "deny", "--", "true"],
            &["run", "--cd", "ws", "--writable", &world.path(cd).to_string_lossy(), "--", "true"],
            &["call", "--cd", cd, "calls"],
            &["exec", "--cd", cd, "--provider", "script:calls", "go"],
        ] {
            let outcome = world.sandgate(words);
            assert_eq!(outcome.code, Some(125), "{words:?}: {outcome:?}");
            let told = refusals.iter().any(|said| outcome.stderr.contains(said));
            assert!(told, "{words:?}: {outcome:?}");
        }
        assert!(!world.path(cd).join("made").exists());
    }
    // Where they are only a part they are protected.
    for (script, works) in [("touch made", true), ("touch .codex/no", false)] {
        let outcome = world.sandgate(&["run", "--decide", "deny", "--", script]);
        assert_eq!(outcome.code == Some(0), works, "{outcome:?}");
    }
    assert_eq!(["made", ".codex/no"].map(|name| world.path(name).exists()), [true, false]);
}

/// spec DESK.9: Another user sees and answers nothing.
#[test]
fn users_do_not_see_each_other() {
    let world = World::new();
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    let question = open(&world, 1).remove(0);
    if !rustix::process::geteuid().is_root() {
        asking.signal(Signal::TERM);
        return skipped("only root can be another user as well");
    }
    if !Command::new("id").arg("sandgate-test").output().unwrap().status.success() {
        asking.signal(Signal::TERM);
        return skipped("there is no second user here");
    }
    // Everything but the desk's own directory is open to them.
    fs::set_permissions(world.home(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(world.path(".codex"), fs::Permissions::from_mode(0o777)).unwrap();
    for words in [&["approvals", "list"][..], &["approvals", "answer", id(&question), "approve"]] {
        let sandgate = world.program(words);
        let mut as_other = world.other("setpriv");
        as_other.args(["--reuid", "sandgate-test", "--regid", "sandgate-test", "--clear-groups"]);
        as_other.arg(sandgate.get_program()).args(sandgate.get_args());
        let outcome = Running::start(&mut as_other).wait();
        if outcome.stderr.contains("setpriv") {
            asking.signal(Signal::TERM);
            return skipped("another user cannot execute the program here");
        }
        assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{outcome:?}");
    }
    assert_eq!(list(&world).len(), 1);
    answer(&world, id(&question), &["deny"]);
    assert_eq!(asking.wait().code, Some(78));
}

/// spec DESK.5: What a program left that was killed is removed by whoever looks, and by the next program that
/// has a desk; what one has that runs stays.
#[test]
fn what_a_killed_program_left_is_removed() {
    let world = World::new();
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    open(&world, 1);
    let left = socket(&world);
    asking.signal(Signal::KILL);
    asking.wait();
    assert!(left.exists());
    assert!(list(&world).is_empty());
    assert!(!left.exists());
}

/// spec DESK.7: A question is named by its id, of which `approvals answer` takes any beginning of what
/// stands before the `-` that no other program has; the number is never shortened. What is no question, and
/// what is no answer, is said.
#[test]
fn what_cannot_be_answered_is_said() {
    let world = World::new();
    let outcome = world.sandgate(&["approvals", "answer", "1a2b", "approve"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("there is no open question \"1a2b\""), "{outcome:?}");
    let outcome = world.sandgate(&["approvals", "answer", "1a2b", "maybe"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let asking = waiting(&world, "run", &["--", "touch", "one"]);
    let question = open(&world, 1).remove(0);
    // Nothing was blocked, so there is nothing to grant.
    let outcome = world.sandgate(&["approvals", "answer", id(&question), "grant"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("not among the answers"), "{outcome:?}");
    answer(&world, &format!("{}-1", &id(&question)[..3]), &["deny"]);
    assert_eq!(asking.wait().code, Some(78));
}

/// spec DESK.13: `sandgate console` prints the address that a program gives to whoever asks over the
/// socket; without such a program the exit code is 125.
#[test]
fn the_console_is_found() {
    let world = World::new();
    let outcome = world.sandgate(&["console"]);
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("sandgate serve"), "{outcome:?}");
    let address = "http://127.0.0.1:8642/#token=abc";
    let (settings, (listens, listening)) = (world.path(".codex"), std::sync::mpsc::channel());
    // A program that serves one, as long as this test runs.
    std::thread::spawn(move || {
        let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build();
        asynchronous.unwrap().block_on(async {
            let desk = std::sync::Arc::new(sandgate_runtime::Desk::default());
            desk.set_console(move || Some(address.to_owned()));
            let _socket = desk.listen(&settings).unwrap();
            listens.send(()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    listening.recv().unwrap();
    let outcome = world.sandgate(&["console"]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), &*format!("{address}\n")));
}
