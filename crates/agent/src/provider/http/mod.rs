//! Providers over HTTP, in whichever form they speak.
//!
//! Requests, their time-outs, limits and retries are here; what a request and a response look like is
//! known to [`Wire`] alone.

mod client;
mod events;
mod failure;
mod retry;

#[cfg(test)]
mod tests;

pub(super) use client::is_loopback;

use super::key::{Key, Secrets};
use super::wire::{Decode, Fault, KnownIds, Sign, Told, Wire};
use super::{ModelError, ModelEvent, ModelRequest, ModelStream, Provider};
use bytes::Bytes;
use events::{Events, Limits, Stopped};
use failure::Asked;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use sandgate_protocol::SessionSource;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// The largest event and the largest response, in bytes.
const LARGEST_EVENT: u64 = 16 * 1024 * 1024;
const LARGEST_RESPONSE: u64 = 64 * 1024 * 1024;

/// How much is read of what a provider says went wrong, in bytes.
const LARGEST_ERROR: usize = 64 * 1024;

/// How long a response that is complete may take to end, so that its connection can be used again.
const ENDING: Duration = Duration::from_secs(1);

/// The header that tells a provider which subagent asks.
const SUBAGENT: HeaderName = HeaderName::from_static("x-openai-subagent");

/// A provider over HTTP.
pub(super) struct HttpProvider {
    pub(super) name: String,
    pub(super) wire: Box<dyn Wire>,
    /// Where requests go.
    pub(super) url: Url,
    /// What every request carries, beside the key.
    pub(super) headers: HeaderMap,
    pub(super) key: Key,
    /// What is never told, beside the key.
    pub(super) secrets: Secrets,
    /// Certificates that are believed beside those of the system.
    pub(super) ca_file: Option<PathBuf>,
    pub(super) retries: Retries,
    pub(super) idle: Duration,
    pub(super) client: OnceCell<Client>,
}

/// How often something is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retries {
    /// A request that failed before anything came.
    pub(super) request: u32,
    /// A response that broke off.
    pub(super) stream: u32,
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a> {
        let body = match self.wire.body(&request) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                let error = ModelError::Settings(format!("the request cannot be written: {error}"));
                return stream::iter([Err(error)]).boxed();
            }
        };
        let asking = self.asking(request, body);
        let events = stream::unfold(asking, |mut asking| async {
            asking.next().await.map(|event| (event, asking))
        });
        events.boxed()
    }

    fn reach(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async {
            let source = SessionSource::default();
            let request = ModelRequest {
                model: "",
                instructions: "",
                items: &[],
                tools: &[],
                parallel_tool_calls: false,
                temperature: None,
                max_output_tokens: None,
                reasoning_effort: None,
                output_schema: None,
                conversation_id: "",
                source: &source,
            };
            let mut asking = self.asking(request, Bytes::from_static(b"{}"));
            match asking.connect().await {
                Err(error @ (ModelError::Unreachable { .. } | ModelError::Silent { .. })) => {
                    Err(error)
                }
                Err(error @ (ModelError::Key(_) | ModelError::Settings(_))) => Err(error),
                Err(error @ ModelError::Status { status: 401 | 403 | 404 | 500.., .. }) => {
                    Err(error)
                }
                // It found fault with a request that asks for nothing, so it is there.
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }
}

impl HttpProvider {
    fn asking<'a>(&'a self, request: ModelRequest<'a>, body: Bytes) -> Asking<'a> {
        let (heard, failed) = (VecDeque::new(), Failed::default());
        let secrets = self.secrets.clone();
        Asking { provider: self, request, body, heard, at: At::Request, failed, secrets }
    }
}

/// One request on its way, and the response to it.
struct Asking<'a> {
    provider: &'a HttpProvider,
    request: ModelRequest<'a>,
    body: Bytes,
    /// What was heard and not yet told.
    heard: VecDeque<ModelEvent>,
    at: At,
    failed: Failed,
    secrets: Secrets,
}

/// Where a request is.
enum At {
    /// It is to be made.
    Request,
    /// It is to be made after this.
    Wait(Duration),
    /// Its response comes.
    Response(Box<Open>),
    /// Nothing follows.
    Over,
}

/// A response that comes.
struct Open {
    events: Events,
    decoder: Box<dyn Decode>,
    has_begun: bool,
}

/// How often it failed.
#[derive(Default)]
struct Failed {
    request: u32,
    stream: u32,
    key: bool,
}

