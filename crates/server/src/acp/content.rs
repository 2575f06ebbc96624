//! Texts and pictures, in both directions.

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, EmbeddedResourceResource, TextContent, ToolCallContent,
};
use sandgate_agent::UserInput;
use sandgate_protocol::{visible_code, visible_line, visible_prose};
use serde_json::Value;

/// What the person says in the editor, as a model is given it. None if it cannot be.
pub(super) fn input(prompt: Vec<ContentBlock>) -> Result<UserInput, &'static str> {
    let mut input = UserInput::default();
    let mut say = |text: &str| {
        if !input.text.is_empty() {
            input.text.push('\n');
        }
        input.text.push_str(text);
    };
    let mut images = Vec::new();
    for block in prompt {
        match block {
            ContentBlock::Text(text) => say(&text.text),
            ContentBlock::Image(image) => {
                images.push(format!("data:{};base64,{}", image.mime_type, image.data));
            }
            ContentBlock::ResourceLink(link) => say(&format!("[{}]({})", link.name, link.uri)),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    say(&format!("{}:\n{}", text.uri, fenced(&text.text)));
                }
                _ => return Err("a file that is not text cannot be shown to the model"),
            },
            _ => return Err("the model can be told texts, pictures and files of text only"),
        }
    }
    input.images = images;
    match input.text.is_empty() && input.images.is_empty() {
        true => Err("there is nothing in this prompt"),
        false => Ok(input),
    }
}

/// A piece of a message, fit to be shown.
pub(super) fn chunk(text: impl AsRef<str>) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(visible_prose(text.as_ref()))))
}

/// What a tool was called with, in the form that it has and fit to be shown. None if it has none.
pub(super) fn called_with(input: &str) -> Option<Value> {
    fn shown(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(visible_code(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(shown).collect()),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                Value::Object(
                    fields.map(|(key, value)| (visible_line(&key), shown(value))).collect(),
                )
            }
            other => other,
        }
    }
    serde_json::from_str(input).ok().map(shown)
}

/// Text below a tool call.
pub(super) fn text(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::Text(TextContent::new(text))))
}

/// Text that is shown as it is: editors show texts as Markdown.
pub(super) fn fenced(text: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_fence() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("a\n```\nb\n"), "````\na\n```\nb\n````");
    }

    /// spec ACP.20: Nothing in what an editor is sent to show hides or turns the order of letters, in messages, calls,
    /// changes and questions; of changes that are too long it is said how many lines are missing.
    #[test]
    fn messages_and_calls_hide_nothing() {
        let said = serde_json::to_value(chunk("**a** \u{202e}b\u{e0041}\n👩\u{200d}💻")).unwrap();
        assert_eq!(said["content"]["text"], "**a** \\u{202e}b\\u{e0041}\n👩\u{200d}💻");
        let input = serde_json::json!({ "cmd\u{202e}": ["ls\n", { "x": "a\u{200b}\tb" }], "n": 1 });
        let shown =
            serde_json::json!({ "cmd\\u{202e}": ["ls\n", { "x": "a\\u{200b}\tb" }], "n": 1 });
        assert_eq!(called_with(&input.to_string()), Some(shown));
        assert_eq!(called_with("no json"), None);
    }
}
