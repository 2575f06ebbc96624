//! Other processes, and rights.

#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]

use crate::cage::{Cage, has};
use crate::support::{Running, is_alive, skipped};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// spec SANDBOX.40: A command sees no process but its own, and can signal no other.
#[test]
fn other_processes_are_out_of_sight_and_reach() {
    let cage = Cage::new();
    let mut canary = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = canary.id();
    let script = format!("kill -9 {pid}; kill -9 -1; echo /proc/[0-9]*; readlink /proc/self/root");
    let outcome = cage.run(&script);
    let alive = is_alive(i32::try_from(pid).unwrap());
    canary.kill().unwrap();
    canary.wait().unwrap();
    assert!(alive, "{outcome:?}");
    // The shell, which may have a child just now; the namespace's first process is its guard, and is not shown.
    let seen: Vec<_> = outcome.stdout().lines().next().unwrap().split(' ').collect();
    assert!(seen.starts_with(&["/proc/2"]) && seen.len() <= 2, "{outcome:?}");
}

/// spec SANDBOX.41: When the command has ended nothing that it started is alive, whatever session it
/// made.
#[test]
fn nothing_outlives_the_command() {
    let cage = Cage::new();
    let mut pipe = cage.pipe("pipe");
    // The shell waits, or it could be over before what it started has come to life.
    let script = "mkfifo ready; setsid sh -c 'trap \"\" HUP TERM; echo up; echo > ready; sleep 1000' \
                  > pipe & cat ready; exit 5";
    let outcome = cage.run(script);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    pipe.until_written();
    pipe.until_abandoned();
}

/// spec SANDBOX.42: SIGKILL of sandgate ends the command and everything that it started.
#[test]
fn nothing_outlives_sandgate() {
    let cage = Cage::new();
    let mut pipe = cage.pipe("pipe");
    let script = "setsid sh -c 'echo up; sleep 1000' > pipe & sleep 1000";
    let running = Running::start(&mut cage.command(&["--full-auto"], script));
    pipe.until_written();
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    pipe.until_abandoned();
}

/// spec SANDBOX.227: Where namespaces are refused, SIGKILL of the process that watches over a command ends the command and
/// everything that it started too.
#[test]
fn nothing_outlives_the_guard_where_namespaces_are_refused() {
    let cage = Cage::new();
    let mut pipe = cage.pipe("pipe");
    let script = "exec > pipe; setsid sleep 1000 & (sleep 1000 &); echo up; sleep 1000";
    let Some(mut command) = cage.without_namespaces(&["--full-auto"], script) else { return };
    let running = Running::start(&mut command);
    pipe.until_written();
    let sandgate = running.child.id();
    let children = fs::read_to_string(format!("/proc/{sandgate}/task/{sandgate}/children"));
    let guard: i32 = children.unwrap().trim().parse().unwrap();
    assert_eq!(fs::read_to_string(format!("/proc/{guard}/comm")).unwrap(), "sg-warden\n");
    rustix::process::kill_process(rustix::process::Pid::from_raw(guard).unwrap(), Signal::KILL)
        .unwrap();
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(137), "{outcome:?}");
    pipe.until_abandoned();
}

/// Children that sandgate had when it began are no command's.
#[test]
fn children_of_before_are_left_alone() {
    let cage = Cage::new();
    let alone = cage.without_namespaces(&["--full-auto"], "echo ran");
    for model in [cage.command(&["--full-auto"], "echo ran")].into_iter().chain(alone) {
        let mut pipe = cage.pipe("pipe");
        let mut command = crate::cage::again(&model, &"/bin/sh".into());
        command.args(["-c", "(echo up; exec sleep 1000) > pipe 2>&1 & echo $!; exec \"$@\"", "sh"]);
        let outcome =
            Running::start(command.arg(model.get_program()).args(model.get_args())).wait();
        let (child, said) = outcome.stdout().split_once('\n').unwrap();
        assert_eq!(said, "ran\n", "{outcome:?}");
        let child: i32 = child.parse().unwrap();
        assert!(is_alive(child), "{model:?}");
        pipe.until_written();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        rustix::process::kill_process(child, Signal::KILL).unwrap();
        pipe.until_abandoned();
        fs::remove_file(cage.ws("pipe")).unwrap();
    }
}

