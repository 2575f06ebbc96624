//! What a session does, in figures: counters and durations through the API of OpenTelemetry, under the
//! names that Codex gives them.
//!
//! Whoever starts the program decides whether anybody collects them; without a collector every one of
//! these calls does nothing. Labels are few and known: names of tools, kinds of decisions and ends.
//! Nothing that a command, a file or the environment says has a place in here. Spans and events are
//! where things happen, by `tracing`; they carry a `call_id` and no arguments.

mod preview;

pub use preview::{
    TELEMETRY_PREVIEW_MAX_BYTES, TELEMETRY_PREVIEW_MAX_LINES, TELEMETRY_PREVIEW_TRUNCATION_NOTICE,
    telemetry_preview,
};

use crate::approval::Answer;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};
use sandgate_protocol::{AnsweredBy, ExecToolCallOutput, SandboxType};
use std::time::Duration;

/// The figures of a session.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    approvals: Counter<u64>,
    calls: Counter<u64>,
    call_duration: Histogram<f64>,
    exec_duration: Histogram<f64>,
    denials: Counter<u64>,
    retries: Counter<u64>,
}

impl Telemetry {
    /// Figures for whoever collects them at this moment.
    pub(crate) fn new() -> Self {
        let meter = opentelemetry::global::meter("sandgate");
        let count = |name, about| meter.u64_counter(name).with_description(about).build();
        let time =
            |name, about| meter.f64_histogram(name).with_unit("ms").with_description(about).build();
        Self {
            approvals: count("codex.approval.requested", "Questions that a person was asked"),
            calls: count("codex.tool.call", "Tool calls that ended"),
            call_duration: time("codex.tool.call.duration_ms", "From a call to its result"),
            exec_duration: time("codex.exec.duration_ms", "From the start of a command to its end"),
            denials: count("codex.sandbox.denied", "Commands that failed because of the sandbox"),
            retries: count("codex.sandbox.retry", "Commands that ran again with more rights"),
        }
    }

    /// A question was answered, or nobody answered it.
    pub(crate) fn asked(&self, tool: &str, answer: &Answer) {
        let approved = match answer.by {
            AnsweredBy::Person(_) => answer.decision.name(),
            AnsweredBy::Timeout => "timeout",
            AnsweredBy::Nobody => "nobody",
            AnsweredBy::Cancelled => "cancelled",
        };
        self.approvals.add(1, &[label("tool", tool), KeyValue::new("approved", approved)]);
    }

    /// A call has its result.
    pub(crate) fn called(&self, tool: &str, success: bool, took: Duration) {
        let labels = [label("tool", tool), KeyValue::new("success", success)];
        self.calls.add(1, &labels);
        self.call_duration.record(milliseconds(took), &labels);
    }

    /// A command has ended.
    pub(crate) fn executed(&self, sandbox: SandboxType, output: &ExecToolCallOutput) {
        let end = match output {
            ExecToolCallOutput { timed_out: true, .. } => "timed_out",
            ExecToolCallOutput { cancelled: true, .. } => "cancelled",
            ExecToolCallOutput { exit_code: 0, .. } => "success",
            _ => "failure",
        };
        let labels = [KeyValue::new("sandbox", named(sandbox)), KeyValue::new("end", end)];
        self.exec_duration.record(milliseconds(output.duration), &labels);
    }

    /// The sandbox was why a command failed.
    pub(crate) fn denied(&self, tool: &str) {
        self.denials.add(1, &[label("tool", tool)]);
    }

    /// A command runs again.
    pub(crate) fn retried(&self, tool: &str, rights: &'static str) {
        self.retries.add(1, &[label("tool", tool), KeyValue::new("rights", rights)]);
    }
}

fn label(name: &'static str, value: &str) -> KeyValue {
    KeyValue::new(name, value.to_owned())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn named(sandbox: SandboxType) -> &'static str {
    match sandbox {
        SandboxType::None => "none",
        SandboxType::MacosSeatbelt => "macos_seatbelt",
        SandboxType::LinuxSeccomp => "linux_seccomp",
        SandboxType::WindowsRestrictedToken => "windows_restricted_token",
    }
}
