//! What everybody is told of a call that came to nothing.

use sandgate_protocol::{CodexErr, FailureKind};

/// One of each, with words as they come from the places that make them.
fn one_of_each() -> Vec<CodexErr> {
    let text = str::to_owned;
    vec![
        CodexErr::ApprovalDenied { feedback: None },
        CodexErr::ApprovalDenied { feedback: Some(text("use make instead")) },
        CodexErr::UserAborted,
        CodexErr::ApprovalTimeout,
        CodexErr::NobodyToAsk { reason: text("no sandbox available") },
        CodexErr::Forbidden {
            reason: text(
                "A rule forbids this command (rules/team.toml:7). Do the work without it.",
            ),
        },
        CodexErr::SandboxRequired {
            reason: text("this tool requires a sandbox, and the mode danger-full-access has none"),
        },
        CodexErr::SandboxUnavailable { missing: Vec::new() },
        CodexErr::SandboxUnavailable { missing: vec![text("this kernel has no Landlock")] },
        CodexErr::SandboxTransform { reason: text("/srv cannot be written to") },
        CodexErr::ToolNotFound { name: text("shel"), nearest: vec![text("shell")] },
        CodexErr::ToolNotFound { name: text("a\u{1b}[2Jb"), nearest: Vec::new() },
        CodexErr::InvalidArguments {
            tool: text("shell"),
            reason: text("missing field `command` at column 2"),
        },
        CodexErr::CallIdTaken { call_id: text("call_1") },
        CodexErr::ToolExecutionFailed(text("there is no program called \"frob\" in PATH (/bin)")),
        CodexErr::ToolExecutionFailed(text("\u{202e}txt.exe: no such file")),
        CodexErr::NotStarted {
            kind: FailureKind::NotFound,
            reason: text("there is no program called \"frob\" in PATH (/bin)"),
        },
        CodexErr::Fatal(text("the audit log cannot be written")),
    ]
}

/// The row of the table that an error belongs to. Whoever adds one is led here by the compiler, and to
/// [`one_of_each`] by the test.
fn row(error: &CodexErr) -> usize {
    match error {
        CodexErr::ApprovalDenied { .. } => 0,
        CodexErr::UserAborted => 1,
        CodexErr::ApprovalTimeout => 2,
        CodexErr::NobodyToAsk { .. } => 3,
        CodexErr::Forbidden { .. } => 4,
        CodexErr::SandboxRequired { .. } => 5,
        CodexErr::SandboxUnavailable { .. } => 6,
        CodexErr::SandboxTransform { .. } => 7,
        CodexErr::ToolNotFound { .. } => 8,
        CodexErr::InvalidArguments { .. } => 9,
        CodexErr::ToolExecutionFailed(_) => 10,
        CodexErr::NotStarted { .. } => 11,
        CodexErr::Fatal(_) => 12,
        CodexErr::CallIdTaken { .. } => 13,
    }
}

const ROWS: usize = 14;

/// spec ERRORS.1: Every error has one name, one sentence for the model, one for the person, and either ends
/// the turn or does not; the table has them all.
#[test]
fn everybody_is_told_in_their_own_words() {
    let mut table = String::new();
    for error in one_of_each() {
        let turn = if error.ends_turn() { "ends" } else { "goes on" };
        table += &format!(
            "{}\n  model:  {}\n  person: {}\n  turn:   {turn}\n",
            error.name(),
            error.for_model(),
            error.for_person()
        );
    }
    insta::assert_snapshot!(table);
}

#[test]
fn no_error_is_missing_from_the_table() {
    let rows: Vec<usize> = one_of_each().iter().map(row).collect();
    let missing: Vec<usize> = (0..ROWS).filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty(), "no example for the rows {missing:?}");
}

/// spec ERRORS.2: A no of the person ends the call and not the turn; an abort, and what keeps everything
/// from running, end the turn.
#[test]
fn only_two_end_the_turn() {
    let ending = one_of_each().into_iter().filter(CodexErr::ends_turn);
    let names: Vec<&str> = ending.map(|error| error.name()).collect();
    assert_eq!(names, ["user_aborted", "fatal"]);
}

/// spec ERRORS.3: What the person is told is a sentence in which every character shows itself.
#[test]
fn nothing_in_an_error_can_hide() {
    for error in one_of_each() {
        let told = error.for_person();
        assert!(!told.starts_with(char::is_lowercase), "{told}");
        assert!(told.ends_with(['.', '?']), "{told}");
        let hidden = |c: char| c.is_control() || sandgate_protocol::is_invisible(c);
        assert!(!told.chars().any(hidden), "{told:?}");
    }
}
