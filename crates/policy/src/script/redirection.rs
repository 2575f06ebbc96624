//! What a redirection means by its operator, its descriptor and its target.

use super::ShellKind;
use crate::command::{Redirection, RedirectionKind, Shape, Word};

/// An operator as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>|`
    Clobber,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>`
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `>&`
    DuplicateWritten,
    /// `<&`
    DuplicateRead,
    /// `<<<`
    HereString,
}

/// A redirection that is not understood.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The nearest guess.
    pub(super) guess: Redirection,
    /// What is wrong with it.
    pub(super) why: &'static str,
}

/// The redirection.
///
/// # Errors
/// When shells do not agree on what it does.
pub(super) fn redirection(
    shell: ShellKind,
    descriptor: Option<u32>,
    operator: Operator,
    target: Word,
) -> Result<Redirection, Box<Wrong>> {
    let names_descriptor =
        target.as_literal().is_some_and(|text| matches!(text.as_bytes(), b"-" | [b'0'..=b'9']));
    let starts_like_one =
        target.text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    let kind = match operator {
        Operator::Read => RedirectionKind::Read,
        Operator::Write => RedirectionKind::Write,
        Operator::Clobber => RedirectionKind::Clobber,
        Operator::Append => RedirectionKind::Append,
        Operator::ReadWrite => RedirectionKind::ReadWrite,
        Operator::AppendBoth => RedirectionKind::AppendBoth,
        Operator::HereString => RedirectionKind::HereString,
        Operator::WriteBoth => RedirectionKind::WriteBoth,
        Operator::DuplicateWritten | Operator::DuplicateRead if names_descriptor => {
            RedirectionKind::Duplicate
        }
        Operator::DuplicateWritten => RedirectionKind::WriteBoth,
        Operator::DuplicateRead => RedirectionKind::Read,
    };
    // bash expands the name of a file behind `>&` a second time, quoted or not: `>& '$(x)'` runs x.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:@+%".contains(&byte);
    let expands_twice = operator == Operator::DuplicateWritten
        && !names_descriptor
        && !target.text.bytes().all(is_plain);
    let is_both = matches!(kind, RedirectionKind::WriteBoth | RedirectionKind::AppendBoth);
    let why = if shell == ShellKind::Posix && (is_both || kind == RedirectionKind::HereString) {
        Some("it redirects in a way that is not the same in every sh")
    } else if operator == Operator::DuplicateRead && !names_descriptor
        || is_both && (descriptor.is_some() || starts_like_one)
        || expands_twice
    {
        Some("it redirects in an unusual way")
    } else if target.shape == Shape::Pattern {
        Some("it redirects to a file name pattern")
    } else {
        None
    };
    let redirection = Redirection { descriptor, kind, target };
    match why {
        Some(why) => Err(Box::new(Wrong { guess: redirection, why })),
        None => Ok(redirection),
    }
}
