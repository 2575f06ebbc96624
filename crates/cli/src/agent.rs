//! The agent that `exec` and its kin let work: its model, and what that is told.

use crate::session::PreparedSession;
use crate::settings::{SettingsError, config_home};
use crate::telemetry;
use sandgate_agent::rollout::{Recorded, SessionMeta};
use sandgate_agent::{
    Conversation, ConversationOptions, DEFAULT_PROJECT_DOC_BYTES, DEFAULT_PROVIDER,
    InstructionSources, KeyCommand, Limits, ModelRiskAssessor, Provider, SecretString, SpawnAgent,
    Surroundings, default_model, instructions, server_programs,
};
use sandgate_config::{McpServer, McpTransport, Settings, UpTo};
use sandgate_protocol::SessionSource;
use sandgate_runtime::{Runtime, Session, SessionConfig, ToolHandler};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What may be said about the model.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CliModel {
    /// The model to ask [default: model of your settings, or the provider's own]
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Who serves it: openai, anthropic, ollama, openrouter, offline, script:FILE, or a name from
    /// model_providers of your settings [default: model_provider of your settings, or offline]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
}

/// A model that can be asked, and what it is told.
pub(crate) struct PreparedAgent {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) options: ConversationOptions,
    /// The servers whose tools the model has.
    pub(crate) mcp_servers: Vec<McpServer>,
    /// Those that a client named beside them.
    pub(crate) client_servers: Vec<McpServer>,
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
    /// What runs the program that prints a key, once it has something to run it by.
    pub(crate) keys: Arc<KeyProgram>,
}

/// Runs the program of the person's settings that prints a key.
#[derive(Default)]
pub(crate) struct KeyProgram {
    runtime: OnceLock<Arc<Runtime>>,
}

/// How long such a program may take: a person may have to unlock something.
const KEY_PATIENCE: Duration = Duration::from_secs(60);

impl KeyProgram {
    /// Has programs run by this.
    pub(crate) fn run_by(&self, runtime: &Arc<Runtime>) {
        let _ = self.runtime.set(Arc::clone(runtime));
    }

    async fn print(&self, argv: &[String]) -> Result<SecretString, String> {
        let runtime = self.runtime.get().ok_or("it cannot be run yet")?;
        // At home, and not in a project that could have a program of the same name.
        let home =
            sandgate_runtime::policy::home().ok_or("there is no home directory to run it in")?;
        let env = std::env::vars_os().collect();
        let printed = runtime.run_own_program(argv.to_vec(), &home, env, KEY_PATIENCE).await;
        let printed = printed.map_err(|error| error.to_string())?;
        match (printed.exit_code, String::from_utf8(printed.stdout)) {
            (0, Ok(text)) => Ok(SecretString::from(text.trim_end_matches(['\r', '\n']))),
            (0, Err(_)) => Err("what it printed is not text".to_owned()),
            (code, _) => Err(format!("it ended with exit code {code}")),
        }
    }
}

impl KeyCommand for KeyProgram {
    fn run<'a>(
        &'a self,
        argv: &'a [String],
    ) -> Pin<Box<dyn Future<Output = Result<SecretString, String>> + Send + 'a>> {
        Box::pin(self.print(argv))
    }
}

impl PreparedAgent {
    /// Adds the servers that a client names. What the person's settings name goes before, and what is no program
    /// would be reached without anybody having been asked.
    pub(crate) fn add_client_servers(&mut self, servers: Vec<McpServer>) {
        for server in servers {
            let mut known = self.mcp_servers.iter().chain(&self.client_servers);
            let why = if known.any(|known| known.name == server.name) {
                "there is one of that name already"
            } else if !matches!(server.transport, McpTransport::Stdio { .. }) {
                "it is no program"
            } else if is_this_program(&server.transport) {
                "it is this program, whose tools are here already"
            } else {
                self.client_servers.push(server);
                continue;
            };
            let name = &server.name;
            self.notes.push(format!("the editor's MCP server {name} is not started: {why}"));
        }
    }

    /// Whether there is no model behind it.
    pub(crate) fn is_offline(&self) -> bool {
        self.provider.name() == "offline"
    }

