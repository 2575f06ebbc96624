//! The real program, as it is shipped, and the directory that it is built in.

use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "sandgate", "--target-dir"]);
    build.arg(target).current_dir(crate::workspace_root());
    let mut directory = target.to_owned();
    let static_one = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if can_build_for(&static_one) {
        build.args(["--target", &static_one]);
        directory.push(&static_one);
    } else {
        eprintln!(
            "The program is linked with this system's C library and starts more slowly than what people install. \
             For that one: rustup target add {static_one}, and a musl-gcc."
        );
    }
    match build.status() {
        Ok(status) if status.success() => {}
        Ok(_) => return Err("the program does not build".to_owned()),
        Err(error) => return Err(format!("cannot start cargo to build the program: {error}")),
    }
    let program = directory.join("release").join("sandgate");
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("cargo left no program at {}", program.display())),
    }
}

/// Whether this machine has what a static program is made of.
#[expect(
    clippy::disallowed_methods,
    reason = "starts the compiler, to ask where its libraries are"
)]
fn can_build_for(target: &str) -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked =
        Command::new(compiler).args(["--print", "target-libdir", "--target", target]).output();
    let libraries = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    libraries.is_some_and(|path| Path::new(path.trim()).is_dir())
        && crate::bench::bare::find("musl-gcc").is_ok()
}

/// Where cargo puts what it builds: this program is in a directory of it.
pub(crate) fn target_directory() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let target = program.ancestors().nth(2).map(Path::to_owned);
    target.context("this program is in no target directory")
}
