//! Text for people whose terminal is narrow: broken between words, and not in them.
//!
//! Whoever is no terminal, or does not say how wide it is, is given every line as it is.

use unicode_width::UnicodeWidthStr as _;

/// Below this, words alone would not fit.
const NARROWEST: usize = 12;

/// How wide a terminal is.
#[cfg(unix)]
pub(crate) fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(not(unix))]
pub(crate) fn columns<T>(_: T) -> Option<usize> {
    None
}

/// A text whose lines fit so many columns. Each line stands behind what takes `indent` of them, and goes on below
/// at the same place. A word that is longer than a line is not broken.
pub(crate) fn wrapped(text: &str, columns: Option<usize>, indent: usize) -> String {
    let room = columns.map(|columns| columns.saturating_sub(indent));
    let Some(room) = room.filter(|room| *room >= NARROWEST) else { return text.to_owned() };
    let gap = format!("\n{}", " ".repeat(indent));
    let lines: Vec<String> = text.split('\n').map(|line| broken(line, room, &gap)).collect();
    lines.join("\n")
}

fn broken(line: &str, room: usize, gap: &str) -> String {
    if line.width() <= room {
        return line.to_owned();
    }
    let (mut text, mut taken) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let needs = word.trim_end().width();
        if taken > 0 && taken + needs > room {
            // One blank goes where the line ends; of others it is to be seen that they are there.
            text.truncate(text.len() - usize::from(text.ends_with(' ')));
            text.push_str(gap);
            taken = 0;
        }
        text.push_str(word);
        taken += word.width();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    /// spec ERRORS.6: On a terminal, what is said is broken between words where it is wider than the terminal, and
    /// goes on where it began; elsewhere it is a line as it is.
    #[test]
    fn lines_end_between_words() {
        let text = "one two three, four";
        assert_eq!(wrapped(text, None, 2), text);
        assert_eq!(wrapped(text, Some(21), 2), text);
        assert_eq!(wrapped(text, Some(16), 2), "one two three,\n  four");
        assert_eq!(
            wrapped("a/very/long/path/indeed is", Some(12), 0),
            "a/very/long/path/indeed\nis"
        );
        assert_eq!(wrapped("first line\n  and another", Some(14), 0), "first line\n  and another");
        assert_eq!(wrapped(text, Some(8), 2), text, "there is no room for words");
    }
}
