//! From events to bytes, and when each of them goes out.

use crate::fault::Fault;
use crate::turn::Turn;
use crate::wire::{Data, Event, Wire};
use bytes::Bytes;
use serde::Deserialize;
use std::time::Duration;

/// Neither UTF-8 nor JSON, in lines that look like an event.
const GARBAGE: &[u8] = b"\xff\xfe\x00 what is this?\ndata: {\"not\": json\n\n";

/// How the bytes of an answer come. What is not said is as the services do it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delivery {
    /// Where they are cut into the chunks of HTTP, which is what a client sees of the cuts.
    pub split: Split,
    /// How long it is from each chunk to the next.
    pub pause_ms: u64,
    /// How lines end.
    pub line_end: LineEnd,
    /// Whether a byte order mark comes first.
    pub byte_order_mark: bool,
    /// Whether comments and pings come between the events.
    pub keep_alives: bool,
    /// Whether fields and kinds of events come that nobody knows.
    pub unknown: bool,
    /// Whether the data of an event goes over several lines.
    pub spread: bool,
    /// Whether the space behind the colon is left out.
    pub tight: bool,
}

/// Where a stream is cut into chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// After each event.
    #[default]
    Events,
    /// Nowhere.
    Whole,
    /// After so many bytes.
    Bytes(usize),
    /// Wherever a reader could trip: inside of characters, between CR and LF, between the two ends of
    /// an event, behind the colon of a field.
    Awkward,
}

/// How lines end. Server-sent events may end in any of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// `\n`
    #[default]
    Lf,
    /// `\r\n`
    CrLf,
    /// `\r`
    Cr,
}

/// What the server does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Send(Bytes),
    Wait(Duration),
    /// Nothing more, with the connection open.
    Hang,
    /// Closes the connection in the middle of the answer.
    Cut,
}

/// The actions that send a stream of events, with what goes wrong with it.
///
/// # Errors
/// When the script asks for what cannot be done with these events.
pub(crate) fn stream(
    wire: Wire,
    mut events: Vec<Event>,
    turn: &Turn,
) -> Result<Vec<Action>, String> {
    let delivery = &turn.delivery;
    let mut last = None;
    let mut cut_in_character = false;
    match turn.fault.clone() {
        Some(Fault::Cut { after }) => {
            events.truncate(after);
            last = Some(Action::Cut);
        }
        Some(Fault::CutInCharacter) => {
            cut_in_character = true;
            last = Some(Action::Cut);
        }
        Some(Fault::Silence { after }) => {
            events.truncate(after);
            last = Some(Action::Hang);
        }
        Some(Fault::Error { after, code, message }) => {
            events.truncate(after);
            events.push(wire.error_event(&code, &message));
        }
        Some(Fault::Failed { after, code, message }) => {
            events.truncate(after);
            events.push(wire.failed_event(&events, &code, &message));
        }
        Some(Fault::Huge { after, bytes }) => {
            events.insert(after.min(events.len()), wire.unknown_event(bytes));
        }
        Some(Fault::Garbage { after }) => {
            let garbage = Event { name: None, data: Data::Raw(GARBAGE) };
            events.insert(after.min(events.len()), garbage);
        }
        _ => {}
    }
    if delivery.unknown {
        events.insert(events.len().min(2), wire.unknown_event(0));
    }
    wire.number(&mut events);
    let mut frames = frames(wire, &events, delivery);
    if cut_in_character {
        let bytes = frames.concat();
        let at = bytes.iter().position(|byte| *byte >= 0xc0);
        let at = at.ok_or("the script cuts in a character, and every character is one byte")?;
        frames = vec![bytes[..=at].to_vec()];
    }
    Ok(actions(chunks(frames, delivery.split), delivery, last))
}

/// The actions that send an answer which is no stream, with what goes wrong with it.
pub(crate) fn document(text: &str, turn: &Turn) -> Vec<Action> {
    let half = &text.as_bytes()[..text.len() / 2];
    let (bytes, last) = match turn.fault {
        Some(Fault::Cut { .. } | Fault::CutInCharacter) => (half.to_vec(), Some(Action::Cut)),
        Some(Fault::Silence { .. }) => (half.to_vec(), Some(Action::Hang)),
        Some(Fault::Garbage { .. }) => (GARBAGE.to_vec(), None),
        Some(Fault::Huge { bytes, .. }) => {
            ([" ".repeat(bytes).as_bytes(), text.as_bytes()].concat(), None)
        }
        _ => (text.as_bytes().to_vec(), None),
    };
    actions(chunks(vec![bytes], turn.delivery.split), &turn.delivery, last)
}

fn actions(chunks: Vec<Vec<u8>>, delivery: &Delivery, last: Option<Action>) -> Vec<Action> {
    let mut actions = Vec::new();
    for chunk in chunks {
        if !actions.is_empty() && delivery.pause_ms > 0 {
            actions.push(Action::Wait(Duration::from_millis(delivery.pause_ms)));
        }
        actions.push(Action::Send(Bytes::from(chunk)));
    }
    actions.extend(last);
    actions
}

/// Each event as it stands on the wire, with what comes between.
fn frames(wire: Wire, events: &[Event], delivery: &Delivery) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    if delivery.byte_order_mark {
        frames.push("\u{feff}".as_bytes().to_vec());
    }
    for (index, event) in events.iter().enumerate() {
        if delivery.keep_alives {
            let end = delivery.line_end.text();
            frames.push(format!(": keep-alive{end}{end}").into_bytes());
            if let (Wire::Messages, true) = (wire, index > 0) {
                frames.push(frame(&Event::ping(), index, delivery));
            }
        }
        frames.push(frame(event, index, delivery));
    }
    frames
}

fn frame(event: &Event, index: usize, delivery: &Delivery) -> Vec<u8> {
    let end = delivery.line_end.text();
    let space = if delivery.tight { "" } else { " " };
    let mut frame = String::new();
    let mut field = |name: &str, value: &str| {
        frame.push_str(&[name, ":", space, value, end].concat());
    };
    if let Some(name) = event.name {
        field("event", name);
    }
    if delivery.unknown {
        field("id", &index.to_string());
        field("retry", "10");
        field("weather", "fine");
    }
    match &event.data {
        Data::Raw(bytes) => return bytes.to_vec(),
        Data::Text(text) => field("data", text),
        Data::Json(value) if delivery.spread => {
            for line in format!("{value:#}").lines() {
                field("data", line);
            }
        }
        Data::Json(value) => field("data", &value.to_string()),
    }
    frame.push_str(end);
    frame.into_bytes()
}

fn chunks(frames: Vec<Vec<u8>>, split: Split) -> Vec<Vec<u8>> {
    match split {
        Split::Events => frames,
        Split::Whole => vec![frames.concat()],
        Split::Bytes(size) => frames.concat().chunks(size.max(1)).map(<[u8]>::to_vec).collect(),
        Split::Awkward => {
            let awkward = |byte: &u8| matches!(byte, b'\r' | b'\n' | b':' | 0x80..);
            frames.concat().split_inclusive(awkward).map(<[u8]>::to_vec).collect()
        }
    }
}

impl LineEnd {
    fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}
