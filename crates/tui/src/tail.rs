//! The end of an output, however long that is.

use std::collections::VecDeque;

/// How many bytes are kept.
const MOST: usize = 48 * 1024;

/// What a command printed last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    /// How many line ends there were in what is no longer kept.
    lines_gone: u64,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(over) = bytes.len().checked_sub(MOST) {
            self.forget(self.bytes.len());
            self.lines_gone += line_ends(&bytes[..over]);
            self.bytes.extend(&bytes[over..]);
            return;
        }
        self.forget((self.bytes.len() + bytes.len()).saturating_sub(MOST));
        self.bytes.extend(bytes);
    }

    fn forget(&mut self, number: usize) {
        let gone: Vec<u8> = self.bytes.drain(..number).collect();
        self.lines_gone += line_ends(&gone);
    }

    /// What is kept, from the beginning of a line if something is not.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match self.lines_gone {
            0 => text,
            _ => text.split_once('\n').map_or(text.clone(), |(_, rest)| rest.to_owned()),
        }
    }

    /// How many lines are not kept.
    pub(crate) fn gone(&self) -> u64 {
        self.lines_gone
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_the_rest_is_counted() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        assert!(tail.bytes.len() <= MOST);
        assert!(tail.text().ends_with("99998\n99999\n"));
        let kept = tail.text().lines().count() as u64;
        assert!(tail.gone() + kept >= 99_999, "{} and {kept}", tail.gone());
        tail.push(&vec![b'x'; MOST * 3]);
        assert_eq!(tail.bytes.len(), MOST);
    }
}
