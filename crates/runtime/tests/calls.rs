//! Tool calls through a whole session: judged, asked about, confined, run, told.

use sandgate_protocol::{
    AskForApproval, CallId, CodexErr, Event, GrantScope, ReviewDecision, SandboxPolicy, ToolCall,
    ToolOutput, ToolPayload,
};
use sandgate_runtime::audit::{AuditOptions, Record, audit_directory, entries, verify};
use sandgate_runtime::{Approver, Delivery, Events, Runtime, Session, SessionConfig, ToolResult};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A session in a directory of its own.
struct Scene {
    directory: tempfile::TempDir,
    home: tempfile::TempDir,
    session: Session,
}

impl Scene {
    fn new(approval: AskForApproval, sandbox: SandboxPolicy) -> Self {
        let runtime = Runtime::start().unwrap().with_shell("bash").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut config = SessionConfig::new(directory.path().to_owned());
        config.approval_policy = approval;
        config.sandbox_policy = sandbox;
        // A profile of the person's own could print something, or try to write.
        config.own_env = std::env::vars_os().collect();
        config.own_env.insert("HOME".into(), directory.path().into());
        // Beside the workspace: what a person has decided is not for commands to change.
        let home = tempfile::tempdir().unwrap();
        config.config_home = Some(home.path().to_owned());
        config.audit = Some(AuditOptions::default());
        let session = Session::start(Arc::new(runtime), config).unwrap();
        Self { directory, home, session }
    }

    /// What was recorded, by the names of the records.
    fn recorded(&self) -> Vec<String> {
        let directory = audit_directory(self.home.path());
        assert!(verify(&directory).unwrap().is_intact());
        let entries = entries(&directory, None).unwrap();
        let name = |record: &Record| {
            let json = serde_json::to_value(record).unwrap();
            json["type"].as_str().unwrap().to_owned()
        };
        entries.map(|entry| name(&entry.unwrap().record)).collect()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let call = ToolCall {
            call_id: CallId::new("call_abc123"),
            name: name.to_owned(),
            payload: ToolPayload::Function { arguments: arguments.to_string() },
        };
        let requester = self.session.requester();
        let turn = requester.begin_turn();
        requester.call(vec![call], &turn).await.remove(0)
    }

    /// Makes a call while a person answers every question in the same way.
    async fn call_answered(
        &self,
        name: &str,
        arguments: Value,
        decision: ReviewDecision,
    ) -> (ToolResult, Vec<Event>) {
        let approver = self.session.approver("test");
        let mut events = self.session.events(Delivery::Complete).await;
        let mut heard = Vec::new();
        let call = self.call(name, arguments);
        tokio::pin!(call);
        let result = loop {
            tokio::select! {
                result = &mut call => break result,
                event = events.next() => note(event.unwrap().event.clone(), &approver, &decision, &mut heard),
            }
        };
        drain(&mut events, &mut heard);
        (result, heard)
    }
}

fn note(event: Event, approver: &Approver, decision: &ReviewDecision, heard: &mut Vec<Event>) {
    match &event {
        Event::ExecApprovalRequest(request) => {
            approver.answer(&request.approval_id, decision.clone()).unwrap();
        }
        Event::ApplyPatchApprovalRequest(request) => {
            approver.answer(&request.approval_id, decision.clone()).unwrap();
        }
        _ => {}
    }
    heard.push(event);
}

fn drain(events: &mut Events, heard: &mut Vec<Event>) {
    while let Some(event) = events.try_next() {
        heard.push(event.event.clone());
    }
}

fn text(result: &ToolResult) -> &str {
    match &result.output {
        ToolOutput::Function { content, .. } => content,
        ToolOutput::Mcp { .. } => panic!("not a function"),
    }
}

fn names(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| match event {
            Event::ExecCommandBegin(_) => "begin",
            Event::ExecCommandOutputDelta(_) => "delta",
            Event::ExecCommandEnd(_) => "end",
            Event::ExecApprovalRequest(_) => "asked",
            Event::ApprovalResponse(_) => "answered",
            Event::Error(_) => "error",
            Event::ApplyPatchApprovalRequest(_) => "patch asked",
            Event::PatchApplyBegin(_) => "patch begin",
            Event::PatchApplyEnd(_) => "patch end",
            _ => "other",
        })
        .collect()
}

