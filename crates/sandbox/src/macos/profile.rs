//! From a layout to a profile, its parameters and the command line that enters it.

use super::rule::Filter;
use super::{SANDBOX_EXEC, SeatbeltError};
use crate::Layout;
use crate::roots::PROTECTED;
use sandgate_protocol::NetworkAccess;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// What every command may do, whatever its policy: everything that is not named is denied.
const BASE: &str = include_str!("base.sbpl");

/// What is added when the network is open, and only then.
const NETWORK: &str = include_str!("network.sbpl");

/// Where macOS keeps what these names are links to. Seatbelt compares the paths behind the links.
const PRIVATE: [&str; 3] = ["/etc", "/tmp", "/var"];

/// A profile and the values of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seatbelt {
    profile: String,
    parameters: Vec<(String, PathBuf)>,
}

impl Seatbelt {
    /// Makes the profile of a layout.
    ///
    /// # Errors
    /// When a path of the layout cannot be named in a profile.
    pub fn build(layout: &Layout, network: NetworkAccess) -> Result<Self, SeatbeltError> {
        let mut this = Self { profile: BASE.to_owned(), parameters: Vec::new() };
        let writable = this.writable(layout)?;
        let pins = this.pins(layout)?;
        this.profile.push_str(&writable);
        this.profile.push_str(&pins);
        if network == NetworkAccess::Enabled {
            this.profile.push('\n');
            this.profile.push_str(NETWORK);
        }
        Ok(this)
    }

    /// The text.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> &[(String, PathBuf)] {
        &self.parameters
    }

    /// The whole argument vector that runs a program in the profile; its first element is the file
    /// to execute. `arguments` are the program's own, without its name for itself, which
    /// `sandbox-exec` always makes the path.
    pub fn wrap<'a>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = &'a OsStr>,
    ) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![SANDBOX_EXEC.into(), "-p".into()];
        argv.push((&self.profile).into());
        for (name, value) in &self.parameters {
            let mut definition = OsString::from(format!("{name}="));
            definition.push(value);
            argv.extend(["-D".into(), definition]);
        }
        argv.extend(["--".into(), program.into()]);
        argv.extend(arguments.into_iter().map(OsStr::to_owned));
        argv
    }

    /// The rules for each root: its files, and the sockets that are files in it.
    fn writable(&mut self, layout: &Layout) -> Result<String, SeatbeltError> {
        let filters = self.filters(layout)?;
        let rules = filters.iter().enumerate().map(|(index, filter)| {
            let name = root_name(index);
            format!(
                "\n(allow file-write*\n  {filter})\n\
                 (allow network-bind (local unix-socket (subpath (param \"{name}\"))))\n\
                 (allow network-inbound (local unix-socket (subpath (param \"{name}\"))))\n\
                 (allow network-outbound (remote unix-socket (subpath (param \"{name}\"))))\n"
            )
        });
        Ok(rules.collect())
    }

    /// What may be written to in each root.
    fn filters(&mut self, layout: &Layout) -> Result<Vec<Filter>, SeatbeltError> {
        let mut filters = Vec::new();
        for (index, root) in layout.writable_roots().iter().enumerate() {
            let name = root_name(index);
            self.define(name.clone(), &root.path)?;
            let mut all = vec![Filter::Subpath(name.clone())];
            for (index, path) in root.read_only_subpaths.iter().enumerate() {
                let name = format!("{name}_RO_{index}");
                self.define(name.clone(), path)?;
                if layout.absent.contains(path) {
                    all.push(Filter::Literal(name.clone()).not());
                }
                all.push(Filter::Subpath(name).not());
            }
            all.extend(PROTECTED.map(|name| Filter::Respelled(name).not()));
            filters.push(Filter::All(all));
        }
        Ok(filters)
    }

    /// What may be written to but must stay where it is. Moving something away is an unlink of it.
    /// The rule stands behind those that allow: the last that matches decides.
    fn pins(&mut self, layout: &Layout) -> Result<String, SeatbeltError> {
        let roots = layout.writable_roots();
        if roots.is_empty() {
            return Ok(String::new());
        }
        let mut rule = String::from("\n(deny file-write-unlink");
        for index in 0..roots.len() {
            rule.push_str(&format!("\n  {}", Filter::Literal(root_name(index))));
        }
        for (index, path) in layout.pinned.iter().enumerate() {
            let name = format!("PINNED_{index}");
            self.define(name.clone(), path)?;
            rule.push_str(&format!("\n  {}", Filter::Literal(name)));
        }
        rule.push_str(")\n");
        Ok(rule)
    }

    fn define(&mut self, name: String, path: &Path) -> Result<(), SeatbeltError> {
        self.parameters.push((name, canonical(path)?));
        Ok(())
    }
}

fn root_name(index: usize) -> String {
    format!("WRITABLE_ROOT_{index}")
}

/// The path that Seatbelt will compare with. Layouts are canonical already; what was made on a
/// system without these links, or named a file that is not there, may not be.
fn canonical(path: &Path) -> Result<PathBuf, SeatbeltError> {
    let refused = |reason| SeatbeltError::Path { path: path.to_owned(), reason };
    if !path.has_root() {
        return Err(refused("it is not absolute"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(refused("it goes up again"));
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(refused("it contains a NUL byte"));
    }
    let link = PRIVATE.iter().find(|link| path.starts_with(link));
    Ok(match link.and_then(|_| path.strip_prefix("/").ok()) {
        Some(rest) => Path::new("/private").join(rest),
        None => path.to_owned(),
    })
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
