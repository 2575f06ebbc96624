//! `sandgate config show`: every setting that holds, and where it comes from.

use super::{CliSettings, SettingsError, say};
use crate::settings::sources;
use sandgate_config::{Entry, Loaded, Origin, TrustState, load};
use sandgate_protocol::visible_line;
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(super) struct CliShow {
    #[command(flatten)]
    settings: CliSettings,

    /// The settings for work in this directory
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// Say beside each value where it comes from
    #[arg(long)]
    origin: bool,

    /// Print it as JSON, with where each value comes from
    #[arg(long)]
    json: bool,
}

/// Everything, for a program.
#[derive(serde::Serialize)]
struct Shown<'a> {
    project: String,
    trust: &'static str,
    profile: Option<&'a str>,
    settings: Vec<ShownSetting>,
    not_in_effect: &'a [sandgate_config::Loosening],
    notes: &'a [String],
}

#[derive(serde::Serialize)]
struct ShownSetting {
    key: String,
    value: toml::Value,
    origin: Origin,
}

pub(super) fn show(cli: &CliShow) -> Result<u8, SettingsError> {
    let directory = cli.cd.clone().unwrap_or_else(|| PathBuf::from("."));
    let loaded = load(&sources(&cli.settings, &directory, Vec::new()))?;
    Ok(say(&if cli.json { as_json(&loaded) } else { as_lines(&loaded, cli.origin) }, 0))
}

fn trust_in_a_word(trust: &TrustState) -> &'static str {
    match trust {
        TrustState::Unknown => "unknown",
        TrustState::Untrusted => "untrusted",
        TrustState::Trusted => "trusted",
        TrustState::ChangedSince { .. } => "changed-since",
    }
}

fn as_json(loaded: &Loaded) -> String {
    let setting = |(key, entry)| {
        let Entry { value, origin } = entry;
        ShownSetting { key, value, origin }
    };
    let shown = Shown {
        project: loaded.project.root.display().to_string(),
        trust: trust_in_a_word(&loaded.trust),
        profile: loaded.config.profile(),
        settings: loaded.config.entries().map(setting).collect(),
        not_in_effect: loaded.config.withheld(),
        notes: &loaded.notes,
    };
    let mut line = serde_json::to_string(&shown).expect("settings are words, numbers and lists");
    line.push('\n');
    line
}

fn as_lines(loaded: &Loaded, with_origin: bool) -> String {
    let root = visible_line(&loaded.project.root.display().to_string());
    let trust = match &loaded.trust {
        TrustState::Unknown | TrustState::Untrusted => "not trusted",
        TrustState::Trusted => "trusted",
        TrustState::ChangedSince { .. } => "trusted, but not all that it loosens was seen",
    };
    let mut text = format!("# {root}: {trust}\n");
    let lines: Vec<(String, Origin)> = loaded
        .config
        .entries()
        .map(|(key, entry)| (visible_line(&format!("{key} = {}", entry.value)), entry.origin))
        .collect();
    let widths = lines.iter().map(|(line, _)| line.chars().count());
    let width = widths.filter(|width| *width <= 60).max().unwrap_or_default();
    for (line, origin) in lines {
        let _ = match with_origin {
            true => writeln!(text, "{line:width$}  # {}", visible_line(&origin.to_string())),
            false => writeln!(text, "{line}"),
        };
    }
    for loosening in loaded.config.withheld() {
        let _ = writeln!(text, "# not in effect, because you have not seen it: {loosening}");
    }
    for note in &loaded.notes {
        for line in note.lines() {
            let _ = writeln!(text, "# {}", visible_line(line));
        }
    }
    text
}
