//! Subagents that a model asks for: conversations inside of a conversation.

#![cfg(unix)]

mod support;

use sandgate_agent::{Conversation, ConversationOptions, SpawnAgent, TurnEnd, UserInput, rollout};
use sandgate_protocol::{
    AgentEvent, AskForApproval, Event, ResponseItem, ReviewDecision, SandboxPolicy, SessionSource,
    SubAgentSource,
};
use sandgate_runtime::{Approver, Delivery, Events, Stop, SubAgentLimits};
use serde_json::json;
use std::sync::Arc;
use support::{Model, Request, Scene, call, say};

/// A conversation that can have subagents, in a session of its own.
struct Talk {
    scene: Scene,
    conversation: Conversation,
    model: Arc<Model>,
}

impl Talk {
    fn new(model: Arc<Model>, approval: AskForApproval, limits: SubAgentLimits) -> Self {
        let options = ConversationOptions::new("test-model");
        let spawn = SpawnAgent::new(model.clone(), &options);
        let home = tempfile::tempdir().unwrap();
        let spawn = Arc::new(spawn.recorded(home.path().to_owned()));
        let sandbox = SandboxPolicy::workspace_write();
        let mut scene = Scene::new(approval, sandbox, |config| {
            config.tools.push(spawn.clone());
            config.subagents = limits;
        });
        scene.home = home;
        let conversation = Conversation::start(scene.session.requester(), model.clone(), options);
        let conversation = conversation.recorded(scene.home.path(), None).unwrap();
        spawn.works_for(&conversation);
        Self { scene, conversation, model }
    }

    async fn turn(&mut self, stop: &Stop) -> TurnEnd {
        self.conversation.turn(UserInput::text("go"), stop).await
    }
}

fn spawn(id: &str, task: &str, name: &str) -> ResponseItem {
    call(id, "spawn_agent", &json!({ "task": task, "name": name }))
}

/// Waits for the next question and answers it.
async fn answer(events: &mut Events, approver: &Approver, decision: ReviewDecision) -> String {
    loop {
        let event = events.next().await.expect("the session goes on");
        if let Event::ExecApprovalRequest(request) = &event.event {
            approver.answer(&request.approval_id, decision).unwrap();
            return request.agent.clone().unwrap_or_default();
        }
    }
}

/// spec SUB.50: A subagent knows its task and nothing else of the conversation that it works for, which is
/// given its last message and nothing else of what it did.
///
/// spec SUB.51: That a subagent begins and ends is told, and between that what happens in it, with its
/// name; its provider is told what it is.
#[tokio::test]
async fn a_subagent_has_its_task_and_gives_back_its_last_message() {
    let model = Model::new(async |request: Request| {
        let results = request.results();
        Ok(match (request.prompt().as_str(), results.len()) {
            ("go", 0) => vec![spawn("c1", "count the files", "counter")],
            ("go", _) => vec![say(&format!("it says: {}", results[0]))],
            ("count the files", 0) => vec![
                say("secret thoughts"),
                call("s1", "shell_command", &json!({ "command": "ls" })),
            ],
            _ => vec![say("there are none")],
        })
    });
    let mut talk = Talk::new(model, AskForApproval::Never, SubAgentLimits::default());
    let mut events = talk.scene.session.events(Delivery::Complete).await;
    let end = talk.turn(&Stop::default()).await;
    let last_message = Some("it says: there are none".to_owned());
    assert_eq!(end, TurnEnd::Complete { last_message });
    let asked = talk.model.asked();
    let below = SessionSource::SubAgent(SubAgentSource::Other("counter".to_owned()));
    let of_child: Vec<&Request> = asked.iter().filter(|one| one.source == below).collect();
    assert_eq!(of_child.len(), 2);
    assert!(!format!("{:?}", of_child[0].items).contains("\"go\""));
    assert!(of_child[0].instructions.contains("You are a subagent"));
    assert!(!format!("{:?}", talk.conversation.items()).contains("secret thoughts"));
    let mut told = Vec::new();
    while let Some(event) = events.try_next() {
        match &event.event {
            Event::Agent(AgentEvent::SubAgentBegin { agent, task }) => {
                told.push(format!("{agent} begins: {task}"));
            }
            Event::Agent(AgentEvent::SubAgentEnd { agent, success }) => {
                told.push(format!("{agent} ends: {success}"));
            }
            Event::SubAgent(below) => {
                if let Event::Agent(AgentEvent::AgentMessage { message }) = &*below.event {
                    told.push(format!("{} says: {message}", below.agent));
                }
            }
            _ => {}
        }
    }
    let expected = [
        "counter-1 begins: count the files",
        "counter-1 says: secret thoughts",
        "counter-1 says: there are none",
        "counter-1 ends: true",
    ];
    assert_eq!(told, expected);
}

/// spec SUB.52: Subagents that are asked for together work at the same time.
#[tokio::test]
async fn several_subagents_work_at_once() {
    let meeting = Arc::new(tokio::sync::Barrier::new(3));
    let model = Model::new(move |request: Request| {
        let meeting = Arc::clone(&meeting);
        async move {
            let results = request.results();
            Ok(match (request.prompt().as_str(), results.len()) {
                ("go", 0) => vec![
                    spawn("c1", "one", "worker"),
                    spawn("c2", "two", "worker"),
                    spawn("c3", "three", "worker"),
                ],
                ("go", _) => vec![say(&results.join(" "))],
                (task, _) => {
                    // None of them ends before all have begun.
                    meeting.wait().await;
                    vec![say(&format!("<{task}>"))]
                }
            })
        }
    });
    let mut talk = Talk::new(model, AskForApproval::Never, SubAgentLimits::default());
    let end = talk.turn(&Stop::default()).await;
    assert_eq!(end, TurnEnd::Complete { last_message: Some("<one> <two> <three>".to_owned()) });
}

