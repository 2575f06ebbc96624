//! Tools and people that want a sandbox, or all of one, where there is none.

#![cfg(target_os = "linux")]

#[path = "../../cli/tests/scenarios/machine.rs"]
mod machine;

use sandgate_protocol::{
    CallId, CodexErr, Denials, SandboxPolicy, SandboxablePreference, ToolCall, ToolOutput,
    ToolPayload,
};
use sandgate_runtime::audit::Record;
use sandgate_runtime::{
    Answer, Approvable, ApprovalCtx, ApprovalKey, ApprovalRequirement, BypassSandbox,
    PartialEnforcement, Runtime, SandboxAttempt, Sandboxable, Session, SessionConfig, Terms,
    ToolCtx, ToolFuture, ToolHandler, ToolInvocation, ToolOrchestrator, ToolRuntime, ToolSpec,
};
use std::sync::Arc;

/// A tool that runs nothing, and that only in a sandbox.
struct Careful;

struct Nothing;

impl Approvable for Nothing {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        Vec::new()
    }

    fn approval_requirement(&self, _: &Terms<'_>) -> ApprovalRequirement {
        ApprovalRequirement::Skip { bypass_sandbox: BypassSandbox::No }
    }
}

impl Sandboxable<Nothing> for Careful {
    fn sandbox_preference(&self) -> SandboxablePreference {
        SandboxablePreference::Require
    }
}

impl ToolRuntime<Nothing> for Careful {
    type Output = ();

    async fn start_approval_async(
        &self,
        _: &Nothing,
        _: ApprovalCtx<'_>,
        _: &ToolCtx<'_>,
    ) -> Answer {
        unreachable!("nobody has to be asked")
    }

    fn describe(&self, _: &Nothing, _: &ToolCtx<'_>) -> Vec<Record> {
        Vec::new()
    }

    async fn run(&self, _: &Nothing, _: &SandboxAttempt, _: &ToolCtx<'_>) -> Result<(), CodexErr> {
        Ok(())
    }

    fn denial(&self, (): &()) -> Option<Denials> {
        None
    }
}

impl ToolHandler for Careful {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "careful".into(), description: String::new(), parameters: true.into() }
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            ToolOrchestrator.run(self, &Nothing, &invocation.ctx()).await?;
            Ok(ToolOutput::text("", true))
        })
    }
}

/// Calls a tool in a session of its own.
fn call(name: &str, policy: SandboxPolicy, partial: PartialEnforcement) -> Option<CodexErr> {
    let runtime = Arc::new(Runtime::start().unwrap());
    let workspace = tempfile::tempdir().unwrap();
    let mut config = SessionConfig::new(workspace.path().to_owned());
    config.own_env = std::env::vars_os().collect();
    config.sandbox_policy = policy;
    config.partial_enforcement = partial;
    config.tools = vec![Arc::new(Careful)];
    let session = Session::start(runtime, config).unwrap();
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let arguments = r#"{"command":["true"]}"#.to_owned();
    let call = ToolCall {
        call_id: CallId::new("call"),
        name: name.to_owned(),
        payload: ToolPayload::Function { arguments },
    };
    let requester = session.requester();
    let turn = requester.begin_turn();
    asynchronous.block_on(requester.call(vec![call], &turn)).remove(0).error
}

/// spec ERRORS.4: A tool that requires a sandbox is refused where there is none, and where the mode gives
/// it none, in words that say which; so is every command where the person wants all of a sandbox and
/// there is none.
#[test]
fn who_wants_a_sandbox_does_not_run_without() {
    use PartialEnforcement::{Accepted, Refused};
    if machine::has_full_sandbox() {
        assert_eq!(call("careful", SandboxPolicy::workspace_write(), Accepted), None);
    }
    let full_access = call("careful", SandboxPolicy::DangerFullAccess, Accepted);
    let reason = "this tool requires a sandbox, and the mode danger-full-access has none; use another \
                  mode";
    assert_eq!(full_access, Some(CodexErr::SandboxRequired { reason: reason.to_owned() }));
    machine::without_sandbox(|| {
        let refused = call("careful", SandboxPolicy::workspace_write(), Accepted).unwrap();
        assert_eq!(refused.name(), "sandbox_required");
        let said = refused.for_person();
        assert!(said.starts_with("A sandbox is required but unavailable: namespaces"), "{said}");
        let refused = call("shell", SandboxPolicy::workspace_write(), Refused).unwrap();
        assert_eq!(refused.name(), "sandbox_unavailable");
        let said = refused.for_person();
        assert!(said.starts_with("No sandbox is available on this machine: namesp"), "{said}");
    });
}

/// spec ERRORS.5: A command that cannot be confined as the policy says does not run, and least of all
/// without a sandbox.
#[test]
fn what_cannot_be_confined_does_not_run() {
    if !machine::has_full_sandbox() {
        return eprintln!("SKIPPED: this machine has no full sandbox");
    }
    let policy = SandboxPolicy::WorkspaceWrite {
        writable_roots: vec!["/var/tmp/there-is-no-such-directory/at-all".into()],
        network_access: sandgate_protocol::NetworkAccess::Restricted,
        exclude_tmpdir_env_var: false,
        exclude_slash_tmp: false,
    };
    let error = call("shell", policy, PartialEnforcement::Accepted).unwrap();
    assert_eq!(error.name(), "sandbox_transform_error");
    let said = error.for_person();
    let start = "The sandbox could not be set up, so the command was not run: ";
    assert!(said.starts_with(start) && said.contains("there-is-no-such-directory"), "{said}");
    assert!(!error.ends_turn());
}