/// spec SANDBOX.228: What sandgate was started to ignore, as by nohup or by a shell for its background jobs, the command
/// ignores too and is not sent.
#[test]
fn what_is_ignored_stays_ignored() {
    let cage = Cage::new();
    let script = "kill -HUP $$; kill -INT $$; echo up; read line; echo $line";
    let alone = cage.without_namespaces(&["--full-auto"], script);
    let unconfined = cage.command(&["--sandbox=danger-full-access"], script);
    for model in [cage.command(&["--full-auto"], script), unconfined].into_iter().chain(alone) {
        let mut command = crate::cage::again(&model, &"/bin/sh".into());
        command.args(["-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh"]);
        command.arg(model.get_program()).args(model.get_args());
        let mut running = Running::start(command.stdin(std::process::Stdio::piped()));
        assert_eq!(running.line(), "up\n", "{model:?}");
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
            running.signal(signal);
        }
        let mut stdin = running.child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"still here\n").unwrap();
        let outcome = running.wait();
        assert_eq!(outcome.stdout(), "up\nstill here\n", "{model:?}: {outcome:?}");
        assert_eq!(outcome.code, Some(0), "{model:?}: {outcome:?}");
    }
}

/// spec SANDBOX.43: A command has no capability, can gain none, and executing a set-user-id program
/// changes nothing; root too.
#[test]
fn a_command_has_no_rights_to_give() {
    let cage = Cage::new();
    let outcome = cage.run("grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status");
    for line in outcome.stdout().lines() {
        let (name, value) = line.split_once(':').unwrap();
        let expected = match name {
            "NoNewPrivs" => "1",
            "Seccomp" => "2",
            _ => "0000000000000000",
        };
        assert_eq!(value.trim(), expected, "{name}");
    }
    assert_eq!(outcome.stdout().lines().count(), 7, "{outcome:?}");
    cage.refuses(&[
        "mount -t tmpfs x /mnt",
        "unshare -r true",
        "unshare -m true",
        "chroot / true || exit 1",
    ]);
    for program in ["sudo", "su"] {
        if has(program) {
            let script = match program {
                "su" => "su -c 'echo after > \"$OUT/victim\"'",
                _ => "sudo -n sh -c 'echo after > \"$OUT/victim\"'",
            };
            cage.run(script);
            assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
        }
    }
}

/// spec SANDBOX.44: The kernel's switches in `/proc` cannot be written to, by root neither.
#[test]
fn the_kernels_switches_are_read_only() {
    let cage = Cage::new();
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    cage.refuses(&[
        "cat /proc/sys/kernel/core_pattern > own && cat own > /proc/sys/kernel/core_pattern",
        "true >> /proc/sysrq-trigger",
        "echo 0 > /proc/sys/kernel/ns_last_pid",
    ]);
    assert_eq!(fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), before);
}

/// spec SANDBOX.47: Nothing in `/proc` can be written to: some of it belongs to the session that
/// sandgate was called from.
#[test]
fn nothing_in_proc_is_writable() {
    let cage = Cage::new();
    let before = fs::read_to_string("/proc/self/autogroup").ok();
    cage.refuses(&[
        "echo 15 > /proc/self/autogroup",
        "echo 500 > /proc/self/oom_score_adj",
        "echo name > /proc/1/comm",
        "echo 'some 500000 1000000' > /proc/pressure/cpu",
    ]);
    assert_eq!(fs::read_to_string("/proc/self/autogroup").ok(), before);
}

/// spec SANDBOX.48: The priorities of a group of processes or of a user cannot be set, only those of
/// processes.
#[test]
fn only_processes_are_given_priorities() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"python3 -c '
import os
for which in (os.PRIO_PGRP, os.PRIO_USER):
    try:
        os.setpriority(which, 0, 7)
        print("set")
    except PermissionError:
        print("refused")
