//! What a real shell runs is in the list that was read, or the script was not understood.
//!
//! Generated scripts are run by bash, dash and zsh in an empty directory. The only programs that
//! they can find are tracers, which write down the words they were called with. `PROPTEST_CASES`
//! makes the run longer.

#![expect(
    clippy::disallowed_methods,
    reason = "the real shells are what the parser is held against"
)]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestCaseResult, TestRunner};
use sandgate_policy::command::{Shape, SimpleCommand, Word};
use sandgate_policy::script;

/// The tracers' names: one is a word that is nearly a keyword, one is odd, as far as names go.
const TRACERS: &[&str] = &["t0", "t1", "t-2", "iff", "t0.x"];

/// Writes its name and arguments at the end of a file, all at once.
const TRACER: &str = r#"#!/bin/dash
printf '%s\0' "${0##*/}" "$@" '' END '' >> "$TRACE"
"#;

/// Words that an agent may write.
const PLAIN: &[&str] = &[
    "a",
    "-l",
    "--long=x",
    "x=y",
    "1",
    "22",
    "a.b",
    "a/b",
    "'q r'",
    "\"q r\"",
    "''",
    "\"\"",
    "a'b'c",
    "'it'\\''s'",
    "\"a\\\"b\"",
    "a\\ b",
    "\\;",
    "{}",
    "a#b",
    "#",
    "if",
    "done",
    "in",
    "HEAD~1",
    "HEAD^",
    "stash@{0}",
    "~",
    "~/x",
    "*",
    "t*",
    "[ab]c",
    "?",
    "a:b",
    "%1",
    "@",
    "+x",
    "a,b",
    "!",
    "a!",
    "\"a!b\"",
    "\"$\"",
    "\"a$|b\"",
    "'$x'",
    "\"\\$x\"",
    "é",
    "-",
    "--",
    "=",
    "==",
    "\"#\"",
    "'#'",
    "\"~\"",
    "a=~",
    "time",
    "]",
    "[",
];

