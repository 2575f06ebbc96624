//! Which directories a policy makes writable, and what in them stays protected.
//!
//! Found once for a session, by a bounded walk. Nothing is changed on the disk here.

use sandgate_protocol::{SandboxPolicy, WritableRoot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Names that no confined command may write to, remove, replace or make: they tell other programs
/// what to run.
pub(crate) const PROTECTED: [&str; 3] = [".git", ".codex", ".agents"];

/// How many directories are looked at for repositories inside a root. What lies beyond is not found;
/// a repository there is as writable as the rest.
const MAX_DIRECTORIES: usize = 20_000;

/// How deep the directories for temporary files are looked into.
const SCRATCH_DEPTH: usize = 3;

/// The mode of the empty directories that stand for absent names while a cage is in use: nobody may
/// write to them, and they have a bit that only means something where somebody may.
#[cfg(unix)]
pub(crate) const PLACEHOLDER_MODE: u32 = 0o1555;

/// A directory that was named as a writable root and cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("cannot make {} writable: {reason}", root.display())]
pub struct RootError {
    /// The root, as it was named.
    pub root: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// Where a session may write, and what in there must stay as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// The writable roots.
    pub(crate) roots: Vec<WritableRoot>,
    /// Writable directories that must stay where they are, because somebody who moved them away
    /// could put others with other contents in their place.
    pub(crate) pinned: Vec<PathBuf>,
    /// Those of the protected paths that are not there and must not be made.
    pub(crate) absent: Vec<PathBuf>,
}

impl Layout {
    /// Works it out for a session. `workspace` is where it works, and comes from the person who
    /// started it; `env` is the environment of its commands.
    ///
    /// # Errors
    /// When a root that was asked for cannot be one.
    pub fn of(
        policy: &SandboxPolicy,
        workspace: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, RootError> {
        let SandboxPolicy::WorkspaceWrite { writable_roots, .. } = policy else {
            return Ok(Self::default());
        };
        let mut named = BTreeSet::from([resolve(workspace)?]);
        for root in writable_roots {
            named.insert(resolve(root)?);
        }
        let scratch = scratch(policy, env);
        let mut finder = Finder::new(named.union(&scratch).cloned().collect());
        for root in &named {
            for name in PROTECTED {
                finder.reserve(root.join(name));
            }
            finder.walk(root, usize::MAX);
        }
        for root in scratch.difference(&named) {
            finder.walk(root, SCRATCH_DEPTH);
        }
        if let Some(home) = codex_home(env) {
            finder.protect_codex_home(&home);
        }
        Ok(finder.finish())
    }

    /// The writable roots.
    pub fn writable_roots(&self) -> &[WritableRoot] {
        &self.roots
    }
}

/// The canonical form of a root that was named. Refuses what would undo the sandbox.
fn resolve(root: &Path) -> Result<PathBuf, RootError> {
    let refused = |reason: String| RootError { root: root.to_owned(), reason };
    let path = root.canonicalize().map_err(|e| refused(e.to_string()))?;
    if !path.is_dir() {
        return Err(refused("it is not a directory".to_owned()));
    }
    if path.parent().is_none() {
        let text = "that is everything; use the mode danger-full-access if you mean it";
        return Err(refused(text.to_owned()));
    }
    if is_of_the_kernel(&path) {
        return Err(refused("the kernel's own directories cannot be writable roots".to_owned()));
    }
    Ok(path)
}

fn is_of_the_kernel(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel))
}

