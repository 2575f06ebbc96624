//! A small reader of script lines for the tests of danger, so that they do not stand or fall with
//! the reader of scripts: words, quotes, connectives, redirections and assignments, and no more.

use sandgate_policy::command::{
    Assignment, Connective, Redirection, RedirectionKind, Shape, SimpleCommand, Word,
};
use sandgate_policy::script::{Opacity, Reader, Reading, ShellKind};

/// The commands of a line.
pub(crate) fn read(line: &str) -> Reading {
    let mut commands = vec![SimpleCommand::default()];
    let mut pending: Option<(Option<u32>, RedirectionKind)> = None;
    let mut opaque = false;
    for token in tokens(line) {
        match token {
            Token::Operator(text) => match connective(&text) {
                Some(connective) => {
                    commands.push(SimpleCommand { connective, ..SimpleCommand::default() });
                }
                None => pending = redirection(&text),
            },
            Token::Word(word) => {
                opaque |= word.shape == Shape::Dynamic;
                let command = commands.last_mut().expect("there is always one");
                if let Some((descriptor, kind)) = pending.take() {
                    command.redirections.push(Redirection { descriptor, kind, target: word });
                } else if let (true, Some((name, value))) =
                    (command.words.is_empty(), assignment(&word))
                {
                    command.assignments.push(Assignment { name, value });
                } else {
                    command.words.push(word);
                }
            }
        }
    }
    commands.retain(|command| *command != SimpleCommand::default());
    commands.retain(|command| {
        !command.words.is_empty()
            || !command.assignments.is_empty()
            || !command.redirections.is_empty()
    });
    let opaque = opaque.then(|| Opacity("it is made while it runs".to_owned()));
    Reading { reader: Reader::Shell(ShellKind::Bash), commands, opaque }
}

enum Token {
    Word(Word),
    Operator(String),
}

fn connective(text: &str) -> Option<Connective> {
    Some(match text {
        ";" => Connective::Then,
        "&&" => Connective::And,
        "||" => Connective::Or,
        "|" => Connective::Pipe,
        "|&" => Connective::PipeBoth,
        "&" => Connective::Beside,
        _ => return None,
    })
}

fn redirection(text: &str) -> Option<(Option<u32>, RedirectionKind)> {
    let digits = text.trim_end_matches(['<', '>', '|', '&']);
    let kind = match &text[digits.len()..] {
        "<" => RedirectionKind::Read,
        ">" => RedirectionKind::Write,
        ">|" => RedirectionKind::Clobber,
        ">>" => RedirectionKind::Append,
        "<>" => RedirectionKind::ReadWrite,
        "&>" => RedirectionKind::WriteBoth,
        ">&" => RedirectionKind::Duplicate,
        "<<<" => RedirectionKind::HereString,
        _ => panic!("the test's reader does not know {text}"),
    };
    Some((digits.parse().ok(), kind))
}

fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.text.split_once('=')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(plain))
        .then(|| (name.to_owned(), Word { text: value.to_owned(), shape: word.shape }))
}

fn tokens(line: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = &rest[digits..];
        let operators =
            ["<<<", "&>", ">>", ">|", ">&", "<>", "&&", "||", "|&", "|", ";", "&", ">", "<"];
        let substitution = after.starts_with("<(") || after.starts_with(">(");
        let operator = operators.iter().find(|operator| after.starts_with(**operator));
        match operator {
            Some(operator) if !substitution && (digits == 0 || operator.contains(['<', '>'])) => {
                let length = digits + operator.len();
                found.push(Token::Operator(rest[..length].to_owned()));
                rest = rest[length..].trim_start();
            }
            _ => {
                let (word, length) = word(rest);
                found.push(Token::Word(word));
                rest = rest[length..].trim_start();
            }
        }
    }
    found
}

fn word(text: &str) -> (Word, usize) {
    let (mut plain, mut quote, mut deep) = (String::new(), None, 0_usize);
    let mut ticked = false;
    let (mut dynamic, mut pattern, mut quoted, mut length) = (false, false, false, text.len());
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match (quote, letter) {
            (_, '`') if quote != Some('\'') => ticked = !ticked,
            _ if ticked => {}
            (None, '(') if deep > 0 || plain.ends_with(['$', '<', '>']) => deep += 1,
            (_, '(') if deep > 0 || (quote == Some('"') && plain.ends_with('$')) => deep += 1,
            (_, ')') if deep > 0 => deep -= 1,
            _ if deep > 0 => {}
            (Some(open), _) if letter == open => {
                quote = None;
                continue;
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                quoted = true;
                continue;
            }
            (None, '\\') => {
                if let Some((_, next)) = letters.next() {
                    plain.push(next);
                }
                continue;
            }
            (None, ' ' | ';' | '|' | '&') => {
                length = at;
                break;
            }
            (None, '>' | '<') if next != Some('(') => {
                length = at;
                break;
            }
            (None, '*' | '?' | '[') => pattern |= letter != '[' || at > 0,
            _ => {}
        }
        dynamic |= quote != Some('\'') && (letter == '`' || (letter == '$' && next.is_some()));
        dynamic |= matches!((letter, next), ('<' | '>', Some('('))) && quote.is_none();
        plain.push(letter);
    }
    let shape = match () {
        () if dynamic => Shape::Dynamic,
        () if text.starts_with('~') => Shape::Home,
        () if pattern && !quoted => Shape::Pattern,
        () => Shape::Literal,
    };
    let text = if dynamic { text[..length].to_owned() } else { plain };
    (Word { text, shape }, length)
}