/// Pieces that have tricked parsers, or are refused by this one for a reason.
const NASTY: &[&str] = &[
    "$x",
    "${x}",
    "${x:-t1}",
    "$(t1 in)",
    "`t1 in`",
    "<(t1 in)",
    ">(t1 in)",
    "=(t1 in)",
    "$((1+1))",
    "$[1]",
    "((1))",
    "[[ a ]]",
    "{a,b}",
    "{1..3}",
    "a{b,c}d",
    "~root",
    "a=~:~",
    "$'a'",
    "$\"a\"",
    "\\",
    "\\\n",
    "a\\\nb",
    "'\n'",
    "\"\n\"",
    "\"\\\n\"",
    "\r",
    "\r\n",
    "\t",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\u{200b}",
    "(",
    ")",
    "{",
    "}",
    "{ ",
    " }",
    "; }",
    "( ",
    " )",
    "()",
    "(a)",
    "(a|b)",
    "@(a|b)",
    "!(a)",
    "*(e:t1:)",
    "<1-3>",
    "a<1-3>b",
    "^a",
    "a^b",
    "a~b",
    "#",
    " #",
    " # c\n",
    "\\#",
    "''#",
    "\"\"#",
    "!",
    "! ",
    "!!",
    "!x",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ";",
    ";;",
    ";&",
    "\n",
    "\n\n",
    "& ",
    "&|",
    "&!",
    "&& ",
    "|| ",
    "| ",
    ">",
    ">>",
    "<",
    "<>",
    ">|",
    ">!",
    ">>!",
    ">>|",
    "&>",
    "&>>",
    ">&",
    "<&",
    "<<",
    "<<-",
    "<<<",
    "2>&1",
    ">&2",
    ">&-",
    "2>&-",
    "<&-",
    "1>&2",
    "2>&1-",
    ">&1-",
    "10>f",
    "{v}>f",
    ">f",
    ">>f",
    "2>f",
    "&>f",
    ">&f",
    "<f",
    ">|f",
    "<>f",
    "> f g",
    ">f >g",
    "<<E\nb\nE\n",
    "<<'E'\n$(t1 in)\nE\n",
    "<<\\E\n$x\nE\n",
    "<<\"E\"\nb\nE\n",
    "<<-E\n\tb\n\tE\n",
    "<<E\n$(t1 in)\nE\n",
    "<<E\nb\n",
    "<<E <<F\nb\nE\nc\nF\n",
    "<<'E F'\nb\nE F\n",
    "<<E'F'\nb\nEF\n",
    "<<E\nb\\\nE\nE\n",
    "<<E && t1 x\nb\nE\n",
    "<<E | t1 x\nb\nE\n",
    "<<E; t1 x\nb\nE\n",
    "<<E >f y\nb\nE\n",
    "<<'E'\n'\nE\n",
    "<<E\n E\nE\n",
    "<<E\nE \nE\n",
    "<<E\nE",
    "- <<E\nb\nE\n",
    "<<''\nb\n\n",
    "<<< a",
    "<<<'a b'",
    "<<<a b",
    "<<E#x\nb\nE#x\n",
    "<<E;\nb\nE\n",
    "time ",
    "time -p ",
    "time -- ",
    "coproc ",
    "command ",
    "command -p ",
    "builtin ",
    "exec ",
    "eval ",
    "eval 't1 in'",
    ". f",
    "noglob ",
    "nocorrect ",
    "- ",
    "repeat 2 ",
    "then ",
    "if ",
    "fi",
    "do ",
    "done",
    "else ",
    "function f ",
    "f() ",
    "alias t0=t1\n",
    "set -e\n",
    "set -k\n",
    "set -f;",
    "trap 't1 in' EXIT;",
    "export A=b;",
    "export A=~;",
    "A=b ",
    "A=b;",
    "A+=b ",
    "A=(b) ",
    "A[0]=b ",
    "A=\"b c\" ",
    "A='b'c ",
    "A=~ ",
    "A=* ",
    "A= ",
    "=t1",
    "=t1 ",
    "PATH=x ",
    "IFS=x;",
    "test -v x;",
    "[ a ] ",
    "[ a = b ]",
    "[ -f a -a ! -d b ] ",
    "[ -n ]",
    "[ a < f ]",
    "[ ( a ) ]",
    "printf -v 'a[$(t1 in)]' x;",
    "unset 'a[$(t1 in)]';",
    "exit 'a[$(t1 in)]';",
    "[ 'a[$(t1 in)]' -eq 1 ];",
    "printf %d 'a[$(t1 in)]';",
    "cd -- ",
    "}",
    "} ",
    "{ t1 in; }",
    "(t1 in)",
    "{ t1 in; } >f",
    "(t1 in) >f",
    "(t1 in; t0) 2>&1",
    "{ t1 in\n}",
    "{t1 in;}",
    "((t1 in))",
    "( (t1 in) )",
    "{ { t1 in; }; }",
    "%",
    "%1",
    "\"a",
    "'a",
    "\"a`t1 in`\"",
    "\"$(t1 in)\"",
    "'a'\"b\"c",
    "\"a\"'b'",
    "a\"*\"",
    "\"a\"*",
    "\\*",
    "\\~",
    "~\\/x",
    "'~'/x",
    "a\\'b",
    "\"'\"",
    "'\"'",
    "\"\\a\"",
    "\"\\\\\"",
    "\"\\`\"",
    "\\\\",
    "\\\"",
    "\\$x",
    "\\`",
    "\"a$ b\"",
    "\"$/\"",
    "a$",
    "$",
    "\"$)\"",
    "\"$'a'\"",
    "\"a$\"b",
    "\"$\"x",
    "\"$\"\"x\"",
];

/// What joins commands.
const JOINTS: &[&str] = &[
    "; ", ";", " && ", "&&", " || ", " | ", "|", " |& ", "\n", "\n\n", " & ", "&", " # c\n", " ;\n",
];

fn plain_word() -> impl Strategy<Value = String> {
    select(PLAIN).prop_map(str::to_owned)
}

fn nasty() -> impl Strategy<Value = String> {
    select(NASTY).prop_map(str::to_owned)
}

/// A command of plain words, into which something nasty may have got, with or without blanks.
fn command() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(plain_word(), 0..4);
    let nasties = prop::collection::vec((nasty(), 0..5usize, any::<bool>(), any::<bool>()), 0..=2);
    let spice = prop_oneof![3 => Just(false), 2 => Just(true)];
    (select(TRACERS), words, nasties, spice).prop_map(|(name, mut words, nasties, spice)| {
        words.insert(0, name.to_owned());
        let mut text = words.join(" ");
        if spice {
            for (piece, at, before, after) in nasties {
                let place = text
                    .match_indices(' ')
                    .map(|(place, _)| place)
                    .chain([0, text.len()])
                    .nth(at)
                    .unwrap_or(text.len());
                let (left, right) = text.split_at(place);
                let (before, after) = (if before { " " } else { "" }, if after { " " } else { "" });
                text = format!("{left}{before}{piece}{after}{right}");
            }
        }
        text
    })
}

