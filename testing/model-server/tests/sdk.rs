//! The official Python SDKs against the server: what they read without complaint is what the services
//! say.
//!
//! `scripts/model-sdks` installs them. Where they are not, these tests say so and prove nothing.

#![expect(clippy::disallowed_methods, reason = "runs the SDKs, which are Python")]

use sandgate_model_server::{
    Delivery, Fault, LineEnd, ModelServer, Script, Split, Stop, Turn, Usage, Wire,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const TEXT: &str = "Grüße, 世界 🌍! \"It's\\fine\"\n\tnow";
const PATCH: &str = "*** Begin Patch\n*** Add File: ä.txt\n+🦀\n*** End Patch\n";

/// The Python that has the SDKs, or nothing and the reason said.
fn python() -> Option<PathBuf> {
    let venv = match std::env::var_os("SANDGATE_TEST_VENV") {
        Some(venv) => PathBuf::from(venv),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent()?.join("model-sdks"),
    };
    let python = venv.join("bin/python");
    if python.exists() {
        return Some(python);
    }
    println!("SKIPPED: the Python SDKs are not in {}; run scripts/model-sdks", venv.display());
    None
}

/// A server, and how an SDK is to ask it.
struct Job {
    wire: Wire,
    mode: &'static str,
    server: ModelServer,
}

impl Job {
    fn new(wire: Wire, mode: &'static str, script: Script) -> Self {
        Self { wire, mode, server: ModelServer::start(script) }
    }
}

/// What the SDKs see of each server. One process does all, because it takes long to start.
fn seen(python: &Path, jobs: &[Job]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk.py");
    let mut command = Command::new(python);
    command.arg(script).env_clear().env("PYTHONDONTWRITEBYTECODE", "1");
    for job in jobs {
        command.args([job.wire.name(), job.mode, &job.server.url()]);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    for job in jobs {
        assert_eq!(job.server.violations(), [], "{} {}: {errors}", job.wire, job.mode);
    }
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A task with everything in it: thoughts of both kinds, text beyond ASCII, calls of both kinds.
fn task(delivery: Delivery) -> Script {
    let usage = Usage {
        input_tokens: 120,
        cached_input_tokens: 90,
        output_tokens: 44,
        reasoning_output_tokens: 12,
    };
    Script::new()
        .turn(
            Turn::new()
                .reasoning("First I läok, then I leap.")
                .message(TEXT)
                .reasoning("Now the calls.")
                .call("shell_command", json!({"command": "ls -la 'ä b' && echo \"🌍\""}))
                .call("shell_command", json!({"command": "pwd"}))
                .call_with_text("apply_patch", PATCH)
                .interleaved()
                .usage(usage)
                .delivery(delivery),
        )
        .turn(
            Turn::new()
                .expect("result of apply_patch")
                .hidden_reasoning("what nobody may read")
                .call("shell_command", json!({"command": "true"}))
                .delivery(delivery),
        )
        .turn(
            Turn::new()
                .expect("result of shell_command")
                .message("That is all I can")
                .stop(Stop::Length)
                .delivery(delivery),
        )
}

/// What must be seen of [`task`].
fn expected(wire: Wire) -> Value {
    let reasoning_tokens =
        |count: u64| if wire == Wire::Messages { Value::Null } else { json!(count) };
    let sealed = |count: u64| if wire == Wire::Chat { 0 } else { count };
    let length = match wire {
        Wire::Responses => "max_output_tokens",
        Wire::Chat => "length",
        Wire::Messages => "max_tokens",
    };
    json!([
        {
            "text": TEXT,
            "reasoning": "First I läok, then I leap.Now the calls.",
            "sealed": sealed(2),
            "calls": [
                ["shell_command", {"command": "ls -la 'ä b' && echo \"🌍\""}],
                ["shell_command", {"command": "pwd"}],
                ["apply_patch", {"input": PATCH}],
            ],
            "stop": "done",
            "usage": [120, 90, 44, reasoning_tokens(12)],
        },
        {
            "text": "",
            "reasoning": "",
            "sealed": sealed(1),
            "calls": [["shell_command", {"command": "true"}]],
            "stop": "done",
            "usage": [100, 0, 10, reasoning_tokens(0)],
        },
        {
            "text": "That is all I can",
            "reasoning": "",
            "sealed": 0,
            "calls": [],
            "stop": length,
            "usage": [100, 0, 10, reasoning_tokens(0)],
        },
    ])
}

/// Has the task done in every mode and with every delivery, each by a server of its own.
fn check_task(wires: &[Wire], modes: &[&'static str], deliveries: &[Delivery]) {
    let Some(python) = python() else { return };
    let mut jobs = Vec::new();
    for wire in wires {
        for delivery in deliveries {
            jobs.extend(modes.iter().map(|mode| Job::new(*wire, mode, task(*delivery))));
        }
    }
    for (job, seen) in jobs.iter().zip(seen(&python, &jobs)) {
        assert_eq!(seen, expected(job.wire), "{} {}", job.wire, job.mode);
        assert_eq!(job.server.turns_left(), 0);
        assert_eq!(job.server.requests().len(), 3);
    }
}

/// spec SCRIPTED.1: The official Python SDKs of OpenAI and Anthropic read its streams and its answers
/// in one piece without complaint, and see what the script says: text, thoughts, calls, what was used
/// and why the model stopped.
///
/// spec SCRIPTED.2: What the SDKs give back after a call, with the thoughts before it, is refused in
/// no wire format.
#[test]
fn the_sdks_see_what_the_script_says() {
    check_task(&Wire::ALL, &["whole", "events", "stream"], &[Delivery::default()]);
}

/// spec SCRIPTED.3: The SDKs see the same however the bytes are cut, whatever ends a line, and with
/// comments, pings and data of several lines in between.
#[test]
fn the_sdks_see_the_same_however_the_bytes_come() {
    let whole = Delivery { split: Split::Whole, ..Delivery::default() };
    let awkward = Delivery {
        split: Split::Awkward,
        line_end: LineEnd::CrLf,
        keep_alives: true,
        ..Delivery::default()
    };
    let spread = Delivery {
        split: Split::Bytes(7),
        spread: true,
        tight: true,
        keep_alives: true,
        ..Delivery::default()
    };
    check_task(&Wire::ALL, &["events"], &[whole, awkward, spread]);
}

#[test]
fn the_sdks_see_the_same_byte_by_byte() {
    let Some(python) = python() else { return };
    let single = Delivery { split: Split::Bytes(1), line_end: LineEnd::Cr, ..Delivery::default() };
    let script = || Script::new().turn(Turn::new().message(TEXT).delivery(single));
    let jobs = Wire::ALL.map(|wire| Job::new(wire, "events", script()));
    for seen in seen(&python, &jobs) {
        assert_eq!(seen[0]["text"], TEXT);
    }
}

/// A server on which one request goes wrong.
fn failing(wire: Wire, fault: Fault) -> Job {
    Job::new(wire, "fail", Script::new().turn(Turn::new().message("säys it").fault(fault)))
}

fn status(status: u16) -> Fault {
    let (retry_after, message) = (Some("0".to_owned()), Some("slow down".to_owned()));
    Fault::Status { status, retry_after, code: None, message }
}

/// spec SCRIPTED.4: The SDKs know its refusals for what they are, and come again after one that is
/// worth it.
#[test]
fn the_sdks_know_its_refusals() {
    let Some(python) = python() else { return };
    let retried = || {
        Script::new()
            .turn(Turn::new().fault(status(429)))
            .turn(Turn::new().fault(status(503)))
            .turn(Turn::new().fault(Fault::Disconnect))
            .turn(Turn::new().message("at last"))
    };
    let jobs: Vec<Job> = Wire::ALL
        .into_iter()
        .flat_map(|wire| {
            [
                failing(wire, status(429)),
                failing(wire, status(500)),
                failing(wire, Fault::ContextOverflow),
                Job::new(wire, "fail", Script::new().key("another key")),
                Job::new(wire, "retry", retried()),
            ]
        })
        .collect();
    for (jobs, seen) in jobs.chunks(5).zip(seen(&python, &jobs).chunks(5)) {
        let wire = jobs[0].wire;
        let errors: Vec<&Value> = seen[..4].iter().map(|seen| &seen["error"]).collect();
        let expected =
            ["RateLimitError", "InternalServerError", "BadRequestError", "AuthenticationError"];
        assert_eq!(errors, expected, "{wire}");
        let limited = &seen[0];
        assert_eq!(limited["retry_after"], "0");
        assert!(limited["message"].as_str().unwrap().contains("slow down"), "{limited}");
        let code = if wire == Wire::Messages { "rate_limit_error" } else { "rate_limit_exceeded" };
        assert_eq!(limited["code"], code);
        assert_eq!(seen[4][0]["text"], "at last");
        assert_eq!(jobs[4].server.requests().len(), 4);
    }
}

/// spec SCRIPTED.5: The SDKs know an error in the middle of a stream, a response that failed and a
/// stream that was cut for what they are.
#[test]
fn the_sdks_know_what_breaks_a_stream() {
    let Some(python) = python() else { return };
    let (code, message) = ("server_error".to_owned(), "too many of you".to_owned());
    let error = Fault::Error { after: 3, code: code.clone(), message: message.clone() };
    let failed = Fault::Failed { after: 2, code, message };
    let faults = [error, failed, Fault::Cut { after: 3 }, Fault::CutInCharacter];
    let jobs: Vec<Job> = Wire::ALL
        .into_iter()
        .flat_map(|wire| faults.iter().map(move |fault| failing(wire, fault.clone())))
        .collect();
    let seen = seen(&python, &jobs);
    for (wire, seen) in Wire::ALL.into_iter().zip(seen.chunks(faults.len())) {
        for told in &seen[..2] {
            assert!(told["error"].is_string(), "{wire}: {told}");
            let message = told["message"].as_str().unwrap();
            assert!(message.contains("too many of you"), "{wire}: {told}");
        }
        for cut in &seen[2..] {
            let error = cut["error"].as_str().unwrap_or("nothing");
            assert!(error.contains("Connection") || error.contains("Protocol"), "{wire}: {cut}");
        }
    }
}
