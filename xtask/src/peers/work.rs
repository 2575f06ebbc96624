//! Honest work: eleven everyday things that a cage must let a command do. A sandbox in which nothing works holds
//! everything, so this is also what an attempt to get out is held against.

use super::{Place, Sandbox, Tools};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One piece of work: a script for `sh` in a workspace that holds [`FILES`], which ends well if all of it went well.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    script: &'static str,
}

const FILES: &[(&str, &str)] = &[
    ("terminal.py", include_str!("../../../crates/cli/tests/support/job_control.py")),
    ("server.py", include_str!("work/server.py")),
    ("socket_file.py", include_str!("work/socket_file.py")),
    ("pair.py", include_str!("work/pair.py")),
    ("manager.py", include_str!("work/manager.py")),
    (
        "deeper.c",
        "int answer = 41;\nint deeper(int by) { return answer += by; }\nint main(void) { return deeper(1) - 42; }\n",
    ),
    (
        "leak.c",
        "#include <stdlib.h>\nint main(void) { char *volatile kept = malloc(77); kept[0] = 1; kept = 0; return 0; }\n",
    ),
    ("script.sh", include_str!("work/script.sh")),
    ("Makefile", "all: one two\none two: deeper.c\n\t$(CC) -o $@ $<\n"),
];

pub(crate) const TASKS: &[Task] = &[
    Task { name: "a server on its own loopback", script: "python3 server.py" },
    Task { name: "a unix socket in the workspace", script: "python3 socket_file.py" },
    Task { name: "a socket pair", script: "python3 pair.py" },
    Task { name: "a multiprocessing manager", script: "python3 manager.py" },
    Task {
        name: "job control on a terminal",
        script: "python3 terminal.py bash --norc --noprofile -i",
    },
    Task {
        name: "gdb",
        script: "cc -g -O0 -o deeper deeper.c && gdb -q -nx -batch -ex 'break deeper' -ex run -ex finish \
                 -ex 'print answer' -ex continue ./deeper > said 2>&1; grep -q '= 42' said && grep -q normally said",
    },
    Task {
        name: "a leak checker",
        script: "cc -g -fsanitize=address -o leak leak.c && ! ASAN_OPTIONS=detect_leaks=1 ./leak 2> said; \
                 grep -q '77 byte(s) leaked' said",
    },
    Task { name: "a shell script with temporary files", script: "bash script.sh" },
    Task { name: "make", script: "make -j2 > said 2>&1 && ./one && ./two" },
    Task {
        name: "reading the repository",
        script: "git log --format=%s > said && git status --short >> said && git diff --stat >> said && git show --stat HEAD \
                 >> said && git blame -s HEAD -- Makefile >> said && grep -q first said",
    },
    Task {
        name: "a test that makes its own repository",
        script: "set -e; d=$(mktemp -d); cd \"$d\"; git init -q; git config user.name n; git config user.email e; \
                 echo x > file; git add file; git commit -q -m made; git clone -q \"$d\" \"$d/clone\"; \
                 test \"$(git -C clone log --format=%s)\" = made; cd /; rm -rf \"$d\"",
    },
];

/// A piece of work that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(40);

/// Does each piece in this sandbox, and says what came of it.
///
/// # Errors
/// Why the sandbox cannot be had.
pub(crate) fn all(
    sandbox: Sandbox,
    tools: &Tools,
    scratch: &Path,
    step: impl Fn(usize),
) -> Result<Vec<bool>, String> {
    let mut done = Vec::new();
    for (number, task) in TASKS.iter().enumerate() {
        step(number);
        let directory = tempfile::Builder::new().prefix("work-").tempdir_in(scratch);
        let directory = directory.map_err(|error| error.to_string())?;
        let (workspace, home) = (directory.path().join("ws"), directory.path().join("home"));
        prepare(&workspace, &home)
            .map_err(|error| format!("a workspace cannot be made: {error}"))?;
        let place = Place { workspace: &workspace, settings: &home };
        let mut wrapper = sandbox.wrap(tools, place)?;
        // Whoever ran this in the background has had interrupts ignored, and job control is about them.
        wrapper.words.splice(0..0, ["env", "--default-signal"].map(Into::into));
        let mut command = wrapper.command(place, &["/bin/sh", "-c", task.script]);
        command.env("HOME", &home);
        done.push(ends_well(&mut command));
    }
    Ok(done)
}

#[expect(clippy::disallowed_methods, reason = "makes a repository for others to read")]
fn prepare(workspace: &Path, home: &Path) -> std::io::Result<()> {
    fs::create_dir(workspace)?;
    fs::create_dir(home)?;
    for (name, text) in FILES {
        fs::write(workspace.join(name), text)?;
    }
    let script = "git init -q && git add . && git -c user.name=n -c user.email=e commit -qm first && echo >> Makefile";
    let status = Command::new("sh")
        .args(["-c", script])
        .current_dir(workspace)
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other("git failed")) }
}

/// Whether a command ends with code 0 in time.
pub(crate) fn ends_well(command: &mut Command) -> bool {
    use std::os::unix::process::CommandExt as _;
    let Ok(mut child) = command.process_group(0).spawn() else { return false };
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if began.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                end_group(&mut child);
                return false;
            }
        }
    }
}

/// Ends a process and the group that it leads.
pub(crate) fn end_group(child: &mut std::process::Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
