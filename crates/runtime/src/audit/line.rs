//! One line of the log, and the chain that lines form.
//!
//! The hash of a line covers its literal text up to the hash itself, and the hash before it. Nothing
//! has to be brought into a canonical form for that, so it does not matter how a JSON library orders
//! its fields.

use super::cut::{self, Cut, MAX_UNSEALED_BYTES};
use super::read::AuditEntry;
use super::record::Record;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The hash of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hash([u8; 32]);

/// Before the first line there is this.
pub(super) const BEGINNING: Hash = Hash([0; 32]);

/// What stands between a line's text and its hash, and behind that.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";

/// The end of every line: from the comma before the hash to the closing brace.
pub(super) const SEAL_BYTES: usize = BEFORE_HASH.len() + 64 + AFTER_HASH.len();

impl Hash {
    /// The hash of a line with this text, after a line with that hash.
    ///
    /// The hash before is taken as its 64 letters, so that a person can do the same with two programs
    /// from a shell.
    pub(super) fn of(before: Self, text: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(before.to_string());
        digest.update(text);
        Self(digest.finalize().into())
    }

    /// Reads 64 letters; large ones are nothing that we wrote.
    fn read(letters: &[u8]) -> Option<Self> {
        let digit = |letter: u8| match letter {
            b'0'..=b'9' => Some(letter - b'0'),
            b'a'..=b'f' => Some(letter - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        let (pairs, rest) = letters.as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut letters = [0; 64];
        for (pair, byte) in letters.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        f.write_str(std::str::from_utf8(&letters).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let letters = String::deserialize(deserializer)?;
        Self::read(letters.as_bytes())
            .ok_or_else(|| serde::de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

/// The SHA-256 of something, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Hash(Sha256::digest(bytes).into()).to_string()
}

/// The first line of a file names the file before it and that file's last hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follows {
    /// The name of the file before.
    pub file: String,
    /// The hash of its last line.
    pub hash: String,
}

/// A line that is to be written.
#[derive(Debug, Serialize)]
struct Outgoing<'a, R> {
    seq: u64,
    time: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<&'a Follows>,
    record: &'a R,
    #[serde(skip_serializing_if = "<[Cut]>::is_empty")]
    cut: &'a [Cut],
}

/// What goes into a line beside the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) session: &'a str,
    pub(super) follows: Option<&'a Follows>,
}

/// Makes a line with its line end, and its hash.
pub(super) fn make(
    envelope: Envelope<'_>,
    record: &Record,
    before: Hash,
) -> Result<(Vec<u8>, Hash), serde_json::Error> {
    let Envelope { seq, time, session, follows } = envelope;
    let time = as_text(time);
    let whole = Outgoing { seq, time: &time, session, follows, record, cut: &[] };
    let mut line = Vec::with_capacity(1024);
    serde_json::to_writer(&mut line, &whole)?;
    if line.len() > MAX_UNSEALED_BYTES {
        line = cut::until_it_fits(record, |record, cut| {
            serde_json::to_vec(&Outgoing { seq, time: &time, session, follows, record, cut })
        })?;
    }
    // The brace that closes the object comes behind the hash.
    line.pop();
    let hash = Hash::of(before, &line);
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(AFTER_HASH);
    line.push(b'\n');
    Ok((line, hash))
}

/// A time as it stands in the log: RFC 3339, UTC, milliseconds.
pub(super) fn as_text(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// A line that was read, without its line end: the text that its hash covers, and the hash.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], Hash)> {
    let (text, seal) = line.split_at_checked(line.len().checked_sub(SEAL_BYTES)?)?;
    let letters = seal.strip_prefix(BEFORE_HASH)?.strip_suffix(AFTER_HASH)?;
    Some((text, Hash::read(letters)?))
}

/// A line that has the form of one, whatever it is chained to.
pub(super) fn parse(line: &[u8]) -> Option<(AuditEntry, &[u8], Hash)> {
    let (text, hash) = split(line)?;
    Some((serde_json::from_slice(line).ok()?, text, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Record {
        Record::Note { text: text.to_owned() }
    }

    fn envelope(seq: u64) -> Envelope<'static> {
        let time = "2026-11-01T10:00:00.5Z".parse().unwrap();
        Envelope { seq, time, session: "s", follows: None }
    }

    #[test]
    fn a_line_is_its_text_and_the_hash_of_all_before() {
        let (line, hash) = make(envelope(1), &note("hello"), BEGINNING).unwrap();
        let text = concat!(
            r#"{"seq":1,"time":"2026-11-01T10:00:00.500Z","session":"s","#,
            r#""record":{"type":"note","text":"hello"}"#
        );
        let expected = sha256(format!("{BEGINNING}{text}").as_bytes());
        assert_eq!(hash.to_string(), expected);
        assert_eq!(String::from_utf8(line).unwrap(), format!("{text},\"hash\":\"{expected}\"}}\n"));
    }

    #[test]
    fn what_is_made_can_be_read() {
        let (line, hash) = make(envelope(7), &note("\u{1b}\"\n"), BEGINNING).unwrap();
        let (entry, text, read) = parse(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((entry.seq, entry.record), (7, note("\u{1b}\"\n")));
        assert_eq!((read, Hash::of(BEGINNING, text)), (hash, hash));
    }

    #[test]
    fn a_hash_in_another_writing_is_none() {
        let (line, _) = make(envelope(1), &note("x"), BEGINNING).unwrap();
        let line = line.strip_suffix(b"\n").unwrap();
        let letters = line.len() - AFTER_HASH.len() - 64..line.len() - AFTER_HASH.len();
        let mut large = line.to_vec();
        large[letters].make_ascii_uppercase();
        assert!(split(line).is_some() && split(&large).is_none());
        assert!(split(&line[1..line.len() - 1]).is_none() && split(b"").is_none());
    }
}
