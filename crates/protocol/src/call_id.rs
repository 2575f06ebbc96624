//! The name of one tool call, which ties its events, its result and its audit lines together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The id of a tool call, as the model or the front end gave it.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Takes an id as it came from outside; it is never interpreted, only repeated.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
