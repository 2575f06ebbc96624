//! The same program under another name: `sandgate-linux-sandbox POLICY -- COMMAND...`, for scripts and
//! programs that have a policy as JSON rather than a person's options.

use crate::arguments::as_text;
use crate::sandbox::{Confined, Report, SandboxArguments, Told};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};
use sandgate_protocol::SandboxPolicy;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name.
pub(crate) const NAME: &str = "sandgate-linux-sandbox";

/// The longest policy that is read.
const MOST_BYTES: usize = 64 * 1024;

/// Whether this program was called by that name.
pub(crate) fn is_meant() -> bool {
    let name = std::env::args_os().next();
    name.is_some_and(|name| Path::new(&name).file_name().is_some_and(|name| name == NAME))
}

const HELP: &str = r#"Example:
  sandgate-linux-sandbox '{"mode":"workspace-write"}' -- make test

The current directory is the workspace. Exit codes are those of sandgate sandbox."#;

/// Run one command confined as a policy says, in this terminal.
#[derive(Debug, Parser)]
#[command(name = NAME, version, after_help = HELP, max_term_width = 100)]
struct Cli {
    /// The policy, as JSON
    policy: String,

    /// The program and its arguments, without a shell
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// All that can be written.
#[cfg(test)]
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

/// Reads this program's own command line.
///
/// # Errors
/// When it makes no sense, or asks for help or the version; the error is what is to be printed.
pub(crate) fn read() -> Result<SandboxArguments, clap::Error> {
    understand(Cli::try_parse()?)
}

fn understand(Cli { policy, command }: Cli) -> Result<SandboxArguments, clap::Error> {
    let refused = |reason: String| {
        Cli::command().error(ErrorKind::InvalidValue, format!("the policy: {reason}"))
    };
    if policy.len() > MOST_BYTES {
        return Err(refused(format!("it is longer than {MOST_BYTES} bytes")));
    }
    let policy: SandboxPolicy =
        serde_json::from_str(&policy).map_err(|e| refused(e.to_string()))?;
    let command = as_text("sandbox", command)?;
    let workspace = PathBuf::from(".");
    let confined = Confined::Exactly(policy);
    let told = Told { report: Report::IfItFailed, file: None };
    Ok(SandboxArguments::Run { command, confined, workspace, told })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(words: &[&str]) -> Result<SandboxArguments, clap::Error> {
        understand(Cli::try_parse_from([NAME].iter().chain(words))?)
    }

    #[test]
    fn a_policy_is_read_whole_or_refused() {
        let json = r#"{"mode":"workspace-write","writable_roots":["/a b"],"network_access":true}"#;
        let SandboxArguments::Run { confined: Confined::Exactly(policy), command, .. } =
            understood(&[json, "--", "ls", "-l"]).unwrap()
        else {
            panic!("nothing is run");
        };
        assert_eq!(command, ["ls", "-l"]);
        assert_eq!(policy.network_access(), sandgate_protocol::NetworkAccess::Enabled);
        for wrong in ["", "{}", "[]", r#"{"mode":"other"}"#, r#"{"mode":"read-only","mode":1}"#] {
            assert!(understood(&[wrong, "--", "ls"]).is_err(), "{wrong}");
        }
        let long = format!("{json}{}", " ".repeat(MOST_BYTES));
        assert!(understood(&[&long, "--", "ls"]).is_err());
    }
}
