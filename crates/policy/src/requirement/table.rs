//! The table: what follows for a command, for every combination of what is known about it, what a
//! rule says, what the call asks for, and the session's policies.
//!
//! Rows are read from the top, and the first that fits holds. The compiler sees to it that every
//! combination fits one. Nothing is phrased here: [`super::reason`] has the words.

use sandgate_protocol::{AskForApproval, SandboxPermissions, SandboxPolicy};

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) rule: RuleSays,
    pub(super) permissions: SandboxPermissions,
    pub(super) approval: AskForApproval,
    pub(super) ground: Ground,
    pub(super) class: Known,
}

/// What the rules say of the whole command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSays {
    /// Nothing.
    Nothing,
    /// It may run, in the sandbox.
    AllowInside,
    /// It may run, and without the sandbox.
    AllowOutside,
    /// A person is asked.
    Prompt,
    /// It does not run.
    Forbid,
}

/// What would confine the command if nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// Our sandbox.
    Ours,
    /// The one that somebody else put around us.
    External,
    /// Nothing, although the policy asks for a sandbox.
    Missing,
    /// Nothing, and the policy asks for nothing.
    FullAccess,
}

/// What is known about the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Safe,
    Unknown,
    Dangerous,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs and nobody is asked.
    Run,
    /// A person is asked.
    Ask(Question),
    /// It does not run.
    Refuse(Refusal),
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// A rule wants it.
    Rule,
    /// The command can do lasting harm.
    Danger,
    /// It is not known to be safe, and the policy asks about all such.
    NotKnownSafe,
    /// The call asks to leave the sandbox.
    Leaving,
    /// There is no sandbox to run it in.
    NoSandbox,
}

/// Why a command does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A rule forbids it.
    Rule,
    /// The call asks to leave the sandbox, and under this policy no call may.
    MayNotLeave,
    /// A rule wants a person to be asked, and nobody may be.
    RuleAsksNobody,
    /// The command can do lasting harm, and nobody may be asked.
    DangerAsksNobody,
    /// There is no sandbox to run it in, and nobody may be asked.
    NoSandboxAsksNobody,
}

impl Ground {
    /// What a policy comes to on a machine that has a sandbox or has none. An external sandbox is
    /// there whatever the machine has.
    pub(super) fn of(policy: &SandboxPolicy, ours_is_there: bool) -> Self {
        match policy {
            SandboxPolicy::ReadOnly | SandboxPolicy::WorkspaceWrite { .. } if ours_is_there => {
                Self::Ours
            }
            SandboxPolicy::ReadOnly | SandboxPolicy::WorkspaceWrite { .. } => Self::Missing,
            SandboxPolicy::ExternalSandbox { .. } => Self::External,
            SandboxPolicy::DangerFullAccess => Self::FullAccess,
        }
    }
}

impl Case {
    /// Whether the command, if it runs, runs without the sandbox that the policy asks for.
    pub(super) fn leaves(self) -> bool {
        match self.ground {
            Ground::Missing => true,
            // There is no sandbox of ours to leave.
            Ground::External | Ground::FullAccess => false,
            Ground::Ours => {
                self.rule == RuleSays::AllowOutside
                    || self.permissions == SandboxPermissions::RequireEscalated
            }
        }
    }
}

/// What follows in one case.
#[rustfmt::skip]
pub(super) fn decide(case: Case) -> Verdict {
    use AskForApproval::{Never, OnFailure, OnRequest, UnlessTrusted as Untrusted};
    use Ground::{External, FullAccess, Missing, Ours};
    use Known::{Dangerous, Safe, Unknown};
    use RuleSays::{AllowInside, AllowOutside, Forbid, Nothing, Prompt};
    use SandboxPermissions::{RequireEscalated as Leave, UseDefault as Stay};
    use Verdict::{Ask, Refuse, Run};

    match (case.rule, case.permissions, case.approval, case.ground, case.class) {
        // What a rule forbids does not run, whatever else is said.
        (Forbid, _, _, _, _)                               => Refuse(Refusal::Rule),

        // Only a session that is asked on request takes requests. This guards the person who chose
        // not to be asked from a model that asks for everything.
        (_, Leave, Untrusted | OnFailure | Never, _, _)    => Refuse(Refusal::MayNotLeave),

        // A rule that wants a person to be asked is no permission where nobody can be. That holds
        // with full access too: there all runs but what a rule stands against.
        (Prompt, _, Never, _, _)                           => Refuse(Refusal::RuleAsksNobody),
        (Prompt, _, Untrusted | OnFailure | OnRequest, _, _) => Ask(Question::Rule),

        // A rule that allows a command and lets it leave the sandbox has answered everything.
        (AllowOutside, _, _, _, _)                         => Run,

        // A rule that allows a command in the sandbox does not let it out, nor do without one.
        (AllowInside, _, _, FullAccess, _)                 => Run,
        (AllowInside, Stay, _, Ours | External, _)         => Run,
        (AllowInside, Leave, OnRequest, Ours | External | Missing, _) => Ask(Question::Leaving),
        (AllowInside, Stay, Never, Missing, _)             => Refuse(Refusal::NoSandboxAsksNobody),
        (AllowInside, Stay, Untrusted | OnFailure | OnRequest, Missing, Safe) => Run,
        (AllowInside, Stay, Untrusted | OnFailure | OnRequest, Missing, Unknown | Dangerous)
                                                           => Ask(Question::NoSandbox),

        // never: the sandbox holds what runs, and what it cannot be trusted with does not run. Only
        // together with full access has the person said that all of it may.
        (Nothing, Stay, Never, FullAccess, _)              => Run,
        (Nothing, Stay, Never, Missing, _)                 => Refuse(Refusal::NoSandboxAsksNobody),
        (Nothing, Stay, Never, Ours | External, Safe | Unknown) => Run,
        (Nothing, Stay, Never, Ours | External, Dangerous) => Refuse(Refusal::DangerAsksNobody),

        // untrusted: approval is checked first, so whatever is not known to be safe is asked about,
        // with full access too.
        (Nothing, Stay, Untrusted, _, Safe)                => Run,
        (Nothing, Stay, Untrusted, _, Unknown)             => Ask(Question::NotKnownSafe),
        (Nothing, Stay, Untrusted, _, Dangerous)           => Ask(Question::Danger),

        // on-request, when it is requested. Where nothing confines commands there is nothing to
        // leave, and the request means nothing.
        (Nothing, Leave, OnRequest, Ours | External | Missing, _) => Ask(Question::Leaving),
        (Nothing, Leave, OnRequest, FullAccess, Safe | Unknown) => Run,
        (Nothing, Leave, OnRequest, FullAccess, Dangerous) => Ask(Question::Danger),

        // on-request and on-failure let the sandbox hold what runs. Without one they are the same.
        (Nothing, Stay, OnRequest | OnFailure, _, Dangerous) => Ask(Question::Danger),
        (Nothing, Stay, OnRequest | OnFailure, Ours | External | FullAccess, Safe | Unknown) => Run,
        (Nothing, Stay, OnRequest | OnFailure, Missing, Safe) => Run,
        (Nothing, Stay, OnRequest | OnFailure, Missing, Unknown) => Ask(Question::NoSandbox),
    }
}
