//! Ways to write, create, remove, rename and link by a path.

use super::{Case, OUTSIDE};

const WRITE: &[(&str, &str, &str)] = &[("write", "{out}/victim", OUTSIDE)];
const NEW: &[(&str, &str, &str)] = &[("create", "{out}/new", OUTSIDE)];
const REMOVE: &[(&str, &str, &str)] = &[("remove", "{out}/victim", OUTSIDE)];
const RENAME: &[(&str, &str, &str)] = &[("rename", "{out}/victim", OUTSIDE)];

pub(super) const CASES: &[Case] = &[
    Case::new("write", "t(lambda: w(VICTIM))", "EROFS").seen(WRITE),
    Case::new("write-append", "t(lambda: w(VICTIM, os.O_WRONLY | os.O_APPEND))", "EROFS")
        .seen(WRITE),
    Case::new("write-and-read", "t(lambda: w(VICTIM, os.O_RDWR))", "EROFS").seen(WRITE),
    Case::new("write-create", "t(lambda: w(VICTIM, os.O_WRONLY | os.O_CREAT))", "EROFS")
        .seen(WRITE),
    Case::new("truncate-on-open", "t(lambda: os.open(VICTIM, os.O_RDONLY | os.O_TRUNC))", "EROFS")
        .seen(WRITE),
    Case::new("truncate", "t(lambda: sc('truncate', VICTIM, 0))", "EROFS").seen(WRITE),
    Case::new("creat", "t(lambda: sc('creat', VICTIM, 0o600))", "EROFS").seen(WRITE),
    Case::new("old-open", "t(lambda: sc('open', VICTIM, os.O_WRONLY, 0))", "EROFS").seen(WRITE),
    // Its flags and its mode are in memory, where another thread could change them after a look.
    Case::new(
        "openat2",
        "how = ctypes.create_string_buffer(struct.pack('QQQ', os.O_WRONLY, 0, 0x04))\n\
         t(lambda: sc('openat2', CWD, VICTIM, how, 24))",
        "ENOSYS",
    ),
    Case::new(
        "openat2-beneath",
        "how = ctypes.create_string_buffer(struct.pack('QQQ', os.O_WRONLY, 0, 0x08))\n\
         d = os.open(OUT, os.O_PATH | os.O_DIRECTORY)\n\
         t(lambda: sc('openat2', d, 'victim', how, 24))",
        "ENOSYS",
    ),
    Case::new(
        "openat2-set-user-id",
        "how = ctypes.create_string_buffer(struct.pack('QQQ', os.O_WRONLY | os.O_CREAT, 0o4755, 0))\n\
         t(lambda: sc('openat2', CWD, 'left', how, 24))",
        "ENOSYS",
    ),
    Case::new("relative", "t(lambda: w('../outside/victim'))", "EROFS").seen(WRITE),
    Case::new("relative-maze", "t(lambda: w('../ws/..//outside/./sub/../victim'))", "EROFS")
        .seen(WRITE),
    Case::new("after-chdir", "os.chdir(OUT)\nt(lambda: w('victim'))", "EROFS").seen(WRITE),
    Case::new("after-fchdir", "os.fchdir(readable(SUB))\nt(lambda: w('../victim'))", "EROFS")
        .seen(WRITE),
    Case::new("directory", "t(lambda: w('victim', dir_fd=readable(OUT)))", "EROFS").seen(WRITE),
    Case::new(
        "directory-by-path-only",
        "t(lambda: w('victim', dir_fd=os.open(OUT, os.O_PATH)))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new("own-link", "os.symlink(VICTIM, 'soft')\nt(lambda: w('soft'))", "EROFS").seen(WRITE),
    Case::new(
        "links-in-a-row",
        "os.symlink(OUT, 'a')\nos.symlink('a/link', 'b')\nt(lambda: w('b'))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new("linked-directory", "os.symlink(OUT, 'd')\nt(lambda: w('d/victim'))", "EROFS")
        .seen(WRITE),
    Case::new(
        "dangling-link",
        "os.symlink(OUT + '/new', 'soft')\nt(lambda: w('soft', os.O_WRONLY | os.O_CREAT))",
        "EROFS",
    )
    .seen(NEW),
    Case::new("own-root", "t(lambda: w('/proc/self/root' + VICTIM))", "EROFS").seen(WRITE),
    Case::new("threads-root", "t(lambda: w('/proc/thread-self/root' + VICTIM))", "EROFS")
        .seen(WRITE),
    Case::new("own-directory", "t(lambda: w('/proc/self/cwd/../outside/victim'))", "EROFS")
        .seen(WRITE),
    Case::new(
        "own-descriptor-of-a-directory",
        "d = readable(OUT)\nt(lambda: w(f'/proc/self/fd/{d}/victim'))",
        "EROFS",
    )
    .seen(WRITE),
    Case::new("dev-fd", "d = readable(OUT)\nt(lambda: w(f'/dev/fd/{d}/victim'))", "EROFS")
        .seen(WRITE),
    Case::new(
        "childs-root",
        "child = os.fork()\nif child == 0: time.sleep(1000)\n\
         t(lambda: w(f'/proc/{child}/root{VICTIM}'))\nos.kill(child, 9)\nos.wait()",
        "EROFS",
    )
    .seen(WRITE),
    Case::new(
        "from-a-thread",
        "thread = threading.Thread(target=t, args=(lambda: w(VICTIM),))\n\
         thread.start()\nthread.join()",
        "EROFS",
    )
    .seen(WRITE),
    Case::new(
        "from-a-program-in-memory",
        "m = os.memfd_create('x', 0)\nos.write(m, open('/bin/sh', 'rb').read())\n\
         child = os.fork()\n\
         if child == 0: os.dup2(os.open('/dev/null', os.O_WRONLY), 2); os.execve(\
         f'/proc/self/fd/{m}', ['sh', '-c', 'echo after > \"$0\"', VICTIM], {})\n\
         print('done' if os.waitpid(child, 0)[1] == 0 else 'refused')",
        "refused",
    )
    .seen(WRITE),
    Case::new("create", "t(lambda: w(OUT + '/new', os.O_WRONLY | os.O_CREAT))", "EROFS").seen(NEW),
    Case::new(
        "create-exclusively",
        "t(lambda: w(OUT + '/new', os.O_WRONLY | os.O_CREAT | os.O_EXCL))",
        "EROFS",
    )
    .seen(NEW),
    // The file is in the way, not the cage.
    Case::new(
        "create-what-is-there",
        "t(lambda: w(VICTIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL))",
        "EEXIST",
    ),
    Case::new("write-what-is-not-there", "t(lambda: w(OUT + '/new'))", "ENOENT"),
    Case::new("write-to-a-directory", "t(lambda: w(SUB))", "EISDIR"),
    Case::new("create-in-the-root", "t(lambda: w('/new', os.O_WRONLY | os.O_CREAT))", "EROFS")
        .seen(&[("create", "/new", OUTSIDE)]),
    Case::new("create-beside-the-workspace", "t(lambda: os.mkdir('../new'))", "EROFS").seen(&[(
        "create",
        "{base}/new",
        OUTSIDE,
    )]),
    Case::new("unnamed-file", "t(lambda: os.open(OUT, os.O_TMPFILE | os.O_RDWR))", "EROFS")
        .seen(&[("create", "{out}", OUTSIDE)]),
    Case::new(
        "unnamed-file-linked-out",
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR)\n\
         t(lambda: sc('linkat', CWD, f'/proc/self/fd/{f}', CWD, OUT + '/new', 0x400))",
        "EROFS",
    )
    .seen(NEW),
    Case::new(
        "unnamed-file-linked-by-descriptor",
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR)\n\
         t(lambda: sc('linkat', f, '', CWD, OUT + '/new', EMPTY_PATH))",
        "EROFS|ENOENT",
    )
    .seen(NEW),
    Case::new("mkdir", "t(lambda: sc('mkdir', OUT + '/new', 0o755))", "EROFS").seen(NEW),
    Case::new("mkdirat", "t(lambda: os.mkdir('new', dir_fd=readable(OUT)))", "EROFS").seen(NEW),
    Case::new("mkdir-with-slash", "t(lambda: os.mkdir(OUT + '/new/'))", "EROFS").seen(NEW),
    Case::new("mkdir-what-is-there", "t(lambda: os.mkdir(SUB))", "EEXIST"),
    Case::new("named-pipe", "t(lambda: os.mkfifo(OUT + '/new'))", "EROFS").seen(NEW),
    Case::new(
        "device",
        "t(lambda: os.mknod(OUT + '/new', stat.S_IFCHR | 0o666, os.makedev(1, 5)))",
        "EROFS",
    )
    .seen(NEW),
    // Nothing on a disk would change, but somebody reads at the other end.
    Case::new(
        "named-pipe-that-is-there",
        "t(lambda: w(OUT + '/pipe', os.O_RDWR | os.O_NONBLOCK))",
        "EACCES",
    )
    .seen(&[("write", "{out}/pipe", OUTSIDE)]),
    Case::new("symlink", "t(lambda: os.symlink('x', OUT + '/new'))", "EROFS").seen(NEW),
    Case::new("symlinkat", "t(lambda: os.symlink('x', 'new', dir_fd=readable(OUT)))", "EROFS")
        .seen(NEW),
    Case::new("link-outside", "t(lambda: os.link(VICTIM, OUT + '/new'))", "EROFS").seen(NEW),
    Case::new("link-own-file-out", "t(lambda: os.link('file', OUT + '/new'))", "EROFS").seen(NEW),
    // Two mounts, between which nothing can be linked; nothing closed would have been written to.
    Case::new("link-in-and-write", "t(lambda: os.link(VICTIM, 'hard'))", "EXDEV"),
    Case::new(
        "link-descriptor-in",
        "f = readable()\nt(lambda: os.link(f'/proc/self/fd/{f}', 'hard', follow_symlinks=True))",
        "EXDEV",
    ),
    Case::new("unlink", "t(lambda: sc('unlink', VICTIM))", "EROFS").seen(REMOVE),
    Case::new("unlinkat", "t(lambda: os.unlink('victim', dir_fd=readable(OUT)))", "EROFS")
        .seen(REMOVE),
    Case::new("unlink-link", "t(lambda: os.unlink(OUT + '/link'))", "EROFS").seen(&[(
        "remove",
        "{out}/link",
        OUTSIDE,
    )]),
    Case::new("rmdir", "t(lambda: sc('rmdir', OUT + '/empty'))", "EROFS").seen(&[(
        "remove",
        "{out}/empty",
        OUTSIDE,
    )]),
    Case::new("rmdir-by-descriptor", "t(lambda: os.rmdir('empty', dir_fd=readable(OUT)))", "EROFS")
        .seen(&[("remove", "{out}/empty", OUTSIDE)]),
    Case::new("rename", "t(lambda: sc('rename', VICTIM, OUT + '/new'))", "EROFS").seen(RENAME),
    Case::new("rename-over", "t(lambda: os.rename(VICTIM, INNER))", "EROFS").seen(RENAME),
    Case::new("rename-exchange", "t(lambda: sc('renameat2', CWD, VICTIM, CWD, SUB, 2))", "EROFS")
        .seen(RENAME),
    Case::new(
        "rename-without-replacing",
        "t(lambda: sc('renameat2', CWD, VICTIM, CWD, OUT + '/new', 1))",
        "EROFS",
    )
    .seen(RENAME),
    Case::new("rename-directory", "t(lambda: os.rename(SUB, OUT + '/new'))", "EROFS").seen(&[(
        "rename",
        "{out}/sub",
        OUTSIDE,
    )]),
    Case::new("rename-in", "t(lambda: os.rename(VICTIM, 'stolen'))", "EXDEV").seen(RENAME),
    Case::new("rename-out", "t(lambda: os.rename('file', OUT + '/new'))", "EXDEV").seen(&[(
        "rename",
        "{out}/new",
        OUTSIDE,
    )]),
    Case::new("rename-over-from-inside", "t(lambda: os.rename('file', VICTIM))", "EXDEV")
        .seen(RENAME),
    Case::new(
        "exchange-with-inside",
        "t(lambda: sc('renameat2', CWD, 'file', CWD, VICTIM, 2))",
        "EXDEV",
    )
    .seen(RENAME),
    Case::new("rename-the-workspace", "t(lambda: os.rename(WS, BASE + '/moved'))", "EROFS|EBUSY")
        .seen(&[("rename", "{ws}", OUTSIDE)]),
    Case::new("remove-the-workspace", "t(lambda: os.rmdir(WS))", "EROFS|EBUSY")
        .seen(&[("remove", "{ws}", OUTSIDE)]),
    Case::new(
        "link-that-is-swapped",
        "os.symlink('file', 'inside'); os.symlink(VICTIM, 'outside')\n\
         def flip():\n    os.symlink('file', 'n'); os.rename('n', 'soft')\n    \
         os.symlink(VICTIM, 'n'); os.rename('n', 'soft')\n\
         race(flip, lambda: w('soft'), 500)",
        "",
    )
    .seen(WRITE),
    Case::new(
        "directory-that-is-swapped",
        "os.mkdir('d'); os.mkdir('e'); open('d/victim', 'w').close()\nos.symlink(OUT, 'l')\n\
         def flip():\n    sc('renameat2', CWD, 'd', CWD, 'l', 2)\n\
         race(flip, lambda: w('d/victim'), 500)",
        "",
    )
    .seen(WRITE),
    Case::new(
        "name-that-is-changed-while-it-is-read",
        "name = ctypes.create_string_buffer((WS + '/file').encode() + bytes(200))\n\
         good, bad = (WS + '/file').encode() + b'\\0', VICTIM.encode() + b'\\0'\n\
         def flip():\n    ctypes.memmove(name, good, len(good))\n    \
         ctypes.memmove(name, bad, len(bad))\n\
         race(flip, lambda: os.write(sc('openat', CWD, name, os.O_WRONLY, 0), b'after'), 500)",
        "",
    )
    .seen(WRITE),
];
