//! Connections, and what is sent to addresses.

use super::{LANDLOCK, NAMESPACES, Outcome, Setting, World, is_possible, run};
use crate::sys::probe::{Argument, call, interrupt, interrupt_no_more};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect,
    listen, sendto, socket, socket_with, sockopt,
};
use sandgate_protocol::NetworkAccess;
use std::cell::Cell;
use std::ffi::CStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

const ENABLED: Setting = Setting { network: NetworkAccess::Enabled, ..NAMESPACES };

fn stream() -> OwnedFd {
    socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap()
}

fn unix(path: &Path) -> SocketAddrUnix {
    SocketAddrUnix::new(path).unwrap()
}

/// The error that something came to, or 0.
fn number<T>(result: Result<T, Errno>) -> i32 {
    result.err().map_or(0, Errno::raw_os_error)
}

fn io_number<T>(result: std::io::Result<T>) -> i32 {
    result.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

/// What was told, with the paths of the world made short.
fn told(world: &World, outcome: &Outcome) -> Vec<String> {
    let prefix = world.path("");
    let short = |line: &String| line.replace(prefix.to_str().unwrap(), "");
    outcome.denials.iter().map(short).collect()
}

/// Whether nobody has connected.
fn is_untouched(listener: &UnixListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err()
}

#[test]
fn a_unix_socket_in_a_writable_root_works_and_one_outside_does_not() {
    for setting in [NAMESPACES, LANDLOCK, ENABLED] {
        if !is_possible(setting) {
            continue;
        }
        let world = World::new();
        let outside = UnixListener::bind(world.path("out/sock")).unwrap();
        rustix::fs::symlink(world.path("out/sock"), world.path("ws/link")).unwrap();
        let outcome = run(&world, setting, |say| {
            std::env::set_current_dir(world.path("ws")).unwrap();
            let server = UnixListener::bind("sock").unwrap();
            let mut client = UnixStream::connect("sock").unwrap();
            client.write_all(b"hello").unwrap();
            let mut bytes = [0; 5];
            server.accept().unwrap().0.read_exact(&mut bytes).unwrap();
            say(str::from_utf8(&bytes).unwrap());
            for path in ["link", "../out/sock", "none", "file"] {
                say(&format!(" {}", number(connect(stream(), &unix(Path::new(path))))));
            }
            let absolute = connect(stream(), &unix(&world.path("out/sock")));
            say(&format!(" {}", number(absolute)));
        });
        assert_eq!(outcome.said, "hello 13 13 2 111 13", "{setting:?}");
        let expected = ["connect out/sock SocketOutsideWritableRoots connect"];
        assert_eq!(told(&world, &outcome), expected);
        assert!(is_untouched(&outside));
    }
}

#[test]
fn a_unix_socket_in_a_writable_root_that_somebody_outside_listens_on_is_not_the_cages() {
    for setting in [NAMESPACES, LANDLOCK, ENABLED] {
        if !is_possible(setting) {
            continue;
        }
        let world = World::new();
        let hosts = Cell::new(UnixListener::bind(world.path("ws/hosts")).ok());
        drop(UnixListener::bind(world.path("ws/stale")).unwrap());
        let outcome = run(&world, setting, |say| {
            std::env::set_current_dir(world.path("ws")).unwrap();
            // This process was forked from the one that listens.
            drop(hosts.take());
            let bound = stream();
            bind(&bound, &unix(Path::new("bound"))).unwrap();
            let packets = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            bind(&packets, &unix(Path::new("packets"))).unwrap();
            listen(&packets, 1).unwrap();
            for name in ["hosts", "stale", "bound"] {
                say(&format!("{} ", number(connect(stream(), &unix(Path::new(name))))));
            }
            let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            say(&number(connect(client, &unix(Path::new("packets")))).to_string());
        });
        assert_eq!(outcome.said, "13 111 111 0", "{setting:?}");
        let expected = ["connect ws/hosts SocketOutsideWritableRoots connect"];
        assert_eq!(told(&world, &outcome), expected);
        assert!(is_untouched(&hosts.take().unwrap()));
    }
}

#[test]
fn a_unix_socket_in_a_protected_directory_is_not_the_cages() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let protected = UnixListener::bind(world.path("ws/.git/sock")).unwrap();
    let outcome = run(&world, NAMESPACES, |say| {
        say(&number(connect(stream(), &unix(&world.path("ws/.git/sock")))).to_string());
    });
    assert_eq!(outcome.said, "13");
    let expected = ["connect ws/.git/sock SocketOutsideWritableRoots connect"];
    assert_eq!(told(&world, &outcome), expected);
    assert!(is_untouched(&protected));
}

