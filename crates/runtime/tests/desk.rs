//! Questions of sessions on the desks of several programs, answered through their sockets.

#![cfg(target_os = "linux")]

use sandgate_protocol::{
    AnsweredBy, AskForApproval, CallId, CodexErr, Event, ReviewDecision, ToolCall, ToolPayload,
};
use sandgate_runtime::{
    Asker, Attendance, Delivery, Desk, DeskError, DeskSocket, Desks, PendingQuestion, Runtime,
    Session, SessionConfig, ToolResult,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// What a program has that lets its questions be answered elsewhere.
struct Program {
    session: Arc<Session>,
    desk: Arc<Desk>,
    _attendance: Attendance,
    _socket: DeskSocket,
}

impl Program {
    async fn start(settings: &Path, workspace: &Path) -> Self {
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let mut config = SessionConfig::new(workspace.to_owned());
        config.approval_policy = AskForApproval::UnlessTrusted;
        config.own_env = std::env::vars_os().collect();
        let session = Arc::new(Session::start(Arc::new(runtime), config).unwrap());
        let desk = Arc::new(Desk::default());
        let socket = desk.listen(settings).unwrap();
        let asker = Asker {
            front_end: "exec".to_owned(),
            workspace: workspace.to_string_lossy().into_owned(),
            conversation: None,
        };
        let attendance = desk.attend(&session, asker).await;
        Self { session, desk, _attendance: attendance, _socket: socket }
    }

    /// Asks whether a file may be made.
    fn touch(&self, name: &str) -> tokio::task::JoinHandle<ToolResult> {
        let arguments = json!({ "command": ["touch", name] }).to_string();
        let payload = ToolPayload::Function { arguments };
        let call = ToolCall { call_id: CallId::new(name), name: "shell".to_owned(), payload };
        let session = Arc::clone(&self.session);
        tokio::spawn(async move {
            let requester = session.requester();
            let turn = requester.begin_turn();
            requester.call(vec![call], &turn).await.remove(0)
        })
    }
}

/// What is asked whether it may run.
fn asked(pending: &PendingQuestion) -> &str {
    match &pending.question.question {
        Event::ExecApprovalRequest(request) => &request.command_text,
        other => panic!("not about a command: {other:?}"),
    }
}

/// spec DESK.1: The questions of all programs of a user are listed with who asks, where and since when,
/// each under a name that no other has; an answer counts as that of `approvals`, and takes it away.
/// spec DESK.6: Who watches is told of all that is open, at once and whenever it changes, also in programs
/// that start later.
/// spec DESK.7: A question is named by its id, of which `approvals answer` takes any beginning of what
/// stands before the `-` that no other program has; the number is never shortened. What is no question, and
/// what is no answer, is said.
#[tokio::test]
async fn questions_of_all_programs_are_seen_and_answered() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (settings, ws) = (base.path().join("settings"), base.path().join("ws"));
    std::fs::create_dir(&settings).unwrap();
    std::fs::create_dir(&ws).unwrap();
    let desks = Desks::in_settings(&settings);
    let mut watch = desks.watch();
    assert!(watch.next().await.unwrap().is_empty());
    let first = Program::start(&settings, &ws).await;
    let making = first.touch("one");
    let open = watch.next().await.unwrap();
    assert_eq!(open.iter().map(asked).collect::<Vec<_>>(), ["touch one"]);
    assert_eq!(open[0].pid, std::process::id());
    assert_eq!(open[0].question.asker.front_end, "exec");
    assert_eq!(open[0].question.asker.workspace, ws.to_string_lossy());
    let second = Program::start(&settings, &ws).await;
    let mut events = second.session.events(Delivery::Complete).await;
    let refused = second.touch("two");
    let open = watch.next().await.unwrap();
    assert_eq!(open.iter().map(asked).collect::<Vec<_>>(), ["touch one", "touch two"]);
    assert_eq!(desks.list().await.unwrap().questions, open);
    let (one, two) = (open[0].question.id.clone(), open[1].question.id.clone());
    assert_ne!(one, two);

    let wrong = desks.answer("no-such", ReviewDecision::Approved).await.unwrap_err();
    assert!(matches!(wrong, DeskError::NoSuchQuestion { .. }), "{wrong}");
    let end = (1..one.len()).find(|&end| !two.starts_with(&one[..end])).unwrap();
    for wrong in ["", "-1", "../desk-1", &one[..8], &one[..end], "no-such"] {
        let wrong = desks.whole_id(wrong).await.unwrap_err();
        assert!(matches!(wrong, DeskError::NoSuchQuestion { .. }), "{wrong}");
    }
    let beginning = format!("{}-1", &one[..end]);
    assert_eq!(desks.whole_id(&beginning).await.unwrap(), one);
    let wrong = desks.answer(&beginning, ReviewDecision::Approved).await.unwrap_err();
    assert!(matches!(wrong, DeskError::NoSuchQuestion { .. }), "{wrong}");
    assert_eq!(desks.outcome(&one).await.unwrap(), None);
    desks.answer(&one, ReviewDecision::Approved).await.unwrap();
    assert!(making.await.unwrap().error.is_none());
    assert!(ws.join("one").exists());
    let open = watch.next().await.unwrap();
    assert_eq!(open.iter().map(asked).collect::<Vec<_>>(), ["touch two"]);
    let wrong = desks.answer(&one, ReviewDecision::Approved).await.unwrap_err();
    assert_eq!(wrong.to_string(), "approvals has answered this already");
    let outcome = desks.outcome(&one).await.unwrap().unwrap();
    assert_eq!(outcome.answered_by, AnsweredBy::Person("approvals".to_owned()));
    let no = ReviewDecision::Denied { feedback: Some("not now".to_owned()) };
    desks.answer(&two, no).await.unwrap();
    assert_eq!(
        refused.await.unwrap().error,
        Some(CodexErr::ApprovalDenied { feedback: Some("not now".to_owned()) })
    );
    assert!(!ws.join("two").exists());
    let by = loop {
        if let Event::ApprovalResponse(response) = &events.next().await.unwrap().event {
            break response.answered_by.clone();
        }
    };
    assert_eq!(by, AnsweredBy::Person("approvals".to_owned()));
    assert!(watch.next().await.unwrap().is_empty());

    // A program that ends takes its questions along.
    let left = first.touch("three");
    assert_eq!(watch.next().await.unwrap().len(), 1);
    drop(first);
    assert!(watch.next().await.unwrap().is_empty());
    left.abort();
}

