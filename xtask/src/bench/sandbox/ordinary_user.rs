//! The same measurements as an ordinary user, who needs a user namespace where root does not.
//!
//! Root starts this program again as that user, lends it a directory and the program that was built,
//! and takes its rows over.

use crate::bench::progress::Progress;
use crate::bench::row::Row;
use crate::bench::session::{Effort, Impossible, Session};
use crate::ordinary_user::{USER, again};
use anyhow::Context as _;
use std::path::PathBuf;
use std::process::Stdio;

/// What a run is given by the one that started it.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Lent {
    /// Where it makes its directories.
    pub(in crate::bench) scratch: PathBuf,
    /// The real program.
    pub(in crate::bench) program: PathBuf,
}

/// As much of the report as is taken over.
#[derive(serde::Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

pub(super) fn measure(session: &Session, _: &Progress) -> anyhow::Result<Vec<Row>> {
    let impossible = |why: String| anyhow::Error::from(Impossible(why));
    let directory = session.scratch()?;
    let mut command = again(directory.path()).map_err(impossible)?;
    std::fs::copy(session.program()?, directory.path().join("sandgate"))?;
    let json = directory.path().join("rows.json");
    command.args(["bench", "sandbox", "--json"]).arg(&json);
    command.arg("--lent-scratch").arg(directory.path());
    command.arg("--lent-program").arg(directory.path().join("sandgate"));
    if session.effort == Effort::Quick {
        command.arg("--quick");
    }
    if let Some(only) = &session.only {
        command.arg("--only").arg(only);
    }
    let status = command.stdout(Stdio::null()).status()?;
    let Ok(text) = std::fs::read_to_string(&json) else {
        return Err(impossible(format!(
            "{USER} cannot run this program from {}: {status}",
            directory.path().display()
        )));
    };
    let rows = serde_json::from_str::<Rows>(&text).context("its rows make no sense")?.rows;
    Ok(rows.into_iter().map(|row| row.with_remark(&format!("as {USER}"))).collect())
}
