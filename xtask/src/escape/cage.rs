//! The directories around an attempt: a workspace, something beside it that must stay as it is, and a home.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything that is waited for takes at the most.
const PATIENCE: Duration = Duration::from_secs(10);

/// Not below `/tmp`, which a confined command may write to.
pub(crate) struct Cage {
    base: TempDir,
}

impl Cage {
    /// # Panics
    /// When the directories cannot be made: nothing can be tried then.
    pub(crate) fn new() -> Self {
        let base =
            tempfile::Builder::new().prefix("sg-").tempdir_in("/var/tmp").expect("a directory");
        for directory in ["ws", "outside", "home"] {
            fs::create_dir(base.path().join(directory)).expect("a directory");
        }
        fs::write(base.path().join("outside/victim"), "before").expect("a file");
        Self { base }
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn ws(&self, name: &str) -> PathBuf {
        self.base().join("ws").join(name)
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.base().join("outside").join(name)
    }

    /// Makes files in the workspace, and the directories that they lie in.
    pub(crate) fn files(&self, names: &[&str]) {
        for name in names {
            let path = self.ws(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, "before").expect("a file");
        }
    }
}

/// Waits until something is there.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(began.elapsed() < PATIENCE, "{what}: it did not happen"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
