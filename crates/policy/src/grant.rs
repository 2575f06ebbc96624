//! The permission to run one command, and its terms.
//!
//! The fields are private and the makers are few: a command that nobody approved cannot reach the
//! stages after this one, because they take a `Grant` and there is no other way to have one.

use sandgate_protocol::{ExecParams, NetworkAccess, SandboxPolicy};
use std::path::PathBuf;

/// The permission to run one command under the terms it names.
///
/// ```
/// use sandgate_policy::{Confinement, Extras, Grant};
/// use sandgate_protocol::{ExecExpiration, ExecParams, NetworkAccess, SandboxPermissions, SandboxPolicy};
///
/// let params = ExecParams {
///     command: vec!["make".to_owned()],
///     program: "/usr/bin/make".into(),
///     cwd: "/work".into(),
///     env: Default::default(),
///     expiration: ExecExpiration::DefaultTimeout,
///     sandbox_permissions: SandboxPermissions::UseDefault,
///     justification: None,
///     arg0: None,
/// };
/// // The person at the keyboard typed this, wants it confined, and opens one directory more to it.
/// let policy = SandboxPolicy::workspace_write();
/// let cache = Extras { writable: vec!["/home/me/.cache/ccache".into()], ..Extras::default() };
/// let grant = Grant::sandboxed_by_person(params, policy, "/work".into()).widened_by_person(&cache);
/// assert!(matches!(grant.confinement(), Confinement::Sandboxed { .. }));
/// assert_eq!(grant.network_access(), NetworkAccess::Restricted);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    params: ExecParams,
    confinement: Confinement,
    extras: Extras,
    grantor: Grantor,
}

/// What must confine the command. Running without a sandbox is written here, never left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing: the command can do whatever its user can do.
    Unconfined,
    /// The session's policy.
    Sandboxed {
        /// What it may touch.
        policy: SandboxPolicy,
        /// Where the session works. It comes from the person who started the session, never from a
        /// call.
        workspace: PathBuf,
    },
}

/// What a grant opens to its command beyond the policy, and nothing more. Whether the next command
/// gets it too is for the session to remember, which then adds it to that grant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// Directories or files that can be written to, protected ones too if they are named here.
    pub writable: Vec<PathBuf>,
    /// Unix sockets that can be connected to.
    pub sockets: Vec<PathBuf>,
    /// The network can be reached.
    pub network: bool,
}

impl Extras {
    /// Adds what others open.
    pub fn extend(&mut self, others: &Self) {
        let add = |own: &mut Vec<PathBuf>, others: &[PathBuf]| {
            for path in others {
                if !own.contains(path) {
                    own.push(path.clone());
                }
            }
        };
        add(&mut self.writable, &others.writable);
        add(&mut self.sockets, &others.sockets);
        self.network |= others.network;
    }

    /// Whether nothing is opened.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Who gave the permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grantor {
    /// A person, who typed the command or approved it.
    Person,
    /// The session's policies and rules, by which nobody had to be asked.
    Policy,
}

impl Grant {
    /// The person at the keyboard typed this command and wants it run as it is, unconfined.
    ///
    /// For a front end whose command line *is* the person's decision. A tool call of a model never
    /// comes this way.
    pub fn unconfined_by_person(params: ExecParams) -> Self {
        let confinement = Confinement::Unconfined;
        Self { params, confinement, extras: Extras::default(), grantor: Grantor::Person }
    }

    /// The person at the keyboard typed this command and wants it confined.
    pub fn sandboxed_by_person(
        params: ExecParams,
        policy: SandboxPolicy,
        workspace: PathBuf,
    ) -> Self {
        let confinement = Confinement::Sandboxed { policy, workspace };
        Self { params, confinement, extras: Extras::default(), grantor: Grantor::Person }
    }

    /// Nobody asked for this command: we run it to learn something, and nobody need allow it, because it can
    /// read, write nothing and reach no network.
    pub fn to_look_around(params: ExecParams) -> Self {
        let workspace = params.cwd.clone();
        let confinement = Confinement::Sandboxed { policy: SandboxPolicy::ReadOnly, workspace };
        Self { params, confinement, extras: Extras::default(), grantor: Grantor::Policy }
    }

    pub(crate) fn permitted(
        params: ExecParams,
        confinement: Confinement,
        extras: Extras,
        grantor: Grantor,
    ) -> Self {
        Self { params, confinement, extras, grantor }
    }

    /// The same permission in another process of the same person: what was granted in one of them is run
    /// in the other, on the same terms.
    ///
    /// Only the daemon makes one so, of what the runtime of a session tells it over a socket that nobody
    /// but the person can reach. See `docs/design/daemon.md`.
    pub fn carried_over(
        params: ExecParams,
        confinement: Confinement,
        extras: Extras,
        grantor: Grantor,
    ) -> Self {
        Self::permitted(params, confinement, extras, grantor)
    }

    /// The person also opens these things to the command, and leaves it confined.
    ///
    /// They come from the person's own answer. Nothing that a model's call names may come this way
    /// without one.
    #[must_use]
    pub fn widened_by_person(mut self, extras: &Extras) -> Self {
        self.extras.extend(extras);
        self
    }

    /// What may run.
    pub fn params(&self) -> &ExecParams {
        &self.params
    }

    /// What must confine it.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What it opens beyond the policy.
    pub fn extras(&self) -> &Extras {
        &self.extras
    }

    /// Whether the command can reach the network, after all that was said.
    pub fn network_access(&self) -> NetworkAccess {
        match &self.confinement {
            Confinement::Unconfined => NetworkAccess::Enabled,
            Confinement::Sandboxed { .. } if self.extras.network => NetworkAccess::Enabled,
            Confinement::Sandboxed { policy, .. } => policy.network_access(),
        }
    }

    /// Who said so.
    pub fn grantor(&self) -> Grantor {
        self.grantor
    }

    /// Gives up the grant for the command that it was given for.
    pub fn into_params(self) -> ExecParams {
        self.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{ExecExpiration, SandboxPermissions};

    fn params() -> ExecParams {
        ExecParams {
            command: vec!["true".to_owned()],
            program: "/bin/true".into(),
            cwd: "/".into(),
            env: Default::default(),
            expiration: ExecExpiration::DefaultTimeout,
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            arg0: None,
        }
    }

    fn read_only() -> Grant {
        Grant::sandboxed_by_person(params(), SandboxPolicy::ReadOnly, "/ws".into())
    }

    #[test]
    fn a_grant_opens_nothing_beyond_its_policy_by_itself() {
        assert!(read_only().extras().is_empty());
        assert_eq!(read_only().network_access(), NetworkAccess::Restricted);
        assert_eq!(Grant::unconfined_by_person(params()).network_access(), NetworkAccess::Enabled);
    }

    #[test]
    fn a_grant_carries_what_was_opened_and_stays_confined() {
        let one = Extras { writable: vec!["/a".into()], ..Extras::default() };
        let two = Extras {
            writable: vec!["/a".into(), "/b".into()],
            sockets: vec!["/s".into()],
            network: true,
        };
        let grant = read_only().widened_by_person(&one).widened_by_person(&two);
        assert_eq!(grant.extras(), &two);
        assert_eq!(grant.network_access(), NetworkAccess::Enabled);
        assert_eq!(grant.confinement(), read_only().confinement());
    }
}
