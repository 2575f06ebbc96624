//! A connection to the daemon, which is started if it must be.

use super::wire::{LONGEST_LINE, PROTOCOL, Reply, Request};
use super::{DaemonError, Place};
use crate::own_socket::{Line, Lines, Writer, split};
use sandgate_process::start_detached;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;

/// How long a daemon may take to be there, or to go.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often is looked whether it is there, where another program starts it.
const LOOK: Duration = Duration::from_millis(10);

/// What the daemon is given of the environment: what it needs to find its own files. What its commands
/// get comes with the terms of their session.
const ENVIRONMENT: &[&str] =
    &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", "XDG_CACHE_HOME"];

/// A program that is a daemon when its first argument is `daemon`.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    lines: Lines,
    writer: Writer,
}

impl Client {
    /// Connects to the daemon that runs; none if there is none.
    ///
    /// # Errors
    /// When there is one, and it cannot be talked to.
    pub async fn find(place: &Place) -> Result<Option<Self>, DaemonError> {
        let Some(stream) = place.connect().await? else { return Ok(None) };
        let Some((client, hello)) = greet(stream).await? else { return Ok(None) };
        match hello {
            Reply::Hello { protocol: PROTOCOL, .. } => Ok(Some(client)),
            Reply::Hello { version, pid, .. } => Err(DaemonError::OtherVersion { pid, version }),
            Reply::Error { message } => Err(DaemonError::Refused(message)),
            _ => Err(DaemonError::Gone),
        }
    }

    /// Connects to the daemon, and starts it if there is none.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn find_or_start(place: &Place, launcher: &Launcher) -> Result<Self, DaemonError> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < deadline {
            if let Some(client) = Self::find(place).await? {
                return Ok(client);
            }
            let (launcher, place) = (launcher.clone(), place.clone());
            let started = tokio::task::spawn_blocking(move || launcher.start(&place)).await;
            match started.map_err(|error| not_started(&error))?.as_deref() {
                Ok("ready") => {}
                // Another is about to be ready, or to end.
                Ok("there is one") => tokio::time::sleep(LOOK).await,
                Ok("") => return Err(not_started(&"it ended without a word")),
                Ok(error) => return Err(not_started(&error)),
                Err(error) => return Err(not_started(error)),
            }
        }
        Err(not_started(&format!("it was not there after {} s", PATIENCE.as_secs())))
    }

    /// Says something.
    ///
    /// # Errors
    /// When it does not arrive.
    pub async fn say(&mut self, request: &Request) -> Result<(), DaemonError> {
        self.writer.write(request).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => DaemonError::Gone,
            _ => DaemonError::Connection(error),
        })
    }

    /// The next thing that the daemon says. Can be dropped and called again.
    ///
    /// # Errors
    /// When it says nothing more.
    pub async fn hear(&mut self) -> Result<Reply, DaemonError> {
        match self.lines.next().await {
            Ok(Some(Line::Read(reply))) => Ok(reply),
            Ok(Some(Line::Wrong(reason))) => {
                Err(DaemonError::Connection(std::io::Error::other(reason)))
            }
            Ok(None) => Err(DaemonError::Gone),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Err(DaemonError::Gone)
            }
            Err(error) => Err(DaemonError::Connection(error)),
        }
    }

    /// Says something and hears the answer. What the daemon refuses is an error.
    ///
    /// # Errors
    /// When it is refused, or there is no answer.
    pub async fn ask(&mut self, request: &Request) -> Result<Reply, DaemonError> {
        self.say(request).await?;
        match self.hear().await? {
            Reply::Error { message } => Err(DaemonError::Refused(message)),
            reply => Ok(reply),
        }
    }
}

/// Ends the daemon, of whatever version, and all its processes. False if there was none.
///
/// # Errors
/// When it does not end.
pub async fn stop(place: &Place) -> Result<bool, DaemonError> {
    let Some(stream) = place.connect().await? else { return Ok(false) };
    let Some((mut client, _)) = greet(stream).await? else { return Ok(false) };
    client.say(&Request::Stop {}).await?;
    let ended = async { while client.hear().await.is_ok() {} };
    match tokio::time::timeout(PATIENCE, ended).await {
        Ok(()) => Ok(true),
        Err(_) => Err(DaemonError::Refused("the daemon was told to end and has not".to_owned())),
    }
}

/// The first line of the daemon; none if it was about to end.
async fn greet(stream: UnixStream) -> Result<Option<(Client, Reply)>, DaemonError> {
    let (lines, writer) = split(stream, LONGEST_LINE);
    let mut client = Client { lines, writer };
    let hello = tokio::time::timeout(PATIENCE, client.hear()).await;
    match hello.unwrap_or(Err(DaemonError::Gone)) {
        Ok(hello) => Ok(Some((client, hello))),
        Err(DaemonError::Gone) => Ok(None),
        Err(error) => Err(error),
    }
}

fn not_started(reason: &dyn std::fmt::Display) -> DaemonError {
    DaemonError::NotStarted { reason: reason.to_string() }
}

impl Launcher {
    /// Starts a daemon, and gives back its first word. Blocks until there is one.
    fn start(&self, place: &Place) -> std::io::Result<String> {
        let arguments: [OsString; 3] =
            ["daemon".into(), "--settings".into(), place.settings().into()];
        let variable = |name: &&str| Some(((*name).into(), std::env::var_os(name)?));
        let environment: Vec<_> = ENVIRONMENT.iter().filter_map(variable).collect();
        let word = start_detached(&self.program, &arguments, &environment)?;
        Ok(word.trim_end().to_owned())
    }
}
