//! What may follow `sandgate exec`: first parsed, then made sense of.

use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::decide::Decide;
use crate::session::CliSession;
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
125 if sandgate itself failed; 2 if this command line makes no sense.";

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
    pub(super) model: CliModel,

    #[command(flatten)]
    pub(super) session: CliSession,

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

    /// Do not write this conversation down
    #[arg(long)]
    ephemeral: bool,
}

/// What `sandgate exec` is to do.
#[derive(Debug)]
pub(crate) struct ExecArguments {
    pub(super) input: UserInput,
    pub(super) model: CliModel,
    pub(super) session: CliSession,
    pub(super) output_last_message: Option<PathBuf>,
    pub(super) output_schema: Option<serde_json::Value>,
    pub(super) json: bool,
    pub(super) ephemeral: bool,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(exec: CliExec) -> Result<ExecArguments, clap::Error> {
    let wrong = |message: String| usage_error("exec", ErrorKind::ValueValidation, message);
    exec.session.check().map_err(wrong)?;
    if exec.session.decide() == Decide::ByLines {
        let message = "--decide stdin is for sandgate call; write ./stdin for a file of that name";
        return Err(wrong(message.to_owned()));
    }
    let text = prompt(exec.prompt).map_err(wrong)?;
    let images =
        exec.image.iter().map(|file| image(file)).collect::<Result<_, _>>().map_err(wrong)?;
    let output_schema = exec.output_schema.as_deref().map(schema).transpose().map_err(wrong)?;
    Ok(ExecArguments {
        input: UserInput { text, images },
        model: exec.model,
        session: exec.session,
        output_last_message: exec.output_last_message,
        output_schema,
        json: exec.json,
        ephemeral: exec.ephemeral,
    })
}

fn prompt(given: Option<String>) -> Result<String, String> {
    let text = match given.as_deref() {
        Some("-") => None,
        Some(_) => given,
        None if io::stdin().is_terminal() => {
            return Err(
                "write what the model is to do: sandgate exec 'fix the failing test'".to_owned()
            );
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
        true => Err("the prompt is empty".to_owned()),
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
