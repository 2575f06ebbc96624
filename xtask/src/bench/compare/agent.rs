//! The reference agent on the same work: both are driven by the same scripted model over HTTP.

#![expect(clippy::disallowed_methods, reason = "starts the agent that is measured")]

use super::memory::held_by;
use crate::bench::agent::home;
use crate::bench::program::Home;
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row, Target};
use crate::bench::samples::Samples;
use crate::bench::session::{Impossible, Session};
use crate::peers::work::end_group;
use sandgate_model_server::{ModelServer, Script, Turn};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: f64 = 1024.0 * 1024.0;

/// codex with a home of its own whose model is that of a server.
pub(super) struct Codex {
    program: PathBuf,
    version: String,
    home: tempfile::TempDir,
}

impl Codex {
    pub(super) fn new(session: &Session, server: &ModelServer) -> anyhow::Result<Self> {
        let found = session.tools()?.peers.find("codex").map_err(Impossible)?;
        let home = session.scratch()?;
        let settings = format!(
            "model = \"m\"\nmodel_provider = \"bench\"\nsandbox_mode = \"workspace-write\"\n\
             approval_policy = \"never\"\n[model_providers.bench]\nname = \"bench\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\n",
            server.url()
        );
        std::fs::create_dir(home.path().join("ws"))?;
        std::fs::write(home.path().join("config.toml"), settings)?;
        Ok(Self { program: found.program, version: found.version, home })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["exec", "--skip-git-repo-check", "go"]);
        command.current_dir(self.home.path().join("ws"));
        command.env("CODEX_HOME", self.home.path()).env("HOME", self.home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(super) fn run(&self) -> anyhow::Result<()> {
        let status = self.command().status()?;
        anyhow::ensure!(status.success(), "codex exec ended with {status}");
        Ok(())
    }

    fn name(&self) -> String {
        format!("codex exec {}", self.version)
    }
}

/// From the last byte of each answer to the first byte of the request that follows it.
pub(super) fn gaps(server: &ModelServer) -> Vec<Duration> {
    let requests = server.requests();
    let gap = |pair: &[sandgate_model_server::Request]| {
        Some(pair[1].first_byte.saturating_duration_since(pair[0].answer.last_byte?))
    };
    requests.windows(2).filter_map(gap).collect()
}

/// A model that makes the same call so often.
fn calling(times: usize, tool: &str, arguments: &Value) -> ModelServer {
    let call = |_| Turn::new().call(tool, arguments.clone());
    let script = (0..times).map(call).fold(Script::new(), Script::turn);
    ModelServer::start(script.turn(Turn::new().message("done")).unchecked())
}

/// Ours with an empty home as well: a person's own profile would be most of what a login shell takes.
fn ours_in(home: &Home, session: &Session) -> anyhow::Result<Command> {
    let mut command = home.command(session.program()?, &["exec", "go"]);
    command.env("HOME", home.path());
    Ok(command)
}

/// The same command as each of the two takes it.
fn both(command: &str) -> (Value, Value) {
    (json!({ "command": ["bash", "-lc", command] }), json!({ "cmd": command }))
}

pub(super) fn calls(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let times = session.times(60, 8);
    let (ours, theirs) = both("echo hi");
    let server = calling(times, "exec_command", &theirs);
    let codex = Codex::new(session, &server)?;
    codex.run()?;
    let theirs = gaps(&server);
    anyhow::ensure!(theirs.len() == times, "codex made {} of {times} calls", theirs.len());
    let heard = server.requests().last().is_some_and(|last| {
        last.tool_outputs().last().is_some_and(|output| output.text.contains("hi"))
    });
    anyhow::ensure!(heard, "codex did not run the command");
    progress.step(1, 2);
    let server = calling(times, "shell", &ours);
    let status = ours_in(&home(session, &server)?, session)?.status()?;
    anyhow::ensure!(status.success(), "sandgate exec ended with {status}");
    // The first command makes the cage.
    let (ours, theirs) =
        (Samples::new(gaps(&server).split_off(1))?, Samples::new(theirs[1..].to_vec())?);
    let row = Row::new("`echo hi`, from the call to the next request", ours.median().into())
        .against(&codex.name(), theirs.median().into())
        .detail("p95", ours.p95().into())
        .detail("p95 of the reference", theirs.p95().into());
    Ok(vec![row.target(Target::Within(Quantity::Seconds(0.015)))])
}

pub(super) fn start(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let times = session.times(20, 3);
    let (mut ours, mut theirs, mut name) = (Vec::new(), Vec::new(), String::new());
    let first = |server: &ModelServer, began: Instant| {
        let first = server.requests().first().map(|request| request.first_byte);
        first.map(|first| first.saturating_duration_since(began))
    };
    for round in 0..times {
        let server = calling(0, "", &Value::Null);
        let home: Home = home(session, &server)?;
        let began = Instant::now();
        home.run(session.program()?, &["exec", "go"])?;
        ours.extend(first(&server, began));
        let server = calling(0, "", &Value::Null);
        let codex = Codex::new(session, &server)?;
        let began = Instant::now();
        codex.run()?;
        theirs.extend(first(&server, began));
        name = codex.name();
        progress.step(round + 1, times);
    }
    let (ours, theirs) = (Samples::new(ours)?, Samples::new(theirs)?);
    let row = Row::new("from the start to the first request", ours.median().into())
        .against(&name, theirs.median().into())
        .detail("p95", ours.p95().into())
        .detail("p95 of the reference", theirs.p95().into());
    Ok(vec![row.target(Target::Within(Quantity::Seconds(0.050)))])
}

pub(super) fn memory(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let sleeping = |mut command: Command| {
        let mut child = command.process_group(0).spawn()?;
        let held = held_by(child.id());
        end_group(&mut child);
        held
    };
    let (ours, theirs) = both("exec sleep 30");
    let server = calling(1, "exec_command", &theirs);
    let codex = Codex::new(session, &server)?;
    let (theirs, their_processes) = sleeping(codex.command())?;
    let server = calling(1, "shell", &ours);
    let home = home(session, &server)?;
    let (ours, processes) = sleeping(ours_in(&home, session)?)?;
    let row = Row::new("memory while a command sleeps", Quantity::bytes(ours))
        .against(&codex.name(), Quantity::bytes(theirs))
        .detail("processes", Quantity::count(processes))
        .detail("processes of the reference", Quantity::count(their_processes));
    Ok(vec![row.target(Target::Within(Quantity::Bytes(40.0 * MIB)))])
}

pub(super) fn size(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let peers = session.tools()?.peers;
    let codex = peers.find("codex").map_err(Impossible)?;
    let ours = file_size(session.program()?)?;
    let row = Row::new("what is installed", Quantity::bytes(ours))
        .against(&format!("codex exec {}", codex.version), Quantity::bytes(peers.size("codex")));
    Ok(vec![row.target(Target::Within(Quantity::Bytes(25.0 * MIB)))])
}

fn file_size(program: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(program)?.len())
}
