//! The policies of a session that works for another one: never looser than that one's.
//!
//! One pair of policies is no looser than another if every call that runs unasked under it would run
//! unasked under the other, every call that a person could say yes to could be said yes to there, and
//! what it may touch is a part of what it could touch there.
//!
//! | wanted | may follow on |
//! | --- | --- |
//! | untrusted | untrusted, on-failure, on-request |
//! | on-failure | on-failure, on-request |
//! | on-request | on-request |
//! | never | never; in a sandbox also on-failure and on-request |
//!
//! Untrusted and never are no part of each other: under the one more is asked about, under the other
//! nobody may be asked. With full access `never` lets everything run, so that it follows on nothing but
//! itself there. What may not follow is not taken, and the other session's policy stays.

use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use std::path::Path;

/// When a person is asked, and what commands may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    /// When a person is asked.
    pub approval: AskForApproval,
    /// What commands may touch.
    pub sandbox: SandboxPolicy,
}

impl Policies {
    /// What a session gets that works for one with these policies, in the same workspace, and wants
    /// those: as much of them as is no looser.
    #[must_use]
    pub fn tighter_of(&self, wanted: &Self, workspace: &Path) -> Self {
        let sandbox = part_of_both(&self.sandbox, &wanted.sandbox, workspace);
        let approval = match may_follow(wanted.approval, self.approval, &sandbox) {
            true => wanted.approval,
            false => self.approval,
        };
        Self { approval, sandbox }
    }
}

/// Whether one approval policy may follow on another in a session with this sandbox.
fn may_follow(wanted: AskForApproval, held: AskForApproval, sandbox: &SandboxPolicy) -> bool {
    use AskForApproval::{Never, OnFailure, OnRequest, UnlessTrusted};
    match (wanted, held) {
        _ if wanted == held => true,
        (UnlessTrusted, OnFailure | OnRequest) | (OnFailure, OnRequest) => true,
        (Never, OnFailure | OnRequest) => *sandbox != SandboxPolicy::DangerFullAccess,
        _ => false,
    }
}

/// What both policies let commands touch. Directories count as the same only by their names: one that
/// lies within another could be exchanged for a link by whoever may write there.
fn part_of_both(one: &SandboxPolicy, other: &SandboxPolicy, workspace: &Path) -> SandboxPolicy {
    use SandboxPolicy::{DangerFullAccess, ExternalSandbox, ReadOnly, WorkspaceWrite};
    let network = match (one.network_access(), other.network_access()) {
        (NetworkAccess::Enabled, NetworkAccess::Enabled) => NetworkAccess::Enabled,
        _ => NetworkAccess::Restricted,
    };
    match (one, other) {
        (ReadOnly, _) | (_, ReadOnly) => ReadOnly,
        (
            WorkspaceWrite {
                writable_roots,
                exclude_tmpdir_env_var: no_variable,
                exclude_slash_tmp: no_tmp,
                ..
            },
            WorkspaceWrite {
                writable_roots: others,
                exclude_tmpdir_env_var: no_variable_either,
                exclude_slash_tmp: no_tmp_either,
                ..
            },
        ) => {
            let in_both = |root: &&std::path::PathBuf| {
                others.iter().any(|other| workspace.join(other) == workspace.join(root))
            };
            WorkspaceWrite {
                writable_roots: writable_roots.iter().filter(in_both).cloned().collect(),
                network_access: network,
                exclude_tmpdir_env_var: *no_variable || *no_variable_either,
                exclude_slash_tmp: *no_tmp || *no_tmp_either,
            }
        }
        (WorkspaceWrite { .. }, _) => with_network(one, network),
        (_, WorkspaceWrite { .. }) => with_network(other, network),
        (ExternalSandbox { .. }, _) | (_, ExternalSandbox { .. }) => {
            ExternalSandbox { network_access: network }
        }
        (DangerFullAccess, DangerFullAccess) => DangerFullAccess,
    }
}

