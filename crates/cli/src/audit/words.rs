//! Rows in a person's words.

use super::calls::{Asked, Call, Decided, End, Terms};
use sandgate_protocol::SandboxType;
use sandgate_protocol::visible_line as shown;
use sandgate_runtime::audit::{ChangeKind, DecidedBy, DecisionKind, PatchedFile, Record};

/// What a call was about.
pub(super) fn what(call: &Call) -> String {
    let mut text = match &call.asked {
        None => format!("(call {}, asked for earlier)", call.call_id),
        Some(Asked { tool, argv, .. }) if argv.is_empty() => tool.clone(),
        Some(asked) => command(&asked.argv),
    };
    if call.asked.as_ref().is_some_and(|asked| asked.cut) {
        text += " … (longer than is kept)";
    }
    if !call.files.is_empty() {
        text += ": ";
        text += &call.files.iter().map(file).collect::<Vec<_>>().join(", ");
    }
    shown(&text)
}

fn file(file: &PatchedFile) -> String {
    let PatchedFile { path, change, added_lines, removed_lines, moved_to } = file;
    let change = match change {
        ChangeKind::Added => "new ",
        ChangeKind::Deleted => "deleted ",
        ChangeKind::Updated => "",
    };
    let moved = moved_to.as_ref().map(|to| format!(" → {to}")).unwrap_or_default();
    format!("{change}{path}{moved} +{added_lines} -{removed_lines}")
}

/// A command as it could be typed, so that one can see where a word ends.
fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The last decision and who made it.
pub(super) fn decision(call: &Call) -> String {
    call.decisions.last().map(decided).unwrap_or_default()
}

fn decided(one: &Decided) -> String {
    format!("{}, {}", kind(one.decision), shown(&by(&one.by)))
}

/// A decision in a word or two.
pub(super) fn kind(decision: DecisionKind) -> &'static str {
    match decision {
        DecisionKind::Allowed => "allowed",
        DecisionKind::Approved => "approved",
        DecisionKind::ApprovedForSession => "approved for session",
        DecisionKind::ApprovedWithRule => "approved with rule",
        DecisionKind::ApprovedWithGrant => "approved with grant",
        DecisionKind::Denied => "denied",
        DecisionKind::Aborted => "aborted",
        DecisionKind::Forbidden => "forbidden",
    }
}

/// Who decided.
pub(super) fn by(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Policy => "policy".to_owned(),
        DecidedBy::Rule { .. } => "rule".to_owned(),
        DecidedBy::Cache => "earlier answer".to_owned(),
        DecidedBy::Person { front_end } => format!("person ({front_end})"),
        DecidedBy::Timeout => "no answer".to_owned(),
        DecidedBy::CalledOff => "called off".to_owned(),
    }
}

/// What was opened to a command beyond its policy, if anything was.
pub(super) fn opened(terms: &Terms) -> Option<String> {
    let extras = &terms.extras;
    let writable = extras.writable.iter().map(|path| format!("write to {path}"));
    let sockets = extras.sockets.iter().map(|path| format!("connect to {path}"));
    let network = extras.network.then(|| "reach the network".to_owned());
    let all: Vec<String> = writable.chain(sockets).chain(network).collect();
    (!all.is_empty()).then(|| format!("granted: {}", all.join(", ")))
}

/// Where it ran.
pub(super) fn place(call: &Call) -> String {
    let place = match call.sandbox {
        None => return String::new(),
        Some(SandboxType::None) => "no sandbox",
        Some(_) => "sandbox",
    };
    match call.attempts {
        0 | 1 => place.to_owned(),
        2 => format!("{place}, 2nd try"),
        n => format!("{place}, try {n}"),
    }
}

/// How it ended, in a column's width.
pub(super) fn exit(call: &Call) -> String {
    match &call.end {
        None => String::new(),
        Some(End { timed_out: true, .. }) => "time-out".to_owned(),
        Some(End { cancelled: true, .. }) => "cancelled".to_owned(),
        Some(End { exit_code: Some(code), .. }) => code.to_string(),
        Some(End { exit_code: None, error: None, .. }) => "done".to_owned(),
        Some(End { exit_code: None, .. }) => "failed".to_owned(),
    }
}

/// What happened outside a call.
pub(super) fn event(record: &Record) -> String {
    let text = match record {
        Record::SessionStarted(session) => format!(
            "{}: {} in {} ({}, {})",
            match &session.agent {
                Some(agent) => format!("subagent {agent} started"),
                None => "session started".to_owned(),
            },
            session.front_end,
            session.workspace,
            session.sandbox_policy.name(),
            serde_json::to_value(session.approval_policy)
                .ok()
                .and_then(|word| word.as_str().map(str::to_owned))
                .unwrap_or_default(),
        ),
        Record::SessionEnded(session) => format!("session ended: {}", session.reason),
        Record::Amended(amended) => format!("rule added to {}: {}", amended.file, amended.rule),
        Record::Note { text } => format!("note: {text}"),
        Record::Torn { bytes, .. } => format!("a line of {bytes} bytes was never finished"),
        Record::Damaged { what } => format!("the log was damaged: {what}"),
        Record::Unrecorded { count: 1, why } => format!("one record was not written: {why}"),
        Record::Unrecorded { count, why } => format!("{count} records were not written: {why}"),
        _ => "something that only a later version of sandgate can read".to_owned(),
    };
    shown(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_shows_where_its_words_end() {
        let said = |argv: &[&str]| {
            command(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(said(&["ls", "-la", "/tmp"]), "ls -la /tmp");
        assert_eq!(said(&["bash", "-lc", "echo 'hi' | wc"]), r"bash -lc 'echo '\''hi'\'' | wc'");
        assert_eq!(said(&["printf", "", "a b"]), "printf '' 'a b'");
    }
}
