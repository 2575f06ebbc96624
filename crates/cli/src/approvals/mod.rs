//! `sandgate approvals`: the open questions of all programs of this user, answered from any terminal.

mod arguments;
mod list;

pub(crate) use arguments::{ApprovalsArguments, CliApprovals, understand};

use crate::decide::{Decide, Decider, Feedback, over_by};
use crate::settings::config_home;
use crate::{exit, notes};
use arguments::Verb;
use sandgate_protocol::{ApprovalId, Event, ReviewDecision, visible_line};
use sandgate_runtime::{Desks, Listed, Outcome, PendingQuestion};
use serde_json::json;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// What this comes to: an exit code, or why there is none.
type Ended = Result<u8, String>;

/// Does what `sandgate approvals` is to do, and says how this program is to end.
pub(crate) fn approvals(arguments: &ApprovalsArguments) -> ExitCode {
    conclude(run(async |desks| match &arguments.verb {
        Verb::AtTerminal => at_terminal(&desks).await,
        Verb::List { json } => list(&desks, *json).await,
        Verb::Answer { id, decision } => answer(&desks, id, decision).await,
        Verb::Watch => watch(&desks).await,
    }))
}

/// Works with the desks of this user's programs.
pub(crate) fn run(work: impl AsyncFnOnce(Desks) -> Ended) -> Ended {
    let home = config_home().ok_or("there is no directory for settings; set HOME")?;
    let home = std::path::absolute(home).map_err(|error| error.to_string())?;
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asynchronous = asynchronous.map_err(|error| error.to_string())?;
    let ended = asynchronous.block_on(work(Desks::in_settings(&home)));
    // A thread may still wait for a line of the terminal, and nobody waits for that.
    asynchronous.shutdown_background();
    ended
}

pub(crate) fn conclude(ended: Ended) -> ExitCode {
    ExitCode::from(ended.unwrap_or_else(|why| {
        let _ = io::stderr().write_all(&notes::error(&visible_line(&why), None));
        exit::FAILED
    }))
}

/// Writes to standard output. A reader who has seen enough is no error.
pub(crate) fn print(text: &str) -> Ended {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::OUTPUT_CLOSED),
        Err(error) => Err(format!("cannot write the output: {error}")),
    }
}

async fn list(desks: &Desks, as_json: bool) -> Ended {
    let Listed { questions, left_out, notes: why } =
        desks.list().await.map_err(|error| error.to_string())?;
    let text = match as_json {
        true => format!("{}\n", json!(questions)),
        false => list::draw(&questions),
    };
    let code = print(&text)?;
    let mut said = Vec::new();
    if left_out > 0 {
        said.extend(notes::warning(&format!(
            "{left_out} more are too long to be shown with these"
        )));
    }
    for why in why {
        said.extend(notes::warning(&visible_line(&why)));
    }
    if questions.is_empty() && !as_json {
        said.extend(notes::status("no question is open"));
    }
    let _ = io::stderr().write_all(&said);
    Ok(code)
}

async fn answer(desks: &Desks, id: &str, decision: &ReviewDecision) -> Ended {
    let id = desks.whole_id(id).await.map_err(|error| error.to_string())?;
    desks.answer(&id, decision.clone()).await.map_err(|error| error.to_string())?;
    let what = format!("{id}: {}", decision.name().replace('_', " "));
    let _ = io::stderr().write_all(&notes::status(&what));
    Ok(0)
}

/// Prints what is open, a line of JSON whenever that changes.
async fn watch(desks: &Desks) -> Ended {
    let mut watch = desks.watch();
    loop {
        let open = watch.next().await.map_err(|error| error.to_string())?;
        match print(&format!("{}\n", json!({ "questions": open })))? {
            0 => {}
            code => return Ok(code),
        }
    }
}

/// Asks the person at this terminal whatever any program asks, until they leave.
async fn at_terminal(desks: &Desks) -> Ended {
    let decider = Decider::new(&Decide::AtTerminal, Feedback::Model);
    let mut decider = decider.map_err(|error| error.to_string())?;
    if !decider.is_person() {
        let why = "nobody can be asked here, because there is no terminal; see sandgate approvals list \
                   and answer";
        return Err(why.to_owned());
    }
    let mut watch = desks.watch();
    let mut asked: Vec<PendingQuestion> = Vec::new();
    let waiting = notes::status("waiting for questions; Ctrl-C leaves");
    let _ = io::stderr().write_all(&waiting);
    loop {
        tokio::select! {
            open = watch.next() => {
                let open = open.map_err(|error| error.to_string())?;
                for over in asked.iter().filter(|one| !open.contains(one)) {
                    let outcome = desks.outcome(&over.question.id).await.ok().flatten();
                    let said = match outcome {
                        Some(Outcome { decision, answered_by }) => over_by(&answered_by, &decision),
                        // Its program has ended.
                        None => "It is over.".to_owned(),
                    };
                    decider.take_back(&own_id(over), &said);
                }
                for new in open.iter().filter(|one| !asked.contains(one)) {
                    if let Some(event) = by_own_id(&whole(desks, new).await) {
                        let heading = format!("\n{}\n", list::who(new));
                        decider.hear_from(&event, heading, list::hears(&new.question.asker));
                    }
                }
                asked = open;
            }
            (event, decision) = decider.decided() => {
                // The terminal is gone, or nothing more will be typed there.
                let Some(decision) = decision else { return Ok(0) };
                let Some(id) = event.asks() else { continue };
                // Somebody else may have been faster.
                if let Err(error) = desks.answer(id.as_str(), decision).await {
                    let error = visible_line(&error.to_string());
                    let _ = io::stderr().write_all(&notes::warning(&error));
                }
                if !decider.is_open() {
                    let _ = io::stderr().write_all(&waiting);
                }
            }
        }
    }
}

/// A question with what the list has left out. If its program cannot be asked, the beginning is shown.
async fn whole(desks: &Desks, listed: &PendingQuestion) -> PendingQuestion {
    let whole = match listed.question.is_cut {
        true => desks.question(&listed.question.id).await.ok().flatten(),
        false => None,
    };
    let question = whole.unwrap_or_else(|| listed.question.clone());
    PendingQuestion { pid: listed.pid, question }
}

/// Sessions of two programs give the same names to their questions. Here each has the name that it has on
/// its desk, which is nobody else's.
fn own_id(pending: &PendingQuestion) -> ApprovalId {
    ApprovalId::new(pending.question.id.clone())
}

fn by_own_id(pending: &PendingQuestion) -> Option<Event> {
    let mut event = pending.question.question.clone();
    match &mut event {
        Event::ExecApprovalRequest(request) => request.approval_id = own_id(pending),
        Event::ApplyPatchApprovalRequest(request) => request.approval_id = own_id(pending),
        _ => return None,
    }
    Some(event)
}
