//! `sandgate sessions`: the conversations that were written down.

use crate::settings::config_home;
use crate::{exit, notes};
use sandgate_agent::rollout::{self, Recorded, RolloutError};
use sandgate_protocol::{ContentItem, ResponseItem, Role, visible, visible_line};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What may follow `sandgate sessions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CliSessionsOnDisk {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List conversations, the last one first
    List {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Those of subagents too
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show a conversation
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Write a conversation to a file, or to standard output
    Export {
        /// Its id, or the beginning of it
        id: String,
        /// As what
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
        /// The file
        #[arg(long, short = 'o', value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Markdown,
    /// For programs: an array of all that was said and done
    Json,
}

/// Does it and says how this program is to end.
pub(crate) fn sessions(arguments: &CliSessionsOnDisk) -> ExitCode {
    match run(&arguments.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Rollout(error)) => {
            let code = match &error {
                RolloutError::NotFound(_) | RolloutError::Ambiguous(_) => exit::USAGE,
                _ => exit::FAILED,
            };
            let _ = io::stderr().write_all(&notes::error(&visible_line(&error.to_string()), None));
            ExitCode::from(code)
        }
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::from(exit::OUTPUT_CLOSED)
        }
        Err(Failure::Io(error)) => {
            let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
            ExitCode::from(exit::FAILED)
        }
    }
}

enum Failure {
    Rollout(RolloutError),
    Io(io::Error),
}

impl From<RolloutError> for Failure {
    fn from(error: RolloutError) -> Self {
        Self::Rollout(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn run(verb: &Verb) -> Result<(), Failure> {
    let home = config_home().unwrap_or_default();
    match verb {
        Verb::List { limit, all, json } => list(&home, *limit, *all, *json),
        Verb::Show { id } => print(markdown(&read(&home, id)?).as_bytes()),
        Verb::Export { id, format, output } => {
            let recorded = read(&home, id)?;
            let text = match format {
                Format::Markdown => markdown(&recorded),
                Format::Json => {
                    serde_json::to_string_pretty(&recorded.everything)
                        .map_err(|error| Failure::Io(io::Error::other(error)))?
                        + "\n"
                }
            };
            match output {
                None => print(text.as_bytes()),
                Some(file) => std::fs::write(file, text).map_err(|error| {
                    let what = format!("cannot write {}: {error}", file.display());
                    Failure::Io(io::Error::new(error.kind(), what))
                }),
            }
        }
    }
}

fn read(home: &Path, id: &str) -> Result<Recorded, RolloutError> {
    rollout::read(&rollout::find(home, id)?)
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    Ok(stdout.flush()?)
}

fn list(home: &Path, limit: usize, all: bool, json: bool) -> Result<(), Failure> {
    let found = rollout::list(home, limit, |meta| all || !meta.is_of_subagent())?;
    let mut text = String::new();
    for one in found {
        let meta = &one.meta;
        let prompt = one.prompt.as_deref().unwrap_or_default();
        // Writing to memory does not fail.
        let _ = if json {
            let line = serde_json::json!({
                "id": meta.id, "started": meta.started, "changed": one.changed, "cwd": meta.cwd,
                "source": meta.source, "model": meta.model, "provider": meta.provider,
                "prompt": prompt, "path": one.path,
            });
            writeln!(text, "{line}")
        } else {
            let changed = one.changed.to_zoned(jiff::tz::TimeZone::system());
            let prompt = beginning(prompt);
            let cwd = visible_line(&meta.cwd.to_string_lossy());
            writeln!(text, "{}  {}  {cwd}  {prompt}", meta.id, changed.strftime("%Y-%m-%d %H:%M"))
        };
    }
    if text.is_empty() && !json {
        let _ = io::stderr().write_all(&notes::hint("no conversation was written down yet"));
    }
    print(text.as_bytes())
}

/// How many characters of a prompt a list has.
const LONGEST_PROMPT: usize = 60;

/// The first line of a prompt that says something, or the beginning of it.
fn beginning(prompt: &str) -> String {
    let first = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = visible_line(first);
    match line.char_indices().nth(LONGEST_PROMPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A conversation for people, in which everything shows itself, whoever wrote it.
fn markdown(recorded: &Recorded) -> String {
    let meta = &recorded.meta;
    let mut text = format!("# Conversation {}\n\n", visible_line(&meta.id));
    let cwd = visible_line(&meta.cwd.to_string_lossy());
    let (provider, model) = (visible_line(&meta.provider), visible_line(&meta.model));
    let _ = writeln!(text, "- begun {}\n- in {cwd}\n- {provider} · {model}\n", meta.started);
    for item in &recorded.everything {
        let _ = match item {
            ResponseItem::Message { role, content } => {
                let who = match role {
                    Role::User => "You",
                    Role::Assistant => "Model",
                    Role::Developer => "Sandgate",
                };
                writeln!(text, "## {who}\n\n{}\n", quoted(&words(content)))
            }
            ResponseItem::Reasoning { summary, .. } if summary.is_empty() => Ok(()),
            ResponseItem::Reasoning { summary, .. } => {
                writeln!(text, "## Model, thinking\n\n{}\n", quoted(summary))
            }
            ResponseItem::ToolCall { name, input, .. } => {
                writeln!(text, "## Call of {}\n\n{}\n", visible_line(name), block(input.as_str()))
            }
            ResponseItem::ToolCallOutput { output, success, .. } => {
                let word = if *success { "Result" } else { "Result, failed" };
                writeln!(text, "## {word}\n\n{}\n", block(output))
            }
        };
    }
    text
}

fn words(content: &[ContentItem]) -> String {
    let word = |item: &ContentItem| match item {
        ContentItem::InputText { text } => text.clone(),
        ContentItem::InputImage { .. } => "[picture]".to_owned(),
    };
    content.iter().map(word).collect::<Vec<_>>().join("\n")
}

/// What somebody said, in which no line can be taken for one of ours.
fn quoted(text: &str) -> String {
    let text = visible(text);
    let lines = text.lines().map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Text in a fence that it cannot close.
fn block(text: &str) -> String {
    let text = visible(text);
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}
