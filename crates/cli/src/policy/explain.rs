//! `sandgate policy explain`: the whole way from a command to what must happen before it runs.

use super::harmless::{line, word, written};
use super::list::cited;
use super::tree::{BAD, GOOD, OPEN, STRONG, Tree, painted};
use super::{command, rules_of, say, say_json};
use crate::arguments::usage_error;
use crate::session::{Asking, policy_flags, with_options};
use crate::settings::{self, CliSettings, Effective, SettingsError};
use crate::trust::Asked;
use crate::{exit, notes};
use anstyle::Style;
use clap::error::ErrorKind;
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPermissions};
use sandgate_protocol::{SandboxPolicy, SandboxType};
use sandgate_runtime::enforcement;
use sandgate_runtime::policy::Rules;
use sandgate_runtime::policy::{ClassName, ExplainedCommand, ExplainedRequirement, ExplainedTerms};
use sandgate_runtime::policy::{ExplainedWord, Explanation, SandboxAvailability, Terms};
use sandgate_runtime::policy::{Surroundings, judge, propose, surroundings};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  sandgate policy explain -- git push --force                  a program and its arguments
  sandgate policy explain -- 'cd src && grep -rn foo . | wc'   a script, for bash
  sandgate policy explain --ask-for-approval untrusted -- make in a session that asks more
  sandgate policy explain --escalated -- make install          if the call asks to leave the sandbox
  sandgate policy explain --json -- make                       for programs

Nothing is run. Without --rules the rules in effect count; sandgate policy list shows them.

Exit codes: 0 whatever the decision is; 1 if a file of --rules is not in order; 2 if this command
line makes no sense; 125 if there is no such directory.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP, override_usage = "sandgate policy explain [OPTIONS] -- COMMAND...")]
pub(super) struct CliExplain {
    /// One word is a script for bash, several are a program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// When a person is asked [default: as your settings say]
    #[arg(long, value_enum, value_name = "POLICY", alias = "approval")]
    ask_for_approval: Option<Asking>,

    /// What commands may touch [default: as your settings say]
    #[arg(long, value_enum, value_name = "MODE")]
    sandbox: Option<Mode>,

    /// Decide as if commands could write to this directory too; with workspace-write
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,

    /// Decide as if commands could reach the network; with workspace-write
    #[arg(long)]
    network: bool,

    /// Decide as if the call asked to leave the sandbox
    #[arg(long)]
    escalated: bool,

    /// Decide as if this machine had no sandbox
    #[arg(long)]
    no_sandbox_available: bool,

    /// Decide as if the command ran in this directory, which is the workspace
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// Use the rules of this file instead of those in effect; can be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: CliSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// Read anywhere, write nowhere, no network
    ReadOnly,
    /// Write in the workspace and in the directories for temporary files
    WorkspaceWrite,
    /// Something else confines commands already
    ExternalSandbox,
    /// No sandbox at all
    DangerFullAccess,
}

impl Mode {
    /// The same as the settings have it; there is none for a sandbox of somebody else's.
    fn as_setting(self) -> Option<crate::sandbox::Mode> {
        match self {
            Self::ReadOnly => Some(crate::sandbox::Mode::ReadOnly),
            Self::WorkspaceWrite => Some(crate::sandbox::Mode::WorkspaceWrite),
            Self::DangerFullAccess => Some(crate::sandbox::Mode::DangerFullAccess),
            Self::ExternalSandbox => None,
        }
    }
}

/// What `sandgate policy explain` is to do.
#[derive(Debug)]
pub(crate) struct ExplainArguments {
    argv: Vec<String>,
    asking: Option<Asking>,
    mode: Option<Mode>,
    writable: Vec<PathBuf>,
    network: bool,
    settings: CliSettings,
    permissions: SandboxPermissions,
    pretend_there_is_no_sandbox: bool,
    directory: PathBuf,
    /// Nothing: those in effect.
    rules: Vec<PathBuf>,
    json: bool,
}

pub(super) fn understand(cli: CliExplain) -> Result<ExplainArguments, clap::Error> {
    let mode = cli.sandbox.unwrap_or(Mode::WorkspaceWrite);
    if mode != Mode::WorkspaceWrite && (cli.network || !cli.writable.is_empty()) {
        let message = crate::session::ONLY_WORKSPACE_WRITE.to_owned();
        return Err(usage_error("policy explain", ErrorKind::ArgumentConflict, message));
    }
    Ok(ExplainArguments {
        argv: command("policy explain", cli.command)?,
        asking: cli.ask_for_approval,
        mode: cli.sandbox,
        writable: cli.writable,
        network: cli.network,
        settings: cli.settings,
        permissions: match cli.escalated {
            true => SandboxPermissions::RequireEscalated,
            false => SandboxPermissions::UseDefault,
        },
        pretend_there_is_no_sandbox: cli.no_sandbox_available,
        directory: cli.cd.unwrap_or_else(|| PathBuf::from(".")),
        rules: cli.rules,
        json: cli.json,
    })
}

