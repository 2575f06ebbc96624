//! Tool calls and their results as JSON lines, in the form that providers have them.

use sandgate_protocol::{
    ApprovalId, CallId, ReviewDecision, ShellToolCallParams, ToolCall, ToolOutput, ToolPayload,
};
use sandgate_runtime::ToolResult;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// The calls of one response of a model.
    Calls(Vec<ToolCall>),
    /// An answer to a question.
    Answer(ApprovalId, ReviewDecision),
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
    calls.into_iter().map(call).collect::<Result<_, _>>().map(Line::Calls)
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

fn call(value: Value) -> Result<ToolCall, String> {
    let call = serde_json::from_value(value).map_err(|error| format!("not a call: {error}"))?;
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
    /// Why it came to nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// Writes a result, as a line.
pub(super) fn write(result: &ToolResult) -> Vec<u8> {
    let mcp;
    let (output, success, content_items) = match &result.output {
        ToolOutput::Function { content, content_items, success } => {
            (content.as_str(), *success, content_items.as_deref())
        }
        ToolOutput::Mcp { result } => {
            mcp = match result {
                Ok(value) => value.to_string(),
                Err(error) => error.clone(),
            };
            (mcp.as_str(), Some(result.is_ok()), None)
        }
    };
    let error = result.error.as_ref().map(sandgate_protocol::CodexErr::name);
    let call_id = &result.call_id;
    let r#type = "function_call_output";
    as_line(&WireResult { r#type, call_id, output, success, content_items, error })
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
        assert_eq!((calls[0].name.as_str(), calls[0].call_id.as_str()), ("shell", "c1"));
        let Line::Calls(calls) = read(&format!("[{one},{one}]")).unwrap() else { panic!("none") };
        assert_eq!(calls.len(), 2);
        let local = r#"{"type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{}}}"#;
        let Line::Calls(calls) = read(local).unwrap() else { panic!("none") };
        assert!(
            matches!(&calls[0].payload, ToolPayload::LocalShell { params } if params.command == ["ls"])
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
            let error = read(line).unwrap_err();
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
        let error = Some(CodexErr::UserAborted);
        let line = String::from_utf8(write(&ToolResult { error, ..result })).unwrap();
        assert!(line.contains(r#""error":"user_aborted""#), "{line}");
    }
}
