//! The supervisor against the real kernel: every test builds a cage, runs something in it, and
//! looks at the answer, the evidence and the world.

mod files;
mod hostile;
mod never;
mod sockets;
mod speed;

use super::{Scope, Supervisor};
use crate::linux::{Cage, Entry, JobRules, Mode, Of, StreamsOf};
use crate::sys::probe::in_process;
use crate::{Layout, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, WaitOptions, pidfd_getfd, pidfd_open, waitpid,
};
use rustix::thread::UnshareFlags;
use sandgate_policy::Extras;
use sandgate_protocol::{NetworkAccess, SandboxPolicy};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// A workspace with a protected directory in it, and a directory outside.
pub(super) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let world = Self { directory };
        for name in ["ws/.git/hooks", "ws/sub", "out/sub"] {
            std::fs::create_dir_all(world.path(name)).unwrap();
        }
        for name in ["ws/file", "ws/.git/config", "out/file", "out/other"] {
            std::fs::write(world.path(name), "as it was").unwrap();
        }
        world
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// The same for the kernel.
    pub(super) fn c(&self, name: &str) -> CString {
        c_path(&self.path(name))
    }
}

pub(super) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Who answers what the command asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Supervision {
    /// The supervisor.
    Full,
    /// Nobody: the filters for a cage without a supervisor.
    None,
    /// The listener is closed before the first question.
    Dead,
    /// The answer comes only when the command's other process says so.
    Late,
}

/// A cage to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) mode: Mode,
    pub(super) network: NetworkAccess,
    pub(super) supervision: Supervision,
    pub(super) sockets: &'static [&'static CStr],
}

pub(super) const NAMESPACES: Setting = Setting {
    mode: Mode::Namespaces,
    network: NetworkAccess::Restricted,
    supervision: Supervision::Full,
    sockets: &[],
};

pub(super) const LANDLOCK: Setting = Setting { mode: Mode::LandlockOnly, ..NAMESPACES };

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What the command wrote.
    pub(super) said: String,
    /// Operation, target, rule and system call of what was refused.
    pub(super) denials: Vec<String>,
    pub(super) more: u64,
}

/// Whether this machine has what a setting needs. Says on the record when it has not.
pub(super) fn is_possible(setting: Setting) -> bool {
    let (possible, what) = match setting.mode {
        Mode::Namespaces => (sys::may_make_namespaces(), "namespaces are refused here"),
        Mode::LandlockOnly => (sys::landlock_version() > 0, "this kernel has no Landlock"),
    };
    if !possible {
        eprintln!("SKIPPED: {what}");
    }
    possible
}

/// A process that is forked while another test's names are taken would keep them taken.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Runs `command` in a cage and waits for it. It writes to the descriptor that it is given.
pub(super) fn run(
    world: &World,
    setting: Setting,
    command: impl FnOnce(&mut dyn FnMut(&str)),
) -> Outcome {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let policy = SandboxPolicy::WorkspaceWrite {
        writable_roots: Vec::new(),
        network_access: setting.network,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    };
    let layout =
        Layout::of(&policy, &world.path("ws"), &BTreeMap::new(), &Extras::default()).unwrap();
    let cage = Cage::build(&layout, setting.network).unwrap();
    let mut reservations = cage.reservations().unwrap();
    reservations.take().unwrap();
    let roots = Vec::leak(vec![&*Box::leak(world.c("ws").into_boxed_c_str())]);
    let (mode, network, sockets) = (setting.mode, setting.network, setting.sockets);
    let nameservers = [Some("127.0.0.53".parse().unwrap()), None, None];
    let scope = Scope { mode, network, roots, sockets, nameservers };
    let (said, to_say) = rustix::pipe::pipe().unwrap();
    let (evidence, to_tell) = rustix::pipe::pipe().unwrap();
    let warden = in_process(|| {
        if setting.mode == Mode::Namespaces {
            let entry = Entry::new(network);
            assert_eq!(entry.enter(Of::Session).unwrap(), Mode::Namespaces);
            if entry.has_network_of_its_own() {
                entry.make_network().unwrap();
            }
            cage.settle(Of::Session, Mode::Namespaces, &reservations).unwrap();
            sys::unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS).unwrap();
        }
        let first = in_process(|| {
            let rules = cage.inside().prepare_job(setting.mode, StreamsOf::Guard).unwrap();
            watch(&cage, &rules, setting, scope, &to_tell, &to_say, command)
        });
        wait(first)
    });
    drop((to_say, to_tell));
    let read = |fd: OwnedFd| {
        let mut text = String::new();
        std::fs::File::from(fd).read_to_string(&mut text).unwrap();
        text
    };
    let evidence = std::thread::spawn(move || read(evidence));
    let said = read(said);
    let evidence = evidence.join().unwrap();
    assert_eq!(wait(warden), 0, "the warden has ended well; it said {said:?} {evidence:?}");
    reservations.give_back();
    let mut denials: Vec<_> = evidence.lines().map(str::to_owned).collect();
    let more = denials.pop().expect("the last line is a count").parse().unwrap();
    Outcome { said, denials, more }
}

