//! Every screen, as a terminal of 80 by 24 and one of 40 by 20 show it.

use super::{Bench, begin, blocked, denial, ended, info, patch, printed, question};
use crate::app::{Info, Message};
use crate::paint::Picture;
use crate::processes::ProcessRow;
use crossterm::event::KeyCode;
use sandgate_protocol::{
    AgentEvent, CallId, Event, ExecApprovalRequest, Notice, ProcessInfo, ProcessState, TokenUsage,
};
use std::sync::Arc;

const SIZES: [(usize, usize); 2] = [(80, 24), (40, 20)];

/// Draws a screen in both sizes and compares it with what it was.
fn seen(name: &str, scene: impl Fn(&mut Bench)) {
    seen_of(name, &info(), scene);
}

fn seen_of(name: &str, info: &Info, scene: impl Fn(&mut Bench)) {
    for size in SIZES {
        let mut bench = Bench::of(info.clone(), size);
        scene(&mut bench);
        let (width, height) = size;
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), bench.shown());
    }
}

/// The model calls for a command.
fn called(bench: &mut Bench, id: &str) {
    let (call_id, tool, input) = (CallId::new(id), "shell".to_owned(), String::new());
    bench.agent(AgentEvent::ToolCallBegin { call_id, tool, input });
}

const ANSWER: &str = "The test fails because `parse` drops the last line.\n\n```rust\nlet lines = \
                      text.lines(); // no end\n```\n\n1. keep the line\n2. add a test\n";

#[test]
fn the_beginning() {
    seen("welcome", |bench| bench.app.welcome());
    let offline = Info { offline: true, provider: "offline".to_owned(), trusted: false, ..info() };
    seen_of("offline", &offline, |bench| bench.app.welcome());
}

#[test]
fn writing() {
    seen("several_lines", |bench| {
        bench.write("fix the failing test, and while you are there look at the one beside it");
        bench.control('j');
        bench.write("thanks");
    });
    seen("slash", |bench| bench.write("/"));
    seen("files", |bench| {
        bench.write("look at @");
        let files = ["README.md", "src/main.rs", "src/parse.rs", "tests/parse.rs"];
        bench.tell(Message::Files(Arc::new(files.map(str::to_owned).to_vec())));
        bench.write("pa");
    });
}

#[test]
fn work() {
    seen("answering", |bench| {
        bench.write("why does it fail?");
        bench.key(KeyCode::Enter);
        bench.pass(2_500);
        bench.agent(AgentEvent::AgentReasoning { text: "The parser comes first.".to_owned() });
        bench.agent(AgentEvent::AgentMessageDelta { delta: ANSWER.to_owned() });
        let last = TokenUsage { input_tokens: 24_000, output_tokens: 800, ..TokenUsage::default() };
        bench.agent(AgentEvent::TokenCount { last, total: last, context_window: Some(200_000) });
        bench.write("and then?");
        bench.key(KeyCode::Enter);
    });
    seen("running", |bench| {
        bench.write("test it");
        bench.key(KeyCode::Enter);
        called(bench, "c");
        bench.hear(begin("c", "cargo test --workspace -- --nocapture"));
        let lines: String =
            (1..40).map(|number| format!("test number_{number} ... \x1b[32mok\x1b[0m\n")).collect();
        bench.hear(printed("c", &lines));
        bench.pass(12_300);
    });
    seen("side_by_side", |bench| {
        // One that serves, one that runs beside another, and one that is over before it.
        bench.hear(begin("server", "npx a-server"));
        bench.write("!sleep 100");
        bench.key(KeyCode::Enter);
        bench.hear(begin("own", "sleep 100"));
        bench.hear(begin("other", "echo done"));
        bench.hear(ended("other", "done\n", 0, Vec::new()));
    });
    seen("ended", |bench| {
        called(bench, "c");
        bench.hear(begin("c", "git push origin main"));
        let text = "fatal: unable to access 'https://github.com/x/y/': Could not resolve host\n";
        bench.hear(ended("c", text, 128, vec![denial()]));
        let call_id = CallId::new("t");
        let input = r#"{"path":"src/parse.rs"}"#.to_owned();
        bench.agent(AgentEvent::ToolCallBegin {
            call_id: call_id.clone(),
            tool: "read_file".to_owned(),
            input,
        });
        bench.agent(AgentEvent::ToolCallEnd { call_id, success: true, output: "text".to_owned() });
        let message = "the audit log is nearly full".to_owned();
        bench.hear(Event::Warning(Notice { call_id: None, message }));
    });
}

