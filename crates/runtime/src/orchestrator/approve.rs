//! Before a request runs: nobody need be asked, a person is, or it does not run.

use super::attempt::Prospect;
use super::{ApprovalCtx, ToolCtx, ToolRuntime};
use crate::approval::Answer;
use crate::audit::{DecidedBy, Decision, DecisionKind, Record};
use sandgate_policy::Permission;
use sandgate_policy::{Approvable, ApprovalKey, Content, Remembered};
use sandgate_policy::{ApprovalRequirement, BypassSandbox, Terms};
use sandgate_protocol::{AnsweredBy, CodexErr, ReviewDecision, visible_line};

/// Gets the permission for the first attempt.
pub(super) async fn approve<T, R>(
    tool: &T,
    request: &R,
    sandbox: &Prospect,
    ctx: &ToolCtx<'_>,
) -> Result<Permission, CodexErr>
where
    T: ToolRuntime<R>,
    R: Approvable + Sync,
{
    let config = &ctx.services.config;
    let requirement = request.approval_requirement(&Terms {
        approval: config.approval_policy,
        sandbox: ctx.sandbox_policy(),
        permissions: sandbox.permissions,
        availability: sandbox.availability,
    });
    for record in tool.describe(request, ctx) {
        ctx.record(&record)?;
    }
    let (reason, proposed_rule, bypass_sandbox) = match &requirement {
        ApprovalRequirement::Forbidden { reason } => {
            record(DecisionKind::Forbidden, tool.decided_by(request), 1, ctx)?;
            return Err(CodexErr::Forbidden { reason: reason.clone() });
        }
        ApprovalRequirement::Skip { .. } => (None, None, BypassSandbox::No),
        ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule } => {
            (Some(reason.clone()), proposed_rule.clone(), *bypass_sandbox)
        }
    };
    let Some(reason) = reason else {
        record(DecisionKind::Allowed, tool.decided_by(request), 1, ctx)?;
        return permitted(Permission::without_asking(&requirement));
    };
    let keys = request.approval_keys();
    let lasts = request.lasts(bypass_sandbox);
    let without_sandbox = bypass_sandbox == BypassSandbox::Yes;
    let remembered = match lasts {
        true => ctx.services.approvals().look_up(config.approval_policy, &keys),
        false => Remembered::Nothing,
    };
    if request.should_bypass_approval(config.approval_policy, remembered) {
        let yes = ReviewDecision::ApprovedForSession;
        record(DecisionKind::ApprovedForSession, DecidedBy::Cache, 1, ctx)?;
        return permitted(Permission::answered(&requirement, &yes));
    }
    if lasts && let Some(decision) = tool.answered_before(request, without_sandbox, ctx) {
        let kind = match decision.approves() {
            true => DecisionKind::Approved,
            false => DecisionKind::Denied,
        };
        record(kind, DecidedBy::Cache, 1, ctx)?;
        let earlier = AnsweredBy::Person(String::new());
        let yes = yes_or_error(Answer { decision, by: earlier }, reason)?;
        return permitted(Permission::answered(&requirement, &yes));
    }
    let approval = ApprovalCtx {
        reason: reason.clone(),
        proposed_rule: proposed_rule.as_ref().map(|rule| rule.prefix().to_vec()),
        denials: None,
        grant_offer: None,
        risk: None,
        without_sandbox,
        only_once: !lasts,
    };
    let answer = tool.start_approval_async(request, approval, ctx).await;
    record_answer(&answer, 1, ctx)?;
    let decision = yes_or_error(answer, reason)?;
    refuse_if_changed(request, &keys)?;
    if lasts {
        ctx.services.approvals().record(&decision, &keys);
    }
    if decision == ReviewDecision::ApprovedWithRule
        && let Some(rule) = &proposed_rule
    {
        ctx.services.keep_rule(rule, ctx.call_id).await;
    }
    permitted(Permission::answered(&requirement, &decision))
}

/// Records a decision.
fn record(
    decision: DecisionKind,
    by: DecidedBy,
    attempt: u32,
    ctx: &ToolCtx<'_>,
) -> Result<(), CodexErr> {
    let call_id = ctx.call_id.clone();
    ctx.record(&Record::Decided(Decision { call_id, decision, by, attempt, feedback: None }))
}

/// Records an answer to a question about an attempt.
pub(super) fn record_answer(
    answer: &Answer,
    attempt: u32,
    ctx: &ToolCtx<'_>,
) -> Result<(), CodexErr> {
    let (decision, feedback) = match &answer.decision {
        ReviewDecision::Approved => (DecisionKind::Approved, None),
        ReviewDecision::ApprovedForSession => (DecisionKind::ApprovedForSession, None),
        ReviewDecision::ApprovedWithRule => (DecisionKind::ApprovedWithRule, None),
        ReviewDecision::ApprovedWithGrant { .. } => (DecisionKind::ApprovedWithGrant, None),
        ReviewDecision::Denied { feedback } => (DecisionKind::Denied, feedback.clone()),
        ReviewDecision::Abort => (DecisionKind::Aborted, None),
    };
    let by = match &answer.by {
        AnsweredBy::Person(front_end) => DecidedBy::Person { front_end: front_end.clone() },
        AnsweredBy::Timeout => DecidedBy::Timeout,
        AnsweredBy::Cancelled => DecidedBy::CalledOff,
        AnsweredBy::Nobody => DecidedBy::Policy,
    };
    let call_id = ctx.call_id.clone();
    ctx.record(&Record::Decided(Decision { call_id, decision, by, attempt, feedback }))
}

/// Refuses to run what is no longer what a person was asked about: a command in the sandbox may have
/// written to the script while they thought about it.
pub(super) fn refuse_if_changed<R: Approvable>(
    request: &R,
    asked: &[ApprovalKey],
) -> Result<(), CodexErr> {
    let now = request.approval_keys();
    if now == asked {
        return Ok(());
    }
    let was: Vec<&Content> = asked.iter().flat_map(ran).collect();
    let changed = now.iter().flat_map(ran).find(|content| !was.contains(content));
    let what = match changed {
        Some(content) => visible_line(&content.file.display().to_string()),
        None => "a file that it runs".to_owned(),
    };
    let reason = format!(
        "{what} was changed while the question about it was open, so what was approved is not what \
         would run; make the call again to have it asked about as it is now"
    );
    Err(CodexErr::Forbidden { reason })
}

fn ran(key: &ApprovalKey) -> &[Content] {
    match key {
        ApprovalKey::Command { runs, .. } => runs,
        ApprovalKey::Patch { .. } => &[],
    }
}

fn permitted(permission: Option<Permission>) -> Result<Permission, CodexErr> {
    permission
        .ok_or_else(|| CodexErr::Forbidden { reason: "nobody permitted this command".to_owned() })
}

/// A yes, or what the call comes to without one.
pub(super) fn yes_or_error(answer: Answer, reason: String) -> Result<ReviewDecision, CodexErr> {
    match (answer.decision, answer.by) {
        (ReviewDecision::Denied { .. }, AnsweredBy::Timeout) => Err(CodexErr::ApprovalTimeout),
        (ReviewDecision::Denied { .. }, AnsweredBy::Nobody) => {
            Err(CodexErr::NobodyToAsk { reason })
        }
        (ReviewDecision::Denied { feedback }, _) => Err(CodexErr::ApprovalDenied { feedback }),
        (ReviewDecision::Abort, _) => Err(CodexErr::UserAborted),
        (yes, _) => Ok(yes),
    }
}
