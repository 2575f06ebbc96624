//! The file that holds a command's whole output once memory does not.
//!
//! Nothing is on disk until something would be lost. From then on a thread for blocking work does the
//! writing, fed through a short queue: a slow disk slows the command down and never the runtime. No
//! trouble with the disk fails the command; it is told in the report. The file stays until its
//! directory is removed, which is the business of whoever made the directory.

use super::head_tail::HeadTailBuffer;
use bytes::{Bytes, BytesMut};
use sandgate_protocol::Spilled;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Where output is spilled to, and how much of it.
#[derive(Clone)]
pub struct SpillPolicy {
    directory: Arc<DirectoryMaker>,
    /// The size that the file of one command may reach.
    pub limit_bytes: u64,
}

/// Makes a directory that belongs to the session and to nobody else, or finds it made.
type DirectoryMaker = dyn Fn() -> io::Result<PathBuf> + Send + Sync;

impl SpillPolicy {
    /// The size limit unless somebody says otherwise.
    pub const LIMIT_BYTES: u64 = 256 * 1024 * 1024;

    /// Spills to an existing directory, up to the default limit.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self::made_by(move || Ok(dir.clone()))
    }

    /// Spills to a directory that is asked for when the first output needs it, up to the default
    /// limit. The asking is done on a thread for blocking work.
    pub fn made_by(directory: impl Fn() -> io::Result<PathBuf> + Send + Sync + 'static) -> Self {
        Self { directory: Arc::new(directory), limit_bytes: Self::LIMIT_BYTES }
    }

    /// Makes a file there that is removed when its name is dropped.
    pub(crate) fn create_temporary(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in((self.directory)()?)
    }
}

impl fmt::Debug for SpillPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillPolicy")
            .field("limit_bytes", &self.limit_bytes)
            .finish_non_exhaustive()
    }
}

/// The spill of one command: at first only a promise, a file when there is a reason for one.
#[derive(Debug)]
pub struct Spill {
    policy: SpillPolicy,
    seen_bytes: u64,
    accepted_bytes: u64,
    writer: Option<Writer>,
}

/// What became of a spill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillReport {
    /// The name by which the file can be asked for: its file name. `None` if it could not be made.
    pub id: Option<String>,
    /// The file itself.
    pub path: Option<PathBuf>,
    /// How much of the output the file holds: exactly its first bytes, in the order of arrival.
    pub written_bytes: u64,
    /// How much came after that and was not kept, because of the limit or an error.
    pub dropped_bytes: u64,
    /// What went wrong with the disk, if something did.
    pub error: Option<String>,
}

impl SpillReport {
    /// What a result says of it.
    pub fn spilled(&self) -> Spilled {
        Spilled {
            id: self.id.clone(),
            bytes: self.written_bytes,
            complete: self.dropped_bytes == 0,
            error: self.error.clone(),
        }
    }
}

impl Spill {
    /// Touches no disk yet.
    pub fn new(policy: SpillPolicy) -> Self {
        Self { policy, seen_bytes: 0, accepted_bytes: 0, writer: None }
    }

    /// To be told of every piece of output before it is pushed to `held`, the buffer that bounds it.
    /// The file is begun when the piece would make that buffer drop something: first with everything
    /// it holds, then with the piece. Must be called within a tokio runtime.
    pub async fn observe(&mut self, held: &HeadTailBuffer, bytes: &[u8]) {
        if self.writer.is_none() {
            if !held.would_omit(bytes.len()) {
                return;
            }
            let (older, newer) = held.tail();
            for piece in [held.head(), older, newer] {
                self.write(piece).await;
            }
        }
        self.write(bytes).await;
    }

    /// Appends to the file, beginning it if need be; waits while the disk is slower than the command.
    pub async fn write(&mut self, bytes: &[u8]) {
        let Self { policy, seen_bytes, accepted_bytes, writer } = self;
        *seen_bytes += bytes.len() as u64;
        let writer = writer.get_or_insert_with(|| Writer::start(Arc::clone(&policy.directory)));
        let room = policy.limit_bytes - *accepted_bytes;
        let accepted = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        *accepted_bytes += accepted as u64;
        writer.write(&bytes[..accepted]).await;
    }

    /// Ends the file and says what is in it; `None` when there never was a reason to begin one.
    pub async fn finish(self) -> Option<SpillReport> {
        let (path, written_bytes, error) = match self.writer?.finish().await {
            Ok(written) => (written.path, written.bytes, written.error),
            Err(error) => (None, 0, Some(format!("cannot spill the full output: {error}"))),
        };
        Some(SpillReport {
            id: path.as_deref().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()),
            path,
            written_bytes,
            dropped_bytes: self.seen_bytes - written_bytes,
            error,
        })
    }
}

