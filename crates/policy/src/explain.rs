//! A decision that explains itself: everything that led from a command vector to what must happen
//! before it runs, as plain data.
//!
//! The names on the wire are a promise to programs that read `sandgate policy explain --json`, so
//! they are written here, apart from the types that the judgement works with. How a person sees it
//! is for a front end.

use crate::command::{Connective, RedirectionKind, Shape, SimpleCommand, Word};
use crate::judge::{Class, Judgement, Part, Ruling};
use crate::requirement::requirement;
use crate::requirement::{ApprovalRequirement, BypassSandbox, SandboxAvailability, Terms};
use crate::rules::{Decision, PatternWord, ProposedRule, Rule, RuleSandbox};
use crate::script::{Reader, ShellKind};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPermissions, SandboxPolicy};
use serde::Serialize;

/// Everything that led to a decision, and the decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The command vector.
    pub argv: Vec<String>,
    /// Who reads it: `kernel`, or the name of a shell.
    pub reader: &'static str,
    /// Why it was not understood, if it was not.
    pub opaque: Option<String>,
    /// The commands that it may run, or that could be made out.
    pub commands: Vec<ExplainedCommand>,
    /// What it is as a whole.
    pub class: ClassName,
    /// Why it is not safe.
    pub reason: Option<String>,
    /// What the rules say of the whole.
    pub ruling: Option<ExplainedRuling>,
    /// Why rules that allow some of it do not allow all of it.
    pub withheld: Option<String>,
    /// What the session and the call say.
    pub terms: ExplainedTerms,
    /// What must happen before it runs.
    pub requirement: ExplainedRequirement,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedCommand {
    /// How it hangs on the one before it, as a shell would write it; empty for the first.
    pub connective: &'static str,
    /// What is set before it.
    pub assignments: Vec<ExplainedAssignment>,
    /// The program and its arguments.
    pub words: Vec<ExplainedWord>,
    /// Where its descriptors lead.
    pub redirections: Vec<ExplainedRedirection>,
    /// What it is by itself.
    pub class: ClassName,
    /// Why it is not safe.
    pub reason: Option<String>,
    /// The rules that match it.
    pub rules: Vec<ExplainedRule>,
}

/// `NAME=value` before a program's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedAssignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: ExplainedWord,
}

/// One word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedWord {
    /// The word after quoting was undone; if it is not literal, as it was written.
    pub text: String,
    /// What is known about it: `literal`, `pattern`, `home` or `dynamic`.
    pub shape: &'static str,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRedirection {
    /// The descriptor that is written before it, if one is.
    pub descriptor: Option<u32>,
    /// The operator, as a shell would write it.
    pub operator: &'static str,
    /// Where it leads, or what is fed in.
    pub target: ExplainedWord,
    /// Whether the target is a file that is written to.
    pub writes: bool,
}

/// How far a command can be trusted, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassName {
    /// It writes nothing, runs nothing else and reaches no network.
    Safe,
    /// Nothing is known for or against it.
    Unknown,
    /// It can do lasting harm.
    Dangerous,
}

/// What the rules say of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRuling {
    /// `allow`, `prompt` or `forbid`.
    pub decision: &'static str,
    /// `keep` or `bypass`.
    pub sandbox: &'static str,
    /// The rules behind it.
    pub rules: Vec<ExplainedRule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRule {
    /// Its words, as in a rules file.
    pub prefix: Vec<ExplainedPattern>,
    /// `allow`, `prompt` or `forbid`.
    pub decision: &'static str,
    /// `keep` or `bypass`.
    pub sandbox: &'static str,
    /// Why, in its author's words.
    pub justification: Option<String>,
    /// The file that it is written in.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// One word of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ExplainedPattern {
    /// This word; `*` is any.
    One(String),
    /// One of these, and a `*` is a star.
    OneOf(Vec<String>),
}

/// What the session and the call say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedTerms {
    /// When a person is asked.
    pub approval_policy: AskForApproval,
    /// The name of the sandbox mode.
    pub sandbox_mode: &'static str,
    /// Whether the call asks to leave the sandbox.
    pub sandbox_permissions: SandboxPermissions,
    /// Whether this machine can confine a command.
    pub sandbox_available: bool,
    /// Whether commands may reach the network, where the session says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Where commands may write beside the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
}

