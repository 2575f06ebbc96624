//! `apply_patch`: files changed by a patch, all of them or none.

use super::registry::{ToolHandler, ToolInvocation, ToolSpec};
use super::{parse, schema};
use crate::approval::{Answer, Question};
use crate::audit::{CallAsked, ChangeKind, Judged, PatchApplied, PatchedFile, Record, RiskClass};
use crate::orchestrator::{
    ApprovalCtx, SandboxAttempt, Sandboxable, ToolCtx, ToolOrchestrator, ToolRuntime,
};
use crate::resolve::directory;
use crate::session::Services;
use sandgate_patch::{Disk, FileChange, Outside, Patch, PatchText, Plan, apply};
use sandgate_policy::{
    Approvable, ApprovalKey, ApprovalRequirement, ApprovalStore, Grantor, PatchReach,
    SandboxAvailability, Terms, patch_requirement,
};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApplyPatchToolCallParams, AskForApproval, CodexErr, Denials, Event,
    PatchApplyBegin, PatchApplyEnd, PatchChange, PatchChangeKind, SandboxPermissions,
    SandboxablePreference, ToolOutput, ToolPayload,
};
use std::path::{Path, PathBuf};
use std::pin::Pin;

/// `apply_patch`.
pub(crate) struct ApplyPatchHandler;

/// Applies patches.
struct PatchTool;

/// A patch that was read and planned.
struct PatchRequest {
    plan: Plan,
    /// What it writes to and the session may not.
    outside: Vec<Outside>,
}

const DESCRIPTION: &str = "\
Changes files by a patch: all of them or none. The patch is text like this, with paths relative to the \
working directory, three lines of context around each change, and @@ lines that name the function or \
class where context alone is not enough:

*** Begin Patch
*** Add File: path/new.txt
+a line
*** Update File: path/old.py
*** Move to: path/renamed.py
@@ def greet():
     name = ask()
-    print(\"Hi\")
+    print(f\"Hello, {name}\")
*** Delete File: path/gone.txt
*** End Patch";

impl ToolHandler for ApplyPatchHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "apply_patch".to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: schema::<ApplyPatchToolCallParams>(),
        }
    }

    fn matches_kind(&self, payload: &ToolPayload) -> bool {
        matches!(payload, ToolPayload::Function { .. } | ToolPayload::Custom { .. })
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        true
    }

    fn handle<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, CodexErr>> + Send + 'a>> {
        Box::pin(async move {
            let text = match invocation.payload {
                ToolPayload::Function { arguments } => {
                    parse::<ApplyPatchToolCallParams>(invocation.tool_name, arguments)?.input
                }
                ToolPayload::Custom { input } => input.clone(),
                _ => return Err(super::wrong_kind(invocation.tool_name)),
            };
            let patch = PatchText { text, directory: None };
            apply_text(&patch, &invocation.turn.cwd, &invocation.ctx()).await
        })
    }
}

/// Takes a patch the whole way. Its paths start at `cwd`, or at the directory that it changes to.
pub(super) async fn apply_text(
    patch: &PatchText,
    cwd: &Path,
    ctx: &ToolCtx<'_>,
) -> Result<ToolOutput, CodexErr> {
    let request = PatchRequest::new(patch, cwd, ctx.services)?;
    if request.plan.changes.is_empty() {
        return Ok(ToolOutput::text("Nothing to do: the files are like that already.\n", true));
    }
    let applied = ToolOrchestrator.run(&PatchTool, &request, ctx).await?;
    Ok(ToolOutput::text(format!("Done.\n{}", applied.output), true))
}

/// The same for a front end: what became of each file. Nothing became of those that were like that
/// already.
pub(crate) async fn apply_patch(
    text: &str,
    ctx: &ToolCtx<'_>,
) -> Result<Vec<PatchedFile>, CodexErr> {
    let patch = PatchText { text: text.to_owned(), directory: None };
    let request = PatchRequest::new(&patch, &ctx.turn.cwd, ctx.services)?;
    if !request.plan.changes.is_empty() {
        ToolOrchestrator.run(&PatchTool, &request, ctx).await?;
    }
    Ok(request.files())
}

/// What a patch would do, and what would have to happen first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPatch {
    /// What would become of each file; empty if they are all like that already.
    pub files: Vec<PatchedFile>,
    /// What would have to happen first.
    pub approval: PatchApproval,
}

/// What must happen before a patch is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchApproval {
    /// Nothing.
    NotNeeded,
    /// A person is asked.
    Needed {
        /// Why.
        reason: String,
    },
    /// It is not applied at all.
    Forbidden {
        /// Why not.
        reason: String,
    },
}

