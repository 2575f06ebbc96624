//! The same by hand, which is the lower limit, and by libraries that wait for a prompt that they know.

use crate::bench::row::{Outcome, Row};
use crate::bench::samples::Samples;
use crate::bench::session::Session;
use crate::peers::python;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::time::Duration;

const SCRIPT: &str = include_str!("peers.py");

#[expect(clippy::disallowed_methods, reason = "measures other programs")]
pub(super) fn measure(session: &Session, rounds: usize) -> anyhow::Result<Vec<Row>> {
    let peers = session.tools()?.peers;
    let paths = std::env::join_paths(["pexpect", "swe-rex"].map(|name| peers.home(name)))?;
    let mut command = std::process::Command::new(python());
    command.args(["-c", SCRIPT, &rounds.to_string()]).env("PYTHONPATH", paths);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "python3 failed: {said}");
    let found: BTreeMap<String, Option<Vec<f64>>> =
        serde_json::from_slice(&output.stdout).context("what python3 found")?;
    found.into_iter().map(|(name, times)| one(&name, times)).collect()
}

fn one(name: &str, times: Option<Vec<f64>>) -> anyhow::Result<Row> {
    let what = name.to_owned();
    let Some(times) = times else {
        let outcome = Outcome::Skipped { why: "it is not installed".to_owned() };
        return Ok(Row { measurement: "", what, outcome });
    };
    let times = Samples::new(times.into_iter().map(Duration::from_secs_f64).collect())?;
    Ok(Row::new(what, times.median().into()).detail("p99", times.p99().into()))
}
