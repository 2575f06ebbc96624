//! PowerShell and cmd: their own names for deleting, formatting, switching off and settings.
//!
//! Names and parameters count whatever their case, and parameters shortened.

use super::deletes::{Reach, deleting};
use super::scene::Scene;
use crate::command::Word;

/// Commands that are dangerous with these words: the command, the words of which each must be
/// there (`a|b` is either), and what it does.
#[rustfmt::skip]
const FORMS: &[(&str, &[&str], &str)] = &[
    ("add-mppreference", &[], "tells the virus scanner to look away"),
    ("bcdedit", &[], "changes how the system starts"),
    ("cipher", &["/w*"], "overwrites a disk's free space"),
    ("clear-disk", &[], "erases a disk"),
    ("clear-eventlog", &[], "deletes the record of what happened"),
    ("clear-recyclebin", &[], "deletes what could still be brought back"),
    ("diskpart", &[], "changes the partitions of a disk"),
    ("format", &["?:*"], "formats a disk"),
    ("format-volume", &[], "formats a disk"),
    ("icacls", &["/grant*|/reset|/setowner"], "changes who may use files"),
    ("initialize-disk", &[], "erases a disk"),
    ("net", &["user|localgroup", "/add|/delete"], "changes the system's users"),
    ("netsh", &["firewall|advfirewall"], "changes the firewall"),
    ("new-localuser", &[], "adds a user"),
    ("new-scheduledtask", &[], "has commands run at set times, from now on"),
    ("new-service", &[], "changes what the system starts by itself"),
    ("reg", &["delete|add|import"], "changes the system's settings"),
    ("register-scheduledtask", &[], "has commands run at set times, from now on"),
    ("remove-itemproperty", &[], "changes the system's settings"),
    ("remove-partition", &[], "changes the partitions of a disk"),
    ("restart-computer", &[], "restarts the machine"),
    ("sc", &["create|delete|config|stop"], "changes what the system starts by itself"),
    ("schtasks", &["/create|/delete|/change"], "has commands run at set times, from now on"),
    ("set-executionpolicy", &[], "lets any script run"),
    ("set-mppreference", &[], "tells the virus scanner to look away"),
    ("stop-computer", &[], "switches the machine off"),
    ("takeown", &[], "changes who owns files"),
    ("vssadmin", &["delete"], "deletes backups"),
    ("wbadmin", &["delete"], "deletes backups"),
    ("wevtutil", &["cl|clear-log"], "deletes the record of what happened"),
    ("wmic", &["delete|shadowcopy"], "deletes what the system keeps"),
];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    let name = scene.name;
    if !matches!(name.len(), 2..=24) || !name.is_ascii() {
        return None;
    }
    let mut letters = [0_u8; 24];
    let letters = &mut letters[..name.len()];
    letters.copy_from_slice(name.as_bytes());
    letters.make_ascii_lowercase();
    let lower = std::str::from_utf8(letters).ok()?;
    match lower {
        "remove-item" | "ri" | "rd" | "rmdir" | "del" | "erase" | "clear-content" => {
            deleted(scene, lower)
        }
        "powershell" | "pwsh" => encoded(scene),
        _ => {
            let start = FORMS.partition_point(|(name, ..)| *name < lower);
            let (name, needs, does) = FORMS.get(start)?;
            let matches = *name == lower && needs.iter().all(|need| has(scene.rest(), need));
            matches.then(|| format!("{does}: {}", scene.line()))
        }
    }
}

fn has(words: &[Word], need: &str) -> bool {
    words.iter().any(|word| {
        let word = word.text.to_ascii_lowercase();
        need.split('|').any(|need| match need {
            "?:*" => word.len() >= 2 && word.as_bytes()[1] == b':',
            _ => match need.strip_suffix('*') {
                Some(start) => word.starts_with(start),
                None => word == need,
            },
        })
    })
}

/// Forced or recursive deletes; `rmdir` without `/s` removes what is empty.
fn deleted(scene: &Scene<'_>, name: &str) -> Option<String> {
    let (mut trees, mut forced, mut targets) = (false, false, Vec::new());
    for word in scene.rest() {
        let text = word.text.to_ascii_lowercase();
        let parameter = text.strip_prefix('-').unwrap_or_default();
        trees |= text == "/s" || (!parameter.is_empty() && "recurse".starts_with(parameter));
        forced |= matches!(text.as_str(), "/q" | "/f")
            || (!parameter.is_empty() && "force".starts_with(parameter));
        let option = text.starts_with('-') || (text.starts_with('/') && text.len() == 2);
        if !option {
            targets.push(word);
        }
    }
    let only_if_empty = name == "rmdir" && !trees;
    if only_if_empty || !(trees || forced) {
        return None;
    }
    let reach = if trees { Reach::Trees } else { Reach::Files };
    targets.iter().find_map(|word| deleting(scene, word, reach))
}

/// A script that nobody can read.
fn encoded(scene: &Scene<'_>) -> Option<String> {
    let option = |word: &&Word| {
        let text = word.text.to_ascii_lowercase();
        matches!(text.as_str(), "-e" | "-ec")
            || (text.len() > 2 && "-encodedcommand".starts_with(&text))
    };
    let given = scene.rest().iter().find(option)?;
    Some(format!("runs a script that nobody can read, by {}", given.text))
}
