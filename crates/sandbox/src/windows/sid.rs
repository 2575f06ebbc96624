//! The name that Windows knows one session of confined commands by.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::str::FromStr;

/// An identity that belongs to no account, made for one session: whatever access lists say about it
/// is said about the commands of that session and nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionSid([u32; 4]);

impl SessionSid {
    /// One that nobody has used before. It is no secret: everyone can read it in access lists, and
    /// only who may make tokens can do something with it.
    pub fn new() -> Self {
        let random = || {
            let number = RandomState::new().build_hasher().finish();
            [(number >> 32) as u32, number as u32]
        };
        let ([a, b], [c, d]) = (random(), random());
        // The last part is above those that accounts of a machine or a domain are counted by.
        Self([a, b, c, d | 1 << 31])
    }

    /// As Windows keeps it.
    pub fn to_bytes(self) -> Vec<u8> {
        // The form, how many numbers follow, the authority (5, Windows itself), and that the rest
        // names a machine or a domain.
        let mut bytes = vec![1, 5, 0, 0, 0, 0, 0, 5];
        for number in std::iter::once(21).chain(self.0) {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }
}

impl Default for SessionSid {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for SessionSid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "S-1-5-21-{a}-{b}-{c}-{d}")
    }
}

/// A text that names no session.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("this is not the identity of a session")]
pub struct NotASession;

impl FromStr for SessionSid {
    type Err = NotASession;

    fn from_str(text: &str) -> Result<Self, NotASession> {
        let numbers = text.strip_prefix("S-1-5-21-").ok_or(NotASession)?;
        let numbers: Vec<u32> = numbers
            .split('-')
            .map(|n| n.parse().map_err(|_| NotASession))
            .collect::<Result<_, _>>()?;
        let sid = Self(numbers.try_into().map_err(|_| NotASession)?);
        // One of ours, in our spelling: an account of the machine is never taken for a session.
        if sid.0[3] >> 31 == 1 && sid.to_string() == text { Ok(sid) } else { Err(NotASession) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_its_text_and_an_account_is_none() {
        let sid = SessionSid::new();
        assert_eq!(sid.to_string().parse(), Ok(sid));
        assert_ne!(sid, SessionSid::new());
        let known: SessionSid = "S-1-5-21-1-258-3-4294967295".parse().unwrap();
        let numbers = [21, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0, 255, 255, 255, 255];
        assert_eq!(known.to_bytes()[8..], numbers);
        for other in
            ["S-1-1-0", "S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3", "S-1-5-21-+1-2-3-4294967295"]
        {
            assert_eq!(other.parse::<SessionSid>(), Err(NotASession), "{other}");
        }
    }
}
