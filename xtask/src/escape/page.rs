//! What was found, as the page that people read.

use super::attempts::{KINDS, SURFACE};
use super::{Column, Found};
use crate::peers::work::TASKS;
use std::fmt::Write as _;

const HEAD: &str = include_str!("page.txt");

/// The page. Its beginning is written by hand; figures and names are from the run.
pub(super) fn render(found: &[Found], day: &str, kernel: &str) -> String {
    let mut page = HEAD.replace("{day}", day).replace("{kernel}", kernel);
    page = page.replace("{versions}", &versions(found));
    // Writing to a string cannot fail.
    for found in found {
        let counted: usize = kinds().map(|kind| found.counted.get(kind).map_or(0, Vec::len)).sum();
        let _ = write!(
            page,
            "\n## As {}\n\nOf {} attempts {counted} succeed without a sandbox and are counted, and {} kernel calls \
             are answered.\n\n{}",
            found.user,
            found.made,
            found.counted.get(SURFACE).map_or(0, Vec::len),
            table(found)
        );
    }
    page.push_str("\n## What got out\n");
    for found in found {
        for column in found.sandboxes.iter().skip(1) {
            page.push_str(&named(found, column));
        }
    }
    page
}

fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().filter(|kind| *kind != SURFACE)
}

fn versions(found: &[Found]) -> String {
    let Some(found) = found.first() else { return String::new() };
    let of = |column: &Column| match (&column.missing, column.version.as_str()) {
        (Some(why), _) => format!("{} (not tried: {why})", column.name),
        (None, "") => column.name.clone(),
        (None, version) => format!("{} {version}", column.name),
    };
    found.sandboxes.iter().skip(1).map(of).collect::<Vec<_>>().join(", ")
}

fn table(found: &Found) -> String {
    let there: Vec<&Column> = found.sandboxes.iter().filter(|c| c.missing.is_none()).collect();
    let mut text = String::from("| |");
    let row = |text: &mut String, head: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = there.iter().map(|column| cell(column)).collect();
        let _ = writeln!(text, "| {head} | {} |", cells.join(" | "));
    };
    for column in &there {
        let _ = write!(text, " {} |", column.name);
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(there.len()));
    text.push('\n');
    for kind in kinds().filter(|kind| found.counted.contains_key(*kind)) {
        let counted = found.counted[kind].len();
        row(&mut text, &format!("{kind}, of {counted}"), &|column| column.count(kind).to_string());
    }
    row(&mut text, "**escaped, all kinds**", &|column| format!("**{}**", column.total()));
    if let Some(calls) = found.counted.get(SURFACE) {
        let head = format!("{SURFACE}, of {}", calls.len());
        row(&mut text, &head, &|column| column.count(SURFACE).to_string());
    }
    row(&mut text, "attempts that could not be made", &|column| column.broken.len().to_string());
    row(&mut text, &format!("everyday tasks that work, of {}", TASKS.len()), &|column| {
        column.work.iter().filter(|done| **done).count().to_string()
    });
    if there.iter().any(|column| column.suite.is_some()) {
        let of = |column: &Column, what: &dyn Fn(&super::suite::Found) -> String| {
            column.suite.as_ref().map_or_else(String::new, what)
        };
        row(&mut text, "the other set: **escaped**", &|column| {
            of(column, &|suite| format!("**{}**", suite.escaped.len()))
        });
        row(&mut text, "held / skipped / no verdict", &|column| {
            of(column, &|suite| format!("{} / {} / {}", suite.held, suite.skipped, suite.broken))
        });
        row(&mut text, "its controls that work", &|column| {
            of(column, &|suite| {
                format!("{} of {}", suite.controls - suite.broken_controls.len(), suite.controls)
            })
        });
    }
    text
}

