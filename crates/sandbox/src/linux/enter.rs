//! The steps into the cage. Nothing here allocates.

use super::cage::{Cage, Kind, Step};
use super::same::{must_be_there, open_same};
use super::{Reservations, devices, limits, network};
use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use sandgate_protocol::NetworkAccess;
use std::ffi::{CStr, CString};

/// How much of the cage the kernel lets us build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All of it.
    Namespaces,
    /// Landlock and seccomp: user namespaces are refused here.
    LandlockOnly,
}

/// A step that failed, by its name.
#[derive(Debug, Clone, Copy)]
pub struct Stuck {
    /// What was being done.
    pub step: &'static str,
    /// The kernel's answer.
    pub errno: i32,
}

impl Stuck {
    /// Something that was found when the roots were searched is not there any more. Who searches again
    /// may get further.
    pub const MOVED: &'static str = "protect what is being moved or replaced";

    /// There is no `/proc` to be had for a job.
    pub const NO_PROC: &'static str = "mount /proc";

    /// What is done first in new namespaces. Where they can be had, and nothing done in them (another security module, the
    /// filter of a container), the kernel says so here, before anything that a command could have a hand in.
    pub(super) const FIRST: [&'static str; 4] =
        ["give up other groups", "map the user", "map the group", "part from the host's mounts"];

    /// Other namespaces could be had, and one for the network could not.
    pub const NO_NETWORK: &'static str = "make a network of its own";

    pub(super) fn at(step: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| {
            let step = if errno == Errno::STALE { Self::MOVED } else { step };
            Self { step, errno: errno.raw_os_error() }
        }
    }
}

/// The most roots whose mounts can be held while the rest is made read-only.
const MAX_ROOTS: usize = 64;

/// The namespace that each job of a session has for itself, as a flag of a `clone` call. Its mounts are those of its
/// [`Room`](super::Room).
pub const PROCESSES_OF_JOB: u32 = UnshareFlags::NEWPID.bits();

/// Who enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// A session, whose jobs get a PID namespace each. Its network is made by [`Entry::make_network`] while its
    /// files are laid out: that takes as long as all the rest.
    Session,
    /// A single job.
    Job,
}

/// The way into a cage: what can be done before anybody knows what is protected in there.
#[derive(Debug)]
pub struct Entry {
    /// The user's numbers mapped to themselves, as the kernel wants to be told.
    uid_map: CString,
    gid_map: CString,
    network: NetworkAccess,
}

impl Entry {
    /// The way of this process's user into a cage with or without the network.
    pub fn new(network: NetworkAccess) -> Self {
        let map = |number: u32| CString::new(format!("{number} {number} 1\n")).unwrap_or_default();
        let uid_map = map(rustix::process::geteuid().as_raw());
        let gid_map = map(rustix::process::getegid().as_raw());
        Self { uid_map, gid_map, network }
    }

    /// The sets of namespaces to try, the one that gives the least away first.
    fn namespaces(&self, of: Of) -> impl Iterator<Item = UnshareFlags> {
        let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
        if of == Of::Job {
            flags |= UnshareFlags::NEWPID;
            if self.has_network_of_its_own() {
                flags |= UnshareFlags::NEWNET;
            }
        }
        let as_root = rustix::process::geteuid().is_root() && sys::may_administer();
        as_root.then_some(flags).into_iter().chain([flags | UnshareFlags::NEWUSER])
    }

    /// Leaves the host's namespaces for new ones, and says whether they could be had: when they are
    /// refused nothing has happened. A PID namespace is the one of the processes that are forked next.
    ///
    /// The calling process must have one thread. It may share its memory: no call tells an error by
    /// the C library's `errno`.
    ///
    /// # Errors
    /// When they cannot be had just now, or a step after that fails: the process is then half way in and must not run
    /// anything.
    pub fn enter(&self, of: Of) -> Result<Mode, Stuck> {
        let Some(flags) = self.make_namespaces(of)? else { return Ok(Mode::LandlockOnly) };
        if flags.contains(UnshareFlags::NEWUSER) {
            self.map_the_user()?;
        }
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        let [.., part] = Stuck::FIRST;
        mount_change(c"/", private).map_err(Stuck::at(part))?;
        if flags.contains(UnshareFlags::NEWNET) {
            network::loopback_up().map_err(Stuck::at("bring the loopback up"))?;
        }
        devices::lay_out()?;
        if of == Of::Job {
            sys::limit_capabilities();
        }
        Ok(Mode::Namespaces)
    }

