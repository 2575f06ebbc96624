//! The directories that this program writes and trusts later, named once for everybody who starts commands: the
//! person's settings and its own directory. No confined command writes there, wherever they lie and whatever
//! its environment says, and none has its roots in there.

use crate::error::RuntimeError;
use crate::private::{make_private, own_directory};
use sandgate_protocol::SandboxPolicy;
use sandgate_sandbox::SandboxManager;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The directories.
#[derive(Debug)]
pub(crate) struct Ours {
    settings: Option<PathBuf>,
    own: Option<PathBuf>,
}

impl Ours {
    /// Those of a person with these settings.
    pub(crate) fn with_settings(settings: Option<&Path>) -> Self {
        Self { settings: settings.map(Path::to_owned), own: own_directory() }
    }

    /// Refuses to work in them, or to let anything write there: it could change what it may do, and answer its
    /// own questions. A directory that holds them is no matter, for there they are protected.
    ///
    /// # Errors
    /// Names what lies in one of them.
    pub(crate) fn refuse_inside(&self, places: &[PathBuf]) -> Result<(), RuntimeError> {
        let lies_in = |directory: &Option<PathBuf>| {
            let directory = directory.as_deref().and_then(as_far_as_it_is_there)?;
            let lies_there = |path: &&PathBuf| {
                as_far_as_it_is_there(path).is_some_and(|path| path.starts_with(&directory))
            };
            places.iter().find(lies_there).cloned()
        };
        if let Some(path) = lies_in(&self.settings) {
            return Err(RuntimeError::InSettings { path });
        }
        lies_in(&self.own).map_or(Ok(()), |path| Err(RuntimeError::InOwnDirectory { path }))
    }

    /// Keeps them from every command that is confined from now on. `writable` is what commands may write to
    /// otherwise: our own directory is made if they could make it.
    pub(crate) fn protect(self, sandbox: &SandboxManager, writable: &[PathBuf]) {
        if let Some(own) = &self.own
            && is_in_reach(own, writable)
        {
            // Where it cannot be made its name is kept free.
            let _ = make_private(own);
        }
        self.settings.into_iter().chain(self.own).for_each(|directory| sandbox.protect(directory));
    }
}

/// Whether commands that may write to these could write to a directory or file if nobody kept them from it.
pub(crate) fn is_in_reach(directory: &Path, writable: &[PathBuf]) -> bool {
    // As far as it is there; what is not can be made.
    let there = directory.ancestors().find_map(|above| dunce::canonicalize(above).ok());
    let lies_in =
        |root: &PathBuf| Some(there.as_ref()?.starts_with(dunce::canonicalize(root).ok()?));
    writable.iter().any(|root| lies_in(root) == Some(true))
}

/// What a policy lets commands of this environment write to in a workspace.
pub(crate) fn writable(
    policy: &SandboxPolicy,
    workspace: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Vec<PathBuf> {
    let SandboxPolicy::WorkspaceWrite {
        writable_roots,
        exclude_tmpdir_env_var,
        exclude_slash_tmp,
        ..
    } = policy
    else {
        return Vec::new();
    };
    let beside = writable_roots.iter().map(|root| workspace.join(root));
    let slash_tmp = (!exclude_slash_tmp).then(|| PathBuf::from("/tmp"));
    let variable = env.get(OsStr::new("TMPDIR")).filter(|_| !exclude_tmpdir_env_var);
    let scratch = slash_tmp.into_iter().chain(variable.map(PathBuf::from));
    std::iter::once(workspace.to_owned()).chain(beside).chain(scratch).collect()
}

/// A path without links, though the end of it may not be there.
fn as_far_as_it_is_there(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|above| {
        let missing = path.strip_prefix(above).ok()?;
        Some(dunce::canonicalize(above).ok()?.join(missing))
    })
}