impl Asking<'_> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.heard.pop_front() {
                if matches!(event, ModelEvent::End(_)) {
                    self.let_go();
                }
                return Some(Ok(event));
            }
            let done = match &mut self.at {
                At::Over => return None,
                At::Wait(delay) => {
                    tokio::time::sleep(*delay).await;
                    self.at = At::Request;
                    continue;
                }
                At::Request => {
                    self.connect().await.map(|open| self.at = At::Response(Box::new(open)))
                }
                At::Response(open) => {
                    let asked = Asked { provider: &self.provider.name, model: self.request.model };
                    open.next(asked, &self.secrets, &mut self.heard).await
                }
            };
            if let Err(error) = done {
                return Some(self.failed(error).await);
            }
        }
    }

    /// The response is complete. What is left of it is read by the way: a connection whose response
    /// was not read to its end cannot be used again.
    fn let_go(&mut self) {
        if let At::Response(mut open) = std::mem::replace(&mut self.at, At::Over) {
            tokio::spawn(async move {
                let rest = async { while let Some(Ok(_)) = open.events.next().await {} };
                let _ = timeout(ENDING, rest).await;
            });
        }
    }

    /// Tries again, or gives up.
    async fn failed(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        let had_begun = matches!(&self.at, At::Response(open) if open.has_begun);
        self.at = At::Over;
        let asked = match &error {
            ModelError::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        let is_refused_key = matches!(error, ModelError::Status { status: 401, .. });
        if is_refused_key && !self.failed.key && self.provider.key.refused().await {
            self.failed.key = true;
            return Ok(self.again(error, Duration::ZERO));
        }
        let (failures, most) = match had_begun {
            true => (&mut self.failed.stream, self.provider.retries.stream),
            false => (&mut self.failed.request, self.provider.retries.request),
        };
        let may = asked.is_none_or(|asked| asked <= retry::LONGEST_ASKED);
        if !error.can_be_retried() || !may || *failures >= most {
            return Err(error);
        }
        let delay = retry::delay(*failures, asked);
        *failures += 1;
        Ok(self.again(error, delay))
    }

    fn again(&mut self, error: ModelError, delay: Duration) -> ModelEvent {
        self.heard.clear();
        self.at = At::Wait(delay);
        let attempt = 1 + self.failed.request + self.failed.stream + u32::from(self.failed.key);
        ModelEvent::Retrying { error, attempt, delay }
    }

    /// Makes the request and waits for the beginning of its response.
    async fn connect(&mut self) -> Result<Open, ModelError> {
        let provider = self.provider;
        let key = provider.key.get().await?;
        self.secrets = provider.secrets.clone();
        if let Some(key) = &key {
            self.secrets.add(key.expose_secret());
        }
        let client = provider.client().await?;
        let sending = client
            .post(provider.url.clone())
            .headers(self.headers(key.as_ref()))
            .body(self.body.clone())
            .send();
        let idle = provider.idle;
        let response = match timeout(idle, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => {
                return Err(ModelError::Silent { provider: provider.name.clone(), limit: idle });
            }
        };
        if !response.status().is_success() {
            let (status, headers) = (response.status(), response.headers().clone());
            let body = beginning(response, idle).await;
            return Err(self.refused(status, &headers, &body));
        }
        if let Some(kind) = no_stream(&response) {
            let body = self.secrets.hide(&beginning(response, idle).await);
            let told = serde_json::from_str(&body).ok().and_then(|value| Told::read(&value));
            return Err(match told {
                Some(told) => failure::error(self.asked(), told.status(), &told, None),
                None => ModelError::Malformed {
                    provider: provider.name.clone(),
                    reason: format!("{kind} instead of a stream of events"),
                },
            });
        }
        let limits = Limits { idle, event: LARGEST_EVENT, response: LARGEST_RESPONSE };
        let body = response.bytes_stream();
        let body =
            body.map(|bytes| bytes.map_err(|error| client::root_cause(&error.without_url())));
        let decoder = provider.wire.decoder(KnownIds::of(self.request.items));
        Ok(Open { events: Events::of(body, limits), decoder, has_begun: false })
    }

    fn headers(&self, key: Option<&SecretString>) -> HeaderMap {
        let wire = &self.provider.wire;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        for (name, value) in wire.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let SessionSource::SubAgent(subagent) = self.request.source {
            // A header can hold no more than this.
            let name: String = subagent.name().chars().filter(char::is_ascii_graphic).collect();
            headers.extend(name.parse().ok().map(|value: HeaderValue| (SUBAGENT, value)));
        }
        if let Some(key) = key {
            let (name, before) = wire.key_header();
            // What is no header was refused when the key was read.
            if let Ok(mut value) = HeaderValue::try_from(format!("{before}{}", key.expose_secret()))
            {
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        for (name, value) in &self.provider.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }

    fn asked(&self) -> Asked<'_> {
        Asked { provider: &self.provider.name, model: self.request.model }
    }

    /// The sentence of an error of the connection.
    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let reason = failure::sentence(&self.secrets.hide(&client::root_cause(error)));
        let provider = self.provider.name.clone();
        if error.is_connect() && reason.contains("certificate") {
            return ModelError::Settings(format!(
                "{provider} is not who it should be: {reason}; if your network has certificates of \
                 its own, name them in ca_file"
            ));
        }
        let at =
            error.url().and_then(|url| Some(format!("{}://{}", url.scheme(), url.host_str()?)));
        let reason = match (at, error.url().and_then(reqwest::Url::port)) {
            (Some(at), Some(port)) => format!("{reason} (at {at}:{port})"),
            (Some(at), None) => format!("{reason} (at {at})"),
            (None, _) => reason,
        };
        ModelError::Unreachable { provider, reason }
    }

    /// What an answer says that is no success.
    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
        let asked_for = retry::asked_for(headers, jiff::Timestamp::now());
        let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let mut told = match target.filter(|_| status.is_redirection()) {
            Some(target) => Told {
                message: format!("it is at {target}, which base_url does not say"),
                ..Told::default()
            },
            None => failure::told(body, status),
        };
        told.message = self.secrets.hide(&told.message);
        if let Some(asked) = asked_for.filter(|asked| *asked > retry::LONGEST_ASKED) {
            told.message =
                format!("{} (it asks to be left alone for {} s)", told.message, asked.as_secs());
        }
        failure::error(self.asked(), status.as_u16(), &told, asked_for)
    }
}

