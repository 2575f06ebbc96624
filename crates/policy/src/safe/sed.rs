//! `sed`: its options, and a strict reader of its scripts.
//!
//! The reader takes only what GNU's and BSD's sed understand alike, or what is harmless in both
//! readings. Left out are the commands `w`, `W`, `s///w` (write), `e`, `s///e` (run), `r`, `R`
//! (nobody asks for them often enough), and anything that is spelt in an unusual way.

use super::options::{Operands, Program, Seen, named, walk};
use super::{NotSafe, shown};
use crate::command::Word;

/// Not -i, -I, --in-place: write. Not -f, --file: the script is not seen. Not -l: BSD's takes no
/// value, GNU's does.
const SED: Program = named("sed").flags("nErsuz").valued("e").operands(Operands::Any).long(&[
    &["debug", "expression=", "help", "null-data", "posix", "quiet", "regexp-extended", "sandbox"],
    &["separate", "silent", "unbuffered", "version"],
]);

/// Whether a call of `sed` only prints.
pub(super) fn check(arguments: &[Word]) -> Result<(), NotSafe> {
    let mut script: Option<String> = None;
    let mut first_operand: Option<&Word> = None;
    walk(&SED, arguments, &mut |seen| {
        match seen {
            Seen::Option { name: "e" | "expression", value } => {
                // Outside GNU the operand before it would be the script.
                if first_operand.is_some() {
                    return Err(NotSafe("sed gets a script behind an operand".to_owned()));
                }
                let script = script.get_or_insert_default();
                script.push_str(value.unwrap_or_default());
                script.push('\n');
            }
            Seen::Operand(word) if first_operand.is_none() => first_operand = Some(word),
            _ => {}
        }
        Ok(())
    })?;
    let script = match (&script, first_operand) {
        (Some(script), _) => script.as_str(),
        (None, Some(word)) => match word.as_literal() {
            Some(text) => text,
            None => return Err(NotSafe("the script of sed is not known".to_owned())),
        },
        (None, None) => return Ok(()),
    };
    if only_prints(script) {
        return Ok(());
    }
    Err(NotSafe(format!("the sed script {} is not known to only print", shown(script))))
}

/// Whether a script is made of commands that print and change nothing but the lines on their way.
fn only_prints(script: &str) -> bool {
    let mut reader = Script { rest: script };
    reader.commands().is_some()
}

/// What is left of a script. Each method reads one thing, or gives up with `None`.
struct Script<'a> {
    rest: &'a str,
}

impl<'a> Script<'a> {
    fn commands(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.skip(&[' ', '\t', '\n', ';']);
            let Some(first) = self.peek() else { break };
            if first == '#' {
                self.line();
                continue;
            }
            self.addresses()?;
            match self.next()? {
                '{' => depth += 1,
                '}' => {
                    depth = depth.checked_sub(1)?;
                    self.end()?;
                }
                '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z'
                | 'F' => {
                    self.end()?;
                }
                'l' | 'q' | 'Q' => {
                    self.skip(&[' ']);
                    self.digits();
                    self.end()?;
                }
                's' => self.substitution()?,
                'y' => self.transliteration()?,
                ':' | 'b' | 't' | 'T' => {
                    self.skip(&[' ']);
                    self.take(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                    self.end()?;
                }
                'a' | 'i' | 'c' => self.text()?,
                _ => return None,
            }
        }
        (depth == 0).then_some(())
    }

    /// None, one, or two addresses, and a `!`.
    fn addresses(&mut self) -> Option<()> {
        if self.address()? {
            self.skip(&[' ']);
            if self.eat(',') {
                self.skip(&[' ']);
                // `+4` and `~4` count from the first.
                if self.eat('+') || self.eat('~') {
                    (!self.digits().is_empty()).then_some(())?;
                } else {
                    self.address()?.then_some(())?;
                }
            }
        }
        self.skip(&[' ', '!']);
        Some(())
    }

    /// Whether there is an address; `None` if there is one that is not plain.
    fn address(&mut self) -> Option<bool> {
        if !self.digits().is_empty() {
            if self.eat('~') {
                self.digits();
            }
            return Some(true);
        }
        if self.eat('$') {
            return Some(true);
        }
        let delimiter = match self.peek() {
            Some('/') => self.next()?,
            Some('\\') => {
                self.next()?;
                self.delimiter()?
            }
            _ => return Some(false),
        };
        self.regex(delimiter)?;
        self.take(|flag| matches!(flag, 'I' | 'M'));
        Some(true)
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.regex(delimiter)?;
        self.until(delimiter)?;
        self.take(|flag| {
            flag.is_ascii_digit() || matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M')
        });
        self.end()
    }

    /// Older BSDs look for brackets here too, although they mean nothing.
    fn transliteration(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.regex(delimiter)?;
        self.regex(delimiter)?;
        self.end()
    }

    /// The text of `a`, `i` and `c` on the same line. A backslash could carry it on to the next.
    fn text(&mut self) -> Option<()> {
        let text = self.line();
        let plain = text.strip_prefix('\\').unwrap_or(text);
        (!plain.is_empty() && !plain.contains('\\')).then_some(())
    }

    /// A character that every sed takes for a delimiter and nothing else.
    fn delimiter(&mut self) -> Option<char> {
        let delimiter = self.next()?;
        "/|#,@%:!_~+=;".contains(delimiter).then_some(delimiter)
    }

