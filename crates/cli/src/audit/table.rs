//! The table that people see.
//!
//! What was run stands last and is never cut; whatever else there is to say of a call follows it,
//! indented, and so does what was run where the line would not fit the terminal. Where not even the other columns fit
//! there are none.

use super::calls::{Call, Row};
use super::words;
use crate::wrap::wrapped;
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
    let fits = |line: &str| columns.is_none_or(|columns| line.trim_end().width() <= columns);
    if !fits(&text) {
        // There is no column of what was run: it stands below each row.
        let mut titles = titles.clone();
        titles[WHAT].clear();
        text = line(&titles, &widths);
    }
    if !fits(&text) {
        return drawn.iter().map(|(cells, below)| narrow(cells, below, columns)).collect();
    }
    for (cells, below) in &drawn {
        let whole = line(cells, &widths);
        if fits(&whole) {
            text += &whole;
        } else {
            let mut cells = cells.clone();
            let what = std::mem::take(&mut cells[WHAT]);
            text += &format!("{}{}", line(&cells, &widths), under(&what, columns));
        }
        below.iter().for_each(|note| text += &under(note, columns));
    }
    text
}

/// A row where there is no room for columns: when and whose it was, and the rest below it.
fn narrow(cells: &[String; 7], below: &[String], columns: Option<usize>) -> String {
    let [time, session, decision, place, exit, blocked, what] = cells;
    let named = |name: &str, cell: &String| match cell.is_empty() {
        true => String::new(),
        false => format!("{name} {cell}"),
    };
    let said = [decision.clone(), place.clone(), named("exit", exit), named("blocked", blocked)];
    let said: Vec<String> = said.into_iter().filter(|cell| !cell.is_empty()).collect();
    let said = said.join(" · ");
    let lines = [&said, what].into_iter().filter(|line| !line.is_empty()).chain(below);
    let lines = lines.map(|line| under(line, columns));
    format!("{time}  {session}\n{}", lines.collect::<String>())
}

/// A line below a row, which goes on further in where it is wider than the terminal.
fn under(text: &str, columns: Option<usize>) -> String {
    format!("    {}\n", wrapped(text, columns, 6))
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
    use crate::audit::calls::Rows;
    use sandgate_runtime::audit::Record;
    use serde_json::json;

    /// spec AUDIT.47: At a terminal, what was run stands below its row where the row would not fit, and all that
    /// stands below a row is broken between words and goes on further in; nothing of it is cut.
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
        assert_eq!(lines.len(), 5, "{drawn}");
        assert!(lines[1].starts_with("1970-01-01") && lines[1].ends_with("note: short"), "{drawn}");
        assert_eq!(lines[2], "1970-01-01 00:00:00  a2c179b1");
        assert_eq!(lines[3], format!("    note: {}", "long ".repeat(17).trim_end()));
        assert_eq!(lines[4], "      long long long");
        // Where nothing fits beside the rest, there is no column for it.
        let titles =
            |columns| draw(&rows, &TimeZone::UTC, columns).lines().next().unwrap().to_owned();
        assert!(titles(Some(64)).ends_with("BLOCKED"), "{}", titles(Some(64)));
        assert!(titles(Some(100)).ends_with("WHAT"), "{}", titles(Some(100)));
        // A program reads a line for each.
        assert_eq!(draw(&rows, &TimeZone::UTC, None).lines().count(), 3);
    }

    /// spec AUDIT.48: On a terminal that is narrower than the columns, a row is a moment and a session, and all else
    /// stands below it, no wider than the terminal.
    #[test]
    fn a_narrow_terminal_has_no_columns() {
        let asked = json!({
            "type": "call_asked", "call_id": "c", "front_end": "run", "tool": "shell", "cwd": "/w",
            "argv": ["git", "push", "--force-with-lease", "origin", "main"],
            "sandbox_permissions": "use_default",
        });
        let decided = json!({
            "type": "decided", "call_id": "c", "decision": "approved_for_session", "attempt": 1,
            "by": { "who": "person", "front_end": "terminal" },
            "feedback": "go on, but only this one time",
        });
        let mut rows = Rows::default();
        for record in [asked, decided] {
            let time = "1970-01-01T00:00:00Z";
            let entry = json!({ "seq": 1, "time": time, "session": "a2c179b1", "record": record });
            rows.add(serde_json::from_value(entry).unwrap(), None);
        }
        let drawn = draw(&rows.finish(), &TimeZone::UTC, Some(40));
        let expected = "\
1970-01-01 00:00:00  a2c179b1
    approved for session, person
      (terminal)
    git push --force-with-lease origin
      main
    answer: go on, but only this one
      time
";
        assert_eq!(drawn, expected);
    }
}
