//! What is reported, held against what strace saw of the same run.

use crate::cage::{Cage, has};
use crate::report::{Denial, Report};
use crate::strace::{Failure, failures};
use crate::support::{Running, skipped};
use std::fs;
use std::os::unix::fs::symlink;

const MIXED_WORK: &str = include_str!("../support/mixed_work.py");

/// spec PROBES.20: Every call that the cage refuses is reported, and nothing else is: strace sees the
/// same calls of the same run fail.
#[test]
fn what_is_reported_is_what_strace_saw() {
    if !has("python3") || !has("strace") {
        return;
    }
    let cage = Cage::new();
    cage.files(&[".git/config", ".git/hooks/sample", "deep/repo/.git/config", "own/a", "own/b"]);
    fs::create_dir_all(cage.outside("sub")).unwrap();
    fs::create_dir_all(cage.outside("empty")).unwrap();
    fs::write(cage.outside("sub/inner"), "before").unwrap();
    symlink("victim", cage.outside("link")).unwrap();
    fs::write(cage.ws("work.py"), MIXED_WORK).unwrap();
    let script = "py=/usr/bin/python3; test -x $py || py=python3; \
                  strace -f -y -s 4096 -o trace $py -B -I work.py";
    let mut command = cage.command(&["--full-auto", "--json"], script);
    let outcome = Running::start(command.env("OUT", cage.base().join("outside"))).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let report = Report::of(&outcome);
    assert!(report.is_supervised() && report.has_namespaces(), "{report:?}");
    assert_eq!(report.more, 0, "all of it fits into the report");

    let trace = fs::read_to_string(cage.ws("trace")).unwrap();
    let workspace = cage.base().join("ws").canonicalize().unwrap();
    let failures = failures(&trace, &workspace);
    assert!(failures.len() > 200, "the work was refused much: {}", failures.len());
    let is_told = |failure: &&Failure| !report.denials.iter().any(|denial| is_of(denial, failure));
    let missed: Vec<_> = failures.iter().filter(is_told).map(|failure| &failure.line).collect();
    let is_true = |denial: &&Denial| !failures.iter().any(|failure| is_of(denial, failure));
    let false_reports: Vec<_> = report.denials.iter().filter(is_true).collect();
    assert!(
        missed.is_empty() && false_reports.is_empty(),
        "{} missed: {missed:#?}\n{} false: {false_reports:#?}",
        missed.len(),
        false_reports.len(),
    );
}

/// spec PROBES.21: `--log-denials` says each thing that was blocked once, in a line, after the command
/// has ended, and nothing when nothing was.
#[test]
fn denials_are_said_in_lines() {
    let cage = Cage::new();
    let script =
        "echo own >&2; for i in 1 2 3; do echo x > \"$OUT/victim\"; done; mkdir .git/x; exit 4";
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], script);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let base = cage.base().canonicalize().unwrap().display().to_string();
    let lines: Vec<_> =
        outcome.stderr.lines().filter(|line| line.starts_with("sandgate: ")).collect();
    let expected = [
        format!("sandgate: blocked: write {base}/outside/victim (outside the writable roots)"),
        format!("sandgate: blocked: create {base}/ws/.git/x (protected)"),
    ];
    assert_eq!(lines, expected, "{outcome:?}");
    let tail: Vec<_> = outcome.stderr.lines().rev().take(2).collect();
    assert!(tail.iter().all(|line| line.starts_with("sandgate: ")), "they come last: {outcome:?}");
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], "echo own >&2; echo x > in");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), "own\n"));
}

/// spec PROBES.24: `--log-denials` with `--json` says the lines first, and the object on the last one.
#[test]
fn denials_are_said_in_lines_and_as_json() {
    let cage = Cage::new();
    let options = ["--full-auto", "--log-denials", "--json"];
    let outcome = cage.run_with(&options, "echo x > \"$OUT/victim\"; exit 4");
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let mut lines = outcome.stderr.lines().rev();
    let report: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let target = report["denials"][0]["target"].as_str().unwrap();
    let expected = format!("sandgate: blocked: write {target} (outside the writable roots)");
    assert_eq!(lines.next(), Some(expected.as_str()), "{outcome:?}");
}

/// spec PROBES.25: What is read-only outside the cage as well is reported as that, and not as protected.
#[test]
fn a_read_only_mount_of_the_persons_is_called_one() {
    let cage = Cage::new();
    cage.files(&[".git/config", "shared/file"]);
    let script = "echo x > shared/file; mkdir shared/new; echo x > .git/config; echo x > own";
    let options = ["--full-auto", "--json"];
    let Some(mut command) = cage.where_is_read_only("shared", &options, script) else {
        return skipped("there is no unshare here, or it may not do this");
    };
    let outcome = Running::start(&mut command).wait();
    let report = Report::of(&outcome);
    assert!(report.has_namespaces() && report.is_supervised(), "{report:?}");
    let ws = cage.base().canonicalize().unwrap().join("ws");
    let told: Vec<_> = report
        .denials
        .iter()
        .map(|denial| {
            let target = denial.target.strip_prefix(ws.to_str().unwrap()).unwrap();
            format!("{} {target} {}", denial.operation, denial.rule)
        })
        .collect();
    assert_eq!(
        told,
        [
            "write /shared/file read-only-mount",
            "create /shared/new read-only-mount",
            "write /.git/config protected-name",
        ]
    );
    assert_eq!(fs::read_to_string(cage.ws("own")).unwrap(), "x\n");
}

/// spec PROBES.22: A hundred denials are named, and the rest are counted.
#[test]
fn denials_past_a_hundred_are_counted() {
    let cage = Cage::new();
    let script =
        "i=0; while [ $i -lt 150 ]; do mkdir \"$OUT/new$i\"; i=$((i + 1)); done 2> errors; exit 0";
    let outcome = cage.run_with(&["--full-auto", "--json"], script);
    let report = Report::of(&outcome);
    assert_eq!((report.denials.len(), report.more), (100, 50), "{outcome:?}");
    let named =
        |(index, denial): (usize, &Denial)| denial.target.ends_with(&format!("/new{index}"));
    assert!(
        report.denials.iter().enumerate().all(named),
        "in the order of the attempts: {report:?}"
    );
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], script);
    let mut blocked = outcome.stderr.lines().filter(|line| line.starts_with("sandgate: blocked: "));
    assert_eq!(blocked.clone().count(), 101, "{outcome:?}");
    assert_eq!(blocked.next_back(), Some("sandgate: blocked: 50 more"));
}

/// spec PROBES.23: Neither what a program prints nor how it ends is taken for a denial, and neither is
/// what ordinary permissions refuse.
#[test]
fn words_are_no_evidence() {
    let cage = Cage::new();
    cage.files(&["sandbox"]);
    for script in [
        "echo 'Permission denied: Read-only file system, sandbox' >&2; exit 1",
        "grep -r nothing-like-this sandbox",
        "chmod 000 sandbox; mkdir sandbox",
        "mkdir -m 555 closed; test -w closed || echo x > closed/new",
        "kill -9 $$",
    ] {
        let outcome = cage.run_with(&["--full-auto", "--json"], script);
        let report = Report::of(&outcome);
        assert!(report.is_supervised() && report.denials.is_empty(), "{script}: {report:?}");
    }
}

/// Whether a denial tells of this call.
fn is_of(denial: &Denial, failure: &Failure) -> bool {
    denial.operation == failure.operation && failure.targets.contains(&denial.target)
}
