//! A request laid out as the kernel wants it, and the steps by which a process becomes its command.

use super::raw;
use super::wire::{Request, Streams};
use crate::sys::Stage;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use sandgate_sandbox::linux::Stuck;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why a command could not be started.
#[derive(Clone, Copy)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) errno: Errno,
    /// What was being done, where the stage does not say enough.
    pub(super) step: Step,
}

impl Failure {
    pub(super) fn at(stage: Stage) -> impl Fn(Errno) -> Self {
        move |errno| Self { stage, errno, step: Step::new(b"") }
    }
}

impl From<Stuck> for Failure {
    fn from(Stuck { step, errno }: Stuck) -> Self {
        let errno = Errno::from_raw_os_error(errno);
        Self { stage: Stage::Cage, errno, step: Step::new(step.as_bytes()) }
    }
}

/// A few words that can be sent to another process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step([u8; Step::BYTES]);

impl Step {
    const BYTES: usize = 48;

    /// What is longer is cut.
    pub(super) fn new(words: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        for (to, from) in bytes.iter_mut().zip(words) {
            *to = *from;
        }
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// The strings of a request, in memory of their own.
pub(super) struct Strings {
    mapping: *mut c_void,
    size: usize,
    /// How much of it has been written to.
    used: AtomicUsize,
}

/// More than any kernel takes for arguments and environment together.
const MOST_BYTES: usize = 8 << 20;

impl Strings {
    /// Room for the strings of one request.
    pub(super) fn room_for(request: Request) -> Result<Self, Failure> {
        Self::map((request.len as usize).max(1), MapFlags::PRIVATE)
    }

    /// Room for any request's strings.
    pub(super) fn room() -> Result<Self, Failure> {
        let strings = Self::map(MOST_BYTES, MapFlags::PRIVATE | MapFlags::NORESERVE)?;
        // Few are longer than a page, and a huge one takes long to clear.
        // SAFETY: it says nothing about what is in there.
        let _ = unsafe { madvise(strings.mapping, strings.size, Advice::LinuxNoHugepage) };
        Ok(strings)
    }

    fn map(size: usize, flags: MapFlags) -> Result<Self, Failure> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapping = unsafe { mmap_anonymous(ptr::null_mut(), size, access, flags) }
            .map_err(Failure::at(Stage::SetUp))?;
        Ok(Self { mapping, size, used: AtomicUsize::new(0) })
    }

    /// Overwrites them. To give the memory back would interrupt whoever runs on the processors that have used it, which
    /// is the command.
    pub(super) fn wipe(&mut self) {
        let used = self.used.load(Ordering::Acquire).min(self.size);
        // SAFETY: the mapping is at least that long, and nobody else's.
        unsafe { ptr::write_bytes(self.mapping.cast::<u8>(), 0, used) };
    }

    /// The strings of a request that is at hand.
    pub(super) fn holding(request: Request, text: &[u8]) -> Result<Self, Failure> {
        let strings = Self::room_for(request)?;
        let len = text.len().min(strings.size);
        // SAFETY: the mapping is at least that long, and nobody else's.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), strings.mapping.cast(), len) };
        Ok(strings)
    }

    /// Takes a request's strings off the job's socket.
    ///
    /// # Safety
    /// Nobody else may look at them meanwhile.
    pub(super) unsafe fn receive(
        &self,
        request: Request,
        control: BorrowedFd<'_>,
    ) -> Result<(), Failure> {
        let set_up = Failure::at(Stage::SetUp);
        let wanted = request.len as usize;
        if wanted > self.size {
            return Err(Failure::at(Stage::Exec)(Errno::TOOBIG));
        }
        self.used.store(wanted, Ordering::Release);
        // SAFETY: the mapping is at least that long, and the caller promises that nobody else uses it now.
        let text = unsafe { std::slice::from_raw_parts_mut(self.mapping.cast::<u8>(), wanted) };
        let mut filled = 0;
        while let Some(rest) = text.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::retry_on_intr(|| rustix::io::read(control, &mut *rest)) {
                // The host gave up half way.
                Ok(0) => return Err(set_up(Errno::PIPE)),
                Ok(n) => filled += n,
                Err(errno) => return Err(set_up(errno)),
            }
        }
        Ok(())
    }

