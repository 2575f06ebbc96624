//! No model at all: proposes the commands that stand in the prompt, so that the gate can be seen at
//! work without a key.

use super::{ModelEvent, ModelRequest, ModelStream, Provider, StopReason};
use futures_util::{StreamExt as _, stream};
use sandgate_protocol::{CallId, CallInput, ResponseItem, Role};

/// What it says of itself.
const ABOUT: &str = "\
There is no model behind this: the provider is offline, so nothing here understands language. What I \
can do is propose the commands that your prompt holds, one after the other, so that you can see the gate \
at work:

- lines that begin with `$ `, such as `$ ls -la`
- fenced blocks marked `sh`, `bash`, `zsh` or `shell`
- patches from `*** Begin Patch` to `*** End Patch`

To talk to a model, name one in your settings:

- `sandgate config set model_provider openai` (its key is in `OPENAI_API_KEY`)
- `sandgate config set model_provider anthropic` (its key is in `ANTHROPIC_API_KEY`)
- `sandgate config set model_provider ollama` (it needs none)

docs/models.md says more.";

/// No model at all.
#[derive(Debug, Default)]
pub struct OfflineProvider;

/// Something that a prompt asks for.
#[derive(Debug, PartialEq, Eq)]
enum Proposal {
    Script(String),
    Patch(String),
}

impl Provider for OfflineProvider {
    fn name(&self) -> &str {
        "offline"
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> ModelStream<'a> {
        let item = answer(request.items);
        let mut events = Vec::new();
        if let Some(text) = item.text() {
            events.push(Ok(ModelEvent::TextDelta(text)));
        }
        events.push(Ok(ModelEvent::Item(item)));
        events.push(Ok(ModelEvent::End(StopReason::Done)));
        stream::iter(events).boxed()
    }
}

/// What follows in this conversation: the next proposal, or a last word.
fn answer(items: &[ResponseItem]) -> ResponseItem {
    let asked =
        |item: &ResponseItem| matches!(item, ResponseItem::Message { role: Role::User, .. });
    let Some(at) = items.iter().rposition(asked) else { return say(ABOUT.to_owned()) };
    let proposals = proposals(&items[at].text().unwrap_or_default());
    let since = &items[at + 1..];
    let made = since.iter().filter(|item| matches!(item, ResponseItem::ToolCall { .. })).count();
    match proposals.get(made) {
        Some(proposal) => propose(proposal, &format!("offline_{}_{}", at + 1, made + 1)),
        None if proposals.is_empty() => say(ABOUT.to_owned()),
        None => say(conclude(since)),
    }
}

fn say(text: String) -> ResponseItem {
    ResponseItem::message(Role::Assistant, text)
}

fn propose(proposal: &Proposal, call_id: &str) -> ResponseItem {
    let (name, arguments) = match proposal {
        Proposal::Script(text) => ("shell_command", serde_json::json!({ "command": text })),
        Proposal::Patch(text) => ("apply_patch", serde_json::json!({ "input": text })),
    };
    let input = CallInput::Arguments(arguments.to_string());
    ResponseItem::ToolCall { call_id: CallId::new(call_id), name: name.to_owned(), input }
}

/// What came of everything, in a few lines.
fn conclude(since: &[ResponseItem]) -> String {
    let mut lines = Vec::new();
    let (mut all, mut good) = (0, 0);
    for item in since {
        let ResponseItem::ToolCallOutput { output, success, .. } = item else { continue };
        all += 1;
        good += usize::from(*success);
        let word = if *success { "done" } else { "came to nothing" };
        let told = match output.trim_end() {
            "" => format!("{all}. {word}"),
            output => format!("{all}. {word}:\n\n{}", fenced(output)),
        };
        lines.push(told);
    }
    format!(
        "There is no model behind this. I proposed what your prompt holds: {good} of {all} done.\n\n{}",
        lines.join("\n\n")
    )
}

/// A text that is no prose, as a block that nothing in it ends.
fn fenced(text: &str) -> String {
    let longest = text.split(|one| one != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}\n{fence}")
}

/// The commands and patches of a prompt, in their order.
fn proposals(prompt: &str) -> Vec<Proposal> {
    let mut found = Vec::new();
    let mut lines = prompt.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(command) = trimmed.strip_prefix("$ ") {
            found.push(Proposal::Script(command.to_owned()));
        } else if trimmed == "*** Begin Patch" {
            let mut patch = vec![trimmed];
            for line in lines.by_ref() {
                patch.push(line);
                if line.trim() == "*** End Patch" {
                    break;
                }
            }
            found.push(Proposal::Patch(patch.join("\n") + "\n"));
        } else if let Some(fence) = Fence::open(trimmed) {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !fence.closes(line)).collect();
            let block = block.join("\n");
            if block.trim_start().starts_with("*** Begin Patch") {
                found.push(Proposal::Patch(block + "\n"));
            } else if fence.is_shell && !block.trim().is_empty() {
                found.push(Proposal::Script(block));
            }
        }
    }
    found
}

/// A fence around a block of text.
struct Fence {
    letter: char,
    length: usize,
    is_shell: bool,
}

impl Fence {
    fn open(line: &str) -> Option<Self> {
        let letter = line.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
        let length = line.chars().take_while(|one| *one == letter).count();
        let info = line[length..].trim();
        let is_shell = matches!(info.split(' ').next(), Some("sh" | "bash" | "zsh" | "shell"));
        (length >= 3).then_some(Self { letter, length, is_shell })
    }

    fn closes(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|one| one == self.letter) && line.len() >= self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_blocks_and_patches_are_found_in_their_order() {
        let prompt = "please run\n  $ ls -la\nand\n```bash\nmake\nmake test\n```\nnot\n```python\nprint()\n```\n\
                      *** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n$ echo done";
        let script = |text: &str| Proposal::Script(text.to_owned());
        let patch = "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n".to_owned();
        let expected = [
            script("ls -la"),
            script("make\nmake test"),
            Proposal::Patch(patch),
            script("echo done"),
        ];
        assert_eq!(proposals(prompt), expected);
    }

    /// spec AGENT.29: Without a model, what a call printed is told as a block that nothing in it ends.
    #[test]
    fn what_was_printed_is_told_as_it_stands() {
        let result = |output: &str| ResponseItem::ToolCallOutput {
            call_id: CallId::new("c"),
            output: output.to_owned(),
            content_items: Vec::new(),
            success: true,
        };
        let told = conclude(&[result("# a\n  b\n"), result("```\nx\n````"), result("")]);
        let expected = "1. done:\n\n```text\n# a\n  b\n```\n\n\
                        2. done:\n\n`````text\n```\nx\n````\n`````\n\n3. done";
        assert!(told.ends_with(expected), "{told}");
    }

    #[test]
    fn anything_else_is_answered_with_what_can_be_done() {
        let asked = [ResponseItem::message(Role::User, "what is 2 + 2?")];
        assert_eq!(answer(&asked).text().unwrap(), ABOUT);
    }
}
