//! Which directories a policy makes writable, and what in them stays protected.
//!
//! Found once for a session, by a bounded walk. Nothing is changed on the disk here.

mod find;
mod git;
mod gitlinks;
mod home;
mod links;
#[cfg(target_os = "linux")]
mod mounts;
mod narrow;
mod protected;
mod read;
mod resolve;
mod seen;
#[cfg(all(test, unix))]
mod tests;
mod walk;
mod way;

pub use git::is_git_directory;
pub use narrow::{Found, Narrowest};
pub(crate) use protected::PROTECTED;
pub use protected::keeps_a_name_free;
#[cfg(target_os = "linux")]
pub(crate) use protected::{PLACEHOLDER_MODE, is_protected_bytes};

use find::Finder;
#[cfg(target_os = "linux")]
pub(crate) use find::MOST_KEPT_FREE;
use sandgate_policy::Extras;
use sandgate_protocol::{SandboxPolicy, WritableRoot};
pub(crate) use seen::Number;
use seen::Seen;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use way::Way;

/// A path that was named and cannot be opened to a command.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It was to be writable.
    #[error("cannot make {} writable: {reason}", resolve::shown(path))]
    Writable {
        /// The path, as it was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It was to be connected to.
    #[error("cannot open the socket {}: {reason}", resolve::shown(path))]
    Socket {
        /// The path, as it was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Where a session may write, before anybody has looked for what in there must stay as it is. Looking
/// takes its time and cannot fail, so that other things can be done meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Unsearched {
    /// The roots that somebody named, canonical; without them nothing is writable at all.
    named: BTreeSet<PathBuf>,
    /// The directories for temporary files.
    scratch: BTreeSet<PathBuf>,
    /// The person's settings.
    settings: Option<PathBuf>,
    /// Where the person is at home, if that lies in a root that was named.
    home: Option<PathBuf>,
    /// Directories of this program's own.
    ours: BTreeSet<PathBuf>,
    /// What a grant makes writable besides.
    opened: BTreeSet<PathBuf>,
    sockets: BTreeSet<PathBuf>,
    /// The ways to all of them, as they were named.
    ways: Vec<Way>,
    notes: Vec<String>,
}

impl Unsearched {
    /// Resolves what is named; see [`Layout::of`]. In the directories of `ours` nothing may be written to.
    ///
    /// # Errors
    /// When something that was asked for cannot be opened.
    pub(crate) fn of(
        policy: &SandboxPolicy,
        workspace: &Path,
        env: &BTreeMap<OsString, OsString>,
        extras: &Extras,
        ours: BTreeSet<PathBuf>,
    ) -> Result<Self, RootError> {
        let (scratch, notes) = resolve::scratch(policy, env);
        let mut ways = Vec::new();
        let named = match policy {
            SandboxPolicy::ReadOnly => BTreeSet::new(),
            SandboxPolicy::WorkspaceWrite { writable_roots, .. } => {
                let (workspace, way) = resolve::root(workspace)?;
                ways.push(way);
                let mut named = BTreeSet::from([workspace.clone()]);
                let mut reached = Vec::new();
                for root in writable_roots {
                    let path = workspace.join(root);
                    let (root, way) = resolve::root(&path)?;
                    named.insert(root);
                    reached.push((path, way));
                }
                let roots = named.union(&scratch).cloned().collect();
                for (path, way) in reached {
                    resolve::refuse_links_in(&roots, &path, &way)?;
                    ways.push(way);
                }
                named
            }
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
                return Ok(Self::default());
            }
        };
        let home = resolve::home(env).and_then(|home| home.canonicalize().ok());
        let home = home.filter(|home| named.iter().any(|root| home.starts_with(root)));
        let settings = resolve::codex_home(env);
        let canonical = settings.as_ref().and_then(|settings| settings.canonicalize().ok());
        let extra =
            |path: &PathBuf| resolve::extra(&workspace.join(path), canonical.as_deref(), &named);
        let opened = extras.writable.iter().map(extra).collect::<Result<BTreeSet<_>, _>>()?;
        for ours in ours.iter().flat_map(|ours| ours.canonicalize()) {
            for path in &opened {
                resolve::extra(path, Some(&ours), &named)?;
            }
        }
        let socket = |path: &PathBuf| resolve::socket(&workspace.join(path));
        let sockets = extras.sockets.iter().map(socket).collect::<Result<BTreeSet<_>, _>>()?;
        ways.extend(extras.writable.iter().map(|path| resolve::way(&workspace.join(path))));
        Ok(Self { named, scratch, settings, home, ours, opened, sockets, ways, notes })
    }

    /// Looks for what must stay as it is.
    pub(crate) fn search(&self) -> Layout {
        let Self { named, scratch, settings, home, ours, opened, sockets, ways, notes } = self;
        // What lies in a root that was named is part of it.
        let is_by_itself = |path: &&PathBuf| !path.ancestors().any(|above| named.contains(above));
        let scratch: BTreeSet<_> = scratch.iter().filter(is_by_itself).cloned().collect();
        let mut finder = Finder::new(named.union(&scratch).cloned().collect());
        for root in named {
            finder.search_root(root);
        }
        for root in &scratch {
            finder.search_scratch(root);
        }
        for settings in settings.iter().chain(ours) {
            finder.protect_codex_home(settings);
        }
        if let Some(home) = home {
            finder.protect_home(home);
        }
        for path in opened {
            finder.open(path, opened);
        }
        ways.iter().for_each(|way| finder.keep(way));
        #[cfg(target_os = "linux")]
        finder.close_the_kernels();
        finder.finish(sockets.clone(), notes.clone())
    }
}