    /// Says which were made; `None` if they are refused here for good.
    fn make_namespaces(&self, of: Of) -> Result<Option<UnshareFlags>, Stuck> {
        let mut lacking = None;
        for flags in self.namespaces(of) {
            match sys::unshare(flags) {
                Ok(()) => return Ok(Some(flags)),
                Err(errno) if limits::is_refusal(flags, errno) => {}
                Err(errno) => lacking = Some((flags, errno)),
            }
        }
        lacking.map_or(Ok(None), |(flags, errno)| Err(limits::shortage(flags, errno)))
    }

    /// Whether what enters does not have the host's network.
    pub fn has_network_of_its_own(&self) -> bool {
        self.network == NetworkAccess::Restricted
    }

    /// Makes the network of a session whose other namespaces this process has entered, for another process to
    /// [join](join_network). As for [`Entry::enter`], it may share its memory.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn make_network(&self) -> Result<OwnedFd, Stuck> {
        sys::unshare(UnshareFlags::NEWNET).map_err(Stuck::at(Stuck::NO_NETWORK))?;
        network::loopback_up().and_then(sys::network_of).map_err(Stuck::at("bring the loopback up"))
    }

    fn map_the_user(&self) -> Result<(), Stuck> {
        let write = |path: &CStr, text: &CStr| -> Result<(), Errno> {
            let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, FileMode::empty())?;
            rustix::io::write(&file, text.to_bytes()).map(|_| ())
        };
        let [groups, user, group, _] = Stuck::FIRST;
        write(c"/proc/self/setgroups", c"deny").map_err(|errno| match errno {
            Errno::NOENT => Stuck::at("map the user where /proc is missing; mount it")(errno),
            errno => Stuck::at(groups)(errno),
        })?;
        write(c"/proc/self/uid_map", &self.uid_map).map_err(Stuck::at(user))?;
        write(c"/proc/self/gid_map", &self.gid_map).map_err(Stuck::at(group))
    }
}

/// Leaves the host's network for one that [`Entry::make_network`] has made.
///
/// # Errors
/// When the kernel refuses: the process must not run anything.
pub fn join_network(made: &OwnedFd) -> Result<(), Stuck> {
    let network = Some(LinkNameSpaceType::Network);
    move_into_link_name_space(made.as_fd(), network).map_err(Stuck::at("join the network"))
}

impl Cage {
    /// Goes on from where [`Entry::enter`] led: lays out the file system, or sees to it that there is
    /// something else that holds files. `reservations` are this cage's own, and taken if there are
    /// namespaces.
    ///
    /// # Errors
    /// When a step fails: the process must not run anything.
    pub fn settle(&self, of: Of, mode: Mode, reservations: &Reservations) -> Result<(), Stuck> {
        // Keyrings belong to the user; those of the session are a new one.
        sys::new_session_keyring();
        match mode {
            Mode::Namespaces => self.lay_out_files(reservations)?,
            // What is allowed beneath a directory is allowed in all that is mounted there.
            Mode::LandlockOnly if self.holds_the_kernels => {
                let step = "close the kernel's mounts in writable places";
                return Err(Stuck { step, errno: libc::ENOTSUP });
            }
            Mode::LandlockOnly if self.inside().holds_files_alone() => {}
            Mode::LandlockOnly => {
                // The filter by itself holds no file.
                let step = "find namespaces or Landlock here";
                return Err(Stuck { step, errno: libc::ENOSYS });
            }
        }
        // Who enters for a single job has done so, and a session's forerunner has more to do than this process, which
        // needs its own for the jobs to come.
        if (of, mode) != (Of::Job, Mode::Namespaces) {
            sys::limit_capabilities();
        }
        Ok(())
    }

