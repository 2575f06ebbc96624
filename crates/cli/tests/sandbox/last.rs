//! The report of a command's end, on a stream that the command held and in a file that it did not.

use crate::cage::{Cage, has};
use crate::support::Running;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;

const FALSE: &str = r#"{"exit_code":0,"denials":[],"false":true}"#;

/// Writes a false report and goes back, so that a true one would be written over the beginning of it.
const BACK: &str =
    "import os, sys; os.write(2, sys.argv[1].encode()); os.lseek(2, 0, 0); sys.exit(3)";

/// A command of which a program wants to hear as it ended, and its standard error.
fn with_stderr(cage: &Cage, script: &str, stderr: File) -> Option<i32> {
    let mut command = cage.command(&["--full-auto", "--json"], script);
    Running::start(command.stderr(stderr)).wait().code
}

/// spec SANDBOX.203: The report on standard error is its last line, and true, whatever the command has left there:
/// a place in the middle of a file, half of a line, or nothing.
#[test]
fn the_last_line_is_the_report() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let heard = cage.outside("heard");
    for text in ["", "FOO", "FOO\n", FALSE] {
        let script = format!("printf '%s' '{text}' >&2; exit 3");
        let at_end = with_stderr(&cage, &script, File::create(&heard).unwrap());
        let in_file = fs::read_to_string(&heard).unwrap();
        let on_pipe = cage.run_with(&["--full-auto", "--json"], &script).stderr;
        assert_eq!(at_end, Some(3), "{in_file}");
        for said in [in_file.as_str(), &on_pipe] {
            let (before, last) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
            let report: serde_json::Value = serde_json::from_str(last).unwrap();
            assert_eq!((&report["exit_code"], &report["false"]), (&3.into(), &().into()), "{said}");
            assert_eq!(before.trim_end(), text.trim_end(), "{said}");
        }
        assert!(!in_file.contains("\n\n") && !in_file.starts_with('\n'), "{in_file:?}");
    }
    for text in [FALSE.repeat(100), format!("{FALSE}\n").repeat(100)] {
        fs::write(cage.ws("text"), &text).unwrap();
        let script = format!("python3 -c '{BACK}' \"$(cat text; echo)\"");
        assert_eq!(with_stderr(&cage, &script, File::create(&heard).unwrap()), Some(3));
        let said = fs::read_to_string(&heard).unwrap();
        let report: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert_eq!((&report["exit_code"], &report["false"]), (&3.into(), &().into()), "{said}");
        assert!(said.starts_with(text.trim_end()), "what the command said is still there");
    }
}

/// spec SANDBOX.204: Where the report that was asked for cannot be written, because the command has shut the socket
/// that it would go to or nobody reads, the exit code is 125.
#[test]
fn a_report_that_cannot_be_written_is_a_failure() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let shut = "python3 -c 'import socket; socket.socket(fileno=2).shutdown(socket.SHUT_RDWR)'";
    let report = cage.outside("report");
    let filed = ["--full-auto", "--json", "--report", report.to_str().unwrap()];
    let failing = "echo x > \"$OUT/victim\"; ";
    for (options, before, code) in [
        (&["--full-auto", "--json"][..], "", 125),
        (&filed, "", 125),
        (&["--full-auto", "--log-denials"], failing, 125),
        (&["--full-auto"], "", 0),
    ] {
        let (_reader, stderr) = UnixStream::pair().unwrap();
        let script = format!("{before}{shut}; exit 0");
        let mut command = cage.command(options, &script);
        let ended = Running::start(command.stderr(std::os::fd::OwnedFd::from(stderr))).wait();
        assert_eq!(ended.code, Some(code), "{options:?} {ended:?}");
    }
    assert!(fs::read_to_string(report).unwrap().contains("\"exit_code\":0"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = cage.command(&["--full-auto", "--json"], "exit 0");
    assert_eq!(Running::start(command.stderr(writer)).wait().code, Some(125));
}

/// spec SANDBOX.205: `--report` writes the object of `--json` to a file that the command does not hold, in the place
/// of what was in it; it is refused, and nothing runs, where the command could write, and for what is no file
/// of its own.
#[test]
fn a_report_can_go_where_the_command_has_no_part_in_it() {
    let cage = Cage::new();
    cage.files(&[".git/config", "known"]);
    let report = cage.outside("report");
    fs::write(&report, FALSE.repeat(100)).unwrap();
    let name = report.to_str().unwrap();
    let script = "for fd in /proc/self/fd/*; do readlink $fd; done; echo x > \"$OUT/report\"; \
                  rm -f \"$OUT/report\"; exit 3";
    let outcome = cage.run_with(&["--full-auto", "--json", "--report", name], script);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(!outcome.stdout().contains("report"), "{outcome:?}");
    let filed = fs::read_to_string(&report).unwrap();
    assert_eq!(Some(filed.trim_end()), outcome.stderr.lines().last());
    assert!(filed.ends_with("}\n") && filed.lines().count() == 1, "{filed}");
    let outcome = cage.run_with(&["--report", "../outside/read-only"], "exit 4");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(4), ""), "nothing is said elsewhere");
    assert!(fs::read_to_string(cage.outside("read-only")).unwrap().contains("\"exit_code\":4"));

    symlink(cage.outside("other"), cage.outside("link")).unwrap();
    fs::hard_link(cage.ws("known"), cage.outside("second-name")).unwrap();
    let mut streams = cage.command(&["--full-auto", "--report", name], "echo ran");
    streams.stderr(File::options().append(true).open(&report).unwrap());
    let of = |name: &str| cage.command(&["--full-auto", "--report", name], "echo ran");
    let outside = |name: &str| of(cage.outside(name).to_str().unwrap());
    for (mut command, what) in [
        (of("new"), Some("the command could write there")),
        (of(".git/new"), Some("the command could write there")),
        (of("/tmp/sandgate-report"), Some("the command could write there")),
        (of("/dev/null"), Some("it is not a file")),
        (outside("nowhere/report"), Some("No such file")),
        (outside("link"), Some("cannot write the report")),
        (outside("second-name"), Some("another name")),
        (streams, None),
    ] {
        let outcome = Running::start(&mut command).wait();
        assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{what:?} {outcome:?}");
        assert!(what.is_none_or(|what| outcome.stderr.contains(what)), "{what:?} {outcome:?}");
    }
    assert!(fs::read_to_string(&report).unwrap().contains("standard streams"));
    assert_eq!(cage.listing(), [".git", "known"]);
    assert_eq!(fs::read_to_string(cage.ws("known")).unwrap(), "before");
    for danger in
        [&["--sandbox", "danger-full-access"][..], &["-c", "sandbox_mode=danger-full-access"]]
    {
        let refused = |option: &[&str]| {
            let outcome = cage.run_with(&[danger, option].concat(), "echo ran");
            assert_eq!((outcome.code, outcome.stdout()), (Some(2), ""), "{outcome:?}");
        };
        refused(&["--report", name]);
        refused(&["--json"]);
    }
}
