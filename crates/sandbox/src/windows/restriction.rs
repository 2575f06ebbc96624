//! A session's token and access lists, and the sessions that are open.

use super::{Feature, NOT_HELD, SANDBOX_NAME, Session, WindowsError, network};
use crate::Layout;
use crate::sys::{self, FileLists};
use sandgate_protocol::{Enforcement, ExecParams, NetworkAccess, SandboxType};
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What confines the commands of one session. Dropping it takes the session's access lists back.
#[derive(Debug)]
pub struct Restriction {
    _session: Session<FileLists>,
    token: OwnedHandle,
}

impl Restriction {
    /// Opens the roots of a layout to a new identity, and makes the token that has it.
    ///
    /// # Errors
    /// When access lists cannot be changed, or no token be made.
    pub fn begin(records: &Path, layout: &Layout) -> Result<Self, WindowsError> {
        let session = Session::begin(records, layout, FileLists)?;
        let token = sys::restricted_token(session.sid()).map_err(WindowsError::Token)?;
        Ok(Self { _session: session, token })
    }

    /// The token that a command is to be started with.
    pub fn token(&self) -> BorrowedHandle<'_> {
        self.token.as_handle()
    }
}

/// The sandbox of this machine, and its open sessions: one for each layout, because to change access
/// lists takes as long as there are files.
#[derive(Debug, Default)]
pub struct WindowsSandbox {
    feature: Feature,
    state: PathBuf,
    sessions: Mutex<Vec<(Layout, Arc<Restriction>)>>,
}

impl WindowsSandbox {
    /// A sandbox that keeps its records and stub programs in `state`, an absolute path.
    pub fn new(feature: Feature, state: PathBuf) -> Self {
        Self { feature, state, sessions: Mutex::default() }
    }

    /// What can be enforced here.
    pub fn status(&self) -> Enforcement {
        let (sandbox, missing) = match self.feature {
            Feature::Off => (SandboxType::None, vec![WindowsError::Off.to_string()]),
            Feature::Experimental => {
                (SandboxType::WindowsRestrictedToken, NOT_HELD.map(str::to_owned).to_vec())
            }
        };
        Enforcement {
            sandbox,
            namespaces: false,
            landlock_abi: 0,
            seccomp: false,
            supervisor: false,
            missing,
        }
    }

    /// Makes a command ready to run confined: its environment, and what it must be started with.
    ///
    /// # Errors
    /// When the feature is off, or the session cannot be opened.
    pub fn confine(
        &self,
        params: &mut ExecParams,
        layout: &Layout,
        network: NetworkAccess,
    ) -> Result<Arc<Restriction>, WindowsError> {
        if self.feature == Feature::Off {
            return Err(WindowsError::Off);
        }
        params.env.insert("CODEX_SANDBOX".into(), SANDBOX_NAME.into());
        if network == NetworkAccess::Restricted {
            let stubs = self.state.join("stubs");
            network::write_stubs(&stubs)
                .map_err(|source| WindowsError::State { path: stubs.clone(), source })?;
            network::close(&mut params.env, &stubs);
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, open)) = sessions.iter().find(|(other, _)| other == layout) {
            return Ok(Arc::clone(open));
        }
        let restriction = Arc::new(Restriction::begin(&self.state.join("sessions"), layout)?);
        sessions.push((layout.clone(), Arc::clone(&restriction)));
        Ok(restriction)
    }
}
