//! Other ways into the kernel than the filter's tables, and what a command is given at its start.

use super::{Case, NEVER, OUTSIDE};

pub(super) const CASES: &[Case] = &[
    // The second numbering of system calls that some kernels have.
    Case::new(
        "x32-open",
        "\
if COLUMN: print('missing')
else: t(lambda: sc(0x40000000 | 257, CWD, VICTIM, os.O_WRONLY))",
        "ENOSYS",
    ),
    Case::new(
        "x32-mount",
        "\
if COLUMN: print('missing')
else: t(lambda: sc(0x40000000 | 165, 'none', '/', 0, 0, 0))",
        "ENOSYS",
    ),
    // The door of 32-bit programs: a path below 4 GiB, and `open` by its number there.
    Case::new(
        "int-80",
        "\
if COLUMN: print('missing')
else:
    code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | 0x20, 7)
    code.write(bytes.fromhex('5389f889f389d131d2cd805bc3'))
    code_at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    libc.mmap.restype = ctypes.c_void_p
    low = libc.mmap(None, ctypes.c_size_t(4096), 3, 0x62, -1, ctypes.c_long(0))
    ctypes.memmove(low, VICTIM.encode() + b'\\0', len(VICTIM) + 1)
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_int)(code_at)
    in_child(lambda: os.write(call(5, low, os.O_WRONLY), b'after'))",
        "SIGSYS",
    ),
    Case::new(
        "number-with-high-bits",
        "t(lambda: sc(number('chroot') | 1 << 32, '.'))",
        "EPERM|ENOSYS",
    )
    .seen(&[("use", "chroot", NEVER)]),
    Case::new(
        "request-with-high-bits",
        "t(lambda: sc('ioctl', 0, 0x5412 | 1 << 32, b'x'))",
        "EPERM",
    )
    .seen(&[("use", "TIOCSTI", NEVER)]),
    Case::new(
        "flags-with-high-bits",
        "t(lambda: sc('openat', CWD, VICTIM, os.O_WRONLY | 1 << 32, 0))",
        "EROFS",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new(
        "directory-with-high-bits",
        "t(lambda: sc('openat', (1 << 32) - 100, VICTIM, os.O_WRONLY, 0))",
        "EROFS",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new("name-that-is-nowhere", "t(lambda: sc('openat', CWD, 1, os.O_WRONLY, 0))", "EFAULT"),
    Case::new(
        "name-at-the-end-of-memory",
        "\
libc.mmap.restype = ctypes.c_void_p
a = libc.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, ctypes.c_long(0))
libc.munmap(ctypes.c_void_p(a + 4096), ctypes.c_size_t(4096))
name = VICTIM.encode() + b'\\0'
ctypes.memmove(a + 4096 - len(name), name, len(name))
t(lambda: sc('openat', CWD, ctypes.c_void_p(a + 4096 - len(name)), os.O_WRONLY, 0))
ctypes.memset(a, 47, 4096)
t(lambda: sc('openat', CWD, ctypes.c_void_p(a + 4000), os.O_WRONLY, 0))",
        "EROFS EFAULT",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new(
        "name-that-is-too-long",
        "t(lambda: sc('openat', CWD, '/.' * 2047 + VICTIM, os.O_WRONLY, 0))",
        "ENAMETOOLONG",
    ),
    Case::new(
        "name-that-is-nearly-too-long",
        "\
n = (4090 - len(VICTIM)) // 2
t(lambda: sc('openat', CWD, '/.' * n + VICTIM, os.O_WRONLY, 0))",
        "EROFS",
    )
    .seen(&[("write", "{out}/victim", OUTSIDE)]),
    Case::new("name-that-is-empty", "t(lambda: sc('openat', CWD, '', os.O_WRONLY, 0))", "ENOENT"),
    Case::new(
        "descriptors-written-to",
        "t(lambda: os.write(7, b'after'))\nt(lambda: os.ftruncate(9, 0))\n\
         t(lambda: w('victim', dir_fd=8))",
        "EBADF EBADF EBADF",
    ),
    Case::new(
        "descriptors",
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) > 3))",
        "[]",
    ),
    Case::new(
        "rights",
        "\
lines = open('/proc/self/status').read().splitlines()
none = sum(l.startswith('Cap') and l.endswith('0' * 16) for l in lines)
print(none, 'NoNewPrivs:\\t1' in lines)",
        "5 True",
    ),
    Case::new(
        "more-rights",
        "\
t(lambda: os.setuid(0 if os.getuid() else 1))
t(lambda: os.setgroups([0]))",
        "EPERM|EINVAL EPERM",
    ),
    Case::new(
        "filter-taken-off",
        "print(libc.prctl(22, 0, 0, 0, 0), libc.prctl(38, 0, 0, 0, 0))",
        "-1 -1",
    ),
    Case::new(
        "told-what-confines-it",
        "e = os.environ\nprint(e['CODEX_SANDBOX'], e['CODEX_SANDBOX_NETWORK_DISABLED'])",
        "linux 1",
    ),
    Case::new(
        "limits-raised",
        "\
s, h = resource.getrlimit(resource.RLIMIT_NOFILE)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (h, h + 1)); print('done')
except ValueError: print('refused')",
        "refused",
    ),
];
