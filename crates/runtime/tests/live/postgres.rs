//! A PostgreSQL server for `psql` to talk to.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that listens on a socket in a directory, and ends with this.
pub(crate) struct Server(Child);

impl Server {
    /// Makes a database in `directory`, and waits until its server answers; why not if it cannot be had
    /// here.
    pub(crate) fn start(directory: &Path) -> Result<Self, String> {
        let programs = programs().ok_or("there is no PostgreSQL server here")?;
        std::fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
        let data = directory.join("data");
        let made = as_server(&programs.join("initdb"))
            .args(["-A", "trust", "-U", "postgres", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        if !made.is_ok_and(|made| made.success()) {
            return Err("initdb does not work here".to_owned());
        }
        let mut server = as_server(&programs.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(directory);
        server.args(["-c", "listen_addresses=", "-F"]);
        let server = Self(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let began = Instant::now();
        let socket = directory.join(".s.PGSQL.5432");
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < PATIENCE, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program of the server's. It does not run as root, so root hands it to the user that its package makes.
#[expect(
    clippy::disallowed_methods,
    reason = "starts the server that the program under test talks to"
)]
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
