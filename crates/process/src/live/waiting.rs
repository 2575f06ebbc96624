//! When to believe that a process waits for input.
//!
//! One look can deceive: what was typed may not have reached the process yet, or it may be between two
//! reads. So what is seen must hold for a moment, with everything read on both sides, by a process that
//! has run since it was typed to. Where the system shows nothing, silence must do.

use super::{Seen, Waiter};
use std::time::{Duration, Instant};

/// For so long a process must be seen to wait.
const CONFIRMED: Duration = Duration::from_micros(500);

/// Who waits with a time limit may be at work in between, with a glance at its input now and then. The
/// shorter the limit, the longer it must be seen to be idle; from a second on nobody works like that.
const LONG_LIMIT: Duration = Duration::from_secs(1);
const SHORT_LIMIT: Duration = Duration::from_millis(100);
const IDLE: Duration = Duration::from_millis(20);
const IDLE_AT_SHORT_LIMIT: Duration = Duration::from_millis(150);
/// A thread that is known to wait for input, and shows something like a prompt, may have a timer of its own
/// for a moment. It must be idle for half as long as it ran for what was typed.
const IDLE_OF_A_READER: Duration = Duration::from_millis(3);

/// Who has read an escape may wait with a limit below this for the rest of a key, and has decided nothing
/// before that is over. `vim` waits for a second.
const UNDECIDED_LIMIT: Duration = Duration::from_secs(2);

/// The time to the first look after something happened. As long as looks tell nothing, the next one comes
/// after a quarter of the time that has passed since then: so an answer is late by a quarter at the most,
/// up to a limit.
const FIRST_LOOK: Duration = Duration::from_micros(150);
const RAREST_LOOK: Duration = Duration::from_millis(20);

/// A process that has not run for so long after something was typed will not run because of it.
const UNMOVED: Duration = Duration::from_millis(30);

/// What was typed goes through a queue of the kernel's first, and on a busy machine that takes its time. An
/// echo shows that it has; without one so long is waited.
const UNHEARD: Duration = Duration::from_millis(300);

/// A program that passes on what comes from elsewhere must be silent for so long.
const RELAY_SILENCE: Duration = Duration::from_millis(150);

/// A process that nobody can look at must be silent for so long.
const SILENCE: Duration = Duration::from_millis(400);

/// What is about to be done to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It is typed to.
    Typing,
    /// It is typed to, and the last thing is an escape: the key of that name, or the beginning of another.
    Escaping,
    /// It is told something in another way: by a signal, a new size, the end of its input.
    Telling,
}

impl Deed {
    /// To type this.
    pub fn of_typing(input: &str) -> Self {
        match input.ends_with('\x1b') {
            true => Self::Escaping,
            false => Self::Typing,
        }
    }
}

/// What can be asked about a process.
pub(crate) trait Look {
    /// What it and those that it started do.
    fn look(&self) -> Seen;
    /// Whether it waits for input itself, whatever the others do.
    fn look_at_root(&self) -> Option<Waiter>;
    /// Whether something that was typed has not been read yet.
    fn has_unread_input(&self) -> bool;
    /// Whether it has written something that we have not read yet.
    fn has_unread_output(&self) -> bool;
    /// Whether a line is read that is not shown.
    fn hides_input(&self) -> bool;
}

impl Look for crate::sys::Sight {
    fn look(&self) -> Seen {
        self.look()
    }

    fn look_at_root(&self) -> Option<Waiter> {
        self.look_at_root()
    }

    fn has_unread_input(&self) -> bool {
        self.has_unread_input()
    }

    fn has_unread_output(&self) -> bool {
        self.has_unread_output()
    }

    fn hides_input(&self) -> bool {
        self.hides_input()
    }
}

/// What to think of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It waits for input.
    Waits(Waits),
    /// It is silent, and nothing more can be known.
    Quiet,
    /// Look again after this time, or when it has printed something.
    LookAgain(Duration),
}

/// How a process waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Which thread, if it could be seen.
    pub(crate) thread: Option<i32>,
    /// It will go on without input after some time, perhaps to draw its screen anew.
    pub(crate) for_a_while: bool,
    /// What is typed will not be shown.
    pub(crate) hidden: bool,
}

/// What a process has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// How many bytes in all.
    pub(crate) printed: u64,
    /// Whether it has said itself, since it was typed to, that it is ready for more.
    pub(crate) prompted: bool,
    /// Whether it stopped within a line, as at a prompt.
    pub(crate) is_within_a_line: bool,
}