/// spec TUI.60: Every screen fits into 80 columns and 24 rows, and into 40 columns and 20 rows.
#[test]
fn questions() {
    let exec = |request: ExecApprovalRequest| Event::ExecApprovalRequest(Box::new(request));
    seen("question", |bench| bench.hear(exec(question("a", "git push origin main"))));
    seen("question_blocked", |bench| {
        bench.hear(exec(blocked("a")));
        bench.hear(exec(question("b", "ls")));
    });
    seen("question_escalated", |bench| {
        bench.hear(exec(ExecApprovalRequest {
            justification: Some("to fetch the newest index".to_owned()),
            reason: "it asks to run without the sandbox".to_owned(),
            without_sandbox: true,
            ..question("a", "cargo update --workspace")
        }));
    });
    seen("question_long", |bench| {
        let script: String =
            (1..60).map(|number| format!("echo line {number} of a long script\n")).collect();
        bench.hear(exec(question("a", &script)));
        bench.draw();
        bench.pass(300);
        bench.key(KeyCode::PageDown);
    });
    seen("question_explained", |bench| {
        bench.hear(exec(question("a", "git push")));
        let id = sandgate_protocol::ApprovalId::new("a");
        let text = "bash -lc 'git push'\n├─ read by bash: 1 command\n└─ a person is asked: git push is not known to be safe".to_owned();
        bench.tell(Message::Explained { id, text });
    });
    seen("question_telling", |bench| {
        bench.hear(exec(question("a", "git push")));
        bench.draw();
        bench.pass(300);
        bench.write("nuse the other remote");
    });
}

