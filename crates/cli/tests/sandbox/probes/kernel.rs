//! The kernel's own interfaces, switches and devices. No attempt would do harm if it were let
//! through: arguments are wrong where right ones would, and values are those that are there already.

use super::{Case, NEVER, OUTSIDE};

/// An attempt on a call that is refused whatever its arguments.
macro_rules! closed {
    ($name:literal) => {
        closed!($name, "")
    };
    ($name:literal, $arguments:literal) => {
        Case::new($name, concat!("t(lambda: sc('", $name, "', ", $arguments, "))"), "EPERM")
            .seen(&[("use", $name, NEVER)])
    };
}

pub(super) const CASES: &[Case] =
    &[
        closed!("mount", "'none', '/', None, 0, None"),
        closed!("umount2", "'/nowhere', 0"),
        closed!("pivot_root", "'.', '.'"),
        closed!("chroot", "'.'"),
        closed!("open_tree", "CWD, OUT, 1"),
        closed!("move_mount", "-1, '', -1, '', 0"),
        closed!("fsopen", "'tmpfs', 0"),
        closed!("fsconfig", "-1, 0, None, None, 0"),
        closed!("fsmount", "-1, 0, 0"),
        closed!("fspick", "CWD, '/', 0"),
        closed!("mount_setattr", "CWD, '/', 0, bytes(32), 32"),
        closed!("unshare", "0x10000000"),
        closed!("setns", "-1, 0"),
        closed!("bpf", "0, bytes(128), 128"),
        closed!("perf_event_open", "bytes(128), 0, -1, -1, 0"),
        closed!("userfaultfd", "0"),
        closed!("fanotify_init", "0, 0"),
        closed!("keyctl", "0, -3, 0, 0, 0"),
        closed!("add_key", "'user', 'sg-probe', 'x', 1, -2"),
        closed!("request_key", "'user', 'sg-probe', None, 0"),
        closed!("init_module", "0, 0, ''"),
        closed!("finit_module", "-1, '', 0"),
        closed!("delete_module", "'sg-no-such-module', 0"),
        closed!("kexec_load", "0, 0, 0, 0"),
        closed!("kexec_file_load", "-1, -1, 0, '', 0"),
        closed!("reboot", "0, 0, 0, 0"),
        closed!("swapon", "'/nowhere', 0"),
        closed!("swapoff", "'/nowhere'"),
        closed!("acct", "'/nowhere'"),
        closed!("quotactl", "-1, '/nowhere', 0, 0"),
        closed!("settimeofday", "None, None"),
        closed!("clock_settime", "-1, None"),
        closed!("clock_adjtime", "-1, None"),
        closed!("adjtimex", "None"),
        closed!("syslog", "-1, None, 0"),
        closed!("sethostname", "None, -1"),
        closed!("setdomainname", "None, -1"),
        closed!("vhangup", "0"),
        closed!("iopl", "0"),
        closed!("ioperm", "0, 0, 0"),
        closed!("modify_ldt", "0, None, 0"),
        closed!("uselib", "'/nowhere'"),
        closed!("sysfs", "-1"),
        // Programs look for these as a matter of course and do without, so nobody is told.
        Case::new(
            "io_uring",
            "\
t(lambda: sc('io_uring_setup', 2, bytes(120)))
t(lambda: sc('io_uring_enter', -1, 0, 0, 0, 0, 0))
t(lambda: sc('io_uring_register', -1, 0, 0, 0))",
            "EPERM EPERM EPERM",
        ),
        Case::new("clone3", "t(lambda: sc('clone3', bytes(88), 88))", "ENOSYS"),
        closed!("open_tree_attr", "CWD, OUT, 1, bytes(32), 32"),
        closed!("quotactl_fd", "-1, 0, 0, 0"),
        closed!("lsm_set_self_attr", "-1, None, 0, 0"),
        // Whatever they will do, nobody here has thought of it.
        Case::new(
            "calls-to-come",
            "for number in range(470, 490): t(lambda: sc(number, 0, 0, 0, 0, 0, 0))",
            concat!(
                "ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ",
                "ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ",
            ),
        ),
        Case::new(
            "clone-namespaces",
            "\
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    t(lambda: sc('clone', flag | 17, 0, 0, 0, 0))",
            "EPERM EPERM EPERM EPERM EPERM EPERM EPERM",
        )
        .seen(&[("use", "clone with a new namespace", NEVER)]),
        Case::new("keystrokes", "t(lambda: fcntl.ioctl(0, 0x5412, b'x'))", "EPERM")
            .seen(&[("use", "TIOCSTI", NEVER)]),
        Case::new(
            "keystrokes-into-an-own-terminal",
            "\
a, b = os.openpty()
t(lambda: fcntl.ioctl(b, 0x5412, b'x'))",
            "EPERM",
        )
        .seen(&[("use", "TIOCSTI", NEVER)]),
        Case::new("console-selection", "t(lambda: fcntl.ioctl(0, 0x541c, b'x'))", "EPERM")
            .seen(&[("use", "TIOCLINUX", NEVER)]),
        Case::new(
            "terminal-taken-away",
            "\
t(lambda: fcntl.ioctl(0, 0x540c))
t(lambda: fcntl.ioctl(0, 0x5423, struct.pack('i', 1)))
t(lambda: fcntl.ioctl(0, 0x5437))
t(lambda: fcntl.ioctl(0, 0x5457, bytes(64)))",
            "EPERM EPERM EPERM EPERM",
        )
        .seen(&[
            ("use", "TIOCEXCL", NEVER),
            ("use", "TIOCSETD", NEVER),
            ("use", "TIOCVHANGUP", NEVER),
            ("use", "TIOCSLCKTRMIOS", NEVER),
        ]),
        Case::new(
            "console-taken-away",
            "\
t(lambda: fcntl.ioctl(0, 0x4b3a, 1))
t(lambda: fcntl.ioctl(0, 0x4b45, 4))
t(lambda: fcntl.ioctl(0, 0x5606, 63))
t(lambda: fcntl.ioctl(0, 0x560b, 0))",
            "EPERM EPERM EPERM EPERM",
        )
        .seen(&[
            ("use", "KDSETMODE", NEVER),
            ("use", "KDSKBMODE", NEVER),
            ("use", "VT_ACTIVATE", NEVER),
            ("use", "VT_LOCKSWITCH", NEVER),
        ]),
        Case::new(
            "console-made-unreadable",
            "\
for request in (0x4b72, 0x4b61, 0x4b71, 0x4b67, 0x4b68, 0x4b6a, 0x5609, 0x560a, 0x5608):
    t(lambda: fcntl.ioctl(0, request, bytes(64)))",
            "EPERM EPERM EPERM EPERM EPERM EPERM EPERM EPERM EPERM",
        )
        .seen(&[
            ("use", "KDFONTOP", NEVER),
            ("use", "PIO_FONT", NEVER),
            ("use", "PIO_CMAP", NEVER),
            ("use", "PIO_UNIMAP", NEVER),
            ("use", "PIO_UNIMAPCLR", NEVER),
            ("use", "PIO_UNISCRNMAP", NEVER),
            ("use", "VT_RESIZE", NEVER),
            ("use", "VT_RESIZEX", NEVER),
            ("use", "VT_DISALLOCATE", NEVER),
        ]),
        Case::new(
            "console-with-other-keys",
            "\
for request in (0x4b32, 0x4b65, 0x4b4b, 0x4bfb, 0x4b4d, 0x4b63, 0x4b52, 0x4b36):
    t(lambda: fcntl.ioctl(0, request, bytes(64)))",
            "EPERM EPERM EPERM EPERM EPERM EPERM EPERM EPERM",
        )
        .seen(&[
            ("use", "KDSETLED", NEVER),
            ("use", "KDSKBLED", NEVER),
            ("use", "KDSKBDIACR", NEVER),
            ("use", "KDSKBDIACRUC", NEVER),
            ("use", "KDSETKEYCODE", NEVER),
            ("use", "KDSKBMETA", NEVER),
            ("use", "KDKBDREP", NEVER),
            ("use", "KDENABIO", NEVER),
        ]),
        // A path in there is one that a supervisor cannot read.
        Case::new("secret-memory", "t(lambda: sc('memfd_secret', 0))", "EPERM").seen(&[(
            "use",
            "memfd_secret",
            NEVER,
        )]),
        // A read-only mount is no obstacle to them.
        Case::new(
            "keys-of-encrypted-files",
            "\
f = readable(OUT)
t(lambda: fcntl.ioctl(f, 0xc0506617, bytes(80)))
t(lambda: fcntl.ioctl(f, 0xc0406618, bytes(64)))
t(lambda: fcntl.ioctl(f, 0xc0406619, bytes(64)))",
            "EPERM EPERM EPERM",
        )
        .seen(&[
            ("use", "FS_IOC_ADD_ENCRYPTION_KEY", NEVER),
            ("use", "FS_IOC_REMOVE_ENCRYPTION_KEY", NEVER),
            ("use", "FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS", NEVER),
        ]),
        Case::new(
            "core-pattern",
            "\
p = '/proc/sys/kernel/core_pattern'
v = open(p).read()
t(lambda: os.write(os.open(p, os.O_WRONLY), v.encode()))",
            "EROFS|EACCES",
        )
        .seen(&[("write", "/proc/sys/kernel/core_pattern", OUTSIDE)]),
        Case::new(
            "last-process-number",
            "t(lambda: w(there('/proc/sys/kernel/ns_last_pid')))",
            "EROFS|EACCES|EPERM",
        )
        .seen(&[("write", "/proc/sys/kernel/ns_last_pid", OUTSIDE)]),
        Case::new(
            "network-switch",
            "t(lambda: os.open(there('/proc/sys/net/ipv4/ip_forward'), os.O_WRONLY))",
            "EROFS|EACCES",
        )
        .seen(&[("write", "/proc/sys/net/ipv4/ip_forward", OUTSIDE)]),
        Case::new(
            "system-request",
            "t(lambda: os.open(there('/proc/sysrq-trigger'), os.O_WRONLY))",
            "EROFS|EACCES",
        )
        .seen(&[("write", "/proc/sysrq-trigger", OUTSIDE)]),
        Case::new(
            "control-groups",
            "t(lambda: os.open(there('/sys/fs/cgroup/cgroup.procs'), os.O_WRONLY))",
            "EROFS|EACCES",
        )
        .seen(&[("write", "/sys/fs/cgroup/cgroup.procs", OUTSIDE)])
        .for_root(),
        Case::new(
            "control-group-of-its-own",
            "t(lambda: os.mkdir(there('/sys/fs/cgroup') + '/sg-probe'))",
            "EROFS",
        )
        .seen(&[("create", "/sys/fs/cgroup/sg-probe", OUTSIDE)]),
        Case::new("user-map", "t(lambda: w('/proc/1/uid_map'))", "EROFS|EPERM|EACCES").seen(&[(
            "write",
            "/proc/1/uid_map",
            OUTSIDE,
        )]),
        Case::new("memory-device", "t(lambda: w('/dev/mem', os.O_RDWR))", "ENOENT"),
        Case::new("kernel-log", "t(lambda: w('/dev/kmsg'))", "ENOENT"),
        Case::new("console", "t(lambda: w('/dev/console'))", "ENOENT"),
        Case::new("virtual-machine", "t(lambda: os.open('/dev/kvm', os.O_RDWR))", "ENOENT"),
        Case::new("fuse", "t(lambda: os.open('/dev/fuse', os.O_RDWR))", "ENOENT"),
        Case::new("tunnel", "t(lambda: os.open('/dev/net/tun', os.O_RDWR))", "ENOENT"),
        Case::new(
            "disks",
            "print(sum(stat.S_ISBLK(os.stat('/dev/' + n).st_mode) for n in os.listdir('/dev')))",
            "0",
        ),
        Case::new(
            "new-device",
            "t(lambda: os.mknod('zero', stat.S_IFCHR | 0o666, os.makedev(1, 5)))",
            "EPERM",
        ),
        Case::new("new-name-in-dev", "t(lambda: w('/dev/new', os.O_WRONLY | os.O_CREAT))", "EROFS")
            .seen(&[("create", "/dev/new", OUTSIDE)]),
        // The host's own node, with the mode that it has: a change shows only in the answer.
        Case::new("mode-of-a-device", "t(lambda: os.chmod('/dev/full', 0o666))", "EROFS")
            .seen(&[("change", "/dev/full", OUTSIDE)]),
        Case::new("times-of-a-device", "t(lambda: os.utime('/dev/full'))", "EROFS").seen(&[(
            "change",
            "/dev/full",
            OUTSIDE,
        )]),
        Case::new("mode-of-standard-input", "t(lambda: os.fchmod(0, 0o666))", "EROFS").seen(&[(
            "change",
            "/dev/null",
            OUTSIDE,
        )]),
        Case::new(
            "shared-memory-of-the-host",
            "t(lambda: w('/dev/shm/sg-probe-own', os.O_WRONLY | os.O_CREAT))",
            "done",
        ),
    ];
