//! A workspace and something beside it that must stay as it is.

#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]

use crate::support::{Outcome, Running, eventually, skipped};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const WITHOUT_NAMESPACES: &str = include_str!("../support/without_namespaces.py");
const WITHOUT_MOUNTS: &str = include_str!("../support/without_mounts.py");
const WITHOUT_LANDLOCK: &str = include_str!("../support/without_landlock.py");

/// Not below `/tmp`, which a confined command may write to.
pub(crate) struct Cage {
    base: TempDir,
}

impl Cage {
    pub(crate) fn new() -> Self {
        let base = tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").unwrap();
        for directory in ["ws", "outside", "home"] {
            fs::create_dir(base.path().join(directory)).unwrap();
        }
        fs::write(base.path().join("outside/victim"), "before").unwrap();
        Self { base }
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn ws(&self, name: &str) -> PathBuf {
        self.base().join("ws").join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.base().join("outside").join(name)
    }

    /// Makes files in the workspace, and the directories that they lie in.
    pub(crate) fn files(&self, names: &[&str]) {
        for name in names {
            let path = self.ws(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "before").unwrap();
        }
    }

    /// What is in the workspace, sorted.
    pub(crate) fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.ws("")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.flatten().map(name).collect();
        names.sort_unstable();
        names
    }