#[test]
fn a_unix_socket_that_was_granted_can_be_connected_to_by_any_path() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let granted = UnixListener::bind(world.path("out/sock")).unwrap();
    let other = UnixListener::bind(world.path("out/sock2")).unwrap();
    rustix::fs::symlink(world.path("out/sock"), world.path("ws/link")).unwrap();
    let path: &'static CStr = Box::leak(world.c("out/sock").into_boxed_c_str());
    let setting = Setting { sockets: Vec::leak(vec![path]), ..NAMESPACES };
    let outcome = run(&world, setting, |say| {
        for name in ["out/sock", "ws/link", "out/sock2"] {
            say(&format!("{} ", number(connect(stream(), &unix(&world.path(name))))));
        }
    });
    assert_eq!(outcome.said, "0 0 13 ");
    granted.accept().unwrap();
    granted.accept().unwrap();
    assert!(is_untouched(&other));
}

#[test]
fn an_abstract_name_works_only_on_a_network_of_the_cages_own() {
    let name = format!("sandgate-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let host = UnixListener::bind_addr(&address).unwrap();
    for (setting, expected) in [(NAMESPACES, "111 0"), (ENABLED, "1 0"), (LANDLOCK, "1 0")] {
        if !is_possible(setting) {
            continue;
        }
        let world = World::new();
        let outcome = run(&world, setting, |say| {
            let hosts = io_number(UnixStream::connect_addr(&address));
            let own = std::os::unix::net::SocketAddr::from_abstract_name(b"own").unwrap();
            let server = UnixListener::bind_addr(&own).unwrap();
            let mine = io_number(UnixStream::connect_addr(&own));
            let mine = if setting.mode == NAMESPACES.mode && setting.network == NAMESPACES.network {
                server.accept().unwrap();
                mine
            } else {
                mine - 1
            };
            say(&format!("{hosts} {mine}"));
        });
        assert_eq!(outcome.said, expected, "{setting:?}");
        let own_network = expected.starts_with("111");
        let refused = [name.as_str(), "own"]
            .map(|name| format!("connect @{name} SocketOutsideWritableRoots connect"));
        assert_eq!(outcome.denials, if own_network { Vec::new() } else { refused.to_vec() });
    }
    assert!(is_untouched(&host));
}

#[test]
fn with_the_network_off_the_loopback_works_and_nothing_else() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let outcome = run(&World::new(), NAMESPACES, |say| {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let server = TcpListener::bind(loopback).unwrap();
            let address = server.local_addr().unwrap();
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(b"hello").unwrap();
            let mut bytes = [0; 5];
            server.accept().unwrap().0.read_exact(&mut bytes).unwrap();
            say(str::from_utf8(&bytes).unwrap());
            drop(server);
            say(&format!(" {} ", io_number(TcpStream::connect(address))));
        }
        for address in ["93.184.216.34:443", "[2001:db8::1]:80", "[::ffff:10.0.0.1]:1"] {
            let address: SocketAddr = address.parse().unwrap();
            say(&format!("{} ", io_number(TcpStream::connect(address))));
        }
        let datagrams = UdpSocket::bind("0.0.0.0:0").unwrap();
        say(&format!("{} ", io_number(datagrams.connect("8.8.8.8:53"))));
        say(&format!("{} ", io_number(datagrams.connect("127.0.0.53:53"))));
        say(&format!("{} ", io_number(datagrams.connect("127.0.0.53:54"))));
        say(&format!("{} ", io_number(datagrams.peer_addr())));
        say(&format!("{} ", number(rustix::net::connect_unspec(&datagrams))));
        say(&io_number(datagrams.peer_addr()).to_string());
    });
    assert_eq!(outcome.said, "hello 111 hello 111 101 101 101 101 111 0 0 0 107");
    let expected = [
        "connect 93.184.216.34:443 NetworkOff connect",
        "connect [2001:db8::1]:80 NetworkOff connect",
        "connect 10.0.0.1:1 NetworkOff connect",
        "connect 8.8.8.8:53 NetworkOff connect",
        "connect 127.0.0.53:53 NetworkOff connect",
    ];
    assert_eq!(outcome.denials, expected);
}