/// The directories for temporary files. What a variable names may be gone or of no use; nothing is
/// lost by leaving it out.
fn scratch(policy: &SandboxPolicy, env: &BTreeMap<OsString, OsString>) -> BTreeSet<PathBuf> {
    let SandboxPolicy::WorkspaceWrite { exclude_tmpdir_env_var, exclude_slash_tmp, .. } = policy
    else {
        return BTreeSet::new();
    };
    let slash_tmp = (!exclude_slash_tmp).then_some(OsStr::new("/tmp"));
    let variable = env.get(OsStr::new("TMPDIR")).map(OsString::as_os_str);
    let tmpdir = variable.filter(|_| !exclude_tmpdir_env_var);
    let candidates = slash_tmp.into_iter().chain(tmpdir).map(Path::new);
    let canonical = candidates.filter(|path| path.is_absolute()).flat_map(Path::canonicalize);
    canonical.filter(|path| path.is_dir() && is_fit_for_scratch(path)).collect()
}

fn is_fit_for_scratch(path: &Path) -> bool {
    // A variable must not open what is protected.
    let protected = path.iter().any(is_protected);
    path.parent().is_some() && !is_of_the_kernel(path) && !protected
}

fn is_protected(name: &OsStr) -> bool {
    PROTECTED.iter().any(|protected| name == *protected)
}

/// Whether this is a directory of ours, which stands for an absent name: of a cage that is in use, or
/// left behind by a crash.
#[cfg(unix)]
fn is_placeholder(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHER_BITS: u32 = 0o5777 & !PLACEHOLDER_MODE;
    const MARK: u32 = 0o1000;
    found.is_dir() && found.permissions().mode() & (MARK | OTHER_BITS) == MARK
}

#[cfg(not(unix))]
fn is_placeholder(_found: &std::fs::Metadata) -> bool {
    false
}

/// Where the person's own settings are.
fn codex_home(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let variable = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let named = variable("CODEX_HOME").map(PathBuf::from);
    let path = named.or_else(|| Some(Path::new(variable("HOME")?).join(".codex")))?;
    path.is_absolute().then_some(path)
}

/// Collects what is protected in some roots.
struct Finder {
    roots: BTreeSet<PathBuf>,
    protected: BTreeSet<PathBuf>,
    pinned: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
}

impl Finder {
    fn new(roots: BTreeSet<PathBuf>) -> Self {
        let nothing = BTreeSet::new;
        Self { roots, protected: nothing(), pinned: nothing(), absent: nothing() }
    }

