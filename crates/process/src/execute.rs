//! Runs one command from start to end and gives back what it left.

use crate::drive::{Finished, OutputSink, Stragglers, drive};
use crate::error::SpawnError;
use crate::handle::Exit;
use crate::output::{HeadTailBuffer, OutputCapture, RawOutput, Spill, SpillPolicy, SpillReport};
use crate::spawner::{Spawner, Stdin};
use crate::stop::{Cause, Step, Stop, Watch};
use crate::sys::{Held, Launched, Stdio};
use sandgate_protocol::{
    Denials, EXIT_CODE_TIMEOUT, ExecToolCallOutput, OutputStream, SIGNAL_INTERRUPT,
};
use sandgate_sandbox::ExecEnv;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// How a command is run.
#[derive(Debug, Clone)]
pub struct ExecuteOptions {
    /// Where it reads from.
    pub stdin: Stdin,
    /// What becomes of what it leaves behind.
    pub stragglers: Stragglers,
    /// How much of each stream is kept in memory.
    pub stream_bytes: usize,
    /// Where all of the output goes when it is more than that; `None` to keep only head and tail.
    pub spill: Option<SpillPolicy>,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            stdin: Stdin::Null,
            stragglers: Stragglers::Kill,
            stream_bytes: HeadTailBuffer::STREAM_MAX_BYTES,
            spill: None,
        }
    }
}

/// A command that has run.
#[derive(Debug)]
pub struct Executed {
    /// The result.
    pub output: ExecToolCallOutput,
    /// The bytes behind its text.
    pub raw: RawOutput,
    /// The file that holds all of them, if they were too many.
    pub spill: Option<SpillReport>,
    /// Whether it had namespaces of its own.
    pub namespaces: bool,
    /// Whether all that was refused to it is known.
    pub supervised: bool,
}

/// Runs a command to its end, to its time limit, or until `stop` says so. Whatever happens, what it
/// wrote until then is in the result, and `sink` was given it as it came.
///
/// # Errors
/// When the command could not be started.
///
/// A worked example is on the [first page](crate).
pub async fn execute(
    spawner: &Spawner,
    env: &ExecEnv,
    options: ExecuteOptions,
    stop: &Stop,
    sink: &mut impl OutputSink,
) -> Result<Executed, SpawnError> {
    let mut watch = Watch::new(stop, env.expiration());
    let mut recorder = Recorder {
        capture: OutputCapture::new(options.stream_bytes),
        spill: options.spill.map(Spill::new),
        sink,
    };
    tokio::select! {
        biased;
        // A call that was cancelled before it began starts nothing.
        step = watch.step() => return Ok(recorder.finish(never_started(step)).await),
        () = std::future::ready(()) => {}
    }
    let launch = spawner.launch(env, Stdio::Pipes(options.stdin));
    tokio::pin!(launch);
    let launched = tokio::select! {
        launched = &mut launch => launched?,
        // It runs in a moment, and is then ended like any other; if it does not, dropping it is the
        // end of it.
        step = watch.step() => match timeout(LAUNCH, launch).await {
            Ok(launched) => {
                let launched = launched?;
                if let Step::Interrupt = step {
                    // It is told once.
                    launched.job.signal(SIGNAL_INTERRUPT);
                }
                launched
            }
            Err(_) => return Ok(recorder.finish(never_started(step)).await),
        },
    };
    let Launched { job, stdout, stderr, .. } = launched;
    let readers = [stdout, stderr];
    let finished = drive(job, readers, &mut recorder, watch, options.stragglers, |_| {}).await;
    Ok(recorder.finish(finished).await)
}

/// How long a launch that is called off may take to come to its end.
const LAUNCH: Duration = Duration::from_millis(500);

/// The end of a command that was called off before its program ran.
fn never_started(step: Step) -> Finished {
    let cause = match step {
        Step::Interrupt => Cause::Cancelled,
        Step::Kill(cause) => cause,
    };
    Finished {
        exit: Exit::KILLED,
        cause: Some(cause),
        pipes_still_open: false,
        left_running: 0,
        duration: Duration::ZERO,
        held: Held::default(),
        denials: Denials::default(),
    }
}

/// Keeps what a command writes, and passes it on.
struct Recorder<'a, S> {
    capture: OutputCapture,
    spill: Option<Spill>,
    sink: &'a mut S,
}

impl<S: OutputSink> OutputSink for Recorder<'_, S> {
    async fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        if let Some(spill) = &mut self.spill {
            spill.observe(self.capture.aggregated(), bytes).await;
        }
        self.capture.push(stream, bytes);
        self.sink.write(stream, bytes).await
    }
}

impl<S> Recorder<'_, S> {
    async fn finish(self, finished: Finished) -> Executed {
        let spill = match self.spill {
            Some(spill) => spill.finish().await,
            None => None,
        };
        let spilled = spill.as_ref().map(SpillReport::spilled);
        let raw = self.capture.finish();
        let timed_out = finished.cause == Some(Cause::Timeout);
        let exit = finished.exit;
        let output = ExecToolCallOutput {
            exit_code: if timed_out { EXIT_CODE_TIMEOUT } else { exit.code() },
            signal: if timed_out { None } else { exit.signal() },
            stdout: raw.stdout.to_stream_output(None),
            stderr: raw.stderr.to_stream_output(None),
            aggregated_output: raw.aggregated.to_stream_output(spilled),
            duration: finished.duration,
            timed_out,
            cancelled: finished.cause == Some(Cause::Cancelled),
            pipes_still_open: finished.pipes_still_open,
            left_running: finished.left_running,
            denials: finished.denials,
        };
        let Held { namespaces, supervised } = finished.held;
        Executed { output, raw, spill, namespaces, supervised }
    }
}
