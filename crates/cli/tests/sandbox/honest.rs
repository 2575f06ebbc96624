//! Everyday work, each piece to its end in the cage with the network off, and without a denial that is
//! not the work's own.

#![expect(clippy::disallowed_methods, reason = "the tests prepare what honest work needs")]

use crate::cage::{Cage, has};
use crate::report::Report;
use crate::support::{Outcome, Running, skipped};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const JOB_CONTROL: &str = include_str!("../support/job_control.py");

/// A piece of work, its script for `sh`, and what of it reaches outside its roots by itself.
struct Work<'a> {
    cage: &'a Cage,
    script: &'a str,
    env: Vec<(&'a str, PathBuf)>,
    tries: Vec<PathBuf>,
    looks_up_names: bool,
}

impl<'a> Work<'a> {
    fn new(cage: &'a Cage, script: &'a str) -> Self {
        Self { cage, script, env: Vec::new(), tries: Vec::new(), looks_up_names: false }
    }

    fn env(mut self, name: &'a str, value: impl Into<PathBuf>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// The work itself tries to write here, and copes when it cannot.
    fn tries(mut self, path: impl Into<PathBuf>) -> Self {
        self.tries.push(path.into());
        self
    }

    /// The work itself asks for the name of an address, or the address of a name, and copes when
    /// nobody answers.
    fn looks_up_names(mut self) -> Self {
        self.looks_up_names = true;
        self
    }

    /// Runs it, asserts that it came to its end and that nothing else was refused, and gives back
    /// what it printed.
    #[track_caller]
    fn done(self) -> String {
        let mut command = self.cage.command(&["--full-auto", "--json"], self.script);
        command.envs(self.env);
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.code, Some(0), "{}", told(&outcome));
        let report = Report::of(&outcome);
        assert_eq!((report.exit_code, report.more), (0, 0), "{report:?}");
        assert!(report.is_supervised(), "what is refused is known: {report:?}");
        let is_its_own = |target: &str| {
            self.tries.iter().any(|path| Path::new(target).starts_with(path))
                || (self.looks_up_names && target.ends_with(":53"))
        };
        let denials: Vec<_> =
            report.denials.iter().filter(|denial| !is_its_own(&denial.target)).collect();
        assert!(denials.is_empty(), "{denials:?}\n{}", told(&outcome));
        outcome.stdout().to_owned()
    }
}

/// What happened, with its lines as lines.
fn told(outcome: &Outcome) -> String {
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    format!("exit code {:?}\n{stdout}\n{}", outcome.code, outcome.stderr)
}