#[tokio::test]
async fn a_search_in_the_workspace_needs_nobody_and_answers_with_bare_output() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    fs::create_dir(scene.path().join("src")).unwrap();
    fs::write(scene.path().join("src/main.rs"), "    // LATER: refactor this\n").unwrap();
    let arguments = json!({"command": "grep -r 'LATER' src/", "timeout_ms": 5000});
    let result = scene.call("shell_command", arguments).await;
    assert_eq!(text(&result), "src/main.rs:    // LATER: refactor this\n");
    assert_eq!(result.call_id.as_str(), "call_abc123");
    assert_eq!(result.error, None);
}

#[tokio::test]
async fn only_what_was_blocked_is_granted_and_the_command_stays_confined() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("made");
    fs::write(&file, "old").unwrap();
    let script = format!("echo new > {}", file.display());
    let decision = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call };
    let (result, events) =
        scene.call_answered("shell_command", json!({"command": script}), decision).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n", "{result:?}");
    assert_eq!(names(&events), ["begin", "delta", "end", "asked", "answered", "begin", "end"]);
}

#[tokio::test]
async fn a_no_after_a_denial_leaves_the_failure_as_it_was() {
    let scene = Scene::new(AskForApproval::OnFailure, SandboxPolicy::workspace_write());
    let arguments = json!({"command": ["touch", "/var/tmp/never-made-by-a-test"]});
    let (result, events) = scene.call_answered("shell", arguments, ReviewDecision::DENIED).await;
    let said = text(&result);
    assert!(said.starts_with("Exit code: 1\n"), "{said}");
    let blocked = "\nBlocked by the sandbox: create /var/tmp/never-made-by-a-test (outside the \
                   writable roots)\n";
    assert!(said.contains(blocked), "{said}");
    assert!(!Path::new("/var/tmp/never-made-by-a-test").exists());
    assert_eq!(names(&events).iter().filter(|name| **name == "begin").count(), 1);
}

#[tokio::test]
async fn under_untrusted_a_no_is_told_to_the_model_with_what_the_person_said() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let no = ReviewDecision::Denied { feedback: Some("use make instead".to_owned()) };
    let arguments = json!({"command": ["touch", "x"]});
    let (result, events) = scene.call_answered("shell", arguments, no).await;
    assert_eq!(text(&result), "User denied approval for this command, and says: use make instead");
    assert_eq!(names(&events), ["asked", "answered", "error"]);
    assert!(!scene.path().join("x").exists());
}

#[tokio::test]
async fn without_anybody_to_ask_nothing_runs() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let result = scene.call("shell", json!({"command": ["touch", "x"]})).await;
    assert!(matches!(result.error, Some(CodexErr::NobodyToAsk { .. })), "{result:?}");
    assert!(!scene.path().join("x").exists());
}

#[tokio::test]
async fn who_asks_to_leave_says_why() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let arguments = json!({"command": ["true"], "sandbox_permissions": "require_escalated"});
    let result = scene.call("shell", arguments).await;
    assert!(text(&result).contains("needs a justification"), "{}", text(&result));
}

/// spec ASKING.9: A script is shown without the shell that reads it only if that is the session's own or
/// one of the system's; any other is shown by its whole path, with all its words.
#[cfg(unix)]
#[tokio::test]
async fn a_shell_of_the_workspace_is_shown_by_its_path() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let fake = scene.path().canonicalize().unwrap().join("bin/bash");
    fs::create_dir(fake.parent().unwrap()).unwrap();
    fs::write(&fake, "#!/bin/sh\ntouch ran\n").unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let script = "git status";
    for (tool, mut arguments, expected) in [
        ("shell", json!({"command": ["bin/bash", "-c", script]}), Some(&fake)),
        ("exec_command", json!({"cmd": script, "shell": fake}), Some(&fake)),
        ("shell", json!({"command": ["bash", "-c", script]}), None),
        ("exec_command", json!({"cmd": script}), None),
    ] {
        arguments["sandbox_permissions"] = json!("require_escalated");
        arguments["justification"] = json!("to see what changed");
        let (_, events) = scene.call_answered(tool, arguments, ReviewDecision::DENIED).await;
        let asked = events.iter().find_map(|event| match event {
            Event::ExecApprovalRequest(request) => Some(request.command_text.as_str()),
            _ => None,
        });
        let asked = asked.unwrap_or_else(|| panic!("{tool}: {events:?}"));
        match expected {
            Some(program) => {
                assert!(asked.starts_with(program.to_str().unwrap()), "{tool}: {asked}");
                assert!(asked.ends_with("c 'git status'"), "{tool}: {asked}");
            }
            None => assert_eq!(asked, script, "{tool}"),
        }
    }
    assert!(!scene.path().join("ran").exists());
}

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch\n";

