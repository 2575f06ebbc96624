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
                // The star that opens a comment does not close it: `/*/` has no end yet.
                b'/' if rest.starts_with("/*") => match rest[2..].find("*/") {
                    Some(length) => length + 4,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_star_that_opens_a_comment_does_not_close_it() {
        assert_eq!(read("{/*/ \"a\": 1, /*/}"), Ok(Value::Object(Map::new())));
    }

    const BETWEEN: &[&str] =
        &["", " ", "\n\t", "\r\n", "/**/", "/*/ \" */", "/* } // */", "// it's {\n", "//\n"];

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\\\\/*{}\\[\\],:é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                objects(inner),
            ]
        })
    }

    fn objects(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
        let members = prop::collection::vec(("o|n|[a-c\"/*é]{0,3}", values), 0..4);
        members.prop_map(|members| Value::Object(members.into_iter().collect()))
    }

    /// A value as a person may have written it: with anything that means nothing between its parts, and with
    /// commas at the ends.
    fn written(value: &Value, between: &mut impl Iterator<Item = &'static str>) -> String {
        let mut text = between.next().unwrap_or_default().to_owned();
        let (open, close, parts): (_, _, Vec<String>) = match value {
            Value::Array(items) => {
                ("[", "]", items.iter().map(|item| written(item, between)).collect())
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let name = written(&Value::from(name.as_str()), between);
                    format!("{name}:{}", written(value, between))
                };
                ("{", "}", members.iter().map(member).collect())
            }
            _ => return text + &value.to_string() + between.next().unwrap_or_default(),
        };
        text.push_str(open);
        text.push_str(&parts.join(","));
        let end = between.next().unwrap_or_default();
        if end.len() % 2 == 1 && !parts.is_empty() {
            text.push(',');
        }
        text + end + close + between.next().unwrap_or_default()
    }

    fn files() -> impl Strategy<Value = (Value, String)> {
        let between = prop::collection::vec(prop::sample::select(BETWEEN), 1..40);
        (objects(values()), between).prop_map(|(value, between)| {
            let text = written(&value, &mut between.into_iter().cycle());
            (value, text)
        })
    }

    proptest! {
        #[test]
        fn comments_and_commas_at_the_end_mean_nothing((value, text) in files()) {
            prop_assert_eq!(read(&text), Ok(value), "{:?}", text);
        }

        #[test]
        fn one_member_is_put_and_everything_else_stays((value, text) in files(), new in values()) {
            let changed = put(&text, "o", "n", &new);
            let outer = value.get("o");
            if outer.is_some_and(|outer| !outer.is_object()) {
                prop_assert_eq!(changed, Err("o is not an object".to_owned()));
                return Ok(());
            }
            let changed = changed.map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
            let mut expected = value.clone();
            expected["o"]["n"] = new.clone();
            prop_assert_eq!(read(&changed), Ok(expected));
            prop_assert_eq!(put(&changed, "o", "n", &new), Ok(changed.clone()), "it is put once");
            if outer.and_then(|outer| outer.get("n")).is_none() {
                let mut rest = changed.chars();
                let kept = text.chars().filter(|c| !c.is_whitespace()).all(|c| rest.any(|it| it == c));
                prop_assert!(kept, "{:?} became {:?}", text, changed);
            }
        }

        #[test]
        fn any_text_is_changed_or_refused(text in "([{}\\[\\],:\"\\\\/* \n1é\u{a0}\u{feff}]|\"o\":|\"n\"|//|/\\*|\\*/){0,30}") {
            if let Ok(changed) = put(&text, "o", "n", &Value::from(1)) {
                prop_assert_eq!(read(&changed).map(|it| it["o"]["n"].clone()), Ok(Value::from(1)));
            }
        }
    }
}
