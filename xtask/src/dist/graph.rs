//! What the program is made of, as cargo has it.

use super::output;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The packages that the program is built from, on one system.
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
    /// What is linked into it or makes code that is.
    pub(super) needed: BTreeSet<String>,
    root: String,
    /// What each directly depends on, of those that are needed.
    pub(super) edges: BTreeMap<String, BTreeSet<String>>,
}

/// One package.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// Whether it is from the registry; otherwise it is ours.
    pub(super) is_foreign: bool,
    /// The hash of what was downloaded.
    pub(super) checksum: Option<String>,
}

impl Graph {
    /// Asks cargo.
    pub(super) fn read(root: &Path, target: &str) -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
        let text = output(command.args(["--filter-platform", target]))?;
        let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
        Self::of(&serde_json::from_slice(&text)?, &lock)
    }

    fn of(metadata: &Value, lock: &str) -> anyhow::Result<Self> {
        let checksums = checksums(lock)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut packages = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            let checksum = checksums.get(&(name.clone(), version.clone())).cloned();
            let one = Package {
                license: package["license"].as_str().map(str::to_owned),
                repository: package["repository"].as_str().map(str::to_owned),
                is_foreign: !package["source"].is_null(),
                name,
                version,
                checksum,
            };
            packages.insert(text(&package["id"]), one);
        }
        let root = packages.iter().find(|(_, package)| package.name == "sandgate");
        let root = root.context("cargo knows of no package sandgate")?.0.clone();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in metadata["resolve"]["nodes"].as_array().into_iter().flatten() {
            let needed = node["deps"].as_array().into_iter().flatten().filter(|dependency| {
                let kinds = dependency["dep_kinds"].as_array();
                kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
            });
            edges.insert(text(&node["id"]), needed.map(|one| text(&one["pkg"])).collect());
        }
        let mut needed = BTreeSet::from([root.clone()]);
        let mut open = vec![root.clone()];
        while let Some(id) = open.pop() {
            for next in edges.get(&id).into_iter().flatten() {
                if needed.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        edges.retain(|id, _| needed.contains(id));
        Ok(Self { packages, needed, root, edges })
    }

    /// The program's own version.
    pub(super) fn version(&self) -> &str {
        &self.packages[&self.root].version
    }

    /// The packages that are needed, with their ids.
    pub(super) fn needed(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.needed.iter().filter_map(|id| Some((id.as_str(), self.packages.get(id)?)))
    }

    /// The id of the program's own package.
    pub(super) fn root(&self) -> &str {
        &self.root
    }
}

fn checksums(lock: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse()?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let read = |package: &toml::Value| {
        let text = |key| package.get(key)?.as_str().map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(read).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A program that needs one crate to run, one to be built, and another for its tests.
    pub(crate) fn small() -> Graph {
        let package = |name: &str, source: Value| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source });
        let registry = || json!("registry+x");
        let dependency =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("sandgate", Value::Null), package("used", registry()),
                package("builds", registry()), package("tests", registry()),
            ],
            "resolve": { "nodes": [
                { "id": "sandgate", "deps": [
                    dependency("used", Value::Null), dependency("builds", json!("build")),
                    dependency("tests", json!("dev")),
                ] },
                { "id": "used", "deps": [] }, { "id": "builds", "deps": [] }, { "id": "tests", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        Graph::of(&metadata, lock).unwrap()
    }

    #[test]
    fn what_only_tests_use_is_not_in_it() {
        let graph = small();
        let names: Vec<&str> = graph.needed().map(|(_, package)| package.name.as_str()).collect();
        assert_eq!(names, ["builds", "sandgate", "used"]);
        let used = graph.needed().find(|(id, _)| *id == "used").unwrap().1;
        assert_eq!(used.checksum.as_deref(), Some("abc"));
    }
}
