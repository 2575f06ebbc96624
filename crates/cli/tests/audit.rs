//! `sandgate audit`: what people and programs see of the log.

#![cfg(unix)]

mod support;

use jiff::Timestamp;
use sandgate_protocol::{AskForApproval, CallId, DenialEvidence, DenialRule, DeniedOperation};
use sandgate_protocol::{Denials, SandboxPermissions, SandboxPolicy, SandboxType};
use sandgate_runtime::audit::{
    Amended, AuditLog, AuditOptions, Began, CallAsked, ChangeKind, DecidedBy, Decision,
    DecisionKind, Ended, Granted, GrantedConfinement, GrantedExtras, Judged, PatchApplied,
    PatchedFile, Record, RiskClass, SessionEnded, SessionStarted, Written,
};
use std::fs;
use std::path::PathBuf;
use support::{Outcome, Running, World};

const FIRST: &str = "0199a0b1-0000-7000-8000-00003f2a9c1d";
const SECOND: &str = "0199a0b1-0000-7000-8000-0000beefcafe";
const DAY_FILE: &str = "2026-11-01.jsonl";

/// A person's home with a log in it.
struct Log {
    world: World,
    log: AuditLog,
}

impl Log {
    fn new() -> Self {
        let world = World::new();
        let log = AuditLog::open(&world.path(".codex"), AuditOptions::default()).unwrap();
        Self { world, log }
    }

    /// Two sessions of two days, with everything that can happen to a call.
    fn of_two_days() -> Self {
        let log = Self::new();
        log.put("2026-11-01T10:00:00Z", FIRST, &started("tui"));
        log.put(
            "2026-11-01T10:00:05.25Z",
            FIRST,
            &asked("1", &["bash", "-lc", "grep -r hi . | wc"]),
        );
        log.put("2026-11-01T10:00:05.251Z", FIRST, &judged("1", RiskClass::Safe));
        log.put(
            "2026-11-01T10:00:05.252Z",
            FIRST,
            &decided("1", DecisionKind::Allowed, DecidedBy::Policy, 1),
        );
        log.put("2026-11-01T10:00:05.253Z", FIRST, &began("1", 1, SandboxType::LinuxSeccomp));
        log.put("2026-11-01T10:00:05.3Z", FIRST, &ended("1", 1, 0, 40, &[]));

        log.put(
            "2026-11-01T10:01:00Z",
            FIRST,
            &asked("2", &["/usr/bin/git", "commit", "-m", "it's done"]),
        );
        log.put("2026-11-01T10:01:00Z", FIRST, &judged("2", RiskClass::Unknown));
        log.put(
            "2026-11-01T10:01:00Z",
            FIRST,
            &decided("2", DecisionKind::Allowed, DecidedBy::Policy, 1),
        );
        log.put("2026-11-01T10:01:00Z", FIRST, &began("2", 1, SandboxType::LinuxSeccomp));
        let blocked = [".git/index.lock", ".git/HEAD.lock", ".git/logs", ".git/refs"];
        log.put("2026-11-01T10:01:01Z", FIRST, &ended("2", 1, 128, 12, &blocked));
        let person = || DecidedBy::Person { front_end: "tui".to_owned() };
        log.put(
            "2026-11-01T10:01:09Z",
            FIRST,
            &decided("2", DecisionKind::ApprovedWithGrant, person(), 2),
        );
        log.put("2026-11-01T10:01:09Z", FIRST, &granted("2", 2));
        log.put("2026-11-01T10:01:09Z", FIRST, &began("2", 2, SandboxType::LinuxSeccomp));
        log.put("2026-11-01T10:01:10Z", FIRST, &ended("2", 2, 0, 300, &[]));
        let rule = Amended {
            call_id: Some(CallId::new("2")),
            rule: "prefix git commit: allow".to_owned(),
            file: "rules.toml".to_owned(),
        };
        log.put("2026-11-01T10:01:11Z", FIRST, &Record::Amended(rule));

        log.put(
            "2026-11-01T10:02:00Z",
            FIRST,
            &asked("3", &["rm", "-rf", "/\u{1b}[2J\u{202e}x\n"]),
        );
        log.put("2026-11-01T10:02:00Z", FIRST, &judged("3", RiskClass::Dangerous));
        let Record::Decided(no) = decided("3", DecisionKind::Denied, person(), 1) else {
            unreachable!("it is a decision")
        };
        let feedback = Some("not that\u{200b} one".to_owned());
        log.put("2026-11-01T10:02:30Z", FIRST, &Record::Decided(Decision { feedback, ..no }));
        log.put(
            "2026-11-01T10:03:00Z",
            FIRST,
            &Record::SessionEnded(SessionEnded { reason: "the person left".to_owned() }),
        );

        log.put("2026-11-02T08:00:00Z", SECOND, &started("mcp"));
        log.put("2026-11-02T08:00:01Z", SECOND, &asked("1", &[]));
        log.put(
            "2026-11-02T08:00:02Z",
            SECOND,
            &decided("1", DecisionKind::Approved, DecidedBy::Cache, 1),
        );
        let file = |path: &str, change, added_lines, removed_lines| PatchedFile {
            path: path.to_owned(),
            change,
            added_lines,
            removed_lines,
            moved_to: None,
        };
        let files = vec![
            file("src/main.rs", ChangeKind::Updated, 3, 1),
            file("日本.txt", ChangeKind::Added, 7, 0),
        ];
        let call_id = CallId::new("1");
        log.put(
            "2026-11-02T08:00:03Z",
            SECOND,
            &Record::PatchApplied(PatchApplied { call_id, files, error: None }),
        );
        log.put("2026-11-02T08:01:00Z", SECOND, &asked("2", &["sleep", "100"]));
        log.put(
            "2026-11-02T08:01:30Z",
            SECOND,
            &decided("2", DecisionKind::Denied, DecidedBy::Timeout, 1),
        );
        log.put("2026-11-02T08:02:00Z", SECOND, &Record::Note { text: "still here".to_owned() });
        log
    }

