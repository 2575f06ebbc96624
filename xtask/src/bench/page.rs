//! The rows beside others as the page that people read, with plots.

use super::compare::{AGENT, LIBRARY, LIVE, MEMORY, SERVERS, SHELL, TRUE, WORK};
use super::report::Report;
use super::row::{Figures, Outcome, Quantity, Row};
use super::sandbox::directories_of_tmp;
use crate::peers::work::TASKS;
use crate::peers::{PACKAGES, Peers, Sandbox};
use crate::plot::{self, Bar, Colour};
use std::fmt::Write as _;

const TEXT: &str = include_str!("page.txt");

/// A file of the page, by its path in the repository.
pub(super) type File = (&'static str, String);

const PAGE: &str = "docs/benchmarks.md";

/// One plot: which measurement, its file, its title.
const PLOTS: [(&str, &str, &str); 5] = [
    (TRUE, "docs/benchmarks/true.svg", "/bin/true, confined, from start to end"),
    (SHELL, "docs/benchmarks/shell.svg", "bash -lc 'echo hi', confined, from start to end"),
    (MEMORY, "docs/benchmarks/memory.svg", "Memory of the sandbox while its command sleeps"),
    (LIVE, "docs/benchmarks/live.svg", "echo hi to a live bash, until the whole reply is there"),
    (SERVERS, "docs/benchmarks/mcp.svg", "One call of an MCP client"),
];

/// The page and its plots.
pub(super) fn files(report: &Report, peers: &Peers, command: &str, day: &str) -> Vec<File> {
    let mut page = TEXT.replace("{command}", command).replace("{day}", day);
    page = page.replace("{machine}", &machine(report)).replace("{versions}", &versions(peers));
    page = page.replace("{missing}", &missing(peers));
    page = page.replace("{tmp}", &directories_of_tmp().to_string());
    let tables = [
        (TRUE, times(&of(report, TRUE), "p95")),
        (SHELL, times(&of(report, SHELL), "p95")),
        (MEMORY, times(&of(report, MEMORY), "processes")),
        (LIVE, times(&of(report, LIVE), "p99")),
        (SERVERS, times(&of(report, SERVERS), "p99")),
        (AGENT, agents(&of(report, AGENT))),
        (WORK, tasks(&of(report, WORK))),
    ];
    for (measurement, table) in tables {
        page = page.replace(&format!("{{{measurement}}}"), table.trim_end());
    }
    let mut files: Vec<File> = vec![(PAGE, page)];
    for (measurement, file, title) in PLOTS {
        files.push((file, plot(&of(report, measurement), title)));
    }
    files
}

fn of<'r>(report: &'r Report, measurement: &str) -> Vec<&'r Row> {
    report.rows.iter().filter(|row| row.measurement == measurement).collect()
}

fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let load = |load: &Option<String>| load.clone().unwrap_or_else(|| "unknown".to_owned());
    let (before, after) = (load(&machine.load_before), load(&machine.load_after));
    format!(
        "Linux {}, {} cores, load {before} before and {after} after",
        machine.kernel, machine.cores
    )
}

fn versions(peers: &Peers) -> String {
    let found = PACKAGES.iter().filter_map(|package| {
        let peer = peers.find(package.name).ok()?;
        Some(format!("{} {}", package.name, peer.version))
    });
    found.collect::<Vec<_>>().join(", ")
}

fn missing(peers: &Peers) -> String {
    let missing = PACKAGES.iter().filter_map(|package| {
        let why = peers.find(package.name).err()?;
        Some(format!("- {}: {}", package.name, why.trim()))
    });
    let lines: Vec<String> = missing.collect();
    if lines.is_empty() { "Nothing.".to_owned() } else { lines.join("\n") }
}

/// The figures of a row, if it has any.
fn figures(row: &Row) -> Option<&Figures> {
    match &row.outcome {
        Outcome::Measured(figures) => Some(figures),
        Outcome::Skipped { .. } | Outcome::Failed { .. } => None,
    }
}

