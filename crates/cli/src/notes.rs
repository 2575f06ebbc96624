//! What this program itself has to say, one line each, to standard error.

use crate::wrap;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects, Style};
use sandgate_protocol::FailureKind;
use sandgate_protocol::{Denials, ExecExpiration, ExecToolCallOutput, visible_line};
use std::io::Write as _;
use std::time::Duration;

/// What stands before everything.
const NAME: &str = "sandgate:";

const PLAIN: Style = Style::new().effects(Effects::BOLD);
const ERROR: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
const DIM: Style = Style::new().effects(Effects::DIMMED);
const WARNING: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);

/// Something went wrong. `what` is a line; `advice`, if there is any, is another.
pub(crate) fn error(what: &str, advice: Option<&str>) -> Vec<u8> {
    let mut note = line(ERROR, what);
    if let Some(advice) = advice {
        let advice = wrap::wrapped(advice, columns(), NAME.len() + 1);
        note.extend(format!("{:width$}{advice}\n", "", width = NAME.len() + 1).bytes());
    }
    note
}

/// Something that a person should know, and that stops nothing. `what` is a line.
pub(crate) fn warning(what: &str) -> Vec<u8> {
    line(WARNING, &format!("warning: {what}"))
}

/// What the person can do about it, where the error itself does not say.
pub(crate) fn advice(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::NotFound => Some("Check the spelling, or name it by its whole path."),
        FailureKind::Directory => Some("Name another directory with --cd."),
        FailureKind::Request
        | FailureKind::NotExecutable
        | FailureKind::System
        | FailureKind::NobodyListens => None,
    }
}

/// The command is about to run, and nothing will confine it.
pub(crate) fn unconfined() -> Vec<u8> {
    let text = "warning: this command runs unconfined, with all your rights";
    line(WARNING, text)
}

/// How things are with a live process.
pub(crate) fn status(what: &str) -> Vec<u8> {
    let text = format!("{NAME} {}", wrap::wrapped(what, columns(), NAME.len() + 1));
    let mut painted = AutoStream::new(Vec::new(), AutoStream::choice(&std::io::stderr()));
    // Writing to memory does not fail.
    let _ = writeln!(painted, "{DIM}{text}{DIM:#}");
    painted.into_inner()
}

/// What the person can do next.
pub(crate) fn hint(what: &str) -> Vec<u8> {
    line(PLAIN, what)
}

/// The command is about to run once more, and how.
pub(crate) fn again(how: &str) -> Vec<u8> {
    line(PLAIN, &format!("running it again, {how}"))
}

/// What the sandbox refused, a line each; `most` of them and how many there are besides.
pub(crate) fn blocked(denials: &Denials, most: usize) -> Vec<u8> {
    let mut notes = Vec::new();
    for denial in denials.evidence.iter().take(most) {
        let shown = visible_line(&denial.to_string());
        notes.extend(line(PLAIN, &format!("blocked: {shown}")));
    }
    let hidden = denials.evidence.len().saturating_sub(most) as u64;
    let more = denials.more + hidden;
    if more > 0 {
        notes.extend(line(PLAIN, &format!("blocked: {more} more")));
    }
    notes
}

/// What a person should know about how a command ended, beyond its exit code.
pub(crate) fn of_end(output: &ExecToolCallOutput, expiration: ExecExpiration) -> Vec<u8> {
    let mut notes = Vec::new();
    if output.timed_out
        && let Some(limit) = expiration.timeout()
    {
        let text = format!(
            "the command was ended after {}, its time limit; --timeout-ms N sets another, 0 none",
            spoken(limit)
        );
        notes.extend(line(PLAIN, &text));
    }
    if output.left_running > 0 {
        let text = match output.left_running {
            1 => "warning: one process of the command could not be ended and still runs".to_owned(),
            n => format!("warning: {n} processes of the command could not be ended and still run"),
        };
        notes.extend(line(WARNING, &text));
    } else if output.pipes_still_open && !output.cancelled {
        let text = "the command left something running that held its output open; that was ended";
        notes.extend(line(PLAIN, text));
    }
    notes
}

/// A length of time as people say it.
fn spoken(duration: Duration) -> String {
    let seconds = |ms: u128| {
        let exact = format!("{}.{:03}", ms / 1_000, ms % 1_000);
        format!("{} s", exact.trim_end_matches('0').trim_end_matches('.'))
    };
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms @ 1_000..60_000 => seconds(ms),
        ms => format!("{} min {}", ms / 60_000, seconds(ms % 60_000)),
    }
}

/// One line of ours, in colour where standard error is a terminal that wants it.
fn line(style: Style, text: &str) -> Vec<u8> {
    paint(style, text, AutoStream::choice(&std::io::stderr()))
}

fn paint(style: Style, text: &str, colours: ColorChoice) -> Vec<u8> {
    let mut painted = AutoStream::new(Vec::new(), colours);
    let text = wrap::wrapped(&without_numbers(text), columns(), NAME.len() + 1);
    // Writing to memory does not fail.
    let _ = writeln!(painted, "{style}{NAME}{style:#} {text}");
    painted.into_inner()
}

/// How wide the terminal is, if that is where it is said.
fn columns() -> Option<usize> {
    wrap::columns(std::io::stderr())
}

/// The same without the numbers of the system's errors: `No such file or directory (os error 2)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                kept.push_str(rest);
            }
            _ => kept.extend([" (os error ", part]),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec ERRORS.7: An error of the system is told in its words, without its number.
    #[test]
    fn errors_of_the_system_have_no_numbers() {
        let error = std::io::Error::from_raw_os_error(2);
        let said = paint(ERROR, &format!("x: {error}; y (os error z)"), ColorChoice::Never);
        assert_eq!(said, b"sandgate: x: No such file or directory; y (os error z)\n");
    }

    #[test]
    fn a_line_has_colours_only_where_they_are_wanted() {
        let plain = paint(ERROR, "no", ColorChoice::Never);
        assert_eq!(plain, b"sandgate: no\n");
        let coloured = paint(ERROR, "no", ColorChoice::AlwaysAnsi);
        assert!(coloured.contains(&0x1b));
        assert!(coloured.ends_with(b"no\n"));
    }

    #[test]
    fn a_denial_is_one_line_whatever_its_target_holds() {
        use sandgate_protocol::{DenialEvidence, DenialRule, DeniedOperation};
        let denial = |target: &str| DenialEvidence {
            operation: DeniedOperation::Write,
            target: target.to_owned(),
            syscall: "openat".to_owned(),
            rule: DenialRule::OutsideWritableRoots,
        };
        let evidence = vec![denial("/a\n\u{1b}[2J"), denial("/b"), denial("/c")];
        let text = String::from_utf8(blocked(&Denials { evidence, more: 4 }, 2)).unwrap();
        let expected = "sandgate: blocked: write /a\\n\\u{1b}[2J (outside the writable roots)\n\
                        sandgate: blocked: write /b (outside the writable roots)\n\
                        sandgate: blocked: 5 more\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        for (ms, text) in [
            (1, "1 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_050, "1.05 s"),
            (10_000, "10 s"),
            (59_999, "59.999 s"),
            (60_000, "1 min 0 s"),
            (3_725_500, "62 min 5.5 s"),
        ] {
            assert_eq!(spoken(Duration::from_millis(ms)), text);
        }
    }
}
