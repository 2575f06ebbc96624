//! The safe list, run for real: nothing in a small world changes, nothing else is started, nothing is
//! connected to.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the commands themselves are what is tried")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[path = "support/lines.rs"]
mod lines;

/// What git is told on every command that runs without a question, so that it leaves its index as it
/// is and obeys nothing that a repository sets.
const GIT_ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "diff.autoRefreshIndex"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
];

/// Makes the files that the list names, in a repository with some history.
const MAKE_WORLD: &str = r#"
set -e
git init -q -b main .
git config --global user.name tester
git config --global user.email tester@example.invalid
mkdir src
printf 'foo one\nbar two\nname: three\n' > README.md
printf 'a:1\nb:2\nb:2\nc foo:3\n' > a.txt
printf 'a:1\nc:9\n' > b.txt
printf 'foo\n' > patterns.txt
printf 'a.txt\0b.txt\0' > list0
printf 'fn main() { foo() }\n' > src/main.rs
printf 'pub fn foo() {}\n' > src/lib.rs
printf '{"name":"x","n":1,"items":[{"id":1},{"id":2}]}\n' > data.json
printf 'aGVsbG8K\n' > encoded
sha256sum a.txt > sums
ln -s README.md link
printf 'target\n' > .gitignore
git add -A
git commit -q -m first
git tag v1
printf 'more\n' >> README.md
git commit -q -a -m second
git branch other
git remote add origin https://example.invalid/x.git
printf 'stashed\n' >> README.md
git stash -q
printf 'changed\n' >> b.txt
printf 'staged\n' > staged.txt
git add staged.txt
"#;

struct World {
    directory: TempDir,
}

/// What was seen of one command.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    /// The names of the programs that were started, itself first.
    started: Vec<String>,
    /// The calls that went to the network.
    connected: Vec<String>,
}

/// Every path, with what changes when somebody writes.
type Snapshot = BTreeMap<PathBuf, (u64, u32, u64, i64, i64)>;

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "tmp", "work"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let world = Self { directory };
        let made = world.command("sh").args(["-c", MAKE_WORLD]).status().unwrap();
        assert!(made.success());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("work")).stdin(Stdio::null()).stdout(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        command.stderr(Stdio::null());
        command
    }

    fn trace(&self, argv: &[String]) -> Trace {
        let log = self.directory.path().join("log");
        let mut strace = self.command("strace");
        strace.args([
            "-f",
            "-qq",
            "-s",
            "4096",
            "-e",
            "trace=execve,execveat,connect,sendto",
            "-o",
        ]);
        strace.arg(&log).arg("--").args(argv).envs(GIT_ENVIRONMENT);
        strace.status().unwrap();
        Trace::from_log(&fs::read_to_string(&log).unwrap())
    }

    fn snapshot(&self) -> Snapshot {
        let mut seen = Snapshot::new();
        for name in ["home", "tmp", "work"] {
            add(&self.path(name), &mut seen);
        }
        seen
    }
}

fn add(path: &Path, seen: &mut Snapshot) {
    let data = fs::symlink_metadata(path).unwrap();
    let state = (data.ino(), data.mode(), data.len(), data.mtime(), data.mtime_nsec());
    seen.insert(path.to_owned(), state);
    if data.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            add(&entry.unwrap().path(), seen);
        }
    }
}

impl Trace {
    fn from_log(log: &str) -> Self {
        let starts = |line: &&str| line.contains("execve") && line.ends_with("= 0");
        let name = |line: &str| {
            let file = line.split('"').nth(1).unwrap_or_default();
            file.rsplit('/').next().unwrap_or_default().to_owned()
        };
        let connects = |line: &&str| line.contains("sa_family=AF_INET");
        Self {
            started: log.lines().filter(starts).map(name).collect(),
            connected: log.lines().filter(connects).map(str::to_owned).collect(),
        }
    }

    /// Whether nothing was started but the program itself. egrep and fgrep are scripts around grep,
    /// and git starts itself again for some of its subcommands.
    fn stays_alone(&self, argv: &[String]) -> bool {
        let name = argv[0].rsplit('/').next().unwrap_or_default();
        let itself = |started: &String| match name {
            "egrep" | "fgrep" => started == name || started == "grep",
            _ => started == name,
        };
        self.started.iter().all(itself) && self.connected.is_empty()
    }
}

fn strace_works() -> bool {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "--", "true"]).status();
    traced.is_ok_and(|status| status.success())
}

fn argv(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// spec SAFE.13: Every command of the safe list whose program is here runs for real without changing
/// a file, starting another program or connecting anywhere.
#[test]
fn the_safe_list_changes_starts_and_reaches_nothing() {
    if !strace_works() {
        println!("SKIPPED: strace does not work here, so nothing is seen of what commands start");
        return;
    }
    let world = World::new();
    let before = world.snapshot();
    let (mut ran, mut absent, mut found) = (0, Vec::new(), Vec::new());
    for argv in lines::words_of(include_str!("safe_commands.txt")) {
        let trace = world.trace(&argv);
        if trace.started.is_empty() {
            absent.push(argv[0].clone());
            continue;
        }
        ran += 1;
        if !trace.stays_alone(&argv) {
            found.push(format!("{argv:?}: {trace:?}"));
        }
        assert_eq!(world.snapshot(), before, "{argv:?}");
    }
    absent.dedup();
    println!("ran {ran} commands; SKIPPED: these programs are not here: {}", absent.join(", "));
    assert!(ran > 300, "only {ran} commands ran");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What the test above relies on: it sees a program that is started, a file that is written and a
/// connection.
#[test]
fn what_writes_starts_or_connects_is_seen() {
    if !strace_works() {
        println!("SKIPPED: strace does not work here, so nothing is seen of what commands start");
        return;
    }
    let world = World::new();
    let before = world.snapshot();
    let runs = argv("env true");
    assert!(!world.trace(&runs).stays_alone(&runs));
    assert_eq!(world.snapshot(), before);
    let paged = argv("diff -l a.txt b.txt");
    assert!(!world.trace(&paged).stays_alone(&paged));
    let connects = argv("bash -c :</dev/tcp/127.0.0.1/9");
    assert!(!world.trace(&connects).stays_alone(&connects));
    assert_eq!(world.snapshot(), before);
    let writes = argv("sort -ro a.txt a.txt");
    assert!(world.trace(&writes).stays_alone(&writes));
    assert_ne!(world.snapshot(), before);
}