/// A model that has a subagent, which runs one command.
fn one_command() -> Arc<Model> {
    Model::new(async |request: Request| {
        let results = request.results();
        Ok(match (request.prompt().as_str(), results.len()) {
            ("go", 0) => vec![spawn("c1", "touch", "toucher")],
            ("go", _) => vec![say(&results[0])],
            (_, 0) => vec![call("s1", "shell_command", &json!({ "command": "touch made" }))],
            _ => vec![say(&format!("done: {}", results[0]))],
        })
    })
}

/// spec SUB.53: The command of a subagent that a model asked for is approved by the person whose session
/// it is.
#[tokio::test]
async fn a_subagents_command_is_approved_by_the_person() {
    let limits = SubAgentLimits::default();
    let mut talk = Talk::new(one_command(), AskForApproval::UnlessTrusted, limits);
    let approver = talk.scene.session.approver("terminal");
    let mut events = talk.scene.session.events(Delivery::Complete).await;
    let stop = Stop::default();
    let person = answer(&mut events, &approver, ReviewDecision::Approved);
    let (end, agent) = tokio::join!(talk.turn(&stop), person);
    assert!(matches!(end, TurnEnd::Complete { .. }), "{end:?}");
    assert_eq!(agent, "toucher-1");
    assert!(talk.scene.workspace.path().join("made").exists());
}

/// spec SUB.54: Who answers a subagent's question with a stop stops the whole turn.
#[tokio::test]
async fn a_stop_said_to_a_subagent_stops_everything() {
    let limits = SubAgentLimits::default();
    let mut talk = Talk::new(one_command(), AskForApproval::UnlessTrusted, limits);
    let approver = talk.scene.session.approver("terminal");
    let mut events = talk.scene.session.events(Delivery::Complete).await;
    let stop = Stop::default();
    let person = answer(&mut events, &approver, ReviewDecision::Abort);
    let (end, _) = tokio::join!(talk.turn(&stop), person);
    assert_eq!(end, TurnEnd::Aborted);
    assert!(!talk.scene.workspace.path().join("made").exists());
}

/// spec SUB.42: A turn that is called off while a subagent's model speaks ends, and leaves a history in
/// which every call has an answer.
#[tokio::test]
async fn a_turn_that_is_called_off_ends_its_subagents_requests() {
    let (speaks, mut spoken) = tokio::sync::mpsc::unbounded_channel();
    let model = Model::new(move |request: Request| {
        let speaks = speaks.clone();
        async move {
            if request.prompt() == "go" {
                return Ok(vec![spawn("c1", "think for ever", "thinker")]);
            }
            speaks.send(()).unwrap();
            std::future::pending().await
        }
    });
    let mut talk = Talk::new(model, AskForApproval::Never, SubAgentLimits::default());
    let stop = Stop::default();
    let person = async {
        spoken.recv().await.unwrap();
        stop.cancel.cancel();
    };
    let (end, ()) = tokio::join!(talk.turn(&stop), person);
    assert_eq!(end, TurnEnd::Aborted);
    let items = talk.conversation.items();
    let count = |wanted: fn(&ResponseItem) -> bool| items.iter().filter(|one| wanted(one)).count();
    let calls = count(|item| matches!(item, ResponseItem::ToolCall { .. }));
    let answers = count(|item| matches!(item, ResponseItem::ToolCallOutput { .. }));
    assert_eq!((calls, answers), (1, 1));
}

/// spec SUB.22: A model that wants more subagents than there may be is told so, and goes on.
#[tokio::test]
async fn a_model_is_told_that_there_may_be_no_more() {
    let model = Model::new(async |request: Request| {
        let results = request.results();
        Ok(match (request.prompt().as_str(), results.len()) {
            ("go", 0) => vec![spawn("c1", "deeper", "outer")],
            ("deeper", 0) => vec![spawn("c2", "deepest", "inner")],
            _ => vec![say(&results[0])],
        })
    });
    let limits = SubAgentLimits { depth: 1, at_once: 8 };
    let mut talk = Talk::new(model, AskForApproval::Never, limits);
    let TurnEnd::Complete { last_message: Some(said) } = talk.turn(&Stop::default()).await else {
        panic!("it ends");
    };
    assert!(said.contains("at most 1 deep"), "{said}");
}

/// spec SUB.31: What a subagent says and does is written down as a conversation of its own, which names
/// what it is for and the conversation that it works for.
#[tokio::test]
async fn a_subagents_conversation_is_written_down() {
    let model = Model::new(async |request: Request| {
        let results = request.results();
        Ok(match (request.prompt().as_str(), results.len()) {
            ("go", 0) => vec![spawn("c1", "outer task", "outer")],
            ("outer task", 0) => vec![spawn("c2", "inner task", "inner")],
            _ => vec![say("done")],
        })
    });
    let mut talk = Talk::new(model, AskForApproval::Never, SubAgentLimits::default());
    assert!(matches!(talk.turn(&Stop::default()).await, TurnEnd::Complete { .. }));
    let found = rollout::list(talk.scene.home.path(), 10, |_| true).unwrap();
    let of = |prompt: &str| {
        found.iter().find(|one| one.prompt.as_deref() == Some(prompt)).unwrap().meta.clone()
    };
    let (first, outer, inner) = (of("go"), of("outer task"), of("inner task"));
    assert_eq!(first.parent, None);
    assert_eq!(outer.parent, Some(first.id));
    assert_eq!(inner.parent, Some(outer.id));
    let inner_source = SessionSource::SubAgent(SubAgentSource::Other("inner".to_owned()));
    assert_eq!(inner.source, inner_source);
}
