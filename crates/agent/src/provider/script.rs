//! A model that says what a file says, for tests and demonstrations.

use super::{ModelError, ModelEvent, ModelRequest, ModelStream, Provider, StopReason};
use futures_util::{StreamExt as _, stream};
use sandgate_protocol::{CallId, CallInput, ResponseItem, Role, TokenUsage};
use serde::Deserialize;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The longest script that is read, in bytes.
const LARGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// Replays the turns of a model from a file: each line is a JSON array of what it says and calls when
/// it is asked, or one such thing alone.
#[derive(Debug)]
pub struct ScriptProvider {
    name: String,
    file: PathBuf,
    turns: Mutex<VecDeque<Vec<Scripted>>>,
}

/// One thing that the model does.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Scripted {
    /// It says something.
    Message { text: String },
    /// It thinks.
    Reasoning { text: String },
    /// It calls a tool: with JSON, or with text of the tool's own kind.
    Call {
        name: String,
        call_id: Option<String>,
        #[serde(default)]
        arguments: serde_json::Value,
        input: Option<String>,
    },
    /// What it used.
    Usage {
        #[serde(default)]
        input_tokens: u64,
        #[serde(default)]
        output_tokens: u64,
    },
}

/// What the model does when it is asked once.
fn turn(line: &str) -> serde_json::Result<Vec<Scripted>> {
    match serde_json::from_str(line)? {
        all @ serde_json::Value::Array(_) => serde_json::from_value(all),
        one => Ok(vec![serde_json::from_value(one)?]),
    }
}

impl ScriptProvider {
    /// Reads a script.
    ///
    /// # Errors
    /// When it cannot be read, with the line that is wrong.
    pub fn open(file: &Path) -> Result<Self, ModelError> {
        let wrong = |what: String| ModelError::Settings(format!("{}: {what}", file.display()));
        let size = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
        if size > LARGEST_SCRIPT {
            return Err(wrong(format!("a script has at most {LARGEST_SCRIPT} bytes")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let turns = lines.map(|(number, line)| {
            turn(line).map_err(|error| wrong(format!("line {}: {error}", number + 1)))
        });
        let turns: VecDeque<_> = turns.collect::<Result<_, _>>()?;
        let name = format!("script:{}", file.display());
        Ok(Self { name, file: file.to_owned(), turns: Mutex::new(turns) })
    }

    fn next(&self) -> Result<Vec<Scripted>, ModelError> {
        let next = self.turns.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| {
            let file = self.file.display();
            ModelError::Settings(format!("{file}: the script has no further turn"))
        })
    }
}

impl Provider for ScriptProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a> {
        let turn = match self.next() {
            Ok(turn) => turn,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let calls =
            request.items.iter().filter(|item| matches!(item, ResponseItem::ToolCall { .. }));
        let mut called = calls.count();
        let mut events = Vec::new();
        for one in turn {
            match one {
                Scripted::Message { text } => {
                    events.push(ModelEvent::TextDelta(text.clone()));
                    events.push(ModelEvent::Item(ResponseItem::message(Role::Assistant, text)));
                }
                Scripted::Reasoning { text } => {
                    events.push(ModelEvent::ReasoningDelta(text.clone()));
                    let (wire, data) = ("script".to_owned(), serde_json::Value::Null);
                    events.push(ModelEvent::Item(ResponseItem::Reasoning {
                        summary: text,
                        wire,
                        data,
                    }));
                }
                Scripted::Call { name, call_id, arguments, input } => {
                    called += 1;
                    let call_id = call_id.unwrap_or_else(|| format!("call_{called}"));
                    let input = match input {
                        Some(text) => CallInput::Text(text),
                        None if arguments.is_null() => CallInput::Arguments("{}".to_owned()),
                        None => CallInput::Arguments(arguments.to_string()),
                    };
                    let call =
                        ResponseItem::ToolCall { call_id: CallId::new(call_id), name, input };
                    events.push(ModelEvent::Item(call));
                }
                Scripted::Usage { input_tokens, output_tokens } => {
                    let usage = TokenUsage { input_tokens, output_tokens, ..Default::default() };
                    events.push(ModelEvent::Usage(usage));
                }
            }
        }
        events.push(ModelEvent::End(StopReason::Done));
        stream::iter(events.into_iter().map(Ok)).boxed()
    }
}
