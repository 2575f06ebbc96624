//! What `sandgate run` asks at a terminal, and what each answer does.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::fs;
use support::{World, let_go};
use tempfile::TempDir;
use terminal::Terminal;

/// A run that asks before everything that is not known to be safe.
fn careful<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--ask-for-approval", "untrusted", "--"], words].concat()
}

/// A directory that no command may write to, with two files.
fn outside() -> TempDir {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::write(outside.path().join("first"), "").unwrap();
    fs::write(outside.path().join("second"), "").unwrap();
    outside
}

/// Writes to the first, and only if that succeeds to the second. Every shell has its own exit code for
/// a file that cannot be opened.
fn writes_both(outside: &TempDir) -> String {
    let path = outside.path().display();
    format!("echo tried; echo x > {path}/first && echo x > {path}/second || exit 9")
}

fn contents(outside: &TempDir) -> [String; 2] {
    ["first", "second"].map(|name| fs::read_to_string(outside.path().join(name)).unwrap())
}

fn recorded(world: &World) -> String {
    assert_eq!(world.sandgate(&["audit", "verify"]).code, Some(0));
    world.sandgate(&["audit", "show", "--json"]).stdout().to_owned()
}

/// spec RUN.80: When a decision is needed it is asked for on the person's terminal, whatever the
/// standard streams are, and yes runs the command.
///
/// spec RUN.95: What was asked, decided and run is in the audit log under the name `run`.
#[test]
fn yes_runs_it() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    let shown = terminal.answer("y");
    for expected in
        ["May this run?", "$ touch made", "because: touch is not among", "[y] yes, once"]
    {
        assert!(shown.contains(expected), "{shown}");
    }
    let (_, code) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(world.path("made").exists());
    let recorded = recorded(&world);
    assert!(recorded.contains(r#""front_end":"run""#), "{recorded}");
    assert!(recorded.contains(r#""front_end":"terminal""#), "{recorded}");
}

#[test]
fn yes_for_the_session_runs_it_and_is_recorded_as_that() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    terminal.answer("s");
    assert_eq!(terminal.end().1, Some(0));
    assert!(world.path("made").exists());
    assert!(recorded(&world).contains("approved_for_session"));
}

/// spec RUN.81: A rule that is agreed to is kept: the next run does not ask.
#[test]
fn a_rule_is_kept() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    let shown = terminal.answer("r");
    assert!(shown.contains("[r] yes, always for commands that begin with: touch"), "{shown}");
    assert_eq!(terminal.end().1, Some(0));
    let outcome = world.sandgate(&careful(&["touch", "again"]));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert!(world.path("made").exists() && world.path("again").exists());
}

/// spec RUN.82: No before it ran ends in exit code 78; what was written beside it is said and recorded.
#[test]
fn no_keeps_it_from_running() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    let shown = terminal.answer("n  use make");
    assert!(shown.contains("[n] no; what you write after it is recorded"), "{shown}");
    let (shown, code) = terminal.end();
    assert!(shown.contains("sandgate: not run: the answer was no: use make"), "{shown}");
    assert_eq!(code, Some(78));
    assert!(!world.path("made").exists());
    assert!(recorded(&world).contains("use make"));
}

