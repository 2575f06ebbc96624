//! The terminal interface: what happened, drawn; what a person types, decided.
//!
//! The state is a fold of the session's events and the person's keys (`App`); it is drawn as
//! lines, and what is finished goes into the terminal's own scrollback. Text from models, commands and
//! files becomes a span in one place only (`text`), and bytes for the terminal in another (`paint`).

#![forbid(unsafe_code)]

mod app;
mod cell;
mod composer;
mod diff;
mod drive;
mod fold;
mod highlight;
mod look;
mod markdown;
mod paint;
mod plain;
mod processes;
mod question;
mod run;
mod slash;
mod tail;
mod terminal;
mod text;
mod theme;
mod trust;
mod view;

#[cfg(test)]
mod tests;

pub use app::{Change, Info};
pub use drive::{Attending, Backstage, Opened, Reviewed};
pub use run::{Ended, Manner, Options, TuiError, run};
pub use theme::Colours;
pub use trust::{Trust, ask_trust};
