//! Which provider a name stands for.

use super::http::{HttpProvider, Retries, is_loopback};
use super::key::{self, Key, KeyCommand, Secrets};
use super::wire::Wire;
use super::wire::chat::{Chat, ChatServer};
use super::wire::messages::Messages;
use super::wire::responses::Responses;
use super::{ModelError, OfflineProvider, Provider, ScriptProvider};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sandgate_config::{
    Address, KeySource, ModelProvider, ModelProviderSettings, VariableName, WireApi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Mutex, OnceCell};

/// The provider that is used when nobody names one.
pub const DEFAULT_PROVIDER: &str = "offline";

/// A provider that needs no settings.
struct BuiltIn {
    name: &'static str,
    base_url: &'static str,
    /// The variable that names another address.
    base_url_variable: Option<&'static str>,
    env_key: Option<&'static str>,
    wire_api: WireApi,
    /// The model that is used when nobody names one.
    model: &'static str,
    /// A small and fast one, for looks that a person waits for; it need not think.
    small_model: Option<&'static str>,
    key_from: &'static str,
}

const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        env_key: Some("OPENAI_API_KEY"),
        wire_api: WireApi::Responses,
        model: "gpt-5.1-codex",
        small_model: Some("gpt-4.1-mini"),
        key_from: "Make one at https://platform.openai.com/api-keys.",
    },
    BuiltIn {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        base_url_variable: None,
        env_key: Some("ANTHROPIC_API_KEY"),
        wire_api: WireApi::Anthropic,
        model: "claude-sonnet-4-6",
        small_model: Some("claude-haiku-4-5"),
        key_from: "Make one at https://console.anthropic.com/settings/keys.",
    },
    BuiltIn {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        base_url_variable: None,
        env_key: Some("OPENROUTER_API_KEY"),
        wire_api: WireApi::Chat,
        model: "openai/gpt-5.1-codex",
        small_model: Some("openai/gpt-4.1-mini"),
        key_from: "Make one at https://openrouter.ai/settings/keys.",
    },
    BuiltIn {
        name: "ollama",
        base_url: "http://localhost:11434/v1",
        base_url_variable: None,
        env_key: None,
        wire_api: WireApi::Chat,
        model: "gpt-oss:20b",
        small_model: None,
        key_from: "",
    },
];

/// What a provider is chosen with, beside the settings.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What runs the programs that print keys. Without it there are none.
    pub key_command: Option<&'a Arc<dyn KeyCommand>>,
}

/// The provider of this name: one of the settings, one that is built in, or `script:FILE`. Settings
/// under the name of one that is built in change it.
///
/// # Errors
/// When there is none, when its settings make no sense, or when its key is missing, with what to do.
pub fn provider(
    name: &str,
    settings: &BTreeMap<String, ModelProviderSettings>,
    surroundings: Surroundings<'_>,
) -> Result<Arc<dyn Provider>, ModelError> {
    if let Some(file) = name.strip_prefix("script:") {
        return Ok(Arc::new(ScriptProvider::open(Path::new(file))?));
    }
    if name == DEFAULT_PROVIDER {
        return Ok(Arc::new(OfflineProvider));
    }
    let own = settings.get(name);
    let built_in = BUILT_IN.iter().find(|built_in| built_in.name == name);
    if own.is_none() && built_in.is_none() {
        let names = BUILT_IN.iter().map(|built_in| built_in.name);
        let names = names.chain([DEFAULT_PROVIDER, "script:FILE"]);
        let names = names.chain(settings.keys().map(String::as_str)).collect::<Vec<_>>().join(", ");
        return Err(ModelError::Settings(format!(
            "there is no model provider {name}; there are {names}"
        )));
    }
    let default = ModelProviderSettings::default();
    let described = described(name, own.unwrap_or(&default), built_in, surroundings)?;
    Ok(Arc::new(over_http(described, surroundings)?))
}

/// The model of a provider that is used when nobody names one. None where only its owner knows.
pub fn default_model(provider: &str) -> Option<&'static str> {
    match BUILT_IN.iter().find(|built_in| built_in.name == provider) {
        Some(built_in) => Some(built_in.model),
        None if provider == DEFAULT_PROVIDER || provider.starts_with("script:") => Some("none"),
        None => None,
    }
}

/// A small and fast model of a provider that is built in, where one is known.
pub fn small_model(provider: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|built_in| built_in.name == provider)?.small_model
}

/// The variables that hold keys of providers. Nothing that is started may be given them.
pub fn key_variables(settings: &BTreeMap<String, ModelProviderSettings>) -> BTreeSet<String> {
    let built_in = BUILT_IN.iter().filter_map(|built_in| built_in.env_key).map(str::to_owned);
    let own = settings.values().flat_map(|own| {
        own.env_key.iter().chain(own.env_http_headers.values()).map(ToString::to_string)
    });
    built_in.chain(own).collect()
}

/// The provider that the settings describe, with what is built in where they say nothing.
fn described(
    name: &str,
    own: &ModelProviderSettings,
    built_in: Option<&BuiltIn>,
    surroundings: Surroundings<'_>,
) -> Result<ModelProvider, ModelError> {
    let mut settings = own.clone();
    if let Some(built_in) = built_in {
        let wrong = |why| ModelError::Settings(format!("model provider {name}: {why}"));
        if settings.base_url.is_none() {
            let of_variable = built_in.base_url_variable.and_then(surroundings.variable);
            let text = of_variable.filter(|text| !text.is_empty());
            let text = text.unwrap_or_else(|| built_in.base_url.to_owned());
            settings.base_url = Some(Address::try_from(text).map_err(wrong)?);
        }
        let has_key = settings.env_key.is_some()
            || settings.key_file.is_some()
            || settings.key_command.is_some();
        if let Some(variable) = built_in.env_key.filter(|_| !has_key) {
            settings.env_key = Some(VariableName::try_from(variable.to_owned()).map_err(wrong)?);
            let how = || built_in.key_from.to_owned();
            settings.env_key_instructions.get_or_insert_with(how);
        }
        settings.wire_api.get_or_insert(built_in.wire_api);
    }
    ModelProvider::new(name, &settings).map_err(|error| ModelError::Settings(error.to_string()))
}

