//! From what a call left to what a client is given: the model's text, and the same as facts.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use sandgate_protocol::{
    CodexErr, ContentItem, ExecToolCallOutput, GrantedToRun, ToolOutput, UnifiedExecReply,
    visible_line,
};
use sandgate_runtime::{ModelFormat, ToolResult};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What is added to a call that waited in vain for an answer.
pub(super) const WHERE_TO_ANSWER: &str = "The person can answer such questions with `sandgate approvals` \
                                          in a terminal, or in the console of `sandgate serve`.";

/// What a call left, for a program that reads it.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(default)]
struct Answer {
    /// What the call is known by in the record.
    call_id: String,
    /// What was printed or found, as far as a model is given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// The command's exit code, once it has ended: 124 after a timeout, 128 + n after signal n.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// The time limit ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Its call was cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    /// Which attempt this is from: 1, or 2 if a person let it have what the first was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// What a person opened to it beyond the policy, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    granted: Vec<String>,
    /// What its sandbox refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denials: Vec<Denial>,
    /// How many further refusals are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_denials: Option<u64>,
    /// The live process, as long as it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<String>,
    /// Why a call on a live process was answered just then.
    #[serde(skip_serializing_if = "Option::is_none")]
    returned: Option<String>,
    /// The live processes, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Vec<Value>>,
    /// Why the call came to nothing, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

/// One thing that a command tried and its sandbox refused.
#[derive(Debug, Serialize, JsonSchema)]
struct Denial {
    /// What was tried: write, create, connect.
    operation: String,
    /// On what.
    target: String,
    /// Why it was refused.
    rule: String,
    /// All of it as a sentence.
    sentence: String,
}

/// Why a call came to nothing.
#[derive(Debug, Serialize, JsonSchema)]
struct Failure {
    /// What kind of failure: approval_denied, approval_timeout, forbidden, invalid_arguments.
    code: String,
    /// The sentence.
    message: String,
}

/// The schema of what every tool answers.
pub(super) fn schema() -> Arc<JsonObject> {
    static SCHEMA: LazyLock<Arc<JsonObject>> =
        LazyLock::new(|| match schemars::schema_for!(Answer).to_value() {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        });
    Arc::clone(&SCHEMA)
}

/// What a client is given of a tool's result. `ended` is how its command ended, if it had one.
pub(super) fn answer(
    tool: &str,
    result: ToolResult,
    ended: Option<&ExecToolCallOutput>,
) -> CallToolResult {
    let mut answer = Answer { call_id: result.call_id.to_string(), ..Answer::default() };
    if let Some(ended) = ended {
        answer.ended(ended);
    }
    let (mut content, success) = match result.output {
        ToolOutput::Function { content, content_items, success, ran } => {
            if let Some(ran) = ran {
                answer.exit_code = Some(ran.exit_code);
                answer.attempt = Some(ran.attempt);
                answer.granted = granted(&ran.granted);
            }
            if result.error.is_none() {
                answer.printed(tool, &content);
            }
            (blocks(content, content_items), success.unwrap_or(true))
        }
        ToolOutput::Mcp { result } => match result {
            Ok(value) => (vec![ContentBlock::text(value.to_string())], true),
            Err(why) => (vec![ContentBlock::text(why)], false),
        },
    };
    if let Some(error) = &result.error {
        let mut message = error.for_model();
        if let Some(advice) = advice(error) {
            message = format!("{message}\n{advice}");
            content = vec![ContentBlock::text(message.clone())];
        }
        answer.error = Some(Failure { code: error.name().to_owned(), message });
    }
    let mut given = match success {
        true => CallToolResult::success(content),
        false => CallToolResult::error(content),
    };
    // Text, numbers and lists of them can always be written.
    given.structured_content = serde_json::to_value(&answer).ok();
    given
}

/// What a client is given of a call that was not made.
pub(super) fn not_made(code: &str, message: &str) -> CallToolResult {
    let error = Failure { code: code.to_owned(), message: message.to_owned() };
    let answer = Answer { error: Some(error), ..Answer::default() };
    let mut given = CallToolResult::error(vec![ContentBlock::text(message)]);
    given.structured_content = serde_json::to_value(&answer).ok();
    given
}

/// What can be done about it elsewhere.
fn advice(error: &CodexErr) -> Option<&'static str> {
    matches!(error, CodexErr::ApprovalTimeout | CodexErr::NobodyToAsk { .. })
        .then_some(WHERE_TO_ANSWER)
}

/// The text that the model gets, and pictures where there are any.
fn blocks(text: String, items: Option<Vec<ContentItem>>) -> Vec<ContentBlock> {
    let Some(items) = items else { return vec![ContentBlock::text(text)] };
    let block = |item| match item {
        ContentItem::InputText { text } => ContentBlock::text(text),
        ContentItem::InputImage { image_url } => match data_url(&image_url) {
            Some((kind, data)) => ContentBlock::image(data.to_owned(), kind.to_owned()),
            None => ContentBlock::text(image_url),
        },
    };
    items.into_iter().map(block).collect()
}

/// The kind and the base64 of a picture that is in its own address.
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, data))
}

fn granted(granted: &GrantedToRun) -> Vec<String> {
    let path = |path: &std::path::PathBuf| visible_line(&path.to_string_lossy());
    let writable = granted.writable.iter().map(|it| format!("write to {}", path(it)));
    let sockets = granted.sockets.iter().map(|it| format!("connect to {}", path(it)));
    let network = granted.network.then(|| "reach the network".to_owned());
    let outside = granted.without_sandbox.then(|| "run without the sandbox".to_owned());
    writable.chain(sockets).chain(network).chain(outside).collect()
}

impl Answer {
    /// How its command ended.
    fn ended(&mut self, ended: &ExecToolCallOutput) {
        self.exit_code = Some(ended.exit_code);
        self.duration_ms = Some(u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX));
        (self.timed_out, self.cancelled) = (ended.timed_out, ended.cancelled);
        let evidence = ended.denials.evidence.iter();
        self.denials = evidence
            .map(|denial| Denial {
                operation: denial.operation.name().to_owned(),
                target: visible_line(&denial.target),
                rule: name_of(&denial.rule),
                sentence: visible_line(&denial.to_string()),
            })
            .collect();
        self.more_denials = Some(ended.denials.more).filter(|more| *more > 0);
        self.output = Some(ModelFormat::default().shorten(&ended.aggregated_output.text));
    }

    /// What the model is told. Whoever prints the same decides nothing here: the tool does.
    fn printed(&mut self, tool: &str, content: &str) {
        match tool {
            "exec_command" | "write_stdin" => {
                let Ok(reply) = serde_json::from_str::<UnifiedExecReply>(content) else { return };
                self.exit_code = reply.exit_code;
                self.duration_ms = u64::try_from(wall_time(&reply).as_millis()).ok();
                self.returned = Some(name_of(&reply.returned));
                (self.process_id, self.output) = (reply.process_id, Some(reply.output));
            }
            "list_processes" => self.processes = serde_json::from_str(content).ok(),
            _ if self.output.is_none() => self.output = Some(content.to_owned()),
            _ => {}
        }
    }
}

fn wall_time(reply: &UnifiedExecReply) -> Duration {
    Duration::try_from_secs_f64(reply.wall_time_seconds).unwrap_or_default()
}

/// The name that a word of ours has on the wire.
fn name_of(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
