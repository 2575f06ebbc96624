//! What root does again as an ordinary user, who needs a user namespace where root does not.

use crate::peers::on_path;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who is there for such things.
pub(crate) const USER: &str = "sandgate-test";

/// This program once more as that user, in a directory that is the user's own from now on. The target directory may be
/// closed to others, so a copy of it is started.
///
/// # Errors
/// Why that cannot be.
#[expect(clippy::disallowed_methods, reason = "starts itself again")]
pub(crate) fn again(directory: &Path) -> Result<Command, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("this is an ordinary user already".to_owned());
    }
    let setpriv = on_path("setpriv").ok_or("there is no program called `setpriv`")?;
    let (uid, gid) = ids().ok_or_else(|| format!("there is no user called {USER}"))?;
    let prepared = || -> std::io::Result<()> {
        std::os::unix::fs::chown(directory, Some(uid), Some(gid))?;
        std::fs::copy(std::env::current_exe()?, directory.join("xtask"))?;
        Ok(())
    };
    prepared().map_err(|error| format!("cannot prepare a directory for {USER}: {error}"))?;
    let mut command = Command::new(setpriv);
    command.arg("--reuid").arg(uid.to_string()).arg("--regid").arg(gid.to_string());
    command.args(["--init-groups", "--"]).arg(directory.join("xtask"));
    command.env("HOME", directory).env_remove("XDG_RUNTIME_DIR").current_dir(directory);
    command.stdin(Stdio::null());
    Ok(command)
}

/// A place for the user's directories: the user's own home, because some sandboxes let nothing be run from /var/tmp.
pub(crate) fn home() -> Option<PathBuf> {
    entry(5).map(PathBuf::from).filter(|home| home.is_dir())
}

/// The numbers of the user and of the user's group.
fn ids() -> Option<(u32, u32)> {
    Some((entry(2)?.parse().ok()?, entry(3)?.parse().ok()?))
}

/// One field of what the system knows of the user.
fn entry(field: usize) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(USER))?;
    line.split(':').nth(field).map(str::to_owned)
}