#[tokio::test]
async fn a_patch_inside_the_workspace_is_applied_without_a_question() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    fs::write(scene.path().join("a.txt"), "old\n").unwrap();
    let (result, events) =
        scene.call_answered("apply_patch", json!({"input": PATCH}), ReviewDecision::Abort).await;
    assert_eq!(text(&result), "Done.\nM a.txt\n");
    assert_eq!(names(&events), ["patch begin", "patch end"]);
    assert_eq!(fs::read_to_string(scene.path().join("a.txt")).unwrap(), "new\n");
    let recorded = ["session_started", "call_asked", "judged", "decided", "patch_applied"];
    assert_eq!(scene.recorded(), recorded);
}

#[tokio::test]
async fn a_patch_in_a_script_takes_the_same_way() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    fs::create_dir(scene.path().join("sub")).unwrap();
    fs::write(scene.path().join("sub/a.txt"), "old\n").unwrap();
    let script = format!("cd sub && apply_patch <<'EOF'\n{PATCH}EOF\n");
    let result = scene.call("shell_command", json!({"command": script})).await;
    assert_eq!(text(&result), "Done.\nM a.txt\n");
    assert_eq!(fs::read_to_string(scene.path().join("sub/a.txt")).unwrap(), "new\n");
}

#[tokio::test]
async fn a_patch_outside_is_asked_about_with_its_diff_and_never_applied_against_a_no() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().canonicalize().unwrap().join("a.txt");
    fs::write(&file, "old\n").unwrap();
    let patch = PATCH.replace("a.txt", file.to_str().unwrap());
    let arguments = json!({"input": patch});
    let (result, events) =
        scene.call_answered("apply_patch", arguments.clone(), ReviewDecision::DENIED).await;
    assert_eq!(result.error, Some(CodexErr::ApprovalDenied { feedback: None }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    let Event::ApplyPatchApprovalRequest(asked) = &events[0] else { panic!("{events:?}") };
    assert!(asked.changes[0].diff.contains("-old\n+new"), "{}", asked.changes[0].diff);
    assert_eq!(asked.grant_root.as_deref(), file.parent());
    let (result, _) = scene.call_answered("apply_patch", arguments, ReviewDecision::Approved).await;
    assert!(result.error.is_none(), "{result:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
}

fn adding(file: &Path) -> Value {
    let file = file.display();
    json!({"input": format!("*** Begin Patch\n*** Add File: {file}\n+text\n*** End Patch\n")})
}

#[tokio::test]
async fn a_directory_opened_for_the_session_leaves_closed_what_others_obey() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let yes = ReviewDecision::ApprovedForSession;
    let (_, events) = scene.call_answered("apply_patch", adding(&outside.join("a")), yes).await;
    let Event::ApplyPatchApprovalRequest(asked) = &events[0] else { panic!("{events:?}") };
    assert_eq!(asked.grant_root.as_deref(), Some(outside.as_path()));
    let no = ReviewDecision::DENIED;
    for (name, is_asked) in [
        ("b", false),
        ("sub/c", false),
        (".git/hooks/pre-commit", true),
        ("sub/.codex/config.toml", true),
        (".ssh/authorized_keys", true),
    ] {
        let file = outside.join(name);
        let (_, events) = scene.call_answered("apply_patch", adding(&file), no.clone()).await;
        let asked = events.iter().find_map(|event| match event {
            Event::ApplyPatchApprovalRequest(request) => Some(request),
            _ => None,
        });
        assert_eq!(asked.is_some(), is_asked, "{name}: {events:?}");
        assert_eq!(file.exists(), !is_asked, "{name}");
        assert_eq!(asked.and_then(|request| request.grant_root.as_ref()), None, "{name}");
    }
}

/// spec ASKING.11: Every path outside the writable roots that a patch would write to is in the reason of
/// the question.
#[tokio::test]
async fn no_path_outside_is_left_out_of_a_question() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let directory = outside.path().canonicalize().unwrap();
    let files: Vec<_> = (0..12).map(|number| directory.join(format!("file-{number}"))).collect();
    let mut patch = "*** Begin Patch\n".to_owned();
    for file in &files {
        patch += &format!("*** Add File: {}\n+text\n", file.display());
    }
    fs::write(scene.path().join("a.txt"), "old\n").unwrap();
    let moved = directory.join("moved");
    patch += &format!(
        "*** Update File: a.txt\n*** Move to: {}\n@@\n-old\n+new\n*** End Patch\n",
        moved.display()
    );
    let no = ReviewDecision::DENIED;
    let (_, events) = scene.call_answered("apply_patch", json!({"input": patch}), no).await;
    let Event::ApplyPatchApprovalRequest(asked) = &events[0] else { panic!("{events:?}") };
    for file in files.iter().chain([&moved]) {
        let named = format!("write {} (", file.display());
        assert!(asked.reason.contains(&named), "{}", asked.reason);
        assert!(!file.exists());
    }
}

