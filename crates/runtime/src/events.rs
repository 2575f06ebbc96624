//! The session's events: one line, numbered, heard by everybody who listens.
//!
//! A listener that wants all of them holds the session up while it takes its time, so nothing is
//! lost and nothing piles up. One that does not mind loses output when it is slow, and nothing else:
//! what was lost shows as a gap in the numbers.
//!
//! The line of a subagent leads into that of the session it works for: whatever it is told is told there
//! as well, in the same order.

use sandgate_protocol::{Event, SessionEvent, SubAgentEvent};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc};

/// How many events wait for a listener before it counts as slow.
const WAITING: usize = 1024;

/// The one line of a session's events.
#[derive(Debug, Default)]
pub struct EventLog {
    line: Mutex<Line>,
    above: Option<Above>,
}

/// Where a subagent's line leads.
#[derive(Debug)]
struct Above {
    log: Arc<EventLog>,
    /// The subagent.
    agent: String,
}

#[derive(Debug, Default)]
struct Line {
    last: u64,
    listeners: Vec<Listener>,
}

#[derive(Debug)]
struct Listener {
    sender: mpsc::Sender<Arc<SessionEvent>>,
    delivery: Delivery,
}

/// What becomes of events for which a listener has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The session waits for it.
    Complete,
    /// Output is left out; whatever else happens, the session waits for it to hear of.
    Lossy,
    /// It wants no output at all, and the session waits for it to hear of everything else.
    WithoutOutput,
}

/// One who listens.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Arc<SessionEvent>>,
}

impl Events {
    /// The next event; none when the session is over.
    pub async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        self.receiver.recv().await
    }

    /// The next event, if it is here already.
    pub fn try_next(&mut self) -> Option<Arc<SessionEvent>> {
        self.receiver.try_recv().ok()
    }
}

impl EventLog {
    /// The line of a subagent of this name, which leads into another.
    pub(crate) fn below(log: &Arc<Self>, agent: &str) -> Self {
        let above = Above { log: Arc::clone(log), agent: agent.to_owned() };
        Self { line: Mutex::default(), above: Some(above) }
    }

    /// Listens to everything that happens from now on.
    pub async fn listen(&self, delivery: Delivery) -> Events {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.line.lock().await.listeners.push(Listener { sender, delivery });
        Events { receiver }
    }

    /// Whether anybody listens who wants to hear of output.
    pub(crate) async fn wants_output(&self) -> bool {
        let mut log = self;
        loop {
            let line = log.line.lock().await;
            if line.listeners.iter().any(|listener| listener.delivery != Delivery::WithoutOutput) {
                return true;
            }
            match &log.above {
                Some(above) => log = &above.log,
                None => return false,
            }
        }
    }

    /// Tells everybody. Comes back when all who want to hear everything have room for it.
    pub async fn tell(&self, event: &Event) {
        let mut line = self.line.lock().await;
        line.last += 1;
        if !line.listeners.is_empty() {
            let event = Arc::new(SessionEvent { seq: line.last, event: event.clone() });
            let mut index = 0;
            while let Some(listener) = line.listeners.get(index) {
                if listener.tell(&event).await {
                    index += 1;
                } else {
                    line.listeners.swap_remove(index);
                }
            }
        }
        // Before the line goes on, so that the order is the same there.
        if let Some(above) = &self.above {
            above.tell(event.clone()).await;
        }
    }
}

impl Above {
    /// Tells it there: questions and their answers as they are, because they are answered there, and
    /// everything else with the name of the subagent.
    fn tell(&self, event: Event) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let event = match event {
            // The name of a subagent below this one has this one's in it.
            event @ (Event::ExecApprovalRequest(_)
            | Event::ApplyPatchApprovalRequest(_)
            | Event::ApprovalResponse(_)
            | Event::SubAgent(_)) => event,
            event => {
                Event::SubAgent(SubAgentEvent { agent: self.agent.clone(), event: Box::new(event) })
            }
        };
        Box::pin(async move { self.log.tell(&event).await })
    }
}

/// What happened, whoever it happened to.
fn what_happened(event: &Event) -> &Event {
    match event {
        Event::SubAgent(below) => what_happened(&below.event),
        event => event,
    }
}

impl Listener {
    /// Whether it still listens.
    async fn tell(&self, event: &Arc<SessionEvent>) -> bool {
        let happened = what_happened(&event.event);
        let is_delta = matches!(happened, Event::ExecCommandOutputDelta(_));
        let is_output = is_delta || matches!(happened, Event::ExecCommandOutputOmitted(_));
        match self.delivery {
            Delivery::Lossy if is_delta => {
                let sent = self.sender.try_send(Arc::clone(event));
                !matches!(sent, Err(mpsc::error::TrySendError::Closed(_)))
            }
            Delivery::WithoutOutput if is_output => !self.sender.is_closed(),
            _ => self.sender.send(Arc::clone(event)).await.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{CallId, ExecCommandOutputDelta, Notice, OutputStream};

    fn warning(message: &str) -> Event {
        Event::Warning(Notice { call_id: None, message: message.to_owned() })
    }

    fn delta() -> Event {
        let call_id = CallId::new("c");
        Event::ExecCommandOutputDelta(ExecCommandOutputDelta::new(
            call_id,
            OutputStream::Stdout,
            b"x",
        ))
    }

    #[tokio::test]
    async fn everybody_hears_the_same_line_without_gaps() {
        let log = EventLog::default();
        let mut first = log.listen(Delivery::Complete).await;
        log.tell(&warning("one")).await;
        let mut second = log.listen(Delivery::Complete).await;
        log.tell(&warning("two")).await;
        let heard = [first.next().await, first.next().await, second.next().await];
        let numbers: Vec<u64> = heard.iter().flatten().map(|event| event.seq).collect();
        assert_eq!(numbers, [1, 2, 2]);
    }

    #[tokio::test]
    async fn a_slow_listener_loses_output_and_nothing_else() {
        let log = EventLog::default();
        let mut slow = log.listen(Delivery::Lossy).await;
        for _ in 0..WAITING + 5 {
            log.tell(&delta()).await;
        }
        let log = Arc::new(log);
        let teller = {
            let log = Arc::clone(&log);
            tokio::spawn(async move { log.tell(&warning("important")).await })
        };
        let mut last = 0;
        let mut told = false;
        while !told {
            let event = slow.next().await.unwrap();
            assert!(event.seq > last);
            last = event.seq;
            told = matches!(event.event, Event::Warning(_));
        }
        assert_eq!(last, WAITING as u64 + 6);
        teller.await.unwrap();
    }

    #[tokio::test]
    async fn one_who_left_holds_nobody_up() {
        let log = EventLog::default();
        drop(log.listen(Delivery::Complete).await);
        for _ in 0..WAITING * 2 {
            log.tell(&delta()).await;
        }
        assert!(log.line.lock().await.listeners.is_empty());
    }
}