/// The session that the command would run in.
struct Policies {
    approval: AskForApproval,
    sandbox: SandboxPolicy,
    rules: Rules,
}

/// What the settings and the options come to.
fn policies(arguments: &ExplainArguments) -> Result<Policies, SettingsError> {
    let mode = arguments.mode.and_then(Mode::as_setting);
    let flags = policy_flags(arguments.asking, mode, false);
    let sources = settings::sources(&arguments.settings, &arguments.directory, flags);
    let Effective { config, rules, .. } = settings::effective(&sources, Asked::Nobody)?;
    let sandbox = match arguments.mode {
        Some(Mode::ExternalSandbox) => {
            SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted }
        }
        _ => with_options(config.sandbox_policy(), &arguments.writable, arguments.network)?,
    };
    Ok(Policies { approval: config.approval_policy(), sandbox, rules })
}

pub(super) fn explain(arguments: &ExplainArguments) -> u8 {
    let policies = match policies(arguments) {
        Ok(policies) => policies,
        Err(error) => return error.tell(),
    };
    let rules = match arguments.rules.as_slice() {
        [] => policies.rules.clone(),
        files => match rules_of(files) {
            Ok(rules) => rules,
            Err(code) => return code,
        },
    };
    let around = match surroundings(&arguments.directory) {
        Ok(around) => beside(around, &policies.sandbox),
        Err(error) => {
            let advice = notes::advice(error.kind());
            let _ = io::stderr().write_all(&notes::error(&error.to_string(), advice));
            return exit::of_failure(error.kind());
        }
    };
    let judgement = judge(&arguments.argv, &around, &rules);
    let proposal = propose(&judgement, None);
    let terms = terms(arguments, &policies);
    let explanation =
        sandgate_runtime::policy::explain(&arguments.argv, &judgement, &terms, proposal);
    match arguments.json {
        true => say_json(&explanation),
        false => say(&tree(&explanation).render()),
    }
}

/// The same for a command of a session whose policies are known, without colours.
pub(crate) fn in_words(
    argv: &[String],
    directory: &std::path::Path,
    approval: AskForApproval,
    sandbox: &SandboxPolicy,
    rules: &Rules,
    permissions: SandboxPermissions,
) -> String {
    let around = match surroundings(directory) {
        Ok(around) => beside(around, sandbox),
        Err(error) => return error.to_string(),
    };
    let judgement = judge(argv, &around, rules);
    let proposal = propose(&judgement, None);
    let availability = match enforcement().sandbox {
        SandboxType::None => SandboxAvailability::Unavailable,
        _ => SandboxAvailability::Available,
    };
    let terms = Terms { approval, sandbox, permissions, availability };
    let explanation = sandgate_runtime::policy::explain(argv, &judgement, &terms, proposal);
    anstream::adapter::strip_str(&tree(&explanation).render()).to_string()
}

/// Adds what the session may write to beside its workspace.
fn beside(mut around: Surroundings, policy: &SandboxPolicy) -> Surroundings {
    if let SandboxPolicy::WorkspaceWrite { writable_roots, .. } = policy {
        around.roots.extend(writable_roots.iter().cloned());
    }
    around
}

fn terms<'a>(arguments: &ExplainArguments, policies: &'a Policies) -> Terms<'a> {
    let missing =
        arguments.pretend_there_is_no_sandbox || enforcement().sandbox == SandboxType::None;
    Terms {
        approval: policies.approval,
        sandbox: &policies.sandbox,
        permissions: arguments.permissions,
        availability: match missing {
            true => SandboxAvailability::Unavailable,
            false => SandboxAvailability::Available,
        },
    }
}

/// All of it, for a person.
fn tree(explanation: &Explanation) -> Tree {
    let words: Vec<String> = explanation.argv.iter().map(|text| word(text)).collect();
    let mut tree = Tree::new(painted(STRONG, words.join(" ")));
    tree.push(reading(explanation));
    tree.push(format!("class: {}", classed(explanation.class, explanation.reason.as_deref())));
    tree.push(match &explanation.ruling {
        None => {
            let withheld = explanation.withheld.as_ref().map(|why| line(why));
            Tree::new("rules: none decides").with(withheld)
        }
        Some(ruling) => {
            let leaves = if ruling.sandbox == "bypass" { ", without the sandbox" } else { "" };
            let line = format!("rules: {}{leaves}", ruling.decision);
            Tree::new(line).with(ruling.rules.iter().map(cited))
        }
    });
    tree.push(session(&explanation.terms));
    tree.push(verdict(&explanation.requirement));
    tree
}

