//! What `sandgate sandbox` costs as a program, from its start to its end, and what others cost.

use super::confined::Tmp;
use super::layers::Layers;
use super::spawn::directories_of_tmp;
use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row, Target};
use crate::bench::samples::by_turns;
use crate::bench::session::{Impossible, Session};
use crate::peers::{self, Sandbox};
use anyhow::Context as _;
use sandgate_protocol::Enforcement;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What would be better than only being below bubblewrap.
const STRETCH: Quantity = Quantity::Ratio(4.0);

const BELOW: Target = Target::RatioAtMost(1.0);

const WHAT: &str = "sandgate sandbox -- /bin/true";

/// The name under which the program takes a policy as JSON.
const BY_POLICY: &str = "sandgate-linux-sandbox";

pub(super) fn against_plain(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let place = Place::new(session)?;
    let program = session.program()?;
    let layers = place.layers(program)?;
    let pairs = session.times(400, 30);
    let ours = || run(&mut place.ours(program));
    let pair = by_turns(pairs, progress, ours, || run(&mut place.plain()))?;
    let row = Row::of_times(WHAT, "/bin/true", &pair)
        .detail("stretch", STRETCH)
        .detail("directories of /tmp", Quantity::count(directories_of_tmp()));
    let policy = serde_json::to_string(&Tmp::LeftOut.policy())?;
    let ours = || run(&mut place.ours_by_policy(program, &policy));
    let pair = by_turns(pairs, progress, ours, || run(&mut place.plain()))?;
    let without =
        Row::of_times(format!("{BY_POLICY} … -- /bin/true, /tmp left out"), "/bin/true", &pair);
    Ok(vec![layers.label(row), layers.label(without)])
}

pub(super) fn against_bubblewrap(
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Vec<Row>> {
    let place = Place::new(session)?;
    let program = session.program()?;
    let theirs = place.other(Sandbox::Bubblewrap, session)?;
    let layers = place.layers(program)?;
    let pair = by_turns(
        session.times(200, 20),
        progress,
        || run(&mut place.ours(program)),
        || run(&mut theirs()),
    )?;
    let what = Sandbox::Bubblewrap.name();
    Ok(vec![layers.judge(Row::of_times(WHAT, what, &pair), BELOW)])
}

/// An empty workspace, and the command that everybody runs there. The directory for temporary files is
/// /tmp.
struct Place {
    workspace: TempDir,
    command: PathBuf,
}

impl Place {
    fn new(session: &Session) -> anyhow::Result<Self> {
        Ok(Self { workspace: session.scratch()?, command: bare::true_program()? })
    }

    fn plain(&self) -> Command {
        self.here(bare::quiet(&self.command, &[]))
    }

    fn ours(&self, program: &Path) -> Command {
        let args = ["sandbox", "--sandbox", "workspace-write", "--"];
        self.confining(bare::quiet(program, &args))
    }

    fn ours_by_policy(&self, program: &Path, policy: &str) -> Command {
        let mut ours = bare::quiet(program, &[policy, "--"]);
        ours.arg0(BY_POLICY);
        self.confining(ours)
    }

    /// The command in somebody else's sandbox.
    ///
    /// # Errors
    /// [`Impossible`] when it is not installed, or does not work here: that is no failure of ours.
    fn other<'a>(
        &'a self,
        sandbox: Sandbox,
        session: &Session,
    ) -> anyhow::Result<impl Fn() -> Command + use<'a>> {
        let place =
            peers::Place { workspace: self.workspace.path(), settings: self.workspace.path() };
        let wrapper = sandbox.wrap(&session.tools()?, place).map_err(Impossible)?;
        let start = move || wrapper.command(place, &[&self.command]);
        match run(&mut start()) {
            Ok(()) => Ok(start),
            Err(error) => Err(Impossible(format!("it does not work here: {error:#}")).into()),
        }
    }

    fn confining(&self, mut confiner: Command) -> Command {
        confiner.arg(&self.command);
        self.here(confiner)
    }

    fn here(&self, mut command: Command) -> Command {
        command.current_dir(self.workspace.path()).env_remove("TMPDIR");
        command
    }

    /// What holds a command of `sandgate sandbox` here.
    fn layers(&self, program: &Path) -> anyhow::Result<Layers> {
        #[derive(serde::Deserialize)]
        struct Ended {
            enforcement: Enforcement,
        }
        let args = ["sandbox", "--json", "--sandbox", "workspace-write", "--"];
        let mut command = self.confining(bare::quiet(program, &args));
        let output = command.stderr(Stdio::piped()).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "sandgate sandbox ended badly: {text}");
        let report = text.lines().last().context("sandgate sandbox --json said nothing")?;
        Ok(Layers::of(&serde_json::from_str::<Ended>(report)?.enforcement))
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status()?;
    let program = command.get_program().display();
    anyhow::ensure!(status.success(), "{program} ended badly: {status}");
    Ok(())
}
