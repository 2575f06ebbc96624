//! `sandgate policy check`: what rules decide, for whoever keeps a rules file.

use super::list::cited;
use super::tree::{BAD, GOOD, OPEN, Tree, painted};
use super::{command, rules_of, say, say_json};
use crate::{exit, notes};
use sandgate_runtime::policy::{
    Decision, ExplainedRule, ExplainedRuling, Ruling, judge, surroundings,
};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  sandgate policy check --rules team.toml                        are the rules in order?
  sandgate policy check --rules team.toml -- git push origin     what do they decide about this?
  sandgate policy check --rules team.toml -- 'make && git push'  and about this script?

Only these files count, not the rules in effect. The examples in a file (match, not_match) are
checked too.

Exit codes: 0 if the command is allowed, or without one if the rules are in order; 10 if a person is
asked; 20 if it is forbidden; 30 if no rule decides; 1 if a file is not in order; 2 if this command
line makes no sense.";

#[derive(Debug, clap::Args)]
#[command(
    after_help = HELP,
    override_usage = "sandgate policy check [OPTIONS] --rules FILE [-- COMMAND...]"
)]
pub(super) struct CliCheck {
    /// One word is a script for bash, several are a program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// The rules; can be repeated
    #[arg(long, value_name = "FILE", required = true)]
    rules: Vec<PathBuf>,

    /// Decide as if the command ran in this directory
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// What `sandgate policy check` is to do.
#[derive(Debug)]
pub(crate) struct CheckArguments {
    /// Nothing: only the rules are checked.
    argv: Vec<String>,
    rules: Vec<PathBuf>,
    directory: PathBuf,
    json: bool,
}

pub(super) fn understand(cli: CliCheck) -> Result<CheckArguments, clap::Error> {
    Ok(CheckArguments {
        argv: command("policy check", cli.command)?,
        rules: cli.rules,
        directory: cli.cd.unwrap_or_else(|| PathBuf::from(".")),
        json: cli.json,
    })
}

/// What was decided, for a program.
#[derive(serde::Serialize)]
struct Checked {
    decision: Option<&'static str>,
    sandbox: Option<&'static str>,
    rules: Vec<ExplainedRule>,
}

/// That all is well, for a program.
#[derive(serde::Serialize)]
struct InOrder {
    files: usize,
    rules: usize,
}

pub(super) fn check(arguments: &CheckArguments) -> u8 {
    let rules = match rules_of(&arguments.rules) {
        Ok(rules) => rules,
        Err(code) => return code,
    };
    if arguments.argv.is_empty() {
        let in_order = InOrder { files: arguments.rules.len(), rules: rules.iter().count() };
        return match arguments.json {
            true => say_json(&in_order),
            false => say(&said(&in_order)),
        };
    }
    let around = match surroundings(&arguments.directory) {
        Ok(around) => around,
        Err(error) => {
            let advice = notes::advice(error.kind());
            let _ = io::stderr().write_all(&notes::error(&error.to_string(), advice));
            return exit::of_failure(error.kind());
        }
    };
    let judgement = judge(&arguments.argv, &around, &rules);
    let ruling = judgement.ruling.as_ref();
    let told = match arguments.json {
        true => say_json(&checked(ruling)),
        false => say(&tree(ruling).render()),
    };
    if told == 0 { of(ruling) } else { told }
}

fn of(ruling: Option<&Ruling>) -> u8 {
    match ruling.map(|ruling| ruling.decision) {
        Some(Decision::Allow) => 0,
        Some(Decision::Prompt) => 10,
        Some(Decision::Forbid) => 20,
        None => 30,
    }
}

fn said(InOrder { files, rules }: &InOrder) -> String {
    let of = |count: &usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    format!("{} in {}: all in order.\n", of(rules, "rule"), of(files, "file"))
}

fn checked(ruling: Option<&Ruling>) -> Checked {
    let explained = ruling.map(ExplainedRuling::from);
    Checked {
        decision: explained.as_ref().map(|ruling| ruling.decision),
        sandbox: explained.as_ref().map(|ruling| ruling.sandbox),
        rules: explained.map(|ruling| ruling.rules).unwrap_or_default(),
    }
}

fn tree(ruling: Option<&Ruling>) -> Tree {
    let Some(ruling) = ruling.map(ExplainedRuling::from) else {
        return Tree::new("no rule decides");
    };
    let style = match ruling.decision {
        "allow" => GOOD,
        "prompt" => OPEN,
        _ => BAD,
    };
    let leaves = if ruling.sandbox == "bypass" { ", without the sandbox" } else { "" };
    let line = format!("{}{leaves}", painted(style, ruling.decision));
    Tree::new(line).with(ruling.rules.iter().map(cited))
}
