//! What the whole way costs: a tool call through a session, with its judgement, its events and its audit
//! log, against the same command through the sandbox and process layers alone.

use super::bare;
use super::library::{self, Library};
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{Pair, by_turns_timed};
use super::session::Session;
use anyhow::Context as _;
use sandgate_policy::Grant;
use sandgate_process::ExecuteOptions;
use sandgate_protocol::{CallId, ExecParams, SandboxPolicy, ToolCall, ToolPayload};
use sandgate_runtime::audit::AuditOptions;
use sandgate_runtime::{Delivery, Events, Requester, Runtime, SessionConfig};
use sandgate_sandbox::SandboxManager;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a call may cost beyond its command.
const MOST: Target = Target::Within(Quantity::Seconds(300e-6));

const REFERENCE: &str = "sandbox and process layers";

pub(super) fn measure(session: &mut Session) {
    let recorded = "a call, recorded";
    session.take(recorded, |session, progress| {
        let pair = pair(session, progress, Audit::On, Listeners::None)?;
        let row = Row::of_times("/bin/true as a tool call, recorded", REFERENCE, &pair);
        Ok(vec![row, added("what the call adds", &pair)?.target(MOST)])
    });
    let listened = "a call, recorded and listened to";
    session.take(listened, |session, progress| {
        let pair = pair(session, progress, Audit::On, Listeners::One)?;
        Ok(vec![added("what it adds with somebody listening", &pair)?.target(MOST)])
    });
    session.take("a call, not recorded", |session, progress| {
        let pair = pair(session, progress, Audit::Off, Listeners::None)?;
        Ok(vec![added("what it adds without the audit log", &pair)?])
    });
}

/// Whether what happens is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audit {
    On,
    Off,
}

/// Who listens to the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listeners {
    None,
    One,
}

/// The difference of two medians, which is what the target is about.
fn added(what: &str, pair: &Pair) -> anyhow::Result<Row> {
    let more = pair.ours.median().saturating_sub(pair.reference.median());
    anyhow::ensure!(more > Duration::ZERO, "a call was faster than its own command");
    Ok(Row::new(what, more.into()))
}

fn pair(
    session: &Session,
    progress: &Progress,
    audit: Audit,
    listeners: Listeners,
) -> anyhow::Result<Pair> {
    let directory = session.scratch()?;
    let base = directory.path().canonicalize()?;
    let (workspace, home) = (base.join("workspace"), base.join("home"));
    std::fs::create_dir(&workspace)?;
    std::fs::create_dir(&home)?;
    let program = bare::true_program()?;
    // Both fork before anything else is made here.
    let called = Called::start(&workspace, &home, &program, audit)?;
    let direct = Direct::start(&workspace, &program)?;
    let mut events = match listeners {
        Listeners::None => None,
        Listeners::One => {
            Some(direct.library.runtime.block_on(called.session.events(Delivery::Complete)))
        }
    };
    let runtime = &direct.library.runtime;
    let ours = || {
        let (call, turn) = (called.next(), called.requester.begin_turn());
        let began = Instant::now();
        let results = runtime.block_on(called.requester.call(vec![call], &turn));
        let time = began.elapsed();
        let error = results.first().context("a call has no result")?.error.as_ref();
        anyhow::ensure!(error.is_none(), "a call came to nothing: {error:?}");
        while events.as_mut().and_then(Events::try_next).is_some() {}
        Ok(time)
    };
    by_turns_timed(session.times(2000, 200), progress, ours, || direct.time())
}

/// The command as a tool call.
struct Called {
    session: sandgate_runtime::Session,
    requester: Requester,
    arguments: String,
    number: Cell<u64>,
}

impl Called {
    fn start(workspace: &Path, home: &Path, program: &Path, audit: Audit) -> anyhow::Result<Self> {
        let runtime = Arc::new(Runtime::start()?);
        let mut config = SessionConfig::new(workspace.to_owned());
        config.own_env = std::env::vars_os().filter(|(name, _)| name != "TMPDIR").collect();
        config.config_home = Some(home.to_owned());
        config.audit = (audit == Audit::On).then(AuditOptions::default);
        let session = sandgate_runtime::Session::start(runtime, config)?;
        let requester = session.requester();
        let arguments = serde_json::json!({ "command": [bare::text(program)?] }).to_string();
        Ok(Self { session, requester, arguments, number: Cell::new(0) })
    }

    /// The next call, as a model would make it.
    fn next(&self) -> ToolCall {
        self.number.set(self.number.get() + 1);
        ToolCall {
            call_id: CallId::new(format!("call_{}", self.number.get())),
            name: "shell".to_owned(),
            payload: ToolPayload::Function { arguments: self.arguments.clone() },
        }
    }
}

/// The command with nothing around it but its cage.
struct Direct {
    library: Library,
    manager: SandboxManager,
    command: ExecParams,
}

impl Direct {
    fn start(workspace: &Path, program: &Path) -> anyhow::Result<Self> {
        let library = Library::start()?;
        let mut command = library::params(program, &[])?;
        workspace.clone_into(&mut command.cwd);
        command.env.remove(std::ffi::OsStr::new("TMPDIR"));
        Ok(Self { library, manager: SandboxManager::new(), command })
    }

    fn time(&self) -> anyhow::Result<Duration> {
        let (command, workspace) = (self.command.clone(), self.command.cwd.clone());
        let policy = SandboxPolicy::workspace_write();
        let grant = Grant::sandboxed_by_person(command, policy, workspace);
        let began = Instant::now();
        let env = self.manager.transform(grant)?;
        self.library.run(&env, ExecuteOptions::default())?;
        Ok(began.elapsed())
    }
}
