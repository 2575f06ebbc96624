//! The cages of a session: each is built once and used by every command that it fits.

use super::Site;
use crate::nested::SANDBOX;
use crate::roots::Unsearched;
use crate::{ExecEnv, SandboxTransformError};
use sandgate_policy::Extras;
use sandgate_protocol::{ExecParams, NetworkAccess, SandboxPolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a command is told that confines it.
const NAME: &str = "linux";

/// The variables that say where else something is writable, or protected.
const VARIABLES: [&str; 3] = ["TMPDIR", "CODEX_HOME", "HOME"];

/// How many cages are kept; grants for single calls make more of them than a session needs.
const MOST: usize = 16;

/// Those that were built until now, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Cages(Mutex<Vec<Built>>);

#[derive(Debug)]
struct Built {
    terms: Terms,
    site: Arc<Site>,
}

/// All that a cage depends on.
#[derive(Debug, PartialEq, Eq)]
struct Terms {
    policy: SandboxPolicy,
    workspace: PathBuf,
    extras: Extras,
    network: NetworkAccess,
    variables: [Option<OsString>; VARIABLES.len()],
    /// The directories that are ours.
    ours: BTreeSet<PathBuf>,
}

impl Cages {
    /// Confines a command by the cage of its terms. One is built if there is none yet, or if what it
    /// protects is not what it was.
    pub(crate) fn confine(
        &self,
        mut params: ExecParams,
        policy: &SandboxPolicy,
        workspace: &Path,
        extras: &Extras,
        network: NetworkAccess,
        ours: BTreeSet<PathBuf>,
    ) -> Result<ExecEnv, SandboxTransformError> {
        let terms = Terms {
            policy: policy.clone(),
            workspace: workspace.to_owned(),
            extras: extras.clone(),
            network,
            variables: VARIABLES.map(|name| params.env.get(OsStr::new(name)).cloned()),
            ours,
        };
        let site = self.site(terms, &params.env)?;
        params.env.insert(SANDBOX.into(), NAME.into());
        Ok(ExecEnv::caged(params, site))
    }

    fn site(
        &self,
        terms: Terms,
        env: &BTreeMap<OsString, OsString>,
    ) -> Result<Arc<Site>, SandboxTransformError> {
        let mut built = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = built.iter().position(|built| built.terms == terms) {
            if built[found].site.is_current() {
                return Ok(Arc::clone(&built[found].site));
            }
            built.remove(found);
        }
        let Terms { policy, workspace, extras, network, ours, .. } = &terms;
        let roots = Unsearched::of(policy, workspace, env, extras, ours.clone())?;
        let site = Arc::new(Site::new(roots, *network));
        if built.len() == MOST {
            built.remove(0);
        }
        built.push(Built { terms, site: Arc::clone(&site) });
        Ok(site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{ExecExpiration, SandboxPermissions};
    use std::fs;

    fn params() -> ExecParams {
        ExecParams {
            command: vec!["true".to_owned()],
            program: "/bin/true".into(),
            cwd: "/".into(),
            env: BTreeMap::default(),
            expiration: ExecExpiration::DefaultTimeout,
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            arg0: None,
        }
    }

    /// The confinement of a command, with its cage built.
    fn cage(cages: &Cages, workspace: &Path, extras: &Extras) -> Arc<Site> {
        let policy = SandboxPolicy::workspace_write();
        let network = NetworkAccess::Restricted;
        let env =
            cages.confine(params(), &policy, workspace, extras, network, BTreeSet::new()).unwrap();
        let site = env.site().unwrap();
        site.cage().unwrap();
        Arc::clone(site)
    }

    #[test]
    fn a_cage_is_built_once_for_the_same_terms() {
        let workspace = tempfile::tempdir().unwrap();
        let cages = Cages::default();
        let nothing = Extras::default();
        let first = cage(&cages, workspace.path(), &nothing);
        assert!(Arc::ptr_eq(&first, &cage(&cages, workspace.path(), &nothing)));
        let wider = Extras { writable: vec!["/var/tmp".into()], ..Extras::default() };
        assert!(!Arc::ptr_eq(&first, &cage(&cages, workspace.path(), &wider)));
        assert!(Arc::ptr_eq(&first, &cage(&cages, workspace.path(), &nothing)));
    }

    #[test]
    fn a_cage_is_built_anew_when_a_protected_name_came_or_went() {
        let workspace = tempfile::tempdir().unwrap();
        let cages = Cages::default();
        let nothing = Extras::default();
        let without = cage(&cages, workspace.path(), &nothing);
        fs::create_dir(workspace.path().join(".git")).unwrap();
        let with = cage(&cages, workspace.path(), &nothing);
        assert!(!Arc::ptr_eq(&without, &with));
        assert!(Arc::ptr_eq(&with, &cage(&cages, workspace.path(), &nothing)));
        fs::remove_dir(workspace.path().join(".git")).unwrap();
        assert!(!Arc::ptr_eq(&with, &cage(&cages, workspace.path(), &nothing)));
    }

    #[test]
    fn no_more_cages_are_kept_than_there_is_use_for() {
        let workspace = tempfile::tempdir().unwrap();
        let cages = Cages::default();
        for number in 0..MOST + 5 {
            let file = workspace.path().join(number.to_string());
            fs::write(&file, "").unwrap();
            cage(&cages, workspace.path(), &Extras { writable: vec![file], ..Extras::default() });
        }
        assert_eq!(cages.0.lock().unwrap().len(), MOST);
    }
}
