//! A large workspace must not slow a command down: protected names are searched for once.

use super::confined::Confined;
use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::{Row, Target};
use crate::bench::samples::{by_turns_timed, timed};
use crate::bench::session::Session;
use std::fs;
use std::path::Path;

/// A command of a session that has begun costs what it costs in an empty workspace.
const MOST: Target = Target::RatioAtMost(1.1);

const FILES_OF_A_DIRECTORY: usize = 100;

const DIRECTORIES_OF_A_DIRECTORY: usize = 50;

pub(super) fn measure(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let files = session.times(200_000, 20_000);
    let (large, empty) = (session.scratch()?, session.scratch()?);
    fill(large.path(), files)?;
    let start = |workspace: &Path| timed(|| Confined::start_in(workspace).map(drop));
    let pair = by_turns_timed(
        session.times(11, 3),
        progress,
        || start(large.path()),
        || start(empty.path()),
    )?;
    let first = Row::of_times(format!("{files} files, first command"), "empty workspace", &pair);

    let (large, empty) = (Confined::start_in(large.path())?, Confined::start_in(empty.path())?);
    let program = bare::true_program()?;
    let in_large = large.command(&program, &[])?;
    let in_empty = empty.command(&program, &[])?;
    let pair = by_turns_timed(
        session.times(1000, 100),
        progress,
        || large.time(&in_large),
        || empty.time(&in_empty),
    )?;
    let next = Row::of_times(format!("{files} files, next command"), "empty workspace", &pair);
    Ok(vec![large.label(first)?, large.judge(next, MOST)?])
}

/// Files in directories of directories.
fn fill(workspace: &Path, files: usize) -> anyhow::Result<()> {
    for directory in 0..files / FILES_OF_A_DIRECTORY {
        let outer = directory / DIRECTORIES_OF_A_DIRECTORY;
        let directory = workspace.join(format!("{outer}/{directory}"));
        fs::create_dir_all(&directory)?;
        for file in 0..FILES_OF_A_DIRECTORY {
            fs::File::create(directory.join(file.to_string()))?;
        }
    }
    Ok(())
}