/// What must happen before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ExplainedRequirement {
    /// Nothing.
    Skip {
        /// Whether it leaves the sandbox that the mode asks for.
        bypass_sandbox: bool,
        /// What confines it: `read-only`, `workspace-write`, `external-sandbox` or `none`.
        sandbox: &'static str,
    },
    /// A person must agree.
    NeedsApproval {
        /// Why.
        reason: String,
        /// Whether it then leaves the sandbox that the mode asks for.
        bypass_sandbox: bool,
        /// What confines it then.
        sandbox: &'static str,
        /// The rule that the approval could carry.
        proposed_rule: Option<ExplainedProposal>,
    },
    /// It does not run.
    Forbidden {
        /// Why, and what to do instead.
        reason: String,
    },
}

/// A rule that an approval could carry, so that nobody is asked about the like again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedProposal {
    /// The words that such commands begin with.
    pub prefix: Vec<String>,
    /// `keep` or `bypass`.
    pub sandbox: &'static str,
}

/// Explains what must happen before a judged command vector runs. `proposed_rule` is what an
/// approval could carry.
///
/// ```
/// use sandgate_policy::explain::{ClassName, explain};
/// use sandgate_policy::rules::{Rules, propose};
/// use sandgate_policy::{SandboxAvailability, Surroundings, Terms, judge};
/// use sandgate_protocol::{AskForApproval, SandboxPermissions, SandboxPolicy};
///
/// let argv = ["npm", "install"].map(str::to_owned);
/// let judgement = judge(&argv, &Surroundings::default(), &Rules::default());
/// let terms = Terms {
///     approval: AskForApproval::UnlessTrusted,
///     sandbox: &SandboxPolicy::ReadOnly,
///     permissions: SandboxPermissions::UseDefault,
///     availability: SandboxAvailability::Available,
/// };
/// let explanation = explain(&argv, &judgement, &terms, propose(&judgement, None));
/// assert_eq!(explanation.class, ClassName::Unknown);
/// println!("{}", serde_json::to_string_pretty(&explanation)?);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn explain(
    argv: &[String],
    judgement: &Judgement,
    terms: &Terms<'_>,
    proposed_rule: Option<ProposedRule>,
) -> Explanation {
    let reading = &judgement.reading;
    let parts = reading.commands.iter().zip(&judgement.parts).enumerate();
    let (class, reason) = class_of(&judgement.class);
    Explanation {
        argv: argv.to_vec(),
        reader: reader(reading.reader),
        opaque: reading.opaque.as_ref().map(ToString::to_string),
        commands: parts
            .map(|(index, (command, part))| {
                explain_command(command, part, danger_in(&judgement.class, index))
            })
            .collect(),
        class,
        reason,
        ruling: judgement.ruling.as_ref().map(ExplainedRuling::from),
        withheld: judgement.withheld.as_ref().map(ToString::to_string),
        terms: ExplainedTerms {
            approval_policy: terms.approval,
            sandbox_mode: terms.sandbox.name(),
            sandbox_permissions: terms.permissions,
            sandbox_available: terms.availability == SandboxAvailability::Available,
            network: opened(terms.sandbox).0,
            writable: opened(terms.sandbox).1,
        },
        requirement: explain_requirement(judgement, terms, proposed_rule),
    }
}

/// What a policy opens beyond its mode: whether the network, and which directories.
fn opened(policy: &SandboxPolicy) -> (bool, Vec<String>) {
    let shown = |root: &std::path::PathBuf| root.to_string_lossy().into_owned();
    match policy {
        SandboxPolicy::WorkspaceWrite { network_access, writable_roots, .. } => {
            let network = *network_access == NetworkAccess::Enabled;
            (network, writable_roots.iter().map(shown).collect())
        }
        _ => (false, Vec::new()),
    }
}

impl From<&Ruling> for ExplainedRuling {
    fn from(ruling: &Ruling) -> Self {
        Self {
            decision: decision(ruling.decision),
            sandbox: rule_sandbox(ruling.sandbox),
            rules: ruling.rules.iter().map(ExplainedRule::from).collect(),
        }
    }
}

impl From<&Rule> for ExplainedRule {
    fn from(rule: &Rule) -> Self {
        Self {
            prefix: rule.pattern.iter().map(ExplainedPattern::from).collect(),
            decision: decision(rule.decision),
            sandbox: rule_sandbox(rule.sandbox),
            justification: rule.justification.clone(),
            file: rule.origin.file.clone(),
            line: rule.origin.line,
        }
    }
}

impl From<&PatternWord> for ExplainedPattern {
    fn from(word: &PatternWord) -> Self {
        match word {
            PatternWord::Exact(word) if word == "*" => Self::OneOf(vec![word.clone()]),
            PatternWord::Exact(word) => Self::One(word.clone()),
            PatternWord::OneOf(words) => Self::OneOf(words.clone()),
            PatternWord::Any => Self::One("*".to_owned()),
        }
    }
}

