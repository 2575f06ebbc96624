//! The words for what the table says: fragments for a person who is asked, whole sentences for a
//! model that is refused, which say what it can do instead.

use super::table::{Case, Ground, Known, Question, Refusal};
use crate::judge::{Class, Judgement, Ruling};
use crate::rules::{Decision, Rule};
use sandgate_protocol::{AskForApproval, SandboxPermissions, visible_remark};

/// Why a person is asked. What is worth knowing for the answer is said too, whatever the table was
/// asking for: that it leaves the sandbox, that there is none, that it is dangerous.
pub(super) fn for_person(question: Question, case: Case, judgement: &Judgement) -> String {
    let mut reasons = Vec::new();
    if question == Question::Rule {
        reasons
            .push(format!("a rule asks{}", written(judgement.ruling.as_ref(), Decision::Prompt)));
    }
    match &judgement.class {
        Class::Dangerous(danger) => reasons.push(format!("dangerous: {danger}")),
        Class::Unknown { reason } if question == Question::NotKnownSafe => {
            reasons.push(reason.clone());
        }
        Class::Unknown { .. } | Class::Safe => {}
    }
    if case.permissions == SandboxPermissions::RequireEscalated && case.ground != Ground::FullAccess
    {
        reasons.push("it asks to run without the sandbox".to_owned());
    }
    if case.ground == Ground::Missing {
        reasons.push("no sandbox available".to_owned());
    }
    reasons.join("; ")
}

/// Why it does not run, and what the model can do instead.
pub(super) fn for_model(refusal: Refusal, case: Case, judgement: &Judgement) -> String {
    let ruling = judgement.ruling.as_ref();
    match refusal {
        Refusal::Rule => format!(
            "A rule forbids this command{}. Do the work without it.",
            written(ruling, Decision::Forbid)
        ),
        Refusal::MayNotLeave => format!(
            "The approval policy is {}, and only under on-request may a call ask to leave the \
             sandbox. Repeat it with sandbox_permissions set to use_default: {}.",
            word(case.approval),
            instead_of_leaving(case)
        ),
        Refusal::RuleAsksNobody => format!(
            "A rule wants a person to be asked about this command{}, and under the approval \
             policy never nobody can be asked. Do the work without it.",
            written(ruling, Decision::Prompt)
        ),
        Refusal::DangerAsksNobody => {
            let danger = match &judgement.class {
                Class::Dangerous(danger) => format!(" ({danger})"),
                Class::Safe | Class::Unknown { .. } => String::new(),
            };
            format!(
                "This command is dangerous{danger}, and under the approval policy never nobody \
                 can be asked about it. Do the work in another way."
            )
        }
        Refusal::NoSandboxAsksNobody => {
            "Commands of this session run in a sandbox, this machine has no sandbox available, and \
             under the approval policy never nobody can be asked to do without one. Do what you \
             can without running commands, and say that a sandbox is missing."
                .to_owned()
        }
    }
}

fn instead_of_leaving(case: Case) -> &'static str {
    match (case.ground, case.approval) {
        (Ground::FullAccess, _) => "nothing confines commands in this session anyway",
        (_, AskForApproval::UnlessTrusted) if case.class != Known::Safe => {
            "a person is asked about it then"
        }
        (_, AskForApproval::Never) => "what the sandbox blocks has to be done in another way",
        (_, _) => "if the sandbox blocks something, a person is asked then",
    }
}

/// Which rules decided, and why their author wanted it.
fn written(ruling: Option<&Ruling>, decision: Decision) -> String {
    let rules = ruling.map(|ruling| ruling.rules.as_slice()).unwrap_or_default();
    let Some(rule) = rules.iter().find(|rule| rule.decision == decision) else {
        return String::new();
    };
    let Rule { justification, origin, .. } = rule;
    match justification {
        Some(justification) => {
            // A project may have written it: it is one line, and not so long that it pushes the rest away.
            let said = visible_remark(justification.trim().trim_end_matches('.'));
            format!(" ({origin}: {said})")
        }
        None => format!(" ({origin})"),
    }
}

/// The name of an approval policy, as people configure it.
pub(super) fn word(approval: AskForApproval) -> &'static str {
    match approval {
        AskForApproval::UnlessTrusted => "untrusted",
        AskForApproval::OnFailure => "on-failure",
        AskForApproval::OnRequest => "on-request",
        AskForApproval::Never => "never",
    }
}
