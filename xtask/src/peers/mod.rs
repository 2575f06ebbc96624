//! Programs of others that ours is compared with: which there are, and how they are had.
//!
//! Each has a directory of its own in `peers` in the target directory, and nothing is put anywhere else. Nothing is
//! fetched unless somebody calls [`Peers::install`]; what could not be had leaves a line that says why.

mod reason;
mod sandbox;
mod table;
pub(crate) mod work;

pub(crate) use sandbox::{Place, Sandbox, Tools, Wrapper};
pub(crate) use table::{Origin, PACKAGES, Package};

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long one package may take, in seconds.
const LIMIT: &str = "400";

/// The directory that they are in.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    directory: PathBuf,
}

/// A peer that is there.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its program, or the directory of its modules where it has none.
    pub(crate) program: PathBuf,
    pub(crate) version: String,
}

impl Peers {
    pub(crate) fn below(target: &Path) -> Self {
        Self { directory: target.join("peers") }
    }

    /// Where one is installed.
    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Finds one.
    ///
    /// # Errors
    /// Why it is not there.
    pub(crate) fn find(&self, name: &str) -> Result<Peer, String> {
        let package = PACKAGES.iter().find(|package| package.name == name);
        let package = package.ok_or_else(|| format!("nobody knows a peer called {name}"))?;
        match self.program(package) {
            Some(program) => {
                let version = self.version(package, &program);
                Ok(Peer { program, version })
            }
            None => Err(fs::read_to_string(self.note(package))
                .unwrap_or_else(|_| "not installed; --peers installs what can be had".to_owned())),
        }
    }

    /// Has the registries bring what is missing, and says what came of it, a line for each.
    #[expect(clippy::disallowed_methods, reason = "starts the installers of other programs")]
    pub(crate) fn install(&self, say: impl Fn(&str)) {
        for package in PACKAGES {
            if self.program(package).is_some() || self.failed_lately(package) {
                continue;
            }
            let home = self.home(package.name);
            let got = fs::create_dir_all(&home).map_err(|error| error.to_string()).and_then(|()| {
                let mut failure = String::new();
                for words in package.origin.installer(&home) {
                    say(&format!("installing {}: {}", package.name, words.join(" ")));
                    let mut command = Command::new("timeout");
                    command.arg(LIMIT).args(&words).current_dir(&home).stdin(Stdio::null());
                    match command.output() {
                        Ok(output) if output.status.success() => {}
                        Ok(output) => {
                            failure = reason::of(&String::from_utf8_lossy(&output.stderr));
                        }
                        Err(error) => failure = format!("cannot start {}: {error}", words[0]),
                    }
                }
                if failure.is_empty() { Ok(()) } else { Err(failure) }
            });
            match (got, self.program(package)) {
                (_, Some(_)) => drop(fs::remove_file(self.note(package))),
                (Ok(()), None) => self.explain(package, "its package holds no such program"),
                (Err(why), None) => self.explain(package, &why),
            }
        }
    }

    /// The search path with what was installed here behind what the system has.
    pub(crate) fn path(&self) -> OsString {
        let system = std::env::var_os("PATH").unwrap_or_default();
        let own = PACKAGES.iter().filter(|package| matches!(package.origin, Origin::Debian(_)));
        let own = own.map(|package| self.home(package.name).join("bin"));
        let all = std::env::split_paths(&system).chain(own);
        std::env::join_paths(all).unwrap_or(system)
    }

    /// How many bytes the files of one take.
    pub(crate) fn size(&self, name: &str) -> u64 {
        fn sum(directory: &Path) -> u64 {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let size = |entry: fs::DirEntry| match entry.metadata() {
                Ok(data) if data.is_dir() => sum(&entry.path()),
                Ok(data) => data.len(),
                Err(_) => 0,
            };
            entries.map(size).sum()
        }
        sum(&self.home(name))
    }

    /// Whether it could not be had less than a day ago: some fail only after minutes of compiling.
    fn failed_lately(&self, package: &Package) -> bool {
        let failed = fs::metadata(self.note(package)).and_then(|note| note.modified());
        failed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since < Duration::from_hours(24)))
    }

    fn note(&self, package: &Package) -> PathBuf {
        self.directory.join(format!("{}.missing", package.name))
    }

    fn explain(&self, package: &Package, why: &str) {
        // Whoever asks is told that it is not installed, which is true as well.
        drop(fs::write(self.note(package), why));
    }

    fn program(&self, package: &Package) -> Option<PathBuf> {
        let home = self.home(package.name);
        if matches!(package.origin, Origin::Debian(_) | Origin::System)
            && let Some(found) = on_path(package.program)
        {
            return Some(found);
        }
        let file = home.join(package.program);
        let found = match package.program.split_once("/*/") {
            Some((before, behind)) => {
                let entries = fs::read_dir(home.join(before)).ok()?.flatten();
                entries.map(|entry| entry.path().join(behind)).find(|file| file.exists())?
            }
            None => file,
        };
        found.exists().then_some(found)
    }

    fn version(&self, package: &Package, program: &Path) -> String {
        let home = self.home(package.name);
        let found = match package.origin {
            Origin::Npm(name) => {
                let manifest = home.join("node_modules").join(name).join("package.json");
                let text = fs::read_to_string(manifest).unwrap_or_default();
                let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                json["version"].as_str().map(str::to_owned)
            }
            Origin::Python(name) => {
                let prefix = format!("{}-", name.replace('-', "_"));
                let names = fs::read_dir(&home).into_iter().flatten().flatten();
                names.filter_map(|entry| entry.file_name().into_string().ok()).find_map(|name| {
                    let rest = name.strip_prefix(&prefix)?.strip_suffix(".dist-info")?;
                    Some(rest.to_owned())
                })
            }
            Origin::Crate { .. } => {
                let list = fs::read_to_string(home.join(".crates.toml")).unwrap_or_default();
                list.lines().find_map(|line| line.split(' ').nth(1).map(str::to_owned))
            }
            Origin::Debian(_) | Origin::System => said_version(program),
        };
        found.unwrap_or_else(|| "of unknown version".to_owned())
    }
}

/// What a program says its version is: the first word that begins with a digit.
#[expect(clippy::disallowed_methods, reason = "asks other programs who they are")]
fn said_version(program: &Path) -> Option<String> {
    let flag = if program.ends_with("socat") { "-V" } else { "--version" };
    let output = Command::new(program).arg(flag).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.to_owned())
}

/// Finds a program of the system.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let name = Path::new(name).file_name()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The interpreter that everybody can start: one of root's own is closed to others.
pub(crate) fn python() -> PathBuf {
    let usual = PathBuf::from("/usr/bin/python3");
    if usual.is_file() { usual } else { PathBuf::from("python3") }
}
