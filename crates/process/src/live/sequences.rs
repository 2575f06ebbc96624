//! Finds the control sequences in a terminal's output that ask or change something which matters to us.
//!
//! Text is skipped at the speed of a search for ESC. Nothing is understood here but where a sequence
//! ends; bytes may be split anywhere.

use memchr::memchr;

/// The longest sequence that is looked at. Those that matter are short.
const MAX: usize = 64;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Finds sequences, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// The sequence that has begun, from its ESC on.
    open: Vec<u8>,
}

/// A sequence without its introducer and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sequence<'a> {
    /// `ESC [ parameters final`.
    Csi { parameters: &'a [u8], last: u8 },
    /// `ESC ] text` up to its terminator.
    Osc(&'a [u8]),
}

impl Sequences {
    /// Names each sequence that ends in these bytes, and where the bytes after it begin.
    pub(super) fn read(&mut self, bytes: &[u8], mut each: impl FnMut(usize, Sequence<'_>)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.open.is_empty() {
                let Some(found) = memchr(ESC, &bytes[at..]) else { return };
                at += found;
            }
            let byte = bytes[at];
            self.open.push(byte);
            at += 1;
            match self.state() {
                State::Open if self.open.len() < MAX => {}
                State::Complete(sequence) => {
                    each(at, sequence);
                    self.open.clear();
                }
                State::Open | State::Other => {
                    self.open.clear();
                    // What broke it off may begin the next one.
                    if byte == ESC {
                        self.open.push(ESC);
                    }
                }
            }
        }
    }

    fn state(&self) -> State<'_> {
        match self.open.as_slice() {
            [ESC] | [ESC, b'[' | b']'] => State::Open,
            [ESC, b'[', parameters @ .., last] => match last {
                0x20..=0x3f => State::Open,
                0x40..=0x7e => State::Complete(Sequence::Csi { parameters, last: *last }),
                _ => State::Other,
            },
            [ESC, b']', text @ .., BEL] | [ESC, b']', text @ .., ESC, b'\\'] => {
                State::Complete(Sequence::Osc(text))
            }
            // An ESC that ends no string breaks it off.
            [ESC, b']', .., ESC, _] => State::Other,
            [ESC, b']', .., ESC | 0x20..] => State::Open,
            _ => State::Other,
        }
    }
}

enum State<'a> {
    Open,
    Complete(Sequence<'a>),
    Other,
}