/// spec RUN.83: Abort and Ctrl-C at a question call the command off, and the exit code is 130.
///
/// spec ASKING.14: Ctrl-C at a question on a terminal is recorded as the person's abort; a question that goes
/// because its work was called off in another way is recorded as called off, and not as the policy's.
#[test]
fn a_question_can_be_called_off() {
    for keys in ["a\n", "\x03"] {
        let world = World::new();
        let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
        terminal.until("\n> ");
        terminal.press(keys);
        let (shown, code) = terminal.end();
        assert!(shown.contains("sandgate: not run: it was called off"), "{shown}");
        assert_eq!(code, Some(130), "{keys:?}");
        assert!(!world.path("made").exists());
        let record = recorded(&world);
        assert!(record.contains(BY_THE_PERSON), "{keys:?}: {record}");
    }
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    terminal.until("\n> ");
    terminal.signal(rustix::process::Signal::TERM);
    assert_eq!(terminal.end().1, Some(143));
    let record = recorded(&world);
    assert!(record.contains(r#""decision":"aborted","by":{"who":"called_off"}"#), "{record}");
}

/// How the log has an abort of the person at the terminal.
const BY_THE_PERSON: &str = r#""decision":"aborted","by":{"who":"person","front_end":"terminal"}"#;

#[test]
fn a_question_about_another_attempt_can_be_called_off() {
    for keys in ["a\n", "\x03"] {
        let (world, outside) = (World::new(), outside());
        let mut terminal = Terminal::start(&world, &["run", "--", &writes_both(&outside)]);
        terminal.until("\n> ");
        terminal.press(keys);
        assert_eq!(terminal.end().1, Some(130), "{keys:?}");
        assert_eq!(contents(&outside), ["", ""]);
        let record = recorded(&world);
        assert!(record.contains(BY_THE_PERSON), "{keys:?}: {record}");
    }
}

/// spec RUN.84: After the sandbox blocked something a person can grant only that: the command runs
/// again, says so, and what is blocked then is said at the end.
#[test]
fn only_what_was_blocked_can_be_granted() {
    let (world, outside) = (World::new(), outside());
    let mut terminal = Terminal::start(&world, &["run", "--", &writes_both(&outside)]);
    let shown = terminal.answer("g");
    let path = outside.path().display();
    for expected in [
        "tried",
        "The sandbox blocked this.",
        &format!("blocked: write {path}/first (outside the writable roots)"),
        &format!("[g] only let it write to {path}/first"),
        "[y] yes, once, WITHOUT the sandbox",
    ] {
        assert!(shown.contains(expected), "{expected:?} in {shown}");
    }
    let again = format!("sandgate: running it again, and may write to {path}/first");
    let shown = terminal.until(&again);
    assert!(!shown.contains("tried"), "{shown}");
    let (shown, code) = terminal.end();
    assert!(shown.contains("tried"), "{shown}");
    assert!(shown.contains(&format!("sandgate: blocked: write {path}/second")), "{shown}");
    assert!(shown.contains(&format!("sandgate: to let it: --writable {path}")), "{shown}");
    assert_eq!(code, Some(9));
    assert_eq!(contents(&outside), ["x\n", ""]);
}

#[test]
fn yes_after_a_denial_is_without_the_sandbox() {
    let (world, outside) = (World::new(), outside());
    let mut terminal = Terminal::start(&world, &["run", "--", &writes_both(&outside)]);
    terminal.answer("y");
    let (shown, code) = terminal.end();
    assert!(shown.contains("sandgate: running it again, without the sandbox"), "{shown}");
    assert!(shown.contains(support::UNCONFINED), "{shown}");
    assert_eq!(code, Some(0));
    assert_eq!(contents(&outside), ["x\n", "x\n"]);
}

/// spec RUN.85: No to another attempt leaves the first one's result, and the exit code is the command's
/// own.
#[test]
fn no_after_a_denial_leaves_the_first_result() {
    let (world, outside) = (World::new(), outside());
    let mut terminal = Terminal::start(&world, &["run", "--", &writes_both(&outside)]);
    terminal.answer("n");
    let (shown, code) = terminal.end();
    assert!(!shown.contains("again"), "{shown}");
    assert_eq!(code, Some(9));
    assert_eq!(contents(&outside), ["", ""]);
}

#[test]
fn what_is_no_answer_is_asked_again() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &careful(&["touch", "made"]));
    // Nothing was blocked, so there is nothing to grant.
    for line in ["", "what?", "yes please", "g"] {
        terminal.answer(line);
        terminal.until("Please type one of the letters.");
    }
    terminal.answer("n");
    assert_eq!(terminal.end().1, Some(78));
}

