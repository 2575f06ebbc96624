//! When a request is made again.

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// What is waited for after the first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// What is waited for at most, unless the provider asks for more.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The most that a provider can ask for. Whoever asks for more is not asked again.
pub(super) const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How long is waited before the request is made again: what the provider asks for, or a time that
/// grows, and in either case not the same for all who wait.
pub(super) fn delay(failures: u32, asked: Option<Duration>) -> Duration {
    let chance = RandomState::new().hash_one(failures) as f64 / u64::MAX as f64;
    match asked {
        Some(asked) => asked + FIRST_DELAY.mul_f64(chance),
        None => {
            let grown = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures));
            grown.min(LONGEST_DELAY).mul_f64(0.5 + chance / 2.0)
        }
    }
}

/// How long a provider asks to be left alone: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
pub(super) fn asked_for(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let in_ms = text("retry-after-ms").and_then(|text| number(text, 0.001));
    in_ms.or_else(|| {
        let text = text("retry-after")?;
        number(text, 1.0).or_else(|| {
            let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
            Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    /// spec MODEL.9: A request is made again after 200 ms, and each time after twice as long and at
    /// most 30 s, less up to half of it by chance.
    #[test]
    fn delays_grow_and_differ() {
        for failures in [0, 1, 2, 5, 8, 40, u32::MAX] {
            let whole = 0.2 * 2_f64.powf(f64::from(failures.min(100)));
            let whole = Duration::from_secs_f64(whole.min(30.0));
            let delays: Vec<Duration> = (0..50).map(|_| delay(failures, None)).collect();
            for delay in &delays {
                assert!((whole / 2..=whole).contains(delay), "{failures}: {delay:?}");
            }
            assert!(delays.iter().any(|delay| *delay != delays[0]));
        }
        let asked = Duration::from_secs(7);
        assert!((asked..=asked + FIRST_DELAY).contains(&delay(0, Some(asked))));
    }

    /// spec MODEL.10: A provider asks to be left alone in milliseconds, in seconds or until a date.
    #[test]
    fn what_a_provider_asks_for_is_read() {
        let now: Timestamp = "2025-10-21T07:27:30Z".parse().unwrap();
        let cases: [(Headers, Option<u64>); 9] = [
            (&[("retry-after", "3")], Some(3000)),
            (&[("retry-after", "1.5")], Some(1500)),
            (&[("retry-after", "20"), ("retry-after-ms", "250")], Some(250)),
            (&[("retry-after", "Tue, 21 Oct 2025 07:28:00 GMT")], Some(30_000)),
            (&[("retry-after", "Tue, 21 Oct 2025 07:27:00 GMT")], Some(0)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ];
        for (given, expected) in cases {
            let pairs = given.iter().map(|(name, value)| {
                (reqwest::header::HeaderName::from_static(name), value.parse().unwrap())
            });
            let found = asked_for(&pairs.collect(), now);
            assert_eq!(found, expected.map(Duration::from_millis), "{given:?}");
        }
    }
}
