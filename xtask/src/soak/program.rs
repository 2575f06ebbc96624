//! Programs that run, are talked with and are ended, and never waited for longer than makes sense.

use super::world::World;
use crate::bench::processes::Watched;
use anyhow::Context as _;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Nothing takes this long unless it hangs, on a machine with much else to do.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// None if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

/// A program whose output is gathered.
pub(super) struct Running {
    child: Child,
    handle: OwnedFd,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Running {
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.spawn().context("cannot start the program")?;
        let stdout = gathered(child.stdout.take());
        let stderr = gathered(child.stderr.take());
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, handle, stdout, stderr })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Lets it come to its end.
    ///
    /// # Errors
    /// When it does not, or when somebody holds its output open afterwards.
    pub(super) fn wait(mut self) -> anyhow::Result<Ended> {
        let status = ended(&mut self.child)?;
        let held = |_| anyhow::anyhow!("it has ended, and somebody holds its output open");
        let stdout = self.stdout.recv_timeout(LIMIT).map_err(held)?;
        let stderr = self.stderr.recv_timeout(LIMIT).map_err(held)?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Ended { code: status.code(), stdout, stderr })
    }
}

impl World {
    /// Runs the program to its end.
    pub(super) fn run(&self, words: &[&str]) -> anyhow::Result<Ended> {
        Running::start(&mut self.command(super::world::Namespaces::Possible, words))?.wait()
    }
}

/// A program that is talked with: a line of JSON each, in both directions.
pub(super) struct Talking {
    child: Child,
    handle: OwnedFd,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Receiver<Vec<u8>>,
}

impl Talking {
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).spawn().context("cannot start the program")?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("there is no output")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = gathered(child.stderr.take());
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, handle, stdin, lines, stderr })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says something. One that has ended does not hear it, which shows when it is to answer.
    pub(super) fn say(&mut self, line: &Value) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{line}");
        }
    }

    /// What it says next; `None` when it has ended.
    ///
    /// # Errors
    /// When it says nothing for too long, or something else than JSON.
    pub(super) fn hear(&mut self) -> anyhow::Result<Option<Value>> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => {
                Ok(Some(serde_json::from_str(&line).with_context(|| format!("said {line}"))?))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => anyhow::bail!("it has not answered for {LIMIT:?}"),
        }
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Says that nothing more comes, and lets it come to its end. What it still says is in `stdout`.
    pub(super) fn end(mut self) -> anyhow::Result<Ended> {
        drop(self.stdin.take());
        let status = ended(&mut self.child)?;
        let held = "it has ended, and somebody holds its output open";
        let until = Instant::now() + LIMIT;
        let mut stdout = Vec::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => stdout.extend_from_slice(format!("{line}\n").as_bytes()),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => anyhow::bail!(held),
            }
        }
        let stderr = self.stderr.recv_timeout(LIMIT).context(held)?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Ended { code: status.code(), stdout, stderr })
    }
}

impl Drop for Talking {
    /// Whoever has gone wrong leaves nothing behind that the next check would wonder at.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Signals a process that is nobody's child here and was found by its number, if it is still what was looked for
/// when nobody else can come to have that number. Whether it was.
pub(super) fn signal_found(
    pid: u32,
    signal: Signal,
    is_it: impl FnOnce() -> bool,
) -> anyhow::Result<bool> {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process id")?;
    // It may have ended since, here and below.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return Ok(false) };
    Ok(is_it() && pidfd_send_signal(&handle, signal).is_ok())
}

/// Everything that a stream gives, once it is over.
fn gathered(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Waits for a child, and kills one that does not end.
fn ended(child: &mut Child) -> anyhow::Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    let gone = Watched::open(&[child.id()]).and_then(|watched| watched.all_gone(LIMIT));
    if gone.is_err() && child.try_wait()?.is_none() {
        child.kill()?;
        child.wait()?;
        anyhow::bail!("it did not end for {LIMIT:?} and was killed");
    }
    Ok(child.wait()?)
}
