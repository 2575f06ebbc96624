//! What a cage needs once its session has begun: rules, filters and names, without a pointer, so that
//! it can be kept while everything else of the host's memory goes. Using it allocates nothing.

use super::enter::{Mode, Stuck};
use super::landlock::{On, Rules, StreamsOf};
use super::seccomp::Programs;
use super::supervisor::Scope;
use crate::sys::{Kept, WithBytes};
use crate::{Layout, sys};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::mount::{MountFlags, mount};
use sandgate_protocol::NetworkAccess;
use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The most instructions that all filters of a cage have together: a sixth more than they need.
const MAX_CODE: usize = 1536;

/// The inside of a cage: the paths of its roots and then those of its sockets, each ended by a NUL, and all else.
pub type Inside = WithBytes<Terms>;

/// What has no length that depends on anything.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    network: NetworkAccess,
    namespaces: Means,
    alone: Means,
    code: Code,
    /// How many of the paths are of each kind.
    roots: usize,
    sockets: usize,
    nameservers: [Option<IpAddr>; 3],
}

/// Rules and filters for one of the modes.
#[derive(Debug, Clone, Copy)]
struct Means {
    rules: Rules,
    /// Installed where a supervisor is asked.
    notify: Span,
    /// Installed when nobody can be asked.
    unsupervised: Span,
}

/// A program's place in the code.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: usize,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Code {
    words: [libc::sock_filter; MAX_CODE],
    used: usize,
}

/// Why rules, filters and paths cannot be kept.
pub(super) enum Unfit {
    TooLarge,
    Memory(io::Error),
}

/// What a job's processes are confined by, made ready for one of them.
#[derive(Debug)]
pub struct JobRules {
    mode: Mode,
    files: Option<OwnedFd>,
}

impl Inside {
    pub(super) fn new(
        network: NetworkAccess,
        namespaces: (Rules, &Programs),
        alone: (Rules, &Programs),
        layout: &Layout,
    ) -> Result<Kept<Self>, Unfit> {
        let nothing = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut code = Code { words: [nothing; MAX_CODE], used: 0 };
        let mut means = |(rules, programs): (Rules, &Programs)| {
            Ok(Means {
                rules,
                notify: code.add(&programs.notify)?,
                unsupervised: code.add(&programs.alone)?,
            })
        };
        let (namespaces, alone) = (means(namespaces)?, means(alone)?);
        let (roots, sockets) = (layout.writable_roots(), layout.sockets());
        if roots.len().max(sockets.len()) > MAX_PATHS {
            return Err(Unfit::TooLarge);
        }
        let mut paths = Vec::new();
        let all = roots.iter().map(|root| root.path.as_path());
        for path in all.chain(sockets.iter().map(Path::new)) {
            paths.extend_from_slice(path.as_os_str().as_bytes());
            paths.push(0);
        }
        let (roots, sockets) = (roots.len(), sockets.len());
        let nameservers = nameservers();
        let terms = Terms { network, namespaces, alone, code, roots, sockets, nameservers };
        Kept::with_bytes(&terms, &paths).map_err(Unfit::Memory)
    }

    fn means(&self, mode: Mode) -> &Means {
        match mode {
            Mode::Namespaces => &self.value.namespaces,
            Mode::LandlockOnly => &self.value.alone,
        }
    }

    /// Whether anything holds files where there are no namespaces.
    pub(super) fn holds_files_alone(&self) -> bool {
        !self.value.alone.rules.is_empty()
    }

    /// Makes ready for one job. In namespaces this is for the first process of the job's own, before
    /// anything else runs there.
    ///
    /// # Errors
    /// When the kernel refuses: nothing may run in there then.
    pub fn prepare_job(&self, mode: Mode, streams: StreamsOf) -> Result<JobRules, Stuck> {
        let on = match mode {
            Mode::Namespaces => {
                Self::mount_proc()?;
                On::Namespaces
            }
            Mode::LandlockOnly => On::Host,
        };
        Ok(JobRules { mode, files: self.means(mode).rules.make(on, streams)? })
    }

    fn mount_proc() -> Result<(), Stuck> {
        // Some of its files belong to the caller's session, to the guard, or to the whole machine, whose switches ask
        // for the user's number only: root's is the right one.
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
        // Another command may have a way here. Landlock lets none trace what is not its own.
        let hidden = Some(c"hidepid=ptraceable");
        mount(c"proc", c"/proc", c"proc", flags, hidden).map_err(Stuck::at(Stuck::NO_PROC))
    }

