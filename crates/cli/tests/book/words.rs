//! What pages say of the command line, held against the page that is made from it.

use crate::page::{Page, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The commands, each with its options, as `docs/cli.md` has them.
pub(crate) struct Commands(BTreeMap<String, BTreeSet<String>>);

impl Commands {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(root().join("docs/cli.md")).unwrap();
        let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut name = String::new();
        for line in text.lines() {
            let heading = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`'));
            if let Some(heading) = heading {
                heading.clone_into(&mut name);
                commands.entry(name.clone()).or_default();
            } else if let Some(cell) = line.strip_prefix("| `-") {
                let cell = cell.split('`').next().unwrap_or_default();
                let words = format!("-{cell}");
                let options = words.split([' ', ',']).filter(|word| word.starts_with('-'));
                let known = commands.entry(name.clone()).or_default();
                known.extend(options.map(str::to_owned));
            }
        }
        assert!(commands.len() > 40, "{:?}", commands.keys());
        // Without a verb it is the terminal interface, with all of its options.
        let interface = commands["sandgate tui"].clone();
        let alone = commands.entry("sandgate".to_owned()).or_default();
        alone.extend(interface);
        alone.extend(["--version", "-V"].map(str::to_owned));
        Self(commands)
    }

    /// What is wrong with a command line that a page shows, if something is.
    pub(crate) fn fault(&self, line: &str) -> Option<String> {
        // Columns are set apart by blanks, and what follows is not for us.
        let line = line.split("  ").next().unwrap_or_default();
        let mut words = line.split_whitespace().peekable();
        let mut name = words.next()?.to_owned();
        while let Some(word) = words.peek() {
            let longer = format!("{name} {}", word.trim_end_matches(['.', ',', ';', ')']));
            if !self.0.contains_key(&longer) {
                break;
            }
            name = longer;
            words.next();
        }
        let has_more = self.0.keys().any(|other| other.starts_with(&format!("{name} ")));
        let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if let Some(word) = words.peek()
            && has_more
            && is_name(word)
            && !word.starts_with('-')
            && *word != "help"
        {
            return Some(format!("there is no {name} {word}"));
        }
        let known = &self.0[&name];
        for word in words.take_while(|word| !["--", "|", ">", "<", "&", "#"].contains(word)) {
            let option = word.trim_start_matches('[').split(['=', ']', ',']).next()?;
            let option = option.trim_end_matches(['.', ';', ')', ':']);
            let is_number = option.parse::<i64>().is_ok();
            let is_option = option.len() > 1 && option.starts_with('-') && !is_number;
            if is_option && !known.contains(option) && !["-h", "--help"].contains(&option) {
                return Some(format!("{name} has no {option}"));
            }
        }
        None
    }
}

/// The chores of the project, if its sources are here: the names that `cargo xtask` knows.
pub(crate) fn chores() -> Option<Vec<String>> {
    let source = fs::read_to_string(root().join("xtask/src/main.rs")).ok()?;
    let names = source.split("name: \"").skip(1).filter_map(|rest| rest.split('"').next());
    Some(names.map(str::to_owned).collect())
}

/// Every line of code on a page that begins with these words, with its place.
pub(crate) fn lines_that_begin(page: &Page, words: &str) -> Vec<(String, String)> {
    let is_meant = |line: &str| line.starts_with(words);
    let spans = page
        .spans
        .iter()
        .map(|(line, text)| (format!("{}:{line}", page.path), text.replace('\n', " ")));
    let blocks = page.blocks.iter().flat_map(|block| {
        let lines = block.text.lines().map(|line| line.trim().trim_start_matches("$ "));
        lines.map(|line| (block.place.clone(), line.to_owned()))
    });
    spans.chain(blocks).filter(|(_, line)| is_meant(line)).collect()
}
