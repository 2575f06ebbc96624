//! After the sandbox refused something: a person is asked whether the command may have it.

use super::approve::{record_answer, yes_or_error};
use super::{ApprovalCtx, SandboxAttempt, ToolCtx, ToolRuntime};
use sandgate_policy::Approvable;
use sandgate_policy::Extras;
use sandgate_protocol::{CodexErr, Denials, GrantOffer, GrantScope, ReviewDecision};
use std::path::Path;

/// Whether there is to be another attempt.
pub(super) enum Again {
    /// There is.
    Yes(Box<SandboxAttempt>),
    /// There is not, and the result of the first one stands; with the reason, if somebody was to be
    /// asked.
    No(Option<CodexErr>),
}

/// Asks whether there is to be a second attempt.
pub(super) async fn ask<T, R>(
    tool: &T,
    request: &R,
    first: &SandboxAttempt,
    output: &T::Output,
    denials: &Denials,
    ctx: &ToolCtx<'_>,
) -> Result<Again, CodexErr>
where
    T: ToolRuntime<R>,
    R: Approvable + Sync,
{
    let policy = ctx.services.config.approval_policy;
    // Whoever stopped it does not want it once more.
    let stop = ctx.turn.stop();
    if stop.interrupt.is_cancelled() || stop.cancel.is_cancelled() {
        return Ok(Again::No(None));
    }
    if !tool.escalate_on_failure() || !request.wants_no_sandbox_approval(policy) {
        return Ok(Again::No(None));
    }
    let extras = tool.narrowest(request, denials, ctx).map(as_they_lie);
    let offer = extras.as_ref().map(|extras| offer(extras, &ctx.services.config.workspace));
    let approval = ApprovalCtx {
        reason: "the sandbox blocked it".to_owned(),
        proposed_rule: None,
        denials: Some(denials),
        grant_offer: offer,
        risk: tool.assess_risk(request, output, denials, ctx).await,
        without_sandbox: true,
    };
    let reason = approval.reason.clone();
    let answer = tool.start_approval_async(request, approval, ctx).await;
    record_answer(&answer, first.number() + 1, ctx)?;
    let decision = match yes_or_error(answer, reason) {
        Ok(decision) => decision,
        Err(CodexErr::UserAborted) => return Err(CodexErr::UserAborted),
        // The failure that is there already is what the model gets.
        Err(not_again) => return Ok(Again::No(Some(not_again))),
    };
    let extras = extras.unwrap_or_default();
    let grants = matches!(decision, ReviewDecision::ApprovedWithGrant { .. });
    if grants && !extras.writable.iter().all(|path| lies_as_offered(path)) {
        // Somebody put a link on the way while the person thought about it.
        return Err(CodexErr::Forbidden {
            reason: "what was offered is not where it was when the question was asked".to_owned(),
        });
    }
    if decision == (ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }) {
        ctx.services.open_for_session(&extras);
    }
    let permission = first.permission().after_denial(&decision, &extras);
    let Some(permission) = permission else { return Ok(Again::No(None)) };
    let rights = match decision {
        ReviewDecision::ApprovedWithGrant { .. } => "only_what_was_blocked",
        _ => "without_sandbox",
    };
    ctx.services.telemetry.retried(ctx.tool_name, rights);
    tracing::info!(call_id = ?ctx.call_id.as_str(), rights, "the command runs again");
    Ok(Again::Yes(Box::new(first.again(permission))))
}

/// Paths without links in them, so that what is offered is what will be opened.
fn as_they_lie(mut extras: Extras) -> Extras {
    for path in &mut extras.writable {
        if let Some(real) = really(path) {
            *path = real;
        }
    }
    extras
}

/// Whether no link has come into a path since it was offered.
fn lies_as_offered(path: &Path) -> bool {
    really(path).is_none_or(|real| real == path)
}

/// Where a path leads, or would lead if its last part were there.
fn really(path: &Path) -> Option<std::path::PathBuf> {
    match (dunce::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), _, _) => Some(real),
        (Err(_), Some(above), Some(name)) => Some(dunce::canonicalize(above).ok()?.join(name)),
        _ => None,
    }
}

/// What is offered, as a person would say it.
fn offer(extras: &Extras, workspace: &Path) -> GrantOffer {
    let name = |path: &Path| match path.strip_prefix(workspace) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.display().to_string(),
        _ => path.display().to_string(),
    };
    let mut parts = Vec::new();
    if !extras.writable.is_empty() {
        parts.push(format!("write to {}", listed(extras.writable.iter().map(|path| name(path)))));
    }
    if !extras.sockets.is_empty() {
        parts.push(format!("connect to {}", listed(extras.sockets.iter().map(|path| name(path)))));
    }
    if extras.network {
        parts.push("reach the network".to_owned());
    }
    GrantOffer {
        summary: sandgate_protocol::visible_line(&listed(parts)),
        writable: extras.writable.clone(),
        sockets: extras.sockets.clone(),
        network: extras.network,
    }
}

/// Things as they are listed in a sentence.
fn listed(things: impl IntoIterator<Item = String>) -> String {
    let things: Vec<String> = things.into_iter().collect();
    match things.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_said_as_a_person_would_say_it() {
        let workspace = Path::new("/ws");
        let extras = Extras { writable: vec!["/ws/.git".into()], ..Extras::default() };
        assert_eq!(offer(&extras, workspace).summary, "write to .git");
        let extras = Extras {
            writable: vec!["/ws/.git".into(), "/etc/hosts".into(), "/ws".into()],
            sockets: vec!["/run/docker.sock".into()],
            network: true,
        };
        let summary = "write to .git, /etc/hosts and /ws, connect to /run/docker.sock and reach \
                       the network";
        assert_eq!(offer(&extras, workspace).summary, summary);
    }
}
