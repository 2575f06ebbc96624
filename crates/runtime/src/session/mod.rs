//! A session: one person's policies, one line of events, and the tools that a model may call in it.
//!
//! Whoever runs a model is handed a [`Requester`], which can call tools and nothing more. Answers to
//! questions come through an [`Approver`], which is handed to the front end that the person sits at.

mod config;
mod recovery;
mod services;
mod turn;

pub use config::SessionConfig;
pub(crate) use services::Services;
pub use turn::Turn;

use crate::approval::Approver;
use crate::error::RuntimeError;
use crate::events::{Delivery, Events};
use crate::orchestrator::{Attempted, ToolCtx};
use crate::runtime::Runtime;
use crate::tools::{AskedCommand, ToolResult, ToolSpec, route, run_command};
use sandgate_protocol::{CallId, CodexErr, Enforcement, Event, ExecToolCallOutput, ToolCall};
use std::sync::Arc;

/// A session.
pub struct Session {
    services: Arc<Services>,
}

/// The right to call a session's tools. It approves nothing.
#[derive(Clone)]
pub struct Requester {
    services: Arc<Services>,
}

impl Session {
    /// Begins a session. Patches that a crash broke off are settled first.
    ///
    /// # Errors
    /// When its workspace cannot be used.
    pub fn start(runtime: Arc<Runtime>, config: SessionConfig) -> Result<Self, RuntimeError> {
        Ok(Self { services: Services::new(runtime, config)? })
    }

    /// The right to call its tools.
    pub fn requester(&self) -> Requester {
        Requester { services: Arc::clone(&self.services) }
    }

    /// The right to answer its questions, for a front end of this name that a person sits at.
    pub fn approver(&self, front_end: &str) -> Approver {
        self.services.broker.approver(front_end)
    }

    /// Listens to what happens from now on. Who listens first also hears of what was settled when the
    /// session began.
    pub async fn events(&self, delivery: Delivery) -> Events {
        let events = self.services.events.listen(delivery).await;
        for message in self.services.take_unheard() {
            self.services.warn(None, message).await;
        }
        events
    }

    /// What this machine's sandbox can enforce, told to everybody who listens.
    pub async fn tell_status(&self) -> Enforcement {
        let status = self.services.runtime.sandbox.status();
        self.services.events.tell(&Event::SandboxStatus(status.clone())).await;
        status
    }

    /// Begins a turn.
    pub fn begin_turn(&self) -> Turn {
        Turn::new(&self.services)
    }
}

impl Requester {
    /// The tools that can be called.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.services.registry.specs()
    }

    /// Begins a turn.
    pub fn begin_turn(&self) -> Turn {
        Turn::new(&self.services)
    }

    /// Ends a turn: if it changed anything in the workspace, everybody is told what. A turn that is only
    /// dropped tells nothing.
    pub async fn end_turn(&self, turn: Turn) {
        let diff = turn.diff().await;
        if !diff.unified_diff.is_empty() || !diff.not_shown.is_empty() {
            self.services.events.tell(&Event::TurnDiff(diff)).await;
        }
    }

    /// Takes one command the whole way, for a front end that has it as a command and not as a call.
    ///
    /// # Errors
    /// When it came to nothing.
    pub async fn run_command(
        &self,
        call_id: &CallId,
        asked: AskedCommand,
        turn: &Turn,
    ) -> Result<Attempted<ExecToolCallOutput>, CodexErr> {
        let ctx = ToolCtx { services: &self.services, turn, call_id, tool_name: "shell" };
        let attempted = run_command(asked, &ctx).await?;
        Ok(attempted.map(|output| output.executed.output))
    }

    /// Makes the calls of one response of a model, and gives their results back in the same order.
    pub async fn call(&self, calls: Vec<ToolCall>, turn: &Turn) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        self.call_each(calls, turn, |result| results.push(result)).await;
        results
    }

    /// The same, with each result told as soon as it and all before it are there.
    pub async fn call_each(&self, calls: Vec<ToolCall>, turn: &Turn, tell: impl FnMut(ToolResult)) {
        route(&self.services, &calls, turn, tell).await;
    }
}
