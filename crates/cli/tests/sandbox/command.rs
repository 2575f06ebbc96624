//! The command line, exit codes, and machines that can enforce less.

use crate::cage::{Cage, has};
use crate::support::{Running, skipped};
use std::fs;
use std::io::Write as _;
use std::os::fd::BorrowedFd;

/// spec SANDBOX.60: The exit code is the command's own, and 128+N when signal N ended it.
#[test]
fn the_exit_code_is_the_commands_own() {
    let cage = Cage::new();
    for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143)] {
        assert_eq!(cage.run(script).code, Some(code), "{script}");
    }
}

/// spec SANDBOX.61: A program that cannot be executed ends in exit code 126, and one that is not there
/// in 127.
#[test]
fn programs_that_do_not_start_have_their_own_codes() {
    let cage = Cage::new();
    cage.files(&["plain"]);
    let model = cage.command(&[], "");
    let program = model.get_program().to_owned();
    for (name, code) in [("./plain", 126), ("./nowhere", 127), ("no-such-program", 127)] {
        for mode in ["workspace-write", "danger-full-access"] {
            let mut words = crate::cage::again(&model, &program);
            words.args(["sandbox", "--sandbox", mode, "--", name]);
            let outcome = Running::start(&mut words).wait();
            assert_eq!(outcome.code, Some(code), "{name} {mode}: {outcome:?}");
        }
    }
    assert_eq!(cage.listing(), ["plain"]);
}

/// spec SANDBOX.62: A command is told in `CODEX_SANDBOX` what confines it, and in
/// `CODEX_SANDBOX_NETWORK_DISABLED` that the network is off.
#[test]
fn a_command_can_know_that_it_is_confined() {
    let cage = Cage::new();
    let script = "echo \"$CODEX_SANDBOX $CODEX_SANDBOX_NETWORK_DISABLED\"";
    assert_eq!(cage.run(script).stdout(), "linux 1\n");
    assert_eq!(cage.run_with(&["--full-auto", "--network"], script).stdout(), "linux \n");
    assert_eq!(cage.run_with(&["--sandbox", "danger-full-access"], script).stdout(), " \n");
}

/// spec SANDBOX.63: A command reads sandgate's standard input and writes to its standard output and
/// error.
#[test]
fn streams_pass_through() {
    let cage = Cage::new();
    let mut command = cage.command(&[], "cat; echo err >&2");
    let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
    running.child.stdin.take().unwrap().write_all(b"in").unwrap();
    let outcome = running.wait();
    assert_eq!((outcome.stdout(), outcome.stderr.as_str()), ("in", "err\n"));
}

/// spec SANDBOX.69: A directory, or a descriptor that is no more than a place, is refused as a
/// standard stream, and nothing runs.
#[test]
fn a_directory_is_no_stream() {
    let cage = Cage::new();
    let open = |flags: rustix::fs::OFlags| {
        rustix::fs::open(cage.outside(""), flags, rustix::fs::Mode::empty()).unwrap()
    };
    let place = rustix::fs::open(
        cage.outside("victim"),
        rustix::fs::OFlags::PATH,
        rustix::fs::Mode::empty(),
    );
    for (stream, what) in [
        (open(rustix::fs::OFlags::RDONLY), "standard input is a directory"),
        (open(rustix::fs::OFlags::PATH), "standard input is a directory"),
        (place.unwrap(), "standard input is a place"),
    ] {
        let mut command = cage.command(&["--full-auto"], "echo ran");
        let outcome = Running::start(command.stdin(stream)).wait();
        assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{outcome:?}");
        assert!(outcome.stderr.contains(what), "{outcome:?}");
    }
}

/// What was begun for a confined command is gone when it turns out that nothing confines it: the command
/// takes this program's place, and would have it for a child.
#[test]
fn a_command_that_replaces_the_program_has_no_children() {
    let cage = Cage::new();
    let options = ["--sandbox", "danger-full-access"];
    let outcome =
        cage.run_with(&options, "read -r mine < /proc/$$/task/$$/children; echo \"[$mine]\"");
    assert_eq!(outcome.stdout(), "[]\n", "{outcome:?}");
}

