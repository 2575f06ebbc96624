//! Several processes at once, processes that are killed, and disks that are full.
//!
//! A process here is this test once more, told by a variable to write instead of testing.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a writer that is killed is a program of its own")]

use super::*;
use sandgate_runtime::audit::WhenFull;
use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

/// Set where this is not to test but to write: the home of the log.
const WRITE_TO: &str = "SANDGATE_TEST_AUDIT_HOME";
/// How many records; without it as many as there is time for.
const COUNT: &str = "SANDGATE_TEST_AUDIT_COUNT";
/// How often a writer is killed.
const ROUNDS: &str = "SANDGATE_TEST_AUDIT_ROUNDS";

/// Starts this test once more, as a writer.
fn writer(home: &Home, test: &str, count: Option<u64>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("processes::{test}");
    command.args(["--exact", &test, "--nocapture"]).env(WRITE_TO, home.path());
    if let Some(count) = count {
        command.env(COUNT, count.to_string());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Whether this process is a writer. If so, it writes, and says after each record which it was.
fn is_writer() -> bool {
    let Some(home) = std::env::var_os(WRITE_TO) else { return false };
    let count = std::env::var(COUNT).map_or(u64::MAX, |count| count.parse().unwrap());
    let log = AuditLog::open(Path::new(&home), AuditOptions::default()).unwrap();
    let mut stdout = std::io::stdout().lock();
    for number in 0..count {
        // Some are longer than a page, and so can be torn.
        let text = "x".repeat(if number % 20 == 3 { 40_000 } else { 100 });
        let seq = seq_of(log.record(&std::process::id().to_string(), &note(&text)).unwrap());
        if writeln!(stdout, "wrote {seq}").is_err() {
            break;
        }
    }
    true
}

/// The numbers that a writer said it wrote.
fn said(output: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(output);
    // A line without an end was not said.
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.filter_map(|line| line.strip_prefix("wrote ")?.parse().ok()).collect()
}

/// spec AUDIT.30: Processes that write at the same time lose nothing and make one chain.
#[test]
fn eight_processes_make_one_chain() {
    if is_writer() {
        return;
    }
    let home = Home::new();
    let test = "eight_processes_make_one_chain";
    let start = |_| writer(&home, test, Some(500)).spawn().unwrap();
    let running: Vec<_> = (0..8).map(start).collect();
    let mut written = BTreeSet::new();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = said(&output.stdout);
        assert_eq!(said.len(), 500);
        written.extend(said);
    }
    home.is_intact();
    assert_eq!(home.notices(), Vec::<String>::new());
    assert_eq!(written, (1..=4_000).collect());
    let entries = home.entries();
    assert_eq!(
        entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        (1..=4_000).collect::<Vec<_>>()
    );
    let sessions: BTreeSet<_> = entries.iter().map(|entry| &entry.session).collect();
    assert_eq!(sessions.len(), 8);
}

/// spec AUDIT.31: A writer that is killed at whatever point leaves a log that verifies, with every
/// record in it that was said to be written.
#[test]
fn a_killed_writer_loses_nothing() {
    if is_writer() {
        return;
    }
    let rounds = std::env::var(ROUNDS).map_or(100_u64, |rounds| rounds.parse().unwrap());
    for log in 0..rounds.div_ceil(ROUNDS_A_LOG) {
        let home = Home::new();
        let mut written = BTreeSet::new();
        for round in 0..ROUNDS_A_LOG {
            written.extend(killed_at(&home, RandomState::new().hash_one((log, round))));
        }
        home.is_intact();
        let there: BTreeSet<u64> = home.entries().iter().map(|entry| entry.seq).collect();
        let lost: Vec<_> = written.difference(&there).collect();
        assert_eq!(lost, Vec::<&u64>::new());
        assert!(written.len() as u64 >= ROUNDS_A_LOG);
    }
}

/// So often a writer is killed on one log before that is looked at.
const ROUNDS_A_LOG: u64 = 10;

/// Two writers, the first of them killed at a point that nobody chose, the second at any. Gives the
/// numbers that both said they wrote.
fn killed_at(home: &Home, random: u64) -> Vec<u64> {
    let start = || writer(home, "a_killed_writer_loses_nothing", None).spawn().unwrap();
    let (mut first, mut second) = (start(), start());
    let mut reader = BufReader::new(first.stdout.take().unwrap());
    let mut output = Vec::new();
    while said(&output).len() as u64 <= random % 20 {
        reader.read_until(b'\n', &mut output).unwrap();
    }
    (0..random / 20 % 20_000).for_each(|_| std::hint::spin_loop());
    first.kill().unwrap();
    reader.read_to_end(&mut output).unwrap();
    first.wait().unwrap();
    second.kill().unwrap();
    let second = second.wait_with_output().unwrap();
    [said(&output), said(&second.stdout)].concat()
}

/// Starts a test once more in a process whose files may not grow beyond so many KiB, as on a disk that
/// is full.
fn with_little_room(home: &Home, test: &str, kib: u64) -> String {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("bash");
    let script =
        format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" --exact processes::{test} --nocapture");
    command.args(["-c", &script]).arg(own).env(WRITE_TO, home.path()).stdin(Stdio::null());
    // Into a pipe: a file would be limited as well.
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// spec AUDIT.32: When nothing can be written, recording fails, so that the command does not run; the
/// log stays whole, and says what it missed once it can be written again.
#[test]
fn a_full_disk_stops_commands() {
    let long = note(&"x".repeat(2_800));
    if let Some(home) = std::env::var_os(WRITE_TO) {
        let log = AuditLog::open(Path::new(&home), AuditOptions::default()).unwrap();
        let written = std::iter::repeat_with(|| log.record("s", &long)).take(100);
        let refused: Vec<_> =
            written.filter_map(Result::err).map(|error| error.to_string()).collect();
        println!("refused {}: {}", refused.len(), refused[0]);
        // A short one still finds room, and so the log is not torn.
        put(&log, &note("short"));
        return;
    }
    let home = Home::new();
    let said = with_little_room(&home, "a_full_disk_stops_commands", 16);
    assert!(said.contains("refused 95") && said.contains("cannot be written"), "{said}");
    home.is_intact();
    let records = home.records();
    let told = |record: &Record| matches!(record, Record::Unrecorded { count: 95, .. });
    assert_eq!((records.len(), records.iter().filter(|record| told(record)).count()), (7, 1));
    put(&home.open(), &long);
    home.is_intact();
}

/// spec AUDIT.33: A person can want commands to run unrecorded when nothing can be written; the log
/// says later how many records are missing.
#[test]
fn a_full_disk_can_be_ignored() {
    let long = note(&"x".repeat(2_800));
    if let Some(home) = std::env::var_os(WRITE_TO) {
        let options = AuditOptions { when_full: WhenFull::GoOn, ..AuditOptions::default() };
        let log = AuditLog::open(Path::new(&home), options).unwrap();
        let written = std::iter::repeat_with(|| log.record("s", &long).unwrap()).take(20);
        let lost = written.filter(|written| matches!(written, Written::Nothing(_))).count();
        println!("lost {lost}");
        put(&log, &note("short"));
        return;
    }
    let home = Home::new();
    let said = with_little_room(&home, "a_full_disk_can_be_ignored", 16);
    assert!(said.contains("lost 15"), "{said}");
    let notices = home.notices();
    assert!(
        notices[0].contains("15 records could not be written before the line above"),
        "{notices:?}"
    );
    home.is_intact();
}

#[test]
fn a_home_that_cannot_be_written_stops_commands_unless_that_is_not_wanted() {
    let home = Home::new();
    fs::write(home.audit(), "in the way").unwrap();
    assert!(AuditLog::open(home.path(), AuditOptions::default()).is_err());
    let options = AuditOptions { when_full: WhenFull::GoOn, ..AuditOptions::default() };
    let log = AuditLog::open(home.path(), options).unwrap();
    assert!(matches!(log.record("s", &note("lost")), Ok(Written::Nothing(_))));
    fs::remove_file(home.audit()).unwrap();
    assert_eq!(put(&log, &note("kept")), 1);
    assert!(matches!(home.records()[1], Record::Unrecorded { count: 1, .. }));
}
