//! What people install: `cargo xtask dist` makes all of it.
//!
//! A program that needs nothing of the system, a tarball and a Debian package with manual pages and
//! completions, a list of everything that is in it, and checksums. Two runs on the same commit make the same
//! bytes, apart from what the compiler does.

#![expect(
    clippy::disallowed_methods,
    reason = "a chore starts cargo, git and the program that it packs"
)]

mod archive;
mod deb;
mod figures;
mod graph;
mod sbom;

use anyhow::{Context as _, bail, ensure};
use archive::Entry;
use figures::Start;
use graph::Graph;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "\
Usage: cargo xtask dist [--target TRIPLE] [--out DIR]

Builds what people install into target/dist, and prints what it came to. Without --target it is static: \
Linux with musl, which needs `rustup target add` and a musl-gcc. The program is started to make its pages and \
completions, so the target must be one that this machine can run.";

/// What is to be made.
struct Wanted {
    target: String,
    out: PathBuf,
}

/// What is known of the release.
struct Release {
    version: String,
    target: String,
    /// When the commit was made, in seconds; all files in the archives have this time.
    time: u64,
}

pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root().canonicalize()?;
    let Some(wanted) = wanted(args, &root)? else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let graph = Graph::read(&root, &wanted.target)?;
    let release = Release {
        version: graph.version().to_owned(),
        target: wanted.target.clone(),
        time: commit_time(&root),
    };
    let directory = output_directory(&root, &wanted.target);
    let start = match directory.exists() {
        true => Start::FromSome,
        false => Start::FromNothing,
    };
    let began = Instant::now();
    let program = build(&root, &wanted.target, &directory)?;
    let took = began.elapsed();
    std::fs::create_dir_all(&wanted.out)?;
    let parts = parts(&root, &program, &wanted.out.join("parts"))?;

    let name = format!("sandgate-{}-{}", release.version, release.target);
    let mut files = vec![
        write(&wanted.out, &format!("{name}.tar.gz"), &tarball(&name, &parts, release.time)?)?,
        write(&wanted.out, &format!("{name}.cdx.json"), &sbom::text(&graph, &release)?)?,
    ];
    if release.target.contains("linux") {
        let package = deb::package(&parts, &release)?;
        files.push(write(&wanted.out, &deb::file_name(&release)?, &package)?);
    }
    let mut sums = String::new();
    for file in &files {
        let hash = Sha256::digest(std::fs::read(file)?);
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let _ = writeln!(sums, "{hex}  {name}");
    }
    files.push(write(&wanted.out, "SHA256SUMS", sums.as_bytes())?);
    for file in &files {
        println!("{}", file.display());
    }
    let over = figures::print(&figures::of(&graph, &program, took, start)?);
    Ok(if over { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn wanted(args: &[String], root: &Path) -> anyhow::Result<Option<Wanted>> {
    let (mut target, mut out) = (None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--target", Some(value)) => target = Some(value.clone()),
            ("--out", Some(value)) => out = Some(PathBuf::from(value)),
            _ => return Ok(None),
        }
    }
    let target = match target {
        Some(target) => target,
        None if cfg!(target_os = "linux") => {
            format!("{}-unknown-linux-musl", std::env::consts::ARCH)
        }
        None => bail!("name the system with --target: only Linux has one that is static"),
    };
    Ok(Some(Wanted { target, out: out.unwrap_or_else(|| root.join("target/dist")) }))
}

/// When the commit was made; the beginning of time where there is no repository.
fn commit_time(root: &Path) -> u64 {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => Some(text),
        Err(_) => {
            output(Command::new("git").arg("-C").arg(root).args(["log", "-1", "--format=%ct"]))
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
        }
    };
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Where cargo puts what is built for a release.
fn output_directory(root: &Path, target: &str) -> PathBuf {
    let directory =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    directory.join(target).join("dist")
}

/// Builds the program, and says where it is.
fn build(root: &Path, target: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args([
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "sandgate",
    ]);
    let status = command.args(["--target", target]).status().context("cannot start cargo")?;
    ensure!(
        status.success(),
        "the program was not built; if the target is missing: rustup target add {target}"
    );
    let name = if target.contains("windows") { "sandgate.exe" } else { "sandgate" };
    Ok(directory.join(name))
}

/// What is packed, by the places that it has in a tarball.
struct Parts {
    program: Vec<u8>,
    /// Texts of the project.
    documents: Vec<(&'static str, Vec<u8>)>,
    /// Manual pages by their names.
    pages: Vec<(String, Vec<u8>)>,
    /// Completions: the shell, the name that it looks for, and the text.
    completions: Vec<(&'static str, &'static str, Vec<u8>)>,
}

/// Reads all parts; pages and completions are made by the program that is packed.
fn parts(root: &Path, program: &Path, scratch: &Path) -> anyhow::Result<Parts> {
    let read = |name| -> anyhow::Result<_> {
        Ok((name, std::fs::read(root.join(name)).with_context(|| format!("cannot read {name}"))?))
    };
    let documents = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"];
    let documents = documents.into_iter().map(read).collect::<anyhow::Result<_>>()?;
    let manual = scratch.join("man");
    output(Command::new(program).arg("man").arg(&manual))?;
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(&manual)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        pages.push((name.unwrap_or_default(), std::fs::read(&path)?));
    }
    pages.sort();
    std::fs::remove_dir_all(scratch)?;
    let shells = [
        ("bash", "sandgate"),
        ("zsh", "_sandgate"),
        ("fish", "sandgate.fish"),
        ("powershell", "_sandgate.ps1"),
    ];
    let mut completions = Vec::new();
    for (shell, name) in shells {
        completions.push((
            shell,
            name,
            output(Command::new(program).args(["completions", shell]))?,
        ));
    }
    Ok(Parts { program: std::fs::read(program)?, documents, pages, completions })
}

fn tarball(name: &str, parts: &Parts, time: u64) -> anyhow::Result<Vec<u8>> {
    let at = |place: &str| format!("{name}/{place}");
    let program = if name.contains("windows") { "sandgate.exe" } else { "sandgate" };
    let mut entries = vec![Entry::program(at(program), parts.program.clone())];
    if name.contains("linux") {
        entries.push(Entry::link(at("sandgate-linux-sandbox"), "sandgate"));
    }
    entries.extend(parts.documents.iter().map(|(name, text)| Entry::file(at(name), text.clone())));
    let page =
        |(name, text): &(String, Vec<u8>)| Entry::file(at(&format!("man/{name}")), text.clone());
    entries.extend(parts.pages.iter().map(page));
    entries.extend(parts.completions.iter().map(|(shell, name, text)| {
        Entry::file(at(&format!("completions/{shell}/{name}")), text.clone())
    }));
    archive::tar_gz(&entries, time)
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// What a program prints.
fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let ran = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    ensure!(ran.status.success(), "{command:?} failed: {said}");
    Ok(ran.stdout)
}
