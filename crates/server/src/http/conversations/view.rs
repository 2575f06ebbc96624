//! A conversation, as clients see it.

use crate::live::{LiveConversation, first_line};
use jiff::Timestamp;
use sandgate_agent::rollout::{self, Found, Recorded};
use sandgate_protocol::{AskForApproval, ResponseItem, Role, SandboxPolicy, TokenUsage};
use serde::Serialize;
use utoipa::ToSchema;

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// What it is known by.
    id: String,
    /// Whether it is open.
    state: Condition,
    /// The first line of what the person said first.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Where it works.
    cwd: String,
    /// The model.
    model: String,
    /// Who serves it.
    provider: String,
    /// When a person is asked; unknown of one that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ApprovalPolicy>)]
    approval_policy: Option<AskForApproval>,
    /// What commands may touch; unknown of one that is not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxMode>,
    /// When it was begun, or opened again.
    #[schema(value_type = String, format = DateTime)]
    started: Timestamp,
    /// The number of its last event; 0 if it has none.
    last_event: u64,
    /// What it used of the model.
    usage: Usage,
    /// How many tokens fit into the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    /// What a client asked for when it was begun and did not get, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// How things are with a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConversationState)]
pub(crate) enum Condition {
    /// It waits for a turn.
    Idle,
    /// A turn is being taken.
    Working,
    /// It is only written down, and a turn opens it.
    Recorded,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Read by the model.
    input: u64,
    /// Written by it.
    output: u64,
    /// Both.
    total: u64,
}

/// When a person is asked.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only the document names it")]
pub(crate) enum ApprovalPolicy {
    Untrusted,
    OnFailure,
    OnRequest,
    Never,
}

/// What commands may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SandboxMode {
    /// Nothing.
    ReadOnly,
    /// What is in the workspace.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
    /// Something else confines them.
    ExternalSandbox,
}

impl ConversationView {
    pub(super) fn of(live: &LiveConversation) -> Self {
        let (about, working) = (&live.about, live.is_working());
        let facts = live.facts();
        Self {
            id: about.id.clone(),
            state: if working { Condition::Working } else { Condition::Idle },
            title: facts.title.clone(),
            cwd: about.cwd.to_string_lossy().into_owned(),
            model: about.model.clone(),
            provider: about.provider.clone(),
            approval_policy: Some(about.approval_policy),
            sandbox: Some((&about.sandbox).into()),
            started: about.started,
            last_event: live.events.progress().borrow().last,
            usage: facts.usage.into(),
            context_window: facts.context_window,
            notes: Vec::new(),
        }
    }

    pub(super) fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    pub(super) fn found(found: &Found) -> Self {
        let title = found.prompt.as_deref().map(first_line);
        Self::written_down(&found.meta, title, TokenUsage::default())
    }

    pub(super) fn recorded(recorded: &Recorded) -> Self {
        let of_user =
            |item: &&ResponseItem| matches!(item, ResponseItem::Message { role: Role::User, .. });
        let first = recorded.everything.iter().find(of_user).and_then(ResponseItem::text);
        Self::written_down(&recorded.meta, first.as_deref().map(first_line), recorded.used)
    }

    fn written_down(meta: &rollout::SessionMeta, title: Option<String>, usage: TokenUsage) -> Self {
        Self {
            id: meta.id.clone(),
            state: Condition::Recorded,
            title,
            cwd: meta.cwd.to_string_lossy().into_owned(),
            model: meta.model.clone(),
            provider: meta.provider.clone(),
            approval_policy: None,
            sandbox: None,
            started: meta.started,
            last_event: 0,
            usage: usage.into(),
            context_window: None,
            notes: Vec::new(),
        }
    }
}

impl From<&SandboxPolicy> for SandboxMode {
    fn from(policy: &SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::ReadOnly => Self::ReadOnly,
            SandboxPolicy::WorkspaceWrite { .. } => Self::WorkspaceWrite,
            SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            SandboxPolicy::ExternalSandbox { .. } => Self::ExternalSandbox,
        }
    }
}

impl From<TokenUsage> for Usage {
    fn from(usage: TokenUsage) -> Self {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        Self { input, output, total: usage.total() }
    }
}
