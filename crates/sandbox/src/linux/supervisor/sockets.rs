//! Calls that name an address.
//!
//! A connect is never continued: between our look and the kernel's, another thread could put
//! another socket under the same number or another path under the same pointer, and no layer
//! beneath tells unix sockets apart. So it is made from here, with a socket and an address that
//! were copied before they were judged.

use super::address::{Address, UnixName, is_local, write_abstract, write_internet};
use super::files::{Files, kind};
use super::listeners::{Owner, owner_of};
use super::pending::{Attempt, Connect, Pending};
use super::place::{Follow, Place, canonical, is_read_only};
use super::text::PathText;
use super::thread::duplicate;
use super::{Answer, Mode, Scope};
use crate::sys::notify::{Asked, read_memory, still_waits};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use sandgate_protocol::{DenialRule, DeniedOperation as Operation, NetworkAccess};
use std::net::SocketAddr;

/// Where names are looked up: every program asks, and goes on without an answer.
const NAME_SERVICES: [&[u8]; 3] = [b"/run/nscd", b"/var/run/nscd", b"/run/systemd/userdb"];

const DOMAIN_PORT: u16 = 53;

/// One call, and where what it is about is written down.
pub(super) struct Sockets<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) asked: &'a Asked,
    pub(super) listener: BorrowedFd<'a>,
    pub(super) target: &'a mut PathText,
}