#[test]
fn patches() {
    let diff = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -8,4 +8,5 @@\n fn parse(text: &str) -> Vec<&str> {\n-    text.lines().skip(1).collect()\n+    // Every line counts, the last one too, and this comment is a long one.\n+    text.lines().collect()\n }\n";
    let event = || Event::ApplyPatchApprovalRequest(Box::new(patch("p", diff)));
    seen("question_patch", |bench| bench.hear(event()));
    seen("patched", |bench| {
        let changes = patch("p", diff).changes;
        let call_id = CallId::new("call_2");
        bench.hear(Event::PatchApplyBegin(sandgate_protocol::PatchApplyBegin {
            call_id: call_id.clone(),
            auto_approved: true,
            changes,
        }));
        let message = "done".to_owned();
        bench.hear(Event::PatchApplyEnd(sandgate_protocol::PatchApplyEnd {
            call_id,
            success: true,
            message,
        }));
    });
    seen("question_patch_diff", |bench| {
        bench.hear(event());
        bench.draw();
        bench.pass(300);
        bench.write("d");
    });
}

fn process(id: &str, state: ProcessState, last_line: &str) -> ProcessRow {
    ProcessRow {
        info: ProcessInfo {
            process_id: id.to_owned(),
            command: vec!["npm".to_owned(), "run".to_owned(), "dev".to_owned()],
            cwd: "/home/me/project".to_owned(),
            pid: 1,
            state,
            exit_code: (state == ProcessState::Exited).then_some(1),
            age_seconds: 75,
            printed_bytes: 100,
            last_line: last_line.to_owned(),
            kept: false,
        },
        memory: Some(183 << 20),
    }
}

#[test]
fn panes() {
    let listed = |bench: &mut Bench| {
        bench.write("/processes");
        bench.key(KeyCode::Enter);
        bench.tell(Message::Processes(vec![
            process("web", ProcessState::Running, "listening on http://localhost:5173"),
            process("python-2", ProcessState::WaitingForInput, ">>> \x1b[2J"),
            process("build", ProcessState::Exited, "error: it failed"),
        ]));
    };
    seen("processes", listed);
    seen("processes_kill", |bench| {
        listed(bench);
        bench.key(KeyCode::Down);
        bench.write("x");
    });
    seen("attached", |bench| {
        listed(bench);
        bench.key(KeyCode::Enter);
        let text = "\x1b[1mVITE\x1b[0m ready in 300 ms\r\n\r\n  Local: http://localhost:5173/\r\nprogress 10%\rprogress 90%".to_owned();
        bench.tell(Message::Printed { id: "web".to_owned(), text });
        bench.write("help");
    });
    seen("no_processes", |bench| {
        bench.write("/processes");
        bench.key(KeyCode::Enter);
        bench.tell(Message::Processes(Vec::new()));
    });
    seen("transcript", |bench| {
        called(bench, "c");
        bench.hear(begin("c", "seq 1 30"));
        let text: String = (1..31).map(|number| format!("{number}\n")).collect();
        bench.hear(ended("c", &text, 0, Vec::new()));
        bench.draw();
        bench.control('t');
    });
}

#[test]
fn commands_with_a_slash() {
    let slash = |command: &'static str| {
        move |bench: &mut Bench| {
            bench.write(command);
            bench.key(KeyCode::Esc);
            bench.key(KeyCode::Enter);
        }
    };
    seen("status", slash("/status"));
    seen("help", slash("/help"));
    seen("approvals", slash("/approvals"));
    seen("sandbox", slash("/sandbox"));
    seen("unknown_command", slash("/stauts"));
    seen("diff", |bench| {
        let unified_diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n".to_owned();
        bench.hear(Event::TurnDiff(sandgate_protocol::TurnDiff {
            unified_diff,
            not_shown: Vec::new(),
        }));
        slash("/diff")(bench);
    });
}

#[test]
fn trust() {
    let text = "/home/me/project\nIf you trust it, commands may write there and run in the sandbox without a \
                question, and its own settings and rules count.\nIts settings and rules would loosen yours:\n  \
                - the network is on (.codex/config.toml)\n";
    for (width, height) in SIZES {
        let mut page = crate::trust::Page::default();
        let Picture { rows, .. } = page.picture(text, false, width, height);
        assert!(rows.len() <= height && rows.iter().all(|row| row.width() <= width));
        let row = |row: &ratatui::text::Line<'_>| {
            row.spans.iter().map(|span| span.content.as_ref()).collect::<String>()
        };
        let shown: Vec<String> = rows.iter().map(|one| row(one).trim_end().to_owned()).collect();
        insta::assert_snapshot!(format!("trust_{width}x{height}"), shown.join("\n"));
    }
}

/// spec TUI.29: A yes to a directory counts only when every row about it has been on the screen.
#[test]
fn a_directory_is_trusted_only_by_who_has_seen_all_rows() {
    use crossterm::event::KeyCode;
    let lines: Vec<String> = (0..70).map(|line| format!("  - thing {line}")).collect();
    for (width, height) in SIZES {
        let mut page = crate::trust::Page::default();
        let mut seen = std::collections::BTreeSet::new();
        for turns in 0.. {
            let Picture { rows, .. } = page.picture(&lines.join("\n"), false, width, height);
            assert!(rows.len() <= height, "{rows:?}");
            let shown: String = rows.iter().map(|row| format!("{row}\n")).collect();
            assert!(shown.contains("[y]"), "{shown}");
            seen.extend(lines.iter().filter(|line| shown.lines().any(|row| row.ends_with(*line))));
            assert_eq!(page.seen, seen.len() == lines.len(), "{shown}");
            assert_eq!(page.seen, !shown.contains("more rows to see before a yes"), "{shown}");
            if page.seen {
                assert!(turns > 1);
                break;
            }
            assert!(!page.turn(KeyCode::Char('y')) && page.turn(KeyCode::Char(' ')));
        }
    }
}