    /// A regular expression up to its delimiter. GNU's sed ends it at the first delimiter, BSD's not
    /// inside brackets: both agree if every bracket is closed by then.
    fn regex(&mut self, delimiter: char) -> Option<()> {
        brackets_are_closed(self.until(delimiter)?).then_some(())
    }

    /// What stands before the delimiter, which is taken too. A backslash takes one character with
    /// it.
    fn until(&mut self, delimiter: char) -> Option<&'a str> {
        let whole = self.rest;
        let mut characters = whole.char_indices();
        while let Some((at, character)) = characters.next() {
            if character == delimiter {
                self.rest = &whole[at + delimiter.len_utf8()..];
                return Some(&whole[..at]);
            }
            if character == '\n' || (character == '\\' && characters.next()?.1 == '\n') {
                return None;
            }
        }
        None
    }

    /// The end of a command: a semicolon, a line's end, a comment, or a brace that closes.
    fn end(&mut self) -> Option<()> {
        self.skip(&[' ', '\t']);
        match self.peek() {
            None | Some(';' | '\n' | '}' | '#') => Some(()),
            _ => None,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.next();
        }
        found
    }

    fn take(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|character| !belongs(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn digits(&mut self) -> &'a str {
        self.take(|digit| digit.is_ascii_digit())
    }

    fn skip(&mut self, characters: &[char]) {
        self.rest = self.rest.trim_start_matches(characters);
    }

    /// The rest of the line, without its end.
    fn line(&mut self) -> &'a str {
        self.take(|character| character != '\n')
    }
}

/// Whether every bracket expression of a regular expression is closed in it, in any reading.
fn brackets_are_closed(regex: &str) -> bool {
    let mut characters = regex.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => {
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
                loop {
                    match characters.next() {
                        None => return false,
                        Some(']') => break,
                        // Whether this ends the brackets is not the same everywhere.
                        Some('\\') if characters.peek() == Some(&']') => return false,
                        // A class, as in [[:space:]]; a lone bracket is a character.
                        Some('[') if matches!(characters.peek(), Some(':' | '.' | '=')) => {
                            characters.next();
                            if !characters.by_ref().any(|inside| inside == ']') {
                                return false;
                            }
                        }
                        Some(_) => {}
                    }
                }
            }
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn scripts_that_only_print_are_known() {
        for script in [
            "",
            "p",
            "1p",
            "1,5p",
            "$p",
            "$!d",
            "/a/p",
            "/a/,/b/p",
            "/a/I,+3p",
            "0~4p",
            "1~2d",
            "5q",
            "5q3",
            "s/a/b/",
            "s/a/b/g",
            "s/a/b/2gp",
            "s|a|b|;s#c#d#",
            "s|[^/]*$||",
            "/x/{p;p}",
            "/x/{\np\n}\n",
            ":a;N;$!ba;s/\\n/ /g",
            "y/abc/xyz/",
            "=",
            "/a/!d",
            "n;d",
            "# a comment\np",
            "2i hello",
            "$a\\the end",
            "\\,/usr,p",
            "s/[[:space:]]*$//",
            "/a/ , /b/ p",
            "s/\\//x/",
            "1!G;h;$!d",
            "s/a/w pwned/",
            "s/e/e/",
        ] {
            assert!(only_prints(script), "{script:?}");
        }
    }

    #[test]
    fn scripts_that_write_or_run_are_refused_in_every_spelling() {
        for script in [
            "w pwned",
            "1w pwned",
            "$w pwned",
            "/a/w pwned",
            "W pwned",
            "e",
            "e touch pwned",
            "1e touch",
            "1,5e touch",
            "s/a/b/w pwned",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/gw pwned",
            "s/a/b/pw pwned",
            "s/a/b/w/dev/stdout",
            "p;w pwned",
            "p\nw pwned",
            "{w pwned\n}",
            "/a/{p;w pwned\n}",
            "!w pwned",
            "1!w pwned",
            "1 w pwned",
            "p;e",
            "b a; w pwned",
            "ba;w pwned",
            ":a;w pwned",
            ":a\nw pwned",
            "s,a,b,w pwned",
            "sxaxbxw pwned",
            "s\na\nb\nw pwned",
            "s/[/]/w pwned/",
            "s/[/b/w pwned",
            "s/a\\/b/c/w pwned",
            "s/a/b\\/c/w pwned",
            "s/a/\\\n/w pwned",
            "y/a/b/;w pwned",
            "y/a/b/w pwned",
            "r file",
            "R file",
            "a\\\nw pwned",
            "a\\",
            "a text\\",
            "i\\",
            "c\\\n",
            "}",
            "{",
            "{p",
            "p}",
            "s/a/b",
            "s/a",
            "s",
            "y/a/b",
            "y/[/]/#ab/;w x",
            "y/a/[/;w x",
            "/a",
            "\\",
            "\\n",
            "v 4.2",
            "M",
            "pw pwned",
            "p w pwned",
            "dw x",
            "=w x",
            "q5w x",
            "l5w x",
            "#n\nw pwned",
            "1,w pwned",
            "1,/a/w x",
            "/a/Iw x",
            "\\cacw x",
            "s/[\\]/]/w pwned/",
            "s/a/b/;;e",
            "{e}",
            "{;e;}",
            "1{e\n}",
            "$!{$!w x\n}",
            "0~3w x",
            "1,~3w x",
            "\u{a0}w x",
            "p\rw x",
            "p\u{b}w x",
        ] {
            assert!(!only_prints(script), "{script:?}");
        }
    }
}
