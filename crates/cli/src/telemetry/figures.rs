//! What was counted so far, for whoever asks: as the text that Prometheus reads.

use opentelemetry::KeyValue;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};
use std::fmt::{Display, Write as _};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The figures of this program, once somebody counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Arc<ManualReader>);

impl MetricReader for Figures {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, figures: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(figures)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

impl Figures {
    /// All of them as text.
    pub(crate) fn text(&self) -> String {
        let (mut figures, mut text) = (ResourceMetrics::default(), String::new());
        if self.collect(&mut figures).is_err() {
            return text;
        }
        for metric in figures.scope_metrics().flat_map(ScopeMetrics::metrics) {
            let (name, about) = (metric.name(), metric.description());
            match metric.data() {
                AggregatedMetrics::F64(data) => write(&mut text, name, about, data),
                AggregatedMetrics::U64(data) => write(&mut text, name, about, data),
                AggregatedMetrics::I64(data) => write(&mut text, name, about, data),
            }
        }
        text
    }
}

fn write<T: Display + Copy>(text: &mut String, name: &str, about: &str, data: &MetricData<T>) {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(plain).collect();
    let kind = match data {
        MetricData::Sum(sum) if sum.is_monotonic() => {
            name.push_str("_total");
            "counter"
        }
        MetricData::Sum(_) | MetricData::Gauge(_) => "gauge",
        MetricData::Histogram(_) => "histogram",
        // None of ours is of this kind.
        MetricData::ExponentialHistogram(_) => return,
    };
    // Writing to a string does not fail, here and below.
    let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
    match data {
        MetricData::Sum(sum) => {
            for point in sum.data_points() {
                let labels = labels(point.attributes(), None);
                let _ = writeln!(text, "{name}{labels} {}", point.value());
            }
        }
        MetricData::Gauge(gauge) => {
            for point in gauge.data_points() {
                let labels = labels(point.attributes(), None);
                let _ = writeln!(text, "{name}{labels} {}", point.value());
            }
        }
        MetricData::Histogram(histogram) => {
            for point in histogram.data_points() {
                let mut until = 0;
                let bounds = point.bounds().map(|bound| bound.to_string());
                let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
                for (bound, count) in bounds.zip(point.bucket_counts()) {
                    until += count;
                    let labels = labels(point.attributes(), Some(&bound));
                    let _ = writeln!(text, "{name}_bucket{labels} {until}");
                }
                let labels = labels(point.attributes(), None);
                let _ = writeln!(text, "{name}_sum{labels} {}", point.sum());
                let _ = writeln!(text, "{name}_count{labels} {}", point.count());
            }
        }
        MetricData::ExponentialHistogram(_) => {}
    }
}

/// Labels in braces, if there are any.
fn labels<'a>(labels: impl Iterator<Item = &'a KeyValue>, bound: Option<&str>) -> String {
    let quoted = |value: &str| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{value}\"")
    };
    let mut all: Vec<String> = labels
        .map(|label| format!("{}={}", label.key, quoted(&label.value.as_str())))
        .chain(bound.map(|bound| format!("le={}", quoted(bound))))
        .collect();
    all.sort();
    match all.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", all.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    /// spec HTTP.31: `/metrics` has what the runtime counts and how much is open, as Prometheus reads it.
    #[test]
    fn figures_are_text_that_prometheus_reads() {
        let figures = Figures::default();
        assert_eq!(figures.text(), "", "nobody counts yet");
        let provider = SdkMeterProvider::builder().with_reader(figures.clone()).build();
        let meter = provider.meter("test");
        let calls = meter.u64_counter("a.call").with_description("Calls").build();
        calls.add(2, &[KeyValue::new("tool", "sh\"ell"), KeyValue::new("success", true)]);
        let took = meter.f64_histogram("a.ms").with_description("Took");
        let took = took.with_boundaries(vec![1.0, 10.0]).build();
        took.record(0.5, &[]);
        took.record(5.0, &[]);
        let text = figures.text();
        for line in [
            "# TYPE a_call_total counter",
            r#"a_call_total{success="true",tool="sh\"ell"} 2"#,
            r#"a_ms_bucket{le="1"} 1"#,
            r#"a_ms_bucket{le="10"} 2"#,
            r#"a_ms_bucket{le="+Inf"} 2"#,
            "a_ms_sum 5.5",
            "a_ms_count 2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}