#[tokio::test]
async fn a_patch_of_the_settings_is_asked_about_each_time() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let file = scene.home.path().canonicalize().unwrap().join("config.toml");
    for _ in 0..2 {
        let yes = ReviewDecision::Approved;
        let (result, events) = scene.call_answered("apply_patch", adding(&file), yes).await;
        assert_eq!(result.error, None);
        let Event::ApplyPatchApprovalRequest(asked) = &events[0] else { panic!("{events:?}") };
        assert!(!asked.offers().has(&ReviewDecision::ApprovedForSession));
        assert!(asked.only_once && asked.grant_root.is_none(), "{asked:?}");
        fs::remove_file(&file).unwrap();
    }
    let no = ReviewDecision::DENIED;
    let beside = file.with_file_name("rules.toml");
    let (_, events) = scene.call_answered("apply_patch", adding(&beside), no).await;
    assert!(names(&events).contains(&"patch asked"), "{events:?}");
    assert!(!beside.exists());
}

#[tokio::test]
async fn a_patch_does_not_touch_what_is_protected_under_never() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    let patch = "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+evil\n*** End Patch\n";
    let result = scene.call("apply_patch", json!({"input": patch})).await;
    assert!(matches!(result.error, Some(CodexErr::Forbidden { .. })), "{result:?}");
    assert!(!scene.path().join(".git").exists());
}

#[tokio::test]
async fn everything_that_was_decided_and_run_is_recorded_before_and_after() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let arguments = json!({"command": ["touch", "x"]});
    let (result, _) = scene.call_answered("shell", arguments, ReviewDecision::Approved).await;
    assert_eq!(result.error, None);
    let recorded =
        ["session_started", "call_asked", "judged", "decided", "granted", "began", "ended"];
    assert_eq!(scene.recorded(), recorded);
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_run() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let audit = audit_directory(scene.home.path());
    fs::remove_dir_all(&audit).unwrap();
    fs::write(&audit, "in the way").unwrap();
    let result = scene.call("shell", json!({"command": ["touch", "x"]})).await;
    assert!(matches!(result.error, Some(CodexErr::Fatal(_))), "{result:?}");
    assert!(!scene.path().join("x").exists());
}

#[tokio::test]
async fn an_approved_rule_is_kept_and_spares_the_next_question() {
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let arguments = json!({"command": ["git", "frobnicate", "a"]});
    let yes = ReviewDecision::ApprovedWithRule;
    let (_, events) = scene.call_answered("shell", arguments, yes).await;
    assert!(names(&events).contains(&"asked"), "{events:?}");
    let rules = fs::read_to_string(scene.home.path().join("rules/default.toml")).unwrap();
    assert!(rules.contains("frobnicate"), "{rules}");
    let arguments = json!({"command": ["git", "frobnicate", "b"]});
    let (_, events) = scene.call_answered("shell", arguments, ReviewDecision::DENIED).await;
    assert!(!names(&events).contains(&"asked"), "{events:?}");
}

