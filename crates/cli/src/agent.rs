//! The agent that `exec` and its kin let work: its model, and what that is told.

use crate::session::PreparedSession;
use crate::settings::{SettingsError, config_home};
use sandgate_agent::{
    ConversationOptions, DEFAULT_PROJECT_DOC_BYTES, DEFAULT_PROVIDER, InstructionSources, Limits,
    Provider, Surroundings, default_model, instructions,
};
use sandgate_config::{Settings, UpTo};
use sandgate_protocol::SessionSource;
use std::sync::Arc;
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
    /// What the person should know, as sentences.
    pub(crate) notes: Vec<String>,
}

impl CliModel {
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
        let provider = provider(name, settings)?;
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
        Ok(PreparedAgent { provider, options, notes: told.notes })
    }
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
fn provider(name: &str, settings: &Settings) -> Result<Arc<dyn Provider>, SettingsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let surroundings = Surroundings { variable: &variable, key_command: None };
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
