//! The cage's own loopback.

use crate::sys;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings `lo` up in a new network namespace, where nothing else is. Gives a socket that belongs there.
pub(super) fn loopback_up() -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::interface_up(&socket, c"lo")?;
    Ok(socket)
}
