//! What the host, the nursery and the wardens say to each other.
//!
//! All three are the same program on the same machine, so numbers are in native order. The strings
//! of a request come on the job's own socket, in as many packets as they need: a packet is
//! bounded, and an environment is not. Those that there is room for are there before the request is.

use crate::handle::Exit;
use crate::sys::{Ended, Held};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

/// How many descriptors go with a request, in this order: the job's socket, stdin, stdout, stderr.
pub(super) const REQUEST_FDS: usize = 4;

/// The largest piece of a request's strings that is sent at once.
pub(super) const PACKET_BYTES: usize = 64 * 1024;

/// The longest message from a warden: a denial with the longest path there is.
pub(super) const REPLY_BYTES: usize = 4096 + 64;

/// The fixed part of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request {
    /// Length of its strings.
    pub(super) len: u32,
    /// How many of them are arguments; they follow the program and the directory.
    pub(super) argc: u32,
    /// How many are `NAME=value`; they follow the arguments.
    pub(super) envc: u32,
    /// What the standard streams are.
    pub(super) streams: Streams,
}

/// What a command's standard streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Streams {
    /// Descriptors of any kind, which go with the request.
    #[default]
    Sent,
    /// A terminal that the command is to control goes with the request.
    Terminal,
    /// Those that its guard has, with its session and its process group.
    Inherited,
}

/// From a warden to the host, or from the process that is to become its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// The request was taken whole; from now on the program may run.
    Taken,
    /// The program is running, with this process id, and held like this.
    Started { pid: i32, held: Held },
    /// It could not be started; for some stages there is more to say.
    Failed { stage: u32, errno: i32, step: &'a [u8] },
    /// It was stopped.
    Stopped,
    /// Something was refused to the job.
    Denied { operation: u32, rule: u32, syscall: i32, target: &'a [u8] },
    /// So many more were refused that were not said.
    MoreDenied { count: u64 },
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

fn unpack(bytes: &[u8]) -> Option<([u32; 3], &[u8])> {
    let (words, rest) = bytes.split_first_chunk::<12>()?;
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *words;
    let numbers = [
        u32::from_ne_bytes([a0, a1, a2, a3]),
        u32::from_ne_bytes([b0, b1, b2, b3]),
        u32::from_ne_bytes([c0, c1, c2, c3]),
    ];
    Some((numbers, rest))
}

/// A message to be sent.
pub(super) struct Message {
    bytes: [u8; REPLY_BYTES],
    len: usize,
}

impl Message {
    /// Three numbers and some bytes, which are cut if they are too many.
    fn new(words: Words, rest: &[u8]) -> Self {
        let mut bytes = [0; REPLY_BYTES];
        let (head, tail) = bytes.split_at_mut(words.len());
        head.copy_from_slice(&words);
        let n = rest.len().min(tail.len());
        tail[..n].copy_from_slice(&rest[..n]);
        Self { bytes, len: words.len() + n }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<'a> Reply<'a> {
    pub(super) fn encode(self) -> Message {
        let words = match self {
            Self::Taken => pack(6, 0, 0),
            Self::Started { pid, held } => {
                let held = u32::from(held.namespaces) | u32::from(held.supervised) << 1;
                pack(1, pid.cast_unsigned(), held)
            }
            Self::Failed { stage, errno, .. } => pack(2, stage, errno.cast_unsigned()),
            Self::Stopped => pack(7, 0, 0),
            Self::Denied { operation, rule, syscall, .. } => {
                pack(8, operation | rule << 16, syscall.cast_unsigned())
            }
            Self::MoreDenied { count } => {
                let count = count.to_ne_bytes();
                let [a, b, c, d, e, f, g, h] = count;
                pack(9, u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
            }
            Self::Ended(Ended { exit: Exit::Code(code), stragglers }) => {
                pack(3, code.cast_unsigned(), u32::from(stragglers))
            }
            Self::Ended(Ended { exit: Exit::Signal(signal), stragglers }) => {
                pack(5, signal.cast_unsigned(), u32::from(stragglers))
            }
            Self::Gone { left } => pack(4, left, 0),
        };
        let rest = match self {
            Self::Failed { step, .. } => step,
            Self::Denied { target, .. } => target,
            _ => &[],
        };
        Message::new(words, rest)
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (words, rest) = unpack(bytes)?;
        Some(match words {
            [1, pid, held] => {
                let held = Held { namespaces: held & 1 != 0, supervised: held & 2 != 0 };
                Self::Started { pid: pid.cast_signed(), held }
            }
            [2, stage, errno] => Self::Failed { stage, errno: errno.cast_signed(), step: rest },
            [3, code, more] => {
                Self::Ended(Ended { exit: Exit::Code(code.cast_signed()), stragglers: more != 0 })
            }
            [4, left, _] => Self::Gone { left },
            [5, signal, more] => Self::Ended(Ended {
                exit: Exit::Signal(signal.cast_signed()),
                stragglers: more != 0,
            }),
            [6, ..] => Self::Taken,
            [7, ..] => Self::Stopped,
            [8, what, syscall] => Self::Denied {
                operation: what & 0xffff,
                rule: what >> 16,
                syscall: syscall.cast_signed(),
                target: rest,
            },
            [9, low, high] => {
                let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
                Self::MoreDenied { count: u64::from_ne_bytes([a, b, c, d, e, f, g, h]) }
            }
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
        Some(match unpack(bytes)?.0 {
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
        bytes[12..].copy_from_slice(&(self.streams as u32).to_ne_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([len, argc, envc], last) = unpack(bytes)?;
        let streams = match u32::from_ne_bytes(last.try_into().ok()?) {
            0 => Streams::Sent,
            1 => Streams::Terminal,
            2 => Streams::Inherited,
            _ => return None,
        };
        Some(Self { len, argc, envc, streams })
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
        let held = Held { namespaces: true, supervised: false };
        for reply in [
            Reply::Taken,
            Reply::Started { pid: 7, held },
            Reply::Failed { stage: 5, errno: 2, step: b"mount /proc" },
            Reply::Stopped,
            Reply::Denied { operation: 3, rule: 2, syscall: 257, target: b"/etc/hosts" },
            Reply::MoreDenied { count: u64::MAX - 1 },
            Reply::Ended(Ended { exit: Exit::Code(3), stragglers: true }),
            Reply::Ended(Ended { exit: Exit::Signal(9), stragglers: false }),
            Reply::Gone { left: 3 },
        ] {
            assert_eq!(Reply::decode(reply.encode().as_bytes()), Some(reply));
        }
        for order in [Order::Kill, Order::Signal(15), Order::Leave] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        assert_eq!(Reply::decode(b"short"), None);
        assert_eq!(Order::decode(&pack(99, 0, 0)), None);
        let too_long = [b'x'; 2 * REPLY_BYTES];
        let message = Reply::Failed { stage: 1, errno: 2, step: &too_long }.encode();
        assert_eq!(message.as_bytes().len(), REPLY_BYTES);
    }
}
