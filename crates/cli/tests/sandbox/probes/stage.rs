//! The world around a cage, and a fingerprint of everything in it that no attempt may change.

#![expect(clippy::disallowed_methods, reason = "an attempt needs a stranger to aim at")]

use super::{Cage, eventually};
use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the workspace holds when an attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// A repository, with another one in it, and all protected names.
    Repository,
    /// A file, and no protected name.
    Bare,
    /// A worktree, whose `.git` is a file that points into the workspace.
    Worktree,
    /// A `.git` that is a link to somewhere in the workspace.
    Linked,
}

/// Everything that an attempt can aim at.
pub(crate) struct Stage {
    pub(crate) cage: Cage,
    canary: Canary,
    listeners: Listeners,
}

/// A process of the same user, outside.
struct Canary(Child);

struct Listeners {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    unix: UnixListener,
    datagram: UnixDatagram,
    hidden: UnixListener,
    hidden_name: String,
}

impl Stage {
    pub(crate) fn set(scene: Scene) -> Self {
        let cage = Cage::new();
        fs::create_dir_all(cage.outside("sub")).unwrap();
        fs::create_dir_all(cage.outside("empty")).unwrap();
        fs::write(cage.outside("sub/inner"), "before").unwrap();
        fs::write(cage.outside("program"), "before").unwrap();
        fs::set_permissions(cage.outside("program"), fs::Permissions::from_mode(0o4755)).unwrap();
        symlink("victim", cage.outside("link")).unwrap();
        let (pipe, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, cage.outside("pipe"), pipe, mode, 0).unwrap();
        dress(&cage, scene);
        let listeners = Listeners::at(&cage);
        Self { cage, canary: Canary::start(), listeners }
    }

    /// What an attempt is told about the world.
    pub(crate) fn describe(&self, command: &mut Command) {
        command.env("BASE", self.cage.base()).env("CANARY", self.canary.0.id().to_string());
        command.env("PORT", self.listeners.port().to_string());
        command.env("ABSTRACT", &self.listeners.hidden_name);
    }

    /// Everything that must stay as it is, by name.
    pub(crate) fn fingerprint(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        look_into(&self.cage.base().join("outside"), &mut all);
        look_into(&self.cage.base().join("home"), &mut all);
        let own = [".git", ".codex", ".agents", "deep/repo/.git", "store", "me"];
        for name in own.map(|name| self.cage.ws(name)) {
            look_into(&name, &mut all);
        }
        let beside = fs::read_dir(self.cage.base()).unwrap().flatten();
        all.insert("beside".into(), format!("{:?}", sorted(beside)));
        for switch in ["core_pattern", "hostname", "domainname", "sysrq", "modprobe"] {
            let path = format!("/proc/sys/kernel/{switch}");
            all.insert(path.clone(), format!("{:?}", fs::read(path).ok()));
        }
        all.insert("canary".into(), self.canary.looks());
        all.insert("listeners".into(), self.listeners.heard());
        all
    }
}

fn sorted(entries: impl Iterator<Item = fs::DirEntry>) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

fn dress(cage: &Cage, scene: Scene) {
    cage.files(&["file"]);
    match scene {
        Scene::Bare => cage.files(&["other/config"]),
        Scene::Repository => cage.files(&[
            ".git/config",
            ".git/HEAD",
            ".git/hooks/sample",
            ".codex/config.toml",
            ".agents/skill",
            "deep/repo/.git/config",
            "deep/repo/source",
        ]),
        Scene::Worktree => {
            cage.files(&["store/main/config", "store/main/worktrees/one/HEAD"]);
            fs::write(cage.ws("store/main/worktrees/one/commondir"), "../..\n").unwrap();
            fs::write(cage.ws(".git"), "gitdir: store/main/worktrees/one\n").unwrap();
        }
        Scene::Linked => {
            cage.files(&["store/repository/config", "other/config"]);
            symlink("store/repository", cage.ws(".git")).unwrap();
        }
    }
}