impl Sockets<'_> {
    /// Makes a connection in the caller's place, or begins to.
    pub(super) fn connect(&mut self, pending: &mut Pending) -> Answer {
        match self.prepare() {
            Err(answer) => answer,
            Ok(connect) => match connect.attempt() {
                Attempt::Done(Ok(())) => Answer::Done,
                Attempt::Done(Err(errno)) => Answer::Fail(errno),
                Attempt::Waits(waits) => {
                    let taken = pending.add(self.asked.id, self.asked.thread, connect, waits);
                    if taken { Answer::Later } else { Answer::Fail(Errno::AGAIN) }
                }
            },
        }
    }

    /// Copies the socket and the address, and judges the copies.
    fn prepare(&mut self) -> Result<Connect, Answer> {
        let [number, pointer, len, ..] = self.asked.arguments;
        let socket = self.socket(number)?;
        let domain = sockopt::socket_domain(&socket).map_err(Answer::Fail)?;
        let kind = sockopt::socket_type(&socket).map_err(Answer::Fail)?;
        let address = Address::read(self.asked.thread, pointer, len).map_err(Answer::Fail)?;
        let is_stream = kind != SocketType::DGRAM && kind != SocketType::RAW;
        let (address, held) = match domain {
            AddressFamily::UNIX if is_stream => self.unix(&address)?,
            AddressFamily::INET | AddressFamily::INET6 => {
                if let Some(to) = address.internet() {
                    self.internet(to, Operation::Connect)?;
                }
                (address, None)
            }
            AddressFamily::NETLINK => (address, None),
            _ => return Err(Answer::Fail(Errno::PERM)),
        };
        // Until here the thread's number was its own, so socket and address are.
        if !still_waits(self.listener, self.asked.id) {
            return Err(Answer::Fail(Errno::SRCH));
        }
        Ok(Connect { socket, address, held, is_stream })
    }

    fn socket(&self, number: u64) -> Result<OwnedFd, Answer> {
        // The kernel takes 32 bits of it.
        let number = ((number & u64::from(u32::MAX)) as u32).cast_signed();
        match duplicate(self.asked.thread, number) {
            Err(Errno::BADF) => Err(Answer::Fail(Errno::BADF)),
            result => result.map_err(|_| Answer::Fail(Errno::ACCESS)),
        }
    }

    /// Finds the very socket that is to be connected to. The address that is returned names it by
    /// this process's hold on it, so that nothing can be put in its place.
    fn unix(&mut self, address: &Address) -> Result<(Address, Option<OwnedFd>), Answer> {
        match address.unix().ok_or(Answer::Fail(Errno::INVAL))? {
            UnixName::Abstract(name) => {
                // Such names belong to a network, and here only the cage has this one.
                if self.scope.has_own_network() {
                    return Ok((*address, None));
                }
                write_abstract(name, self.target);
                let (operation, rule) =
                    (Operation::Connect, DenialRule::SocketOutsideWritableRoots);
                Err(Answer::Refuse { errno: Errno::PERM, operation, rule })
            }
            UnixName::Path(path) => {
                let place = Place::given(self.asked.thread, libc::AT_FDCWD, path);
                let place = place.ok_or(Answer::Fail(Errno::ACCESS))?;
                let held = place.hold(Follow::Yes).map_err(Answer::Fail)?;
                self.judge_unix(held.as_fd())?;
                Ok((Address::of_held(held.as_fd()), Some(held)))
            }
        }
    }

    fn judge_unix(&mut self, held: BorrowedFd<'_>) -> Result<(), Answer> {
        if kind(held) != Some(FileType::Socket) || !canonical(held, self.target) {
            return Err(Answer::Fail(Errno::CONNREFUSED));
        }
        let path = self.target.as_bytes();
        let granted = self.scope.sockets.iter().any(|socket| socket.to_bytes() == path);
        let in_roots = self.scope.is_in_roots(path) && !is_read_only(held);
        let protected =
            self.scope.mode == Mode::LandlockOnly && self.scope.is_protected_by_name(path);
        if granted {
            return Ok(());
        }
        if in_roots && !protected {
            match owner_of(self.scope, held) {
                Owner::Cage => return Ok(()),
                Owner::Nobody => return Err(Answer::Fail(Errno::CONNREFUSED)),
                Owner::Other => {}
            }
        }
        if NAME_SERVICES.iter().any(|service| super::place::is_beneath(path, service)) {
            return Err(Answer::Fail(Errno::CONNREFUSED));
        }
        let (operation, rule) = (Operation::Connect, DenialRule::SocketOutsideWritableRoots);
        Err(Answer::Refuse { errno: Errno::ACCESS, operation, rule })
    }

    /// With the network off only the cage's own loopback is there. The host's name server is not,
    /// even if it is on a loopback.
    fn internet(&mut self, to: SocketAddr, operation: Operation) -> Result<(), Answer> {
        if self.scope.network == NetworkAccess::Enabled {
            return Ok(());
        }
        let asks_host = to.port() == DOMAIN_PORT
            && self.scope.nameservers.iter().flatten().any(|server| *server == to.ip());
        let errno = match (is_local(to), asks_host) {
            (true, false) => return Ok(()),
            (true, true) => Errno::CONNREFUSED,
            (false, _) => Errno::NETUNREACH,
        };
        write_internet(to, self.target);
        Err(Answer::Refuse { errno, operation, rule: DenialRule::NetworkOff })
    }

    /// Mounts and Landlock decide where a socket can be made; everything else is the cage's own.
    pub(super) fn bind(&mut self) -> Answer {
        let [number, pointer, len, ..] = self.asked.arguments;
        let Ok(address) = Address::read(self.asked.thread, pointer, len) else {
            return Answer::Continue;
        };
        let Some(UnixName::Path(path)) = address.unix() else { return Answer::Continue };
        let entry = Place::given(self.asked.thread, libc::AT_FDCWD, path)
            .and_then(|place| place.split())
            .filter(|entry| !entry.slash);
        let mut files = Files { scope: self.scope, asked: self.asked, target: &mut *self.target };
        let refused = entry.and_then(|entry| files.create(&entry, Operation::Bind));
        let is_unix = |socket: OwnedFd| {
            sockopt::socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX)
        };
        match refused {
            Some(refused) if self.socket(number).is_ok_and(is_unix) => refused,
            _ => Answer::Continue,
        }
    }

    /// A datagram with an address of its own.
    pub(super) fn send_to(&mut self) -> Answer {
        let [number, _, _, flags, pointer, len] = self.asked.arguments;
        self.send(number, flags, pointer, len)
    }

    /// The first of the messages, which is the one whose error is told.
    pub(super) fn send_message(&mut self, flags: usize) -> Answer {
        let [number, header, ..] = self.asked.arguments;
        let flags = self.asked.arguments.get(flags).copied().unwrap_or(0);
        // The name and its length come first.
        let mut bytes = [0; 12];
        if read_memory(self.asked.thread, header, &mut bytes) < bytes.len() {
            return Answer::Continue;
        }
        let pointer = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let len = bytes.last_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        if pointer == 0 || len == 0 {
            return Answer::Continue;
        }
        self.send(number, flags, pointer, u64::from(len))
    }

    fn send(&mut self, number: u64, flags: u64, pointer: u64, len: u64) -> Answer {
        let address = Address::read(self.asked.thread, pointer, len);
        let Some(to) = address.ok().and_then(Address::internet_of_message) else {
            return Answer::Continue;
        };
        let Err(refused) = self.internet(to, Operation::Send) else { return Answer::Continue };
        let fast_open = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
        // A stream that is connected takes no notice of an address.
        let minds = |socket: OwnedFd| {
            let internet = [AddressFamily::INET, AddressFamily::INET6];
            sockopt::socket_domain(&socket).is_ok_and(|domain| internet.contains(&domain))
                && sockopt::socket_type(&socket)
                    .is_ok_and(|kind| kind != SocketType::STREAM || flags & fast_open != 0)
        };
        if self.socket(number).is_ok_and(minds) { refused } else { Answer::Continue }
    }
}
