//! The turns of a model, one after the other, and which of them answers a request.

use crate::record::Request;
use crate::turn::{Act, Turn};
use serde::Deserialize;
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

/// The longest script that is read, in bytes.
const LARGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// What a model does at each request.
#[derive(Default)]
pub struct Script {
    steps: VecDeque<Step>,
    after: Option<Responder>,
    key: Option<String>,
    unchecked: bool,
}

type Responder = Box<dyn FnMut(&Request) -> Turn + Send>;

enum Step {
    Turn(Box<Turn>),
    Asked(Box<dyn FnOnce(&Request) -> Turn + Send>),
}

/// Why a script cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script: {0}")]
    Unreadable(#[from] std::io::Error),
    /// There is too much of it.
    #[error("a script has at most {LARGEST_SCRIPT} bytes")]
    TooLarge,
    /// A line is no turn.
    #[error("line {line} of the script: {reason}")]
    Line {
        /// Which one, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl Script {
    /// A model that does nothing at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.steps.push_back(Step::Turn(Box::new(turn)));
        self
    }

    /// Adds a turn that depends on what is asked.
    #[must_use]
    pub fn turn_with(mut self, turn: impl FnOnce(&Request) -> Turn + Send + 'static) -> Self {
        self.steps.push_back(Step::Asked(Box::new(turn)));
        self
    }

    /// Says what happens at every request after the turns that were added.
    #[must_use]
    pub fn then_always(mut self, turn: impl FnMut(&Request) -> Turn + Send + 'static) -> Self {
        self.after = Some(Box::new(turn));
        self
    }

    /// Turns away whoever does not show this key, with status 401. Otherwise any key will do, and
    /// none.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Answers whatever is asked, for clients of others that send what only their own service knows.
    #[must_use]
    pub fn unchecked(mut self) -> Self {
        self.unchecked = true;
        self
    }

    /// Reads a script: each line is a JSON array of what the model does when it is asked, or one such
    /// thing alone.
    ///
    /// # Errors
    /// When the file cannot be read, with the line that is wrong.
    pub fn read(file: &Path) -> Result<Self, ScriptError> {
        if std::fs::metadata(file)?.len() > LARGEST_SCRIPT {
            return Err(ScriptError::TooLarge);
        }
        Self::parse(&std::fs::read_to_string(file)?)
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let turns = lines.map(|(number, line)| {
            let wrong = |reason: String| ScriptError::Line { line: number + 1, reason };
            // Read by hand which of the two it is, because serde's guess would hide what is wrong.
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            let acts = if value.is_array() {
                Vec::<Act>::deserialize(value)
            } else {
                Act::deserialize(value).map(|act| vec![act])
            };
            let turn = acts.map_err(|error| wrong(error.to_string()))?.into_iter().collect();
            Ok(Step::Turn(Box::new(turn)))
        });
        let steps = turns.collect::<Result<_, ScriptError>>()?;
        Ok(Self { steps, ..Self::default() })
    }

    /// What answers a request: the first turn that is for it, or else the first that is for anybody.
    pub(crate) fn next(&mut self, request: &Request) -> Option<Turn> {
        let body = request.body.to_string();
        let wanted = |step: &Step| match step {
            Step::Turn(turn) => turn.when.as_ref().is_some_and(|when| body.contains(when)),
            Step::Asked(_) => false,
        };
        let free = |step: &Step| !matches!(step, Step::Turn(turn) if turn.when.is_some());
        let at = self.steps.iter().position(wanted);
        match at.or_else(|| self.steps.iter().position(free)).and_then(|at| self.steps.remove(at)) {
            Some(Step::Turn(turn)) => Some(*turn),
            Some(Step::Asked(turn)) => Some(turn(request)),
            None => self.after.as_mut().map(|turn| turn(request)),
        }
    }

    /// Whether requests are answered that the real service would refuse.
    pub(crate) fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// The key that has to be shown.
    pub(crate) fn required_key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// How many turns nobody has asked for yet.
    pub(crate) fn left(&self) -> usize {
        self.steps.len()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}