/// Small writes are gathered to blocks of this size.
const BLOCK_BYTES: usize = 64 * 1024;

/// How many blocks may wait for the disk.
const QUEUED_BLOCKS: usize = 8;

/// The near end of the queue to the thread that writes.
#[derive(Debug)]
struct Writer {
    /// `None` once the far end has given up.
    blocks: Option<mpsc::Sender<Bytes>>,
    block: BytesMut,
    task: Option<JoinHandle<Written>>,
}

/// What the thread that writes has done.
#[derive(Debug, Default)]
struct Written {
    path: Option<PathBuf>,
    bytes: u64,
    error: Option<String>,
}

impl Writer {
    fn start(directory: Arc<DirectoryMaker>) -> Self {
        let (blocks, queue) = mpsc::channel(QUEUED_BLOCKS);
        let task = tokio::task::spawn_blocking(move || write_file(directory, queue));
        Self { blocks: Some(blocks), block: BytesMut::new(), task: Some(task) }
    }

    async fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.blocks.is_some() {
            self.block.reserve(BLOCK_BYTES - self.block.len());
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_BYTES {
                self.send_block().await;
            }
        }
    }

    /// The block leaves only when there is room for it, so a caller that stops waiting loses none.
    async fn send_block(&mut self) {
        let Some(blocks) = &self.blocks else { return };
        let Ok(room) = blocks.reserve().await else {
            self.blocks = None;
            return;
        };
        room.send(self.block.split().freeze());
    }

    async fn finish(mut self) -> Result<Written, tokio::task::JoinError> {
        if !self.block.is_empty() {
            self.send_block().await;
        }
        self.blocks = None;
        match self.task.take() {
            Some(task) => task.await,
            None => Ok(Written::default()),
        }
    }
}

impl Drop for Writer {
    /// A spill that nobody finished still gets its last block if the queue has room for it. The
    /// thread ends by itself when the queue closes.
    fn drop(&mut self) {
        if let Some(blocks) = self.blocks.take()
            && !self.block.is_empty()
        {
            let _ = blocks.try_send(self.block.split().freeze());
        }
    }
}

/// The thread that writes: makes the file, then empties the queue into it until the queue closes.
fn write_file(directory: Arc<DirectoryMaker>, mut queue: mpsc::Receiver<Bytes>) -> Written {
    let mut written = Written::default();
    match create_file(directory) {
        Ok((mut file, path)) => {
            if let Err(error) = write_queue(&mut file, &mut queue, &mut written.bytes) {
                let path = path.display();
                written.error = Some(format!("cannot write the full output to {path}: {error}"));
            }
            written.path = Some(path);
        }
        Err(error) => written.error = Some(format!("cannot keep the full output: {error}")),
    }
    written
}

/// A new file with a name that cannot be guessed. It is never an existing one nor behind a link, and
/// only its owner can open it.
fn create_file(directory: Arc<DirectoryMaker>) -> io::Result<(std::fs::File, PathBuf)> {
    let dir = directory()?;
    // Whoever made the directory may wait for this to be let go before removing it.
    drop(directory);
    let mut builder = tempfile::Builder::new();
    builder.prefix("output-").rand_bytes(22);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o600));
    }
    builder.tempfile_in(&dir)?.keep().map_err(|error| error.error)
}

/// Counts every byte that the system took, so that the count holds even where a write broke off.
fn write_queue(
    file: &mut impl Write,
    queue: &mut mpsc::Receiver<Bytes>,
    written: &mut u64,
) -> io::Result<()> {
    while let Some(block) = queue.blocking_recv() {
        let mut rest = &block[..];
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    *written += length as u64;
                    rest = &rest[length..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full after a number of bytes.
    struct FullAfter(usize);

    impl Write for FullAfter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.min(bytes.len()) {
                0 => Err(io::ErrorKind::StorageFull.into()),
                taken => {
                    self.0 -= taken;
                    Ok(taken)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_fills_up_is_counted_to_the_byte() {
        let (blocks, mut queue) = mpsc::channel(2);
        blocks.try_send(Bytes::from_static(b"0123456789")).unwrap();
        blocks.try_send(Bytes::from_static(b"abcdefghij")).unwrap();
        let mut written = 0;
        let error = write_queue(&mut FullAfter(13), &mut queue, &mut written).unwrap_err();
        assert_eq!((written, error.kind()), (13, io::ErrorKind::StorageFull));
    }
}
