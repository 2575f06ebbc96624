//! Who is asked after a denial and before it, by whom, and what becomes of answers that come late or not
//! at all: through a whole session.

#![cfg(target_os = "linux")]

use sandgate_protocol::{
    AnsweredBy, ApprovalId, AskForApproval, CallId, CodexErr, Event, ExecApprovalRequest,
    ReviewDecision, RiskAssessment, RiskLevel, SandboxPolicy, ToolCall, ToolPayload,
};
use sandgate_runtime::{
    AnswerError, Delivery, Events, RiskAssessor, RiskQuestion, Runtime, Session, SessionConfig,
    ToolResult, enforcement,
};
use serde_json::json;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A session in a directory of its own, with one beside it.
struct Scene {
    base: tempfile::TempDir,
    session: Session,
}

impl Scene {
    fn new(approval: AskForApproval, change: impl FnOnce(&mut SessionConfig)) -> Self {
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        // Not below `/tmp`, which a confined command may write to.
        let base = tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").unwrap();
        for name in ["ws", "outside"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        let mut config = SessionConfig::new(base.path().join("ws"));
        config.approval_policy = approval;
        config.own_env = std::env::vars_os().collect();
        change(&mut config);
        let session = Session::start(Arc::new(runtime), config).unwrap();
        Self { base, session }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    /// A command that writes where the sandbox does not let it.
    async fn blocked_call(&self) -> ToolResult {
        self.call(&["touch", self.path("outside/made").to_str().unwrap()]).await
    }

    async fn call(&self, command: &[&str]) -> ToolResult {
        self.call_all(&[command]).await.remove(0)
    }

    /// The calls of one response of a model.
    async fn call_all(&self, commands: &[&[&str]]) -> Vec<ToolResult> {
        let call = |(number, command): (usize, &&[&str])| ToolCall {
            call_id: CallId::new(format!("call_{number}")),
            name: "shell".to_owned(),
            payload: ToolPayload::Function { arguments: json!({ "command": command }).to_string() },
        };
        let requester = self.session.requester();
        let turn = requester.begin_turn();
        requester.call(commands.iter().enumerate().map(call).collect(), &turn).await
    }
}

/// Waits for the next question.
async fn question(events: &mut Events) -> Box<ExecApprovalRequest> {
    loop {
        if let Event::ExecApprovalRequest(request) = &events.next().await.unwrap().event {
            return request.clone();
        }
    }
}

/// Waits for what came of the next question.
async fn answer(events: &mut Events) -> (ApprovalId, ReviewDecision, AnsweredBy) {
    loop {
        if let Event::ApprovalResponse(response) = &events.next().await.unwrap().event {
            let response = response.clone();
            return (response.approval_id, response.decision, response.answered_by);
        }
    }
}

fn denials_are_known() -> bool {
    let full = enforcement().is_full();
    if !full {
        eprintln!("SKIPPED: this machine has no full sandbox");
    }
    full
}

/// Notes what it is asked, and always says the same.
#[derive(Default)]
struct Assessor {
    asked: Mutex<Vec<String>>,
    says: Option<RiskAssessment>,
}

impl RiskAssessor for Assessor {
    fn assess<'a>(
        &'a self,
        question: RiskQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = Option<RiskAssessment>> + Send + 'a>> {
        let denials: Vec<String> =
            question.denials.evidence.iter().map(ToString::to_string).collect();
        let workspace_write = *question.policy == SandboxPolicy::workspace_write();
        self.asked.lock().unwrap().push(format!(
            "{} | in {} | workspace-write: {workspace_write} | {} | {}",
            question.command.join(" "),
            question.cwd.display(),
            denials.join(", "),
            question.stderr.lines().next().unwrap_or_default(),
        ));
        Box::pin(async { self.says.clone() })
    }
}

fn low(description: &str) -> Assessor {
    let says = RiskAssessment { risk_level: RiskLevel::Low, description: description.to_owned() };
    Assessor { says: Some(says), ..Assessor::default() }
}

/// spec ASKING.1: Whoever assesses risks is shown the command, its directory, the policy, what was refused
/// and what it printed as an error, and its word is part of the question, with everything in it visible.
#[tokio::test]
async fn an_assessor_is_shown_what_happened_and_heard_by_the_person() {
    if !denials_are_known() {
        return;
    }
    let assessor = Arc::new(low("makes a file\u{202e}\u{1b}[2J"));
    let risk: Arc<dyn RiskAssessor> = assessor.clone();
    let scene = Scene::new(AskForApproval::OnRequest, |config| config.risk = Some(risk));
    let approver = scene.session.approver("test");
    let mut events = scene.session.events(Delivery::Complete).await;
    let person = async {
        let asked = question(&mut events).await;
        approver.answer(&asked.approval_id, ReviewDecision::DENIED).unwrap();
        asked.risk.unwrap()
    };
    let (_, risk) = tokio::join!(scene.blocked_call(), person);
    assert_eq!(risk.risk_level, RiskLevel::Low);
    assert_eq!(risk.description, "makes a file\\u{202e}\\u{1b}[2J");
    let made = scene.path("outside/made");
    let (made, ws) = (made.display(), scene.path("ws"));
    let asked = assessor.asked.lock().unwrap().clone();
    let start = format!(
        "touch {made} | in {} | workspace-write: true | create {made} (outside the writable roots) \
         | touch: cannot touch",
        ws.display()
    );
    assert_eq!(asked.len(), 1);
    assert!(asked[0].starts_with(&start), "{asked:?}");
}

/// spec ASKING.2: However low the risk is said to be, nothing is approved by it.
#[tokio::test]
async fn an_assessor_approves_nothing() {
    if !denials_are_known() {
        return;
    }
    let assessor = Arc::new(low("quite harmless"));
    let risk: Arc<dyn RiskAssessor> = assessor.clone();
    let scene = Scene::new(AskForApproval::OnRequest, |config| config.risk = Some(risk));
    scene.blocked_call().await;
    assert_eq!(assessor.asked.lock().unwrap().len(), 1, "it was asked");
    assert!(!scene.path("outside/made").exists());
}

/// spec ASKING.3: What the sandbox did not block is not assessed.
#[tokio::test]
async fn what_was_not_blocked_is_not_assessed() {
    let assessor = Arc::new(low("quite harmless"));
    let risk: Arc<dyn RiskAssessor> = assessor.clone();
    let scene = Scene::new(AskForApproval::OnRequest, |config| config.risk = Some(risk));
    scene.call(&["false"]).await;
    scene.call(&["true"]).await;
    assert_eq!(assessor.asked.lock().unwrap().len(), 0);
}

/// Never comes to an end, and lets the clock run while it does not.
struct Undecided;

impl RiskAssessor for Undecided {
    fn assess<'a>(
        &'a self,
        _: RiskQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = Option<RiskAssessment>> + Send + 'a>> {
        // From here on time goes to the next thing that waits for it, without anybody waiting.
        tokio::time::pause();
        Box::pin(std::future::pending())
    }
}