/// Watches a process during one call.
pub(crate) struct Watcher {
    /// What was done to it, if something was.
    done: Option<Done>,
    /// The thread that is known to wait for input when it has nothing else to do.
    reader: Option<i32>,
    /// When it last printed something, or the call began.
    active: Instant,
    /// Who was seen waiting, since when, and how much had been printed by then.
    candidate: Option<(Waiter, Instant, u64)>,
}

/// Something that was done to a process.
struct Done {
    deed: Deed,
    when: Instant,
    /// Who waited for input then, and how long that thread had run.
    before: Option<Waiter>,
    /// How much had been printed.
    printed: u64,
}

impl Watcher {
    /// For a process that nothing is done to.
    pub(crate) fn new(reader: Option<i32>, now: Instant) -> Self {
        Self { done: None, reader, active: now, candidate: None }
    }

    /// For a process that something is about to be done to.
    pub(crate) fn before(
        deed: Deed,
        process: &impl Look,
        printed: u64,
        reader: Option<i32>,
        now: Instant,
    ) -> Self {
        let before = match process.look() {
            Seen::Waiting(waiter) => Some(waiter),
            Seen::Working | Seen::Hidden => None,
        };
        let done = Some(Done { deed, when: now, before, printed });
        Self { done, ..Self::new(reader, now) }
    }

    /// It has printed something.
    pub(crate) fn printed(&mut self, now: Instant) -> Duration {
        self.active = now;
        FIRST_LOOK
    }

    /// Looks once.
    pub(crate) fn look(&mut self, process: &impl Look, shown: Shown, now: Instant) -> Verdict {
        if process.has_unread_output() {
            self.candidate = None;
            return self.again(now);
        }
        if shown.prompted
            && let Some(waiter) = process.look_at_root()
        {
            return self.waiting(waiter, process, shown, now);
        }
        match process.look() {
            Seen::Working => {
                self.candidate = None;
                self.again(now)
            }
            Seen::Hidden => self.unseen(process, now),
            Seen::Waiting(waiter) => self.waiting(waiter, process, shown, now),
        }
    }

    fn waiting(
        &mut self,
        waiter: Waiter,
        process: &impl Look,
        shown: Shown,
        now: Instant,
    ) -> Verdict {
        let Shown { printed, prompted, is_within_a_line } = shown;
        if process.has_unread_input() || (!prompted && self.has_not_moved(waiter, printed, now)) {
            self.candidate = None;
            return self.again(now);
        }
        let waits = Waits {
            thread: Some(waiter.thread),
            for_a_while: waiter.limit.is_some(),
            hidden: process.hides_input(),
        };
        if prompted {
            return Verdict::Waits(waits);
        }
        if waiter.relays {
            return match RELAY_SILENCE.saturating_sub(now.duration_since(self.active)) {
                Duration::ZERO => Verdict::Waits(waits),
                left => Verdict::LookAgain(left),
            };
        }
        match self.candidate {
            Some((seen, since, before))
                if before == printed && is_idle(seen, waiter, now.duration_since(since)) =>
            {
                match self
                    .confirmed(waiter, is_within_a_line)
                    .saturating_sub(now.duration_since(since))
                {
                    Duration::ZERO => Verdict::Waits(waits),
                    left => Verdict::LookAgain(left),
                }
            }
            _ => {
                self.candidate = Some((waiter, now, printed));
                Verdict::LookAgain(self.confirmed(waiter, is_within_a_line))
            }
        }
    }

    /// Whether what was done cannot have reached it yet.
    fn has_not_moved(&self, waiter: Waiter, printed: u64, now: Instant) -> bool {
        let Some(Done { deed, when, before: Some(before), printed: then }) = &self.done else {
            return false;
        };
        let patience = match (deed, printed > *then) {
            (Deed::Typing | Deed::Escaping, false) => UNHEARD,
            (Deed::Typing | Deed::Escaping, true) | (Deed::Telling, _) => UNMOVED,
        };
        // One that wakes by itself has not run because of it, as long as nothing comes of it.
        let wakes = before.limit.is_some_and(|limit| limit < LONG_LIMIT) && printed == *then;
        before.thread == waiter.thread
            && (before.has_run == waiter.has_run || wakes)
            && now.duration_since(*when) < patience
    }

    /// For how long a thread must be seen to wait.
    fn confirmed(&self, waiter: Waiter, is_within_a_line: bool) -> Duration {
        match waiter.limit {
            Some(limit) if self.has_an_escape() && limit < UNDECIDED_LIMIT => limit + CONFIRMED,
            Some(limit) if limit >= LONG_LIMIT => CONFIRMED,
            None => CONFIRMED,
            Some(_) if is_within_a_line && self.reader == Some(waiter.thread) => {
                let half = self.has_run_since(waiter) / 2;
                half.clamp(IDLE_OF_A_READER, IDLE_AT_SHORT_LIMIT)
            }
            Some(limit) if limit >= SHORT_LIMIT => IDLE,
            Some(_) => IDLE_AT_SHORT_LIMIT,
        }
    }

