//! Puts a member into a JSON text as people write it, with comments and commas at the end, and leaves every
//! other letter of it alone.
//!
//! The text is read by a small scanner that knows where values begin and end. Whatever it makes is then read
//! by the real parser, before and after: if anything else than the one member differs, nothing is changed.

use serde_json::{Map, Value};
use std::ops::Range;

/// How deep a text may be nested.
const DEEPEST: usize = 100;

/// The text with `outer.name` set to a value. An empty text counts as an empty object.
///
/// # Errors
/// Why it cannot be put there.
pub(super) fn put(text: &str, outer: &str, name: &str, value: &Value) -> Result<String, String> {
    if text.trim().is_empty() {
        let whole = Value::Object(Map::from_iter([(outer.to_owned(), one(name, value))]));
        return Ok(pretty(&whole, "  ", "") + "\n");
    }
    let before = read(text)?;
    let indent = indent_of(text);
    let root = Scanner::root(text)?;
    let changed = match root.member(outer) {
        None => root.insert(text, outer, &one(name, value), &indent),
        Some(found) => {
            if before.get(outer).is_none_or(|found| !found.is_object()) {
                return Err(format!("{outer} is not an object"));
            }
            if before[outer].get(name) == Some(value) {
                return Ok(text.to_owned());
            }
            let servers = Scanner::object(text, found.start)?;
            match servers.member(name) {
                None => servers.insert(text, name, value, &indent),
                Some(old) => {
                    let margin = margin_of(text, old.start);
                    let new = pretty(value, &indent, &margin);
                    format!("{}{new}{}", &text[..old.start], &text[old.end..])
                }
            }
        }
    };
    let mut expected = before;
    let servers = expected.as_object_mut().ok_or("it is not an object")?;
    let servers = servers.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    servers[name] = value.clone();
    match read(&changed) {
        Ok(after) if after == expected => Ok(changed),
        _ => Err("it is written in a way that cannot be changed safely".to_owned()),
    }
}

fn one(name: &str, value: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value.clone())]))
}

/// What a text says, without its comments and the commas before closing brackets.
fn read(text: &str) -> Result<Value, String> {
    let mut plain = String::with_capacity(text.len());
    let mut comma: Option<usize> = None;
    for token in (Tokens { text, at: 0 }) {
        let word = &text[token?];
        match word.as_bytes().first() {
            Some(b'}' | b']') => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
            }
            Some(b',') => comma = Some(plain.len()),
            _ => comma = None,
        }
        plain.push_str(word);
        plain.push(' ');
    }
    let value: Value = serde_json::from_str(&plain).map_err(|_| "it is no JSON".to_owned())?;
    if value.is_object() { Ok(value) } else { Err("it is not an object".to_owned()) }
}

/// The letters of a text that are not blank and no comment: brackets, commas, colons, strings, words.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = Result<Range<usize>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = &self.text[self.at..];
            let skipped = match bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => 1,
                _ if rest.starts_with('\u{feff}') && self.at == 0 => 3,
                b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                b'/' if rest.starts_with("/*") => match rest.find("*/") {
                    Some(end) => end + 2,
                    None => return Some(Err("a comment has no end".to_owned())),
                },
                _ => break,
            };
            self.at += skipped;
        }
        let start = self.at;
        let length = match bytes[start] {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => match end_of_string(&bytes[start..]) {
                Some(length) => length,
                None => return Some(Err("a text has no end".to_owned())),
            },
            _ => {
                let rest = &self.text[start..];
                let ends = |c: char| c.is_whitespace() || "{}[],:\"/".contains(c);
                rest.find(ends).unwrap_or(rest.len()).max(1)
            }
        };
        self.at = self.text.ceil_char_boundary(start + length);
        Some(Ok(start..self.at))
    }
}

