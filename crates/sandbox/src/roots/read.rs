//! Reads files that a command may have put there.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;

/// What a file holds, if it is a file and not larger than this. Nothing that stands in its place holds
/// us up.
pub(super) fn read_bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = open(path)?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > most {
        return None;
    }
    let mut contents = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    file.take(most).read_to_end(&mut contents).ok()?;
    Some(contents)
}

/// What a file holds; nothing where there is no file.
///
/// # Errors
/// When there is one, and it is larger than this or cannot be read.
pub(super) fn read_whole(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some(found) = path.metadata().ok().filter(std::fs::Metadata::is_file) else {
        return Ok(None);
    };
    if found.len() > most {
        return Err("it is too large".to_owned());
    }
    read_bounded(path, most).map(Some).ok_or_else(|| "it cannot be read".to_owned())
}

#[cfg(target_os = "linux")]
fn open(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path) -> Option<File> {
    // A pipe could come in its place meanwhile, and only hold up who started the command.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    is_file.then(|| OpenOptions::new().read(true).open(path).ok())?
}
