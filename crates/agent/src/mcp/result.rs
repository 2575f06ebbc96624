//! From what a server answered to what a model is given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ImageContent, ResourceContents};
use sandgate_protocol::{ContentItem, ToolOutput};
use sandgate_runtime::ModelFormat;

/// The pictures that models look at.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The most bytes of a picture, as the text that it comes in.
const MOST_PICTURE: usize = 5 << 20;

/// How many pictures one answer may have.
const MOST_PICTURES: usize = 8;

/// What a model is given. What it cannot be given is named.
pub(super) fn output(result: &CallToolResult, format: ModelFormat) -> ToolOutput {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text.clone()),
            ContentBlock::Image(image) => match picture(image) {
                Ok(item) if pictures.len() < MOST_PICTURES => pictures.push(item),
                Ok(_) => texts.push("[a picture too many was left out]".to_owned()),
                Err(why) => texts.push(format!("[a picture was left out: {why}]")),
            },
            ContentBlock::Audio(_) => texts.push("[sound was left out]".to_owned()),
            ContentBlock::Resource(resource) => texts.push(match &resource.resource {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                _ => "[a file was left out]".to_owned(),
            }),
            ContentBlock::ResourceLink(link) => {
                texts.push(format!("[{}: {}]", link.name, link.uri));
            }
            _ => texts.push("[something was left out]".to_owned()),
        }
    }
    // Servers say as text what they say as a structure, so it is needed only where there is no text.
    if texts.is_empty()
        && pictures.is_empty()
        && let Some(structured) = &result.structured_content
    {
        texts.push(structured.to_string());
    }
    let content = format.shorten(&texts.join("\n"));
    let content_items = (!pictures.is_empty()).then(|| {
        let text = (!content.is_empty()).then(|| ContentItem::InputText { text: content.clone() });
        text.into_iter().chain(pictures).collect()
    });
    let success = Some(!result.is_error.unwrap_or(false));
    ToolOutput::Function { content, content_items, success, ran: None }
}

fn picture(image: &ImageContent) -> Result<ContentItem, &'static str> {
    if !PICTURES.contains(&image.mime_type.as_str()) {
        return Err("models do not look at this kind");
    }
    if image.data.len() > MOST_PICTURE {
        return Err("it is too large");
    }
    STANDARD.decode(&image.data).map_err(|_| "it is not base64")?;
    Ok(ContentItem::InputImage {
        image_url: format!("data:{};base64,{}", image.mime_type, image.data),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(result: serde_json::Value) -> ToolOutput {
        output(&serde_json::from_value(result).unwrap(), ModelFormat::default())
    }

    /// spec MCP.12: Text, pictures and structures reach the model within its bounds; what cannot is named.
    #[test]
    fn answers_reach_the_model_within_its_bounds() {
        let ToolOutput::Function { content, content_items, success, .. } =
            given(json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "image", "data": "%", "mimeType": "image/png"},
                {"type": "image", "data": "aGk=", "mimeType": "image/svg+xml"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "two"}},
            ]}))
        else {
            panic!("not a function")
        };
        let left_out = "[a picture was left out: it is not base64]\n\
                        [a picture was left out: models do not look at this kind]\n[sound was left out]";
        assert_eq!(content, format!("one\n{left_out}\ntwo"));
        assert_eq!(success, Some(true));
        let items = content_items.unwrap();
        let image_url = "data:image/png;base64,aGk=".to_owned();
        assert_eq!(
            items,
            [ContentItem::InputText { text: content }, ContentItem::InputImage { image_url }]
        );

        let failed = given(json!({"content": [], "structuredContent": {"a": 1}, "isError": true}));
        assert_eq!(failed, ToolOutput::text(r#"{"a":1}"#, false));

        let long = given(json!({"content": [{"type": "text", "text": "x".repeat(1 << 20)}]}));
        let ToolOutput::Function { content, .. } = long else { panic!("not a function") };
        assert!(content.len() <= ModelFormat::default().max_bytes(), "{}", content.len());
    }
}
