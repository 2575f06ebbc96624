//! The real program, as it is shipped, and the directory that it is built in.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// Names a program to take instead of the one that cargo builds, such as the static one of `cargo xtask dist`.
pub(crate) const NAMED: &str = "SANDGATE_BIN";

/// The program that [`NAMED`] names. Otherwise has cargo bring the optimised program up to date, which is nothing to do
/// most of the time, and says where it is; or why there is none.
#[expect(clippy::disallowed_methods, reason = "starts cargo, as the person who typed this would")]
pub(crate) fn build(target: &Path) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(NAMED) {
        let named = PathBuf::from(named);
        return named
            .canonicalize()
            .map_err(|error| format!("{NAMED} {}: {error}", named.display()));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = std::process::Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "sandgate", "--target-dir"])
        .arg(target)
        .current_dir(crate::workspace_root())
        .status();
    match built {
        Ok(status) if status.success() => {}
        Ok(_) => return Err("the program does not build".to_owned()),
        Err(error) => return Err(format!("cannot start cargo to build the program: {error}")),
    }
    let program = target.join("release").join("sandgate");
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("cargo left no program at {}", program.display())),
    }
}

/// Where cargo puts what it builds: this program is in a directory of it.
pub(crate) fn target_directory() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let target = program.ancestors().nth(2).map(Path::to_owned);
    target.context("this program is in no target directory")
}