    #[track_caller]
    fn put(&self, time: &str, session: &str, record: &Record) {
        let time: Timestamp = time.parse().unwrap();
        let written = self.log.record_at(time, session, record).unwrap();
        assert!(matches!(written, Written::Line(_)));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.log.directory().join(name)
    }

    fn audit(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.world.program([&["audit"], arguments].concat());
        command.env("TZ", "UTC").env_remove("CODEX_HOME");
        Running::start(&mut command).wait()
    }

    #[track_caller]
    fn said(&self, arguments: &[&str]) -> String {
        let outcome = self.audit(arguments);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
        outcome.stdout().to_owned()
    }
}

fn started(front_end: &str) -> Record {
    Record::SessionStarted(SessionStarted {
        front_end: front_end.to_owned(),
        version: "0.1.0".to_owned(),
        pid: 4711,
        workspace: "/work".to_owned(),
        sandbox_policy: SandboxPolicy::workspace_write(),
        approval_policy: AskForApproval::OnRequest,
        source: None,
        parent: None,
        agent: None,
    })
}

fn asked(call: &str, argv: &[&str]) -> Record {
    Record::CallAsked(CallAsked {
        call_id: CallId::new(call),
        front_end: "tui".to_owned(),
        tool: if argv.is_empty() { "apply_patch" } else { "shell" }.to_owned(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        cwd: "/work".to_owned(),
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        agent: None,
    })
}

fn judged(call: &str, class: RiskClass) -> Record {
    let call_id = CallId::new(call);
    Record::Judged(Judged { call_id, class, reason: None, rules: Vec::new() })
}

fn decided(call: &str, decision: DecisionKind, by: DecidedBy, attempt: u32) -> Record {
    let call_id = CallId::new(call);
    Record::Decided(Decision { call_id, decision, by, attempt, feedback: None })
}

fn granted(call: &str, attempt: u32) -> Record {
    let policy = SandboxPolicy::workspace_write();
    let workspace = "/work".to_owned();
    let writable = vec!["/work/.git".to_owned()];
    Record::Granted(Granted {
        call_id: CallId::new(call),
        attempt,
        confinement: GrantedConfinement::Sandboxed { policy, workspace },
        extras: GrantedExtras { writable, sockets: Vec::new(), network: false },
    })
}

fn began(call: &str, attempt: u32, sandbox: SandboxType) -> Record {
    Record::Began(Began { call_id: CallId::new(call), attempt, sandbox, enforcement: None })
}

fn ended(call: &str, attempt: u32, exit_code: i32, duration_ms: u64, blocked: &[&str]) -> Record {
    let denial = |name: &&str| DenialEvidence {
        operation: DeniedOperation::Create,
        target: format!("/work/{name}"),
        syscall: "openat".to_owned(),
        rule: DenialRule::ProtectedName,
    };
    Record::Ended(Ended {
        call_id: CallId::new(call),
        attempt,
        exit_code: Some(exit_code),
        duration_ms,
        timed_out: false,
        cancelled: false,
        denials: Denials { evidence: blocked.iter().map(denial).collect(), more: 0 },
        error: None,
    })
}

/// spec AUDIT.40: `show` prints a line for each call, with what was asked, who decided, where it ran,
/// how it ended and what was blocked, and nothing in it can move a cursor or turn text around.
#[test]
fn the_table_shows_calls_from_question_to_end() {
    let table = Log::of_two_days().said(&["show"]);
    assert!(!table.contains(['\u{1b}', '\u{202e}', '\u{200b}']));
    insta::assert_snapshot!("audit_show", table);
}

/// spec AUDIT.41: `show` takes a time to begin with and one to end before, a session, what was
/// refused, and a number of rows.
#[test]
fn rows_are_chosen() {
    let log = Log::of_two_days();
    let rows = |arguments: &[&str]| log.said(&[&["show"], arguments].concat()).lines().count() - 1;
    assert_eq!(rows(&["--since", "2026-11-02"]), 4);
    assert_eq!(rows(&["--since", "2026-11-02T08:01"]), 2);
    // With the five lines below one call, and the one below another.
    assert_eq!(rows(&["--until", "2026-11-01"]), 6 + 6);
    assert_eq!(rows(&["--session", SECOND]), 4);
    assert_eq!(rows(&["--session", "beefcafe", "--limit", "2"]), 2);
    let denied = log.said(&["show", "--denied"]);
    let told = ["git commit", "rm -rf", "sleep 100"].map(|what| denied.contains(what));
    assert_eq!((told, denied.contains("grep")), ([true; 3], false), "{denied}");
}

#[test]
fn a_call_that_was_asked_for_before_the_time_is_still_shown() {
    let log = Log::of_two_days();
    let table =
        log.said(&["show", "--since", "2026-11-01T10:01:05", "--until", "2026-11-01T10:01:10"]);
    assert!(table.contains("(call 2, asked for earlier)"), "{table}");
    let table = log.said(&["show", "--until", "2026-11-01T10:00:05.252Z"]);
    assert!(table.contains("allowed, policy") && table.contains("sandbox"), "{table}");
}

/// spec AUDIT.42: With `--json`, `show` prints one object a line for each call, with all that is known
/// of it, and `stats` and `verify` print one object.
#[test]
fn programs_are_given_json() {
    let log = Log::of_two_days();
    let rows = log.audit(&["show", "--json"]).events();
    insta::assert_json_snapshot!("audit_show_json", rows);
    let one = |arguments: &[&str]| log.audit(arguments).events().remove(0);
    insta::assert_json_snapshot!("audit_stats_json", one(&["stats", "--json"]));
    insta::assert_json_snapshot!("audit_verify_json", one(&["verify", "--json"]));
    let bytes = fs::read_to_string(log.file(DAY_FILE)).unwrap();
    fs::write(log.file(DAY_FILE), bytes.replace("grep", "gulp")).unwrap();
    insta::assert_json_snapshot!("audit_verify_json_changed", one(&["verify", "--json"]));
}

/// spec AUDIT.43: `stats` counts calls, decisions, what was blocked, tools and the programs of commands,
/// and says how long commands took.
#[test]
fn figures_are_counted() {
    insta::assert_snapshot!("audit_stats", Log::of_two_days().said(&["stats"]));
    let late = Log::of_two_days().said(&["stats", "--since", "2026-11-02"]);
    assert!(late.starts_with("2 calls in 1 session;"), "{late}");
}

/// spec AUDIT.44: `verify` ends with 0 if the log is as it was written, and with 1 if it is not, and
/// says where and what.
#[test]
fn verify_says_what_is_wrong_and_ends_with_one() {
    let log = Log::of_two_days();
    assert_eq!(log.said(&["verify"]), "The log is intact: 27 lines in 2 files.\n");
    let text = fs::read_to_string(log.file(DAY_FILE)).unwrap();
    let without_second: String = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(index, _)| *index != 1)
        .map(|(_, line)| line.replace("rm", "ls"))
        .collect();
    fs::write(log.file(DAY_FILE), without_second).unwrap();
    let outcome = log.audit(&["verify"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(1), ""));
    let directory = log.log.directory().display().to_string();
    insta::assert_snapshot!("audit_verify", outcome.stdout().replace(&directory, "DIR"));
    fs::remove_file(log.file(DAY_FILE)).unwrap();
    assert_eq!(log.audit(&["verify"]).code, Some(1));
    assert_eq!(log.audit(&["verify", "--since", "2026-11-02"]).code, Some(0));
}

