//! An agent in forty lines: a model asks for commands, the gate runs them, and a person is asked.
//!
//!     cargo run -p sandgate-runtime --example agent

use sandgate_protocol::{CallId, Event, GrantScope, ReviewDecision};
use sandgate_protocol::{ToolCall, ToolOutput, ToolPayload};
use sandgate_runtime::{Approver, Delivery, Events, Runtime, Session, SessionConfig};
use std::{error::Error, io::BufRead, path::PathBuf, sync::Arc};

fn main() -> Result<(), Box<dyn Error>> {
    // First of all, while the program has no threads: this forks.
    let runtime = Arc::new(Runtime::start()?);
    let waits = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    waits.block_on(agent(runtime, std::env::current_dir()?, std::io::stdin().lock()))?;
    Ok(())
}

/// Gives the model what its calls came to until it has no more of them. Nothing here can approve anything.
async fn agent(
    runtime: Arc<Runtime>,
    workspace: PathBuf,
    answers: impl BufRead,
) -> Result<Vec<String>, Box<dyn Error>> {
    let mut config = SessionConfig::new(workspace);
    config.own_env = std::env::vars_os().collect();
    let session = Session::start(runtime, config)?;
    let events = session.events(Delivery::WithoutOutput).await;
    let person = person(session.approver("terminal"), events, answers);
    let requester = session.requester();
    let work = async {
        let (turn, mut heard) = (requester.begin_turn(), Vec::new());
        while let Some(call) = model(&heard) {
            for result in requester.call(vec![call], &turn).await {
                let ToolOutput::Function { content, .. } = result.output else { continue };
                println!("{content}");
                heard.push(content);
            }
        }
        heard
    };
    tokio::select! { heard = work => Ok(heard), end = person => end.map(|()| Vec::new()) }
}

/// The model. Yours is asked over the network; this one has its calls written down.
fn model(heard: &[String]) -> Option<ToolCall> {
    let script = ["echo milk > list.txt; cat list.txt", "touch ../outside && echo made"];
    let command = ["sh", "-c", script.get(heard.len())?];
    let arguments = serde_json::json!({ "command": command }).to_string();
    let payload = ToolPayload::Function { arguments };
    Some(ToolCall { call_id: CallId::new("call"), name: "shell".to_owned(), payload })
}

/// The person. `y` opens what was blocked and nothing else, where that can be had.
async fn person(by: Approver, mut on: Events, mut from: impl BufRead) -> Result<(), Box<dyn Error>> {
    while let Some(told) = on.next().await {
        let Event::ExecApprovalRequest(asked) = &told.event else { continue };
        println!("{}: {}. May it? [y/n]", asked.command_text, asked.reason);
        let mut answer = String::new();
        from.read_line(&mut answer)?;
        let decision = match (answer.trim(), &asked.grant_offer) {
            ("y", Some(_)) => ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call },
            ("y", None) => ReviewDecision::Approved,
            _ => ReviewDecision::DENIED,
        };
        by.answer(&asked.approval_id, decision)?;
    }
    Ok(())
}
