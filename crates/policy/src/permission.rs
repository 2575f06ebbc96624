//! What was decided about a command, before it is bound to that command as a [`Grant`].
//!
//! A permission comes from a requirement that asks nobody, or from a person's yes to one that does.
//! There is no other way to have one.

use crate::grant::{Confinement, Extras, Grant, Grantor};
use crate::requirement::{ApprovalRequirement, BypassSandbox};
use sandgate_protocol::{ExecParams, ReviewDecision, SandboxPolicy};
use std::path::PathBuf;

/// What was decided about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    bypass_sandbox: BypassSandbox,
    extras: Extras,
    grantor: Grantor,
}

impl Permission {
    /// What follows from a requirement, if it asks nobody.
    pub fn without_asking(requirement: &ApprovalRequirement) -> Option<Self> {
        match requirement {
            ApprovalRequirement::Skip { bypass_sandbox } => Some(Self {
                bypass_sandbox: *bypass_sandbox,
                extras: Extras::default(),
                grantor: Grantor::Policy,
            }),
            ApprovalRequirement::NeedsApproval { .. } | ApprovalRequirement::Forbidden { .. } => {
                None
            }
        }
    }

    /// What follows from a person's answer to a requirement that asks for one, if it is a yes.
    pub fn answered(requirement: &ApprovalRequirement, answer: &ReviewDecision) -> Option<Self> {
        match requirement {
            ApprovalRequirement::NeedsApproval { bypass_sandbox, .. } if answer.approves() => {
                // Who says yes only to what was blocked, before anything was, says yes inside.
                let bypass_sandbox = match answer {
                    ReviewDecision::ApprovedWithGrant { .. } => BypassSandbox::No,
                    _ => *bypass_sandbox,
                };
                let grantor = Grantor::Person;
                Some(Self { bypass_sandbox, extras: Extras::default(), grantor })
            }
            _ => None,
        }
    }

    /// What follows from a person's answer after the sandbox refused something: only what was
    /// offered is opened, or the sandbox is left, or nothing.
    #[must_use]
    pub fn after_denial(&self, answer: &ReviewDecision, offer: &Extras) -> Option<Self> {
        let mut again = Self { grantor: Grantor::Person, ..self.clone() };
        match answer {
            ReviewDecision::ApprovedWithGrant { .. } => again.extras.extend(offer),
            ReviewDecision::Approved
            | ReviewDecision::ApprovedForSession
            | ReviewDecision::ApprovedWithRule => again.bypass_sandbox = BypassSandbox::Yes,
            ReviewDecision::Denied { .. } | ReviewDecision::Abort => return None,
        }
        Some(again)
    }

    /// Adds what a person has opened for the whole session.
    #[must_use]
    pub fn with_session_extras(mut self, extras: &Extras) -> Self {
        self.extras.extend(extras);
        self
    }

    /// Whether the command runs without the sandbox that the policy asks for.
    pub fn bypass_sandbox(&self) -> BypassSandbox {
        self.bypass_sandbox
    }

    /// What is opened beyond the policy.
    pub fn extras(&self) -> &Extras {
        &self.extras
    }

    /// Who gave it.
    pub fn grantor(&self) -> Grantor {
        self.grantor
    }

    /// Binds it to its command. `workspace` is the session's, never the call's.
    pub fn grant(&self, params: ExecParams, policy: SandboxPolicy, workspace: PathBuf) -> Grant {
        let confinement = match self.bypass_sandbox {
            BypassSandbox::Yes => Confinement::Unconfined,
            BypassSandbox::No => Confinement::Sandboxed { policy, workspace },
        };
        Grant::permitted(params, confinement, self.extras.clone(), self.grantor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::GrantScope;

    fn asks(bypass_sandbox: BypassSandbox) -> ApprovalRequirement {
        let reason = "because".to_owned();
        ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule: None }
    }

    const NOTHING: BypassSandbox = BypassSandbox::No;

    #[test]
    fn only_a_requirement_that_asks_nobody_permits_by_itself() {
        let skip = ApprovalRequirement::Skip { bypass_sandbox: NOTHING };
        assert!(Permission::without_asking(&skip).is_some());
        assert!(Permission::without_asking(&asks(NOTHING)).is_none());
        let forbidden = ApprovalRequirement::Forbidden { reason: String::new() };
        assert!(Permission::without_asking(&forbidden).is_none());
        assert!(Permission::answered(&forbidden, &ReviewDecision::Approved).is_none());
        assert!(Permission::answered(&skip, &ReviewDecision::Approved).is_none());
    }

    #[test]
    fn a_no_permits_nothing() {
        for no in [ReviewDecision::DENIED, ReviewDecision::Abort] {
            assert!(Permission::answered(&asks(NOTHING), &no).is_none());
            let yes = Permission::answered(&asks(NOTHING), &ReviewDecision::Approved).unwrap();
            assert!(yes.after_denial(&no, &Extras::default()).is_none());
        }
    }

    #[test]
    fn after_a_denial_the_narrow_yes_stays_inside_and_the_plain_one_leaves() {
        let first = Permission::answered(&asks(NOTHING), &ReviewDecision::Approved).unwrap();
        let offer = Extras { writable: vec!["/ws/.git".into()], ..Extras::default() };
        let narrow = ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call };
        let again = first.after_denial(&narrow, &offer).unwrap();
        assert_eq!((again.bypass_sandbox(), again.extras()), (BypassSandbox::No, &offer));
        let again = first.after_denial(&ReviewDecision::Approved, &offer).unwrap();
        assert_eq!(again.bypass_sandbox(), BypassSandbox::Yes);
        assert!(again.extras().is_empty());
    }
}
