//! What a POSIX shell runs by itself. Some of it does more than the program of the same name: a
//! shell's `printf` and `test` can set variables, and evaluate what is written in an index.

use super::options::is_number;
use super::{NotSafe, shown};
use crate::command::{Shape, Word};

/// Whether a builtin is called in a way that is known to be safe; none if it is no builtin, or one
/// that does what the program of that name does.
pub(super) fn check(name: &str, arguments: &[Word]) -> Option<Result<(), NotSafe>> {
    let safe = match name {
        // They print, or do nothing.
        ":" | "echo" | "true" | "false" => true,
        // Another directory for the shell; `together` looks at what follows. `cd -` is the one
        // before.
        "cd" | "pushd" => {
            let (flags, directories) = split(arguments, &["-L", "-P", "--"]);
            flags.len() < 2 && directories.len() < 2 && directories.iter().all(is_directory)
        }
        "popd" | "dirs" => arguments.is_empty(),
        "command" => match arguments.split_first() {
            // Without these it runs what it names.
            Some((flag, names)) => is_one_of(flag, &["-v", "-V"]) && names.iter().all(is_name),
            None => true,
        },
        "type" => {
            let (_, names) = split(arguments, &["-a", "-f", "-p", "-P", "-t", "--"]);
            names.iter().all(is_name)
        }
        "exit" => match arguments {
            [] => true,
            [code] => code.as_literal().is_some_and(is_whole),
            _ => false,
        },
        "set" => is_strictness(arguments),
        // It shows them, or one of them; with a number behind a letter it would set one.
        "ulimit" => match arguments {
            [] => true,
            [flag] => flag.as_literal().is_some_and(shows_a_limit),
            _ => false,
        },
        "umask" => match arguments {
            [] => true,
            [flag] => is_one_of(flag, &["-S", "-p"]),
            _ => false,
        },
        "printf" => is_plain_printf(arguments),
        "test" => is_plain_test(arguments),
        "[" => match arguments.split_last() {
            Some((last, expression)) => is_one_of(last, &["]"]) && is_plain_test(expression),
            None => false,
        },
        _ => return None,
    };
    Some(if safe {
        Ok(())
    } else {
        Err(NotSafe(format!("this use of the shell's own {} is not known to be safe", shown(name))))
    })
}

/// The words in front that are among the flags, and the rest.
fn split<'a>(words: &'a [Word], flags: &[&str]) -> (&'a [Word], &'a [Word]) {
    let count = words.iter().take_while(|word| is_one_of(word, flags)).count();
    words.split_at(count)
}

fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    word.as_literal().is_some_and(|text| texts.contains(&text))
}

fn is_directory(word: &Word) -> bool {
    word.shape != Shape::Pattern && (!word.text.starts_with(['-', '+']) || word.text == "-")
}

fn is_name(word: &Word) -> bool {
    word.as_literal().is_some_and(|name| !name.starts_with('-'))
}

fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number that no shell takes for an expression.
fn is_signed(text: &str) -> bool {
    is_number(text.strip_prefix(['-', '+']).unwrap_or(text))
}

/// `-n`, or `-Hn`: the letter of a limit, and which of the two.
fn shows_a_limit(flag: &str) -> bool {
    let letters = flag.strip_prefix('-').unwrap_or_default();
    let letter = letters.strip_prefix(['H', 'S']).unwrap_or(letters);
    letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// `set -euo pipefail` and its like: the shell gives up earlier, and nothing else changes.
fn is_strictness(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(|word| word.as_literal().unwrap_or_default());
    let mut any = false;
    while let Some(word) = words.next() {
        any = true;
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return false;
        };
        let named = letters.strip_suffix('o');
        if !named.unwrap_or(letters).bytes().all(|byte| b"eu".contains(&byte)) {
            return false;
        }
        let known = ["errexit", "nounset", "pipefail"];
        if named.is_some() && !words.next().is_some_and(|name| known.contains(&name)) {
            return false;
        }
    }
    any
}

/// `printf FORMAT ARGUMENT…` without -v and %n, which set a variable. Behind a conversion that wants
/// a number some shells evaluate an expression, so there an argument must be a number.
fn is_plain_printf(arguments: &[Word]) -> bool {
    let arguments = match arguments.split_first() {
        Some((dashes, rest)) if dashes.as_literal() == Some("--") => rest,
        _ => arguments,
    };
    let Some((format, values)) = arguments.split_first() else { return true };
    let Some(format) = format.as_literal().filter(|format| !format.starts_with('-')) else {
        return false;
    };
    let Some(wanted) = conversions(format) else { return false };
    if !wanted.contains(&Wanted::Number) {
        return true;
    }
    // The format is used again for the values that are left. What a pattern stands for can be several of
    // them, so that nobody knows which meets which conversion.
    values.iter().zip(wanted.iter().cycle()).all(|(value, wanted)| match value.as_literal() {
        Some(text) => *wanted == Wanted::Text || is_signed(text),
        None => false,
    })
}

/// What a conversion makes of its argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Number,
}

/// What each conversion of a format that takes an argument wants; none if one of them is not plain.
fn conversions(format: &str) -> Option<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let spec = rest[at + 1..].trim_start_matches(['-', '+', ' ', '#', '0', '\'']);
        let spec = spec.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let spec = match spec.strip_prefix('.') {
            Some(precision) => precision.trim_start_matches(|digit: char| digit.is_ascii_digit()),
            None => spec,
        };
        let conversion = spec.chars().next()?;
        match conversion {
            // With a width between them shells do not agree on what it is.
            '%' if rest[at..].starts_with("%%") => {}
            's' | 'b' | 'c' | 'q' => wanted.push(Wanted::Text),
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                wanted.push(Wanted::Number);
            }
            _ => return None,
        }
        rest = &spec[conversion.len_utf8()..];
    }
    Some(wanted)
}

/// Operators that take a number on each side, which some shells evaluate as an expression.
const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Operators that look at files and strings only. Not -v, -R: evaluate an index. Not -t: evaluates
/// an expression in zsh.
const PLAIN_TESTS: [&str; 27] = [
    "-a", "-b", "-c", "-d", "-e", "-ef", "-f", "-G", "-g", "-h", "-k", "-L", "-N", "-n", "-nt",
    "-O", "-o", "-ot", "-p", "-r", "-S", "-s", "-u", "-w", "-x", "-z", "-",
];

fn is_plain_test(expression: &[Word]) -> bool {
    let number_at = |place: Option<usize>| {
        let word = place.and_then(|place| expression.get(place)).and_then(Word::as_literal);
        word.is_some_and(is_signed)
    };
    expression.iter().enumerate().all(|(place, word)| match word.as_literal() {
        Some(text) if COMPARISONS.contains(&text) => {
            number_at(place.checked_sub(1)) && number_at(place.checked_add(1))
        }
        Some(text) => !text.starts_with('-') || PLAIN_TESTS.contains(&text) || is_signed(text),
        // A pattern could match files whose names are operators.
        None => word.shape == Shape::Home,
    })
}