#[test]
fn with_the_network_on_connections_are_the_hosts() {
    if !is_possible(ENABLED) {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let world = World::new();
    let outcome = run(&world, ENABLED, |say| {
        TcpStream::connect(address).unwrap().write_all(b"hello").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        say(&io_number(datagrams.send_to(b"x", address)).to_string());
    });
    assert_eq!((outcome.said.as_str(), outcome.denials.len()), ("0", 0));
    let mut bytes = [0; 5];
    server.accept().unwrap().0.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
}

#[test]
fn what_is_sent_to_an_address_outside_is_refused_and_told() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let outcome = run(&World::new(), NAMESPACES, |say| {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = receiver.local_addr().unwrap();
        say(&format!("{} ", io_number(sender.send_to(b"x", own))));
        receiver.recv(&mut [0; 1]).unwrap();
        for address in ["8.8.8.8:53", "[2001:db8::1]:53", "127.0.0.53:53"] {
            let address: SocketAddr = address.parse().unwrap();
            say(&format!("{} ", io_number(sender.send_to(b"x", address))));
        }
        let message = |to: SocketAddr| {
            let data = [std::io::IoSlice::new(b"x")];
            let mut control = rustix::net::SendAncillaryBuffer::default();
            let flags = SendFlags::empty();
            number(rustix::net::sendmsg_addr(&sender, &to, &data, &mut control, flags))
        };
        say(&format!("{} ", message("1.2.3.4:5".parse().unwrap())));
        say(&format!("{} ", message(own)));
        receiver.recv(&mut [0; 1]).unwrap();
        // A stream takes no notice.
        let (one, _two) = UnixStream::pair().unwrap();
        let to: SocketAddr = "1.2.3.4:6".parse().unwrap();
        say(&format!("{} ", number(sendto(&one, b"x", SendFlags::empty(), &to))));
        // Two messages, of which the first has a name.
        let name = [2u8, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        let header = [name.as_ptr() as u64, 16, 0, 0, 0, 0, 0, 0];
        let headers: Vec<u8> =
            [header, header].concat().iter().flat_map(|field| field.to_ne_bytes()).collect();
        let socket = i64::from(sender.as_raw_fd());
        let arguments = [Argument::Number(socket), Argument::Bytes(&headers), 2.into(), 0.into()];
        say(&number(call(libc::SYS_sendmmsg, &arguments)).to_string());
    });
    assert_eq!(outcome.said, "0 101 101 111 101 0 106 101");
    let expected = [
        "send 8.8.8.8:53 NetworkOff sendto",
        "send [2001:db8::1]:53 NetworkOff sendto",
        "send 127.0.0.53:53 NetworkOff sendto",
        "send 1.2.3.4:5 NetworkOff sendmsg",
        "send 1.2.3.4:7 NetworkOff sendmmsg",
    ];
    assert_eq!(outcome.denials, expected);
}

#[test]
fn a_socket_is_bound_only_where_the_cage_is_open() {
    for (setting, errno) in [(NAMESPACES, 30), (LANDLOCK, 13)] {
        if !is_possible(setting) {
            continue;
        }
        let world = World::new();
        let outcome = run(&world, setting, |say| {
            std::env::set_current_dir(world.path("out")).unwrap();
            for path in ["here", "file", "none/x"] {
                say(&format!("{} ", number(bind(stream(), &unix(Path::new(path))))));
            }
            say(&format!("{} ", number(bind(stream(), &unix(&world.path("ws/sock"))))));
            let unnamed = SocketAddrUnix::new_unnamed();
            say(&number(bind(stream(), &unnamed)).to_string());
        });
        assert_eq!(outcome.said, format!("{errno} 98 2 0 0"), "{setting:?}");
        assert_eq!(told(&world, &outcome), ["bind out/here OutsideWritableRoots bind"]);
        assert!(world.path("ws/sock").exists() && !world.path("out/here").exists());
    }
}

#[test]
fn a_connect_with_wrong_arguments_comes_to_the_kernels_errors() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let attempt = |socket: i64, pointer: Argument<'_>, len: i64| {
        number(call(libc::SYS_connect, &[Argument::Number(socket), pointer, Argument::Number(len)]))
    };
    let outcome = run(&world, NAMESPACES, |say| {
        let file = fs::File::open(world.path("ws/file")).unwrap();
        let socket = stream();
        let (file, socket) = (i64::from(file.as_raw_fd()), i64::from(socket.as_raw_fd()));
        let good = b"\x01\0/none\0";
        let errors = [
            attempt(99, Argument::Bytes(good), 8),
            attempt(-1, Argument::Bytes(good), 8),
            attempt(file, Argument::Bytes(good), 8),
            attempt(socket, Argument::Number(8), 8),
            attempt(socket, Argument::Bytes(good), -1),
            attempt(socket, Argument::Bytes(good), 129),
            attempt(socket, Argument::Bytes(good), 2),
            attempt(socket, Argument::Bytes(good), 0),
            attempt(socket, Argument::Bytes(b"\x02\0/none\0"), 8),
            attempt(socket, Argument::Bytes(good), 8),
        ];
        say(&format!("{errors:?}"));
    });
    assert_eq!(outcome.said, "[9, 9, 88, 14, 22, 22, 22, 22, 22, 2]");
    assert_eq!(outcome.denials, [""; 0]);
}

