//! The event stream that `sandgate run --json` prints.

#![cfg(unix)]

mod support;

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use support::{Outcome, Running, World, before_the_limit, run_words};

fn redacted(events: &[Value]) -> insta::Settings {
    let first = events[0]["call_id"].as_str().unwrap();
    assert!(first.starts_with("call_") && events.iter().all(|event| event["call_id"] == first));
    let mut settings = insta::Settings::clone_current();
    settings.add_redaction("[].call_id", "[call id]");
    settings.add_redaction("[].cwd", "[directory]");
    settings.add_redaction("[].duration_ms", "[time]");
    // Which one it is depends on the system.
    assert!(events.iter().all(|event| event["sandbox"] != "none"));
    settings.add_redaction("[].sandbox", "[sandbox]");
    settings.add_redaction("[].enforcement", "[enforcement]");
    settings
}

/// spec RUN.60: `--json` prints one event a line to standard output, numbered, and nothing else: the
/// beginning, the output, the end, and what was asked and answered.
#[test]
fn the_events_of_a_command_are_a_line_each() {
    let outcome = World::new().run(&["--json", "--", "printf", "%s\\n", "grüße", "done"]);
    assert_eq!(outcome.code, Some(0));
    let events = outcome.events();
    redacted(&events).bind(|| insta::assert_json_snapshot!("printf", events));
}

#[test]
fn output_that_is_no_text_is_in_base64() {
    let outcome = World::new().run(&["--json", "--", "printf", "\\200\\001\\377"]);
    let events = outcome.events();
    redacted(&events).bind(|| insta::assert_json_snapshot!("no_text", events));
}

/// spec RUN.61: The end event has the exit code, both streams apart and together, and how the command
/// was ended; `sandgate` ends with the same exit code.
#[test]
fn the_end_says_how_it_ended() {
    let world = World::new();
    let outcome = world.run(&["--json", "--shell", "sh", "--", "echo o; echo e >&2; exit 3"]);
    let end = end_of(&outcome);
    assert_eq!((outcome.code, &end["exit_code"]), (Some(3), &Value::from(3)));
    assert_eq!((&end["stdout"]["text"], &end["stderr"]["text"]), (&"o\n".into(), &"e\n".into()));
    assert_eq!(end["aggregated_output"]["total_bytes"], 4);
    assert!(end["formatted_output"].as_str().unwrap().contains('3'), "{end}");

    before_the_limit("the command has printed something", |limit| {
        let options = ["run", "--json", "--timeout-ms", limit.ms, "--shell", "sh", "--no-login"];
        let script = ["--", "echo partial; exec sleep 1000"];
        let outcome = world.sandgate(&[&options[..], &script].concat());
        let end = end_of(&outcome);
        assert_eq!((outcome.code, &end["exit_code"]), (Some(124), &Value::from(124)));
        assert_eq!(end["timed_out"], true);
        (end["stdout"]["text"] == "partial\n").then_some(())
    });
}

/// spec RUN.67: Every beginning has an end: a program that the system refuses to execute ends with the
/// reason as its standard error, and with exit code 126 or 127.
#[test]
fn what_begins_and_cannot_start_ends() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let program = world.path("broken");
    std::fs::write(&program, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = world.run(&["--json", "--", "./broken", "argument"]);
    let end = end_of(&outcome);
    assert_eq!(outcome.events().len(), 2);
    assert_eq!((outcome.code, &end["exit_code"]), (Some(126), &Value::from(126)));
    assert!(end["stderr"]["text"].as_str().unwrap().contains("interpreter"), "{end}");
}

fn end_of(outcome: &Outcome) -> Value {
    let end = outcome.events().pop().unwrap();
    assert_eq!(end["type"], "ExecCommandEnd");
    end
}

