//! What is typed to a process outside the sandbox: judged before it is typed.
//!
//! A shell outside must not be a way around approvals. So nothing that is typed to it counts as known to be
//! safe: nobody knows what a word stands for in a shell that has lived for a while. Rules and remembered
//! approvals hold only for what is surely a command: one whole line without anything that an editor of
//! lines understands, for a shell that the kernel shows reading at a fresh prompt. About everything else a
//! person is asked, and sees each character that would be typed.

use super::write_stdin::{Shown, Typing};
use crate::approval::Answer;
use crate::audit::{DecidedBy, Record};
use crate::orchestrator::{
    ApprovalCtx, FirstAttempt, SandboxAttempt, Sandboxable, ToolCtx, ToolRuntime,
};
use crate::request::{CommandInput, CommandLine};
use crate::tools::command::{AskedCommand, CommandTool, ShellRequest};
use crate::unified_exec::LiveEntry;
use sandgate_policy::{
    Approvable, ApprovalKey, ApprovalRequirement, BypassSandbox, SandboxAvailability, Terms,
};
use sandgate_process::Login;
use sandgate_protocol::{
    AskForApproval, CodexErr, Denials, ExecExpiration, SandboxPermissions, SandboxPolicy,
    UnifiedExecReply, visible_line,
};
use std::sync::Arc;

/// Why it is not known to be safe.
const OUTSIDE: &str = "it is typed to a process outside the sandbox";

/// How much of a process's command is shown to a person who is asked about input, in characters.
const LONGEST_COMMAND: usize = 200;

/// Why it is not typed, where nobody can be asked.
const NOBODY: &str = "The process runs outside the sandbox, and under the approval policy never nobody can \
                      be asked about what is typed to it. End it with kill_process, and do the work with \
                      commands that run in the sandbox.";

/// Something that is to be typed to a process outside the sandbox.
pub(super) struct TypedInput {
    request: ShellRequest,
    kind: Kind,
    /// The process, in words of ours.
    process: String,
}

/// What the input is to whoever reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A command for a shell, which an approval is remembered by as something for this process.
    Command { process: String },
    /// Anything.
    Unclear,
}

impl TypedInput {
    /// Looks up and judges what is to be typed.
    pub(super) fn new(
        id: &str,
        input: &str,
        entry: &LiveEntry,
        ctx: &ToolCtx<'_>,
    ) -> Result<Self, CodexErr> {
        let at_prompt = entry.is_at_fresh_prompt() && is_plain_line(input);
        let here = entry.process.current_dir().filter(|_| at_prompt);
        let line = entry.line_with(input);
        let (kind, shell) = match (here.is_some(), entry.command.first()) {
            (true, Some(shell)) => {
                // Neither the id nor the pid will do: another process may get them later.
                let process = format!("{} {}", ctx.tool_name, entry.instance);
                (Kind::Command { process }, Some(shell.clone()))
            }
            _ => (Kind::Unclear, None),
        };
        let asked =
            AskedCommand {
                command: CommandLine::Script { text: shown(&line), shell, login: Login::No },
                workdir: Some(here.unwrap_or_else(|| entry.cwd.clone())),
                expiration: ExecExpiration::Cancellation,
                input: CommandInput::Nothing,
                sandbox_permissions: SandboxPermissions::UseDefault,
                justification: Some(entry.justification.clone().unwrap_or_else(|| {
                    format!("typed to {}", visible_line(&entry.command.join(" ")))
                })),
                prefix_rule: None,
            };
        let mut request = ShellRequest::new(asked, ctx)?;
        request.is_not_known_safe(OUTSIDE);
        if kind == Kind::Unclear {
            request.is_not_allowed_by_rules();
        }
        let process = format!("process {} ({})", visible_line(id), command_of(entry));
        Ok(Self { request, kind, process })
    }

    /// What a person is told, whatever else there is to say: where it would go.
    fn destination(&self) -> String {
        let unclear = match self.kind {
            Kind::Command { .. } => "",
            Kind::Unclear => ", and is not one whole line for a shell at its prompt",
        };
        format!("to be typed to {}, which runs outside the sandbox{unclear}", self.process)
    }

    fn reason(&self) -> String {
        let destination = self.destination();
        match self.request.danger() {
            Some(danger) => format!("dangerous: {danger}; {destination}"),
            None => destination,
        }
    }
}

/// The command of a process, short enough for a line.
fn command_of(entry: &LiveEntry) -> String {
    let command = visible_line(&entry.command.join(" "));
    match command.char_indices().nth(LONGEST_COMMAND) {
        None => command,
        Some((end, _)) => format!("{} […]", &command[..end]),
    }
}

/// What is judged, and shown to a person. Only the end of the last line is left out, and nothing where that
/// is all there is.
fn shown(line: &str) -> String {
    let text = line.trim_end_matches(['\n', '\r']);
    match text.trim().is_empty() || text.contains('\0') {
        // Blanks alone would be no command at all.
        true => match visible_line(line) {
            blanks if blanks.trim().is_empty() => blanks.replace(' ', "\\u{20}"),
            visible => visible,
        },
        false => text.to_owned(),
    }
}

/// A terminal cuts off what a line has beyond some length, without a word.
const MAX_LINE_BYTES: usize = 1024;

