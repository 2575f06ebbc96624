"""Calls of many kinds on many paths, allowed and refused, in an order that is always the same."""

import ctypes, os, random, socket, stat, subprocess, sys, threading

OUT = os.environ["OUT"]
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("own/deep", exist_ok=True)
os.makedirs("links", exist_ok=True)
for name, leads in (("out", OUT), ("victim", OUT + "/victim"), ("nowhere", OUT + "/nowhere"), ("own", "../own")):
    os.symlink(leads, "links/" + name)

OUTSIDE = ["/victim", "/new", "/sub", "/sub/inner", "/link", "/missing/new", "/victim/below", "/empty/"]
PATHS = (
    [OUT + path for path in OUTSIDE]
    + ["../outside/victim", "/etc/hosts", "/usr/sg-new", "/nowhere/new", ""]
    + [".git", ".git/config", ".git/new", ".git/hooks/new", ".codex", ".codex/new", "deep/repo", "deep/repo/.git"]
    + ["own/a", "own/b", "own/deep", "own/deep/c", "own/missing/d"]
)
THROUGH = ["links/out/victim", "links/victim", "links/nowhere", "links/own/e", "links/out/sub"]


def opened(flags):
    def attempt(path):
        # A named pipe without a reader would wait for one.
        os.close(os.open(path, flags | os.O_NONBLOCK, 0o644))

    return attempt


FOLLOWING = [
    opened(os.O_WRONLY), opened(os.O_RDWR | os.O_APPEND), opened(os.O_WRONLY | os.O_CREAT),
    opened(os.O_WRONLY | os.O_CREAT | os.O_EXCL), opened(os.O_RDONLY | os.O_TRUNC),
    opened(os.O_RDONLY), opened(os.O_RDONLY | os.O_CREAT), opened(os.O_WRONLY | os.O_NOFOLLOW),
    opened(os.O_WRONLY | os.O_DIRECTORY), opened(os.O_RDWR | os.O_TMPFILE), opened(os.O_PATH),
    lambda path: os.truncate(path, 0), lambda path: os.chmod(path, 0o644),
    lambda path: os.chown(path, -1, os.getgid()), lambda path: os.utime(path),
    lambda path: os.utime(path, (1, 1)), lambda path: os.setxattr(path, "user.x", b"1"),
    lambda path: os.fchmod(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 0o644),
    lambda path: os.utime(os.open(path, os.O_RDONLY | os.O_NONBLOCK)),
    lambda path: os.stat(path), lambda path: os.access(path, os.W_OK),
]
NAMING = [
    os.mkdir, os.rmdir, os.unlink, os.mkfifo, lambda path: os.symlink("own/a", path),
    lambda path: os.link("own/a", path), lambda path: os.rename(path, OUT + "/renamed"),
    lambda path: os.rename("own/a", path), lambda path: os.rename(path, "own/stolen"),
    lambda path: os.lchown(path, -1, os.getgid()),
    lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    lambda path: libc.renameat2(-100, b"own/a", -100, path.encode(), 2),
    lambda path: libc.renameat2(-100, path.encode(), -100, b"own/b", 1),
]


def trying(attempt, path):
    try:
        attempt(path)
    except OSError:
        pass


def work(seed, rounds):
    chance = random.Random(seed)
    for _ in range(rounds):
        if chance.random() < 0.2:
            trying(chance.choice(FOLLOWING), chance.choice(THROUGH))
        else:
            trying(chance.choice(FOLLOWING + NAMING), chance.choice(PATHS))


work(1, 4000)
threads = [threading.Thread(target=work, args=(seed, 150)) for seed in (2, 3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for command in (
    "mkdir -p own/x; cp work.py own/x; cp work.py $OUT/copied; rm -rf $OUT/sub; mv $OUT/victim own/x",
    "touch $OUT/touched own/touched; ln -sf x $OUT/linked; sed -i s/b/c/ $OUT/victim; chmod -R a+w $OUT",
    "echo x > /dev/null; mktemp > own/temporary; tar cf $OUT/t.tar own",
):
    subprocess.run(["sh", "-c", command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

for family, address in (
    (socket.AF_INET, ("192.0.2.7", 80)), (socket.AF_INET6, ("2001:db8::7", 81)),
    (socket.AF_INET, ("127.0.0.1", 1)),
):
    trying(socket.socket(family).connect, address)
    trying(lambda to: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", to), address)
trying(socket.socket(socket.AF_UNIX).connect, "own/none")
trying(lambda _: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), None)
libc.unshare(0x10000000)
libc.chroot(b".")
libc.umount2(b"/nowhere", 0)
