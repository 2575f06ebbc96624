//! An agent in forty lines: a model asks for commands, the gate runs them, and a person is asked.

use sandgate_protocol::{CallId, Event, GrantScope, ReviewDecision};
use sandgate_protocol::{ToolCall, ToolOutput, ToolPayload};
use sandgate_runtime::{Approver, Delivery, Events, Runtime, Session, SessionConfig};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = SessionConfig::new(std::env::current_dir()?);
    config.own_env = std::env::vars_os().collect();
    let session = Session::start(Arc::new(Runtime::start()?), config)?;
    let events = session.events(Delivery::WithoutOutput).await;
    tokio::spawn(person(session.approver("terminal"), events));

    // What follows is the model's side. A requester calls tools, and approves nothing.
    let requester = session.requester();
    let (turn, mut heard) = (requester.begin_turn(), Vec::new());
    while let Some(call) = model(&heard) {
        for result in requester.call(vec![call], &turn).await {
            let ToolOutput::Function { content, .. } = result.output else { continue };
            println!("{content}");
            heard.push(content);
        }
    }
    Ok(())
}

/// The model. Yours is asked over the network; this one has its calls written down.
fn model(heard: &[String]) -> Option<ToolCall> {
    let script = ["echo milk > list.txt; cat list.txt", "touch ../outside && echo made"];
    let command = ["sh", "-c", script.get(heard.len())?];
    let arguments = serde_json::json!({ "command": command }).to_string();
    let payload = ToolPayload::Function { arguments };
    Some(ToolCall { call_id: CallId::new("call"), name: "shell".to_owned(), payload })
}

/// The person. `y` opens what was blocked to this one command, and nothing else.
async fn person(approver: Approver, mut events: Events) {
    while let Some(told) = events.next().await {
        let Event::ExecApprovalRequest(asked) = &told.event else { continue };
        println!("{}: {}. May it? [y/n]", asked.command_text, asked.reason);
        let answer = std::io::stdin().lines().next();
        let yes = matches!(answer, Some(Ok(line)) if line == "y");
        let grant = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call };
        let decision = if yes { grant } else { ReviewDecision::DENIED };
        approver.answer(&asked.approval_id, decision).expect("the question is open");
    }
}