/// The same policy with this network.
fn with_network(policy: &SandboxPolicy, network: NetworkAccess) -> SandboxPolicy {
    let mut policy = policy.clone();
    if let SandboxPolicy::WorkspaceWrite { network_access, .. } = &mut policy {
        *network_access = network;
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::super::table::{Case, Ground, Known, RuleSays, Verdict, decide};
    use super::super::{PatchReach, patch_requirement};
    use super::*;
    use crate::{ApprovalRequirement, SandboxAvailability, Terms};
    use sandgate_protocol::SandboxPermissions;
    use std::path::PathBuf;

    const APPROVALS: [AskForApproval; 4] = [
        AskForApproval::UnlessTrusted,
        AskForApproval::OnFailure,
        AskForApproval::OnRequest,
        AskForApproval::Never,
    ];
    const NETWORKS: [NetworkAccess; 2] = [NetworkAccess::Restricted, NetworkAccess::Enabled];

    /// Every kind of sandbox policy, with two directories and everything else that can be said of it.
    fn sandboxes() -> Vec<SandboxPolicy> {
        let mut all = vec![SandboxPolicy::ReadOnly, SandboxPolicy::DangerFullAccess];
        for network_access in NETWORKS {
            all.push(SandboxPolicy::ExternalSandbox { network_access });
            for bits in 0..16_u8 {
                let root = |bit: u8, path: &str| (bits & bit != 0).then(|| PathBuf::from(path));
                all.push(SandboxPolicy::WorkspaceWrite {
                    writable_roots: root(1, "/a").into_iter().chain(root(2, "b")).collect(),
                    network_access,
                    exclude_tmpdir_env_var: bits & 4 != 0,
                    exclude_slash_tmp: bits & 8 != 0,
                });
            }
        }
        all
    }

    fn all_policies() -> Vec<Policies> {
        let pairs = sandboxes().into_iter().flat_map(|sandbox| {
            APPROVALS.map(|approval| Policies { approval, sandbox: sandbox.clone() })
        });
        pairs.collect()
    }

    /// What can be touched, as names.
    fn reach(policy: &SandboxPolicy) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        match policy {
            SandboxPolicy::ReadOnly => {}
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
                ..
            } => {
                all.push("workspace".to_owned());
                all.extend(writable_roots.iter().map(|root| root.display().to_string()));
                all.extend((!exclude_tmpdir_env_var).then(|| "$TMPDIR".to_owned()));
                all.extend((!exclude_slash_tmp).then(|| "/tmp".to_owned()));
            }
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
                all.extend(["workspace", "/a", "b", "$TMPDIR", "/tmp", "all"].map(str::to_owned));
            }
        }
        if policy.network_access() == NetworkAccess::Enabled {
            all.push("network".to_owned());
        }
        if *policy == SandboxPolicy::DangerFullAccess {
            all.push("without any sandbox".to_owned());
        }
        all
    }

    fn is_part(small: &SandboxPolicy, large: &SandboxPolicy) -> bool {
        let large = reach(large);
        reach(small).iter().all(|place| large.contains(place))
    }

    /// How much a verdict lets through: nothing, what a person agrees to, everything.
    fn freedom(verdict: Verdict) -> u8 {
        match verdict {
            Verdict::Refuse(_) => 0,
            Verdict::Ask(_) => 1,
            Verdict::Run => 2,
        }
    }

    fn cases() -> Vec<(RuleSays, SandboxPermissions, bool, Known)> {
        use RuleSays::{AllowInside, AllowOutside, Forbid, Nothing, Prompt};
        let mut all = Vec::new();
        for rule in [Nothing, AllowInside, AllowOutside, Prompt, Forbid] {
            for call in [SandboxPermissions::UseDefault, SandboxPermissions::RequireEscalated] {
                for available in [true, false] {
                    for class in [Known::Safe, Known::Unknown, Known::Dangerous] {
                        all.push((rule, call, available, class));
                    }
                }
            }
        }
        all
    }

    /// What lets a call through more freely under one pair of policies than under the other.
    fn looser_case(child: &Policies, parent: &Policies) -> Option<String> {
        for (rule, permissions, available, class) in cases() {
            let case = |policies: &Policies| Case {
                rule,
                permissions,
                approval: policies.approval,
                ground: Ground::of(&policies.sandbox, available),
                class,
            };
            let (below, above) = (case(child), case(parent));
            let escapes = decide(below) == Verdict::Run
                && below.leaves()
                && above.ground == Ground::Ours
                && !above.leaves();
            if escapes || freedom(decide(below)) > freedom(decide(above)) {
                return Some(format!("{below:?} against {above:?}"));
            }
        }
        None
    }

    /// The same for patches.
    fn patch_freedom(policies: &Policies, reach: PatchReach) -> u8 {
        let terms = Terms {
            approval: policies.approval,
            sandbox: &policies.sandbox,
            permissions: SandboxPermissions::UseDefault,
            availability: SandboxAvailability::Available,
        };
        match patch_requirement(reach, "write elsewhere", &terms) {
            ApprovalRequirement::Forbidden { .. } => 0,
            ApprovalRequirement::NeedsApproval { .. } => 1,
            ApprovalRequirement::Skip { .. } => 2,
        }
    }

    /// spec SUB.10: The policies of a subagent are never looser than those of the session that it works
    /// for, whatever it wants.
    #[test]
    fn no_pair_of_policies_makes_a_child_looser_than_its_parent() {
        let all = all_policies();
        for parent in &all {
            for wanted in &all {
                let child = parent.tighter_of(wanted, Path::new("/ws"));
                assert!(is_part(&child.sandbox, &parent.sandbox), "{parent:?} {wanted:?}");
                assert!(is_part(&child.sandbox, &wanted.sandbox), "{parent:?} {wanted:?}");
                let looser = looser_case(&child, parent);
                assert_eq!(looser, None, "{parent:?} {wanted:?} {child:?}");
                for reach in [PatchReach::Inside, PatchReach::Outside] {
                    let (below, above) =
                        (patch_freedom(&child, reach), patch_freedom(parent, reach));
                    assert!(below <= above, "{parent:?} {wanted:?} {child:?} {reach:?}");
                }
            }
        }
    }

    /// spec SUB.11: A subagent gets the tighter policy that it wants, where it is one.
    #[test]
    fn what_is_tighter_is_taken() {
        for parent in all_policies() {
            assert_eq!(parent.tighter_of(&parent, Path::new("/ws")), parent);
            let wanted = Policies { sandbox: SandboxPolicy::ReadOnly, ..parent.clone() };
            assert_eq!(parent.tighter_of(&wanted, Path::new("/ws")), wanted);
        }
        let on_request = Policies {
            approval: AskForApproval::OnRequest,
            sandbox: SandboxPolicy::workspace_write(),
        };
        for approval in APPROVALS {
            let wanted = Policies { approval, ..on_request.clone() };
            assert_eq!(on_request.tighter_of(&wanted, Path::new("/ws")), wanted);
        }
    }

    #[test]
    fn a_root_is_the_same_by_its_name_and_not_by_what_it_lies_in() {
        let with = |roots: &[&str]| Policies {
            approval: AskForApproval::OnRequest,
            sandbox: SandboxPolicy::WorkspaceWrite {
                writable_roots: roots.iter().map(PathBuf::from).collect(),
                network_access: NetworkAccess::Restricted,
                exclude_tmpdir_env_var: false,
                exclude_slash_tmp: false,
            },
        };
        let parent = with(&["/a", "../b"]);
        let child = parent.tighter_of(&with(&["/a/sub", "/ws/../b", "/c"]), Path::new("/ws"));
        assert_eq!(child, with(&["../b"]));
    }
}
