//! The rows as a table that a person reads.

use super::report::Report;
use super::row::{Figures, Outcome, Row};
use std::fmt::Write as _;

const HEADINGS: [&str; 6] = ["", "ours", "reference", "ratio", "target", "met"];

/// The table, with the further figures of each row beneath it.
pub(super) fn render(report: &Report) -> String {
    let cells: Vec<[String; 6]> = report.rows.iter().map(cells).collect();
    let widths = widths(&cells);
    let mut text = String::new();
    let machine = &report.machine;
    let load = machine.load_before.as_deref().unwrap_or("unknown");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Linux {}, {} cores, load {load}\n", machine.kernel, machine.cores);
    line(&mut text, &HEADINGS.map(str::to_owned), &widths);
    let mut measurement = "";
    for (row, cells) in report.rows.iter().zip(&cells) {
        if row.measurement != measurement {
            measurement = row.measurement;
            let _ = writeln!(text, "{measurement}");
        }
        line(&mut text, cells, &widths);
        if let Some(details) = details(row) {
            let _ = writeln!(text, "      {details}");
        }
    }
    let (missed, failed) = (report.missed(), report.failed());
    let _ = writeln!(text, "\nTargets missed: {missed}. Measurements failed: {failed}.");
    text
}

fn cells(row: &Row) -> [String; 6] {
    let what = format!("  {}", row.what);
    let nothing = String::new;
    match &row.outcome {
        Outcome::Measured(Figures { ours, reference, ratio, target, met, .. }) => [
            what,
            ours.to_string(),
            reference.as_ref().map_or_else(nothing, |r| format!("{} {}", r.quantity, r.what)),
            ratio.map_or_else(nothing, |ratio| format!("{ratio:.2}")),
            target.map_or_else(nothing, |target| target.to_string()),
            met.map_or_else(nothing, |met| if met { "yes" } else { "NO" }.to_owned()),
        ],
        Outcome::Skipped { why } => unmeasured(format!("{what}: SKIPPED, {why}")),
        Outcome::Failed { why } => unmeasured(format!("{what}: FAILED, {why}")),
    }
}

fn unmeasured(what: String) -> [String; 6] {
    let mut cells = [const { String::new() }; 6];
    cells[0] = what;
    cells
}

fn details(row: &Row) -> Option<String> {
    let Outcome::Measured(figures) = &row.outcome else { return None };
    let details: Vec<String> =
        figures.details.iter().map(|(name, quantity)| format!("{name} {quantity}")).collect();
    (!details.is_empty()).then(|| details.join(", "))
}

/// How wide each column is. A row without figures may be as long as it likes.
fn widths(rows: &[[String; 6]]) -> [usize; 6] {
    let mut widths = HEADINGS.map(str::len);
    for row in rows.iter().filter(|row| row.iter().skip(1).any(|cell| !cell.is_empty())) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn line(text: &mut String, cells: &[String; 6], widths: &[usize; 6]) {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    text.push_str(padded.join("  ").trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::report_of;
    use crate::bench::row::{Quantity, Target};

    #[test]
    fn a_row_shows_figure_reference_ratio_target_and_verdict() {
        let measured = Row::new("/bin/true", Quantity::Seconds(0.0012))
            .against("posix_spawn", Quantity::Seconds(0.001))
            .target(Target::RatioAtMost(1.5))
            .detail("p95", Quantity::Seconds(0.002));
        let measured = Row { measurement: "spawn", ..measured };
        let why = "there is no program called `head`".to_owned();
        let skipped = Row {
            measurement: "throughput",
            what: "1 GiB".to_owned(),
            outcome: Outcome::Skipped { why },
        };
        let text = render(&report_of(vec![measured, skipped]));
        assert_eq!(
            text,
            "\
Linux 6.1, 2 cores, load 0.10

             ours     reference            ratio  target        met
spawn
  /bin/true  1.20 ms  1.00 ms posix_spawn  1.20   ratio ≤ 1.50  yes
      p95 2.00 ms
throughput
  1 GiB: SKIPPED, there is no program called `head`

Targets missed: 0. Measurements failed: 0.
"
        );
    }
}
