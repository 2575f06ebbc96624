//! Adds a rule to the text of a file, and leaves everything else in it as it was.

use super::{Decision, PatternWord, ProposedRule, Rule, RuleSandbox, Rules, RulesError};

/// The text with a rule at its end. If the rule is there already, the text as it is.
///
/// # Errors
/// If the text was no rules file, or would not be one with one rule more.
pub fn append(text: &str, file_label: &str, rule: &ProposedRule) -> Result<String, RulesError> {
    let rules = Rules::parse(text, file_label)?;
    if rules.iter().any(|known| holds(known, rule)) {
        return Ok(text.to_owned());
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut longer = text.to_owned();
    if !text.is_empty() {
        // One blank line between the rules, and an end for a last line that has none.
        longer.push_str(if text.ends_with('\n') { "" } else { newline });
        longer.push_str(newline);
    }
    for line in as_toml(rule).lines() {
        longer.push_str(line);
        longer.push_str(newline);
    }
    Rules::parse(&longer, file_label)?;
    Ok(longer)
}

/// Whether a rule of a file says what was proposed.
fn holds(known: &Rule, proposed: &ProposedRule) -> bool {
    known.decision == Decision::Allow
        && known.sandbox == proposed.sandbox()
        && known.pattern == pattern_of(proposed)
}

/// The pattern of a proposed rule: its words, each meant as it is.
pub(super) fn pattern_of(rule: &ProposedRule) -> Vec<PatternWord> {
    rule.prefix().iter().cloned().map(PatternWord::Exact).collect()
}

fn as_toml(rule: &ProposedRule) -> String {
    let mut text =
        format!("[[rule]]\nprefix = {}\ndecision = \"allow\"\n", prefix_as_toml(&pattern_of(rule)));
    if rule.sandbox() == RuleSandbox::Bypass {
        text.push_str("sandbox = \"bypass\"\n");
    }
    if let Some(justification) = rule.justification() {
        text.push_str(&format!("justification = {}\n", quoted(justification)));
    }
    text
}

/// A pattern as it stands in a file. A word that would mean something else there, a star or one
/// with blanks, becomes a list with that one word.
pub(super) fn prefix_as_toml(pattern: &[PatternWord]) -> String {
    let list = |words: &[String]| {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("[{}]", words.join(", "))
    };
    let words: Vec<String> = pattern
        .iter()
        .map(|word| match word {
            PatternWord::Exact(word)
                if word.contains('*') || word.contains(char::is_whitespace) =>
            {
                list(std::slice::from_ref(word))
            }
            PatternWord::Exact(word) => quoted(word),
            PatternWord::OneOf(words) => list(words),
            PatternWord::Any => quoted("*"),
        })
        .collect();
    format!("[{}]", words.join(", "))
}

/// Text in the kind of TOML string that holds everything on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if other.is_control() => {
                out.push_str(&format!("\\u{:04X}", u32::from(other)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
