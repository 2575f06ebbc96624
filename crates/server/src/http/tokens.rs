//! The two tokens, one for each of the two parties.

use crate::asking::Caller;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use subtle::ConstantTimeEq as _;

/// How many random bytes a token has.
const TOKEN_BYTES: usize = 32;

/// Both tokens, by which the server knows who calls.
pub struct Tokens {
    requester: Token,
    approver: Token,
}

/// One token. Nothing but [`reveal`](Self::reveal) shows it.
pub struct Token(String);

impl Tokens {
    /// Two new ones.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn random() -> std::io::Result<Self> {
        Ok(Self { requester: Token::random()?, approver: Token::random()? })
    }

    /// What an agent is given.
    pub fn requester(&self) -> &Token {
        &self.requester
    }

    /// What a person is given.
    pub fn approver(&self) -> &Token {
        &self.approver
    }

    /// Whose token this is, if it is one. It takes the same time whichever it is.
    pub(crate) fn caller(&self, presented: &str) -> Option<Caller> {
        // Digests have one length, whatever was presented.
        let presented = Sha256::digest(presented.as_bytes());
        let is = |token: &Token| presented.ct_eq(&Sha256::digest(token.0.as_bytes()));
        let (requester, approver) = (is(&self.requester), is(&self.approver));
        match (bool::from(requester), bool::from(approver)) {
            (_, true) => Some(Caller::Approver),
            (true, false) => Some(Caller::Requester),
            (false, false) => None,
        }
    }
}

impl Token {
    fn random() -> std::io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec HTTP.2: Two tokens of 256 random bits are made at each start, one for whoever requests and one
    /// for whoever approves.
    #[test]
    fn each_token_stands_for_its_party_and_no_other_text_for_anybody() {
        let tokens = Tokens::random().unwrap();
        let (requester, approver) = (tokens.requester().reveal(), tokens.approver().reveal());
        assert_eq!((requester.len(), approver.len()), (43, 43));
        assert_eq!(tokens.caller(requester), Some(Caller::Requester));
        assert_eq!(tokens.caller(approver), Some(Caller::Approver));
        let other = Tokens::random().unwrap();
        for wrong in ["", &approver[1..], &format!("{approver}="), other.approver().reveal()] {
            assert_eq!(tokens.caller(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_shows_a_token_by_accident() {
        let tokens = Tokens::random().unwrap();
        let shown = format!("{tokens:?} {:?}", tokens.approver());
        assert!(!shown.contains(tokens.approver().reveal()));
    }
}