/// Refuses a workspace that is reached by a link which a command could have made.
///
/// # Errors
/// When it is, with the path to name instead.
pub fn check_workspace(named: &Path, env: &BTreeMap<OsString, OsString>) -> Result<(), RootError> {
    resolve::refuse_doubtful_links(named, &resolve::way(named), resolve::home(env))
}

/// Where a session may write, and what in there must stay as it is.
///
/// ```
/// use sandgate_policy::Extras;
/// use sandgate_protocol::SandboxPolicy;
/// use sandgate_sandbox::Layout;
/// use std::collections::BTreeMap;
///
/// let workspace = tempfile::tempdir()?;
/// std::fs::create_dir(workspace.path().join(".git"))?;
/// let policy = SandboxPolicy::WorkspaceWrite {
///     writable_roots: Vec::new(),
///     network_access: Default::default(),
///     exclude_tmpdir_env_var: true,
///     exclude_slash_tmp: true,
/// };
/// let layout = Layout::of(&policy, workspace.path(), &BTreeMap::new(), &Extras::default())?;
/// let [root] = layout.writable_roots() else { panic!("the workspace and nothing else") };
/// let workspace = workspace.path().canonicalize()?;
/// assert_eq!(root.path, workspace);
/// assert!(root.is_path_writable(&workspace.join("src")));
/// assert!(!root.is_path_writable(&workspace.join(".git/config")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// The writable roots.
    pub(crate) roots: Vec<WritableRoot>,
    /// Writable directories that must stay where they are, because somebody who moved them away
    /// could put others with other contents in their place.
    pub(crate) pinned: Vec<PathBuf>,
    /// Those of the protected paths that are not there and must not be made.
    pub(crate) absent: Vec<PathBuf>,
    /// Sockets outside the roots that may be connected to.
    sockets: Vec<PathBuf>,
    /// Roots that are too large to be searched to the end.
    unfinished: Vec<PathBuf>,
    /// A root of which so much was left out that all of it would have to be read-only.
    pub(crate) too_large: Option<PathBuf>,
    /// What is mounted in them of the kernel's own, which is read-only.
    pub(crate) kernel: Vec<PathBuf>,
    /// What cannot be made writable, and why: something of the kernel's that no mount can be put over, or a root of which
    /// nobody says what is mounted in it.
    pub(crate) unfit: Option<(PathBuf, String)>,
    /// What was there.
    seen: Vec<Seen>,
    /// What was mounted.
    #[cfg(target_os = "linux")]
    watch: Option<mounts::Watch>,
    /// The numbers of the roots and of what is protected in them, as far as it is there.
    numbers: BTreeMap<PathBuf, Number>,
    /// The roots for temporary files that nobody named.
    scratch: BTreeSet<PathBuf>,
    /// What somebody who expects something else should know.
    notes: Vec<String>,
}