    fn text(&self, request: Request) -> &[u8] {
        let len = (request.len as usize).min(self.size);
        // SAFETY: the mapping is at least that long, and nobody writes to it any more.
        unsafe { std::slice::from_raw_parts(self.mapping.cast::<u8>(), len) }
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and what pointed into it borrowed this value.
        let _ = unsafe { munmap(self.mapping, self.size) };
    }
}

/// A command as the kernel wants it. It points into its strings.
pub(super) struct Plan<'a> {
    program: *const c_char,
    cwd: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    _strings: &'a Strings,
}

impl<'a> Plan<'a> {
    /// Lays out strings that have been received. The table of pointers lives as long as this process
    /// does, or until it executes a program.
    pub(super) fn lay_out(request: Request, strings: &'a Strings) -> Result<Self, Failure> {
        let set_up = Failure::at(Stage::SetUp);
        // Program and directory, then both lists, each with its closing null.
        let count = 2 + request.argc as usize + 1 + request.envc as usize + 1;
        let size = count * size_of::<*const c_char>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let table = unsafe { mmap_anonymous(ptr::null_mut(), size, access, MapFlags::PRIVATE) }
            .map_err(&set_up)?;
        // SAFETY: the mapping is big enough, aligned to a page, and zeroed, which is null.
        let table = unsafe { std::slice::from_raw_parts_mut(table.cast::<*const c_char>(), count) };
        let argv_end = 2 + request.argc as usize;
        let slots = (0..count).filter(|&slot| slot != argv_end && slot != count - 1);
        let mut rest = strings.text(request).split_inclusive(|&byte| byte == 0);
        for slot in slots {
            let (Some(string), Some(entry)) = (rest.next(), table.get_mut(slot)) else {
                return Err(set_up(Errno::INVAL));
            };
            if string.last() != Some(&0) {
                return Err(set_up(Errno::INVAL));
            }
            *entry = string.as_ptr().cast();
        }
        let (Some([program, cwd]), Some(argv), Some(envp)) =
            (table.first_chunk(), table.get(2..), table.get(argv_end + 1..))
        else {
            return Err(set_up(Errno::INVAL));
        };
        let (argv, envp) = (argv.as_ptr(), envp.as_ptr());
        Ok(Self { program: *program, cwd: *cwd, argv, envp, _strings: strings })
    }

    /// Takes the standard streams.
    pub(super) fn take_streams(
        streams: Streams,
        stdio: [BorrowedFd<'_>; 3],
    ) -> Result<(), Failure> {
        let set_up = Failure::at(Stage::SetUp);
        let [stdin, stdout, stderr] = stdio;
        if streams == Streams::Terminal {
            rustix::process::ioctl_tiocsctty(stdin).map_err(Failure::at(Stage::Terminal))?;
        }
        rustix::stdio::dup2_stdin(stdin).map_err(&set_up)?;
        rustix::stdio::dup2_stdout(stdout).map_err(&set_up)?;
        rustix::stdio::dup2_stderr(stderr).map_err(&set_up)
    }

    /// Executes the command. Returns only on failure. Descriptors other than the standard streams must
    /// be closed, or close by that, and signals have their default handlers.
    pub(super) fn execute(&self) -> Failure {
        // SAFETY: a C string among the request's.
        let cwd = unsafe { CStr::from_ptr(self.cwd) };
        if let Err(errno) = rustix::process::chdir(cwd) {
            return Failure::at(Stage::Chdir)(errno);
        }
        raw::unblock_signals();
        // SAFETY: all three were laid out by `Plan::lay_out` and live until the exec.
        Failure::at(Stage::Exec)(unsafe { raw::execve(self.program, self.argv, self.envp) })
    }
}
