//! The console: what a browser is given.

/// Each file of the console: its path, what it is, and what is in it.
pub(crate) const FILES: &[(&str, &str, &[u8])] = &[(
    "/",
    "text/html; charset=utf-8",
    b"<!doctype html><title>sandgate</title><p>sandgate serves here.",
)];
