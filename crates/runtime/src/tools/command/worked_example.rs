//! One search, looked at between any two stages of its way.
//!
//! The tool here has the name of `shell_command` and takes its place, so that it is called like it; it
//! then goes the same way by hand, and stops after each step.

use super::*;
use crate::runtime::Runtime;
use crate::session::{Session, SessionConfig};
use crate::tools::shell::{ShellCommandHandler, read_shell_command};
use crate::tools::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec, parse};
use sandgate_policy::{BypassSandbox, Permission, SandboxAvailability};
use sandgate_process::{Login, Shell, ShellType, Stdin};
use sandgate_protocol::{
    AskForApproval, CallId, SandboxPolicy, SandboxablePreference, ShellCommandToolCallParams,
    ToolCall, ToolOutput, ToolPayload,
};
use sandgate_sandbox::{ExecEnv, PartialEnforcement, Selected};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the files are searched for: a word that must not stand in our own.
fn word() -> String {
    ["TO", "DO"].concat()
}

fn script() -> String {
    format!("grep -r '{}' src/", word())
}

fn found() -> String {
    format!("src/main.rs:    // {}: refactor this\n", word())
}

/// Goes the way step by step, and notes the steps that it took.
struct StepByStep {
    shell: Shell,
    workspace: PathBuf,
    taken: Mutex<Vec<&'static str>>,
}

impl ToolHandler for StepByStep {
    fn spec(&self) -> ToolSpec {
        ShellCommandHandler.spec()
    }

    fn is_mutating(&self, invocation: &ToolInvocation<'_>) -> bool {
        ShellCommandHandler.is_mutating(invocation)
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(self.take_all_steps(invocation))
    }
}

impl StepByStep {
    fn step(&self, name: &'static str) {
        self.taken.lock().unwrap().push(name);
    }

    async fn take_all_steps(&self, invocation: ToolInvocation<'_>) -> Result<ToolOutput, CodexErr> {
        let ctx = invocation.ctx();
        let asked = self.dispatch(&invocation)?;
        let words = self.translate(&asked);
        let request = self.build_params(asked, &words, &ctx)?;
        let permission = self.approve(&request);
        self.select(&request, &ctx);
        let env = self.transform(&request, &permission, &ctx);
        let executed = self.spawn_and_collect(&env, &ctx).await;
        Ok(self.format(&executed))
    }

    /// 1. The arguments are read strictly, and what they leave out has its default.
    fn dispatch(&self, invocation: &ToolInvocation<'_>) -> Result<AskedCommand, CodexErr> {
        let ToolPayload::Function { arguments } = invocation.payload else { panic!("no function") };
        let params: ShellCommandToolCallParams = parse("shell_command", arguments)?;
        let expected = ShellCommandToolCallParams {
            command: script(),
            timeout_ms: Some(5000),
            ..ShellCommandToolCallParams::default()
        };
        assert_eq!(params, expected);
        assert!(!self.is_mutating(invocation), "a search changes nothing");
        self.step("dispatch");
        read_shell_command(invocation)
    }

    /// 2. A script becomes the words that start the session's shell, as at login.
    fn translate(&self, asked: &AskedCommand) -> Vec<String> {
        let CommandLine::Script { text, shell, login } = &asked.command else {
            panic!("no script")
        };
        assert_eq!((text.as_str(), shell, *login), (script().as_str(), &None, Login::Yes));
        let words = self.shell.derive_exec_args(text, *login);
        let path = self.shell.shell_path().to_str().unwrap();
        assert_eq!(words, [path, "-lc", &script()]);
        self.step("translate");
        words
    }

    /// 3. The command with its directory, limit and environment, all of it looked up.
    fn build_params(
        &self,
        asked: AskedCommand,
        words: &[String],
        ctx: &ToolCtx<'_>,
    ) -> Result<ShellRequest, CodexErr> {
        let request = ShellRequest::new(asked, ctx)?;
        let params = &request.params;
        assert_eq!(params.command, words);
        assert_eq!(params.program, self.shell.shell_path());
        assert_eq!(params.cwd, self.workspace);
        assert_eq!(params.expiration, ExecExpiration::Timeout(Duration::from_secs(5)));
        assert_eq!(params.sandbox_permissions, SandboxPermissions::UseDefault);
        assert_eq!(params.env.get(OsStr::new("HOME")), Some(&self.workspace.clone().into()));
        assert!(params.env.contains_key(OsStr::new("PATH")));
        assert!(!params.env.contains_key(OsStr::new("EXAMPLE_API_KEY")), "secrets stay out");
        self.step("params");
        Ok(request)
    }

    /// 4. grep is known to be safe, so nobody is asked, and it stays in the sandbox.
    fn approve(&self, request: &ShellRequest) -> Permission {
        assert_eq!(request.judgement.class, Class::Safe);
        let requirement = request.approval_requirement(&Terms {
            approval: AskForApproval::OnRequest,
            sandbox: &SandboxPolicy::workspace_write(),
            permissions: SandboxPermissions::UseDefault,
            availability: SandboxAvailability::Available,
        });
        assert_eq!(requirement, ApprovalRequirement::Skip { bypass_sandbox: BypassSandbox::No });
        self.step("approval");
        Permission::without_asking(&requirement).unwrap()
    }

    /// 5. The first attempt is as the policy says, in this system's sandbox.
    fn select(&self, request: &ShellRequest, ctx: &ToolCtx<'_>) {
        let first = CommandTool.sandbox_mode_for_first_attempt(request);
        assert_eq!(first, FirstAttempt::NoOverride);
        let preference = Sandboxable::<ShellRequest>::sandbox_preference(&CommandTool);
        assert_eq!(preference, SandboxablePreference::Auto);
        let selected = ctx.services.runtime.sandbox.select_initial(
            &SandboxPolicy::workspace_write(),
            preference,
            PartialEnforcement::Accepted,
        );
        assert_eq!(selected, Selected::Confined(SandboxType::LinuxSeccomp));
        self.step("selection");
    }