impl From<&Class> for ClassName {
    fn from(class: &Class) -> Self {
        match class {
            Class::Safe => Self::Safe,
            Class::Unknown { .. } => Self::Unknown,
            Class::Dangerous(_) => Self::Dangerous,
        }
    }
}

/// The class of a whole, and why it is not safe.
pub fn class_of(class: &Class) -> (ClassName, Option<String>) {
    let reason = match class {
        Class::Safe => None,
        Class::Unknown { reason } => Some(reason.clone()),
        Class::Dangerous(danger) => Some(danger.to_string()),
    };
    (class.into(), reason)
}

fn danger_in(class: &Class, index: usize) -> Option<String> {
    match class {
        Class::Dangerous(danger) if danger.command == index => Some(danger.to_string()),
        Class::Dangerous(_) | Class::Safe | Class::Unknown { .. } => None,
    }
}

fn explain_command(
    command: &SimpleCommand,
    part: &Part,
    danger: Option<String>,
) -> ExplainedCommand {
    let (class, reason) = match (danger, &part.safety) {
        (Some(danger), _) => (ClassName::Dangerous, Some(danger)),
        (None, Err(not_safe)) => (ClassName::Unknown, Some(not_safe.to_string())),
        (None, Ok(())) => (ClassName::Safe, None),
    };
    let assignments = command.assignments.iter().map(|assignment| ExplainedAssignment {
        name: assignment.name.clone(),
        value: explain_word(&assignment.value),
    });
    let redirections = command.redirections.iter().map(|redirection| ExplainedRedirection {
        descriptor: redirection.descriptor,
        operator: operator(redirection.kind),
        target: explain_word(&redirection.target),
        writes: redirection.kind.writes(),
    });
    ExplainedCommand {
        connective: connective(command.connective),
        assignments: assignments.collect(),
        words: command.words.iter().map(explain_word).collect(),
        redirections: redirections.collect(),
        class,
        reason,
        rules: part.rules.iter().map(ExplainedRule::from).collect(),
    }
}

fn explain_word(word: &Word) -> ExplainedWord {
    let shape = match word.shape {
        Shape::Literal => "literal",
        Shape::Pattern => "pattern",
        Shape::Home => "home",
        Shape::Dynamic => "dynamic",
    };
    ExplainedWord { text: word.text.clone(), shape }
}

fn explain_requirement(
    judgement: &Judgement,
    terms: &Terms<'_>,
    proposed_rule: Option<ProposedRule>,
) -> ExplainedRequirement {
    let confined_by = |bypass| match (bypass, terms.sandbox) {
        (BypassSandbox::Yes, _) | (_, SandboxPolicy::DangerFullAccess) => "none",
        (BypassSandbox::No, policy) => policy.name(),
    };
    match requirement(judgement, terms, proposed_rule) {
        ApprovalRequirement::Skip { bypass_sandbox } => ExplainedRequirement::Skip {
            bypass_sandbox: bypass_sandbox == BypassSandbox::Yes,
            sandbox: confined_by(bypass_sandbox),
        },
        ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule } => {
            ExplainedRequirement::NeedsApproval {
                reason,
                bypass_sandbox: bypass_sandbox == BypassSandbox::Yes,
                sandbox: confined_by(bypass_sandbox),
                proposed_rule: proposed_rule.map(|rule| ExplainedProposal {
                    prefix: rule.prefix().to_vec(),
                    sandbox: rule_sandbox(rule.sandbox()),
                }),
            }
        }
        ApprovalRequirement::Forbidden { reason } => ExplainedRequirement::Forbidden { reason },
    }
}

fn reader(reader: Reader) -> &'static str {
    match reader {
        Reader::Kernel => "kernel",
        Reader::Shell(ShellKind::Bash) => "bash",
        Reader::Shell(ShellKind::Zsh) => "zsh",
        Reader::Shell(ShellKind::Posix) => "sh",
        Reader::Shell(ShellKind::PowerShell) => "powershell",
        Reader::Shell(ShellKind::Cmd) => "cmd",
    }
}

fn connective(connective: Connective) -> &'static str {
    match connective {
        Connective::First => "",
        Connective::Then => ";",
        Connective::And => "&&",
        Connective::Or => "||",
        Connective::Pipe => "|",
        Connective::PipeBoth => "|&",
        Connective::Beside => "&",
    }
}

