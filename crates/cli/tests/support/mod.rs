//! Drives the real program, in a home of its own, and looks at the world afterwards.

#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]
#![allow(dead_code, reason = "each test file uses its own share of this module")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes this long unless it hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The warning before a command that nothing confines.
pub(crate) const UNCONFINED: &str =
    "sandgate: warning: this command runs unconfined, with all your rights";

/// Lets a command run as if sandgate were not there, for tests of what holds in any case: its process
/// ids are those of the machine.
pub(crate) const FULL_ACCESS: [&str; 2] = ["--sandbox", "danger-full-access"];

/// What a person has set who works like in a directory that they trust, wherever they are.
pub(crate) const AS_TRUSTED: &str =
    "sandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n";

/// A person's home, with settings like those for directories that they trust.
pub(crate) struct World {
    root: TempDir,
}

/// How a run of the program ended. There is no exit code when a signal ended it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("the output is text")
    }

    /// What the program said, without the warning that nothing confines the command.
    pub(crate) fn notes(&self) -> String {
        match self.stderr.split_once('\n') {
            Some((warning, rest)) if warning == UNCONFINED => rest.to_owned(),
            _ => self.stderr.clone(),
        }
    }

    /// The events that were printed, each a line of JSON.
    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        let lines = self.stdout().lines();
        lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self::untouched();
        world.set(AS_TRUSTED);
        world
    }

    /// Writes the person's settings, so that nobody else can write them, whatever the umask is.
    pub(crate) fn set(&self, settings: &str) {
        let file = self.path(".codex/config.toml");
        fs::create_dir_all(self.path(".codex")).unwrap();
        fs::write(&file, settings).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// One where nothing is set.
    pub(crate) fn untouched() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// The same outside of the directories for temporary files, which commands may write to.
    pub(crate) fn elsewhere() -> Self {
        Self { root: tempfile::tempdir_in("/var/tmp").unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The program with these arguments, not started yet.
    pub(crate) fn program(&self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
        let program = std::env::var_os("SANDGATE_BIN")
            .unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_sandgate")));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.home());
        self.at_home(&mut command);
        command
    }

    /// Another program in this home, not started yet.
    pub(crate) fn other(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home());
        self.at_home(&mut command);
        command
    }

    fn at_home(&self, command: &mut Command) {
        command.env("HOME", self.home()).env("TMPDIR", self.home());
        command
            .env_remove("XDG_CACHE_HOME")
            .env_remove("CODEX_HOME")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Runs `sandgate` to its end.
    pub(crate) fn sandgate(&self, arguments: &[&str]) -> Outcome {
        Running::start(&mut self.program(arguments)).wait()
    }

    /// Runs `sandgate run`, with a time limit that no test reaches.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).wait()
    }

    /// Starts `sandgate run`, with a time limit that no test reaches.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.program(run_words(arguments)))
    }

    /// A named pipe, for a command and a test to wait for each other.
    #[cfg(unix)]
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }
}

/// The arguments of a run that is not about its time limit.
pub(crate) fn run_words<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--timeout-ms", "120000"], arguments].concat()
}

/// A run of the program that has not ended.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// What was read of its output before its end.
    read: Vec<u8>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self { child: command.spawn().expect("the program starts"), read: Vec::new() }
    }

    /// Waits until standard output has a line more, and gives it back.
    pub(crate) fn line(&mut self) -> String {
        let from = self.read.len();
        while self.read[from..].last() != Some(&b'\n') {
            self.read_exactly(1);
        }
        String::from_utf8(self.read[from..].to_vec()).unwrap()
    }

    /// Waits until standard output has so many bytes more, and gives them back.
    pub(crate) fn read_exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let stdout = self.child.stdout.as_mut().expect("standard output is a pipe");
        stdout.read_exact(&mut bytes).expect("there is more output");
        self.read.extend_from_slice(&bytes);
        bytes
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Lets it come to its end.
    pub(crate) fn wait(mut self) -> Outcome {
        let mut stderr = self.child.stderr.take();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(stderr) = &mut stderr {
                stderr.read_to_end(&mut text).unwrap();
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_end(&mut self.read).unwrap();
        }
        let status = self.child.wait().unwrap();
        let stdout = std::mem::take(&mut self.read);
        Outcome { code: status.code(), stdout, stderr: reader.join().unwrap() }
    }
}

/// What a test started that fails ends with it: nobody else would end a server.
#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() && matches!(self.child.try_wait(), Ok(None)) {
            self.signal(rustix::process::Signal::TERM);
        }
    }
}

/// Opens a named pipe's other end, which lets whoever reads from it go on.
pub(crate) fn let_go(fifo: &Path) {
    fs::OpenOptions::new().write(true).open(fifo).unwrap().write_all(b"go\n").unwrap();
}

/// Waits until something is so. This is a limit, not a measure: it fails only when it never is.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says on the record that something was not tested here, and why.
pub(crate) fn skipped(what: &str) {
    eprintln!("SKIPPED: {what}");
}

/// A time limit, as it is given to the program and as the program says it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) ms: &'static str,
    pub(crate) spoken: &'static str,
}

/// Time limits that leave more and more room for what must happen before them. How much room that
/// needs is the machine's business, and most need little.
const TIME_LIMITS: [TimeLimit; 4] = [
    TimeLimit { ms: "1000", spoken: "1 s" },
    TimeLimit { ms: "5500", spoken: "5.5 s" },
    TimeLimit { ms: "20000", spoken: "20 s" },
    TimeLimit { ms: "60000", spoken: "1 min 0 s" },
];

/// Tries with more and more time until everything that belongs before the limit happened before it.
#[track_caller]
pub(crate) fn before_the_limit<T>(what: &str, attempt: impl FnMut(TimeLimit) -> Option<T>) -> T {
    let happened = TIME_LIMITS.into_iter().find_map(attempt);
    happened.unwrap_or_else(|| panic!("never happened before the time limit: {what}"))
}

/// Whether a process is there and not only waiting to be waited for.
#[cfg(target_os = "linux")]
pub(crate) fn is_alive(pid: i32) -> bool {
    !matches!(state(pid), Some('Z' | 'X') | None)
}

/// Waits until a process does nothing but wait, and goes on waiting.
#[cfg(target_os = "linux")]
#[track_caller]
pub(crate) fn until_asleep_for_good(pid: i32) {
    let mut looks_in_a_row = 0;
    eventually("the process waits for good", || {
        looks_in_a_row = if state(pid) == Some('S') { looks_in_a_row + 1 } else { 0 };
        (looks_in_a_row == 20).then_some(())
    });
}

#[cfg(target_os = "linux")]
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Whether a process is there. Here a zombie counts too: its parent waits for it sooner or later.
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn is_alive(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::test_kill_process(pid).is_ok()
}
