//! `sandgate policy list`: the rules in effect.

use super::harmless::{line, word};
use super::tree::{BAD, FAINT, GOOD, OPEN, STRONG, Tree, painted};
use super::{rules_of, say, say_json};
use crate::settings::{self, CliSettings, config_home};
use crate::trust::Asked;
use sandgate_runtime::policy::{ExplainedPattern, ExplainedRule, obeys_files};
use std::path::{Path, PathBuf};

const HELP: &str = "\
Rules are in the files rules/*.toml of your settings, which are in ~/.codex unless CODEX_HOME names
another place, in the files that your settings name, and in .codex/rules/*.toml of a project that
you trust. A file that is not in order is told of, and none of its rules is used.

Exit codes: 0; 1 if a file of --rules is not in order; 2 if this command line makes no sense.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct CliList {
    /// List the rules of this file instead of those in effect; can be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,

    /// Print them as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: CliSettings,
}

/// What `sandgate policy list` is to do.
#[derive(Debug)]
pub(crate) struct ListArguments {
    rules: Vec<PathBuf>,
    json: bool,
    settings: CliSettings,
}

impl From<CliList> for ListArguments {
    fn from(cli: CliList) -> Self {
        Self { rules: cli.rules, json: cli.json, settings: cli.settings }
    }
}

#[derive(serde::Serialize)]
struct Listed {
    rules: Vec<ExplainedRule>,
}

pub(super) fn list(arguments: &ListArguments) -> u8 {
    let rules = match arguments.rules.as_slice() {
        [] => {
            let sources = settings::sources(&arguments.settings, Path::new("."), Vec::new());
            match settings::effective(&sources, Asked::Nobody) {
                Ok(effective) => effective.rules,
                Err(error) => return error.tell(),
            }
        }
        files => match rules_of(files) {
            Ok(rules) => rules,
            Err(code) => return code,
        },
    };
    let rules: Vec<ExplainedRule> = rules.iter().map(ExplainedRule::from).collect();
    match arguments.json {
        true => say_json(&Listed { rules }),
        false if rules.is_empty() => say(&nothing()),
        false => say(&by_file(&rules)),
    }
}

fn nothing() -> String {
    let place = config_home().map(|home| home.join("rules").display().to_string());
    let place = place.unwrap_or_else(|| "your settings".to_owned());
    format!("There are no rules. Files that end in .toml are looked for in {}.\n", line(&place))
}

/// A tree for each file.
fn by_file(rules: &[ExplainedRule]) -> String {
    let files = rules.chunk_by(|one, next| one.file == next.file);
    let trees = files.map(|rules| {
        let file = rules.first().map(|rule| line(&rule.file)).unwrap_or_default();
        Tree::new(painted(STRONG, file)).with(rules.iter().map(listed)).render()
    });
    trees.collect()
}

fn listed(rule: &ExplainedRule) -> Tree {
    let number = painted(FAINT, format_args!("{:>4}", rule.line));
    Tree::new(format!("{number}  {}", in_words(rule))).with(justification(rule))
}

/// A rule where it matters which one it is: with its place.
pub(super) fn cited(rule: &ExplainedRule) -> Tree {
    let place = painted(FAINT, format_args!("({}:{})", line(&rule.file), rule.line));
    Tree::new(format!("{} {place}", in_words(rule))).with(justification(rule))
}

fn in_words(rule: &ExplainedRule) -> String {
    let style = match rule.decision {
        "allow" => GOOD,
        "prompt" => OPEN,
        _ => BAD,
    };
    let prefix: Vec<String> = rule.prefix.iter().map(pattern).collect();
    let leaves = if rule.sandbox == "bypass" { " without the sandbox:" } else { "" };
    format!("{}{leaves} {} …", painted(style, rule.decision), prefix.join(" "))
}

/// The rule's reason, and what it means where a program obeys files that others may write.
fn justification(rule: &ExplainedRule) -> impl Iterator<Item = String> {
    let obeys = rule.sandbox == "bypass"
        && match rule.prefix.first() {
            Some(ExplainedPattern::One(name)) => obeys_files(name),
            Some(ExplainedPattern::OneOf(names)) => names.iter().any(|name| obeys_files(name)),
            None => false,
        };
    let means =
        "files decide what this runs without the sandbox: whoever can write them can leave it";
    let why = rule.justification.as_ref().map(|why| line(why));
    why.into_iter().chain(obeys.then(|| means.to_owned()))
}

fn pattern(pattern: &ExplainedPattern) -> String {
    match pattern {
        ExplainedPattern::One(one) if one == "*" => "*".to_owned(),
        ExplainedPattern::One(one) => word(one),
        ExplainedPattern::OneOf(words) => {
            words.iter().map(|one| word(one)).collect::<Vec<_>>().join("|")
        }
    }
}
