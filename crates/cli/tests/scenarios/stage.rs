//! Plays a case in a session of its own, through the library.

use crate::scenario::{Call, Case};
use crate::story::{Places, Seen, decisions, lines};
use sandgate_protocol::{
    AskForApproval, CallId, Event, GrantScope, NetworkAccess, ReviewDecision, SandboxPolicy,
    ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::audit::AuditOptions;
use sandgate_runtime::policy::Rules;
use sandgate_runtime::{AnswerError, Approver, Delivery, Runtime, Session, SessionConfig};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What a person does when asked.
pub(crate) enum Reaction {
    Answer(ReviewDecision),
    /// Answers what is not offered, which changes nothing, and then this.
    Corrected {
        refused: ReviewDecision,
        answer: ReviewDecision,
    },
    /// Goes away, and nobody else is there.
    Leave,
    /// Lets the time pass.
    Wait,
}

/// Plays it. The directories are given back: something may lie there as long as the runtime lives.
pub(crate) async fn play(runtime: &Arc<Runtime>, case: &Case<'_>) -> (Seen, Places) {
    let places = Places::new(&case.scenario.given);
    let before = places.files();
    let mut seen = Seen::default();
    {
        let session = Session::start(Arc::clone(runtime), config(case, &places)).unwrap();
        let mut person = Person {
            answers: case.scenario.answers.iter().map(|word| reaction(word)).collect(),
            approver: (!case.scenario.answers.is_empty()).then(|| session.approver("test")),
        };
        for call in calls(case, &places) {
            seen.result = make(&session, call, &mut person, &places, &mut seen.story).await;
        }
        assert!(person.answers.is_empty(), "{case}: not all answers were wanted");
    }
    seen.result = places.take_out(&seen.result);
    (seen.audit, seen.class) = decisions(&places.path("codex"));
    seen.made = places.made_since(&before);
    (seen, places)
}

struct Person {
    answers: VecDeque<Reaction>,
    approver: Option<Approver>,
}

impl Person {
    fn hear(&mut self, event: &Event) {
        let Event::ExecApprovalRequest(request) = event else { return };
        match (self.answers.pop_front(), &self.approver) {
            (Some(Reaction::Answer(decision)), Some(approver)) => {
                approver.answer(&request.approval_id, decision).unwrap();
            }
            (Some(Reaction::Corrected { refused, answer }), Some(approver)) => {
                let error = approver.answer(&request.approval_id, refused).unwrap_err();
                assert!(matches!(error, AnswerError::NotOffered { .. }), "{error}");
                approver.answer(&request.approval_id, answer).unwrap();
            }
            (Some(Reaction::Wait), _) => {}
            _ => self.approver = None,
        }
    }
}

/// Makes one call while the person listens, and gives back what the model is told.
async fn make(
    session: &Session,
    call: ToolCall,
    person: &mut Person,
    places: &Places,
    story: &mut Vec<String>,
) -> String {
    let mut events = session.events(Delivery::Complete).await;
    let requester = session.requester();
    let turn = requester.begin_turn();
    let calling = requester.call(vec![call], &turn);
    tokio::pin!(calling);
    let result = loop {
        tokio::select! {
            biased;
            event = events.next() => {
                let event = event.unwrap();
                story.extend(lines(&event.event, places));
                person.hear(&event.event);
            }
            mut results = &mut calling => break results.remove(0),
        }
    };
    while let Some(event) = events.try_next() {
        story.extend(lines(&event.event, places));
    }
    match result.output {
        ToolOutput::Function { content, .. } => content,
        ToolOutput::Mcp { .. } => panic!("not a function"),
    }
}

fn config(case: &Case<'_>, places: &Places) -> SessionConfig {
    let mut config = SessionConfig::new(places.path("ws"));
    config.approval_policy = approval_policy(case.policy);
    config.sandbox_policy = sandbox_policy(case.sandbox);
    config.own_env = ["PATH", "LANG"]
        .into_iter()
        .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
        .collect();
    config.own_env.insert("HOME".into(), places.path("home").into());
    config.config_home = Some(places.path("codex"));
    config.audit = Some(AuditOptions::default());
    // Long enough for an answer that is given at once; a moment where none is.
    let waits = case.scenario.answers.iter().any(|answer| answer == "wait");
    config.approval_timeout = waits.then_some(Duration::from_millis(20));
    if let Some(rule) = rule(case, places) {
        config.rules = Rules::from_iter(Rules::parse(&rule, "scenario.toml").unwrap());
    }
    config
}

/// The rule of a case, as it stands in a file.
pub(crate) fn rule(case: &Case<'_>, places: &Places) -> Option<String> {
    let says = case.scenario.rule.as_deref()?;
    let decision = match says {
        "allow, bypass" => "\"allow\"\nsandbox = \"bypass\"".to_owned(),
        decision => format!("{decision:?}"),
    };
    let command = places.put_in(case.command);
    let words: Vec<&str> = command.split_whitespace().collect();
    Some(format!("[[rule]]\nprefix = {words:?}\ndecision = {decision}\n"))
}

/// The calls of a case, in order.
pub(crate) fn calls(case: &Case<'_>, places: &Places) -> Vec<ToolCall> {
    let mut commands = vec![case.command];
    commands.extend(case.scenario.then.iter().map(String::as_str));
    let call = |(number, command): (usize, &str)| {
        // Not `shell_command`: the person's own shell may be any.
        let mut arguments = json!({"command": ["bash", "-c", places.put_in(command)]});
        if case.call == Call::Leaves {
            arguments["sandbox_permissions"] = "require_escalated".into();
        }
        if case.call == Call::Leaves
            && let Some(why) = &case.scenario.justification
        {
            arguments["justification"] = why.as_str().into();
        }
        ToolCall {
            call_id: CallId::new(format!("call_{}", number + 1)),
            name: "shell".to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        }
    };
    commands.into_iter().enumerate().map(call).collect()
}

/// What the word in a scenario means.
pub(crate) fn reaction(word: &str) -> Reaction {
    if let Some((refused, then)) = word.split_once(", which is not offered; then ") {
        return match (reaction(refused), reaction(then)) {
            (Reaction::Answer(refused), Reaction::Answer(answer)) => {
                Reaction::Corrected { refused, answer }
            }
            _ => panic!("{word:?} is no answer"),
        };
    }
    Reaction::Answer(match word {
        "yes" => ReviewDecision::Approved,
        "yes, for the session" => ReviewDecision::ApprovedForSession,
        "yes, as a rule" => ReviewDecision::ApprovedWithRule,
        "grant" => ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call },
        "grant, for the session" => {
            ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }
        }
        "no" => ReviewDecision::DENIED,
        "abort" => ReviewDecision::Abort,
        "leave" => return Reaction::Leave,
        "wait" => return Reaction::Wait,
        other => match other.strip_prefix("no, ") {
            Some(feedback) => ReviewDecision::Denied { feedback: Some(feedback.to_owned()) },
            None => panic!("{other:?} is no answer"),
        },
    })
}

fn approval_policy(word: &str) -> AskForApproval {
    serde_json::from_value(word.into()).unwrap_or_else(|_| panic!("{word:?} is no policy"))
}

fn sandbox_policy(word: &str) -> SandboxPolicy {
    match word {
        "read-only" => SandboxPolicy::ReadOnly,
        "workspace-write" => SandboxPolicy::workspace_write(),
        "workspace-write+network" => SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Enabled,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        },
        "danger-full-access" => SandboxPolicy::DangerFullAccess,
        "external-sandbox" => {
            SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted }
        }
        other => panic!("{other:?} is no sandbox"),
    }
}
