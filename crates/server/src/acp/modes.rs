//! The modes that an editor can choose from: pairs of policies, none looser than what the settings say.
//!
//! The settings decide what a session may at most. An editor, which a project can configure too, can make it less and
//! back again, never more: whatever is chosen here is only wished for, and what opens the session holds it against the
//! settings once more.

use agent_client_protocol::v1::schema::{SessionMode, SessionModeId, SessionModeState};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use sandgate_runtime::SessionConfig;
use std::path::Path;

/// When the person is asked, and what commands may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policies {
    pub(super) approval: AskForApproval,
    pub(super) sandbox: SandboxPolicy,
}

/// A mode of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mode {
    id: &'static str,
    name: &'static str,
    pub(super) policies: Policies,
}

/// The modes of a session, that of the settings first.
pub(super) struct Modes(Vec<Mode>);

/// Where commands may write in a mode.
#[derive(Debug, Clone, Copy)]
enum Writes {
    Nowhere,
    /// Where the settings say, if they say where; else in the workspace.
    Workspace,
}

/// The modes beside that of the settings. Where two have one id, it is the first that is not looser.
const TABLE: [(&str, &str, Writes, AskForApproval); 5] = [
    ("auto", "Work in the workspace", Writes::Workspace, AskForApproval::OnRequest),
    ("ask", "Ask first", Writes::Workspace, AskForApproval::UnlessTrusted),
    ("unattended", "Do not ask", Writes::Workspace, AskForApproval::Never),
    ("read-only", "Read only", Writes::Nowhere, AskForApproval::UnlessTrusted),
    ("read-only", "Read only", Writes::Nowhere, AskForApproval::Never),
];

impl Modes {
    /// Those of a session that may do what its settings say and no more.
    pub(super) fn within(settings: &Policies, workspace: &Path) -> Self {
        let Self(mut modes) = Self::one(settings.clone());
        for (id, name, writes, approval) in TABLE {
            let sandbox = match (writes, &settings.sandbox) {
                (Writes::Nowhere, _) => SandboxPolicy::ReadOnly,
                (Writes::Workspace, own @ SandboxPolicy::WorkspaceWrite { .. }) => own.clone(),
                (Writes::Workspace, _) => SandboxPolicy::workspace_write(),
            };
            let policies = Policies { approval, sandbox };
            let is_new = modes.iter().all(|mode| mode.id != id && mode.policies != policies);
            if is_new && is_within(&policies, settings, workspace) {
                modes.push(Mode { id, name, policies });
            }
        }
        Self(modes)
    }

    /// Only that of the settings, for a session that cannot be opened again.
    pub(super) fn one(settings: Policies) -> Self {
        Self(vec![Mode { id: "settings", name: "As in your settings", policies: settings }])
    }

    /// That of the settings, which every session begins in.
    pub(super) fn first(&self) -> &Mode {
        &self.0[0]
    }

    /// The mode of this name.
    pub(super) fn find(&self, id: &SessionModeId) -> Option<&Mode> {
        self.0.iter().find(|mode| mode.id == id.0.as_ref())
    }

    /// What the editor is told of them.
    pub(super) fn told(&self) -> SessionModeState {
        let told = |mode: &Mode| {
            SessionMode::new(mode.id, mode.name).description(mode.policies.in_words())
        };
        SessionModeState::new(self.first().id, self.0.iter().map(told).collect())
    }
}

impl Mode {
    pub(super) fn id(&self) -> SessionModeId {
        SessionModeId::new(self.id)
    }
}

/// Whether a session with the settings' policies would take these as they are.
fn is_within(wanted: &Policies, settings: &Policies, workspace: &Path) -> bool {
    let mut config = SessionConfig::new(workspace.to_owned());
    config.approval_policy = settings.approval;
    config.sandbox_policy = settings.sandbox.clone();
    let taken = config.tightened(Some(wanted.approval), Some(wanted.sandbox.clone()));
    (taken.approval_policy, taken.sandbox_policy) == (wanted.approval, wanted.sandbox.clone())
}

