//! Where the person's settings are, and the rules in them.

use crate::notes;
use sandgate_runtime::policy::Rules;
use sandgate_runtime::rules::{self, ProjectRules};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The directory of the person's settings: the one that `CODEX_HOME` names, or `~/.codex`.
pub(crate) fn config_home() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty());
    let usual = || Some(sandgate_runtime::policy::home()?.join(".codex"));
    named.map(PathBuf::from).or_else(usual)
}

/// The rules of the person's own settings. Files that are not in order are told of, and not used.
pub(crate) fn rules_in_effect() -> Rules {
    let Some(home) = config_home() else { return Rules::default() };
    let loaded = rules::load(&home, ProjectRules::None);
    for error in &loaded.broken {
        let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
    }
    loaded.rules
}
