//! One attempt: under which permission, and in which sandbox.

use super::{FirstAttempt, ToolCtx, ToolRuntime};
use sandgate_policy::{BypassSandbox, SandboxAvailability};
use sandgate_policy::{Extras, Grant, Permission};
use sandgate_protocol::{
    CodexErr, ExecParams, GrantedToRun, SandboxPermissions, SandboxPolicy, SandboxablePreference,
};
use sandgate_sandbox::{SandboxRefusal, Selected};
use std::path::PathBuf;

/// One attempt at a request. Only the orchestrator makes one, from a permission.
#[derive(Debug, Clone)]
pub struct SandboxAttempt {
    /// The first or the second.
    number: u32,
    permission: Permission,
    policy: SandboxPolicy,
    workspace: PathBuf,
}

/// A request that was run, and as which attempt.
#[derive(Debug, Clone)]
pub struct Attempted<O> {
    /// What came of it.
    pub output: O,
    /// From which attempt it is, counted from 1.
    pub attempt: u32,
    /// What a person opened to it beyond the policy.
    pub granted: Extras,
    /// Whether it ran without the sandbox that the policy asks for.
    pub without_sandbox: bool,
    /// Why there was no other attempt although the sandbox blocked something, where somebody was to
    /// be asked.
    pub not_again: Option<CodexErr>,
}

impl<O> Attempted<O> {
    /// The same with another output.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> Attempted<P> {
        let Self { output, attempt, granted, without_sandbox, not_again } = self;
        Attempted { output: change(output), attempt, granted, without_sandbox, not_again }
    }

    /// What a person opened to it, as a program that reads results is told.
    pub fn granted(&self) -> GrantedToRun {
        let Extras { writable, sockets, network } = self.granted.clone();
        GrantedToRun { writable, sockets, network, without_sandbox: self.without_sandbox }
    }
}

/// What would confine the first attempt at a request, as far as it must be confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prospect {
    pub(super) availability: SandboxAvailability,
    /// Whether the request asks to go without.
    pub(super) permissions: SandboxPermissions,
}

/// Finds out whether a request can be confined at all.
pub(super) fn select<T: ToolRuntime<R>, R>(
    tool: &T,
    request: &R,
    ctx: &ToolCtx<'_>,
) -> Result<Prospect, CodexErr> {
    let permissions = match tool.sandbox_mode_for_first_attempt(request) {
        FirstAttempt::NoOverride => SandboxPermissions::UseDefault,
        FirstAttempt::BypassSandbox => SandboxPermissions::RequireEscalated,
    };
    let prospect = |availability| Ok(Prospect { availability, permissions });
    let config = &ctx.services.config;
    let sandbox = &ctx.services.runtime.sandbox;
    let preference = tool.sandbox_preference();
    match sandbox.select_initial(ctx.sandbox_policy(), preference, config.partial_enforcement) {
        Selected::Confined(_) | Selected::Unconfined(_) => prospect(SandboxAvailability::Available),
        Selected::NeedsApproval(_) => prospect(SandboxAvailability::Unavailable),
        Selected::Refused(SandboxRefusal::Unavailable { missing })
            if preference != SandboxablePreference::Require =>
        {
            Err(CodexErr::SandboxUnavailable { missing })
        }
        Selected::Refused(refusal) => {
            Err(CodexErr::SandboxRequired { reason: refusal.to_string() })
        }
    }
}

impl SandboxAttempt {
    pub(super) fn first(permission: Permission, ctx: &ToolCtx<'_>) -> Self {
        // What was opened to the session's commands was not opened to whoever has a policy of its own.
        let permission = match ctx.own_policy {
            None => permission.with_session_extras(&ctx.services.opened()),
            Some(_) => permission,
        };
        Self {
            number: 1,
            permission,
            policy: ctx.sandbox_policy().clone(),
            workspace: ctx.services.config.workspace.clone(),
        }
    }

    pub(super) fn again(&self, permission: Permission) -> Self {
        Self { number: self.number + 1, permission, ..self.clone() }
    }

    /// Which attempt it is, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Under which permission.
    pub fn permission(&self) -> &Permission {
        &self.permission
    }

    /// Binds its permission to a command.
    pub fn grant(&self, params: ExecParams) -> Grant {
        self.permission.grant(params, self.policy.clone(), self.workspace.clone())
    }

    /// What came of it.
    pub(super) fn ended<O>(&self, output: O) -> Attempted<O> {
        Attempted {
            output,
            attempt: self.number,
            granted: self.permission.extras().clone(),
            without_sandbox: self.permission.bypass_sandbox() == BypassSandbox::Yes,
            not_again: None,
        }
    }
}
