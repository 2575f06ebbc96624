//! The files of this machine, as a plan looks at them.
//!
//! Links are followed here, once. What comes of it is a path without links, and whatever is done to
//! it later refuses to meet one.

use crate::plan::{Files, Found, Look, LookError};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The largest file that can be patched, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

/// The most that one plan reads.
const MOST_BYTES: u64 = 512 << 20;

/// Reads the files of this machine, for one plan.
#[derive(Debug)]
pub struct Disk {
    left: Cell<u64>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { left: Cell::new(MOST_BYTES) }
    }
}

impl Files for Disk {
    fn look(&self, path: &Path) -> Result<Look, LookError> {
        let at_path = match fs::symlink_metadata(path) {
            Ok(at_path) => at_path,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let real = real_of_absent(path)?;
                return Ok(Look { real, through_link: false, found: Found::Nothing });
            }
            Err(error) => return Err(refused(path, &error)),
        };
        let real = canonical(path)?;
        let found = self.read(&real)?;
        Ok(Look { real, through_link: at_path.is_symlink(), found })
    }
}

impl Disk {
    fn read(&self, real: &Path) -> Result<Found, LookError> {
        let unreadable = |error| refused(real, &error);
        // Looked at before it is opened, because opening a pipe or a device can do something; and
        // after, because that is what is read.
        if let Some(other) = other_kind(&fs::symlink_metadata(real).map_err(unreadable)?) {
            return Ok(other);
        }
        let file = open(real).map_err(unreadable)?;
        let opened = file.metadata().map_err(unreadable)?;
        if let Some(other) = other_kind(&opened) {
            return Ok(other);
        }
        let most = LARGEST_FILE.min(self.left.get());
        let mut contents = Vec::new();
        file.take(most + 1).read_to_end(&mut contents).map_err(unreadable)?;
        let bytes = contents.len() as u64;
        if bytes > most {
            return Err(LookError::TooLarge { bytes: bytes.max(opened.len()), most });
        }
        self.left.set(self.left.get() - bytes);
        Ok(Found::File(contents))
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

fn other_kind(found: &fs::Metadata) -> Option<Found> {
    match found.file_type() {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some(Found::Directory),
        _ => Some(Found::Special),
    }
}

/// The path without links of something that is not there: from the nearest directory that is.
fn real_of_absent(path: &Path) -> Result<PathBuf, LookError> {
    for above in path.ancestors().skip(1) {
        match fs::symlink_metadata(above) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(above, &error)),
            Ok(_) => {
                let real = canonical(above)?;
                let rest = path.strip_prefix(above).unwrap_or(path);
                return if fs::metadata(&real).is_ok_and(|found| found.is_dir()) {
                    Ok(real.join(rest))
                } else {
                    Err(LookError::NotADirectory { path: above.to_owned() })
                };
            }
        }
    }
    Ok(path.to_owned())
}

fn canonical(path: &Path) -> Result<PathBuf, LookError> {
    dunce::canonicalize(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => LookError::DanglingLink { path: path.to_owned() },
        _ => refused(path, &error),
    })
}

fn refused(path: &Path, error: &std::io::Error) -> LookError {
    match error.kind() {
        ErrorKind::NotADirectory => {
            let is_file = |above: &&Path| above.is_file();
            let file = path.ancestors().skip(1).find(is_file).unwrap_or(path);
            LookError::NotADirectory { path: file.to_owned() }
        }
        _ => LookError::Unreadable { path: path.to_owned(), reason: error.to_string() },
    }
}
