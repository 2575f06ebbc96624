//! What a large patch costs, against replacing the file by hand.

use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{Samples, by_turns_timed};
use super::session::Session;
use anyhow::Context as _;
use sandgate_patch::{Disk, Patch, Plan, Roots, apply};
use sandgate_protocol::WritableRoot;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const LINES: usize = 50_000;
const HUNKS: usize = 500;

/// From the text of the patch to the changed file on the disk.
const MOST: Target = Target::Within(Quantity::Seconds(0.1));

const REFERENCE: &str = "write, flush, rename";

pub(super) fn measure(session: &mut Session) {
    let exact = "500 hunks in 50,000 lines";
    session.take(exact, |session, progress| measure_one(session, progress, exact, Hunks::Exact));
    let loose = "500 hunks, other white space";
    session.take(loose, |session, progress| measure_one(session, progress, loose, Hunks::Loose));
}

/// How the hunks have the lines of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hunks {
    Exact,
    /// Indented in another way, so that they are found by the third look only.
    Loose,
}

/// Many lines are there twice or more often, as they are in programs.
fn line(number: usize) -> String {
    match number % 4 {
        0 => "    }".to_owned(),
        1 => String::new(),
        2 => format!("    let value = {};", number % 1000),
        _ => format!("    call_number({number});"),
    }
}

fn file() -> String {
    (0..LINES).fold(String::new(), |text, number| text + &line(number) + "\n")
}

/// Each hunk has three lines before and after its change, as a model writes them.
fn patch(hunks: Hunks) -> anyhow::Result<String> {
    let mut text = "*** Begin Patch\n*** Update File: file\n".to_owned();
    for hunk in 0..HUNKS {
        let middle = hunk * (LINES / HUNKS) + 11;
        writeln!(text, "@@")?;
        for number in middle - 3..=middle + 3 {
            let line = line(number);
            let line = if hunks == Hunks::Loose { line.trim_start() } else { &line };
            if number == middle {
                writeln!(text, "-{line}\n+    call_other({number});")?;
            } else {
                writeln!(text, " {line}")?;
            }
        }
    }
    text.push_str("*** End Patch\n");
    Ok(text)
}

fn measure_one(
    session: &Session,
    progress: &Progress,
    what: &str,
    hunks: Hunks,
) -> anyhow::Result<Vec<Row>> {
    let directory = session.scratch()?;
    let base = directory.path().canonicalize()?;
    let (work, journals) = (base.join("work"), base.join("journals"));
    fs::create_dir(&work)?;
    let (contents, text) = (file(), patch(hunks)?);
    let changed = expected(&contents);
    let path = work.join("file");
    let (mut shown, mut worked) = (Vec::new(), Vec::new());
    let pair = by_turns_timed(
        session.times(25, 3),
        progress,
        || {
            fs::write(&path, &contents)?;
            let (began, worked_before) = (Instant::now(), time_on_processor()?);
            shown.push(patch_file(&text, &work, &journals)?);
            let time = began.elapsed();
            worked.push(time_on_processor()?.saturating_sub(worked_before));
            anyhow::ensure!(
                fs::read_to_string(&path)? == changed,
                "the file is not as it should be"
            );
            Ok(time)
        },
        || {
            fs::write(&path, &contents)?;
            let began = Instant::now();
            replace_by_hand(&path, &changed)?;
            Ok(began.elapsed())
        },
    )?;
    let row = Row::of_times(what, REFERENCE, &pair).target(MOST);
    let row = row.detail("until it is shown", Samples::new(shown)?.median().into());
    Ok(vec![row.detail("on the processor", Samples::new(worked)?.median().into())])
}

/// How long this thread has had a processor: what a busy machine does not change.
fn time_on_processor() -> anyhow::Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().context("the kernel keeps no such times")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Reads, plans, shows and applies a patch, and says how long it took until it was shown.
fn patch_file(text: &str, work: &Path, journals: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let patch: Patch = text.parse()?;
    let plan = Plan::of(&patch, work, &Disk::default())?;
    anyhow::ensure!(plan.diff().lines().count() > HUNKS, "the diff is too short");
    let planned = began.elapsed();
    let root = WritableRoot { path: work.to_owned(), read_only_subpaths: Vec::new() };
    apply(&plan, &Roots::new([root], []), journals)?;
    Ok(planned)
}

fn expected(contents: &str) -> String {
    let mut changed = String::with_capacity(contents.len() + HUNKS);
    for (number, line) in contents.lines().enumerate() {
        if number % (LINES / HUNKS) == 11 {
            changed.push_str(&format!("    call_other({number});\n"));
        } else {
            changed.push_str(line);
            changed.push('\n');
        }
    }
    changed
}

/// The least that replacing a file safely takes: one that has its new contents already.
fn replace_by_hand(path: &Path, contents: &str) -> anyhow::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create_new(&beside)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    Ok(())
}
