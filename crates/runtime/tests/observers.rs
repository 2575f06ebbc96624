//! What an observer is told, and what becomes of a command when it fails.

#![cfg(unix)]

mod support;

use sandgate_protocol::{Event, OutputStream};
use sandgate_runtime::{
    CommandOutcome, FailureKind, MAX_EXEC_OUTPUT_DELTAS_PER_CALL, Observer, Runtime, RuntimeError,
    Stop, WantedEvents,
};
use std::io;
use support::{argv, script};

/// Counts what it is told.
struct Counter {
    wants: WantedEvents,
    bytes: u64,
    begins: u32,
    deltas: u32,
    notices: u32,
    ends: u32,
}

impl Counter {
    fn of(wants: WantedEvents) -> Self {
        Self { wants, bytes: 0, begins: 0, deltas: 0, notices: 0, ends: 0 }
    }
}

impl Observer for Counter {
    fn wants(&self) -> WantedEvents {
        self.wants
    }

    async fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::ExecCommandBegin(_) => {
                assert_eq!(self.bytes, 0);
                self.begins += 1;
            }
            Event::ExecCommandOutputDelta(_) => self.deltas += 1,
            Event::ExecCommandOutputOmitted(_) => self.notices += 1,
            Event::ExecCommandEnd(_) => self.ends += 1,
            _ => panic!("a command tells nothing else"),
        }
        Ok(())
    }

    async fn output(&mut self, _stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// spec RUN.65: An observer is given every byte of the output, also past the last output event.
#[tokio::test]
async fn an_observer_is_given_every_byte() {
    let mut seen = Counter::of(WantedEvents::All);
    let runtime = Runtime::start().unwrap();
    let request = argv(&["head", "-c", "90000000", "/dev/zero"]);
    let outcome = runtime.run_as_person(request, &Stop::default(), &mut seen).await.unwrap();
    assert_eq!((seen.bytes, outcome.output.stdout.total_bytes), (90_000_000, 90_000_000));
    assert_eq!((seen.deltas, seen.notices), (MAX_EXEC_OUTPUT_DELTAS_PER_CALL, 1));
    assert_eq!((seen.begins, seen.ends), (1, 1));
}

/// spec RUN.68: An observer that wants only the beginning is given no other event, but every byte.
#[tokio::test]
async fn nobody_is_given_events_that_they_do_not_want() {
    let mut seen = Counter::of(WantedEvents::Beginning);
    let runtime = Runtime::start().unwrap();
    let request = argv(&["head", "-c", "90000", "/dev/zero"]);
    runtime.run_as_person(request, &Stop::default(), &mut seen).await.unwrap();
    assert_eq!((seen.begins, seen.bytes), (1, 90_000));
    assert_eq!((seen.deltas, seen.notices, seen.ends), (0, 0, 0));
}

/// Stops listening when it is told this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailsAt {
    Begin,
    Output,
    End,
}

impl FailsAt {
    fn told(self, what: Self) -> io::Result<()> {
        if self == what { Err(io::Error::other("no more")) } else { Ok(()) }
    }
}

impl Observer for FailsAt {
    async fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::ExecCommandBegin(_) => self.told(Self::Begin),
            Event::ExecCommandEnd(_) => self.told(Self::End),
            _ => Ok(()),
        }
    }

    async fn output(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        self.told(Self::Output)
    }
}

async fn observed(text: &str, mut observer: FailsAt) -> Result<CommandOutcome, RuntimeError> {
    let runtime = Runtime::start().unwrap();
    runtime.run_as_person(script(text), &Stop::default(), &mut observer).await
}

/// spec RUN.66: When its observer fails a command that still runs is ended; its result is not lost, and
/// has the observer's error beside it.
#[tokio::test]
async fn a_command_that_nobody_listens_to_is_ended() {
    let outcome = observed("echo said; exec sleep 1000", FailsAt::Output).await.unwrap();
    assert_eq!(outcome.unheard.unwrap().to_string(), "no more");
    assert!(outcome.output.cancelled);
    assert_eq!(outcome.output.stdout.text, "said\n");
}

/// spec RUN.66: When its observer fails a command that still runs is ended; its result is not lost, and
/// has the observer's error beside it.
#[tokio::test]
async fn an_observer_that_fails_at_the_end_loses_nothing() {
    let outcome = observed("echo said; exit 7", FailsAt::End).await.unwrap();
    assert_eq!(outcome.unheard.unwrap().to_string(), "no more");
    assert!(!outcome.output.cancelled);
    assert_eq!((outcome.output.exit_code, outcome.output.stdout.text.as_str()), (7, "said\n"));
}

#[tokio::test]
async fn a_command_whose_beginning_nobody_hears_is_not_started() {
    let witness = tempfile::tempdir().unwrap();
    let touch = format!("touch '{}/ran'", witness.path().display());
    let error = observed(&touch, FailsAt::Begin).await.unwrap_err();
    assert_eq!(error.kind(), FailureKind::NobodyListens);
    assert!(error.to_string().ends_with("nobody could be told of it: no more"), "{error}");
    assert_eq!(std::fs::read_dir(witness.path()).unwrap().count(), 0);
}
