//! What a collector and a log hear of real calls, and what they do not.

#![cfg(target_os = "linux")]

mod support;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use support::{Outcome, Running, World, skipped};

/// One request to a collector.
struct Sent {
    path: String,
    headers: String,
    body: Vec<u8>,
}

/// A collector that takes everything.
struct Collector {
    endpoint: String,
    sent: Receiver<Sent>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (tell, sent) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                // Told before it is answered, so that whoever has an answer was heard.
                if tell.send(take(&stream)).is_err() {
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        });
        Self { endpoint, sent }
    }

    /// All that came. The program has ended, so no more will.
    fn all(&self) -> Vec<Sent> {
        self.sent.try_iter().collect()
    }
}

/// Reads a request.
fn take(stream: &TcpStream) -> Sent {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Sent { path, headers, body }
}

fn shell(id: &str, command: &[&str]) -> Value {
    let arguments = json!({ "command": command }).to_string();
    json!({"type": "function_call", "name": "shell", "call_id": id, "arguments": arguments})
}

/// `sandgate call` with these lines, not started yet.
fn calling(world: &World, options: &[&str], lines: &[Value]) -> Command {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(world.path("calls.jsonl"), text.join("\n")).unwrap();
    let file = world.path("calls.jsonl");
    let mut command = world.program([&["call"], options, &[file.to_str().unwrap()]].concat());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command.env_remove("SANDGATE_LOG");
    command
}

fn ended(command: &mut Command) -> Outcome {
    Running::start(command).wait()
}

fn labels(attributes: &[KeyValue]) -> String {
    let text = |one: &KeyValue| {
        let value = match one.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Attribute::StringValue(text)) => text.clone(),
            Some(Attribute::BoolValue(so)) => so.to_string(),
            other => panic!("{other:?}"),
        };
        (one.key.clone(), value)
    };
    let sorted: BTreeMap<String, String> = attributes.iter().map(text).collect();
    sorted.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// The figures of a request: how often each was counted, by its name and labels.
