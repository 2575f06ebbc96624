//! `sandgate policy`: what becomes of a command, and why. Nothing is run.

mod check;
mod classify;
mod explain;
mod harmless;
mod list;
mod tree;

pub(crate) use explain::in_words;

use crate::arguments::as_text;
use crate::{exit, notes};
use anstream::AutoStream;
use check::CheckArguments;
use clap::Subcommand;
use explain::ExplainArguments;
use list::ListArguments;
use sandgate_runtime::policy::Rules;
use sandgate_runtime::rules::{self, RulesFileError};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Something that was given is not in order: a rules file, or a line to be classified.
const NOT_IN_ORDER: u8 = 1;

const HELP: &str = "\
A rule is kept when you answer a question with r, or is written into a file that ends in .toml in
the directory rules of your settings:

  [[rule]]
  prefix = [\"cargo\", [\"test\", \"build\"]]
  decision = \"allow\"

sandgate policy check --rules FILE says whether such a file is in order; docs/rules.md says more.";

/// What may follow `sandgate policy`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliPolicy {
    #[command(subcommand)]
    verb: CliPolicyVerb,
}

#[derive(Debug, Subcommand)]
enum CliPolicyVerb {
    /// Show how the decision about a command comes about
    Explain(explain::CliExplain),
    /// Say what rules decide about a command, or only whether the rules are in order
    Check(check::CliCheck),
    /// List the rules in effect
    List(list::CliList),
    /// Say for each line of standard input which class a command is in
    Classify(classify::CliClassify),
}

/// What `sandgate policy` is to do.
#[derive(Debug)]
pub(crate) enum PolicyArguments {
    Explain(ExplainArguments),
    Check(CheckArguments),
    List(ListArguments),
    Classify,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliPolicy) -> Result<PolicyArguments, clap::Error> {
    match cli.verb {
        CliPolicyVerb::Explain(cli) => explain::understand(cli).map(PolicyArguments::Explain),
        CliPolicyVerb::Check(cli) => check::understand(cli).map(PolicyArguments::Check),
        CliPolicyVerb::List(cli) => Ok(PolicyArguments::List(cli.into())),
        CliPolicyVerb::Classify(_) => Ok(PolicyArguments::Classify),
    }
}

/// Does it and says how this program is to end.
pub(crate) fn policy(arguments: PolicyArguments) -> ExitCode {
    let code = match arguments {
        PolicyArguments::Explain(arguments) => explain::explain(&arguments),
        PolicyArguments::Check(arguments) => check::check(&arguments),
        PolicyArguments::List(arguments) => list::list(&arguments),
        PolicyArguments::Classify => classify::classify(),
    };
    ExitCode::from(code)
}

/// The words of a command. One word is a script, which bash would read.
fn command(verb: &str, words: Vec<OsString>) -> Result<Vec<String>, clap::Error> {
    let words = as_text(verb, words)?;
    match <[String; 1]>::try_from(words) {
        Ok([script]) => Ok(vec!["bash".to_owned(), "-lc".to_owned(), script]),
        Err(words) => Ok(words),
    }
}

/// The rules of these files.
///
/// # Errors
/// When one of them is not in order; the error has been told, and is the exit code.
fn rules_of(files: &[PathBuf]) -> Result<Rules, u8> {
    let mut all = Rules::default();
    for file in files {
        match rules::load_file(file) {
            Ok(rules) => all.extend(rules.iter().cloned()),
            Err(error) => {
                complain(&error);
                return Err(NOT_IN_ORDER);
            }
        }
    }
    Ok(all)
}

/// Says on standard error why a file is not used, if anybody can hear it there.
fn complain(error: &RulesFileError) {
    let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
}

/// Prints, with colours only where they are wanted.
fn say(text: &str) -> u8 {
    let mut stdout = AutoStream::auto(io::stdout());
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    of_writing(&written)
}

/// Prints something as one line of JSON.
fn say_json(report: &impl serde::Serialize) -> u8 {
    let mut line = serde_json::to_vec(report).expect("words and numbers are valid JSON");
    line.push(b'\n');
    let mut stdout = io::stdout();
    let written = stdout.write_all(&line).and_then(|()| stdout.flush());
    of_writing(&written)
}

/// The exit code after something was printed, or was not.
fn of_writing(written: &io::Result<()>) -> u8 {
    match written {
        Ok(()) => 0,
        // Like any other filter whose reader has seen enough: no word about it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        Err(error) => {
            let what = format!("cannot write the answer: {error}");
            let _ = io::stderr().write_all(&notes::error(&what, None));
            exit::FAILED
        }
    }
}
