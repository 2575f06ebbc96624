//! `count_words`: a tool that is a program.

use sandgate_protocol::{ExecExpiration, SandboxPermissions, ToolOutput};
use sandgate_runtime::{AskedCommand, CommandInput, CommandLine};
use sandgate_runtime::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountWordsParams {
    /// The file; a relative path starts at the session's directory.
    path: String,
}

pub struct CountWords;

impl ToolHandler for CountWords {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<CountWordsParams>("count_words", "Counts the words of a file.")
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let CountWordsParams { path } = invocation.arguments()?;
            let words = ["wc", "-w", "--", &path].map(str::to_owned);
            let asked = AskedCommand {
                command: CommandLine::Argv(words.to_vec()),
                workdir: None,
                expiration: ExecExpiration::DefaultTimeout,
                input: CommandInput::Nothing,
                sandbox_permissions: SandboxPermissions::UseDefault,
                justification: None,
                prefix_rule: None,
            };
            let ran = invocation.ctx().run_command(asked).await?.output;
            Ok(ToolOutput::text(ran.for_model, ran.output.exit_code == 0))
        })
    }
}
