//! `Cargo.toml` files, as far as the checks need them: names, dependencies and their lines.

use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a dependency is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It becomes part of the package, or of its build script.
    Product,
    /// Only tests, examples and benchmarks use it.
    Development,
}

/// One dependency, under the name of its package, whatever the manifest calls it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) package: String,
    pub(crate) purpose: Purpose,
    pub(crate) line: usize,
}

/// A package's name and dependencies.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) package: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Why a manifest could not be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

impl Manifest {
    /// Reads a package's manifest. `shared` is [`shared_names`] of the workspace's.
    pub(crate) fn parse(text: &str, shared: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let root = parse(text)?;
        let root = root.get_ref();
        let package = table(root, "package")
            .and_then(|package| package.get("name")?.get_ref().as_str())
            .ok_or_else(|| Unreadable { line: 1, reason: "it names no package".to_owned() })?;
        let mut dependencies = Vec::new();
        for (section, purpose) in sections(root) {
            for (key, value) in section {
                dependencies.push(Dependency {
                    package: package_name(key.get_ref(), value, shared),
                    purpose,
                    line: line_of(text, key.span().start),
                });
            }
        }
        Ok(Self { package: package.to_owned(), dependencies })
    }
}

/// The package behind each name of the workspace's shared dependencies.
pub(crate) fn shared_names(text: &str) -> Result<BTreeMap<String, String>, Unreadable> {
    let root = parse(text)?;
    let shared =
        table(root.get_ref(), "workspace").and_then(|workspace| table(workspace, "dependencies"));
    let names = shared.into_iter().flatten().map(|(key, value)| {
        (key.get_ref().to_string(), package_name(key.get_ref(), value, &BTreeMap::new()))
    });
    Ok(names.collect())
}

/// The dependencies on crates of others that are chosen in a manifest, a package's or the workspace's,
/// without a word on why, and their lines. What is taken from the workspace is explained there.
pub(crate) fn unexplained(text: &str) -> Result<Vec<(String, usize)>, Unreadable> {
    let root = parse(text)?;
    let root = root.get_ref();
    let shared = table(root, "workspace").and_then(|workspace| table(workspace, "dependencies"));
    let own = sections(root).into_iter().map(|(section, _)| section);
    let is_words = |text: &str| {
        text.trim_start().strip_prefix('#').is_some_and(|text| text.contains(char::is_alphanumeric))
    };
    let mut found = Vec::new();
    for (key, value) in own.chain(shared).flatten() {
        let says = |word| value.get_ref().as_table().is_some_and(|own| own.contains_key(word));
        let line = line_of(text, key.span().start);
        let above = text.lines().nth(line.wrapping_sub(2)).unwrap_or_default();
        let behind = text[value.span().end..].lines().next().unwrap_or_default();
        if !(says("workspace") || says("path") || is_words(above) || is_words(behind)) {
            found.push((key.get_ref().to_string(), line));
        }
    }
    found.sort_by_key(|(_, line)| *line);
    Ok(found)
}

/// The sections of a package's manifest that name dependencies, and what those are for.
fn sections<'t, 'i>(root: &'t DeTable<'i>) -> Vec<(&'t DeTable<'i>, Purpose)> {
    let targets = table(root, "target").into_iter().flat_map(|targets| targets.values());
    let targets = targets.filter_map(|target| target.get_ref().as_table());
    let mut found = Vec::new();
    for place in std::iter::once(root).chain(targets) {
        for (section, purpose) in [
            ("dependencies", Purpose::Product),
            ("build-dependencies", Purpose::Product),
            ("dev-dependencies", Purpose::Development),
        ] {
            found.extend(table(place, section).map(|section| (section, purpose)));
        }
    }
    found
}

fn package_name(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    shared: &BTreeMap<String, String>,
) -> String {
    let own = value.get_ref().as_table();
    let renamed = own.and_then(|own| own.get("package")?.get_ref().as_str());
    let inherited = || {
        let inherits = own.and_then(|own| own.get("workspace")?.get_ref().as_bool());
        inherits.unwrap_or(false).then(|| shared.get(key).map(String::as_str)).flatten()
    };
    renamed.or_else(inherited).unwrap_or(key).to_owned()
}

fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Unreadable> {
    DeTable::parse(text).map_err(|error| Unreadable {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    })
}

fn table<'t, 'i>(parent: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    parent.get(key)?.get_ref().as_table()
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_found_in_every_section_under_their_real_names() {
        let workspace = "[workspace.dependencies]\ncage = { package = \"sandgate-sandbox\" }\n";
        let text = "[package]\nname = \"sandgate-policy\"\n\
                    [dependencies]\ncage.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nprocs = { package = \"sandgate-process\" }\n\
                    [build-dependencies]\ncc = \"1\"\n\
                    [dev-dependencies]\nproptest = \"1\"\n";
        let manifest = Manifest::parse(text, &shared_names(workspace).unwrap()).unwrap();
        let found: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|found| (found.package.as_str(), found.purpose, found.line))
            .collect();
        assert_eq!(manifest.package, "sandgate-policy");
        assert_eq!(
            found,
            [
                ("sandgate-sandbox", Purpose::Product, 4),
                ("cc", Purpose::Product, 8),
                ("proptest", Purpose::Development, 10),
                ("sandgate-process", Purpose::Product, 6),
            ]
        );
    }

    #[test]
    fn a_broken_manifest_is_reported_with_its_line() {
        let error = Manifest::parse("[package]\nname = \n", &BTreeMap::new()).unwrap_err();
        assert_eq!(error.line, 2);
    }
}
