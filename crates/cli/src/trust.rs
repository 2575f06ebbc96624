//! `sandgate trust`, and the question whether a directory is trusted.

use crate::decide::{ask_person, is_person_there};
use crate::settings::{CliSettings, SettingsError, config_home, sources};
use crate::{exit, notes};
use sandgate_config::{Loaded, Preview, Sources, TrustLevel, TrustState, load, preview, set_trust};
use sandgate_protocol::{visible_line, visible_remark};
use sandgate_runtime::policy::{Decision, Rules};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
In a directory that you trust commands may write in the workspace and you are asked when they want
more; elsewhere they only read, and you are asked before all that is not known to be safe. Only in
a project that you trust its own settings and rules (.codex) count, and of these what loosens yours
only as long as the files are as you were shown them.

Trust is for the root of the repository, with all its worktrees, and is kept in your config.toml.

Exit codes: 0 when it is done, or with --status when it is trusted; 1 with --status when it is not;
77 when you would have to look at something and there is no terminal to ask you at; 78 when you
said no; 125 if sandgate itself failed; 2 if this command line makes no sense.";

/// From so many lines on the first of them may not be on the screen any more.
const MANY: usize = 12;

/// What may follow `sandgate trust`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliTrust {
    /// The directory, or one below it [default: this one]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Do not trust it, and do not be asked about it again
    #[arg(long, conflicts_with = "status")]
    revoke: bool,

    /// Say whether it is trusted, and change nothing
    #[arg(long)]
    status: bool,

    /// Trust it with all that it loosens, without a question
    #[arg(long, conflicts_with_all = ["revoke", "status"])]
    yes: bool,
}

/// Whether a person may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// If one sits there.
    Person,
    /// Nobody is.
    Nobody,
}

/// Does it and says how this program is to end.
pub(crate) fn trust(cli: &CliTrust) -> ExitCode {
    let directory = cli.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let sources = sources(&CliSettings::default(), &directory, Vec::new());
    let done = match (cli.status, cli.revoke) {
        (true, _) => status(&sources),
        (_, true) => revoke(&sources),
        _ => give(&sources, cli.yes),
    };
    ExitCode::from(done.unwrap_or_else(|error| error.tell()))
}

fn status(sources: &Sources) -> Result<u8, SettingsError> {
    // A directory that is not there is told of.
    let previewed = preview(sources)?;
    let loaded = load(sources)?;
    let root = shown(&previewed.project.trust_root);
    let (word, code) = match &loaded.trust {
        TrustState::Unknown => ("not trusted; you have not been asked about it", 1),
        TrustState::Untrusted => ("not trusted", 1),
        TrustState::Trusted => ("trusted", 0),
        TrustState::ChangedSince { .. } => {
            ("trusted, but it loosens what you have not seen; that does not count", 0)
        }
    };
    let mut text = format!("{root}: {word}\n");
    if let TrustState::ChangedSince { loosenings } = &loaded.trust {
        for loosening in loosenings {
            let _ = writeln!(text, "  {loosening}");
        }
    }
    Ok(say(&text, code))
}

fn revoke(sources: &Sources) -> Result<u8, SettingsError> {
    let root = preview(sources)?.project.trust_root;
    note(&root, TrustLevel::Untrusted, &[])?;
    Ok(say(&format!("{} is not trusted\n", shown(&root)), 0))
}

fn give(sources: &Sources, yes: bool) -> Result<u8, SettingsError> {
    let preview = preview(sources)?;
    let root = shown(&preview.project.trust_root);
    let listed = loosened(&preview);
    if !yes && !listed.is_empty() {
        let question = format!("{}\nDo you trust it?\n", described(&preview, &listed));
        match ask_person(&question, "  [y] yes\n  [n] no", &["y", "n"]).as_deref() {
            Some("y") => {}
            Some(_) => {
                complain(&format!("{root} is not trusted: the answer was no"));
                return Ok(exit::REFUSED);
            }
            None => {
                complain(&format!("{root} loosens your settings, and nobody could be asked"));
                let _ = io::stderr().write_all(question.as_bytes());
                complain("trust it with sandgate trust at a terminal, or with --yes");
                return Ok(exit::NOBODY_DECIDED);
            }
        }
    }
    note(&preview.project.trust_root, TrustLevel::Trusted, &preview.noted())?;
    let mut text = format!("{root} is trusted\n");
    for line in listed {
        let _ = writeln!(text, "  {line}");
    }
    Ok(say(&text, 0))
}

/// Asks the person at the terminal about a directory that work is about to begin in. Says whether
/// something was written down.
///
/// # Errors
/// When the answer cannot be written down.
pub(crate) fn ask(sources: &Sources, loaded: &Loaded) -> Result<bool, SettingsError> {
    if !is_person_there() {
        return Ok(false);
    }
    let Some(open) = OpenTrust::of(sources, loaded) else { return Ok(false) };
    let (question, choices, answers): (_, _, &[&str]) = match open.changed {
        false => (
            format!("{}\nDo you trust it?\n", open.text),
            "  [y] yes\n  [n] no, and do not ask again\n  [l] ask me later",
            &["y", "n", "l"],
        ),
        true => (
            format!("{}\nYou trust it, but have not seen this. Shall it count?\n", open.text),
            "  [y] yes\n  [l] not now",
            &["y", "l"],
        ),
    };
    match ask_person(&question, choices, answers).as_deref() {
        Some("y") => open.settle(true).map(|()| true),
        Some("n") => open.settle(false).map(|()| true),
        _ => Ok(false),
    }
}

