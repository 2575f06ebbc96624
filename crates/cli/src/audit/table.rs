//! The table that people see.
//!
//! What was run stands last and is never cut; whatever else there is to say of a call follows it,
//! indented, and so does what was run where the line would not fit the terminal.

use super::calls::{Call, Row};
use super::words;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sandgate_protocol::visible_line as shown;
use unicode_width::UnicodeWidthStr as _;

/// How many denials of one call are listed.
const SHOWN_DENIALS: usize = 3;

/// How many letters of a session's id are shown: the last, because ids of one day begin alike.
const SESSION_LETTERS: usize = 8;

const TITLES: [&str; 7] = ["TIME", "SESSION", "DECISION", "WHERE", "EXIT", "BLOCKED", "WHAT"];

/// The last of them.
const WHAT: usize = TITLES.len() - 1;

/// Draws rows as a table, with times as they are in a time zone, for a terminal of so many columns.
pub(super) fn draw(rows: &[Row], zone: &TimeZone, columns: Option<usize>) -> String {
    let drawn: Vec<_> = rows.iter().map(|row| cells(row, zone)).collect();
    let titles = TITLES.map(str::to_owned);
    let all = || std::iter::once(&titles).chain(drawn.iter().map(|(cells, _)| cells));
    let widths: [usize; 7] =
        std::array::from_fn(|column| all().map(|cells| cells[column].width()).max().unwrap_or(0));
    let mut text = line(&titles, &widths);
    if columns.is_some_and(|columns| text.trim_end().width() > columns) {
        // There is no column of what was run: it stands below each row.
        let mut titles = titles.clone();
        titles[WHAT].clear();
        text = line(&titles, &widths);
    }
    for (cells, below) in &drawn {
        let whole = line(cells, &widths);
        match columns {
            Some(columns) if whole.trim_end().width() > columns => {
                let mut cells = cells.clone();
                let what = std::mem::take(&mut cells[WHAT]);
                text += &format!("{}    {what}\n", line(&cells, &widths));
            }
            _ => text += &whole,
        }
        below.iter().for_each(|note| text += &format!("    {note}\n"));
    }
    text
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line += cell;
        line += &" ".repeat(width - cell.width() + 2);
    }
    format!("{}\n", line.trim_end())
}

/// The cells of a row, and the lines below it.
fn cells(row: &Row, zone: &TimeZone) -> ([String; 7], Vec<String>) {
    let nothing = String::new;
    match row {
        Row::Call(call) => {
            let blocked = call.denials.evidence.len() as u64 + call.denials.more;
            let cells = [
                time(call.time, zone),
                session(&call.session),
                words::decision(call),
                words::place(call),
                words::exit(call),
                if blocked == 0 { nothing() } else { blocked.to_string() },
                words::what(call),
            ];
            (cells, below(call))
        }
        Row::Event { time: when, session: id, record, .. } => {
            let what = words::event(record);
            let cells =
                [time(*when, zone), session(id), nothing(), nothing(), nothing(), nothing(), what];
            (cells, Vec::new())
        }
    }
}

fn below(call: &Call) -> Vec<String> {
    let mut notes = Vec::new();
    let agent = call.asked.as_ref().and_then(|asked| asked.agent.as_ref());
    notes.extend(agent.map(|name| format!("asked by the subagent {name}")));
    let justification = call.asked.as_ref().and_then(|asked| asked.justification.as_ref());
    notes.extend(justification.map(|text| format!("because: {text}")));
    let feedback = call.decisions.iter().filter_map(|one| one.feedback.as_ref());
    notes.extend(feedback.map(|text| format!("answer: {text}")));
    notes.extend(call.grants.iter().filter_map(words::opened));
    let denials = &call.denials;
    let listed = denials.evidence.iter().take(SHOWN_DENIALS);
    notes.extend(listed.map(|denial| format!("blocked: {denial}")));
    let more = denials.more + denials.evidence.len().saturating_sub(SHOWN_DENIALS) as u64;
    if more > 0 {
        notes.push(format!("blocked: {more} more"));
    }
    let error = call.end.as_ref().and_then(|end| end.error.as_ref());
    notes.extend(error.map(|text| format!("error: {text}")));
    notes.iter().map(|note| shown(note)).collect()
}

fn time(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn session(id: &str) -> String {
    let skipped = id.chars().count().saturating_sub(SESSION_LETTERS);
    shown(&id.chars().skip(skipped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_runtime::audit::Record;

    /// spec AUDIT.47: At a terminal, what was run stands on a line of its own below its row where the row would not
    /// fit; nothing of it is cut.
    #[test]
    fn what_does_not_fit_stands_below() {
        let note = |text: &str| Row::Event {
            seq: 1,
            time: Timestamp::UNIX_EPOCH,
            session: "a2c179b1".to_owned(),
            record: Box::new(Record::Note { text: text.to_owned() }),
        };
        let long = "long ".repeat(20);
        let rows = [note("short"), note(long.trim_end())];
        let drawn = draw(&rows, &TimeZone::UTC, Some(100));
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), 4, "{drawn}");
        assert!(lines[1].starts_with("1970-01-01") && lines[1].ends_with("note: short"), "{drawn}");
        assert_eq!(lines[2], "1970-01-01 00:00:00  a2c179b1");
        assert_eq!(lines[3], format!("    note: {}", long.trim_end()));
        // Where nothing fits beside the rest, there is no column for it.
        let titles =
            |columns| draw(&rows, &TimeZone::UTC, columns).lines().next().unwrap().to_owned();
        assert!(titles(Some(60)).ends_with("BLOCKED"), "{}", titles(Some(60)));
        assert!(titles(Some(100)).ends_with("WHAT"), "{}", titles(Some(100)));
        // A program reads a line for each.
        assert_eq!(draw(&rows, &TimeZone::UTC, None).lines().count(), 3);
    }
}
