//! The lines of a file, as bytes, with the ends that they have.

/// What a line ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum End {
    /// LF.
    #[default]
    Lf,
    /// CR LF.
    CrLf,
    /// Nothing: the last line of a file without a final newline.
    None,
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Without its end.
    pub(crate) text: &'a [u8],
    pub(crate) end: End,
}

/// Splits a file into its lines. An empty one has none.
pub(crate) fn split(contents: &[u8]) -> Vec<Line<'_>> {
    contents
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| match line {
            [text @ .., b'\r', b'\n'] => Line { text, end: End::CrLf },
            [text @ .., b'\n'] => Line { text, end: End::Lf },
            text => Line { text, end: End::None },
        })
        .collect()
}

/// Puts lines together to a file. The last one has an end unless `open` says that it has none, and
/// every other has one; a line that has none to give is ended as the line before it.
pub(crate) fn join(lines: &[Line<'_>], open: bool) -> Vec<u8> {
    let size = lines.iter().map(|line| line.text.len() + 2).sum();
    let mut contents = Vec::with_capacity(size);
    let mut before = lines.iter().map(|line| line.end).find(|end| *end != End::None);
    for (index, line) in lines.iter().enumerate() {
        contents.extend_from_slice(line.text);
        if open && index + 1 == lines.len() {
            break;
        }
        let end = if line.end == End::None { before.unwrap_or_default() } else { line.end };
        contents.extend_from_slice(if end == End::CrLf { b"\r\n" } else { b"\n" });
        before = Some(end);
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends() {
        for contents in ["", "a", "a\n", "a\r\nb\n", "\n\n", "\r\n", "a\rb\r\n", "a\nb", "\r"] {
            let lines = split(contents.as_bytes());
            let open = lines.last().is_some_and(|line| line.end == End::None);
            assert_eq!(join(&lines, open), contents.as_bytes(), "{contents:?}");
        }
        assert_eq!(split(b"a\rb\r\n"), [Line { text: b"a\rb", end: End::CrLf }]);
    }

    #[test]
    fn a_line_without_an_end_is_ended_like_its_neighbours() {
        let line = |text, end| Line { text, end };
        let crlf = [line(b"a".as_slice(), End::CrLf), line(b"b", End::None)];
        assert_eq!(join(&crlf, false), b"a\r\nb\r\n");
        let last_first = [line(b"b".as_slice(), End::None), line(b"a", End::CrLf)];
        assert_eq!(join(&last_first, true), b"b\r\na");
        assert_eq!(join(&[line(b"a", End::None)], false), b"a\n");
    }
}
