//! The text of a git configuration, read as git reads it.
//!
//! Where git would give up with an error, this does too; the caller takes that for the worst. Only the
//! file itself is read: what it includes is for the caller to see by the names of its settings.

/// One setting: its name as git writes it, `section.key` or `section.subsection.key` with all but the
/// subsection in small letters, and its value; none if there is a name alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl Setting {
    /// The name's section, subsection and key.
    pub(super) fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        let is_dot = |byte: &u8| *byte == b'.';
        let first = self.name.iter().position(is_dot).unwrap_or(self.name.len());
        let last = self.name.iter().rposition(is_dot).unwrap_or(first);
        let between = self.name.get(first + 1..last);
        (&self.name[..first], between, self.name.get(last + 1..).unwrap_or_default())
    }
}

/// The text is not one that git reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nonsense;

/// Every setting of a text, in order.
pub(super) fn settings(text: &[u8]) -> Result<Vec<Setting>, Nonsense> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut characters = Characters { text, at: 0 };
    let mut settings = Vec::new();
    let mut section = Vec::new();
    let mut in_comment = false;
    loop {
        match characters.next() {
            None => return Ok(settings),
            Some(b'\n') => in_comment = false,
            Some(_) if in_comment => {}
            Some(byte) if is_space(byte) => {}
            Some(b'#' | b';') => in_comment = true,
            Some(b'[') => section = characters.section()?,
            Some(first) if first.is_ascii_alphabetic() => {
                let mut name = section.clone();
                name.push(first.to_ascii_lowercase());
                settings.push(characters.setting(name)?);
            }
            Some(_) => return Err(Nonsense),
        }
    }
}

/// What git takes for white space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// The bytes of a text, with the two that end a line in Windows as one.
struct Characters<'a> {
    text: &'a [u8],
    at: usize,
}

impl Characters<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    /// What stands behind a `[`, with the dot that the names in it begin with.
    fn section(&mut self) -> Result<Vec<u8>, Nonsense> {
        let mut name = Vec::new();
        loop {
            match self.next().ok_or(Nonsense)? {
                b']' => break,
                byte if is_space(byte) => {
                    self.subsection(byte, &mut name)?;
                    break;
                }
                byte if is_name(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Nonsense),
            }
        }
        name.push(b'.');
        Ok(name)
    }

    /// What stands behind the section's name: a text in quotation marks, and the bracket.
    fn subsection(&mut self, mut byte: u8, name: &mut Vec<u8>) -> Result<(), Nonsense> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(Nonsense);
            }
            byte = self.next().ok_or(Nonsense)?;
        }
        if byte != b'"' {
            return Err(Nonsense);
        }
        name.push(b'.');
        loop {
            let byte = match self.next().ok_or(Nonsense)? {
                b'"' => break,
                b'\\' => self.next().ok_or(Nonsense)?,
                byte => byte,
            };
            if byte == b'\n' {
                return Err(Nonsense);
            }
            name.push(byte);
        }
        if self.next() == Some(b']') { Ok(()) } else { Err(Nonsense) }
    }

    /// The rest of a name whose first letter is there already, and its value.
    fn setting(&mut self, mut name: Vec<u8>) -> Result<Setting, Nonsense> {
        let mut next = self.next();
        while let Some(byte) = next.filter(|byte| is_name(*byte)) {
            name.push(byte.to_ascii_lowercase());
            next = self.next();
        }
        while matches!(next, Some(b' ' | b'\t')) {
            next = self.next();
        }
        let value = match next {
            None | Some(b'\n') => None,
            Some(b'=') => Some(self.value()?),
            Some(_) => return Err(Nonsense),
        };
        Ok(Setting { name, value })
    }

    fn value(&mut self) -> Result<Vec<u8>, Nonsense> {
        let mut value = Vec::new();
        // Where the value ends if only white space follows.
        let mut end = 0;
        let (mut quoted, mut in_comment) = (false, false);
        loop {
            match self.next() {
                None | Some(b'\n') if quoted => return Err(Nonsense),
                None | Some(b'\n') => break,
                Some(_) if in_comment => {}
                Some(byte) if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                Some(b'#' | b';') if !quoted => in_comment = true,
                Some(b'"') => {
                    quoted = !quoted;
                    end = value.len();
                }
                Some(b'\\') => {
                    match self.next() {
                        // The value goes on in the next line.
                        None | Some(b'\n') => continue,
                        Some(b't') => value.push(b'\t'),
                        Some(b'b') => value.push(8),
                        Some(b'n') => value.push(b'\n'),
                        Some(byte @ (b'\\' | b'"')) => value.push(byte),
                        Some(_) => return Err(Nonsense),
                    }
                    end = value.len();
                }
                Some(byte) => {
                    value.push(byte);
                    end = value.len();
                }
            }
        }
        value.truncate(end);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, Nonsense> {
        let shown = |setting: Setting| {
            let name = String::from_utf8(setting.name).unwrap();
            match setting.value {
                Some(value) => format!("{name}={}", String::from_utf8(value).unwrap()),
                None => name,
            }
        };
        Ok(settings(text.as_bytes())?.into_iter().map(shown).collect())
    }

    #[test]
    fn settings_are_found_however_they_are_written() {
        for (text, expected) in [
            ("[filter \"x\"]\n\tclean = run\n", "filter.x.clean=run"),
            ("[FILTER \"X y\"]ClEaN=run", "filter.X y.clean=run"),
            ("[filter.X] clean = run # why", "filter.x.clean=run"),
            ("\u{feff}[a]\r\nb = c\r\n", "a.b=c"),
            ("[a]\nb", "a.b"),
            ("[a]\nb = \" c ; \" d \\\n e", "a.b= c ;  d  e"),
            ("[a \"\\\"\\\\]\"]\nb=1", "a.\"\\].b=1"),
            ("; [x]\n# y=1\n[a]\nb=\"x\\ny\"", "a.b=x\ny"),
        ] {
            assert_eq!(names(text), Ok(vec![expected.to_owned()]), "{text:?}");
        }
        assert_eq!(names("[a]b=1\nc=2[d]e=3").unwrap(), ["a.b=1", "a.c=2[d]e=3"]);
    }

    #[test]
    fn what_git_does_not_read_is_nonsense() {
        for text in
            ["[a", "[a\nb=1", "[a \"x\ny\"]", "[a]\nb = \"x\n", "[a]\n=1", "[a]\nb=\\q", "@"]
        {
            assert_eq!(names(text), Err(Nonsense), "{text:?}");
        }
    }
}