os.setpriority(os.PRIO_PROCESS, 0, 7)
print(os.getpriority(os.PRIO_PROCESS, 0))
'"#;
    let alone = cage.without_namespaces(&["--full-auto"], script);
    for mut command in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.stdout(), "refused\nrefused\n7\n", "{outcome:?}");
    }
    let own = rustix::process::getpriority_process(None).unwrap();
    assert_ne!(own, 7, "the group is the test's own");
}

/// spec SANDBOX.73: Where namespaces are refused, requests and calls that change the flags of a file
/// or make a subvolume through a descriptor that was opened for reading are refused everywhere.
#[test]
fn flags_of_files_stay_where_namespaces_are_refused() {
    let cage = Cage::new();
    let script = r#"python3 -c '
import ctypes, errno, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
victim = os.open(os.environ["OUT"] + "/victim", os.O_RDONLY)
for request in (0x40086602, 0x401c5820, 0x40086604, 0x40087602, 0x5000940e, 0x50009401):
    try:
        fcntl.ioctl(victim, request, bytearray(4096))
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
libc.syscall(469, -100, os.environ["OUT"].encode() + b"/victim", bytes(24), 24, 0)
print(errno.errorcode[ctypes.get_errno()])
'"#;
    let Some(mut command) = cage.without_namespaces(&["--full-auto"], script) else { return };
    let outcome = Running::start(&mut command).wait();
    assert_eq!(outcome.stdout(), "EPERM\n".repeat(7), "{outcome:?}");
}

/// spec SANDBOX.49: A command cannot take a lease on a file, for which everybody else would have to
/// wait, nor have signals sent for changes in a directory.
#[test]
fn no_lease_is_taken() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"python3 -c '
import fcntl, os
file, directory = os.open(os.environ["OUT"] + "/victim", 0), os.open(os.environ["OUT"], 0)
for fd, request, value in (
    (file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    (file, fcntl.F_SETLEASE, fcntl.F_WRLCK),
    (directory, fcntl.F_NOTIFY, fcntl.DN_MODIFY),
):
    try:
        fcntl.fcntl(fd, request, value)
        print("done")
    except PermissionError as error:
        print(error.errno)
print(fcntl.fcntl(file, fcntl.F_GETFD))
'"#;
    let alone = cage.without_namespaces(&["--full-auto"], script);
    for mut command in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.stdout(), "1\n1\n1\n1\n", "{outcome:?}");
    }
}

/// spec SANDBOX.98: A signal that a command sends to its own group of processes reaches those of the cage
/// and not whoever called sandgate, whether Landlock keeps signals in or not.
#[test]
fn a_signal_to_the_own_group_stays_in_the_cage() {
    use std::os::unix::process::CommandExt as _;
    let cage = Cage::new();
    let script = "trap 'echo inside' USR1; kill -USR1 0; echo after";
    let alone = cage.without_landlock(&["--full-auto"], script);
    for model in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let mut caller = crate::cage::again(&model, &"/bin/sh".into());
        caller.args(["-c", "trap 'echo hit' USR1; \"$@\"; echo $?", "sh"]);
        caller.arg(model.get_program()).args(model.get_args()).process_group(0);
        let outcome = Running::start(&mut caller).wait();
        assert_eq!(outcome.stdout(), "inside\nafter\n0\n", "{model:?}: {outcome:?}");
    }
}

/// spec SANDBOX.54: The terminal that sandgate was started on has its settings and its mode back when
/// the command has ended.
#[test]
fn a_terminal_is_given_back_as_it_was() {
    use rustix::fs::{Mode, OFlags, fstat, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let looks = || {
        let settings = tcgetattr(&slave).unwrap();
        let shown = settings.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON);
        (shown, fstat(&slave).unwrap().st_mode)
    };
    let before = looks();
    assert!(before.0, "a new terminal shows what is typed");
    let script = "stty -echo -icanon; python3 -c 'import os; os.fchmod(0, 0o666)'; \
                  stty -a | grep -o -e '-echo '";
    let alone = cage.without_namespaces(&["--full-auto"], script);
    for mut command in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let outcome = Running::start(command.stdin(slave.try_clone().unwrap())).wait();
        assert_eq!(outcome.stdout(), "-echo \n", "{outcome:?}");
        assert_eq!(looks(), before, "{command:?}");
    }
}