#[tokio::test]
async fn what_keeps_names_free_is_not_listed() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    fs::write(scene.path().join("a"), "").unwrap();
    scene.call("shell", json!({"command": ["true"]})).await;
    let listed = scene.call("list_dir", json!({})).await;
    let (_, entries) = text(&listed).split_once('\n').unwrap();
    assert_eq!(entries, "  a\n");
}

/// spec APPROVAL.51: A script that was approved for the session is asked about again when it was changed,
/// whether it is run by its path, by an interpreter, by a wrapper or from a script.
#[cfg(unix)]
#[tokio::test]
async fn a_script_that_was_changed_is_asked_about_again() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let script = scene.path().join("build.sh");
    let write = |text: &str| {
        fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for command in [
        json!(["./build.sh"]),
        json!(["sh", "build.sh"]),
        json!(["env", "NAME=value", "./build.sh"]),
        json!(["bash", "-c", "./build.sh && echo done"]),
    ] {
        let is_asked = async |decision: ReviewDecision| {
            let arguments = json!({ "command": command });
            let (_, events) = scene.call_answered("shell", arguments, decision).await;
            events.iter().any(|event| matches!(event, Event::ExecApprovalRequest(_)))
        };
        write("echo one");
        assert!(is_asked(ReviewDecision::ApprovedForSession).await, "{command}");
        assert!(!is_asked(ReviewDecision::DENIED).await, "{command}");
        write("echo two");
        assert!(is_asked(ReviewDecision::DENIED).await, "{command} after a change");
        write("echo one");
        assert!(!is_asked(ReviewDecision::DENIED).await, "{command} is what was approved");
    }
}

/// spec APPROVAL.57: Among the files that a command runs are its script wherever it stands among options, what
/// is fed into an interpreter, what options and variables load, the programs that are found by their names,
/// what the first line of a script names, and any word that names an executable file.
#[cfg(unix)]
#[tokio::test]
async fn whatever_a_command_runs_is_asked_about_again_when_it_was_changed() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let write = |name: &str, text: &str, mode: u32| {
        let file = scene.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    // A file that stands where the value of an option does not stand for the script.
    write("pipefail", "", 0o644);
    let interpreted = format!("#!{}/plain\n", scene.path().canonicalize().unwrap().display());
    write("interpreted", &interpreted, 0o755);
    for (command, file, mode) in [
        (json!(["bash", "-o", "pipefail", "script"]), "script", 0o644),
        (json!(["python3", "package"]), "package/__main__.py", 0o644),
        (json!(["bash", "-c", "sh < fed"]), "fed", 0o644),
        (json!(["bash", "-c", "cat piped | sh"]), "piped", 0o644),
        (json!(["bash", "-c", "cd -P sub && sh below"]), "sub/below", 0o644),
        (json!(["bash", "-c", "BASH_ENV=./loaded bash -c true"]), "loaded", 0o644),
        (json!(["bash", "-c", "PATH=./bin tool"]), "bin/tool", 0o755),
        (json!(["./interpreted"]), "plain", 0o755),
        (json!(["tar", "-cf", "x.tar", "--to-command=./hook", "script"]), "hook", 0o755),
    ] {
        let is_asked = async |decision: ReviewDecision| {
            let arguments = json!({ "command": command });
            let (_, events) = scene.call_answered("shell", arguments, decision).await;
            events.iter().any(|event| matches!(event, Event::ExecApprovalRequest(_)))
        };
        write(file, "#!/bin/sh\n:\n", mode);
        assert!(is_asked(ReviewDecision::ApprovedForSession).await, "{command}");
        assert!(!is_asked(ReviewDecision::DENIED).await, "{command}");
        write(file, "#!/bin/sh\ntrue\n", mode);
        assert!(is_asked(ReviewDecision::DENIED).await, "{command} after a change");
    }
}

