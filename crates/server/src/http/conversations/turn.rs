//! Turns: what the person says, and the events that come of it.

use super::begin::resume;
use super::check_use;
use crate::asking::Caller;
use crate::http::body::{Json, LARGE_BYTES, Path};
use crate::http::problem::Problem;
use crate::http::server::Server;
use crate::http::sse::{self, streamed};
use crate::live::Busy;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sandgate_agent::UserInput;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// What the person says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnBody {
    input: TurnInput,
}

/// In words, or in parts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TurnInput {
    /// In words.
    Text(String),
    /// In parts.
    Parts(Vec<InputPart>),
}

/// A part of what the person says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum InputPart {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// As a data URL: `data:image/png;base64,…`.
        #[schema(pattern = "^data:image/")]
        image_url: String,
    },
}

/// Where the events of a turn begin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnBegun {
    /// The conversation.
    conversation: String,
    /// The number of the last event before the turn.
    after: u64,
}

/// Has a turn taken. Answers with its events as they happen; with `Prefer: respond-async` at once.
#[utoipa::path(post, path = "/conversations/{id}/turns", tag = "conversations", request_body = TurnBody,
    params(("id" = String, Path, description = "The conversation; one that is written down is opened"),
        ("prefer" = Option<String>, Header, description = "`respond-async` to be answered at once")),
    responses(
        (status = 200, body = sse::Sent, content_type = "text/event-stream",
            description = "The turn's events, until it has ended"),
        (status = 202, body = TurnBegun, description = "The turn was begun")))]
pub(in crate::http) async fn turn(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(body): Json<TurnBody, LARGE_BYTES>,
) -> Result<Response, Problem> {
    let input = body.input.read()?;
    let live = match server.conversations.get(&id) {
        Some(live) => {
            check_use(&server, caller, &live.about.cwd)?;
            live
        }
        None => resume(&server, caller, &id).await?,
    };
    let after = live.events.progress().borrow().last;
    let reading = live.begin_turn(input).map_err(|Busy| {
        Problem::conflict("a turn is being taken; interrupt it, or wait until it has ended")
    })?;
    if prefers_async(&headers) {
        let begun = TurnBegun { conversation: live.about.id.clone(), after };
        return Ok((StatusCode::ACCEPTED, axum::Json(begun)).into_response());
    }
    Ok(streamed(reading))
}

fn prefers_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim() == "respond-async")
}

impl TurnInput {
    fn read(self) -> Result<UserInput, Problem> {
        let mut input = match self {
            Self::Text(text) => UserInput::text(text),
            Self::Parts(parts) => {
                let mut input = UserInput::default();
                for part in parts {
                    match part {
                        InputPart::Text { text } if input.text.is_empty() => input.text = text,
                        InputPart::Text { text } => {
                            input.text.push('\n');
                            input.text.push_str(&text);
                        }
                        InputPart::Image { image_url } if image_url.starts_with("data:image/") => {
                            input.images.push(image_url);
                        }
                        InputPart::Image { .. } => {
                            let why = "an image must be a data URL: data:image/png;base64,…";
                            return Err(Problem::unprocessable(why));
                        }
                    }
                }
                input
            }
        };
        if input.text.trim().is_empty() && input.images.is_empty() {
            return Err(Problem::unprocessable("there is nothing in the input"));
        }
        input.images.truncate(64);
        Ok(input)
    }
}
