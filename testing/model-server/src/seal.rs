//! What a model service gives out so that it can tell later whether a thought is still what it was.
//!
//! The real ones encrypt and sign. Nothing here is secret: whoever changes a thought by mistake is
//! found out, and that is all that a test needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The seal of a thought.
pub(crate) fn seal(thought: &str) -> String {
    STANDARD.encode(format!("{:016x}{thought}", checksum(thought.as_bytes())))
}

/// Whether this is a seal, as it was given out.
pub(crate) fn is_seal(text: &str) -> bool {
    let Ok(bytes) = STANDARD.decode(text) else { return false };
    let Some((sum, thought)) = bytes.split_at_checked(16) else { return false };
    sum == format!("{:016x}", checksum(thought)).as_bytes()
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_known_again_and_a_changed_one_is_not() {
        let given = seal("perhaps 42");
        assert!(is_seal(&given));
        assert_ne!(given, seal("perhaps 43"));
        let mut changed = given.clone().into_bytes();
        changed[25] = if changed[25] == b'A' { b'B' } else { b'A' };
        assert!(!is_seal(&String::from_utf8(changed).unwrap()));
        assert!(!is_seal("") && !is_seal("c2hvcnQ=") && !is_seal("no base64!"));
    }
}
