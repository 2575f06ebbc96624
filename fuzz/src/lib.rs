//! What the targets hold their results against, apart from the code that they try.

#![forbid(unsafe_code)]

pub mod shell;
pub mod shown;
