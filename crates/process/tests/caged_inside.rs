//! What a confined command can learn of its guards, and do to them: nothing.

#![cfg(target_os = "linux")]

mod support;

use sandgate_process::{ExecuteOptions, Executed, Stdin, Stop};
use sandgate_protocol::ExecParams;
use std::fs;
use support::caged::{Guards, Session, again_without_namespaces, in_its_own_process, python};
use support::{eventually_async, memory_of};

fn times(memory: &[u8], secret: &str) -> usize {
    memchr::memmem::find_iter(memory, secret.as_bytes()).count()
}

/// spec CAGED.50: The processes that keep a cage, watch over its commands and wait for the next one hold
/// nothing of their host's heap, arguments or environment, nor of those that a command was given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guards_know_no_secrets() {
    if !in_its_own_process("the_guards_know_no_secrets") {
        return again_without_namespaces("the_guards_know_no_secrets");
    }
    if !rustix::process::getuid().is_root() {
        return support::skipped("only root can look into the guards");
    }
    // Made at run time, so that it is not in the program's own text.
    let secret: String = (0..48u8).map(|i| char::from(b'a' + (i % 26) * 7 % 26)).rev().collect();
    let small = vec![secret.clone(); 100];
    // Some that are mappings of their own, between which threads and their stacks lie.
    let large: Vec<String> = (0..20).map(|n| secret.repeat(3_000 * (1 + n % 4))).collect();
    let session = Session::new();
    // Cages are made where the runtime happens to be, so from a thread with a secret of its own.
    let held = (small, large);
    let given = secret.clone();
    let session = tokio::spawn(async move {
        let mut params = session.script("read x");
        params.env.insert("TOKEN".into(), given.into());
        let env = session.confined(params);
        let process = session.spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
        (session, process)
    });
    let (_session, process) = session.await.unwrap();
    let guards = Guards::of(process.session.pid());
    let idle = guards.at_rest(1).await;
    assert!(times(&memory_of(std::process::id()), &secret) > 0);
    let mut pids = vec![guards.nursery, guards.warden];
    pids.extend(idle.iter().flat_map(|idle| [idle.warden, idle.vestibule]));
    for pid in pids {
        let memory = memory_of(pid);
        assert!(memory.len() > 4096, "of process {pid}");
        // Whoever starts a command lets go of its strings when it has told that.
        let is_clean = || times(&memory_of(pid), &secret) == 0;
        eventually_async(&format!("nothing is left in process {pid}"), is_clean).await;
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(environ.iter().all(|&byte| byte == 0));
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(cmdline.starts_with(b"sg-guard"), "{}", cmdline.escape_ascii());
    }
    drop(held);
}

/// spec CAGED.51: A confined command has no descriptor but its three standard streams, and its guards
/// have none that it could reach.
#[tokio::test]
async fn a_command_has_three_descriptors() {
    again_without_namespaces("a_command_has_three_descriptors");
    let session = Session::new();
    for _ in 0..3 {
        let done = session.run("ls /proc/self/fd; cat /proc/net/unix | wc -l").await.output;
        // The fourth is the directory that is being listed.
        assert!(done.stdout.text.starts_with("0\n1\n2\n3\n"), "{}", done.stdout.text);
        if session.has_namespaces() {
            // A line of headings, and no socket of anybody's that has a name.
            let text = session.run("grep -c @ /proc/net/unix").await.output.stdout.text;
            assert_eq!(text, "0\n");
        }
    }
}

/// What a command may try on its guard, each of which must fail.
const INSPECTION: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
guard = os.getppid()
opened = []
def tries(what, f):
    try:
        f()
    except (OSError, ValueError):
        return
    opened.append(what)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def read(path):
    return lambda: open(path, "rb").read(1)
for name in ["mem", "environ", "maps", "auxv", "stack", "syscall", "io", "timerslack_ns", "pagemap"]:
    path = f"/proc/{guard}/{name}"
    if os.path.exists(path):
        tries(path, read(path))
def descriptors(directory):
    return lambda: [os.readlink(f"{directory}/{number}") for number in os.listdir(directory)]
tries("fd", descriptors(f"/proc/{guard}/fd"))
tries("task", descriptors(f"/proc/{guard}/task/{guard}/fd"))
tries("fdinfo", lambda: [open(f"/proc/{guard}/fdinfo/{n}") for n in os.listdir(f"/proc/{guard}/fdinfo")])
tries("map_files", lambda: os.listdir(f"/proc/{guard}/map_files"))
for link in ["exe", "cwd", "root", "ns/mnt", "ns/pid"]:
    tries(link, lambda: os.readlink(f"/proc/{guard}/{link}"))
