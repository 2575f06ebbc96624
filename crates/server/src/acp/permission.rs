//! Our questions as requests for permission, and what was chosen as our decisions.

use super::content::{fenced, text};
use super::diff::{diffs, locations};
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApprovalId, Event, ExecApprovalRequest, GrantScope, ReviewDecision,
    visible, visible_line,
};

/// How many refusals are listed.
const MOST_DENIALS: usize = 8;

/// A question in both forms.
pub(super) struct Asked {
    pub(super) approval_id: ApprovalId,
    pub(super) request: RequestPermissionRequest,
    /// What each option means.
    meant: Vec<(&'static str, ReviewDecision)>,
}

/// What an event asks, if it asks something. `call` says by what the editor knows a call.
pub(super) fn asked(
    session: &SessionId,
    event: &Event,
    call: impl Fn(Option<&str>, &str) -> String,
) -> Option<Asked> {
    let (approval_id, id, fields, offers) = match event {
        Event::ExecApprovalRequest(request) => {
            let id = call(request.agent.as_deref(), request.call_id.as_str());
            (&request.approval_id, id, about_command(request), offered_command(request))
        }
        Event::ApplyPatchApprovalRequest(request) => {
            let id = call(request.agent.as_deref(), request.call_id.as_str());
            (&request.approval_id, id, about_patch(request), offered_patch(request))
        }
        _ => return None,
    };
    let option = |(id, name, kind, _): &Offer| PermissionOption::new(*id, name.clone(), *kind);
    let options = offers.iter().map(option).collect();
    let fields = fields.status(ToolCallStatus::Pending);
    let call = ToolCallUpdate::new(id, fields);
    let request = RequestPermissionRequest::new(session.clone(), call, options);
    let meant = offers.into_iter().map(|(id, _, _, decision)| (id, decision)).collect();
    Some(Asked { approval_id: approval_id.clone(), request, meant })
}

/// An option: its id, its words, what kind the protocol calls it, and what it means.
type Offer = (&'static str, String, PermissionOptionKind, ReviewDecision);

impl Asked {
    /// What was chosen. What was not offered is a no.
    pub(super) fn decision(&self, outcome: &RequestPermissionOutcome) -> ReviewDecision {
        match outcome {
            RequestPermissionOutcome::Selected(selected) => {
                let id = selected.option_id.0.as_ref();
                let found = self.meant.iter().find(|(meant, _)| *meant == id);
                found.map_or(ReviewDecision::DENIED, |(_, decision)| decision.clone())
            }
            // The editor says so of questions in a turn that it has called off.
            RequestPermissionOutcome::Cancelled => ReviewDecision::Abort,
            _ => ReviewDecision::DENIED,
        }
    }
}

/// What opens least comes first: an editor may take the first option of a kind.
fn offered_command(request: &ExecApprovalRequest) -> Vec<Offer> {
    use PermissionOptionKind::{AllowAlways, AllowOnce};
    let mut offers = Vec::new();
    if let Some(offer) = &request.grant_offer {
        let summary = visible_line(&offer.summary);
        let grant = |scope| ReviewDecision::ApprovedWithGrant { scope };
        let once = format!("Only let it {summary}");
        offers.push(("grant", once, AllowOnce, grant(GrantScope::Call)));
        let session = format!("Let commands of this session {summary}");
        offers.push(("grant_session", session, AllowAlways, grant(GrantScope::Session)));
    }
    let (yes, more) = match request.without_sandbox {
        true => ("Yes, without the sandbox", "Yes, without the sandbox,"),
        false => ("Yes, once", "Yes,"),
    };
    offers.push(("approve", yes.to_owned(), AllowOnce, ReviewDecision::Approved));
    if request.offers().session {
        let session = format!("{more} and do not ask again for this in this session");
        offers.push(("session", session, AllowAlways, ReviewDecision::ApprovedForSession));
    }
    if let Some(rule) = &request.proposed_rule {
        let words = visible_line(&rule.join(" "));
        let rule = format!("{more} always for commands that begin with: {words}");
        offers.push(("rule", rule, AllowAlways, ReviewDecision::ApprovedWithRule));
    }
    offers.extend(refusals());
    offers
}

fn offered_patch(request: &ApplyPatchApprovalRequest) -> Vec<Offer> {
    use PermissionOptionKind::{AllowAlways, AllowOnce};
    let mut offers = vec![("approve", "Yes, once".to_owned(), AllowOnce, ReviewDecision::Approved)];
    if request.offers().session {
        let session = match &request.grant_root {
            Some(root) => {
                let root = visible_line(&root.to_string_lossy());
                format!("Yes, and to everything in {root} for this session")
            }
            None => "Yes, and to these files for this session".to_owned(),
        };
        offers.push(("session", session, AllowAlways, ReviewDecision::ApprovedForSession));
    }
    offers.extend(refusals());
    offers
}

/// Neither is remembered, so neither is of the kind that the protocol calls always.
fn refusals() -> [Offer; 2] {
    let kind = PermissionOptionKind::RejectOnce;
    [
        ("deny", "No, go on without it".to_owned(), kind, ReviewDecision::DENIED),
        ("abort", "No, and stop".to_owned(), kind, ReviewDecision::Abort),
    ]
}

fn about_command(request: &ExecApprovalRequest) -> ToolCallUpdateFields {
    let mut said = vec![fenced(&request.command_text)];
    said.push(format!("in `{}`", visible_line(&request.cwd.to_string_lossy()).replace('`', "'")));
    let blocked = request.denials.iter().take(MOST_DENIALS);
    let mut facts: Vec<String> =
        blocked.map(|denial| format!("blocked: {}", visible_line(&denial.to_string()))).collect();
    let hidden = request.denials.len().saturating_sub(MOST_DENIALS) as u64 + request.more_denials;
    if hidden > 0 {
        facts.push(format!("blocked: {hidden} more"));
    }
    facts.extend(request.agent.iter().map(|agent| asked_by(agent)));
    facts.push(format!("because: {}", visible_line(&request.reason)));
    if let Some(why) = &request.justification {
        facts.push(format!("the model says: {}", visible_line(why)));
    }
    if let Some(risk) = &request.risk {
        facts.push(format!("risk: {:?}. {}", risk.risk_level, visible_line(&risk.description)));
    }
    said.push(fenced(&facts.join("\n")));
    ToolCallUpdateFields::new()
        .kind(ToolKind::Execute)
        .title(visible_line(&request.command_text))
        .content(vec![text(said.join("\n\n"))])
}

fn about_patch(request: &ApplyPatchApprovalRequest) -> ToolCallUpdateFields {
    let path = |path: &std::path::Path| visible_line(&path.to_string_lossy());
    let mut facts: Vec<String> = Vec::new();
    for change in &request.changes {
        facts.push(match &change.moved_to {
            Some(target) => format!("{} -> {}", path(&change.path), path(target)),
            None => path(&change.path),
        });
    }
    facts.extend(request.agent.iter().map(|agent| asked_by(agent)));
    facts.push(format!("because: {}", visible(&request.reason)));
    let mut content = vec![text(fenced(&facts.join("\n")))];
    content.extend(diffs(&request.changes));
    ToolCallUpdateFields::new()
        .kind(ToolKind::Edit)
        .title("Change files")
        .locations(locations(&request.changes))
        .content(content)
}

fn asked_by(agent: &str) -> String {
    format!("asked by the subagent {}", visible_line(agent))
}