    fn lay_out_files(&self, reservations: &Reservations) -> Result<(), Stuck> {
        // Copies of what stays writable are taken before everything becomes read-only.
        let mut copies = [const { None }; MAX_ROOTS];
        let mut free = copies.iter_mut();
        for step in self.steps.iter().filter(|step| step.kind == Kind::Root) {
            let Some(slot) = free.next() else {
                return Err(Stuck { step: "hold that many writable roots", errno: libc::E2BIG });
            };
            let root = open_same(&*step.path, step.number).map_err(must_be_there);
            let copy = root.and_then(|root| copy_of(&root));
            *slot = Some(copy.map_err(Stuck::at("copy a writable root"))?);
        }
        // The devices too: what is written to one reaches it all the same; its mode and its owner stay.
        sys::mount_attributes(CWD, c"/", sys::READ_ONLY | sys::NO_SETUID)
            .map_err(Stuck::at("make the file system read-only"))?;
        devices::mount_what_is_written_to()?;
        let mut copies = copies.iter().flatten();
        for Step { path, kind, number, passing } in &self.steps {
            if matches!(kind, Kind::Reserved(index) if !reservations.is_taken(*index)) {
                continue;
            }
            let laid = match kind {
                Kind::Root => copies.next().map_or(Ok(()), |copy| {
                    let attributes = sys::NO_SETUID | sys::NO_DEVICES;
                    sys::mount_attributes(copy, c"", attributes)?;
                    place(copy, &open_same(&**path, *number)?)
                }),
                Kind::Protect | Kind::Reserved(_) => {
                    open_same(&**path, *number).and_then(|target| protect_opened(&target))
                }
                Kind::Pin => open_same(&**path, *number)
                    .and_then(|target| place(&copy_of(&target)?, &target)),
            };
            match laid.map_err(must_be_there) {
                Err(Errno::STALE) if *passing && is_gone(path) => {}
                laid => laid.map_err(Stuck::at(kind.step()))?,
            }
        }
        Ok(())
    }
}

/// Whether there is nothing at a path, not even a link.
fn is_gone(path: &CStr) -> bool {
    matches!(open_same(path, None), Err(Errno::NOENT))
}

impl Kind {
    /// What is being done when such a thing is mounted.
    fn step(self) -> &'static str {
        match self {
            Self::Root => "place a writable root",
            Self::Protect | Self::Reserved(_) => "protect a name",
            Self::Pin => "keep a directory where it is",
        }
    }
}

/// A copy of the mounts at and beneath something that was opened.
fn copy_of(opened: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(opened, c"", flags)
}

/// Mounts on something that was opened, wherever it is by now. A link is mounted on itself.
pub(super) fn place(mount: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", target, c"", flags)
}

fn protect_opened(target: &OwnedFd) -> Result<(), Errno> {
    let copy = copy_of(target)?;
    sys::mount_attributes(&copy, c"", sys::READ_ONLY)?;
    place(&copy, target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use sandgate_protocol::WritableRoot;

    /// spec SANDBOX.103: Where namespaces are refused, nothing runs that could write to a mount of the kernel's own.
    #[test]
    fn without_namespaces_nothing_is_entered_that_has_mounts_of_the_kernels() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let root = WritableRoot { path: path.clone(), read_only_subpaths: Vec::new() };
        let mut layout = Layout::made_of(vec![root], Vec::new(), Vec::new());
        let settle = |layout: &Layout| {
            let cage = Cage::build(layout, NetworkAccess::Restricted).unwrap();
            let reservations = cage.reservations().unwrap();
            cage.settle(Of::Job, Mode::LandlockOnly, &reservations).map_err(|stuck| stuck.errno)
        };
        if sys::landlock_version() > 0 {
            assert_eq!(settle(&layout), Ok(()));
        }
        layout.kernel = vec![path.join("proc")];
        assert_eq!(settle(&layout), Err(libc::ENOTSUP));
        layout.unfit = Some((path, "it is not".to_owned()));
        let refused = Cage::build(&layout, NetworkAccess::Restricted);
        assert!(matches!(refused, Err(crate::linux::CageError::Unfit { .. })), "{refused:?}");
    }
}
