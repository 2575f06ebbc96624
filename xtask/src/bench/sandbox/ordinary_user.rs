//! The same measurements as an ordinary user, who needs a user namespace where root does not.
//!
//! Root starts this program again as that user, lends it a directory and the program that was built,
//! and takes its rows over.

use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::Row;
use crate::bench::session::{Effort, Impossible, Session};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who is there for such things.
const USER: &str = "sandgate-test";

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
    let copy = directory.path().join("sandgate");
    std::fs::copy(session.program()?, &copy)?;
    let json = directory.path().join("rows.json");
    let mut command = this_program_as_user(directory.path())?;
    command.args(["bench", "sandbox", "--json"]).arg(&json);
    command.arg("--lent-scratch").arg(directory.path()).arg("--lent-program").arg(&copy);
    if session.effort == Effort::Quick {
        command.arg("--quick");
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

/// This program, to be started again as the ordinary user in a directory that becomes theirs. The target
/// directory may be closed to others, so it is copied there.
///
/// # Errors
/// [`Impossible`] where this is not root, or there is no such user.
pub(crate) fn this_program_as_user(directory: &Path) -> anyhow::Result<Command> {
    let impossible = |why: String| anyhow::Error::from(Impossible(why));
    if !rustix::process::geteuid().is_root() {
        return Err(impossible("this is an ordinary user already".to_owned()));
    }
    let setpriv = bare::find("setpriv")?;
    let (uid, gid) =
        ids_of(USER)?.ok_or_else(|| impossible(format!("there is no user called {USER}")))?;
    std::os::unix::fs::chown(directory, Some(uid), Some(gid))?;
    let this = directory.join("xtask");
    std::fs::copy(std::env::current_exe()?, &this)?;
    let (uid, gid) = (uid.to_string(), gid.to_string());
    let mut command =
        bare::quiet(&setpriv, &["--reuid", &uid, "--regid", &gid, "--init-groups", "--"]);
    command.arg(&this).env("HOME", directory).env_remove("XDG_RUNTIME_DIR").current_dir(directory);
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    Ok(command)
}

/// The numbers of a user and of the user's group.
fn ids_of(user: &str) -> anyhow::Result<Option<(u32, u32)>> {
    let users = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    for line in users.lines() {
        if let [name, _, uid, gid, ..] = line.split(':').collect::<Vec<_>>()[..]
            && name == user
        {
            return Ok(Some((uid.parse()?, gid.parse()?)));
        }
    }
    Ok(None)
}
