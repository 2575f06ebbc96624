//! Figures about what was recorded.

use super::calls::{Call, Row};
use super::{many, words};
use sandgate_protocol::DeniedOperation;
use sandgate_protocol::visible_line as shown;
use sandgate_runtime::audit::{DecidedBy, DecisionKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many programs and targets are listed.
const LISTED: usize = 10;

/// The figures.
#[derive(Debug, Serialize)]
pub(super) struct Stats {
    sessions: u64,
    calls: u64,
    /// Calls whose end is known.
    ended: u64,
    failed: u64,
    timed_out: u64,
    decisions: Vec<DecisionCount>,
    blocked_calls: u64,
    denials: Vec<DenialCount>,
    tools: Vec<ToolCount>,
    programs: Vec<ProgramCount>,
    median_duration_ms: Option<u64>,
    longest_duration_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct DecisionCount {
    decision: DecisionKind,
    by: Decider,
    count: u64,
}

/// Who decided; of a person the front end does not matter here, nor does the text of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Decider {
    Policy,
    Rule,
    Cache,
    Person,
    Timeout,
    CalledOff,
}

#[derive(Debug, Serialize)]
struct DenialCount {
    operation: DeniedOperation,
    target: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct ToolCount {
    tool: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct ProgramCount {
    program: String,
    count: u64,
}

/// Counts.
pub(super) fn of(rows: &[Row]) -> Stats {
    let mut sessions = BTreeSet::new();
    let (mut decisions, mut denials) = (BTreeMap::new(), BTreeMap::new());
    let (mut programs, mut tools) = (BTreeMap::new(), BTreeMap::new());
    let mut durations = Vec::new();
    let (mut ended, mut failed, mut timed_out, mut blocked_calls, mut calls) = (0, 0, 0, 0, 0);
    for row in rows {
        let call = match row {
            Row::Event { session, .. } => {
                sessions.insert(session);
                continue;
            }
            Row::Call(call) => call,
        };
        sessions.insert(&call.session);
        calls += 1;
        for one in &call.decisions {
            *decisions.entry((one.decision, Decider::of(&one.by))).or_insert(0) += 1;
        }
        blocked_calls += u64::from(!call.denials.is_empty());
        for denial in &call.denials.evidence {
            let what = (denial.operation, denial.target.clone());
            *denials.entry(what).or_insert(0) += 1;
        }
        if let Some(asked) = &call.asked {
            *tools.entry(asked.tool.clone()).or_insert(0) += 1;
        }
        if let Some(program) = program(call) {
            *programs.entry(program).or_insert(0) += 1;
        }
        if let Some(end) = &call.end {
            ended += 1;
            failed += u64::from(end.has_failed());
            timed_out += u64::from(end.timed_out);
            durations.extend(end.duration_ms);
        }
    }
    durations.sort_unstable();
    let decision = |((decision, by), count)| DecisionCount { decision, by, count };
    let denial = |((operation, target), count)| DenialCount { operation, target, count };
    let program = |(program, count)| ProgramCount { program, count };
    let tool = |(tool, count)| ToolCount { tool, count };
    Stats {
        sessions: sessions.len() as u64,
        calls,
        ended,
        failed,
        timed_out,
        decisions: decisions.into_iter().map(decision).collect(),
        blocked_calls,
        denials: most(denials).map(denial).collect(),
        tools: most(tools).map(tool).collect(),
        programs: most(programs).map(program).collect(),
        median_duration_ms: median(&durations),
        longest_duration_ms: durations.last().copied(),
    }
}

impl Decider {
    fn of(by: &DecidedBy) -> Self {
        match by {
            DecidedBy::Policy => Self::Policy,
            DecidedBy::Rule { .. } => Self::Rule,
            DecidedBy::Cache => Self::Cache,
            DecidedBy::Person { .. } => Self::Person,
            DecidedBy::Timeout => Self::Timeout,
            DecidedBy::CalledOff => Self::CalledOff,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Rule => "rule",
            Self::Cache => "earlier answer",
            Self::Person => "person",
            Self::Timeout => "no answer",
            Self::CalledOff => "called off",
        }
    }
}

/// The greatest counts, and in their own order where they are equal.
fn most<T>(counts: BTreeMap<T, u64>) -> impl Iterator<Item = (T, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(LISTED)
}

/// The middle of figures that are in order.
fn median(sorted: &[u64]) -> Option<u64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some(sorted[sorted.len() / 2 - 1].midpoint(upper)),
    }
}

/// The tools that run programs. What the others are asked is no command line.
const RUNNING: [&str; 4] = ["container.exec", "exec_command", "shell", "shell_command"];

/// The program that a call is about: behind a shell, the first word of its script. None if the call was
/// not understood, and nothing is known of it but its words.
fn program(call: &Call) -> Option<String> {
    let asked = call.asked.as_ref()?;
    let understood = call.class.is_some() || !call.decisions.is_empty() || call.sandbox.is_some();
    if !RUNNING.contains(&asked.tool.as_str()) || !understood {
        return None;
    }
    let argv = &asked.argv;
    let name = base_name(argv.first()?);
    let script = match argv.get(1..3) {
        Some([option, script]) if SHELLS.contains(&name) && is_script_option(option) => script,
        _ => return Some(name.to_owned()),
    };
    Some(script.split_whitespace().next().map_or(name, base_name).to_owned())
}

const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];

fn is_script_option(option: &str) -> bool {
    matches!(option, "-c" | "-lc" | "-ic" | "-lic")
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The figures for people.
pub(super) fn draw(stats: &Stats) -> String {
    let mut text = format!(
        "{} in {}; {} ended, {} of them with an error, {} by a time limit.\n",
        many(stats.calls, "call"),
        many(stats.sessions, "session"),
        stats.ended,
        stats.failed,
        stats.timed_out,
    );
    if let (Some(median), Some(longest)) = (stats.median_duration_ms, stats.longest_duration_ms) {
        text += &format!("Median duration {median} ms, longest {longest} ms.\n");
    }
    let decision = |one: &DecisionCount| {
        (format!("{}, {}", words::kind(one.decision), one.by.word()), one.count)
    };
    let denial =
        |one: &DenialCount| (shown(&format!("{} {}", one.operation.name(), one.target)), one.count);
    let program = |one: &ProgramCount| (shown(&one.program), one.count);
    let tool = |one: &ToolCount| (shown(&one.tool), one.count);
    text += &list("Decisions", stats.decisions.iter().map(decision));
    let blocked = format!("Blocked, in {}", many(stats.blocked_calls, "call"));
    text += &list(&blocked, stats.denials.iter().map(denial));
    text += &list("Tools", stats.tools.iter().map(tool));
    text += &list("Programs", stats.programs.iter().map(program));
    text
}

fn list(title: &str, counts: impl Iterator<Item = (String, u64)>) -> String {
    let lines: String = counts.map(|(what, count)| format!("{count:7}  {what}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}:\n{lines}") }
}