fn end_of_string(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// One object of a text: where it begins, what is in it.
struct Scanner {
    open: usize,
    members: Vec<(String, Range<usize>)>,
    close: usize,
}

impl Scanner {
    /// The outermost object.
    fn root(text: &str) -> Result<Self, String> {
        let first = Tokens { text, at: 0 }.next().ok_or("it is empty")??;
        Self::object(text, first.start)
    }

    /// The object that begins here.
    fn object(text: &str, open: usize) -> Result<Self, String> {
        let odd = || "it is no JSON".to_owned();
        let mut tokens = Tokens { text, at: open };
        let mut next = move || tokens.next().ok_or_else(odd)?;
        if &text[next()?] != "{" {
            return Err("it is not an object".to_owned());
        }
        let mut members = Vec::new();
        loop {
            let key = next()?;
            match &text[key.clone()] {
                "}" => return Ok(Self { open, members, close: key.start }),
                "," => continue,
                _ => {}
            }
            let name: String = serde_json::from_str(&text[key]).map_err(|_| odd())?;
            if &text[next()?] != ":" {
                return Err(odd());
            }
            let mut value = next()?;
            let mut depth = usize::from(matches!(&text[value.clone()], "{" | "["));
            while depth > 0 {
                let token = next()?;
                match &text[token.clone()] {
                    "{" | "[" => depth += 1,
                    "}" | "]" => depth -= 1,
                    _ => {}
                }
                if depth > DEEPEST {
                    return Err("it is nested too deep".to_owned());
                }
                value.end = token.end;
            }
            members.push((name, value));
        }
    }

    /// The value of a member. Of several of one name the last counts, as for whoever reads the file.
    fn member(&self, name: &str) -> Option<Range<usize>> {
        let found = self.members.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, value)| value.clone())
    }

    /// The text with one more member at the end of the object.
    fn insert(&self, text: &str, name: &str, value: &Value, indent: &str) -> String {
        let margin = margin_of(text, self.open);
        let inner = format!("{margin}{indent}");
        let member = format!("\n{inner}{}: {}", Value::from(name), pretty(value, indent, &inner));
        match self.members.last() {
            Some((_, last)) => {
                let (before, tail) = text[..self.close].split_at(last.end);
                let first = Tokens { text: tail, at: 0 }.next().and_then(Result::ok);
                let comma = first.filter(|token| &tail[token.clone()] == ",");
                // What stands behind the last value belongs to it.
                let (rest, end) =
                    tail.split_at(end_of_remark(tail, comma.as_ref().map_or(0, |at| at.end)));
                let end = match end.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
                    true => end.to_owned(),
                    false => format!("\n{margin}{}", end.trim_start()),
                };
                let (first, second) = if comma.is_some() { ("", ",") } else { (",", "") };
                format!("{before}{first}{rest}{member}{second}{end}{}", &text[self.close..])
            }
            None => {
                let (before, after) = (&text[..=self.open], &text[self.open + 1..self.close]);
                let kept = after.trim_end();
                format!("{before}{kept}{member}\n{margin}{}", &text[self.close..])
            }
        }
    }
}

/// Where the comments end that begin on the line of this place, with nothing but blanks between them.
fn end_of_remark(text: &str, from: usize) -> usize {
    let mut end = from;
    loop {
        let blank = text[end..].find(|c| !matches!(c, ' ' | '\t')).unwrap_or(text.len() - end);
        let rest = &text[end + blank..];
        if rest.starts_with("//") {
            return end + blank + rest.find(['\r', '\n']).unwrap_or(rest.len());
        }
        match rest.strip_prefix("/*").and_then(|comment| comment.find("*/")) {
            Some(length) => end += blank + length + 4,
            None => return end,
        }
    }
}

/// What the line of a place begins with.
fn margin_of(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[line..at].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// What this text is indented by. What stands in comments does not count.
fn indent_of(text: &str) -> String {
    let margin = |token: Range<usize>| {
        let line = text[..token.start].rfind('\n')? + 1;
        let margin = &text[line..token.start];
        let is_margin =
            !margin.is_empty() && margin.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        is_margin.then(|| margin.to_owned())
    };
    let tokens = Tokens { text, at: 0 }.filter_map(Result::ok);
    tokens.filter_map(margin).min_by_key(String::len).unwrap_or_else(|| "  ".to_owned())
}

/// A value on several lines, those after the first behind a margin.
fn pretty(value: &Value, indent: &str, margin: &str) -> String {
    use serde::Serialize as _;
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Text, numbers and lists of them can always be written.
    let _ = value.serialize(&mut serializer);
    String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{margin}"))
}
