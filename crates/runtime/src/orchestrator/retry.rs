//! After the sandbox refused something: a person is asked whether the command may have it.

use super::approve::{record_answer, refuse_if_changed, yes_or_error};
use super::{ApprovalCtx, SandboxAttempt, ToolCtx, ToolRuntime};
use sandgate_policy::{Approvable, ApprovalStore, Extras};
use sandgate_protocol::PROTECTED_NAMES;
use sandgate_protocol::{CodexErr, Denials, GrantOffer, GrantScope, ReviewDecision};
use sandgate_sandbox::is_git_directory;
use std::path::{Path, PathBuf};

/// Whether there is to be another attempt.
pub(super) enum Again {
    /// There is.
    Yes(Box<SandboxAttempt>),
    /// There is not, and the result of the first one stands; with the reason, if somebody was to be
    /// asked.
    No(Option<CodexErr>),
}

/// Asks whether there is to be a second attempt.
pub(super) async fn ask<T, R>(
    tool: &T,
    request: &R,
    first: &SandboxAttempt,
    output: &T::Output,
    denials: &Denials,
    ctx: &ToolCtx<'_>,
) -> Result<Again, CodexErr>
where
    T: ToolRuntime<R>,
    R: Approvable + Sync,
{
    let policy = ctx.services.config.approval_policy;
    // Whoever stopped it does not want it once more.
    let stop = ctx.turn.stop();
    if stop.interrupt.is_cancelled() || stop.cancel.is_cancelled() {
        return Ok(Again::No(None));
    }
    if !tool.escalate_on_failure() || !request.wants_no_sandbox_approval(policy) {
        return Ok(Again::No(None));
    }
    let extras = tool.narrowest(request, denials, ctx).map(as_they_lie);
    let extras = extras.filter(|extras| {
        let approvals = ctx.services.approvals();
        extras.writable.iter().all(|path| can_be_offered(path, &approvals))
    });
    let offer = extras.as_ref().map(|extras| offer(extras, &ctx.services.config.workspace));
    let offer = offer.filter(is_short);
    let approval = ApprovalCtx {
        reason: "the sandbox blocked it".to_owned(),
        proposed_rule: None,
        denials: Some(denials),
        grant_offer: offer,
        risk: tool.assess_risk(request, output, denials, ctx).await,
        without_sandbox: true,
        // A question about what was blocked offers no yes for the session anyway.
        only_once: false,
    };
    let reason = approval.reason.clone();
    let asked = request.approval_keys();
    let answer = tool.start_approval_async(request, approval, ctx).await;
    record_answer(&answer, first.number() + 1, ctx)?;
    let decision = match yes_or_error(answer, reason) {
        Ok(decision) => decision,
        Err(CodexErr::UserAborted) => return Err(CodexErr::UserAborted),
        // The failure that is there already is what the model gets.
        Err(not_again) => return Ok(Again::No(Some(not_again))),
    };
    refuse_if_changed(request, &asked)?;
    let extras = extras.unwrap_or_default();
    let grants = matches!(decision, ReviewDecision::ApprovedWithGrant { .. });
    if grants && !extras.writable.iter().all(|path| lies_as_offered(path)) {
        // Somebody put a link on the way while the person thought about it.
        return Err(CodexErr::Forbidden {
            reason: "what was offered is not where it was when the question was asked".to_owned(),
        });
    }
    if decision == (ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }) {
        ctx.services.open_for_session(&extras);
    }
    let permission = first.permission().after_denial(&decision, &extras);
    let Some(permission) = permission else { return Ok(Again::No(None)) };
    let rights = match decision {
        ReviewDecision::ApprovedWithGrant { .. } => "only_what_was_blocked",
        _ => "without_sandbox",
    };
    ctx.services.telemetry.retried(ctx.tool_name, rights);
    tracing::info!(call_id = ?ctx.call_id.as_str(), rights, "the command runs again");
    Ok(Again::Yes(Box::new(first.again(permission))))
}

/// Whether a person who reads the name of a path knows what they would open. For what a command wanted to
/// make that is the directory around it, and a home or a directory of the system is far more than that.
fn can_be_offered(path: &Path, approvals: &ApprovalStore) -> bool {
    !path.is_dir() || is_protected(path) || approvals.check_root(path).is_ok()
}

/// Whether it is what a name like `.git` stands for: a person knows that as one thing. Nobody knows it by another
/// spelling, so such a directory is offered like any other.
fn is_protected(path: &Path) -> bool {
    path.file_name().is_some_and(|name| PROTECTED_NAMES.iter().any(|one| name == *one))
}

/// Paths without links in them, so that what is offered is what will be opened.
fn as_they_lie(mut extras: Extras) -> Extras {
    for path in &mut extras.writable {
        if let Some(real) = really(path) {
            *path = real;
        }
    }
    extras
}

/// Whether no link has come into a path since it was offered.
fn lies_as_offered(path: &Path) -> bool {
    really(path).is_none_or(|real| real == path)
}

