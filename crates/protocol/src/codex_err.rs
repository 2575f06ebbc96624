//! Why a tool call came to nothing, for the model, for the person and for the turn.

use crate::{FailureKind, visible};

/// A tool call that came to nothing. A command that ran and failed is not one: it has a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodexErr {
    /// A person said no.
    #[error("User denied approval for this command{}", with(feedback))]
    ApprovalDenied {
        /// What the person said beside it.
        feedback: Option<String>,
    },
    /// A person said no, and wants the work to stop.
    #[error("the turn was aborted by the user")]
    UserAborted,
    /// Nobody answered in the time that was given.
    #[error("nobody answered the approval request in time, so the command was not run")]
    ApprovalTimeout,
    /// A decision is needed and nobody can be asked.
    #[error("approval is needed, and nobody can be asked: {reason}")]
    NobodyToAsk {
        /// Why a person would have been asked.
        reason: String,
    },
    /// The policy or a rule forbids it.
    #[error("{reason}")]
    Forbidden {
        /// What forbids it, and what can be done instead.
        reason: String,
    },
    /// The tool or the person wants a sandbox, or all of one, that the session does not have.
    #[error("{reason}")]
    SandboxRequired {
        /// Who wants what, and what is missing.
        reason: String,
    },
    /// This machine has no sandbox, and the person wants nothing to run without one.
    #[error("no sandbox is available on this machine{}", because(missing))]
    SandboxUnavailable {
        /// What is missing, in a person's words.
        missing: Vec<String>,
    },
    /// The command could not be confined, so it was not run.
    #[error("the sandbox could not be set up, so the command was not run: {reason}")]
    SandboxTransform {
        /// What went wrong.
        reason: String,
    },
    /// There is no such tool.
    #[error("there is no tool called {name:?}{}", nearest_names(nearest))]
    ToolNotFound {
        /// What was asked for.
        name: String,
        /// Tools with names like it.
        nearest: Vec<String>,
    },
    /// The call's arguments are not what the tool takes.
    #[error("invalid arguments for {tool}: {reason}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },
    /// Another call of the session has the same id.
    #[error("the call {call_id} is still at work: give another call another id")]
    CallIdTaken {
        /// The id.
        call_id: String,
    },
    /// The tool could not do its work.
    #[error("{0}")]
    ToolExecutionFailed(String),
    /// The command was permitted, as far as that was asked, and could not be started.
    #[error("{reason}")]
    NotStarted {
        /// What kind of thing went wrong.
        kind: FailureKind,
        /// What went wrong.
        reason: String,
    },
    /// Nothing further can be run.
    #[error("{0}")]
    Fatal(String),
}

impl CodexErr {
    /// What the model is told.
    pub fn for_model(&self) -> String {
        self.to_string()
    }

    /// What the person is told: a sentence in which everything shows itself, whoever wrote its words.
    pub fn for_person(&self) -> String {
        let said = visible(&self.to_string());
        let mut letters = said.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        let sentence = first.unwrap_or_default() + letters.as_str();
        let ends = sentence.ends_with(['.', '?', '!', '\n']);
        if ends { sentence } else { sentence + "." }
    }

    /// Whether the model is not asked to go on after it.
    pub fn ends_turn(&self) -> bool {
        matches!(self, Self::UserAborted | Self::Fatal(_))
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ApprovalDenied { .. } => "approval_denied",
            Self::UserAborted => "user_aborted",
            Self::ApprovalTimeout => "approval_timeout",
            Self::NobodyToAsk { .. } => "nobody_to_ask",
            Self::Forbidden { .. } => "forbidden",
            Self::SandboxRequired { .. } => "sandbox_required",
            Self::SandboxUnavailable { .. } => "sandbox_unavailable",
            Self::SandboxTransform { .. } => "sandbox_transform_error",
            Self::ToolNotFound { .. } => "tool_not_found",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::CallIdTaken { .. } => "call_id_taken",
            Self::ToolExecutionFailed(_) | Self::NotStarted { .. } => "tool_execution_failed",
            Self::Fatal(_) => "fatal",
        }
    }
}

impl CodexErr {
    /// What the model is told when this is why a command that the sandbox blocked was not tried again.
    /// The result of the one attempt stands, and this follows it.
    pub fn after_denial(&self) -> Option<String> {
        let asked = "Whether it may run again with what it lacked";
        match self {
            Self::ApprovalDenied { feedback: None } => Some(format!("{asked}: the user said no.")),
            Self::ApprovalDenied { feedback: Some(feedback) } => {
                Some(format!("{asked}: the user said no, and says: {feedback}"))
            }
            Self::ApprovalTimeout => Some(format!("{asked}: nobody answered in time.")),
            Self::NobodyToAsk { .. } => Some(format!("{asked}: nobody could be asked.")),
            _ => None,
        }
    }
}

fn because(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!(": {}", missing.join("; ")) }
}

fn with(feedback: &Option<String>) -> String {
    match feedback {
        Some(feedback) => format!(", and says: {feedback}"),
        None => String::new(),
    }
}

fn nearest_names(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
