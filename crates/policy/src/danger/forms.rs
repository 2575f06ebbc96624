//! Programs whose dangerous forms are told by their words: a table for each subject, one matcher.

use super::scene::Scene;
use super::{disks, remote, system};

/// A program and the words that make it dangerous.
pub(super) struct Row {
    pub(super) program: &'static str,
    /// Each must be among the words, in this order. `a|b` is either; `^` in front: the first word
    /// that is no option; `-x` also within grouped letters, `=-x` not; `--name` also with `=value`;
    /// `start*` any word that begins so;
    /// `!--name`: none of the words is this.
    pub(super) words: &'static [&'static str],
    /// What it does; the command itself is added.
    pub(super) does: &'static str,
}

pub(super) const fn row(
    program: &'static str,
    words: &'static [&'static str],
    does: &'static str,
) -> Row {
    Row { program, words, does }
}

/// All tables, each sorted by program.
const TABLES: [&[Row]; 3] = [disks::FORMS, system::FORMS, remote::FORMS];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    let name = if scene.name.starts_with("mkfs.") { "mkfs" } else { scene.name };
    if name.is_empty() {
        return None;
    }
    for table in TABLES {
        let start = table.partition_point(|row| row.program < name);
        let rows = table[start..].iter().take_while(|row| row.program == name);
        for row in rows {
            if matches(scene, row.words) {
                return Some(format!("{}: {}", row.does, scene.line()));
            }
        }
    }
    None
}

fn matches(scene: &Scene<'_>, needs: &[&str]) -> bool {
    let words = scene.rest();
    let mut at = 0;
    for need in needs {
        if let Some(absent) = need.strip_prefix('!') {
            if words.iter().any(|word| is_one_of(&word.text, absent)) {
                return false;
            }
            continue;
        }
        let anchored = need.strip_prefix('^');
        let mut seen = words[at..].iter();
        let position = match anchored {
            Some(alternatives) => {
                let first = seen.position(|word| !word.text.starts_with('-'));
                first.filter(|first| is_one_of(&words[at + first].text, alternatives))
            }
            None => seen.position(|word| is_one_of(&word.text, need)),
        };
        match position {
            Some(position) => at += position + 1,
            None => return false,
        }
    }
    true
}

fn is_one_of(word: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|need| is(word, need))
}

fn is(word: &str, need: &str) -> bool {
    if word == need {
        return true;
    }
    if let Some(exact) = need.strip_prefix('=') {
        return word == exact;
    }
    if let Some(start) = need.strip_suffix('*') {
        return word.starts_with(start);
    }
    if let Some(name) = need.strip_prefix("--") {
        let given = word.strip_prefix("--").and_then(|given| given.split('=').next());
        return given == Some(name);
    }
    match need.strip_prefix('-') {
        Some(letter) if letter.chars().count() == 1 => {
            word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_so_that_they_can_be_searched() {
        for table in TABLES {
            for pair in table.windows(2) {
                assert!(pair[0].program <= pair[1].program, "{}", pair[1].program);
            }
        }
    }
}
