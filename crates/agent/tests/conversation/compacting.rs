use super::*;
use sandgate_agent::{TurnEnd, UserInput};
use sandgate_protocol::{SessionSource, SubAgentSource};
use sandgate_runtime::Stop;

fn overflow() -> ModelError {
    ModelError::ContextOverflow { model: "m".to_owned(), message: "too long".to_owned() }
}

/// spec AGENT.6: A history that is about to be too long, or that the provider says is, is replaced
/// by a summary that a `compact` subagent writes; what the person said stays in their words.
#[tokio::test]
async fn a_long_history_is_summed_up_before_the_next_request() {
    let world = World::new();
    let model = Model::new([
        vec![Does::Calls("shell", shell("echo hi")), Does::Uses(900)],
        vec![Does::Says("said hi")],
        vec![Does::Says("done")],
    ]);
    let options =
        ConversationOptions { context_window: Some(1000), ..ConversationOptions::new("m") };
    let mut conversation = world.conversation_with(&model, options);
    let end = conversation.turn(UserInput::text("greet the world"), &Stop::default()).await;
    assert_eq!(end, TurnEnd::Complete { last_message: Some("done".to_owned()) });
    let compact = SessionSource::SubAgent(SubAgentSource::Compact);
    assert_eq!(model.sources.lock().unwrap()[1], compact);
    let last = model.asked().pop().unwrap();
    let texts: Vec<String> = last.iter().filter_map(ResponseItem::text).collect();
    assert!(texts.contains(&"greet the world".to_owned()), "{texts:?}");
    assert!(texts.last().unwrap().ends_with("said hi"), "{texts:?}");
    assert!(outputs(&last).is_empty());
}

/// spec AGENT.6: A history that is about to be too long, or that the provider says is, is replaced
/// by a summary that a `compact` subagent writes; what the person said stays in their words.
#[tokio::test]
async fn a_history_that_the_provider_calls_too_long_is_summed_up() {
    let world = World::new();
    let model = Model::new([
        vec![Does::Fails(overflow())],
        // Even the summing up does not fit at first.
        vec![Does::Fails(overflow())],
        vec![Does::Says("all of it")],
        vec![Does::Says("done")],
    ]);
    let mut conversation = world.conversation(&model);
    let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
    assert_eq!(end, TurnEnd::Complete { last_message: Some("done".to_owned()) });
}

/// spec AGENT.6: A history that is about to be too long, or that the provider says is, is replaced
/// by a summary that a `compact` subagent writes; what the person said stays in their words.
#[tokio::test]
async fn what_never_fits_is_said() {
    let world = World::new();
    let fails = || vec![Does::Fails(overflow())];
    let sums = || vec![Does::Says("short")];
    let model = Model::new([fails(), sums(), fails(), sums(), fails()]);
    let mut conversation = world.conversation(&model);
    let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
    assert_eq!(end, TurnEnd::Failed(overflow()));
}

/// spec AGENT.6: A history that is about to be too long, or that the provider says is, is replaced
/// by a summary that a `compact` subagent writes; what the person said stays in their words.
#[tokio::test]
async fn without_a_summary_nothing_is_lost() {
    for refuses in
        [vec![Does::Fails(broken_off())], vec![Does::Says("half"), Does::IsCutOff], vec![]]
    {
        let world = World::new();
        let long = vec![Does::Calls("shell", shell("echo hi")), Does::Uses(900)];
        let model = Model::new([long, refuses]);
        let options =
            ConversationOptions { context_window: Some(1000), ..ConversationOptions::new("m") };
        let mut conversation = world.conversation_with(&model, options);
        let end = conversation.turn(UserInput::text("go"), &Stop::default()).await;
        assert!(matches!(end, TurnEnd::Failed(_)), "{end:?}");
        assert_eq!(outputs(conversation.items()).len(), 1);
    }
}

/// spec AGENT.6: A history that is about to be too long, or that the provider says is, is replaced
/// by a summary that a `compact` subagent writes; what the person said stays in their words.
#[tokio::test]
async fn it_is_summed_up_when_somebody_asks_for_it() {
    let world = World::new();
    let model = Model::new([vec![Does::Says("hello")], vec![Does::Says("they greeted")]]);
    let mut conversation = world.conversation(&model);
    conversation.turn(UserInput::text("hi"), &Stop::default()).await;
    assert!(conversation.compact_now(&Stop::default()).await);
    let last = conversation.items().last().unwrap().text().unwrap();
    assert!(last.ends_with("they greeted"), "{last}");
}
