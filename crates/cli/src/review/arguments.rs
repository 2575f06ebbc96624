//! What may follow `sandgate review`: first parsed, then made sense of.

use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::decide::Decide;
use crate::session::CliSession;
use clap::error::ErrorKind;
use sandgate_agent::ReviewSubject;

const HELP: &str = "\
Examples:
  sandgate review                       what is not committed yet
  sandgate review --base main           all that was changed since the work left main
  sandgate review --commit HEAD~1       one commit
  sandgate review --json | jq           for programs: one object with all findings

A model looks at the change in a read-only sandbox and can ask for nothing else. Findings go to standard
output, the worst first, as path:line: [P1] title; what it does on the way is shown on standard error. A
finding whose place the change does not touch is marked.

Exit codes: 0 when nothing was found, 1 when something was; 77 when a decision was needed and nobody could
give it; 130 when you called it off; 125 when the model could not be asked, did not answer, or sandgate
itself failed; 2 if this command line makes no sense.";

/// The longest name of a revision.
const LONGEST_REVISION: usize = 256;

/// What may follow `sandgate review`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliReview {
    /// Review all that was changed since the work left this revision, committed or not
    #[arg(long, value_name = "REV", conflicts_with_all = ["commit", "uncommitted"])]
    base: Option<String>,

    /// Review this commit
    #[arg(long, value_name = "REV", conflicts_with = "uncommitted")]
    commit: Option<String>,

    /// Review what is not committed yet; this is what happens without any of these
    #[arg(long)]
    uncommitted: bool,

    #[command(flatten)]
    model: CliModel,

    #[command(flatten)]
    session: CliSession,

    /// Print the findings as one JSON object
    #[arg(long)]
    json: bool,
}

/// What `sandgate review` is to do.
#[derive(Debug)]
pub(crate) struct ReviewArguments {
    pub(super) subject: ReviewSubject,
    pub(super) model: CliModel,
    pub(super) session: CliSession,
    pub(super) json: bool,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(review: CliReview) -> Result<ReviewArguments, clap::Error> {
    let wrong = |message: String| usage_error("review", ErrorKind::ValueValidation, message);
    review.session.check().map_err(wrong)?;
    if review.session.decide() == Decide::ByLines {
        let message = "--decide stdin is for sandgate call; write ./stdin for a file of that name";
        return Err(wrong(message.to_owned()));
    }
    let subject = match (review.base, review.commit) {
        (Some(base), _) => ReviewSubject::Base(revision(base).map_err(wrong)?),
        (None, Some(commit)) => ReviewSubject::Commit(revision(commit).map_err(wrong)?),
        (None, None) => ReviewSubject::Uncommitted,
    };
    let CliReview { model, session, json, .. } = review;
    Ok(ReviewArguments { subject, model, session, json })
}

/// A revision that git cannot take for an option.
fn revision(name: String) -> Result<String, String> {
    let is_one = !name.is_empty()
        && !name.starts_with('-')
        && name.len() <= LONGEST_REVISION
        && !name.chars().any(char::is_control);
    match is_one {
        true => Ok(name),
        false => Err("a revision is a name such as main, HEAD~1 or 1a2b3c4".to_owned()),
    }
}
