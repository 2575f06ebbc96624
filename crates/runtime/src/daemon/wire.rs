//! What the daemon and its clients say to each other: JSON, a line each. `docs/spec/daemon.md` has the
//! order in which it is said.

use super::keep::{Described, KeepRequest, KeptReply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sandgate_protocol::{
    ApprovalId, AskForApproval, CallId, Event, ProcessInfo, ReviewDecision, SandboxPolicy,
    TerminalSizeParams, ToolCall, ToolPayload, WriteStdinToolCallParams,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Which of these languages is spoken. Whoever speaks another can only ask the daemon to stop.
pub const PROTOCOL: u32 = 2;

/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 8 << 20;

/// What a client says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The calls that follow are made in a session on these terms.
    Open {
        /// The terms.
        terms: SessionTerms,
    },
    /// The calls that follow are made in the session that this process was started in.
    Use {
        /// The process.
        process_id: String,
    },
    /// Calls to make. Nothing else is asked for until they are done.
    Call {
        /// The calls.
        calls: Vec<WireCall>,
    },
    /// The answer to a question that came up.
    Answer {
        /// The question.
        approval_id: ApprovalId,
        /// The answer.
        decision: ReviewDecision,
    },
    /// The calls are not waited for any longer.
    Cancel {},
    /// Which processes there are.
    List {},
    /// The process's terminal is wanted.
    Attach {
        /// The process.
        process_id: String,
        /// How large the person's own terminal is.
        size: TerminalSizeParams,
    },
    /// The person typed this.
    Input {
        /// What.
        bytes: Base64,
    },
    /// The person's terminal has another size.
    Resize {
        /// Which.
        size: TerminalSizeParams,
    },
    /// The terminal is not wanted any longer.
    Detach {},
    /// A session's process is to be kept.
    Keep {
        /// Which, and on what terms.
        request: Box<KeepRequest>,
    },
    /// What must be known of a kept process before anything is typed to it.
    Describe {
        /// The process.
        process_id: String,
    },
    /// Something for a kept process that the session has judged.
    Type {
        /// What.
        params: WriteStdinToolCallParams,
        /// The beginning of the line that it was judged with.
        typed: String,
    },
    /// The daemon is to end, and all processes with it.
    Stop {},
}

/// What the daemon says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The first line of every connection.
    Hello {
        /// See [`PROTOCOL`].
        protocol: u32,
        /// The daemon's version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// The session is there.
    Opened {},
    /// A person must answer this.
    Question {
        /// What is asked.
        event: Event,
    },
    /// What came of that question, whoever answered it.
    Answered {
        /// An `ApprovalResponse`.
        event: Event,
    },
    /// A person should know this.
    Warning {
        /// What.
        message: String,
    },
    /// What came of a call.
    Result(CallResult),
    /// All calls have been made.
    Done {},
    /// The processes.
    Processes {
        /// Each of them.
        processes: Vec<ProcessInfo>,
    },
    /// The terminal is there. What was on it follows as output.
    Attached {},
    /// The process printed this.
    Output {
        /// What.
        bytes: Base64,
    },
    /// The client was too slow: so much was not kept for it.
    Missed {
        /// How many bytes.
        bytes: u64,
    },
    /// The process has ended.
    Ended {
        /// How.
        exit_code: i32,
    },
    /// The terminal is given back.
    Detached {},
    /// The answer of a kept process.
    Kept(Box<KeptReply>),
    /// What must be known of one.
    Described(Box<Described>),
    /// The daemon is about to end.
    Stopping {},
    /// It cannot be done.
    Error {
        /// Why.
        message: String,
    },
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// The call.
    pub call_id: CallId,
    /// What a model would be given.
    pub output: String,
    /// Whether it did what it was asked to do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub success: Option<bool>,
    /// Why it came to nothing, if it did: the name of the error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
}

/// On which terms a session works. They are the person's word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionTerms {
    /// The workspace.
    pub workspace: PathBuf,
    /// When a person is asked.
    pub approval_policy: AskForApproval,
    /// What commands may touch.
    pub sandbox_policy: SandboxPolicy,
    /// The person's environment.
    pub env: Environment,
}

/// A call, in the form that providers have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum WireCall {
    /// A function with arguments as JSON text.
    #[serde(rename = "function_call")]
    Function {
        /// The tool.
        name: String,
        /// What its result is known by.
        call_id: CallId,
        /// The arguments.
        arguments: String,
    },
}

impl WireCall {
    pub(super) fn call_id(&self) -> &CallId {
        let Self::Function { call_id, .. } = self;
        call_id
    }
}

impl From<WireCall> for ToolCall {
    fn from(call: WireCall) -> Self {
        let WireCall::Function { name, call_id, arguments } = call;
        Self { call_id, name, payload: ToolPayload::Function { arguments } }
    }
}

/// An environment, whose names and values need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment(Vec<(Text, Text)>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Bytes(Vec<u8>),
}

impl From<&BTreeMap<OsString, OsString>> for Environment {
    fn from(map: &BTreeMap<OsString, OsString>) -> Self {
        let text = |value: &OsString| match value.to_str() {
            Some(text) => Text::Plain(text.to_owned()),
            None => Text::Bytes(value.as_bytes().to_vec()),
        };
        Self(map.iter().map(|(name, value)| (text(name), text(value))).collect())
    }
}

impl From<&Environment> for BTreeMap<OsString, OsString> {
    fn from(environment: &Environment) -> Self {
        let text = |text: &Text| match text {
            Text::Plain(text) => OsString::from(text),
            Text::Bytes(bytes) => OsString::from_vec(bytes.clone()),
        };
        environment.0.iter().map(|(name, value)| (text(name), text(value))).collect()
    }
}

/// Bytes, which are base64 on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Base64(pub Vec<u8>);

impl From<Base64> for String {
    fn from(bytes: Base64) -> Self {
        BASE64.encode(bytes.0)
    }
}

impl TryFrom<String> for Base64 {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        BASE64.decode(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            r#"{"type":"list","more":1}"#,
            r#"{"type":"grant_everything"}"#,
            r#"{"type":"use","process_id":"d1","as":"root"}"#,
            r#"{"type":"call","calls":[{"type":"function_call","name":"x","call_id":"c","arguments":"{}","by":"me"}]}"#,
            r#"{"type":"input","bytes":"not base64!"}"#,
        ] {
            assert!(serde_json::from_str::<Request>(line).is_err(), "{line}");
        }
        assert!(serde_json::from_str::<Request>(r#"{"type":"list"}"#).is_ok());
    }

    #[test]
    fn an_environment_arrives_as_it_was() {
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        let map = BTreeMap::from([("PLAIN".into(), "x".into()), ("ODD".into(), odd)]);
        let line = serde_json::to_string(&Environment::from(&map)).unwrap();
        let back: Environment = serde_json::from_str(&line).unwrap();
        assert_eq!(BTreeMap::from(&back), map);
    }
}
