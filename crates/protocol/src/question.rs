//! A question in words: what is asked, what is known of it, and what each answer does.
//!
//! It is made once from what is asked, and every front end only lays it out, so that a person reads the same
//! wherever they are asked. Everything in it shows itself, and each text but a reason is one line.

use crate::lookalike::lookalikes;
use crate::{
    AnsweredBy, ApplyPatchApprovalRequest, Event, ExecApprovalRequest, GrantScope, Offers,
    PatchChange, PatchChangeKind, ReviewDecision, RiskLevel, visible, visible_line, visible_remark,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// How many refusals are told before somebody asks for more.
const MOST_DENIALS: usize = 8;

/// The answers, each with its key and its word, in the order in which they are offered: what opens least comes
/// first, because some take the first that they like.
const ANSWERS: [(&str, &str, ReviewDecision); 7] = [
    ("g", "grant", ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call }),
    ("G", "grant-session", ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }),
    ("y", "approve", ReviewDecision::Approved),
    ("s", "session", ReviewDecision::ApprovedForSession),
    ("r", "rule", ReviewDecision::ApprovedWithRule),
    ("n", "deny", ReviewDecision::DENIED),
    ("a", "abort", ReviewDecision::Abort),
];

/// A question as a person reads it. The diffs of a patch are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownQuestion {
    /// What is asked, as a sentence.
    pub title: &'static str,
    /// What it is about, in one line.
    pub summary: String,
    /// The command's lines, or a line for each file: what becomes of it, its name, and where it moves to.
    pub subject: Vec<String>,
    /// Where the command would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is known of it, in the order in which it is read.
    pub facts: Vec<Fact>,
    /// What can be answered, what opens least first.
    pub choices: Vec<Choice>,
    /// What only those want to know who ask for an explanation.
    pub details: Vec<Detail>,
}

/// One thing that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// What kind of thing it is.
    pub kind: FactKind,
    /// What stands before it.
    pub label: &'static str,
    /// The thing itself. Only a reason may have several lines.
    pub text: String,
}

/// What kind of thing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The sandbox refused it.
    Blocked,
    /// A subagent asks.
    AskedBy,
    /// Why a person is asked.
    Because,
    /// Why a model wants it, in the model's own words.
    ModelSays,
    /// Whoever assessed it thinks that it is harmless; why, in their own words.
    LowRisk,
    /// The same: it changes files, or reaches the network.
    MediumRisk,
    /// The same: it changes the system, or touches secrets.
    HighRisk,
    /// What a plain yes does.
    Yes,
    /// A letter that looks like another one.
    Lookalike,
    /// How much there is to look at, where it may not fit a screen.
    Length,
}

/// One of the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Choice {
    /// The key that gives it.
    pub key: &'static str,
    /// The word that gives it.
    pub word: &'static str,
    /// What a person says by it.
    pub label: String,
    /// What it does.
    pub effect: String,
    /// What is told once it was given.
    pub said: &'static str,
    /// The decision that it is.
    pub answer: ReviewDecision,
}

/// What an explanation has under one heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detail {
    /// The heading.
    pub title: &'static str,
    /// What stands there.
    pub lines: Vec<String>,
}

impl ShownQuestion {
    /// The question that an event asks, if it asks one.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::ExecApprovalRequest(request) => Some(request.shown()),
            Event::ApplyPatchApprovalRequest(request) => Some(request.shown()),
            _ => None,
        }
    }

    /// What can be answered by this key.
    pub fn by_key(&self, key: &str) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.key == key)
    }

    /// What can be answered by this word.
    pub fn by_word(&self, word: &str) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.word == word)
    }

    /// Whether this is an answer to it.
    pub fn offers(&self, decision: &ReviewDecision) -> bool {
        let is_no = matches!(decision, ReviewDecision::Denied { .. });
        is_no || self.choices.iter().any(|choice| choice.answer == *decision)
    }

    /// What is asked, about what and why, as one sentence.
    pub fn sentence(&self) -> String {
        let fact = |kind| self.facts.iter().find(|fact| fact.kind == kind);
        let mut sentence = String::new();
        if let Some(Fact { label, text, .. }) = fact(FactKind::AskedBy) {
            sentence = format!("{label} {text}: ");
        }
        sentence.push_str(&format!("{} {}", self.title, self.summary));
        if let Some(Fact { text, .. }) = fact(FactKind::Because) {
            sentence.push_str(&format!(" ({})", visible_line(text)));
        }
        sentence
    }
}

