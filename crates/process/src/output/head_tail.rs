//! A bounded memory of an unbounded stream: its beginning and its end.
//!
//! The buffer owns one invariant: what it holds and what it says it dropped add up exactly to what
//! was pushed. It knows bytes and newlines, not characters; cutting at readable borders is the
//! business of whoever shows the bytes.

/// The first and the last bytes of a stream, with an exact count of what lies between them.
///
/// ```
/// use sandgate_process::HeadTailBuffer;
///
/// let mut buffer = HeadTailBuffer::new(8);
/// buffer.push(b"beginning, middle, ");
/// buffer.push(b"end.");
/// assert_eq!(buffer.head(), b"begi");
/// assert_eq!(buffer.contents(), b"begiend.");
/// assert_eq!(buffer.total_bytes(), 23);
/// assert_eq!(buffer.omitted_bytes(), 15);
/// ```
#[derive(Debug, Clone)]
pub struct HeadTailBuffer {
    capacity: usize,
    head: Vec<u8>,
    /// Grows to the tail's capacity and from then on is written in circles.
    ring: Vec<u8>,
    /// Where the oldest byte of the ring is; 0 until the ring is full.
    oldest: usize,
    total_bytes: u64,
    total_newlines: u64,
}

/// How much of what a buffer holds, without the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outline {
    capacity: usize,
    /// How long its head is.
    pub(crate) head: usize,
    /// How long its tail is.
    pub(crate) tail: usize,
    total_bytes: u64,
    total_newlines: u64,
}

impl Default for HeadTailBuffer {
    fn default() -> Self {
        Self::new(Self::STREAM_MAX_BYTES)
    }
}

impl HeadTailBuffer {
    /// How much of one stream is kept in memory unless somebody says otherwise: half of it from the
    /// beginning, half from the end.
    pub const STREAM_MAX_BYTES: usize = 1024 * 1024;

    /// An empty buffer that will hold at most `capacity` bytes. It allocates only what it is given.
    pub const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            head: Vec::new(),
            ring: Vec::new(),
            oldest: 0,
            total_bytes: 0,
            total_newlines: 0,
        }
    }

    /// Takes the next bytes of the stream, at the cost of copying those that stay.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_counted(bytes, count_newlines(bytes));
    }

    /// The same for a caller that has counted the newlines, so that two buffers share one count.
    pub(super) fn push_counted(&mut self, bytes: &[u8], newlines: u64) {
        self.total_bytes += bytes.len() as u64;
        self.total_newlines += newlines;
        let head_room = self.head_capacity() - self.head.len();
        let (for_head, for_tail) = bytes.split_at(bytes.len().min(head_room));
        append(&mut self.head, for_head, self.capacity / 2);
        self.push_tail(for_tail);
    }

    /// Everything that was ever pushed, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// How many of those bytes are no longer held.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.ring.len()) as u64
    }

    /// How many newlines are among the bytes that are no longer held.
    pub fn omitted_newlines(&self) -> u64 {
        self.total_newlines - count_newlines(&self.head) - count_newlines(&self.ring)
    }

    /// The first bytes of the stream.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The last bytes of the stream that are not part of the head, in two pieces, older one first.
    pub fn tail(&self) -> (&[u8], &[u8]) {
        let (newer, older) = self.ring.split_at(self.oldest);
        (older, newer)
    }

    /// Everything that is held, in the order it was pushed, without a mark where bytes are missing.
    pub fn contents(&self) -> Vec<u8> {
        let (older, newer) = self.tail();
        [&self.head, older, newer].concat()
    }

    /// The last bytes that are held, at most so many, without a mark where bytes are missing.
    pub fn last(&self, most: usize) -> Vec<u8> {
        let (older, newer) = self.tail();
        let pieces = [&self.head, older, newer];
        let mut skip = (self.head.len() + self.ring.len()).saturating_sub(most);
        let mut last = Vec::with_capacity(most.min(self.head.len() + self.ring.len()));
        for piece in pieces {
            last.extend_from_slice(piece.get(skip..).unwrap_or_default());
            skip = skip.saturating_sub(piece.len());
        }
        last
    }

    /// Whether pushing `extra` more bytes would leave some of the stream out.
    pub fn would_omit(&self, extra: usize) -> bool {
        self.total_bytes.saturating_add(extra as u64) > self.capacity as u64
    }

    /// What is needed besides the bytes to make the same buffer again.
    pub(crate) fn outline(&self) -> Outline {
        Outline {
            capacity: self.capacity,
            head: self.head.len(),
            tail: self.ring.len(),
            total_bytes: self.total_bytes,
            total_newlines: self.total_newlines,
        }
    }

    /// The buffer that an outline was made of, from the bytes that it held. Bytes that are missing at the end of
    /// its head, or at the beginning of its tail, count as omitted.
    pub(crate) fn of_outline(outline: Outline, mut head: Vec<u8>, mut tail: Vec<u8>) -> Self {
        let Outline { capacity, total_bytes, total_newlines, .. } = outline;
        head.truncate(outline.head);
        tail.drain(..tail.len().saturating_sub(outline.tail));
        Self { capacity, head, ring: tail, oldest: 0, total_bytes, total_newlines }
    }

    /// The head and the tail as two owned pieces; the bytes are not copied, at most turned in place.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, Vec<u8>) {
        self.ring.rotate_left(self.oldest);
        (self.head, self.ring)
    }

    fn head_capacity(&self) -> usize {
        self.capacity / 2
    }

    fn tail_capacity(&self) -> usize {
        self.capacity - self.head_capacity()
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let capacity = self.tail_capacity();
        if bytes.len() >= capacity {
            // Nothing that the ring holds survives this, and only the end of it does.
            self.ring.clear();
            self.oldest = 0;
            append(&mut self.ring, &bytes[bytes.len() - capacity..], capacity);
            return;
        }
        let room = capacity - self.ring.len();
        let (for_room, for_circle) = bytes.split_at(bytes.len().min(room));
        append(&mut self.ring, for_room, capacity);
        if for_circle.is_empty() {
            return;
        }
        let until_end = (capacity - self.oldest).min(for_circle.len());
        let (first, second) = for_circle.split_at(until_end);
        self.ring[self.oldest..self.oldest + until_end].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.oldest = (self.oldest + for_circle.len()) % capacity;
    }
}

