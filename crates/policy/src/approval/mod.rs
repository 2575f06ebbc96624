//! What can be approved: its keys, when a person is asked about it, and what of the answers is
//! remembered.
//!
//! Asking takes time and is the runtime's. What is here is only what asking depends on.

mod closed;
mod key;
mod runs;
mod store;

pub use key::{ApprovalKey, Content};
pub use runs::{Runs, runs, sourced};
pub use store::{ApprovalStore, MAX_KEYS, MAX_ROOTS, Remembered, RootRefused};

use crate::requirement::{ApprovalRequirement, BypassSandbox, Terms};
use sandgate_protocol::AskForApproval;

/// A request that a person may have to approve.
///
/// A tool gives its keys and what it requires; the rest follows from these and is the same for all.
pub trait Approvable {
    /// What an approval of it is remembered by. Every one of them must be approved for the request
    /// to be. None means that each request is asked about anew.
    fn approval_keys(&self) -> Vec<ApprovalKey>;

    /// What must happen before it runs.
    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement;

    /// Whether a yes can hold for the session, where it means to run like this: not if what would run then
    /// may be something else.
    fn lasts(&self, bypass_sandbox: BypassSandbox) -> bool {
        let _ = bypass_sandbox;
        true
    }

    /// Whether a person has to be asked before its first attempt.
    fn wants_initial_approval(&self, terms: &Terms<'_>) -> bool {
        matches!(self.approval_requirement(terms), ApprovalRequirement::NeedsApproval { .. })
    }

    /// Whether the question can be left out. Under `never` there are no questions, which is not the
    /// same as a yes: what would need one is forbidden there.
    fn should_bypass_approval(&self, policy: AskForApproval, remembered: Remembered) -> bool {
        match policy {
            AskForApproval::Never => true,
            AskForApproval::UnlessTrusted
            | AskForApproval::OnFailure
            | AskForApproval::OnRequest => remembered == Remembered::Approved,
        }
    }

    /// Whether a person is asked about another attempt after the sandbox has blocked the first.
    fn wants_no_sandbox_approval(&self, policy: AskForApproval) -> bool {
        match policy {
            AskForApproval::UnlessTrusted
            | AskForApproval::OnFailure
            | AskForApproval::OnRequest => true,
            AskForApproval::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::SandboxAvailability;
    use sandgate_protocol::{SandboxPermissions, SandboxPolicy};

    /// Something that is asked about under every policy but `never`.
    struct Request;

    impl Approvable for Request {
        fn approval_keys(&self) -> Vec<ApprovalKey> {
            vec![ApprovalKey::patch("/ws/a")]
        }

        fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
            match terms.approval {
                AskForApproval::Never => {
                    ApprovalRequirement::Skip { bypass_sandbox: BypassSandbox::No }
                }
                _ => ApprovalRequirement::NeedsApproval {
                    reason: "it is a test".to_owned(),
                    bypass_sandbox: BypassSandbox::No,
                    proposed_rule: None,
                },
            }
        }
    }

    const ASKING: [AskForApproval; 3] =
        [AskForApproval::UnlessTrusted, AskForApproval::OnFailure, AskForApproval::OnRequest];

    #[test]
    fn a_person_is_asked_first_when_the_requirement_says_so() {
        let wants = |approval| {
            Request.wants_initial_approval(&Terms {
                approval,
                sandbox: &SandboxPolicy::ReadOnly,
                permissions: SandboxPermissions::UseDefault,
                availability: SandboxAvailability::Available,
            })
        };
        assert!(ASKING.into_iter().all(wants));
        assert!(!wants(AskForApproval::Never));
    }

    /// spec APPROVAL.30: After the sandbox blocked a command a person is asked under untrusted,
    /// on-failure and on-request, and nobody under never.
    #[test]
    fn a_denial_is_a_question_unless_nobody_may_be_asked() {
        assert!(ASKING.into_iter().all(|policy| Request.wants_no_sandbox_approval(policy)));
        assert!(!Request.wants_no_sandbox_approval(AskForApproval::Never));
    }

    #[test]
    fn the_question_is_left_out_after_an_approval_and_under_never() {
        for policy in ASKING {
            assert!(Request.should_bypass_approval(policy, Remembered::Approved));
            assert!(!Request.should_bypass_approval(policy, Remembered::Nothing));
        }
        assert!(Request.should_bypass_approval(AskForApproval::Never, Remembered::Nothing));
    }

    /// spec APPROVAL.47: Under never nothing that is remembered counts.
    #[test]
    fn the_store_is_not_looked_at_under_never() {
        use sandgate_protocol::ReviewDecision::ApprovedForSession;
        let mut store = ApprovalStore::default();
        store.record(&ApprovedForSession, &Request.approval_keys());
        for policy in ASKING {
            assert_eq!(store.look_up(policy, &Request.approval_keys()), Remembered::Approved);
        }
        let never = store.look_up(AskForApproval::Never, &Request.approval_keys());
        assert_eq!(never, Remembered::Nothing);
    }
}
