//! Writes a conversation down, line by line, before anything follows from it.

use super::{Entry, LONGEST_LINE, Line, RolloutError, SessionMeta, directory};
use sandgate_runtime::make_private;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// A conversation that is being written down. Nobody else writes to its file meanwhile.
#[derive(Debug)]
pub struct Rollout {
    file: File,
    path: PathBuf,
}

impl Rollout {
    /// Begins to write down a conversation.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn create(config_home: &Path, meta: &SessionMeta) -> Result<Self, RolloutError> {
        let day = meta.started.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y/%m/%d").to_string();
        let directory = directory(config_home).join(day);
        make_private(&directory).map_err(RolloutError::doing("make", &directory))?;
        let path = directory.join(format!("{}.jsonl", meta.id));
        let mut options = File::options();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(RolloutError::doing("make", &path))?;
        let mut rollout = Self::locked(file, path)?;
        rollout.write(&Entry::SessionMeta(meta.clone()))?;
        Ok(rollout)
    }

    /// Goes on with a conversation whose first `complete` bytes are whole lines; what follows them was
    /// being written when its writer was killed.
    pub(super) fn append(path: &Path, complete: u64) -> Result<Self, RolloutError> {
        let file = File::options().append(true).open(path);
        let file = file.map_err(RolloutError::doing("open", path))?;
        let rollout = Self::locked(file, path.to_owned())?;
        if rollout.has_line_after(complete)? {
            // Another program went on with it after it was read here.
            return Err(RolloutError::InUse(path.to_owned()));
        }
        rollout.file.set_len(complete).map_err(RolloutError::doing("shorten", path))?;
        Ok(rollout)
    }

    /// Whether a whole line stands behind so many bytes.
    fn has_line_after(&self, complete: u64) -> Result<bool, RolloutError> {
        let opened = sandgate_runtime::open_file(&self.path);
        let mut file = opened.map_err(RolloutError::doing("open", &self.path))?;
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(complete))
            .and_then(|_| file.take(LONGEST_LINE).read_to_end(&mut rest))
            .map_err(RolloutError::doing("read", &self.path))?;
        Ok(rest.contains(&b'\n'))
    }

    fn locked(file: File, path: PathBuf) -> Result<Self, RolloutError> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => Err(RolloutError::InUse(path)),
            Err(TryLockError::Error(source)) => Err(RolloutError::doing("lock", &path)(source)),
        }
    }

    /// Removes it. Whoever lists conversations passes over one that could not be removed.
    pub(crate) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, in one write: a reader sees all of it or, after a crash, a torn last line.
    pub(crate) fn write(&mut self, entry: &Entry) -> Result<(), RolloutError> {
        let line = Line { at: jiff::Timestamp::now(), entry: entry.clone() };
        let malformed = |error: serde_json::Error| {
            RolloutError::malformed(&self.path, format!("cannot be written as JSON: {error}"))
        };
        let mut line = serde_json::to_vec(&line).map_err(malformed)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(RolloutError::doing("write to", &self.path))
    }
}
