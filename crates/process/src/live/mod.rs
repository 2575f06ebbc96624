//! Interactive sessions: processes that live on across calls.

mod keys;
mod marks;
mod screen;
mod sequences;
#[cfg(unix)]
mod shell_marks;

pub use keys::{CursorKeys, UnknownKey, keys};
#[cfg(unix)]
pub use shell_marks::with_marks;
