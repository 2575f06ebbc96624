//! Where the daemon is found: a socket in a directory of the person's settings that only they can open.
//!
//! The settings are read-only in every cage, wherever the workspace is, and a socket there cannot be
//! connected to from inside one. That is why it is here and not in a cache or among temporary files.
//!
//! Whoever holds the lock beside the socket is the daemon. It holds it as long as it lives, so a socket
//! without a holder of the lock was left by one that was killed, and the next takes its place.

use super::DaemonError;
use crate::private::make_private;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The longest name of a socket that every system takes.
const LONGEST_PATH: usize = 103;

/// Where the daemon of a person is found.
#[derive(Debug, Clone)]
pub struct Place {
    settings: PathBuf,
}

/// The lock, and the socket, of a daemon. Both go when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    place: Place,
    listener: UnixListener,
    /// Its lock is held as long as the file is open.
    _lock: File,
}

impl Place {
    /// The place in these settings.
    pub fn in_settings(settings: &Path) -> Self {
        Self { settings: settings.to_owned() }
    }

    /// The settings.
    pub(super) fn settings(&self) -> &Path {
        &self.settings
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.settings.join("daemon")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory().join("socket")
    }

    fn lock(&self) -> PathBuf {
        self.directory().join("lock")
    }

    /// Connects to the daemon. None if there is no daemon.
    pub(super) async fn connect(&self) -> Result<Option<UnixStream>, DaemonError> {
        self.check_owner()?;
        let socket = self.socket();
        match UnixStream::connect(&socket).await {
            Ok(stream) => {
                let peer = stream.peer_cred().map_err(DaemonError::Connection)?;
                match peer.uid() == me() {
                    true => Ok(Some(stream)),
                    false => Err(DaemonError::Stranger { path: socket }),
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(DaemonError::Socket { path: socket, error }),
            },
        }
    }

    /// Refuses settings, or a directory in them, of another user.
    fn check_owner(&self) -> Result<(), DaemonError> {
        for path in [self.settings.clone(), self.directory()] {
            if fs::metadata(&path).is_ok_and(|found| found.uid() != me()) {
                return Err(DaemonError::Stranger { path });
            }
        }
        Ok(())
    }

    /// Takes the place of the daemon. None if somebody has it.
    pub(super) fn take(&self) -> Result<Option<Taken>, DaemonError> {
        self.check_owner()?;
        let (directory, socket) = (self.directory(), self.socket());
        if socket.as_os_str().len() > LONGEST_PATH {
            return Err(DaemonError::LongPath { path: socket, longest: LONGEST_PATH });
        }
        let lock = loop {
            let named = |error| DaemonError::Directory { path: directory.clone(), error };
            make_private(&directory).map_err(named)?;
            match self.try_lock() {
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
        let listener = bound.map_err(|error| DaemonError::Socket { path: socket, error })?;
        Ok(Some(Taken { place: self.clone(), listener, _lock: lock }))
    }

    fn try_lock(&self) -> io::Result<Locked> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock = options.open(self.lock())?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Locked::Held),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let same = |named: fs::Metadata, held: fs::Metadata| {
            (named.dev(), named.ino()) == (held.dev(), held.ino())
        };
        let named = fs::metadata(self.lock());
        match named.is_ok_and(|named| lock.metadata().is_ok_and(|held| same(named, held))) {
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
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let Ok(peer) = stream.peer_cred() else { continue };
            if peer.uid() == me() && !is_caged(peer.pid()) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // In this order: as long as the lock has its name, nobody else makes a socket.
        let _ = fs::remove_file(self.place.socket());
        let _ = fs::remove_file(self.place.lock());
        let _ = fs::remove_dir(self.place.directory());
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a process gave up rights that we have, as everything in a cage did. The cage itself keeps
/// its processes from coming here; this is for a cage that could not be made whole.
#[cfg(target_os = "linux")]
fn is_caged(pid: Option<i32>) -> bool {
    let gave_up = |who: &str| {
        let status = fs::read_to_string(format!("/proc/{who}/status")).unwrap_or_default();
        status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]))
    };
    pid.is_some_and(|pid| gave_up(&pid.to_string()) && !gave_up("self"))
}

#[cfg(not(target_os = "linux"))]
fn is_caged(_: Option<i32>) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// spec DAEMON.2: Its socket lies in a directory that only its user can open, and a directory or
    /// settings of another user are refused.
    #[tokio::test]
    async fn the_directory_is_for_its_owner_only() {
        let settings = tempfile::tempdir().unwrap();
        let place = Place::in_settings(settings.path());
        let taken = place.take().unwrap().unwrap();
        let mode = fs::metadata(place.directory()).unwrap().permissions().mode();
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
        let place = Place::in_settings(&theirs);
        assert!(matches!(place.take(), Err(DaemonError::Stranger { .. })));
        assert!(matches!(place.connect().await, Err(DaemonError::Stranger { .. })));
    }

    /// spec DAEMON.3: Of several that start at once one becomes the daemon, and a socket that one left
    /// which was killed is replaced.
    #[tokio::test]
    async fn one_of_several_becomes_the_daemon() {
        let settings = tempfile::tempdir().unwrap();
        let place = Place::in_settings(settings.path());
        make_private(&place.directory()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(place.socket()).unwrap());
        assert!(place.connect().await.unwrap().is_none(), "nobody listens at what was left");
        let first = place.take().unwrap().unwrap();
        assert!(place.take().unwrap().is_none());
        assert!(place.connect().await.unwrap().is_some());
        drop(first);
        assert!(place.connect().await.unwrap().is_none());
        assert!(place.take().unwrap().is_some());
    }

    #[test]
    fn a_name_that_is_too_long_is_said() {
        let settings = tempfile::tempdir().unwrap();
        let long = settings.path().join("x".repeat(120));
        let error = Place::in_settings(&long).take().unwrap_err();
        assert!(error.to_string().contains("103"), "{error}");
    }
}