fn list() -> impl Strategy<Value = String> {
    let more = prop::collection::vec((select(JOINTS), command()), 0..3);
    (command(), more).prop_map(|(first, more)| {
        more.into_iter().fold(first, |mut text, (joint, command)| {
            let _ = write!(text, "{joint}{command}");
            text
        })
    })
}

/// Pieces in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => plain_word(),
        3 => nasty(),
        2 => select(TRACERS).prop_map(str::to_owned),
        3 => Just(" ".to_owned()),
        1 => select(JOINTS).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

fn scripts() -> impl Strategy<Value = String> {
    prop_oneof![3 => list(), 1 => soup()]
}

/// A shell, and how it is called without any file of the person's.
struct Shell {
    path: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
}

const BASH: Shell =
    Shell { path: "/bin/bash", name: "bash", arguments: &["--norc", "--noprofile", "-c"] };
const DASH: Shell = Shell { path: "/bin/dash", name: "dash", arguments: &["-c"] };
const BASH_AS_SH: Shell = Shell { path: "/bin/bash", name: "sh", arguments: &["--posix", "-c"] };
const ZSH: Shell = Shell { path: "/bin/zsh", name: "zsh", arguments: &["-f", "-c"] };

/// The directory that holds nothing but tracers.
fn tracers() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory for tracers");
    for name in TRACERS.iter().chain(&["in", "if", "done", "time", "a", "b"]) {
        let path = home.path().join(name);
        fs::write(&path, TRACER).expect("a tracer is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    home
}

/// What really happened.
struct Run {
    calls: Vec<Vec<String>>,
    files: Vec<String>,
    home: PathBuf,
}

/// `timeout`, in our own cage where the program has been built: it lies above the tests.
fn confined_to(place: &Path) -> Command {
    const TIMEOUT: &str = "/usr/bin/timeout";
    static SANDGATE: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let test = std::env::current_exe().ok()?;
        let built = test.parent()?.parent()?.join("sandgate");
        let found = cfg!(target_os = "linux") && built.is_file();
        if !found {
            println!(
                "SKIPPED: the cage around the scripts, because there is no {}",
                built.display()
            );
        }
        found.then_some(built)
    });
    let Some(sandgate) = &*SANDGATE else { return Command::new(TIMEOUT) };
    let policy = serde_json::json!({
        "mode": "workspace-write",
        "writable_roots": [place],
        "exclude_slash_tmp": true,
        "exclude_tmpdir_env_var": true,
    });
    let mut command = Command::new(sandgate);
    std::os::unix::process::CommandExt::arg0(&mut command, "sandgate-linux-sandbox");
    command.args([&policy.to_string(), "--", TIMEOUT]);
    command
}

fn run(shell: &Shell, script: &str, tracers: &Path) -> Run {
    let place = tempfile::tempdir().expect("a place to run in");
    let work = place.path().join("work");
    fs::create_dir(&work).expect("a directory to run in");
    let trace = place.path().join("trace");
    // No program but tracers, ten seconds, and the cage, so that a script which was misread can at
    // worst write here.
    let status = confined_to(place.path())
        .args(["-s", "KILL", "10", shell.path])
        .args(shell.arguments)
        .arg(script)
        .env_clear()
        .env("PATH", tracers)
        .env("HOME", place.path())
        .env("TRACE", &trace)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the shell starts");
    assert!(status.code() != Some(137), "it does not end: {script:?}");
    let log = fs::read(&trace).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let calls = log
        .split("\0\0END\0\0")
        .filter(|call| !call.is_empty())
        .map(|call| call.split('\0').map(str::to_owned).collect())
        .collect();
    let files = fs::read_dir(&work)
        .expect("the directory is there")
        .map(|entry| entry.expect("its entry").file_name().to_string_lossy().into_owned())
        .collect();
    Run { calls, files, home: place.path().to_owned() }
}

