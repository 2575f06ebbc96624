//! Dependencies that do not say what they are for.

use super::manifest::unexplained;
use super::{Finding, Tree};

/// What is not readable is left to [`super::layers`], which says so.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests =
        tree.texts().filter(|(path, _)| *path == "Cargo.toml" || path.ends_with("/Cargo.toml"));
    let found = manifests.flat_map(|(path, text)| {
        let places = unexplained(text).unwrap_or_default().into_iter();
        places.map(move |(name, line)| {
            let message = format!(
                "nothing says what `{name}` is for; write a sentence above it: why it, and not \
                 our own few lines"
            );
            Finding::new(path, line, message)
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    /// spec TIDY.35: A dependency on a crate of others without a comment directly above it or behind it is
    /// a finding where its version is named.
    #[test]
    fn a_dependency_needs_a_sentence() {
        let why = "is for; write a sentence above it: why it, and not our own few lines";
        let text = "[workspace.dependencies]\nours = { path = \"x\" }\n# Bytes in JSON.\n\
                    base64 = \"1\"\nbytes = \"1\"\nserde = \"1\" # Data.\n#\nlog = \"1\"\n";
        assert_eq!(
            found("Cargo.toml", text),
            [
                format!("Cargo.toml:5: nothing says what `bytes` {why}"),
                format!("Cargo.toml:8: nothing says what `log` {why}"),
            ]
        );
        let text = "[dependencies]\nbytes.workspace = true\nserde = { workspace = true }\n\
                    [target.'cfg(unix)'.dev-dependencies]\nnix = \"1\"\n\
                    [build-dependencies.cc]\nversion = \"1\"\n";
        assert_eq!(
            found("crates/policy/Cargo.toml", text),
            [
                format!("crates/policy/Cargo.toml:5: nothing says what `nix` {why}"),
                format!("crates/policy/Cargo.toml:6: nothing says what `cc` {why}"),
            ]
        );
    }
}
