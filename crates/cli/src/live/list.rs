//! The processes, as people see them.

use sandgate_protocol::{ProcessInfo, ProcessState, visible_line};
use unicode_width::UnicodeWidthStr as _;

const TITLES: [&str; 5] = ["ID", "STATE", "AGE", "DIRECTORY", "COMMAND"];

/// Draws them as a table; nothing if there are none.
pub(super) fn draw(processes: &[ProcessInfo]) -> String {
    if processes.is_empty() {
        return String::new();
    }
    let titles = TITLES.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(titles).chain(processes.iter().map(cells)).collect();
    let widths: [usize; 5] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].width()).max().unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let padded = row.iter().zip(widths);
        let line: String = padded
            .map(|(cell, width)| cell.clone() + &" ".repeat(width - cell.width() + 2))
            .collect();
        text.extend([line.trim_end(), "\n"]);
    }
    text
}

fn cells(process: &ProcessInfo) -> [String; 5] {
    let state = match (process.state, process.exit_code) {
        (ProcessState::Exited, Some(code)) => format!("exited with {code}"),
        (ProcessState::Exited, None) => "exited".to_owned(),
        (ProcessState::WaitingForInput, _) => "waiting for input".to_owned(),
        (ProcessState::Running, _) => "running".to_owned(),
    };
    let state = if process.kept { state + ", kept" } else { state };
    [
        process.process_id.clone(),
        state,
        age(process.age_seconds),
        visible_line(&process.cwd),
        visible_line(&process.command.join(" ")),
    ]
}

/// How long ago something was, in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_one_line_for_each() {
        let process = |id: &str, command: &str, state, exit_code| ProcessInfo {
            process_id: id.to_owned(),
            command: vec![command.to_owned()],
            cwd: "/w".to_owned(),
            pid: 1,
            state,
            exit_code,
            age_seconds: 61,
            printed_bytes: 0,
            last_line: String::new(),
            kept: id == "d2",
        };
        let processes = [
            process("web", "a\nb", ProcessState::Exited, Some(3)),
            process("d2", "cat", ProcessState::WaitingForInput, None),
        ];
        let expected = "ID   STATE                    AGE    DIRECTORY  COMMAND\n\
                        web  exited with 3            1 min  /w         a\\nb\n\
                        d2   waiting for input, kept  1 min  /w         cat\n";
        assert_eq!(draw(&processes), expected);
        assert_eq!(draw(&[]), "");
    }
}
