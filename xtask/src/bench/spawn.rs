//! What starting a command costs: `/bin/true` through the library against a bare `posix_spawn`.

use super::bare::{self, Bare};
use super::library::{self, Library};
use super::progress::Progress;
use super::row::{Row, Target};
use super::samples::by_turns;
use super::session::Session;
use sandgate_process::{ExecuteOptions, Spawner};
use std::hint::black_box;

/// A command through the library costs at most this much more than a bare one.
const MOST: Target = Target::RatioAtMost(1.5);

const REFERENCE: &str = "posix_spawn + waitpid";

/// What a program that has lived for a while may hold.
const LARGE_HOST_BYTES: usize = 200 << 20;

/// How many commands are timed together when they follow each other without a pause.
const IN_A_ROW: usize = 50;

pub(super) fn measure(session: &mut Session) {
    session.take("/bin/true, by turns", by_turns_with_bare);
    session.take("/bin/true, many in a row", in_a_row);
    session.take("/bin/true, host of 200 MiB", from_large_host);
    session.take("/bin/true, first command", first_command);
    session.take("/bin/true, with two pipes", by_turns_with_tokio);
}

/// The figure that the target is about.
fn by_turns_with_bare(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    Ok(vec![against_bare("/bin/true, by turns", &library, session, progress)?.target(MOST)])
}

/// The guards must not be larger, and so slower to fork, because their host is.
fn from_large_host(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let heap = black_box(vec![1u8; LARGE_HOST_BYTES]);
    let library = Library::start()?;
    let row = against_bare("/bin/true, host of 200 MiB", &library, session, progress)?;
    drop(black_box(heap));
    Ok(vec![row.target(MOST)])
}

fn against_bare(
    what: &str,
    library: &Library,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Row> {
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let env = library::granted(&program, &[])?;
    let ours = || library.run(&env, ExecuteOptions::default()).map(drop);
    let pair = by_turns(session.times(2000, 200), progress, ours, || bare.run())?;
    Ok(Row::of_times(what, REFERENCE, &pair))
}

/// By turns, what the library does after a command has returned falls into the other one's time. In
/// a row it does not.
fn in_a_row(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let env = library::granted(&program, &[])?;
    let repeat = |run: &dyn Fn() -> anyhow::Result<()>| (0..IN_A_ROW).try_for_each(|_| run());
    let pair = by_turns(
        session.times(40, 6),
        progress,
        || repeat(&|| library.run(&env, ExecuteOptions::default()).map(drop)),
        || repeat(&|| bare.run()),
    )?;
    let what = format!("/bin/true, {IN_A_ROW} in a row");
    Ok(vec![Row::of_times(what, REFERENCE, &pair).target(MOST)])
}

/// The start of the guards and the first command together. Ending the guards counts too.
fn first_command(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let program = bare::true_program()?;
    let bare = Bare::new(&program)?;
    let env = library::granted(&program, &[])?;
    let runtime = library::runtime()?;
    let ours = || {
        let spawner = Spawner::start()?;
        runtime.block_on(library::run(&spawner, &env, ExecuteOptions::default())).map(drop)
    };
    let pair = by_turns(session.times(200, 20), progress, ours, || bare.run())?;
    let what = "/bin/true, first command, guards started and ended";
    Ok(vec![Row::of_times(what, REFERENCE, &pair)])
}

/// What somebody without this library would write: no guards, no session, no limits.
fn by_turns_with_tokio(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let program = bare::true_program()?;
    let env = library::granted(&program, &[])?;
    let pair = by_turns(
        session.times(1000, 100),
        progress,
        || library.run(&env, ExecuteOptions::default()).map(drop),
        || library.runtime.block_on(bare::output_by_tokio(&program)),
    )?;
    Ok(vec![Row::of_times("/bin/true, with two pipes", "tokio's Command", &pair)])
}