/// spec ASKING.4: An assessment is waited for no longer than 5 seconds; the person is asked without it then.
#[tokio::test]
async fn an_assessor_who_does_not_decide_is_not_waited_for() {
    if !denials_are_known() {
        return;
    }
    let scene =
        Scene::new(AskForApproval::OnRequest, |config| config.risk = Some(Arc::new(Undecided)));
    let approver = scene.session.approver("test");
    let mut events = scene.session.events(Delivery::Complete).await;
    let person = async {
        let started = tokio::time::Instant::now();
        let asked = question(&mut events).await;
        let waited = started.elapsed();
        tokio::time::resume();
        approver.answer(&asked.approval_id, ReviewDecision::DENIED).unwrap();
        (asked.risk, waited)
    };
    let (_, (risk, waited)) = tokio::join!(scene.blocked_call(), person);
    assert_eq!(risk, None);
    assert!(waited >= RiskQuestion::PATIENCE, "{waited:?}");
    assert_eq!(RiskQuestion::PATIENCE, Duration::from_secs(5));
}

/// spec ASKING.5: A question that nobody answers in time counts as a no, and everybody is told that it was
/// the time.
#[tokio::test]
async fn the_end_of_patience_is_a_no_that_says_so() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, |config| {
        config.approval_timeout = Some(Duration::from_millis(1));
    });
    let approver = scene.session.approver("test");
    let mut events = scene.session.events(Delivery::Complete).await;
    let result = scene.call(&["touch", "made"]).await;
    assert_eq!(result.error, Some(CodexErr::ApprovalTimeout));
    assert!(!result.ends_turn());
    assert!(!scene.path("ws/made").exists());
    let (id, decision, by) = answer(&mut events).await;
    assert_eq!((decision, by), (ReviewDecision::DENIED, AnsweredBy::Timeout));
    let late = approver.answer(&id, ReviewDecision::Approved);
    assert_eq!(late, Err(AnswerError::NoSuchQuestion { id }));
}

