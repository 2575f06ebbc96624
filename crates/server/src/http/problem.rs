//! What a client is told when something did not work: a problem, as RFC 9457 has it.

use crate::opener::OpenError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandgate_runtime::AnswerError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem it is; `about:blank` says no more than the status.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened, with what, and what to do next.
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { kind: "about:blank", title, status: status.as_u16(), detail: detail.into() }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Something is wrong on this side.
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.detail, self.status)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // It is made of strings and a number.
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let how = HeaderValue::from_static("Bearer realm=\"sandgate\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        response
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Refused(why) => Self::unprocessable(why),
            OpenError::Failed(why) => Self::failed(why),
            OpenError::NoSuchConversation(why) => Self::not_found(why),
        }
    }
}

impl From<AnswerError> for Problem {
    fn from(error: AnswerError) -> Self {
        let detail = error.to_string();
        match error {
            AnswerError::AlreadyAnswered { .. } => Self::conflict(detail),
            AnswerError::NotOffered { .. } => Self::unprocessable(detail),
            AnswerError::NoSuchQuestion { .. } | AnswerError::SessionEnded => {
                Self::not_found(detail)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec HTTP.39: What a client asked for and cannot have is 422, and what fails on this side is 500.
    #[test]
    fn only_what_the_client_did_wrong_is_its_fault() {
        let status = |error: OpenError| Problem::from(error).status;
        assert_eq!(status(OpenError::Refused("no such directory".to_owned())), 422);
        assert_eq!(status(OpenError::NoSuchConversation("none".to_owned())), 404);
        assert_eq!(status(OpenError::Failed("config.toml is not TOML".to_owned())), 500);
    }
}
