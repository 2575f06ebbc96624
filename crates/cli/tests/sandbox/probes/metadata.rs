//! Ways to change a file without writing to it.

use super::{Case, MODES, OUTSIDE, TIMES};

const CHANGE: &[(&str, &str, &str)] = &[("change", "{out}/victim", OUTSIDE)];
const CHANGE_LINK: &[(&str, &str, &str)] = &[("change", "{out}/link", OUTSIDE)];

pub(super) const CASES: &[Case] = &[
    Case::new("chmod", "t(lambda: sc('chmod', VICTIM, 0o777))", "EROFS").seen(CHANGE).alone(MODES),
    Case::new("fchmod", "t(lambda: os.fchmod(readable(), 0o777))", "EROFS")
        .seen(CHANGE)
        .alone(MODES),
    Case::new("fchmodat", "t(lambda: sc('fchmodat', readable(OUT), 'victim', 0o777))", "EROFS")
        .seen(CHANGE)
        .alone(MODES),
    Case::new("fchmodat2", "t(lambda: sc('fchmodat2', CWD, VICTIM, 0o777, 0))", "EROFS")
        .seen(CHANGE)
        .alone(MODES),
    Case::new(
        "fchmodat2-by-descriptor",
        "f = os.open(VICTIM, os.O_PATH)\n\
         t(lambda: sc('fchmodat2', f, '', 0o777, EMPTY_PATH))",
        "EROFS",
    )
    .seen(CHANGE)
    .alone(MODES),
    Case::new(
        "chmod-through-link",
        "os.symlink(VICTIM, 'soft')\nt(lambda: os.chmod('soft', 0o777))",
        "EROFS",
    )
    .seen(CHANGE)
    .alone(MODES),
    Case::new("chmod-directory", "t(lambda: os.chmod(OUT, 0o777))", "EROFS")
        .seen(&[("change", "{out}", OUTSIDE)])
        .alone(MODES),
    Case::new("chown", "t(lambda: sc('chown', VICTIM, os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE)
        .alone(MODES),
    Case::new("lchown", "t(lambda: os.lchown(OUT + '/link', os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE_LINK)
        .alone(MODES),
    Case::new("fchown", "t(lambda: os.fchown(readable(), os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE)
        .alone(MODES),
    Case::new(
        "fchownat",
        "t(lambda: sc('fchownat', readable(OUT), 'victim', os.getuid(), os.getgid(), 0))",
        "EROFS",
    )
    .seen(CHANGE)
    .alone(MODES),
    Case::new(
        "chown-drops-set-user-id",
        "t(lambda: os.chown(OUT + '/program', -1, os.getgid()))",
        "EROFS",
    )
    .seen(&[("change", "{out}/program", OUTSIDE)])
    .alone(MODES),
    Case::new("utime", "t(lambda: sc('utime', VICTIM, None))", "EROFS").seen(CHANGE).alone(TIMES),
    Case::new("utimes", "t(lambda: sc('utimes', VICTIM, None))", "EROFS").seen(CHANGE).alone(TIMES),
    Case::new("futimesat", "t(lambda: sc('futimesat', readable(OUT), 'victim', None))", "EROFS")
        .seen(CHANGE)
        .alone(TIMES),
    Case::new("utimensat", "t(lambda: os.utime(VICTIM, (1, 1)))", "EROFS")
        .seen(CHANGE)
        .alone(TIMES),
    Case::new("futimens", "t(lambda: os.utime(readable(), (1, 1)))", "EROFS")
        .seen(CHANGE)
        .alone(TIMES),
    Case::new(
        "times-of-a-link",
        "t(lambda: os.utime(OUT + '/link', (1, 1), follow_symlinks=False))",
        "EROFS",
    )
    .seen(CHANGE_LINK)
    .alone(TIMES),
    Case::new("setxattr", "t(lambda: os.setxattr(VICTIM, 'user.x', b'1'))", "EROFS").seen(CHANGE),
    Case::new("fsetxattr", "t(lambda: os.setxattr(readable(), 'user.x', b'1'))", "EROFS")
        .seen(CHANGE),
    Case::new(
        "lsetxattr",
        "t(lambda: os.setxattr(VICTIM, 'user.x', b'1', follow_symlinks=False))",
        "EROFS",
    )
    .seen(CHANGE),
    Case::new("removexattr", "t(lambda: os.removexattr(VICTIM, 'user.x'))", "EROFS").seen(CHANGE),
    Case::new("fremovexattr", "t(lambda: os.removexattr(readable(), 'user.x'))", "EROFS")
        .seen(CHANGE),
    Case::new(
        "setxattrat",
        "v = ctypes.create_string_buffer(b'1')\n\
         a = ctypes.create_string_buffer(struct.pack('QII', ctypes.addressof(v), 1, 0))\n\
         t(lambda: sc('setxattrat', CWD, VICTIM, 0, b'user.x', a, 16))",
        "EROFS|ENOSYS",
    )
    .seen(CHANGE),
    // The mount refuses these by itself, and nobody is asked.
    Case::new(
        "flags",
        "t(lambda: fcntl.ioctl(readable(), 0x40086602, struct.pack('l', 0x80)))",
        "EROFS|ENOTTY|EOPNOTSUPP",
    ),
    Case::new(
        "flags-of-the-project",
        "t(lambda: fcntl.ioctl(readable(), 0x401c5820, struct.pack('I', 0x40) + bytes(24)))",
        "EROFS|ENOTTY|EOPNOTSUPP|EINVAL",
    ),
    Case::new(
        "generation",
        "t(lambda: fcntl.ioctl(readable(), 0x40087602, struct.pack('l', 7)))",
        "EROFS|ENOTTY|EOPNOTSUPP",
    ),
    Case::new(
        "file_setattr",
        "t(lambda: sc('file_setattr', CWD, VICTIM, struct.pack('Q', 0x40) + bytes(16), 24, 0))",
        "EROFS|ENOSYS|EOPNOTSUPP|EINVAL",
    ),
    Case::new("times-by-opening", "t(lambda: os.read(readable(), 6))", "done"),
];
