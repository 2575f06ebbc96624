//! Words that somebody else chose, shown so that they cannot be taken for anything else.
//!
//! A word is quoted where a shell would need it to be. What a terminal would obey, what turns the
//! direction of reading and what has no shape is spelled out.

/// The most characters of one word that are shown.
const MOST_SHOWN: usize = 400;

/// A word of a command, quoted if need be.
pub(super) fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./,:=+@%^".contains(c);
    let (shown, rest) = cut(text);
    let visible = line(shown);
    if !text.is_empty() && text.chars().all(plain) && visible == shown {
        return visible + &rest;
    }
    match visible == shown {
        true => format!("'{}'{rest}", shown.replace('\'', r"'\''")),
        // The form in which a shell, too, reads what is spelled out.
        false => format!("$'{}'{rest}", line(&shown.replace('\\', r"\\").replace('\'', r"\'"))),
    }
}

/// A word as it was written, which a shell would still change.
pub(super) fn written(text: &str) -> String {
    let (shown, rest) = cut(text);
    line(shown) + &rest
}

/// Any text as one line.
pub(super) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => line.push(c),
            // Whatever has no shape of its own or joins its neighbour becomes a number.
            _ => line.extend(c.escape_debug()),
        }
    }
    line
}

/// The beginning of a text, and how much is not shown.
fn cut(text: &str) -> (&str, String) {
    match text.char_indices().nth(MOST_SHOWN) {
        None => (text, String::new()),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            (&text[..end], format!("[… {more} more characters]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        for (text, shown) in [
            ("src/main.rs", "src/main.rs"),
            ("--color=auto", "--color=auto"),
            ("grüße", "grüße"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            (r"a\b", r"'a\b'"),
        ] {
            assert_eq!(word(text), shown);
        }
    }

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_obey_or_hide() {
        for (text, shown) in [
            ("a\u{1b}[2Jb", r"$'a\u{1b}[2Jb'"),
            ("a\nb", r"$'a\nb'"),
            ("it's\tx\\y", r"$'it\'s\tx\\y'"),
            ("\u{202e}gpj", r"$'\u{202e}gpj'"),
            ("a\u{200b}b", r"$'a\u{200b}b'"),
            ("\u{9b}31m", r"$'\u{9b}31m'"),
        ] {
            assert_eq!(word(text), shown);
        }
        assert_eq!(written("$(\u{7}x)"), r"$(\u{7}x)");
    }

    #[test]
    fn a_long_word_is_cut_and_says_so() {
        assert_eq!(word(&"x".repeat(400)), "x".repeat(400));
        let shown = word(&"ü".repeat(1_000));
        assert_eq!(shown, format!("{}[… 600 more characters]", "ü".repeat(400)));
    }
}