    /// Looks for repositories beneath a root, those near to it first.
    fn walk(&mut self, root: &Path, depth: usize) {
        let mut directories = VecDeque::from([(root.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((directory, level)) = directories.pop_front() {
            looked_at += 1;
            if looked_at > MAX_DIRECTORIES {
                break;
            }
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if is_protected(&entry.file_name()) {
                    self.protect(entry.path());
                } else if kind.is_dir() && level < depth {
                    directories.push_back((entry.path(), level + 1));
                }
            }
        }
    }

    /// Protects a name that is there, where it is, and what it leads to.
    fn protect(&mut self, path: PathBuf) {
        if let Some(directory) = path.parent() {
            self.pinned.insert(directory.to_owned());
        }
        let Ok(metadata) = path.symlink_metadata() else { return };
        if metadata.is_symlink() {
            self.protect_target(&path);
        } else if metadata.is_file() {
            for directory in git_directories(&path) {
                self.protect_far(directory);
            }
        }
        self.protected.insert(path);
    }

    /// Protects what a link leads to; a place that is not there yet is kept free.
    fn protect_target(&mut self, link: &Path) {
        if let Ok(target) = link.canonicalize() {
            if target.is_file() {
                for directory in git_directories(&target) {
                    self.protect_far(directory);
                }
            }
            return self.protect_far(target);
        }
        let Some(target) = link.parent().zip(link.read_link().ok()).map(|(at, to)| at.join(to))
        else {
            return;
        };
        let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
        if let (Some(parent), Some(name)) = (parent, target.file_name()) {
            self.reserve(parent.join(name));
        }
    }

    /// Protects something that a path elsewhere leads to, and every step of the way.
    fn protect_far(&mut self, path: PathBuf) {
        self.pin_above(&path);
        self.protected.insert(path);
    }

    fn protect_codex_home(&mut self, home: &Path) {
        match home.canonicalize() {
            Ok(home) if !self.roots.contains(&home) => self.protect_far(home),
            Ok(_) => {}
            Err(_) => {
                let parent = home.parent().and_then(|parent| parent.canonicalize().ok());
                if let (Some(parent), Some(name)) = (parent, home.file_name()) {
                    self.reserve(parent.join(name));
                }
            }
        }
    }

    /// Protects a name that may not be there.
    fn reserve(&mut self, path: PathBuf) {
        self.pin_above(&path);
        if path.symlink_metadata().map_or(true, |found| is_placeholder(&found)) {
            self.absent.insert(path.clone());
        }
        self.protected.insert(path);
    }

    fn pin_above(&mut self, path: &Path) {
        self.pinned.extend(path.ancestors().skip(1).map(Path::to_owned));
    }

    /// Keeps what lies in the roots and is not protected by something above it already.
    fn finish(mut self) -> Layout {
        for root in self.roots.clone() {
            self.pin_above(&root);
        }
        let Self { roots, protected, pinned, absent } = self;
        let in_roots = |path: &Path| {
            let above = path.ancestors().skip(1);
            let nearest = above.into_iter().find(|a| roots.contains(*a) || protected.contains(*a));
            !roots.contains(path) && nearest.is_some_and(|nearest| roots.contains(nearest))
        };
        let keep = |set: &BTreeSet<PathBuf>| -> Vec<PathBuf> {
            set.iter().filter(|path| in_roots(path)).cloned().collect()
        };
        let read_only = keep(&protected);
        let pinned = keep(&pinned).into_iter().filter(|path| !protected.contains(path)).collect();
        let absent = keep(&absent);
        let beneath = |root: &Path| {
            read_only.iter().filter(|path| path.starts_with(root)).cloned().collect::<Vec<_>>()
        };
        let roots = roots
            .iter()
            .map(|root| WritableRoot { path: root.clone(), read_only_subpaths: beneath(root) })
            .collect();
        Layout { roots, pinned, absent }
    }
}

/// The directories that a `.git` file leads to: a worktree's own, and the one it shares.
fn git_directories(file: &Path) -> Vec<PathBuf> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let Some(own) = read(file).and_then(|text| {
        let target = text.strip_prefix("gitdir:")?.trim();
        file.parent()?.join(target).canonicalize().ok()
    }) else {
        return Vec::new();
    };
    let shared =
        read(&own.join("commondir")).and_then(|text| own.join(text.trim()).canonicalize().ok());
    std::iter::once(own).chain(shared).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    fn policy(writable_roots: Vec<PathBuf>) -> SandboxPolicy {
        SandboxPolicy::WorkspaceWrite {
            writable_roots,
            network_access: Default::default(),
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: true,
        }
    }

    fn env(variables: &[(&str, &Path)]) -> BTreeMap<OsString, OsString> {
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn home() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("ws")).unwrap();
        (directory, path)
    }

    #[track_caller]
    fn check(layout: &Layout, root: &Path, expected: &[(&str, bool)]) {
        for (path, writable) in expected {
            let found =
                layout.writable_roots().iter().any(|r| r.is_path_writable(&root.join(path)));
            assert_eq!(found, *writable, "{path}");
        }
    }