/// spec SANDBOX.181: A command that has given its terminal to a group of processes which is gone with it leaves it to the
/// group that had it before.
#[test]
fn a_terminal_is_not_left_to_nobody() {
    const AT_A_TERMINAL: &str = include_str!("../support/at_a_terminal.py");
    const TAKEN: &str = "import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    print('taken:', os.tcgetpgrp(0) == os.getpgrp(), flush=True)
    os._exit(0)
os.wait()";
    const CALLER: &str =
        "\"$@\"; python3 -c 'import os; print(\"back:\", os.tcgetpgrp(0) == os.getpgrp())'";
    if !has("python3") {
        return skipped("there is no python3");
    }
    let cage = Cage::new();
    let script = format!("exec python3 -c \"{TAKEN}\"");
    let alone = cage.without_namespaces(&["--full-auto"], &script);
    for model in [cage.command(&["--full-auto"], &script)].into_iter().chain(alone) {
        let mut command = crate::cage::again(&model, &"python3".into());
        command.args(["-c", AT_A_TERMINAL, "/bin/sh", "-c", CALLER, "sh"]);
        command.arg(model.get_program()).args(model.get_args());
        let outcome = Running::start(&mut command).wait();
        let shown = outcome.stdout();
        assert!(shown.contains("taken: True"), "{shown}");
        assert!(shown.contains("back: True"), "{shown}");
    }
}

/// spec SANDBOX.213: Where no shell looks after jobs, a command that has given the terminal to another group and reads from
/// it gets an error, and neither it nor whoever called sandgate is stopped.
#[test]
fn a_terminal_stops_nobody_whom_no_shell_continues() {
    const AT_A_TERMINAL: &str = include_str!("../support/at_a_terminal.py");
    const READS: &str = "import os, signal, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    os.write(tell, b'x')
    time.sleep(1000)
os.read(ready, 1)
try:
    os.read(0, 1)
except OSError as error:
    print('told:', error.strerror, flush=True)
os.kill(child, signal.SIGKILL)";
    if !has("python3") {
        return skipped("there is no python3");
    }
    let cage = Cage::new();
    let script = format!("exec python3 -c \"{READS}\"");
    let alone = cage.without_namespaces(&["--full-auto"], &script);
    for model in [cage.command(&["--full-auto"], &script)].into_iter().chain(alone) {
        let mut command = crate::cage::again(&model, &"python3".into());
        command.args(["-c", AT_A_TERMINAL, "/bin/sh", "-c", "\"$@\"; echo goes on", "sh"]);
        command.arg(model.get_program()).args(model.get_args());
        let outcome = Running::start(&mut command).wait();
        let shown = outcome.stdout();
        assert!(shown.contains("told: Input/output error"), "{shown}");
        assert!(shown.contains("goes on"), "{shown}");
    }
}

