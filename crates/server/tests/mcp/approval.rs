//! Questions: put to the client in both generations, and answered elsewhere.

use crate::support::{
    Client, Connected, GENERATIONS, LIMIT, Person, World, accept, eventually, facts, mark, request,
    running_with, text,
};
use rmcp::model::{
    CallToolResponse, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode,
    InputRequest, ProtocolVersion,
};
use rmcp::service::ServiceError;
use sandgate_protocol::ReviewDecision;
use serde_json::{Value, json};
use std::time::Duration;

/// A command that is asked about where nothing is trusted.
fn make_file(name: &str) -> Value {
    json!({ "command": ["sh", "-c", format!("echo x > {name}")] })
}

fn newer() -> ProtocolVersion {
    ProtocolVersion::V_2026_07_28
}

/// spec MCPS.20: A question goes to a client that can show forms, with the facts that a terminal
/// would show, all of them visible, and with the answers that are offered.
#[tokio::test]
async fn the_person_at_the_client_says_yes() {
    for version in GENERATIONS {
        let world = World::asking();
        let client = world.connect(Client::that_says("approve"), &version).await;
        let done = client.call("shell", make_file("made")).await;
        assert_eq!(done.is_error, Some(false), "{done:?}");
        assert!(world.path("made").exists());
        let forms = client.heard.forms.lock().unwrap().clone();
        let [ElicitRequestParams::FormElicitationParams { message, requested_schema, .. }] =
            &forms[..]
        else {
            panic!("{forms:?}")
        };
        assert!(
            message.starts_with("May this run?\n\n  because: it writes to made\n"),
            "{message}"
        );
        // The command is the last thing before the answers: nothing can push it away from them.
        assert!(message.contains("\n\n  $ echo x > made\n  in "), "{message}");
        let schema = serde_json::to_value(requested_schema).unwrap();
        let words = schema["properties"]["decision"]["enum"].as_array().unwrap();
        for word in ["approve", "session", "deny", "abort"] {
            assert!(words.contains(&json!(word)), "{schema}");
        }
        assert_eq!(schema["required"], json!(["decision"]));
        // For the session means that the same is not asked about again.
        let again = world.connect(Client::that_says("session"), &version).await;
        for _ in 0..2 {
            assert_eq!(again.call("shell", make_file("made")).await.is_error, Some(false));
        }
        assert_eq!(again.heard.forms.lock().unwrap().len(), 1);
    }
}

/// spec MCPS.21: Whatever comes back that is not plainly one of the offered answers is a no.
#[tokio::test]
async fn whatever_is_not_plainly_offered_is_a_no() {
    let said = [
        ElicitResult::new(ElicitationAction::Decline),
        ElicitResult::new(ElicitationAction::Cancel).with_content(json!({ "decision": "approve" })),
        ElicitResult::new(ElicitationAction::Accept),
        accept(json!({ "decision": "deny", "feedback": "use make" })),
        accept(json!({ "decision": "yes" })),
        accept(json!({ "decision": "rule" })),
        accept(json!({ "decision": "grant" })),
        accept(json!({ "decision": ["approve"] })),
        accept(json!("approve")),
        accept(json!({ "decision": "abort" })),
    ];
    for version in GENERATIONS {
        for said in &said {
            let world = World::asking();
            let client = Client::new(Person::Says(said.clone()));
            let client = world.connect(client, &version).await;
            let done = client.call("shell", make_file("made")).await;
            assert_eq!(done.is_error, Some(true), "{said:?} {done:?}");
            assert!(!world.path("made").exists());
            let code = facts(&done)["error"]["code"].as_str().unwrap();
            assert!(["approval_denied", "user_aborted"].contains(&code), "{said:?} {code}");
            if said.content.as_ref().is_some_and(|content| content.get("feedback").is_some()) {
                assert!(text(&done).contains("use make"), "{done:?}");
            }
        }
    }
}

/// The question of a call that is made once, and the state that comes with it.
async fn asked(client: &Connected, arguments: &Value) -> (InputRequest, String) {
    let called = client.service.call_tool_once(request("shell", arguments.clone())).await;
    let Ok(CallToolResponse::InputRequired(asked)) = called else { panic!("{called:?}") };
    let form = asked.input_requests.unwrap().remove("approval").expect("a form");
    (form, asked.request_state.expect("a state"))
}

