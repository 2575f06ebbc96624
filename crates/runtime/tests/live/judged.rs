//! What is typed to a process outside the sandbox, by somebody who wants more than was approved.

use crate::scene::{Scene, caged, text};
use sandgate_protocol::{AskForApproval, ReviewDecision, SandboxPolicy};
use serde_json::{Value, json};

/// What a person is told about a line for a shell.
const TO_BASH: &str = "to be typed to process out (bash -i), which runs outside the sandbox";

/// What a person is told about input that may be anything.
const UNCLEAR: &str = "and is not one whole line for a shell at its prompt";

const DENIED: ReviewDecision = ReviewDecision::Denied { feedback: None };

/// A session with a process outside the sandbox, which a person has approved.
async fn outside(approval: AskForApproval, command: &[&str]) -> Scene {
    let scene = Scene::with(approval, caged(), |_| {});
    approve(&scene, command).await;
    scene
}

/// Starts a process outside the sandbox, with a person's approval.
async fn approve(scene: &Scene, command: &[&str]) {
    let arguments = json!({
        "command": command,
        "process_id": "out",
        "sandbox_permissions": "require_escalated",
        "justification": "It needs the whole machine.",
        "yield_time_ms": 30000,
    });
    let (asked, result) = scene.answered("exec_command", arguments, ReviewDecision::Approved).await;
    assert_eq!(asked.len(), 1, "{}", text(&result));
}

fn typed(input: &str) -> Value {
    json!({"process_id": "out", "input": input, "yield_time_ms": 30000})
}

fn pressed(input: &str, keys: &[&str]) -> Value {
    json!({"process_id": "out", "input": input, "keys": keys, "yield_time_ms": 30000})
}

/// spec SESSION.20: What is typed to a process outside the sandbox is asked about before it is typed,
/// whatever it is; what is refused is not typed.
#[tokio::test]
async fn each_line_is_asked_about() {
    let scene = outside(AskForApproval::OnRequest, &["bash", "-i"]).await;
    let (asked, result) = scene.answered("write_stdin", typed("touch made\n"), DENIED).await;
    assert_eq!(asked, [format!("touch made [{TO_BASH}]")]);
    assert_eq!(text(&result), "User denied approval for this command");
    assert!(!scene.path("made").exists());

    let approved = ReviewDecision::Approved;
    let (asked, result) = scene.answered("write_stdin", typed("touch made\n"), approved).await;
    assert_eq!(asked.len(), 1);
    assert!(text(&result).contains("\"waiting_for_input\""), "{}", text(&result));
    assert!(scene.path("made").exists());

    // Also what is safe elsewhere: nobody knows what the word stands for by now.
    let (asked, _) = scene.answered("write_stdin", typed("ls\n"), DENIED).await;
    assert_eq!(asked, [format!("ls [{TO_BASH}]")]);
    let (asked, _) = scene.answered("write_stdin", typed("rm -rf /\n"), DENIED).await;
    assert!(asked[0].starts_with("rm -rf / [dangerous: "), "{asked:?}");
    assert!(asked[0].ends_with(&format!("; {TO_BASH}]")), "{asked:?}");
}

/// spec SESSION.21: An approval for the session holds for one whole line, at a fresh prompt of that
/// shell, in the same directory, and for nothing that only begins or ends like it.
#[tokio::test]
async fn an_approval_is_remembered_for_whole_lines_only() {
    let scene = outside(AskForApproval::OnRequest, &["bash", "-i"]).await;
    let session = ReviewDecision::ApprovedForSession;
    let ask = async |arguments: Value| scene.answered("write_stdin", arguments, DENIED).await.0;
    let (asked, _) = scene.answered("write_stdin", typed("echo x >> log\n"), session.clone()).await;
    assert_eq!(asked.len(), 1);
    assert_eq!(ask(typed("echo x >> log\n")).await, Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(scene.path("log")).unwrap(), "x\nx\n");

    // The same words somewhere else are another command.
    let (_, moved) = scene.answered("write_stdin", typed("cd /\n"), ReviewDecision::Approved).await;
    assert!(text(&moved).contains("\"waiting_for_input\""), "{}", text(&moved));
    assert_eq!(ask(typed("echo x >> log\n")).await.len(), 1);
    let back = format!("cd {}\n", scene.home().display());
    scene.answered("write_stdin", typed(&back), ReviewDecision::Approved).await;
    assert_eq!(ask(typed("echo x >> log\n")).await, Vec::<String>::new());

    // A line that has begun is not fresh, even when a signal has wiped it out.
    let (asked, _) = scene.answered("write_stdin", typed("rm "), session.clone()).await;
    assert_eq!(asked, [format!("rm  [{TO_BASH}, {UNCLEAR}]")]);
    let all = ask(typed("echo x >> log\n")).await;
    assert_eq!(all, [format!("rm echo x >> log [{TO_BASH}, {UNCLEAR}]")]);
    let interrupted = json!({"process_id": "out", "signal": "INT", "yield_time_ms": 30000});
    assert_eq!(ask(interrupted).await, Vec::<String>::new());
    assert_eq!(ask(typed("echo x >> log\n")).await.len(), 1);
    assert_eq!(std::fs::read_to_string(scene.path("log")).unwrap(), "x\nx\nx\n");
}

