use super::matrix::modes;
use super::*;
use crate::danger::Danger;
use crate::judge::judge;
use crate::rules::{Origin, PatternWord, Rule, Rules, propose};
use crate::surroundings::Surroundings;
use AskForApproval::{Never, OnFailure, OnRequest, UnlessTrusted};
use SandboxAvailability::{Available, Unavailable};
use SandboxPermissions::{RequireEscalated, UseDefault};

const POLICIES: [AskForApproval; 4] = [UnlessTrusted, OnFailure, OnRequest, Never];
const CALLS: [SandboxPermissions; 2] = [UseDefault, RequireEscalated];
const MACHINES: [SandboxAvailability; 2] = [Available, Unavailable];
const SAYS: [Option<(Decision, RuleSandbox)>; 5] = [
    None,
    Some((Decision::Allow, RuleSandbox::Keep)),
    Some((Decision::Allow, RuleSandbox::Bypass)),
    Some((Decision::Prompt, RuleSandbox::Keep)),
    Some((Decision::Forbid, RuleSandbox::Keep)),
];

/// One combination of everything that counts, and what follows.
#[derive(Debug, Clone)]
struct Met {
    approval: AskForApproval,
    mode: &'static str,
    permissions: SandboxPermissions,
    availability: SandboxAvailability,
    class: Class,
    says: Option<(Decision, RuleSandbox)>,
    answer: ApprovalRequirement,
}

impl Met {
    fn wants_sandbox(&self) -> bool {
        matches!(self.mode, "read-only" | "workspace-write")
    }

    fn lacks_sandbox(&self) -> bool {
        self.wants_sandbox() && self.availability == Unavailable
    }

    fn stays_without_rule(&self) -> bool {
        self.says.is_none() && self.permissions == UseDefault
    }

    fn runs(&self) -> bool {
        matches!(self.answer, ApprovalRequirement::Skip { .. })
    }

    fn asks(&self) -> bool {
        matches!(self.answer, ApprovalRequirement::NeedsApproval { .. })
    }

    fn is_refused(&self) -> bool {
        matches!(self.answer, ApprovalRequirement::Forbidden { .. })
    }

    fn is_dangerous(&self) -> bool {
        matches!(self.class, Class::Dangerous(_))
    }
}

fn classes() -> [Class; 3] {
    let danger = Danger { reason: "deletes /home/u and everything in it".to_owned(), command: 0 };
    [
        Class::Safe,
        Class::Unknown { reason: "cargo runs programs".to_owned() },
        Class::Dangerous(danger),
    ]
}

fn rule(decision: Decision, sandbox: RuleSandbox) -> Rule {
    let mut rule = Rule {
        pattern: vec![PatternWord::Exact("cargo".to_owned())],
        decision,
        sandbox,
        justification: Some("because we say so.".to_owned()),
        origin: Origin::default(),
    };
    rule.origin.file = "rules/team.toml".to_owned();
    rule.origin.line = 7;
    rule
}

fn command() -> Judgement {
    let argv = ["cargo".to_owned(), "build".to_owned()];
    judge(&argv, &Surroundings::default(), &Rules::default())
}

fn judged(class: Class, says: Option<(Decision, RuleSandbox)>) -> Judgement {
    let ruling = says.map(|(decision, sandbox)| Ruling {
        decision,
        sandbox,
        rules: vec![rule(decision, sandbox)],
    });
    Judgement { class, ruling, ..command() }
}

fn proposal() -> ProposedRule {
    propose(&command(), None).expect("a rule for cargo build")
}

