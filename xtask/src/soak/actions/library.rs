//! Commands that this very process runs by the library.

use crate::soak::in_process::Confined;
use crate::soak::lane::Lane;
use crate::soak::program::LIMIT;
use crate::soak::work::Work;
use std::time::Duration;

fn confined(lane: &mut Lane<'_>) -> Confined {
    *lane.random.pick(&[Confined::Yes, Confined::Yes, Confined::No])
}

/// Without the cage nothing keeps a command in.
fn work(lane: &mut Lane<'_>, confined: Confined) -> Work {
    match confined {
        Confined::Yes => lane.work(),
        Confined::No if lane.random.percent(30) => Work::endless(lane.mark()),
        Confined::No => Work::flood(lane.mark(), lane.random.between(1, 5_000)),
    }
}

pub(super) fn run(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    for _ in 0..lane.random.between(1, 6) {
        let confined = confined(lane);
        let work = work(lane, confined);
        let endless = work.code < 0;
        let limit =
            if endless { Duration::from_millis(lane.random.between(20, 400)) } else { LIMIT };
        let output = lane.steady.library().run(&work.argv, confined, limit)?.output;
        let right = match endless {
            true => output.timed_out && output.exit_code == 124,
            false => output.stdout.text == work.stdout && output.exit_code == work.code,
        };
        anyhow::ensure!(right, "{confined:?}: wanted {work:?}, got {output:?}");
    }
    Ok(())
}

pub(super) fn dropped(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let confined = confined(lane);
    let work =
        if lane.random.percent(60) { Work::endless(lane.mark()) } else { work(lane, confined) };
    let after = lane.random.moment();
    let ended = lane.steady.library().let_go(&work.argv, confined, after)?;
    anyhow::ensure!(!ended || work.code >= 0, "it ended by itself: {work:?}");
    Ok(())
}