/// Everything about one sandbox that the table only counts.
fn named(found: &Found, column: &Column) -> String {
    let mut text = format!("\n### {}, as {}\n\n", column.name, found.user);
    if let Some(why) = &column.missing {
        let _ = writeln!(text, "Not tried: {why}.");
        return text;
    }
    for (kind, names) in &column.escaped {
        let names: Vec<String> = names.keys().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "- {kind}: {}", names.join(", "));
    }
    let mut list = |what: &str, names: &[String]| {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(text, "- {what}: {}", names.join(", "));
        }
    };
    if let Some(suite) = &column.suite {
        list("of the other set", &suite.escaped);
        list("controls of the other set that do not work", &suite.broken_controls);
    }
    list("could not be made", &column.broken);
    list("changed or left behind by the sandbox itself", &column.left_behind);
    let undone = TASKS.iter().zip(&column.work).filter(|(_, done)| !**done);
    let undone: Vec<String> = undone.map(|(task, _)| task.name.to_owned()).collect();
    list("everyday tasks that do not work", &undone);
    if text.ends_with("\n\n") {
        text.push_str("Nothing.\n");
    }
    text
}

impl Column {
    fn count(&self, kind: &str) -> usize {
        self.escaped.get(kind).map_or(0, std::collections::BTreeMap::len)
    }

    fn total(&self) -> usize {
        kinds().map(|kind| self.count(kind)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::suite;
    use std::collections::BTreeMap;

    fn column(name: &str, version: &str, escaped: &[(&str, &str)]) -> Column {
        let mut kinds: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (kind, name) in escaped {
            let kind = kinds.entry(kind.to_string()).or_default();
            kind.insert(name.to_string(), "outside/victim".to_owned());
        }
        Column {
            name: name.to_owned(),
            version: version.to_owned(),
            missing: None,
            escaped: kinds,
            broken: Vec::new(),
            left_behind: Vec::new(),
            work: vec![true; TASKS.len()],
            suite: None,
        }
    }

    #[test]
    fn a_table_counts_what_got_out_by_kind() {
        let (paths, names) = (KINDS[0], KINDS[3]);
        let plain = column("no sandbox", "", &[(paths, "write"), (names, "git"), (SURFACE, "bpf")]);
        let ours = column("sandgate sandbox", "", &[]);
        let mut theirs = column("bubblewrap", "0.8.0", &[(names, "git"), (SURFACE, "bpf")]);
        theirs.work[3] = false;
        theirs.suite = Some(suite::Found {
            escaped: vec!["30-x".to_owned()],
            held: 5,
            skipped: 1,
            controls: 6,
            ..Default::default()
        });
        let missing =
            Column { missing: Some("not installed".to_owned()), ..column("srt", "", &[]) };
        let counted = [(paths, "write"), (names, "git"), (SURFACE, "bpf")];
        let counted = counted.map(|(kind, name)| (kind.to_owned(), vec![name.to_owned()]));
        let found = Found {
            user: "root".to_owned(),
            counted: counted.into(),
            made: 5,
            sandboxes: vec![plain, ours, theirs, missing],
        };
        assert_eq!(
            table(&found),
            "\
| | no sandbox | sandgate sandbox | bubblewrap |
| --- | ---: | ---: | ---: |
| writing outside by a path, of 1 | 1 | 0 | 0 |
| protected names, of 1 | 1 | 0 | 1 |
| **escaped, all kinds** | **2** | **0** | **1** |
| kernel calls left open, of 1 | 1 | 0 | 1 |
| attempts that could not be made | 0 | 0 | 0 |
| everyday tasks that work, of 11 | 11 | 11 | 10 |
| the other set: **escaped** |  |  | **1** |
| held / skipped / no verdict |  |  | 5 / 1 / 0 |
| its controls that work |  |  | 6 of 6 |
"
        );
        let page = render(std::slice::from_ref(&found), "2026-11-18", "6.18");
        assert!(
            page.contains("sandgate sandbox, bubblewrap 0.8.0, srt (not tried: not installed)"),
            "{page}"
        );
        assert!(page.contains(
            "### bubblewrap, as root\n\n- kernel calls left open: `bpf`\n- protected names: `git`\n"
        ));
        assert!(page.contains("### sandgate sandbox, as root\n\nNothing.\n"), "{page}");
        assert!(page.contains("- everyday tasks that do not work: `a multiprocessing manager`\n"));
        assert!(!page.contains('{'), "every place is filled: {page}");
    }
}
