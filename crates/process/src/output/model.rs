//! The form in which a model is given the output of a command.
//!
//! The bare text where there is nothing else to say; otherwise a short header and as much of the
//! beginning and the end as the budget holds, around one line that says what is missing. The numbers
//! in that line are exact: they come from where the text was cut, and a gap that the capture left is
//! found by its line number, never by searching text that a program could have printed.

use super::gap::Gap;
use super::harmless::{fitting_end, fitting_start, harmless};
use sandgate_protocol::{ExecToolCallOutput, StreamOutput};
use std::fmt::Write as _;
use std::time::Duration;

/// Makes the model's form of an output, within a budget of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFormat {
    max_tokens: usize,
}

impl Default for ModelFormat {
    fn default() -> Self {
        Self::new(Self::MAX_TOKENS)
    }
}

impl ModelFormat {
    /// The budget unless somebody says otherwise.
    pub const MAX_TOKENS: usize = 10_000;

    /// The smallest budget: the header and the gap line fit in it with room for some output. A
    /// smaller one counts as this.
    pub const MIN_TOKENS: usize = 128;

    /// What a token is taken to hold.
    pub const BYTES_PER_TOKEN: usize = 4;

    /// A format whose text takes at most `max_tokens`, but see [`Self::MIN_TOKENS`].
    pub const fn new(max_tokens: usize) -> Self {
        Self { max_tokens }
    }

    /// The most bytes that [`Self::format`] returns.
    pub fn max_bytes(&self) -> usize {
        self.max_tokens.max(Self::MIN_TOKENS).saturating_mul(Self::BYTES_PER_TOKEN)
    }

    /// The aggregated output as a model gets it.
    pub fn format(&self, output: &ExecToolCallOutput) -> String {
        let stream = &output.aggregated_output;
        let source = Source::of(stream);
        let header = header(output);
        let notable = output.exit_code != 0 || !notices(output).is_empty();
        if source.gap.is_none() {
            let text = harmless(source.head);
            if !notable && text.len() <= self.max_bytes() {
                return text.into_owned();
            }
            if header.len() + text.len() <= self.max_bytes() {
                return header + &text;
            }
        }
        let spill = stream.spill.as_deref().filter(|id| id.len() <= MAX_ID_BYTES);
        // Two newlines: one that ends a line cut short, one that ends the gap line.
        let frame = header.len() + source.widest_gap().line(spill).len() + 2;
        let cut = source.cut(self.max_bytes().saturating_sub(frame));

        let mut formatted = header;
        let head = harmless(cut.head);
        formatted.push_str(&head);
        if !head.is_empty() && !head.ends_with('\n') {
            formatted.push('\n');
        }
        formatted.push_str(&cut.gap.line(spill));
        formatted.push('\n');
        formatted.push_str(&harmless(cut.tail));
        formatted
    }
}

/// Ids are ours and short; a longer one would eat the room that output needs.
const MAX_ID_BYTES: usize = 64;

/// The lines above the output, down to the one that introduces it.
fn header(output: &ExecToolCallOutput) -> String {
    let mut header = format!(
        "Exit code: {}\nWall time: {} seconds\n",
        output.exit_code,
        seconds(output.duration)
    );
    for notice in notices(output) {
        header.push_str(&notice);
        header.push('\n');
    }
    header.push_str("Output:\n");
    header
}

/// Whatever a model should know about the end of the command besides its exit code.
fn notices(output: &ExecToolCallOutput) -> Vec<String> {
    let mut notices = Vec::new();
    // A command that we ended died of our signal, which would say less than the reason.
    if output.timed_out {
        notices.push(format!("Timed out after {} seconds", seconds(output.duration)));
    } else if output.cancelled {
        notices.push("Cancelled".to_owned());
    } else if let Some(signal) = output.signal {
        let mut notice = format!("Ended by signal {signal}");
        if let Some(name) = signal_name(signal) {
            let _ = write!(notice, " ({name})");
        }
        notices.push(notice);
    }
    if output.pipes_still_open {
        notices.push("Processes were still holding its output open".to_owned());
    }
    if output.left_running > 0 {
        notices.push(format!("Processes that could not be ended: {}", output.left_running));
    }
    notices
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64())
}

/// The names of the signals that end commands; their numbers are the system's.
#[cfg(unix)]
const SIGNAL_NAMES: [(i32, &str); 17] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGSYS, "SIGSYS"),
];

/// Windows ends no process by signal.
#[cfg(not(unix))]
const SIGNAL_NAMES: [(i32, &str); 0] = [];

