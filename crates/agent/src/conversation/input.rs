//! What a person says.

use sandgate_protocol::{ContentItem, ResponseItem, Role};

/// What a person says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInput {
    /// In words.
    pub text: String,
    /// In pictures, each as a data URL.
    pub images: Vec<String>,
}

impl UserInput {
    /// Words alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }

    pub(super) fn into_item(self) -> ResponseItem {
        let images = self.images.into_iter().map(|image_url| ContentItem::InputImage { image_url });
        let text = ContentItem::InputText { text: self.text };
        ResponseItem::Message {
            role: Role::User,
            content: std::iter::once(text).chain(images).collect(),
        }
    }
}