/// spec AUDIT.45: The log is looked for in `CODEX_HOME`, without it in `~/.codex`, and `--home` names
/// another.
#[test]
fn the_log_is_found() {
    let log = Log::of_two_days();
    let there = log.world.path("elsewhere");
    fs::rename(log.world.path(".codex"), &there).unwrap();
    let empty = log.said(&["show"]);
    let own = log.world.path(".codex/audit");
    assert_eq!(
        empty,
        format!("Nothing has been recorded yet. The log will be in {}.\n", own.display())
    );
    assert!(!own.exists(), "looking makes nothing");
    assert!(log.said(&["show", "--home", "elsewhere"]).contains("git commit"));
    let mut command = log.world.program(["audit", "show"]);
    let outcome = Running::start(command.env("CODEX_HOME", &there)).wait();
    assert!(outcome.stdout().contains("git commit"));
}

#[test]
fn nothing_that_fits_is_said_as_such() {
    let log = Log::of_two_days();
    let said = log.said(&["show", "--session", "nobody"]);
    assert_eq!(said, "Nothing in the log is like that.\n");
    assert_eq!(log.said(&["show", "--since", "2030-01-01"]), said);
    assert_eq!(log.said(&["show", "--since", "2030-01-01", "--json"]), "");
}

#[test]
fn lines_that_cannot_be_read_are_left_out_and_told_of() {
    let log = Log::of_two_days();
    let text = fs::read_to_string(log.file(DAY_FILE)).unwrap();
    fs::write(log.file(DAY_FILE), format!("what is this\n{text}")).unwrap();
    let outcome = log.audit(&["show"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout().contains("git commit"));
    let expected = "sandgate: one line of the log cannot be read\n          \
                    sandgate audit verify says more.\n";
    assert_eq!(outcome.stderr, expected);
}

#[test]
fn what_is_no_time_is_refused_with_examples() {
    let outcome = Log::new().audit(&["show", "--since", "soon"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--since \"soon\" is no time"), "{}", outcome.stderr);
}

#[test]
fn help_says_what_can_be_asked() {
    let log = Log::new();
    insta::assert_snapshot!("audit_help", log.said(&["--help"]));
    insta::assert_snapshot!("audit_help_show", log.said(&["show", "--help"]));
}

/// spec AUDIT.46: `verify` says so and ends with 1 where there is no log at all, because nobody can tell
/// whether there ever was one.
#[test]
fn a_log_that_is_not_there_is_not_called_intact() {
    let world = support::World::new();
    let outcome = world.sandgate(&["audit", "verify"]);
    assert_eq!(outcome.code, Some(1));
    let own = world.path(".codex/audit");
    let expected = format!(
        "There is no log in {}: nothing was ever recorded, or all of it is gone.\n",
        own.display()
    );
    assert_eq!(outcome.stdout(), expected);
    let outcome = world.sandgate(&["audit", "verify", "--json"]);
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.events()[0]["exists"], false);
    assert_eq!(outcome.events()[0]["intact"], false);
    assert!(!own.exists(), "looking makes nothing");
}
