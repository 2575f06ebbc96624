//! Ways to change a file without writing to it.

use super::{Case, NEVER, OUTSIDE};

const CHANGE: &[(&str, &str, &str)] = &[("change", "{out}/victim", OUTSIDE)];
const CHANGE_LINK: &[(&str, &str, &str)] = &[("change", "{out}/link", OUTSIDE)];

pub(super) const CASES: &[Case] = &[
    Case::new("chmod", "t(lambda: sc('chmod', VICTIM, 0o777))", "EROFS").seen(CHANGE),
    Case::new("fchmod", "t(lambda: os.fchmod(readable(), 0o777))", "EROFS").seen(CHANGE),
    Case::new("fchmodat", "t(lambda: sc('fchmodat', readable(OUT), 'victim', 0o777))", "EROFS")
        .seen(CHANGE),
    Case::new("fchmodat2", "t(lambda: sc('fchmodat2', CWD, VICTIM, 0o777, 0))", "EROFS")
        .seen(CHANGE),
    Case::new(
        "fchmodat2-by-descriptor",
        "f = os.open(VICTIM, os.O_PATH)\n\
         t(lambda: sc('fchmodat2', f, '', 0o777, EMPTY_PATH))",
        "EROFS",
    )
    .seen(CHANGE),
    Case::new(
        "chmod-through-link",
        "os.symlink(VICTIM, 'soft')\nt(lambda: os.chmod('soft', 0o777))",
        "EROFS",
    )
    .seen(CHANGE),
    Case::new("chmod-directory", "t(lambda: os.chmod(OUT, 0o777))", "EROFS")
        .seen(&[("change", "{out}", OUTSIDE)]),
    Case::new("chown", "t(lambda: sc('chown', VICTIM, os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE),
    Case::new("lchown", "t(lambda: os.lchown(OUT + '/link', os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE_LINK),
    Case::new("fchown", "t(lambda: os.fchown(readable(), os.getuid(), os.getgid()))", "EROFS")
        .seen(CHANGE),
    Case::new(
        "fchownat",
        "t(lambda: sc('fchownat', readable(OUT), 'victim', os.getuid(), os.getgid(), 0))",
        "EROFS",
    )
    .seen(CHANGE),
    Case::new(
        "chown-drops-set-user-id",
        "t(lambda: os.chown(OUT + '/program', -1, os.getgid()))",
        "EROFS",
    )
    .seen(&[("change", "{out}/program", OUTSIDE)]),
    // In a root nobody but the filter is in the way.
    Case::new(
        "set-user-id-of-an-own-file",
        "w('left', os.O_WRONLY | os.O_CREAT)\nt(lambda: os.chmod('left', 0o4755))",
        "EPERM",
    )
    .seen(&[("change", "{ws}/left", NEVER)]),
    Case::new(
        "set-user-id-from-the-beginning",
        "t(lambda: os.open('left', os.O_WRONLY | os.O_CREAT, 0o4755))",
        "EPERM",
    )
    .seen(&[("change", "{ws}/left", NEVER)]),
    Case::new("utime", "t(lambda: sc('utime', VICTIM, None))", "EROFS").seen(CHANGE),
    Case::new("utimes", "t(lambda: sc('utimes', VICTIM, None))", "EROFS").seen(CHANGE),
    Case::new("futimesat", "t(lambda: sc('futimesat', readable(OUT), 'victim', None))", "EROFS")
        .seen(CHANGE),
    Case::new("utimensat", "t(lambda: os.utime(VICTIM, (1, 1)))", "EROFS").seen(CHANGE),
    Case::new("futimens", "t(lambda: os.utime(readable(), (1, 1)))", "EROFS").seen(CHANGE),
    Case::new(
        "times-of-a-link",
        "t(lambda: os.utime(OUT + '/link', (1, 1), follow_symlinks=False))",
        "EROFS",
    )
    .seen(CHANGE_LINK),
    // These changes are made by the supervisor where Landlock has no rule on them, with what it has seen.
    Case::new(
        "mode-by-a-name-that-changes",
        "name = ctypes.create_string_buffer((WS + '/file').encode() + bytes(200))\n\
         good, bad = (WS + '/file').encode() + b'\\0', VICTIM.encode() + b'\\0'\n\
         def flip():\n    ctypes.memmove(name, good, len(good))\n    \
         ctypes.memmove(name, bad, len(bad))\n\
         race(flip, lambda: sc('fchmodat', CWD, name, 0o777), 500)",
        "",
    )
    .seen(CHANGE),
    Case::new(
        "mode-by-a-descriptor-that-is-swapped",
        "own, other = readable('file'), readable()\ntarget = os.dup(own)\n\
         def flip(): os.dup2(own, target); os.dup2(other, target)\n\
         race(flip, lambda: sc('fchmod', target, 0o777), 500)",
        "",
    )
    .seen(CHANGE),
    Case::new(
        "mode-by-a-link-that-is-swapped",
        "os.symlink('file', 'soft')\n\
         def flip():\n    os.symlink('file', 'n'); os.rename('n', 'soft')\n    \
         os.symlink(VICTIM, 'n'); os.rename('n', 'soft')\n\
         race(flip, lambda: os.chmod('soft', 0o777), 500)",
        "",
    )
    .seen(CHANGE),
    Case::new(
        "mode-by-own-descriptor-link",
        "f = os.open(VICTIM, os.O_PATH)\nt(lambda: os.chmod(f'/proc/self/fd/{f}', 0o777))",
        "EROFS",
    )
    .seen(CHANGE),
    Case::new(
        "mode-far-down",
        "os.chdir(OUT)\nt(lambda: os.chmod('sub/../' * 500 + 'victim', 0o777))",
        "EROFS",
    )
    .seen(CHANGE),
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
