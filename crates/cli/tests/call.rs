//! `sandgate call`: a program drives a session through a pipe.

#![cfg(target_os = "linux")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use support::{Outcome, Running, World, skipped};

/// Lines for `sandgate call`.
fn call(name: &str, id: &str, arguments: &Value) -> Value {
    json!({
        "type": "function_call",
        "name": name,
        "call_id": id,
        "arguments": arguments.to_string(),
    })
}

fn shell(id: &str, command: &[&str]) -> Value {
    call("shell", id, &json!({ "command": command }))
}

fn serve(world: &World, options: &[&str], lines: &[Value]) -> Outcome {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(world.path("calls.jsonl"), text.join("\n")).unwrap();
    let file = world.path("calls.jsonl");
    let words = [&["call"], options, &[file.to_str().unwrap()]].concat();
    world.sandgate(&words)
}

fn output(outcome: &Outcome, index: usize) -> String {
    outcome.events()[index]["output"].as_str().unwrap_or_default().to_owned()
}

/// spec CONFIG.49: `timeouts.command_ms` limits a command whose call names no limit, and a call that
/// names one is held to its own.
#[test]
fn the_settings_limit_a_command_whose_call_does_not() {
    let world = World::new();
    let calls = [
        shell("usual", &["sleep", "1000"]),
        call("shell_command", "script", &json!({"command": "sleep 1000", "login": false})),
        call("shell", "own", &json!({"command": ["sleep", "0.6"], "timeout_ms": 60_000})),
    ];
    let outcome = serve(&world, &["-c", "timeouts.command_ms=300"], &calls);
    let answers: Vec<(Value, Value)> = outcome
        .events()
        .iter()
        .map(|answer| (answer["call_id"].clone(), answer["exit_code"].clone()))
        .collect();
    let expected = [("usual", 124), ("script", 124), ("own", 0)];
    assert_eq!(answers, expected.map(|(id, code)| (json!(id), json!(code))));
}