impl Layout {
    /// Works it out for a session. `workspace` is where it works, and comes from the person who
    /// started it; roots that are not absolute start there. `env` is the environment of its commands,
    /// and `extras` is what a grant adds to the policy.
    ///
    /// # Errors
    /// When something that was asked for cannot be opened.
    pub fn of(
        policy: &SandboxPolicy,
        workspace: &Path,
        env: &BTreeMap<OsString, OsString>,
        extras: &Extras,
    ) -> Result<Self, RootError> {
        Ok(Unsearched::of(policy, workspace, env, extras, BTreeSet::new())?.search())
    }

    /// One as if it had been worked out.
    #[cfg(test)]
    pub(crate) fn made_of(
        roots: Vec<WritableRoot>,
        pinned: Vec<PathBuf>,
        absent: Vec<PathBuf>,
    ) -> Self {
        Self { roots, pinned, absent, ..Self::default() }
    }

    /// The writable roots: directories, and files that a grant opened.
    pub fn writable_roots(&self) -> &[WritableRoot] {
        &self.roots
    }

    /// The sockets that may be connected to although they do not lie in a root, canonical.
    pub fn sockets(&self) -> &[PathBuf] {
        &self.sockets
    }

    /// What somebody who expects something else should know: what is not searched, or not writable.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What was at a path: a root, or something that is protected or must stay where it is.
    #[cfg(target_os = "linux")]
    pub(crate) fn number(&self, path: &Path) -> Option<Number> {
        self.numbers.get(path).copied()
    }

    /// Whether a file lies in something that is protected. Directories are known by their numbers, because they may be
    /// mounted elsewhere too; the nearest one that is a root or protected decides.
    #[cfg(target_os = "linux")]
    pub(crate) fn protects(&self, file: &Path) -> bool {
        let decides = |above: &Path| {
            let number = seen::number(&above.symlink_metadata().ok()?);
            let known = self.numbers.iter().filter(|(_, known)| **known == number);
            let mut protected = known.map(|(path, _)| {
                let is_root = self.roots.iter().any(|root| root.path == *path);
                (!self.pinned.contains(path)).then_some(!is_root)
            });
            protected.find_map(|protected| protected)
        };
        file.ancestors().find_map(decides).unwrap_or(false)
    }

    /// Whether a path lies in a directory for temporary files, and in no root there that was named.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_in_scratch(&self, path: &Path) -> bool {
        let is_root = |above: &&Path| {
            self.roots.binary_search_by(|root| root.path.as_path().cmp(above)).is_ok()
        };
        path.ancestors().find(is_root).is_some_and(|root| self.scratch.contains(root))
    }

    /// Whether all of the roots was searched for protected names. What a directory for temporary
    /// files holds further down than the first levels is never searched.
    pub fn is_complete(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// The roots that were too large to be searched to the end. What nobody has looked into there is
    /// read-only, or, in a directory for temporary files of very many, as writable as the rest.
    pub fn unfinished(&self) -> &[PathBuf] {
        &self.unfinished
    }

    /// Whether the same is mounted in the roots. Commands that have mounts of their own do not see what came later.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_the_same_mounts(&self) -> bool {
        self.watch.as_ref().is_none_or(mounts::Watch::is_current)
    }

    /// Whether the roots, the protected names in them and the person's settings are still what they
    /// were. Costs a few looks for each root; repositories further down are not looked at.
    pub fn is_current(&self) -> bool {
        self.seen.iter().all(Seen::is_current)
    }
}
