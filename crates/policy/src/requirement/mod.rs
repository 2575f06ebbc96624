//! Whether a command may run, must be asked about, or is forbidden: what follows from its judgement
//! under the policies of a session.
//!
//! The answer is looked up in one table, and the same table is what `docs/approval-matrix.md`
//! shows. Whatever it says, nothing leaves the sandbox without a person, a rule, or the pair of
//! `never` and `danger-full-access` having said so; the one exception are commands known to be safe
//! on a machine without a sandbox, in a session where a person can be asked.

mod matrix;
mod patch;
mod reason;
mod table;
#[cfg(test)]
mod tests;
mod tighter;

pub use matrix::approval_matrix;
pub use patch::{PatchReach, patch_requirement};
pub use tighter::Policies;

use crate::judge::{Class, Judgement, Ruling};
use crate::rules::{Decision, ProposedRule, RuleSandbox};
use sandgate_protocol::{AskForApproval, SandboxPermissions, SandboxPolicy};
use table::{Case, Ground, Known, Question, RuleSays, Verdict};

/// What a session and a call say about approval, beside the command itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms<'a> {
    /// When a person is asked.
    pub approval: AskForApproval,
    /// What commands may touch. Only its kind matters here.
    pub sandbox: &'a SandboxPolicy,
    /// Whether the call asks to leave the sandbox.
    pub permissions: SandboxPermissions,
    /// Whether this machine can confine a command.
    pub availability: SandboxAvailability,
}

/// Whether this machine can confine a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxAvailability {
    /// It can.
    Available,
    /// It cannot.
    Unavailable,
}

/// What must happen before a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalRequirement {
    /// Nothing: it runs.
    Skip {
        /// Whether it does so without the sandbox that the policy asks for.
        bypass_sandbox: BypassSandbox,
    },
    /// A person must agree.
    NeedsApproval {
        /// Why, for the person: a fragment such as "it asks to run without the sandbox".
        reason: String,
        /// What the person agrees to: whether it then runs without the sandbox that the policy
        /// asks for.
        bypass_sandbox: BypassSandbox,
        /// A rule that would make this question needless in future. Where the command leaves the
        /// sandbox the rule lets it, or the same question would come again.
        proposed_rule: Option<ProposedRule>,
    },
    /// It does not run.
    Forbidden {
        /// Why, and what to do instead, for the model: whole sentences.
        reason: String,
    },
}

/// Whether a command runs without the sandbox that the policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BypassSandbox {
    /// It stays in it, or the policy asks for none.
    No,
    /// It runs without it.
    Yes,
}

/// What must happen before a judged command runs. `proposed_rule` is what an approval could carry,
/// and is dropped where it could not help.
///
/// The same command, in a session that asks nobody:
///
/// ```
/// use sandgate_policy::rules::Rules;
/// use sandgate_policy::{ApprovalRequirement, SandboxAvailability, Surroundings, Terms};
/// use sandgate_policy::{judge, requirement};
/// use sandgate_protocol::{AskForApproval, SandboxPermissions, SandboxPolicy};
///
/// let argv = ["sudo", "reboot"].map(str::to_owned);
/// let judgement = judge(&argv, &Surroundings::default(), &Rules::default());
/// let terms = Terms {
///     approval: AskForApproval::Never,
///     sandbox: &SandboxPolicy::ReadOnly,
///     permissions: SandboxPermissions::UseDefault,
///     availability: SandboxAvailability::Available,
/// };
/// let ApprovalRequirement::Forbidden { reason } = requirement(&judgement, &terms, None) else {
///     panic!("it would run")
/// };
/// println!("{reason}"); // whole sentences, for the model
/// ```
pub fn requirement(
    judgement: &Judgement,
    terms: &Terms<'_>,
    proposed_rule: Option<ProposedRule>,
) -> ApprovalRequirement {
    let case = case(&judgement.class, judgement.ruling.as_ref(), terms);
    let bypass_sandbox = if case.leaves() { BypassSandbox::Yes } else { BypassSandbox::No };
    match table::decide(case) {
        Verdict::Run => ApprovalRequirement::Skip { bypass_sandbox },
        Verdict::Ask(question) => ApprovalRequirement::NeedsApproval {
            reason: reason::for_person(question, case, judgement),
            bypass_sandbox,
            proposed_rule: proposed_rule.and_then(|rule| match question {
                // The strictest rule wins, so one that allows could not answer one that asks.
                Question::Rule => None,
                // One that keeps to the sandbox would not answer who asks to leave it, and be it
                // somebody else's.
                Question::Leaving => rule.leaving_the_sandbox(),
                _ if case.leaves() => rule.leaving_the_sandbox(),
                _ => Some(rule),
            }),
        },
        Verdict::Refuse(refusal) => {
            ApprovalRequirement::Forbidden { reason: reason::for_model(refusal, case, judgement) }
        }
    }
}

fn case(class: &Class, ruling: Option<&Ruling>, terms: &Terms<'_>) -> Case {
    let available = terms.availability == SandboxAvailability::Available;
    Case {
        rule: match ruling.map(|ruling| (ruling.decision, ruling.sandbox)) {
            None => RuleSays::Nothing,
            Some((Decision::Allow, RuleSandbox::Keep)) => RuleSays::AllowInside,
            Some((Decision::Allow, RuleSandbox::Bypass)) => RuleSays::AllowOutside,
            Some((Decision::Prompt, _)) => RuleSays::Prompt,
            Some((Decision::Forbid, _)) => RuleSays::Forbid,
        },
        permissions: terms.permissions,
        approval: terms.approval,
        ground: Ground::of(terms.sandbox, available),
        class: match class {
            Class::Safe => Known::Safe,
            Class::Unknown { .. } => Known::Unknown,
            Class::Dangerous(_) => Known::Dangerous,
        },
    }
}
