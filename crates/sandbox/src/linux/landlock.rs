//! The kernel's own rules on files: read anywhere, write beneath the roots.

use super::enter::Stuck;
use super::same::open_same;
use crate::Layout;
use crate::sys::{self, Inherited};
use landlock::{ABI, Access as _, AccessFs, AccessNet, Scope};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags, fcntl_getfl, fstat, openat};
use rustix::stdio::{stderr, stdin, stdout};
use sandgate_protocol::{NetworkAccess, WritableRoot};
use std::path::Path;

/// The newest version that the rules below make use of. Older kernels get what they know.
const NEWEST: ABI = ABI::V6;

/// What stays writable outside the roots when the host's own `/dev` is used.
const HARMLESS_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// The most rules that one cage has.
pub(super) const MAX_RULES: usize = 96;

/// Rules that are ready to be made, as often as there are processes to live by them: what a ruleset
/// was once given stays in it, and each job has a `/proc` of its own to allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// What is refused unless a rule allows it; nothing where this kernel has no Landlock.
    files: u64,
    connections: u64,
    scopes: u64,
    beneath: [Beneath; MAX_RULES],
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Beneath {
    place: Inherited,
    access: u64,
}

/// Descriptors of the places that rules are about. They must stay open as long as the rules are used.
pub(super) type Places = Vec<OwnedFd>;

/// Whose files and network the rules stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// The cage's own mounts and network namespace.
    Namespaces,
    /// The host's.
    Host,
}

/// Whose streams a process has when the rules are made that it will live by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamsOf {
    /// The command's, as its caller has opened them.
    Command,
    /// The guard's: the command's are made by sandgate, and come later.
    Guard,
}

type Opened = Result<OwnedFd, rustix::io::Errno>;

/// Too many places, or one that cannot be opened.
pub(super) type Refusal = String;

impl Rules {
    /// Makes ready for a cage.
    pub(super) fn plan(
        layout: &Layout,
        network: NetworkAccess,
        on: On,
        places: &mut Places,
    ) -> Result<Self, Refusal> {
        let abi = ABI::from(sys::landlock_version()).min(NEWEST);
        let nothing = Beneath { place: Inherited::NONE, access: 0 };
        let own_network = on == On::Namespaces || network == NetworkAccess::Enabled;
        let mut rules = Self {
            files: AccessFs::from_all(abi).bits(),
            // No rule follows for them, so nothing is allowed.
            connections: if own_network { 0 } else { AccessNet::from_all(abi).bits() },
            scopes: Scope::from_all(abi).bits(),
            beneath: [nothing; MAX_RULES],
            count: 0,
        };
        if rules.files == 0 {
            return Ok(rules);
        }
        let everything = rules.files;
        let mut allow = |path: &Path, place: Opened, access: u64| -> Result<(), Refusal> {
            let refused = |reason: String| format!("{}: {reason}", path.display());
            let place = place.map_err(|e| refused(e.to_string()))?;
            let kind = fstat(&place).map_err(|e| refused(e.to_string()))?;
            let access = match FileType::from_raw_mode(kind.st_mode) {
                FileType::Directory => access,
                _ => access & AccessFs::from_file(abi).bits(),
            };
            rules.push(place.as_fd(), access).ok_or_else(|| refused("too many roots".into()))?;
            places.push(place);
            Ok(())
        };
        let open =
            |path: &Path| openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, FileMode::empty());
        let all = Path::new("/");
        allow(all, open(all), AccessFs::from_read(abi).bits())?;
        for WritableRoot { path, .. } in layout.writable_roots() {
            allow(path, open_same(path, layout.number(path)), everything)?;
        }
        if on == On::Host {
            let wanted =
                AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
            for device in HARMLESS_DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
                allow(device, open(device), wanted.bits() & everything)?;
            }
        }
        Ok(rules)
    }

    fn push(&mut self, place: BorrowedFd<'_>, access: u64) -> Option<()> {
        let slot = self.beneath.get_mut(self.count)?;
        *slot = Beneath { place: Inherited::new(place), access };
        self.count += 1;
        Some(())
    }

    /// Whether this kernel has any.
    pub(super) fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Makes them, allowing everything in the cage's own mounts on top. Allocates nothing.
    pub(super) fn make(&self, on: On, streams: StreamsOf) -> Result<Option<OwnedFd>, Stuck> {
        if self.is_empty() {
            return Ok(None);
        }
        let ruleset = sys::landlock_create(self.files, self.connections, self.scopes)
            .map_err(Stuck::at("make the rules for files"))?;
        for rule in self.beneath.iter().take(self.count) {
            if let Some(place) = rule.place.borrow() {
                sys::landlock_allow(ruleset.as_fd(), place, rule.access)
                    .map_err(Stuck::at("allow a directory"))?;
            }
        }
        if on == On::Namespaces {
            for path in [c"/dev", c"/proc"] {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let place = openat(CWD, path, flags, FileMode::empty())
                    .map_err(Stuck::at("open a directory of the cage"))?;
                sys::landlock_allow(ruleset.as_fd(), place.as_fd(), self.files)
                    .map_err(Stuck::at("allow a directory of the cage"))?;
            }
        }
        if streams == StreamsOf::Command {
            for stream in [stdin(), stdout(), stderr()] {
                self.allow_again(ruleset.as_fd(), stream);
            }
        }
        Ok(Some(ruleset))
    }

    /// Allows to open a stream by its name, as `/dev/stderr`, for what it is open for already.
    fn allow_again(&self, ruleset: BorrowedFd<'_>, stream: BorrowedFd<'_>) {
        let writes = OFlags::WRONLY | OFlags::RDWR;
        let is_written = fcntl_getfl(stream).is_ok_and(|flags| flags.intersects(writes));
        let kind = fstat(stream).map(|found| FileType::from_raw_mode(found.st_mode));
        if is_written && matches!(kind, Ok(FileType::RegularFile | FileType::CharacterDevice)) {
            let access = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
            // Without it the command has the stream all the same.
            let _ = sys::landlock_allow(ruleset, stream, access.bits() & self.files);
        }
    }
}
