//! `sandgate review`: a subagent that looks at a change and changes nothing.

mod arguments;
mod change;

pub(crate) use arguments::{CliReview, ReviewArguments, understand};

use crate::agent::{PreparedAgent, start};
use crate::decide::{Decider, Feedback, lay_on_desk};
use crate::exec::{Show, Watch};
use crate::session::PreparedSession;
use crate::signals::Signals;
use crate::{exit, notes};
use change::change;
use sandgate_agent::{
    Changes, Conversation, ConversationOptions, Finding, Provider, Review, ReviewSubject, TurnEnd,
    read_review, review_input, review_options,
};
use sandgate_protocol::{
    AskForApproval, SIGNAL_INTERRUPT, SandboxPolicy, SessionSource, SubAgentSource, visible,
    visible_line,
};
use sandgate_runtime::{
    BrokenPatches, ChildTerms, ChildTools, Delivery, Requester, Runtime, Session, Stop, TurnDiffs,
};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

/// Has the change reviewed and says how this program is to end.
pub(crate) fn review(arguments: ReviewArguments) -> ExitCode {
    let prepared = arguments.session.prepare().and_then(|session| {
        let mut model = arguments.model.clone();
        model.model = model.model.or_else(|| session.settings.settings().review_model.clone());
        let agent = model.prepare(&session, SessionSource::SubAgent(SubAgentSource::Review))?;
        Ok((session, agent))
    });
    let (session, agent) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    if agent.is_offline() {
        let advice = "name one in your settings, or with --provider and --model";
        let _ = io::stderr().write_all(&notes::error("a review needs a model", Some(advice)));
        return ExitCode::from(exit::FAILED);
    }
    let (collector, keys) = (session.collector.clone(), Arc::clone(&agent.keys));
    let code =
        start(collector.as_deref(), &keys, |runtime| work(runtime, arguments, session, agent));
    let code = code.unwrap_or_else(|error| {
        complain(&error.to_string());
        exit::FAILED
    });
    ExitCode::from(code)
}

async fn work(
    runtime: Arc<Runtime>,
    arguments: ReviewArguments,
    prepared: PreparedSession,
    agent: PreparedAgent,
) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let mut config = prepared.config;
    config.front_end = "review".to_owned();
    // It changes nothing, and what a repository has git run cannot either.
    config.sandbox_policy = SandboxPolicy::ReadOnly;
    config.broken_patches = BrokenPatches::Left;
    config.turn_diffs = TurnDiffs::Off;
    config.subagents.depth = config.subagents.depth.max(1);
    config.subagents.at_once = config.subagents.at_once.max(1);
    let session = Session::start(runtime, config).map_err(io::Error::other)?;
    let decide = arguments.session.decide();
    let decider = Decider::new(&decide, Feedback::Model)?;
    let approver = decider.can_answer().then(|| session.approver(decide.answering()));
    let _on_desk = lay_on_desk(&session, &decide, &decider, None).await?;
    let mut watch = Watch::new(Show::new(None), decider, approver, stop.clone());
    let reviewing =
        look(session.requester(), agent.provider, agent.options, arguments.subject, stop);
    let events = session.events(Delivery::Complete).await;
    let looked = watch.until(events, reviewing).await?;
    if let Some(signal) = signals.received() {
        complain("called off");
        return Ok(exit::of_signal(signal));
    }
    match looked {
        Looked::Failed(_) if watch.is_nobody_there() => {
            complain("a decision was needed and nobody could give it; see --decide");
            Ok(exit::NOBODY_DECIDED)
        }
        Looked::Failed(why) => {
            complain(&visible_line(&why));
            Ok(exit::FAILED)
        }
        Looked::CalledOff => {
            complain("called off");
            Ok(exit::of_signal(SIGNAL_INTERRUPT))
        }
        Looked::NothingChanged => {
            note("there is nothing to review");
            let summary = "there is nothing to review".to_owned();
            print(&Review { summary, findings: Vec::new() }, arguments.json)
        }
        Looked::Answered(answer, changes) => match read_review(&answer, &changes) {
            Some(review) => {
                note(&visible_line(&review.summary));
                print(&review, arguments.json)
            }
            None => {
                let said: String = answer.chars().take(MOST_SHOWN).collect();
                let _ = io::stderr().write_all(format!("{}\n", visible(&said)).as_bytes());
                complain(match said.len() < answer.len() {
                    true => "the model did not answer with findings; it began as stands above",
                    false => "the model did not answer with findings; it said what stands above",
                });
                Ok(exit::FAILED)
            }
        },
    }
}

/// How many characters are shown of an answer that has no findings in it.
const MOST_SHOWN: usize = 10_000;

/// What came of looking at the change.
enum Looked {
    NothingChanged,
    Answered(String, Changes),
    CalledOff,
    Failed(String),
}

