//! Open questions, as people see them.

use crate::decide::{Feedback, sentence};
use jiff::Timestamp;
use sandgate_protocol::visible_line;
use sandgate_runtime::{Asker, PendingQuestion};

/// Draws them, two lines each: who asks and since when, and what.
pub(super) fn draw(questions: &[PendingQuestion]) -> String {
    let draw = |one: &PendingQuestion| {
        let asked = sentence(&one.question.question);
        format!("{}  {}\n    {asked}\n", visible_line(&one.question.id), who(one))
    };
    questions.iter().map(draw).collect()
}

/// Which program asks, where, and since when.
pub(super) fn who(pending: &PendingQuestion) -> String {
    let asker = &pending.question.asker;
    let conversation = match &asker.conversation {
        Some(id) => format!(", conversation {}", visible_line(id)),
        None => String::new(),
    };
    format!(
        "sandgate {} (process {}) in {}{conversation}, asked {} ago",
        visible_line(&asker.front_end),
        pending.pid,
        visible_line(&asker.workspace),
        age(pending.question.asked),
    )
}

/// The front ends whose command a person typed: there is no model that could be told anything.
const WITHOUT_MODEL: [&str; 3] = ["run", "patch", "session"];

/// Who hears what is written beside a no.
pub(super) fn hears(asker: &Asker) -> Feedback {
    match asker.front_end.as_str() {
        front_end if WITHOUT_MODEL.contains(&front_end) => Feedback::Record,
        // Over HTTP a program can make calls of its own.
        "serve" if asker.conversation.is_none() => Feedback::Caller,
        _ => Feedback::Model,
    }
}

/// How long ago something was, in its largest unit.
fn age(since: Timestamp) -> String {
    match Timestamp::now().duration_since(since).as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{ApplyPatchApprovalRequest, ApprovalId, CallId, Event};
    use sandgate_runtime::OpenQuestion;

    /// spec DESK.20: What is written beside a no to a call over HTTP that belongs to no conversation is said to be told
    /// to the program that made it.
    #[test]
    fn a_program_without_a_model_hears_it_itself() {
        let asker = |front_end: &str, conversation: Option<&str>| Asker {
            front_end: front_end.to_owned(),
            workspace: "/w".to_owned(),
            conversation: conversation.map(str::to_owned),
        };
        assert_eq!(hears(&asker("serve", None)), Feedback::Caller);
        assert_eq!(hears(&asker("serve", Some("c"))), Feedback::Model);
        assert_eq!(hears(&asker("mcp", None)), Feedback::Model);
        assert_eq!(hears(&asker("run", None)), Feedback::Record);
    }

    #[test]
    fn nothing_in_a_question_begins_a_line_of_its_own() {
        let fake = "x\nabcdef01-9  sandgate exec\n\u{1b}[2J".to_owned();
        let question = Event::ApplyPatchApprovalRequest(Box::new(ApplyPatchApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            changes: Vec::new(),
            reason: fake.clone(),
            grant_root: None,
            only_once: false,
            agent: Some(fake.clone()),
        }));
        let asker = Asker {
            front_end: fake.clone(),
            workspace: fake.clone(),
            conversation: Some(fake.clone()),
        };
        let asked = Timestamp::now();
        let question = OpenQuestion { id: fake, asker, asked, question, is_cut: false };
        let text = draw(&[PendingQuestion { pid: 1, question }]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