/// A listening socket whose queue has no room, with what fills it.
fn full(path: &Path) -> (OwnedFd, Vec<OwnedFd>) {
    let server = stream();
    bind(&server, &unix(path)).unwrap();
    listen(&server, 0).unwrap();
    let mut clients = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK;
        let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match connect(&client, &unix(path)) {
            Ok(()) => clients.push(client),
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                return (server, clients);
            }
        }
    }
}

/// Waits until a thread of this process is held up in a call.
fn until_held_up(thread: i32, call: libc::c_long) {
    let path = format!("/proc/self/task/{thread}/syscall");
    while !fs::read_to_string(&path).is_ok_and(|text| text.starts_with(&format!("{call} "))) {
        std::thread::yield_now();
    }
}

#[test]
fn a_connect_waits_for_room_while_the_supervisor_serves_others() {
    for setting in [NAMESPACES, LANDLOCK] {
        if !is_possible(setting) {
            continue;
        }
        let world = World::new();
        let outcome = run(&world, setting, |say| {
            let path = world.path("ws/sock");
            let (server, clients) = full(&path);
            let (to_main, from_waiting) = std::sync::mpsc::channel();
            let waiting = std::thread::spawn(move || {
                to_main.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                let socket = stream();
                let errno = number(connect(&socket, &unix(&path)));
                let blocks = !rustix::fs::fcntl_getfl(&socket)
                    .unwrap()
                    .contains(rustix::fs::OFlags::NONBLOCK);
                (errno, blocks, socket)
            });
            until_held_up(from_waiting.recv().unwrap(), libc::SYS_connect);
            fs::write(world.path("ws/meanwhile"), "others are served").unwrap();
            assert!(!waiting.is_finished());
            for _ in &clients {
                accept(&server).unwrap();
            }
            let (errno, blocks, socket) = waiting.join().unwrap();
            let mut accepted = UnixStream::from(accept(&server).unwrap());
            UnixStream::from(socket).write_all(b"through").unwrap();
            let mut text = String::new();
            accepted.read_to_string(&mut text).unwrap();
            say(&format!("{errno} {blocks} {text}"));
        });
        assert_eq!((outcome.said.as_str(), outcome.denials.len()), ("0 true through", 0));
        assert!(world.path("ws/meanwhile").exists());
    }
}

#[test]
fn a_connect_that_waits_ends_by_a_signal_or_by_its_own_limit() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outcome = run(&world, NAMESPACES, |say| {
        let path = world.path("ws/sock");
        let (server, _clients) = full(&path);
        interrupt(false, -1);
        say(&format!("{} ", number(connect(stream(), &unix(&path)))));
        // Only the signal makes room, and only if it is begun anew is that of use.
        interrupt(true, server.as_raw_fd());
        say(&format!("{} ", number(connect(stream(), &unix(&path)))));
        interrupt_no_more();
        let (_server, _clients) = full(&world.path("ws/other"));
        let socket = stream();
        let limit = Some(std::time::Duration::from_millis(100));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, limit).unwrap();
        say(&number(connect(&socket, &unix(&world.path("ws/other")))).to_string());
    });
    assert_eq!(outcome.said, "4 0 11");
}

#[test]
fn a_connection_over_the_loopback_that_is_not_answered_at_once_is_waited_for() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outcome = run(&world, NAMESPACES, |say| {
        let server = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&server, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        listen(&server, 0).unwrap();
        let server = TcpListener::from(server);
        let address = server.local_addr().unwrap();
        // One fits into the queue of none.
        let _first = TcpStream::connect(address).unwrap();
        let waiting = std::thread::spawn(move || io_number(TcpStream::connect(address)));
        let is_asking = || {
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            table.lines().any(|line| line.split_whitespace().nth(3) == Some("02"))
        };
        while !is_asking() {
            std::thread::yield_now();
        }
        fs::write(world.path("ws/meanwhile"), "others are served").unwrap();
        server.accept().unwrap();
        say(&waiting.join().unwrap().to_string());
    });
    assert_eq!((outcome.said.as_str(), outcome.denials.len()), ("0", 0));
}

#[test]
fn a_socket_that_does_not_wait_is_answered_at_once() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outcome = run(&world, NAMESPACES, |say| {
        let path = world.path("ws/sock");
        let _full = full(&path);
        let flags = SocketFlags::NONBLOCK;
        let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        say(&format!("{} ", number(connect(&client, &unix(&path)))));
        let client = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let errno = number(connect(&client, &server.local_addr().unwrap()));
        // The loopback may have answered already.
        assert!(errno == 0 || errno == libc::EINPROGRESS, "{errno}");
        server.accept().unwrap();
        say(&number(rustix::net::getpeername(client.as_fd())).to_string());
    });
    assert_eq!(outcome.said, "11 0");
}