/// spec APPROVAL.58: A yes holds once, and is offered for no longer, where the name of a file that a command
/// runs shows only when it runs, and outside the sandbox where its program reads what it does from the files
/// of its directory.
#[cfg(unix)]
#[tokio::test]
async fn a_yes_holds_once_where_another_time_may_run_something_else() {
    let inside = Scene::new(AskForApproval::UnlessTrusted, SandboxPolicy::workspace_write());
    let outside = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    fs::write(inside.path().join("a.sh"), "true\n").unwrap();
    for (scene, script, lasts) in [
        (&inside, "sh a.sh", true),
        (&inside, "for f in a.sh; do sh $f; done", false),
        (&inside, "sh *.sh", false),
        (&inside, "make -n nothing", true),
        (&outside, "make -n nothing", false),
        (&outside, "env npm --version", false),
        (&outside, "echo done", true),
    ] {
        let mut arguments = json!({ "command": ["bash", "-c", script] });
        if std::ptr::eq(scene, &outside) {
            arguments["sandbox_permissions"] = json!("require_escalated");
            arguments["justification"] = json!("it is a test");
        }
        let asked = async |decision: ReviewDecision| {
            let (_, events) = scene.call_answered("shell", arguments.clone(), decision).await;
            events.into_iter().find_map(|event| match event {
                Event::ExecApprovalRequest(asked) => Some(asked),
                _ => None,
            })
        };
        let yes = if lasts { ReviewDecision::ApprovedForSession } else { ReviewDecision::Approved };
        let first = asked(yes).await.unwrap();
        assert_eq!(first.offers().has(&ReviewDecision::ApprovedForSession), lasts, "{script}");
        assert_eq!(asked(ReviewDecision::DENIED).await.is_some(), !lasts, "{script}");
    }
}

/// spec APPROVAL.52: A command does not run on a yes that was given while a file that it runs was changed:
/// the call is refused with the name of the file, and the next one is asked about.
#[cfg(unix)]
#[tokio::test]
async fn what_was_changed_while_a_person_thought_about_it_does_not_run() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let script = scene.path().join("d.sh");
    let arguments = json!({
        "command": ["sh", "d.sh"],
        "sandbox_permissions": "require_escalated",
        "justification": "it needs the network",
    });
    for changes in [true, false] {
        fs::write(&script, "touch ran\n").unwrap();
        let approver = scene.session.approver("test");
        let mut events = scene.session.events(Delivery::Complete).await;
        let call = scene.call("shell", arguments.clone());
        tokio::pin!(call);
        let result = loop {
            tokio::select! {
                result = &mut call => break result,
                event = events.next() => if let Event::ExecApprovalRequest(asked) = &event.unwrap().event {
                    if changes {
                        fs::write(&script, "touch ran changed\n").unwrap();
                    }
                    approver.answer(&asked.approval_id, ReviewDecision::ApprovedForSession).unwrap();
                },
            }
        };
        let refused = matches!(&result.error, Some(CodexErr::Forbidden { reason })
            if reason.contains("d.sh was changed while the question about it was open"));
        assert_eq!(refused, changes, "{result:?}");
        assert_eq!(scene.path().join("ran").exists(), !changes);
        assert!(!scene.path().join("changed").exists());
    }
}

/// spec DECISIONS.65: Who opened a git directory to the session has not opened its hooks and its
/// configuration to the commands that follow, and the question says so.
#[cfg(target_os = "linux")]
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "git makes the repository")]
async fn a_git_directory_that_was_opened_keeps_its_hooks() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(words).current_dir(scene.path()).env("HOME", scene.home.path());
        assert!(git.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q", "--template="]);
    fs::write(scene.path().join("f"), "x").unwrap();
    let config = fs::read(scene.path().join(".git/config")).unwrap();
    let grant = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session };
    let arguments = json!({"command": ["git", "add", "f"]});
    let (result, events) = scene.call_answered("shell", arguments, grant).await;
    let asked = events.iter().find_map(|event| match event {
        Event::ExecApprovalRequest(asked) => asked.grant_offer.clone(),
        _ => None,
    });
    assert_eq!(asked.unwrap().summary, "write to .git (not its hooks and config)");
    assert!(scene.path().join(".git/index").exists(), "{result:?}");
    let script = "git -c user.name=a -c user.email=b commit -qm one && echo done; \
                  mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; \
                  git config core.fsmonitor x; echo x >> .git/config; \
                  echo x > .git/config.worktree; mkdir -p .git/info; echo x > .git/info/attributes";
    fs::write(scene.path().join("run.sh"), script).unwrap();
    let arguments = json!({"command": ["bash", "run.sh"]});
    let (result, _) = scene.call_answered("shell", arguments, ReviewDecision::DENIED).await;
    assert!(text(&result).contains("done"), "{result:?}");
    for name in ["hooks/pre-commit", "config.worktree", "info/attributes"] {
        assert!(!scene.path().join(".git").join(name).is_file(), "{name}");
    }
    assert_eq!(fs::read(scene.path().join(".git/config")).unwrap(), config);
    git(&["status"]);
}

