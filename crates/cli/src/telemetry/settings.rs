//! Who wants to hear, as the standard variables of OpenTelemetry say it.

use std::time::Duration;

/// Who wants to hear. Plain data, which a settings file can fill as well.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Settings {
    /// Where figures go.
    pub(super) metrics: Option<Signal>,
    /// Where spans go.
    pub(super) traces: Option<Signal>,
    /// What of the log is printed, in the words of `tracing`'s filters.
    pub(super) log: Option<String>,
}

/// Where one kind of telemetry goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signal {
    /// The address, with its path.
    pub(super) endpoint: String,
    /// How long the collector may take.
    pub(super) timeout: Duration,
}

/// How long a collector may take if nobody says.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Settings {
    /// What the environment says. `get` looks a variable up; one that is empty counts as not set. The
    /// headers are read where they are sent.
    ///
    /// # Errors
    /// Why it cannot be as the environment says, in a person's words.
    pub(super) fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let log = get("SANDGATE_LOG");
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self { log, ..Self::default() });
        }
        let signal = |kind: &str| signal(kind, &get);
        Ok(Self { metrics: signal("METRICS")?, traces: signal("TRACES")?, log })
    }
}

fn signal(kind: &str, get: &impl Fn(&str) -> Option<String>) -> Result<Option<Signal>, String> {
    let named = |what: &str| {
        let own = get(&format!("OTEL_EXPORTER_OTLP_{kind}_{what}"));
        own.or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{what}")))
    };
    let exporter = get(&format!("OTEL_{kind}_EXPORTER"));
    if exporter.is_some_and(|name| name.trim() != "otlp") {
        return Ok(None);
    }
    // The general address is a base, the address of one kind is used as it is.
    let own = get(&format!("OTEL_EXPORTER_OTLP_{kind}_ENDPOINT"));
    let base = || {
        let base = get("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}/v1/{}", base.trim().trim_end_matches('/'), kind.to_lowercase()))
    };
    let Some(endpoint) = own.or_else(base) else { return Ok(None) };
    let endpoint = endpoint.trim().to_owned();
    let off = "telemetry is off:";
    match named("PROTOCOL").as_deref().map(str::trim) {
        None | Some("http/protobuf") => {}
        Some(other) => {
            return Err(format!(
                "{off} the protocol {other:?} is not spoken here, only http/protobuf"
            ));
        }
    }
    if !endpoint.starts_with("http://") {
        return Err(format!(
            "{off} only addresses that begin with http:// can be reached, like that of a collector on \
             this machine, which sends on by TLS; this is {endpoint:?}"
        ));
    }
    let timeout = match named("TIMEOUT") {
        None => TIMEOUT,
        Some(text) => match text.trim().parse() {
            Ok(milliseconds) => Duration::from_millis(milliseconds),
            Err(_) => {
                return Err(format!("{off} the timeout {text:?} is no number of milliseconds"));
            }
        },
    };
    Ok(Some(Signal { endpoint, timeout }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::from_environment(find)
    }

    fn places(variables: &[(&str, &str)]) -> (Option<String>, Option<String>) {
        let Settings { metrics, traces, .. } = read(variables).unwrap();
        (metrics.map(|signal| signal.endpoint), traces.map(|signal| signal.endpoint))
    }

    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    #[test]
    fn nobody_hears_unless_somebody_is_named() {
        assert_eq!(read(&[]).unwrap(), Settings::default());
        assert_eq!(read(&[(ENDPOINT, "")]).unwrap(), Settings::default());
        let off = [(ENDPOINT, "http://a"), ("OTEL_SDK_DISABLED", "true")];
        assert_eq!(read(&off).unwrap(), Settings::default());
        assert_eq!(read(&[("SANDGATE_LOG", "info")]).unwrap().log.as_deref(), Some("info"));
    }

    #[test]
    fn an_address_is_a_base_or_belongs_to_one_kind() {
        let some = |text: &str| Some(text.to_owned());
        let both = (some("http://a:4318/v1/metrics"), some("http://a:4318/v1/traces"));
        assert_eq!(places(&[(ENDPOINT, "http://a:4318/")]), both);
        let one = [("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://b/x")];
        assert_eq!(places(&one), (some("http://b/x"), None));
        let without = [(ENDPOINT, "http://a"), ("OTEL_TRACES_EXPORTER", "none")];
        assert_eq!(places(&without), (some("http://a/v1/metrics"), None));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (name, value, says) in [
            (ENDPOINT, "https://a", "http://"),
            (ENDPOINT, "a:4318", "http://"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "soon"),
        ] {
            let error = read(&[(name, value), (ENDPOINT, "http://a")]).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
