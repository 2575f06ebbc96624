//! Whose a unix socket is that lies in a writable root.
//!
//! Directories for temporary files are everybody's: an agent that keeps keys or a terminal's server of the
//! person's can listen there, and does whatever it is asked to. So a socket is the cage's only if it was
//! made on the cage's own network, or, where the cage has none, if a process of the command holds it.

use super::Scope;
use super::address::Address;
use super::place::own_link;
use super::text::Text;
use super::thread::Status;
use crate::sys::notify;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, RawDir, fstat, openat, readlinkat_raw};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::mem::MaybeUninit;

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The file is there, and nobody has it open as a socket.
    Nobody,
    /// The cage's.
    Cage,
    /// Somebody's outside.
    Other,
}

/// Says whose the socket is that a file stands for.
pub(super) fn owner_of(scope: &Scope<'_>, held: BorrowedFd<'_>) -> Owner {
    if is_stale(held) {
        return Owner::Nobody;
    }
    let Some(socket) = File::of(held).and_then(File::socket) else { return Owner::Other };
    if scope.has_own_network() || is_held_by_the_command(scope, socket) {
        Owner::Cage
    } else {
        Owner::Other
    }
}

/// Whether no socket is bound to a file. A socket of the wrong type is connected to nobody, but is told
/// whether somebody is there.
fn is_stale(held: BorrowedFd<'_>) -> bool {
    let probe = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let address = Address::of_held(held);
    probe.is_ok_and(|probe| {
        notify::connect(probe.as_fd(), address.as_bytes()) == Err(Errno::CONNREFUSED)
    })
}

/// A file as the kernel knows it inside. What `stat` says differs on some file systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    device: u32,
    inode: u32,
}

impl File {
    fn of(held: BorrowedFd<'_>) -> Option<Self> {
        let mut path = Text::<64>::new();
        let number = own_link(held);
        let number = number.as_bytes().strip_prefix(b"/proc/self/fd/")?;
        path.push(b"/proc/self/fdinfo/")?.push(number)?;
        let info = Status::of(path.as_c_str())?;
        // Kernels before 5.14 do not say it.
        let inode = info.number(b"ino:", 10).or_else(|| Some(fstat(held).ok()?.st_ino))?;
        let device = device_of_mount(info.number(b"mnt_id:", 10)?)?;
        // The kernel tells only this much of it.
        Some(Self { device, inode: inode as u32 })
    }

    /// The number of the socket that is bound to it, on the network of this process. None if there are several: a
    /// file has one, so they are bound to files that the kernel does not tell apart.
    fn socket(self) -> Option<u32> {
        let kernel = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        let kernel = kernel.ok()?;
        send(&kernel, &question(), SendFlags::empty()).ok()?;
        let mut buffer = [0; 16 * 1024];
        let mut bound = Bound::default();
        loop {
            // The kernel has put an answer there before it came back from being asked.
            let (len, _) = recv(&kernel, buffer.as_mut_slice(), RecvFlags::DONTWAIT).ok()?;
            let mut rest = buffer.get(..len)?;
            while let Some((kind, body, next)) = message(rest) {
                match kind {
                    SOCK_DIAG_BY_FAMILY => {
                        if let Some((file, socket)) = described(body)
                            && file == self
                        {
                            bound.add(socket);
                        }
                    }
                    DONE => return bound.only(),
                    // An error.
                    _ => return None,
                }
                rest = next;
            }
        }
    }
}

/// The sockets that may be bound to a file.
#[derive(Debug, Default)]
struct Bound {
    first: Option<u32>,
    has_others: bool,
}

impl Bound {
    /// One of them, which may be listed more than once.
    fn add(&mut self, socket: u32) {
        self.has_others |= *self.first.get_or_insert(socket) != socket;
    }