async fn come_again(
    client: &Connected,
    arguments: &Value,
    state: &str,
    word: &str,
) -> Result<CallToolResponse, ServiceError> {
    let answer = json!({ "action": "accept", "content": { "decision": word } });
    let mut again = request("shell", arguments.clone());
    again.input_responses = Some([("approval".to_owned(), answer)].into());
    again.request_state = Some(state.to_owned());
    tokio::time::timeout(LIMIT, client.service.call_tool_once(again)).await.expect("it ends")
}

/// spec MCPS.23: From 2026-07-28 on a question is the answer to the call, and the call that is made
/// again goes on where the first one waits.
/// spec MCPS.24: A call that waits goes on once, however often it is made again.
#[tokio::test]
async fn a_call_that_is_made_again_goes_on_and_only_once() {
    let world = World::asking();
    let client = world.connect(Client::that_says("deny"), &newer()).await;
    let count = json!({ "command": ["sh", "-c", "echo x >> count"] });
    let (form, state) = asked(&client, &count).await;
    assert!(matches!(form, InputRequest::Elicitation(_)));
    assert!(!world.path("count").exists());
    let Ok(CallToolResponse::Complete(done)) = come_again(&client, &count, &state, "approve").await
    else {
        panic!("it is done")
    };
    assert_eq!(done.is_error, Some(false), "{done:?}");
    let Ok(CallToolResponse::Complete(late)) = come_again(&client, &count, &state, "approve").await
    else {
        panic!("it is answered")
    };
    assert_eq!(late.is_error, Some(true), "{late:?}");
    assert_eq!(std::fs::read_to_string(world.path("count")).unwrap(), "x\n");
}