/// Notes everything about a path and what lies below it. The time of the last change of the inode
/// gives away a change that was undone.
fn look_into(path: &Path, all: &mut BTreeMap<String, String>) {
    let Ok(data) = fs::symlink_metadata(path) else { return };
    let kind = data.file_type();
    let content = if kind.is_symlink() {
        format!("{:?}", fs::read_link(path))
    } else if kind.is_file() {
        format!("{:?}", fs::read_to_string(path))
    } else {
        String::new()
    };
    let changed = (data.ctime(), data.ctime_nsec());
    let inode = (data.mode(), data.uid(), data.gid(), data.nlink(), data.ino(), data.mtime());
    let name = path.display().to_string();
    all.insert(name, format!("{kind:?} {inode:?} {changed:?} {content}"));
    if kind.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            look_into(&entry.path(), all);
        }
    }
    assert!(!kind.is_block_device(), "an attempt made a device: {}", path.display());
}

impl Canary {
    fn start() -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").env("CANARY_WORD", "before").stdin(Stdio::null());
        let canary = Self(sleep.spawn().unwrap());
        let stat = format!("/proc/{}/stat", canary.0.id());
        let asleep = |text: String| text.contains("(sleep) S ").then_some(());
        eventually("the canary sleeps", || fs::read_to_string(&stat).ok().and_then(asleep));
        canary
    }

    /// What others could have changed about it.
    fn looks(&self) -> String {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).unwrap_or_default()
        };
        let status = read("status");
        let lines = ["State", "TracerPid", "Cpus_allowed:", "SigIgn", "SigBlk", "Threads"];
        let status: Vec<_> =
            status.lines().filter(|line| lines.iter().any(|name| line.starts_with(name))).collect();
        let stat = read("stat");
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
        // Priority, nice value, scheduling policy, and the real-time priority.
        let scheduling: Vec<_> = [16, 17, 38, 39].iter().map(|n| fields.get(*n)).collect();
        let intact = read("environ").contains("CANARY_WORD=before");
        let limits = read("limits");
        format!("{status:?} {scheduling:?} {intact} {} {limits}", read("oom_score_adj"))
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Listeners {
    fn at(cage: &Cage) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        // What else has this number does no harm: these hear only what is sent to them.
        let tcp6 = TcpListener::bind(("::1", port)).ok();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        let hidden_name = format!("sg-probe-{}-{port}", std::process::id());
        let address = SocketAddr::from_abstract_name(&hidden_name).unwrap();
        let listeners = Self {
            unix: UnixListener::bind(cage.outside("stream")).unwrap(),
            datagram: UnixDatagram::bind(cage.outside("datagram")).unwrap(),
            hidden: UnixListener::bind_addr(&address).unwrap(),
            tcp,
            tcp6,
            udp,
            hidden_name,
        };
        listeners.tcp.set_nonblocking(true).unwrap();
        listeners.tcp6.iter().for_each(|tcp6| tcp6.set_nonblocking(true).unwrap());
        listeners.udp.set_nonblocking(true).unwrap();
        listeners.unix.set_nonblocking(true).unwrap();
        listeners.datagram.set_nonblocking(true).unwrap();
        listeners.hidden.set_nonblocking(true).unwrap();
        listeners
    }

    fn port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// Who was reached.
    fn heard(&self) -> String {
        let buffer = &mut [0; 64];
        let mut who = Vec::new();
        let mut note = |name: &'static str, reached: bool| who.extend(reached.then_some(name));
        note("tcp", self.tcp.accept().is_ok());
        note("tcp6", self.tcp6.as_ref().is_some_and(|tcp6| tcp6.accept().is_ok()));
        note("udp", self.udp.recv(buffer).is_ok());
        note("unix", self.unix.accept().is_ok());
        note("datagram", self.datagram.recv(buffer).is_ok());
        note("abstract", self.hidden.accept().is_ok());
        format!("{who:?}")
    }
}
