//! What `sandgate run` costs as a whole, from its start to its end.

use super::bare::{self, run_quietly};
use super::processes::peak_memory;
use super::progress::Progress;
use super::row::{Quantity, Row};
use super::samples::by_turns;
use super::session::Session;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GIB: u64 = 1 << 30;

pub(super) fn measure(session: &mut Session) {
    session.take("sandgate run -- /bin/true x", run_program);
    session.take("sandgate run -- true", run_script);
    session.take("sandgate run, 1 GiB through", run_through);
}

/// A person's home and workspace, with the settings for a directory that they trust.
pub(super) struct Home(tempfile::TempDir);

impl Home {
    pub(super) fn new(session: &Session) -> anyhow::Result<Self> {
        let home = Self(session.scratch()?);
        home.set("sandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n")?;
        Ok(home)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the person other settings.
    pub(super) fn set(&self, settings: &str) -> anyhow::Result<()> {
        let directory = self.0.path().join(".codex");
        std::fs::create_dir_all(&directory)?;
        Ok(std::fs::write(directory.join("config.toml"), settings)?)
    }

    /// A program that works there, not started yet.
    pub(super) fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = bare::quiet(program, args);
        command.current_dir(self.0.path()).env("CODEX_HOME", self.0.path().join(".codex"));
        command
    }

    /// Starts it and does not wait for its end.
    pub(super) fn start(&self, program: &Path, args: &[&str]) -> anyhow::Result<Child> {
        Ok(self.command(program, args).spawn()?)
    }

    pub(super) fn run(&self, program: &Path, args: &[&str]) -> anyhow::Result<()> {
        let status = self.command(program, args).status()?;
        anyhow::ensure!(status.success(), "sandgate {} ended badly: {status}", args.join(" "));
        Ok(())
    }
}

/// Two words are a program and its argument, so no shell takes part.
fn run_program(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, home) = (session.program()?, Home::new(session)?);
    let nothing = bare::true_program()?;
    let args = ["run", "--", &bare::text(&nothing)?, "x"];
    let pair = by_turns(
        session.times(300, 30),
        progress,
        || home.run(program, &args),
        || run_quietly(&nothing, &["x"]),
    )?;
    Ok(vec![Row::of_times("sandgate run -- /bin/true x", "/bin/true x", &pair)])
}

/// One word is a script for a login shell.
fn run_script(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, home) = (session.program()?, Home::new(session)?);
    let bash = bare::find("bash")?;
    let pair = by_turns(
        session.times(50, 5),
        progress,
        || home.run(program, &["run", "--shell", "bash", "--", "true"]),
        || run_quietly(&bash, &["-lc", "true"]),
    )?;
    Ok(vec![Row::of_times("sandgate run --shell bash -- true", "bash -lc true", &pair)])
}

fn run_through(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let (program, home) = (session.program()?, Home::new(session)?);
    let (head, cat) = (bare::find("head")?, bare::find("cat")?);
    let bytes = GIB.to_string();
    let producer = ["-c", &bytes, "/dev/zero"];
    let mut args = vec!["run", "--", "head"];
    args.extend(producer);
    let pair = by_turns(
        session.times(7, 2),
        progress,
        || home.run(program, &args),
        || bare::run_piped((&head, &producer), &cat, Stdio::null()),
    )?;
    let row = Row::of_rates("sandgate run, 1 GiB through", "cat > /dev/null", GIB, &pair);
    let large = peak_of(&home, program, &args)?;
    let small = peak_of(&home, program, &["run", "--", "sleep", "0.2"])?;
    Ok(vec![
        row,
        Row::new("sandgate run, 1 GiB through: peak of memory", Quantity::bytes(large))
            .against("with nothing to pass on", Quantity::bytes(small)),
    ])
}

/// The largest that a program was when it was last looked at before its end.
fn peak_of(home: &Home, program: &Path, args: &[&str]) -> anyhow::Result<u64> {
    let mut child = home.command(program, args).spawn()?;
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        // It may have ended since.
        peak = peak_memory(child.id()).unwrap_or(0).max(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(peak)
}