/// Counts newlines at the speed of memory.
pub(super) fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Appends, growing by doubling but never past `limit`: a plain `extend` would round up beyond it.
fn append(to: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let needed = to.len() + bytes.len();
    if needed > to.capacity() {
        let target = needed.max(to.capacity().saturating_mul(2).min(limit));
        to.reserve_exact(target - to.len());
    }
    to.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec OUTPUT.4: A small output takes little memory, and no output makes a buffer allocate more
    /// than its limit.
    #[test]
    fn memory_follows_the_output_and_stops_at_the_limit() {
        let mut buffer = HeadTailBuffer::default();
        assert_eq!(buffer.head.capacity() + buffer.ring.capacity(), 0);
        buffer.push(b"hello\n");
        assert!(buffer.head.capacity() <= 64, "{} bytes for six", buffer.head.capacity());
        for _ in 0..5_000 {
            buffer.push(&[b'x'; 777]);
            assert!(
                buffer.head.capacity() + buffer.ring.capacity() <= HeadTailBuffer::STREAM_MAX_BYTES
            );
        }
        assert_eq!(
            buffer.head.capacity() + buffer.ring.capacity(),
            HeadTailBuffer::STREAM_MAX_BYTES
        );
    }

    #[test]
    fn the_last_bytes_are_the_end_of_the_contents() {
        let mut buffer = HeadTailBuffer::new(10);
        for piece in [&b"abc"[..], b"defgh", b"ijklm", b"no"] {
            buffer.push(piece);
            let contents = buffer.contents();
            for most in 0..=12 {
                let skip = contents.len().saturating_sub(most);
                assert_eq!(buffer.last(most), contents[skip..], "{most} of {contents:?}");
            }
        }
    }

    #[test]
    fn an_outline_and_the_bytes_make_the_same_buffer() {
        for length in [0, 3, 10, 17, 40] {
            let bytes: Vec<u8> =
                (0..length).map(|n| if n % 4 == 0 { b'\n' } else { b'x' }).collect();
            let mut buffer = HeadTailBuffer::new(10);
            bytes.chunks(3).for_each(|piece| buffer.push(piece));
            let outline = buffer.outline();
            let head = bytes[..outline.head].to_vec();
            let tail = bytes[bytes.len() - outline.tail..].to_vec();
            let again = HeadTailBuffer::of_outline(outline, head, tail);
            assert_eq!(again.contents(), buffer.contents());
            assert_eq!(again.omitted_bytes(), buffer.omitted_bytes());
            assert_eq!(again.omitted_newlines(), buffer.omitted_newlines());
        }
    }

    #[test]
    fn a_copy_of_a_full_buffer_goes_on_like_the_original() {
        let mut original = HeadTailBuffer::new(10);
        original.push(b"abcdefghijklm");
        let mut copy = original.clone();
        original.push(b"nop");
        copy.push(b"nop");
        assert_eq!(copy.contents(), b"abcdelmnop");
        assert_eq!(copy.contents(), original.contents());
        assert_eq!(copy.into_parts(), (b"abcde".to_vec(), b"lmnop".to_vec()));
    }
}