tries("mem for writing", lambda: open(f"/proc/{guard}/mem", "wb"))
tries("attach", lambda: call(101, 16, guard, 0, 0))
tries("seize", lambda: call(101, 0x4206, guard, 0, 0))
buffer = ctypes.create_string_buffer(8)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
local = Piece(ctypes.addressof(buffer), 8)
tries("vm_readv", lambda: call(310, guard, ctypes.byref(local), 1, ctypes.byref(local), 1, 0))
tries("vm_writev", lambda: call(311, guard, ctypes.byref(local), 1, ctypes.byref(local), 1, 0))
def take():
    pidfd = os.pidfd_open(guard)
    for number in range(64):
        try:
            call(438, pidfd, number, 0)
            return
        except OSError:
            pass
    raise OSError("refused")
tries("take a descriptor", take)
tries("listener", lambda: call(317, 1, 8, 0))
resource = __import__("resource")
tries("limits", lambda: resource.prlimit(guard, resource.RLIMIT_NOFILE, (0, 0)))
if guard == 1:
    tries("priority", lambda: os.setpriority(os.PRIO_PROCESS, guard, 19))
    tries("affinity", lambda: os.sched_setaffinity(guard, [0]))
    tries("scheduler", lambda: os.sched_setscheduler(guard, os.SCHED_IDLE, os.sched_param(0)))
    tries("disks", lambda: call(251, 1, guard, 3 << 13))
print("opened:", " ".join(opened))
"#;

/// spec CAGED.52: A confined command can neither look into the process that watches over it, nor trace
/// it, nor take a descriptor from it, nor set
/// limits to it.
#[tokio::test]
async fn the_guard_cannot_be_looked_into() {
    again_without_namespaces("the_guard_cannot_be_looked_into");
    let Some(params) = python(INSPECTION) else { return };
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("the numbers of system calls are those of another architecture");
    }
    let session = Session::new();
    let done = session.execute(params).await.unwrap().output;
    assert_eq!((&*done.stderr.text, &*done.stdout.text), ("", "opened: \n"));
}

/// Runs a command that never ends by itself until it says that all of it is there, and then ends it.
async fn until_ready(session: &Session, params: ExecParams) -> Executed {
    let mut ready = session.pipe("ready");
    let stop = Stop::default();
    let options = ExecuteOptions::default();
    let call = session.execute_with(params, options, &stop);
    let lever = async {
        ready.written().await;
        stop.cancel.cancel();
    };
    let (done, ()) = tokio::join!(call, lever);
    ready.abandoned();
    fs::remove_file(session.ws().join("ready")).unwrap();
    done.unwrap()
}

/// spec CAGED.53: Signals that a confined command sends to everybody end neither its guard nor the call.
#[tokio::test]
async fn signals_do_not_reach_the_guard() {
    again_without_namespaces("signals_do_not_reach_the_guard");
    let session = Session::new();
    let text = "for s in $(seq 64); do [ $s = 9 ] || [ $s = 19 ] || trap '' $s; done 2>/dev/null; \
                for s in 1 2 3 9 10 15 17 19 20 34 50 64; do kill -$s $PPID; done; \
                for s in 1 2 10 15 17 20 34 64; do kill -$s -1; done; true > \"$OUT/new\"; exit 4";
    for _ in 0..10 {
        let done = session.run(text).await;
        assert_eq!((done.output.exit_code, done.output.denials.evidence.len()), (4, 1));
        assert!(done.supervised);
    }
}

/// spec CAGED.54: A confined command that multiplies while it asks for what is refused is ended as fast
/// as any other, and what it was refused is told.
#[tokio::test]
async fn a_bomb_that_asks_is_put_out() {
    again_without_namespaces("a_bomb_that_asks_is_put_out");
    let session = Session::new();
    let text = r#"exec 9>"$WS/ready"
        bomb() {
            if [ $1 -gt 0 ]; then (bomb $(($1 - 1))) & (bomb $(($1 - 1))) & else echo x >&9; fi
            i=0; while :; do i=$(($i + 1)); true > "$OUT/$1-$i"; (true > "$OUT/$1-$i") & done
        }
        bomb 5 2>/dev/null"#;
    let done = until_ready(&session, session.script(text)).await.output;
    assert_eq!((done.exit_code, done.left_running), (137, 0));
    assert!(!done.denials.is_empty());
    assert_eq!(session.run("echo fine").await.output.stdout.text, "fine\n");
}

