//! The audit log: what it promises to those who write it, and to those who doubt it.

mod processes;
mod tampering;
mod writing;

use jiff::Timestamp;
use sandgate_protocol::{CallId, Denials, SandboxPermissions};
use sandgate_runtime::audit::{
    AuditEntry, AuditLog, AuditOptions, CallAsked, Ended, Record, Verification, Written,
    audit_directory, entries, verify,
};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A configuration's home with a log in it.
struct Home {
    root: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn audit(&self) -> PathBuf {
        audit_directory(self.path())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.audit().join(name)
    }

    fn open(&self) -> AuditLog {
        AuditLog::open(self.path(), AuditOptions::default()).unwrap()
    }

    /// A log with so many notes on one day, written by one process.
    fn with_notes(count: u64) -> Self {
        let home = Self::new();
        let log = home.open();
        for number in 1..=count {
            assert_eq!(put_at(&log, DAY, &note(&format!("note {number}"))), number);
        }
        home
    }

    fn verify(&self) -> Verification {
        verify(&self.audit()).unwrap()
    }

    /// What is wrong, a line each.
    fn findings(&self) -> Vec<String> {
        self.verify().findings.iter().map(ToString::to_string).collect()
    }

    fn notices(&self) -> Vec<String> {
        self.verify().notices.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn is_intact(&self) {
        assert_eq!(self.findings(), Vec::<String>::new());
    }

    fn entries(&self) -> Vec<AuditEntry> {
        entries(&self.audit(), None).unwrap().map(Result::unwrap).collect()
    }

    fn records(&self) -> Vec<Record> {
        self.entries().into_iter().map(|entry| entry.record).collect()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).unwrap()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(name);
        change(&mut bytes);
        fs::write(self.file(name), bytes).unwrap();
    }
}

const DAY: &str = "2026-11-01T10:00:00.125Z";
const DAY_FILE: &str = "2026-11-01.jsonl";
const NEXT_DAY: &str = "2026-11-02T00:00:01Z";
const NEXT_DAY_FILE: &str = "2026-11-02.jsonl";
const HEAD: &str = "HEAD.json";

fn note(text: &str) -> Record {
    Record::Note { text: text.to_owned() }
}

fn asked(argv: &[&str]) -> Record {
    Record::CallAsked(CallAsked {
        call_id: CallId::new("call"),
        front_end: "run".to_owned(),
        tool: "shell".to_owned(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        cwd: "/work".to_owned(),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        agent: None,
    })
}

fn ended() -> Record {
    Record::Ended(Ended {
        call_id: CallId::new("call"),
        attempt: 1,
        exit_code: Some(0),
        duration_ms: 5,
        timed_out: false,
        cancelled: false,
        denials: Denials::default(),
        error: None,
    })
}

#[track_caller]
fn seq_of(written: Written) -> u64 {
    match written {
        Written::Line(seq) => seq,
        Written::Nothing(error) => panic!("not written: {error}"),
    }
}

#[track_caller]
fn put(log: &AuditLog, record: &Record) -> u64 {
    seq_of(log.record("session", record).unwrap())
}

#[track_caller]
fn put_at(log: &AuditLog, time: &str, record: &Record) -> u64 {
    let time: Timestamp = time.parse().unwrap();
    seq_of(log.record_at(time, "session", record).unwrap())
}