/// Puts files into the workspace.
fn write(cage: &Cage, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = cage.ws(name);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Whether all of these are installed.
fn have(programs: &[&str]) -> bool {
    programs.iter().all(|program| has(program))
}

/// Runs something unconfined that the work needs to be there.
fn prepare(cage: &Cage, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(cage.ws("")).stdin(Stdio::null());
    assert!(command.env("HOME", cage.base().join("home")).status().unwrap().success());
}

/// The toolchain's own directory of programs, because what rustup puts in the PATH looks for the
/// toolchain in the home of the person.
fn rust_programs() -> Option<PathBuf> {
    if !have(&["rustc", "cargo", "cc"]) {
        return None;
    }
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let programs = sysroot.join("bin");
    if !programs.join("cargo").is_file() {
        skipped("the Rust toolchain here has no cargo");
        return None;
    }
    Some(programs)
}

/// spec HONEST.1: Programs are built in the workspace: with cargo and no network, with make and
/// several jobs, with a C compiler and with Go.
#[test]
fn cargo_builds_and_tests_a_crate() {
    let Some(programs) = rust_programs() else { return };
    let cage = Cage::new();
    write(
        &cage,
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "build.rs",
                "fn main() { println!(\"cargo::rustc-env=MADE=by the build script\"); }\n",
            ),
            (
                "src/main.rs",
                "fn main() { println!(\"made {}\", env!(\"MADE\")); }\n\
                 #[test] fn two() { assert_eq!(1 + 1, 2); }\n",
            ),
        ],
    );
    let cargo_home = cage.base().join("home/.cargo");
    let script = "PATH=$PROGRAMS:$PATH; unset CARGO_TARGET_DIR; cargo build -q --offline && ./target/debug/small \
                  && cargo test -q --offline";
    let work = Work::new(&cage, script).env("PROGRAMS", programs).env("CARGO_HOME", &cargo_home);
    // Cargo notes there when it used what; it does without.
    let output = work.tries(&cargo_home).done();
    assert!(output.starts_with("made by the build script\n"), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

/// spec HONEST.1: Programs are built in the workspace: with cargo and no network, with make and
/// several jobs, with a C compiler and with Go.
#[test]
fn make_builds_with_several_jobs() {
    if !have(&["make", "gcc"]) {
        return;
    }
    let cage = Cage::new();
    let makefile = "program: a.o b.o c.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\n";
    write(
        &cage,
        &[
            ("Makefile", makefile),
            ("a.c", "int b(void), c(void);\nint main(void) { return b() + c() - 3; }\n"),
            ("b.c", "int b(void) { return 1; }\n"),
            ("c.c", "int c(void) { return 2; }\n"),
        ],
    );
    Work::new(&cage, "make -s -j2 && ./program").done();
    assert!(cage.ws("program").is_file());
}

/// spec HONEST.1: Programs are built in the workspace: with cargo and no network, with make and
/// several jobs, with a C compiler and with Go.
#[test]
fn go_builds_and_tests_a_module() {
    if !have(&["go", "git"]) {
        return;
    }
    let cage = Cage::new();
    write(
        &cage,
        &[
            ("go.mod", "module small\n\ngo 1.18\n"),
            (
                "main.go",
                "package main\n\nfunc main() { println(two()) }\nfunc two() int { return 2 }\n",
            ),
            (
                "main_test.go",
                "package main\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\
                 \tif two() != 2 {\n\t\tt.Fail()\n\t}\n}\n",
            ),
        ],
    );
    // Go notes in the program which commit it was built from.
    prepare(
        &cage,
        "git init -q . && git add . && git -c user.name=n -c user.email=e commit -q -m x",
    );
    let script = "export GOCACHE=$WS/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local; \
                  go build -o small && ./small 2>&1 && go test ./...";
    let work = Work::new(&cage, script).tries(cage.ws(".git/index.lock"));
    let output = work.tries(cage.base().join("home")).done();
    assert!(output.starts_with("2\n") && output.contains("ok"), "{output}");
}

/// spec HONEST.2: Projects in Python and JavaScript run their tests, make environments, install from
/// local packages, and share work between processes.
#[test]
fn npm_tests_an_offline_package() {
    if !have(&["node", "npm"]) {
        return;
    }
    let cage = Cage::new();
    let test = "const { execFileSync } = require('child_process');\n\
                const assert = require('assert');\nconst fs = require('fs');\n\
                fs.writeFileSync('made', 'yes');\n\
                assert.equal(execFileSync('echo', ['hi']).toString(), 'hi\\n');\n\
                new (require('worker_threads').Worker)(\"require('fs').readFileSync('made')\", \
                { eval: true }).on('exit', (code) => console.log('worker', code));\n";
    write(
        &cage,
        &[
            (
                "package.json",
                r#"{"name":"small","version":"1.0.0","scripts":{"test":"node test.js"}}"#,
            ),
            ("test.js", test),
        ],
    );
    // npm keeps a log and a cache at home; it does without.
    let output = Work::new(&cage, "npm test --offline")
        .tries(cage.base().join("home/.npm"))
        .looks_up_names()
        .done();
    assert!(output.contains("worker 0"), "{output}");
    assert!(cage.ws("made").is_file());
}

/// spec HONEST.2: Projects in Python and JavaScript run their tests, make environments, install from
/// local packages, and share work between processes.
#[test]
fn an_environment_is_made_and_a_wheel_installed() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let wheel = "import zipfile\nwith zipfile.ZipFile('small-1.0-py3-none-any.whl', 'w') as z:\n    \
        z.writestr('small.py', 'word = \"installed\"\\n')\n    \
        z.writestr('small-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n')\n    \
        z.writestr('small-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    \
        z.writestr('small-1.0.dist-info/RECORD', '')\n";
    write(&cage, &[("wheel.py", wheel)]);
    let probe = Command::new("python3").args(["-c", "import ensurepip, venv"]).status().unwrap();
    if !probe.success() {
        return skipped("the python3 here has no venv");
    }
    let script = "python3 wheel.py && python3 -m venv env \
                  && env/bin/pip install -q --no-index --disable-pip-version-check --no-cache-dir \
                  ./small-1.0-py3-none-any.whl \
                  && env/bin/python -c 'import small; print(small.word)'";
    assert_eq!(Work::new(&cage, script).done(), "installed\n");
}