    /// Gives up every right for good. For the process that is about to execute the command. What it
    /// gives back must reach the supervisor; it is `None` where no supervisor can be asked, and what
    /// only a supervisor could allow is then refused.
    ///
    /// # Errors
    /// When the kernel refuses: the command must then not run.
    pub fn confine(&self, rules: &JobRules) -> Result<Option<OwnedFd>, Stuck> {
        self.restrict(rules)?;
        let means = self.means(rules.mode);
        // A process that is supervised already cannot have a second supervisor.
        match sys::install_listener(self.value.code.program(means.notify)) {
            Ok(listener) => Ok(Some(listener)),
            Err(_) => self.install(means.unsupervised).map(|()| None),
        }
    }

    /// The same where nobody is to be asked.
    #[cfg(test)]
    pub(super) fn confine_unsupervised(&self, rules: &JobRules) -> Result<(), Stuck> {
        self.restrict(rules)?;
        self.install(self.means(rules.mode).unsupervised)
    }

    fn restrict(&self, rules: &JobRules) -> Result<(), Stuck> {
        sys::drop_capabilities().map_err(Stuck::at("give up capabilities"))?;
        rustix::thread::set_no_new_privs(true).map_err(Stuck::at("refuse new rights"))?;
        match &rules.files {
            Some(files) => {
                sys::landlock_restrict(files.as_fd()).map_err(Stuck::at("restrict files"))
            }
            None => Ok(()),
        }
    }

    fn install(&self, program: Span) -> Result<(), Stuck> {
        sys::install_filter(self.value.code.program(program))
            .map_err(Stuck::at("install the filter"))
    }

    /// What the supervisor of a job is told about its cage. The names are put into `names`.
    pub fn scope<'a>(&'a self, mode: Mode, names: &'a mut ScopeNames<'a>) -> Scope<'a> {
        let Terms { network, nameservers, .. } = self.value;
        let mut rest = &self.bytes;
        for slot in names.0.iter_mut().take(self.value.roots + self.value.sockets) {
            let Ok(path) = CStr::from_bytes_until_nul(rest) else { break };
            rest = rest.get(path.to_bytes_with_nul().len()..).unwrap_or_default();
            *slot = path;
        }
        let (roots, others) = names.0.split_at(self.value.roots.min(names.0.len()));
        let sockets = others.get(..self.value.sockets).unwrap_or_default();
        Scope { mode, network, roots, sockets, nameservers }
    }
}

/// The most paths of a kind.
const MAX_PATHS: usize = 96;

/// Room for the names of a [`Scope`].
pub struct ScopeNames<'a>([&'a CStr; 2 * MAX_PATHS]);

impl Default for ScopeNames<'_> {
    fn default() -> Self {
        Self([c""; 2 * MAX_PATHS])
    }
}

/// The name servers that this machine asks.
fn nameservers() -> [Option<IpAddr>; 3] {
    let mut servers = [None; 3];
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    for (slot, server) in servers.iter_mut().zip(named) {
        *slot = server.trim().parse().ok();
    }
    servers
}

impl Code {
    fn add(&mut self, program: &[libc::sock_filter]) -> Result<Span, Unfit> {
        let span = Span { start: self.used, len: program.len() };
        let place = self.words.get_mut(span.start..span.start + span.len).ok_or(Unfit::TooLarge)?;
        place.copy_from_slice(program);
        self.used += span.len;
        Ok(span)
    }

    fn program(&self, span: Span) -> &[libc::sock_filter] {
        self.words.get(span.start..span.start + span.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Cage;
    use sandgate_policy::Extras;
    use sandgate_protocol::SandboxPolicy;
    use std::collections::BTreeMap;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    #[test]
    fn a_scope_has_the_roots_and_sockets_of_its_cage() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let [one, two] = ["one", "two two"].map(|name| place.join(name));
        [&one, &two].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let sockets = ["a", "b"].map(|name| place.join(name));
        let _listeners = [&sockets[0], &sockets[1]].map(|path| UnixListener::bind(path).unwrap());
        let paths = |paths: &[&CStr]| -> Vec<PathBuf> {
            paths.iter().map(|path| path.to_str().unwrap().into()).collect()
        };
        for (more, granted) in [(vec![two.clone()], sockets.to_vec()), (Vec::new(), Vec::new())] {
            let policy = SandboxPolicy::WorkspaceWrite {
                writable_roots: more.clone(),
                network_access: NetworkAccess::Restricted,
                exclude_tmpdir_env_var: true,
                exclude_slash_tmp: true,
            };
            let extras = Extras { sockets: granted.clone(), ..Extras::default() };
            let layout = Layout::of(&policy, &one, &BTreeMap::new(), &extras).unwrap();
            let cage = Cage::build(&layout, NetworkAccess::Restricted).unwrap();
            let mut names = ScopeNames::default();
            let scope = cage.inside().scope(Mode::Namespaces, &mut names);
            let mut roots = paths(scope.roots);
            roots.sort();
            let expected: Vec<_> = std::iter::once(one.clone()).chain(more).collect();
            assert_eq!((roots, paths(scope.sockets)), (expected, granted));
        }
    }
}
