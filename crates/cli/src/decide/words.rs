//! Answers as words: what a person types, and what stands in a file of prepared answers.

use sandgate_protocol::ReviewDecision;
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// The longest file of answers that is read.
const MOST_BYTES: u64 = 1 << 20;

/// What an answer means. None if it is not one.
///
/// The first word decides; what follows a no is what the model is told.
pub(crate) fn decision(text: &str) -> Option<ReviewDecision> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let feedback = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    let name = match word {
        "yes" => "approve",
        "no" => "deny",
        "gs" => "grant-session",
        word => word,
    };
    match ReviewDecision::called(name)? {
        ReviewDecision::Denied { .. } => Some(ReviewDecision::Denied { feedback }),
        // Whoever says more than yes may mean something else than yes.
        decision => feedback.is_none().then_some(decision),
    }
}

/// Answers that were prepared.
#[derive(Debug, Clone)]
pub(crate) enum Prepared {
    /// The same to every question.
    Always(ReviewDecision),
    /// One after the other, until there are none.
    InOrder(VecDeque<ReviewDecision>),
}

impl Prepared {
    pub(super) fn always(decision: ReviewDecision) -> Self {
        Self::Always(decision)
    }

    /// Reads a file with one answer a line. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no answer.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        use std::io::Read as _;
        let name = path.display();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(named)?;
        file.take(MOST_BYTES).read_to_string(&mut text).map_err(named)?;
        let mut decisions = VecDeque::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let line_number = index + 1;
            decisions.push_back(decision(line).ok_or_else(|| {
                let line = sandgate_protocol::visible(line);
                let message = format!(
                    "{name}:{line_number}: {line:?} is no answer; write approve, session, grant, \
                     grant-session, rule, deny or abort"
                );
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?);
        }
        Ok(Self::InOrder(decisions))
    }

    pub(super) fn next(&mut self) -> Option<ReviewDecision> {
        match self {
            Self::Always(decision) => Some(decision.clone()),
            Self::InOrder(decisions) => decisions.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::GrantScope;

    #[test]
    fn words_mean_what_they_say() {
        for (text, meant) in [
            ("y", ReviewDecision::Approved),
            (" approve\n", ReviewDecision::Approved),
            ("session", ReviewDecision::ApprovedForSession),
            ("g", ReviewDecision::ApprovedWithGrant { scope: GrantScope::Call }),
            ("G", ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }),
            ("gs", ReviewDecision::ApprovedWithGrant { scope: GrantScope::Session }),
            ("rule", ReviewDecision::ApprovedWithRule),
            ("n", ReviewDecision::DENIED),
            ("n  use make", ReviewDecision::Denied { feedback: Some("use make".to_owned()) }),
            ("abort", ReviewDecision::Abort),
        ] {
            assert_eq!(decision(text), Some(meant), "{text}");
        }
        for text in ["", "maybe", "yes but not there", "Y", "yy"] {
            assert_eq!(decision(text), None, "{text}");
        }
    }

    #[test]
    fn a_file_answers_line_by_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# first\napprove\n\ndeny not now\n").unwrap();
        let mut prepared = Prepared::read(file.path()).unwrap();
        assert_eq!(prepared.next(), Some(ReviewDecision::Approved));
        let no = ReviewDecision::Denied { feedback: Some("not now".to_owned()) };
        assert_eq!(prepared.next(), Some(no));
        assert_eq!(prepared.next(), None);
        std::fs::write(file.path(), "approve\nperhaps\n").unwrap();
        let error = Prepared::read(file.path()).unwrap_err().to_string();
        assert!(error.contains(":2: \"perhaps\" is no answer"), "{error}");
    }
}