/// spec SANDBOX.182: Where Landlock keeps no signals in, no descriptor tells of itself by signals: those of a terminal would
/// go to whoever is in its foreground.
#[test]
fn a_descriptor_sends_no_signals_where_landlock_keeps_none_in() {
    if !has("python3") {
        return skipped("there is no python3");
    }
    let cage = Cage::new();
    let script = "exec python3 -c 'import array, fcntl, os
one, other = os.pipe()
def tried(what):
    try:
        what()
        print(\"done\")
    except OSError as error:
        print(error.errno)
tried(lambda: fcntl.fcntl(one, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC))
tried(lambda: fcntl.ioctl(one, 0x5452, array.array(\"i\", [1])))
tried(lambda: fcntl.fcntl(one, fcntl.F_SETFL, os.O_NONBLOCK))'";
    let outcome = cage.run(script);
    assert_eq!(outcome.stdout(), "done\ndone\ndone\n", "{outcome:?}");
    let options = ["--full-auto", "--log-denials"];
    let Some(mut command) = cage.without_landlock(&options, script) else { return };
    let outcome = Running::start(&mut command).wait();
    assert_eq!(outcome.stdout(), "1\n1\ndone\n", "{outcome:?}");
    assert!(outcome.stderr.contains("use signals about a descriptor"), "{outcome:?}");
    assert!(outcome.stderr.contains("use FIOASYNC"), "{outcome:?}");
}

/// Every Java and every debugger does, and goes on without.
#[test]
fn nothing_is_told_of_what_programs_try_at_every_start() {
    let cage = Cage::new();
    let script = "echo 51 > /proc/self/coredump_filter; true 3<> /proc/self/mem; \
                  echo 1 > /proc/self/oom_score_adj";
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], script);
    let told: Vec<_> = outcome.stderr.lines().filter(|line| line.contains("blocked")).collect();
    assert_eq!(told.len(), 1, "{outcome:?}");
    assert!(told.iter().all(|line| line.contains("oom_score_adj")), "{outcome:?}");
}

/// spec SANDBOX.55: When the command has ended, output that it has stopped goes on, and the standard
/// streams wait, or do not, as they did before.
#[test]
fn streams_are_given_back_as_they_were() {
    use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
    use rustix::io::{read, write};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = "python3 -c 'import fcntl, os, termios
for n in (0, 2): fcntl.fcntl(n, fcntl.F_SETFL, fcntl.fcntl(n, fcntl.F_GETFL) | os.O_NONBLOCK | 0o20000)
termios.tcflow(0, termios.TCOOFF)
print(bool(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK))'";
    let alone = cage.without_namespaces(&["--full-auto"], script);
    for mut command in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let before = [fcntl_getfl(&slave).unwrap(), fcntl_getfl(&writer).unwrap()];
        command.stdin(slave.try_clone().unwrap()).stderr(writer.try_clone().unwrap());
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.stdout(), "True\n", "{outcome:?}");
        let after = [fcntl_getfl(&slave).unwrap(), fcntl_getfl(&writer).unwrap()];
        assert_eq!(after, before, "{command:?}");
        // What is written to a terminal that is stopped would be refused, or wait for ever.
        fcntl_setfl(&slave, before[0] | OFlags::NONBLOCK).unwrap();
        assert_eq!(write(&slave, b"on").unwrap(), 2, "{command:?}");
        assert_eq!(read(&master, &mut [0; 8]).unwrap(), 2);
        drop(reader);
    }
}

/// spec SANDBOX.104: A file that is protected in the cage is not taken as a standard stream, unless its caller has opened it
/// for writing. What lies outside the roots is.
#[test]
fn a_protected_file_is_no_stream() {
    let cage = Cage::new();
    cage.files(&[".git/config", "sub/.git/config", "its own/config"]);
    fs::create_dir(cage.ws("tree")).unwrap();
    fs::write(cage.ws("tree/.git"), "gitdir: ../its own\n").unwrap();
    let given = |file: PathBuf, script: &str| {
        let mut command = cage.command(&["--full-auto"], script);
        Running::start(command.stdin(fs::File::open(file).unwrap())).wait()
    };
    for name in [".git/config", "sub/.git/config", "its own/config", "tree/.git"] {
        let before = fs::read_to_string(cage.ws(name)).unwrap();
        let outcome = given(cage.ws(name), "cat; echo evil >> /proc/self/fd/0");
        assert_eq!(outcome.code, Some(125), "{name}: {outcome:?}");
        assert!(outcome.stderr.contains("standard input is a protected file"), "{outcome:?}");
        assert_eq!(fs::read_to_string(cage.ws(name)).unwrap(), before);
    }
    let there = cage.outside(".git");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("config"), "before").unwrap();
    let outcome = given(there.join("config"), "cat; (echo evil >> /proc/self/fd/0) 2>/dev/null");
    assert_eq!(outcome.stdout, b"before", "{outcome:?}");
    assert_eq!(fs::read_to_string(there.join("config")).unwrap(), "before");
    let mut command = cage.command(&["--full-auto"], "echo more");
    let config = fs::OpenOptions::new().append(true).open(cage.ws(".git/config")).unwrap();
    assert!(command.stdout(config).status().unwrap().success());
    assert_eq!(fs::read_to_string(cage.ws(".git/config")).unwrap(), "beforemore\n");
}

