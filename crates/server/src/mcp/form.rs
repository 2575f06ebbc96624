//! A question as a form that a client shows, and what the filled-in form means.
//!
//! The text holds the same facts as the prompt on a terminal, each on lines of its own, and everything in it
//! shows itself. Whatever is not plainly one of the offered answers is a no.

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    EnumSchema, PrimitiveSchemaDefinition, StringSchema,
};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApprovalId, Event, ExecApprovalRequest, GrantScope, PatchChange,
    PatchChangeKind, ReviewDecision, visible, visible_line, visible_remark,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// How many refusals are shown.
const MOST_DENIALS: usize = 8;

/// The longest text that a form holds. What a person says yes to must be there in whole, so a longer
/// question is not put to the client.
const MOST_BYTES: usize = 64 * 1024;

/// The longest word to the model that is passed on, in bytes.
const MOST_FEEDBACK: usize = 4096;

/// A question, with what can be answered to it.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) id: ApprovalId,
    shown: String,
    choices: Vec<Choice>,
}

/// One of the answers.
#[derive(Debug, Clone)]
struct Choice {
    word: &'static str,
    means: String,
    decision: ReviewDecision,
}

impl Question {
    /// The question that an event asks, if it asks one.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (id, shown, mut choices) = match event {
            Event::ExecApprovalRequest(request) => {
                (&request.approval_id, shown_command(request), command_choices(request))
            }
            Event::ApplyPatchApprovalRequest(request) => {
                (&request.approval_id, shown_patch(request), patch_choices(request))
            }
            _ => return None,
        };
        choices.push(choice("deny", "no", ReviewDecision::DENIED));
        choices.push(choice("abort", "no, and stop this call", ReviewDecision::Abort));
        Some(Self { id: id.clone(), shown, choices })
    }

    /// Whether a form can hold it.
    pub(super) fn fits(&self) -> bool {
        self.shown.len() <= MOST_BYTES
    }

    /// The form.
    pub(super) fn form(&self) -> ElicitRequest {
        let words = self.choices.iter().map(|choice| choice.word.to_owned()).collect();
        let meanings: Vec<String> = self
            .choices
            .iter()
            .map(|choice| format!("{}: {}", choice.word, choice.means))
            .collect();
        let decision = EnumSchema::builder(words)
            .title("Your answer")
            .description(meanings.join("; "))
            .untitled()
            .build();
        let feedback = StringSchema::new()
            .title("What the model is told")
            .description("With deny: a word to the model, if you like");
        let requested_schema = ElicitationSchema::builder()
            .required_enum_schema("decision", decision)
            .property("feedback", PrimitiveSchemaDefinition::String(feedback))
            .build_unchecked();
        let message = format!("{}\n{}", self.shown, meanings.join("\n"));
        ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema,
        })
    }

    /// What the form means that came back.
    pub(super) fn decision(&self, filled: &ElicitResult) -> ReviewDecision {
        if filled.action != ElicitationAction::Accept {
            return ReviewDecision::DENIED;
        }
        let said = |name: &str| filled.content.as_ref()?.get(name)?.as_str();
        let chosen = said("decision").and_then(|word| {
            self.choices.iter().find(|choice| choice.word == word).map(|choice| &choice.decision)
        });
        match chosen {
            Some(ReviewDecision::Denied { .. }) | None => {
                let feedback = said("feedback").map(str::trim).filter(|word| !word.is_empty());
                let feedback =
                    feedback.map(|word| word[..word.floor_char_boundary(MOST_FEEDBACK)].to_owned());
                ReviewDecision::Denied { feedback }
            }
            Some(decision) => decision.clone(),
        }
    }

    /// The same for a form that came back in a call that is made again.
    pub(super) fn decision_in(&self, filled: Option<&Value>) -> ReviewDecision {
        match filled.map(|filled| serde_json::from_value::<ElicitResult>(filled.clone())) {
            Some(Ok(filled)) => self.decision(&filled),
            Some(Err(_)) | None => ReviewDecision::DENIED,
        }
    }
}

fn choice(word: &'static str, means: impl Into<String>, decision: ReviewDecision) -> Choice {
    Choice { word, means: means.into(), decision }
}

