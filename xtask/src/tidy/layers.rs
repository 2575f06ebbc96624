//! Which crate may depend on which: the table of the architecture, held against each `Cargo.toml`.

use super::manifest::{Manifest, Purpose, shared_names};
use super::{Finding, Tree};
use std::collections::BTreeSet;

/// A crate's directory in `crates/`, its package, and the crates that it may build on.
struct Layer {
    name: &'static str,
    package: &'static str,
    may_use: &'static [&'static str],
}

/// The crates from the innermost outwards. Each may use only what is above it in this list.
const LAYERS: &[Layer] = &[
    Layer { name: "protocol", package: "sandgate-protocol", may_use: &[] },
    Layer { name: "policy", package: "sandgate-policy", may_use: &["protocol"] },
    Layer { name: "sandbox", package: "sandgate-sandbox", may_use: &["protocol", "policy"] },
    Layer { name: "process", package: "sandgate-process", may_use: &["protocol", "sandbox"] },
    Layer { name: "patch", package: "sandgate-patch", may_use: &["protocol"] },
    Layer { name: "config", package: "sandgate-config", may_use: &["protocol"] },
    Layer {
        name: "runtime",
        package: "sandgate-runtime",
        may_use: &["protocol", "policy", "sandbox", "process", "patch", "config"],
    },
    Layer { name: "agent", package: "sandgate-agent", may_use: &["protocol", "config", "runtime"] },
    Layer {
        name: "server",
        package: "sandgate-server",
        may_use: &["protocol", "config", "runtime", "agent"],
    },
    Layer {
        name: "tui",
        package: "sandgate-tui",
        may_use: &["protocol", "config", "runtime", "agent"],
    },
    Layer {
        name: "cli",
        package: "sandgate",
        may_use: &["protocol", "config", "runtime", "agent", "server", "tui"],
    },
];

/// Where the crates are that only tests and chores use. They need no row, because no row has them.
const TESTING: &str = "testing/";

/// Packages from elsewhere that only some crates may use, and why.
struct Reserved {
    package: &'static str,
    for_crates: &'static [&'static str],
    instead: &'static str,
}

const RESERVED: &[Reserved] = &[Reserved {
    package: "anyhow",
    for_crates: &["cli", "xtask"],
    instead: "write a thiserror enum, whose cases a caller can tell apart",
}];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let root = tree.text("Cargo.toml").unwrap_or_default();
    let shared = match shared_names(root) {
        Ok(shared) => shared,
        Err(error) => return vec![Finding::new("Cargo.toml", error.line, error.reason)],
    };
    let manifests: Vec<(&str, &str, &str)> = tree
        .texts()
        .filter_map(|(path, text)| Some((directory_of_manifest(path)?, path, text)))
        .collect();
    let present: BTreeSet<&str> = manifests.iter().map(|(directory, _, _)| *directory).collect();
    let mut findings = Vec::new();
    for (directory, path, text) in manifests {
        match Manifest::parse(text, &shared) {
            Ok(manifest) => {
                findings.extend(check_manifest(directory, path, &manifest, &present));
            }
            Err(error) => findings.push(Finding::new(path, error.line, error.reason)),
        }
    }
    findings
}

fn check_manifest(
    directory: &str,
    path: &str,
    manifest: &Manifest,
    present: &BTreeSet<&str>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let of_name = LAYERS.iter().find(|layer| layer.name == directory);
    let layer = of_name.filter(|_| !path.starts_with(TESTING));
    match layer {
        Some(layer) if layer.package != manifest.package => findings.push(Finding::new(
            path,
            1,
            format!("the package in crates/{directory} is called `{}`; rename it", layer.package),
        )),
        None if path.starts_with(TESTING) => {
            let package = format!("sandgate-{directory}");
            if let Some(layer) = of_name {
                let message = format!("`{}` is a crate that is shipped; rename this", layer.name);
                findings.push(Finding::new(path, 1, message));
            } else if manifest.package != package {
                let message =
                    format!("the package in {TESTING}{directory} is called `{package}`; rename it");
                findings.push(Finding::new(path, 1, message));
            }
        }
        None if directory != "xtask" => findings.push(Finding::new(
            path,
            1,
            format!(
                "`{directory}` is no crate of the architecture; put its code where it belongs, or \
                 give it a row in xtask/src/tidy/layers.rs and ARCHITECTURE.md"
            ),
        )),
        _ => {}
    }
    for dependency in &manifest.dependencies {
        let mut report = |message| {
            findings.push(Finding::new(path, dependency.line, message));
        };
        if let Some(name) = internal_name(&dependency.package) {
            if !present.contains(name) {
                report(format!("there is no crate `{}`; remove it", dependency.package));
            } else if let Some(layer) = layer
                && dependency.purpose == Purpose::Product
                && !layer.may_use.contains(&name)
            {
                let allowed = match layer.may_use {
                    [] => "no other crate of ours".to_owned(),
                    some => format!("only {}", some.join(", ")),
                };
                report(format!(
                    "`{directory}` may not depend on `{name}`; it may use {allowed}, so move the \
                     code to the crate whose job it is"
                ));
            }
        }
        for reserved in RESERVED.iter().filter(|r| r.package == dependency.package) {
            if !reserved.for_crates.contains(&directory) {
                report(format!(
                    "`{}` is for {} only; {}",
                    reserved.package,
                    reserved.for_crates.join(" and "),
                    reserved.instead
                ));
            }
        }
    }
    findings
}

/// The directory of a package of ours, from the path of its manifest.
fn directory_of_manifest(path: &str) -> Option<&str> {
    let package = path.strip_suffix("/Cargo.toml")?;
    match package.strip_prefix("crates/").or_else(|| package.strip_prefix(TESTING)) {
        Some(name) => (!name.contains('/')).then_some(name),
        None => (package == "xtask").then_some(package),
    }
}

