//! Reads the text of a file: what it sets, and what is wrong with it.
//!
//! A text that is in order is parsed and held against the types once. Only when something is amiss is it held
//! against the schema, key by key, to say what: a start pays nothing for good error messages.

use crate::plain;
use crate::problem::{Fault, Problem, harmless};
use crate::schema::Shape;
use crate::settings::{NOT_IN_PROFILES, Settings, USER_ONLY, is_user_only};
use serde::Deserialize as _;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The most bytes of a file that are read.
pub const MAX_CONFIG_BYTES: usize = 1024 * 1024;

/// The most problems of one file that are told.
const MAX_PROBLEMS: usize = 20;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The person's own: all settings count.
    Person,
    /// A project's: what names programs of the system or trusts directories does not count.
    Project,
}

/// What a text sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// The settings, without what has no meaning.
    pub table: Table,
    /// What has none, and what was removed.
    pub warnings: Vec<Problem>,
}

/// Reads a text. `file` is what a person calls it.
///
/// # Errors
/// Everything that is wrong, in the order of the text; then nothing of it is to be used.
pub fn check(text: &str, file: &str, owner: Owner) -> Result<Checked, Vec<Problem>> {
    let (parsed, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let told = errors.iter().take(MAX_PROBLEMS).map(|error| syntax(text, file, error));
        return Err(told.collect());
    }
    if let Some(settings) = plain::settings(parsed.get_ref())
        && let Some(table) = plain::table(parsed.into_inner())
        && counts_in_full(&table, &settings, owner)
    {
        return Ok(Checked { table, warnings: Vec::new() });
    }
    explain(text, file, owner)
}

/// The slow way: says what is wrong or odd.
fn explain(text: &str, file: &str, owner: Owner) -> Result<Checked, Vec<Problem>> {
    // Parsed once more, so that a text which is in order need not be kept for this.
    let (parsed, _) = DeTable::parse_recoverable(text);
    let table = Table::deserialize(toml::Deserializer::from(parsed.clone()));
    let settings = Settings::deserialize(toml::Deserializer::from(parsed.clone()));
    match (table, settings) {
        (Ok(mut table), settings) => {
            let mut walk = Walk { text, file, owner, problems: Vec::new(), ignored: Vec::new() };
            walk.table(parsed.get_ref(), Shape::of_file(), &mut Vec::new());
            let Walk { mut problems, ignored, .. } = walk;
            problems.sort_by_key(|problem| (problem.line, problem.column));
            if let Err(error) = &settings
                && problems.iter().all(|problem| problem.fault.is_warning())
            {
                problems.push(unusable(text, file, error));
            }
            if problems.iter().any(|problem| !problem.fault.is_warning()) {
                problems.retain(|problem| !problem.fault.is_warning());
                problems.truncate(MAX_PROBLEMS);
                return Err(problems);
            }
            for path in &ignored {
                remove(&mut table, path);
            }
            problems.truncate(MAX_PROBLEMS);
            Ok(Checked { table, warnings: problems })
        }
        (Err(error), _) => Err(vec![syntax(text, file, &error)]),
    }
}

/// Whether each of the settings counts where it stands, and does something.
fn counts_in_full(table: &Table, settings: &Settings, owner: Owner) -> bool {
    let profiles = table.get("profiles").and_then(Value::as_table).into_iter().flatten();
    let profiles: Vec<&Table> = profiles.filter_map(|(_, profile)| profile.as_table()).collect();
    let misplaced = |table: &&Table| NOT_IN_PROFILES.iter().any(|name| table.contains_key(*name));
    if profiles.iter().any(misplaced) {
        return false;
    }
    let is_persons = |table: &&Table| USER_ONLY.iter().any(|path| has(table, path));
    if owner == Owner::Project && (is_persons(&table) || profiles.iter().any(is_persons)) {
        return false;
    }
    let has_removed = |features: &Option<crate::Features>| {
        features.as_ref().is_some_and(|features| features.request_rule.is_some())
    };
    let mut profiles = settings.profiles.values();
    !has_removed(&settings.features) && !profiles.any(|profile| has_removed(&profile.features))
}

