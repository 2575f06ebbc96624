//! What the host, the nursery and the wardens say to each other.
//!
//! All three are the same program on the same machine, so numbers are in native order. The strings
//! of a request follow it on the job's own socket, in as many packets as they need: a packet is
//! bounded, and an environment is not.

use crate::handle::Exit;
use crate::sys::Ended;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

/// How many descriptors go with a request, in this order: the job's socket, stdin, stdout, stderr.
pub(super) const REQUEST_FDS: usize = 4;

/// The largest piece of a request's strings that is sent at once.
pub(super) const PACKET_BYTES: usize = 64 * 1024;

/// The fixed part of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request {
    /// Length of its strings.
    pub(super) len: u32,
    /// How many of them are arguments; they follow the program and the directory.
    pub(super) argc: u32,
    /// How many are `NAME=value`; they follow the arguments.
    pub(super) envc: u32,
    /// Whether stdin is a terminal that the command is to control.
    pub(super) terminal: u32,
}

/// From a warden to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// The request was taken whole; from now on the program may run.
    Taken,
    /// The program is running, with this process id.
    Started { pid: i32 },
    /// It could not be started.
    Failed { stage: u32, errno: i32 },
    /// It ended like this, and whether other processes of the job are there.
    Ended(Ended),
    /// All processes of the job are gone but so many that the system did not let us end.
    Gone { left: u32 },
}

/// From the host to a warden. Closing the socket says `Kill` too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// End every process of the job.
    Kill,
    /// Send this signal to the command's process group.
    Signal(i32),
    /// Let what is left of the job live for as long as it likes.
    Leave,
}

type Words = [u8; 12];

fn pack(a: u32, b: u32, c: u32) -> Words {
    let mut words = Words::default();
    words[0..4].copy_from_slice(&a.to_ne_bytes());
    words[4..8].copy_from_slice(&b.to_ne_bytes());
    words[8..12].copy_from_slice(&c.to_ne_bytes());
    words
}

fn unpack(bytes: &[u8]) -> Option<[u32; 3]> {
    let words: &Words = bytes.try_into().ok()?;
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *words;
    Some([
        u32::from_ne_bytes([a0, a1, a2, a3]),
        u32::from_ne_bytes([b0, b1, b2, b3]),
        u32::from_ne_bytes([c0, c1, c2, c3]),
    ])
}

impl Reply {
    pub(super) fn encode(self) -> Words {
        match self {
            Self::Taken => pack(6, 0, 0),
            Self::Started { pid } => pack(1, pid.cast_unsigned(), 0),
            Self::Failed { stage, errno } => pack(2, stage, errno.cast_unsigned()),
            Self::Ended(Ended { exit: Exit::Code(code), stragglers }) => {
                pack(3, code.cast_unsigned(), u32::from(stragglers))
            }
            Self::Ended(Ended { exit: Exit::Signal(signal), stragglers }) => {
                pack(5, signal.cast_unsigned(), u32::from(stragglers))
            }
            Self::Gone { left } => pack(4, left, 0),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(match unpack(bytes)? {
            [1, pid, _] => Self::Started { pid: pid.cast_signed() },
            [2, stage, errno] => Self::Failed { stage, errno: errno.cast_signed() },
            [3, code, more] => {
                Self::Ended(Ended { exit: Exit::Code(code.cast_signed()), stragglers: more != 0 })
            }
            [4, left, _] => Self::Gone { left },
            [6, ..] => Self::Taken,
            [5, signal, more] => Self::Ended(Ended {
                exit: Exit::Signal(signal.cast_signed()),
                stragglers: more != 0,
            }),
            _ => return None,
        })
    }
}

impl Order {
    pub(super) fn encode(self) -> Words {
        match self {
            Self::Kill => pack(1, 0, 0),
            Self::Signal(signal) => pack(2, signal.cast_unsigned(), 0),
            Self::Leave => pack(3, 0, 0),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Some(match unpack(bytes)? {
            [1, ..] => Self::Kill,
            [2, signal, _] => Self::Signal(signal.cast_signed()),
            [3, ..] => Self::Leave,
            _ => return None,
        })
    }
}

impl Request {
    pub(super) const LEN: usize = 16;

    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..12].copy_from_slice(&pack(self.len, self.argc, self.envc));
        bytes[12..].copy_from_slice(&self.terminal.to_ne_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, last) = bytes.split_at_checked(12)?;
        let [len, argc, envc] = unpack(head)?;
        Some(Self { len, argc, envc, terminal: u32::from_ne_bytes(last.try_into().ok()?) })
    }

    /// A command's strings, each ended by a NUL, and what they are.
    ///
    /// The strings hold no NUL of their own: the caller has checked that.
    pub(super) fn describe(env: &sandgate_sandbox::ExecEnv) -> io::Result<(Self, Vec<u8>)> {
        let mut strings = Vec::with_capacity(4096);
        let mut push = |parts: &[&[u8]]| {
            for part in parts {
                strings.extend_from_slice(part);
            }
            strings.push(0);
        };
        push(&[env.program().as_os_str().as_bytes()]);
        push(&[env.cwd().as_os_str().as_bytes()]);
        let mut request = Self::default();
        for arg in env.argv() {
            push(&[arg.as_bytes()]);
            request.argc += 1;
        }
        for (name, value) in env.env() {
            push(&[name.as_bytes(), b"=", value.as_bytes()]);
            request.envc += 1;
        }
        request.len =
            u32::try_from(strings.len()).map_err(|_| io::ErrorKind::ArgumentListTooLong)?;
        Ok((request, strings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        for reply in [
            Reply::Taken,
            Reply::Started { pid: 7 },
            Reply::Failed { stage: 5, errno: 2 },
            Reply::Ended(Ended { exit: Exit::Code(3), stragglers: true }),
            Reply::Ended(Ended { exit: Exit::Signal(9), stragglers: false }),
            Reply::Gone { left: 3 },
        ] {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
        for order in [Order::Kill, Order::Signal(15), Order::Leave] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        assert_eq!(Reply::decode(b"short"), None);
        assert_eq!(Order::decode(&pack(99, 0, 0)), None);
    }
}