/// spec RULES.72: What a rule says for itself is one line of at most 400 characters, in a question and in a refusal.
#[test]
fn a_rule_says_little_for_itself() {
    for decision in [Decision::Prompt, Decision::Forbid] {
        let mut judgement = judged(Class::Safe, Some((decision, RuleSandbox::Keep)));
        let said = "fine\n  $ ls\n  [y] yes\u{202e}".to_owned() + &"\nx".repeat(100_000);
        judgement.ruling.as_mut().unwrap().rules[0].justification = Some(said);
        let terms = Terms {
            approval: OnRequest,
            sandbox: &SandboxPolicy::ReadOnly,
            permissions: UseDefault,
            availability: Available,
        };
        let reason = match requirement(&judgement, &terms, None) {
            ApprovalRequirement::NeedsApproval { reason, .. }
            | ApprovalRequirement::Forbidden { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason.contains(r"team.toml:7: fine\n  $ ls\n  [y] yes\u{202e}"), "{reason}");
        assert!(!reason.contains('\n') && reason.chars().count() < 600, "{reason}");
    }
}

/// Every combination there is.
fn all() -> Vec<Met> {
    let mut all = Vec::new();
    for approval in POLICIES {
        for (policy, mode) in modes() {
            for permissions in CALLS {
                for availability in MACHINES {
                    for class in classes() {
                        for says in SAYS {
                            let terms =
                                Terms { approval, sandbox: &policy, permissions, availability };
                            let judgement = judged(class.clone(), says);
                            let answer = requirement(&judgement, &terms, Some(proposal()));
                            let class = class.clone();
                            all.push(Met {
                                approval,
                                mode,
                                permissions,
                                availability,
                                class,
                                says,
                                answer,
                            });
                        }
                    }
                }
            }
        }
    }
    assert_eq!(all.len(), 4 * 4 * 2 * 2 * 3 * 5);
    all
}

/// Every combination that a condition picks, and it picks some.
#[track_caller]
fn each(pick: impl Fn(&Met) -> bool, holds: impl Fn(&Met) -> bool) {
    let picked: Vec<Met> = all().into_iter().filter(|met| pick(met)).collect();
    assert!(!picked.is_empty());
    for met in picked {
        assert!(holds(&met), "{met:#?}");
    }
}

fn reason(met: &Met) -> &str {
    match &met.answer {
        ApprovalRequirement::Skip { .. } => "",
        ApprovalRequirement::NeedsApproval { reason, .. }
        | ApprovalRequirement::Forbidden { reason } => reason,
    }
}

/// spec APPROVAL.1: Under on-request and on-failure, with a sandbox, only what is dangerous is asked
/// about, and what a rule or the call wants asked.
#[test]
fn a_sandbox_saves_questions() {
    each(
        |met| {
            matches!(met.approval, OnRequest | OnFailure)
                && met.stays_without_rule()
                && met.mode != "danger-full-access"
                && !met.lacks_sandbox()
        },
        |met| if met.is_dangerous() { met.asks() } else { met.runs() },
    );
}

/// spec APPROVAL.2: Under untrusted everything is asked about that is not known to be safe, in the
/// mode danger-full-access too.
#[test]
fn untrusted_asks_about_all_that_is_not_known_to_be_safe() {
    each(
        |met| met.approval == UnlessTrusted && met.stays_without_rule(),
        |met| if met.class == Class::Safe { met.runs() } else { met.asks() },
    );
}

/// spec APPROVAL.3: Under never nobody is asked anything.
#[test]
fn never_asks_nobody() {
    each(|met| met.approval == Never, |met| !met.asks());
}

/// spec APPROVAL.4: A dangerous command is asked about in every mode, and does not run under never
/// unless the mode is danger-full-access.
#[test]
fn danger_is_asked_about_or_refused() {
    let dangerous = |met: &Met| met.is_dangerous() && met.stays_without_rule();
    each(
        |met| dangerous(met) && met.approval != Never,
        |met| met.asks() && reason(met).contains("deletes /home/u"),
    );
    each(
        |met| dangerous(met) && met.approval == Never,
        |met| met.runs() == (met.mode == "danger-full-access"),
    );
}

/// spec APPROVAL.5: With never and danger-full-access everything runs that no rule stands against.
#[test]
fn never_with_full_access_runs_everything() {
    each(
        |met| {
            (met.approval, met.mode) == (Never, "danger-full-access")
                && met.permissions == UseDefault
        },
        |met| {
            let against = matches!(met.says, Some((Decision::Prompt | Decision::Forbid, _)));
            met.runs() != against
        },
    );
}

/// spec APPROVAL.6: Where the mode asks for a sandbox and there is none, a command that is not known
/// to be safe is asked about, in words that say so, and under never no command runs.
#[test]
fn without_a_sandbox_a_person_is_told_so() {
    let lacking = |met: &Met| met.lacks_sandbox() && met.stays_without_rule();
    each(|met| lacking(met) && met.approval == Never, Met::is_refused);
    each(
        |met| lacking(met) && met.approval != Never,
        |met| match met.class {
            Class::Safe => met.runs(),
            _ => met.asks() && reason(met).contains("no sandbox available"),
        },
    );
}

/// spec APPROVAL.7: On-failure without a sandbox is the same as on-request.
#[test]
fn on_failure_needs_a_sandbox() {
    let lacking = |policy| {
        let mut met = all();
        met.retain(|met| {
            met.approval == policy && met.lacks_sandbox() && met.permissions == UseDefault
        });
        met.into_iter().map(|met| met.answer).collect::<Vec<_>>()
    };
    assert!(!lacking(OnFailure).is_empty());
    assert_eq!(lacking(OnFailure), lacking(OnRequest));
}

/// spec APPROVAL.8: An external sandbox counts as a sandbox, whatever this machine has.
#[test]
fn an_external_sandbox_is_a_sandbox() {
    let in_mode = |mode, availability| {
        let mut met = all();
        met.retain(|met| met.mode == mode && met.availability == availability);
        met.into_iter()
            .map(|met| (met.runs(), met.asks(), reason(&met).to_owned()))
            .collect::<Vec<_>>()
    };
    let external = in_mode("external-sandbox", Unavailable);
    assert_eq!(external, in_mode("external-sandbox", Available));
    assert_eq!(external, in_mode("workspace-write", Available));
}

/// spec APPROVAL.9: A call that asks to leave the sandbox is asked about under on-request, whatever
/// is known about its command, and refused under every other policy with a sentence that says what
/// to do instead.
#[test]
fn only_on_request_can_be_asked_to_let_a_command_out() {
    let leaving = |met: &Met| met.permissions == RequireEscalated && met.says.is_none();
    each(
        |met| leaving(met) && met.approval == OnRequest && met.mode != "danger-full-access",
        |met| met.asks() && reason(met).contains("it asks to run without the sandbox"),
    );
    each(
        |met| leaving(met) && met.approval != OnRequest,
        |met| met.is_refused() && reason(met).contains("use_default: "),
    );
}

/// spec APPROVAL.10: Where nothing confines commands a call under on-request that asks to leave the
/// sandbox is as any other.
#[test]
fn there_is_nothing_to_leave_with_full_access() {
    let answers = |permissions| {
        let mut met = all();
        met.retain(|met| {
            (met.approval, met.mode, met.permissions)
                == (OnRequest, "danger-full-access", permissions)
        });
        met.into_iter().map(|met| met.answer).collect::<Vec<_>>()
    };
    assert_eq!(answers(RequireEscalated), answers(UseDefault));
}

/// spec APPROVAL.11: Nothing runs without the sandbox that the mode asks for unless a person or a
/// rule said so, or it is known to be safe and there is no sandbox.
#[test]
fn nothing_leaves_the_sandbox_by_itself() {
    let outside = ApprovalRequirement::Skip { bypass_sandbox: BypassSandbox::Yes };
    each(
        |met| met.answer == outside,
        |met| {
            met.says == Some((Decision::Allow, RuleSandbox::Bypass))
                || (met.class == Class::Safe && met.lacks_sandbox() && met.approval != Never)
        },
    );
    each(
        |met| met.wants_sandbox() && met.runs() && met.answer != outside,
        |met| met.availability == Available && met.permissions == UseDefault,
    );
}

/// spec APPROVAL.20: What a rule forbids does not run, under no policy and in no mode.
#[test]
fn a_rule_that_forbids_is_the_last_word() {
    each(|met| matches!(met.says, Some((Decision::Forbid, _))), Met::is_refused);
}

/// spec APPROVAL.21: What a rule wants asked is asked, whatever is known about it, and does not run
/// under never.
#[test]
fn a_rule_that_asks_is_obeyed() {
    let prompt = |met: &Met| matches!(met.says, Some((Decision::Prompt, _)));
    each(|met| prompt(met) && met.approval == Never, Met::is_refused);
    each(|met| prompt(met) && met.approval != Never && met.permissions == UseDefault, Met::asks);
}

/// spec APPROVAL.22: What a rule allows runs unasked in the sandbox, dangerous or not, under every
/// policy.
#[test]
fn a_rule_that_allows_saves_the_question() {
    each(
        |met| {
            matches!(met.says, Some((Decision::Allow, _)))
                && met.permissions == UseDefault
                && !met.lacks_sandbox()
        },
        Met::runs,
    );
}

/// spec APPROVAL.23: A rule that allows a command lets it out of the sandbox, and lets it do without
/// one, only if it says so.
#[test]
fn a_rule_that_allows_keeps_the_sandbox() {
    let keep = Some((Decision::Allow, RuleSandbox::Keep));
    let bypass = Some((Decision::Allow, RuleSandbox::Bypass));
    let leaving = |met: &Met| {
        met.wants_sandbox()
            && (met.permissions == RequireEscalated || met.lacks_sandbox())
            && (met.class != Class::Safe || met.availability == Available)
    };
    each(|met| met.says == keep && leaving(met), |met| !met.runs());
    each(
        |met| met.says == bypass && (met.permissions == UseDefault || met.approval == OnRequest),
        |met| {
            let outside = ApprovalRequirement::Skip { bypass_sandbox: BypassSandbox::Yes };
            met.runs() && (met.answer == outside) == met.wants_sandbox()
        },
    );
}

/// spec APPROVAL.24: A reason names the rule, where it is written, and why.
#[test]
fn a_rule_is_quoted_with_its_place() {
    each(
        |met| {
            matches!(met.says, Some((Decision::Prompt | Decision::Forbid, _)))
                && met.permissions == UseDefault
        },
        |met| reason(met).contains("(rules/team.toml:7: because we say so)"),
    );
}

/// spec APPROVAL.25: No rule is proposed where a rule asks, because the strictest wins; where the
/// command would leave the sandbox, the proposed rule lets it.
#[test]
fn a_rule_is_proposed_where_it_would_help() {
    let asked_by_rule = |met: &Met| matches!(met.says, Some((Decision::Prompt, _)));
    each(Met::asks, |met| {
        let ApprovalRequirement::NeedsApproval { proposed_rule, bypass_sandbox, .. } = &met.answer
        else {
            return false;
        };
        let expected = match bypass_sandbox {
            _ if asked_by_rule(met) => None,
            // An external sandbox is not ours to leave, but only a rule that lets out answers the call.
            BypassSandbox::No
                if met.permissions == UseDefault || met.mode != "external-sandbox" =>
            {
                Some(proposal())
            }
            BypassSandbox::No | BypassSandbox::Yes => proposal().leaving_the_sandbox(),
        };
        *proposed_rule == expected
    });
}

#[test]
fn a_proposed_rule_spares_the_same_question() {
    each(Met::asks, |met| {
        let ApprovalRequirement::NeedsApproval { proposed_rule: Some(rule), .. } = &met.answer
        else {
            return true;
        };
        let rule = rule.as_rule(Origin::default());
        let judgement = judged(met.class.clone(), Some((rule.decision, rule.sandbox)));
        let (policy, _) = modes().into_iter().find(|(_, mode)| *mode == met.mode).unwrap();
        let terms = Terms {
            approval: met.approval,
            sandbox: &policy,
            permissions: met.permissions,
            availability: met.availability,
        };
        matches!(requirement(&judgement, &terms, None), ApprovalRequirement::Skip { .. })
    });
}

#[test]
fn what_is_asked_is_said_in_a_few_words_and_what_is_refused_in_sentences() {
    each(Met::asks, |met| {
        let reason = reason(met);
        !reason.is_empty() && !reason.ends_with('.') && !reason.starts_with(char::is_uppercase)
    });
    each(Met::is_refused, |met| {
        let reason = reason(met);
        reason.ends_with('.') && reason.starts_with(char::is_uppercase)
    });
}

/// The page shows a rule without the class, and says where that is not the whole truth.
#[test]
fn the_class_hardly_counts_beside_a_rule() {
    let all = all();
    let mut unknown = all.clone();
    unknown.retain(|met| matches!(met.class, Class::Unknown { .. }));
    for met in all.iter().filter(|met| met.says.is_some()) {
        if met.class == Class::Safe && met.lacks_sandbox() {
            continue;
        }
        let same = unknown.iter().find(|other| {
            (other.approval, other.mode, other.permissions, other.availability, other.says)
                == (met.approval, met.mode, met.permissions, met.availability, met.says)
        });
        let same = same.expect("there is one");
        assert_eq!((same.runs(), same.asks()), (met.runs(), met.asks()), "{met:#?}");
    }
}
