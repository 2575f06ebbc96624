//! Windows: command lines, jobs and the restricted token, with real processes.
//!
//! The tests run under Wine too. Wine makes tokens but does not ask them, so there it is said what
//! was not tried.

#![cfg(windows)]

use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Executed, OutputSink, Spawner, Stop, execute};
use sandgate_protocol::{
    ExecExpiration, ExecParams, OutputStream, SandboxPermissions, SandboxPolicy, SandboxType,
};
use sandgate_sandbox::windows::{Feature, WindowsSandbox};
use sandgate_sandbox::{ExecEnv, SandboxManager};
use std::fs::File;
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CMD: &str = r"C:\Windows\System32\cmd.exe";

/// What this program prints its own arguments after, when it is told to.
const MARK: &str = "arguments:";

fn params(command: &[&str], cwd: &Path) -> ExecParams {
    ExecParams {
        command: command.iter().map(ToString::to_string).collect(),
        program: PathBuf::from(command[0]),
        cwd: cwd.to_owned(),
        env: std::env::vars_os().collect(),
        expiration: ExecExpiration::Timeout(Duration::from_secs(60)),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        arg0: None,
    }
}

fn unconfined(params: ExecParams) -> ExecEnv {
    SandboxManager::new().transform(Grant::unconfined_by_person(params)).expect("no sandbox")
}

struct Nowhere;

impl OutputSink for Nowhere {
    async fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

async fn run(env: &ExecEnv) -> Executed {
    let spawner = Spawner::start().expect("start a spawner");
    let stop = Stop::default();
    let options = ExecuteOptions::default();
    execute(&spawner, env, options, &stop, &mut Nowhere).await.expect("start the command")
}

fn text(executed: &Executed) -> String {
    executed.output.aggregated_output.text.replace("\r\n", "\n")
}

fn is_wine() -> bool {
    Path::new(r"C:\windows\system32\winecfg.exe").exists()
}

/// Not a test by itself: what the next one starts.
#[test]
fn prints_its_arguments_when_told_to() {
    if std::env::var_os("SANDGATE_PRINT_ARGUMENTS").is_some() {
        let arguments: Vec<String> = std::env::args().skip(4).collect();
        println!("{MARK}{arguments:?}");
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_were_given() {
    let exe = std::env::current_exe().unwrap();
    let awkward = ["a b", "", "\"", "a\\", "a b\\", "\\\"", "%PATH%", "é𝄞", "^&|<>", "\t"];
    let mut command =
        vec![exe.to_str().unwrap(), "--nocapture", "--exact", "prints_its_arguments_when_told_to"];
    command.extend(awkward);
    let mut params = params(&command, Path::new(r"C:\"));
    params.env.insert("SANDGATE_PRINT_ARGUMENTS".into(), "1".into());
    let executed = run(&unconfined(params)).await;
    let text = text(&executed);
    assert!(text.contains(&format!("{MARK}{awkward:?}")), "{text}");
}

#[tokio::test]
async fn a_batch_file_gets_its_arguments_and_starts_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("show it.cmd");
    std::fs::write(&script, "@echo off\r\necho [%~1] [%~2]\r\nexit /b 7\r\n").unwrap();
    let command = [script.to_str().unwrap(), "a b", "c&echo injected"];
    let executed = run(&unconfined(params(&command, directory.path()))).await;
    assert_eq!(executed.output.exit_code, 7);
    let text = text(&executed);
    assert!(text.contains("[a b]"), "{text}");
    assert!(!text.lines().any(|line| line == "injected"), "{text}");
}

/// Not a test by itself: what the next one leaves behind.
#[test]
fn stays_when_told_to() {
    if let Some(held) = std::env::var_os("SANDGATE_STAY") {
        let exclusively = File::options().write(true).create_new(true).share_mode(0).open(held);
        let _held = exclusively.unwrap();
        loop {
            std::thread::park();
        }
    }
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (script, held) = (directory.path().join("x.cmd"), directory.path().join("held"));
    let exe = std::env::current_exe().unwrap();
    let lines = [
        "@echo off",
        &format!("start /b \"\" \"{}\" --exact stays_when_told_to", exe.display()),
        ":wait",
        &format!("if not exist \"{}\" goto wait", held.display()),
        "exit /b 3",
    ];
    std::fs::write(&script, lines.join("\r\n")).unwrap();
    let mut params = params(&[script.to_str().unwrap()], directory.path());
    params.env.insert("SANDGATE_STAY".into(), held.clone().into());
    let executed = run(&unconfined(params)).await;
    assert_eq!((executed.output.exit_code, executed.output.left_running), (3, 0));
    // As long as somebody holds it nobody else can open it.
    File::open(held).expect("nobody holds the file");
}

#[tokio::test]
async fn a_confined_command_runs_with_its_sessions_token() {
    let [workspace, outside, state] = [0; 3].map(|_| tempfile::tempdir().unwrap());
    let sandbox = WindowsSandbox::new(Feature::Experimental, state.path().canonicalize().unwrap());
    let manager = SandboxManager::with_windows(sandbox);
    let target = outside.path().join("escaped");
    let script = format!(
        "echo in>inside & echo out>\"{}\" & echo [%CODEX_SANDBOX%] [%HTTP_PROXY%] & ssh",
        target.display()
    );
    let params = params(&[CMD, "/d", "/c", &script], workspace.path());
    let policy = SandboxPolicy::workspace_write();
    let grant = Grant::sandboxed_by_person(params, policy, workspace.path().to_owned());
    let env = manager.transform(grant).expect("confine the command");
    assert_eq!(env.sandbox(), SandboxType::WindowsRestrictedToken);
    assert!(workspace.path().join(".git").is_dir(), "the absent name is taken");
    let executed = run(&env).await;
    let text = text(&executed);
    assert!(text.contains("[windows] [http://127.0.0.1:9]"), "{text}");
    assert!(text.contains("ssh: the network is off in this sandbox"), "{text}");
    assert_eq!(executed.output.exit_code, 1);
    assert!(workspace.path().join("inside").is_file(), "{text}");
    if is_wine() {
        println!("SKIPPED: Wine does not ask tokens, so writing outside the roots was not tried");
    } else {
        assert!(!target.exists(), "{text}");
    }
    drop((env, manager));
    assert!(!workspace.path().join(".git").exists(), "the name is given back");
    let records = std::fs::read_dir(state.path().join("sessions")).unwrap();
    assert_eq!(records.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["lock"]);
}

#[test]
fn without_the_feature_nothing_is_confined_and_nothing_runs() {
    let workspace = tempfile::tempdir().unwrap();
    let params = params(&[CMD, "/c", "exit"], workspace.path());
    let policy = SandboxPolicy::workspace_write();
    let grant = Grant::sandboxed_by_person(params, policy, workspace.path().to_owned());
    let error = SandboxManager::new().transform(grant).unwrap_err().to_string();
    assert!(error.contains("features.enable_experimental_windows_sandbox"), "{error}");
}