    /// Gives a session what its settings want of the model beside the conversation: subagents, and a look
    /// at commands that were blocked.
    pub(crate) fn equip(
        &self,
        config: &mut SessionConfig,
        settings: &Settings,
        recorded_in: Option<&Path>,
    ) -> Option<Arc<SpawnAgent>> {
        if self.is_offline() {
            return None;
        }
        let features = settings.features.clone().unwrap_or_default();
        if features.experimental_sandbox_command_assessment == Some(true) {
            let named = settings.agent.as_ref().and_then(|agent| agent.assessment_model.as_deref());
            let model = named
                .or(sandgate_agent::small_model(self.provider.name()))
                .unwrap_or(&self.options.model);
            let assessor = ModelRiskAssessor::new(Arc::clone(&self.provider), model);
            config.risk = Some(Arc::new(assessor));
        }
        if config.subagents.depth == 0 || config.subagents.at_once == 0 {
            return None;
        }
        let mut subagents = SpawnAgent::new(Arc::clone(&self.provider), &self.options);
        if let Some(home) = recorded_in {
            subagents = subagents.recorded(home.to_owned());
        }
        let subagents = Arc::new(subagents);
        config.tools.push(Arc::clone(&subagents) as Arc<dyn ToolHandler>);
        Some(subagents)
    }
}

/// What is said about a conversation beside its model.
pub(crate) struct Conversing {
    /// What it goes on with.
    pub(crate) recorded: Option<Recorded>,
    /// The settings that it is written down in, if it is.
    pub(crate) recorded_in: Option<PathBuf>,
    /// The JSON schema that its last answer is to have.
    pub(crate) output_schema: Option<serde_json::Value>,
}

/// Begins a session, and the conversation in it. The servers of its settings are not started yet.
pub(crate) fn converse(
    runtime: Arc<Runtime>,
    prepared: PreparedSession,
    agent: PreparedAgent,
    conversing: Conversing,
) -> io::Result<(Session, Conversation)> {
    let Conversing { recorded, recorded_in, output_schema } = conversing;
    let mut config = prepared.config;
    let subagents = agent.equip(&mut config, prepared.settings.settings(), recorded_in.as_deref());
    let PreparedAgent { provider, mut options, mcp_servers, client_servers, .. } = agent;
    // What a server is given of it, its settings name.
    let own_env = std::env::vars_os().collect();
    config.servers = server_programs(&mcp_servers, "your settings", &own_env);
    config.client_servers = server_programs(&client_servers, "your editor", &own_env);
    let session = Session::start(runtime, config).map_err(io::Error::other)?;
    options.output_schema = output_schema;
    let requester = session.requester();
    let conversation = match recorded {
        Some(recorded) => Conversation::resume(requester, provider, options, recorded),
        None => {
            let conversation = Conversation::start(requester, provider, options);
            match &recorded_in {
                Some(home) => conversation.recorded(home, None),
                None => Ok(conversation),
            }
        }
    };
    let conversation = conversation.map_err(io::Error::other)?;
    if let Some(subagents) = subagents {
        subagents.works_for(&conversation);
    }
    Ok((session, conversation))
}

impl CliModel {
    /// Goes on with the model of a conversation, unless another is named.
    pub(crate) fn goes_on(&mut self, meta: &SessionMeta) {
        if self.provider.is_none() {
            self.provider = Some(meta.provider.clone());
            self.model.get_or_insert_with(|| meta.model.clone());
        }
    }