    /// 6. The words stay as they are, because here a cage is entered and no program put before them; two
    ///    variables tell the command of it.
    fn transform(
        &self,
        request: &ShellRequest,
        permission: &Permission,
        ctx: &ToolCtx<'_>,
    ) -> ExecEnv {
        let policy = SandboxPolicy::workspace_write();
        let grant = permission.grant(request.params.clone(), policy, self.workspace.clone());
        let env = ctx.services.runtime.sandbox.transform(grant).unwrap();
        assert_eq!(env.command(), request.params.command);
        assert_eq!(env.cwd(), self.workspace);
        assert_eq!(env.sandbox(), SandboxType::LinuxSeccomp);
        let variable =
            |name: &str| env.env().get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(variable("CODEX_SANDBOX"), Some("linux"));
        assert_eq!(variable("CODEX_SANDBOX_NETWORK_DISABLED"), Some("1"));
        let added = env.env().len() - request.params.env.len();
        assert_eq!(added, 2, "nothing else was added");
        self.step("transform");
        env
    }

    /// 7 and 8. It reads nothing, and what it writes is collected until it ends.
    async fn spawn_and_collect(&self, env: &ExecEnv, ctx: &ToolCtx<'_>) -> Executed {
        assert_eq!(Stdin::from(CommandInput::Nothing), Stdin::Null);
        let mut report = Report::new(ctx.call_id.clone(), ctx.services);
        let options = ExecuteOptions::default();
        let spawner = &ctx.services.runtime.spawner;
        let executed = execute(spawner, env, options, ctx.turn.stop(), &mut report).await.unwrap();
        self.step("spawn");
        executed
    }

    /// 9. What it left, and what the model is told: its bare output.
    fn format(&self, executed: &Executed) -> ToolOutput {
        let output = &executed.output;
        assert_eq!((output.exit_code, output.timed_out), (0, false));
        assert_eq!((output.stdout.text.as_str(), output.stderr.text.as_str()), (&*found(), ""));
        assert_eq!(output.aggregated_output.text, found());
        assert!(output.denials.is_empty());
        let format = sandgate_process::ModelFormat::default();
        let told = format.format(output, &executed.raw.aggregated);
        self.step("format");
        ToolOutput::text(told, true)
    }
}

fn session(shell: &str, tool: Option<Arc<StepByStep>>, workspace: &Path) -> Session {
    let runtime = Runtime::start().unwrap().with_shell(shell).unwrap();
    let mut config = SessionConfig::new(workspace.to_owned());
    config.own_env = ["PATH"].map(|name| (name.into(), std::env::var_os(name).unwrap())).into();
    config.own_env.insert("HOME".into(), workspace.into());
    config.own_env.insert("EXAMPLE_API_KEY".into(), "secret".into());
    config.tools = tool.into_iter().map(|tool| tool as Arc<dyn ToolHandler>).collect();
    Session::start(Arc::new(runtime), config).unwrap()
}

async fn called(session: &Session) -> crate::ToolResult {
    let arguments = serde_json::json!({"command": script(), "timeout_ms": 5000}).to_string();
    let call = ToolCall {
        call_id: CallId::new("call_abc123"),
        name: "shell_command".to_owned(),
        payload: ToolPayload::Function { arguments },
    };
    let requester = session.requester();
    let turn = requester.begin_turn();
    requester.call(vec![call], &turn).await.remove(0)
}

/// spec CALL.21: Each stage takes what the one before it made: the words, the directory, the limit and
/// the environment of a call are those that run, in the sandbox of the policy, with two variables more that
/// tell of it; and what the model is given is what the command wrote.
#[tokio::test]
async fn a_search_passes_through_every_stage() {
    if crate::enforcement().sandbox != SandboxType::LinuxSeccomp {
        eprintln!("SKIPPED: this machine has no sandbox");
        return;
    }
    for (name, kind) in [("zsh", ShellType::Zsh), ("bash", ShellType::Bash)] {
        let Ok(shell) = Shell::named(name) else {
            eprintln!("SKIPPED: there is no {name} here");
            continue;
        };
        assert_eq!(shell.shell_type(), kind);
        let directory = tempfile::tempdir().unwrap();
        let workspace = dunce::canonicalize(directory.path()).unwrap();
        std::fs::create_dir(workspace.join("src")).unwrap();
        let text = format!("fn main() {{\n    // {}: refactor this\n}}\n", word());
        std::fs::write(workspace.join("src/main.rs"), text).unwrap();

        let taken = Mutex::default();
        let tool = Arc::new(StepByStep { shell, workspace: workspace.clone(), taken });
        let by_hand = called(&session(name, Some(Arc::clone(&tool)), &workspace)).await;
        let steps = [
            "dispatch",
            "translate",
            "params",
            "approval",
            "selection",
            "transform",
            "spawn",
            "format",
        ];
        assert_eq!(*tool.taken.lock().unwrap(), steps);

        // 10. The tool itself comes to the same, under the call's own id.
        let result = called(&session(name, None, &workspace)).await;
        let told = |result: crate::ToolResult| match result.output {
            ToolOutput::Function { content, success, .. } => (result.call_id, content, success),
            other @ ToolOutput::Mcp { .. } => panic!("{other:?}"),
        };
        let told_of_it = told(result);
        assert_eq!(told_of_it, told(by_hand));
        assert_eq!(told_of_it, (CallId::new("call_abc123"), found(), Some(true)));
    }
}
