//! Tool calls and their results as JSON lines, in the form that providers have them.

use sandgate_protocol::{
    ApprovalId, CallId, Ran, ReviewDecision, ShellToolCallParams, ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::ToolResult;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// The calls of one response of a model, and what is none among them.
    Calls(Vec<Result<ToolCall, Malformed>>),
    /// An answer to a question.
    Answer(ApprovalId, ReviewDecision),
}

/// Something that should have been a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    /// What its result would have been known by, if it says so.
    pub(super) call_id: Option<CallId>,
    /// What is wrong with it, as one sentence.
    pub(super) message: String,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it, as one sentence.
pub(super) fn read(line: &str) -> Result<Line, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    if value.get("type").and_then(Value::as_str) == Some("approval_response") {
        let answer: WireAnswer =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        return Ok(Line::Answer(answer.approval_id, answer.decision));
    }
    let calls = match value {
        Value::Array(calls) => calls,
        one => vec![one],
    };
    Ok(Line::Calls(calls.into_iter().map(call).collect()))
}

#[derive(Deserialize)]
struct WireAnswer {
    approval_id: ApprovalId,
    #[serde(flatten)]
    decision: ReviewDecision,
}

/// A call. What else stands in it belongs to the provider and is left alone.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum WireCall {
    #[serde(rename = "function_call")]
    Function { name: String, call_id: CallId, arguments: String },
    #[serde(rename = "custom_tool_call")]
    Custom { name: String, call_id: CallId, input: String },
    #[serde(rename = "local_shell_call")]
    LocalShell { call_id: CallId, action: LocalShellAction },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum LocalShellAction {
    Exec { command: Vec<String>, timeout_ms: Option<u64>, working_directory: Option<String> },
}

fn call(value: Value) -> Result<ToolCall, Malformed> {
    let call_id = value.get("call_id").and_then(Value::as_str).map(CallId::new);
    let call = serde_json::from_value(value)
        .map_err(|error| Malformed { call_id, message: format!("not a call: {error}") })?;
    Ok(match call {
        WireCall::Function { name, call_id, arguments } => {
            ToolCall { call_id, name, payload: ToolPayload::Function { arguments } }
        }
        WireCall::Custom { name, call_id, input } => {
            ToolCall { call_id, name, payload: ToolPayload::Custom { input } }
        }
        WireCall::LocalShell { call_id, action } => {
            let LocalShellAction::Exec { command, timeout_ms, working_directory } = action;
            let workdir = working_directory;
            let params = ShellToolCallParams { command, workdir, timeout_ms, ..Default::default() };
            let payload = ToolPayload::LocalShell { params };
            ToolCall { call_id, name: "shell".to_owned(), payload }
        }
    })
}

/// A result.
#[derive(Serialize)]
struct WireResult<'a> {
    r#type: &'static str,
    call_id: &'a CallId,
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_items: Option<&'a [sandgate_protocol::ContentItem]>,
    /// How the command ran.
    #[serde(flatten)]
    ran: Option<&'a Ran>,
    /// Why it came to nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// Writes a result, as a line.
pub(super) fn write(result: &ToolResult) -> Vec<u8> {
    let mcp;
    let (output, success, content_items, ran) = match &result.output {
        ToolOutput::Function { content, content_items, success, ran } => {
            (content.as_str(), *success, content_items.as_deref(), ran.as_deref())
        }
        ToolOutput::Mcp { result } => {
            mcp = match result {
                Ok(value) => value.to_string(),
                Err(error) => error.clone(),
            };
            (mcp.as_str(), Some(result.is_ok()), None, None)
        }
    };
    let error = result.error.as_ref().map(sandgate_protocol::CodexErr::name);
    let call_id = &result.call_id;
    let r#type = "function_call_output";
    as_line(&WireResult { r#type, call_id, output, success, content_items, ran, error })
}

/// Writes what is wrong with something that should have been a call, as a line: its result if it says
/// what that is known by.
pub(super) fn write_malformed(number: u64, malformed: &Malformed) -> Vec<u8> {
    let Malformed { call_id, message } = malformed;
    match call_id {
        None => write_error(number, message),
        Some(call_id) => {
            let error = Some("malformed_call");
            let (r#type, output, success) = ("function_call_output", message, Some(false));
            let (content_items, ran) = (None, None);
            as_line(&WireResult { r#type, call_id, output, success, content_items, ran, error })
        }
    }
}

/// Writes what is wrong with a line, as a line.
pub(super) fn write_error(number: u64, message: &str) -> Vec<u8> {
    as_line(&serde_json::json!({ "type": "error", "line": number, "message": message }))
}

/// Anything as one line of JSON.
pub(super) fn as_line(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and maps with names for keys can always be written.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::CodexErr;

    #[test]
    fn a_line_is_one_call_or_several() {
        let one =
            r#"{"type":"function_call","name":"shell","call_id":"c1","arguments":"{}","id":"x"}"#;
        let Line::Calls(calls) = read(one).unwrap() else { panic!("no calls") };
        let first = calls[0].as_ref().unwrap();
        assert_eq!((first.name.as_str(), first.call_id.as_str()), ("shell", "c1"));
        let Line::Calls(calls) = read(&format!("[{one},{one}]")).unwrap() else { panic!("none") };
        assert_eq!(calls.len(), 2);
        let local = r#"{"type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{}}}"#;
        let Line::Calls(calls) = read(local).unwrap() else { panic!("none") };
        assert!(
            matches!(&calls[0].as_ref().unwrap().payload, ToolPayload::LocalShell { params } if params.command == ["ls"])
        );
    }

    #[test]
    fn a_line_can_answer_a_question() {
        let line = r#"{"type":"approval_response","approval_id":"approval_1","decision":"denied","feedback":"no"}"#;
        let no = ReviewDecision::Denied { feedback: Some("no".to_owned()) };
        assert_eq!(read(line).unwrap(), Line::Answer(ApprovalId::new("approval_1"), no));
    }

    #[test]
    fn what_is_no_call_is_said() {
        for (line, reason) in [
            ("{", "not JSON"),
            ("{}", "missing field `type`"),
            (r#"{"type":"message"}"#, "unknown variant `message`"),
            (r#"{"type":"function_call","name":"x"}"#, "missing field"),
            ("7", "not a call"),
        ] {
            let error = match read(line) {
                Err(message) => message,
                Ok(Line::Calls(calls)) => calls[0].clone().unwrap_err().message,
                Ok(other) => panic!("{other:?}"),
            };
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn a_result_is_one_line_in_the_providers_form() {
        let result = ToolResult {
            call_id: CallId::new("call_abc123"),
            output: ToolOutput::text("a\nb\n", true),
            error: None,
        };
        let line = String::from_utf8(write(&result)).unwrap();
        let expected = r#"{"type":"function_call_output","call_id":"call_abc123","output":"a\nb\n","success":true}"#;
        assert_eq!(line, format!("{expected}\n"));
        let ran = Ran { exit_code: 3, timed_out: false, attempt: 1, granted: Default::default() };
        let command = ToolResult { output: ToolOutput::command("", ran), ..result.clone() };
        let line = String::from_utf8(write(&command)).unwrap();
        assert!(line.ends_with("\"success\":false,\"exit_code\":3,\"attempt\":1}\n"), "{line}");
        let error = Some(CodexErr::UserAborted);
        let line = String::from_utf8(write(&ToolResult { error, ..result })).unwrap();
        assert!(line.contains(r#""error":"user_aborted""#), "{line}");
    }
}