/// spec SESSION.22: Nothing is executed that nobody judged, however it is typed: in pieces, with control
/// characters and keys, as several lines, pasted, or brought back from the history.
#[tokio::test]
async fn nothing_gets_past_in_disguise() {
    let scene = outside(AskForApproval::OnRequest, &["bash", "-i"]).await;
    let session = ReviewDecision::ApprovedForSession;
    // The person has approved these for good, and would not be asked about them again.
    for line in ["echo a\n", "echo -delete\n", "find . -name zzz\n"] {
        scene.answered("write_stdin", typed(line), session.clone()).await;
    }
    let (asked, _) = scene.answered("write_stdin", typed("echo a\n"), DENIED).await;
    assert_eq!(asked, Vec::<String>::new());
    scene.write("precious", "");
    let disguises = [
        typed("echo a\nrm precious\n"),
        typed("echo a\rrm precious\r"),
        typed("rm precious\u{1}echo a #\n"),
        typed("echo a\u{15}rm precious\n"),
        typed("echo a\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}rm precious\n"),
        typed("\u{1b}[200~rm precious\n\u{1b}[201~echo a\n"),
        typed("\u{12}rm\n"),
        typed("!rm\n"),
        typed("find . !$\n"),
        typed("^a^`rm precious`\n"),
        typed("echo a\t\n"),
        typed("echo a \\\n"),
        typed("\u{9b}A\n"),
        typed("echo a"),
        typed("\n"),
        typed("\u{4}"),
        typed("a\u{0}b\n"),
        pressed("", &["up", "enter"]),
        pressed("echo a", &["ctrl-u", "enter"]),
        pressed("rm precious", &["enter"]),
        pressed("", &["ctrl-r"]),
    ];
    for disguise in disguises {
        let (asked, result) = scene.answered("write_stdin", disguise.clone(), DENIED).await;
        assert_eq!(asked.len(), 1, "{disguise}: {}", text(&result));
        assert_eq!(text(&result), "User denied approval for this command", "{disguise}");
    }
    // A new size, a signal and waiting type nothing.
    let resized = json!({"process_id": "out", "resize": {"rows": 10, "columns": 20}});
    let (asked, _) = scene.answered("write_stdin", resized, DENIED).await;
    assert_eq!(asked, Vec::<String>::new());
    assert!(scene.path("precious").exists());
    let (asked, _) = scene.answered("write_stdin", typed("echo a\n"), DENIED).await;
    assert_eq!(asked, Vec::<String>::new(), "nothing was typed, so the prompt is fresh");
}

/// spec SESSION.23: A person who is asked about input sees each character that would be typed.
#[tokio::test]
async fn everything_that_would_be_typed_is_shown() {
    let scene = outside(AskForApproval::OnRequest, &["cat"]).await;
    let to_cat = "to be typed to process out (cat), which runs outside the sandbox";
    let ask = async |arguments: Value| scene.answered("write_stdin", arguments, DENIED).await.0;
    assert_eq!(ask(typed("y\n")).await, [format!("y [{to_cat}, {UNCLEAR}]")]);
    assert_eq!(ask(typed("\n")).await, [format!("\\n [{to_cat}, {UNCLEAR}]")]);
    assert_eq!(ask(typed("a\u{15}b\n")).await, [format!("a\\u{{15}}b [{to_cat}, {UNCLEAR}]")]);
    assert_eq!(ask(pressed("", &["ctrl-c"])).await, [format!("\\u{{3}} [{to_cat}, {UNCLEAR}]")]);
    assert_eq!(ask(typed("  ")).await, [format!("\\u{{20}}\\u{{20}} [{to_cat}, {UNCLEAR}]")]);
}

/// spec SESSION.28: A person who is asked about input is told to which process it goes, whatever the reason
/// for the question; an approval for the session holds for that process only, also when another one gets
/// its id.
#[tokio::test]
async fn an_approval_holds_for_one_process() {
    let scene =
        ruled(AskForApproval::OnRequest, "[[rule]]\nprefix = [\"date\"]\ndecision = \"prompt\"\n");
    approve(&scene, &["bash", "-i"]).await;
    let (asked, _) = scene.answered("write_stdin", typed("date\n"), DENIED).await;
    assert!(asked[0].ends_with(&format!("; {TO_BASH}]")), "{asked:?}");
    let session = ReviewDecision::ApprovedForSession;
    let line = || typed("echo x >> log\n");
    assert_eq!(scene.answered("write_stdin", line(), session).await.0.len(), 1);
    assert_eq!(scene.answered("write_stdin", line(), DENIED).await.0, Vec::<String>::new());

    scene.text("kill_process", json!({"process_id": "out"})).await;
    approve(&scene, &["bash", "-i"]).await;
    let (asked, _) = scene.answered("write_stdin", line(), DENIED).await;
    assert_eq!(asked, [format!("echo x >> log [{TO_BASH}]")]);
    assert_eq!(std::fs::read_to_string(scene.path("log")).unwrap(), "x\nx\n");
}

