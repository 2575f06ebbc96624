//! The operating system's own calls, and the only unsafe code of this crate.
//!
//! Every platform gives the same few types: a [`Nursery`] that starts jobs, a [`Job`] that can be
//! waited for, signalled and ended with all that it started, and the ends of its streams.

#![allow(unsafe_code, reason = "this module is where the crate talks to the kernel")]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Forerunner, Job, Nursery, Remote, Sight, in_place, pause};

#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use macos::{Job, Nursery, Remote, in_place};

#[cfg(not(target_os = "linux"))]
mod unseen;
#[cfg(not(target_os = "linux"))]
pub(crate) use tokio::time::sleep as pause;
#[cfg(not(target_os = "linux"))]
pub(crate) use unseen::Sight;

#[cfg(unix)]
mod streams;
#[cfg(unix)]
pub(crate) use streams::{Reader, Terminal, Writer};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::{Job, Nursery, Reader, Remote, Terminal, Writer, in_place};

use crate::handle::Exit;
use crate::spawner::{Stdin, TerminalSize};
use sandgate_sandbox::ExecEnv;

/// What is to be started, and how its streams are connected.
pub(crate) struct Launch<'a> {
    pub(crate) env: &'a ExecEnv,
    pub(crate) stdio: Stdio,
}

/// The standard streams of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stdio {
    /// Two pipes for output, and the standard input that was asked for.
    Pipes(Stdin),
    /// A terminal of its own, which it controls.
    Terminal(
        #[cfg_attr(windows, expect(dead_code, reason = "there are no terminals here yet"))]
        TerminalSize,
    ),
}

/// A job that was started, and our ends of its streams.
pub(crate) struct Launched {
    pub(crate) job: Job,
    pub(crate) stdin: Option<Writer>,
    pub(crate) stdout: Option<Reader>,
    pub(crate) stderr: Option<Reader>,
    pub(crate) terminal: Option<Terminal>,
}

/// Why a job could not be started: the step that failed and the system's error.
#[derive(Debug)]
pub(crate) struct LaunchError {
    pub(crate) stage: Stage,
    pub(crate) source: std::io::Error,
    #[cfg(target_os = "linux")]
    step: Option<String>,
    /// What was being done is refused here for good, and there is a cage without it.
    #[cfg(target_os = "linux")]
    is_refusal: bool,
}

impl LaunchError {
    pub(crate) fn new(stage: Stage, source: impl Into<std::io::Error>) -> Self {
        Self {
            stage,
            source: source.into(),
            #[cfg(target_os = "linux")]
            step: None,
            #[cfg(target_os = "linux")]
            is_refusal: false,
        }
    }

    /// The same, with what was being done.
    #[cfg(target_os = "linux")]
    pub(crate) fn at_step(self, step: &str) -> Self {
        use sandgate_sandbox::linux::Stuck;
        let Self { stage, source, .. } = self;
        let errno = source.raw_os_error().unwrap_or(0);
        let text = format!("cannot {}: {source}", Stuck::in_words(step, errno));
        let source = std::io::Error::new(source.kind(), text);
        let is_refusal = Stuck::is_refusal(step, errno);
        Self { stage, source, step: Some(step.to_owned()), is_refusal }
    }

    /// Whether the system lets nobody here have a part of the cage that it can do without.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_refusal(&self) -> bool {
        self.is_refusal
    }

    /// Whether something that is to be protected was moved after it had been found. Searching again may
    /// help.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_about_a_move(&self) -> bool {
        self.step.as_deref() == Some(sandgate_sandbox::linux::Stuck::MOVED)
    }
}

/// The steps of starting a job, as far as a person can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stage {
    /// Making pipes, the terminal or the guard processes.
    SetUp = 1,
    /// Making a process.
    Fork = 2,
    /// Taking the terminal.
    Terminal = 3,
    /// Entering the working directory.
    Chdir = 4,
    /// Executing the program.
    Exec = 5,
    /// Finding a place among the jobs that are running.
    Full = 6,
    /// Entering the cage.
    Cage = 7,
}

impl Stage {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux reads it back"))]
    fn from_wire(stage: u32) -> Self {
        match stage {
            2 => Self::Fork,
            3 => Self::Terminal,
            4 => Self::Chdir,
            5 => Self::Exec,
            6 => Self::Full,
            7 => Self::Cage,
            _ => Self::SetUp,
        }
    }
}

/// Asks for the working directory before a system that reports a missing one and a missing program
/// alike does.
#[cfg(not(target_os = "linux"))]
fn check_directory(cwd: &std::path::Path) -> Result<(), LaunchError> {
    match std::fs::metadata(cwd.join(".")) {
        Ok(_) => Ok(()),
        Err(e) => Err(LaunchError::new(Stage::Chdir, e)),
    }
}

/// What holds a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Held {
    /// It has namespaces of its own.
    pub(crate) namespaces: bool,
    /// What is refused to it is known.
    pub(crate) supervised: bool,
}

/// How a job's first process ended, and whether others of the job are still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) stragglers: bool,
}
