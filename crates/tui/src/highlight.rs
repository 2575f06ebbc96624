//! Colours for code.
//!
//! A small reader of our own, not a set of grammars: those weigh megabytes, and run patterns that can be
//! made to take for ever over text that a model wrote. It knows comments, strings, numbers and words,
//! reads each character once, and is never asked whether code is right.

use crate::text::harmless;
use crate::theme::{DIM, KEYWORD, NUMBER, PLAIN, STRING};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// What is to be known of a language.
struct Language {
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    words: &'static [&'static str],
}

const C_LIKE: Option<(&str, &str)> = Some(("/*", "*/"));

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comments: &["//"],
        block_comment: C_LIKE,
        // A single one begins a lifetime as often as a character.
        quotes: &['"'],
        words: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
    },
    Language {
        names: &["python", "py", "python3"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        words: &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
            "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import",
            "in", "is", "lambda", "None", "nonlocal", "not", "or", "pass", "raise", "return",
            "True", "try", "while", "with", "yield",
        ],
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx"],
        line_comments: &["//"],
        block_comment: C_LIKE,
        quotes: &['"', '\'', '`'],
        words: &[
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
    },
    Language {
        names: &["go", "golang"],
        line_comments: &["//"],
        block_comment: C_LIKE,
        quotes: &['"', '\'', '`'],
        words: &[
            "break",
            "case",
            "chan",
            "const",
            "continue",
            "default",
            "defer",
            "else",
            "fallthrough",
            "false",
            "for",
            "func",
            "go",
            "if",
            "import",
            "interface",
            "map",
            "nil",
            "package",
            "range",
            "return",
            "select",
            "struct",
            "switch",
            "true",
            "type",
            "var",
        ],
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "java", "kotlin", "swift", "csharp", "cs", "scala"],
        line_comments: &["//"],
        block_comment: C_LIKE,
        quotes: &['"', '\''],
        words: &[
            "bool",
            "break",
            "case",
            "catch",
            "char",
            "class",
            "const",
            "continue",
            "default",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "false",
            "final",
            "float",
            "for",
            "func",
            "if",
            "import",
            "include",
            "int",
            "interface",
            "let",
            "long",
            "namespace",
            "new",
            "null",
            "nullptr",
            "override",
            "package",
            "private",
            "protected",
            "public",
            "return",
            "short",
            "sizeof",
            "static",
            "struct",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "typedef",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "while",
        ],
    },
    Language {
        names: &["sh", "bash", "zsh", "shell", "fish", "console"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        words: &[
            "case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for",
            "function", "if", "in", "local", "return", "set", "then", "unset", "until", "while",
        ],
    },
    Language {
        names: &["toml", "ini", "yaml", "yml", "dockerfile", "make", "makefile"],
        line_comments: &["#"],
        block_comment: None,
        quotes: &['"', '\''],
        words: &["true", "false", "null", "FROM", "RUN", "COPY", "CMD", "ENV", "WORKDIR"],
    },
    Language {
        names: &["json", "jsonc"],
        line_comments: &["//"],
        block_comment: None,
        quotes: &['"'],
        words: &["true", "false", "null"],
    },
    Language {
        names: &["sql"],
        line_comments: &["--"],
        block_comment: C_LIKE,
        quotes: &['\'', '"'],
        words: &[
            "and", "as", "by", "create", "delete", "from", "group", "insert", "into", "join",
            "not", "null", "on", "or", "order", "select", "set", "table", "update", "values",
            "where", "AND", "AS", "BY", "CREATE", "DELETE", "FROM", "GROUP", "INSERT", "INTO",
            "JOIN", "NOT", "NULL", "ON", "OR", "ORDER", "SELECT", "SET", "TABLE", "UPDATE",
            "VALUES", "WHERE",
        ],
    },
];

/// Code as lines, each harmless, in the colours of its language if that is known.
pub(crate) fn code(source: &str, language: &str) -> Vec<Line<'static>> {
    let name = language.split([',', ' ', '{']).next().unwrap_or("").to_ascii_lowercase();
    let language = LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()));
    let source = source.strip_suffix('\n').unwrap_or(source);
    let mut in_comment = false;
    source
        .split('\n')
        .map(|line| {
            let line = harmless(line.strip_suffix('\r').unwrap_or(line));
            match language {
                Some(language) => colours(&line, language, &mut in_comment),
                None => Line::raw(line),
            }
        })
        .collect()
}

fn colours(line: &str, language: &Language, in_comment: &mut bool) -> Line<'static> {
    let mut spans = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (length, style) = piece(rest, language, in_comment);
        let (piece, after) = rest.split_at(length.clamp(1, rest.len()));
        spans.push(Span::styled(piece.to_owned(), style));
        rest = after;
    }
    Line::from(spans)
}

/// How many bytes at the beginning belong together, and how they look.
fn piece(rest: &str, language: &Language, in_comment: &mut bool) -> (usize, Style) {
    if let Some((begin, end)) = language.block_comment {
        let from = if *in_comment { 0 } else { begin.len() };
        if *in_comment || rest.starts_with(begin) {
            let found = rest[from..].find(end);
            *in_comment = found.is_none();
            return (found.map_or(rest.len(), |at| from + at + end.len()), DIM);
        }
    }
    if language.line_comments.iter().any(|begin| rest.starts_with(begin)) {
        return (rest.len(), DIM);
    }
    let Some(first) = rest.chars().next() else { return (0, PLAIN) };
    if language.quotes.contains(&first) {
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\\' => escaped = !escaped,
                c if c == first && !escaped => return (at + c.len_utf8(), STRING),
                _ => escaped = false,
            }
        }
        return (rest.len(), STRING);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) {
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let style = match () {
            () if first.is_ascii_digit() => NUMBER,
            () if language.words.contains(&&rest[..end]) => KEYWORD,
            () => PLAIN,
        };
        return (end, style);
    }
    let end = rest.char_indices().skip(1).map(|(at, _)| at).find(|at| {
        let next = &rest[*at..];
        next.starts_with(|c: char| is_word(c) || language.quotes.contains(&c))
            || language.line_comments.iter().any(|begin| next.starts_with(begin))
            || language.block_comment.is_some_and(|(begin, _)| next.starts_with(begin))
    });
    (end.unwrap_or(rest.len()), PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_strings_and_comments_are_told_apart() {
        let lines = code("let x = \"a // b\"; // why\n/* one\ntwo */ 7", "rust");
        let styled = |number: usize, text: &str| {
            lines[number].spans.iter().find(|span| span.content == text).map(|span| span.style)
        };
        assert_eq!(styled(0, "let"), Some(KEYWORD));
        assert_eq!(styled(0, "\"a // b\""), Some(STRING));
        assert_eq!(styled(0, "// why"), Some(DIM));
        assert_eq!(styled(2, "two */"), Some(DIM));
        assert_eq!(styled(2, "7"), Some(NUMBER));
    }

    proptest! {
        #[test]
        fn no_character_is_lost(source in "[ -~é漢\"'/*#\\\\]{0,80}", which in 0..LANGUAGES.len()) {
            let lines = code(&source, LANGUAGES[which].names[0]);
            let text: String = lines[0].spans.iter().map(|span| span.content.as_ref()).collect();
            prop_assert_eq!(text, harmless(&source));
        }
    }
}