/// spec SANDBOX.56: A standard stream that is open for writing can be opened again for writing by its name,
/// and one that is open for reading cannot.
#[test]
fn a_stream_can_be_opened_by_its_name() {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::read;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let cage = Cage::new();
    fs::write(cage.outside("log"), "").unwrap();
    let script = "echo one > /dev/stderr; echo two >> /dev/stdout; \
                  (echo three >> /dev/stdin) 2> /dev/null || echo four";
    let alone = cage.without_namespaces(&["--full-auto"], script);
    for mut command in [cage.command(&["--full-auto"], script)].into_iter().chain(alone) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let log = || fs::OpenOptions::new().append(true).open(cage.outside("log")).unwrap();
        fs::write(cage.outside("log"), "").unwrap();
        command.stdin(fs::File::open(cage.outside("victim")).unwrap());
        command.stdout(log()).stderr(slave.try_clone().unwrap());
        let status = command.status().unwrap();
        assert!(status.success(), "{command:?}");
        assert_eq!(fs::read_to_string(cage.outside("log")).unwrap(), "two\nfour\n");
        assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
        let mut bytes = [0; 5];
        let length = read(&master, &mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"one\r\n");
    }
}

/// spec SANDBOX.57: That a stream which is open for reading cannot be opened for writing by its name is told.
#[test]
fn a_stream_that_cannot_be_opened_by_its_name_is_told() {
    let cage = Cage::new();
    let options = ["--full-auto", "--log-denials"];
    for name in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0"] {
        let script = format!("echo x >> {name} || echo y >> /dev/stdout");
        let alone = cage.without_namespaces(&options, &script);
        for mut command in [cage.command(&options, &script)].into_iter().chain(alone) {
            fs::write(cage.outside("log"), "").unwrap();
            let log = fs::OpenOptions::new().append(true).open(cage.outside("log")).unwrap();
            command.stdin(fs::File::open(cage.outside("victim")).unwrap()).stdout(log);
            let outcome = Running::start(&mut command).wait();
            let victim = cage.outside("victim");
            let told = format!("blocked: write {} (outside the writable roots)", victim.display());
            assert!(outcome.stderr.contains(&told), "{name}: {command:?} {outcome:?}");
            assert_eq!(outcome.stderr.matches("blocked: ").count(), 1, "{name}: {outcome:?}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "before");
            assert_eq!(fs::read_to_string(cage.outside("log")).unwrap(), "y\n");
        }
    }
}

/// spec SANDBOX.45: A command cannot push keystrokes into its terminal.
#[test]
fn keystrokes_cannot_be_pushed_into_the_terminal() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    // Before the terminal is asked, so it needs none; ENOTTY would say that it was asked.
    let script = r#"python3 -c '
import errno, fcntl
for request in (0x5412, 0x541C, 0x5412 | 1 << 32):
    try:
        fcntl.ioctl(0, request & 0xffffffff, b"x")
    except OSError as error:
        print(errno.errorcode[error.errno])
'"#;
    let outcome = cage.run(script);
    assert_eq!(outcome.stdout(), "EPERM\nEPERM\nEPERM\n", "{outcome:?}");
}

/// spec SANDBOX.46: A command has three descriptors, whatever sandgate was started with.
#[test]
fn descriptors_are_not_handed_down() {
    let cage = Cage::new();
    let command = cage.command(&["--full-auto"], "echo x >&7; echo x >&9; ls /proc/$$/fd");
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut shell = Command::new("bash");
    if !has("bash") {
        return skipped("only bash can leave descriptors open like this");
    }
    shell.args(["-c", "exec 7>>\"$0/victim\" 9>>\"$0/victim\"; exec \"$@\""]);
    shell.arg(cage.outside("")).arg(program).args(arguments).current_dir(cage.ws(""));
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let outcome = Running::start(&mut shell).wait();
    assert_eq!(outcome.stdout(), "0\n1\n2\n", "{outcome:?}");
    assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
}
