//! Which sandbox a command gets, before it is confined.
//!
//! A decision on data: nothing is looked up here. Running without a sandbox is always an answer of
//! its own with its reason, so that no caller can mistake it for a sandbox that does nothing.

use sandgate_protocol::{Enforcement, SandboxPolicy, SandboxType, SandboxablePreference};

/// What becomes of a sandbox that lacks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartialEnforcement {
    /// It is better than none.
    #[default]
    Accepted,
    /// It is as bad as none: the person wants all of it (`sandbox_require_full`).
    Refused,
}

/// What is to confine a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// This sandbox. Never [`SandboxType::None`].
    Confined(SandboxType),
    /// Nothing of ours, and nobody need be asked for that.
    Unconfined(NotNeeded),
    /// Nothing, although the policy asks for a sandbox: it runs only after an approval that says so.
    NeedsApproval(WithoutSandbox),
    /// It must not run.
    Refused(SandboxRefusal),
}

/// Why a command needs no sandbox of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNeeded {
    /// The policy is danger-full-access.
    FullAccess,
    /// Something else confines it already.
    ExternalSandbox,
}

/// Why a command that should be confined would run without a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithoutSandbox {
    /// This machine has none.
    #[error("no sandbox available{}", because(missing))]
    Unavailable {
        /// What this machine lacks, in a person's words.
        missing: Vec<String>,
    },
    /// The tool cannot work in one.
    #[error("this tool cannot work in a sandbox")]
    ToolForbids,
}

/// Why a command must not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxRefusal {
    /// A sandbox is required, and this machine has none.
    #[error("a sandbox is required but unavailable{}", because(missing))]
    Unavailable {
        /// What this machine lacks, in a person's words.
        missing: Vec<String>,
    },
    /// All of the sandbox is required, and this machine has a part of it.
    #[error("all of the sandbox is required, and this machine lacks some{}", because(missing))]
    Partial {
        /// What this machine lacks, in a person's words.
        missing: Vec<String>,
    },
    /// The tool requires a sandbox, and the policy gives it none.
    #[error(
        "this tool requires a sandbox, and the mode danger-full-access has none; use another mode"
    )]
    FullAccess,
}

fn because(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!(": {}", missing.join("; ")) }
}

