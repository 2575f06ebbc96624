//! Everything that entering needs, made ready by ordinary code.

use super::CageError;
use super::inside::{Inside, Unfit};
use super::landlock::{On, Places, Rules};
use super::seccomp::{self, Beneath};
use crate::Layout;
use crate::roots::{MOST_KEPT_FREE, Number};
use crate::sys::Kept;
use rustix::fd::RawFd;
use sandgate_protocol::NetworkAccess;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The confinement of one policy, ready to be entered.
#[derive(Debug)]
pub struct Cage {
    /// What is mounted where, each thing after those that it lies in.
    pub(super) steps: Vec<Step>,
    /// The protected names that are not there.
    pub(super) absent: Vec<Absent>,
    inside: Kept<Inside>,
    /// What the rules inside are about.
    places: Places,
    /// Something of the kernel's is mounted in a root, and is held by a mount over it alone.
    pub(super) holds_the_kernels: bool,
}

/// One mount over the read-only file system.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) path: CString,
    pub(super) kind: Kind,
    /// What was there when the roots were searched.
    pub(super) number: Option<Number>,
    /// It may be gone: it lies in a directory for temporary files, which is everybody's.
    pub(super) passing: bool,
}

/// A name that is not there, in a directory that is.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) parent: CString,
    pub(super) parent_number: Option<Number>,
    pub(super) name: CString,
}

/// What is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The host's own directory, writable.
    Root,
    /// What is there, read-only.
    Protect,
    /// The same, for a name that is kept free: its index among those.
    Reserved(usize),
    /// What is there, as it is: who has a mount on it cannot move it.
    Pin,
}

impl Cage {
    /// Makes ready to confine commands to a layout.
    ///
    /// # Errors
    /// When the kernel's rules cannot be made.
    pub fn build(layout: &Layout, network: NetworkAccess) -> Result<Self, CageError> {
        if let Some(root) = &layout.too_large {
            return Err(CageError::TooLarge(root.clone()));
        }
        if let Some((place, why)) = layout.unfit.clone() {
            return Err(CageError::Unfit { place, why });
        }
        if layout.absent.len() > MOST_KEPT_FREE {
            return Err(CageError::TooManyNames);
        }
        let mut places = Places::new();
        let mut rules =
            |on| Rules::plan(layout, network, on, &mut places).map_err(CageError::Landlock);
        let namespaces = (rules(On::Namespaces)?, seccomp::programs(Beneath::Namespaces, network)?);
        let alone = (rules(On::Host)?, seccomp::programs(Beneath::LandlockOnly, network)?);
        let inside =
            Inside::new(network, namespaces, alone, layout).map_err(|unfit| match unfit {
                Unfit::TooLarge => CageError::TooMuch,
                Unfit::Memory(error) => CageError::Memory(error),
            })?;
        Ok(Self {
            steps: steps(layout)?,
            absent: layout
                .absent
                .iter()
                .map(|path| absent(layout, path))
                .collect::<Result<_, _>>()?,
            inside,
            places,
            holds_the_kernels: !layout.kernel.is_empty(),
        })
    }

    /// What is needed once the session has been entered. It survives when a forked process drops the
    /// rest of the memory that it inherited.
    pub fn inside(&self) -> &Inside {
        &self.inside
    }

    /// The descriptors that the inside needs.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.places.iter().map(rustix::fd::AsRawFd::as_raw_fd)
    }
}

/// The mounts in the order of their paths, which puts what is inside after what it is inside of.
fn steps(layout: &Layout) -> Result<Vec<Step>, CageError> {
    let mut kinds: BTreeMap<&Path, Kind> = BTreeMap::new();
    for root in layout.writable_roots() {
        kinds.insert(&root.path, Kind::Root);
        for path in &root.read_only_subpaths {
            kinds.entry(path).or_insert(Kind::Protect);
        }
    }
    for (index, path) in layout.absent.iter().enumerate() {
        kinds.insert(path, Kind::Reserved(index));
    }
    for path in &layout.pinned {
        kinds.entry(path).or_insert(Kind::Pin);
    }
    let step = |(path, kind)| {
        let number = layout.number(path).filter(|_| !matches!(kind, Kind::Reserved(_)));
        let may_go = matches!(kind, Kind::Protect | Kind::Pin);
        let passing = may_go && layout.is_in_scratch(path);
        Ok(Step { path: c_path(path)?, kind, number, passing })
    };
    kinds.into_iter().map(step).collect()
}

fn absent(layout: &Layout, path: &Path) -> Result<Absent, CageError> {
    let parent = path.parent().unwrap_or(path);
    let name = path.file_name().map(Path::new).unwrap_or(path);
    let parent_number = layout.number(parent);
    Ok(Absent { parent: c_path(parent)?, parent_number, name: c_path(name)? })
}

fn c_path(path: &Path) -> Result<CString, CageError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| CageError::NulByte(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_policy::Extras;
    use sandgate_protocol::SandboxPolicy;
    use std::fs;

    /// What is found is mounted on only as what was found.
    #[test]
    fn every_mount_but_those_of_kept_names_has_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let ws = directory.path().canonicalize().unwrap();
        fs::create_dir_all(ws.join("deep/repository/.git")).unwrap();
        std::os::unix::fs::symlink("deep", ws.join("link")).unwrap();
        std::os::unix::fs::symlink("link/repository/.git", ws.join(".git")).unwrap();
        let policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let layout = Layout::of(&policy, &ws, &BTreeMap::new(), &Extras::default()).unwrap();
        let steps = steps(&layout).unwrap();
        assert_eq!(steps.iter().filter(|step| step.kind == Kind::Pin).count(), 2);
        for step in steps {
            let is_kept_free = matches!(step.kind, Kind::Reserved(_));
            assert_eq!(step.number.is_none(), is_kept_free, "{step:?}");
            assert!(!step.passing, "{step:?}");
        }
    }
}
