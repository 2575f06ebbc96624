//! The few styles that everything is drawn in.
//!
//! Only the sixteen colours that the person's own terminal chose, and none of its backgrounds: so it is
//! readable on light and on dark. One accent; green, red and yellow only where they mean good, bad and
//! mind this, and never alone: a word says the same.

use ratatui::style::{Color, Modifier, Style};

/// Ours: the composer, the question's bar, what can be pressed.
pub(crate) const ACCENT: Style = Style::new().fg(Color::Cyan);
pub(crate) const PLAIN: Style = Style::new();
pub(crate) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const EMPHASIS: Style = Style::new().add_modifier(Modifier::ITALIC);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
pub(crate) const MIND: Style = Style::new().fg(Color::Yellow);
pub(crate) const KEY: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
pub(crate) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
/// Code: words of the language, text in quotation marks, what the machine does not read.
pub(crate) const KEYWORD: Style = Style::new().fg(Color::Magenta);
pub(crate) const STRING: Style = Style::new().fg(Color::Green);
pub(crate) const NUMBER: Style = Style::new().fg(Color::Blue);

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// As the terminal has them.
    On,
    /// None; what is bold, dim or underlined stays.
    Off,
}