fn is_ours(name: &str) -> bool {
    name == LIBRARY || name.starts_with("sandgate")
}

/// Rows by their figures, the least first, with one detail of each.
fn times(rows: &[&Row], detail: &str) -> String {
    let mut measured: Vec<(&Row, &Figures)> =
        rows.iter().filter_map(|row| Some((*row, figures(row)?))).collect();
    measured.sort_by(|(_, one), (_, other)| one.ours.number().total_cmp(&other.ours.number()));
    let has_ratio = measured.iter().any(|(_, figures)| figures.ratio.is_some());
    let mut text = format!("| | median | {detail} |");
    if detail == "processes" {
        text = "| | memory | processes |".to_owned();
    }
    text.push_str(if has_ratio {
        " ratio |\n| --- | ---: | ---: | ---: |\n"
    } else {
        "\n| --- | ---: | ---: |\n"
    });
    for (row, figures) in measured {
        let name = if is_ours(&row.what) { format!("**{}**", row.what) } else { row.what.clone() };
        let more = figures.details.get(detail).map(Quantity::to_string).unwrap_or_default();
        let _ = write!(text, "| {name} | {} | {more} |", figures.ours);
        if has_ratio {
            let ratio = figures.ratio.map_or_else(|| "1".to_owned(), |ratio| format!("{ratio:.2}"));
            let _ = write!(text, " {ratio} |");
        }
        text.push('\n');
    }
    text.push_str(&unmeasured(rows));
    text
}

/// What could not be measured, and why.
fn unmeasured(rows: &[&Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let why = match &row.outcome {
            Outcome::Measured(_) => continue,
            Outcome::Skipped { why } => why.clone(),
            // What a program said of its own insides helps nobody here.
            Outcome::Failed { why } => {
                format!("failed: {}", why.chars().take(120).collect::<String>())
            }
        };
        let _ =
            write!(text, "\nNot measured: {}: {}.\n", row.what, why.trim().trim_end_matches('.'));
    }
    text
}

fn agents(rows: &[&Row]) -> String {
    let mut text = String::new();
    let mut head = None;
    for (row, figures) in rows.iter().filter_map(|row| Some((row, figures(row)?))) {
        let reference = figures.reference.as_ref();
        let name = reference.map(|reference| reference.what.clone()).unwrap_or_default();
        if head.is_none() {
            let _ = write!(
                text,
                "| | sandgate exec | {name} | ratio | target |\n| --- | ---: | ---: | ---: | --- |\n"
            );
            head = Some(name);
        }
        let theirs = reference.map(|reference| reference.quantity.to_string()).unwrap_or_default();
        let ratio = figures.ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default();
        let target = match (figures.target, figures.met) {
            (Some(target), Some(true)) => format!("{target}, met"),
            (Some(target), _) => format!("{target}, missed"),
            (None, _) => String::new(),
        };
        let _ = writeln!(
            text,
            "| {} | **{}** | {theirs} | {ratio} | {target} |",
            row.what, figures.ours
        );
    }
    text + &unmeasured(rows)
}

fn tasks(rows: &[&Row]) -> String {
    let measured: Vec<(&Row, &Figures)> =
        rows.iter().filter_map(|row| Some((*row, figures(row)?))).collect();
    let mut text = String::from("| |");
    for (row, _) in &measured {
        let _ = write!(text, " {} |", row.what);
    }
    let _ = writeln!(text, "\n| --- |{}", " :---: |".repeat(measured.len()));
    for task in TASKS {
        let _ = write!(text, "| {} |", task.name);
        for (_, figures) in &measured {
            let done = figures.details.get(task.name).is_some_and(|done| done.number() > 0.0);
            text.push_str(if done { " yes |" } else { " – |" });
        }
        text.push('\n');
    }
    text.push_str("| **of 11** |");
    for (_, figures) in &measured {
        let _ = write!(text, " **{}** |", figures.ours);
    }
    text.push('\n');
    text + &unmeasured(rows)
}

