//! What those who watch a session are told, and what becomes of a command when they fail.

#![cfg(unix)]

mod support;

use sandgate_protocol::{CallId, CodexErr, Event, ExecCommandBegin, FailureKind, OutputStream};
use sandgate_runtime::{Attempted, CommandOutcome, Delivery, MAX_EXEC_OUTPUT_DELTAS_PER_CALL};
use sandgate_runtime::{OutputTap, Tapped};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Asking, argv, script};

/// Counts bytes.
#[derive(Default)]
struct Counter {
    bytes: AtomicU64,
}

impl OutputTap for Counter {
    fn output<'a>(&'a self, _: &'a CallId, _: OutputStream, bytes: &'a [u8]) -> Tapped<'a> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

/// How many events there were of each kind: beginnings, pieces of output, notices, ends.
type Told = [u32; 4];

/// Runs a command that writes so much, and counts what a listener and a tap are given.
async fn counted(bytes: u64, delivery: Delivery) -> (Attempted<CommandOutcome>, u64, Told) {
    let tap = Arc::new(Counter::default());
    let mut asking = argv(&["head", "-c", &bytes.to_string(), "/dev/zero"]);
    asking.config.tap = Some(Arc::clone(&tap) as Arc<_>);
    let session = asking.session();
    let mut events = session.events(delivery).await;
    let mut told = Told::default();
    let mut count = |event: &Event| match event {
        Event::ExecCommandBegin(_) => told[0] += 1,
        Event::ExecCommandOutputDelta(_) => told[1] += 1,
        Event::ExecCommandOutputOmitted(_) => told[2] += 1,
        Event::ExecCommandEnd(_) => told[3] += 1,
        _ => panic!("a command tells nothing else"),
    };
    let running = asking.run_in(&session);
    tokio::pin!(running);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(event) = events.next() => count(&event.event),
            outcome = &mut running => break outcome.unwrap(),
        }
    };
    while let Some(event) = events.try_next() {
        count(&event.event);
    }
    (outcome, tap.bytes.load(Ordering::Relaxed), told)
}

/// spec RUN.65: Whoever takes the output of a session is given every byte, also past the last output
/// event.
#[tokio::test]
async fn a_tap_is_given_every_byte() {
    let (outcome, bytes, told) = counted(90_000_000, Delivery::Complete).await;
    assert_eq!((bytes, outcome.output.output.stdout.total_bytes), (90_000_000, 90_000_000));
    assert_eq!(told, [1, MAX_EXEC_OUTPUT_DELTAS_PER_CALL, 1, 1]);
}

/// spec RUN.68: A listener that wants no output events is given all others.
#[tokio::test]
async fn nobody_is_given_events_that_they_do_not_want() {
    let (_, bytes, told) = counted(90_000, Delivery::WithoutOutput).await;
    assert_eq!((bytes, told), (90_000, [1, 0, 0, 1]));
}

/// Stops watching when it is told this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailsAt {
    Begin,
    Output,
}

impl FailsAt {
    fn told(self, what: Self) -> Tapped<'static> {
        let fails = self == what;
        Box::pin(async move { if fails { Err(io::Error::other("no more")) } else { Ok(()) } })
    }
}

impl OutputTap for FailsAt {
    fn began<'a>(&'a self, _: &'a ExecCommandBegin) -> Tapped<'a> {
        self.told(Self::Begin)
    }

    fn output<'a>(&'a self, _: &'a CallId, _: OutputStream, _: &'a [u8]) -> Tapped<'a> {
        self.told(Self::Output)
    }
}

async fn tapped(mut asking: Asking, tap: FailsAt) -> Result<Attempted<CommandOutcome>, CodexErr> {
    asking.config.tap = Some(Arc::new(tap));
    asking.run().await
}

/// spec RUN.66: When whoever takes the output fails, a command that still runs is ended; its result is
/// not lost, and has the error beside it.
#[tokio::test]
async fn a_command_that_nobody_watches_is_ended() {
    let outcome =
        tapped(script("echo said; exec sleep 1000"), FailsAt::Output).await.unwrap().output;
    assert_eq!(outcome.unheard.unwrap().to_string(), "no more");
    assert!(outcome.output.cancelled);
    assert_eq!(outcome.output.stdout.text, "said\n");
}

/// spec RUN.69: Whoever takes the output hears of a command before it starts, and one that fails then
/// keeps it from starting.
#[tokio::test]
async fn a_command_whose_beginning_nobody_hears_is_not_started() {
    let witness = tempfile::tempdir().unwrap();
    let touch = format!("touch '{}/ran'", witness.path().display());
    let error = tapped(script(&touch), FailsAt::Begin).await.unwrap_err();
    assert!(
        matches!(error, CodexErr::NotStarted { kind: FailureKind::NobodyListens, .. }),
        "{error}"
    );
    assert!(error.to_string().ends_with("nobody could be told of it: no more"), "{error}");
    assert_eq!(std::fs::read_dir(witness.path()).unwrap().count(), 0);
}
