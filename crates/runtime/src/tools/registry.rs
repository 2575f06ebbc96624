//! The tools by their names.

use crate::orchestrator::{Recorded, ToolCtx};
use crate::session::{ChildTerms, Requester, Services, Turn};
use crate::tools::{apply_patch, files, live, parse, schema, shell, wrong_kind};
use sandgate_protocol::{AgentEvent, CallId, CodexErr, Event, ToolOutput, ToolPayload};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

/// Does what a model asks for with one name.
pub trait ToolHandler: Send + Sync {
    /// What it is to a model: its name, what it does, what it takes.
    fn spec(&self) -> ToolSpec;

    /// Other names that lead to it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// What kind of tool it is.
    fn kind(&self) -> ToolKind {
        ToolKind::Function
    }

    /// Whether it understands a payload.
    fn matches_kind(&self, payload: &ToolPayload) -> bool {
        matches!(
            (self.kind(), payload),
            (ToolKind::Function, ToolPayload::Function { .. } | ToolPayload::LocalShell { .. })
                | (ToolKind::Custom, ToolPayload::Custom { .. } | ToolPayload::Function { .. })
                | (ToolKind::Mcp, ToolPayload::Mcp { .. })
        )
    }

    /// Whether a call may change something.
    fn is_mutating(&self, invocation: &ToolInvocation<'_>) -> bool;

    /// Whether its calls can run beside others.
    fn supports_parallel_tool_calls(&self) -> bool {
        false
    }

    /// Does it.
    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a>;
}

/// What a tool does for one call, and what comes of it.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, CodexErr>> + Send + 'a>>;

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// It takes JSON.
    Function,
    /// It takes text of its own kind.
    Custom,
    /// An MCP server does the work.
    Mcp,
}

/// What a tool is to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes, as a JSON schema.
    pub parameters: Value,
}

impl ToolSpec {
    /// A tool that takes what `T` reads. Its schema is made from that type.
    pub fn of<T: JsonSchema>(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: schema::<T>(),
        }
    }
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct ToolInvocation<'a> {
    pub(crate) services: &'a Services,
    /// The turn it is made in.
    pub turn: &'a Turn,
    /// What its result will be known by.
    pub call_id: &'a CallId,
    /// The name it was called by.
    pub tool_name: &'a str,
    /// What it is asked to do.
    pub payload: &'a ToolPayload,
    /// Whether the log has heard of it.
    pub(crate) recorded: &'a Recorded,
}

impl<'a> ToolInvocation<'a> {
    /// Its arguments.
    ///
    /// # Errors
    /// One sentence that says what is wrong with them, for the model.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, CodexErr> {
        match self.payload {
            ToolPayload::Function { arguments } => parse(self.tool_name, arguments),
            _ => Err(wrong_kind(self.tool_name)),
        }
    }

    /// Begins the session of a subagent that works for this call. It ends when the last requester of it
    /// is dropped; its turns end with the turn of the call, and what they change is counted there.
    ///
    /// # Errors
    /// When there may be no further one, or its name is none, with a sentence for the model.
    pub fn child(&self, terms: ChildTerms) -> Result<Requester, CodexErr> {
        Requester::below(self.services, terms, self.turn)
    }

    /// The subagent that makes it; none if it is the session's own.
    pub fn agent(&self) -> Option<String> {
        self.services.agent()
    }

    /// Tells everybody who listens of something in the conversation that the call belongs to.
    pub async fn tell(&self, event: AgentEvent) {
        self.services.events.tell(&Event::Agent(event)).await;
    }

    /// The same for the orchestrator.
    pub fn ctx(&self) -> ToolCtx<'a> {
        let Self { services, turn, call_id, tool_name, recorded, .. } = *self;
        ToolCtx { services, turn, call_id, tool_name, recorded, own_policy: None }
    }
}

/// The tools by their names.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: BTreeMap<String, Arc<dyn ToolHandler>>,
}

impl ToolRegistry {
    /// The tools that every session has.
    pub fn standard() -> Self {
        let mut registry = Self::default();
        registry.register(Arc::new(shell::ShellHandler));
        registry.register(Arc::new(shell::ShellCommandHandler));
        registry.register(Arc::new(apply_patch::ApplyPatchHandler));
        registry.register(Arc::new(live::ExecCommandHandler));
        registry.register(Arc::new(live::WriteStdinHandler));
        registry.register(Arc::new(live::ListProcessesHandler));
        registry.register(Arc::new(live::KillProcessHandler));
        registry.register(Arc::new(live::ReadOutputHandler));
        registry.register(Arc::new(files::ReadFileHandler));
        registry.register(Arc::new(files::ListDirHandler));
        registry.register(Arc::new(files::GrepFilesHandler));
        registry
    }

    /// The tools that every session has, and these.
    pub fn with(tools: &[Arc<dyn ToolHandler>]) -> Self {
        let mut registry = Self::standard();
        for tool in tools {
            registry.register(Arc::clone(tool));
        }
        registry
    }

    /// Those of the tools that every session has which only look, or run commands that the sandbox keeps
    /// from changing anything.
    pub(crate) fn reading() -> Self {
        const READING: [&str; 5] =
            ["grep_files", "list_dir", "read_file", "shell", "shell_command"];
        let Self { mut tools } = Self::standard();
        tools.retain(|name, _| READING.contains(&name.as_str()));
        Self { tools }
    }

    /// Adds a tool, in the place of another of its name.
    pub fn register(&mut self, tool: Arc<dyn ToolHandler>) {
        for alias in tool.aliases() {
            self.tools.insert((*alias).to_owned(), Arc::clone(&tool));
        }
        self.tools.insert(tool.spec().name, tool);
    }