/// Chooses the sandbox of a first attempt.
///
/// A preference of [`SandboxablePreference::Require`] wants all of a sandbox, as
/// [`PartialEnforcement::Refused`] does for every command.
pub fn select_initial(
    policy: &SandboxPolicy,
    preference: SandboxablePreference,
    partial: PartialEnforcement,
    available: &Enforcement,
) -> Selected {
    let required = preference == SandboxablePreference::Require;
    match policy {
        SandboxPolicy::DangerFullAccess if required => {
            return Selected::Refused(SandboxRefusal::FullAccess);
        }
        SandboxPolicy::DangerFullAccess => return Selected::Unconfined(NotNeeded::FullAccess),
        SandboxPolicy::ExternalSandbox { .. } => {
            return Selected::Unconfined(NotNeeded::ExternalSandbox);
        }
        SandboxPolicy::ReadOnly | SandboxPolicy::WorkspaceWrite { .. } => {}
    }
    if preference == SandboxablePreference::Forbid {
        return Selected::NeedsApproval(WithoutSandbox::ToolForbids);
    }
    let must_be_full = required || partial == PartialEnforcement::Refused;
    let missing = || available.missing.clone();
    match available.sandbox {
        SandboxType::None if must_be_full => {
            Selected::Refused(SandboxRefusal::Unavailable { missing: missing() })
        }
        SandboxType::None => {
            Selected::NeedsApproval(WithoutSandbox::Unavailable { missing: missing() })
        }
        _ if must_be_full && !available.is_full() => {
            Selected::Refused(SandboxRefusal::Partial { missing: missing() })
        }
        sandbox => Selected::Confined(sandbox),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::NetworkAccess;

    const LINUX: SandboxType = SandboxType::LinuxSeccomp;

    fn machine(sandbox: SandboxType, missing: &[&str]) -> Enforcement {
        Enforcement {
            sandbox,
            namespaces: true,
            landlock_abi: 7,
            seccomp: true,
            supervisor: true,
            missing: missing.iter().map(|&what| what.to_owned()).collect(),
        }
    }

    fn external() -> SandboxPolicy {
        SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted }
    }

    /// What a row of the table expects, in a letter.
    fn letter(selected: &Selected) -> char {
        match selected {
            Selected::Confined(_) => 'c',
            Selected::Unconfined(NotNeeded::FullAccess) => 'f',
            Selected::Unconfined(NotNeeded::ExternalSandbox) => 'e',
            Selected::NeedsApproval(WithoutSandbox::Unavailable { .. }) => 'a',
            Selected::NeedsApproval(WithoutSandbox::ToolForbids) => 't',
            Selected::Refused(SandboxRefusal::Unavailable { .. }) => 'U',
            Selected::Refused(SandboxRefusal::Partial { .. }) => 'P',
            Selected::Refused(SandboxRefusal::FullAccess) => 'F',
        }
    }

    /// spec DECISIONS.1: The mode danger-full-access needs no sandbox, and an external-sandbox needs
    /// none of ours.
    ///
    /// spec DECISIONS.2: Where the policy asks for a sandbox and there is none, or the tool cannot
    /// work in one, a command needs an approval that says so.
    ///
    /// spec DECISIONS.3: A tool that requires a sandbox is refused without one, with a part of one, and
    /// in the mode danger-full-access.
    ///
    /// spec DECISIONS.4: With `sandbox_require_full` every command that is to be confined is refused
    /// where something of the sandbox is missing.
    #[test]
    fn every_combination_has_its_answer() {
        use PartialEnforcement::{Accepted, Refused};
        use SandboxablePreference::{Auto, Forbid, Require};
        let policies = [
            SandboxPolicy::ReadOnly,
            SandboxPolicy::workspace_write(),
            SandboxPolicy::DangerFullAccess,
            external(),
        ];
        let machines =
            [machine(LINUX, &[]), machine(LINUX, &["a part"]), machine(SandboxType::None, &["it"])];
        // One column for each machine: all of a sandbox, a part of one, none.
        let table = [
            (Auto, Accepted, ["cca", "cca", "fff", "eee"]),
            (Auto, Refused, ["cPU", "cPU", "fff", "eee"]),
            (Require, Accepted, ["cPU", "cPU", "FFF", "eee"]),
            (Require, Refused, ["cPU", "cPU", "FFF", "eee"]),
            (Forbid, Accepted, ["ttt", "ttt", "fff", "eee"]),
            (Forbid, Refused, ["ttt", "ttt", "fff", "eee"]),
        ];
        for (preference, partial, rows) in table {
            for (policy, row) in policies.iter().zip(rows) {
                let select = |machine| select_initial(policy, preference, partial, machine);
                let found: String =
                    machines.iter().map(|machine| letter(&select(machine))).collect();
                assert_eq!(found, row, "{policy:?}, {preference:?}, {partial:?}");
            }
        }
    }

    #[test]
    fn each_system_is_confined_by_its_own_sandbox() {
        use SandboxType::{LinuxSeccomp, MacosSeatbelt, WindowsRestrictedToken};
        for sandbox in [LinuxSeccomp, MacosSeatbelt, WindowsRestrictedToken] {
            let selected = select_initial(
                &SandboxPolicy::workspace_write(),
                SandboxablePreference::Auto,
                PartialEnforcement::Accepted,
                &machine(sandbox, &[]),
            );
            assert_eq!(selected, Selected::Confined(sandbox));
        }
    }

    #[test]
    fn an_answer_says_what_is_missing() {
        let missing = vec!["no Landlock".to_owned(), "no filters".to_owned()];
        for (text, expected) in [
            (
                WithoutSandbox::Unavailable { missing: missing.clone() }.to_string(),
                "no sandbox available: no Landlock; no filters",
            ),
            (
                WithoutSandbox::Unavailable { missing: Vec::new() }.to_string(),
                "no sandbox available",
            ),
            (
                SandboxRefusal::Partial { missing }.to_string(),
                "all of the sandbox is required, and this machine lacks some: no Landlock; no filters",
            ),
        ] {
            assert_eq!(text, expected);
        }
    }
}
