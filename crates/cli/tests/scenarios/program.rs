//! Plays a case through `sandgate call --decide stdin`.

use crate::scenario::{Case, Machine};
use crate::stage::{Reaction, calls, reaction, rule};
use crate::story::{Places, Seen, decisions, lines};
use crate::support::{Running, World};
use sandgate_protocol::{ReviewDecision, SessionEvent, ToolPayload};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{ChildStdin, Stdio};

/// Whether the program has words for it.
pub(crate) fn can_play(case: &Case<'_>) -> bool {
    let waits = case.scenario.answers.iter().any(|answer| answer == "wait");
    case.machine == Machine::There && case.sandbox != "external-sandbox" && !waits
}

/// Plays it.
pub(crate) fn play(case: &Case<'_>) -> Seen {
    let places = Places::new(&case.scenario.given);
    if let Some(rule) = rule(case, &places) {
        std::fs::create_dir(places.path("codex/rules")).unwrap();
        std::fs::write(places.path("codex/rules/scenario.toml"), rule).unwrap();
    }
    let before = places.files();
    let mut running = start(case, &places);
    let mut input = running.child.stdin.take();
    let mut answers = case.scenario.answers.iter().map(|word| reaction(word));
    let mut result = Value::Null;
    for call in calls(case, &places) {
        let ToolPayload::Function { arguments } = &call.payload else { unreachable!() };
        let line = json!({
            "type": "function_call",
            "name": call.name,
            "call_id": call.call_id,
            "arguments": arguments,
        });
        say(input.as_mut().expect("there is still somebody"), &line);
        if case.scenario.answers.is_empty() && case.scenario.then.is_empty() {
            // Whoever says no more answers nothing either.
            input = None;
        }
        loop {
            let line: Value = serde_json::from_str(&running.line()).unwrap();
            if line["type"] == "function_call_output" {
                result = line;
                break;
            }
            let mut say_of = |decision: &ReviewDecision| {
                let mut answer = serde_json::to_value(decision).unwrap();
                answer["type"] = "approval_response".into();
                answer["approval_id"] = line["approval_id"].clone();
                say(input.as_mut().expect("there is still somebody"), &answer);
            };
            match answers.next() {
                Some(Reaction::Answer(decision)) => say_of(&decision),
                Some(Reaction::Corrected { refused, answer }) => {
                    say_of(&refused);
                    let told: Value = serde_json::from_str(&running.line()).unwrap();
                    assert_eq!(told["type"], "error", "{told}");
                    say_of(&answer);
                }
                _ => input = None,
            }
        }
    }
    drop(input);
    let outcome = running.wait();
    let events = outcome.stderr.lines().filter_map(|line| serde_json::from_str(line).ok());
    let story = events.flat_map(|event: SessionEvent| lines(&event.event, &places)).collect();
    let (audit, class) = decisions(&places.path("codex"));
    let result = places.take_out(result["output"].as_str().unwrap());
    Seen { story, result, audit, made: places.made_since(&before), class }
}

fn say(input: &mut ChildStdin, line: &Value) {
    writeln!(input, "{line}").unwrap();
}

fn start(case: &Case<'_>, places: &Places) -> Running {
    let (mode, network) = match case.sandbox.strip_suffix("+network") {
        Some(mode) => (mode, true),
        None => (case.sandbox, false),
    };
    let world = World::new();
    let mut command = world.program(["call", "--decide", "stdin", "--events"]);
    command.args(["--ask-for-approval", case.policy, "--sandbox", mode]);
    if network {
        command.arg("--network");
    }
    command.arg("-").current_dir(places.path("ws"));
    command.env("HOME", places.path("home")).env("CODEX_HOME", places.path("codex"));
    command.env_remove("TMPDIR").stdin(Stdio::piped());
    Running::start(&mut command)
}