/// spec SESSION.29: An empty line is no command: it is asked about each time, and typed when it is approved.
#[tokio::test]
async fn enter_alone_is_asked_about_and_typed() {
    let scene = outside(AskForApproval::OnRequest, &["bash", "-i"]).await;
    let session = ReviewDecision::ApprovedForSession;
    for input in [typed("\n"), pressed("", &["enter"])] {
        for _ in 0..2 {
            let (asked, result) =
                scene.answered("write_stdin", input.clone(), session.clone()).await;
            assert_eq!(asked.len(), 1, "{}", text(&result));
            assert!(text(&result).contains("\"waiting_for_input\""), "{}", text(&result));
        }
    }
    let (asked, _) = scene.answered("write_stdin", typed("\\n\n"), DENIED).await;
    assert_eq!(asked, [format!("\\n [{TO_BASH}]")], "which is another thing than an empty line");
}

/// A session under these rules.
fn ruled(approval: AskForApproval, rules: &str) -> Scene {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rules).unwrap();
    let rules = sandgate_runtime::rules::load_file(file.path()).unwrap();
    Scene::with(approval, caged(), |config| config.rules = rules)
}

/// spec SESSION.24: Rules hold for typed lines as for commands; one that lets a command leave the sandbox
/// does so for whole lines at a fresh prompt only.
#[tokio::test]
async fn rules_hold_for_typed_lines() {
    let scene = ruled(
        AskForApproval::OnRequest,
        "[[rule]]\nprefix = [\"curl\"]\ndecision = \"forbid\"\n\n\
         [[rule]]\nprefix = [\"date\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n",
    );
    approve(&scene, &["bash", "-i"]).await;
    let (asked, result) = scene.answered("write_stdin", typed("date +%%\n"), DENIED).await;
    assert_eq!(asked, Vec::<String>::new());
    assert!(text(&result).contains("\"%\\n\""), "{}", text(&result));
    for input in ["curl x\n", "true; curl x\n", "curl x"] {
        let (asked, result) = scene.answered("write_stdin", typed(input), DENIED).await;
        assert_eq!(asked, Vec::<String>::new());
        assert!(text(&result).contains("A rule forbids this command"), "{}", text(&result));
    }
    // What only begins like an allowed line may become anything.
    for input in ["date", "date\nrm x\n", "date\u{15}rm x\n"] {
        let (asked, result) = scene.answered("write_stdin", typed(input), DENIED).await;
        assert_eq!(asked.len(), 1, "{input:?}: {}", text(&result));
    }
}

/// spec SESSION.27: Where nobody can be asked, nothing is typed to a process outside the sandbox.
#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_typed() {
    let rule = "[[rule]]\nprefix = [\"cat\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";
    let scene = ruled(AskForApproval::Never, rule);
    scene.start("out", &["cat"]).await;
    let (asked, result) = scene.answered("write_stdin", typed("hello\n"), DENIED).await;
    assert_eq!(asked, Vec::<String>::new());
    assert_eq!(
        text(&result),
        "The process runs outside the sandbox, and under the approval policy never nobody can be asked \
         about what is typed to it. End it with kill_process, and do the work with commands that run in \
         the sandbox."
    );
    let printed = scene.text("read_output", json!({"id": "out"})).await;
    assert_eq!(printed, "[nothing there]\n");
}

/// spec SESSION.25: With full access and nobody to ask, what is typed is typed; with full access under
/// `untrusted` it is asked about.
#[tokio::test]
async fn full_access_types_without_a_question() {
    let free = SandboxPolicy::DangerFullAccess;
    let scene = Scene::with(AskForApproval::Never, free.clone(), |_| {});
    scene.start("out", &["bash", "-i"]).await;
    let reply = scene.type_in("out", "echo typed; touch m\u{7f}made\n").await;
    assert_eq!((reply.output(), scene.path("made").exists()), ("typed\n", true));

    let scene = Scene::with(AskForApproval::UnlessTrusted, free, |_| {});
    let start = json!({"command": ["bash", "-i"], "process_id": "out", "yield_time_ms": 30000});
    scene.answered("exec_command", start, ReviewDecision::Approved).await;
    let (asked, _) = scene.answered("write_stdin", typed("ls\n"), DENIED).await;
    assert_eq!(asked.len(), 1);
}

/// spec SESSION.26: What is typed to a process in the sandbox is not asked about.
#[tokio::test]
async fn a_confined_process_is_typed_to_freely() {
    let scene = Scene::with(AskForApproval::OnRequest, caged(), |_| {});
    let start = json!({"command": ["bash", "-i"], "process_id": "out", "yield_time_ms": 30000});
    scene.answered("exec_command", start, ReviewDecision::Approved).await;
    let (asked, result) = scene.answered("write_stdin", typed("touch made\n"), DENIED).await;
    assert_eq!((asked, scene.path("made").exists()), (vec![], true), "{}", text(&result));
}
