//! When: what people write for a time.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

/// Which end of a stretch of time is meant. It matters for whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The first moment that counts.
    Since,
    /// The first moment that does not count any more.
    Until,
}

/// Reads a time.
///
/// # Errors
/// Says, after the name of an option, what can be written.
pub(super) fn read(text: &str, edge: Edge, now: &Zoned) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "{text:?} is no time; write a length of time before now (2h, 3d), today, yesterday, a \
             date (2026-11-01) or a date and a time (2026-11-01T15:30)"
        )
    };
    let out_of_range = |_| format!("{text:?} is too far away");
    if text == "now" {
        return Ok(now.timestamp());
    }
    if let Some(ago) = length(text) {
        return now.timestamp().checked_sub(ago).map_err(out_of_range);
    }
    let day = match text {
        "today" => Some(now.date()),
        "yesterday" => Some(now.date().yesterday().map_err(out_of_range)?),
        _ if text.len() == 10 => text.parse::<Date>().ok(),
        _ => None,
    };
    if let Some(day) = day {
        let first = match edge {
            Edge::Since => day,
            Edge::Until => day.checked_add(1.day()).map_err(out_of_range)?,
        };
        let start = first.to_zoned(now.time_zone().clone()).map_err(out_of_range)?;
        return Ok(start.timestamp());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let local = text.parse::<DateTime>().map_err(|_| wrong())?;
    Ok(local.to_zoned(now.time_zone().clone()).map_err(out_of_range)?.timestamp())
}

/// A number and one letter for its unit.
fn length(text: &str) -> Option<SignedDuration> {
    let unit = text.chars().last()?;
    let number: i64 = text.strip_suffix(unit)?.parse().ok().filter(|number| *number >= 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(SignedDuration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-01T12:00:00+01:00[+01:00]".parse().unwrap()
    }

    #[test]
    fn times_are_what_people_write() {
        for (text, since) in [
            ("now", "2026-11-01T11:00:00Z"),
            ("2h", "2026-11-01T09:00:00Z"),
            ("3d", "2026-10-29T11:00:00Z"),
            ("1w", "2026-10-25T11:00:00Z"),
            ("today", "2026-10-31T23:00:00Z"),
            ("yesterday", "2026-10-30T23:00:00Z"),
            ("2026-10-01", "2026-09-30T23:00:00Z"),
            ("2026-10-01T10:30", "2026-10-01T09:30:00Z"),
            ("2026-10-01 10:30:05", "2026-10-01T09:30:05Z"),
            ("2026-10-01T10:30:00Z", "2026-10-01T10:30:00Z"),
            ("2026-10-01T10:30:00-02:00", "2026-10-01T12:30:00Z"),
        ] {
            assert_eq!(read(text, Edge::Since, &now()).unwrap(), since.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn a_day_that_something_lasts_until_is_included() {
        let until = |text| read(text, Edge::Until, &now()).unwrap();
        assert_eq!(until("today"), "2026-11-01T23:00:00Z".parse().unwrap());
        assert_eq!(until("2026-10-01"), "2026-10-01T23:00:00Z".parse().unwrap());
        assert_eq!(until("2h"), "2026-11-01T09:00:00Z".parse().unwrap());
    }

    #[test]
    fn what_is_no_time_is_refused_with_examples() {
        for text in ["", "h", "-2h", "2 hours", "2y", "2026-13-01", "tomorrow", "é", "99999999999w"]
        {
            assert!(read(text, Edge::Since, &now()).is_err(), "{text}");
        }
    }
}