/// A directory that the person has to be asked about before work begins in it.
pub(crate) struct OpenTrust {
    /// What they should know.
    pub(crate) text: String,
    /// They trust it, and have not seen what it loosens now.
    pub(crate) changed: bool,
    preview: Preview,
}

impl OpenTrust {
    /// None if there is nothing to ask.
    pub(crate) fn of(sources: &Sources, loaded: &Loaded) -> Option<Self> {
        let preview = loaded.preview(sources).ok()?;
        let listed = loosened(&preview);
        let changed = loaded.trust.is_trusted();
        let asks = preview.matters && !(changed && listed.is_empty());
        asks.then(|| Self { text: described(&preview, &listed), changed, preview })
    }

    /// Writes the answer down.
    ///
    /// # Errors
    /// When that cannot be done.
    pub(crate) fn settle(&self, trusted: bool) -> Result<(), SettingsError> {
        let root = &self.preview.project.trust_root;
        match trusted {
            true => note(root, TrustLevel::Trusted, &self.preview.noted()),
            false => note(root, TrustLevel::Untrusted, &[]),
        }
    }
}

/// What there is to see before a directory is trusted.
pub(crate) struct Seen {
    /// It in words.
    pub(crate) text: String,
    /// Whether it loosens something.
    pub(crate) loosens: bool,
    /// What is noted when a person has seen it.
    pub(crate) noted: Vec<String>,
}

/// What is to be known about a directory before it is trusted.
///
/// # Errors
/// When it cannot be looked at.
pub(crate) fn look(directory: &Path) -> Result<Seen, SettingsError> {
    let sources = sources(&CliSettings::default(), directory, Vec::new());
    let preview = preview(&sources)?;
    let listed = loosened(&preview);
    let word = match load(&sources)?.trust {
        TrustState::Trusted | TrustState::ChangedSince { .. } => "You trust",
        TrustState::Unknown | TrustState::Untrusted => "You do not trust",
    };
    Ok(Seen {
        text: format!("{word} {}", described(&preview, &listed)),
        loosens: !listed.is_empty(),
        noted: preview.noted(),
    })
}

/// Writes down whether a directory is trusted, with the files that the person knows of.
///
/// # Errors
/// When that cannot be done.
pub(crate) fn decide(
    directory: &Path,
    trusted: bool,
    seen: &[String],
) -> Result<String, SettingsError> {
    let preview = preview(&sources(&CliSettings::default(), directory, Vec::new()))?;
    let root = &preview.project.trust_root;
    let word = match trusted {
        true => {
            note(root, TrustLevel::Trusted, seen)?;
            "is trusted"
        }
        false => {
            note(root, TrustLevel::Untrusted, &[])?;
            "is not trusted"
        }
    };
    Ok(format!("{} {word}", shown(root)))
}

/// Everything that trusting it would loosen, a line each.
fn loosened(preview: &Preview) -> Vec<String> {
    let unseen = |file: &&_| !preview.said.has_seen(file);
    let mut lines: Vec<String> = preview.untold().iter().map(ToString::to_string).collect();
    for file in preview.files.rules.iter().filter(unseen) {
        let name = visible_line(&file.name);
        // A file that is not in order is not used, and told of when it would be.
        for rule in Rules::parse_of_project(&file.text, &name).unwrap_or_default() {
            if rule.decision == Decision::Allow {
                let rule = visible_remark(&rule.to_string());
                lines.push(format!("no question where this rule holds: {rule} ({name})"));
            }
        }
    }
    lines
}

/// What the person should know about a directory.
fn described(preview: &Preview, listed: &[String]) -> String {
    let mut text = shown(&preview.project.root);
    if preview.project.root != preview.project.trust_root {
        let _ = write!(text, ", a worktree of {}", shown(&preview.project.trust_root));
    }
    text.push('\n');
    if !preview.said.is_trusted() {
        text.push_str(
            "If you trust it, commands may write there and run in the sandbox without a question, \
             and its own settings and rules count.\n",
        );
    }
    if !listed.is_empty() {
        text.push_str("Its settings and rules would loosen yours:\n");
    }
    for line in listed {
        let _ = writeln!(text, "  - {line}");
    }
    if listed.len() > MANY {
        let _ = writeln!(text, "These are {} in all; the first stand furthest up.", listed.len());
    }
    for problem in &preview.problems {
        let _ = writeln!(
            text,
            "Its settings are not in order and would not count: {}",
            visible_line(&problem.fault.to_string())
        );
    }
    text
}

fn note(root: &Path, level: TrustLevel, seen: &[String]) -> Result<(), SettingsError> {
    let Some(home) = config_home() else {
        return Err(SettingsError::failed("there is no home directory to keep settings in"));
    };
    set_trust(&home, root, level, seen)
        .map_err(|error| SettingsError::failed(error.to_string()))?;
    Ok(())
}

fn shown(path: &Path) -> String {
    visible_line(&path.display().to_string())
}

fn complain(what: &str) {
    let _ = io::stderr().write_all(&notes::error(what, None));
}

fn say(text: &str, code: u8) -> u8 {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(_) => exit::FAILED,
    }
}
