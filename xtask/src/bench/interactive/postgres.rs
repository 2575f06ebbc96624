//! `psql`, with a server of its own that listens on a socket in the workspace.

use super::Talk;
use super::tools::{Place, rounds_in};
use crate::bench::progress::Progress;
use crate::bench::samples::Samples;
use crate::bench::session::{Impossible, Session};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn rounds(
    place: Place,
    rounds: usize,
    _: &Session,
    progress: &Progress,
) -> anyhow::Result<Samples> {
    let directory = tempfile::tempdir()?;
    let mut server = Server::start(directory.path())?;
    let talk = Talk {
        name: "psql",
        command: &["bash", "-c", "exec psql -X -h \"$HOME\" -U postgres postgres"],
        line: "select 'h' || 'i';\n",
        answer: " hi\n",
        most: Some(Duration::from_millis(3)),
    };
    let times = rounds_in(directory.path(), place, &talk, rounds, progress);
    server.0.kill()?;
    server.0.wait()?;
    times
}

struct Server(Child);

impl Server {
    /// Makes a database in `directory`, and waits until its server answers. PostgreSQL does not run as
    /// root, so root hands it to the user that its package makes.
    fn start(directory: &Path) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let programs = programs().ok_or_else(|| Impossible("there is no PostgreSQL".to_owned()))?;
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o777))?;
        let data = directory.join("data");
        let made = as_server(&programs.join("initdb"))
            .args(["-A", "trust", "-U", "postgres", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()?;
        if !made.success() {
            return Err(Impossible("initdb does not work here".to_owned()).into());
        }
        let server = as_server(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(directory)
            .args(["-c", "listen_addresses=", "-F"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a server")?;
        let (server, began) = (Self(server), Instant::now());
        while !directory.join(".s.PGSQL.5432").exists() {
            anyhow::ensure!(began.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

/// A program of the server's, as somebody who may run it.
#[expect(clippy::disallowed_methods, reason = "starts a server for the program that is measured")]
fn as_server(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists())
}