/// On lines of its own: a model's words are marked, and no further line begins like a fact.
impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.kind.is_said_by_model() { "| " } else { "" };
        write!(f, "{}: {mark}{}", self.label, self.text.replace('\n', "\n    "))
    }
}

impl FactKind {
    /// Whether it is in the words of a model, of which nothing is known to be true.
    pub fn is_said_by_model(self) -> bool {
        matches!(self, Self::ModelSays | Self::LowRisk | Self::MediumRisk | Self::HighRisk)
    }

    fn label(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::AskedBy => "asked by",
            Self::Because => "because",
            Self::ModelSays => "the model says",
            Self::LowRisk => "low risk",
            Self::MediumRisk => "medium risk",
            Self::HighRisk => "high risk",
            Self::Yes => "a yes",
            Self::Lookalike => "look-alike",
            Self::Length => "length",
        }
    }

    fn is(self, text: impl Into<String>) -> Fact {
        Fact { kind: self, label: self.label(), text: text.into() }
    }
}

impl ReviewDecision {
    /// The answer that has this key or this word.
    pub fn called(name: &str) -> Option<Self> {
        let found = ANSWERS.into_iter().find(|(key, word, _)| *key == name || *word == name);
        found.map(|(_, _, decision)| decision)
    }

    /// What a person said by it, in a few words.
    pub fn said(&self) -> &'static str {
        match self {
            Self::Approved => "yes, once",
            Self::ApprovedForSession => "yes, for the session",
            Self::ApprovedWithRule => "yes, always",
            Self::ApprovedWithGrant { scope: GrantScope::Call } => "only what was blocked, once",
            Self::ApprovedWithGrant { scope: GrantScope::Session } => {
                "only what was blocked, for the session"
            }
            Self::Denied { .. } => "no",
            Self::Abort => "no, and stop",
        }
    }

    /// The same, with what the person wrote beside a no.
    pub fn in_words(&self) -> String {
        match self {
            Self::Denied { feedback: Some(words) } => {
                format!("{}: {}", self.said(), visible_line(words))
            }
            _ => self.said().to_owned(),
        }
    }
}

impl AnsweredBy {
    /// Who answered, before what was answered.
    pub fn said(&self) -> String {
        match self {
            Self::Person(front_end) => format!("answered by {}:", visible_line(front_end)),
            Self::Timeout => "nobody answered in time:".to_owned(),
            Self::Nobody => "nobody could be asked:".to_owned(),
            Self::Cancelled => "called off:".to_owned(),
        }
    }
}

impl ExecApprovalRequest {
    /// The question in words.
    pub fn shown(&self) -> ShownQuestion {
        let choices = choices(self.offers(), "it does not run", |answer| self.yes(answer));
        ShownQuestion {
            title: match (self.was_blocked(), self.without_sandbox) {
                (true, _) => "The sandbox blocked this.",
                (false, true) => "May this run WITHOUT the sandbox?",
                (false, false) => "May this run?",
            },
            summary: visible_line(&self.command_text),
            subject: visible(&self.command_text).lines().map(str::to_owned).collect(),
            place: Some(shown_path(&self.cwd)),
            facts: self.facts(&choices),
            choices,
            details: self.details(),
        }
    }

    fn facts(&self, choices: &[Choice]) -> Vec<Fact> {
        let told = self.denials.iter().take(MOST_DENIALS);
        let told = told.map(|denial| FactKind::Blocked.is(visible_line(&denial.to_string())));
        let mut facts: Vec<Fact> = told.collect();
        let hidden = self.denials.len().saturating_sub(MOST_DENIALS) as u64 + self.more_denials;
        if hidden > 0 {
            facts.push(FactKind::Blocked.is(format!("{hidden} more")));
        }
        facts.extend(asked_because(self.agent.as_deref(), &self.reason));
        if let Some(words) = &self.justification {
            facts.push(FactKind::ModelSays.is(visible_remark(words)));
        }
        if let Some(risk) = &self.risk {
            let kind = match risk.risk_level {
                RiskLevel::Low => FactKind::LowRisk,
                RiskLevel::Medium => FactKind::MediumRisk,
                RiskLevel::High => FactKind::HighRisk,
            };
            facts.push(kind.is(visible_remark(&risk.description)));
        }
        facts.extend(plain_yes(choices));
        let place = shown_path(&self.cwd);
        facts.extend(looks_like_another([self.command_text.as_str(), &place]));
        facts.extend(length_of_command(&self.command_text));
        facts
    }

