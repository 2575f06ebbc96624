//! What must happen before files are changed by a patch.
//!
//! A patch needs no sandbox: whoever applies it keeps to the roots by itself. What counts is where it
//! writes.

use super::{ApprovalRequirement, BypassSandbox, Terms};
use sandgate_protocol::{AskForApproval, SandboxPolicy};

/// Where a patch writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchReach {
    /// Only where the session may write.
    Inside,
    /// Also elsewhere, or to what is protected.
    Outside,
}

/// What must happen before a patch is applied. `outside` says, for a person and for the model, what it
/// would write to and may not.
pub fn patch_requirement(
    reach: PatchReach,
    outside: &str,
    terms: &Terms<'_>,
) -> ApprovalRequirement {
    let bypass_sandbox = BypassSandbox::No;
    let ask = |reason: String| ApprovalRequirement::NeedsApproval {
        reason,
        bypass_sandbox,
        proposed_rule: None,
    };
    let is_free = matches!(
        terms.sandbox,
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. }
    );
    match (terms.approval, reach) {
        (AskForApproval::UnlessTrusted, PatchReach::Inside) => ask("it changes files".to_owned()),
        (AskForApproval::UnlessTrusted, PatchReach::Outside) => ask(outside.to_owned()),
        (_, PatchReach::Inside) => ApprovalRequirement::Skip { bypass_sandbox },
        (_, PatchReach::Outside) if is_free => ApprovalRequirement::Skip { bypass_sandbox },
        (AskForApproval::Never, PatchReach::Outside) => ApprovalRequirement::Forbidden {
            reason: format!(
                "The patch was not applied: it would {outside}, and under the approval policy never \
                 nobody can be asked. Change only files in the workspace."
            ),
        },
        (AskForApproval::OnFailure | AskForApproval::OnRequest, PatchReach::Outside) => {
            ask(format!("it would {outside}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::SandboxAvailability;
    use sandgate_protocol::SandboxPermissions;

    fn what(approval: AskForApproval, sandbox: &SandboxPolicy, reach: PatchReach) -> &'static str {
        let terms = Terms {
            approval,
            sandbox,
            permissions: SandboxPermissions::UseDefault,
            availability: SandboxAvailability::Unavailable,
        };
        match patch_requirement(reach, "write /etc/hosts", &terms) {
            ApprovalRequirement::Skip { .. } => "runs",
            ApprovalRequirement::NeedsApproval { .. } => "asks",
            ApprovalRequirement::Forbidden { .. } => "refused",
        }
    }

    #[test]
    fn a_patch_is_asked_about_by_where_it_writes() {
        use AskForApproval::{Never, OnFailure, OnRequest, UnlessTrusted};
        use PatchReach::{Inside, Outside};
        let confined = SandboxPolicy::workspace_write();
        let free = SandboxPolicy::DangerFullAccess;
        for (approval, inside, outside, outside_free) in [
            (UnlessTrusted, "asks", "asks", "asks"),
            (OnFailure, "runs", "asks", "runs"),
            (OnRequest, "runs", "asks", "runs"),
            (Never, "runs", "refused", "runs"),
        ] {
            assert_eq!(what(approval, &confined, Inside), inside, "{approval:?}");
            assert_eq!(what(approval, &confined, Outside), outside, "{approval:?}");
            assert_eq!(what(approval, &free, Outside), outside_free, "{approval:?}");
        }
    }
}
