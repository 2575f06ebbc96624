//! Two hundred commands at once, each printing 1 MiB of its own, each complete and exact.

use super::bare;
use super::library::{self, Library};
use super::progress::Progress;
use super::row::Row;
use super::samples::by_turns_timed;
use super::session::Session;
use anyhow::Context as _;
use sandgate_process::{ExecuteOptions, RawStream, Spawner};
use sandgate_sandbox::ExecEnv;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

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
    let noise = noise(content, BYTES + COMMANDS * STEP);
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
    let pair = by_turns_timed(
        session.times(5, 1),
        progress,
        || {
            let began = Instant::now();
            let streams = library.runtime.block_on(run_all(&library.spawner, &envs))?;
            let time = began.elapsed();
            let outputs = streams.iter().map(|stream| [&stream.head()[..], stream.tail()]);
            ensure_exact(&noise, outputs)?;
            Ok(time)
        },
        || {
            let began = Instant::now();
            let outputs = run_on_threads(&dd, &args)?;
            let time = began.elapsed();
            ensure_exact(&noise, outputs.iter().map(|output| [&output[..], &[]]))?;
            Ok(time)
        },
    )?;
    Ok(vec![Row::of_times(what, "one thread and std Command each", &pair)])
}

/// What each command wrote, in their order.
async fn run_all(spawner: &Spawner, envs: &[Arc<ExecEnv>]) -> anyhow::Result<Vec<RawStream>> {
    let running: Vec<_> = envs
        .iter()
        .map(|env| {
            let (spawner, env) = (spawner.clone(), Arc::clone(env));
            tokio::spawn(
                async move { library::run(&spawner, &env, ExecuteOptions::default()).await },
            )
        })
        .collect();
    let mut streams = Vec::new();
    for command in running {
        streams.push(command.await??.raw.stdout);
    }
    Ok(streams)
}

/// The same by the standard library.
fn run_on_threads(dd: &Path, args: &[Vec<String>]) -> anyhow::Result<Vec<Vec<u8>>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            args.iter().map(|args| scope.spawn(move || bare::output_of(dd, args))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(output) => output,
            Err(_) => anyhow::bail!("a thread of the reference panicked"),
        };
        threads.into_iter().map(join).collect()
    })
}

/// Holds the output of each command, in two parts, against its window of the noise.
fn ensure_exact<'a>(
    noise: &[u8],
    outputs: impl Iterator<Item = [&'a [u8]; 2]>,
) -> anyhow::Result<()> {
    let mut count = 0;
    for (index, [head, tail]) in outputs.enumerate() {
        let expected =
            noise.get(index * STEP..index * STEP + BYTES).context("too short a noise")?;
        let exact = expected.strip_prefix(head) == Some(tail);
        anyhow::ensure!(exact, "the output of command {index} of {COMMANDS} is not exact");
        count += 1;
    }
    anyhow::ensure!(count == COMMANDS, "only {count} of {COMMANDS} commands have output");
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_exact_only_when_every_byte_of_every_command_is_there() {
        let noise = noise(Content::Text, BYTES + COMMANDS * STEP);
        let window = |index: usize| &noise[index * STEP..index * STEP + BYTES];
        let all: Vec<_> = (0..COMMANDS).map(|index| window(index).split_at(BYTES / 2)).collect();
        let parts = || all.iter().map(|(head, tail)| [*head, *tail]);
        assert!(ensure_exact(&noise, parts()).is_ok());
        assert!(ensure_exact(&noise, parts().skip(1)).is_err());
        assert!(ensure_exact(&noise, parts().take(COMMANDS - 1)).is_err());
        assert!(ensure_exact(&noise, parts().map(|[head, tail]| [head, &tail[1..]])).is_err());
    }
}