/// Whether there is something at a path; `*` is any name.
fn has(table: &Table, path: &[&str]) -> bool {
    let [name, below @ ..] = path else { return true };
    let has_below =
        |value: &Value| below.is_empty() || value.as_table().is_some_and(|table| has(table, below));
    match *name {
        "*" => table.values().any(has_below),
        name => table.get(name).is_some_and(has_below),
    }
}

/// Takes a value out of a table.
fn remove(table: &mut Table, path: &[String]) {
    match path {
        [] => {}
        [key] => {
            table.remove(key);
        }
        [key, rest @ ..] => {
            if let Some(Value::Table(below)) = table.get_mut(key) {
                remove(below, rest);
            }
        }
    }
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> Problem {
    let advice = "correct the line; texts are written in quotes";
    told((text, file), error, Fault::Syntax, advice)
}

/// What the types refuse although the schema does not.
fn unusable(text: &str, file: &str, error: &toml::de::Error) -> Problem {
    told((text, file), error, Fault::Unusable, "write something else, or take it away")
}

fn told(
    (text, file): (&str, &str),
    error: &toml::de::Error,
    fault: fn(String) -> Fault,
    advice: &str,
) -> Problem {
    let place = error.span().unwrap_or(0..0);
    // The parser quotes what it found; what it says fits one line.
    let message: String = error.message().lines().collect::<Vec<_>>().join(", ");
    let fault = fault(message.chars().map(harmless).collect());
    Problem::new((file, text, place), "", fault, advice.to_owned())
}

/// Holds a text against the schema.
struct Walk<'a> {
    text: &'a str,
    file: &'a str,
    owner: Owner,
    problems: Vec<Problem>,
    /// The paths of what is left out.
    ignored: Vec<Vec<String>>,
}

impl Walk<'_> {
    fn table(&mut self, table: &DeTable<'_>, shape: Shape<'_>, path: &mut Vec<String>) {
        for (name, value) in table {
            let name_text = name.get_ref().as_ref();
            path.push(name_text.to_owned());
            if let Some(form) = shape.form_of_names().filter(|form| !(form.holds)(name_text)) {
                let given = Value::from(name_text).to_string();
                let allowed = format!("the name must be {}", form.words);
                let key = dotted(&path[..path.len() - 1]);
                let fault = Fault::Name { key: key.clone(), given: shortened(&given) };
                self.refuse(name.span(), &key, fault, allowed);
            }
            self.entry(name.span(), value, shape, path);
            path.pop();
        }
    }

    fn entry(
        &mut self,
        name: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        table: Shape<'_>,
        path: &mut Vec<String>,
    ) {
        let last = path.last().map(String::as_str).unwrap_or_default();
        let Some(shape) = table.below(last) else {
            let advice = unknown(last, table, value.get_ref());
            return self.ignore(name, path, |key| Fault::Unknown { key }, advice);
        };
        if let Some((place, advice)) = misplaced(path, self.owner) {
            return self.ignore(
                name,
                path,
                |key| Fault::Misplaced { key, place },
                advice.to_owned(),
            );
        }
        if shape.said("deprecated").is_some() && value.get_ref().is_bool() {
            let about = shape.said("description").and_then(|about| about.as_str());
            let advice = about.unwrap_or_default().trim_start_matches("Removed: ").to_owned();
            return self.ignore(name, path, |key| Fault::Removed { key }, advice);
        }
        self.value(value, shape, path);
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, shape: Shape<'_>, path: &mut Vec<String>) {
        let allowed = match (value.get_ref(), shape.kind()) {
            (DeValue::Table(table), "object") => return self.table(table, shape, path),
            (DeValue::Array(array), "array") if array.len() as u64 >= shape.least_items() => {
                if let Some(items) = shape.items() {
                    for item in array {
                        self.value(item, items, path);
                    }
                }
                return;
            }
            (DeValue::String(text), "string") => match shape.words() {
                Some(words) if words.iter().all(|(word, _)| *word != text.as_ref()) => {
                    near_word(text, &words)
                }
                _ => match shape.form() {
                    Some(form) if !(form.holds)(text) => format!("it must be {}", form.words),
                    _ => return,
                },
            },
            (DeValue::Boolean(_), "boolean") => return,
            (DeValue::Integer(number), "integer" | "number") => {
                let number = i64::from_str_radix(&number.as_str().replace('_', ""), number.radix());
                match number {
                    #[expect(clippy::cast_precision_loss, reason = "the bounds are small")]
                    Ok(number) if is_within(number as f64, shape) => return,
                    _ => kind_in_words(shape),
                }
            }
            (DeValue::Float(number), "number") => {
                match number.as_str().replace('_', "").parse::<f64>() {
                    Ok(number) if is_within(number, shape) => return,
                    _ => kind_in_words(shape),
                }
            }
            _ => kind_in_words(shape),
        };
        let written = &self.text[value.span().start.min(self.text.len())..];
        let written = written.get(..value.span().len()).unwrap_or(written);
        let given = match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            _ => shortened(written),
        };
        let key = dotted(path);
        let fault = Fault::Value { key: key.clone(), given };
        self.refuse(value.span(), &key, fault, allowed);
    }

    fn refuse(&mut self, place: Range<usize>, key: &str, fault: Fault, allowed: String) {
        let place = (self.file, self.text, place);
        self.problems.push(Problem::new(place, key, fault, allowed));
    }

    fn ignore(
        &mut self,
        place: Range<usize>,
        path: &[String],
        fault: impl FnOnce(String) -> Fault,
        advice: String,
    ) {
        let key = dotted(path);
        let place = (self.file, self.text, place);
        self.problems.push(Problem::new(place, &key, fault(key.clone()), advice));
        self.ignored.push(path.to_owned());
    }
}