    /// What a yes is called, and what it does. Whatever is kept of it is kept with what it means.
    fn yes(&self, answer: &ReviewDecision) -> (String, String) {
        let (once, out, rights) = match self.without_sandbox {
            true => (", WITHOUT the sandbox", " WITHOUT the sandbox", ", with all your rights"),
            false => ("", "", ""),
        };
        let summary = self.grant_offer.as_ref().map(|offer| visible_line(&offer.summary));
        let summary = summary.unwrap_or_default();
        match answer {
            ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call } => (
                format!("only let it {summary}"),
                format!("it runs again in the sandbox, and this once may also {summary}"),
            ),
            ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session } => (
                format!("let all commands of this session {summary}"),
                format!(
                    "it runs again in the sandbox, and until the session ends all commands may also {summary}"
                ),
            ),
            ReviewDecision::ApprovedForSession => (
                format!("yes, for the same in this session{once}"),
                format!(
                    "it runs{out}{rights}, and the same is not asked about again until the session ends"
                ),
            ),
            ReviewDecision::ApprovedWithRule => {
                let words = self.proposed_rule.as_deref().unwrap_or_default();
                let rule = visible_line(
                    &words.iter().map(|word| as_one_word(word)).collect::<Vec<_>>().join(" "),
                );
                let kept = "a rule is kept: so does, unasked, in this and later sessions";
                (
                    format!("yes, always{out} for commands that begin with: {rule}"),
                    format!("it runs{out}{rights}, and {kept}, all that begins with: {rule}"),
                )
            }
            _ => {
                let rest = match self.without_sandbox {
                    true => "",
                    false => ", and the sandbox stays as it is",
                };
                (format!("yes, once{once}"), format!("it runs this once{out}{rights}{rest}"))
            }
        }
    }

    fn details(&self) -> Vec<Detail> {
        let word = |word: &String| match word.as_str() {
            "" => "(empty)".to_owned(),
            word => visible_line(word),
        };
        let words = self.command.iter().map(word).collect();
        let mut details = vec![Detail { title: "The words as they would run", lines: words }];
        if !self.denials.is_empty() {
            let lines = self.denials.iter().map(|denial| {
                visible_line(&format!("{denial}, by the system call {}", denial.syscall))
            });
            details.push(Detail { title: "What the sandbox refused", lines: lines.collect() });
        }
        if let Some(offer) = &self.grant_offer {
            let writable =
                offer.writable.iter().map(|path| format!("write to {}", shown_path(path)));
            let sockets =
                offer.sockets.iter().map(|path| format!("connect to {}", shown_path(path)));
            let network = offer.network.then(|| "reach the network".to_owned());
            let lines = writable.chain(sockets).chain(network).collect();
            details.push(Detail { title: "What the grant opens, and nothing else", lines });
        }
        details
    }
}

impl ApplyPatchApprovalRequest {
    /// The question in words.
    pub fn shown(&self) -> ShownQuestion {
        let choices = choices(self.offers(), "nothing is changed", |answer| self.yes(answer));
        let mut facts: Vec<Fact> = asked_because(self.agent.as_deref(), &self.reason).collect();
        facts.extend(plain_yes(&choices));
        let files: Vec<String> = self.changes.iter().map(shown_paths).collect();
        facts.extend(looks_like_another(files.iter().map(String::as_str)));
        facts.extend(length_of_patch(&self.changes));
        ShownQuestion {
            title: "May these files be changed?",
            summary: files.join(", "),
            subject: self.changes.iter().map(shown_change).collect(),
            place: None,
            facts,
            choices,
            details: Vec::new(),
        }
    }

