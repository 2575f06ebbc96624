use super::*;
use sandgate_agent::{Limits, TurnEnd, UserInput};
use sandgate_protocol::{AgentEvent, Event};
use sandgate_runtime::{Delivery, Stop};
use serde_json::json;

fn complete(text: &str) -> TurnEnd {
    TurnEnd::Complete { last_message: Some(text.to_owned()) }
}

/// spec AGENT.1: A turn asks the model, makes its calls through the gate, gives it their results by
/// their ids, and ends when the model calls nothing.
/// spec AGENT.2: What stood in one request stands unchanged at the beginning of the next.
#[tokio::test]
async fn calls_are_made_and_answered_until_there_are_none() {
    let world = World::new();
    let model = Model::new([
        vec![
            Does::Says("I look first"),
            Does::CallsAs("a", "shell", shell("echo one; echo two > file")),
            Does::CallsAs("b", "read_file", json!({ "path": "file" })),
        ],
        vec![Does::CallsAs("c", "no_such_tool", json!({}))],
        vec![Does::Says("done")],
    ]);
    let mut conversation = world.conversation(&model);
    let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
    assert_eq!(end, complete("done"));
    let outputs = outputs(conversation.items());
    assert_eq!(outputs[0], ("a".to_owned(), "one\n".to_owned()));
    assert!(outputs[1].1.contains("two"), "{outputs:?}");
    assert!(outputs[2].1.contains("no tool called"), "{outputs:?}");
    let asked = model.asked();
    for pair in asked.windows(2) {
        assert!(pair[1].starts_with(&pair[0]));
    }
}

/// spec AGENT.1: A turn asks the model, makes its calls through the gate, gives it their results by
/// their ids, and ends when the model calls nothing.
#[tokio::test]
async fn what_happens_is_told_as_it_happens() {
    let world = World::new();
    let model = Model::new([
        vec![Does::Calls("shell", shell("echo hi")), Does::Uses(7)],
        vec![Does::Says("ok")],
    ]);
    let mut conversation = world.conversation(&model);
    let mut events = world.session.events(Delivery::Complete).await;
    conversation.turn(UserInput::text("go"), &Stop::default()).await;
    let mut names = Vec::new();
    while let Some(event) = events.try_next() {
        let value = serde_json::to_value(&*event).unwrap();
        names.push(value["type"].as_str().unwrap().to_owned());
        if let Event::Agent(AgentEvent::TokenCount { last, .. }) = &event.event {
            assert!(last.input_tokens == 7 || last.input_tokens == 0);
        }
    }
    names.dedup();
    let expected = "TaskStarted UserMessage TokenCount ToolCallBegin ExecCommandBegin ExecCommandOutputDelta \
                    ExecCommandEnd ToolCallEnd AgentMessageDelta AgentMessage TokenCount TaskComplete";
    assert_eq!(names.join(" "), expected);
}

/// spec AGENT.4: A call of a response that broke off, or that was cut off by the provider's limit,
/// is not made.
#[tokio::test]
async fn a_response_that_broke_off_or_was_cut_off_calls_nothing() {
    let world = World::new();
    let touch = || shell("echo x >> file");
    let model = Model::new([
        vec![Does::Calls("shell", touch()), Does::Retries, Does::Says("again"), Does::IsCutOff],
        vec![Does::Calls("shell", touch()), Does::Fails(broken_off())],
        vec![Does::Calls("shell", touch()), Does::IsCutOff],
    ]);
    let mut conversation = world.conversation(&model);
    for turn in 0..3 {
        let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
        assert_eq!(matches!(end, TurnEnd::Failed(_)), turn == 1, "{end:?}");
    }
    assert!(!world.path().join("file").exists());
}

/// spec AGENT.5: A turn that asks the model too often, takes too many tokens or too long is ended
/// with a sentence.
#[tokio::test]
async fn a_turn_that_takes_too_much_is_ended() {
    let world = World::new();
    let calls = || vec![Does::Calls("shell", shell("true")), Does::Uses(60)];
    for (limits, reason) in [
        (Limits { requests: 2, ..Limits::default() }, "asked 2 times"),
        (Limits { tokens: Some(100), ..Limits::default() }, "120 tokens"),
    ] {
        let model = Model::new([calls(), calls(), calls()]);
        let options = ConversationOptions { limits, ..ConversationOptions::new("m") };
        let mut conversation = world.conversation_with(&model, options);
        let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
        let TurnEnd::Limit(told) = end else { panic!("{end:?}") };
        assert!(told.contains(reason), "{told}");
    }
}

/// spec AGENT.5: A turn that asks the model too often, takes too many tokens or too long is ended
/// with a sentence.
#[tokio::test]
async fn a_turn_that_takes_too_long_is_ended_whatever_it_does() {
    let world = World::new();
    let phases = [vec![Does::Hangs], vec![Does::CallsAs("a", "shell", shell("exec sleep 1000"))]];
    for phase in phases {
        let model = Model::new([phase]);
        let time = Some(std::time::Duration::from_millis(50));
        let limits = Limits { time, ..Limits::default() };
        let options = ConversationOptions { limits, ..ConversationOptions::new("m") };
        let mut conversation = world.conversation_with(&model, options);
        let stop = Stop::default();
        let end = conversation.turn(UserInput::text("go"), &stop).await;
        assert_eq!(
            end,
            TurnEnd::Limit(
                "the turn took longer than 0.05 s, which is the most that is allowed".to_owned(),
            )
        );
        check(conversation.items());
        assert!(!stop.cancel.is_cancelled());
    }
}
