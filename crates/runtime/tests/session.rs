//! The directory that holds the output of commands that write much, while their session lives.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a session that is killed is a program of its own")]

mod support;

use sandgate_runtime::KeepOutput;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::argv;

/// Set where this file is not to test anything but to be a program that uses the library: to the
/// number of lines that a command of its session prints.
const LINES: &str = "SANDGATE_TEST_LINES";

/// Lines that are more than memory may hold.
const MANY: &str = "500000";
const FEW: &str = "1000";

/// Runs a command that prints lines, keeps its session as long as there is input, and says before that
/// where the whole output is.
fn be_a_program(lines: &str) {
    let mut asking = argv(&["seq", lines]);
    asking.config.keep = KeepOutput::Everything;
    let session = asking.session();
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = asynchronous.block_on(asking.run_in(&session)).unwrap();
    let spill = outcome.output.spill;
    let path = spill.map(|spill| spill.path.expect("the output is spilled"));
    eprintln!("spilled: {}", path.unwrap_or_default().display());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A program that uses the library: the test that starts it, once more.
struct Program {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Program {
    /// Starts it in a home, and waits until its command has ended.
    fn start(home: &Path, test: &str, lines: &str) -> (Self, PathBuf) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(LINES, lines);
        command.env("HOME", home).env_remove("XDG_CACHE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut program = Self { child, stderr };
        let spill = program.spilled();
        (program, spill)
    }

    fn spilled(&mut self) -> PathBuf {
        let mut said = String::new();
        while self.stderr.read_line(&mut said).unwrap() > 0 {
            if let Some(path) = said.lines().last().and_then(|line| line.strip_prefix("spilled: "))
            {
                return PathBuf::from(path);
            }
        }
        panic!("the program failed: {said}");
    }

    /// Lets it end.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// spec RUN.70: Output that is to be kept and is more than memory holds goes to a file that only its
/// owner can read, in a directory of the session; both stay as long as the session lives, and go with
/// it.
#[test]
fn all_of_the_output_can_be_read_while_the_session_lives() {
    if let Ok(lines) = std::env::var(LINES) {
        return be_a_program(&lines);
    }
    let test = "all_of_the_output_can_be_read_while_the_session_lives";
    let home = tempfile::tempdir().unwrap();
    let (program, spill) = Program::start(home.path(), test, MANY);
    let session = spill.parent().unwrap();
    assert!(session.starts_with(home.path().join(".cache/sandgate")), "{spill:?}");
    assert_eq!((mode(&spill), mode(session)), (0o600, 0o700));
    assert_eq!(mode(&home.path().join(".cache/sandgate")), 0o700);
    let everything: String = (1..=500_000).map(|line| format!("{line}\n")).collect();
    assert!(fs::read_to_string(&spill).unwrap() == everything);
    program.end();
    assert!(!spill.exists() && !session.exists());
}

/// spec RUN.71: The directory of a session that was killed is removed by the next one that makes its
/// own; that of a living one is left alone.
#[test]
fn the_directory_of_a_killed_session_is_swept() {
    if let Ok(lines) = std::env::var(LINES) {
        return be_a_program(&lines);
    }
    let test = "the_directory_of_a_killed_session_is_swept";
    let home = tempfile::tempdir().unwrap();
    let (killed, abandoned) = Program::start(home.path(), test, MANY);
    killed.kill();
    assert!(abandoned.exists());

    let (living, held) = Program::start(home.path(), test, MANY);
    assert!(!abandoned.parent().unwrap().exists());
    let (another, _) = Program::start(home.path(), test, MANY);
    assert!(held.exists());
    another.end();
    assert!(held.exists());
    living.end();
}

/// spec RUN.72: A command that writes no more than is kept in memory makes no directory, and neither
/// does `sandgate run`, whatever the command writes.
#[test]
fn little_output_leaves_the_file_system_alone() {
    if let Ok(lines) = std::env::var(LINES) {
        return be_a_program(&lines);
    }
    let test = "little_output_leaves_the_file_system_alone";
    let home = tempfile::tempdir().unwrap();
    let (program, spill) = Program::start(home.path(), test, FEW);
    assert_eq!(spill, Path::new(""));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    program.end();
}
