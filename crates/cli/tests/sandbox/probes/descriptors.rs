//! Ways to write with a descriptor that was opened for reading. The kernel itself refuses most of
//! them, and then the cage has nothing to report.

use super::{Case, OUTSIDE};

const WRITE: &[(&str, &str, &str)] = &[("write", "{out}/victim", OUTSIDE)];

pub(super) const CASES: &[Case] = &[
    Case::new("reopened", "f = readable()\nt(lambda: w(f'/proc/self/fd/{f}'))", "EROFS")
        .seen(WRITE),
    Case::new("reopened-as-dev-fd", "f = readable()\nt(lambda: w(f'/dev/fd/{f}'))", "EROFS")
        .seen(WRITE),
    Case::new(
        "reopened-path-only",
        "f = os.open(VICTIM, os.O_PATH)\nt(lambda: w(f'/proc/self/fd/{f}'))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new(
        "reopened-by-a-child",
        "f = readable()\nme = os.getpid()\nin_child(lambda: w(f'/proc/{me}/fd/{f}'))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new(
        "truncated-by-its-name",
        "f = readable()\nt(lambda: os.truncate(f'/proc/self/fd/{f}', 0))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new("ftruncate", "t(lambda: os.ftruncate(readable(), 0))", "EINVAL|EBADF"),
    Case::new("fallocate", "t(lambda: os.posix_fallocate(readable(), 0, 100))", "EBADF"),
    Case::new("write", "t(lambda: os.write(readable(), b'after'))", "EBADF"),
    Case::new("pwritev", "t(lambda: os.pwritev(readable(), [b'after'], 0))", "EBADF"),
    Case::new(
        "copy-file-range",
        "t(lambda: os.copy_file_range(readable('file'), readable(), 6))",
        "EBADF",
    ),
    Case::new("sendfile", "t(lambda: os.sendfile(readable(), readable('file'), 0, 6))", "EBADF"),
    Case::new(
        "splice",
        "r, p = os.pipe()\nos.write(p, b'after')\n\
         t(lambda: sc('splice', r, None, readable(), None, 5, 0))",
        "EBADF",
    ),
    Case::new(
        "shared-mapping",
        "t(lambda: mmap.mmap(readable(), 6, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))",
        "EACCES",
    ),
    Case::new(
        "mapping-made-writable",
        "m = mmap.mmap(readable(), 6, mmap.MAP_SHARED, mmap.PROT_READ)\n\
         libc.mmap.restype = ctypes.c_void_p\n\
         a = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, readable(), ctypes.c_long(0))\n\
         def protect():\n    \
         if libc.mprotect(ctypes.c_void_p(a), ctypes.c_size_t(4096), 3): \
         raise OSError(ctypes.get_errno(), '')\nt(protect)",
        "EACCES",
    ),
    // A private copy may be written to, and stays one.
    Case::new(
        "private-mapping",
        "def change():\n    m = mmap.mmap(readable(), 6, mmap.MAP_PRIVATE, 3)\n    \
         m[:5] = b'after'\n\
         t(change)",
        "done",
    ),
    Case::new(
        "flags-changed",
        "f = readable()\nfcntl.fcntl(f, fcntl.F_SETFL, os.O_WRONLY | os.O_APPEND)\n\
         t(lambda: os.write(f, b'after'))",
        "EBADF",
    ),
    Case::new(
        "passed-through-a-socket",
        "a, b = socket.socketpair()\nsocket.send_fds(a, [b'x'], [readable()])\n\
         f = socket.recv_fds(b, 1, 1)[1][0]\nt(lambda: os.write(f, b'after'))\n\
         t(lambda: w(f'/proc/self/fd/{f}'))",
        "EBADF EROFS",
    )
    .seen(WRITE),
    Case::new(
        "opened-by-its-handle",
        "handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))\n\
         mount = ctypes.c_int()\n\
         sc('name_to_handle_at', CWD, VICTIM, handle, ctypes.byref(mount), 0)\n\
         t(lambda: sc('open_by_handle_at', readable(OUT), handle, os.O_WRONLY))",
        "EPERM",
    )
    .seen(&[("use", "open_by_handle_at", super::NEVER)]),
    Case::new(
        "leased-and-locked",
        "f = readable()\nt(lambda: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB))\n\
         t(lambda: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB))",
        "done EBADF",
    ),
    // The second gives up what is not there.
    Case::new(
        "leased",
        "f = readable()\nt(lambda: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK))\n\
         t(lambda: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_UNLCK))\n\
         t(lambda: fcntl.fcntl(readable(OUT), fcntl.F_NOTIFY, fcntl.DN_MODIFY))",
        "EPERM EAGAIN|EACCES|EINVAL EPERM",
    )
    .seen(&[("use", "a lease, hint or notice of changes", super::NEVER)]),
    // How long its contents last, says the file to everybody.
    Case::new(
        "hinted",
        "hint = struct.pack('Q', 5)\n\
         for request in (1036, 1038):\n    \
         t(lambda: fcntl.fcntl(readable(), request, hint))",
        "EPERM EPERM",
    )
    .seen(&[("use", "a lease, hint or notice of changes", super::NEVER)]),
    Case::new(
        "punched",
        "libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]\n\
         def punch():\n    \
         if libc.fallocate(readable(), 3, 0, 6): raise OSError(ctypes.get_errno(), '')\nt(punch)",
        "EBADF",
    ),
    Case::new(
        "cloned",
        "t(lambda: fcntl.ioctl(readable(), 0x40049409, readable('file')))",
        "EBADF|EOPNOTSUPP|EXDEV",
    ),
];