/// Whether a command that was read can be this call.
fn can_be(words: &[Word], call: &[String], home: &Path) -> bool {
    let Some((word, rest)) = words.split_first() else { return call.is_empty() };
    match word.shape {
        Shape::Literal => call
            .split_first()
            .is_some_and(|(argument, others)| *argument == word.text && can_be(rest, others, home)),
        Shape::Home => call.split_first().is_some_and(|(argument, others)| {
            *argument == word.text.replacen('~', &home.to_string_lossy(), 1)
                && can_be(rest, others, home)
        }),
        Shape::Pattern => (1..=call.len()).any(|taken| can_be(rest, &call[taken..], home)),
        Shape::Dynamic => false,
    }
}

/// The words behind `command`, which is no program.
fn past_command(command: &SimpleCommand) -> &[Word] {
    let mut words = &command.words[..];
    while let Some((first, rest)) = words.split_first()
        && (first.text == "command" || (first.text == "-p" && words.len() < command.words.len()))
    {
        words = rest;
    }
    words
}

/// Whether each call can be a command of its own among those that were read.
fn all_were_read(calls: &[Vec<String>], taken: &mut [bool], read: &[&[Word]], home: &Path) -> bool {
    let Some((call, others)) = calls.split_first() else { return true };
    for at in 0..read.len() {
        if !taken[at] && can_be(read[at], call, home) {
            taken[at] = true;
            if all_were_read(others, taken, read, home) {
                return true;
            }
            taken[at] = false;
        }
    }
    false
}

/// Counts the scripts that were understood, so that a parser that refuses everything does not pass.
fn check(shell: &Shell, script: &str, tracers: &Path, understood: &AtomicUsize) -> TestCaseResult {
    let argv = [shell.name, "-c", script].map(str::to_owned);
    let reading = script::read(&argv);
    if reading.opaque.is_some() || script.contains('\0') {
        return Ok(());
    }
    understood.fetch_add(1, Ordering::Relaxed);
    let real = run(shell, script, tracers);
    let read: Vec<&[Word]> = reading.commands.iter().map(past_command).collect();
    if !all_were_read(&real.calls, &mut vec![false; read.len()], &read, &real.home) {
        return Err(TestCaseError::fail(format!(
            "{} ran {:?}, which was not read from {script:?}: {:#?}",
            shell.name, real.calls, reading.commands
        )));
    }
    for file in &real.files {
        let redirections = reading.commands.iter().flat_map(|command| &command.redirections);
        let is_known = redirections
            .filter(|redirection| redirection.kind.writes())
            .any(|redirection| redirection.target.text == *file);
        if !is_known {
            return Err(TestCaseError::fail(format!(
                "{} wrote {file:?}, which was not read from {script:?}: {:#?}",
                shell.name, reading.commands
            )));
        }
    }
    Ok(())
}

fn hold_against(shell: &Shell, cases: u32) {
    if !Path::new(shell.path).exists() || !Path::new("/usr/bin/timeout").exists() {
        println!("SKIPPED: {} is not installed", shell.path);
        return;
    }
    let cases =
        std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(cases);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let understood = AtomicUsize::new(0);
    let tracers = tracers();
    let check = |script: String| check(shell, &script, tracers.path(), &understood);
    let outcome = TestRunner::new(config).run(&scripts(), check);
    let understood = understood.into_inner();
    println!("{}: {understood} of {cases} scripts were understood", shell.name);
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(understood * 20 > cases as usize, "too few scripts were understood to prove anything");
}

/// spec SCRIPT.50: Every command that bash runs for a script, and every file that it redirects to,
/// is in the list that was read from it, or the script is opaque.
#[test]
fn what_bash_runs_was_read() {
    hold_against(&BASH, 1200);
}

/// spec SCRIPT.51: The same is true of dash, of bash in the place of sh, and of zsh.
#[test]
fn what_dash_runs_was_read() {
    hold_against(&DASH, 600);
}

/// spec SCRIPT.51: The same is true of dash, of bash in the place of sh, and of zsh.
#[test]
fn what_bash_runs_as_sh_was_read() {
    hold_against(&BASH_AS_SH, 600);
}

/// spec SCRIPT.51: The same is true of dash, of bash in the place of sh, and of zsh.
#[test]
fn what_zsh_runs_was_read() {
    hold_against(&ZSH, 600);
}
