//! Two hundred commands at once, each printing 1 MiB of its own, each complete and exact.

use super::bare;
use super::library::{self, Library};
use super::progress::Progress;
use super::row::Row;
use super::samples::by_turns;
use super::session::Session;
use anyhow::Context as _;
use sandgate_process::{ExecuteOptions, Spawner};
use sandgate_sandbox::ExecEnv;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;

const COMMANDS: usize = 200;

/// What each prints.
const BYTES: usize = 1 << 20;

/// Each begins this much further into the same file, so that no two print the same.
const STEP: usize = 4096;

pub(super) fn measure(session: &mut Session) {
    for content in [Content::Text, Content::Bytes] {
        let what = format!("{COMMANDS} commands, 1 MiB of {content} each, at once");
        session.take(&what, |session, progress| all_at_once(&what, content, session, progress));
    }
}

/// What the commands print. Text is the usual case; what is no text must be told apart from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Bytes,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Bytes => "bytes that are no text",
        })
    }
}

fn all_at_once(
    what: &str,
    content: Content,
    session: &Session,
    progress: &Progress,
) -> anyhow::Result<Vec<Row>> {
    let library = Library::start()?;
    let dd = bare::find("dd")?;
    let directory = session.scratch()?;
    let file = directory.path().join("noise");
    let noise: Arc<[u8]> = noise(content, BYTES + COMMANDS * STEP).into();
    std::fs::write(&file, &noise)?;
    let args: Vec<Vec<String>> =
        (0..COMMANDS).map(|index| window(&file, index)).collect::<Result<_, _>>()?;
    let envs: Vec<Arc<ExecEnv>> = args
        .iter()
        .map(|args| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            Ok(Arc::new(library::granted(&dd, &args)?))
        })
        .collect::<anyhow::Result<_>>()?;
    let pair = by_turns(
        session.times(9, 2),
        progress,
        || library.runtime.block_on(run_all(&library.spawner, &envs, &noise)),
        || run_on_threads(&dd, &args, &noise),
    )?;
    Ok(vec![Row::of_times(what, "one thread and std Command each", &pair)])
}

async fn run_all(
    spawner: &Spawner,
    envs: &[Arc<ExecEnv>],
    noise: &Arc<[u8]>,
) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for (index, env) in envs.iter().enumerate() {
        let (spawner, env, noise) = (spawner.clone(), Arc::clone(env), Arc::clone(noise));
        running.spawn(async move {
            let executed = library::run(&spawner, &env, ExecuteOptions::default()).await?;
            let stdout = executed.raw.stdout;
            let (head, tail) = expected(&noise, index)?
                .split_at_checked(stdout.head().len())
                .context("a command wrote too much")?;
            anyhow::ensure!(
                stdout.head() == head && stdout.tail() == tail,
                "command {index} of {COMMANDS}: its output is not what it wrote"
            );
            Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

fn run_on_threads(dd: &Path, args: &[Vec<String>], noise: &[u8]) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = args
            .iter()
            .enumerate()
            .map(|(index, args)| {
                scope.spawn(move || {
                    let output = bare::output_of(dd, args)?;
                    anyhow::ensure!(output == expected(noise, index)?, "wrong bytes");
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(_) => anyhow::bail!("a thread of the reference panicked"),
        })
    })
}

/// The arguments by which `dd` prints one window of the file.
fn window(file: &Path, index: usize) -> anyhow::Result<Vec<String>> {
    Ok(vec![
        format!("if={}", bare::text(file)?),
        format!("bs={STEP}"),
        format!("skip={index}"),
        format!("count={}", BYTES / STEP),
        "status=none".to_owned(),
    ])
}

fn expected(noise: &[u8], index: usize) -> anyhow::Result<&[u8]> {
    noise.get(index * STEP..index * STEP + BYTES).context("the noise is too short")
}

/// Content without a pattern that a mistake could hide in, the same in every run.
fn noise(content: Content, length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let bytes = std::iter::from_fn(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_ne_bytes())
    });
    let bytes = bytes.flatten().take(length);
    match content {
        Content::Bytes => bytes.collect(),
        Content::Text => bytes.enumerate().map(|(at, byte)| letter(at, byte)).collect(),
    }
}

/// A letter in a line of 80.
fn letter(at: usize, byte: u8) -> u8 {
    if at % 80 == 79 { b'\n' } else { b'a' + byte % 26 }
}
