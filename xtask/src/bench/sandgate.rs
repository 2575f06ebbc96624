//! The real program, as it is shipped.

use std::path::{Path, PathBuf};

/// Has cargo bring the optimised program up to date, which is nothing to do most of the time, and
/// says where it is; or why there is none.
#[expect(clippy::disallowed_methods, reason = "starts cargo, as the person who typed this would")]
pub(crate) fn build(target: &Path) -> Result<PathBuf, String> {
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