/// spec HONEST.2: Projects in Python and JavaScript run their tests, make environments, install from
/// local packages, and share work between processes.
#[test]
fn python_shares_work_between_processes() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"
import multiprocessing as mp
from multiprocessing import shared_memory

def square(number):
    return number * number

def fill(queue, name, shared):
    block = shared_memory.SharedMemory(name)
    block.buf[0] = 42
    block.close()
    shared["word"] = "managed"
    queue.put("queued")

if __name__ == "__main__":
    for method in mp.get_all_start_methods():
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(square, range(4)))
        with context.Manager() as manager:
            shared = manager.dict()
            queue = context.Queue()
            block = shared_memory.SharedMemory(create=True, size=16)
            process = context.Process(target=fill, args=(queue, block.name, shared))
            process.start()
            word = queue.get()
            process.join()
            print(word, process.exitcode, shared["word"], block.buf[0])
            block.close()
            block.unlink()
"#;
    write(&cage, &[("share.py", script)]);
    let output = Work::new(&cage, "python3 share.py").done();
    for method in ["fork", "spawn", "forkserver"] {
        let expected = format!("{method} [0, 1, 4, 9]\nqueued 0 managed 42\n");
        assert!(output.contains(&expected), "{output}");
    }
}

/// spec HONEST.3: A repository can be read, and a test that makes one of its own where temporary files
/// go can commit to it.
#[test]
fn git_reads_a_repository() {
    if !has("git") {
        return;
    }
    let cage = Cage::new();
    let commit = "git init -q . && echo one > file && git add file \
                  && git -c user.name=n -c user.email=e commit -q -m first && echo two > file";
    prepare(&cage, commit);
    let script = "git status --short && git log --format=%s && git diff | tail -1 \
                  && git show --stat HEAD | tail -1 && git blame -s HEAD -- file | tail -c 4";
    // To ask is to refresh the index, if that is possible.
    let output = Work::new(&cage, script).tries(cage.ws(".git/index.lock")).done();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[..3], [" M file", "first", "+two"], "{output}");
    assert_eq!(lines.last(), Some(&"one"), "{output}");
}

/// spec HONEST.3: A repository can be read, and a test that makes one of its own where temporary files
/// go can commit to it.
#[test]
fn a_test_commits_to_its_own_repository() {
    if !has("git") {
        return;
    }
    let cage = Cage::new();
    let script = "set -e; d=$(mktemp -d); cd \"$d\"; git init -q; git config user.name n; \
                  git config user.email e; echo x > file; git add file; git commit -q -m made; \
                  git checkout -q -b other; git commit -q --allow-empty -m more; \
                  git worktree add -q \"$d/tree\" HEAD~1; git clone -q \"$d\" \"$d/clone\"; \
                  git -C clone log --format=%s; cd /; rm -rf \"$d\"";
    assert_eq!(Work::new(&cage, script).done(), "more\nmade\n");
}

/// spec HONEST.4: Scripts of a shell work with here-documents, substituted processes, temporary files
/// and background jobs, and a shell on a terminal has job control.
#[test]
fn a_shell_script_uses_everything() {
    if !has("bash") {
        return;
    }
    let cage = Cage::new();
    let script = r#"
set -euo pipefail
cat > doc <<END
here: $((6 * 7))
END
diff <(cat doc) <(echo "here: 42") && echo same
tee >(tr a-z A-Z > upper) < doc > lower
t=$(mktemp) d=$(mktemp -d)
trap 'rm -rf "$t" "$d"' EXIT
printf 'b\na\n' | sort > "$t"; cp "$t" "$d/copy"
mapfile -t lines < "$d/copy"; echo "${lines[*]}"
coproc cat; reader=$COPROC_PID; echo through >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
exec {COPROC[1]}>&-
wait "$reader"
set -m
sleep 1000 & kill -STOP %1; kill -CONT %1; kill %1; wait %1 || echo "job $?"
(exit 3) & wait $! || echo "background $?"
{ echo data > /dev/stderr; } 2> err; cat err
"#;
    write(&cage, &[("all.sh", script)]);
    let output = Work::new(&cage, "bash all.sh").done();
    assert_eq!(output, "same\na b\nthrough\njob 143\nbackground 3\ndata\n");
}