/// Says what a patch would do, and does nothing.
pub(crate) fn check_patch(
    text: &str,
    cwd: &Path,
    services: &Services,
) -> Result<CheckedPatch, CodexErr> {
    let patch = PatchText { text: text.to_owned(), directory: None };
    let request = PatchRequest::new(&patch, cwd, services)?;
    let requirement = request.approval_requirement(&Terms {
        approval: services.config.approval_policy,
        sandbox: &services.config.sandbox_policy,
        permissions: SandboxPermissions::UseDefault,
        // Nothing of ours confines what this process does itself.
        availability: SandboxAvailability::Unavailable,
    });
    let approval = match requirement {
        _ if request.plan.changes.is_empty() => PatchApproval::NotNeeded,
        ApprovalRequirement::Skip { .. } => PatchApproval::NotNeeded,
        ApprovalRequirement::NeedsApproval { reason, .. } => PatchApproval::Needed { reason },
        ApprovalRequirement::Forbidden { reason } => PatchApproval::Forbidden { reason },
    };
    Ok(CheckedPatch { files: request.files(), approval })
}

impl PatchRequest {
    /// Reads a patch and plans it for the files as they are.
    fn new(patch: &PatchText, cwd: &Path, services: &Services) -> Result<Self, CodexErr> {
        let failed = |error: String| CodexErr::ToolExecutionFailed(error);
        let base = match &patch.directory {
            Some(directory) => cwd.join(directory),
            None => cwd.to_owned(),
        };
        let base = directory(&base).map_err(|error| failed(error.to_string()))?;
        let wrong = |error: String| CodexErr::InvalidArguments {
            tool: "apply_patch".to_owned(),
            reason: error,
        };
        let parsed: Patch = patch.text.parse().map_err(|error| wrong(format!("{error}")))?;
        let plan = Plan::of(&parsed, &base, &Disk::default()).map_err(|e| failed(e.to_string()))?;
        let outside = plan.check(&services.patch_roots(Vec::new()));
        Ok(Self { plan, outside })
    }

    fn files(&self) -> Vec<PatchedFile> {
        self.plan.changes.iter().map(patched).collect()
    }

    /// What it writes to and may not, as a person who decides must see it: all of it.
    fn outside_in_words(&self) -> String {
        let listed: Vec<String> = self.outside.iter().map(ToString::to_string).collect();
        listed.join(", ")
    }

    /// The same where nobody decides by it.
    fn outside_in_few_words(&self) -> String {
        const MOST: usize = 5;
        let mut listed: Vec<String> =
            self.outside.iter().take(MOST).map(ToString::to_string).collect();
        if self.outside.len() > MOST {
            listed.push(format!("{} more", self.outside.len() - MOST));
        }
        listed.join(", ")
    }

    fn changes(&self) -> Vec<PatchChange> {
        let base = &self.plan.base;
        self.plan
            .changes
            .iter()
            .map(|change| PatchChange {
                path: change.path().to_owned(),
                kind: kind(change),
                moved_to: moved_to(change).map(Path::to_owned),
                diff: change.diff(base),
            })
            .collect()
    }

    /// The directory that a yes for the session would open: the one that all the files outside lie in,
    /// if the person would find nothing in it that they did not think of.
    fn grant_root(&self, approvals: &ApprovalStore) -> Option<PathBuf> {
        let mut parents = self.outside.iter().map(|outside| outside.path.parent());
        let first = parents.next()??;
        let is_offered = parents.all(|parent| parent == Some(first))
            && approvals.can_remember(&self.approval_keys())
            && approvals.check_root(first).is_ok();
        is_offered.then(|| first.to_owned())
    }
}

fn kind(change: &FileChange) -> PatchChangeKind {
    match change {
        FileChange::Add { .. } => PatchChangeKind::Add,
        FileChange::Delete { .. } => PatchChangeKind::Delete,
        FileChange::Update { .. } => PatchChangeKind::Update,
    }
}

fn moved_to(change: &FileChange) -> Option<&Path> {
    match change {
        FileChange::Update { move_to, .. } => move_to.as_deref(),
        FileChange::Add { .. } | FileChange::Delete { .. } => None,
    }
}

impl Approvable for PatchRequest {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        let written = self.plan.changes.iter().flat_map(FileChange::written);
        written.map(ApprovalKey::patch).collect()
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        let reach = match self.outside.is_empty() {
            true => PatchReach::Inside,
            false => PatchReach::Outside,
        };
        let outside = match terms.approval {
            AskForApproval::Never => self.outside_in_few_words(),
            AskForApproval::UnlessTrusted
            | AskForApproval::OnFailure
            | AskForApproval::OnRequest => self.outside_in_words(),
        };
        patch_requirement(reach, &outside, terms)
    }
}

