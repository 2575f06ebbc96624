//! Records, put together to what a person would call one thing: a call, from the question to its end.

use jiff::Timestamp;
use sandgate_protocol::{CallId, Denials, Enforcement, SandboxPermissions, SandboxType};
use sandgate_runtime::audit::{AuditEntry, DecidedBy, DecisionKind, GrantedConfinement};
use sandgate_runtime::audit::{GrantedExtras, PatchedFile, Record, RiskClass};
use serde::Serialize;
use std::collections::HashMap;

/// One row of what is shown. On the wire its name is in `kind`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Row {
    /// A call.
    Call(Box<Call>),
    /// Anything else.
    Event {
        /// The number of its line.
        seq: u64,
        /// When.
        time: Timestamp,
        /// In which session.
        session: String,
        /// What.
        record: Box<Record>,
    },
}

/// One call, as far as it is known.
#[derive(Debug, Serialize)]
pub(super) struct Call {
    /// The number of its first line.
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) session: String,
    pub(super) call_id: CallId,
    /// Nothing where the question is older than what is shown.
    pub(super) asked: Option<Asked>,
    pub(super) class: Option<RiskClass>,
    pub(super) reason: Option<String>,
    /// The rules that speak of it.
    pub(super) rules: Vec<String>,
    pub(super) decisions: Vec<Decided>,
    /// The terms of each attempt.
    pub(super) grants: Vec<Terms>,
    /// How often it was tried.
    pub(super) attempts: u32,
    /// What confined the last attempt.
    pub(super) sandbox: Option<SandboxType>,
    /// What that enforced.
    pub(super) enforcement: Option<Enforcement>,
    /// How the last attempt ended.
    pub(super) end: Option<End>,
    /// What was refused, in all attempts.
    #[serde(flatten)]
    pub(super) denials: Denials,
    /// What a patch changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<PatchedFile>,
}

/// The question.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    pub(super) front_end: String,
    /// The subagent that asked, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    pub(super) tool: String,
    pub(super) argv: Vec<String>,
    pub(super) cwd: String,
    pub(super) sandbox_permissions: SandboxPermissions,
    pub(super) justification: Option<String>,
    /// Whether something of it was too long to be recorded whole.
    pub(super) cut: bool,
}

/// One answer.
#[derive(Debug, Serialize)]
pub(super) struct Decided {
    pub(super) decision: DecisionKind,
    pub(super) by: DecidedBy,
    pub(super) attempt: u32,
    pub(super) feedback: Option<String>,
}

/// What was granted for one attempt.
#[derive(Debug, Serialize)]
pub(super) struct Terms {
    pub(super) attempt: u32,
    pub(super) confinement: GrantedConfinement,
    pub(super) extras: GrantedExtras,
}

/// How it ended.
#[derive(Debug, Serialize)]
pub(super) struct End {
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
    pub(super) timed_out: bool,
    pub(super) cancelled: bool,
    pub(super) error: Option<String>,
}

impl End {
    /// Whether it came to nothing. What is no command has no exit code, and an error if it failed.
    pub(super) fn has_failed(&self) -> bool {
        match self.exit_code {
            Some(code) => code != 0,
            None => self.error.is_some() || self.timed_out || self.cancelled,
        }
    }
}

impl Row {
    /// Whether a person, a rule or the sandbox refused something.
    pub(super) fn was_denied(&self) -> bool {
        match self {
            Self::Call(call) => {
                !call.denials.is_empty() || call.decisions.iter().any(|one| !one.decision.is_yes())
            }
            Self::Event { .. } => false,
        }
    }
}

/// Puts rows together.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    calls: HashMap<(String, CallId), usize>,
}

impl Rows {
    /// Adds a record. After `until` only what belongs to a call that is there already.
    pub(super) fn add(&mut self, entry: AuditEntry, until: Option<Timestamp>) {
        let AuditEntry { seq, time, session, record, cut, .. } = entry;
        let late = until.is_some_and(|until| time >= until);
        let call_id = match &record {
            // A rule is there for all calls to come, so it is shown by itself.
            Record::Amended(_) => None,
            record => record.call_id().cloned(),
        };
        let Some(call_id) = call_id else {
            if !late {
                let record = Box::new(record);
                self.rows.push(Row::Event { seq, time, session, record });
            }
            return;
        };
        let known = (session.clone(), call_id.clone());
        let index = match self.calls.get(&known) {
            // An id may be used again: another question is another call.
            Some(index) if !matches!(record, Record::CallAsked(_)) => *index,
            _ if late => return,
            _ => {
                self.rows.push(Row::Call(Box::new(Call::new(seq, time, session, call_id))));
                self.calls.insert(known, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        if let Row::Call(call) = &mut self.rows[index] {
            call.learn(record, !cut.is_empty());
        }
    }

    pub(super) fn finish(self) -> Vec<Row> {
        self.rows
    }
}

impl Call {
    fn new(seq: u64, time: Timestamp, session: String, call_id: CallId) -> Self {
        Self {
            seq,
            time,
            session,
            call_id,
            asked: None,
            class: None,
            reason: None,
            rules: Vec::new(),
            decisions: Vec::new(),
            grants: Vec::new(),
            attempts: 0,
            sandbox: None,
            enforcement: None,
            end: None,
            denials: Denials::default(),
            files: Vec::new(),
        }
    }

    fn learn(&mut self, record: Record, cut: bool) {
        match record {
            Record::CallAsked(asked) => {
                self.asked = Some(Asked {
                    front_end: asked.front_end,
                    agent: asked.agent,
                    tool: asked.tool,
                    argv: asked.argv,
                    cwd: asked.cwd,
                    sandbox_permissions: asked.sandbox_permissions,
                    justification: asked.justification,
                    cut,
                });
            }
            Record::Judged(judged) => {
                self.class = Some(judged.class);
                self.reason = judged.reason;
                self.rules = judged.rules;
            }
            Record::Decided(one) => self.decisions.push(Decided {
                decision: one.decision,
                by: one.by,
                attempt: one.attempt,
                feedback: one.feedback,
            }),
            Record::Granted(granted) => self.grants.push(Terms {
                attempt: granted.attempt,
                confinement: granted.confinement,
                extras: granted.extras,
            }),
            Record::Began(began) => {
                self.attempts = self.attempts.max(began.attempt);
                self.sandbox = Some(began.sandbox);
                self.enforcement = began.enforcement;
                self.end = None;
            }
            Record::Ended(ended) => {
                self.attempts = self.attempts.max(ended.attempt);
                self.denials.append(ended.denials);
                self.end = Some(End {
                    exit_code: ended.exit_code,
                    duration_ms: Some(ended.duration_ms),
                    timed_out: ended.timed_out,
                    cancelled: ended.cancelled,
                    error: ended.error,
                });
            }
            Record::PatchApplied(applied) => {
                self.files = applied.files;
                let (timed_out, cancelled) = (false, false);
                let exit_code = Some(i32::from(applied.error.is_some()));
                let error = applied.error;
                self.end = Some(End { exit_code, duration_ms: None, timed_out, cancelled, error });
            }
            _ => {}
        }
    }
}
