//! What a cage needs once its session has begun: rules, filters and names, without a pointer, so that
//! it can be kept while everything else of the host's memory goes. Nothing here allocates.

use super::enter::{Mode, Stuck, protect};
use super::landlock::{On, Rules};
use super::seccomp::Programs;
use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use sandgate_protocol::NetworkAccess;
use seccompiler::BpfProgram;

/// The most instructions that all filters of a cage have together.
const MAX_CODE: usize = 8 * 1024;

/// The most programs that are installed together.
const MAX_PROGRAMS: usize = 4;

/// The inside of a cage.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    pub(super) is_root: bool,
    pub(super) network: NetworkAccess,
    namespaces: Means,
    alone: Means,
    code: Code,
}

/// Rules and filters for one of the modes.
#[derive(Debug, Clone, Copy)]
struct Means {
    rules: Rules,
    /// Installed together with the one that asks the supervisor.
    supervised: [Span; MAX_PROGRAMS],
    notify: Span,
    /// Installed when nobody can be asked.
    unsupervised: [Span; MAX_PROGRAMS],
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

/// Rules and filters that do not fit.
pub(super) struct TooLarge;

/// What a job's processes are confined by, made ready for one of them.
#[derive(Debug)]
pub struct JobRules {
    mode: Mode,
    files: Option<OwnedFd>,
}

impl Inside {
    pub(super) fn new(
        is_root: bool,
        network: NetworkAccess,
        namespaces: (Rules, Programs),
        alone: (Rules, Programs),
    ) -> Result<Box<Self>, TooLarge> {
        let nothing = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut code = Code { words: [nothing; MAX_CODE], used: 0 };
        let mut means = |(rules, programs): (Rules, Programs)| {
            Ok(Means {
                rules,
                supervised: code.add_all(&programs.supervised)?,
                notify: code.add(&programs.notify).ok_or(TooLarge)?,
                unsupervised: code.add_all(&programs.alone)?,
            })
        };
        let (namespaces, alone) = (means(namespaces)?, means(alone)?);
        Ok(Box::new(Self { is_root, network, namespaces, alone, code }))
    }

    fn means(&self, mode: Mode) -> &Means {
        match mode {
            Mode::Namespaces => &self.namespaces,
            Mode::LandlockOnly => &self.alone,
        }
    }

    /// Whether anything holds files where there are no namespaces.
    pub(super) fn holds_files_alone(&self) -> bool {
        !self.alone.rules.is_empty()
    }

    /// Makes ready for one job. In namespaces this is for the first process of the job's own, before
    /// anything else runs there.
    ///
    /// # Errors
    /// When the kernel refuses: nothing may run in there then.
    pub fn prepare_job(&self, mode: Mode) -> Result<JobRules, Stuck> {
        let on = match mode {
            Mode::Namespaces => {
                self.mount_proc()?;
                On::Namespaces
            }
            Mode::LandlockOnly => On::Host,
        };
        Ok(JobRules { mode, files: self.means(mode).rules.make(on)? })
    }

    fn mount_proc(&self) -> Result<(), Stuck> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(c"proc", c"/proc", c"proc", flags, None).map_err(Stuck::at("mount /proc"))?;
        if self.is_root {
            // The kernel's switches ask for the user's number only, and root's is the right one.
            for path in
                [c"/proc/sys", c"/proc/sysrq-trigger", c"/proc/irq", c"/proc/bus", c"/proc/fs"]
            {
                match protect(path) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(Stuck::at("protect the kernel's switches")(errno)),
                }
            }
        }
        Ok(())
    }

    /// Gives up every right for good. For the process that is about to execute the command. What it
    /// gives back must reach the supervisor; it is `None` where no supervisor can be asked, and what
    /// only a supervisor could allow is then refused.
    ///
    /// # Errors
    /// When the kernel refuses: the command must then not run.
    pub fn confine(&self, rules: &JobRules) -> Result<Option<OwnedFd>, Stuck> {
        sys::drop_capabilities().map_err(Stuck::at("give up capabilities"))?;
        rustix::thread::set_no_new_privs(true).map_err(Stuck::at("refuse new rights"))?;
        if let Some(files) = &rules.files {
            sys::landlock_restrict(files.as_fd()).map_err(Stuck::at("restrict files"))?;
        }
        let means = self.means(rules.mode);
        // A process that is supervised already cannot have a second supervisor.
        let listener = sys::install_listener(self.code.program(means.notify)).ok();
        let programs = if listener.is_some() { &means.supervised } else { &means.unsupervised };
        for program in programs.iter().filter(|program| program.len > 0) {
            sys::install_filter(self.code.program(*program))
                .map_err(Stuck::at("install the filter"))?;
        }
        Ok(listener)
    }
}

impl Code {
    fn add(&mut self, program: &BpfProgram) -> Option<Span> {
        let span = Span { start: self.used, len: program.len() };
        let place = self.words.get_mut(span.start..span.start + span.len)?;
        for (to, from) in place.iter_mut().zip(program) {
            *to = libc::sock_filter { code: from.code, jt: from.jt, jf: from.jf, k: from.k };
        }
        self.used += span.len;
        Some(span)
    }

    fn add_all(&mut self, programs: &[BpfProgram]) -> Result<[Span; MAX_PROGRAMS], TooLarge> {
        let mut spans = [Span::default(); MAX_PROGRAMS];
        if programs.len() > spans.len() {
            return Err(TooLarge);
        }
        for (span, program) in spans.iter_mut().zip(programs) {
            *span = self.add(program).ok_or(TooLarge)?;
        }
        Ok(spans)
    }

    fn program(&self, span: Span) -> &[libc::sock_filter] {
        self.words.get(span.start..span.start + span.len).unwrap_or_default()
    }
}