/// spec MCPS.22: What a client carries back counts only as it was signed, on the same connection,
/// for the same tool with the same arguments, and in time.
#[tokio::test]
async fn a_state_of_another_call_or_client_counts_for_nothing() {
    let world = World::asking();
    let client = world.connect(Client::that_says("deny"), &newer()).await;
    let other = world.connect(Client::that_says("deny"), &newer()).await;
    let (_, state) = asked(&client, &make_file("made")).await;
    let forged = format!("{}x", &state[..state.len() - 1]);
    for (client, arguments, state) in [
        (&client, make_file("other"), state.as_str()),
        (&other, make_file("made"), state.as_str()),
        (&client, make_file("made"), forged.as_str()),
        (&client, make_file("made"), ""),
    ] {
        let refused = come_again(client, &arguments, state, "approve").await;
        let Err(ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    }
    assert!(!world.path("made").exists() && !world.path("other").exists());
    let done = come_again(&client, &make_file("made"), &state, "approve").await;
    assert!(matches!(done, Ok(CallToolResponse::Complete(_))), "{done:?}");
    assert!(world.path("made").exists());
}

/// spec MCPS.25: A call that nobody comes back to is answered with no when its time is over.
#[tokio::test]
async fn a_question_that_nobody_comes_back_to_lapses() {
    let mut world = World::asking();
    world.options.approval_timeout = Duration::from_millis(300);
    let client = world.connect(Client::that_says("approve"), &newer()).await;
    let (_, state) = asked(&client, &make_file("made")).await;
    eventually("it has lapsed", || world.desk.open().is_empty()).await;
    let Ok(CallToolResponse::Complete(late)) =
        come_again(&client, &make_file("made"), &state, "approve").await
    else {
        panic!("it is answered")
    };
    assert_eq!(facts(&late)["error"]["code"], "approval_timeout", "{late:?}");
    assert!(!world.path("made").exists());
}

/// spec MCPS.26: Every question lies on the desk too; the first answer counts, and a form that is
/// still shown is withdrawn.
#[tokio::test]
async fn the_first_answer_counts_and_the_form_is_withdrawn() {
    let world = World::asking();
    let (client, _tell) = Client::that_waits();
    let client = world.connect(client, &ProtocolVersion::V_2025_11_25).await;
    let calling = client.call("shell", make_file("made"));
    let elsewhere = async {
        client.heard.until("the form", |heard| heard.forms.lock().unwrap().first().cloned()).await;
        let open = world.desk.open();
        assert_eq!((open.len(), open[0].asker.front_end.as_str()), (1, "mcp"));
        world.desk.answer(&open[0].id, ReviewDecision::Approved, "elsewhere").unwrap();
    };
    let (done, ()) = tokio::join!(calling, elsewhere);
    assert_eq!(done.is_error, Some(false), "{done:?}");
    let withdrawn =
        |heard: &crate::support::Heard| (*heard.withdrawn.lock().unwrap() > 0).then_some(());
    client.heard.until("the form to be withdrawn", withdrawn).await;
    assert!(world.desk.open().is_empty());
}

/// spec MCPS.26: Every question lies on the desk too; the first answer counts, and a form that is
/// still shown is withdrawn.
#[tokio::test]
async fn a_call_that_waits_for_its_client_is_answered_elsewhere() {
    let world = World::asking();
    let client = world.connect(Client::that_says("deny"), &newer()).await;
    let (_, state) = asked(&client, &make_file("made")).await;
    let open = world.desk.open();
    world.desk.answer(&open[0].id, ReviewDecision::Approved, "elsewhere").unwrap();
    eventually("it was made", || world.path("made").exists()).await;
    let Ok(CallToolResponse::Complete(done)) =
        come_again(&client, &make_file("made"), &state, "deny").await
    else {
        panic!("it is answered")
    };
    assert_eq!(done.is_error, Some(false), "the first answer counts: {done:?}");
}

/// spec MCPS.34: What a client carries back answers the question that it was shown, and no other: if the
/// call asks something else by then, the client is asked that.
#[tokio::test]
async fn an_answer_to_one_question_is_none_to_the_next() {
    let world = World::asking();
    let client = world.connect(Client::that_says("deny"), &newer()).await;
    let outside = tempfile::tempdir().unwrap();
    let made = outside.path().join("made");
    let script = format!("echo x > {}", made.display());
    let command = json!({ "command": ["sh", "-c", script] });
    let (_, state) = asked(&client, &command).await;
    let first = world.desk.open().remove(0).id;
    world.desk.answer(&first, ReviewDecision::Approved, "elsewhere").unwrap();
    let is_next = || world.desk.open().first().is_some_and(|open| open.id != first);
    eventually("the sandbox blocked it and it is asked about", is_next).await;
    let again = come_again(&client, &command, &state, "approve").await;
    assert!(!made.exists(), "the yes was for the first question");
    let Ok(CallToolResponse::InputRequired(next)) = again else { panic!("{again:?}") };
    let form = serde_json::to_string(&next.input_requests).unwrap();
    assert!(form.contains("The sandbox blocked this."), "{form}");
    assert!(is_next(), "it still waits");
    let state = next.request_state.expect("a state");
    let done = come_again(&client, &command, &state, "approve").await;
    assert!(matches!(done, Ok(CallToolResponse::Complete(_))), "{done:?}");
    assert!(made.exists());
}

/// spec MCPS.27: A client that cannot show forms is told where to answer, and after the time the
/// call comes to nothing with the same words.
#[tokio::test]
async fn a_client_that_shows_nothing_is_told_where_to_answer() {
    for person in [Person::None, Person::Fails] {
        for version in GENERATIONS {
            // In the newer generation it is the client that comes back, and one that fails does not.
            let is_silent = matches!(person, Person::Fails) && version == newer();
            if is_silent {
                continue;
            }
            let mut world = World::asking();
            world.options.approval_timeout = Duration::from_millis(400);
            let person = match person {
                Person::Fails => Person::Fails,
                _ => Person::None,
            };
            let client = world.connect(Client::new(person), &version).await;
            let done = client.call("shell", make_file("made")).await;
            assert_eq!(facts(&done)["error"]["code"], "approval_timeout", "{done:?}");
            assert!(text(&done).contains("sandgate approvals"), "{done:?}");
            let told = client.heard.progress.lock().unwrap().concat();
            assert!(told.contains("Waiting for an approval"), "{told}");
            assert!(told.contains("sandgate approvals"), "{told}");
            if version != newer() {
                let logged = client.heard.logged.lock().unwrap().concat();
                assert!(logged.contains("sandgate approvals"), "{logged}");
            }
            assert!(!world.path("made").exists());
        }
    }
}

/// spec MCPS.27: A client that cannot show forms is told where to answer, and after the time the
/// call comes to nothing with the same words.
#[tokio::test]
async fn somebody_elsewhere_answers_for_a_client_that_shows_nothing() {
    for version in GENERATIONS {
        let world = World::asking();
        let client = world.connect(Client::plain(), &version).await;
        let calling = client.call("shell", make_file("made"));
        let elsewhere = async {
            eventually("it is asked", || !world.desk.open().is_empty()).await;
            let open = world.desk.open();
            world.desk.answer(&open[0].id, ReviewDecision::Approved, "elsewhere").unwrap();
        };
        let (done, ()) = tokio::join!(calling, elsewhere);
        assert_eq!(done.is_error, Some(false), "{done:?}");
        assert!(world.path("made").exists());
    }
}

/// spec MCPS.28: A question that is too long for a form is not shown in part: it waits elsewhere.
#[tokio::test]
async fn a_question_that_no_form_can_hold_is_not_shown() {
    for version in GENERATIONS {
        let mut world = World::asking();
        world.options.approval_timeout = Duration::from_millis(400);
        let client = world.connect(Client::that_says("approve"), &version).await;
        let long = format!("echo x > made # {}", "x".repeat(70_000));
        let done = client.call("shell", json!({ "command": ["sh", "-c", long] })).await;
        assert_eq!(facts(&done)["error"]["code"], "approval_timeout");
        assert!(client.heard.forms.lock().unwrap().is_empty());
        assert!(!world.path("made").exists());
    }
}

/// A patch that makes a file of so many lines.
fn long_patch(lines: usize) -> Value {
    let body: String =
        (1..=lines).map(|line| format!("+line {line} {}\n", "x".repeat(80))).collect();
    json!({ "input": format!("*** Begin Patch\n*** Add File: made\n{body}*** End Patch") })
}

/// spec MCPS.28: A question that is too long for a form is not shown in part: it waits elsewhere.
#[tokio::test]
async fn a_patch_is_shown_whole_or_not_at_all() {
    for version in GENERATIONS {
        let mut world = World::asking();
        let client = world.connect(Client::that_says("approve"), &version).await;
        let done = client.call("apply_patch", long_patch(500)).await;
        assert_eq!(done.is_error, Some(false), "{done:?}");
        let forms = client.heard.forms.lock().unwrap().clone();
        let [ElicitRequestParams::FormElicitationParams { message, .. }] = &forms[..] else {
            panic!("{forms:?}")
        };
        for line in [1, 250, 500] {
            assert!(message.contains(&format!("line {line} x")), "{message}");
        }
        std::fs::remove_file(world.path("made")).unwrap();
        world.options.approval_timeout = Duration::from_millis(400);
        let client = world.connect(Client::that_says("approve"), &version).await;
        let done = client.call("apply_patch", long_patch(1000)).await;
        assert_eq!(facts(&done)["error"]["code"], "approval_timeout");
        assert!(client.heard.forms.lock().unwrap().is_empty());
        assert!(!world.path("made").exists());
    }
}

/// spec MCPS.20: A question goes to a client that can show forms, with the facts that a terminal
/// would show, all of them visible, and with the answers that are offered.
#[tokio::test]
async fn nothing_in_a_form_hides() {
    let world = World::asking();
    let client = world.connect(Client::that_says("deny"), &ProtocolVersion::V_2025_11_25).await;
    let script = "echo \u{1b}[2Jx\n\u{202e}rm y\nMay this run?";
    client.call("shell", json!({ "command": ["sh", "-c", script] })).await;
    let forms = client.heard.forms.lock().unwrap().clone();
    let [ElicitRequestParams::FormElicitationParams { message, .. }] = &forms[..] else {
        panic!("{forms:?}")
    };
    assert!(message.chars().all(|c| c == '\n' || !c.is_control()), "{message:?}");
    assert!(!message.chars().any(sandgate_protocol::is_invisible), "{message:?}");
    assert_eq!(message.lines().filter(|line| line.starts_with("May this run?")).count(), 1);
}

/// spec MCPS.14: A call that is cancelled ends with all that it started, also while it waits for an
/// answer.
#[tokio::test]
async fn a_call_that_is_cancelled_while_it_asks_runs_nothing() {
    let world = World::asking();
    let (client, _tell) = Client::that_waits();
    let client = world.connect(client, &ProtocolVersion::V_2025_11_25).await;
    let calling = client.service.call_tool(request("shell", make_file("made")));
    tokio::select! {
        done = calling => panic!("{done:?}"),
        _ = client.heard.until("the form", |heard| heard.forms.lock().unwrap().first().cloned()) => {}
    }
    eventually("nothing is asked", || world.desk.open().is_empty()).await;
    assert!(!world.path("made").exists());
}

/// spec MCPS.15: When a client closes its end, everything that it started ends, and so do its
/// questions.
#[tokio::test]
async fn a_client_that_goes_while_a_call_waits_for_it_leaves_nothing() {
    let world = World::asking();
    let sleep = mark(55);
    let client = world.connect(Client::that_says("deny"), &newer()).await;
    let (_, _state) =
        asked(&client, &json!({ "command": ["sh", "-c", format!("sleep {sleep}; echo x > y")] }))
            .await;
    client.service.cancel().await.unwrap();
    eventually("nothing is asked", || world.desk.open().is_empty()).await;
    assert_eq!(running_with(&sleep), 0);
}
