//! How much of everyday work a sandbox lets be done.

use crate::bench::progress::Progress;
use crate::bench::row::{Quantity, Row};
use crate::bench::session::{Impossible, Session};
use crate::peers::Sandbox;
use crate::peers::work::{self, TASKS};

pub(super) fn done_in(
    sandbox: Sandbox,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Vec<Row>> {
    let directory = session.scratch()?;
    let step = |number| progress.step(number, TASKS.len());
    let done = work::all(sandbox, &session.tools()?, directory.path(), step).map_err(Impossible)?;
    let count = done.iter().filter(|done| **done).count();
    let row = Row::new(sandbox.name(), Quantity::count(count));
    let with = |row: Row, (task, done): (&work::Task, &bool)| {
        row.detail(task.name, Quantity::count(usize::from(*done)))
    };
    Ok(vec![TASKS.iter().zip(&done).fold(row, with)])
}
