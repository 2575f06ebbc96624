//! The calls to Windows: tokens and access lists. The only unsafe code of this crate there.

#![allow(unsafe_code, reason = "this module is where the crate talks to the system")]

mod lists;
mod token;

pub(crate) use lists::FileLists;
pub(crate) use token::restricted_token;

use std::io;

/// What a call says that answers with a boolean.
fn done(result: windows_sys::core::BOOL) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes for Windows to read as a structure, which must lie on a boundary of four.
struct Aligned(Vec<u32>);

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_ne_bytes(word)
        };
        Self(bytes.chunks(4).map(word).collect())
    }

    fn as_ptr<T>(&self) -> *const T {
        self.0.as_ptr().cast()
    }
}
