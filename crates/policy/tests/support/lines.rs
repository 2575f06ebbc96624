//! Commands written one a line, for lists that people read.

/// The words of each line. `#` begins a line of comment, and single quotes hold a word together.
pub(crate) fn words_of(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(words).collect()
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    assert!(!quoted, "a quote is left open in {line}");
    words.extend(word);
    words
}
