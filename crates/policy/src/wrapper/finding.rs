//! Wrappers that put names into a command: `find -exec`, `fd -x`, `xargs`, `parallel`.
//!
//! The names are not known, but often where they lie is; a word then says that much.

use super::part;
use crate::command::{Shape, SimpleCommand, Word};

/// Words that nobody knows yet.
pub(crate) const UNKNOWN: &str = "…";

/// Tests of find by which only some of what it finds is meant, because they say what that is. How old,
/// how large or whose something is says nothing of what it is.
const NARROWING: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-newer",
    "-empty",
    "-lname",
    "-ilname",
    "-inum",
    "-samefile",
];

/// The commands of `-exec`, `-execdir`, `-ok` and `-okdir`.
pub(super) fn find(command: &SimpleCommand, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    let mut at = 1;
    while at < words.len() {
        if !matches!(words[at].text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            at += 1;
            continue;
        }
        let rest = &words[at + 1..];
        let ends = |word: &Word| word.text == ";" || word.text == "+";
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        put_in(&rest[..length], &found_by_find(words), command, found);
        at += length + 2;
    }
}

/// Where find starts, and whether it takes all that it finds.
pub(crate) fn starts(words: &[Word]) -> (Vec<&Word>, bool) {
    let options = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P");
    let begins_expression =
        |word: &Word| word.text.starts_with('-') || matches!(word.text.as_str(), "(" | "!");
    let starts: Vec<&Word> = words
        .iter()
        .skip(1)
        .skip_while(options)
        .take_while(|word| !begins_expression(word))
        .collect();
    // `-name '*'` lets everything through, and `! -name x` nearly everything.
    let everything = |at: usize| words.get(at + 1).is_some_and(|value| value.text == "*");
    let negated = |at: usize| matches!(words[at - 1].text.as_str(), "!" | "-not");
    let narrows = |at: &usize| {
        NARROWING.contains(&words[*at].text.as_str()) && !everything(*at) && !negated(*at)
    };
    let separates = |at: &usize| matches!(words[*at].text.as_str(), "-o" | "-or" | ",");
    // Each of several alternatives lets through what it lets through.
    let places: Vec<usize> = (1..words.len()).collect();
    let all = !places.split(separates).all(|alternative| alternative.iter().any(narrows));
    (starts, all)
}

/// Words that stand for what find finds.
pub(crate) fn found_by_find(words: &[Word]) -> Vec<Word> {
    let (mut starts, all) = starts(words);
    let here = Word::literal(".");
    if starts.is_empty() {
        starts.push(&here);
    }
    let name = words.windows(2).find(|pair| matches!(pair[0].text.as_str(), "-name" | "-iname"));
    let name = name.map_or("*{}*", |pair| pair[1].text.as_str());
    let put = |start: &&Word| match (all, start.shape) {
        (true, _) => (*start).clone(),
        (false, Shape::Dynamic) => {
            Word { text: format!("{}/{name}", start.text), shape: Shape::Dynamic }
        }
        (false, _) => beneath(&start.text, name),
    };
    starts.iter().map(put).collect()
}

/// Words that stand for what a program finds that is told where to look among its operands.
pub(crate) fn found_by_others(words: &[Word]) -> Vec<Word> {
    let elsewhere =
        |word: &&Word| word.text.starts_with(['/', '~', '$']) || word.text.contains("..");
    let put = |word: &Word| match word.shape {
        Shape::Dynamic => word.clone(),
        _ => beneath(&word.text, "*{}*"),
    };
    let found: Vec<Word> = words.iter().skip(1).filter(elsewhere).map(put).collect();
    if found.is_empty() { vec![beneath(".", "*{}*")] } else { found }
}

/// Something in a directory.
fn beneath(directory: &str, name: &str) -> Word {
    let text = format!("{}/{name}", directory.trim_end_matches('/'));
    Word { text, shape: Shape::Pattern }
}

/// The command of `-x`, `-X`, `--exec` and `--exec-batch`.
pub(super) fn fd(command: &SimpleCommand, found: &mut Vec<SimpleCommand>) {
    let words = &command.words;
    let runs = |word: &Word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let Some(at) = words.iter().position(runs) else { return };
    let rest = &words[at + 1..];
    let length = rest.iter().position(|word| word.text == ";").unwrap_or(rest.len());
    put_in(&rest[..length], &found_by_others(&words[..at]), command, found);
}

/// The command of `xargs` and `parallel`.
pub(super) fn appended(
    command: &SimpleCommand,
    rest: &[Word],
    wrapper: &str,
    found: &mut Vec<SimpleCommand>,
) {
    let unknown = Word { text: UNKNOWN.to_owned(), shape: Shape::Dynamic };
    if wrapper == "parallel" {
        let given = |word: &Word| matches!(word.text.as_str(), ":::" | ":::+" | "::::");
        let end = rest.iter().position(given).unwrap_or(rest.len());
        let inputs = match rest.get(end + 1..) {
            Some(inputs) if rest[end].text != "::::" && !inputs.is_empty() => inputs.to_vec(),
            _ => vec![unknown],
        };
        if end == 1 && rest[0].text.contains(' ') {
            super::scripts::read("bash", &rest[0].text, found);
        } else {
            put_in(&rest[..end], &inputs, command, found);
        }
        return;
    }
    let Some(mark) = replaced(&command.words) else {
        let mut words = rest.to_vec();
        words.push(unknown);
        found.push(part(&words, command));
        return;
    };
    let put = |word: &Word| match word.text.contains(mark) {
        true => Word { text: word.text.replace(mark, UNKNOWN), shape: Shape::Dynamic },
        false => word.clone(),
    };
    let words: Vec<Word> = rest.iter().map(put).collect();
    found.push(part(&words, command));
}

/// What `xargs -I` puts the names in the place of.
fn replaced(words: &[Word]) -> Option<&str> {
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        if matches!(text, "-I" | "-J") {
            return words.get(index + 1).map(|word| word.text.as_str());
        }
        if matches!(text, "-i" | "--replace") {
            return Some("{}");
        }
        let attached = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace="));
        if let Some(mark) = attached.or_else(|| text.strip_prefix("-i")) {
            return Some(mark);
        }
    }
    None
}

/// A word with a name in the place of a `{}` inside it.
fn put_into(word: &Word, names: &[Word]) -> Word {
    match names.first() {
        Some(name) if word.text.contains("{}") => {
            Word { text: word.text.replace("{}", &name.text), shape: Shape::Dynamic }
        }
        _ => word.clone(),
    }
}

/// The command with names in the place of `{}`, or after it where there is no `{}`.
fn put_in(words: &[Word], names: &[Word], of: &SimpleCommand, found: &mut Vec<SimpleCommand>) {
    if words.is_empty() {
        return;
    }
    let mut put: Vec<Word> = Vec::with_capacity(words.len() + names.len());
    let mut was_put = false;
    for word in words {
        if matches!(word.text.as_str(), "{}" | "{/}" | "{//}" | "{.}") {
            was_put = true;
            put.extend_from_slice(names);
        } else {
            put.push(put_into(word, names));
        }
    }
    if !was_put && of.program().is_some_and(|name| !name.ends_with("find")) {
        put.extend_from_slice(names);
    }
    found.push(part(&put, of));
}
