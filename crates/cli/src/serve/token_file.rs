//! The file in which an agent finds where to ask, and its token.
//!
//! A server holds the lock on its file as long as it lives. One that was killed cannot remove its file, so the next
//! one removes those whose lock nobody holds: the kernel lets go of a lock with its process, whatever process has its
//! number by then. Whoever gives a name in that directory to another file, or takes one away, holds the directory's
//! own lock meanwhile.

use sandgate_runtime::{hold_lock, is_in_place};
use sandgate_server::http::Token;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// How the name of every such file ends.
const SUFFIX: &str = ".json";

/// What a file is called until it is whole.
const UNFINISHED: &str = ".new";

/// A file that only the person can read, and that goes with the server.
pub(super) struct TokenFile {
    path: PathBuf,
    /// Its lock is held as long as this is open.
    file: File,
}

impl TokenFile {
    /// Writes it, in a directory that is the person's own, and removes there what servers left that were killed.
    pub(super) fn write(
        directory: &Path,
        name: &str,
        address: &str,
        requester: &Token,
    ) -> io::Result<Self> {
        let path = directory.join(format!("{name}{SUFFIX}"));
        let written = alone(directory).and_then(|_alone| {
            left::sweep(directory);
            // Whoever has the address now is us, so nobody who holds a file of this name has a right to it.
            replace(directory, &path, &told(address, requester))
        });
        let file = written.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        })?;
        Ok(Self { path, file })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let alone = self.path.parent().map(alone);
        if matches!(alone, Some(Ok(_))) && is_in_place(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What stands in the file.
fn told(address: &str, requester: &Token) -> String {
    let told = serde_json::json!({
        "url": address, "requester_token": requester.reveal(), "pid": std::process::id(),
    });
    format!("{told}\n")
}

/// Waits until nobody else changes what has which name.
fn alone(directory: &Path) -> io::Result<File> {
    hold_lock(&directory.join(".lock"))
}

/// Lets a name stand for a new file, which is whole and locked before anybody else can open it.
fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<File> {
    let unfinished = directory.join(UNFINISHED);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o200);
    let mut file = options.open(&unfinished)?;
    left::hold(&file)?;
    file.write_all(text.as_bytes())?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    fs::rename(&unfinished, path)?;
    Ok(file)
}

#[cfg(unix)]
mod left {
    use super::SUFFIX;
    use serde_json::Value;
    use std::fs::{self, File};
    use std::io::{self, Read as _};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    /// So many names are looked at in one start; the next looks at more.
    const MOST_NAMES: usize = 20_000;

    /// No file of ours is longer.
    const LONGEST: u64 = 64 << 10;

    /// Takes the lock on a file that nobody else can have opened.
    pub(super) fn hold(file: &File) -> io::Result<()> {
        Ok(file.try_lock()?)
    }

    pub(super) fn sweep(directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.take(MOST_NAMES).flatten() {
            let is_named_so = entry.file_name().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
            if is_named_so && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                remove_if_left(&entry.path());
            }
        }
    }

    /// Removes a file of ours that nobody holds. Where anything about that is not certain it stays.
    fn remove_if_left(path: &Path) {
        let Ok(file) = sandgate_runtime::open_file(path) else { return };
        if is_mine(&file) && file.try_lock().is_ok() && is_told(&file) {
            let _ = fs::remove_file(path);
        }
    }

    fn is_mine(file: &File) -> bool {
        let me = rustix::process::geteuid().as_raw();
        file.metadata().is_ok_and(|found| {
            found.uid() == me && found.nlink() == 1 && found.mode() & 0o777 == 0o600
        })
    }

    /// Whether a server wrote it.
    fn is_told(file: &File) -> bool {
        let mut text = String::new();
        if file.take(LONGEST).read_to_string(&mut text).is_err() {
            return false;
        }
        serde_json::from_str(&text).is_ok_and(|told: Value| {
            told["url"].is_string() && told["requester_token"].is_string() && told["pid"].is_u64()
        })
    }
}

/// Elsewhere a file that is locked cannot be read, and agents must read it.
#[cfg(not(unix))]
mod left {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn hold(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn sweep(_: &Path) {}
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use sandgate_server::http::Tokens;
    use std::os::unix::fs::{OpenOptionsExt as _, symlink};

    fn write(directory: &Path, name: &str) -> TokenFile {
        let tokens = Tokens::random().unwrap();
        TokenFile::write(directory, name, "http://127.0.0.1:1", tokens.requester()).unwrap()
    }

    /// The file of a server that was killed: nothing of the process is left, the lock neither.
    fn killed(directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(format!("{name}{SUFFIX}"));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        let tokens = Tokens::random().unwrap();
        file.write_all(told("http://127.0.0.1:1", tokens.requester()).as_bytes()).unwrap();
        path
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }

    /// spec HTTP.50: The token files of servers that were killed are removed when the next one starts; those of
    /// servers that run stay, and so does whatever else lies there.
    #[test]
    fn only_what_a_killed_server_left_is_swept() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let _living = write(directory.path(), "living");
        killed(directory.path(), "killed");
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        // One that was killed before its file was whole.
        options.open(path(UNFINISHED)).unwrap();
        fs::rename(killed(directory.path(), "other-suffix"), path("other-suffix.txt")).unwrap();
        options.open(path("another.json")).unwrap().write_all(b"{\"url\":\"x\"}\n").unwrap();
        let shared = killed(directory.path(), "two-names");
        fs::hard_link(&shared, path("two-names.txt")).unwrap();
        symlink("other-suffix.txt", path("link.json")).unwrap();
        fs::create_dir(path("directory.json")).unwrap();
        let _next = write(directory.path(), "next");
        let left = [
            "another.json",
            "directory.json",
            "link.json",
            "living.json",
            "next.json",
            "other-suffix.txt",
            "two-names.json",
            "two-names.txt",
        ];
        assert_eq!(names(directory.path()), left);
    }

    /// spec HTTP.50: The token files of servers that were killed are removed when the next one starts; those of
    /// servers that run stay, and so does whatever else lies there.
    #[test]
    fn servers_that_start_and_sweep_at_once_keep_their_files() {
        const SERVERS: usize = 8;
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        for _ in 0..50 {
            for server in 0..SERVERS {
                killed(directory, &server.to_string());
                killed(directory, &format!("another-{server}"));
            }
            let together = std::sync::Barrier::new(SERVERS);
            let living: Vec<TokenFile> = std::thread::scope(|scope| {
                let servers: Vec<_> = (0..SERVERS)
                    .map(|server| {
                        let together = &together;
                        scope.spawn(move || {
                            together.wait();
                            write(directory, &server.to_string())
                        })
                    })
                    .collect();
                servers.into_iter().map(|server| server.join().unwrap()).collect()
            });
            assert!(living.iter().all(|file| is_in_place(&file.path, &file.file)));
            assert_eq!(names(directory).len(), SERVERS);
            drop(living);
            assert_eq!(names(directory), [] as [&str; 0]);
        }
    }

    #[test]
    fn a_file_that_was_replaced_is_not_removed_with_the_server() {
        let directory = tempfile::tempdir().unwrap();
        let first = write(directory.path(), "same");
        let second = write(directory.path(), "same");
        drop(first);
        assert!(second.path().exists());
    }
}