/// Two commands of their own cages, over one workspace, with a socket between them: one sends a directory and ends, and the
/// kernel takes apart the mounts that it was opened by.
const SENDS: &str = r#"python3 -c '
import os, socket
s = socket.socket(fileno=0)
for flags in 0, socket.MSG_OOB:
    try:
        socket.send_fds(s, [b"x"], [os.open(".", os.O_RDONLY)], flags)
        print("sent")
    except OSError as error:
        print(error.strerror)
s.send(b"over")
'"#;
const RECEIVES: &str = r#"python3 -c '
import os, socket
s = socket.socket(fileno=0)
try:
    s.getsockopt(socket.SOL_SOCKET, 83)
    print("new", flush=True)
except OSError:
    print("old", flush=True)
text = b""
while not text.endswith(b"over"):
    part, received, *_ = socket.recv_fds(s, 100, 10)
    text += part
    print(len(received), flush=True)
try:
    s.setsockopt(socket.SOL_SOCKET, 83, 1)
    print("set")
except OSError as error:
    print(error.strerror)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
'"#;

/// spec SANDBOX.210: No descriptor comes to a command by a socket that is its standard stream, whoever is at the other end,
/// and a command cannot have any sent to it by one of these.
#[test]
fn no_descriptor_comes_by_a_stream() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let receivers = [cage.command(&["--full-auto"], RECEIVES)]
        .into_iter()
        .chain(cage.without_namespaces(&["--full-auto"], RECEIVES));
    for mut receiver in receivers {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut receiver = Running::start(receiver.stdin(std::os::fd::OwnedFd::from(other)));
        if receiver.line() == "old\n" {
            skipped("this kernel sends descriptors to every unix socket");
            return;
        }
        let mut sender = cage.command(&["--full-auto"], SENDS);
        let sent = Running::start(sender.stdin(std::os::fd::OwnedFd::from(one))).wait();
        assert_eq!(sent.stdout(), "Operation not permitted\n".repeat(2), "{sent:?}");
        let received = receiver.wait();
        assert_eq!(received.stdout(), "new\n0\nOperation not permitted\n", "{received:?}");
        assert_eq!(received.code, Some(0), "other options can be set: {received:?}");
    }
}

/// spec SANDBOX.211: A socket by which descriptors have come that nobody has received is refused as a standard stream, and
/// nothing runs.
#[test]
fn a_socket_with_descriptors_in_it_is_no_stream() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::net::UnixStream;
    let cage = Cage::new();
    let directory = fs::File::open(cage.ws("")).unwrap();
    let given = |with: &[BorrowedFd<'_>]| {
        let (one, other) = UnixStream::pair().unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(with)));
        }
        let text = [std::io::IoSlice::new(b"text")];
        sendmsg(&one, &text, &mut ancillary, SendFlags::empty()).unwrap();
        drop(one);
        Running::start(cage.command(&["--full-auto"], "cat").stdin(OwnedFd::from(other))).wait()
    };
    let outcome = given(&[directory.as_fd()]);
    assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("standard input is a socket with descriptors"), "{outcome:?}");
    assert_eq!(given(&[]).stdout(), "text", "what else was sent is read");
}

