//! One call after another in a session of the daemon, with the person at this terminal to be asked.

use super::arguments::Form;
use super::{Ended, print};
use crate::decide::Decider;
use crate::{exit, notes};
use sandgate_protocol::{
    ReturnReason, ReviewDecision, ScreenReply, UnifiedExecReply, visible, visible_line,
};
use sandgate_runtime::daemon::{CallResult, Client, DaemonError, Reply, Request, WireCall};
use sandgate_runtime::new_call_id;
use serde_json::{Value, json};
use std::io::{self, Write as _};

/// A conversation with the daemon.
pub(super) struct Talk {
    pub(super) client: Client,
    pub(super) decider: Decider,
}

impl Talk {
    /// Opens a session.
    pub(super) async fn open(&mut self, request: &Request) -> Result<(), DaemonError> {
        self.client.say(request).await?;
        loop {
            match self.client.hear().await? {
                Reply::Opened {} => return Ok(()),
                Reply::Warning { message } => warn(&message),
                Reply::Error { message } => return Err(DaemonError::Refused(message)),
                _ => return Err(DaemonError::Gone),
            }
        }
    }

    /// Makes a call. Ctrl-C ends the waiting, not the process.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
    ) -> Result<CallResult, DaemonError> {
        let (name, arguments) = (tool.to_owned(), arguments.to_string());
        let call = WireCall::Function { name, call_id: new_call_id(), arguments };
        self.client.say(&Request::Call { calls: vec![call] }).await?;
        let mut result = None;
        loop {
            let reply = tokio::select! {
                reply = self.client.hear() => reply?,
                (approval_id, decision) = self.decider.decide() => {
                    self.client.say(&Request::Answer { approval_id, decision }).await?;
                    continue;
                }
                Ok(()) = tokio::signal::ctrl_c() => {
                    // At a question it is the person's answer.
                    if let Some(approval_id) = self.decider.on_terminal().id() {
                        let decision = ReviewDecision::Abort;
                        self.client.say(&Request::Answer { approval_id, decision }).await?;
                    }
                    self.client.say(&Request::Cancel {}).await?;
                    continue;
                }
            };
            match reply {
                Reply::Question { event } | Reply::Answered { event } => {
                    self.decider.hear(&event);
                }
                Reply::Warning { message } => warn(&message),
                Reply::Result(made) => result = Some(made),
                Reply::Done {} => return result.ok_or(DaemonError::Gone),
                Reply::Error { message } => return Err(DaemonError::Refused(message)),
                _ => return Err(DaemonError::Gone),
            }
        }
    }

    /// Shows what a process answered, and finds the exit code.
    pub(super) fn conclude(&self, result: &CallResult, form: Form) -> Ended {
        let Ok(reply) = serde_json::from_str::<UnifiedExecReply>(&result.output) else {
            return self.tell(result, form);
        };
        let printed = match form {
            Form::Json => print(format!("{}\n", result.output).as_bytes())?,
            Form::Text => {
                let code = print(shown(&reply).as_bytes())?;
                let mut said = Vec::new();
                for denial in &reply.blocked {
                    said.extend(notes::hint(&format!("blocked: {}", visible_line(denial))));
                }
                said.extend(notes::status(&status(&reply)));
                let _ = io::stderr().write_all(&said);
                code
            }
        };
        let own = reply.exit_code.map_or(0, exit::of_code);
        Ok(match (printed, self.decider.unanswered().is_empty()) {
            (0, true) => own,
            (0, false) => {
                self.tell_unanswered();
                exit::NOBODY_DECIDED
            }
            (code, _) => code,
        })
    }

    /// Shows a result that is a text, or why there is none, and finds the exit code.
    pub(super) fn tell(&self, result: &CallResult, form: Form) -> Ended {
        if form == Form::Json {
            print(format!("{}\n", json!(result)).as_bytes())?;
        }
        let complain = |what: &str| {
            let _ = io::stderr().write_all(&notes::error(&visible(what), None));
        };
        match result.error.as_deref() {
            None if form == Form::Json => Ok(0),
            None => print(format!("{}\n", result.output.trim_end_matches('\n')).as_bytes()),
            Some("approval_denied") if !self.decider.unanswered().is_empty() => {
                self.tell_unanswered();
                Ok(exit::NOBODY_DECIDED)
            }
            Some(name) => {
                complain(&result.output);
                Ok(match name {
                    "approval_denied" | "forbidden" => exit::REFUSED,
                    "nobody_to_ask" => exit::NOBODY_DECIDED,
                    "user_aborted" => exit::of_signal(sandgate_protocol::SIGNAL_INTERRUPT),
                    _ => exit::FAILED,
                })
            }
        }
    }

    fn tell_unanswered(&self) {
        for question in self.decider.unanswered() {
            let what = format!("nobody could be asked: {}", visible_line(question));
            let advice = "Answer with --decide approve, deny or a file.";
            let _ = io::stderr().write_all(&notes::error(&what, Some(advice)));
        }
    }
}

fn warn(message: &str) {
    let _ = io::stderr().write_all(&notes::warning(&visible_line(message)));
}

/// What a process printed, with the end of its last line, and its screen if it has one.
fn shown(reply: &UnifiedExecReply) -> String {
    let mut text = reply.output.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(ScreenReply { lines, .. }) = &reply.screen {
        lines.iter().for_each(|line| text.extend([line, "\n"]));
    }
    text
}

/// How things are with a process, in a few words.
fn status(reply: &UnifiedExecReply) -> String {
    let what = match (reply.returned, reply.exit_code) {
        (_, Some(code)) => return format!("exited with {code}"),
        (ReturnReason::WaitingForInput, _) if reply.hides_input => {
            "waiting for input that is not shown"
        }
        (ReturnReason::WaitingForInput, _) => "waiting for input",
        (ReturnReason::Pattern, _) => "printed what was waited for",
        (ReturnReason::Quiet, _) => "silent",
        (ReturnReason::Cancelled, _) => "running, and not waited for any longer",
        (ReturnReason::YieldElapsed | ReturnReason::Exited, _) => "running",
    };
    match &reply.process_id {
        Some(id) => format!("{id}: {what}"),
        None => what.to_owned(),
    }
}
