//! The door for editors, with the SDK's own client at the other end, in one process.

#![cfg(target_os = "linux")]

mod malformed;
mod scene;

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome, SessionUpdate,
    StopReason, ToolCallStatus,
};
use sandgate_server::{OpenError, Opener as _, WantedAgent, WantedSession};
use scene::{Answer, Scene, runs, says};
use serde_json::json;

fn selected(option: &'static str) -> RequestPermissionOutcome {
    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option))
}

/// spec ACP.7: What is offered to the person is what the question offers, and what was not offered is a no.
#[tokio::test]
async fn what_was_not_offered_is_a_no() {
    let turns =
        [json!([runs("touch made")]), json!([says("then not")]), json!([runs("touch made")])];
    let scene = Scene::new(&turns);
    let answers = [
        Answer::Now(selected("everything")),
        // A grant is offered only after something was blocked.
        Answer::Now(selected("grant")),
    ];
    let saw = scene.drive(answers, &["go", "once more"]).await;
    assert_eq!(saw.ends[0], Ok(StopReason::EndTurn));
    assert!(!scene.workspace().join("made").exists());
    let offered: Vec<_> = saw.asked[0]
        .options
        .iter()
        .map(|option| (option.option_id.0.to_string(), option.kind))
        .collect();
    let expected = [
        ("approve", PermissionOptionKind::AllowOnce),
        ("session", PermissionOptionKind::AllowAlways),
        ("rule", PermissionOptionKind::AllowAlways),
        ("deny", PermissionOptionKind::RejectOnce),
        ("abort", PermissionOptionKind::RejectOnce),
    ];
    assert_eq!(offered, expected.map(|(id, kind)| (id.to_owned(), kind)));
    let failed = saw.updates.iter().any(|update| match update {
        SessionUpdate::ToolCallUpdate(update) => {
            update.fields.status == Some(ToolCallStatus::Failed)
        }
        _ => false,
    });
    assert!(failed, "{:#?}", saw.updates);
}

/// spec ACP.7: What is offered to the person is what the question offers, and what was not offered is a no.
#[tokio::test]
async fn an_option_does_what_its_name_says() {
    let turns = [
        json!([runs("touch made")]),
        json!([says("made")]),
        json!([runs("touch made")]),
        json!([says("again")]),
        json!([runs("touch never")]),
        json!([runs("touch never")]),
    ];
    let scene = Scene::new(&turns);
    let answers = [
        Answer::Now(selected("session")),
        Answer::Now(selected("abort")),
        Answer::Now(RequestPermissionOutcome::Cancelled),
    ];
    let saw = scene.drive(answers, &["one", "two", "three", "four"]).await;
    let ended = [
        Ok(StopReason::EndTurn),
        Ok(StopReason::EndTurn),
        Ok(StopReason::Cancelled),
        Ok(StopReason::Cancelled),
    ];
    assert_eq!(saw.ends, ended);
    assert_eq!(saw.asked.len(), 3, "the second was not asked about");
    assert!(scene.workspace().join("made").exists());
    assert!(!scene.workspace().join("never").exists());
}

/// spec ACP.8: A session takes one turn at a time; a second prompt meanwhile is refused.
#[tokio::test]
async fn a_session_takes_one_turn_at_a_time() {
    let scene = Scene::new(&[json!([runs("touch made")]), json!([says("done")])]);
    let refused = scene.prompt_twice().await;
    assert!(refused.contains("this session is at work"), "{refused}");
    assert!(!scene.workspace().join("made").exists());
}

/// spec ACP.5: What cannot be is answered by an error that says why: a session that is not there, a
/// directory in the settings, a provider without a key.
#[tokio::test]
async fn a_session_that_cannot_be_opened_is_refused() {
    let scene = Scene::new(&[]);
    let wanted =
        WantedSession { workspace: Some("/no/such/place".into()), ..WantedSession::default() };
    let opened = scene.opener().conversation(wanted, WantedAgent::default());
    assert!(matches!(opened, Err(OpenError::Refused(_))));
    let refused = scene.begin_in("/no/such/place").await;
    assert!(refused.contains("/no/such/place"), "{refused}");
}