    /// The agent.
    ///
    /// # Errors
    /// When the settings are not in order.
    pub(crate) fn prepare(
        &self,
        session: &PreparedSession,
        source: SessionSource,
    ) -> Result<PreparedAgent, SettingsError> {
        let settings = session.settings.settings();
        let name = self.provider.as_ref().or(settings.model_provider.as_ref());
        let name = name.map_or(DEFAULT_PROVIDER, String::as_str);
        let keys = Arc::new(KeyProgram::default());
        let key_command: Arc<dyn KeyCommand> = Arc::clone(&keys) as Arc<_>;
        let provider = provider(name, settings, &key_command)?;
        let named = self.model.as_ref().or(settings.model.as_ref());
        let mut options = ConversationOptions::new(model(named, name)?);
        apply(settings, &mut options);
        options.source = source;
        // Where the session works, by the name that it will have.
        let cwd = session.config.workspace.canonicalize();
        let cwd = cwd.unwrap_or_else(|_| session.config.workspace.clone());
        let home = config_home();
        let most_bytes = settings.project_doc_max_bytes.map(UpTo::get);
        let told = instructions(&InstructionSources {
            config_home: home.as_deref(),
            trusted_root: session.trusted_root.as_deref(),
            cwd: &cwd,
            most_bytes: most_bytes
                .and_then(|most| usize::try_from(most).ok())
                .unwrap_or(DEFAULT_PROJECT_DOC_BYTES),
        });
        options.instructions = told.text;
        let (mut mcp_servers, mut notes) = (Vec::new(), told.notes);
        for server in session.settings.mcp_servers() {
            match server {
                Ok(server) if is_this_program(&server.transport) => notes.push(format!(
                    "mcp_servers.{} is this program, whose tools are here already, so it is not started",
                    server.name
                )),
                Ok(server) => mcp_servers.push(server),
                Err(error) => notes.push(format!("{error}, so it is not used")),
            }
        }
        let client_servers = Vec::new();
        Ok(PreparedAgent { provider, options, mcp_servers, client_servers, notes, keys })
    }
}

/// Whether a server is `sandgate mcp`: Codex and we read the same settings, and `sandgate mcp install` writes it
/// there for Codex.
fn is_this_program(transport: &McpTransport) -> bool {
    let McpTransport::Stdio { command, args, .. } = transport else { return false };
    let Ok(own) = std::env::current_exe().and_then(|own| own.canonicalize()) else { return false };
    let named = match command.contains(std::path::MAIN_SEPARATOR) {
        true => Some(PathBuf::from(command)),
        false => std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path)
                .map(|place| place.join(command))
                .find(|file| file.is_file())
        }),
    };
    let named = named.and_then(|file| file.canonicalize().ok());
    args.first().is_some_and(|verb| verb == "mcp")
        && named.is_some_and(|named| named == own || named.file_name() == own.file_name())
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads. Then does the work.
pub(crate) fn start<F: Future<Output = io::Result<u8>>>(
    collector: Option<&str>,
    keys: &KeyProgram,
    work: impl FnOnce(Arc<Runtime>) -> F,
) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    keys.run_by(&runtime);
    let _telemetry = telemetry::start(collector);
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = asynchronous.block_on(work(runtime));
    // A question that nobody answered in time is still being read from the terminal, and that read
    // cannot be called off.
    asynchronous.shutdown_background();
    code
}

/// What the settings say of every conversation.
fn apply(settings: &Settings, options: &mut ConversationOptions) {
    options.reasoning_effort = settings.model_reasoning_effort;
    options.max_output_tokens = settings.model_max_output_tokens.map(Into::into);
    options.context_window = settings.model_context_window.map(Into::into);
    options.compact_at = settings.model_auto_compact_token_limit.map(Into::into);
    let agent = settings.agent.clone().unwrap_or_default();
    let usual = Limits::default();
    options.limits = Limits {
        requests: agent
            .max_turns
            .map_or(usual.requests, |most| u32::try_from(most.get()).unwrap_or(u32::MAX)),
        tokens: agent.max_tokens.map(Into::into),
        time: agent.max_time_ms.map(|limit| Duration::from_millis(limit.get())),
    };
}

/// Who serves the model.
fn provider(
    name: &str,
    settings: &Settings,
    key_command: &Arc<dyn KeyCommand>,
) -> Result<Arc<dyn Provider>, SettingsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let surroundings = Surroundings { variable: &variable, key_command: Some(key_command) };
    sandgate_agent::provider(name, &settings.model_providers, surroundings)
        .map_err(|error| SettingsError::usage(error.to_string()))
}

/// The model that is asked.
fn model(named: Option<&String>, provider: &str) -> Result<String, SettingsError> {
    let default = || default_model(provider).map(str::to_owned);
    named.cloned().or_else(default).ok_or_else(|| {
        let why = format!("{provider} serves more than one model, perhaps; name one with --model");
        SettingsError::usage(why)
    })
}