impl HttpProvider {
    async fn client(&self) -> Result<&Client, ModelError> {
        let make = || async {
            let (url, ca_file) = (self.url.clone(), self.ca_file.clone());
            let built =
                tokio::task::spawn_blocking(move || client::build(&url, ca_file.as_deref()));
            built.await.unwrap_or_else(|error| {
                Err(ModelError::Settings(format!("there is no way to speak HTTP: {error}")))
            })
        };
        self.client.get_or_try_init(make).await
    }
}

/// What came in the place of a stream of events, if that can be told.
fn no_stream(response: &Response) -> Option<&'static str> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
    match kind.split(';').next()?.trim() {
        "application/json" => Some("JSON"),
        "text/html" => Some("a web page"),
        _ => None,
    }
}

/// As much of a body as is read of an error. What goes wrong with it is the smaller evil.
async fn beginning(response: Response, idle: Duration) -> String {
    let mut response = response;
    let mut bytes = Vec::new();
    let reading = async {
        while let Ok(Some(more)) = response.chunk().await {
            bytes.extend_from_slice(&more);
            if bytes.len() >= LARGEST_ERROR {
                break;
            }
        }
    };
    let _ = timeout(idle.min(Duration::from_secs(10)), reading).await;
    bytes.truncate(LARGEST_ERROR);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Open {
    /// Reads the next event.
    async fn next(
        &mut self,
        asked: Asked<'_>,
        secrets: &Secrets,
        heard: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        let provider = || asked.provider.to_owned();
        let shown = |text: &str| failure::sentence(&secrets.hide(text));
        let mut events = Vec::new();
        let read = match self.events.next().await {
            Some(Ok(data)) => self.decoder.event(&data, &mut events),
            Some(Err(Stopped::Silent(limit))) => {
                return Err(ModelError::Silent { provider: provider(), limit });
            }
            Some(Err(Stopped::Cut(reason))) => {
                return Err(ModelError::BrokenOff { provider: provider(), reason: shown(&reason) });
            }
            Some(Err(Stopped::Unreadable(reason))) => {
                return Err(ModelError::Malformed { provider: provider(), reason: shown(&reason) });
            }
            None => {
                let complete = self.decoder.end_of_stream(&mut events);
                if complete.is_ok() && !matches!(events.last(), Some(ModelEvent::End(_))) {
                    let reason = "it ended before the response was complete".to_owned();
                    return Err(ModelError::BrokenOff { provider: provider(), reason });
                }
                complete.map(|()| Sign::Work)
            }
        };
        match read {
            Ok(sign) => {
                if sign == Sign::Work {
                    self.has_begun = true;
                    self.events.works();
                }
                heard.extend(events);
                Ok(())
            }
            Err(Fault::Malformed(reason)) => {
                Err(ModelError::Malformed { provider: provider(), reason: shown(&reason) })
            }
            Err(Fault::Told(mut told)) => {
                told.message = secrets.hide(&told.message);
                Err(failure::error(asked, told.status(), &told, None))
            }
        }
    }
}