    fn only(self) -> Option<u32> {
        self.first.filter(|_| !self.has_others)
    }
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// The kind of the message behind the last one.
const DONE: u16 = 3;

/// Asks for all sockets that are bound and not connected, and for the files that they are bound to.
fn question() -> [u8; 40] {
    const REQUEST: u16 = 0x1;
    const DUMP: u16 = 0x300;
    /// The states of a socket that is bound, and of one that listens.
    const STATES: u32 = 1 << 7 | 1 << 10;
    const SHOW_FILE: u32 = 0x2;
    let mut bytes = [0; 40];
    let length = 40_u32.to_ne_bytes();
    let family = [u8::try_from(libc::AF_UNIX).unwrap_or(1)];
    let parts: [(usize, &[u8]); 6] = [
        (0, &length),
        (4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes()),
        (6, &(REQUEST | DUMP).to_ne_bytes()),
        (16, &family),
        (20, &STATES.to_ne_bytes()),
        (28, &SHOW_FILE.to_ne_bytes()),
    ];
    for (at, part) in parts {
        if let Some(place) = bytes.get_mut(at..at + part.len()) {
            place.copy_from_slice(part);
        }
    }
    bytes
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn short_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// The kind and the body of the first message, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    const HEAD: usize = 16;
    let length = usize::try_from(number_at(bytes, 0)?).ok()?;
    let body = bytes.get(HEAD..length)?;
    Some((short_at(bytes, 4)?, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The file that a socket is bound to, and the number of the socket.
fn described(body: &[u8]) -> Option<(File, u32)> {
    const FILE: u16 = 1;
    let socket = number_at(body, 4)?;
    let mut rest = body.get(16..)?;
    loop {
        let length = usize::from(short_at(rest, 0)?);
        if short_at(rest, 2)? == FILE {
            let file = File { inode: number_at(rest, 4)?, device: number_at(rest, 8)? };
            return Some((file, socket));
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// The device of the file system that is mounted there, as the kernel counts inside.
fn device_of_mount(wanted: u64) -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(CWD, c"/proc/self/mountinfo", flags, Mode::empty()).ok()?;
    let mut buffer = [0; 8192];
    let mut filled = 0;
    loop {
        let read = rustix::io::read(&file, buffer.get_mut(filled..)?).ok().filter(|n| *n > 0)?;
        filled += read;
        let mut start = 0;
        while let Some(line) = buffer.get(start..filled)
            && let Some(end) = line.iter().position(|byte| *byte == b'\n')
        {
            if let Some(device) = line.get(..end).and_then(|line| device_in(line, wanted)) {
                return Some(device);
            }
            start += end + 1;
        }
        // A line that is longer than the room is none that could be told apart.
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
}

/// A line has the number of the mount, that of its parent, and the device.
fn device_in(line: &[u8], wanted: u64) -> Option<u32> {
    const MINOR_BITS: u32 = 20;
    let mut words = line.split(|byte| *byte == b' ');
    let text = |word| str::from_utf8(word).ok();
    if text(words.next()?)?.parse() != Ok(wanted) {
        return None;
    }
    let (major, minor) = text(words.nth(1)?)?.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(major << MINOR_BITS | minor)
}

/// Whether a process of the command has a socket open.
fn is_held_by_the_command(scope: &Scope<'_>, socket: u32) -> bool {
    let mut name = Text::<64>::new();
    let named = name.push(b"socket:[").and_then(|name| name.push_number(socket.into()));
    if named.and_then(|name| name.push(b"]")).is_none() {
        return false;
    }
    let all_are_its_own = scope.mode == super::Mode::Namespaces;
    any_number(c"/proc", |process| {
        let mut path = Text::<64>::new();
        let fds = path.push(b"/proc/").and_then(|path| path.push_number(process));
        let Some(fds) = fds.and_then(|path| path.push(b"/fd")) else { return false };
        // Where somebody comes from is asked last, and of hardly anybody: a command can make long lines of
        // processes, and while they are walked nobody else is answered.
        process != own_number()
            && open_directory(fds.as_c_str()).is_some_and(|fds| holds(&fds, name.as_bytes()))
            && (all_are_its_own || is_descendant(process))
    })
}

fn open_directory(path: &std::ffi::CStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).ok()
}

fn holds(fds: &OwnedFd, wanted: &[u8]) -> bool {
    any_entry(fds, |name| {
        let mut link = [0; 64];
        let length = readlinkat_raw(fds, name, link.as_mut_slice()).unwrap_or(0);
        link.get(..length) == Some(wanted)
    })
}

/// Whether this process is among those that a process descends from: it inherits the children of all that
/// it has started.
pub(super) fn is_descendant(process: u64) -> bool {
    /// Nobody has more of them.
    const MOST: usize = 4096;
    let own = own_number();
    let mut process = process;
    for _ in 0..MOST {
        let status = i32::try_from(process).ok().and_then(Status::read);
        match status.and_then(|status| status.number(b"PPid:", 10)) {
            Some(parent) if parent == own => return true,
            Some(parent) if parent > 1 => process = parent,
            _ => return false,
        }
    }
    false
}

fn own_number() -> u64 {
    rustix::process::getpid().as_raw_nonzero().get().cast_unsigned().into()
}

/// Whether it is so for an entry that is a number.
pub(super) fn any_number(directory: &std::ffi::CStr, mut is_so: impl FnMut(u64) -> bool) -> bool {
    open_directory(directory).is_some_and(|directory| {
        any_entry(&directory, |name| {
            name.to_str().ok().and_then(|name| name.parse().ok()).is_some_and(&mut is_so)
        })
    })
}

fn any_entry(directory: &OwnedFd, mut is_so: impl FnMut(&std::ffi::CStr) -> bool) -> bool {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if is_so(entry.file_name()) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec SANDBOX.99: A socket of which the kernel does not say which of two it is counts as somebody else's.
    #[test]
    fn what_could_be_one_of_two_is_neither() {
        let only = |sockets: &[u32]| {
            let mut bound = Bound::default();
            sockets.iter().for_each(|socket| bound.add(*socket));
            bound.only()
        };
        assert_eq!(only(&[]), None);
        assert_eq!(only(&[7]), Some(7));
        assert_eq!(only(&[7, 7]), Some(7));
        assert_eq!(only(&[7, 8]), None);
        assert_eq!(only(&[8, 7, 8]), None);
    }

    #[test]
    fn the_socket_of_a_file_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            rustix::fs::open(directory.path().join(name), flags, Mode::empty()).unwrap()
        };
        let bind =
            |name| std::os::unix::net::UnixListener::bind(directory.path().join(name)).unwrap();
        let sockets = [("a", bind("a")), ("b", bind("b"))];
        for (name, socket) in &sockets {
            let found = File::of(open(name).as_fd()).and_then(File::socket);
            let number = fstat(socket).unwrap().st_ino;
            assert_eq!(found.map(u64::from), Some(number), "{name}");
        }
    }
}
