//! What is made from the definition of the command line: completions for shells, and manual pages.

use crate::{exit, notes};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  sandgate completions bash > ~/.local/share/bash-completion/completions/sandgate
  sandgate completions zsh > ~/.zfunc/_sandgate        (with ~/.zfunc in fpath)
  sandgate completions fish > ~/.config/fish/completions/sandgate.fish
  sandgate completions powershell >> $PROFILE";

/// What may follow `sandgate completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliCompletions {
    /// The shell that they are for
    shell: clap_complete::Shell,
}

/// What may follow `sandgate man`.
#[derive(Debug, clap::Args)]
pub(crate) struct CliMan {
    /// The directory that the pages go to, one for each command; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions for a shell.
pub(crate) fn completions(arguments: &CliCompletions, mut command: clap::Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "sandgate", &mut text);
    let mut stdout = io::stdout().lock();
    match stdout.write_all(&text).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::OUTPUT_CLOSED),
    }
}

/// Writes the manual pages.
pub(crate) fn man(arguments: &CliMan, mut command: clap::Command) -> ExitCode {
    command.build();
    match write_pages(&arguments.directory, &command, "sandgate") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let what = format!("cannot write to {}: {error}", arguments.directory.display());
            let _ = io::stderr().write_all(&notes::error(&what, None));
            ExitCode::from(exit::FAILED)
        }
    }
}

/// One page for a command, and one for each that may follow it.
pub(crate) fn write_pages(directory: &Path, command: &clap::Command, name: &str) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    std::fs::write(directory.join(format!("{name}.1")), page)?;
    let shown = |verb: &&clap::Command| !verb.is_hide_set() && verb.get_name() != "help";
    for verb in command.get_subcommands().filter(shown) {
        write_pages(directory, verb, &format!("{name}-{}", verb.get_name()))?;
    }
    Ok(())
}
