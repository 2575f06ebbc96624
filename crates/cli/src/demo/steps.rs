//! The steps of the tour. Each is real: what is shown is what happened.

use super::place::Place;
use crate::audit;
use sandgate_protocol::{
    ApprovalId, AskForApproval, Event, ExecApprovalRequest, GrantScope, NetworkAccess,
    ReviewDecision, SandboxPolicy, ToolCall, ToolOutput, ToolPayload, visible,
};
use sandgate_runtime::audit::{AuditOptions, audit_directory};
use sandgate_runtime::{
    Approver, Delivery, Events, Runtime, Session, SessionConfig, ToolResult, TurnDiffs, new_call_id,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

pub(super) const WELCOME: &str = "\
Sandgate stands between an AI agent and your machine. Here an agent makes six calls, in a project
that was made for it, and you see what becomes of them.
";

pub(super) const FAREWELL: &str = "
That was all, and all of it is gone again. What comes next:

    sandgate run -- COMMAND       take a command of yours through the gate
    sandgate exec 'fix the test'  let a model work, through the gate
    sandgate mcp install --help   let the agent that you have use it
    sandgate doctor               see what this machine can enforce
";

/// One step.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) what: What,
}

/// What is done in a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Safe,
    Blocked,
    Granted,
    Interactive,
    Patch,
    Record,
}

pub(super) const STEPS: &[Step] = &[
    Step {
        title: "A safe command",
        about: "It is known to change nothing, so nobody is asked. It runs in the cage all the same.",
        what: What::Safe,
    },
    Step {
        title: "A command that reaches too far",
        about: "It writes in the project, which it may, and beside it, which it may not. The kernel\n\
                itself says what was refused; the output is not searched for words.",
        what: What::Blocked,
    },
    Step {
        title: "Only what was blocked",
        about: "The same command again. A person would be asked; here the answer is to open that one\n\
                path, for this one call. The command stays in its cage, and all else stays closed.",
        what: What::Granted,
    },
    Step {
        title: "A shell that lives across calls",
        about: "One call starts it, another types to it. An answer comes as soon as it waits for more.",
        what: What::Interactive,
    },
    Step {
        title: "A patch",
        about: "All of it is applied, or nothing. What it would change is known before it does.",
        what: What::Patch,
    },
    Step {
        title: "What happened",
        about: "Every judgement, answer and command is in a log whose lines are chained by hashes:\n\
                a line that is changed, moved or taken out is found.",
        what: What::Record,
    },
];

/// The session of the tour.
pub(super) struct Tour {
    session: Session,
    approver: Approver,
    events: Mutex<Events>,
    root: String,
    outside: PathBuf,
    settings: PathBuf,
}

impl Tour {
    /// Begins the session.
    pub(super) async fn begin(runtime: Arc<Runtime>, place: &Place) -> io::Result<Self> {
        let mut config = SessionConfig::new(place.project());
        config.approval_policy = AskForApproval::OnFailure;
        // Temporary files are where all of this is.
        config.sandbox_policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        config.own_env = std::env::vars_os().collect();
        config.config_home = Some(place.settings());
        config.audit = Some(AuditOptions::default());
        config.front_end = "demo".to_owned();
        config.turn_diffs = TurnDiffs::Off;
        let session = Session::start(runtime, config).map_err(io::Error::other)?;
        let approver = session.approver("demo");
        let events = Mutex::new(session.events(Delivery::Complete).await);
        Ok(Self {
            session,
            approver,
            events,
            root: format!("{}/", place.root().display()),
            outside: place.outside(),
            settings: place.settings(),
        })
    }

