//! A session: one person's policies, one line of events, and the tools that a model may call in it.
//!
//! Whoever runs a model is handed a [`Requester`], which can call tools and nothing more. Answers to
//! questions come through an [`Approver`], which is handed to the front end that the person sits at.

mod config;
mod services;
mod turn;

pub use config::SessionConfig;
pub(crate) use services::Services;
pub use turn::Turn;

use crate::approval::Approver;
use crate::error::RuntimeError;
use crate::events::{Delivery, Events};
use crate::orchestrator::{Attempted, Recorded, ToolCtx};
use crate::runtime::Runtime;
use crate::tools::{AskedCommand, ToolResult, ToolSpec, route, run_command};
use sandgate_protocol::{CallId, CodexErr, Enforcement, Event, ExecToolCallOutput, ToolCall};
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;

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
    /// Begins a session.
    ///
    /// # Errors
    /// When its workspace cannot be used.
    pub fn start(runtime: Arc<Runtime>, config: SessionConfig) -> Result<Self, RuntimeError> {
        Ok(Self { services: Arc::new(Services::new(runtime, config)?) })
    }

    /// The right to call its tools.
    pub fn requester(&self) -> Requester {
        Requester { services: Arc::clone(&self.services) }
    }

    /// The right to answer its questions, for a front end of this name that a person sits at.
    pub fn approver(&self, front_end: &str) -> Approver {
        self.services.broker.approver(front_end)
    }

    /// Listens to what happens from now on.
    pub async fn events(&self, delivery: Delivery) -> Events {
        self.services.events.listen(delivery).await
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
        let (services, tool_name) = (&*self.services, "shell");
        let recorded = &Recorded::default();
        let ctx = ToolCtx { services, turn, call_id, tool_name, recorded };
        let began = Instant::now();
        let (session, id) = (&services.span, call_id.as_str());
        let span = tracing::info_span!(parent: session, "call", call_id = ?id, tool = tool_name);
        let attempted = run_command(asked, &ctx).instrument(span).await;
        let success = attempted.as_ref().is_ok_and(|one| one.output.executed.output.exit_code == 0);
        services.telemetry.called(tool_name, success, began.elapsed());
        Ok(attempted?.map(|output| output.executed.output))
    }

    /// Makes the calls of one response of a model, and gives their results back in the same order.
    pub async fn call(&self, calls: Vec<ToolCall>, turn: &Turn) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        self.call_each(calls, turn, |result| results.push(result)).await;
        results
    }

    /// The same, with each result told as soon as it and all before it are there.
    pub async fn call_each(&self, calls: Vec<ToolCall>, turn: &Turn, tell: impl FnMut(ToolResult)) {
        let session = &self.services.span;
        let span = tracing::info_span!(parent: session, "turn", calls = calls.len());
        route(&self.services, &calls, turn, tell).instrument(span).await;
    }
}