/// spec SANDBOX.96: A socket is refused as a standard stream unless it is a connected stream, and with
/// the network off unless it is a unix one: through others a command would reach whom it likes.
#[test]
fn a_socket_that_leads_elsewhere_is_no_stream() {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    let cage = Cage::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = || TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    let cases: [(OwnedFd, &[&str], Option<&str>); 9] = [
        (connected().into(), &[], Some("a socket of the network, which is off")),
        (connected().into(), &["--network"], None),
        (UdpSocket::bind("127.0.0.1:0").unwrap().into(), &[], Some("a socket of the network")),
        (
            UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            &["--network"],
            Some("a socket that is not a connected stream"),
        ),
        (server.try_clone().unwrap().into(), &["--network"], Some("not a connected stream")),
        (UnixDatagram::unbound().unwrap().into(), &[], Some("not a connected stream")),
        (UnixDatagram::pair().unwrap().0.into(), &[], Some("not a connected stream")),
        (
            UnixListener::bind(cage.outside("listens")).unwrap().into(),
            &[],
            Some("not a connected stream"),
        ),
        (one.into(), &[], None),
    ];
    for (stream, more, refused) in cases {
        let options = [&["--full-auto"][..], more].concat();
        let alone = cage.without_namespaces(&options, "echo ran");
        for mut command in [cage.command(&options, "echo ran")].into_iter().chain(alone) {
            let outcome = Running::start(command.stdin(stream.try_clone().unwrap())).wait();
            match refused {
                None => assert_eq!((outcome.code, outcome.stdout()), (Some(0), "ran\n")),
                Some(what) => {
                    assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{outcome:?}");
                    assert!(outcome.stderr.contains("standard input is a socket"), "{outcome:?}");
                    assert!(outcome.stderr.contains(what), "{outcome:?}");
                }
            }
        }
    }
    drop(other);
}

/// spec SANDBOX.64: In danger-full-access mode nothing confines the command, and a warning says so.
#[test]
fn danger_means_what_it_says() {
    let cage = Cage::new();
    let options = ["--sandbox", "danger-full-access"];
    let outcome = cage.run_with(&options, "echo after > \"$OUT/victim\"; exit 7");
    assert_eq!(outcome.code, Some(7), "{outcome:?}");
    assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "after\n");
    assert!(outcome.stderr.contains("runs unconfined"), "{outcome:?}");
}

/// spec SANDBOX.65: Options that a mode cannot honour are refused, and nothing runs.
#[test]
fn options_that_mean_nothing_are_refused() {
    let cage = Cage::new();
    for options in [
        &["--network"][..],
        &["--writable", "."],
        &["--sandbox", "danger-full-access", "--network"],
        &["--sandbox", "read-only", "--full-auto"],
        &["--sandbox", "nonsense"],
        &["--sandbox", "danger-full-access", "--json"],
        &["--sandbox", "danger-full-access", "--log-denials"],
        &["--status"],
        &["windows"],
    ] {
        let outcome = cage.run_with(options, "echo ran");
        assert_eq!((outcome.code, outcome.stdout()), (Some(2), ""), "{options:?}: {outcome:?}");
    }
}

/// spec SANDBOX.66: `--status` says what this machine can enforce, in words or with `--json` as one
/// object.
#[test]
fn the_status_says_what_is_enforced() {
    let cage = Cage::new();
    let model = cage.command(&[], "");
    let program = model.get_program().to_owned();
    let status = |arguments: &[&str]| {
        let mut command = crate::cage::again(&model, &program);
        command.args(["sandbox", "--status"]).args(arguments);
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout().to_owned()
    };
    let json: serde_json::Value = serde_json::from_str(&status(&["--json"])).unwrap();
    assert_eq!(json["sandbox"], "linux_seccomp");
    assert_eq!(json["seccomp"], true);
    let words = status(&[]);
    for (key, line) in [("namespaces", "namespaces  yes\n"), ("seccomp", "seccomp     yes\n")] {
        assert_eq!(json[key] == true, words.contains(line), "{words}");
    }
    let landlock = format!("Landlock    version {}\n", json["landlock_abi"]);
    assert!(json["landlock_abi"] == 0 || words.contains(&landlock), "{words}");
}