    /// The tool of a name.
    ///
    /// # Errors
    /// When there is none, with names like it.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn ToolHandler>, CodexErr> {
        self.tools.get(name).ok_or_else(|| CodexErr::ToolNotFound {
            name: name.chars().take(100).collect(),
            nearest: self.nearest(name),
        })
    }

    /// What the tools are to a model, without their other names.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let own = |(name, tool): (&String, &Arc<dyn ToolHandler>)| {
            let spec = tool.spec();
            (spec.name == *name).then_some(spec)
        };
        self.tools.iter().filter_map(own).collect()
    }

    /// Up to three names that somebody may have meant.
    fn nearest(&self, name: &str) -> Vec<String> {
        let name: String = name.chars().take(100).collect::<String>().to_lowercase();
        let mut near: Vec<(usize, &String)> = self
            .tools
            .keys()
            .map(|known| (distance(&name, known), known))
            .filter(|(distance, known)| *distance <= known.len().max(name.len()) / 2)
            .collect();
        near.sort();
        near.into_iter().take(3).map(|(_, known)| known.clone()).collect()
    }
}

/// The tools of a session: those that it began with, and groups of others that come and go while it runs.
pub(crate) struct SessionTools {
    own: ToolRegistry,
    groups: RwLock<Groups>,
}

struct Groups {
    by_name: BTreeMap<String, Vec<Arc<dyn ToolHandler>>>,
    /// All of them together with the session's own.
    all: Arc<ToolRegistry>,
}

impl From<ToolRegistry> for SessionTools {
    fn from(own: ToolRegistry) -> Self {
        let groups = Groups { by_name: BTreeMap::new(), all: Arc::new(own.clone()) };
        Self { own, groups: RwLock::new(groups) }
    }
}

impl SessionTools {
    /// The tools as they are now.
    pub(crate) fn current(&self) -> Arc<ToolRegistry> {
        Arc::clone(&self.groups.read().unwrap_or_else(PoisonError::into_inner).all)
    }

    /// Replaces a group. A name that the session's own tools or a group before this one have stays
    /// theirs: what comes later cannot put itself in the place of what a person knows.
    pub(crate) fn replace(&self, group: &str, tools: Vec<Arc<dyn ToolHandler>>) {
        let mut groups = self.groups.write().unwrap_or_else(PoisonError::into_inner);
        groups.by_name.insert(group.to_owned(), tools);
        let mut all = self.own.clone();
        for tool in groups.by_name.values().flatten() {
            all.tools.entry(tool.spec().name).or_insert_with(|| Arc::clone(tool));
        }
        groups.all = Arc::new(all);
    }
}

/// How many letters must be put in, taken out or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(name: &str) -> String {
        ToolRegistry::standard().get(name).err().unwrap().for_model()
    }

    #[test]
    fn a_tool_has_its_name_and_its_aliases() {
        let registry = ToolRegistry::standard();
        for name in ["shell", "container.exec", "shell_command", "apply_patch", "read_file"] {
            assert!(registry.get(name).is_ok(), "{name}");
        }
        let names: Vec<String> = registry.specs().into_iter().map(|spec| spec.name).collect();
        let own = "apply_patch exec_command grep_files kill_process list_dir list_processes read_file \
                   read_output shell shell_command write_stdin";
        assert_eq!(names.join(" "), own);
    }

    struct Named(&'static str, &'static str);

    impl ToolHandler for Named {
        fn spec(&self) -> ToolSpec {
            let (name, description) = (self.0.to_owned(), self.1.to_owned());
            ToolSpec { name, description, parameters: Value::Null }
        }

        fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
            true
        }

        fn handle<'a>(&'a self, _: ToolInvocation<'a>) -> ToolFuture<'a> {
            Box::pin(async { Ok(ToolOutput::text("", true)) })
        }
    }

    /// spec MCP.21: The tools of a server come and go as a group, and none takes the name of one of the
    /// session's own or of another server's.
    #[test]
    fn a_group_takes_nobody_elses_name() {
        let tools = SessionTools::from(ToolRegistry::standard());
        let own = tools.current().specs().len();
        let group = |names: &[&'static str], by| -> Vec<Arc<dyn ToolHandler>> {
            names.iter().map(|name| Arc::new(Named(name, by)) as Arc<dyn ToolHandler>).collect()
        };
        tools.replace("b", group(&["b__x", "shell", "container.exec", "z"], "b"));
        tools.replace("a", group(&["a__x", "z"], "a"));
        let current = tools.current();
        let described = |name: &str| current.get(name).unwrap().spec().description;
        assert_eq!((described("a__x"), described("b__x")), ("a".to_owned(), "b".to_owned()));
        assert_eq!(described("z"), "a", "the order of the groups decides, not the time");
        assert_ne!(described("shell"), "b");
        assert_ne!(described("container.exec"), "b");
        assert_eq!(current.specs().len(), own + 3);
        tools.replace("b", Vec::new());
        assert!(tools.current().get("b__x").is_err());
        assert!(current.get("b__x").is_ok(), "whoever has the list already keeps it");
    }

    #[test]
    fn a_name_that_is_nearly_right_is_told_what_is_right() {
        assert_eq!(
            missed("readfile"),
            "there is no tool called \"readfile\"; did you mean read_file or grep_files?"
        );
        assert_eq!(missed("Shell"), "there is no tool called \"Shell\"; did you mean shell?");
        assert_eq!(missed("teleport"), "there is no tool called \"teleport\"");
        assert!(missed(&"x".repeat(10_000)).len() < 200);
    }
}
