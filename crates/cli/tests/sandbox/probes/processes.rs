//! Ways to touch a process outside, and the cage's own first process.

use super::{Case, NEVER, OUTSIDE, SOCKET};

pub(super) const CASES: &[Case] = &[
    Case::new("kill", "t(lambda: os.kill(CANARY, signal.SIGTERM))", "ESRCH"),
    Case::new("kill-group", "t(lambda: os.kill(-CANARY, signal.SIGTERM))", "ESRCH"),
    Case::new("kill-everybody", "t(lambda: os.kill(-1, signal.SIGTERM))", "ESRCH|done"),
    Case::new("tgkill", "t(lambda: sc('tgkill', CANARY, CANARY, 15))", "ESRCH"),
    Case::new("tkill", "t(lambda: sc('tkill', CANARY, 15))", "ESRCH"),
    Case::new(
        "sigqueue",
        "\
info = ctypes.create_string_buffer(struct.pack('iii', 15, 0, -1) + bytes(120))
t(lambda: sc('rt_sigqueueinfo', CANARY, 15, info))",
        "ESRCH",
    ),
    Case::new("pidfd", "t(lambda: sc('pidfd_open', CANARY, 0))", "ESRCH"),
    Case::new("stop", "t(lambda: os.kill(CANARY, signal.SIGSTOP))", "ESRCH"),
    Case::new("trace", "t(lambda: sc('ptrace', 0x4206, CANARY, 0, 0))", "ESRCH"),
    Case::new("attach", "t(lambda: sc('ptrace', 16, CANARY, 0, 0))", "ESRCH"),
    Case::new("memory-file", "t(lambda: w(f'/proc/{CANARY}/mem', os.O_RDWR))", "ENOENT"),
    Case::new(
        "memory-call",
        "\
b = ctypes.create_string_buffer(8)
v = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(b), 8))
t(lambda: sc('process_vm_writev', CANARY, v, 1, v, 1, 0))
t(lambda: sc('process_vm_readv', CANARY, v, 1, v, 1, 0))",
        "ESRCH ESRCH",
    ),
    Case::new("environment", "t(lambda: open(f'/proc/{CANARY}/environ', 'rb').read())", "ENOENT"),
    Case::new("root-of-another", "t(lambda: w(f'/proc/{CANARY}/root{VICTIM}'))", "ENOENT"),
    Case::new("compare", "t(lambda: sc('kcmp', CANARY, os.getpid(), 0, 0, 0))", "ESRCH"),
    Case::new(
        "limits",
        "\
l = ctypes.create_string_buffer(struct.pack('QQ', 1, 1))
t(lambda: sc('prlimit64', CANARY, 7, l, None))",
        "ESRCH",
    ),
    Case::new("input-output-priority", "t(lambda: sc('ioprio_set', 1, CANARY, 3 << 13))", "ESRCH"),
    Case::new(
        "rescheduled",
        "\
one = struct.pack('Q', 1)
t(lambda: sc('sched_setaffinity', CANARY, 8, one))
t(lambda: sc('sched_setscheduler', CANARY, 3, struct.pack('i', 0)))
t(lambda: sc('sched_setattr', CANARY, struct.pack('IIQiIQQQ', 48, 3, 0, 7, 0, 0, 0, 0), 0))
t(lambda: os.setpriority(os.PRIO_PROCESS, CANARY, 7))",
        "ESRCH ESRCH ESRCH ESRCH",
    ),
    // What is the command's own is its own to place, by its number too.
    Case::new(
        "rescheduled-itself",
        "\
child = os.fork()
if child == 0: time.sleep(1000)
for process in (0, os.getpid(), child):
    t(lambda: os.sched_setaffinity(process, os.sched_getaffinity(process)))
    t(lambda: os.setpriority(os.PRIO_PROCESS, process, 7))
os.kill(child, 9)
os.wait()",
        "done done done done done done",
    ),
    // Its caller's group is the command's own when nobody has made another.
    Case::new(
        "priority-of-the-group",
        "\
t(lambda: os.setpriority(os.PRIO_PGRP, 0, 7))
t(lambda: os.setpriority(os.PRIO_USER, 0, 7))
t(lambda: sc('ioprio_set', 2, 0, 3 << 13))
t(lambda: sc('ioprio_set', 3, 0, 3 << 13))
t(lambda: os.setpriority(os.PRIO_PROCESS, 0, 7))
t(lambda: sc('ioprio_set', 1, 0, 3 << 13))",
        "EPERM EPERM EPERM EPERM done done",
    )
    .seen(&[
        ("use", "setpriority of a group or user", NEVER),
        ("use", "ioprio_set of a group or user", NEVER),
    ]),
    Case::new("move-pages", "t(lambda: sc('move_pages', CANARY, 0, 0, 0, 0, 0))", "ESRCH|ENOSYS"),
    Case::new("out-of-memory-score", "t(lambda: w(f'/proc/{CANARY}/oom_score_adj'))", "ENOENT"),
    Case::new("group-of-the-session", "t(lambda: w(there('/proc/self/autogroup')))", "EROFS")
        .seen(&[("write", "/proc/2/autogroup", OUTSIDE)]),
    Case::new(
        "out-of-memory-score-of-keeper",
        "t(lambda: w('/proc/1/oom_score_adj'))",
        "EROFS|EACCES",
    )
    .seen(&[("write", "/proc/1/oom_score_adj", OUTSIDE)]),
    Case::new("name-of-keeper", "t(lambda: w('/proc/1/comm'))", "EROFS|EACCES").seen(&[(
        "write",
        "/proc/1/comm",
        OUTSIDE,
    )]),
    Case::new("group-of-another", "t(lambda: os.setpgid(0, CANARY))", "EPERM|ESRCH"),
    Case::new("message-queue-of-the-host", "t(lambda: os.listdir('/dev/mqueue'))", "ENOENT"),
    // Its first process is sandgate's, and deaf to what comes from inside.
    Case::new(
        "kill-keeper",
        "\
t(lambda: os.kill(1, signal.SIGKILL))
t(lambda: os.kill(1, signal.SIGSTOP))
t(lambda: os.kill(1, signal.SIGTERM))
t(lambda: w(VICTIM))",
        "done|EPERM done|EPERM done|EPERM EROFS",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new("trace-keeper", "t(lambda: sc('ptrace', 0x4206, 1, 0, 0))", "EPERM"),
    Case::new("memory-of-keeper", "t(lambda: w('/proc/1/mem', os.O_RDWR))", "EROFS|EACCES")
        .seen(&[("write", "/proc/1/mem", OUTSIDE)]),
    // It is not even shown; what has been asked for it once says so in another way.
    Case::new(
        "environment-of-keeper",
        "t(lambda: open('/proc/1/environ', 'rb').read())",
        "EACCES|ENOENT|EPERM",
    ),
    Case::new(
        "descriptors-of-keeper",
        "\
f = sc('pidfd_open', 1, 0)
for n in range(20):
    try:
        sc('pidfd_getfd', f, n, 0); print('done')
    except OSError as e:
        assert e.errno in (errno.EPERM, errno.EBADF), e",
        "",
    ),
    Case::new(
        "descriptor-links-of-keeper",
        "\
t(lambda: os.readlink('/proc/1/fd/0'))
t(lambda: os.open('/proc/1/fd/0', os.O_RDWR))
t(lambda: os.open('/proc/1/cwd', os.O_RDONLY))
t(lambda: w('/proc/1/root' + VICTIM))",
        "EACCES|ENOENT|EPERM EACCES|ENOENT|EPERM EACCES|ENOENT|EPERM EROFS",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new(
        "keeper-without-descriptors",
        "\
l = ctypes.create_string_buffer(struct.pack('QQ', 0, 0))
try: sc('prlimit64', 1, 7, l, None)
except OSError: pass
try: w(VICTIM); print('done')
except OSError: print('refused')
try: connect(socket.AF_UNIX, OUT + '/stream'); print('done')
except OSError: print('refused')",
        "refused refused",
    )
    .seen(&[
        ("use", "prlimit64 of another process", NEVER),
        ("write", "{out}/victim", OUTSIDE),
        ("connect", "{out}/stream", SOCKET),
    ]),
];
