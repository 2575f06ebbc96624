//! From the text of a rules file to its rules: all of them, or none and the reason.

use super::error::{IN_RULE, Problem, RulesError, TOP_LEVEL};
use super::examples::{Expected, check};
use super::{Author, Decision, Origin, PatternWord, Rule, RuleSandbox};
use std::ops::Range;
use toml_edit::{Array, Document, Item, Table, Value};

/// The most bytes that a rules file can have.
pub const MAX_RULES_BYTES: usize = 1024 * 1024;
/// The most rules that a file can have.
pub const MAX_RULES: usize = 10_000;
/// The most words that a prefix can have.
pub const MAX_PREFIX_WORDS: usize = 64;

/// Reads a file's text.
pub(super) fn parse(text: &str, file: &str, author: Author) -> Result<Vec<Rule>, RulesError> {
    let source = Source { text, file, author };
    if text.len() > MAX_RULES_BYTES {
        return Err(source.error(0..0, Problem::TooLarge { bytes: text.len() }));
    }
    let document = Document::parse(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        source.error(place, Problem::Syntax(error.message().to_owned()))
    })?;
    source.rules(document.as_table())
}

/// The text that is being read, for those who have to say where in it something is wrong.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    file: &'a str,
    author: Author,
}

impl Source<'_> {
    fn error(&self, place: Range<usize>, problem: Problem) -> RulesError {
        RulesError::new(self.file, self.text, place, problem)
    }

    fn rules(&self, root: &Table) -> Result<Vec<Rule>, RulesError> {
        if let Some((key, item)) = root.iter().find(|(key, _)| *key != "rule") {
            let problem = match item {
                Item::Table(_) | Item::ArrayOfTables(_) => {
                    Problem::UnknownTable { name: key.to_owned() }
                }
                _ => Problem::UnknownKey { key: key.to_owned(), place: TOP_LEVEL },
            };
            return Err(self.error(key_span(root, key), problem));
        }
        let tables = match root.get("rule") {
            None => return Ok(Vec::new()),
            Some(Item::ArrayOfTables(tables)) => tables,
            Some(_) => return Err(self.error(key_span(root, "rule"), Problem::NotTables)),
        };
        // A line is counted from the one before it, so that many rules are read in one pass.
        let (mut line, mut counted) = (1, 0);
        let mut rules = Vec::with_capacity(tables.len().min(MAX_RULES));
        for table in tables {
            let place = table.span().unwrap_or(0..0);
            if rules.len() == MAX_RULES {
                return Err(self.error(place, Problem::TooManyRules));
            }
            let start = place.start.clamp(counted, self.text.len());
            line += self.text.as_bytes()[counted..start].iter().filter(|b| **b == b'\n').count();
            counted = start;
            rules.push(self.rule(table, &place, line)?);
        }
        Ok(rules)
    }

    fn rule(&self, table: &Table, head: &Range<usize>, line: usize) -> Result<Rule, RulesError> {
        for (key, _) in table {
            if !KEYS.contains(&key) {
                let problem = Problem::UnknownKey { key: key.to_owned(), place: IN_RULE };
                return Err(self.error(key_span(table, key), problem));
            }
        }
        let missing = |key| self.error(head.clone(), Problem::Missing { key });
        let prefix = table.get("prefix").ok_or_else(|| missing("prefix"))?;
        let pattern = self.pattern(prefix, key_span(table, "prefix"))?;
        let (decision, _) = self
            .string(table, "decision")?
            .ok_or_else(|| missing("decision"))
            .and_then(|(text, place)| match text {
                "allow" => Ok((Decision::Allow, place)),
                "prompt" => Ok((Decision::Prompt, place)),
                "forbid" => Ok((Decision::Forbid, place)),
                _ => {
                    let found = text.to_owned();
                    Err(self.error(place, Problem::UnknownDecision { found }))
                }
            })?;
        if decision == Decision::Allow && pattern.first() == Some(&PatternWord::Any) {
            return Err(self.error(key_span(table, "prefix"), Problem::AnyProgramAllowed));
        }
        let justification = self.string(table, "justification")?.map(|(text, _)| text.to_owned());
        let rule = Rule {
            pattern,
            decision,
            sandbox: self.sandbox(table, decision)?,
            justification,
            origin: Origin { file: self.file.to_owned(), line, author: self.author },
        };
        self.examples(table, "match", &rule, Expected::Matched)?;
        self.examples(table, "not_match", &rule, Expected::NotMatched)?;
        Ok(rule)
    }

    fn sandbox(&self, table: &Table, decision: Decision) -> Result<RuleSandbox, RulesError> {
        let Some((text, place)) = self.string(table, "sandbox")? else {
            return Ok(RuleSandbox::Keep);
        };
        let problem = match (text, decision, self.author) {
            ("keep" | "bypass", Decision::Prompt | Decision::Forbid, _) => {
                return Err(self.error(key_span(table, "sandbox"), Problem::SandboxWithoutAllow));
            }
            ("keep", Decision::Allow, _) => return Ok(RuleSandbox::Keep),
            ("bypass", Decision::Allow, Author::Person) => return Ok(RuleSandbox::Bypass),
            ("bypass", Decision::Allow, Author::Project) => Problem::BypassOfProject,
            _ => Problem::UnknownSandbox { found: text.to_owned() },
        };
        Err(self.error(place, problem))
    }

    fn pattern(&self, item: &Item, key: Range<usize>) -> Result<Vec<PatternWord>, RulesError> {
        let wrong = |place| {
            let wanted = "a list of words";
            self.error(place, Problem::WrongKind { key: "prefix", wanted })
        };
        let place = item.span().unwrap_or(key);
        let words = item.as_array().ok_or_else(|| wrong(place.clone()))?;
        if words.is_empty() {
            return Err(self.error(place, Problem::EmptyPrefix));
        }
        if words.len() > MAX_PREFIX_WORDS {
            return Err(self.error(place, Problem::LongPrefix));
        }
        let mut pattern = Vec::with_capacity(words.len());
        for word in words {
            let at = word.span().unwrap_or_else(|| place.clone());
            let of_program = pattern.is_empty();
            pattern.push(match word {
                Value::String(text) => self.exact(text.value(), at, of_program)?,
                Value::Array(alternatives) => self.alternatives(alternatives, at, of_program)?,
                _ => return Err(wrong(at)),
            });
        }
        Ok(pattern)
    }

    fn exact(
        &self,
        word: &str,
        at: Range<usize>,
        of_program: bool,
    ) -> Result<PatternWord, RulesError> {
        let problem = match word {
            "*" => return Ok(PatternWord::Any),
            "" if of_program => Problem::EmptyProgram,
            _ if word.contains('*') => Problem::StarInWord { word: word.to_owned() },
            _ if word.contains(char::is_whitespace) => {
                Problem::SpaceInWord { word: word.to_owned() }
            }
            _ => return Ok(PatternWord::Exact(word.to_owned())),
        };
        Err(self.error(at, problem))
    }

    /// Inside a list of alternatives every word is meant as it is, stars and blanks too.
    fn alternatives(
        &self,
        list: &Array,
        at: Range<usize>,
        of_program: bool,
    ) -> Result<PatternWord, RulesError> {
        let mut words = Vec::with_capacity(list.len());
        for word in list {
            let at = word.span().unwrap_or_else(|| at.clone());
            match word.as_str() {
                Some("") if of_program => return Err(self.error(at, Problem::EmptyProgram)),
                Some(word) => words.push(word.to_owned()),
                None => {
                    let wanted = "a list of words; alternatives are words too";
                    return Err(self.error(at, Problem::WrongKind { key: "prefix", wanted }));
                }
            }
        }
        match words.len() {
            0 => Err(self.error(at, Problem::NoAlternatives)),
            1 => Ok(PatternWord::Exact(words.swap_remove(0))),
            _ => Ok(PatternWord::OneOf(words)),
        }
    }

    fn string<'t>(
        &self,
        table: &'t Table,
        key: &'static str,
    ) -> Result<Option<(&'t str, Range<usize>)>, RulesError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        let place = item.span().unwrap_or_else(|| key_span(table, key));
        match item.as_str() {
            Some(text) => Ok(Some((text, place))),
            None => Err(self.error(place, Problem::WrongKind { key, wanted: "text" })),
        }
    }

    fn examples(
        &self,
        table: &Table,
        key: &'static str,
        rule: &Rule,
        expected: Expected,
    ) -> Result<(), RulesError> {
        let Some(item) = table.get(key) else { return Ok(()) };
        let wrong = |place| {
            let wanted = "a list of examples";
            self.error(place, Problem::WrongKind { key, wanted })
        };
        let place = item.span().unwrap_or_else(|| key_span(table, key));
        for example in item.as_array().ok_or_else(|| wrong(place.clone()))? {
            let at = example.span().unwrap_or_else(|| place.clone());
            let argv = argv_of(example).ok_or_else(|| wrong(at.clone()))?;
            check(rule, &argv, expected).map_err(|problem| self.error(at, problem))?;
        }
        Ok(())
    }
}

const KEYS: &[&str] = &["prefix", "decision", "sandbox", "justification", "match", "not_match"];

/// The command vector of an example: text is a script for bash, a list is a vector already.
fn argv_of(example: &Value) -> Option<Vec<String>> {
    match example {
        Value::String(script) => {
            Some(vec!["bash".to_owned(), "-c".to_owned(), script.value().clone()])
        }
        Value::Array(words) if !words.is_empty() => {
            words.iter().map(|word| word.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

fn key_span(table: &Table, key: &str) -> Range<usize> {
    table.key(key).and_then(toml_edit::Key::span).unwrap_or(0..0)
}
