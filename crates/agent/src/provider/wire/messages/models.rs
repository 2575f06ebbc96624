//! What differs between models that speak Messages, by their names.

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It cannot.
    None,
    /// With so many tokens.
    Budget,
    /// With a word for the effort. Such a model refuses a budget, and a temperature.
    Effort,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    pub(super) thinking: Thinking,
    /// Whether it can be held to a schema.
    pub(super) formats: bool,
    /// The most that it may write, unless the request says so. There is no request without it.
    pub(super) max_tokens: u64,
}

/// Models that are known not to be like the newest, by the beginnings of their names.
const KNOWN: &[(&str, Abilities)] = &[
    ("claude-3-7", abilities(Thinking::Budget, false, 32_000)),
    ("claude-3-5", abilities(Thinking::None, false, 8_192)),
    ("claude-3", abilities(Thinking::None, false, 4_096)),
    ("claude-sonnet-4-5", abilities(Thinking::Budget, true, 32_000)),
    ("claude-haiku-4-5", abilities(Thinking::Budget, true, 32_000)),
    ("claude-opus-4-5", abilities(Thinking::Budget, true, 32_000)),
    ("claude-opus-4-1", abilities(Thinking::Budget, true, 32_000)),
    ("claude-sonnet-4-20", abilities(Thinking::Budget, false, 32_000)),
    ("claude-sonnet-4-0", abilities(Thinking::Budget, false, 32_000)),
    ("claude-opus-4-20", abilities(Thinking::Budget, false, 32_000)),
    ("claude-opus-4-0", abilities(Thinking::Budget, false, 32_000)),
    ("claude", abilities(Thinking::Effort, true, 32_000)),
];

/// Others that speak as Anthropic's models did when they learned it.
const OTHERS: Abilities = abilities(Thinking::Budget, false, 16_000);

const fn abilities(thinking: Thinking, formats: bool, max_tokens: u64) -> Abilities {
    Abilities { thinking, formats, max_tokens }
}

impl Abilities {
    pub(super) fn of(model: &str) -> Self {
        let name =
            model.rsplit(['/', '.']).find(|part| part.starts_with("claude")).unwrap_or(model);
        let known = KNOWN.iter().find(|(begin, _)| name.starts_with(begin));
        known.map_or(OTHERS, |(_, abilities)| *abilities)
    }
}
