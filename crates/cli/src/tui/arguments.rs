//! What may stand behind `sandgate`: first parsed, then made sense of.

use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::exec::Which;
use crate::session::CliSession;
use clap::error::ErrorKind;
use sandgate_tui::Manner;

const HELP: &str = "\
Examples:
  sandgate                                     talk with the model of your settings
  sandgate 'fix the failing test'              with something to begin with
  sandgate --provider ollama -m qwen3          with another model
  sandgate --sandbox read-only 'what is it?'   when nothing is to be changed
  sandgate --plain                             line by line, for screen readers and pipes

Write ! before a command to run it yourself, through the gate; @ before the name of a file; / for commands.
What is done goes into your terminal's own scrollback. sandgate resume goes on with a conversation.

Exit codes: 0 when you left; 78 when you did not want to work in this directory; 125 if sandgate itself
failed; 2 if this command line makes no sense or there is no terminal; 128 + n after signal n.";

/// What may stand behind `sandgate`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliTui {
    /// What the model is to begin with
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    /// Line by line, without drawing: for screen readers, and where a terminal cannot draw
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    model: CliModel,

    #[command(flatten)]
    session: CliSession,
}

/// How to work.
#[derive(Debug)]
pub(crate) struct TuiArguments {
    pub(super) conversation: Which,
    pub(super) prompt: Option<String>,
    pub(super) manner: Manner,
    pub(super) model: CliModel,
    pub(super) session: CliSession,
}

impl TuiArguments {
    /// To go on with a conversation.
    pub(crate) fn going_on(
        conversation: Which,
        model: CliModel,
        session: CliSession,
    ) -> Result<Self, clap::Error> {
        let wrong = |message: String| usage_error("resume", ErrorKind::ValueValidation, message);
        session.check().map_err(wrong)?;
        Ok(Self { conversation, prompt: None, manner: Manner::Drawn, model, session })
    }
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliTui) -> Result<TuiArguments, clap::Error> {
    let wrong = |message: String| usage_error("tui", ErrorKind::ValueValidation, message);
    cli.session.check().map_err(wrong)?;
    if cli.session.decide.is_some() {
        let message = "--decide is for sandgate exec: here you are asked".to_owned();
        return Err(usage_error("tui", ErrorKind::ArgumentConflict, message));
    }
    Ok(TuiArguments {
        conversation: Which::New,
        prompt: cli.prompt.filter(|prompt| !prompt.trim().is_empty()),
        manner: if cli.plain { Manner::Plain } else { Manner::Drawn },
        model: cli.model,
        session: cli.session,
    })
}
