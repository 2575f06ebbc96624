//! What may follow `sandgate approvals`: first parsed, then made sense of.

use crate::arguments::usage_error;
use crate::decide::decision;
use clap::error::ErrorKind;
use sandgate_protocol::ReviewDecision;

const HELP: &str = "\
Examples:
  sandgate approvals                       asks you, here, whatever any sandgate of yours asks
  sandgate approvals list                  what is open, in all of them
  sandgate approvals answer 1a2b3c4d-1 approve
  sandgate approvals answer 1a2b-2 deny --feedback 'use make'

An answer is approve (this once), session (the same for the rest of its session), grant and
grant-session (open only what was blocked), rule (keep the proposed rule), deny, or abort (no, and
stop the work). The first answer counts, wherever it is given.

Of an id, what stands before the - may be shortened as long as it is that of one sandgate.

Exit codes: 0; 125 when there is no such question or the answer does not count; 2 if this command
line makes no sense.";

/// What may follow `sandgate approvals`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct CliApprovals {
    #[command(subcommand)]
    verb: Option<CliVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum CliVerb {
    /// List the open questions of all running sandgates
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Answer one of them
    Answer(CliAnswer),
    /// Print what is open, whenever it changes
    Watch {
        /// As one line of JSON each
        #[arg(long, required = true)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
struct CliAnswer {
    /// The question, by its id; what stands before the - may be shortened
    #[arg(value_name = "ID")]
    id: String,

    /// The answer: approve, session, grant, grant-session, rule, deny or abort
    #[arg(value_name = "ANSWER")]
    answer: String,

    /// What the model is told beside a no
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

/// What `sandgate approvals` is to do.
#[derive(Debug)]
pub(crate) struct ApprovalsArguments {
    pub(super) verb: Verb,
}

#[derive(Debug)]
pub(super) enum Verb {
    AtTerminal,
    List { json: bool },
    Answer { id: String, decision: ReviewDecision },
    Watch,
}

/// The longest feedback, in bytes.
const LONGEST_FEEDBACK: usize = 32 * 1024;

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliApprovals) -> Result<ApprovalsArguments, clap::Error> {
    let wrong = |message: String| usage_error("approvals answer", ErrorKind::InvalidValue, message);
    let verb = match cli.verb {
        None => Verb::AtTerminal,
        Some(CliVerb::List { json }) => Verb::List { json },
        Some(CliVerb::Watch { json: _ }) => Verb::Watch,
        Some(CliVerb::Answer(CliAnswer { id, answer, feedback })) => {
            let decision = match (decision(&answer), feedback) {
                _ if id.is_empty() => return Err(wrong("name the question".to_owned())),
                (Some(ReviewDecision::Denied { feedback: None }), feedback) => {
                    ReviewDecision::Denied { feedback }
                }
                (Some(decision), None) if !answer.trim().contains(char::is_whitespace) => decision,
                (Some(_), Some(_)) => {
                    return Err(wrong("--feedback goes with deny only".to_owned()));
                }
                _ => {
                    let message = format!(
                        "{answer:?} is no answer; write approve, session, grant, grant-session, rule, \
                         deny or abort"
                    );
                    return Err(wrong(message));
                }
            };
            if let ReviewDecision::Denied { feedback: Some(text) } = &decision
                && text.len() > LONGEST_FEEDBACK
            {
                return Err(wrong(format!("the feedback is longer than {LONGEST_FEEDBACK} bytes")));
            }
            Verb::Answer { id, decision }
        }
    };
    Ok(ApprovalsArguments { verb })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::tests::understood;

    fn answered(words: &[&str]) -> Option<ReviewDecision> {
        let words = [&["approvals", "answer", "1a2b-1"], words].concat();
        match understood(&words) {
            Ok(crate::arguments::Verb::Approvals(ApprovalsArguments {
                verb: Verb::Answer { decision, .. },
            })) => Some(decision),
            _ => None,
        }
    }

    #[test]
    fn an_answer_is_one_word_and_feedback_goes_with_a_no() {
        assert_eq!(answered(&["approve"]), Some(ReviewDecision::Approved));
        assert_eq!(answered(&["rule"]), Some(ReviewDecision::ApprovedWithRule));
        let no = ReviewDecision::Denied { feedback: Some("use make".to_owned()) };
        assert_eq!(answered(&["deny", "--feedback", "use make"]), Some(no));
        for words in [
            &["maybe"][..],
            &["approve", "--feedback", "x"],
            &["deny x", "--feedback", "y"],
            &["approve it"],
            &[],
        ] {
            assert_eq!(answered(words), None, "{words:?}");
        }
    }
}