    /// Takes a step, and tells what came of it.
    pub(super) async fn take(&self, what: What) -> io::Result<String> {
        let reach = || {
            let script = format!("echo eggs >> notes.txt; echo x > '{}/x'", self.outside.display());
            json!({ "command": script, "login": false })
        };
        let told = match what {
            What::Safe => {
                let call = json!({ "command": "wc -l notes.txt", "login": false });
                self.command(&call, &ReviewDecision::DENIED).await?
            }
            What::Blocked => self.command(&reach(), &ReviewDecision::DENIED).await?,
            What::Granted => {
                let grant = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call };
                let told = self.command(&reach(), &grant).await?;
                told + &self.came_of_it()
            }
            What::Interactive => self.interactive().await?,
            What::Patch => self.patch().await?,
            What::Record => audit::shown(&audit_directory(&self.settings), INDENT.len()),
        };
        Ok(indented(&told.replace(&self.root, "")))
    }

    /// What became of what was blocked, as the file system has it.
    fn came_of_it(&self) -> String {
        let file = self.outside.join("x");
        match file.exists() {
            true => format!("It ran again, in its cage, and has written {}.\n", file.display()),
            false => format!("It has not written {}: it was not let out.\n", file.display()),
        }
    }

    async fn command(&self, arguments: &Value, answer: &ReviewDecision) -> io::Result<String> {
        let mut told = format!("$ {}\n", arguments["command"].as_str().unwrap_or_default());
        let result = self.call("shell_command", arguments, answer, &mut told).await?;
        let output = said(&result);
        if !output.trim().is_empty() {
            let _ = writeln!(told, "{}", output.trim_end());
        }
        Ok(told)
    }

    async fn interactive(&self) -> io::Result<String> {
        let mut told = String::from("exec_command: sh\n");
        let no = &ReviewDecision::DENIED;
        let start = json!({ "cmd": "sh", "tty": true });
        let result = self.call("exec_command", &start, no, &mut told).await?;
        let answer: Value = serde_json::from_str(&said(&result)).unwrap_or_default();
        let id = answer["process_id"].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(told, "  it is process {id}, and {}", state(&answer));
        for line in ["x=41", "echo $((x + 1))"] {
            let typed = json!({ "process_id": id, "input": format!("{line}\n") });
            let result = self.call("write_stdin", &typed, no, &mut told).await?;
            let answer: Value = serde_json::from_str(&said(&result)).unwrap_or_default();
            let printed = answer["output"].as_str().unwrap_or_default();
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            let _ = writeln!(told, "write_stdin: {line}");
            let _ = writeln!(told, "  it says {:?}, and {}", printed.join(" "), state(&answer));
        }
        Ok(told)
    }

    async fn patch(&self) -> io::Result<String> {
        let text = "*** Begin Patch\n*** Update File: notes.txt\n@@\n milk\n-bread\n+rye bread\n\
                    *** Add File: README\n+What to buy is in notes.txt.\n*** End Patch\n";
        let mut told = format!("apply_patch\n{text}\n");
        let call = json!({ "input": text });
        let result = self.call("apply_patch", &call, &ReviewDecision::DENIED, &mut told).await?;
        let _ = writeln!(told, "{}", said(&result).trim_end());
        Ok(told)
    }

    /// Makes a call, answers what is asked about it, and tells of both.
    async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        answer: &ReviewDecision,
        told: &mut String,
    ) -> io::Result<ToolResult> {
        let payload = ToolPayload::Function { arguments: arguments.to_string() };
        let call = ToolCall { call_id: new_call_id(), name: tool.to_owned(), payload };
        let (requester, turn) = (self.session.requester(), self.session.begin_turn());
        let calling = requester.call(vec![call], &turn);
        tokio::pin!(calling);
        let mut events = self.events.lock().await;
        let results = loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => self.hear(&event.event, answer, told),
                results = &mut calling => break results,
            }
        };
        while let Some(event) = events.try_next() {
            self.hear(&event.event, answer, told);
        }
        results.into_iter().next().ok_or_else(|| io::Error::other("a call had no result"))
    }

    fn hear(&self, event: &Event, answer: &ReviewDecision, told: &mut String) {
        match event {
            Event::ExecApprovalRequest(request) => {
                self.answer(&request.approval_id, request, answer, told);
            }
            Event::ExecCommandEnd(end) => {
                for denial in &end.output.denials.evidence {
                    let _ = writeln!(told, "  blocked: {denial}");
                }
            }
            _ => {}
        }
    }

    fn answer(
        &self,
        id: &ApprovalId,
        request: &ExecApprovalRequest,
        answer: &ReviewDecision,
        told: &mut String,
    ) {
        let _ = writeln!(told, "  question: {}", visible(&request.reason));
        let offer = request.grant_offer.as_ref().map(|offer| visible(&offer.summary));
        let said = match (answer, offer) {
            (ReviewDecision::ApprovedWithGrant { .. }, Some(offer)) => {
                format!("yes, but only this: {offer}")
            }
            _ => "no".to_owned(),
        };
        let _ = writeln!(told, "  answer:   {said}");
        // If it is not offered here, it is a no.
        if self.approver.answer(id, answer.clone()).is_err() {
            let _ = self.approver.answer(id, ReviewDecision::DENIED);
        }
    }
}

fn state(answer: &Value) -> &'static str {
    match answer["returned"].as_str() {
        Some("waiting_for_input") => "waits for more",
        Some("exited") => "has ended",
        _ => "is busy",
    }
}

fn said(result: &ToolResult) -> String {
    match &result.output {
        ToolOutput::Function { content, .. } => visible(content),
        ToolOutput::Mcp { .. } => String::new(),
    }
}

/// What stands before each line of what a step shows.
const INDENT: &str = "    ";

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned() + "\n").collect()
}
