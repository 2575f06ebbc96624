//! The sessions of subagents: inside of another session, whose questions and events they share by
//! construction.
//!
//! A child has its own policies, never looser than its parent's, and its own live processes. Everything
//! else that decides (rules, settings, who is asked) is its parent's. It holds its parent, so that one
//! ends after the other.

use super::turn::TurnAbove;
use super::{Keeping, Requester, Services, Turn};
use crate::tools::ToolRegistry;
use sandgate_protocol::{AskForApproval, CodexErr, SandboxPolicy, SessionSource, SubAgentSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many subagents there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubAgentLimits {
    /// How deep they may lie in each other; 0 for none at all.
    pub depth: usize,
    /// How many may be there at once in all of a session, at whatever depth.
    pub at_once: usize,
}

impl Default for SubAgentLimits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8 }
    }
}

/// What the session of a subagent is begun with.
#[derive(Debug, Clone)]
pub struct ChildTerms {
    /// What it is for.
    pub source: SubAgentSource,
    /// What it is called, before it gets a number; the name of its source if nothing is said. Small
    /// letters, digits, `-` and `_`.
    pub name: Option<String>,
    /// When a person is to be asked; as the parent has it if nothing is said or this would be looser.
    pub approval_policy: Option<AskForApproval>,
    /// What its commands may touch, as far as the parent's may; all of that if nothing is said.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// What it may call.
    pub tools: ChildTools,
}

/// What a subagent may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChildTools {
    /// What its parent may.
    #[default]
    All,
    /// What only looks, and commands in a sandbox that is read-only.
    ReadOnly,
}

impl ChildTerms {
    /// A subagent for this, as free as its parent.
    pub fn new(source: SubAgentSource) -> Self {
        let (approval_policy, sandbox_policy) = (None, None);
        Self { source, name: None, approval_policy, sandbox_policy, tools: ChildTools::All }
    }
}

/// What a subagent's session knows of what is above it.
pub(super) struct Ancestry {
    pub(super) parent: Arc<Services>,
    /// Its name with those above it.
    pub(super) agent: String,
    /// The turn that it works for.
    pub(super) turn: Option<TurnAbove>,
    /// Given back when it ends.
    pub(super) _place: Place,
}

/// The places for subagents in a session and all that is below it.
#[derive(Debug)]
pub(super) struct Places {
    limits: SubAgentLimits,
    taken: AtomicUsize,
}

/// A place that is taken as long as this is there.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Places {
    pub(super) fn new(limits: SubAgentLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: AtomicUsize::new(0) })
    }

    fn take(self: &Arc<Self>) -> Option<Place> {
        let more = |taken: usize| (taken < self.limits.at_once).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Requester {
    /// The session of a subagent that works for a call in this turn.
    pub(crate) fn below(
        services: &Services,
        terms: ChildTerms,
        turn: &Turn,
    ) -> Result<Self, CodexErr> {
        let over = || CodexErr::ToolExecutionFailed("the session is over".to_owned());
        let parent = services.me().upgrade().ok_or_else(over)?;
        Ok(Self { services: begin(&parent, terms, Some(turn.as_above()))? })
    }
}

/// Begins the session of a subagent.
pub(super) fn begin(
    parent: &Arc<Services>,
    terms: ChildTerms,
    turn: Option<TurnAbove>,
) -> Result<Arc<Services>, CodexErr> {
    let refused = |why: String| CodexErr::ToolExecutionFailed(why);
    let name = terms.name.as_deref().unwrap_or(terms.source.name());
    if !is_name(name) {
        return Err(refused(format!(
            "a subagent's name is 1 to {LONGEST_NAME} small letters, digits, - and _, and begins with a \
             letter"
        )));
    }
    let SubAgentLimits { depth, at_once } = parent.places.limits;
    if depth_of(parent) >= depth {
        return Err(refused(format!(
            "no subagent was begun: subagents lie at most {depth} deep in each other; do the work \
             yourself"
        )));
    }
    let Some(place) = parent.places.take() else {
        return Err(refused(format!(
            "no subagent was begun: there are {at_once} at work, which is as many as there may be; wait \
             for one of them to end"
        )));
    };
    let number = parent.had.fetch_add(1, Ordering::AcqRel) + 1;
    let agent = match parent.agent() {
        Some(above) => format!("{above}/{name}-{number}"),
        None => format!("{name}-{number}"),
    };
    let mut config = parent.config.clone();
    let registry = match terms.tools {
        ChildTools::All => ToolRegistry::clone(&parent.registry.current()),
        ChildTools::ReadOnly => ToolRegistry::reading(),
    };
    let sandbox_policy = match terms.tools {
        ChildTools::ReadOnly => Some(SandboxPolicy::ReadOnly),
        ChildTools::All => terms.sandbox_policy,
    };
    config = config.tightened(terms.approval_policy, sandbox_policy);
    config.source = Some(SessionSource::SubAgent(terms.source));
    // What it starts ends with it.
    config.keeping = Keeping::Nowhere;
    Services::below(parent, config, registry, agent, place, turn)
        .map_err(|error| CodexErr::Fatal(error.to_string()))
}

/// The longest name of one subagent, without its number.
const LONGEST_NAME: usize = 32;

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_plain)
}

/// How many sessions are above one.
fn depth_of(services: &Services) -> usize {
    let (mut depth, mut at) = (0, services);
    while let Some(above) = &at.above {
        (depth, at) = (depth + 1, &above.parent);
    }
    depth
}