/// Who reads it, and what that reader finds in it.
fn reading(explanation: &Explanation) -> Tree {
    let count = match explanation.commands.len() {
        1 => "1 command".to_owned(),
        count => format!("{count} commands"),
    };
    let line = match (explanation.reader, &explanation.opaque) {
        (reader, Some(why)) => {
            let unclear = painted(OPEN, "not understood");
            let found = if explanation.commands.is_empty() { "" } else { "; made out of it:" };
            format!("read by {reader}, {unclear}: {}{found}", line(why))
        }
        ("kernel", None) => {
            // The whole is its one command, and is shown above and below.
            return Tree::new("a program and its arguments, read by no shell");
        }
        (shell, None) => format!("read by {shell}: {count}"),
    };
    Tree::new(line).with(explanation.commands.iter().map(part))
}

fn part(command: &ExplainedCommand) -> Tree {
    let mut words = Vec::new();
    if !command.connective.is_empty() {
        words.push(command.connective.to_owned());
    }
    for assignment in &command.assignments {
        words.push(format!("{}={}", line(&assignment.name), as_typed(&assignment.value)));
    }
    words.extend(command.words.iter().map(as_typed));
    for redirection in &command.redirections {
        let descriptor = redirection.descriptor.map(|number| number.to_string());
        let target = as_typed(&redirection.target);
        let gap = if redirection.operator.ends_with('&') { "" } else { " " };
        let descriptor = descriptor.unwrap_or_default();
        words.push(format!("{descriptor}{}{gap}{target}", redirection.operator));
    }
    Tree::new(words.join(" "))
        .with([classed(command.class, command.reason.as_deref())])
        .with(command.rules.iter().map(cited))
}

/// A word as it would be typed. What is not literal must not be quoted.
fn as_typed(shown: &ExplainedWord) -> String {
    match shown.shape {
        "literal" => word(&shown.text),
        _ => written(&shown.text),
    }
}

fn classed(class: ClassName, reason: Option<&str>) -> String {
    let (style, name): (Style, &str) = match class {
        ClassName::Safe => (GOOD, "safe"),
        ClassName::Unknown => (OPEN, "unknown"),
        ClassName::Dangerous => (BAD, "dangerous"),
    };
    match reason {
        None => painted(style, name),
        Some(reason) => format!("{}: {}", painted(style, name), line(reason)),
    }
}

fn session(terms: &ExplainedTerms) -> Tree {
    let approval = match terms.approval_policy {
        AskForApproval::UnlessTrusted => "untrusted",
        AskForApproval::OnFailure => "on-failure",
        AskForApproval::OnRequest => "on-request",
        AskForApproval::Never => "never",
    };
    let mut session = Tree::new("session");
    session.push(format!("approval policy: {approval}"));
    let confines = matches!(terms.sandbox_mode, "read-only" | "workspace-write");
    let missing =
        if confines && !terms.sandbox_available { ", and no sandbox available" } else { "" };
    session.push(format!("sandbox mode: {}{missing}", terms.sandbox_mode));
    for root in &terms.writable {
        session.push(format!("writable too: {}", line(root)));
    }
    if terms.network {
        session.push("the network can be reached".to_owned());
    }
    if terms.sandbox_permissions == SandboxPermissions::RequireEscalated {
        session.push("the call asks to leave the sandbox".to_owned());
    }
    session
}

/// What must happen.
fn verdict(requirement: &ExplainedRequirement) -> Tree {
    match requirement {
        ExplainedRequirement::Skip { bypass_sandbox, sandbox } => {
            Tree::new(format!("{}, nobody is asked", painted(GOOD, "runs")))
                .with([confined_by(*bypass_sandbox, sandbox)])
        }
        ExplainedRequirement::NeedsApproval { reason, bypass_sandbox, sandbox, proposed_rule } => {
            let line = format!("{}: {}", painted(OPEN, "a person is asked"), line(reason));
            let mut tree = Tree::new(line);
            tree.push(format!("after a yes: {}", confined_by(*bypass_sandbox, sandbox)));
            if let Some(rule) = proposed_rule {
                let words: Vec<String> = rule.prefix.iter().map(|text| word(text)).collect();
                let leaves = if rule.sandbox == "bypass" { " without the sandbox" } else { "" };
                tree.push(format!("proposed rule: allow{leaves} {} …", words.join(" ")));
            }
            tree
        }
        ExplainedRequirement::Forbidden { reason } => Tree::new(painted(BAD, "refused"))
            .with([format!("the model is told: {}", line(reason))]),
    }
}

fn confined_by(bypassed: bool, sandbox: &str) -> String {
    match (bypassed, sandbox) {
        (true, _) => "without the sandbox, with all your rights".to_owned(),
        (false, "none") => "without a sandbox, because the mode asks for none".to_owned(),
        (false, "external-sandbox") => "in the sandbox that is around us already".to_owned(),
        (false, mode) => format!("in the sandbox, {mode}"),
    }
}

#[cfg(test)]
mod tests;