    #[test]
    fn repositories_are_found_wherever_they_are() {
        let (_directory, root) = home();
        fs::create_dir_all(root.join("ws/.git")).unwrap();
        fs::create_dir_all(root.join("ws/deep/nested/.git/hooks")).unwrap();
        fs::create_dir_all(root.join("ws/store/worktrees/one")).unwrap();
        fs::write(root.join("ws/store/worktrees/one/commondir"), "../..\n").unwrap();
        fs::create_dir_all(root.join("ws/tree")).unwrap();
        fs::write(root.join("ws/tree/.git"), "gitdir: ../store/worktrees/one\n").unwrap();
        let layout = Layout::of(&policy(vec![]), &root.join("ws"), &env(&[])).unwrap();
        let expected = [
            ("ws/file", true),
            ("ws/.git/config", false),
            ("ws/.codex/config.toml", false),
            ("ws/deep/nested/.git/hooks/pre-commit", false),
            ("ws/deep/nested/file", true),
            ("ws/deep/nested/.codex", true),
            ("ws/tree/.git", false),
            ("ws/store/config", false),
        ];
        check(&layout, &root, &expected);
        assert_eq!(layout.pinned, [root.join("ws/deep/nested"), root.join("ws/tree")]);
        assert_eq!(layout.absent, [root.join("ws/.agents"), root.join("ws/.codex")]);
    }

    #[test]
    fn a_link_is_protected_with_all_that_it_leads_through() {
        let (_directory, root) = home();
        fs::create_dir_all(root.join("ws/a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", root.join("ws/.git")).unwrap();
        std::os::unix::fs::symlink("a/gone", root.join("ws/.codex")).unwrap();
        let layout = Layout::of(&policy(vec![]), &root.join("ws"), &env(&[])).unwrap();
        let expected =
            [("ws/.git", false), ("ws/a/b/config", false), ("ws/a/gone", false), ("ws/a/x", true)];
        check(&layout, &root, &expected);
        assert_eq!(layout.pinned, [root.join("ws/a")]);
        assert_eq!(layout.absent, [root.join("ws/.agents"), root.join("ws/a/gone")]);
    }

    #[test]
    fn scratch_directories_have_no_absent_names_and_open_nothing_protected() {
        let (_directory, root) = home();
        fs::create_dir_all(root.join("ws/.git/tmp")).unwrap();
        fs::create_dir_all(root.join("scratch/repo/.git")).unwrap();
        let policy = policy(vec![]);
        let ws = root.join("ws");
        let layout = Layout::of(&policy, &ws, &env(&[("TMPDIR", &root.join("scratch"))])).unwrap();
        let expected = [("scratch/.git", true), ("scratch/repo/.git/config", false)];
        check(&layout, &root, &expected);
        for useless in ["ws/.git/tmp", "nowhere"] {
            let layout = Layout::of(&policy, &ws, &env(&[("TMPDIR", &root.join(useless))]));
            assert_eq!(layout.unwrap().roots.len(), 1, "{useless}");
        }
        let layout = Layout::of(&policy, &ws, &env(&[("TMPDIR", Path::new("/"))])).unwrap();
        assert_eq!(layout.roots.len(), 1);
    }

    #[test]
    fn the_persons_settings_are_protected_inside_a_root() {
        let (_directory, root) = home();
        fs::create_dir_all(root.join("ws/u/settings")).unwrap();
        let ws = root.join("ws");
        let variables = env(&[("CODEX_HOME", &ws.join("u/settings"))]);
        let layout = Layout::of(&policy(vec![]), &ws, &variables).unwrap();
        check(&layout, &root, &[("ws/u/settings/auth.json", false), ("ws/u/file", true)]);
        assert_eq!(layout.pinned, [ws.join("u")]);
        let layout = Layout::of(&policy(vec![]), &ws, &env(&[("HOME", &ws.join("u"))])).unwrap();
        check(&layout, &root, &[("ws/u/.codex", false), ("ws/u/settings", true)]);
        assert!(layout.absent.contains(&ws.join("u/.codex")));
    }

    #[test]
    fn a_root_that_was_named_is_writable_even_inside_a_protected_name() {
        let (_directory, root) = home();
        fs::create_dir_all(root.join("ws/.git/objects")).unwrap();
        let objects = root.join("ws/.git/objects");
        let layout = Layout::of(&policy(vec![objects]), &root.join("ws"), &env(&[])).unwrap();
        check(&layout, &root, &[("ws/.git/objects/pack", true), ("ws/.git/config", false)]);
    }
}
