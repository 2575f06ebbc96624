//! Sockets of one person's own: each in a directory of their settings that only they can open.
//!
//! The settings are read-only in every cage, wherever the workspace is, and a socket there cannot be
//! connected to from inside one. That is why they are here and not in a cache or among temporary files.
//!
//! Whoever listens at a socket holds the lock beside it as long as it lives, so a socket without a holder
//! of the lock was left by one that was killed, and can be replaced or removed.

mod lines;

pub(crate) use lines::{Line, Lines, Writer, split};

use crate::locks::{self, WhenMissing};
use crate::private::{is_in_place, make_private};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The longest name of a socket that every system takes.
const LONGEST_PATH: usize = 103;

/// Why a socket of the person's own cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnSocketError {
    /// The place belongs to somebody else.
    #[error("{} belongs to another user, so nobody is looked for there", path.display())]
    Stranger {
        /// What does.
        path: PathBuf,
    },
    /// The directory cannot be made or used.
    #[error("the directory {} cannot be used: {error}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The socket cannot be made or used.
    #[error("the socket {} cannot be used: {error}", path.display())]
    Socket {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody holds its lock.
    #[error("the lock {} is held by another program", path.display())]
    Held {
        /// Which.
        path: PathBuf,
    },
    /// Its name is too long.
    #[error("the socket {} has a name of more than {longest} bytes; set CODEX_HOME to a shorter one",
            path.display())]
    LongPath {
        /// The name.
        path: PathBuf,
        /// How long it may be.
        longest: usize,
    },
}

/// Where a socket is found.
#[derive(Debug, Clone)]
pub(crate) struct OwnSocket {
    settings: PathBuf,
    directory: PathBuf,
    socket: PathBuf,
    lock: PathBuf,
}

/// The lock, and the socket, of whoever listens. Both go when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    place: OwnSocket,
    listener: UnixListener,
    /// Its lock is held as long as the file is open.
    lock: File,
}

impl OwnSocket {
    /// The socket of this name, with its lock, in a directory of these settings.
    pub(crate) fn new(settings: &Path, directory: &str, socket: &str, lock: &str) -> Self {
        let directory = settings.join(directory);
        Self {
            settings: settings.to_owned(),
            socket: directory.join(socket),
            lock: directory.join(lock),
            directory,
        }
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Path {
        &self.settings
    }

    /// The directory that it lies in.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The error for whoever cannot do without the lock that another holds.
    pub(crate) fn held(&self) -> OwnSocketError {
        OwnSocketError::Held { path: self.lock.clone() }
    }

    /// Connects to whoever listens. None if nobody does.
    pub(crate) async fn connect(&self) -> Result<Option<UnixStream>, OwnSocketError> {
        self.check_owner()?;
        let failed = |error| OwnSocketError::Socket { path: self.socket.clone(), error };
        match UnixStream::connect(&self.socket).await {
            Ok(stream) => match stream.peer_cred().map_err(failed)?.uid() == me() {
                true => Ok(Some(stream)),
                false => Err(OwnSocketError::Stranger { path: self.socket.clone() }),
            },
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(failed(error)),
            },
        }
    }

