//! Text of bounded length that needs no memory of its own.

use std::ffi::CStr;

/// Room for the longest path that the kernel takes, with a directory of `/proc` before it.
pub(super) type PathText = Text<{ 4096 + 64 }>;

/// Bytes without NUL, closed by one.
#[derive(Clone, Copy)]
pub(super) struct Text<const SIZE: usize> {
    bytes: [u8; SIZE],
    len: usize,
}

impl<const SIZE: usize> Text<SIZE> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; SIZE], len: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.cut(0);
    }

    /// Forgets all from here on.
    pub(super) fn cut(&mut self, len: usize) {
        if let Some(end) = self.bytes.get_mut(len) {
            *end = 0;
            self.len = self.len.min(len);
        }
    }

    /// Adds to it. `None` when there is no room, or a NUL; nothing is added then.
    pub(super) fn push(&mut self, more: &[u8]) -> Option<&mut Self> {
        let len = self.len + more.len();
        // One more for the end.
        let room = self.bytes.get_mut(self.len..=len)?;
        let (end, room) = room.split_last_mut()?;
        if more.contains(&0) {
            return None;
        }
        room.copy_from_slice(more);
        *end = 0;
        self.len = len;
        Some(self)
    }

    pub(super) fn push_number(&mut self, number: u64) -> Option<&mut Self> {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = number;
        loop {
            first -= 1;
            *digits.get_mut(first)? = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                return self.push(digits.get(first..)?);
            }
        }
    }

    /// Takes what `read` writes, up to the first NUL. `None` when there is none.
    pub(super) fn fill(&mut self, read: impl FnOnce(&mut [u8]) -> usize) -> Option<()> {
        let filled = read(&mut self.bytes);
        let end = self.bytes.get(..filled).and_then(|text| text.iter().position(|&b| b == 0));
        self.len = 0;
        self.len = end?;
        Some(())
    }

    /// Puts other text in the place of its beginning.
    pub(super) fn replace_start(&mut self, removed: usize, start: &[u8]) -> Option<()> {
        let rest = self.len.checked_sub(removed)?;
        let len = rest + start.len();
        if len >= SIZE || start.contains(&0) {
            return None;
        }
        self.bytes.copy_within(removed..=self.len, start.len());
        self.bytes.get_mut(..start.len())?.copy_from_slice(start);
        self.len = len;
        Some(())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        let closed = self.bytes.get(..=self.len).unwrap_or_default();
        CStr::from_bytes_with_nul(closed).unwrap_or_default()
    }
}

/// What is written beyond the room is left out.
impl<const SIZE: usize> std::fmt::Write for Text<SIZE> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes()).map(|_| ()).ok_or(std::fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_to_its_room_and_ends_in_nul() {
        let mut text = Text::<8>::new();
        assert!(text.push(b"/a").is_some_and(|text| text.push_number(120).is_some()));
        assert_eq!(text.as_c_str(), c"/a120");
        assert!(text.push(b"xyz").is_none(), "eight bytes have no room for eight and an end");
        assert!(text.push(b"\0").is_none());
        assert_eq!(text.as_bytes(), b"/a120");
        text.cut(2);
        assert_eq!(text.as_c_str(), c"/a");
        text.cut(100);
        assert!(text.replace_start(1, b"/123456").is_none(), "no room for an end");
        text.replace_start(1, b"/b/").unwrap();
        assert_eq!(text.as_c_str(), c"/b/a");
        let write = |from: &'static [u8]| {
            move |to: &mut [u8]| {
                to[..from.len()].copy_from_slice(from);
                from.len()
            }
        };
        assert!(text.fill(write(b"/xyz")).is_none() && text.as_bytes().is_empty());
        text.fill(write(b"/a\0junk")).unwrap();
        assert_eq!(text.push_number(0).unwrap().as_bytes(), b"/a0");
    }
}