/// spec DESK.7: A question is named by its id, of which `approvals answer` takes any beginning of what
/// stands before the `-` that no other program has; the number is never shortened. What is no question, and
/// what is no answer, is said.
#[tokio::test]
async fn a_question_that_lapsed_does_not_become_another() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (settings, ws) = (base.path().join("settings"), base.path().join("ws"));
    std::fs::create_dir(&settings).unwrap();
    std::fs::create_dir(&ws).unwrap();
    let program = Program::start(&settings, &ws).await;
    let desks = Desks::in_settings(&settings);
    let mut watch = desks.watch();
    assert!(watch.next().await.unwrap().is_empty());
    let mut first = None;
    for number in 1..=9 {
        let made = program.touch(&format!("no{number}"));
        let open = watch.next().await.unwrap();
        desks.answer(&open[0].question.id, ReviewDecision::DENIED).await.unwrap();
        made.await.unwrap();
        first.get_or_insert_with(|| open[0].question.id.clone());
        assert!(watch.next().await.unwrap().is_empty());
    }
    let tenth = program.touch("ten");
    let open = watch.next().await.unwrap();
    let (first, open) = (first.unwrap(), &open[0].question.id);
    assert_eq!(*open, format!("{first}0"));
    let whole = desks.whole_id(&first).await.unwrap();
    assert_eq!(whole, first);
    let wrong = desks.answer(&whole, ReviewDecision::Approved).await.unwrap_err();
    assert_eq!(wrong.to_string(), "approvals has answered this already");
    desks.answer(open, ReviewDecision::DENIED).await.unwrap();
    tenth.await.unwrap();
    assert!(!ws.join("ten").exists());
}

/// spec DESK.13: `sandgate console` prints the address that a program gives to whoever asks over the
/// socket; without such a program the exit code is 125.
#[tokio::test]
async fn the_console_is_found_through_the_socket() {
    let base = tempfile::tempdir().unwrap();
    let program = Program::start(base.path(), base.path()).await;
    let desks = Desks::in_settings(base.path());
    assert_eq!(desks.consoles().await.unwrap(), []);
    program.desk.set_console(|| Some("http://127.0.0.1:1/#token=x".to_owned()));
    let consoles = desks.consoles().await.unwrap();
    assert_eq!(consoles.len(), 1);
    assert_eq!(consoles[0].address, "http://127.0.0.1:1/#token=x");
}

/// spec DESK.5: What a program left that was killed is removed by whoever looks, and by the next program that
/// has a desk; what one has that runs stays.
#[tokio::test]
async fn what_was_left_behind_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let _runs = Program::start(base.path(), base.path()).await;
    let directory = base.path().join("desk");
    let files = || std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(files(), 2);
    let leave = || {
        drop(std::os::unix::net::UnixListener::bind(directory.join("0123abcd.sock")).unwrap());
        std::fs::write(directory.join("0123abcd.lock"), "").unwrap();
        // One that was killed between the two.
        std::fs::write(directory.join("4567abcd.lock"), "").unwrap();
        assert_eq!(files(), 5);
    };
    leave();
    let listed = Desks::in_settings(base.path()).list().await.unwrap();
    assert!(listed.questions.is_empty() && listed.notes.is_empty(), "{listed:?}");
    assert_eq!(files(), 2);
    leave();
    let also = Program::start(base.path(), base.path()).await;
    assert_eq!(files(), 4);
    drop(also);
}
