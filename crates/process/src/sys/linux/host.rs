//! The host's side: starts the nursery, sends it requests, and starts it anew if it was killed.

use super::given;
use super::job::{self, First, Job, Word};
use super::nursery::{self, Allowed, become_nursery};
use super::processor;
use super::raw::{self, Forked};
use super::wire::{REPLY_BYTES, REQUEST_FDS, Request, Streams};
use crate::sys::streams::{End, Ends};
use crate::sys::{Launch, LaunchError, Launched, Stage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::process::{kill_process, waitid, waitpid};
use sandgate_sandbox::linux::{Leftovers, Of, Reservations, Site, Stuck};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How many requests may wait for a warden at once: the kernel bounds the descriptors in flight.
const MAX_IN_FLIGHT: usize = 16;

/// How often a request that nobody took is sent again.
const ATTEMPTS: usize = 4;

/// How often the roots of a cage are searched before a command is refused, because something in there is
/// moved again and again.
pub(super) const SEARCHES: usize = 8;

/// How long a nursery may take to go.
const DISMISSAL: Duration = Duration::from_secs(6);

/// How long the idle wardens of a nursery that was killed may take.
const LAST_WARDEN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long a cage is kept ready after its last command. The names that it keeps free are on the disk
/// for as long.
const KEPT_READY: Duration = Duration::from_secs(3);

/// How often that is looked at.
const SWEEP: Duration = Duration::from_secs(1);

/// Starts jobs, by way of nurseries that it keeps alive: one for what nothing confines, and one for
/// each cage that is in use.
pub(crate) struct Nursery {
    /// Made for the first command that nothing confines: there may never be one.
    plain: Mutex<Option<Arc<Line>>>,
    caged: Arc<Mutex<Vec<Cell>>>,
    null: OwnedFd,
    in_flight: Semaphore,
}

/// A cage with its nursery.
struct Cell {
    site: Arc<Site>,
    line: Arc<Line>,
    used: Instant,
}

/// What came of sending a request.
enum Attempt {
    Launched(Box<Launched>),
    /// Nobody took it; it can be sent again.
    Lost,
    /// Nobody is there any more who could take it, even if the nursery's process has not quite ended: one
    /// that was killed closes its socket first, and taking its namespaces apart can take a while.
    Deserted,
    /// Nobody took it for a long time.
    Unmoved,
}

/// A nursery's process and the socket to it. Dropping it ends the process.
///
/// Jobs in a cage hold on to their line: the names of a cage are kept for as long as it has one.
pub(super) struct Line {
    requests: Option<OwnedFd>,
    pid: Pid,
    /// What it is signalled by, where the kernel has such: something else of the host may wait for any child.
    handle: Option<OwnedFd>,
    allowed: Allowed,
    /// What it keeps free, to be given back here if it was killed.
    names: Option<Reservations>,
    /// Some jobs were told to stay, and their nursery with them.
    outlives_us: AtomicBool,
}

impl Nursery {
    /// Prepares. A nursery is forked for the first command that needs it.
    pub(crate) fn start() -> io::Result<Self> {
        // The first time this may need memory, which guards cannot have.
        let _ = processor::here();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        Ok(Self {
            null: rustix::fs::open(c"/dev/null", flags, rustix::fs::Mode::empty())?,
            plain: Mutex::default(),
            caged: Arc::default(),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
        })
    }

    /// Starts a job and waits until its program runs.
    pub(crate) async fn launch(&self, launch: Launch<'_>) -> Result<Launched, LaunchError> {
        // The semaphore is never closed.
        let _in_flight = self.in_flight.acquire().await;
        let site = launch.env.site();
        let mut searches = SEARCHES;
        let mut attempts = ATTEMPTS;
        while attempts > 0 {
            attempts -= 1;
            let line = match self.line(site) {
                Err(error) if error.is_about_a_move() && searches > 1 => {
                    searches -= 1;
                    attempts += 1;
                    continue;
                }
                line => line?,
            };
            let allowed = line.allowed;
            match self.try_launch(&line, &launch).await {
                Ok(Attempt::Launched(launched)) => return Ok(*launched),
                Ok(Attempt::Lost) if line.is_there() => {}
                Ok(Attempt::Lost | Attempt::Deserted | Attempt::Unmoved) => {
                    match line.last_word() {
                        Some(error) if error.is_refusal() && allowed == Allowed::Namespaces => {
                            self.replace(&line, site, Allowed::Nothing)?;
                        }
                        Some(error) if site.is_some() => {
                            self.forget(&line);
                            if !error.is_about_a_move() || searches <= 1 {
                                return Err(error);
                            }
                            searches -= 1;
                            attempts += 1;
                        }
                        _ => self.replace(&line, site, allowed)?,
                    }
                }
                // Some containers cover parts of /proc, and then let nobody have a whole one.
                Err(error) if error.is_refusal() && allowed == Allowed::Namespaces => {
                    self.replace(&line, site, Allowed::Nothing)?;
                }
                Err(error) => return Err(error),
            }
        }
        let why = "the processes that start commands are being killed";
        Err(set_up(io::Error::other(why)))
    }

    /// The line to the nursery of a cage, or to the one of what has none.
    fn line(&self, site: Option<&Arc<Site>>) -> Result<Arc<Line>, LaunchError> {
        let Some(site) = site else {
            let mut plain = lock(&self.plain);
            let line = match &*plain {
                Some(line) => Arc::clone(line),
                None => Arc::new(Line::plain().map_err(set_up)?),
            };
            return Ok(Arc::clone(plain.insert(line)));
        };
        let mut cells = lock(&self.caged);
        if let Some(cell) = cells.iter_mut().find(|cell| Arc::ptr_eq(&cell.site, site)) {
            cell.used = Instant::now();
            return Ok(Arc::clone(&cell.line));
        }
        let line = match Line::caged(site, Allowed::Namespaces) {
            Err(error) if error.is_refusal() => Line::caged(site, Allowed::Nothing),
            line => line,
        };
        let line = Arc::new(line?);
        let first = cells.is_empty();
        let (site, used) = (Arc::clone(site), Instant::now());
        cells.push(Cell { site, line: Arc::clone(&line), used });
        if first {
            tokio::spawn(sweep(Arc::downgrade(&self.caged)));
        }
        Ok(line)
    }

    /// Starts a new nursery in place of one that is gone, unless somebody else has.
    fn replace(
        &self,
        gone: &Arc<Line>,
        site: Option<&Arc<Site>>,
        allowed: Allowed,
    ) -> Result<(), LaunchError> {
        let open = |line: &mut Arc<Line>| -> Result<(), LaunchError> {
            if Arc::ptr_eq(line, gone) {
                // If it is there after all, it does not move.
                gone.signal(Signal::KILL);
                *line = Arc::new(match site {
                    None => Line::plain().map_err(set_up)?,
                    Some(site) => Line::caged(site, allowed)?,
                });
            }
            Ok(())
        };
        match site {
            None => lock(&self.plain).as_mut().map_or(Ok(()), open),
            Some(site) => {
                let mut cells = lock(&self.caged);
                let cell = cells.iter_mut().find(|cell| Arc::ptr_eq(&cell.site, site));
                cell.map_or(Ok(()), |cell| open(&mut cell.line))
            }
        }
    }

    /// Keeps no line that could not be used.
    fn forget(&self, line: &Arc<Line>) {
        lock(&self.caged).retain(|cell| !Arc::ptr_eq(&cell.line, line));
    }

    async fn try_launch(
        &self,
        line: &Arc<Line>,
        launch: &Launch<'_>,
    ) -> Result<Attempt, LaunchError> {
        // Guards that wait may outlive it, and would take the request. Nobody ends what theirs leave behind.
        if !line.is_there() {
            return Ok(Attempt::Deserted);
        }
        let (mut request, strings) = Request::describe(launch.env).map_err(set_up)?;
        let (control, theirs) = packet_pair().map_err(|errno| set_up(errno.into()))?;
        let ends = Ends::connect(launch.stdio).map_err(set_up)?;
        if ends.terminal.is_some() {
            request.streams = Streams::Terminal;
        }
        if let ([End::HostStdin, ..], Some(site)) = (&ends.theirs, launch.env.site()) {
            let (name, stream) = (given::INPUT, rustix::stdio::stdin());
            given::check(name, stream, site.network()).map_err(set_up)?;
            given::check_place(name, stream, site).map_err(set_up)?;
        }
        let [stdin, stdout, stderr] = ends.theirs.each_ref().map(|end| match end {
            End::Null => self.null.as_fd(),
            End::HostStdin => rustix::stdio::stdin(),
            End::Owned(fd) => fd.as_fd(),
        });
        // Whoever takes the request finds its strings there.
        let unsent = job::send_ahead(&control, &strings);
        let fds = [theirs.as_fd(), stdin, stdout, stderr];
        if !line.send(request, &fds).map_err(set_up)? {
            return Ok(Attempt::Deserted);
        }
        // Our copies must go now, or the pipes would never end and the warden's end never be missed.
        drop((ends.theirs, theirs));
        let cage = line.names.is_some().then(|| Arc::clone(line));
        match Job::started(cage, control, unsent).await? {
            First::Lost => Ok(Attempt::Lost),
            First::Unmoved => Ok(Attempt::Unmoved),
            First::Running(job) => {
                if let Some(site) = launch.env.site().filter(|_| !job.held().namespaces) {
                    site.has_no_mounts_of_its_own();
                }
                Ok(Attempt::Launched(Box::new(Launched {
                    job,
                    stdin: ends.stdin,
                    stdout: Some(ends.stdout),
                    stderr: ends.stderr,
                    terminal: ends.terminal,
                })))
            }
        }
    }
}

/// Lets go of cages that nobody has used for a while, until there are none.
async fn sweep(cells: Weak<Mutex<Vec<Cell>>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(cells) = cells.upgrade() else { return };
        let mut cells = lock(&cells);
        let mut unused = Vec::new();
        for cell in std::mem::take(&mut *cells) {
            let busy = Arc::strong_count(&cell.line) > 1;
            let used = if busy { Instant::now() } else { cell.used };
            match used.elapsed() > KEPT_READY {
                true => unused.push(cell),
                false => cells.push(Cell { used, ..cell }),
            }
        }
        let done = cells.is_empty();
        drop(cells);
        if !unused.is_empty() {
            // Waiting for their processes takes a moment.
            std::thread::spawn(move || drop(unused));
        }
        if done {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// One to a nursery of what nothing confines.
    fn plain() -> io::Result<Self> {
        let (ours, theirs) = packet_pair()?;
        // SAFETY: the child goes straight to `become_nursery`, which allocates nothing, makes only
        // kernel calls and never returns.
        match unsafe { raw::fork_host() }? {
            // SAFETY: this is the process that was just forked.
            Forked::Child => unsafe { become_nursery(theirs.as_fd(), &[theirs.as_raw_fd()], None) },
            Forked::Parent(pid) => {
                let pid = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
                Ok(Self::new(ours, pid, Allowed::Namespaces, None))
            }
        }
    }

    /// One to a nursery in a cage.
    fn caged(site: &Site, allowed: Allowed) -> Result<Self, LaunchError> {
        // The process ahead may look at it until it is gone.
        let cage;
        let mut ahead = allowed.send_ahead(None, site.network(), Of::Session)?;
        let mut network = ahead.network_to_come();
        cage = site.build().map_err(cannot_build)?;
        let (ours, theirs) = packet_pair().map_err(|errno| set_up(errno.into()))?;
        let mut names = cage.reservations().map_err(cannot_keep_free)?;
        let leftovers = names.leftovers().map_err(cannot_build)?;
        let mut keep = vec![theirs.as_raw_fd()];
        keep.extend(cage.descriptors());
        keep.extend(names.descriptors().map(|fd| fd.as_raw_fd()));
        keep.extend(network.as_ref().map(|network| network.as_fd().as_raw_fd()));
        keep.sort_unstable();
        // Names in one directory share its descriptor.
        keep.dedup();
        let mut nursery = |mode| {
            let leftovers = Leftovers::in_bytes(&leftovers);
            let (cage, names, network) = (&cage, &mut names, network.take());
            let cell = nursery::Cell { cage, names, leftovers, mode, network };
            // SAFETY: this is a process that was just forked for it.
            unsafe { become_nursery(theirs.as_fd(), &keep, Some(cell)) }
        };
        // SAFETY: it allocates nothing, makes only kernel calls and never returns.
        let pid = unsafe { ahead.fork(&mut nursery) }?;
        Ok(Self::new(ours, pid, allowed, Some(names)))
    }

    fn new(requests: OwnedFd, pid: Pid, allowed: Allowed, names: Option<Reservations>) -> Self {
        let (requests, outlives_us) = (Some(requests), AtomicBool::new(false));
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { requests, pid, handle, allowed, names, outlives_us }
    }

    /// Some of its jobs stay, and it with them, whoever goes.
    pub(super) fn stays(&self) {
        self.outlives_us.store(true, Ordering::Relaxed);
    }

    /// Why it went, if it could say so.
    fn last_word(&self) -> Option<LaunchError> {
        let mut bytes = [0u8; REPLY_BYTES];
        let requests = self.requests.as_ref()?;
        let mut hear = || recv(requests, &mut bytes, RecvFlags::DONTWAIT);
        let (n, _) = match hear() {
            // It did not read all that it was sent, which one is told of before its own words.
            Err(Errno::CONNRESET) => hear(),
            heard => heard,
        }
        .ok()?;
        match Word::hear(bytes.get(..n)?) {
            Some(Word::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether the nursery's process has not ended. One that has is not waited for here: until this
    /// is dropped its id must not be given to anybody else.
    fn is_there(&self) -> bool {
        matches!(self.look(), Ok(None))
    }

    /// Signals the nursery, unless something else of the host has waited for it already.
    fn signal(&self, signal: Signal) {
        let _ = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            // Before Linux 5.3 its number has to do. It is our child, and nobody has waited for it.
            None => self.look().and_then(|_| kill_process(self.pid, signal)),
        };
    }

    fn look(&self) -> Result<Option<WaitIdStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.pid), options))
    }

    /// Sends a request; `false` when nobody is there to take it.
    fn send(&self, request: Request, fds: &[BorrowedFd<'_>; REQUEST_FDS]) -> io::Result<bool> {
        let Some(requests) = &self.requests else { return Ok(false) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REQUEST_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("too many descriptors for one request"));
        }
        let bytes = request.encode();
        let flags = SendFlags::NOSIGNAL;
        let sent = rustix::io::retry_on_intr(|| {
            sendmsg(requests, &[IoSlice::new(&bytes)], &mut ancillary, flags)
        });
        match sent {
            Ok(_) => Ok(true),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

impl Drop for Line {
    /// The nursery sees its socket close and goes at once; waiting for it leaves no zombie.
    fn drop(&mut self) {
        if let (Some(requests), true) = (&self.requests, self.names.is_some() && !self.is_there()) {
            dismiss_idle_wardens(requests);
        }
        self.requests = None;
        if let Some(names) = self.names.take_if(|_| self.outlives_us.load(Ordering::Relaxed)) {
            // It gives its names back when the last of its jobs has gone. Somebody has to wait for it.
            let pid = self.pid;
            let wait = move || {
                let _ = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
                names.remove();
            };
            let _ = std::thread::Builder::new().spawn(wait);
            return;
        }
        // Somebody may have stopped it.
        self.signal(Signal::CONT);
        self.wait();
        if let Some(names) = &self.names {
            names.remove();
        }
    }
}

/// Sends away the idle wardens of a nursery that was killed, and waits for them: they hold the cage's names.
fn dismiss_idle_wardens(requests: &OwnedFd) {
    let _ = rustix::net::shutdown(requests, rustix::net::Shutdown::Write);
    let mut fds = [PollFd::new(requests, PollFlags::empty())];
    let _ = poll(&mut fds, Some(&LAST_WARDEN));
}

impl Line {
    fn wait(&self) {
        let limit = Instant::now() + DISMISSAL;
        while let Ok(None) = waitpid(Some(self.pid), WaitOptions::NOHANG) {
            if Instant::now() > limit {
                self.signal(Signal::KILL);
                let _ = rustix::io::retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

pub(super) fn packet_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

pub(super) fn cannot_build(
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> LaunchError {
    LaunchError::new(Stage::Cage, io::Error::other(why))
}

/// Why the names that a cage keeps free could not be found.
pub(super) fn cannot_keep_free(error: io::Error) -> LaunchError {
    match error.raw_os_error() == Some(Errno::STALE.raw_os_error()) {
        true => LaunchError::new(Stage::Cage, error).at_step(Stuck::MOVED),
        false => cannot_build(error),
    }
}

fn set_up(source: io::Error) -> LaunchError {
    LaunchError::new(Stage::SetUp, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Stdio;
    use sandgate_policy::Grant;
    use sandgate_protocol::{ExecExpiration, ExecParams, SandboxPermissions};
    use sandgate_sandbox::SandboxManager;

    /// A process that was killed closes its socket before it has ended. Until it has, every request to it
    /// is refused at once, however often it is sent.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "stands for a nursery that is ending")]
    async fn a_nursery_that_is_still_ending_is_replaced() {
        let nursery = Nursery::start().unwrap();
        let mut ending = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (requests, _) = packet_pair().unwrap();
        let line = Line {
            requests: Some(requests),
            pid: Pid::from_child(&ending),
            handle: None,
            allowed: Allowed::Namespaces,
            names: None,
            outlives_us: AtomicBool::new(false),
        };
        *lock(&nursery.plain) = Some(Arc::new(line));
        let params = ExecParams {
            command: vec!["/bin/true".to_owned()],
            program: "/bin/true".into(),
            cwd: "/".into(),
            env: Default::default(),
            expiration: ExecExpiration::Cancellation,
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            arg0: None,
        };
        let grant = Grant::unconfined_by_person(params);
        let env = SandboxManager::new().transform(grant).unwrap();
        let launch = Launch { env: &env, stdio: Stdio::Pipes(crate::Stdin::Null) };
        assert!(nursery.launch(launch).await.is_ok());
        // Whoever replaced it may have waited for it already.
        let _ = ending.kill();
        let _ = ending.wait();
    }
}
