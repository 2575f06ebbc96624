//! What judging a command costs, beside what starting the least of programs does.

use super::bare::{self, Bare};
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{by_turns_timed, timed};
use super::session::Session;
use anyhow::Context as _;
use sandgate_policy::rules::{Decision, Origin, PatternWord, Rule, RuleSandbox, Rules};
use sandgate_policy::{Surroundings, judge};
use std::fs::{self, File};
use std::hint::black_box;
use std::process::Stdio;
use std::time::Duration;

const REFERENCE: &str = "fork + exec of /bin/true";

/// How many judgements are timed together: one alone is shorter than looking at a clock.
const TOGETHER: u32 = 200;

/// What a model asks for most: a search, cut short.
const PIPELINE: &str = "cd src && grep -rn 'fn main' . | head -20 2>/dev/null";

/// What a script holds of which the judge looks at a hundred.
const LINES: [&str; 4] = [
    "git status --short && git log --oneline -5 | cat",
    "cargo test --workspace 2>&1 | tail -40",
    "grep -rn 'pub fn' crates --include='*.rs' | sort | uniq -c | sort -rn",
    "sed -n '1,80p' README.md; wc -l docs/spec/*.md",
];

pub(super) fn measure(session: &mut Session) {
    let micros = |most: f64| Target::Within(Quantity::Seconds(most * 1e-6));
    session.take("a program and its arguments", |session, progress| {
        let argv = words(&["git", "log", "--oneline", "-n", "20"]);
        let row =
            judged("a program and its arguments", &argv, &Rules::default(), session, progress)?;
        Ok(vec![row.target(micros(5.0))])
    });
    session.take("a pipeline for bash -lc", |session, progress| {
        let argv = words(&["bash", "-lc", PIPELINE]);
        let row = judged("a pipeline for bash -lc", &argv, &Rules::default(), session, progress)?;
        Ok(vec![row.target(micros(100.0))])
    });
    session.take("a script of 100 lines", |session, progress| {
        let script: String =
            LINES.iter().cycle().take(100).map(|line| format!("{line}\n")).collect();
        let argv = words(&["bash", "-lc", &script]);
        let row = judged("a script of 100 lines", &argv, &Rules::default(), session, progress)?;
        Ok(vec![row.detail("size", Quantity::bytes(script.len() as u64))])
    });
    session.take("a program, with 10,000 rules", |session, progress| {
        let argv = words(&["program-5000", "build", "x"]);
        let rules = many_rules();
        let row = judged("a program, with 10,000 rules", &argv, &rules, session, progress)?;
        Ok(vec![row.target(micros(5.0))])
    });
    session.take("sandgate policy classify, a line", classified);
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/home/me/project".into()),
        roots: vec!["/home/me/project".into()],
        home: Some("/home/me".into()),
        ..Surroundings::default()
    }
}

/// Ten thousand rules for as many programs.
fn many_rules() -> Rules {
    let mut rules = Rules::default();
    rules.extend((0..10_000).map(|number| {
        let mut rule = Rule {
            pattern: vec![
                PatternWord::Exact(format!("program-{number}")),
                PatternWord::OneOf(words(&["build", "test"])),
            ],
            decision: Decision::Allow,
            sandbox: RuleSandbox::Keep,
            justification: None,
            origin: Origin::default(),
        };
        rule.origin.line = number;
        rule
    }));
    rules
}

fn judged(
    what: &str,
    argv: &[String],
    rules: &Rules,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Row> {
    let around = around();
    let bare = Bare::new(&bare::true_program()?)?;
    let pair = by_turns_timed(
        session.times(500, 50),
        progress,
        || {
            let together = timed(|| {
                for _ in 0..TOGETHER {
                    black_box(judge(black_box(argv), &around, rules));
                }
                Ok(())
            })?;
            Ok(together / TOGETHER)
        },
        || timed(|| bare.run()),
    )?;
    Ok(Row::of_times(what, REFERENCE, &pair).detail("best", pair.ours.least().into()))
}

/// The program from start to end, with every second line a script; what it costs for a line.
fn classified(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let program = session.program()?;
    let lines = session.times(200_000, 10_000);
    let scratch = session.scratch()?;
    let (questions, answers) = (scratch.path().join("questions"), scratch.path().join("answers"));
    fs::write(&questions, some_questions(lines))?;
    let bare = Bare::new(&bare::true_program()?)?;
    let count = u32::try_from(lines).context("too many lines")?;
    let pair = by_turns_timed(
        session.times(7, 3),
        progress,
        || {
            let taken = timed(|| {
                let mut command = bare::quiet(program, &["policy", "classify"]);
                let status = command
                    .stdin(File::open(&questions)?)
                    .stdout(Stdio::from(File::create(&answers)?))
                    .status()?;
                anyhow::ensure!(status.success(), "classifying ended badly: {status}");
                Ok(())
            })?;
            let answered = fs::read_to_string(&answers)?.lines().count();
            anyhow::ensure!(answered == lines, "{answered} answers to {lines} questions");
            Ok(taken / count)
        },
        || timed(|| bare.run()),
    )?;
    let per_second = |time: Duration| Quantity::Count(1.0 / time.as_secs_f64());
    let row = Row::of_times("sandgate policy classify, a line", REFERENCE, &pair)
        .detail("lines a second", per_second(pair.ours.median()));
    Ok(vec![row])
}

fn some_questions(lines: usize) -> String {
    let question = |number: usize| {
        let script = LINES[number % LINES.len()];
        let argv = match number % 2 {
            0 => serde_json::json!(["git", "show", number.to_string()]),
            _ => serde_json::json!(["bash", "-lc", format!("{script} # {number}")]),
        };
        format!("{}\n", serde_json::json!({ "argv": argv, "cwd": "/home/me/project" }))
    };
    (0..lines).map(question).collect()
}
