//! `sandgate config`: the settings that hold here, changes to them, and what is wrong with a file.

mod show;

use crate::settings::{CliSettings, SettingsError, config_home};
use crate::{exit, notes};
use clap::Subcommand;
use sandgate_config::{CONFIG_FILE, FileError, Owner, Problem, check, find_project, read_settings};
use sandgate_protocol::visible;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A file is not in order.
const NOT_IN_ORDER: u8 = 1;

const HELP: &str = "\
Examples:
  sandgate config show                                  what holds in this directory
  sandgate config show --origin                         and where each value comes from
  sandgate config set sandbox_mode workspace-write      in your config.toml
  sandgate config set --profile ci approval_policy never
  sandgate config validate                              your file, and that of the project here

Exit codes: 0; 1 if a file or a value is not in order; 125 if sandgate itself failed; 2 if this
command line makes no sense.";

/// What may follow `sandgate config`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliConfig {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    /// Print the settings that hold in a directory
    Show(show::CliShow),
    /// Change a setting in your config.toml, and leave the rest of it as it is
    Set(CliSet),
    /// Say what is wrong with a file, or with yours and that of the project here
    Validate(CliValidate),
}

#[derive(Debug, clap::Args)]
struct CliSet {
    /// The setting, like sandbox_workspace_write.network_access
    #[arg(value_name = "KEY")]
    key: String,

    /// Its value: TOML, or a text without quotes
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,

    /// Change it in this profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

#[derive(Debug, clap::Args)]
struct CliValidate {
    /// The file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Does it and says how this program is to end.
pub(crate) fn config(cli: &CliConfig) -> ExitCode {
    let done = match &cli.verb {
        CliVerb::Show(cli) => show::show(cli),
        CliVerb::Set(cli) => set(cli),
        CliVerb::Validate(cli) => validate(cli),
    };
    ExitCode::from(done.unwrap_or_else(|error| error.tell()))
}

fn set(cli: &CliSet) -> Result<u8, SettingsError> {
    let home = own_home()?;
    match sandgate_config::set(&home, cli.profile.as_deref(), &cli.key, &cli.value) {
        Ok(_) => Ok(0),
        Err(sandgate_config::EditError::File(error)) => {
            Err(SettingsError::failed(error.to_string()))
        }
        Err(error) => {
            complain(&error.to_string());
            Ok(NOT_IN_ORDER)
        }
    }
}

fn validate(cli: &CliValidate) -> Result<u8, SettingsError> {
    let files: Vec<(PathBuf, Owner)> = match &cli.file {
        Some(file) => vec![(file.clone(), Owner::Person)],
        None => {
            let own = own_home()?.join(CONFIG_FILE);
            let root = find_project(Path::new(".")).map(|project| project.root);
            let theirs = root.map(|root| root.join(".codex").join(CONFIG_FILE));
            let theirs = theirs.ok().filter(|theirs| is_another(theirs, &own));
            let all = [Some((own, Owner::Person)), theirs.map(|file| (file, Owner::Project))];
            all.into_iter().flatten().filter(|(file, _)| file.exists()).collect()
        }
    };
    if files.is_empty() {
        return Ok(say("There is no config.toml, neither yours nor one of this project.\n", 0));
    }
    let (mut told, mut code) = (String::new(), 0);
    for (file, owner) in files {
        let name = visible(&file.display().to_string());
        match looked_at(&file, owner) {
            Ok(warnings) if warnings.is_empty() => told += &format!("{name}: in order\n"),
            Ok(warnings) => {
                told += &format!("{}{name}: in order, but look at these\n", listed(&warnings));
            }
            Err(Wrong::File(error)) => {
                code = NOT_IN_ORDER;
                told += &format!("{}\n", visible(&error.to_string()));
            }
            Err(Wrong::Content(problems)) => {
                code = NOT_IN_ORDER;
                told += &format!("{}{name}: not in order, and not used\n", listed(&problems));
            }
        }
    }
    Ok(say(&told, code))
}

/// Why a file is not used.
enum Wrong {
    File(FileError),
    Content(Vec<Problem>),
}

/// Whether the person's own settings are in order: how many things there are to look at, or the first that
/// is wrong.
pub(crate) fn is_in_order(file: &Path) -> Result<usize, String> {
    match looked_at(file, Owner::Person) {
        Ok(warnings) => Ok(warnings.len()),
        Err(Wrong::File(error)) => Err(error.to_string()),
        Err(Wrong::Content(problems)) => {
            Err(problems.first().map(ToString::to_string).unwrap_or_default())
        }
    }
}

fn looked_at(file: &Path, owner: Owner) -> Result<Vec<Problem>, Wrong> {
    let text = read_settings(file, owner).map_err(Wrong::File)?;
    let checked = check(&text, &file.display().to_string(), owner).map_err(Wrong::Content)?;
    Ok(checked.warnings)
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}\n", visible(&problem.to_string()))).collect()
}

/// Who works in their home directory has the one file in the place of the other.
fn is_another(one: &Path, other: &Path) -> bool {
    one.canonicalize().ok() != other.canonicalize().ok() || !other.exists()
}

fn own_home() -> Result<PathBuf, SettingsError> {
    config_home()
        .ok_or_else(|| SettingsError::failed("there is no home directory to keep settings in"))
}

fn complain(what: &str) {
    let _ = io::stderr().write_all(&notes::error(&visible(what), None));
}

/// Prints, and gives the exit code.
fn say(text: &str, code: u8) -> u8 {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        // Like any other filter whose reader has seen enough: no word about it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(error) => {
            complain(&format!("cannot write the answer: {error}"));
            exit::FAILED
        }
    }
}