fn command_choices(request: &ExecApprovalRequest) -> Vec<Choice> {
    let mut choices = Vec::new();
    if let Some(offer) = &request.grant_offer {
        let grant = |scope| ReviewDecision::ApprovedWithGrant { scope };
        let summary = visible_line(&offer.summary);
        choices.push(choice("grant", format!("only let it {summary}"), grant(GrantScope::Call)));
        let session = "the same for the rest of the session";
        choices.push(choice("grant-session", session, grant(GrantScope::Session)));
    }
    let (yes, more) = match request.without_sandbox {
        true => ("yes, without the sandbox", "yes, without the sandbox,"),
        false => ("yes, once", "yes,"),
    };
    choices.push(choice("approve", yes, ReviewDecision::Approved));
    if request.offers().session {
        let session = format!("{more} and for the rest of the session");
        choices.push(choice("session", session, ReviewDecision::ApprovedForSession));
    }
    if let Some(rule) = &request.proposed_rule {
        let words = visible_line(&rule.join(" "));
        let always = format!("{more} always for commands that begin with: {words}");
        choices.push(choice("rule", always, ReviewDecision::ApprovedWithRule));
    }
    choices
}

fn patch_choices(request: &ApplyPatchApprovalRequest) -> Vec<Choice> {
    let mut choices = vec![choice("approve", "yes, once", ReviewDecision::Approved)];
    if request.offers().session {
        let more = match &request.grant_root {
            Some(root) => format!("yes, and to everything in {}", shown_path(root)),
            None => "yes, and to these files for the rest of the session".to_owned(),
        };
        choices.push(choice("session", more, ReviewDecision::ApprovedForSession));
    }
    choices
}

fn shown_command(request: &ExecApprovalRequest) -> String {
    let mut text = String::new();
    let title =
        if request.denials.is_empty() { "May this run?" } else { "The sandbox blocked this." };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{title}\n");
    for denial in request.denials.iter().take(MOST_DENIALS) {
        let _ = writeln!(text, "  blocked: {}", visible_line(&denial.to_string()));
    }
    let hidden = request.denials.len().saturating_sub(MOST_DENIALS) as u64 + request.more_denials;
    if hidden > 0 {
        let _ = writeln!(text, "  blocked: {hidden} more");
    }
    because(&mut text, request.agent.as_deref(), &request.reason);
    if let Some(why) = &request.justification {
        let _ = writeln!(text, "  the model says: | {}", visible_remark(why));
    }
    if let Some(risk) = &request.risk {
        let description = visible_remark(&risk.description);
        let _ = writeln!(text, "  risk: {:?}. | {description}", risk.risk_level);
    }
    // Last, just above the choices: nothing that was said of it can push it off the screen.
    text.push('\n');
    for (index, line) in request.command_text.lines().enumerate() {
        let mark = if index == 0 { "$" } else { " " };
        let _ = writeln!(text, "  {mark} {}", visible_line(line));
    }
    let _ = writeln!(text, "  in {}", shown_path(&request.cwd));
    text
}

fn shown_patch(request: &ApplyPatchApprovalRequest) -> String {
    let mut text = "May these files be changed?\n\n".to_owned();
    for change in &request.changes {
        let letter = match change.kind {
            PatchChangeKind::Add => 'A',
            PatchChangeKind::Delete => 'D',
            PatchChangeKind::Update => 'M',
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {letter} {}", shown_paths(change));
    }
    text.push('\n');
    for line in request.changes.iter().flat_map(|change| change.diff.lines()) {
        let _ = writeln!(text, "  {}", visible_line(line));
        if text.len() > MOST_BYTES {
            // It fits into no form any more, so nobody is shown it.
            return text;
        }
    }
    text.push('\n');
    because(&mut text, request.agent.as_deref(), &request.reason);
    text
}

fn because(text: &mut String, agent: Option<&str>, reason: &str) {
    if let Some(agent) = agent {
        let _ = writeln!(text, "  asked by the subagent {}", visible_line(agent));
    }
    let _ = writeln!(text, "  because: {}", indented(reason));
}

/// A path on one line, whatever its name holds.
fn shown_path(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}

/// All that a change writes to: the file, and where it goes if it moves.
fn shown_paths(change: &PatchChange) -> String {
    match &change.moved_to {
        Some(target) => format!("{} -> {}", shown_path(&change.path), shown_path(target)),
        None => shown_path(&change.path),
    }
}

/// Text whose further lines cannot be taken for ours.
fn indented(text: &str) -> String {
    visible(text).replace('\n', "\n    ")
}
