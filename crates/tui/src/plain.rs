//! The same line by line: for screen readers, and where a terminal cannot draw.
//!
//! What is finished is printed, a question is printed, and a line that is typed is a message or an answer.
//! Nothing is drawn twice and no sequence that a terminal obeys is written.

use crate::app::{App, Effect, Message};
use crate::drive::{Driver, Outcome};
use crate::question::GUARD;
use crate::run::signals::Signals;
use crate::run::{Ended, TuiError};
use ratatui::text::Line;
use sandgate_protocol::{ApprovalId, ReviewDecision};
use std::io::{self, BufRead as _, Write as _};
use std::time::Instant;
use tokio::sync::mpsc;

/// How wide lines are: readers and pipes have no width of their own.
const WIDTH: usize = 100;
/// The longest line that is read, in bytes.
const LONGEST: usize = 1024 * 1024;

/// Lets a person work with a session, line by line.
pub(crate) async fn run(
    mut driver: Driver<'_>,
    mut app: App,
    mut outcomes: mpsc::UnboundedReceiver<Outcome>,
    prompt: Option<String>,
) -> Result<Ended, TuiError> {
    let mut signals = Signals::listen()?;
    let mut lines = lines()?;
    let mut asked: Option<(ApprovalId, Instant)> = None;
    let mut reading = true;
    if let Some(prompt) = prompt {
        for effect in app.submit(prompt) {
            driver.perform(&mut app, effect);
        }
    }
    let mut signal = None;
    loop {
        if let Some(change) = driver.change.take() {
            driver.reopen(&mut app, &change).await.map_err(TuiError::Session)?;
        }
        print(&app.take_finished(WIDTH))?;
        ask(&app, &mut asked)?;
        let idle = app.busy.is_none() && app.running == 0 && app.queue.is_empty();
        if driver.quit || (!reading && idle) {
            break;
        }
        tokio::select! {
            biased;
            number = signals.next() => {
                signal = Some(number);
                break;
            }
            line = lines.recv(), if reading => match line {
                Some((line, at)) => typed(&mut app, &mut driver, &line, at, asked.as_ref())?,
                None => {
                    reading = false;
                    refuse(&mut app, &mut driver);
                }
            },
            Some(outcome) = outcomes.recv() => driver.came(&mut app, outcome),
            Some(event) = driver.events.next() => {
                let now = driver.now();
                driver.tell(&mut app, Message::Session(event), now);
                if !reading {
                    refuse(&mut app, &mut driver);
                }
            }
        }
    }
    driver.end();
    driver.settle(&mut app, &mut outcomes).await;
    print(&app.take_finished(WIDTH))?;
    Ok(Ended { conversation: driver.end_conversation(), signal })
}

/// Nobody is left to answer.
fn refuse(app: &mut App, driver: &mut Driver<'_>) {
    let open: Vec<ApprovalId> =
        app.questions.iter().map(|question| question.id().clone()).collect();
    for id in open {
        driver.perform(app, Effect::Answer(id, ReviewDecision::DENIED));
    }
}

/// Prints a question that was not printed yet.
fn ask(app: &App, asked: &mut Option<(ApprovalId, Instant)>) -> io::Result<()> {
    let Some(question) = app.questions.front() else {
        *asked = None;
        return Ok(());
    };
    if asked.as_ref().is_some_and(|(id, _)| id == question.id()) {
        return Ok(());
    }
    let mut out = io::stdout();
    writeln!(out, "QUESTION")?;
    for line in question.plain(&app.info.sandbox) {
        writeln!(out, "{line}")?;
    }
    write!(out, "answer> ")?;
    out.flush()?;
    *asked = Some((question.id().clone(), Instant::now()));
    Ok(())
}

fn typed(
    app: &mut App,
    driver: &mut Driver<'_>,
    line: &str,
    at: Instant,
    asked: Option<&(ApprovalId, Instant)>,
) -> io::Result<()> {
    let Some(question) = app.questions.front_mut() else {
        if !line.trim().is_empty() {
            for effect in app.submit(line.to_owned()) {
                driver.perform(app, effect);
            }
        }
        return Ok(());
    };
    let seen = asked.is_some_and(|(id, since)| {
        id == question.id() && at.saturating_duration_since(*since) >= GUARD
    });
    let mut out = io::stdout();
    match question.line(line).filter(|_| seen) {
        Some(decision) => {
            let id = question.id().clone();
            driver.perform(app, Effect::Answer(id, decision));
        }
        None => {
            write!(out, "type one of the letters\nanswer> ")?;
            out.flush()?;
        }
    }
    Ok(())
}

fn print(rows: &[Line<'_>]) -> io::Result<()> {
    let mut out = io::stdout();
    for row in rows {
        let text: String = row.spans.iter().map(|span| span.content.as_ref()).collect();
        // The last border: no byte of it is one that a terminal obeys.
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        writeln!(out, "{}", text.trim_end())?;
    }
    out.flush()
}

/// What is typed, a line at a time, with the moment at which it arrived.
fn lines() -> io::Result<mpsc::Receiver<(String, Instant)>> {
    let (sender, lines) = mpsc::channel(64);
    std::thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut bytes = Vec::new();
            let mut limited = io::Read::take(&mut input, LONGEST as u64);
            match limited.read_until(b'\n', &mut bytes) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            if sender.blocking_send((line, Instant::now())).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}
