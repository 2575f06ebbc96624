//! Ways to reach somebody.

use super::{Case, NETWORK, NEVER, SOCKET};

const STREAM: &[(&str, &str, &str)] = &[("connect", "{out}/stream", SOCKET)];

/// The addresses are those that are kept for documentation: nobody has them.
pub(super) const CASES: &[Case] = &[
    // The cage's own loopback answers, and nobody is there.
    Case::new(
        "hosts-loopback",
        "t(lambda: connect(socket.AF_INET, ('127.0.0.1', PORT)))",
        "ECONNREFUSED",
    ),
    Case::new(
        "hosts-loopback-6",
        "t(lambda: connect(socket.AF_INET6, ('::1', PORT)))",
        "ECONNREFUSED",
    ),
    Case::new(
        "hosts-loopback-mapped",
        "t(lambda: connect(socket.AF_INET6, ('::ffff:127.0.0.1', PORT)))",
        "ECONNREFUSED",
    ),
    Case::new("hosts-any", "t(lambda: connect(socket.AF_INET, ('0.0.0.0', PORT)))", "ECONNREFUSED"),
    Case::new(
        "hosts-loopback-udp",
        "t(lambda: udp().sendto(b'after', ('127.0.0.1', PORT)))",
        "done",
    ),
    Case::new(
        "hosts-loopback-fast-open",
        "t(lambda: socket.socket().sendto(b'after', 0x20000000, ('127.0.0.1', PORT)))",
        "ECONNREFUSED",
    ),
    Case::new(
        "hosts-loopback-multipath",
        "t(lambda: connect(socket.AF_INET, ('127.0.0.1', PORT), protocol=262))",
        "ECONNREFUSED|EPROTONOSUPPORT|ENOPROTOOPT",
    ),
    Case::new("outside", "t(lambda: connect(socket.AF_INET, ('192.0.2.1', 443)))", "ENETUNREACH")
        .seen(&[("connect", "192.0.2.1:443", NETWORK)]),
    Case::new(
        "outside-6",
        "t(lambda: connect(socket.AF_INET6, ('2001:db8::1', 443)))",
        "ENETUNREACH",
    )
    .seen(&[("connect", "[2001:db8::1]:443", NETWORK)]),
    Case::new(
        "outside-mapped",
        "t(lambda: connect(socket.AF_INET6, ('::ffff:192.0.2.1', 443)))",
        "ENETUNREACH",
    )
    .seen(&[("connect", "192.0.2.1:443", NETWORK)]),
    Case::new(
        "outside-without-waiting",
        "\
s = socket.socket()
s.setblocking(False)
t(lambda: s.connect(('192.0.2.1', 443)))",
        "ENETUNREACH",
    )
    .seen(&[("connect", "192.0.2.1:443", NETWORK)]),
    Case::new(
        "outside-fast-open",
        "t(lambda: socket.socket().sendto(b'after', 0x20000000, ('192.0.2.1', 443)))",
        "ENETUNREACH",
    )
    .seen(&[("send", "192.0.2.1:443", NETWORK)]),
    Case::new("outside-udp", "t(lambda: udp().sendto(b'after', ('192.0.2.1', 53)))", "ENETUNREACH")
        .seen(&[("send", "192.0.2.1:53", NETWORK)]),
    Case::new(
        "outside-udp-connected",
        "t(lambda: connect(socket.AF_INET, ('192.0.2.1', 53), socket.SOCK_DGRAM))",
        "ENETUNREACH",
    )
    .seen(&[("connect", "192.0.2.1:53", NETWORK)]),
    Case::new(
        "outside-sendmsg",
        "t(lambda: udp().sendmsg([b'after'], [], 0, ('192.0.2.1', 53)))",
        "ENETUNREACH",
    )
    .seen(&[("send", "192.0.2.1:53", NETWORK)]),
    Case::new(
        "outside-sendmmsg",
        "\
a = ctypes.create_string_buffer(struct.pack('=HHI', 2, socket.htons(53), 0x010200c0) + bytes(8))
d = ctypes.create_string_buffer(b'after')
v = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(d), 5))
n, i = ctypes.addressof(a), ctypes.addressof(v)
h = ctypes.create_string_buffer(struct.pack('QIIQQQQIIII', n, 16, 0, i, 1, 0, 0, 0, 0, 0, 0))
s = udp()
t(lambda: sc('sendmmsg', s.fileno(), h, 1, 0))",
        "ENETUNREACH",
    )
    .seen(&[("send", "192.0.2.1:53", NETWORK)]),
    Case::new(
        "broadcast",
        "\
s = udp()
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
t(lambda: s.sendto(b'after', ('255.255.255.255', 9)))",
        "ENETUNREACH",
    )
    .seen(&[("send", "255.255.255.255:9", NETWORK)]),
    Case::new(
        "multicast",
        "t(lambda: udp().sendto(b'after', ('224.0.0.251', 5353)))",
        "ENETUNREACH",
    )
    .seen(&[("send", "224.0.0.251:5353", NETWORK)]),
    // The kernel asks for a right that nobody in the cage has.
    Case::new("raw", "t(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255))", "EPERM"),
    Case::new("raw-6", "t(lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58))", "EPERM"),
    Case::new("packet", "t(lambda: socket.socket(17, socket.SOCK_RAW, socket.htons(3)))", "EPERM")
        .seen(&[("socket", "AF_PACKET socket", NEVER)]),
    Case::new("vsock", "t(lambda: socket.socket(40, socket.SOCK_STREAM))", "EPERM").seen(&[(
        "socket",
        "AF_VSOCK socket",
        NEVER,
    )]),
    Case::new("kernel-crypto", "t(lambda: socket.socket(38, socket.SOCK_SEQPACKET))", "EPERM")
        .seen(&[("socket", "AF_ALG socket", NEVER)]),
    Case::new("bluetooth", "t(lambda: socket.socket(31, socket.SOCK_RAW))", "EPERM").seen(&[(
        "socket",
        "AF_BLUETOOTH socket",
        NEVER,
    )]),
    Case::new("express-data-path", "t(lambda: socket.socket(44, socket.SOCK_RAW))", "EPERM")
        .seen(&[("socket", "AF_XDP socket", NEVER)]),
    Case::new("can", "t(lambda: socket.socket(29, socket.SOCK_RAW))", "EPERM").seen(&[(
        "socket",
        "AF_CAN socket",
        NEVER,
    )]),
    Case::new("key-management", "t(lambda: socket.socket(15, socket.SOCK_RAW, 2))", "EPERM")
        .seen(&[("socket", "AF_KEY socket", NEVER)]),
    Case::new("rds", "t(lambda: socket.socket(21, socket.SOCK_SEQPACKET))", "EPERM").seen(&[(
        "socket",
        "AF_RDS socket",
        NEVER,
    )]),
    Case::new("tipc", "t(lambda: socket.socket(30, socket.SOCK_RDM))", "EPERM").seen(&[(
        "socket",
        "AF_TIPC socket",
        NEVER,
    )]),
    Case::new("family-with-high-bits", "t(lambda: sc('socket', 17 | 1 << 32, 3, 0))", "EPERM")
        .seen(&[("socket", "AF_PACKET socket", NEVER)]),
    Case::new("netlink-generic", "t(lambda: socket.socket(16, socket.SOCK_RAW, 16))", "EPERM")
        .seen(&[("socket", "AF_NETLINK socket", NEVER)]),
    Case::new("netlink-audit", "t(lambda: socket.socket(16, socket.SOCK_RAW, 9))", "EPERM")
        .seen(&[("socket", "AF_NETLINK socket", NEVER)]),
    Case::new("netlink-events", "t(lambda: socket.socket(16, socket.SOCK_RAW, 15))", "EPERM")
        .seen(&[("socket", "AF_NETLINK socket", NEVER)]),
    Case::new("netlink-firewall", "t(lambda: socket.socket(16, socket.SOCK_RAW, 12))", "EPERM")
        .seen(&[("socket", "AF_NETLINK socket", NEVER)]),
    Case::new(
        "new-interface",
        "\
s = socket.socket(16, socket.SOCK_RAW, 0)
s.send(struct.pack('IHHII', 32, 16, 5, 1, 0) + struct.pack('BBHiII', 0, 0, 0, 1, 0, 1))
print(errno.errorcode[-struct.unpack('i', s.recv(4096)[16:20])[0]])",
        "EPERM",
    ),
    // The kernel asks for a right here too, and the supervisor, which connects, lends none.
    Case::new(
        "netlink-group",
        "\
t(lambda: socket.socket(16, socket.SOCK_RAW, 0).connect((0, 1)))
t(lambda: socket.socket(16, socket.SOCK_RAW, 0).connect((1, 0)))",
        "EPERM EPERM",
    ),
    Case::new("unix", "t(lambda: connect(socket.AF_UNIX, OUT + '/stream'))", "EACCES").seen(STREAM),
    Case::new("unix-relative", "t(lambda: connect(socket.AF_UNIX, '../outside/stream'))", "EACCES")
        .seen(STREAM),
    Case::new(
        "unix-through-link",
        "\
os.symlink(OUT + '/stream', 's')
t(lambda: connect(socket.AF_UNIX, 's'))",
        "EACCES",
    )
    .seen(STREAM),
    Case::new(
        "unix-through-proc",
        "t(lambda: connect(socket.AF_UNIX, '/proc/self/root' + OUT + '/stream'))",
        "EACCES",
    )
    .seen(STREAM),
    Case::new(
        "unix-through-descriptor",
        "\
f = os.open(OUT + '/stream', os.O_PATH)
t(lambda: connect(socket.AF_UNIX, f'/proc/self/fd/{f}'))",
        "EACCES",
    )
    .seen(STREAM),
    Case::new(
        "unix-from-a-child",
        "in_child(lambda: connect(socket.AF_UNIX, OUT + '/stream'))",
        "EACCES",
    )
    .seen(STREAM),
    Case::new("unix-moved-in", "t(lambda: os.link(OUT + '/stream', 's'))", "EXDEV"),
    // Programs write to the machine's log in this way as a matter of course, so nobody is told.
    Case::new(
        "unix-datagram",
        "t(lambda: connect(socket.AF_UNIX, OUT + '/datagram', socket.SOCK_DGRAM))",
        "EPERM",
    ),
    Case::new(
        "unix-datagram-pair",
        "t(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))",
        "EPERM",
    )
    .seen(&[("socket", "AF_UNIX pair", NEVER)]),
    Case::new(
        "unix-abstract",
        "t(lambda: connect(socket.AF_UNIX, '\\0' + ABSTRACT))",
        "ECONNREFUSED",
    ),
    Case::new(
        "unix-bound-outside",
        "t(lambda: socket.socket(socket.AF_UNIX).bind(OUT + '/new'))",
        "EROFS",
    )
    .seen(&[("bind", "{out}/new", super::OUTSIDE)]),
    Case::new(
        "unix-address-that-is-swapped",
        "\
own = socket.socket(socket.AF_UNIX); own.bind('own'); own.listen(4096)
def address(path): return struct.pack('H', 1) + path.encode().ljust(108, b'\\0')
good, bad = address('own'), address(OUT + '/stream')
shared = ctypes.create_string_buffer(good, 110)
def flip(): ctypes.memmove(shared, good, 110); ctypes.memmove(shared, bad, 110)
def attempt():
    with socket.socket(socket.AF_UNIX) as s:
        if libc.connect(s.fileno(), shared, 110): raise OSError(ctypes.get_errno(), '')
race(flip, attempt, 500)",
        "",
    )
    .seen(STREAM),
    Case::new(
        "unix-descriptor-that-is-swapped",
        "\
own = socket.create_server(('127.0.0.1', 0))
tcp, unix = socket.socket(), socket.socket(socket.AF_UNIX)
target = os.dup(tcp.fileno())
path = (OUT + '/stream').encode().ljust(108, b'\\0')
address = ctypes.create_string_buffer(struct.pack('H', 1) + path, 110)
def flip(): os.dup2(tcp.fileno(), target); os.dup2(unix.fileno(), target)
def attempt():
    if libc.connect(target, address, 110): raise OSError(ctypes.get_errno(), '')
race(flip, attempt, 500)",
        "",
    )
    .seen(STREAM),
];
