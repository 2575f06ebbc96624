//! Patches that a crash broke off: settled when a session begins, and told to whoever listens first.

use super::Services;
use crate::audit::Record;
use sandgate_patch::{Recovered, Resolution, recover};

/// What a session does about patches that a crash broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrokenPatches {
    /// They are settled when it begins.
    #[default]
    Settled,
    /// They are left as they are, for a session that changes nothing.
    Left,
}

impl Services {
    /// Settles what crashes left, and records it. What cannot be settled is no reason not to begin: the
    /// next patch tries again, and refuses to be put on top of half of another.
    pub(super) fn recover_patches(&self) -> Vec<String> {
        if self.config.broken_patches == BrokenPatches::Left {
            return Vec::new();
        }
        match self.journals().as_deref().map_or(Ok(Vec::new()), recover) {
            Ok(recovered) => self.note_recovered(&recovered),
            Err(error) => vec![error.to_string()],
        }
    }

    /// Records what was settled, and says it.
    pub(crate) fn note_recovered(&self, recovered: &[Recovered]) -> Vec<String> {
        let said: Vec<String> = recovered.iter().map(in_words).collect();
        for text in &said {
            // It is done, whatever becomes of the record.
            let _ = self.record(&Record::Note { text: text.clone() });
        }
        said
    }
}

/// What was done about a patch, as a person would say it.
fn in_words(recovered: &Recovered) -> String {
    /// Of how many files the names are told.
    const MOST: usize = 5;
    let mut said = match recovered.resolution {
        Resolution::Undone => "a patch that was broken off has been undone",
        Resolution::Finished => {
            "a patch that was broken off had been done, and was tidied up after"
        }
        Resolution::Unreadable => {
            "the journal of a patch that was broken off cannot be read, so nothing was done about it; \
             look after the files yourself, and remove it"
        }
    }
    .to_owned();
    let names = recovered.files.iter().take(MOST).map(|file| file.display().to_string());
    let names: Vec<String> = names.collect();
    if !names.is_empty() {
        said.push_str(": ");
        said.push_str(&names.join(", "));
    }
    if recovered.files.len() > MOST {
        said.push_str(&format!(" and {} more", recovered.files.len() - MOST));
    }
    for left in recovered.left_alone.iter().take(MOST) {
        said.push_str(&format!("; {left}"));
    }
    sandgate_protocol::visible_line(&said)
}