/// The directory that a package of ours lives in; nothing for packages from elsewhere.
fn internal_name(package: &str) -> Option<&str> {
    let layer = LAYERS.iter().find(|layer| layer.package == package);
    layer.map(|layer| layer.name).or_else(|| package.strip_prefix("sandgate-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: (&str, &str) =
        ("crates/protocol/Cargo.toml", "[package]\nname = \"sandgate-protocol\"\n");
    const SANDBOX: (&str, &str) =
        ("crates/sandbox/Cargo.toml", "[package]\nname = \"sandgate-sandbox\"\n");

    fn policy_with(dependencies: &str) -> String {
        format!("[package]\nname = \"sandgate-policy\"\n{dependencies}")
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_may_use_the_crates_beneath_it() {
        let policy = policy_with("[dependencies]\nsandgate-protocol.workspace = true\n");
        assert!(found(&[PROTOCOL, SANDBOX, ("crates/policy/Cargo.toml", &policy)]).is_empty());
    }

    /// spec TIDY.10: A crate that depends on a crate of ours that the table of the architecture
    /// does not allow it is a finding, under whatever name and for whatever target it does so.
    #[test]
    fn a_crate_may_not_reach_outwards() {
        for dependencies in [
            "[dependencies]\nsandgate-sandbox.workspace = true\n",
            "[dependencies]\ncage = { package = \"sandgate-sandbox\", path = \"../sandbox\" }\n",
            "[target.'cfg(unix)'.dependencies]\nsandgate-sandbox.workspace = true\n",
            "[build-dependencies]\nsandgate-sandbox.workspace = true\n",
        ] {
            let policy = policy_with(dependencies);
            assert_eq!(
                found(&[PROTOCOL, SANDBOX, ("crates/policy/Cargo.toml", &policy)]),
                ["crates/policy/Cargo.toml:4: `policy` may not depend on `sandbox`; it may use \
                  only protocol, so move the code to the crate whose job it is"],
                "{dependencies}"
            );
        }
    }

    /// spec TIDY.11: Tests may depend on any crate of ours that exists.
    #[test]
    fn development_dependencies_only_have_to_exist() {
        let policy = policy_with("[dev-dependencies]\nsandgate-sandbox.workspace = true\n");
        assert!(found(&[SANDBOX, ("crates/policy/Cargo.toml", &policy)]).is_empty());
        assert_eq!(
            found(&[("crates/policy/Cargo.toml", &policy)]),
            ["crates/policy/Cargo.toml:4: there is no crate `sandgate-sandbox`; remove it"]
        );
    }

    /// spec TIDY.12: A crate that the table does not have, or whose package is not called as the
    /// table says, is a finding.
    #[test]
    fn every_crate_has_a_row_in_the_table() {
        let lines = found(&[
            ("crates/shared/Cargo.toml", "[package]\nname = \"sandgate-shared\"\n"),
            ("crates/policy/Cargo.toml", "[package]\nname = \"judge\"\n"),
        ]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("crates/policy/Cargo.toml:1: the package in crates/policy"));
        assert!(lines[1].starts_with("crates/shared/Cargo.toml:1: `shared` is no crate"));
    }

    /// spec TIDY.17: A crate in `testing` is no part of what is shipped: it needs no row, and a
    /// dependency on it is a finding anywhere but in tests and in `xtask`.
    #[test]
    fn crates_for_tests_are_not_shipped() {
        let model = ("testing/model/Cargo.toml", "[package]\nname = \"sandgate-model\"\n");
        let with = |dependencies: &str| {
            let policy = policy_with(dependencies);
            found(&[model, ("crates/policy/Cargo.toml", &policy)])
        };
        assert!(with("[dev-dependencies]\nsandgate-model.workspace = true\n").is_empty());
        for kind in ["dependencies", "build-dependencies"] {
            let lines = with(&format!("[{kind}]\nsandgate-model.workspace = true\n"));
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].contains("`policy` may not depend on `model`"), "{lines:?}");
        }
        let xtask = "[package]\nname = \"xtask\"\n[dependencies]\nsandgate-model = \"1\"\n";
        assert!(found(&[model, ("xtask/Cargo.toml", xtask)]).is_empty());
    }

    #[test]
    fn a_crate_for_tests_is_called_after_its_directory_and_like_no_crate_that_is_shipped() {
        assert_eq!(
            found(&[("testing/model/Cargo.toml", "[package]\nname = \"model\"\n")]),
            ["testing/model/Cargo.toml:1: the package in testing/model is called \
              `sandgate-model`; rename it"]
        );
        assert_eq!(
            found(&[("testing/server/Cargo.toml", "[package]\nname = \"sandgate-server\"\n")]),
            ["testing/server/Cargo.toml:1: `server` is a crate that is shipped; rename this"]
        );
    }

    /// spec TIDY.13: A dependency on `anyhow` outside `cli` and `xtask` is a finding.
    #[test]
    fn anyhow_is_for_programs() {
        let policy = policy_with("[dependencies]\nanyhow = \"1\"\n");
        let xtask = "[package]\nname = \"xtask\"\n[dependencies]\nanyhow = \"1\"\n";
        assert_eq!(
            found(&[("crates/policy/Cargo.toml", &policy), ("xtask/Cargo.toml", xtask)]),
            ["crates/policy/Cargo.toml:4: `anyhow` is for cli and xtask only; write a thiserror \
              enum, whose cases a caller can tell apart"]
        );
    }

    #[test]
    fn every_row_uses_only_rows_before_it() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use {
                assert!(LAYERS[..index].iter().any(|l| l.name == *used), "{} {used}", layer.name);
            }
        }
    }
}