/// Whether a shell that reads this at its prompt reads it as it stands, and all of it as one command: a
/// control character edits the line or ends it, `!` and `^` bring back parts of others, and a backslash at
/// the end joins it with the next. An empty line is no command.
fn is_plain_line(input: &str) -> bool {
    let Some(line) = input.strip_suffix(['\n', '\r']) else { return false };
    line.len() <= MAX_LINE_BYTES
        && !line.trim().is_empty()
        && !line.contains(|c: char| c.is_control() || matches!(c, '!' | '^'))
        && !line.ends_with('\\')
        && visible_line(line) == line
}

impl Approvable for TypedInput {
    fn approval_keys(&self) -> Vec<ApprovalKey> {
        let Kind::Command { process } = &self.kind else { return Vec::new() };
        let mut keys = self.request.approval_keys();
        for key in &mut keys {
            if let ApprovalKey::Command { tool, tty, .. } = key {
                (*tool, *tty) = (process.clone(), true);
            }
        }
        keys
    }

    fn lasts(&self, _: BypassSandbox) -> bool {
        // What has no key is not remembered in any case.
        self.kind == Kind::Unclear || self.request.lasts(BypassSandbox::Yes)
    }

    fn approval_requirement(&self, terms: &Terms<'_>) -> ApprovalRequirement {
        // Whatever this machine has, it does not confine that process.
        let availability = SandboxAvailability::Unavailable;
        let required = self.request.approval_requirement(&Terms { availability, ..*terms });
        let is_settled =
            *terms.sandbox == SandboxPolicy::DangerFullAccess || self.request.is_ruled_against();
        match required {
            ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule }
                if is_settled =>
            {
                let reason = format!("{reason}; {}", self.destination());
                ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule }
            }
            settled if is_settled => settled,
            ApprovalRequirement::NeedsApproval { bypass_sandbox, proposed_rule, .. } => {
                let proposed_rule = proposed_rule.filter(|_| self.kind != Kind::Unclear);
                let reason = self.reason();
                ApprovalRequirement::NeedsApproval { reason, bypass_sandbox, proposed_rule }
            }
            ApprovalRequirement::Forbidden { .. } if terms.approval == AskForApproval::Never => {
                ApprovalRequirement::Forbidden { reason: NOBODY.to_owned() }
            }
            other => other,
        }
    }
}

/// Types it, once that is permitted.
pub(super) struct TypingTool<'a> {
    pub(super) typing: &'a Typing,
    pub(super) entry: &'a Arc<LiveEntry>,
    /// What the call does, as it is recorded.
    pub(super) words: Vec<String>,
    pub(super) shown: Shown,
}

impl Sandboxable<TypedInput> for TypingTool<'_> {
    fn escalate_on_failure(&self) -> bool {
        false
    }

    fn sandbox_mode_for_first_attempt(&self, _: &TypedInput) -> FirstAttempt {
        FirstAttempt::NoOverride
    }
}

impl ToolRuntime<TypedInput> for TypingTool<'_> {
    type Output = UnifiedExecReply;

    async fn start_approval_async(
        &self,
        input: &TypedInput,
        approval: ApprovalCtx<'_>,
        ctx: &ToolCtx<'_>,
    ) -> Answer {
        CommandTool.start_approval_async(&input.request, approval, ctx).await
    }

    fn describe(&self, input: &TypedInput, ctx: &ToolCtx<'_>) -> Vec<Record> {
        let mut records = CommandTool.describe(&input.request, ctx);
        for record in &mut records {
            match record {
                Record::CallAsked(asked) => asked.argv.clone_from(&self.words),
                // What is said about a line may quote it.
                Record::Judged(judged) if self.shown == Shown::No => judged.reason = None,
                _ => {}
            }
        }
        records
    }

    fn decided_by(&self, input: &TypedInput) -> DecidedBy {
        CommandTool.decided_by(&input.request)
    }

    async fn run(
        &self,
        _: &TypedInput,
        _: &SandboxAttempt,
        ctx: &ToolCtx<'_>,
    ) -> Result<UnifiedExecReply, CodexErr> {
        ctx.turn.changes.before_command().await;
        self.typing.carry_out(self.entry, ctx.turn.cancellation()).await
    }

    fn denial(&self, _: &UnifiedExecReply) -> Option<Denials> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_without_anything_that_edits_it_is_plain() {
        for plain in ["ls\n", "git push origin main\r", "echo 'a b' | wc -l\n", "ls ü\n"] {
            assert!(is_plain_line(plain), "{plain:?}");
        }
        for other in [
            "",
            "\n",
            " \r",
            "ls",
            "ls\nrm x\n",
            "ls\r\n",
            "ls\t\n",
            "rm x\u{15}ls\n",
            "\u{12}rm\n",
            "ls\u{7f}\n",
            "\u{1b}[200~ls\u{1b}[201~\n",
            "ls\u{3}\n",
            "ls \u{9b}A\n",
            "find . !$\n",
            "^ls^rm\n",
            "uniq \\\n",
            "ls \u{200b}x\n",
        ] {
            assert!(!is_plain_line(other), "{other:?}");
        }
    }

    #[test]
    fn everything_that_would_be_typed_is_shown() {
        assert_eq!(shown("rm -rf x\n"), "rm -rf x");
        assert_eq!(shown("\n"), "\\n");
        assert_eq!(shown(" \r"), " \\r");
        assert_eq!(shown("  "), "\\u{20}\\u{20}");
        assert_eq!(shown("a\0b\n"), "a\\u{0}b\\n");
    }
}
