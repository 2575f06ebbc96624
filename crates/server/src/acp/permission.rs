//! Our questions as requests for permission, and what was chosen as our decisions.

use super::content::{fenced, text};
use super::diff::{diffs, locations};
use super::updates::short;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use sandgate_protocol::{
    ApprovalId, Choice, Event, GrantScope, PatchChange, ReviewDecision, ShownQuestion,
};

/// A question in both forms.
pub(super) struct Asked {
    pub(super) approval_id: ApprovalId,
    pub(super) request: RequestPermissionRequest,
    /// With what each option means.
    question: ShownQuestion,
}

/// What an event asks, if it asks something. `call` says by what the editor knows a call.
pub(super) fn asked(
    session: &SessionId,
    event: &Event,
    call: impl Fn(Option<&str>, &str) -> String,
) -> Option<Asked> {
    let question = ShownQuestion::of(event)?;
    let (id, fields) = match event {
        Event::ExecApprovalRequest(request) => {
            let id = call(request.agent.as_deref(), request.call_id.as_str());
            (id, about_command(&question))
        }
        Event::ApplyPatchApprovalRequest(request) => {
            let id = call(request.agent.as_deref(), request.call_id.as_str());
            (id, about_patch(&question, &request.changes))
        }
        _ => return None,
    };
    let options = question.choices.iter().map(option).collect();
    let fields = fields.status(ToolCallStatus::Pending);
    let call = ToolCallUpdate::new(id, fields);
    let request = RequestPermissionRequest::new(session.clone(), call, options);
    Some(Asked { approval_id: event.asks()?.clone(), request, question })
}

impl Asked {
    /// What was chosen. What was not offered is a no.
    pub(super) fn decision(&self, outcome: &RequestPermissionOutcome) -> ReviewDecision {
        match outcome {
            RequestPermissionOutcome::Selected(selected) => {
                let chosen = selected.option_id.0.as_ref();
                let found = self.question.choices.iter().find(|choice| option_id(choice) == chosen);
                found.map_or(ReviewDecision::DENIED, |choice| choice.answer.clone())
            }
            // The editor says so of questions in a turn that it has called off.
            RequestPermissionOutcome::Cancelled => ReviewDecision::Abort,
            _ => ReviewDecision::DENIED,
        }
    }
}

/// An answer as an option. No refusal is remembered, so none is of the kind that the protocol calls always.
fn option(choice: &Choice) -> PermissionOption {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
    let kind = match choice.answer {
        ReviewDecision::Approved
        | ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call } => AllowOnce,
        ReviewDecision::ApprovedForSession
        | ReviewDecision::ApprovedWithRule
        | ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session } => AllowAlways,
        ReviewDecision::Denied { .. } | ReviewDecision::Abort => RejectOnce,
    };
    // It becomes a button, and those begin with a capital letter.
    let (first, rest) = choice.label.split_at(choice.label.ceil_char_boundary(1));
    PermissionOption::new(option_id(choice), first.to_uppercase() + rest, kind)
}

/// By what an editor knows an answer: its word, spelled as the names of the protocol are.
fn option_id(choice: &Choice) -> String {
    choice.word.replace('-', "_")
}

fn about_command(question: &ShownQuestion) -> ToolCallUpdateFields {
    let place = question.place.iter().map(|place| format!("in `{}`", place.replace('`', "'")));
    let mut said = vec![fenced(&question.subject.join("\n"))];
    said.extend(place);
    said.push(facts(question));
    ToolCallUpdateFields::new()
        .kind(ToolKind::Execute)
        // All of it is below.
        .title(short(&question.summary))
        .content(vec![text(said.join("\n\n"))])
}

fn about_patch(question: &ShownQuestion, changes: &[PatchChange]) -> ToolCallUpdateFields {
    let said = format!("{}\n\n{}", fenced(&question.subject.join("\n")), facts(question));
    let mut content = vec![text(said)];
    content.extend(diffs(changes));
    ToolCallUpdateFields::new()
        .kind(ToolKind::Edit)
        .title("Change files")
        .locations(locations(changes))
        .content(content)
}

fn facts(question: &ShownQuestion) -> String {
    let facts: Vec<String> = question.facts.iter().map(ToString::to_string).collect();
    fenced(&facts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol::v1::schema::SelectedPermissionOutcome;
    use sandgate_protocol::{CallId, ExecApprovalRequest, GrantOffer};

    /// spec ACP.7: What is offered to the person is what the question offers, and what was not offered is a no.
    #[test]
    fn an_editor_knows_every_answer_by_its_name() {
        let request = ExecApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            command: vec!["touch".to_owned(), "x".to_owned()],
            command_text: "touch x".to_owned(),
            cwd: "/ws".into(),
            reason: "the sandbox blocked it".to_owned(),
            justification: None,
            denials: Vec::new(),
            more_denials: 1,
            risk: None,
            proposed_rule: Some(vec!["touch".to_owned()]),
            grant_offer: Some(GrantOffer {
                summary: "write to /x".to_owned(),
                writable: vec!["/x".into()],
                sockets: Vec::new(),
                network: false,
            }),
            without_sandbox: true,
            only_once: false,
            agent: None,
        };
        let event = Event::ExecApprovalRequest(Box::new(request));
        let asked = asked(&SessionId::new("s"), &event, |_, call| call.to_owned()).unwrap();
        let chosen = |id: &'static str| {
            asked.decision(&RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id)))
        };
        let grant = |scope| ReviewDecision::ApprovedWithGrant { scope };
        let expected = [
            ("grant", grant(GrantScope::Call)),
            ("grant_session", grant(GrantScope::Session)),
            ("approve", ReviewDecision::Approved),
            ("rule", ReviewDecision::ApprovedWithRule),
            ("deny", ReviewDecision::DENIED),
            ("abort", ReviewDecision::Abort),
        ];
        let offered: Vec<&str> =
            asked.request.options.iter().map(|option| option.option_id.0.as_ref()).collect();
        assert_eq!(offered, expected.each_ref().map(|(id, _)| *id));
        for (id, decision) in expected {
            assert_eq!(chosen(id), decision, "{id}");
        }
        assert_eq!(chosen("session"), ReviewDecision::DENIED);
    }
}
