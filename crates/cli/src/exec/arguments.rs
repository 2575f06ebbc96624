//! What may follow `sandgate exec`: first parsed, then made sense of.

use crate::agent::CliModel;
use crate::arguments::{Verb, usage_error};
use crate::decide::Decide;
use crate::session::CliSession;
use crate::tui::TuiArguments;
use base64::Engine as _;
use clap::error::ErrorKind;
use sandgate_agent::UserInput;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  sandgate exec 'fix the failing test'            with the model of your settings
  sandgate exec --provider ollama -m qwen3 'why is the build slow?'
  sandgate exec '$ make test'                     without any model: proposes what stands after $
  git diff | sandgate exec -                      the prompt from standard input
  sandgate exec --json 'list the todos' | jq      for programs: one event a line

What the model does is shown on standard error as it happens; its last answer goes to standard output.
Commands and patches go through the gate, and you are asked at your terminal where that is needed.

Exit codes: 0 when the model has ended its turn; 1 when it could not be asked, or took more than your
settings allow; 77 when a decision was needed and nobody could give it; 130 when you called it off;
125 if sandgate itself failed; 2 if this command line or your settings make no sense.";

const RESUME_HELP: &str = "\
Examples:
  sandgate resume --last                      goes on with the last conversation, in the terminal interface
  sandgate resume --last 'now the tests'      with one prompt, as sandgate exec does
  sandgate resume 01a1e495-5d6a 'now the tests'    with the one whose id begins like this

It works where it worked before, unless --cd says otherwise, and with the same model and provider, unless
--model or --provider do. Policies are those of your settings now. Exit codes are those of sandgate exec.";

/// The longest prompt that is read, in bytes.
const LONGEST_PROMPT: u64 = 1024 * 1024;
/// The largest picture that is read, in bytes.
const LARGEST_IMAGE: u64 = 20 * 1024 * 1024;
/// The largest schema that is read, in bytes.
const LARGEST_SCHEMA: u64 = 1024 * 1024;

/// What may follow `sandgate exec`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliExec {
    /// What the model is to do, or - to read it from standard input
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    #[command(flatten)]
    work: CliWork,

    /// Do not write this conversation down
    #[arg(long)]
    ephemeral: bool,
}

/// What may follow `sandgate resume`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = RESUME_HELP,
    override_usage = "sandgate resume [OPTIONS] ID [PROMPT]\n       sandgate resume [OPTIONS] --last [PROMPT]"
)]
pub(crate) struct CliResume {
    /// The conversation, by its id or the beginning of it; and what the model is to do, or - to read
    /// that from standard input
    #[arg(value_name = "ID PROMPT", num_args = 0..=2)]
    words: Vec<String>,

    /// The one that was last at work
    #[arg(long)]
    last: bool,

    #[command(flatten)]
    work: CliWork,
}

/// What may be said about the work of a model.
#[derive(Debug, clap::Args)]
pub(crate) struct CliWork {
    #[command(flatten)]
    model: CliModel,

    #[command(flatten)]
    session: CliSession,

    /// Show the model this picture; can be repeated
    #[arg(long, short = 'i', value_name = "FILE")]
    image: Vec<PathBuf>,

    /// Write the model's last answer to this file too
    #[arg(long, short = 'o', value_name = "FILE")]
    output_last_message: Option<PathBuf>,

    /// Have the last answer be JSON of this schema
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Print every event as a JSON line, and nothing else, to standard output
    #[arg(long)]
    json: bool,
}

impl CliWork {
    /// Whether a person is there to say what comes next, and nothing here is for one prompt only.
    fn is_for_a_person(&self) -> bool {
        let for_one = self.json
            || !self.image.is_empty()
            || self.output_last_message.is_some()
            || self.output_schema.is_some()
            || self.session.decide.is_some();
        !for_one && io::stdin().is_terminal() && io::stdout().is_terminal()
    }
}

/// What `sandgate exec` or `sandgate resume` is to do.
#[derive(Debug)]
pub(crate) struct ExecArguments {
    pub(super) input: UserInput,
    pub(super) model: CliModel,
    pub(super) session: CliSession,
    pub(super) output_last_message: Option<PathBuf>,
    pub(super) output_schema: Option<serde_json::Value>,
    pub(super) json: bool,
    pub(super) conversation: Which,
}

