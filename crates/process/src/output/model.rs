//! The form in which a model is given the output of a command.
//!
//! The bare text where there is nothing else to say; otherwise a short header and as much of the
//! beginning and the end as the budget holds, around one line that says what is missing. It is made
//! from what the capture kept, not from text that a program could have made look like ours.

use super::gap::{Gap, around};
use super::harmless::{fitting_end, fitting_start, harmless};
use super::raw::RawStream;
use super::sections::Sections;
use sandgate_protocol::{ExecToolCallOutput, Spilled, visible_line};
use std::fmt::Write as _;
use std::time::Duration;

/// Makes the model's form of an output, within a budget of tokens.
///
/// ```
/// use sandgate_process::ModelFormat;
///
/// let log = "a line like any other\n".repeat(10_000);
/// let format = ModelFormat::new(500);
/// let text = format.shorten(&log);
/// assert!(text.len() <= format.max_bytes());
/// assert!(text.starts_with("a line") && text.ends_with("other\n"));
/// assert!(text.contains("omitted"));
/// ```
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
    pub const MIN_TOKENS: usize = 256;

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

    /// A piece of output by itself: as much of its beginning and its end as the budget holds. `name` is
    /// what all of it can be asked for by.
    pub fn excerpt(&self, piece: &RawStream, name: &str) -> String {
        let id = Some(name.to_owned());
        let spill = Spilled { id, bytes: piece.total_bytes(), complete: true, error: None };
        self.piece(piece, Some(&spill))
    }

    /// Text that nobody keeps the whole of: as much of its beginning and its end as the budget holds.
    pub fn shorten(&self, text: &str) -> String {
        self.piece(&RawStream::from(text.as_bytes().to_vec()), None)
    }

    fn piece(&self, piece: &RawStream, spill: Option<&Spilled>) -> String {
        let sections = piece.sections();
        let text = sections.head.text.as_str();
        if sections.gap.is_none() && fits(text, self.max_bytes()) {
            return harmless(text).into_owned();
        }
        let frame = sections.widest_gap().line(spill).len() + 2;
        let cut = Cut::of(sections, self.max_bytes().saturating_sub(frame));
        around(&harmless(cut.head), &cut.gap.line(spill), &harmless(cut.tail))
    }

    /// The output of a command as a model gets it. `aggregated` is what was kept of both its streams,
    /// and `output` says everything else.
    pub fn format(&self, output: &ExecToolCallOutput, aggregated: &RawStream) -> String {
        let sections = aggregated.sections();
        let header = header(output);
        let is_plain_success = output.exit_code == 0 && notices(output).is_empty();
        let above = if is_plain_success { "" } else { &header };
        let text = sections.head.text.as_str();
        if sections.gap.is_none() && fits(text, self.max_bytes().saturating_sub(above.len())) {
            return above.to_owned() + &harmless(text);
        }
        let spill = output.aggregated_output.spill.as_ref();
        // Two newlines: one that ends a line cut short, one that ends the gap line.
        let frame = header.len() + sections.widest_gap().line(spill).len() + 2;
        let cut = Cut::of(sections, self.max_bytes().saturating_sub(frame));
        header + &around(&harmless(cut.head), &cut.gap.line(spill), &harmless(cut.tail))
    }
}

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
    if output.exit_code != 0 {
        blocked(output, &mut notices);
    }
    if output.pipes_still_open {
        notices.push("Processes were still holding its output open".to_owned());
    }
    if output.left_running > 0 {
        notices.push(format!("Processes that could not be ended: {}", output.left_running));
    }
    notices
}

/// What the sandbox refused to a command that failed: some of it, and how much there is besides.
fn blocked(output: &ExecToolCallOutput, notices: &mut Vec<String>) {
    const MOST: usize = 4;
    const LONGEST: usize = 120;
    let denials = &output.denials;
    for denial in denials.evidence.iter().take(MOST) {
        let mut shown = visible_line(&denial.to_string());
        if shown.len() > LONGEST {
            shown.truncate(shown.floor_char_boundary(LONGEST));
            shown.push('…');
        }
        notices.push(format!("Blocked by the sandbox: {shown}"));
    }
    let more = denials.more + denials.evidence.len().saturating_sub(MOST) as u64;
    if more > 0 {
        notices.push(format!("Blocked by the sandbox: {more} more"));
    }
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

/// What is shown of an output, and what is not.
struct Cut<'o> {
    head: &'o str,
    gap: Gap,
    tail: &'o str,
}

impl<'o> Cut<'o> {
    /// Chooses what is shown so that, made harmless, it takes at most `budget` bytes.
    fn of(sections: &'o Sections, budget: usize) -> Self {
        let Sections { head, gap, tail, .. } = sections;
        let Some(gap) = gap else {
            let (shown, rest) = head.text.split_at(whole_lines_from_start(&head.text, budget / 2));
            let left_out = whole_lines_to_end(rest, budget - harmless(shown).len());
            let gap = head.gap(shown.len()..shown.len() + left_out);
            return Self { head: shown, gap, tail: &rest[left_out..] };
        };
        // What one side does not need of its half is the other's.
        let half = &tail.text[whole_lines_to_end(&tail.text, budget / 2)..];
        let head_end = whole_lines_from_start(&head.text, budget - harmless(half).len());
        let shown = &head.text[..head_end];
        let tail_start = whole_lines_to_end(&tail.text, budget - harmless(shown).len());
        let left_out = head.gap(head_end..head.text.len()).and(tail.gap(0..tail_start));
        Self { head: shown, gap: gap.and(left_out), tail: &tail.text[tail_start..] }
    }
}

/// Whether all of the text fits, made harmless. Of a long one only as much is looked at as it takes.
fn fits(text: &str, budget: usize) -> bool {
    whole_lines_from_start(text, budget) == text.len()
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