/// spec HONEST.4: Scripts of a shell work with here-documents, substituted processes, temporary files
/// and background jobs, and a shell on a terminal has job control.
#[test]
fn a_terminal_inside_has_job_control() {
    if !have(&["bash", "python3"]) {
        return;
    }
    let cage = Cage::new();
    write(&cage, &[("drive.py", JOB_CONTROL)]);
    let output = Work::new(&cage, "python3 drive.py bash --norc --noprofile -i").done();
    assert_eq!(output, "job control works, exit code 7\n");
}

/// spec HONEST.4: Scripts of a shell work with here-documents, substituted processes, temporary files
/// and background jobs, and a shell on a terminal has job control.
#[test]
fn a_persons_own_terminal_has_job_control() {
    if !have(&["bash", "python3"]) {
        return;
    }
    let cage = Cage::new();
    let shell = cage.command(&["--full-auto"], "exec bash --norc --noprofile -i");
    let mut person = crate::cage::again(&shell, &"python3".into());
    person.args(["-c", JOB_CONTROL]).arg(shell.get_program()).args(shell.get_args());
    let outcome = Running::start(&mut person).wait();
    assert_eq!(outcome.stdout(), "job control works, exit code 7\n", "{}", told(&outcome));
}

/// spec SANDBOX.101: When the terminal is gone that sandgate leads the session of, its command is told so as a shell is,
/// and ends unless it wants to stay.
#[test]
fn a_terminal_that_is_gone_ends_what_runs_there() {
    if !have(&["bash", "python3"]) {
        return;
    }
    const HANG_UP: &str = r"
import os, pty, signal, sys

# Nothing here takes this long unless it hangs.
signal.alarm(60)
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b''
while b'ready' not in seen:
    seen += os.read(terminal, 4096)
os.close(terminal)
_, status = os.waitpid(pid, 0)
print('exit code', os.waitstatus_to_exitcode(status))
";
    let cage = Cage::new();
    for (script, code) in [
        ("echo ready; sleep 1000", 129),
        ("exec bash --norc --noprofile -ic 'sleep 1000 & echo ready; wait'", 129),
        ("trap 'echo gone > told; exit 5' HUP; echo ready; while :; do sleep 0.01; done", 5),
    ] {
        let shell = cage.command(&["--full-auto"], script);
        let mut person = crate::cage::again(&shell, &"python3".into());
        person.args(["-c", HANG_UP]).arg(shell.get_program()).args(shell.get_args());
        let outcome = Running::start(&mut person).wait();
        assert_eq!(outcome.stdout(), format!("exit code {code}\n"), "{}", told(&outcome));
    }
    assert_eq!(std::fs::read_to_string(cage.ws("told")).unwrap(), "gone\n");
}