/// Which conversation the work belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// A new one, that is written down.
    New,
    /// A new one that leaves nothing behind.
    Ephemeral,
    /// The one that was last at work.
    Last,
    /// The one whose id begins like this.
    Named(String),
}

/// Turns what was written into what is meant.
pub(crate) fn understand(exec: CliExec) -> Result<ExecArguments, clap::Error> {
    let conversation = if exec.ephemeral { Which::Ephemeral } else { Which::New };
    understand_work("exec", exec.work, exec.prompt, conversation)
}

/// Turns what was written into what is meant.
pub(crate) fn understand_resume(resume: CliResume) -> Result<Verb, clap::Error> {
    let mut words = resume.words.into_iter();
    let conversation = match resume.last {
        true => Which::Last,
        false => Which::Named(words.next().ok_or_else(|| {
            let message =
                "name the conversation, or write --last; sandgate sessions list shows them";
            usage_error("resume", ErrorKind::MissingRequiredArgument, message.to_owned())
        })?),
    };
    let prompt = words.next();
    match words.next() {
        None if prompt.is_none() && resume.work.is_for_a_person() => {
            let CliWork { model, session, .. } = resume.work;
            TuiArguments::going_on(conversation, model, session).map(Box::new).map(Verb::Tui)
        }
        None => understand_work("resume", resume.work, prompt, conversation).map(Verb::Exec),
        Some(_) => {
            let message =
                "with --last there is only a prompt; put quotation marks around it".to_owned();
            Err(usage_error("resume", ErrorKind::TooManyValues, message))
        }
    }
}

fn understand_work(
    verb: &str,
    work: CliWork,
    text: Option<String>,
    conversation: Which,
) -> Result<ExecArguments, clap::Error> {
    let wrong = |message: String| usage_error(verb, ErrorKind::ValueValidation, message);
    work.session.check().map_err(wrong)?;
    if work.session.decide() == Decide::ByLines {
        let message = "--decide stdin is for sandgate call; write ./stdin for a file of that name";
        return Err(wrong(message.to_owned()));
    }
    let text = prompt(verb, text).map_err(wrong)?;
    let images =
        work.image.iter().map(|file| image(file)).collect::<Result<_, _>>().map_err(wrong)?;
    let output_schema = work.output_schema.as_deref().map(schema).transpose().map_err(wrong)?;
    Ok(ExecArguments {
        input: UserInput { text, images },
        model: work.model,
        session: work.session,
        output_last_message: work.output_last_message,
        output_schema,
        json: work.json,
        conversation,
    })
}

fn prompt(verb: &str, given: Option<String>) -> Result<String, String> {
    let text = match given.as_deref() {
        Some("-") => None,
        Some(_) => given,
        None if io::stdin().is_terminal() => {
            return Err(match verb {
                "resume" => "write what comes next: sandgate resume --last 'now the tests'",
                _ => "write what the model is to do: sandgate exec 'fix the failing test'",
            }
            .to_owned());
        }
        None => None,
    };
    let text = match text {
        Some(text) => text,
        None => read(io::stdin().lock(), LONGEST_PROMPT)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()))
            .map_err(|error| format!("cannot read the prompt from standard input: {error}"))?,
    };
    match text.trim().is_empty() {
        true => Err("the prompt is empty: write what the model is to do".to_owned()),
        false => Ok(text),
    }
}

/// All of it, if it is not too much.
fn read(reader: impl io::Read, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() as u64 > most {
        true => Err(format!("it has more than {most} bytes")),
        false => Ok(bytes),
    }
}

fn read_file(file: &Path, most: u64) -> Result<Vec<u8>, String> {
    let opened = std::fs::File::open(file).map_err(|error| error.to_string());
    opened
        .and_then(|opened| read(opened, most))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// A picture, as a data URL.
fn image(file: &Path) -> Result<String, String> {
    let bytes = read_file(file, LARGEST_IMAGE)?;
    let kind = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "png",
        [0xFF, 0xD8, 0xFF, ..] => "jpeg",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        _ => return Err(format!("{}: not a PNG, JPEG, GIF or WebP picture", file.display())),
    };
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(format!("data:image/{kind};base64,{data}"))
}

fn schema(file: &Path) -> Result<serde_json::Value, String> {
    let bytes = read_file(file, LARGEST_SCHEMA)?;
    let schema: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{}: not JSON: {error}", file.display()))?;
    match schema.is_object() {
        true => Ok(schema),
        false => Err(format!("{}: a JSON schema is an object", file.display())),
    }
}