/// Keeps the supervisor busy in every way at once, and looks whether it still answers.
const BUSY: &str = r#"
import ctypes, errno, os, signal, socket, subprocess, threading, time
libc = ctypes.CDLL(None, use_errno=True)
out = os.environ["OUT"]
# A server that never accepts: who connects waits for ever, or is told that there are too many.
server = socket.socket(socket.AF_UNIX)
server.bind("full")
server.listen(1)
# Descriptors that are closed and put elsewhere while they are being connected. Whoever comes late finds that the
# number is being given to the next one.
null = os.open("/dev/null", os.O_RDONLY)
def replace(number):
    try:
        os.dup2(null, number)
    except OSError as error:
        if error.errno != errno.EBUSY:
            os.write(1, b"not replaced: %d" % error.errno)
def juggle():
    while True:
        client = socket.socket(socket.AF_UNIX)
        number = client.fileno()
        threading.Thread(target=replace, args=[number]).start()
        try:
            client.settimeout(0.001)
            client.connect("full")
        except OSError:
            pass
        client.close()
if os.fork() == 0:
    juggle()
# Many who wait.
def connect():
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect("full")
            time.sleep(1000)
        except OSError:
            time.sleep(1000)
for _ in range(200):
    threading.Thread(target=connect, daemon=True).start()
# Paths that are no paths.
for path in [b"x" * 100_000, b"/" + b"a/" * 2047 + b"b", b"", b"\xff" * 256, b"." * 4095]:
    for flags in [os.O_WRONLY, os.O_RDWR | os.O_CREAT]:
        if libc.open(path, flags, 0o600) >= 0:
            os.write(1, b"opened " + path[:20])
for pointer in [0, 1, 4096, 2**47, 2**63, 2**64 - 1]:
    if libc.open(ctypes.c_void_p(pointer), os.O_WRONLY) >= 0:
        os.write(1, b"opened %d" % pointer)
    libc.connect(3, ctypes.c_void_p(pointer), 110)
    libc.sendmsg(3, ctypes.c_void_p(pointer), 0)
# Processes that are killed while they wait for an answer.
for number in range(300):
    child = os.fork()
    if child == 0:
        while True:
            libc.open(f"{out}/dies".encode(), os.O_WRONLY | os.O_CREAT, 0o600)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
# A parent that is held up until its child has been answered.
for number in range(20):
    subprocess.run(["/bin/sh", "-c", f"true > '{out}/held'"], stderr=subprocess.DEVNULL, close_fds=True)
try:
    open(f"{out}/last", "w")
except OSError as error:
    os.write(1, b"answered %d\n" % (error.errno in (1, 13, 30)))
os._exit(5)
"#;

/// spec CAGED.55: Whatever calls wait, are nonsense, or are made by processes that are killed meanwhile,
/// the others are answered.
#[tokio::test]
async fn a_busy_supervisor_answers() {
    again_without_namespaces("a_busy_supervisor_answers");
    let Some(mut params) = python(BUSY) else { return };
    let session = Session::new();
    params.env.insert("OUT".into(), session.outside("").into());
    let done = session.execute(params).await.unwrap().output;
    assert_eq!((&*done.stderr.text, &*done.stdout.text), ("", "answered 1\n"));
    assert_eq!((done.exit_code, done.left_running), (5, 0));
    let last = session.outside("last");
    let told = |target: &str| done.denials.evidence.iter().any(|denial| denial.target == target);
    assert!(told(last.to_str().unwrap()), "{:?}", done.denials);
}

/// spec CAGED.56: A confined command in namespaces cannot change the mode, owner or times of the host's
/// `/dev/null` by way of its standard streams.
#[tokio::test]
async fn the_hosts_null_stays_as_it_is() {
    let session = Session::new();
    if !session.has_namespaces() {
        return support::skipped("there are no namespaces here");
    }
    // Nothing would be different even if it worked.
    let text = r#"
import os
status = os.fstat(0)
mode = status.st_mode & 0o7777
for what, change in [
    ("fchmod", lambda: os.fchmod(0, mode)),
    ("fchown", lambda: os.fchown(0, status.st_uid, status.st_gid)),
    ("chmod", lambda: os.chmod("/dev/stdin", mode)),
    ("utime", lambda: os.utime(0, ns=(status.st_atime_ns, status.st_mtime_ns))),
]:
    try:
        change()
        print(what)
    except OSError:
        pass
"#;
    let Some(params) = python(text) else { return };
    let done = session.execute(params).await.unwrap().output;
    assert_eq!((&*done.stderr.text, &*done.stdout.text, done.exit_code), ("", "", 0));
}