impl Sandboxable<PatchRequest> for PatchTool {
    /// It is done in this process, which keeps to the roots by itself.
    fn sandbox_preference(&self) -> SandboxablePreference {
        SandboxablePreference::Forbid
    }

    fn escalate_on_failure(&self) -> bool {
        false
    }
}

impl ToolRuntime<PatchRequest> for PatchTool {
    type Output = String;

    async fn start_approval_async(
        &self,
        request: &PatchRequest,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        let (grant_root, only_once) = {
            let approvals = ctx.services.approvals();
            let only_once = !approvals.can_remember(&request.approval_keys());
            (request.grant_root(&approvals), only_once)
        };
        let question = ApplyPatchApprovalRequest {
            approval_id: ctx.next_approval_id(),
            call_id: ctx.call_id.clone(),
            changes: request.changes(),
            reason: sandgate_protocol::visible(&approval.reason),
            grant_root,
            only_once,
            agent: None,
        };
        let root = question.grant_root.clone();
        let answer = ctx.ask(Question::Patch(Box::new(question))).await;
        if answer.decision == sandgate_protocol::ReviewDecision::ApprovedForSession
            && let Some(root) = root
        {
            // What cannot be opened is asked about again.
            let _ = ctx.services.approvals().open_to_patches(&root);
        }
        answer
    }

    fn describe(&self, request: &PatchRequest, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let call_id = || ctx.call_id.clone();
        let asked = CallAsked {
            call_id: call_id(),
            front_end: ctx.services.config.front_end.clone(),
            tool: "apply_patch".to_owned(),
            argv: request.plan.summary().lines().map(str::to_owned).collect(),
            cwd: request.plan.base.to_string_lossy().into_owned(),
            sandbox_permissions: Default::default(),
            justification: None,
            agent: ctx.services.agent(),
        };
        let outside = Some(request.outside_in_few_words()).filter(|words| !words.is_empty());
        let judged = Judged {
            call_id: call_id(),
            class: RiskClass::Unknown,
            reason: outside,
            rules: Vec::new(),
        };
        vec![Record::CallAsked(asked), Record::Judged(judged)]
    }

    async fn run(
        &self,
        request: &PatchRequest,
        attempt: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<String, CodexErr> {
        let services = ctx.services;
        let call_id = || ctx.call_id.clone();
        let auto_approved = attempt.permission().grantor() == Grantor::Policy;
        let Some(journals) = services.journals() else {
            let text = "there is no place for what a crash would need; set HOME or CODEX_HOME";
            return Err(CodexErr::ToolExecutionFailed(text.to_owned()));
        };
        let changes = request.changes();
        let begin = PatchApplyBegin { call_id: call_id(), auto_approved, changes };
        services.events.tell(&Event::PatchApplyBegin(begin)).await;

        let approved = match auto_approved {
            true => Vec::new(),
            false => request.outside.iter().map(|outside| outside.path.clone()).collect(),
        };
        ctx.turn.changes.before_patch(&request.plan).await;
        let (plan, roots) = (request.plan.clone(), services.patch_roots(approved));
        let applying = tokio::task::spawn_blocking(move || apply(&plan, &roots, &journals));
        let result = match applying.await {
            Ok(Ok(applied)) => {
                for message in services.note_recovered(&applied.recovered) {
                    services.warn(Some(call_id()), message).await;
                }
                Ok(request.plan.summary())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(format!("it was cut off: {error}")),
        };
        let (success, message) = match &result {
            Ok(summary) => (true, summary.clone()),
            Err(error) => (false, error.clone()),
        };
        ctx.record(&Record::PatchApplied(PatchApplied {
            call_id: call_id(),
            files: request.files(),
            error: result.as_ref().err().cloned(),
        }))?;
        let end = PatchApplyEnd { call_id: call_id(), success, message };
        services.events.tell(&Event::PatchApplyEnd(end)).await;
        result.map_err(CodexErr::ToolExecutionFailed)
    }

    fn denial(&self, _: &String) -> Option<Denials> {
        None
    }
}

fn patched(change: &FileChange) -> PatchedFile {
    let counts = change.counts();
    PatchedFile {
        path: change.path().to_string_lossy().into_owned(),
        change: match kind(change) {
            PatchChangeKind::Add => ChangeKind::Added,
            PatchChangeKind::Delete => ChangeKind::Deleted,
            PatchChangeKind::Update => ChangeKind::Updated,
        },
        added_lines: counts.added as u64,
        removed_lines: counts.removed as u64,
        moved_to: moved_to(change).map(|path| path.to_string_lossy().into_owned()),
    }
}