    /// What a yes is called, and what it does.
    fn yes(&self, answer: &ReviewDecision) -> (String, String) {
        let unasked = "the files are changed, and until the session ends nobody is asked about";
        match (answer, &self.grant_root) {
            (ReviewDecision::ApprovedForSession, Some(root)) => {
                let root = shown_path(root);
                let label = format!("yes, in this session for everything in: {root}");
                (label, format!("{unasked} changes in: {root}"))
            }
            (ReviewDecision::ApprovedForSession, None) => {
                let label = "yes, for these files in this session".to_owned();
                (label, format!("{unasked} them again"))
            }
            _ => {
                let rest = match self.only_once {
                    true => "; they are settings, and are asked about each time",
                    false => "",
                };
                ("yes, once".to_owned(), format!("the files are changed this once{rest}"))
            }
        }
    }
}

/// What can be answered, with what a yes is called and does.
fn choices(
    offers: Offers,
    no: &str,
    yes: impl Fn(&ReviewDecision) -> (String, String),
) -> Vec<Choice> {
    let offered = ANSWERS.into_iter().filter(|(_, _, answer)| offers.has(answer));
    let choice = |(key, word, answer): (&'static str, &'static str, ReviewDecision)| {
        let (label, effect) = match &answer {
            ReviewDecision::Denied { .. } => {
                ("no".to_owned(), format!("{no}, and the work goes on without it"))
            }
            ReviewDecision::Abort => {
                ("no, and stop the work".to_owned(), format!("{no}, and the work stops"))
            }
            answer => yes(answer),
        };
        Choice { key, word, label, effect, said: answer.said(), answer }
    };
    offered.map(choice).collect()
}

fn plain_yes(choices: &[Choice]) -> Option<Fact> {
    let yes = choices.iter().find(|choice| choice.answer == ReviewDecision::Approved)?;
    Some(FactKind::Yes.is(&yes.effect))
}

/// What in these words looks like something that it is not.
fn looks_like_another<'a>(texts: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = Fact> {
    let found = lookalikes(texts).into_iter();
    found.map(|line| FactKind::Lookalike.is(visible_line(&line)))
}

/// A word of a rule, in quotes if it could be taken for several, or for none.
fn as_one_word(word: &str) -> String {
    match word.is_empty() || word.contains([' ', '\'', '"', '\\', '\t', '\n']) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word.to_owned(),
    }
}

/// So many lines, and so many characters, are on the screen beside the rest of a question.
const SHORT: (usize, usize) = (10, 800);

/// How long a command is, unless that can be seen. Nothing of its own words is in it.
fn length_of_command(text: &str) -> Option<Fact> {
    let (lines, characters) = (text.split('\n').count(), text.chars().count());
    (lines > SHORT.0 || characters > SHORT.1).then(|| {
        FactKind::Length.is(format!("{}, {}", count(lines, "line"), count(characters, "character")))
    })
}

