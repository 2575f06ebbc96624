//! The person's settings: where they are, what is said about them on the command line, and what they
//! come to in a directory.

use crate::say::say;
use crate::trust::{self, Asked};
use crate::{exit, notes};
use sandgate_config::{Config, ConfigError, Layer, Loaded, Sources, TrustState};
use sandgate_protocol::visible;
use sandgate_runtime::policy::{Decision, Rule, Rules};
use sandgate_runtime::rules::{self, ProjectRules};
use std::path::{Path, PathBuf};

/// What may be said about settings.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CliSettings {
    /// Use this profile of your settings
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Set one of your settings for this command only, like -c audit.fsync=each; can be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
}

/// Why there are no settings. It stops whatever needs them: what was set may have been strict.
#[derive(Debug)]
pub(crate) struct SettingsError {
    message: String,
    code: u8,
}

impl SettingsError {
    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::USAGE }
    }

    /// Something could not be done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: exit::FAILED }
    }

    /// What happened.
    pub(crate) fn into_message(self) -> String {
        self.message
    }

    /// Says it on standard error, if anybody can hear it there, and gives the exit code.
    pub(crate) fn tell(&self) -> u8 {
        say(&notes::error(&visible(&self.message), None));
        self.code
    }
}

impl From<ConfigError> for SettingsError {
    fn from(error: ConfigError) -> Self {
        let code = match &error {
            ConfigError::Override(_) | ConfigError::Resolve(_) => exit::USAGE,
            _ => exit::FAILED,
        };
        Self { message: error.to_string(), code }
    }
}

/// What the settings come to.
#[derive(Debug)]
pub(crate) struct Effective {
    /// The settings.
    pub(crate) config: Config,
    /// The rules in effect.
    pub(crate) rules: Rules,
    /// The root of the project, if the person trusts it.
    pub(crate) trusted_root: Option<PathBuf>,
}

/// The directory of the person's settings: the one that `CODEX_HOME` names, or `~/.codex`. A relative
/// name starts where this program does, and stands for nothing else from then on.
pub(crate) fn config_home() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty());
    let usual = || Some(sandgate_runtime::policy::home()?.join(".codex"));
    let home = named.map(PathBuf::from).or_else(usual)?;
    std::path::absolute(home).ok()
}

/// Where the settings for a directory come from.
pub(crate) fn sources(cli: &CliSettings, directory: &Path, flags: Vec<Layer>) -> Sources {
    Sources {
        config_home: config_home(),
        home: sandgate_runtime::policy::home(),
        directory: directory.to_owned(),
        profile: cli.profile.clone(),
        overrides: cli.config.clone(),
        flags,
    }
}

/// The settings that hold in a directory. In one that the person has not been asked about, they are
/// asked whether they trust it, if they can be and it would change anything.
///
/// # Errors
/// When the person's own settings or command line are not in order.
pub(crate) fn effective(sources: &Sources, asked: Asked) -> Result<Effective, SettingsError> {
    let mut loaded = sandgate_config::load(sources)?;
    let open = matches!(loaded.trust, TrustState::Unknown | TrustState::ChangedSince { .. });
    if open && asked == Asked::Person && trust::ask(sources, &loaded)? {
        loaded = sandgate_config::load(sources)?;
    }
    for note in &loaded.notes {
        warn(note);
    }
    if let TrustState::ChangedSince { loosenings } = &loaded.trust {
        let first = loosenings.first().map(ToString::to_string).unwrap_or_default();
        let more = match loosenings.len() {
            0 | 1 => String::new(),
            number => format!(", and {} more", number - 1),
        };
        warn(&format!(
            "this project's settings would loosen yours, which does not count until you have seen \
             them with sandgate trust: {first}{more}"
        ));
    }
    let rules = rules_of(&loaded);
    let trusted_root = loaded.trust.is_trusted().then(|| loaded.project.root.clone());
    Ok(Effective { config: loaded.config, rules, trusted_root })
}

/// The rules in effect: the person's own, those of the files that the settings name, and those of a
/// trusted project. Files that are not in order are told of, and not used.
fn rules_of(loaded: &Loaded) -> Rules {
    let mut all = Rules::default();
    if let Some(home) = config_home() {
        let own = rules::load(&home, ProjectRules::None);
        for error in &own.broken {
            complain(&error.to_string());
        }
        all = own.rules;
    }
    for file in loaded.config.rules_files() {
        match named_rules(file) {
            Ok(rules) => {
                let in_reach = loaded.is_in_reach(file);
                if in_reach && rules.iter().any(is_allowing) {
                    warn(&format!(
                        "what {} allows does not count: commands may write where it is; keep it in \
                         another place, like {}",
                        file.display(),
                        config_home().unwrap_or_default().join("rules").display()
                    ));
                }
                all.extend(rules.into_iter().filter(|rule| !in_reach || !is_allowing(rule)));
            }
            Err(error) => complain(&error),
        }
    }
    for project in &loaded.rules {
        let label = project.file.path.display().to_string();
        // The text that was looked at is the one that counts: the file may have changed since.
        match Rules::parse_of_project(&project.file.text, &label) {
            Ok(rules) => {
                if !project.seen && rules.iter().any(is_allowing) {
                    warn(&format!(
                        "what {label} allows does not count until you have seen it with sandgate \
                         trust"
                    ));
                }
                all.extend(rules.into_iter().filter(|rule| project.seen || !is_allowing(rule)));
            }
            Err(error) => complain(&error.to_string()),
        }
    }
    all
}

/// The rules in a file that the person's settings name.
fn named_rules(file: &Path) -> Result<Vec<Rule>, String> {
    let text = sandgate_config::read_own(file).map_err(|error| error.to_string())?;
    let Some(text) = text else {
        return Err(format!("cannot open {}: there is no such file", file.display()));
    };
    Rules::parse(&text, &file.display().to_string()).map_err(|error| error.to_string())
}

fn is_allowing(rule: &Rule) -> bool {
    rule.decision == Decision::Allow
}

fn warn(what: &str) {
    say(&notes::warning(&visible(what)));
}

fn complain(what: &str) {
    say(&notes::error(what, None));
}
