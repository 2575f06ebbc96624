//! What of the person's environment commands are given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of your environment commands are given: first `inherit`, then `ignore_default_excludes`,
/// `exclude`, `set` and `include_only`, each applied to what the one before has left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShellEnvironmentSettings {
    /// Where it begins.
    #[schemars(extend("default" = "all", "examples" = ["core"]))]
    pub inherit: Option<InheritPolicy>,
    /// Keeps the variables whose names hold KEY, SECRET or TOKEN, which are left out otherwise.
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub ignore_default_excludes: Option<bool>,
    /// Patterns of names that are left out: `*` is any text, `?` one character, case does not matter.
    #[schemars(extend("default" = [], "examples" = [["AWS_*", "AZURE_*"]]))]
    pub exclude: Option<Vec<String>>,
    /// Variables that are set.
    #[schemars(extend("examples" = [{"CI": "1"}]))]
    pub set: BTreeMap<String, String>,
    /// If there are any, only names that match one of these patterns remain.
    #[schemars(extend("default" = [], "examples" = [["PATH", "HOME", "LC_*"]]))]
    pub include_only: Option<Vec<String>>,
}

/// Where a command's environment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InheritPolicy {
    /// With all of yours.
    All,
    /// With what nearly every program needs: `PATH`, `HOME`, `SHELL` and their like.
    Core,
    /// With nothing.
    None,
}