/// How much a patch changes, unless that can be seen.
fn length_of_patch(changes: &[PatchChange]) -> Option<Fact> {
    let lines: usize = changes.iter().map(|change| change.diff.lines().count()).sum();
    (lines + changes.len() > SHORT.0).then(|| {
        let files = count(changes.len(), "file");
        FactKind::Length
            .is(format!("{files}, {} with those around the changes", count(lines, "line")))
    })
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Who asks, if it is not the session itself, and why.
fn asked_because(agent: Option<&str>, reason: &str) -> impl Iterator<Item = Fact> {
    let agent = agent.map(|agent| format!("the subagent {}", visible_line(agent)));
    let asker = agent.map(|agent| FactKind::AskedBy.is(agent));
    asker.into_iter().chain([FactKind::Because.is(visible(reason))])
}

/// A path on one line, whatever its name holds.
fn shown_path(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}

/// All that a change writes to: the file, and where it goes if it moves.
fn shown_paths(change: &PatchChange) -> String {
    match &change.moved_to {
        Some(target) => format!("{} -> {}", shown_path(&change.path), shown_path(target)),
        None => shown_path(&change.path),
    }
}

fn shown_change(change: &PatchChange) -> String {
    let letter = match change.kind {
        PatchChangeKind::Add => 'A',
        PatchChangeKind::Delete => 'D',
        PatchChangeKind::Update => 'M',
    };
    format!("{letter} {}", shown_paths(change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ApprovalId, ApprovalResponse, CallId, DenialEvidence, DenialRule, DeniedOperation,
    };
    use crate::{GrantOffer, RiskAssessment, is_invisible};
    use proptest::prelude::*;

    /// A question in which everything is said that can be, in these words.
    fn command(words: &str) -> ExecApprovalRequest {
        ExecApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            command: vec![words.to_owned()],
            command_text: words.to_owned(),
            cwd: words.into(),
            reason: words.to_owned(),
            justification: Some(words.to_owned()),
            denials: vec![DenialEvidence {
                operation: DeniedOperation::Create,
                target: words.to_owned(),
                syscall: "openat".to_owned(),
                rule: DenialRule::ProtectedName,
            }],
            more_denials: 2,
            risk: Some(RiskAssessment {
                risk_level: RiskLevel::High,
                description: words.to_owned(),
            }),
            proposed_rule: Some(vec![words.to_owned()]),
            grant_offer: Some(GrantOffer {
                summary: words.to_owned(),
                writable: vec![words.into()],
                sockets: vec![words.into()],
                network: true,
            }),
            without_sandbox: true,
            only_once: false,
            agent: Some(words.to_owned()),
        }
    }

    fn patch(words: &str) -> ApplyPatchApprovalRequest {
        let change = PatchChange {
            path: words.into(),
            kind: PatchChangeKind::Update,
            moved_to: Some(words.into()),
            diff: String::new(),
        };
        ApplyPatchApprovalRequest {
            approval_id: ApprovalId::new("approval_1"),
            call_id: CallId::new("call_1"),
            changes: vec![change],
            reason: words.to_owned(),
            grant_root: Some(words.into()),
            only_once: false,
            agent: Some(words.to_owned()),
        }
    }

    /// Every text of a question that was made from words of others.
    fn texts(question: &ShownQuestion) -> Vec<&String> {
        let facts = question.facts.iter().filter(|fact| fact.kind != FactKind::Because);
        let choices = question.choices.iter().flat_map(|choice| [&choice.label, &choice.effect]);
        let details = question.details.iter().flat_map(|detail| &detail.lines);
        let subject = question.subject.iter().chain([&question.summary]).chain(&question.place);
        facts.map(|fact| &fact.text).chain(choices).chain(details).chain(subject).collect()
    }

    proptest! {
        /// spec APPROVAL.55: Whatever a question is about, each of its facts, answers and details is a line of its
        /// own in which everything shows itself; only the reason may have several.
        #[test]
        fn nothing_in_a_question_hides(words in any::<String>()) {
            for question in [command(&words).shown(), patch(&words).shown()] {
                for text in texts(&question) {
                    prop_assert!(!text.contains(|c: char| c.is_control() || is_invisible(c)), "{text:?}");
                }
                for fact in &question.facts {
                    let reads_as_fact = |line: &str| !line.starts_with("    ");
                    prop_assert_eq!(fact.to_string().split('\n').filter(|line| reads_as_fact(line)).count(), 1);
                }
            }
        }
    }

    /// spec APPROVAL.63: A letter that looks like one of ASCII and is another is named in the question about the command or
    /// the files that it is in, where a word would be taken for another by it.
    #[test]
    fn what_looks_like_another_is_said() {
        let said = |question: ShownQuestion| {
            let facts = question.facts.into_iter();
            facts
                .filter(|fact| fact.kind == FactKind::Lookalike)
                .map(|fact| fact.text)
                .collect::<Vec<_>>()
        };
        let expected = ["ѕ in /home/me/.ѕsh is U+0455, not s"];
        assert_eq!(said(command("/home/me/.ѕsh").shown()), expected);
        assert_eq!(said(patch("/home/me/.ѕsh").shown()), expected);
        assert!(said(command("/home/me/.ssh").shown()).is_empty());
    }

    #[test]
    fn the_words_of_a_rule_are_told_apart() {
        let mut request = command("x");
        let words = ["git", "pull origin", "", "it's"].map(str::to_owned);
        request.proposed_rule = Some(words.into());
        let shown = request.shown();
        let label = &shown.by_word("rule").unwrap().label;
        assert!(label.ends_with(r"begin with: git 'pull origin' '' 'it'\''s'"), "{label}");
    }

    #[test]
    fn what_may_not_fit_a_screen_has_its_length_said() {
        let length = |question: ShownQuestion| {
            let last = question.facts.last().cloned().unwrap();
            (last.kind == FactKind::Length).then(|| last.to_string())
        };
        let of = |text: &str| length(command(text).shown());
        assert_eq!(of("ls"), None);
        assert_eq!(of(&"x\n".repeat(9)), None);
        assert_eq!(
            of(&format!("rm x{}ls", "\n".repeat(300))).unwrap(),
            "length: 301 lines, 306 characters"
        );
        assert_eq!(of(&"é".repeat(801)).unwrap(), "length: 1 line, 801 characters");
        let mut patch = patch("x");
        assert_eq!(length(patch.shown()), None);
        patch.changes[0].diff = "+x\n".repeat(300);
        let said = "length: 1 file, 300 lines with those around the changes";
        assert_eq!(length(patch.shown()).unwrap(), said);
    }

    /// spec APPROVAL.56: What can be answered to a question is what it offers, and whatever a yes lets out of the
    /// sandbox says so, in its name and in what it does.
    #[test]
    fn what_is_offered_can_be_answered() {
        let blocked = command("x");
        let first = ExecApprovalRequest {
            denials: Vec::new(),
            more_denials: 0,
            grant_offer: None,
            ..blocked.clone()
        };
        let inside = ExecApprovalRequest { without_sandbox: false, ..first.clone() };
        let settings = ApplyPatchApprovalRequest { only_once: true, ..patch("x") };
        let keys = |question: &ShownQuestion| {
            question.choices.iter().map(|choice| choice.key).collect::<String>()
        };
        for (question, offers, expected) in [
            (blocked.shown(), blocked.offers(), "gGyrna"),
            (first.shown(), first.offers(), "ysrna"),
            (inside.shown(), inside.offers(), "ysrna"),
            (patch("x").shown(), patch("x").offers(), "ysna"),
            (settings.shown(), settings.offers(), "yna"),
        ] {
            assert_eq!(keys(&question), expected);
            for (_, word, decision) in ANSWERS {
                assert_eq!(question.offers(&decision), offers.has(&decision), "{word}");
                assert_eq!(question.by_word(word).is_some(), offers.has(&decision), "{word}");
                assert_eq!(ReviewDecision::called(word), Some(decision));
            }
        }
        for request in [&blocked, &first, &inside] {
            for Choice { answer, label, effect, .. } in request.shown().choices {
                let is_grant = matches!(answer, ReviewDecision::ApprovedWithGrant { .. });
                let leaves = request.without_sandbox && answer.approves() && !is_grant;
                assert_eq!(label.contains("WITHOUT the sandbox"), leaves, "{label}");
                assert_eq!(effect.contains("WITHOUT the sandbox"), leaves, "{effect}");
            }
        }
    }

    /// spec APPROVAL.59: What came of a question is told in the same words wherever it is told: who answered, what,
    /// and what they wrote beside a no, in a line in which everything shows itself.
    #[test]
    fn an_answer_is_said_in_one_line() {
        let said = |decision, by| {
            ApprovalResponse::new(
                ApprovalId::new("approval_1"),
                CallId::new("call_1"),
                decision,
                by,
            )
            .said
        };
        let web = || AnsweredBy::Person("we\u{1b}b".to_owned());
        let no = ReviewDecision::Denied { feedback: Some("use\nmake".to_owned()) };
        let session = ReviewDecision::ApprovedForSession;
        assert_eq!(said(no, web()), "answered by we\\u{1b}b: no: use\\nmake");
        assert_eq!(said(session, web()), "answered by we\\u{1b}b: yes, for the session");
        let no = || ReviewDecision::DENIED;
        assert_eq!(said(no(), AnsweredBy::Timeout), "nobody answered in time: no");
        assert_eq!(said(no(), AnsweredBy::Nobody), "nobody could be asked: no");
        assert_eq!(said(ReviewDecision::Abort, AnsweredBy::Cancelled), "called off: no, and stop");
    }

    #[test]
    fn a_question_can_be_said_in_one_sentence() {
        let mut request = command("touch x\ntouch y");
        request.agent = Some("review-1".to_owned());
        request.reason = "it writes".to_owned();
        let said = "asked by the subagent review-1: The sandbox blocked this. touch x\\ntouch y (it writes)";
        assert_eq!(request.shown().sentence(), said);
        let said = "asked by the subagent a: May these files be changed? a -> a (a)";
        assert_eq!(patch("a").shown().sentence(), said);
    }
}
