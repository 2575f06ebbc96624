//! What a model does when it is asked: independent of the wire format that it is said in.

use crate::delivery::Delivery;
use crate::fault::Fault;
use serde::Deserialize;
use serde_json::Value;

/// How many characters of a call's arguments come at a time.
const ARGUMENT_PIECE: usize = 7;

/// What a model does when it is asked once.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Usage,
    pub(crate) stop: Stop,
    pub(crate) interleaved: bool,
    pub(crate) delivery: Delivery,
    pub(crate) fault: Option<Fault>,
    pub(crate) expected: Vec<String>,
    pub(crate) when: Option<String>,
}

/// One thing that a model says, thinks or calls, in the pieces that it comes in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Message { pieces: Vec<String> },
    Reasoning { pieces: Vec<String>, hidden: bool },
    Call { name: String, call_id: Option<String>, input: CallInput },
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallInput {
    /// The text of a JSON object, or of what a model takes for one.
    Arguments(String),
    /// Text of the tool's own kind. Where there is no such thing on the wire it is the member `input`
    /// of an object.
    Text(String),
}

/// What was used. `input_tokens` has those from the cache in it, and `output_tokens` those of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// What was read.
    pub input_tokens: u64,
    /// What of it came from the cache.
    pub cached_input_tokens: u64,
    /// What was written.
    pub output_tokens: u64,
    /// What of it was thought.
    pub reasoning_output_tokens: u64,
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said everything, or waits for the results of its calls.
    #[default]
    Done,
    /// It wrote as much as it may.
    Length,
    /// Its provider will not let it say this.
    Refused,
}

impl Turn {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says something, a word at a time.
    #[must_use]
    pub fn message(self, text: &str) -> Self {
        self.message_in(&words(text))
    }

    /// Says something in these pieces.
    #[must_use]
    pub fn message_in<T: AsRef<str>>(mut self, pieces: &[T]) -> Self {
        self.parts.push(Part::Message { pieces: owned(pieces) });
        self
    }

    /// Thinks, as far as people may read it. What the API wants to see again is made of it: a seal
    /// that tells when it was changed.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.parts.push(Part::Reasoning { pieces: words(text), hidden: false });
        self
    }

    /// Thinks what nobody may read: the API shows nothing but the seal.
    #[must_use]
    pub fn hidden_reasoning(mut self, text: &str) -> Self {
        self.parts.push(Part::Reasoning { pieces: words(text), hidden: true });
        self
    }

    /// Calls a tool with JSON.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that `json!` can be written in place")]
    pub fn call(self, name: &str, arguments: Value) -> Self {
        self.call_raw(name, &arguments.to_string())
    }

    /// Calls a tool with what the model takes for JSON.
    #[must_use]
    pub fn call_raw(mut self, name: &str, arguments: &str) -> Self {
        let input = CallInput::Arguments(arguments.to_owned());
        self.parts.push(Part::Call { name: name.to_owned(), call_id: None, input });
        self
    }

    /// Calls a tool with text of the tool's own kind.
    #[must_use]
    pub fn call_with_text(mut self, name: &str, text: &str) -> Self {
        let input = CallInput::Text(text.to_owned());
        self.parts.push(Part::Call { name: name.to_owned(), call_id: None, input });
        self
    }

    /// Names the call that was added last, which has a name of the server's making otherwise.
    #[must_use]
    pub fn call_id(mut self, id: &str) -> Self {
        if let Some(Part::Call { call_id, .. }) = self.parts.last_mut() {
            *call_id = Some(id.to_owned());
        }
        self
    }

    /// Says what was used.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Says why it stops.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Lets the pieces of calls that stand side by side come in turns. The Messages API never does
    /// so, and does not here either.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    /// Says how the bytes come.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Goes wrong.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Refuses the request, and records a violation, unless this stands in the output of the tool
    /// that was answered last.
    #[must_use]
    pub fn expect(mut self, output: &str) -> Self {
        self.expected.push(output.to_owned());
        self
    }

    /// Is for a request that has this in its body, and for no other. Such turns go before those that
    /// are for anybody, so that conversations at the same time can each have their own.
    #[must_use]
    pub fn when(mut self, body: &str) -> Self {
        self.when = Some(body.to_owned());
        self
    }

    /// Whether there is a call in it.
    pub(crate) fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }
}

impl CallInput {
    /// The text of a JSON object, for wire formats that know nothing else.
    pub(crate) fn as_arguments(&self) -> String {
        match self {
            Self::Arguments(text) => text.clone(),
            Self::Text(text) => serde_json::json!({ "input": text }).to_string(),
        }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 100,
            cached_input_tokens: 0,
            output_tokens: 10,
            reasoning_output_tokens: 0,
        }
    }
}

/// The line of a script: everything that makes a turn, in its order.
impl FromIterator<Act> for Turn {
    fn from_iter<T: IntoIterator<Item = Act>>(acts: T) -> Self {
        acts.into_iter().fold(Self::new(), |mut turn, act| {
            match act {
                Act::Message { text } => turn.parts.push(Part::Message { pieces: text.pieces() }),
                Act::Reasoning { text, hidden } => {
                    turn.parts.push(Part::Reasoning { pieces: text.pieces(), hidden });
                }
                Act::Call { name, call_id, arguments, raw_arguments, input } => {
                    let input = match (input, raw_arguments) {
                        (Some(text), _) => CallInput::Text(text),
                        (None, Some(text)) => CallInput::Arguments(text),
                        (None, None) if arguments.is_null() => CallInput::Arguments("{}".into()),
                        (None, None) => CallInput::Arguments(arguments.to_string()),
                    };
                    turn.parts.push(Part::Call { name, call_id, input });
                }
                Act::Usage(usage) => turn.usage = usage,
                Act::Stop { reason } => turn.stop = reason,
                Act::Interleaved => turn.interleaved = true,
                Act::Delivery(delivery) => turn.delivery = delivery,
                Act::Fault(fault) => turn.fault = Some(fault),
                Act::Expect { output } => turn.expected.push(output),
                Act::When { body } => turn.when = Some(body),
            }
            turn
        })
    }
}

/// One thing in the line of a script. The first four are those of the provider `script:FILE`, so that
/// a script without faults serves both.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Act {
    Message {
        text: Text,
    },
    Reasoning {
        text: Text,
        #[serde(default)]
        hidden: bool,
    },
    Call {
        name: String,
        call_id: Option<String>,
        #[serde(default)]
        arguments: Value,
        raw_arguments: Option<String>,
        input: Option<String>,
    },
    Usage(Usage),
    Stop {
        reason: Stop,
    },
    Interleaved,
    Delivery(Delivery),
    Fault(Fault),
    Expect {
        output: String,
    },
    When {
        body: String,
    },
}

/// A text, or the pieces that it comes in.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Whole(String),
    Pieces(Vec<String>),
}

impl Text {
    fn pieces(self) -> Vec<String> {
        match self {
            Self::Whole(text) => words(&text),
            Self::Pieces(pieces) => pieces,
        }
    }
}

/// A text in pieces of a few characters, as the arguments of a call come.
pub(crate) fn in_pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(ARGUMENT_PIECE).map(|piece| piece.iter().collect()).collect()
}

/// A text a word at a time, each with the space behind it.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

fn owned<T: AsRef<str>>(pieces: &[T]) -> Vec<String> {
    pieces.iter().map(|piece| piece.as_ref().to_owned()).collect()
}
