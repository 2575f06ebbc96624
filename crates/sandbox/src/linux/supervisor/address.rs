//! Addresses of sockets, copied from the process that gave them.

use super::place::own_link;
use super::text::PathText;
use crate::sys::notify::read_memory;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest address of any family.
const MOST: usize = 128;

/// Where the name begins in an address of a unix socket, and where the longest ends.
const UNIX_NAME: std::ops::Range<usize> = 2..110;

/// An address as the kernel takes it. The copy is what is judged and what is used.
#[derive(Clone, Copy)]
pub(super) struct Address {
    bytes: [u8; MOST],
    len: usize,
}

/// What an address of a unix socket names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnixName<'a> {
    Path(&'a [u8]),
    /// A name that is no file's.
    Abstract(&'a [u8]),
}

impl Address {
    /// Copies an address from a thread's memory.
    ///
    /// # Errors
    /// As the kernel's own copying has them.
    pub(super) fn read(thread: i32, pointer: u64, len: u64) -> Result<Self, Errno> {
        // The kernel takes the length as 32 bits with a sign.
        let len = usize::try_from(len & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        let mut address = Self { bytes: [0; MOST], len };
        let bytes = address.bytes.get_mut(..len).ok_or(Errno::INVAL)?;
        if read_memory(thread, pointer, bytes) < len {
            return Err(Errno::FAULT);
        }
        Ok(address)
    }

    /// The address of a unix socket that this process holds.
    pub(super) fn of_held(held: BorrowedFd<'_>) -> Self {
        let link = own_link(held);
        let path = link.as_c_str().to_bytes_with_nul();
        let mut address = Self { bytes: [0; MOST], len: UNIX_NAME.start + path.len() };
        let family = u16::try_from(libc::AF_UNIX).unwrap_or(0).to_ne_bytes();
        for (to, from) in address.bytes.iter_mut().zip(family.iter().chain(path)) {
            *to = *from;
        }
        address
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn family(&self) -> i32 {
        let family = self.as_bytes().first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        family.map_or(libc::AF_UNSPEC, i32::from)
    }

    /// What it names as an address of a unix socket; `None` when the kernel does not take it for
    /// one that could be connected to.
    pub(super) fn unix(&self) -> Option<UnixName<'_>> {
        let name = self.as_bytes().get(UNIX_NAME.start..).filter(|name| !name.is_empty())?;
        if self.family() != libc::AF_UNIX || self.len > UNIX_NAME.end {
            return None;
        }
        match name.split_first()? {
            (0, rest) => Some(UnixName::Abstract(rest)),
            _ => name.split(|&byte| byte == 0).next().map(UnixName::Path),
        }
    }

    /// The address and port that it names; `None` when it is of another family or too short.
    pub(super) fn internet(&self) -> Option<SocketAddr> {
        let bytes = self.as_bytes();
        let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
        let address: IpAddr = match self.family() {
            libc::AF_INET if self.len >= 16 => {
                Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).into()
            }
            libc::AF_INET6 if self.len >= 24 => {
                Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?).to_canonical()
            }
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }

    /// The same for a message, where an address without a family is the internet's.
    pub(super) fn internet_of_message(mut self) -> Option<SocketAddr> {
        if self.family() == libc::AF_UNSPEC {
            let family = u16::try_from(libc::AF_INET).unwrap_or(0).to_ne_bytes();
            self.bytes.get_mut(..2)?.copy_from_slice(&family);
        }
        self.internet()
    }
}

/// Whether an address is the machine's own: to the cage, its loopback.
pub(super) fn is_local(address: SocketAddr) -> bool {
    address.ip().is_loopback() || address.ip().is_unspecified()
}

/// Writes an address and its port as people do.
pub(super) fn write_internet(address: SocketAddr, into: &mut PathText) {
    into.clear();
    // It fits by far.
    let _ = write!(into, "{address}");
}

/// Writes a name that is no file's as people do: bytes that are none stand as an at sign too.
pub(super) fn write_abstract(name: &[u8], into: &mut PathText) {
    into.clear();
    let _ = into.push(b"@");
    for part in name {
        let _ = into.push(if *part == 0 { b"@" } else { std::slice::from_ref(part) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(family: i32, rest: &[u8]) -> Address {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        let mut address = Address { bytes: [0; MOST], len: 2 + rest.len() };
        address.bytes[..2].copy_from_slice(&family);
        address.bytes[2..address.len].copy_from_slice(rest);
        address
    }

    #[test]
    fn an_address_is_read_as_the_kernel_reads_it() {
        let rest = [&[1, 187, 93, 184, 216, 34][..], &[0; 8]].concat();
        let four = address(libc::AF_INET, &rest);
        assert_eq!(four.internet(), Some("93.184.216.34:443".parse().unwrap()));
        assert_eq!(address(libc::AF_INET, &rest[..13]).internet(), None, "too short");
        let mapped = [&[0, 53, 0, 0, 0, 0][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 53]].concat();
        let mapped = address(libc::AF_INET6, &mapped).internet().unwrap();
        assert_eq!(mapped, "127.0.0.53:53".parse().unwrap());
        assert!(is_local(mapped));
        let six = [&[31, 144, 0, 0, 0, 0][..], &[0; 15], &[1], &[0; 4]].concat();
        let mut text = PathText::new();
        write_internet(address(libc::AF_INET6, &six).internet().unwrap(), &mut text);
        assert_eq!(text.as_bytes(), b"[::1]:8080");
        let loose = address(libc::AF_UNSPEC, &rest);
        assert_eq!(loose.internet(), None);
        assert_eq!(loose.internet_of_message(), four.internet());
    }

    #[test]
    fn a_unix_address_names_a_path_or_an_abstract_name_or_nothing() {
        let of = |rest: &'static [u8]| address(libc::AF_UNIX, rest);
        assert_eq!(of(b"/run/x\0junk").unix(), Some(UnixName::Path(b"/run/x")));
        assert_eq!(of(b"relative").unix(), Some(UnixName::Path(b"relative")));
        assert_eq!(of(b"\0bus").unix(), Some(UnixName::Abstract(b"bus")));
        assert_eq!(of(b"").unix(), None);
        assert_eq!(of(&[b'x'; 109]).unix(), None, "longer than the kernel takes");
        assert_eq!(address(libc::AF_INET, b"/run/x").unix(), None);
        let mut text = PathText::new();
        write_abstract(b"a\0b", &mut text);
        assert_eq!(text.as_bytes(), b"@a@b");
    }
}
