//! What a cage is to be built from.

use super::{Cage, CageError};
use crate::Layout;
use crate::roots::Unsearched;
use sandgate_protocol::NetworkAccess;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The confinement of one policy. Its roots are searched only when somebody is about to enter it, so
/// that the namespaces can be made meanwhile.
#[derive(Debug)]
pub struct Site {
    roots: Unsearched,
    network: NetworkAccess,
    /// What the search for the newest cage found.
    newest: Mutex<Option<Layout>>,
    /// Those in there see what is mounted outside.
    sees_mounts: AtomicBool,
}

impl Site {
    pub(super) fn new(roots: Unsearched, network: NetworkAccess) -> Self {
        Self { roots, network, newest: Mutex::default(), sees_mounts: AtomicBool::new(false) }
    }

    /// Notes that a command is held by Landlock alone, which allows what is mounted in a root later too.
    pub fn has_no_mounts_of_its_own(&self) {
        self.sees_mounts.store(true, Ordering::Relaxed);
    }

    /// Whether those in there reach the network, which is all that the way in depends on.
    pub fn network(&self) -> NetworkAccess {
        self.network
    }

    /// Builds a cage. The roots are searched each time: what was found for another cage may have been
    /// moved since.
    ///
    /// # Errors
    /// When the kernel's rules cannot be made.
    pub fn build(&self) -> Result<Cage, CageError> {
        let layout = self.roots.search();
        let cage = Cage::build(&layout, self.network)?;
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(layout);
        Ok(cage)
    }

    /// What somebody should know about the newest cage who expects something else of it.
    pub fn notes(&self) -> Vec<String> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().map(|layout| layout.notes().to_vec()).unwrap_or_default()
    }

    /// Whether a file lies where the newest cage lets nobody write although it is in a root, by whatever mount its path
    /// leads there. Who has built none yet protects everything.
    pub fn protects(&self, file: &Path) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_none_or(|layout| layout.protects(file))
    }

    /// Whether what the newest cage protects is still what it was.
    pub(super) fn is_current(&self) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let sees_mounts = self.sees_mounts.load(Ordering::Relaxed);
        let is_same = |layout: &Layout| !sees_mounts || layout.has_the_same_mounts();
        newest.as_ref().is_none_or(|layout| layout.is_current() && is_same(layout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use sandgate_policy::Extras;
    use sandgate_protocol::SandboxPolicy;
    use std::collections::{BTreeMap, BTreeSet};

    /// spec SANDBOX.194: Where namespaces are refused, a mount of the kernel's own that is made in a root during a session
    /// keeps its next commands from running.
    #[test]
    fn what_is_mounted_later_is_noticed_where_there_are_no_namespaces() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("proc");
        std::fs::create_dir(&place).unwrap();
        let policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::default(),
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let (env, extras, ours) = (BTreeMap::new(), Extras::default(), BTreeSet::new());
        let roots = Unsearched::of(&policy, directory.path(), &env, &extras, ours).unwrap();
        let site = Site::new(roots, NetworkAccess::default());
        assert!(!site.build().unwrap().holds_the_kernels);
        if mount("proc", &place, "proc", MountFlags::NOEXEC, None).is_err() {
            println!("SKIPPED: only root may mount something");
            return;
        }
        assert!(site.is_current(), "those with mounts of their own do not see it");
        site.has_no_mounts_of_its_own();
        let noticed = !site.is_current() && !site.is_current();
        let next = site.build();
        unmount(&place, UnmountFlags::DETACH).unwrap();
        assert!(noticed && next.unwrap().holds_the_kernels);
        drop(site.build().unwrap());
        assert!(site.is_current());
    }
}
