//! What starting a confined command costs through the library.

use super::confined::{Confined, Tmp, command_in, grant};
use super::layers::Layers;
use crate::bench::bare::{self, Bare};
use crate::bench::library;
use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row, Target};
use crate::bench::samples::{Pair, by_turns_timed, timed};
use crate::bench::session::Session;
use anyhow::Context as _;
use sandgate_process::{ExecuteOptions, Spawner};
use sandgate_sandbox::SandboxManager;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A command of a session that has begun costs at most this much more than a plain one.
const MOST: Target = Target::RatioAtMost(1.5);

/// What would be better still.
const STRETCH: Quantity = Quantity::Ratio(1.25);

/// The first command of a session, with all that a session needs.
const MOST_AT_FIRST: Target = Target::RatioAtMost(4.0);

const REFERENCE: &str = "posix_spawn + waitpid";

/// How many commands are timed together when they follow each other without a pause.
const IN_A_ROW: usize = 50;

/// The figure that the target is about, and what the cage adds to a command that the same guards
/// look after.
pub(super) fn by_turns_with_bare(
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let command = confined.command(&program, &[])?;
    let pairs = session.times(2000, 200);
    let ours = || confined.time(&command);
    let pair = by_turns_timed(pairs, progress, ours, || timed(|| bare.run()))?;
    let row = Row::of_times("/bin/true, confined, by turns", REFERENCE, &pair);
    let row = confined.judge(row.detail("stretch", STRETCH), MOST)?;
    let env = library::granted(&program, &[])?;
    let unconfined = || timed(|| confined.library.run(&env, ExecuteOptions::default()).map(drop));
    let pair = by_turns_timed(pairs, progress, ours, unconfined)?;
    let beside = Row::of_times("/bin/true, confined", "unconfined, same guards", &pair);
    Ok(vec![row, confined.label(beside)?])
}

/// By turns, what the guards do after a command has returned, making the next cage ready above all,
/// falls into the other one's time. In a row it does not.
pub(super) fn in_a_row(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let command = confined.command(&program, &[])?;
    let ours =
        || (0..IN_A_ROW).try_fold(Duration::ZERO, |sum, _| Ok(sum + confined.time(&command)?));
    let reference = || timed(|| (0..IN_A_ROW).try_for_each(|_| bare.run()));
    let pair = by_turns_timed(session.times(40, 6), progress, ours, reference)?;
    let row = Row::of_times(format!("/bin/true, confined, {IN_A_ROW} in a row"), REFERENCE, &pair);
    Ok(vec![confined.judge(row.detail("stretch", STRETCH), MOST)?])
}

pub(super) fn login_shell(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let confined = Confined::start(session)?;
    let bash = bare::find("bash")?;
    let args = ["-lc", "echo hi"];
    // A person's own profile would be most of what is measured.
    let home = confined.workspace();
    let mut command = confined.command(&bash, &args)?;
    command.env.insert("HOME".into(), home.into());
    let plain = || {
        let status = bare::quiet(&bash, &args).env("HOME", home).status()?;
        anyhow::ensure!(status.success(), "a login shell ended badly: {status}");
        Ok(())
    };
    let pair = by_turns_timed(
        session.times(300, 20),
        progress,
        || confined.time(&command),
        || timed(plain),
    )?;
    let row = Row::of_times("bash -lc 'echo hi', confined", "the same, plain", &pair);
    Ok(vec![confined.judge(row, MOST)?])
}

/// How far the first command of a session is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// To its result, for which somebody waits.
    Result,
    /// To the end of all that was made for it, for which nobody does.
    NothingIsLeft,
}

/// All that a session needs made, and one command. The protected names are searched for in between, in
/// /tmp too, so what lies there counts; without it nothing of the machine does.
pub(super) fn first_command(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let what = "/bin/true, confined, first command";
    let (layers, pair) = first_command_with(Tmp::Writable, Until::Result, session, progress)?;
    let row = Row::of_times(what, REFERENCE, &pair)
        .detail("directories of /tmp", Quantity::count(directories_of_tmp()));
    let row = layers.judge(row, MOST_AT_FIRST);
    let (layers, pair) = first_command_with(Tmp::LeftOut, Until::Result, session, progress)?;
    let without = Row::of_times(format!("{what}, /tmp left out"), REFERENCE, &pair);
    let without = layers.label(without);
    let (layers, pair) = first_command_with(Tmp::LeftOut, Until::NothingIsLeft, session, progress)?;
    let ended = Row::of_times(format!("{what}, and all of it ended"), REFERENCE, &pair);
    Ok(vec![row, without, layers.label(ended)])
}

fn first_command_with(
    tmp: Tmp,
    until: Until,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<(Layers, Pair)> {
    let directory = session.scratch()?;
    let workspace = directory.path().canonicalize()?;
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let command = command_in(&workspace, &program, &[])?;
    let runtime = library::runtime()?;
    let layers = RefCell::new(None);
    let ours = || {
        let grant = grant(&command, &workspace, tmp);
        let began = Instant::now();
        let spawner = Spawner::start()?;
        let manager = SandboxManager::new();
        let env = manager.transform(grant)?;
        let options = ExecuteOptions::default();
        let executed = runtime.block_on(library::run(&spawner, &env, options))?;
        let to_result = began.elapsed();
        drop(spawner);
        let to_end = began.elapsed();
        let enforced = manager.enforced(executed.namespaces, executed.supervised);
        layers.replace(Some(Layers::of(&enforced)));
        Ok(match until {
            Until::Result => to_result,
            Until::NothingIsLeft => to_end,
        })
    };
    let pair = by_turns_timed(session.times(200, 20), progress, ours, || timed(|| bare.run()))?;
    Ok((layers.take().context("nothing was confined")?, pair))
}

/// How many directories /tmp has as far down as it is searched.
pub(in crate::bench) fn directories_of_tmp() -> usize {
    fn count(directory: &std::path::Path, levels: usize) -> usize {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let directories = entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.map(|e| 1 + if levels > 1 { count(&e.path(), levels - 1) } else { 0 }).sum()
    }
    count(std::path::Path::new("/tmp"), 3)
}
