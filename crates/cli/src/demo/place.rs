//! The directory that the tour is in.

use std::io;
use std::path::{Path, PathBuf};

/// A directory that goes with this: a project, what lies outside of it, and settings.
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes one, for its owner only.
    pub(super) fn make() -> io::Result<Self> {
        let temporary = std::env::temp_dir().canonicalize()?;
        // It stands in a script, between quotes.
        if temporary.to_str().is_none_or(|name| name.contains(['\'', '\n'])) {
            let name = temporary.display();
            return Err(io::Error::other(format!("{name} is an odd name; set TMPDIR to another")));
        }
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        for attempt in 0..100 {
            let root = temporary.join(format!("sandgate-demo-{}-{attempt}", std::process::id()));
            match builder.create(&root) {
                Ok(()) => {
                    let place = Self { root };
                    for directory in [place.project(), place.outside(), place.settings()] {
                        builder.create(directory)?;
                    }
                    std::fs::write(place.project().join("notes.txt"), "milk\nbread\n")?;
                    return Ok(place);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there is no name left for a directory of the demo"))
    }

    /// Where the agent works.
    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Where it must not write.
    pub(super) fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    /// Where what happens is recorded.
    pub(super) fn settings(&self) -> PathBuf {
        self.root.join("settings")
    }

    /// The directory itself, which is left out of what is shown.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