/// spec ASKING.6: Two front ends that watch one session hear the same questions; the first answer counts,
/// the second is told who was first, and both hear what came of it.
#[tokio::test]
async fn the_first_of_two_front_ends_decides() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, |_| {});
    let (terminal, browser) =
        (scene.session.approver("terminal"), scene.session.approver("browser"));
    let mut at_terminal = scene.session.events(Delivery::Complete).await;
    let mut at_browser = scene.session.events(Delivery::Complete).await;
    let people = async {
        let (one, two) = (question(&mut at_terminal).await, question(&mut at_browser).await);
        assert_eq!(one, two);
        browser.answer(&one.approval_id, ReviewDecision::Approved).unwrap();
        let late = terminal.answer(&one.approval_id, ReviewDecision::Abort);
        assert_eq!(late, Err(AnswerError::AlreadyAnswered { by: "browser".to_owned() }));
        let heard = (answer(&mut at_terminal).await, answer(&mut at_browser).await);
        assert_eq!(heard.0, heard.1);
        assert_eq!(heard.0.2, AnsweredBy::Person("browser".to_owned()));
    };
    let (result, ()) = tokio::join!(scene.call(&["touch", "made"]), people);
    assert_eq!(result.error, None);
    assert!(scene.path("ws/made").exists());
}

/// spec ASKING.7: A question stays open while anybody is there who could answer it, and is a no of its own
/// kind when the last one leaves.
#[tokio::test]
async fn when_the_last_leaves_the_question_is_over() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, |_| {});
    let (terminal, browser) =
        (scene.session.approver("terminal"), scene.session.approver("browser"));
    let mut events = scene.session.events(Delivery::Complete).await;
    let people = async {
        let asked = question(&mut events).await;
        drop(terminal);
        // Still open: an answer that is not on offer is refused for what it is.
        let refused = browser.answer(
            &asked.approval_id,
            ReviewDecision::ApprovedWithGrant { scope: sandgate_protocol::GrantScope::Call },
        );
        assert!(matches!(refused, Err(AnswerError::NotOffered { .. })), "{refused:?}");
        drop(browser);
        answer(&mut events).await
    };
    let (result, (_, decision, by)) = tokio::join!(scene.call(&["touch", "made"]), people);
    assert_eq!((decision, by), (ReviewDecision::DENIED, AnsweredBy::Nobody));
    assert!(matches!(result.error, Some(CodexErr::NobodyToAsk { .. })), "{result:?}");
    assert!(!scene.path("ws/made").exists());
}

/// spec ASKING.8: An abort ends the turn: the calls after it in the same response are not begun, and each
/// of them is answered.
#[tokio::test]
async fn after_an_abort_nothing_of_the_response_is_begun() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, |_| {});
    let approver = scene.session.approver("test");
    let mut events = scene.session.events(Delivery::Complete).await;
    let person = async {
        for decision in [ReviewDecision::Approved, ReviewDecision::Abort] {
            let asked = question(&mut events).await;
            approver.answer(&asked.approval_id, decision).unwrap();
        }
    };
    let commands: [&[&str]; 4] =
        [&["touch", "first"], &["touch", "second"], &["touch", "third"], &["true"]];
    let (results, ()) = tokio::join!(scene.call_all(&commands), person);
    let told: Vec<_> =
        results.iter().map(|result| (result.call_id.as_str(), &result.error)).collect();
    let aborted = Some(CodexErr::UserAborted);
    let expected =
        [("call_0", &None), ("call_1", &aborted), ("call_2", &aborted), ("call_3", &aborted)];
    assert_eq!(told, expected);
    assert!(results[1].ends_turn());
    let made = ["first", "second", "third"].map(|name| scene.path("ws").join(name).exists());
    assert_eq!(made, [true, false, false]);
}