/// spec SANDBOX.68: With a policy, `--status` also names the roots that are too large to be searched for
/// repositories to the end.
#[test]
fn the_status_names_the_roots_that_are_too_large() {
    let cage = Cage::new();
    let large = cage.base().canonicalize().unwrap().join("large");
    for number in 0..5_001 {
        fs::create_dir_all(large.join(number.to_string()).join("inner")).unwrap();
    }
    let model = cage.command(&[], "");
    let program = model.get_program().to_owned();
    let status = |arguments: &[&str]| {
        let mut command = crate::cage::again(&model, &program);
        command.args(["sandbox", "--status"]).args(arguments).env("TMPDIR", &large);
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout().to_owned()
    };
    let line = format!("- {}\n", large.display());
    assert!(status(&["--full-auto"]).contains(&line));
    assert!(!status(&[]).contains(&line), "nothing is writable there");
    let json = status(&["--full-auto", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let unfinished = json["unfinished_roots"].as_array().unwrap();
    assert!(unfinished.contains(&large.to_str().unwrap().into()), "{json}");
    fs::remove_dir_all(&large).unwrap();
    fs::create_dir(&large).unwrap();
    assert!(!status(&["--full-auto"]).contains(&line), "all of it was searched");
}

/// spec SANDBOX.72: Where a part of `/proc` is covered, as in some containers, a command is held without
/// namespaces, and the report says so.
#[test]
fn where_proc_is_covered_the_rest_still_holds() {
    let cage = Cage::new();
    let script = "echo in > in; echo after > \"$OUT/victim\"";
    let Some(mut command) = cage.where_proc_is_covered(&["--full-auto", "--json"], script) else {
        return skipped("there is no unshare here, or it may not do this");
    };
    let outcome = Running::start(&mut command).wait();
    assert!(!matches!(outcome.code, Some(0 | 125..)), "{outcome:?}");
    let report = outcome.stderr.lines().last().unwrap();
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["enforcement"]["namespaces"], false, "{report}");
    assert_eq!(report["enforcement"]["seccomp"], true, "{report}");
    assert_eq!(cage.listing(), ["in"]);
    assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
}

/// spec SANDBOX.70: Where namespaces are refused a command still writes only in its roots and reaches
/// no network, and nothing that it started outlives it or sandgate.
#[test]
fn without_namespaces_the_rest_still_holds() {
    let cage = Cage::new();
    let start = |script: &str| cage.without_namespaces(&["--full-auto"], script);
    let Some(mut command) = start("echo in > in; exit 3") else {
        return skipped("nothing here can switch namespaces off");
    };
    assert_eq!(Running::start(&mut command).wait().code, Some(3));
    assert_eq!(fs::read_to_string(cage.ws("in")).unwrap(), "in\n");
    assert_eq!(cage.listing(), ["in"]);
    for attempt in [
        "echo after > \"$OUT/victim\"",
        "rm \"$OUT/victim\"",
        "echo new > \"$OUT/new\"",
        "python3 -c 'import socket; socket.socket(socket.AF_INET)'",
    ] {
        let outcome = Running::start(&mut start(attempt).unwrap()).wait();
        assert!(!matches!(outcome.code, Some(0 | 125..)), "{attempt}: {outcome:?}");
    }
    assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
    let daemon = "setsid sh -c 'echo up; sleep 1000' > pipe & read line < go; exit 4";
    for kill in [false, true] {
        let mut pipe = cage.pipe("pipe");
        drop(cage.pipe("go"));
        let running = Running::start(&mut start(daemon).unwrap());
        pipe.until_written();
        if kill {
            running.signal(rustix::process::Signal::KILL);
            running.wait();
        } else {
            crate::support::let_go(&cage.ws("go"));
            assert_eq!(running.wait().code, Some(4));
        }
        pipe.until_abandoned();
        fs::remove_file(cage.ws("pipe")).unwrap();
        fs::remove_file(cage.ws("go")).unwrap();
    }
}

/// spec SANDBOX.67: Called `sandgate-linux-sandbox`, the program takes a policy as JSON, then `--` and the
/// command, with the current directory as the workspace.
#[test]
fn a_policy_can_be_json() {
    let cage = Cage::new();
    let script = "echo in > in; echo out > \"$OUT/new\"";
    let run = |policy| Running::start(&mut cage.by_policy(policy, script)).wait();
    for (policy, left) in
        [(r#"{"mode":"read-only"}"#, &[][..]), (r#"{"mode":"workspace-write"}"#, &["in"])]
    {
        let outcome = run(policy);
        assert!(!matches!(outcome.code, Some(0 | 125..)), "{outcome:?}");
        assert_eq!(cage.listing(), left, "{policy}");
    }
    assert!(!cage.outside("new").exists());
    assert_eq!(run("{}").code, Some(2));
}

/// spec SANDBOX.71: Sandgate works inside its own cage with what is left there, and opens nothing.
#[test]
fn a_cage_in_a_cage_works() {
    let cage = Cage::new();
    let program = cage.command(&[], "").get_program().to_owned();
    let inner =
        "\"$SANDGATE\" sandbox --full-auto -- sh -c 'echo in > in; echo out > \"$OUT/new\"'";
    let mut outer = cage.command(&["--full-auto"], inner);
    let outcome = Running::start(outer.env("SANDGATE", &program)).wait();
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(cage.listing(), ["in"], "{outcome:?}");
    assert!(!cage.outside("new").exists());
    let mut outer = cage.command(&["--sandbox", "read-only"], &inner.replace("in > in", "x > x"));
    let outcome = Running::start(outer.env("SANDGATE", &program)).wait();
    assert!(!matches!(outcome.code, Some(0 | 125)), "{outcome:?}");
    assert_eq!(cage.listing(), ["in"], "{outcome:?}");
}

/// spec SANDBOX.225: Where namespaces can be had, and only not now, nothing runs: the limit that was reached is named, with
/// exit code 125.
#[test]
fn a_shortage_of_namespaces_is_no_refusal() {
    let cage = Cage::new();
    let limited =
        |to| cage.where_networks_are_limited(to, &["--full-auto"], "mkdir .git; echo ran");
    let Some(mut none_left) = limited(1) else { return };
    let outcome = Running::start(&mut none_left).wait();
    assert_eq!((outcome.code, outcome.stdout()), (Some(125), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("/proc/sys/user/max_net_namespaces"), "{outcome:?}");
    assert_eq!(cage.listing(), [""; 0]);
    let outcome = Running::start(&mut limited(2).unwrap()).wait();
    assert_eq!(outcome.stdout(), "ran\n", "{outcome:?}");
    assert_eq!(cage.listing(), [""; 0], "the name was kept free");
    // Nobody may ever have one: that is how this machine is.
    let outcome = Running::start(&mut limited(0).unwrap()).wait();
    assert_eq!(outcome.stdout(), "ran\n", "{outcome:?}");
    assert_eq!(cage.listing(), [".git"]);
}

/// spec SANDBOX.230: Where namespaces can be had and nothing be mounted in them, as in some containers, a command is held as
/// where they are refused, and the report says so.
#[test]
fn namespaces_in_which_nothing_can_be_mounted_are_none() {
    let cage = Cage::new();
    let script = "echo in > inside; echo out > \"$OUT/out\"; echo ran";
    let options = ["--full-auto", "--json"];
    let Some(mut command) = cage.without_mounts(&options, script) else { return };
    let outcome = Running::start(&mut command).wait();
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "ran\n"), "{outcome:?}");
    assert!(cage.ws("inside").exists() && !cage.outside("out").exists());
    assert!(outcome.stderr.contains(r#""namespaces":false"#), "{outcome:?}");
}

/// spec SANDBOX.226: Where namespaces are refused, a person at a terminal, or who asked for what was blocked, is told that
/// less is held.
#[test]
fn a_weaker_cage_is_told() {
    let cage = Cage::new();
    let told = |options: &[&str]| {
        let mut command = cage.without_namespaces(options, "exit 3")?;
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
        Some(outcome.stderr.contains("warning: namespaces are refused here"))
    };
    let Some(asked) = told(&["--full-auto", "--log-denials"]) else { return };
    assert!(asked && !told(&["--full-auto"]).unwrap());
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], "exit 3");
    assert_eq!(outcome.stderr, "", "{outcome:?}");
}
