//! A small model's opinion on a command that the sandbox blocked, for the person who decides.
//!
//! All that it can say is a [`RiskAssessment`]: there is no answer by which it could approve anything. An
//! answer that is not exactly what was asked for is none.

use crate::provider::{ModelEvent, ModelRequest, Provider, StopReason};
use crate::untrusted::Mark;
use futures_util::StreamExt as _;
use sandgate_protocol::{
    ResponseItem, RiskAssessment, RiskLevel, Role, SessionSource, SubAgentSource, visible,
};
use sandgate_runtime::{RiskAssessor, RiskQuestion};
use serde::Deserialize;
use std::pin::Pin;
use std::sync::Arc;

/// What the model is told.
const INSTRUCTIONS: &str = "\
A program asked to run a command on a person's machine. A sandbox blocked part of what it did. The person \
is about to decide whether it may run again with more rights, and reads what you write first. Say how bad \
it could be if it did.

Low: it reads, or is known to be harmless. Medium: it changes files, or reaches the network. High: it \
changes the system, removes much, touches secrets, or hides what it does. If you cannot tell, say High.

Answer with one JSON object and nothing else, no prose and no code fence: \
{\"risk_level\": \"Low\" | \"Medium\" | \"High\", \"description\": \"one or two plain sentences: what the \
command does, why it was blocked, what could go wrong\"}";

/// The most of each piece of the question that is sent, in bytes.
const LONGEST_COMMAND: usize = 8 * 1024;
const LONGEST_EVIDENCE: usize = 4 * 1024;
const LONGEST_STDERR: usize = 4 * 1024;
/// The most that the model may write, in tokens, and the longest description that is shown.
const LONGEST_ANSWER: u64 = 200;
const LONGEST_DESCRIPTION: usize = 600;

/// Asks a model about commands that were blocked.
pub struct ModelRiskAssessor {
    provider: Arc<dyn Provider>,
    model: String,
}

impl ModelRiskAssessor {
    /// Asks this model.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        Self { provider, model: model.into() }
    }

    async fn ask(&self, question: RiskQuestion<'_>) -> Option<RiskAssessment> {
        let items = [ResponseItem::message(Role::User, prompt(&question))];
        let source = SessionSource::SubAgent(SubAgentSource::Other("assessment".to_owned()));
        let (id, schema) = (uuid::Uuid::now_v7().to_string(), schema());
        let request = ModelRequest {
            model: &self.model,
            instructions: INSTRUCTIONS,
            items: &items,
            tools: &[],
            parallel_tool_calls: false,
            temperature: Some(0.0),
            max_output_tokens: Some(LONGEST_ANSWER),
            reasoning_effort: None,
            output_schema: Some(&schema),
            conversation_id: &id,
            source: &source,
        };
        let mut said = Vec::new();
        let mut stream = self.provider.stream(request);
        loop {
            match stream.next().await?.ok()? {
                ModelEvent::Item(item @ ResponseItem::Message { .. }) => said.push(item.text()?),
                // It was given no tool: whatever it is at, it is not an answer.
                ModelEvent::Item(ResponseItem::ToolCall { .. }) => return None,
                ModelEvent::Retrying { .. } => said.clear(),
                ModelEvent::End(StopReason::Done) => break,
                ModelEvent::End(_) => return None,
                _ => {}
            }
        }
        match &said[..] {
            [answer] => read(answer),
            _ => None,
        }
    }
}

impl RiskAssessor for ModelRiskAssessor {
    fn assess<'a>(
        &'a self,
        question: RiskQuestion<'a>,
    ) -> Pin<Box<dyn Future<Output = Option<RiskAssessment>> + Send + 'a>> {
        Box::pin(async move {
            let asked = tokio::time::timeout(RiskQuestion::PATIENCE, self.ask(question));
            asked.await.ok().flatten()
        })
    }
}

/// The question, with everything that a command could have written as data.
fn prompt(question: &RiskQuestion<'_>) -> String {
    let mark = Mark::new();
    let mut prompt = mark.explained() + "\n";
    // Neither fails: they are lists of text and plain data.
    let command = serde_json::to_string(question.command).unwrap_or_default();
    let policy = serde_json::to_string(question.policy).unwrap_or_default();
    let denials = &question.denials.evidence;
    let evidence: Vec<String> = denials.iter().map(ToString::to_string).collect();
    mark.quote(&mut prompt, "The command, word by word", &command, LONGEST_COMMAND);
    let cwd = question.cwd.to_string_lossy();
    mark.quote(&mut prompt, "The directory that it ran in", &cwd, LONGEST_EVIDENCE);
    mark.quote(&mut prompt, "The policy of the sandbox", &policy, LONGEST_EVIDENCE);
    mark.quote(&mut prompt, "What the sandbox blocked", &evidence.join("\n"), LONGEST_EVIDENCE);
    mark.quote(&mut prompt, "What it wrote to standard error", question.stderr, LONGEST_STDERR);
    prompt.push_str("\nWhat is the risk? Answer with the JSON object alone.");
    prompt
}

/// What the answer must look like, for providers that can hold a model to it.
fn schema() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "risk_level": { "type": "string", "enum": ["Low", "Medium", "High"] },
            "description": { "type": "string" },
        },
        "required": ["risk_level", "description"],
        "additionalProperties": false,
    })
}

/// The answer as it must be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    risk_level: RiskLevel,
    description: String,
}

/// Reads an answer; none if it is anything else than the object that was asked for.
fn read(answer: &str) -> Option<RiskAssessment> {
    let Answer { risk_level, description } = serde_json::from_str(answer).ok()?;
    let description = description.trim();
    if description.is_empty() {
        return None;
    }
    let shown = visible(&description[..description.floor_char_boundary(LONGEST_DESCRIPTION)]);
    Some(RiskAssessment { risk_level, description: shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_object_that_was_asked_for_is_an_answer() {
        let good = r#" {"risk_level":"Medium","description":"It writes to .git."} "#;
        let read_one = read(good).unwrap();
        assert_eq!(read_one.risk_level, RiskLevel::Medium);
        assert_eq!(read_one.description, "It writes to .git.");
        for wrong in [
            "",
            "Low",
            r#"Sure! {"risk_level":"Low","description":"x"}"#,
            "```json\n{\"risk_level\":\"Low\",\"description\":\"x\"}\n```",
            r#"{"risk_level":"Low","description":"x","approve":true}"#,
            r#"{"risk_level":"low","description":"x"}"#,
            r#"{"risk_level":"None","description":"x"}"#,
            r#"{"risk_level":"Low"}"#,
            r#"{"description":"x"}"#,
            r#"{"risk_level":"Low","description":" "}"#,
            r#"{"risk_level":"Low","description":7}"#,
            r#"{"risk_level":"Low","description":"x","description":"y"}"#,
            r#"[{"risk_level":"Low","description":"x"}]"#,
            r#"{"risk_level":"Low","description":"x"}{"risk_level":"Low","description":"x"}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_description_is_short_and_shows_itself() {
        let text = format!("\u{1b}[2J\u{202e}{}", "é".repeat(10_000));
        let answer = serde_json::json!({ "risk_level": "High", "description": text }).to_string();
        let read_one = read(&answer).unwrap();
        assert!(!read_one.description.chars().any(|c| c.is_control() || c == '\u{202e}'));
        assert!(read_one.description.len() < 2 * LONGEST_DESCRIPTION);
    }
}