    fn has_an_escape(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done.deed == Deed::Escaping)
    }

    /// How long a thread has run since something was done.
    fn has_run_since(&self, waiter: Waiter) -> Duration {
        let before = self.done.as_ref().and_then(|done| done.before?.has_run);
        let ran = before.zip(waiter.has_run).map(|(then, now)| now.saturating_sub(then));
        ran.map_or(IDLE_AT_SHORT_LIMIT * 2, Duration::from_nanos)
    }

    fn unseen(&mut self, process: &impl Look, now: Instant) -> Verdict {
        if process.has_unread_input() {
            return self.again(now);
        }
        let patience = if process.hides_input() { UNMOVED } else { SILENCE };
        match (patience.saturating_sub(now.duration_since(self.active)), process.hides_input()) {
            (Duration::ZERO, true) => {
                Verdict::Waits(Waits { thread: None, for_a_while: false, hidden: true })
            }
            (Duration::ZERO, false) => Verdict::Quiet,
            (left, _) => Verdict::LookAgain(left),
        }
    }

    fn again(&self, now: Instant) -> Verdict {
        let quarter = now.duration_since(self.active) / 4;
        Verdict::LookAgain(quarter.clamp(FIRST_LOOK, RAREST_LOOK))
    }
}

/// Whether a thread has waited all the time between two looks. One that wakes by itself now and then runs
/// a little in between: a tenth of the time at the most.
fn is_idle(seen: Waiter, now: Waiter, time: Duration) -> bool {
    const WAKING: Duration = Duration::from_micros(200);
    let allowed = match now.limit {
        Some(limit) if limit < LONG_LIMIT => time / 10 + WAKING,
        Some(_) | None => Duration::ZERO,
    };
    let ran = seen.has_run.zip(now.has_run).map(|(then, now)| now.saturating_sub(then));
    seen.thread == now.thread && Duration::from_nanos(ran.unwrap_or_default()) <= allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen, told by the test.
    struct Told {
        seen: Seen,
        root: Option<Waiter>,
        unread_input: bool,
        unread_output: bool,
        hides_input: bool,
    }

    impl Look for Told {
        fn look(&self) -> Seen {
            self.seen
        }

        fn look_at_root(&self) -> Option<Waiter> {
            self.root
        }

        fn has_unread_input(&self) -> bool {
            self.unread_input
        }

        fn has_unread_output(&self) -> bool {
            self.unread_output
        }

        fn hides_input(&self) -> bool {
            self.hides_input
        }
    }

    const WAITER: Waiter = Waiter { thread: 7, has_run: Some(1000), limit: None, relays: false };

    fn told(seen: Seen) -> Told {
        Told { seen, root: None, unread_input: false, unread_output: false, hides_input: false }
    }

    fn ran(nanoseconds: u64) -> Seen {
        Seen::Waiting(Waiter { has_run: Some(1000 + nanoseconds), ..WAITER })
    }

    fn shown(printed: u64, prompted: bool) -> Shown {
        Shown { printed, prompted, is_within_a_line: false }
    }

    fn waits(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Waits(_))
    }

    #[test]
    fn who_is_seen_to_wait_twice_without_having_run_waits() {
        let start = Instant::now();
        let mut watcher = Watcher::new(None, start);
        let seen = told(ran(0));
        assert_eq!(watcher.look(&seen, shown(0, false), start), Verdict::LookAgain(CONFIRMED));
        assert!(waits(watcher.look(&seen, shown(0, false), start + CONFIRMED)));
    }

    #[test]
    fn who_ran_or_printed_in_between_is_looked_at_anew() {
        let start = Instant::now();
        for (seen, printed) in [(ran(1), 0), (ran(0), 1)] {
            let mut watcher = Watcher::new(None, start);
            watcher.look(&told(ran(0)), shown(0, false), start);
            let verdict = watcher.look(&told(seen), shown(printed, false), start + CONFIRMED);
            assert_eq!(verdict, Verdict::LookAgain(CONFIRMED));
        }
    }

    #[test]
    fn who_has_something_to_read_does_not_wait_even_at_a_prompt() {
        let start = Instant::now();
        let later = start + SILENCE * 2;
        for seen in [ran(0), Seen::Hidden] {
            for hides_input in [false, true] {
                let mut watcher = Watcher::new(None, start);
                let seen = Told { unread_input: true, hides_input, ..told(seen) };
                assert!(matches!(
                    watcher.look(&seen, shown(0, true), later),
                    Verdict::LookAgain(_)
                ));
            }
        }
        let mut watcher = Watcher::new(None, start);
        let seen = Told { unread_output: true, ..told(ran(0)) };
        assert!(matches!(watcher.look(&seen, shown(0, true), later), Verdict::LookAgain(_)));
    }

    #[test]
    fn who_has_not_run_since_it_was_typed_to_is_given_time() {
        let start = Instant::now();
        let seen = told(ran(0));
        let mut watcher = Watcher::before(Deed::Typing, &seen, 0, None, start);
        let soon = start + UNHEARD / 2;
        assert!(matches!(watcher.look(&seen, shown(0, false), soon), Verdict::LookAgain(_)));
        assert!(!waits(watcher.look(&seen, shown(0, false), soon + CONFIRMED)));
        // It will not run because of it any more: half a line, or a key that means nothing to it.
        watcher.look(&seen, shown(0, false), start + UNHEARD);
        assert!(waits(watcher.look(&seen, shown(0, false), start + UNHEARD + CONFIRMED)));
    }

    #[test]
    fn an_echo_shows_that_it_was_reached() {
        let start = Instant::now();
        let seen = told(ran(0));
        let mut watcher = Watcher::before(Deed::Typing, &seen, 0, None, start);
        watcher.look(&seen, shown(4, false), start + UNMOVED);
        assert!(waits(watcher.look(&seen, shown(4, false), start + UNMOVED + CONFIRMED)));
        let mut watcher = Watcher::before(Deed::Telling, &seen, 0, None, start);
        watcher.look(&seen, shown(0, false), start + UNMOVED);
        assert!(waits(watcher.look(&seen, shown(0, false), start + UNMOVED + CONFIRMED)));
    }

    #[test]
    fn who_wakes_by_itself_has_not_been_reached_as_long_as_nothing_comes_of_it() {
        let start = Instant::now();
        let with_timer = |run: u64| {
            let limit = Some(Duration::from_millis(15));
            told(Seen::Waiting(Waiter { limit, has_run: Some(1000 + run), ..WAITER }))
        };
        let prompt = Shown { printed: 5, prompted: false, is_within_a_line: true };
        let known = Some(WAITER.thread);
        let mut watcher = Watcher::before(Deed::Typing, &with_timer(0), 5, known, start);
        watcher.look(&with_timer(9), prompt, start);
        let later = start + UNHEARD / 2;
        assert!(!waits(watcher.look(&with_timer(9), prompt, later)));
        let echoed = Shown { printed: 9, ..prompt };
        watcher.look(&with_timer(99), echoed, later);
        assert!(waits(watcher.look(&with_timer(99), echoed, later + IDLE_OF_A_READER)));
    }

    #[test]
    fn helpers_of_a_shell_at_its_prompt_may_work() {
        let start = Instant::now();
        let seen = Told { root: Some(WAITER), ..told(Seen::Working) };
        let mut watcher = Watcher::new(None, start);
        assert!(!waits(watcher.look(&seen, shown(0, false), start)));
        assert!(waits(watcher.look(&seen, shown(0, true), start)));
    }

    #[test]
    fn a_known_reader_may_have_a_timer() {
        let start = Instant::now();
        let with_timer = |run: u64| {
            let limit = Some(Duration::from_millis(15));
            told(Seen::Waiting(Waiter { limit, has_run: Some(1000 + run), ..WAITER }))
        };
        let before = told(ran(0));
        let prompt = Shown { printed: 5, prompted: false, is_within_a_line: true };
        let known = Some(WAITER.thread);
        let mut watcher = Watcher::before(Deed::Typing, &before, 0, known, start);
        // It ran for a millisecond.
        watcher.look(&with_timer(1_000_000), prompt, start);
        let verdict = watcher.look(&with_timer(1_000_000), prompt, start + IDLE_OF_A_READER);
        assert!(waits(verdict));
        // It ran for twenty.
        let mut watcher = Watcher::before(Deed::Typing, &before, 0, known, start);
        watcher.look(&with_timer(20_000_000), prompt, start);
        let ten = Duration::from_millis(10);
        assert!(!waits(watcher.look(&with_timer(20_000_000), prompt, start + ten / 2)));
        assert!(waits(watcher.look(&with_timer(20_000_000), prompt, start + ten)));
        // It shows nothing that looks like a prompt: it may be about to end.
        let mut watcher = Watcher::before(Deed::Typing, &before, 0, known, start);
        watcher.look(&with_timer(1_000_000), shown(5, false), start);
        assert!(!waits(watcher.look(&with_timer(1_000_000), shown(5, false), start + ten)));
    }

    #[test]
    fn a_prompt_that_was_shown_since_needs_no_second_look() {
        let start = Instant::now();
        let mut watcher = Watcher::before(Deed::Typing, &told(ran(0)), 0, None, start);
        assert!(waits(watcher.look(&told(ran(9)), shown(5, true), start)));
    }

    #[test]
    fn work_that_glances_at_its_input_is_work() {
        let start = Instant::now();
        let glancing = |run: Duration| {
            let nanoseconds = u64::try_from(run.as_nanos()).unwrap();
            let limit = Some(Duration::from_millis(10));
            told(Seen::Waiting(Waiter { limit, has_run: Some(nanoseconds), ..WAITER }))
        };
        let mut watcher = Watcher::new(None, start);
        let mut now = start;
        for round in 0..100 {
            // Half of the time it computes.
            let seen = glancing(Duration::from_millis(10) * round);
            assert!(!waits(watcher.look(&seen, shown(0, false), now)), "round {round}");
            now += Duration::from_millis(20);
        }
        let idle = glancing(Duration::from_millis(990));
        watcher.look(&idle, shown(0, false), now);
        assert!(waits(watcher.look(&idle, shown(0, false), now + IDLE_AT_SHORT_LIMIT)));
    }

    #[test]
    fn a_long_time_limit_is_no_reason_to_doubt() {
        let start = Instant::now();
        let limit = Some(Duration::from_secs(4));
        let seen = told(Seen::Waiting(Waiter { limit, ..WAITER }));
        let mut watcher = Watcher::new(None, start);
        watcher.look(&seen, shown(0, false), start);
        assert!(waits(watcher.look(&seen, shown(0, false), start + CONFIRMED)));
    }

    #[test]
    fn who_waits_for_the_rest_of_a_key_has_not_decided() {
        let start = Instant::now();
        let waiting = |limit_ms: u64| {
            let limit = Some(Duration::from_millis(limit_ms));
            told(Seen::Waiting(Waiter { limit, has_run: Some(2000), ..WAITER }))
        };
        for (input, limit_ms, decides) in
            [("\x1b", 1000, false), ("\x1b[A", 1000, true), ("\x1b", 4000, true)]
        {
            let deed = Deed::of_typing(input);
            let mut watcher = Watcher::before(deed, &told(ran(0)), 0, None, start);
            let seen = waiting(limit_ms);
            watcher.look(&seen, shown(4, false), start);
            let soon = start + CONFIRMED;
            assert_eq!(waits(watcher.look(&seen, shown(4, false), soon)), decides, "{input:?}");
            let over = soon + Duration::from_millis(limit_ms);
            assert!(waits(watcher.look(&seen, shown(4, false), over)), "{input:?}");
        }
    }

    #[test]
    fn a_relay_must_be_silent() {
        let start = Instant::now();
        let seen = told(Seen::Waiting(Waiter { relays: true, ..WAITER }));
        let mut watcher = Watcher::new(None, start);
        let half = RELAY_SILENCE / 2;
        assert_eq!(watcher.look(&seen, shown(0, false), start + half), Verdict::LookAgain(half));
        watcher.printed(start + half);
        assert!(!waits(watcher.look(&seen, shown(1, false), start + RELAY_SILENCE)));
        assert!(waits(watcher.look(&seen, shown(1, false), start + half + RELAY_SILENCE)));
    }

    #[test]
    fn who_cannot_be_seen_is_quiet_or_asks_for_a_password() {
        let start = Instant::now();
        let mut watcher = Watcher::new(None, start);
        assert_eq!(
            watcher.look(&told(Seen::Hidden), shown(0, false), start + SILENCE),
            Verdict::Quiet
        );
        let asks = Told { hides_input: true, ..told(Seen::Hidden) };
        assert!(waits(watcher.look(&asks, shown(0, false), start + UNMOVED)));
    }

    #[test]
    fn the_longer_somebody_works_the_rarer_are_the_looks() {
        let start = Instant::now();
        let mut watcher = Watcher::new(None, start);
        for (after, next) in [(0, 150), (4_000, 1_000), (60_000_000, 20_000)] {
            let now = start + Duration::from_micros(after);
            let verdict = watcher.look(&told(Seen::Working), shown(0, false), now);
            assert_eq!(verdict, Verdict::LookAgain(Duration::from_micros(next)));
        }
    }
}