fn figures(sent: &[Sent]) -> BTreeMap<String, u64> {
    let mut figures = BTreeMap::new();
    for sent in sent.iter().filter(|sent| sent.path == "/v1/metrics") {
        let request = ExportMetricsServiceRequest::decode(sent.body.as_slice()).unwrap();
        let scopes = request.resource_metrics.iter().flat_map(|one| &one.scope_metrics);
        for metric in scopes.flat_map(|scope| &scope.metrics) {
            let mut put = |attributes: &[KeyValue], count: u64| {
                figures.insert(format!("{} {}", metric.name, labels(attributes)), count);
            };
            match metric.data.as_ref().unwrap() {
                Data::Sum(sum) => {
                    for point in &sum.data_points {
                        let Some(Number::AsInt(count)) = point.value else { panic!("{point:?}") };
                        put(&point.attributes, count.unsigned_abs());
                    }
                }
                Data::Histogram(times) => {
                    times.data_points.iter().for_each(|point| put(&point.attributes, point.count));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    figures
}

/// The names of the spans that were sent.
fn spans(sent: &[Sent]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for sent in sent.iter().filter(|sent| sent.path == "/v1/traces") {
        let request = ExportTraceServiceRequest::decode(sent.body.as_slice()).unwrap();
        let scopes = request.resource_spans.iter().flat_map(|one| &one.scope_spans);
        for span in scopes.flat_map(|scope| &scope.spans) {
            assert!(span.events.is_empty(), "{span:?}");
            names.insert(span.name.clone());
        }
    }
    names
}

/// spec TELEMETRY.1: With `OTEL_EXPORTER_OTLP_ENDPOINT` a collector is sent counts and durations of calls,
/// commands, questions, denials and retries, and a span for each session, turn, call, question and attempt.
/// spec TELEMETRY.2: Neither words of a command, nor its output, its environment or the content of a file
/// are sent.
#[test]
fn a_collector_hears_of_calls_and_nothing_that_is_in_them() {
    let world = World::new();
    let collector = Collector::start();
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("made");
    fs::write(world.path("secret.txt"), "content-of-a-file").unwrap();
    let read = json!({"path": "secret.txt"}).to_string();
    let lines = [
        shell("one", &["echo", "word-of-a-command"]),
        shell("two", &["sh", "-c", "exit 3"]),
        shell("three", &["touch", file.to_str().unwrap()]),
        json!({"type": "function_call", "name": "read_file", "call_id": "r", "arguments": read}),
        json!({"type": "function_call", "name": "made-up", "call_id": "u", "arguments": "{}"}),
    ];
    let mut command = calling(&world, &["--decide", "approve"], &lines);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-who=me").env("VARIABLE", "value-of-a-variable");
    let outcome = ended(&mut command);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert!(file.exists());

    let sent = collector.all();
    let figures = figures(&sent);
    for (name, count) in [
        ("codex.tool.call success=true tool=shell", 2),
        ("codex.tool.call success=false tool=shell", 1),
        ("codex.tool.call success=true tool=read_file", 1),
        ("codex.tool.call success=false tool=unknown", 1),
        ("codex.tool.call.duration_ms success=true tool=shell", 2),
        ("codex.approval.requested approved=approved tool=shell", 1),
        ("codex.sandbox.denied tool=shell", 1),
        ("codex.sandbox.retry rights=without_sandbox tool=shell", 1),
        ("codex.exec.duration_ms end=success sandbox=linux_seccomp", 1),
        ("codex.exec.duration_ms end=failure sandbox=linux_seccomp", 2),
        ("codex.exec.duration_ms end=success sandbox=none", 1),
    ] {
        assert_eq!(figures.get(name), Some(&count), "{name}: {figures:#?}");
    }
    let expected = ["approval", "attempt", "call", "session", "turn"].map(str::to_owned);
    assert_eq!(spans(&sent), BTreeSet::from(expected));
    for sent in &sent {
        assert!(sent.headers.to_lowercase().contains("x-who: me"), "{}", sent.headers);
        let body = String::from_utf8_lossy(&sent.body);
        for part in ["word-of-a", "content-of-a", "value-of-a", "secret.txt", "made-up"] {
            assert!(!body.contains(part), "{part}: {body}");
        }
    }
}

/// spec TELEMETRY.3: Nothing is sent, printed or waited for unless somebody asked for it.
#[test]
fn nobody_hears_who_did_not_ask() {
    let world = World::new();
    // Where a collector usually is.
    let Ok(usual) = TcpListener::bind("127.0.0.1:4318") else {
        return skipped("something else has the port of a collector");
    };
    usual.set_nonblocking(true).unwrap();
    let lines = [shell("one", &["true"])];
    let outcome = ended(&mut calling(&world, &[], &lines));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let collector = Collector::start();
    let mut command = calling(&world, &[], &lines);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    command.env("OTEL_SDK_DISABLED", "true");
    assert_eq!(ended(&mut command).code, Some(0));
    assert!(collector.all().is_empty());
    assert!(usual.accept().is_err(), "somebody was called");
}

/// spec TELEMETRY.9: A collector can be named by `otel.endpoint` in the settings; the standard variables
/// outweigh it.
#[test]
fn the_settings_name_a_collector() {
    let world = World::new();
    let (named, other) = (Collector::start(), Collector::start());
    world.set(&format!("{}otel.endpoint = {:?}\n", support::AS_TRUSTED, named.endpoint));
    let lines = [shell("one", &["true"])];
    assert_eq!(ended(&mut calling(&world, &[], &lines)).code, Some(0));
    let mut command = calling(&world, &[], &lines);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &other.endpoint);
    assert_eq!(ended(&mut command).code, Some(0));
    let count = |collector: Collector| {
        figures(&collector.all()).get("codex.tool.call success=true tool=shell").copied()
    };
    assert_eq!((count(named), count(other)), (Some(1), Some(1)));
}

/// spec TELEMETRY.4: A collector that is not there, or does not answer, changes no result and no exit code,
/// and the end of the program does not wait for it, however long it may take.
#[test]
fn a_dead_collector_stops_nothing() {
    let world = World::new();
    // Nobody ever takes what comes in here, and the connection stays open.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    for address in [silent.local_addr().unwrap(), gone] {
        let mut command = calling(&world, &[], &[shell("one", &["echo", "on"])]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
        // A day: whoever waited for that would still be waiting.
        command.env("OTEL_EXPORTER_OTLP_TIMEOUT", "86400000");
        let outcome = ended(&mut command);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        assert_eq!(outcome.events()[0]["output"], "on\n");
    }
}

/// spec TELEMETRY.7: What cannot be as the variables say is one line on standard error, and no reason not
/// to serve.
#[test]
fn settings_that_make_no_sense_are_said() {
    let world = World::new();
    for (name, value, says) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example", "begin with http://"),
        ("SANDGATE_LOG", "a=b=c", "SANDGATE_LOG is not understood"),
    ] {
        let mut command = calling(&world, &[], &[shell("one", &["true"])]);
        let outcome = ended(command.env(name, value));
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

/// spec TELEMETRY.8: `SANDGATE_LOG` prints what happens to standard error, each line with the `call_id` that
/// it belongs to and nothing in it that a terminal obeys; output only where `sandgate_output` is named.
#[test]
fn the_log_is_printed_for_whoever_asks() {
    let world = World::new();
    let lines = [shell("one\u{1b}[31m", &["printf", "out\\033[31mput"])];
    let mut command = calling(&world, &[], &lines);
    let outcome = ended(command.env("SANDGATE_LOG", "info"));
    let said = &outcome.stderr;
    assert!(said.contains("a session begins"), "{said}");
    assert!(said.contains(r#"call_id="one\u{1b}[31m""#), "{said}");
    assert!(said.contains("exit_code=0"), "{said}");
    assert!(
        !said.contains('\u{1b}') && !said.contains("printf") && !said.contains("mput"),
        "{said}"
    );
    let mut command = calling(&world, &[], &lines);
    let outcome = ended(command.env("SANDGATE_LOG", "sandgate_output=trace"));
    let said = &outcome.stderr;
    assert!(said.contains("preview=\"out") && !said.contains('\u{1b}'), "{said}");
}