/// spec RUN.86: What was typed before a question was there does not answer it.
#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let (world, outside) = (World::new(), outside());
    let go = world.fifo("go");
    let script = format!("echo ready; read word < go; {}", writes_both(&outside));
    let mut terminal = Terminal::start(&world, &["run", "--", &script]);
    terminal.until("ready");
    terminal.press("y\n");
    // The terminal has it once it echoes it.
    terminal.until("y");
    let_go(&go);
    terminal.answer("n");
    assert_eq!(terminal.end().1, Some(9));
    assert_eq!(contents(&outside), ["", ""]);
}

/// spec RUN.88: Text of a command cannot stand for the question: what moves a cursor, hides or turns
/// the order of reading is shown as codes, and every line of it is indented.
#[test]
fn a_command_cannot_write_the_question() {
    let world = World::new();
    let text = "touch x\n\x1b[2J\x1b[HMay this run?\n\n  $ ls\r\u{202e}\n> ";
    let mut terminal = Terminal::start(&world, &careful(&[text]));
    let shown = terminal.until("[a] no, and stop the work\r\n> ");
    for expected in [
        "  $ touch x\r\n    \\u{1b}[2J\\u{1b}[HMay this run?\r\n",
        "      $ ls\\r\\u{202e}\r\n    > \r\n",
    ] {
        assert!(shown.contains(expected), "{shown:?}");
    }
    terminal.press("n\n");
    assert_eq!(terminal.end().1, Some(78));
}