/// spec HONEST.4: Scripts of a shell work with here-documents, substituted processes, temporary files
/// and background jobs, and a shell on a terminal has job control.
#[test]
fn a_session_can_be_recorded() {
    if !has("script") {
        return;
    }
    let cage = Cage::new();
    let script = "script -q -e -c 'test -t 0 && tty && stty -a > settings' record > /dev/null \
                  && cat record && test -s settings";
    let output = Work::new(&cage, script).done();
    assert!(output.contains("/dev/pts/"), "{output}");
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn a_test_suite_talks_to_its_server() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"
import http.server, threading, unittest, urllib.request

class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from " + self.path.encode())
    def log_message(self, *_):
        pass

class Talks(unittest.TestCase):
    def test_by_every_name_of_the_loopback(self):
        for address in ("127.0.0.1", "localhost", "127.1.2.3"):
            server = http.server.ThreadingHTTPServer((address, 0), Hello)
            threading.Thread(target=server.serve_forever).start()
            url = f"http://{address}:{server.server_port}/path"
            for _ in range(5):
                self.assertEqual(urllib.request.urlopen(url).read(), b"hello from /path")
            server.shutdown()
            server.server_close()

unittest.main()
"#;
    write(&cage, &[("suite.py", script)]);
    let work = Work::new(&cage, "python3 suite.py 2> result; code=$?; cat result; exit $code");
    work.looks_up_names().done();
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn sockets_of_ones_own_work() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"
import array, asyncio, os, socket, threading

left, right = socket.socketpair()
read, write = os.pipe()
socket.send_fds(left, [b"descriptor"], [write])
_, descriptors, _, _ = socket.recv_fds(right, 32, 1)
os.write(descriptors[0], b"passed")
print(os.read(read, 6).decode())

for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    path = os.path.join(os.environ["WS"], f"agent.{int(kind)}")
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    server.listen()
    def serve():
        peer, _ = server.accept()
        peer.send(b"agent heard " + peer.recv(64))
    threading.Thread(target=serve).start()
    client = socket.socket(socket.AF_UNIX, kind)
    client.connect(path)
    client.send(b"a question")
    print(client.recv(64).decode())
    os.unlink(path)

async def talk():
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    server = await asyncio.start_unix_server(answer, "relative.sock")
    reader, writer = await asyncio.open_unix_connection("relative.sock")
    writer.write(b"asynchronous\n")
    print((await reader.readline()).decode(), end="")
    server.close()
asyncio.run(talk())

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"datagram", udp.getsockname())
print(udp.recv(64).decode())
"#;
    write(&cage, &[("sockets.py", script)]);
    let expected =
        "passed\nagent heard a question\nagent heard a question\nASYNCHRONOUS\ndatagram\n";
    assert_eq!(Work::new(&cage, "python3 sockets.py").done(), expected);
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn an_ssh_agent_of_ones_own_answers() {
    if !have(&["ssh-agent", "ssh-add", "ssh-keygen"]) {
        return;
    }
    let cage = Cage::new();
    let script = "ssh-keygen -q -t ed25519 -N '' -f key && eval $(ssh-agent -a \"$WS/agent.sock\") \
                  > /dev/null && ssh-add -q key && ssh-add -l | grep -c ED25519; \
                  code=$?; kill $SSH_AGENT_PID; exit $code";
    assert_eq!(Work::new(&cage, script).done(), "1\n");
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn redis_answers_on_both() {
    if !have(&["redis-server", "redis-cli"]) {
        return;
    }
    let cage = Cage::new();
    let script = r#"
redis-server --port 7379 --bind 127.0.0.1 --unixsocket "$WS/redis.sock" --dir "$WS" --save '' \
    > log 2>&1 &
server=$!
until redis-cli -s "$WS/redis.sock" ping > /dev/null 2>&1; do kill -0 $server || exit 9; done
redis-cli -s redis.sock set word stored && redis-cli -h 127.0.0.1 -p 7379 get word
redis-cli -s redis.sock shutdown nosave
wait $server
"#;
    assert_eq!(Work::new(&cage, script).done(), "OK\nstored\n");
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn postgres_answers_on_both() {
    if !have(&["initdb", "pg_ctl", "psql"]) {
        return;
    }
    if rustix::process::geteuid().is_root() {
        return skipped("PostgreSQL refuses to run as root");
    }
    let cage = Cage::new();
    let script = r#"
set -e
initdb -D data -U me -A trust --no-sync > log
pg_ctl -D data -w -s -o "-k '$WS' -h 127.0.0.1 -p 7432 -F" -l server.log start
psql -qAt -h "$WS" -p 7432 -U me -d postgres -c 'create table t (x int)' \
    -c 'insert into t select generate_series(1, 10)' -c 'select sum(x) from t'
psql -qAt -h 127.0.0.1 -p 7432 -U me -d postgres -c 'select count(*) from t'
pg_ctl -D data -m fast -s stop
"#;
    // The client keeps a list of what was typed, at home.
    let work = Work::new(&cage, script).tries(cage.base().join("home"));
    assert_eq!(work.done(), "55\n10\n");
}

/// spec HONEST.5: Servers and their clients meet on the cage's loopback and on unix sockets in the
/// workspace: tests over HTTP, databases, agents.
#[test]
fn sqlite_stores_and_finds() {
    let query = "create table t (x); insert into t values (20), (22); select sum(x) from t;";
    let cage = Cage::new();
    if has("sqlite3") {
        let script = format!("sqlite3 base.db 'pragma journal_mode=wal; {query}'");
        assert_eq!(Work::new(&cage, &script).done(), "wal\n42\n");
    }
    if has("python3") {
        let script = format!(
            "python3 -c 'import sqlite3; c = sqlite3.connect(\"other.db\"); \
             c.executescript(\"{query}\"); print(c.execute(\"select sum(x) from t\").fetchone()[0])'"
        );
        assert_eq!(Work::new(&cage, &script).done(), "42\n");
    }
}

/// spec HONEST.6: A debugger works on a program that it starts, and so does a leak checker.
#[test]
fn gdb_looks_into_its_child() {
    if !have(&["gdb", "gcc"]) {
        return;
    }
    let cage = Cage::new();
    let program = "int answer = 41;\nint deeper(int by) { return answer += by; }\n\
                   int main(void) { return deeper(1) - 42; }\n";
    write(&cage, &[("program.c", program)]);
    let script = "gcc -g -O0 -o program program.c && gdb -q -nx -batch -ex 'break deeper' -ex run \
                  -ex backtrace -ex finish -ex 'print answer' -ex continue ./program 2>&1";
    // Its own scripts are Python's, which keeps what it compiled beside them if it can.
    let work = Work::new(&cage, script).tries("/usr/share/gdb");
    // It writes to its child's memory by a file if it can, and by a call if it cannot: to root all of
    // /proc is read-only.
    let output = work.tries("/proc").done();
    assert!(output.contains("#1 ") && output.contains("$2 = 42"), "{output}");
    assert!(output.contains("exited normally"), "{output}");
}

/// spec HONEST.6: A debugger works on a program that it starts, and so does a leak checker.
#[test]
fn leaks_are_found() {
    if !has("gcc") {
        return;
    }
    let cage = Cage::new();
    let program = "#include <stdlib.h>\n#include <string.h>\n\
        int main(int count, char **words) {\n  char *volatile kept = malloc(77);\n  \
        memset(kept, count, 77);\n  if (count == 1) free(kept);\n  kept = 0;\n  return 0;\n}\n";
    write(&cage, &[("leak.c", program)]);
    let build = "gcc -g -fsanitize=address -o leak leak.c";
    let mut trial = Command::new("sh");
    let link = "echo 'int main(void) { return 0; }' | \
                gcc -fsanitize=address -x c -o \"$0/trial\" - && \"$0/trial\"";
    let linked = trial.args(["-c", link]).arg(cage.base()).output().unwrap();
    if !linked.status.success() {
        return skipped("gcc has no AddressSanitizer here");
    }
    let script = format!("{build} && ./leak && ! ./leak more 2> found && cat found");
    let output = Work::new(&cage, &script).env("ASAN_OPTIONS", "detect_leaks=1").done();
    assert!(output.contains("LeakSanitizer: detected memory leaks"), "{output}");
    assert!(output.contains("77 byte(s) leaked"), "{output}");
}

/// spec HONEST.7: Files keep their modes and times when they are copied and packed in the workspace,
/// and locks, named pipes and watches on files work.
#[test]
fn copies_keep_modes_and_times() {
    let cage = Cage::new();
    prepare(
        &cage,
        "mkdir -p from/deep; echo x > from/deep/file; ln -s deep/file from/link; \
         chmod 750 from/deep; chmod 640 from/deep/file; \
         touch -d '2001-02-03 04:05:06' from/deep/file from/deep",
    );
    let mut script = "set -e; cp -a from copied".to_owned();
    let mut copies = vec!["copied"];
    if has("tar") {
        script += "; mkdir packed; tar cf pack.tar -C from .; tar xpf pack.tar -C packed";
        copies.push("packed");
    }
    if has("rsync") {
        script += "; rsync -a from/ synced; rsync -a --delete from/ synced";
        copies.push("synced");
    }
    Work::new(&cage, &script).done();
    for copy in copies {
        for name in ["deep", "deep/file"] {
            let (from, to) = (format!("from/{name}"), format!("{copy}/{name}"));
            let [from, to] = [from, to].map(|path| fs::metadata(cage.ws(&path)).unwrap());
            let what = |data: &fs::Metadata| (data.mode(), data.mtime(), data.uid(), data.gid());
            assert_eq!(what(&from), what(&to), "{copy}/{name}");
        }
        let link = fs::read_link(cage.ws(&format!("{copy}/link"))).unwrap();
        assert_eq!(link, Path::new("deep/file"), "{copy}");
    }
}

/// spec HONEST.7: Files keep their modes and times when they are copied and packed in the workspace,
/// and locks, named pipes and watches on files work.
#[test]
fn locks_pipes_and_watches_work() {
    if !have(&["python3", "flock", "mkfifo"]) {
        return;
    }
    let cage = Cage::new();
    let watch = r#"
import ctypes, os, struct
libc = ctypes.CDLL(None)
watcher = libc.inotify_init1(0)
assert libc.inotify_add_watch(watcher, b".", 0x100) > 0
open("appears", "w").close()
event = os.read(watcher, 4096)
print(event[16:].rstrip(b"\0").decode())
"#;
    write(&cage, &[("watch.py", watch)]);
    let script = "flock lock sh -c '! flock -n lock true && echo locked' \
                  && mkfifo pipe && { echo piped > pipe & cat pipe; } && python3 watch.py";
    assert_eq!(Work::new(&cage, script).done(), "locked\npiped\nappears\n");
}
