//! Which provider a name stands for.

use super::http::{HttpProvider, Retries, Tls, is_loopback};
use super::key::{self, Key, KeyCommand, Secrets};
use super::wire::Wire;
use super::wire::chat::{Chat, ChatServer};
use super::wire::messages::Messages;
use super::wire::responses::Responses;
use super::{ModelError, OfflineProvider, Provider, ScriptProvider};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sandgate_config::{ModelProviderSettings, WireApi};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
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
        key_from: "Make one at https://platform.openai.com/api-keys.",
    },
    BuiltIn {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        base_url_variable: None,
        env_key: Some("ANTHROPIC_API_KEY"),
        wire_api: WireApi::Messages,
        model: "claude-sonnet-4-6",
        key_from: "Make one at https://console.anthropic.com/settings/keys.",
    },
    BuiltIn {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        base_url_variable: None,
        env_key: Some("OPENROUTER_API_KEY"),
        wire_api: WireApi::Chat,
        model: "openai/gpt-5.1-codex",
        key_from: "Make one at https://openrouter.ai/settings/keys.",
    },
    BuiltIn {
        name: "ollama",
        base_url: "http://localhost:11434/v1",
        base_url_variable: None,
        env_key: None,
        wire_api: WireApi::Chat,
        model: "gpt-oss:20b",
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
    let choice = Choice { name, own: own.unwrap_or(&default), built_in, surroundings };
    Ok(Arc::new(choice.provider()?))
}

/// The model of a provider that is used when nobody names one. None where only its owner knows.
pub fn default_model(provider: &str) -> Option<&'static str> {
    match BUILT_IN.iter().find(|built_in| built_in.name == provider) {
        Some(built_in) => Some(built_in.model),
        None if provider == DEFAULT_PROVIDER || provider.starts_with("script:") => Some("none"),
        None => None,
    }
}

/// The variables that hold keys of providers. Nothing that is started may be given them.
pub fn key_variables(settings: &BTreeMap<String, ModelProviderSettings>) -> BTreeSet<String> {
    let built_in = BUILT_IN.iter().filter_map(|built_in| built_in.env_key).map(str::to_owned);
    let own = settings.values().flat_map(|own| {
        own.env_key.iter().chain(own.env_http_headers.values()).cloned().collect::<Vec<_>>()
    });
    built_in.chain(own).collect()
}

struct Choice<'a> {
    name: &'a str,
    own: &'a ModelProviderSettings,
    built_in: Option<&'static BuiltIn>,
    surroundings: Surroundings<'a>,
}