/// Where a setting that is known does not count, and what to do.
fn misplaced(path: &[String], owner: Owner) -> Option<(&'static str, &'static str)> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["profiles", _, name] if NOT_IN_PROFILES.contains(name) => {
            Some(("in a profile", "write it outside of all profiles"))
        }
        _ if owner == Owner::Project && is_user_only(path) => {
            Some(("in a project's file", "write it into your own config.toml"))
        }
        _ => None,
    }
}

/// What is said about a key that there is not.
fn unknown(key: &str, table: Shape<'_>, value: &DeValue<'_>) -> String {
    let names = table.keys().into_iter().flatten().map(|(name, _)| name.as_str());
    match nearest(key, names) {
        Some(name) => format!("did you mean {name}?"),
        None if value.is_table() => {
            "no setting has a name like it, so nothing in it counts".to_owned()
        }
        None => "no setting has a name like it, so it does not count".to_owned(),
    }
}

fn near_word(given: &str, words: &[(&str, &str)]) -> String {
    let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let listed = one_of(&names);
    match nearest(given, words.iter().map(|(word, _)| *word)) {
        Some(word) => format!("did you mean {word:?}? It can be {listed}"),
        None => format!("it can be {listed}"),
    }
}

/// What a setting takes, as a person would say it.
fn kind_in_words(shape: Shape<'_>) -> String {
    if let Some(words) = shape.words() {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        return format!("it can be {}", one_of(&names));
    }
    let kind = match shape.kind() {
        "boolean" => "true or false".to_owned(),
        kind @ ("integer" | "number") => {
            let kind = if kind == "integer" { "a whole number" } else { "a number" };
            match shape.bounds() {
                (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
                (Some(least), None) => format!("{kind}, {least} or more"),
                _ => kind.to_owned(),
            }
        }
        "array" if shape.least_items() > 0 => {
            "a list of texts that is not empty, like [\"one\", \"two\"]".to_owned()
        }
        "array" => "a list of texts, like [\"one\", \"two\"]".to_owned(),
        "object" if shape.is_map() => "a table with names of your own".to_owned(),
        "object" => {
            let names: Vec<String> =
                shape.keys().into_iter().flatten().map(|(n, _)| n.clone()).collect();
            format!("a table with {}", names.join(", "))
        }
        _ => match shape.form() {
            Some(form) => format!("a text in quotes: {}", form.words),
            None => "a text in quotes".to_owned(),
        },
    };
    format!("it must be {kind}")
}

fn one_of(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn is_within(number: f64, shape: Shape<'_>) -> bool {
    let (least, most) = shape.bounds();
    !number.is_nan()
        && least.is_none_or(|least| number >= least)
        && most.is_none_or(|most| number <= most)
}

/// The name that was probably meant.
pub(crate) fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let given = given.to_lowercase().replace('-', "_");
    let likeness = |name: &str| strsim::jaro_winkler(&given, &name.replace('-', "_"));
    let (name, likeness) =
        names.map(|name| (name, likeness(name))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (likeness >= 0.88).then_some(name)
}

/// A path as it is written in a file and on the command line.
pub(crate) fn dotted(path: &[impl AsRef<str>]) -> String {
    let part = |part: &str| {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match !part.is_empty() && part.chars().all(bare) {
            true => part.to_owned(),
            false => Value::from(part).to_string(),
        }
    };
    path.iter().map(|name| part(name.as_ref())).collect::<Vec<_>>().join(".")
}

/// What was written, on one line and not too long.
fn shortened(written: &str) -> String {
    let line: String = written.lines().next().unwrap_or_default().chars().map(harmless).collect();
    match line.chars().count() {
        0..=40 => line,
        _ => format!("{}…", line.chars().take(39).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of every kind, and some that settings have.
    const VALUES: &[&str] = &[
        "\"x\"",
        "\"\"",
        "\"never\"",
        "\"read-only\"",
        "\"none\"",
        "\"trusted\"",
        "\"chat\"",
        "\"https://x\"",
        "true",
        "0",
        "7",
        "0x10",
        "1_000",
        "-1",
        "99999999999999999999",
        "1.5",
        "1e400",
        "inf",
        "nan",
        "2020-01-01",
        "[]",
        "[\"a\", \"b\"]",
        "[1]",
        "[[\"a\"]]",
        "{}",
        "{ x = \"y\" }",
        "{ x = 1 }",
        "{ \"a b\" = \"c\" }",
    ];

    /// The paths of all settings, with `x` for names of the person's own.
    fn paths(shape: Shape<'_>, path: &str, depth: usize, all: &mut Vec<String>) {
        let mut below = |name: &str, shape: Shape<'_>| {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            all.push(path.clone());
            if depth < 5 {
                paths(shape, &path, depth + 1, all);
            }
        };
        for (name, _) in shape.keys().into_iter().flatten() {
            if let Some(shape) = shape.below(name) {
                below(name, shape);
            }
        }
        if shape.is_map()
            && let Some(shape) = shape.below("x")
        {
            below("x", shape);
        }
        if shape.keys().is_some() {
            all.push(format!("{path}.nothing").trim_start_matches('.').to_owned());
        }
    }

    /// The quick way must never let anything through that the slow way has a word to say about.
    #[test]
    fn both_ways_find_the_same() {
        let mut all = Vec::new();
        paths(Shape::of_file(), "", 0, &mut all);
        // A profile holds what the file holds; what differs is which of it counts.
        let is_short = |path: &str| path.matches('.').count() <= 2 || path.contains(".key_");
        all.retain(|path| !path.starts_with("profiles.") || is_short(path));
        let (mut fine, mut odd) = (0, 0);
        for path in &all {
            for value in VALUES {
                let text = format!("{path} = {value}\n");
                for owner in [Owner::Person, Owner::Project] {
                    let (quick, slow) = (check(&text, "f", owner), explain(&text, "f", owner));
                    match &quick {
                        Ok(checked) if checked.warnings.is_empty() => fine += 1,
                        _ => odd += 1,
                    }
                    assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{text}");
                }
            }
        }
        assert!(all.len() > 100 && fine > 500 && odd > 500, "{} {fine} {odd}", all.len());
    }
}