impl Policies {
    pub(super) fn in_words(&self) -> String {
        let network = match self.sandbox.network_access() {
            NetworkAccess::Enabled => "with the network",
            NetworkAccess::Restricted => "without the network",
        };
        let sandbox = match &self.sandbox {
            SandboxPolicy::ReadOnly => "Commands write nowhere".to_owned(),
            SandboxPolicy::WorkspaceWrite { .. } => {
                format!("Commands write in the workspace, {network}")
            }
            SandboxPolicy::DangerFullAccess => "Commands are not confined".to_owned(),
            SandboxPolicy::ExternalSandbox { .. } => {
                "Commands are confined by what surrounds Sandgate".to_owned()
            }
        };
        let approval = match self.approval {
            AskForApproval::UnlessTrusted => "You are asked before what is not known to be safe",
            AskForApproval::OnFailure => "You are asked when the sandbox blocked something",
            AskForApproval::OnRequest => "You are asked before what leaves the sandbox",
            AskForApproval::Never => "You are never asked",
        };
        format!("{sandbox}. {approval}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AskForApproval::{Never, OnFailure, OnRequest, UnlessTrusted};

    fn modes(approval: AskForApproval, sandbox: SandboxPolicy) -> Vec<Mode> {
        Modes::within(&Policies { approval, sandbox }, Path::new("/ws")).0
    }

    fn ids(approval: AskForApproval, sandbox: SandboxPolicy) -> Vec<&'static str> {
        modes(approval, sandbox).into_iter().skip(1).map(|mode| mode.id).collect()
    }

    /// spec ACP.10: A session has a mode for each usual pair of policies that is no looser than the settings, and
    /// begins in that of the settings.
    #[test]
    fn no_mode_is_looser_than_the_settings() {
        let workspace = SandboxPolicy::workspace_write;
        let full = || SandboxPolicy::DangerFullAccess;
        let nothing: [&str; 0] = [];
        assert_eq!(ids(OnRequest, workspace()), ["ask", "unattended", "read-only"]);
        assert_eq!(ids(UnlessTrusted, workspace()), ["read-only"]);
        assert_eq!(ids(OnFailure, workspace()), ["ask", "unattended", "read-only"]);
        assert_eq!(ids(Never, workspace()), ["read-only"]);
        assert_eq!(ids(OnRequest, full()), ["auto", "ask", "unattended", "read-only"]);
        assert_eq!(ids(Never, full()), ["unattended", "read-only"]);
        // A directory that is not trusted.
        assert_eq!(ids(UnlessTrusted, SandboxPolicy::ReadOnly), nothing);
        for approval in [UnlessTrusted, OnFailure, OnRequest, Never] {
            for sandbox in [SandboxPolicy::ReadOnly, workspace(), full()] {
                let all = modes(approval, sandbox.clone());
                assert_eq!(all[0].policies, Policies { approval, sandbox: sandbox.clone() });
                let looser = |mode: &Mode| {
                    let is_full = mode.policies.sandbox == full() && sandbox != full();
                    let writes = sandbox == SandboxPolicy::ReadOnly
                        && mode.policies.sandbox != SandboxPolicy::ReadOnly;
                    let asks_less = approval == UnlessTrusted && mode.policies.approval != approval;
                    is_full || writes || asks_less
                };
                assert!(!all.iter().any(looser), "{approval:?} {sandbox:?}: {all:?}");
            }
        }
    }

    /// spec ACP.10: A session has a mode for each usual pair of policies that is no looser than the settings, and
    /// begins in that of the settings.
    #[test]
    fn a_mode_writes_where_the_settings_say() {
        let own = SandboxPolicy::WorkspaceWrite {
            writable_roots: vec!["/srv/cache".into()],
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let all = modes(OnRequest, own.clone());
        let ask = all.iter().find(|mode| mode.id == "ask").unwrap();
        assert_eq!(ask.policies, Policies { approval: UnlessTrusted, sandbox: own });
    }
}
