//! The lower limits: programs started with as little as the system allows.

#![expect(clippy::disallowed_methods, reason = "these are what the library is measured against")]

use super::session::Impossible;
use anyhow::Context as _;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::wait::{WaitStatus, waitpid};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that `posix_spawn` starts: no pipes, no file actions, no attributes, and everything
/// that it needs laid out beforehand.
pub(super) struct Bare {
    program: CString,
    args: Vec<CString>,
    environment: Vec<CString>,
    actions: PosixSpawnFileActions,
    attributes: PosixSpawnAttr,
}

impl Bare {
    /// A program without arguments, in this program's environment.
    pub(super) fn new(program: &Path) -> anyhow::Result<Self> {
        let program = CString::new(program.as_os_str().as_bytes())?;
        let environment = std::env::vars_os()
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
        Ok(Self {
            args: vec![program.clone()],
            program,
            environment: environment.collect::<Result<_, _>>()?,
            actions: PosixSpawnFileActions::init()?,
            attributes: PosixSpawnAttr::init()?,
        })
    }

    /// Starts it and waits for its end.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let pid = posix_spawn(
            self.program.as_c_str(),
            &self.actions,
            &self.attributes,
            &self.args,
            &self.environment,
        )?;
        let ended = waitpid(pid, None)?;
        anyhow::ensure!(
            ended == WaitStatus::Exited(pid, 0),
            "a bare program ended badly: {ended:?}"
        );
        Ok(())
    }
}

/// A command without streams, run to its end.
pub(super) fn run_quietly(program: &Path, args: &[&str]) -> anyhow::Result<()> {
    let status = quiet(program, args).status().with_context(|| cannot_start(program))?;
    anyhow::ensure!(status.success(), "{} ended badly: {status}", program.display());
    Ok(())
}

/// A command that reads and writes nothing.
pub(super) fn quiet(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A program that is written to and says something.
pub(super) fn talk(program: &Path, args: &[&str]) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().with_context(|| cannot_start(program))
}

/// `producer | consumer > output`, without a shell.
pub(super) fn run_piped(
    producer: (&Path, &[&str]),
    consumer: &Path,
    output: Stdio,
) -> anyhow::Result<()> {
    let (reader, writer) = std::io::pipe()?;
    let mut first = quiet(producer.0, producer.1)
        .stdout(writer)
        .spawn()
        .with_context(|| cannot_start(producer.0))?;
    let mut second = quiet(consumer, &[])
        .stdin(reader)
        .stdout(output)
        .spawn()
        .with_context(|| cannot_start(consumer))?;
    let (first, second) = (first.wait()?, second.wait()?);
    anyhow::ensure!(first.success() && second.success(), "a pipe of programs ended badly");
    Ok(())
}

/// What a command writes, collected by the standard library.
pub(super) fn output_of(program: &Path, args: &[String]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .with_context(|| cannot_start(program))?;
    anyhow::ensure!(output.status.success(), "{} ended badly", program.display());
    Ok(output.stdout)
}

/// A command with two pipes, run to its end by tokio's own means.
pub(super) async fn output_by_tokio(program: &Path) -> anyhow::Result<()> {
    let output = tokio::process::Command::new(program).stdin(Stdio::null()).output().await?;
    anyhow::ensure!(output.status.success(), "{} ended badly", program.display());
    Ok(())
}

/// Finds a program by its name.
///
/// # Errors
/// [`Impossible`] when there is none.
pub(crate) fn find(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| Impossible(format!("there is no program called `{name}`")).into())
}

/// The program that does nothing, at the path that everybody measures it by.
pub(super) fn true_program() -> anyhow::Result<PathBuf> {
    let usual = Path::new("/bin/true");
    if usual.is_file() { Ok(usual.to_owned()) } else { find("true") }
}

/// A path or a word as text, for an argument of a command.
pub(crate) fn text(word: impl AsRef<OsStr>) -> anyhow::Result<String> {
    let word = word.as_ref();
    word.to_str().map(str::to_owned).with_context(|| format!("{} is no text", word.display()))
}

fn cannot_start(program: &Path) -> String {
    format!("cannot start {}", program.display())
}