/// Where a path leads, or would lead if its last part were there.
fn really(path: &Path) -> Option<PathBuf> {
    match (dunce::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), _, _) => Some(real),
        (Err(_), Some(above), Some(name)) => Some(dunce::canonicalize(above).ok()?.join(name)),
        _ => None,
    }
}

/// What is offered, as a person would say it.
fn offer(extras: &Extras, workspace: &Path) -> GrantOffer {
    let name = |path: &Path| match path.strip_prefix(workspace) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.display().to_string(),
        _ => path.display().to_string(),
    };
    let mut parts = Vec::new();
    if !extras.writable.is_empty() {
        let is_one_thing = |path: &Path| is_protected(path) || is_git_directory(path);
        let is_whole = |path: &&PathBuf| path.is_dir() && !is_one_thing(path);
        let (whole, single): (Vec<_>, Vec<_>) = extras.writable.iter().partition(is_whole);
        let single = single.into_iter().map(|path| match is_git_directory(path) {
            false => name(path),
            true => format!("{} ({})", name(path), left_closed(path, extras)),
        });
        let whole = whole.into_iter().map(|path| format!("anything in {}", name(path)));
        parts.push(format!("write to {}", listed(single.chain(whole))));
    }
    if !extras.sockets.is_empty() {
        parts.push(format!("connect to {}", listed(extras.sockets.iter().map(|path| name(path)))));
    }
    if extras.network {
        parts.push("reach the network".to_owned());
    }
    GrantOffer {
        summary: sandgate_protocol::visible_line(&listed(parts)),
        writable: extras.writable.clone(),
        sockets: extras.sockets.clone(),
        network: extras.network,
    }
}

/// The longest offer, in characters. It is named twice among the answers, and what takes longer to read there pushes the
/// command away.
const LONGEST_OFFER: usize = 600;

fn is_short(offer: &GrantOffer) -> bool {
    offer.summary.chars().count() <= LONGEST_OFFER
}

/// What of a git directory is not opened with it, so that a person knows what they give.
fn left_closed(git: &Path, extras: &Extras) -> &'static str {
    let mut others = extras.writable.iter().filter(|path| *path != git);
    match others.any(|path| path.starts_with(git)) {
        false => "not its hooks and config",
        true => "of its hooks and config only what is named",
    }
}

/// Things as they are listed in a sentence.
fn listed(things: impl IntoIterator<Item = String>) -> String {
    let things: Vec<String> = things.into_iter().collect();
    match things.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_policy::Surroundings;

    #[test]
    fn an_offer_is_said_as_a_person_would_say_it() {
        let workspace = Path::new("/ws");
        let extras = Extras { writable: vec!["/ws/.git".into()], ..Extras::default() };
        assert_eq!(offer(&extras, workspace).summary, "write to .git");
        let extras = Extras {
            writable: vec!["/ws/.git".into(), "/etc/hosts".into(), "/ws".into()],
            sockets: vec!["/run/docker.sock".into()],
            network: true,
        };
        let summary = "write to .git, /etc/hosts and /ws, connect to /run/docker.sock and reach \
                       the network";
        assert_eq!(offer(&extras, workspace).summary, summary);
        let directory = tempfile::tempdir().unwrap();
        let writable = vec![directory.path().to_owned(), "/etc/hosts".into()];
        let extras = Extras { writable, ..Extras::default() };
        let summary = format!("write to /etc/hosts and anything in {}", directory.path().display());
        assert_eq!(offer(&extras, workspace).summary, summary);
    }

    /// spec APPROVAL.62: A rule of more than 200 characters, or a grant that takes more than 600 to name, is not offered:
    /// it would push away what it is about.
    #[test]
    fn what_takes_long_to_name_is_not_offered() {
        let of = |length: usize| {
            let writable = vec![format!("/etc/{}", "x".repeat(length)).into()];
            offer(&Extras { writable, ..Extras::default() }, Path::new("/ws"))
        };
        assert!(is_short(&of(500)) && !is_short(&of(600)));
    }

    /// spec DECISIONS.53: No directory is offered that is a home or holds one, or that a person or the
    /// system keeps; of any other it is said that anything in it could be written.
    #[test]
    fn a_home_or_a_directory_of_the_system_is_not_offered() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = dunce::canonicalize(directory.path()).unwrap();
        for name in ["tour", ".ssh", "ws/.git"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        std::fs::write(home.join(".bashrc"), "").unwrap();
        let around = Surroundings { home: Some(home.clone()), ..Surroundings::default() };
        let approvals = ApprovalStore::new(around, None);
        let can_be = |path: &Path| can_be_offered(path, &approvals);
        for path in [home.join("tour"), home.join(".bashrc"), home.join("ws/.git")] {
            assert!(can_be(&path), "{}", path.display());
        }
        for path in ["/", "/etc", "/usr", "/var", "/bin", "/home", "/root"] {
            if Path::new(path).is_dir() {
                assert!(!can_be(Path::new(path)), "{path}");
            }
        }
        for path in [home.as_path(), Path::new("/var/tmp"), &home.join(".ssh")] {
            assert!(!can_be(path), "{}", path.display());
        }
    }
}