    /// `sandgate sandbox` with these options and this script for `sh`, in the workspace.
    pub(crate) fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(sandgate());
        command.arg("sandbox").args(options).args(["--", "/bin/sh", "-c", script]);
        self.settle(&mut command);
        command
    }

    /// The same by the program's other name, with a policy.
    pub(crate) fn by_policy(&self, policy: &str, script: &str) -> Command {
        let mut command = Command::new(sandgate());
        command.arg0("sandgate-linux-sandbox").args([policy, "--", "/bin/sh", "-c", script]);
        self.settle(&mut command);
        command
    }

    /// The same where namespaces are refused, if that can be had here.
    pub(crate) fn without_namespaces(&self, options: &[&str], script: &str) -> Option<Command> {
        self.without(WITHOUT_NAMESPACES, options, script)
    }

    /// The same where there is no Landlock, if that can be had here.
    pub(crate) fn without_landlock(&self, options: &[&str], script: &str) -> Option<Command> {
        self.without(WITHOUT_LANDLOCK, options, script)
    }

    /// The same where nothing can be mounted, if that can be had here.
    pub(crate) fn without_mounts(&self, options: &[&str], script: &str) -> Option<Command> {
        self.without(WITHOUT_MOUNTS, options, script)
    }

    fn without(&self, lacking: &str, options: &[&str], script: &str) -> Option<Command> {
        if !has("python3") {
            return None;
        }
        let mut command = Command::new("python3");
        command.args(["-c", lacking]);
        Some(self.behind(command, options, script))
    }

    /// The same where a file of `/proc` is covered by something that cannot be taken away, if that can
    /// be had here.
    pub(crate) fn where_proc_is_covered(&self, options: &[&str], script: &str) -> Option<Command> {
        // What is mounted in one user namespace is locked in the next.
        const COVERED: &str = "mount --bind /dev/null /proc/version && exec unshare -Urm \"$@\"";
        let covered = || {
            let mut command = Command::new("unshare");
            command.args(["-Urm", "/bin/sh", "-c", COVERED, "sh"]);
            command
        };
        let works =
            |args: &[&str]| covered().args(args).output().is_ok_and(|out| out.status.success());
        // Where somebody has mounted another one elsewhere, that one is whole.
        let whole = ["unshare", "-mpf", "mount", "-t", "proc", "proc", "/proc"];
        if !has("unshare") || !works(&["cat", "/proc/version"]) || works(&whole) {
            return None;
        }
        Some(self.behind(covered(), options, script))
    }

    /// The same where there may be so many namespaces for the network and no more, and one is taken, if that can be had
    /// here.
    pub(crate) fn where_networks_are_limited(
        &self,
        to: u32,
        options: &[&str],
        script: &str,
    ) -> Option<Command> {
        const LIMITED: &str =
            "echo \"$1\" > /proc/sys/user/max_net_namespaces && shift && exec \"$@\"";
        let limited = || {
            let mut command = Command::new("unshare");
            command.args(["-Urmn", "/bin/sh", "-c", LIMITED, "sh"]).arg(to.to_string());
            command
        };
        if !has("unshare") || !limited().arg("true").status().is_ok_and(|ended| ended.success()) {
            return None;
        }
        Some(self.behind(limited(), options, script))
    }

    /// The same where a directory of the workspace is a read-only mount of the person's, if that can be had here.
    pub(crate) fn where_is_read_only(
        &self,
        name: &str,
        options: &[&str],
        script: &str,
    ) -> Option<Command> {
        const MOUNTED: &str =
            "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
        let mounted = || {
            let mut command = Command::new("unshare");
            command.args(["-Urm", "/bin/sh", "-c", MOUNTED, "sh"]).arg(self.ws(".").join(name));
            command
        };
        if !has("unshare") || !mounted().arg("true").status().is_ok_and(|ended| ended.success()) {
            return None;
        }
        Some(self.behind(mounted(), options, script))
    }

    /// The same where the host's `/proc` is mounted in the workspace too, if that can be had here.
    pub(crate) fn where_proc_is_in(
        &self,
        name: &Path,
        options: &[&str],
        script: &str,
    ) -> Option<Command> {
        const MOUNTED: &str = "mount --rbind /proc \"$1\" && shift && exec \"$@\"";
        let mounted = || {
            let mut command = Command::new("unshare");
            command.args(["-Urm", "/bin/sh", "-c", MOUNTED, "sh"]).arg(self.ws(".").join(name));
            command
        };
        if !has("unshare") || !mounted().arg("true").status().is_ok_and(|ended| ended.success()) {
            return None;
        }
        Some(self.behind(mounted(), options, script))
    }

    /// The same, started by another program.
    fn behind(&self, mut command: Command, options: &[&str], script: &str) -> Command {
        command.arg(sandgate()).arg("sandbox").args(options);
        command.args(["--", "/bin/sh", "-c", script]);
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        command.current_dir(self.ws("")).env("HOME", self.base().join("home"));
        command.env("WS", self.ws("")).env("OUT", self.base().join("outside"));
        for name in ["TMPDIR", "CODEX_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Runs a script that may write to the workspace.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        self.run_with(&["--full-auto"], script)
    }

    pub(crate) fn run_with(&self, options: &[&str], script: &str) -> Outcome {
        Running::start(&mut self.command(options, script)).wait()
    }

    /// Tries each of these in one cage and asserts that none of them works.
    #[track_caller]
    pub(crate) fn refuses(&self, attempts: &[&str]) {
        for attempt in attempts {
            let outcome = self.run(attempt);
            assert!(!matches!(outcome.code, Some(0 | 125..=127)), "{attempt}: {outcome:?}");
        }
    }

    /// A named pipe in the workspace, opened for reading.
    pub(crate) fn pipe(&self, name: &str) -> Pipe {
        use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
        let path = self.ws(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        Pipe(fs::OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap())
    }
}

/// A pipe whose writers are watched.
pub(crate) struct Pipe(File);

impl Pipe {
    /// Waits until somebody wrote to it.
    #[track_caller]
    pub(crate) fn until_written(&mut self) {
        eventually("somebody writes to the pipe", || self.look().filter(|n| *n > 0));
    }

    /// Waits until nobody has it open for writing: whoever did is gone.
    #[track_caller]
    pub(crate) fn until_abandoned(&mut self) {
        eventually("the last writer is gone", || self.look().filter(|n| *n == 0));
    }

    fn look(&mut self) -> Option<usize> {
        self.0.read(&mut [0; 64]).ok()
    }
}

fn sandgate() -> OsString {
    let built = || OsString::from(env!("CARGO_BIN_EXE_sandgate"));
    std::env::var_os("SANDGATE_BIN").unwrap_or_else(built)
}

/// Whether a program is installed; says on the record when it is not.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        skipped(&format!("there is no {program} here"));
    }
    found
}

/// Another run of a program in the same place and environment, without arguments yet.
pub(crate) fn again(model: &Command, program: &OsString) -> Command {
    let mut command = Command::new(program);
    command.current_dir(model.get_current_dir().expect("it runs in the workspace"));
    for (name, value) in model.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