fn operator(kind: RedirectionKind) -> &'static str {
    match kind {
        RedirectionKind::Read => "<",
        RedirectionKind::Write => ">",
        RedirectionKind::Clobber => ">|",
        RedirectionKind::Append => ">>",
        RedirectionKind::ReadWrite => "<>",
        RedirectionKind::WriteBoth => "&>",
        RedirectionKind::AppendBoth => "&>>",
        RedirectionKind::Duplicate => ">&",
        RedirectionKind::HereDocument => "<<",
        RedirectionKind::HereString => "<<<",
    }
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Prompt => "prompt",
        Decision::Forbid => "forbid",
    }
}

fn rule_sandbox(sandbox: RuleSandbox) -> &'static str {
    match sandbox {
        RuleSandbox::Keep => "keep",
        RuleSandbox::Bypass => "bypass",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Assignment, Redirection};
    use crate::danger::Danger;
    use crate::judge::judge;
    use crate::rules::{Rules, propose};
    use crate::surroundings::Surroundings;

    fn terms(sandbox: &SandboxPolicy) -> Terms<'_> {
        Terms {
            approval: AskForApproval::UnlessTrusted,
            sandbox,
            permissions: SandboxPermissions::UseDefault,
            availability: SandboxAvailability::Available,
        }
    }

    fn build() -> (Vec<String>, Judgement) {
        let argv = vec!["cargo".to_owned(), "build".to_owned()];
        let judgement = judge(&argv, &Surroundings::default(), &Rules::default());
        (argv, judgement)
    }

    #[test]
    fn everything_that_was_read_is_in_it() {
        let (argv, mut judgement) = build();
        judgement.reading.reader = Reader::Shell(ShellKind::Posix);
        judgement.reading.commands[0] = SimpleCommand {
            connective: Connective::And,
            assignments: vec![Assignment { name: "A".to_owned(), value: Word::literal("b c") }],
            words: vec![
                Word::literal("ls"),
                Word { text: "*.rs".to_owned(), shape: Shape::Pattern },
                Word { text: "~/x".to_owned(), shape: Shape::Home },
                Word { text: "$y".to_owned(), shape: Shape::Dynamic },
            ],
            redirections: vec![Redirection {
                descriptor: Some(2),
                kind: RedirectionKind::Append,
                target: Word::literal("log"),
            }],
            left_running: false,
        };
        let danger = Danger { reason: "deletes it".to_owned(), command: 0 };
        judgement.class = Class::Dangerous(danger);
        let explanation = explain(&argv, &judgement, &terms(&SandboxPolicy::ReadOnly), None);
        let command = serde_json::to_value(&explanation.commands[0]).unwrap();
        assert_eq!(explanation.reader, "sh");
        assert_eq!(
            command,
            serde_json::json!({
                "connective": "&&",
                "assignments": [{ "name": "A", "value": { "text": "b c", "shape": "literal" } }],
                "words": [
                    { "text": "ls", "shape": "literal" },
                    { "text": "*.rs", "shape": "pattern" },
                    { "text": "~/x", "shape": "home" },
                    { "text": "$y", "shape": "dynamic" },
                ],
                "redirections": [{
                    "descriptor": 2,
                    "operator": ">>",
                    "target": { "text": "log", "shape": "literal" },
                    "writes": true,
                }],
                "class": "dangerous",
                "reason": "deletes it",
                "rules": [],
            })
        );
    }

    #[test]
    fn the_requirement_in_it_is_the_one_that_holds() {
        let (argv, judgement) = build();
        let proposal = propose(&judgement, None);
        assert!(proposal.is_some());
        for (policy, sandbox) in [
            (SandboxPolicy::workspace_write(), "workspace-write"),
            (SandboxPolicy::DangerFullAccess, "none"),
        ] {
            let explanation = explain(&argv, &judgement, &terms(&policy), proposal.clone());
            let (_, reason) = class_of(&judgement.class);
            assert_eq!(
                explanation.requirement,
                ExplainedRequirement::NeedsApproval {
                    reason: reason.expect("cargo is not known to be safe"),
                    bypass_sandbox: false,
                    sandbox,
                    proposed_rule: Some(ExplainedProposal {
                        prefix: vec!["cargo".to_owned(), "build".to_owned()],
                        sandbox: "keep",
                    }),
                }
            );
        }
    }

    #[test]
    fn a_star_that_is_meant_stands_in_a_list() {
        let explained = |word: PatternWord| ExplainedPattern::from(&word);
        assert_eq!(explained(PatternWord::Any), ExplainedPattern::One("*".to_owned()));
        let star = ExplainedPattern::OneOf(vec!["*".to_owned()]);
        assert_eq!(explained(PatternWord::Exact("*".to_owned())), star);
    }
}