/// Has a subagent look at the change, in a session that can change nothing and ask for nothing.
async fn look(
    requester: Requester,
    provider: Arc<dyn Provider>,
    options: ConversationOptions,
    subject: ReviewSubject,
    stop: Stop,
) -> Looked {
    let changes = match change(&requester, &subject, &stop).await {
        Ok(changes) => changes,
        Err(_) if stop.cancel.is_cancelled() => return Looked::CalledOff,
        Err(why) => return Looked::Failed(why),
    };
    if changes.diff.trim().is_empty() && changes.new_files.is_empty() {
        return Looked::NothingChanged;
    }
    let child = requester.child(ChildTerms {
        approval_policy: Some(AskForApproval::Never),
        tools: ChildTools::ReadOnly,
        ..ChildTerms::new(SubAgentSource::Review)
    });
    let child = match child {
        Ok(child) => child,
        Err(error) => return Looked::Failed(error.to_string()),
    };
    let mut conversation = Conversation::start(child, provider, review_options(&options));
    match conversation.turn(review_input(&subject, &changes), &stop.child()).await {
        TurnEnd::Complete { last_message } => {
            Looked::Answered(last_message.unwrap_or_default(), changes)
        }
        TurnEnd::Aborted => Looked::CalledOff,
        TurnEnd::Limit(why) => Looked::Failed(why),
        TurnEnd::Failed(error) => Looked::Failed(error.to_string()),
    }
}

/// Has what is not committed looked at in a session that goes on, and says what was found as markdown.
///
/// # Errors
/// When nothing could be said, with the reason.
pub(crate) async fn look_at_uncommitted(
    requester: Requester,
    provider: Arc<dyn Provider>,
    options: ConversationOptions,
    stop: Stop,
) -> Result<String, String> {
    match look(requester, provider, options, ReviewSubject::Uncommitted, stop).await {
        Looked::NothingChanged => Ok("There is nothing to review.".to_owned()),
        Looked::CalledOff => Err("the review was called off".to_owned()),
        Looked::Failed(why) => Err(why),
        Looked::Answered(answer, changes) => Ok(match read_review(&answer, &changes) {
            Some(review) => {
                let mut text = format!("**Review:** {}\n\n", review.summary);
                for finding in review.findings.iter().map(shown) {
                    // A line of its own ends the block, and no finding has one.
                    let finding = in_words(&finding).replace("```", "` ` `");
                    text += &format!("```\n{finding}```\n");
                }
                text
            }
            None => answer,
        }),
    }
}

/// Prints the findings, and finds the exit code.
fn print(review: &Review, json: bool) -> io::Result<u8> {
    let shown = Review {
        summary: visible(&review.summary),
        findings: review.findings.iter().map(shown).collect(),
    };
    let mut stdout = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut stdout, &shown)?;
        stdout.write_all(b"\n")?;
    } else {
        for finding in &shown.findings {
            stdout.write_all(in_words(finding).as_bytes())?;
        }
    }
    stdout.flush()?;
    Ok(if shown.findings.is_empty() { 0 } else { exit::FOUND })
}

/// A finding in which everything shows itself: its model has read what somebody else wrote.
fn shown(finding: &Finding) -> Finding {
    Finding {
        path: visible_line(&finding.path),
        title: visible_line(&finding.title),
        body: visible(&finding.body),
        ..finding.clone()
    }
}

fn in_words(finding: &Finding) -> String {
    let Finding { priority, path, line, title, body, doubt } = finding;
    let place = match (path.is_empty(), line) {
        (true, _) => "somewhere".to_owned(),
        (false, Some(line)) => format!("{path}:{line}"),
        (false, None) => path.clone(),
    };
    let mut text = format!("{place}: [{priority:?}] {title}\n");
    if let Some(doubt) = doubt {
        text += &format!("    ({doubt})\n");
    }
    for line in body.lines() {
        // Further lines cannot be taken for findings.
        text += &format!("    {line}\n");
    }
    text
}

/// Says something on standard error, if anybody can hear it there.
fn note(what: &str) {
    let _ = io::stderr().write_all(&notes::status(what));
}

fn complain(what: &str) {
    let _ = io::stderr().write_all(&notes::error(what, None));
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_agent::Priority;

    #[test]
    fn nothing_in_a_finding_looks_like_another_one() {
        let hostile = Finding {
            priority: Priority::P1,
            path: "a\nb".to_owned(),
            line: Some(3),
            title: "x\u{1b}[2J\ny".to_owned(),
            body: "first\nsrc/a.rs:1: [P0] second".to_owned(),
            doubt: None,
        };
        let text = in_words(&shown(&hostile));
        let begins: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(begins, [r"a\nb:3: [P1] x\u{1b}[2J\ny"]);
    }
}