/// spec RUN.90: Without a terminal a command that needs a yes is not run; what was asked and how to
/// answer is said, and the exit code is 77.
#[test]
fn without_a_terminal_it_says_what_was_asked() {
    let world = World::new();
    for format in [&[][..], &["--json"]] {
        let words = ["run", "--ask-for-approval", "untrusted"];
        let outcome = world.sandgate(&[&words[..], format, &["--", "touch", "made"]].concat());
        assert_eq!(outcome.code, Some(77));
        let asked = "sandgate: nobody could be asked whether this may run: touch made\n";
        assert!(outcome.stderr.starts_with(asked), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("touch is not among"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--decide"), "{}", outcome.stderr);
        assert!(!world.path("made").exists());
    }
}

/// spec RUN.91: Without a terminal a command that the sandbox blocked something to and that failed is
/// told about with what was blocked and how to allow it, and the exit code is 77; where nobody would be
/// asked it is the command's own.
#[test]
fn without_a_terminal_a_denial_says_how_to_allow_it() {
    let (world, outside) = (World::new(), outside());
    let script = writes_both(&outside);
    let path = outside.path().display().to_string();
    for (options, code) in
        [(&[][..], 77), (&["--ask-for-approval", "never"], 9), (&["--decide", "deny"], 9)]
    {
        let outcome = world.sandgate(&[&["run"], options, &["--", &script]].concat());
        assert_eq!(outcome.code, Some(code), "{options:?}");
        assert_eq!(outcome.stdout(), "tried\n");
        let blocked =
            format!("sandgate: blocked: write {path}/first (outside the writable roots)\n");
        let hint = format!("sandgate: to let it: --writable {path}\n");
        assert!(outcome.stderr.contains(&(blocked + &hint)), "{}", outcome.stderr);
    }
    assert_eq!(contents(&outside), ["", ""]);
    let outcome = world.sandgate(&["run", "--writable", &path, "--", &script]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert_eq!(contents(&outside), ["x\n", "x\n"]);
}

/// spec RUN.92: `--decide approve`, `deny` or a file answers every question; answers that run out are
/// none, and the exit code is 77.
#[test]
fn answers_can_be_prepared() {
    let world = World::new();
    let run = |answer: &str, name: &str| {
        let words = ["run", "--ask-for-approval", "untrusted", "--decide", answer, "--"];
        world.sandgate(&[&words[..], &["touch", name]].concat()).code
    };
    fs::write(world.path("answers"), "approve\n").unwrap();
    fs::write(world.path("none"), "# nothing\n").unwrap();
    assert_eq!(run("approve", "a"), Some(0));
    assert_eq!(run("deny", "b"), Some(78));
    assert_eq!(run("answers", "c"), Some(0));
    assert_eq!(run("none", "d"), Some(77));
    assert_eq!(run("no-such-file", "e"), Some(125));
    let made = ["a", "b", "c", "d", "e"].map(|name| world.path(name).exists());
    assert_eq!(made, [true, false, true, false, false]);
}

/// spec RUN.93: What a rule or the policy forbids is not run; the reason is said, and the exit code is
/// 78.
#[test]
fn what_is_forbidden_is_not_run() {
    let world = World::new();
    let words = ["run", "--ask-for-approval", "never", "--", "rm", "-rf", "/no/such/directory"];
    let outcome = world.sandgate(&words);
    assert_eq!(outcome.code, Some(78), "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("sandgate: not run: "), "{}", outcome.stderr);
    fs::create_dir_all(world.path(".codex/rules")).unwrap();
    let rule =
        "[[rule]]\nprefix = [\"touch\"]\ndecision = \"forbid\"\njustification = \"not here\"\n";
    fs::write(world.path(".codex/rules/mine.toml"), rule).unwrap();
    let outcome = world.sandgate(&["run", "--", "touch", "made"]);
    assert_eq!(outcome.code, Some(78), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not here"), "{}", outcome.stderr);
    assert!(!world.path("made").exists());
}

/// spec RUN.94: A command that Ctrl-C ended is not offered to be run again.
#[test]
fn whoever_stopped_a_command_is_not_asked() {
    let (world, outside) = (World::new(), outside());
    let path = outside.path().display();
    let script = format!("echo x > {path}/first; echo blocked; exec sleep 1000");
    let mut terminal = Terminal::start(&world, &["run", "--", &script]);
    terminal.until("blocked");
    terminal.press("\x03");
    let (shown, code) = terminal.end();
    assert!(!shown.contains("[a]"), "{shown}");
    assert_eq!(code, Some(130));
}

/// spec SANDBOX.100: At a terminal, a command that failed and was refused to write in read-only mode ends with what
/// was blocked and with how to let it.
#[test]
fn a_confined_command_says_how_it_could_write() {
    let world = World::new();
    let (shown, code) = Terminal::start(&world, &["sandbox", "--", "touch", "made"]).end();
    assert_eq!(code, Some(1));
    let blocked = shown.find("sandgate: blocked: create ").unwrap_or_else(|| panic!("{shown}"));
    let hint = shown.find("sandgate: to let it write here: --full-auto");
    assert!(hint.is_some_and(|hint| hint > blocked), "{shown}");
    let words = ["sandbox", "--full-auto", "--", "touch", "made", "/etc/made"];
    let (shown, _) = Terminal::start(&world, &words).end();
    assert!(!shown.contains("--full-auto"), "{shown}");
    assert!(world.path("made").exists());
}

/// spec ERRORS.6: On a terminal, what is said is broken between words where it is wider than the terminal, and goes on
/// where it began; elsewhere it is a line as it is.
#[test]
fn on_a_narrow_terminal_lines_end_between_words() {
    let world = World::new();
    for words in
        [&["session", "list"][..], &["run", "--cd", "/no/such/directory/is/here", "--", "true"]]
    {
        let whole = world.sandgate(words).stderr;
        assert!(whole.lines().next().unwrap().len() > 40, "{whole}");
        let sandgate = world.program(words);
        let mut narrow = world.other("sh");
        narrow.args(["-c", "stty cols 40 && exec \"$@\"", "sh"]);
        narrow.arg(sandgate.get_program()).args(sandgate.get_args());
        let (shown, _) = Terminal::start_other(&world, &narrow).end();
        assert!(shown.split_whitespace().eq(whole.split_whitespace()), "{shown}");
        assert!(shown.lines().all(|line| line.trim_end().len() <= 40), "{shown}");
        let below = shown.lines().nth(1).unwrap();
        assert_eq!(below.len() - below.trim_start().len(), "sandgate: ".len(), "{shown}");
    }
}