fn wait(pid: Pid) -> i32 {
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    status.exit_status().unwrap_or(-1)
}

/// The warden's part: the first process of the job, which the supervisor runs in.
fn watch(
    cage: &Cage,
    rules: &JobRules,
    setting: Setting,
    scope: Scope<'_>,
    to_tell: &OwnedFd,
    to_say: &OwnedFd,
    command: impl FnOnce(&mut dyn FnMut(&str)),
) -> i32 {
    let (number, to_hand) = rustix::pipe::pipe().unwrap();
    let (go, to_go) = rustix::pipe::pipe().unwrap();
    let pid = in_process(|| {
        let listener = confine(cage, rules, setting);
        let number = listener.as_ref().map_or(-1, OwnedFd::as_raw_fd);
        rustix::io::write(&to_hand, &number.to_ne_bytes()).unwrap();
        rustix::io::read(&go, &mut [0; 1]).unwrap();
        drop(listener);
        command(&mut |text| {
            rustix::io::write(to_say, text.as_bytes()).unwrap();
        });
        0
    });
    let mut bytes = [0; 4];
    rustix::io::read(&number, &mut bytes).unwrap();
    let number = i32::from_ne_bytes(bytes);
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let listener = (number >= 0)
        .then(|| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap())
        .filter(|_| setting.supervision != Supervision::Dead);
    let mut supervisor = listener.map(|listener| Supervisor::new(listener, scope));
    rustix::io::write(&to_go, b"g").unwrap();
    drop((to_go, number));
    let mut evidence = Vec::new();
    let mut late = setting.supervision == Supervision::Late;
    loop {
        let over = match &mut supervisor {
            Some(supervisor) => {
                let over = step(supervisor, process.as_fd(), late);
                if late && is_told_to_go_on(scope) {
                    late = false;
                }
                if !late {
                    supervisor.serve(&mut |denial| evidence.push(line(denial)));
                }
                over
            }
            None => {
                wait_for(process.as_fd());
                true
            }
        };
        if over {
            break;
        }
    }
    let more = supervisor.map_or(0, |mut supervisor| supervisor.take_more());
    evidence.push(more.to_string());
    rustix::io::write(to_tell, evidence.join("\n").as_bytes()).unwrap();
    wait(pid)
}

/// A late supervisor goes on when this file is there.
fn is_told_to_go_on(scope: Scope<'_>) -> bool {
    let mut path = scope.roots.first().unwrap().to_bytes().to_vec();
    path.extend_from_slice(b"/go-on");
    std::path::Path::new(std::ffi::OsStr::from_bytes(&path)).exists()
}

fn line(denial: super::Denial<'_>) -> String {
    let super::Denial { operation, rule, syscall, target } = denial;
    let target = String::from_utf8_lossy(target);
    format!("{} {target} {rule:?} {}", operation.name(), super::syscall_name(syscall))
}

/// Waits until something is to be done. Says whether the command has ended.
fn step(supervisor: &Supervisor, process: BorrowedFd<'_>, late: bool) -> bool {
    let mut fds = vec![PollFd::from_borrowed_fd(process, PollFlags::IN)];
    let asked = supervisor.poll_fds().filter(|_| !late);
    fds.extend(asked.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
    assert!(fds.len() <= 1 + Supervisor::MOST_FDS);
    let patience =
        if late { Some(std::time::Duration::from_millis(1)) } else { supervisor.patience() };
    let patience = patience.map(|patience| Timespec::try_from(patience).unwrap());
    match poll(&mut fds, patience.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => panic!("{errno}"),
    }
    fds[0].revents().contains(PollFlags::IN)
}

fn wait_for(process: BorrowedFd<'_>) {
    let mut fds = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    while poll(&mut fds, None) == Err(Errno::INTR) {}
}

/// As a cage confines a command.
fn confine(cage: &Cage, rules: &JobRules, setting: Setting) -> Option<OwnedFd> {
    if setting.supervision == Supervision::None {
        cage.inside().confine_unsupervised(rules).unwrap();
        return None;
    }
    Some(cage.inside().confine(rules).unwrap().expect("a listener"))
}