/// spec RUN.62: Events appear while the command runs.
#[test]
fn events_appear_while_the_command_runs() {
    let world = World::new();
    let go = world.fifo("go");
    let script = "printf half; read word < go";
    let mut running = world.start(&["--json", "--shell", "sh", "--", script]);
    assert!(running.line().contains("ExecCommandBegin"));
    assert!(running.line().contains(r#""chunk":"half""#));
    support::let_go(&go);
    assert_eq!(running.wait().code, Some(0));
}

/// spec RUN.63: An error before the beginning prints nothing to standard output.
#[test]
fn an_error_is_no_event() {
    let world = World::new();
    for (arguments, code) in [
        (&["--json", "--", "no-such-program", "x"][..], 127),
        (&["--json", "--", "/etc/passwd", "x"], 126),
        (&["--json", "--cd", "missing", "--", "true"], 125),
        (&["--json", "--", ""], 2),
    ] {
        let outcome = world.run(arguments);
        assert_eq!((outcome.stdout(), outcome.code), ("", Some(code)), "{arguments:?}");
        assert!(outcome.stderr.starts_with("sandgate: "), "{}", outcome.stderr);
    }
}

/// spec RUN.41: The output events of a stream, put together, are the stream to the byte; each carries
/// at most 8 KiB.
///
/// spec RUN.42: No output event begins or ends inside a character of UTF-8 text, however the text
/// arrived.
#[test]
fn large_text_comes_in_small_whole_pieces() {
    let world = World::new();
    let text = "aé漢🦀\n".repeat(20_000);
    std::fs::write(world.path("text"), &text).unwrap();
    let outcome = world.run(&["--json", "--", "cat", "text"]);
    let events = outcome.events();
    let deltas: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "ExecCommandOutputDelta").collect();
    assert!(deltas.iter().all(|delta| delta["encoding"] == "utf-8"));
    let chunks: Vec<&str> = deltas.iter().map(|delta| delta["chunk"].as_str().unwrap()).collect();
    assert!(chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= 8 * 1024));
    assert!(chunks.concat() == text);
}

/// spec RUN.64: After 10,000 output events there is one notice and no further output event; the end
/// still counts every byte.
#[test]
fn output_events_end_after_ten_thousand() {
    const BYTES: u64 = 90_000_000;
    let world = World::new();
    let script = format!("tr '\\0' x < /dev/zero | head -c {BYTES}");
    let mut running = world.start(&["--json", "--shell", "sh", "--no-login", "--", &script]);
    let stdout = BufReader::new(running.child.stdout.take().unwrap());
    let (mut deltas, mut others) = (0, Vec::new());
    for line in stdout.lines() {
        match line.unwrap() {
            delta if delta.contains(r#","type":"ExecCommandOutputDelta","#) => deltas += 1,
            other => others.push((deltas, serde_json::from_str::<Value>(&other).unwrap())),
        }
    }
    assert_eq!(running.wait().code, Some(0));
    let [(0, begin), (10_000, notice), (10_000, end)] = others.as_slice() else {
        panic!("{deltas} output events, and {others:?}")
    };
    assert_eq!(begin["type"], "ExecCommandBegin");
    assert_eq!(notice["type"], "ExecCommandOutputOmitted");
    assert_eq!(notice["after_deltas"], 10_000);
    assert_eq!(end["type"], "ExecCommandEnd");
    assert_eq!(end["stdout"]["total_bytes"], BYTES);
}

#[test]
fn a_reader_of_events_that_has_seen_enough_ends_the_command() {
    let world = World::new();
    let mut running = Running::start(&mut world.program(run_words(&["--json", "--", "yes", "x"])));
    running.line();
    drop(running.child.stdout.take());
    assert_eq!(running.wait().code, Some(141));
}

/// spec RUN.60: `--json` prints one event a line to standard output, numbered, and nothing else: the
/// beginning, the output, the end, and what was asked and answered.
#[cfg(target_os = "linux")]
#[test]
fn a_question_and_its_answer_are_events() {
    let world = World::new();
    std::fs::create_dir(world.path(".git")).unwrap();
    std::fs::write(world.path("answers"), "session\ngrant\n").unwrap();
    let answers = world.path("answers");
    let options = ["--json", "--ask-for-approval", "untrusted", "--decide"];
    // Without a word, because nobody knows in how many pieces it would come.
    let words = ["--", "sh", "-c", "cp answers .git/copy 2> /dev/null"];
    let outcome = world.run(&[&options[..], &[answers.to_str().unwrap()], &words].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(world.path(".git/copy").exists());
    let home = world.home().canonicalize().unwrap().display().to_string();
    let events: Vec<Value> = outcome
        .events()
        .iter()
        .map(|event| serde_json::from_str(&event.to_string().replace(&home, "[home]")).unwrap())
        .collect();
    let mut settings = redacted(&events);
    // It has the time in it.
    settings.add_redaction("[].formatted_output", "[text]");
    settings.bind(|| insta::assert_json_snapshot!("asked", events));
}

/// spec RUN.87: With `--json` a command that is refused is an event with the reason.
#[test]
fn a_refusal_is_an_event() {
    let world = World::new();
    let options = ["--json", "--ask-for-approval", "untrusted", "--decide", "deny"];
    let outcome = world.run(&[&options[..], &["--", "touch", "made"]].concat());
    let events = outcome.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["ExecApprovalRequest", "ApprovalResponse", "Error"]);
    assert_eq!(events[2]["message"], "User denied approval for this command");
    assert_eq!(outcome.code, Some(78));
    assert!(!world.path("made").exists());
}
