//! The table as a page for people, made from the table itself so that the two cannot differ.

use super::reason::word;
use super::table::{Case, Ground, Known, Question, Refusal, RuleSays, Verdict, decide};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPermissions, SandboxPolicy};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# When a command runs, is asked about, or is refused

Made from the table in `crates/policy/src/requirement/table.rs`; do not edit it here. After a change of
the table: `SANDGATE_BLESS=1 cargo test -p sandgate-policy --test approval_matrix`.

A session has an *approval policy* (when a person is asked) and a *sandbox mode* (what commands may
touch). A command is *safe* if it is known to write nothing, run nothing else and reach no network,
*dangerous* if it can do lasting harm, and *unknown* otherwise; `sandgate policy explain -- COMMAND` says
which and why. A call *stays* in the sandbox unless it asks to *leave* it (`require_escalated`).

";

const LEGEND: &[(&str, &str)] = &[
    (RUNS, "Nobody is asked. It runs in the sandbox that the mode asks for, if it asks for one."),
    (RUNS_OUTSIDE, "Nobody is asked, and it runs without the sandbox that the mode asks for."),
    (ASK_DANGER, "A person is asked, because it can do lasting harm."),
    (ASK_UNKNOWN, "A person is asked, because it is not known to be safe."),
    (ASK_LEAVING, "A person is asked whether it may run without the sandbox."),
    (ASK_NO_SANDBOX, "A person is asked whether it may run although this machine has no sandbox."),
    (ASK_RULE, "A person is asked, because a rule wants it."),
    (REFUSED_LEAVING, "It does not run: only under on-request may a call ask to leave."),
    (REFUSED_NOBODY, "It does not run: a person would have to be asked, and nobody may be."),
    (REFUSED_RULE, "It does not run: a rule forbids it."),
];

const RUNS: &str = "runs";
const RUNS_OUTSIDE: &str = "runs, no sandbox";
const ASK_DANGER: &str = "ask: dangerous";
const ASK_UNKNOWN: &str = "ask: unknown";
const ASK_LEAVING: &str = "ask: leaving";
const ASK_NO_SANDBOX: &str = "ask: no sandbox";
const ASK_RULE: &str = "ask: rule";
const REFUSED_LEAVING: &str = "refused: leaving";
const REFUSED_NOBODY: &str = "refused: nobody to ask";
const REFUSED_RULE: &str = "refused: rule";

const APPROVALS: [(AskForApproval, &str); 4] = [
    (AskForApproval::UnlessTrusted, "A person is asked about everything that is not known safe."),
    (AskForApproval::OnFailure, "A person is asked when the sandbox has blocked something."),
    (AskForApproval::OnRequest, "A person is asked when a call asks to leave the sandbox."),
    (AskForApproval::Never, "Nobody is asked anything."),
];

const CLASSES: [(Known, &str); 3] =
    [(Known::Safe, "safe"), (Known::Unknown, "unknown"), (Known::Dangerous, "dangerous")];

const CALLS: [(SandboxPermissions, &str); 2] =
    [(SandboxPermissions::UseDefault, "stays"), (SandboxPermissions::RequireEscalated, "leaves")];

const MACHINES: [(bool, &str); 2] = [(true, "there"), (false, "missing")];

const RULES: [(RuleSays, &str); 4] = [
    (RuleSays::Forbid, "forbid"),
    (RuleSays::Prompt, "prompt"),
    (RuleSays::AllowInside, "allow"),
    (RuleSays::AllowOutside, "allow, bypass"),
];

const GROUNDS: [(Ground, &str); 3] =
    [(Ground::Ours, "active"), (Ground::Missing, "missing"), (Ground::FullAccess, "not asked for")];

/// The four modes, by the names that people configure.
pub(super) fn modes() -> [(SandboxPolicy, &'static str); 4] {
    let network_access = NetworkAccess::Restricted;
    [
        (SandboxPolicy::ReadOnly, "read-only"),
        (SandboxPolicy::workspace_write(), "workspace-write"),
        (SandboxPolicy::ExternalSandbox { network_access }, "external-sandbox"),
        (SandboxPolicy::DangerFullAccess, "danger-full-access"),
    ]
}

/// All of it as Markdown: what is committed as `docs/approval-matrix.md`.
pub fn approval_matrix() -> String {
    let mut page = INTRODUCTION.to_owned();
    page += "| in the tables | means |\n| --- | --- |\n";
    for (cell, meaning) in LEGEND {
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {cell} | {meaning} |");
    }
    page += "\nWhen a command failed because the sandbox blocked something, a person is asked whether it may \
             have what\nit lacked: under untrusted, on-failure and on-request, and never under never.\n\n\
             ## Without a rule\n";
    for (approval, meaning) in APPROVALS {
        let _ = writeln!(page, "\n### {}\n\n{meaning}\n", word(approval));
        without_a_rule(&mut page, approval);
    }
    with_a_rule(&mut page);
    page
}

fn without_a_rule(page: &mut String, approval: AskForApproval) {
    let modes = modes();
    let names = modes.each_ref().map(|(_, name)| *name).join(" | ");
    let _ = writeln!(page, "| sandbox | call | command | {names} |");
    *page += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (available, machine) in MACHINES {
        for (permissions, call) in CALLS {
            for (class, command) in CLASSES {
                let cells = modes.each_ref().map(|(policy, _)| {
                    let ground = Ground::of(policy, available);
                    let rule = RuleSays::Nothing;
                    cell(Case { rule, permissions, approval, ground, class })
                });
                let cells = cells.join(" | ");
                let _ = writeln!(page, "| {machine} | {call} | {command} | {cells} |");
            }
        }
    }
}

/// A rule has answered what the class of a command would ask, so the class has no column here.
fn with_a_rule(page: &mut String) {
    *page += "\n## With a rule\n\n\
              The strictest of the rules that match counts. It answers what the class of the command \
              would\nhave asked. The one difference: a command that is known to be safe runs without a \
              sandbox where it is\nmissing, with a rule that allows it as without, except under never. An \
              external sandbox is active.\n\n";
    let names = APPROVALS.map(|(approval, _)| word(approval)).join(" | ");
    let _ = writeln!(page, "| rule | call | sandbox | {names} |");
    *page += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (rule, says) in RULES {
        for (permissions, call) in CALLS {
            for (ground, sandbox) in GROUNDS {
                let cells = APPROVALS.map(|(approval, _)| {
                    cell(Case { rule, permissions, approval, ground, class: Known::Unknown })
                });
                let cells = cells.join(" | ");
                let _ = writeln!(page, "| {says} | {call} | {sandbox} | {cells} |");
            }
        }
    }
}

fn cell(case: Case) -> &'static str {
    match decide(case) {
        Verdict::Run if case.leaves() => RUNS_OUTSIDE,
        Verdict::Run => RUNS,
        Verdict::Ask(Question::Danger) => ASK_DANGER,
        Verdict::Ask(Question::NotKnownSafe) => ASK_UNKNOWN,
        Verdict::Ask(Question::Leaving) => ASK_LEAVING,
        Verdict::Ask(Question::NoSandbox) => ASK_NO_SANDBOX,
        Verdict::Ask(Question::Rule) => ASK_RULE,
        Verdict::Refuse(Refusal::Rule) => REFUSED_RULE,
        Verdict::Refuse(Refusal::MayNotLeave) => REFUSED_LEAVING,
        Verdict::Refuse(
            Refusal::RuleAsksNobody | Refusal::DangerAsksNobody | Refusal::NoSandboxAsksNobody,
        ) => REFUSED_NOBODY,
    }
}
