//! That nothing in `sandbox` tells an error by the C library's `errno`.
//!
//! What makes a cage ready shares its maker's memory, and `errno` with it, so what one of them was refused the other
//! would read.

use super::rust::is_punct;
use super::{Finding, Tree};
use proc_macro2::{Delimiter, Ident, TokenTree};

/// Where it matters, and the file there that makes the calls itself.
const PLACES: &[&str] = &["crates/sandbox/src/sys/", "crates/sandbox/src/linux/"];
const EXCEPT: &[&str] = &["crates/sandbox/src/sys/call.rs", "crates/sandbox/src/sys/windows/"];

/// What goes by it.
const BY_ERRNO: &[&str] = &["__errno_location", "last_os_error", "syscall"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_in = |path: &str, places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        if !is_in(file.path, PLACES) || is_in(file.path, EXCEPT) {
            continue;
        }
        for tokens in file.sequences() {
            for name in tokens.windows(2).filter_map(named) {
                let message = format!(
                    "`{name}` goes by the C library's `errno`, which processes here share; use `sys/call.rs`"
                );
                findings.push(Finding::new(file.path, name.span().start().line, message));
            }
        }
    }
    findings
}

/// One of those functions, called or named by its path. A field may have such a name.
fn named(pair: &[TokenTree]) -> Option<&Ident> {
    let is_one = |name: &&Ident| BY_ERRNO.contains(&name.to_string().as_str());
    match pair {
        [TokenTree::Ident(name), TokenTree::Group(group)]
            if group.delimiter() == Delimiter::Parenthesis =>
        {
            Some(name).filter(is_one)
        }
        [before, TokenTree::Ident(name)] if is_punct(Some(before), ':') => {
            Some(name).filter(is_one)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec TIDY.23: A source of `sandbox` for Linux that goes by the C library's `errno` is a finding, but for the one
    /// file that makes system calls.
    #[test]
    fn what_goes_by_errno_is_found() {
        for name in BY_ERRNO {
            let called = format!("fn f() {{\n    g({name}(1));\n    g(a.{name}, {name}: 1);\n}}\n");
            let text = format!("{called}// {name}\nuse libc::{name};\n");
            let found = |path: &str| {
                let findings = check(&Tree::of(&[(path, &text)]));
                let lines = findings.iter().map(|finding| finding.line);
                lines.collect::<std::collections::BTreeSet<_>>()
            };
            for path in ["crates/sandbox/src/sys/mod.rs", "crates/sandbox/src/linux/enter.rs"] {
                assert_eq!(found(path), [2, 6].into());
            }
            for path in ["crates/sandbox/src/sys/call.rs", "crates/process/src/sys/linux/raw.rs"] {
                assert_eq!(found(path), [].into());
            }
        }
    }
}