/// spec CALL.32: `read_file`, `list_dir` and `grep_files` read nothing in `/proc` but a few facts about the
/// machine: no process, this program among them, and no log or memory of the kernel.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_are_not_read() {
    let scene = Scene::new(AskForApproval::Never, SandboxPolicy::workspace_write());
    std::os::unix::fs::symlink("/proc/self/environ", scene.path().join("link")).unwrap();
    let refused = async |tool: &str, arguments: Value| {
        let result = scene.call(tool, arguments).await;
        matches!(&result.error, Some(CodexErr::Forbidden { reason }) if reason.contains("/proc"))
    };
    for path in ["/proc/self/maps", "/proc/1/environ", "/proc/kmsg", "/proc/mounts", "link"] {
        assert!(refused("read_file", json!({ "path": path })).await, "{path}");
    }
    for path in ["/proc", "/proc/self"] {
        assert!(refused("list_dir", json!({ "path": path })).await, "{path}");
    }
    assert!(refused("grep_files", json!({ "pattern": "PATH", "path": "/proc/self" })).await);
    let version = scene.call("read_file", json!({ "path": "/proc/version" })).await;
    assert!(text(&version).contains("Linux"), "{version:?}");
}

/// spec CALL.22: A call by the id of one of the same session that is still at work, or whose process is, is
/// refused with `call_id_taken`, and neither the events nor the record of that one have anything of it.
#[tokio::test]
async fn an_id_is_that_of_one_call_at_a_time() {
    let scene = Scene::new(AskForApproval::OnRequest, SandboxPolicy::workspace_write());
    let started = scene.call("exec_command", json!({"command": "cat", "process_id": "p"})).await;
    assert_eq!(started.error, None, "{}", text(&started));
    let mut events = scene.session.events(Delivery::Complete).await;
    let again = scene.call("shell", json!({"command": ["touch", "made"]})).await;
    let taken = CodexErr::CallIdTaken { call_id: "call_abc123".to_owned() };
    assert_eq!((again.call_id.as_str(), again.error), ("call_abc123", Some(taken)));
    assert!(!scene.path().join("made").exists());
    let mut heard = Vec::new();
    drain(&mut events, &mut heard);
    let [Event::Error(told)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_ne!(told.call_id.as_ref().unwrap().as_str(), "call_abc123");

    // When the process has ended the id is free.
    let end = ToolCall {
        call_id: CallId::new("another"),
        name: "write_stdin".to_owned(),
        payload: ToolPayload::Function {
            arguments: json!({"process_id": "p", "input": "\u{4}"}).to_string(),
        },
    };
    let requester = scene.session.requester();
    let ended = requester.call(vec![end], &requester.begin_turn()).await.remove(0);
    assert_eq!(ended.error, None, "{}", text(&ended));
    while !matches!(events.next().await.unwrap().event, Event::ProcessWoke(_)) {}
    let later = scene.call("shell", json!({"command": ["touch", "made"]})).await;
    assert_eq!(later.error, None, "{}", text(&later));

    // Who reads the record sees each by itself: the process, the refusal, its end, the last.
    let asked = entries(&audit_directory(scene.home.path()), None).unwrap();
    let asked = asked.filter_map(|entry| match entry.unwrap().record {
        Record::CallAsked(asked) => Some((asked.call_id.as_str().to_owned(), asked.tool)),
        _ => None,
    });
    let asked: Vec<(String, String)> = asked.collect();
    let tools: Vec<&str> = asked.iter().map(|(_, tool)| tool.as_str()).collect();
    assert_eq!(tools, ["exec_command", "shell", "write_stdin", "shell"]);
    let same: Vec<bool> = asked.iter().map(|(id, _)| id == "call_abc123").collect();
    assert_eq!(same, [true, false, false, true]);
}
