//! What can be reached.

use crate::cage::{Cage, has};
use crate::report::Report;
use crate::support::Running;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

/// spec SANDBOX.30: With the network off, nothing of the host's network can be reached, its loopback
/// included; `--network` opens it.
#[test]
fn the_hosts_loopback_is_out_of_reach() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' 2>&1"
    );
    for options in [&["--full-auto"][..], &["--sandbox", "read-only"]] {
        let outcome = cage.run_with(options, &script);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stdout().contains("refused"), "{outcome:?}");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    let outcome = cage.run_with(&["--full-auto", "--network"], &script);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    listener.accept().expect("with the network on it comes through");
}

/// spec SANDBOX.31: With the network off a command has a loopback of its own, where its servers and
/// clients meet.
#[test]
fn a_command_has_a_loopback_of_its_own() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    server.accept()[0].sendall(b"hello")
threading.Thread(target=serve).start()
print(socket.create_connection(server.getsockname()).recv(5).decode())
'"#;
    let outcome = cage.run(script);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "hello\n"), "{outcome:?}");
}

/// spec SANDBOX.33: A unix socket in a writable root is reachable only if a command of the cage made
/// it; where the cage has no network of its own, only if the same command did.
#[test]
fn sockets_of_others_in_a_writable_root_are_out_of_reach() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let listener = UnixListener::bind(cage.ws("theirs")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let script = r#"python3 -c '
import errno, socket, threading
server = socket.socket(socket.AF_UNIX)
server.bind("own")
server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
client = socket.socket(socket.AF_UNIX)
client.connect("own")
print(client.recv(5).decode())
try:
    socket.socket(socket.AF_UNIX).connect("theirs")
except OSError as error:
    print(errno.errorcode[error.errno])
'; rm own"#;
    let with = |options: &[&str]| cage.command(options, script);
    let alone = cage.without_namespaces(&["--full-auto", "--json"], script);
    let kinds = [with(&["--full-auto", "--json"]), with(&["--full-auto", "--network", "--json"])];
    for mut command in kinds.into_iter().chain(alone) {
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.stdout(), "hello\nEACCES\n", "{command:?} {outcome:?}");
        let report = Report::of(&outcome);
        let denied: Vec<_> = report.denials.iter().map(|seen| seen.target.as_str()).collect();
        let theirs = cage.ws("theirs").canonicalize().unwrap();
        assert_eq!(denied, [theirs.to_str().unwrap()], "{command:?} {report:?}");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// spec SANDBOX.32: Sockets of other families than unix's, the internet's and routing's are refused,
/// and unix sockets for datagrams; pairs of connected sockets work.
#[test]
fn socket_families_are_few() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script = r#"python3 -c '
import socket
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1).decode())
stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
families = {"AF_PACKET": 17, "AF_VSOCK": 40, "AF_ALG": 38, "AF_BLUETOOTH": 31}
kinds = [(name, family, stream) for name, family in families.items()]
for name, family, kind in kinds + [("AF_UNIX", 1, datagram)]:
    try:
        socket.socket(family, kind)
        print(name)
    except PermissionError:
        pass
'"#;
    let outcome = cage.run(script);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "x\n"), "{outcome:?}");
}