fn signal_name(signal: i32) -> Option<&'static str> {
    SIGNAL_NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// The text of a stream, taken apart at the gap that its capture left, if it left one.
struct Source<'o> {
    /// Everything before the gap, or everything.
    head: &'o str,
    gap: Option<Gap>,
    /// Everything after the gap.
    tail: &'o str,
    /// The newline at the end of `head` is not the program's: it only sets off the gap line.
    ends_in_added_newline: bool,
}

/// What is shown of a source, and what is not.
struct Cut<'o> {
    head: &'o str,
    gap: Gap,
    tail: &'o str,
}

impl<'o> Source<'o> {
    fn of(stream: &'o StreamOutput) -> Self {
        let text = stream.text.as_str();
        let Some(lines) = stream.truncated_after_lines.filter(|_| stream.omitted_bytes > 0) else {
            return Self { head: text, gap: None, tail: "", ends_in_added_newline: false };
        };
        let head_end = text.split_inclusive('\n').take(lines as usize).map(str::len).sum();
        let (head, rest) = text.split_at(head_end);
        let (gap_line, tail) = rest.split_once('\n').unwrap_or((rest, ""));
        match Gap::parse(gap_line).filter(|gap| gap.bytes == stream.omitted_bytes) {
            Some(gap) => {
                // Where the text is as long as the bytes it came from, one more was added by us.
                let kept = (head.len() + tail.len()) as u64;
                let written = stream.total_bytes.saturating_sub(stream.omitted_bytes);
                let ends_in_added_newline = head.ends_with('\n') && kept == written + 1;
                Self { head, gap: Some(gap), tail, ends_in_added_newline }
            }
            // Not made by our capture: all of the text is the program's, and its gap has no count
            // of lines.
            None => {
                let gap = Gap { lines: 0, bytes: stream.omitted_bytes };
                Self { head, gap: Some(gap), tail: rest, ends_in_added_newline: false }
            }
        }
    }

    /// The gap if nothing were shown: no other has more digits.
    fn widest_gap(&self) -> Gap {
        let everything = Gap::of(self.head).and(Gap::of(self.tail));
        self.gap.map_or(everything, |gap| gap.and(everything))
    }

    /// Chooses what is shown so that, made harmless, it takes at most `budget` bytes.
    fn cut(&self, budget: usize) -> Cut<'o> {
        let Some(gap) = self.gap else { return self.cut_in_the_middle(budget) };
        let tail_bytes = harmless(self.tail).len();
        let head_budget = budget.saturating_sub(tail_bytes).max(budget / 2);
        let (head, head_cut) = self.head.split_at(whole_lines_from_start(self.head, head_budget));
        let tail_budget = budget - harmless(head).len();
        let (tail_cut, tail) = self.tail.split_at(whole_lines_to_end(self.tail, tail_budget));
        let added = u64::from(self.ends_in_added_newline && !head_cut.is_empty());
        let cut = gap.and(Gap::of(head_cut)).and(Gap::of(tail_cut));
        Cut { head, gap: Gap { lines: cut.lines - added, bytes: cut.bytes - added }, tail }
    }

    fn cut_in_the_middle(&self, budget: usize) -> Cut<'o> {
        let (head, rest) = self.head.split_at(whole_lines_from_start(self.head, budget / 2));
        let (cut, tail) = rest.split_at(whole_lines_to_end(rest, budget - harmless(head).len()));
        Cut { head, gap: Gap::of(cut), tail }
    }
}

/// How much from the start of the text fits: whole lines, unless a long line would leave more than
/// half of the budget unused; then as much of that line as fits.
fn whole_lines_from_start(text: &str, budget: usize) -> usize {
    let (mut end, mut used) = (0, 0);
    for line in text.split_inclusive('\n') {
        let shown = harmless(line).len();
        if used + shown > budget {
            if used < budget / 2 {
                end += fitting_start(line, budget - used);
            }
            break;
        }
        used += shown;
        end += line.len();
    }
    end
}

/// Where the end of the text that fits starts, by the same rule.
fn whole_lines_to_end(text: &str, budget: usize) -> usize {
    let (mut start, mut used) = (text.len(), 0);
    for line in text.split_inclusive('\n').rev() {
        let shown = harmless(line).len();
        if used + shown > budget {
            if used < budget / 2 {
                start -= line.len() - fitting_end(line, budget - used);
            }
            break;
        }
        used += shown;
        start -= line.len();
    }
    start
}