/// A provider over HTTP, as it was described.
fn over_http(
    of: ModelProvider,
    surroundings: Surroundings<'_>,
) -> Result<HttpProvider, ModelError> {
    let wrong = |why: &str| ModelError::Settings(format!("model provider {}: {why}", of.id));
    let base = Url::parse(of.base_url.as_str());
    let base = base.map_err(|error| wrong(&format!("base_url is no address: {error}")))?;
    let mut secrets = Secrets::default();
    let wire = wire(of.wire_api, &base);
    let url = url(base, &*wire, &of.query_params, &mut secrets)
        .ok_or_else(|| wrong("nothing can be below its base_url"))?;
    let (headers, has_secret) = headers(&of, surroundings, &mut secrets)?;
    let key = key(&of, surroundings)?;
    let sends_secret = has_secret || !matches!(key, Key::None);
    if url.scheme() == "http" && sends_secret && !is_loopback(&url) && !of.allow_plain_http {
        let host = url.host_str().unwrap_or_default();
        return Err(wrong(&format!(
            "its key would go to {host} without TLS, for everybody on the way to read; use https, or \
             set allow_plain_http = true if nobody is on the way"
        )));
    }
    Ok(HttpProvider {
        name: of.id,
        wire,
        url,
        headers,
        key,
        secrets,
        ca_file: of.ca_file,
        retries: Retries { request: of.request_max_retries, stream: of.stream_max_retries },
        idle: of.stream_idle_timeout,
        client: OnceCell::new(),
    })
}

fn wire(api: WireApi, base: &Url) -> Box<dyn Wire> {
    match api {
        WireApi::Responses => Box::new(Responses),
        WireApi::Anthropic => Box::new(Messages),
        WireApi::Chat => {
            let is_openai = base.host_str() == Some("api.openai.com");
            let server = if is_openai { ChatServer::OpenAi } else { ChatServer::Other };
            Box::new(Chat { server })
        }
    }
}

/// Where requests go: below the address, whether that ends with a slash or not.
fn url(
    base: Url,
    wire: &dyn Wire,
    query_params: &BTreeMap<String, String>,
    secrets: &mut Secrets,
) -> Option<Url> {
    let mut url = base;
    url.path_segments_mut().ok()?.pop_if_empty().extend(wire.path().split('/'));
    for (name, value) in query_params {
        url.query_pairs_mut().append_pair(name, value);
    }
    for (name, value) in url.query_pairs() {
        if names_secret(&name) {
            secrets.add(&value);
        }
    }
    Some(url)
}

/// The headers of the settings, and whether there is a secret among them.
fn headers(
    of: &ModelProvider,
    surroundings: Surroundings<'_>,
    secrets: &mut Secrets,
) -> Result<(HeaderMap, bool), ModelError> {
    let mut headers = HeaderMap::new();
    let mut has_secret = false;
    let fixed = of
        .http_headers
        .iter()
        .map(|(name, value)| (name, value.as_str().to_owned(), names_secret(name.as_str())));
    let of_variables = of.env_http_headers.iter().filter_map(|(name, variable)| {
        Some((name, (surroundings.variable)(variable.as_str())?, true))
    });
    for (name, value, is_secret) in fixed.chain(of_variables) {
        let wrong = || {
            let why =
                format!("model provider {}: what it has for the header {name} is none", of.id);
            ModelError::Settings(why)
        };
        let value = value.trim();
        let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut given = HeaderValue::try_from(value).map_err(|_| wrong())?;
        given.set_sensitive(is_secret);
        if is_secret && !value.is_empty() {
            has_secret = true;
            // `Bearer KEY` may be repeated without its first word.
            secrets.add(value);
            value.split_whitespace().last().into_iter().for_each(|word| secrets.add(word));
        }
        headers.insert(header, given);
    }
    Ok((headers, has_secret))
}

fn key(of: &ModelProvider, surroundings: Surroundings<'_>) -> Result<Key, ModelError> {
    match &of.key {
        None => Ok(Key::None),
        Some(KeySource::File(file)) => Ok(Key::File(file.clone())),
        Some(KeySource::Command(argv)) => {
            let none = || {
                let why = format!("model provider {}: key_command cannot be run here", of.id);
                ModelError::Key(why)
            };
            let command = Arc::clone(surroundings.key_command.ok_or_else(none)?);
            let printed = Mutex::new(None);
            Ok(Key::Command { argv: argv.words().to_vec(), command, printed })
        }
        Some(KeySource::Variable { name, instructions }) => {
            let found = (surroundings.variable)(name.as_str());
            if let Some(text) = found.filter(|text| !text.trim().is_empty()) {
                let wrong = |why| ModelError::Key(format!("{name}: {why}"));
                return key::usable(&text).map(Key::Given).map_err(wrong);
            }
            let how = instructions.as_deref().unwrap_or_default();
            let told = format!("the key of {} is missing: set {name}. {how}", of.id);
            Err(ModelError::Key(told.trim_end().to_owned()))
        }
    }
}

/// Whether something of this name is a secret.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "password", "cookie", "signature", "sig", "code"]
        .iter()
        .any(|word| name.contains(word))
}
