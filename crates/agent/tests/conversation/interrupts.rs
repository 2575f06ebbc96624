use super::*;
use sandgate_agent::{TurnEnd, UserInput};
use sandgate_protocol::{AgentEvent, Event, SessionEvent};
use sandgate_runtime::{Delivery, Stop};

/// Takes a turn, calls it off when an event is the one that is waited for, and takes another one.
async fn interrupted(
    first: Vec<Vec<Does>>,
    is_it: fn(&SessionEvent) -> bool,
) -> (Vec<ResponseItem>, Vec<Vec<ResponseItem>>) {
    let world = World::new();
    let _approver = world.session.approver("test");
    let model = Model::new(first.into_iter().chain([vec![Does::Says("went on")]]));
    let mut conversation = world.conversation(&model);
    let mut events = world.session.events(Delivery::Complete).await;
    let stop = Stop::default();
    let calling_off = async {
        while let Some(event) = events.next().await {
            if is_it(&event) {
                stop.cancel.cancel();
            }
            if matches!(event.event, Event::Agent(AgentEvent::TurnAborted { .. })) {
                break;
            }
        }
    };
    let (end, ()) = tokio::join!(conversation.turn(UserInput::text("go"), &stop), calling_off);
    assert_eq!(end, TurnEnd::Aborted);
    let kept = conversation.items().to_vec();
    check(&kept);
    let end = conversation.turn(UserInput::text("and now?"), &Stop::default()).await;
    assert_eq!(end, TurnEnd::Complete { last_message: Some("went on".to_owned()) });
    (kept, model.asked())
}

/// spec AGENT.3: Whenever a turn is called off, while the model speaks, while a call runs, while a
/// question is open, the history has an answer for every call, and the next turn goes on with it.
#[tokio::test]
async fn while_the_model_speaks_its_words_are_kept_and_its_calls_are_not() {
    let speaks =
        vec![Does::Calls("shell", shell("echo x > file")), Does::Says("I was about"), Does::Hangs];
    let (kept, _) = interrupted(vec![speaks], |event| {
        matches!(event.event, Event::Agent(AgentEvent::AgentMessage { .. }))
    })
    .await;
    assert_eq!(kept.last().unwrap().text().unwrap(), "I was about");
    assert!(outputs(&kept).is_empty());
}

/// spec AGENT.3: Whenever a turn is called off, while the model speaks, while a call runs, while a
/// question is open, the history has an answer for every call, and the next turn goes on with it.
#[tokio::test]
async fn while_calls_run_each_of_them_is_answered() {
    let calls = vec![
        Does::CallsAs("a", "shell", shell("echo first")),
        Does::CallsAs("b", "shell", shell("echo begun; exec sleep 1000")),
        Does::CallsAs("c", "shell", shell("echo never")),
    ];
    let (kept, _) = interrupted(vec![calls], |event| match &event.event {
        Event::ExecCommandOutputDelta(delta) => delta.chunk.contains("begun"),
        _ => false,
    })
    .await;
    let outputs = outputs(&kept);
    let ids: Vec<&str> = outputs.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(outputs[0].1, "first\n");
    assert!(!outputs[2].1.contains("never"), "{outputs:?}");
}

/// spec AGENT.3: Whenever a turn is called off, while the model speaks, while a call runs, while a
/// question is open, the history has an answer for every call, and the next turn goes on with it.
#[tokio::test]
async fn while_a_question_is_open_its_call_is_answered() {
    let asks = serde_json::json!({
        "command": ["touch", "/nowhere"],
        "sandbox_permissions": "require_escalated",
        "justification": "because",
    });
    let calls = vec![Does::CallsAs("a", "shell", asks)];
    let (kept, _) =
        interrupted(vec![calls], |event| matches!(event.event, Event::ExecApprovalRequest(_)))
            .await;
    assert!(outputs(&kept)[0].1.contains("aborted"), "{:?}", outputs(&kept));
}
