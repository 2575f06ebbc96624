//! A question as a form that a client shows, and what the filled-in form means.
//!
//! The text holds the same facts as the prompt on a terminal, each on lines of its own, and everything in it
//! shows itself. Whatever is not plainly one of the offered answers is a no.

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    EnumSchema, PrimitiveSchemaDefinition, StringSchema,
};
use sandgate_protocol::{
    ApprovalId, Event, Fact, FactKind, PatchChange, ReviewDecision, ShownQuestion, visible_line,
};
use serde_json::Value;
use std::fmt::Write as _;

/// The longest text that a form holds. What a person says yes to must be there in whole, so a longer
/// question is not put to the client.
const MOST_BYTES: usize = 64 * 1024;

/// The longest word to the model that is passed on, in bytes.
const MOST_FEEDBACK: usize = 4096;

/// A question as a form.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) id: ApprovalId,
    /// Made by [`text`].
    text: String,
    question: ShownQuestion,
}

impl Question {
    /// The question that an event asks, if it asks one.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (id, question) = (event.asks()?.clone(), ShownQuestion::of(event)?);
        let changes = match event {
            Event::ApplyPatchApprovalRequest(request) => request.changes.as_slice(),
            _ => &[],
        };
        Some(Self { id, text: text(&question, changes), question })
    }

    /// Whether a form can hold it.
    pub(super) fn fits(&self) -> bool {
        self.text.len() <= MOST_BYTES
    }

    /// The form.
    pub(super) fn form(&self) -> ElicitRequest {
        let choices = &self.question.choices;
        let words = choices.iter().map(|choice| choice.word.to_owned()).collect();
        let meanings: Vec<String> =
            choices.iter().map(|choice| format!("{}: {}", choice.word, choice.label)).collect();
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
        let message = format!("{}\n{}", self.text, meanings.join("\n"));
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
        let chosen = said("decision").and_then(|word| self.question.by_word(word));
        match chosen.map(|choice| &choice.answer) {
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

/// All that the person should know.
fn text(question: &ShownQuestion, changes: &[PatchChange]) -> String {
    // Writing to a string does not fail.
    let mut text = format!("{}\n\n", question.title);
    if question.place.is_none() {
        // What is long comes first: it cannot push away which files they are.
        for line in changes.iter().flat_map(|change| change.diff.lines()) {
            let _ = writeln!(text, "  {}", visible_line(line));
            if text.len() > MOST_BYTES {
                // It fits into no form any more, so nobody is shown it.
                return text;
            }
        }
        text.push('\n');
        for file in &question.subject {
            let _ = writeln!(text, "  {file}");
        }
        text.push('\n');
    }
    let (length, facts): (Vec<&Fact>, Vec<&Fact>) =
        question.facts.iter().partition(|fact| fact.kind == FactKind::Length);
    for fact in facts {
        let _ = writeln!(text, "  {fact}");
    }
    if let Some(place) = &question.place {
        // Last, just above the choices: nothing that was said of it can push it off the screen.
        let _ = writeln!(text, "\n  $ {}\n  in {place}", question.subject.join("\n    "));
    }
    for fact in length {
        let _ = writeln!(text, "  {fact}");
    }
    text
}
