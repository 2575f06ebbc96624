"""What every attempt begins with. `t(attempt)` makes one attempt and prints how it was answered: the
name of the error, or `done`."""

import contextlib, ctypes, errno, fcntl, mmap, os, resource, signal, socket, stat, struct, sys, threading, time

OUT, WS, BASE = (os.path.realpath(os.environ[name]) for name in ("OUT", "WS", "BASE"))
VICTIM, INNER, SUB = OUT + "/victim", OUT + "/sub/inner", OUT + "/sub"
CANARY, PORT = int(os.environ.get("CANARY", 0)), int(os.environ.get("PORT", 0))
ABSTRACT = os.environ.get("ABSTRACT", "")
CWD, EMPTY_PATH, NOFOLLOW = -100, 0x1000, 0x100

# Numbers for x86-64 and, where it differs, for aarch64.
NUMBERS = {
    "ioctl": (16, 29), "clone": (56, 220), "open": (2, None), "creat": (85, None),
    "truncate": (76, 45), "mkdir": (83, None), "rmdir": (84, None), "unlink": (87, None),
    "rename": (82, None), "link": (86, None), "symlink": (88, None), "mknod": (133, None),
    "chmod": (90, None), "chown": (92, None), "lchown": (94, None), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "fchownat": (260, 54), "renameat2": (316, 276), "linkat": (265, 37),
    "openat2": (437, 437), "openat": (257, 56), "setxattrat": (463, 463),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "copy_file_range": (326, 285), "splice": (275, 76),
    "tgkill": (234, 131), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "prlimit64": (302, 261), "ioprio_set": (251, 30),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "process_madvise": (440, 440),
    "sched_setattr": (314, 274), "get_robust_list": (274, 100), "perf_event_open": (298, 241),
    "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "fanotify_init": (300, 262),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "unshare": (272, 97),
    "setns": (308, 268), "clone3": (435, 435), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "syslog": (103, 116), "sethostname": (170, 161),
    "setdomainname": (171, 162), "vhangup": (153, 58), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "uselib": (134, None),
    "sysfs": (139, None), "socket": (41, 198), "socketpair": (53, 199), "sendmmsg": (307, 269),
    "getpid": (39, 172), "fchmod": (91, 52), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "lsm_set_self_attr": (460, 460),
    "mq_timedreceive": (243, 183), "memfd_secret": (447, 447),
}
COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


class Missing(Exception):
    """This machine has no such thing."""


def there(path):
    if not os.path.exists(path):
        raise Missing
    return path


def number(name):
    found = NUMBERS[name][COLUMN]
    if found is None:
        raise Missing
    return found


def sc(call, *arguments):
    """Makes a system call by its name or number, past the C library."""
    call = number(call) if isinstance(call, str) else call
    plain = []
    for argument in arguments:
        if isinstance(argument, str):
            argument = argument.encode()
        plain.append(ctypes.c_long(argument) if isinstance(argument, int) else argument)
    answer = libc.syscall(ctypes.c_long(call), *plain)
    if answer == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return answer


def t(attempt):
    try:
        attempt()
        print("done", flush=True)
    except Missing:
        print("missing", flush=True)
    except TimeoutError as error:
        print(errno.errorcode.get(error.errno or 0, "timeout"), flush=True)
    except OSError as error:
        print(errno.errorcode.get(error.errno, "unknown"), flush=True)


def w(path, flags=os.O_WRONLY, **more):
    """Opens something and writes to it if that is allowed."""
    os.write(os.open(path, flags, **more), b"after")


def readable(path=None):
    return os.open(path or VICTIM, os.O_RDONLY)


def in_child(work):
    """How a child that does this ends: its exit code, or the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    print(signal.Signals(-code).name if code < 0 else errno.errorcode.get(code, "done"), flush=True)


def connect(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(5)
        s.connect(address)
        s.send(b"after")


def udp():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def race(flip, attempt, rounds):
    """Makes an attempt again and again while another thread flips what it is about: at least so often,
    and until it was refused once, so that a busy machine on which the other thread hardly runs has its
    race too. Where nothing refuses it, that ends after a while. Who looked may have seen the other one each
    time that it was refused, so that nothing was to be reported: at last it is made without a race, on either."""
    over = []
    refused = False
    sys.setswitchinterval(1e-6)

    def flipping():
        while not over:
            flip()

    thread = threading.Thread(target=flipping)
    thread.start()
    patience = time.monotonic() + 5
    while rounds > 0 or (not refused and time.monotonic() < patience):
        rounds -= 1
        try:
            attempt()
        except OSError as error:
            refused = refused or error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    over.append(True)
    thread.join()
    for _ in range(2):
        flip()
        with contextlib.suppress(OSError):
            attempt()
