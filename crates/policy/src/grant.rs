//! The permission to run one command, and its terms.
//!
//! The fields are private and the makers are few: a command that nobody approved cannot reach the
//! stages after this one, because they take a `Grant` and there is no other way to have one.

use sandgate_protocol::{ExecParams, SandboxPolicy};
use std::path::PathBuf;

/// The permission to run one command under the terms it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    params: ExecParams,
    confinement: Confinement,
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

/// Who gave the permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grantor {
    /// The person at the keyboard, who typed the command.
    Person,
}

impl Grant {
    /// The person at the keyboard typed this command and wants it run as it is, unconfined.
    ///
    /// For a front end whose command line *is* the person's decision. A tool call of a model never
    /// comes this way.
    pub fn unconfined_by_person(params: ExecParams) -> Self {
        Self { params, confinement: Confinement::Unconfined, grantor: Grantor::Person }
    }

    /// The person at the keyboard typed this command and wants it confined.
    pub fn sandboxed_by_person(
        params: ExecParams,
        policy: SandboxPolicy,
        workspace: PathBuf,
    ) -> Self {
        let confinement = Confinement::Sandboxed { policy, workspace };
        Self { params, confinement, grantor: Grantor::Person }
    }

    /// What may run.
    pub fn params(&self) -> &ExecParams {
        &self.params
    }

    /// What must confine it.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
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
