//! The examples that stand beside a rule, tried when its file is read: a rule that does not do what
//! its writer expects is found before it is needed.

use super::error::Problem;
use super::{Decision, Rule};
use crate::judge::everything_seen;
use crate::script;

/// What a rule must make of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// It matches some command in it.
    Matched,
    /// It matches none.
    NotMatched,
}

/// Tries an example. What a rule allows is looked for in what was understood; what it asks about or
/// forbids, in all that can be made out, as when a command is judged.
pub(super) fn check(rule: &Rule, argv: &[String], expected: Expected) -> Result<(), Problem> {
    let reading = script::read(argv);
    let matched = match rule.decision {
        Decision::Allow => reading.commands.iter().any(|command| rule.matches(command)),
        Decision::Prompt | Decision::Forbid => {
            everything_seen(&reading).iter().any(|command| rule.matches(command))
        }
    };
    let not_understood = reading.opaque.filter(|_| rule.decision == Decision::Allow);
    match (expected, matched, not_understood) {
        (Expected::Matched, true, None) | (Expected::NotMatched, false, _) => Ok(()),
        (Expected::Matched, true, Some(opacity)) => {
            Err(Problem::ExampleNotMatched { reason: Some(opacity.to_string()) })
        }
        (Expected::Matched, false, _) => Err(Problem::ExampleNotMatched { reason: None }),
        // An opaque script is allowed by no rule, whatever it begins with.
        (Expected::NotMatched, true, Some(_)) => Ok(()),
        (Expected::NotMatched, true, None) => Err(Problem::ExampleMatched),
    }
}
