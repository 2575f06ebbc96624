//! Who hears what the session does: the log on standard error that `SANDGATE_LOG` asks for, and the
//! collector that the standard variables of OpenTelemetry name. Neither is there unless it is wanted.
//!
//! Nothing here may hold a call up. Figures and spans are sent by threads of their own, and whoever does
//! not answer is waited for once, at the end, and not for long.

mod client;
mod figures;
mod settings;

pub(crate) use figures::Figures;

use crate::notes;
use crate::say::{Said, say};
use client::Client;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use settings::{Settings, Signal};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, registry};

/// How long the end of the program waits for a collector.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(1);

/// What is sent to collectors comes from here, and from no crate that we only use.
const OURS: &str = "sandgate_runtime";

/// The standard variable for the base address of a collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Sends what is left when it is dropped.
#[must_use]
pub(crate) struct Telemetry {
    metrics: Option<SdkMeterProvider>,
    spans: Option<SdkTracerProvider>,
}

/// Begins to listen, if anybody wants to hear. Threads are made only then; call it after the runtime was
/// started, which forks, and before a session, which looks for who listens.
///
/// `collector` is the base address that the person's settings name; the environment outweighs it.
pub(crate) fn start(collector: Option<&str>) -> Telemetry {
    start_counting(collector, None)
}

/// The same, and what is counted can be read here as well.
pub(crate) fn start_counting(collector: Option<&str>, figures: Option<Figures>) -> Telemetry {
    let settings = Settings::from_environment(|name| {
        let named = std::env::var(name).ok();
        named.or_else(|| collector.filter(|_| name == ENDPOINT).map(str::to_owned))
    });
    let settings = settings.unwrap_or_else(|why| {
        complain(&why);
        Settings::default()
    });
    let (metrics, spans) = (metrics(&settings, figures), spans(&settings));
    if let Some(provider) = &metrics {
        opentelemetry::global::set_meter_provider(provider.clone());
    }
    subscribe(&settings, spans.as_ref().map(|provider| provider.tracer("sandgate")));
    Telemetry { metrics, spans }
}

fn metrics(settings: &Settings, figures: Option<Figures>) -> Option<SdkMeterProvider> {
    let exporter = settings.metrics.as_ref().and_then(metric_exporter);
    if exporter.is_none() && figures.is_none() {
        return None;
    }
    let mut provider = SdkMeterProvider::builder().with_resource(resource());
    if let Some(exporter) = exporter {
        provider = provider.with_periodic_exporter(exporter);
    }
    if let Some(figures) = figures {
        provider = provider.with_reader(figures);
    }
    Some(provider.build())
}

fn metric_exporter(signal: &Signal) -> Option<MetricExporter> {
    let exporter = MetricExporter::builder().with_http().with_http_client(client(signal));
    let exporter = exporter
        .with_endpoint(&signal.endpoint)
        .with_timeout(signal.timeout)
        .with_retry_policy(once());
    built(exporter.build())
}

fn spans(settings: &Settings) -> Option<SdkTracerProvider> {
    let signal = settings.traces.as_ref()?;
    let exporter = SpanExporter::builder().with_http().with_http_client(client(signal));
    let exporter = exporter
        .with_endpoint(&signal.endpoint)
        .with_timeout(signal.timeout)
        .with_retry_policy(once());
    let exporter = built(exporter.build())?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
    Some(provider.with_resource(resource()).build())
}

fn client(signal: &Signal) -> Client {
    Client { limit: signal.timeout }
}

/// What was not taken the first time is lost: it is not worth a wait.
fn once() -> RetryPolicy {
    RetryPolicy::default().with_max_retries(0)
}

fn built<T>(exporter: Result<T, ExporterBuildError>) -> Option<T> {
    exporter.map_err(|error| complain(&format!("telemetry is off: {error}"))).ok()
}

fn resource() -> Resource {
    let resource = Resource::builder();
    match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource.build(),
        None => resource.with_service_name("sandgate").build(),
    }
}

/// Sends spans and events to where they are wanted. Without anybody who wants them nothing listens, and
/// a span costs one look at a flag.
fn subscribe(settings: &Settings, tracer: Option<SdkTracer>) {
    let log = settings.log.as_deref().and_then(|filter| match EnvFilter::try_new(filter) {
        Ok(filter) => {
            let lines = fmt::layer().with_writer(|| Said).with_ansi(false);
            Some(lines.with_filter(filter))
        }
        Err(error) => {
            complain(&format!("SANDGATE_LOG is not understood, and there is no log: {error}"));
            None
        }
    });
    if log.is_none() && tracer.is_none() {
        return;
    }
    // Only this program sets one, and only once.
    let _ = registry().with(log).with(tracer.map(exported)).try_init();
}

/// The spans that a collector is sent: ours, without the events in them, some of which show output.
fn exported<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let spans = tracing_opentelemetry::layer().with_tracer(tracer);
    let spans = spans.with_location(false).with_threads(false).with_tracked_inactivity(false);
    spans.with_filter(filter_fn(|data| {
        data.is_span() && data.target().starts_with(OURS) && *data.level() <= Level::INFO
    }))
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        // Both at once, so that a collector that is not there is waited for once; and in threads that the
        // end of the program ends, because their own time limits are not kept by all of their parts.
        let (done, finished) = channel();
        let mut waiting = 0;
        if let Some(metrics) = self.metrics.take() {
            waiting += finish(&done, move || drop(metrics.shutdown()));
        }
        if let Some(spans) = self.spans.take() {
            waiting += finish(&done, move || drop(spans.shutdown()));
        }
        let deadline = Instant::now() + PATIENCE_AT_THE_END;
        for _ in 0..waiting {
            let left = deadline.saturating_duration_since(Instant::now());
            if finished.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

/// Does some last work in a thread of its own. Gives back how many such works there are now: one, or none
/// if the system makes no thread.
fn finish(done: &Sender<()>, work: impl FnOnce() + Send + 'static) -> usize {
    let done = done.clone();
    let started = std::thread::Builder::new().spawn(move || {
        work();
        // Nobody may be waiting any more.
        let _ = done.send(());
    });
    usize::from(started.is_ok())
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str) {
    let what = sandgate_protocol::visible_line(what);
    say(&notes::error(&what, None));
}