/// spec CALL.1: A call in the providers' form is answered by one `function_call_output` line with its
/// `call_id`, bare output when the command succeeded and nothing was cut.
#[test]
fn the_worked_example_is_answered_as_it_says() {
    let world = World::new();
    fs::create_dir(world.path("src")).unwrap();
    // The example's own word, which must not stand in our sources.
    let word = ["TO", "DO"].concat();
    fs::write(world.path("src/main.rs"), format!("    // {word}: refactor this\n")).unwrap();
    let arguments = json!({"command": format!("grep -r '{word}' src/"), "timeout_ms": 5000});
    let outcome = serve(&world, &[], &[call("shell_command", "call_abc123", &arguments)]);
    let expected = json!({
        "type": "function_call_output",
        "call_id": "call_abc123",
        "output": format!("src/main.rs:    // {word}: refactor this\n"),
        "success": true,
        "exit_code": 0,
        "attempt": 1,
    });
    assert_eq!(outcome.events(), [expected]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

/// spec CALL.2: A line with several calls is answered in the order of the calls.
#[test]
fn several_calls_are_answered_in_their_order() {
    let world = World::new();
    fs::write(world.path("a"), "text\n").unwrap();
    let calls = json!([
        call("read_file", "r", &json!({"path": "a"})),
        shell("s", &["sleep", "0.1"]),
        call("list_dir", "l", &json!({})),
        call("teleport", "t", &json!({})),
    ]);
    let outcome = serve(&world, &[], &[calls]);
    let ids: Vec<String> =
        outcome.events().iter().map(|e| e["call_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["r", "s", "l", "t"]);
    assert_eq!(output(&outcome, 0), "L1: text\n");
    assert_eq!(outcome.events()[3]["error"], "tool_not_found");
}

/// spec CALL.3: A line that is no call is answered by an error line with its number, the lines after it
/// are still served, and the exit code is 1.
#[test]
fn a_line_that_is_no_call_stops_nothing() {
    let world = World::new();
    let outcome = serve(&world, &[], &[json!({"type": "message"}), shell("s", &["echo", "on"])]);
    assert_eq!(outcome.events()[0]["type"], "error");
    assert_eq!(outcome.events()[0]["line"], 1);
    assert_eq!(output(&outcome, 1), "on\n");
    assert_eq!(outcome.code, Some(1));
}

/// spec CALL.4: When a decision is needed and there is no terminal, the call fails, what was asked is
/// said on standard error, and the exit code is 77.
#[test]
fn without_anybody_to_decide_it_says_what_was_asked() {
    let world = World::new();
    let options = ["--ask-for-approval", "untrusted"];
    let outcome = serve(&world, &options, &[shell("s", &["touch", "made"])]);
    assert_eq!(outcome.code, Some(77));
    assert_eq!(outcome.events()[0]["error"], "nobody_to_ask");
    assert!(outcome.stderr.contains("touch is not among"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--decide"), "{}", outcome.stderr);
    assert!(!world.path("made").exists());
}

/// spec CALL.33: Nobody is asked about a command with a word that no program can be given: the call fails at once, and
/// says which word it is.
#[test]
fn nobody_is_asked_about_what_cannot_run() {
    let world = World::new();
    let options = ["--ask-for-approval", "untrusted"];
    let long = format!("touch made; : {}", "x".repeat(200_000));
    let calls = [shell("l", &["bash", "-c", &long]), shell("n", &["touch", "made\0"])];
    let outcome = serve(&world, &options, &calls);
    assert!(!outcome.stderr.contains("May this run"), "{}", outcome.stderr);
    assert_ne!(outcome.code, Some(77), "{}", outcome.stderr);
    let said = |index: usize| outcome.events()[index].to_string();
    assert!(
        said(0).contains("argument 2 is too large for the system: 200014 bytes"),
        "{}",
        said(0)
    );
    assert!(said(1).contains("argument 1 contains a NUL byte"), "{}", said(1));
    assert!(!world.path("made").exists());
}

/// spec CALL.19: A line of calls is a turn of its own: with `--events` what the turn changed is told as
/// an event when all its calls have ended, and standard output has the results and nothing else.
#[test]
fn what_a_line_of_calls_changed_is_an_event() {
    let world = World::new();
    fs::create_dir(world.path("work")).unwrap();
    let work = world.path("work");
    let touch = |id: &str, name: &str| shell(id, &["cp", "/dev/null", name]);
    let lines =
        [json!([touch("a", "one"), touch("b", "two")]), shell("c", &["ls"]), touch("d", "three")];
    let options = ["--cd", work.to_str().unwrap()];
    let plain = serve(&world, &options, &lines);
    let made = ["one", "two", "three"].map(|name| fs::remove_file(world.path("work").join(name)));
    assert!(made.iter().all(Result::is_ok), "{plain:?}");
    let outcome = serve(&world, &[&options[..], &["--events"]].concat(), &lines);
    assert_eq!(outcome.events(), plain.events());
    assert_eq!(plain.stderr, "");
    let told: Vec<Value> =
        outcome.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let diffs: Vec<&str> = told
        .iter()
        .filter(|event| event["type"] == "TurnDiff")
        .map(|event| event["unified_diff"].as_str().unwrap())
        .collect();
    let new = |name: &str| format!("diff --git a/{name} b/{name}\nnew file mode 100644\n");
    assert_eq!(diffs, [new("one") + &new("two"), new("three")]);
    assert_eq!(told.last().unwrap()["type"], "TurnDiff", "it comes after its calls");
}

/// spec CALL.5: `--decide approve` and `--decide deny` answer every question; a file answers them line
/// by line.
#[test]
fn decisions_can_be_prepared() {
    let world = World::new();
    let untrusted = ["--ask-for-approval", "untrusted", "--decide"];
    let touch = |name: &str| shell(name, &["touch", name]);
    let outcome = serve(&world, &[&untrusted[..], &["deny"]].concat(), &[touch("a")]);
    assert_eq!(output(&outcome, 0), "User denied approval for this command");
    assert_eq!(outcome.code, Some(0));
    let outcome = serve(&world, &[&untrusted[..], &["approve"]].concat(), &[touch("b")]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    fs::write(world.path("answers"), "approve\ndeny not this one\n").unwrap();
    let answers = world.path("answers");
    let options = [&untrusted[..], &[answers.to_str().unwrap()]].concat();
    let outcome = serve(&world, &options, &[touch("c"), touch("d"), touch("e")]);
    assert!(output(&outcome, 1).ends_with("and says: not this one"), "{}", output(&outcome, 1));
    assert_eq!(outcome.code, Some(77), "the third question had no answer");
    let made = ["a", "b", "c", "d", "e"].map(|name| world.path(name).exists());
    assert_eq!(made, [false, true, true, false, false]);
}

/// spec CALL.6: With `--decide stdin` a question is a line of output, and a line of input answers it.
/// spec CALL.7: What the sandbox blocked can be granted alone: the second attempt has that and nothing
/// more.
#[test]
fn a_program_grants_only_what_was_blocked() {
    let world = World::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let (granted, other) = (outside.path().join("granted"), outside.path().join("other"));
    fs::write(&granted, "").unwrap();
    fs::write(&other, "").unwrap();
    // The second file is tried only once the first can be written.
    let script = format!("echo x > {} && echo x > {}", granted.display(), other.display());
    let mut command = world.program(["call", "--decide", "stdin", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut say = running.child.stdin.take().unwrap();
    let asked = call("shell_command", "c", &json!({"command": script}));
    writeln!(say, "{asked}").unwrap();
    let question: Value = serde_json::from_str(&running.line()).unwrap();
    assert_eq!(question["type"], "ExecApprovalRequest");
    assert_eq!(question["grant_offer"]["writable"], json!([granted]));
    let id = &question["approval_id"];
    let answer = json!({
        "type": "approval_response",
        "approval_id": id,
        "decision": "approved_with_grant",
        "scope": "call",
    });
    writeln!(say, "{answer}").unwrap();
    let result: Value = serde_json::from_str(&running.line()).unwrap();
    drop(say);
    assert_eq!(running.wait().code, Some(0));
    assert_eq!(result["success"], false, "{result}");
    // Shells differ in how they fail.
    assert_ne!(result["exit_code"], 0, "{result}");
    assert_eq!(result["attempt"], 2, "{result}");
    assert_eq!(result["granted"], json!({"writable": [granted]}), "{result}");
    assert_eq!(fs::read_to_string(&granted).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(&other).unwrap(), "");
}

/// spec CALL.11: With `--decide stdin` calls wait for their turn, and when the input ends the rest is
/// still made, with nobody to ask.
#[test]
fn calls_that_came_early_are_made_and_the_end_of_input_ends_questions() {
    let world = World::new();
    let lines = [
        shell("a", &["sleep", "0.1"]),
        shell("b", &["echo", "second"]),
        shell("c", &["touch", "/var/tmp/never-made-by-a-test"]),
    ];
    let options = ["--decide", "stdin"];
    let outcome = serve(&world, &options, &lines);
    let ids: Vec<Value> = outcome.events().iter().map(|event| event["call_id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "c"], "{}", outcome.stdout());
    assert_eq!(output(&outcome, 1), "second\n");
    assert_eq!(outcome.code, Some(77), "{}", outcome.stderr);
}

/// spec CALL.12: A result of a command has its exit code, and says which attempt it is from and what a
/// person granted to that.
#[test]
fn a_result_says_how_the_command_ran() {
    let world = World::new();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let made = outside.path().join("made");
    let lines = [
        shell("plain", &["sh", "-c", "exit 3"]),
        shell("out", &["touch", made.to_str().unwrap()]),
        call("list_dir", "no command", &json!({})),
    ];
    let outcome = serve(&world, &["--decide", "approve"], &lines);
    let events = outcome.events();
    assert_eq!((&events[0]["exit_code"], &events[0]["attempt"]), (&json!(3), &json!(1)));
    assert_eq!(events[0].get("granted"), None);
    assert_eq!((&events[1]["exit_code"], &events[1]["attempt"]), (&json!(0), &json!(2)));
    assert_eq!(events[1]["granted"], json!({"without_sandbox": true}));
    assert_eq!(events[2].get("exit_code"), None);
    assert!(made.exists());
}

/// spec CALL.13: A call that cannot be read is answered under its `call_id` if it has one, in its place
/// among the others, which are made all the same.
#[test]
fn a_malformed_call_keeps_its_id_and_leaves_its_siblings_alone() {
    let world = World::new();
    let calls = json!([
        {"type": "function_call", "name": "shell", "call_id": "bad"},
        shell("good", &["echo", "on"]),
        {"type": "message"},
        shell("last", &["echo", "still"]),
        {"type": "function_call", "call_id": "end", "arguments": 7},
    ]);
    let outcome = serve(&world, &[], &[calls]);
    let events = outcome.events();
    let ids: Vec<Value> = events.iter().map(|event| event["call_id"].clone()).collect();
    assert_eq!(ids, [json!("bad"), json!("good"), Value::Null, json!("last"), json!("end")]);
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds[0], "function_call_output");
    assert_eq!(kinds[2], "error");
    assert_eq!(
        (&events[0]["error"], &events[0]["success"]),
        (&json!("malformed_call"), &json!(false))
    );
    assert!(output(&outcome, 0).contains("missing field `arguments`"), "{}", output(&outcome, 0));
    assert_eq!((output(&outcome, 1), output(&outcome, 3)), ("on\n".into(), "still\n".into()));
    assert_eq!(outcome.code, Some(1));
}

/// spec CALL.14: When the sandbox blocked something and the command is not tried again, its result says
/// why: what a person said, that nobody answered in time, or that nobody could be asked.
#[test]
fn the_model_is_told_why_there_was_no_second_attempt() {
    let world = World::new();
    let touch = [shell("t", &["touch", "/var/tmp/never-made-by-a-test"])];
    fs::write(world.path("answers"), "deny use the workspace\n").unwrap();
    let answers = world.path("answers");
    let answers = answers.to_str().unwrap();
    let asked = "Whether it may run again with what it lacked: ";
    for (options, why) in [
        (&["--decide", "deny"][..], "the user said no.\n"),
        (&["--decide", answers], "the user said no, and says: use the workspace\n"),
        (&[], "nobody could be asked.\n"),
    ] {
        let outcome = serve(&world, options, &touch);
        let said = output(&outcome, 0);
        assert!(said.starts_with("Exit code: 1\n"), "{said}");
        assert!(said.ends_with(&format!("{asked}{why}")), "{said}");
        assert_eq!(outcome.events()[0]["attempt"], 1);
    }
    let never = serve(&world, &["--ask-for-approval", "never"], &touch);
    assert!(!output(&never, 0).contains(asked), "{}", output(&never, 0));
    assert!(!std::path::Path::new("/var/tmp/never-made-by-a-test").exists());
}

/// spec CALL.15: With `--approval-timeout` a question that nobody has answered in that time counts as
/// answered with no, and the model is told that nobody answered.
#[test]
fn a_question_does_not_wait_for_ever() {
    let world = World::new();
    let options = ["call", "--ask-for-approval", "untrusted", "--decide", "stdin"];
    let mut command = world.program([&options[..], &["--approval-timeout", "1", "-"]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut say = running.child.stdin.take().unwrap();
    writeln!(say, "{}", shell("s", &["touch", "made"])).unwrap();
    let question: Value = serde_json::from_str(&running.line()).unwrap();
    assert_eq!(question["type"], "ExecApprovalRequest");
    let result: Value = serde_json::from_str(&running.line()).unwrap();
    assert_eq!(result["error"], "approval_timeout");
    drop(say);
    assert_eq!(running.wait().code, Some(77));
    assert!(!world.path("made").exists());
}

#[test]
fn a_question_at_the_terminal_does_not_wait_for_ever_either() {
    let world = World::new();
    if Running::start(world.other("python3").arg("--version")).wait().code != Some(0) {
        return skipped("there is no python3");
    }
    fs::write(world.path("calls"), shell("s", &["touch", "made"]).to_string()).unwrap();
    let script = world.path("at_a_terminal.py");
    fs::write(&script, include_str!("support/at_a_terminal.py")).unwrap();
    let options = ["call", "--ask-for-approval", "untrusted", "--approval-timeout", "1", "calls"];
    let mut command = world.other("python3");
    command.arg(script).arg(world.program([""; 0]).get_program()).args(options);
    let outcome = Running::start(&mut command).wait();
    let shown = outcome.stdout();
    assert!(shown.contains("touch made"), "the question was shown: {shown}");
    assert!(shown.contains("\"error\":\"approval_timeout\""), "{shown}");
    assert!(shown.contains("exit code 77"), "{shown}");
    assert!(!world.path("made").exists());
}

/// spec CALL.16: A call that was refused before it was understood, one of a tool that there is not among
/// them, is in the audit log.
#[test]
fn what_was_not_understood_is_recorded() {
    let world = World::new();
    let lines = [
        call("teleport", "t", &json!({"to": "the moon"})),
        call("shell", "s", &json!({"cmd": "ls"})),
        shell("n", &["no-such-program-anywhere"]),
    ];
    serve(&world, &[], &lines);
    let shown = world.sandgate(&["audit", "show", "--json"]);
    let calls: Vec<Value> =
        shown.events().into_iter().filter(|row| row["kind"] == "call").collect();
    let tools: Vec<&Value> = calls.iter().map(|call| &call["asked"]["tool"]).collect();
    assert_eq!(tools, ["teleport", "shell", "shell"]);
    assert!(calls[0]["end"]["error"].as_str().unwrap().contains("no tool called"), "{calls:?}");
    assert!(calls[0]["asked"]["argv"][0].as_str().unwrap().contains("the moon"), "{calls:?}");
    let stats = world.sandgate(&["audit", "stats", "--json"]).events().remove(0);
    assert_eq!(stats["programs"], json!([]), "nothing of it is a program");
    assert_eq!(world.sandgate(&["audit", "verify"]).code, Some(0));
}

/// spec CALL.17: The beginning of a command says what confines it and what that enforces.
#[test]
fn the_beginning_says_what_is_enforced() {
    let world = World::new();
    let outcome = serve(&world, &["--events"], &[shell("s", &["true"])]);
    let begin: Value = serde_json::from_str(outcome.stderr.lines().next().unwrap()).unwrap();
    assert_eq!(begin["type"], "ExecCommandBegin");
    let status = world.sandgate(&["sandbox", "--status", "--json"]);
    let status: Value = serde_json::from_str(status.stdout().lines().last().unwrap()).unwrap();
    assert_eq!(begin["enforcement"]["landlock_abi"], status["landlock_abi"], "{begin} {status}");
    assert_eq!(begin["sandbox"], begin["enforcement"]["sandbox"]);
    let free =
        serve(&world, &["--events", "--sandbox", "danger-full-access"], &[shell("s", &["true"])]);
    let begin: Value = serde_json::from_str(free.stderr.lines().next().unwrap()).unwrap();
    assert_eq!((&begin["sandbox"], begin.get("enforcement")), (&json!("none"), None));
}

/// spec CALL.8: All calls of one run share a session: what was approved for the session is not asked
/// about again.
#[test]
fn an_approval_for_the_session_holds_for_the_next_call() {
    let world = World::new();
    fs::write(world.path("answers"), "session\n").unwrap();
    let answers = world.path("answers");
    let options = ["--ask-for-approval", "untrusted", "--decide", answers.to_str().unwrap()];
    let append = |id: &str| shell(id, &["tee", "-a", "log"]);
    let outcome = serve(&world, &options, &[append("a"), append("b"), shell("c", &["tee", "x"])]);
    let failed: Vec<bool> =
        outcome.events().iter().map(|event| event.get("error").is_some()).collect();
    assert_eq!(failed, [false, false, true], "{:?}", outcome.events());
}

/// spec CALL.9: What was asked, decided and run is in the audit log, and the log verifies.
#[test]
fn what_was_called_is_recorded() {
    let world = World::new();
    let secret = call("read_file", "r", &json!({"path": "/etc/shadow"}));
    serve(&world, &[], &[shell("s", &["echo", "recorded"]), secret]);
    let shown = world.sandgate(&["audit", "show"]);
    assert!(shown.stdout().contains("echo recorded"), "{}", shown.stdout());
    assert!(shown.stdout().contains("/etc/shadow"), "{}", shown.stdout());
    assert_eq!(world.sandgate(&["audit", "verify"]).code, Some(0));
}

/// spec CALL.10: `--tools` lists each tool with the schema of its parameters.
#[test]
fn the_tools_are_listed_with_their_schemas() {
    let world = World::new();
    let outcome = world.sandgate(&["call", "--tools"]);
    let tools: Value = serde_json::from_str(outcome.stdout()).unwrap();
    insta::assert_json_snapshot!(tools);
}