impl Choice<'_> {
    fn provider(&self) -> Result<HttpProvider, ModelError> {
        let own = self.own;
        let mut secrets = Secrets::default();
        let base = self.base_url(&mut secrets)?;
        let wire = self.wire(&base);
        let url = self.url(base, &*wire, &mut secrets)?;
        let (headers, has_secret) = self.headers(&mut secrets)?;
        let key = self.key()?;
        let sends_secret = has_secret || !matches!(key, Key::None) || url.password().is_some();
        let may = own.allow_plain_http.unwrap_or(false);
        if url.scheme() == "http" && sends_secret && !is_loopback(&url) && !may {
            let host = url.host_str().unwrap_or_default();
            return Err(self.wrong(&format!(
                "its key would go to {host} without TLS, for everybody on the way to read; use https, \
                 or set allow_plain_http = true if nobody is on the way"
            )));
        }
        if url.scheme() == "http" && own.ca_file.is_some() {
            return Err(self.wrong("ca_file means something only with https"));
        }
        Ok(HttpProvider {
            name: self.name.to_owned(),
            wire,
            url,
            headers,
            key,
            secrets,
            tls: Tls { ca_file: own.ca_file.clone() },
            retries: Retries {
                request: own.request_max_retries.unwrap_or(4),
                stream: own.stream_max_retries.unwrap_or(5),
            },
            idle: Duration::from_millis(own.stream_idle_timeout_ms.map_or(300_000, |ms| ms.get())),
            client: OnceCell::new(),
        })
    }

    fn wrong(&self, why: &str) -> ModelError {
        ModelError::Settings(format!("model provider {}: {why}", self.name))
    }

    fn base_url(&self, secrets: &mut Secrets) -> Result<Url, ModelError> {
        let of_variable = || {
            let variable = self.built_in?.base_url_variable?;
            (self.surroundings.variable)(variable).filter(|url| !url.trim().is_empty())
        };
        let text = self.own.base_url.clone().or_else(of_variable);
        let text = text.or_else(|| self.built_in.map(|built_in| built_in.base_url.to_owned()));
        let text = text.ok_or_else(|| self.wrong("it has no base_url"))?;
        let url = Url::parse(text.trim());
        let url = url.map_err(|error| self.wrong(&format!("its base_url is none: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(self.wrong("its base_url begins with neither http:// nor https://"));
        }
        if let Some(password) = url.password() {
            use base64::Engine as _;
            secrets.add(password);
            let both = format!("{}:{password}", url.username());
            secrets.add(&base64::engine::general_purpose::STANDARD.encode(both));
        }
        Ok(url)
    }

    fn wire(&self, base: &Url) -> Box<dyn Wire> {
        let built_in = self.built_in.map(|built_in| built_in.wire_api);
        match self.own.wire_api.or(built_in).unwrap_or(WireApi::Responses) {
            WireApi::Responses => Box::new(Responses),
            WireApi::Messages => Box::new(Messages),
            WireApi::Chat => {
                let is_openai = base.host_str() == Some("api.openai.com");
                let server = if is_openai { ChatServer::OpenAi } else { ChatServer::Other };
                Box::new(Chat { server })
            }
        }
    }

    /// Where requests go: below the address, whether that ends with a slash or not.
    fn url(&self, base: Url, wire: &dyn Wire, secrets: &mut Secrets) -> Result<Url, ModelError> {
        let mut url = base;
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(wire.path().split('/'));
            }
            Err(()) => return Err(self.wrong("its base_url cannot have anything below it")),
        }
        for (name, value) in &self.own.query_params {
            url.query_pairs_mut().append_pair(name, value);
        }
        for (name, value) in url.query_pairs() {
            if names_secret(&name) {
                secrets.add(&value);
            }
        }
        Ok(url)
    }

    /// The headers of the settings, and whether there is a secret among them.
    fn headers(&self, secrets: &mut Secrets) -> Result<(HeaderMap, bool), ModelError> {
        let mut headers = HeaderMap::new();
        let mut has_secret = false;
        let fixed = self
            .own
            .http_headers
            .iter()
            .map(|(name, value)| (name, value.clone(), names_secret(name)));
        let variable = self.surroundings.variable;
        let of_variables = self.own.env_http_headers.iter().filter_map(|(name, of)| {
            Some((name, variable(of).filter(|value| !value.trim().is_empty())?, true))
        });
        for (name, value, is_secret) in fixed.chain(of_variables) {
            let wrong =
                |_| self.wrong(&format!("{name:?} cannot be a header with what it is given"));
            let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong(()))?;
            let mut given = HeaderValue::try_from(value.trim()).map_err(|_| wrong(()))?;
            given.set_sensitive(is_secret);
            if is_secret {
                has_secret = true;
                // `Bearer KEY` may be repeated without its first word.
                secrets.add(value.trim());
                value.split_whitespace().last().into_iter().for_each(|word| secrets.add(word));
            }
            headers.insert(header, given);
        }
        Ok((headers, has_secret))
    }

    /// The key: from the variable, else from the file, else from the program.
    fn key(&self) -> Result<Key, ModelError> {
        let own = self.own;
        let of_built_in = self.built_in.and_then(|built_in| built_in.env_key);
        let elsewhere = own.key_file.is_some() || own.key_command.is_some();
        let variable = own.env_key.as_deref().or(of_built_in.filter(|_| !elsewhere));
        let found = variable.and_then(self.surroundings.variable);
        if let Some(text) = found.filter(|text| !text.trim().is_empty()) {
            let wrong = |why| ModelError::Key(format!("{}: {why}", variable.unwrap_or_default()));
            return key::usable(&text).map(Key::Given).map_err(wrong);
        }
        if let Some(file) = &own.key_file {
            return Ok(Key::File(file.clone()));
        }
        if let Some(argv) = own.key_command.as_ref().filter(|argv| !argv.is_empty()) {
            let command = self.surroundings.key_command;
            let command = command.ok_or_else(|| self.wrong("key_command cannot be run here"))?;
            let (argv, command) = (argv.clone(), Arc::clone(command));
            return Ok(Key::Command { argv, command, printed: Mutex::new(None) });
        }
        let Some(variable) = variable else { return Ok(Key::None) };
        let how = own.env_key_instructions.as_deref();
        let how = how.or(self.built_in.map(|built_in| built_in.key_from)).unwrap_or_default();
        let told = format!("the key of {} is missing: set {variable}. {how}", self.name);
        Err(ModelError::Key(told.trim_end().to_owned()))
    }
}

/// Whether something of this name is a secret.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "password", "cookie", "signature", "sig", "code"]
        .iter()
        .any(|word| name.contains(word))
}