    /// Refuses settings, or a directory in them, of another user.
    fn check_owner(&self) -> Result<(), OwnSocketError> {
        for path in [&self.settings, &self.directory] {
            if fs::metadata(path).is_ok_and(|found| found.uid() != me()) {
                return Err(OwnSocketError::Stranger { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Begins to listen. None if somebody does.
    pub(crate) fn take(&self) -> Result<Option<Taken>, OwnSocketError> {
        self.check_owner()?;
        let (directory, socket) = (self.directory.clone(), self.socket.clone());
        if socket.as_os_str().len() > LONGEST_PATH {
            return Err(OwnSocketError::LongPath { path: socket, longest: LONGEST_PATH });
        }
        let lock = loop {
            let named = |error| OwnSocketError::Directory { path: directory.clone(), error };
            make_private(&directory).map_err(named)?;
            match self.try_lock(WhenMissing::Made) {
                Ok(Locked::Held) => return Ok(None),
                Ok(Locked::Ours(lock)) => break lock,
                // Another has just ended, and took the file or its directory along.
                Ok(Locked::Gone) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(named(error)),
            }
        };
        let _ = fs::remove_file(&socket);
        let bound = UnixListener::bind(&socket);
        let listener = bound.map_err(|error| OwnSocketError::Socket { path: socket, error })?;
        Ok(Some(Taken { place: self.clone(), listener, lock }))
    }

    /// Removes what somebody left behind who was killed. Does nothing if somebody listens, or is about to.
    pub(crate) fn remove_if_left(&self) {
        if let Ok(Locked::Ours(lock)) = self.try_lock(WhenMissing::NotFound) {
            self.remove();
            drop(lock);
        }
    }

    /// In this order: as long as the lock has its name, nobody else makes a socket.
    fn remove(&self) {
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_file(&self.lock);
        let _ = fs::remove_dir(&self.directory);
    }

    fn try_lock(&self, when_missing: WhenMissing) -> io::Result<Locked> {
        let lock = locks::open(&self.lock, when_missing)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Locked::Held),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match is_in_place(&self.lock, &lock) {
            true => Ok(Locked::Ours(lock)),
            false => Ok(Locked::Gone),
        }
    }
}

enum Locked {
    Ours(File),
    Held,
    /// It was locked, and is not the file of this name any more.
    Gone,
}

impl Taken {
    /// The next connection of this user.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let Ok(peer) = stream.peer_cred() else { continue };
            if peer.uid() == me() && !is_caged(peer.pid()) {
                return Ok(stream);
            }
        }
    }

    /// Whether anybody can still come: nobody has removed the socket, or all of its directory.
    pub(crate) fn is_in_place(&self) -> bool {
        is_in_place(&self.place.lock, &self.lock) && self.place.socket.symlink_metadata().is_ok()
    }
}

/// What lies there by now may be another's.
impl Drop for Taken {
    fn drop(&mut self) {
        if is_in_place(&self.place.lock, &self.lock) {
            self.place.remove();
        }
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a process gave up rights that we have, as everything in a cage did. The cage itself keeps
/// its processes from coming here; this is for a cage that could not be made whole.
///
/// One of which nothing can be known counts as caged: it may have connected and ended at once.
#[cfg(target_os = "linux")]
fn is_caged(pid: Option<i32>) -> bool {
    let keeps_its_rights = |who: &str| {
        let status = fs::read_to_string(format!("/proc/{who}/status")).ok()?;
        let mut lines = status.lines().map(|line| line.split_whitespace());
        let mut flag = lines.find_map(|mut words| words.next()?.eq("NoNewPrivs:").then_some(words));
        match flag.as_mut()?.next()? {
            "0" => Some(true),
            "1" => Some(false),
            _ => None,
        }
    };
    if keeps_its_rights("self") == Some(false) {
        return false;
    }
    pid.and_then(|pid| keeps_its_rights(&pid.to_string())) != Some(true)
}

#[cfg(not(target_os = "linux"))]
fn is_caged(_: Option<i32>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn socket_in(settings: &Path) -> OwnSocket {
        OwnSocket::new(settings, "daemon", "socket", "lock")
    }

    /// spec DAEMON.2: Its socket lies in a directory that only its user can open, and a directory or
    /// settings of another user are refused.
    #[tokio::test]
    async fn the_directory_is_for_its_owner_only() {
        let settings = tempfile::tempdir().unwrap();
        let place = socket_in(settings.path());
        let taken = place.take().unwrap().unwrap();
        let mode = fs::metadata(&place.directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(taken);
        assert_eq!(fs::read_dir(settings.path()).unwrap().count(), 0, "nothing is left");
        // What belongs to somebody else can only be made by root, and only be found by others.
        let theirs = match me() {
            0 => {
                std::os::unix::fs::lchown(settings.path(), Some(12345), None).unwrap();
                settings.path().to_owned()
            }
            _ => PathBuf::from("/"),
        };
        let place = socket_in(&theirs);
        assert!(matches!(place.take(), Err(OwnSocketError::Stranger { .. })));
        assert!(matches!(place.connect().await, Err(OwnSocketError::Stranger { .. })));
    }

    /// spec DAEMON.3: Of several that start at once one becomes the daemon, and a socket that one left
    /// which was killed is replaced.
    #[tokio::test]
    async fn one_of_several_becomes_the_daemon() {
        let settings = tempfile::tempdir().unwrap();
        let place = socket_in(settings.path());
        make_private(&place.directory).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&place.socket).unwrap());
        assert!(place.connect().await.unwrap().is_none(), "nobody listens at what was left");
        let first = place.take().unwrap().unwrap();
        assert!(place.take().unwrap().is_none());
        assert!(place.connect().await.unwrap().is_some());
        drop(first);
        assert!(place.connect().await.unwrap().is_none());
        assert!(place.take().unwrap().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_is_not_known_counts_as_caged() {
        if fs::read_to_string("/proc/self/status").unwrap().contains("NoNewPrivs:\t1") {
            eprintln!("SKIPPED: these tests run without the right to gain rights");
            return;
        }
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!is_caged(Some(own)));
        // No process has a number as high as this.
        for unknown in [None, Some(0), Some(i32::MAX)] {
            assert!(is_caged(unknown), "{unknown:?}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_said() {
        let settings = tempfile::tempdir().unwrap();
        let long = settings.path().join("x".repeat(120));
        let error = socket_in(&long).take().unwrap_err();
        assert!(error.to_string().contains("103"), "{error}");
    }
}
