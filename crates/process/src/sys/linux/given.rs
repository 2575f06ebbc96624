//! What a confined command may be given as a standard stream by whoever called.
//!
//! A stream was opened outside the cage, so that no mount of the cage is in the way of what can be done with it. What would
//! be a way out is refused, with a word on what to give instead.

use super::raw;
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};
use sandgate_protocol::NetworkAccess;
use sandgate_sandbox::linux::Site;
use std::io;

/// The name of the stream that commands read from.
pub(super) const INPUT: &str = "standard input";

/// Looks at each of our own streams.
pub(super) fn each_stream(
    mut check: impl FnMut(&str, BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    check(INPUT, io::stdin().as_fd())?;
    check("standard output", io::stdout().as_fd())?;
    check("standard error", io::stderr().as_fd())
}

/// Looks at what a stream is. What a directory holds can be changed by a path that begins at the descriptor, past all
/// mounts of the cage, and one that was opened as a place only can be one. A socket was made on the host's network and
/// stays there, and one that is taken brings no descriptors from now on.
pub(super) fn check(name: &str, stream: BorrowedFd<'_>, network: NetworkAccess) -> io::Result<()> {
    let Ok(stat) = fstat(stream) else { return Ok(()) };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let what = if kind == FileType::Directory {
        "a directory"
    } else if fcntl_getfl(stream).is_ok_and(|flags| flags.contains(OFlags::PATH)) {
        "a place and not open"
    } else if kind == FileType::Socket
        && let Some(what) = loose_socket(stream, network).or_else(|| brings_descriptors(stream))
    {
        what
    } else {
        return Ok(());
    };
    let advice = "a confined command takes a file, a pipe, a terminal or /dev/null";
    Err(io::Error::other(format!("{name} is {what}; {advice}")))
}

/// Looks at where the file of a stream lies that is open for reading only, once the roots have been searched. Beneath a
/// root Landlock lets it be opened again by its number, and what protects it is a mount, which is not in the way.
pub(super) fn check_place(name: &str, stream: BorrowedFd<'_>, site: &Site) -> io::Result<()> {
    let is_file = fstat(stream)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let writes = |flags: OFlags| flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    if !is_file || fcntl_getfl(stream).is_ok_and(writes) {
        return Ok(());
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd()));
    if path.is_ok_and(|path| path.is_absolute() && !site.protects(&path)) {
        return Ok(());
    }
    let advice = "the command could open it again and write to it; pipe it in, as by cat";
    Err(io::Error::other(format!("{name} is a protected file; {advice}")))
}

/// What is wrong with a socket as a stream: through it a command could reach somebody else than the one
/// whom its caller has connected it with. A datagram goes wherever it says, and a connection of the
/// internet's can be made anew to another address.
fn loose_socket(stream: BorrowedFd<'_>, network: NetworkAccess) -> Option<&'static str> {
    let domain = sockopt::socket_domain(stream).ok();
    let kind = sockopt::socket_type(stream).ok();
    let is_stream = matches!(kind, Some(SocketType::STREAM | SocketType::SEQPACKET));
    match domain {
        Some(AddressFamily::UNIX) => {}
        Some(AddressFamily::INET | AddressFamily::INET6) if network == NetworkAccess::Enabled => {}
        Some(AddressFamily::INET | AddressFamily::INET6) => {
            return Some("a socket of the network, which is off");
        }
        _ => return Some("a socket of a family that no command may use"),
    }
    let is_connected = is_stream && getpeername(stream).is_ok();
    (!is_connected).then_some("a socket that is not a connected stream")
}

/// Has no descriptors come by a unix socket any more, and says what is wrong with one by which some have. Whoever is at its
/// other end may be in a cage too: a directory that is opened there is open here, and when that cage ends, the kernel takes
/// off what lay over the protected names in it.
///
/// It stays so when the command has ended: another one may have the same stream, and would be handed some after all.
fn brings_descriptors(stream: BorrowedFd<'_>) -> Option<&'static str> {
    if !sockopt::socket_domain(stream).is_ok_and(|domain| domain == AddressFamily::UNIX) {
        return None;
    }
    // Linux before 6.16 has no such thing, and in a cage that is already so for what came in from outside.
    let _ = raw::take_no_descriptors(stream);
    // Who was about to send some when that was said has done so when this returns: both lock the socket.
    let _ = getpeername(stream);
    let state = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", stream.as_raw_fd()));
    let some = |line: &str| line.strip_prefix("scm_fds:").is_some_and(|count| count.trim() != "0");
    let has_some = state.is_ok_and(|state| state.lines().any(some));
    has_some.then_some("a socket with descriptors in it that nobody has received")
}