fn plot(rows: &[&Row], title: &str) -> String {
    let bars: Vec<Bar> = rows
        .iter()
        .filter_map(|row| {
            let figures = figures(row)?;
            let colour = match row.what.as_str() {
                name if is_ours(name) => Colour::Ours,
                name if name == Sandbox::Plain.name() || name.contains("by hand") => Colour::Limit,
                _ => Colour::Others,
            };
            let (name, label) = (short(&row.what), figures.ours.to_string());
            Some(Bar { name, value: figures.ours.number(), label, colour })
        })
        .collect();
    let is_memory =
        rows.iter().filter_map(|row| figures(row)).any(|f| matches!(f.ours, Quantity::Bytes(_)));
    let mark = |value: f64| match is_memory {
        true => Quantity::Bytes(value).to_string(),
        false => mark_of_time(value),
    };
    plot::bars(title, "logarithmic", bars, mark)
}

/// A power of ten of a second.
fn mark_of_time(seconds: f64) -> String {
    match seconds {
        s if s < 0.99e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 0.99 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.0} s"),
    }
}

/// A name that fits beside a bar.
fn short(name: &str) -> String {
    let name =
        name.replace("a line to a live bash", "a line").replace(", told what to wait for", "");
    name.replace(", confined", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::report_of;

    fn row(measurement: &'static str, what: &str, seconds: f64) -> Row {
        let row = Row::new(what, Quantity::Seconds(seconds))
            .detail("p95", Quantity::Seconds(seconds * 2.0));
        Row { measurement, ..row }
    }

    #[test]
    fn a_table_is_sorted_and_says_what_is_missing() {
        let skipped = Outcome::Skipped { why: "not installed".to_owned() };
        let rows = [
            row(TRUE, "no sandbox", 0.001),
            row(TRUE, "bubblewrap", 0.006).against("no sandbox", Quantity::Seconds(0.001)),
            row(TRUE, LIBRARY, 0.0014).against("no sandbox", Quantity::Seconds(0.001)),
            Row { measurement: TRUE, what: "srt".to_owned(), outcome: skipped },
        ];
        assert_eq!(
            times(&rows.iter().collect::<Vec<_>>(), "p95"),
            "\
| | median | p95 | ratio |
| --- | ---: | ---: | ---: |
| no sandbox | 1.00 ms | 2.00 ms | 1 |
| **sandgate, a call of a session** | 1.40 ms | 2.80 ms | 1.40 |
| bubblewrap | 6.00 ms | 12.00 ms | 6.00 |

Not measured: srt: not installed.
"
        );
    }

    #[test]
    fn the_agents_stand_beside_each_other() {
        let row = Row::new("memory", Quantity::Bytes(10.0 * 1024.0 * 1024.0))
            .against("codex exec 1", Quantity::Bytes(100.0 * 1024.0 * 1024.0))
            .target(crate::bench::row::Target::Within(Quantity::Bytes(40.0 * 1024.0 * 1024.0)));
        assert_eq!(
            agents(&[&row]),
            "\
| | sandgate exec | codex exec 1 | ratio | target |
| --- | ---: | ---: | ---: | --- |
| memory | **10.0 MiB** | 100.0 MiB | 0.100 | ≤ 40.0 MiB, met |
"
        );
    }

    #[test]
    fn every_place_of_the_page_is_filled() {
        let directory = tempfile::tempdir().expect("a directory");
        let peers = Peers::below(directory.path());
        let report = report_of(vec![row(TRUE, "no sandbox", 0.001)]);
        let files = files(&report, &peers, "cargo xtask bench --peers", "2026-11-18");
        let (name, page) = &files[0];
        assert_eq!(*name, PAGE);
        assert!(!page.contains('{') && !page.contains('}'), "{page}");
        assert!(page.contains("`cargo xtask bench --peers`") && page.contains("2026-11-18"));
        for (_, file, _) in PLOTS {
            let linked = file.strip_prefix("docs/").expect("it is beside the page");
            assert!(page.contains(linked), "{file} is shown");
            assert!(files.iter().any(|(name, svg)| *name == file && svg.ends_with("</svg>\n")));
        }
    }
}
