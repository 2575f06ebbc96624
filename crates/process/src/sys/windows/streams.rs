//! Our ends of a job's pipes, and those that go to it.
//!
//! Anonymous pipes cannot be read without holding up a thread, so these have names: ones that nobody
//! can guess, for one client, which is connected before anybody else could be.

use super::done;
use crate::spawner::Stdin;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, OwnedHandle};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

/// The ends of a new job's streams.
pub(super) struct Ends {
    pub(super) stdin: Option<Writer>,
    pub(super) stdout: Reader,
    pub(super) stderr: Reader,
    pub(super) theirs: [OwnedHandle; 3],
}

impl Ends {
    pub(super) async fn connect(stdin: Stdin) -> io::Result<Self> {
        let (stdin, their_stdin) = match stdin {
            Stdin::Null => (None, File::open("NUL")?.into()),
            Stdin::Inherit => (None, io::stdin().as_handle().try_clone_to_owned()?),
            Stdin::Piped => {
                let (ours, theirs) = pipe(Direction::ToJob).await?;
                (Some(Writer(ours)), theirs)
            }
        };
        let (stdout, their_stdout) = pipe(Direction::FromJob).await?;
        let (stderr, their_stderr) = pipe(Direction::FromJob).await?;
        let theirs = [their_stdin, their_stdout, their_stderr];
        for handle in &theirs {
            make_inheritable(handle)?;
        }
        Ok(Self { stdin, stdout: Reader(stdout), stderr: Reader(stderr), theirs })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToJob,
    FromJob,
}

async fn pipe(direction: Direction) -> io::Result<(NamedPipeServer, OwnedHandle)> {
    let number = || RandomState::new().build_hasher().finish();
    let name = format!(r"\\.\pipe\sandgate-{:016x}{:016x}", number(), number());
    let to_job = direction == Direction::ToJob;
    let server = ServerOptions::new()
        .first_pipe_instance(true)
        .max_instances(1)
        .reject_remote_clients(true)
        .access_outbound(to_job)
        .access_inbound(!to_job)
        .create(&name)?;
    let client = OpenOptions::new().read(to_job).write(!to_job).open(&name)?;
    server.connect().await?;
    Ok((server, client.into()))
}

/// Copies of this program's own streams, for a job to have.
pub(super) fn inherited() -> io::Result<[OwnedHandle; 3]> {
    let streams = [
        io::stdin().as_handle().try_clone_to_owned()?,
        io::stdout().as_handle().try_clone_to_owned()?,
        io::stderr().as_handle().try_clone_to_owned()?,
    ];
    streams.iter().try_for_each(make_inheritable)?;
    Ok(streams)
}

fn make_inheritable(handle: &OwnedHandle) -> io::Result<()> {
    // SAFETY: a live handle; only a flag of it changes.
    done(unsafe {
        SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
    })
}

/// The reading end of a pipe.
pub(crate) struct Reader(NamedPipeServer);

impl Reader {
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer).await {
            // The last process that held the other end is gone.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other,
        }
    }
}

/// The writing end of a pipe.
pub(crate) struct Writer(NamedPipeServer);

impl Writer {
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}
