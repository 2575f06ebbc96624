//! The files: what is asked for, under what, and what is to come of it.
//!
//! In texts `{ws}`, `{outside}` and `{home}` are the workspace, a directory beside it and the person's
//! home; in what is expected `…` stands for any text.

use crate::story::{Seen, matches};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// One file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The file, for those who have to look for it.
    #[serde(skip)]
    pub(crate) name: String,
    /// What it shows, as a sentence.
    #[expect(dead_code, reason = "it is for people")]
    what: String,
    policy: OneOrMore,
    sandbox: OneOrMore,
    /// Whether this machine's own sandbox is `there` (which it is without a word) or `missing`.
    #[serde(default = "there")]
    machine: OneOrMore,
    /// Whether the call `stays` in the sandbox (which it does without a word) or asks for more: it
    /// `leaves`.
    #[serde(default = "stays")]
    call: OneOrMore,
    /// Why it asks to leave.
    #[serde(default)]
    pub(crate) justification: Option<String>,
    /// Scripts by the class that they are to have: `safe`, `unknown`, `dangerous`.
    command: BTreeMap<String, String>,
    /// Further commands, one after the other in the same session.
    #[serde(default)]
    pub(crate) then: Vec<String>,
    /// What a rule for the words of the command says: `forbid`, `prompt`, `allow` or
    /// `allow, bypass`.
    #[serde(default)]
    pub(crate) rule: Option<String>,
    /// Files that are there before.
    #[serde(default)]
    pub(crate) given: Vec<String>,
    /// What is answered, one after the other. After the last there is nobody to ask.
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// What happens.
    pub(crate) story: Vec<String>,
    /// What the model is told at the end.
    pub(crate) result: String,
    /// The decisions in the audit log.
    audit: Vec<String>,
    /// The files that are new or have changed.
    #[serde(default)]
    made: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn each(&self) -> Vec<&str> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more.iter().map(String::as_str).collect(),
        }
    }
}

fn there() -> OneOrMore {
    OneOrMore::One("there".to_owned())
}

fn stays() -> OneOrMore {
    OneOrMore::One("stays".to_owned())
}

/// Whether the machine has a sandbox of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    There,
    Missing,
}

/// Whether a call asks to leave the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Stays,
    Leaves,
}

/// A scenario with one value for each key.
#[derive(Debug, Clone)]
pub(crate) struct Case<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) policy: &'a str,
    pub(crate) sandbox: &'a str,
    pub(crate) machine: Machine,
    pub(crate) call: Call,
    pub(crate) class: &'a str,
    pub(crate) command: &'a str,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, sandbox, machine, call, class, .. } = self;
        write!(f, "{}: {policy}, {sandbox} {machine:?}, {call:?}, {class}", self.scenario.name)
    }
}

impl Scenario {
    /// All combinations of its values.
    pub(crate) fn cases(&self) -> impl Iterator<Item = Case<'_>> {
        let mut cases = Vec::new();
        for policy in self.policy.each() {
            for sandbox in self.sandbox.each() {
                for machine in self.machine.each() {
                    for call in self.call.each() {
                        for (class, command) in &self.command {
                            cases.push(Case {
                                scenario: self,
                                policy,
                                sandbox,
                                machine: machine_of(machine),
                                call: call_of(call),
                                class,
                                command,
                            });
                        }
                    }
                }
            }
        }
        cases.into_iter()
    }
}

fn machine_of(word: &str) -> Machine {
    match word {
        "there" => Machine::There,
        "missing" => Machine::Missing,
        other => panic!("{other:?} is no machine"),
    }
}

fn call_of(word: &str) -> Call {
    match word {
        "stays" => Call::Stays,
        "leaves" => Call::Leaves,
        other => panic!("{other:?} is no call"),
    }
}

impl Case<'_> {
    /// Whether the sandbox that would hold the command is ours.
    pub(crate) fn is_confined(&self) -> bool {
        self.machine == Machine::There
            && ["read-only", "workspace-write", "workspace-write+network"].contains(&self.sandbox)
    }

    /// What came out otherwise than the file says, if anything did.
    pub(crate) fn differences(&self, seen: &Seen) -> Option<String> {
        let Scenario { story, result, audit, made, .. } = self.scenario;
        let all = |expected: &[String], seen: &[String]| {
            expected.len() == seen.len()
                && expected.iter().zip(seen).all(|(expected, seen)| matches(expected, seen))
        };
        let class_is_right = seen.class.as_deref().is_none_or(|class| class == self.class);
        let as_written = class_is_right
            && all(story, &seen.story)
            && all(audit, &seen.audit)
            && all(made, &seen.made)
            && matches(result, &seen.result);
        if as_written {
            return None;
        }
        let list = |lines: &[String]| {
            let lines: Vec<String> = lines.iter().map(|line| format!("  {line:?},\n")).collect();
            format!("[\n{}]", lines.concat())
        };
        Some(format!(
            "{self} came out otherwise (judged {:?}):\nstory = {}\nresult = {:?}\naudit = {}\nmade = {}\n",
            seen.class,
            list(&seen.story),
            seen.result,
            list(&seen.audit),
            list(&seen.made),
        ))
    }
}

/// Where the files are.
pub(crate) const DIRECTORIES: [&str; 3] = ["matrix", "denied", "other"];

/// The files of some directories, in the order of their names.
pub(crate) fn scenarios_in(directories: &[&str]) -> Vec<Scenario> {
    let mut files: Vec<PathBuf> = directories
        .iter()
        .flat_map(|directory| std::fs::read_dir(place().join(directory)).unwrap().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

/// What the directories are in. The variable says it for those who run this test without building it.
fn place() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).join("tests/scenarios")
}

fn read(file: &Path) -> Scenario {
    let text = std::fs::read_to_string(file).unwrap();
    let mut scenario: Scenario =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    scenario.name = file.strip_prefix(place()).unwrap().display().to_string();
    scenario
}
