//! How long a live process takes to answer: from `echo hi` typed until the complete reply, for shells,
//! prompts and readers, and the same by hand and by a peer.

mod peers;
mod postgres;
mod program;
mod tools;

use super::library::{self, Library, Nowhere};
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::Samples;
use super::session::Session;
use super::{bare, session};
use anyhow::Context as _;
use sandgate_process::{Deed, LiveOptions, Patience, UnifiedExecProcess};
use sandgate_protocol::ReturnReason;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A program, what is typed to it in each round, and what must be in the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talk {
    pub(super) name: &'static str,
    pub(super) command: &'static [&'static str],
    pub(super) line: &'static str,
    pub(super) answer: &'static str,
    /// The longest median, where one was promised.
    pub(super) most: Option<Duration>,
}

const fn talk(
    name: &'static str,
    command: &'static [&'static str],
    line: &'static str,
    answer: &'static str,
) -> Talk {
    Talk { name, command, line, answer, most: Some(Duration::from_millis(3)) }
}

const TALKS: &[Talk] = &[
    talk("bash", &["bash", "-i"], "echo hi\n", "hi\n"),
    talk("zsh", &["zsh", "-i"], "echo hi\n", "hi\n"),
    // The prompt that it comes with runs git each time, which takes longer than all the rest.
    talk(
        "fish",
        &["fish", "-i", "-C", "function fish_prompt; echo 'ready> '; end"],
        "echo hi\n",
        "hi\n",
    ),
    Talk { most: None, ..talk("fish with its own prompt", &["fish", "-i"], "echo hi\n", "hi\n") },
    talk("python3", &["python3", "-q"], "print('h' + 'i')\n", "hi\n"),
    talk("sqlite3", &["sqlite3"], "select 'h' || 'i';\n", "hi\n"),
    talk("gdb", &["gdb", "-q", "-nx"], "print 6 * 7\n", "= 42\n"),
    talk("cat", &["cat"], "hi\n", "hi\nhi\n"),
    talk("read", &["bash", "-c", "while read x; do echo $x; done"], "hi\n", "hi\nhi\n"),
    Talk {
        most: Some(Duration::from_millis(8)),
        ..talk("node", &["node", "-i"], "'h' + 'i'\n", "'hi'\n")
    },
];

/// Answers later than this are rare.
const P99: Duration = Duration::from_millis(15);

pub(super) fn measure(session: &mut Session) {
    for place in [tools::Place::Caged, tools::Place::Free] {
        for talk in TALKS {
            let what = format!("{}, {}", talk.name, place.words());
            session.take(&what, |session, progress| {
                bare::find(talk.command[0])?;
                let times = tools::rounds(place, talk, rounds(session), progress)?;
                Ok(vec![row(&what, talk.most, &times)])
            });
        }
    }
    // Its server is started outside, and so out of the cage's reach.
    let place = tools::Place::Free;
    let what = format!("psql, {}", place.words());
    session.take(&what, |session, progress| {
        let times = postgres::rounds(place, rounds(session), session, progress)?;
        Ok(vec![row(&what, Some(Duration::from_millis(3)), &times)])
    });
    session.take("bash without marks, UnifiedExecProcess", by_library);
    session.take("bash, sandgate call -", program::measure);
    session.take("by hand, and by others", |session, _| peers::measure(session, rounds(session)));
}

/// Lines to a bash in the cage, through the tools of a session.
pub(super) fn caged_bash(rounds: usize, progress: &Progress) -> anyhow::Result<Samples> {
    tools::rounds(tools::Place::Caged, &TALKS[0], rounds, progress)
}

/// The same by hand and by others.
pub(super) fn by_others(
    session: &Session,
    rounds: usize,
    _: &Progress,
) -> anyhow::Result<Vec<Row>> {
    peers::measure(session, rounds)
}

fn rounds(session: &Session) -> usize {
    session.times(500, 50)
}

/// A row of answers, which keeps its promise only if the late ones do too.
fn row(what: &str, most: Option<Duration>, times: &Samples) -> Row {
    let row = Row::new(what, times.median().into())
        .detail("p99", times.p99().into())
        .detail("worst", times.most().into());
    let Some(most) = most else { return row };
    let row = row.target(Target::Within(Quantity::from(most)));
    if times.p99() > P99 { row.unmet() } else { row }
}

/// The process layer alone, and a shell that prints no marks.
fn by_library(session: &session::Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let bash = bare::find("bash")?;
    let env = library::granted(&bash, &["--norc", "-i"])?;
    let rounds = rounds(session);
    let times = library.runtime.block_on(async {
        let options = LiveOptions::default();
        let on_end = |_, _| async {};
        let spawner = &library.spawner;
        let live = UnifiedExecProcess::start(spawner, &env, options, Nowhere, on_end).await?;
        let cancel = CancellationToken::new();
        let patience = Patience { limit: Duration::from_secs(30), pattern: None, cancel: &cancel };
        live.answer(live.now(), patience).await;
        let mut times = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let began = Instant::now();
            let moment = live.moment(Deed::Typing);
            live.type_in("echo h'i'\n".into(), patience.limit).await;
            let answered = live.answer(moment, patience).await;
            times.push(began.elapsed());
            let text = answered.printed.text.to_stream_output(None).text;
            anyhow::ensure!(
                answered.reason == ReturnReason::WaitingForInput && text.contains("hi\r\n"),
                "answered {:?} with {text:?}",
                answered.reason
            );
            progress.step(round + 1, rounds);
        }
        Ok(times)
    });
    let times = Samples::new(times.context("a live process")?)?;
    let what = "bash without marks, UnifiedExecProcess";
    Ok(vec![row(what, Some(Duration::from_millis(3)), &times)])
}
