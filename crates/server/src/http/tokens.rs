//! The two tokens, one for each of the two parties, and the codes by which a browser signs in.
//!
//! A browser writes every address that it opens into files which any command can read, so an address never has
//! a token in it. It has a code that counts once and for a while, and the page that has spent it is given a token
//! of its own, which it keeps in memory.

use crate::asking::Caller;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq as _;

/// How many random bytes a token has.
const TOKEN_BYTES: usize = 32;

/// How long a code counts.
const CODE_LIFE: Duration = Duration::from_secs(600);
/// How many codes, and how many pages that have spent one, are known at once. The oldest goes first.
const MOST_CODES: usize = 16;
const MOST_PAGES: usize = 64;

/// Both tokens, by which the server knows who calls.
pub struct Tokens {
    requester: Token,
    approver: Token,
    pages: Mutex<Pages>,
}

/// The browsers of the person. Only digests are kept, which are compared in one time whatever they are.
#[derive(Default)]
struct Pages {
    codes: VecDeque<(Digest, Instant)>,
    tokens: VecDeque<Digest>,
}

type Digest = [u8; 32];

/// One token. Nothing but [`reveal`](Self::reveal) shows it.
pub struct Token(String);

impl Tokens {
    /// Two new ones.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn random() -> std::io::Result<Self> {
        let (requester, approver) = (Token::random()?, Token::random()?);
        Ok(Self { requester, approver, pages: Mutex::default() })
    }

    /// A new code for the console's address, with which one page can sign in as the approver's.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn code(&self) -> std::io::Result<String> {
        let code = Token::random()?;
        let mut pages = self.pages();
        if pages.codes.len() == MOST_CODES {
            pages.codes.pop_front();
        }
        pages.codes.push_back((digest(&code.0), Instant::now()));
        Ok(code.0)
    }

    /// Spends a code. None if it is none, was spent, or is too old.
    pub(crate) fn sign_in(&self, code: &str) -> Option<Token> {
        let presented = digest(code);
        let mut pages = self.pages();
        pages.codes.retain(|(_, made)| made.elapsed() < CODE_LIFE);
        let before = pages.codes.len();
        pages.codes.retain(|(known, _)| !bool::from(known.ct_eq(&presented)));
        if pages.codes.len() == before {
            return None;
        }
        let token = Token::random().ok()?;
        if pages.tokens.len() == MOST_PAGES {
            pages.tokens.pop_front();
        }
        pages.tokens.push_back(digest(&token.0));
        Some(token)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
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
        let presented = digest(presented);
        let is = |known: &Digest| presented.ct_eq(known);
        let requester = is(&digest(&self.requester.0));
        let pages = self.pages();
        let approver =
            pages.tokens.iter().fold(is(&digest(&self.approver.0)), |any, page| any | is(page));
        match (bool::from(requester), bool::from(approver)) {
            (_, true) => Some(Caller::Approver),
            (true, false) => Some(Caller::Requester),
            (false, false) => None,
        }
    }
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
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

    /// spec HTTP.40: The console's address has a code in it, which counts once and for ten minutes; the page that
    /// spends it is given an approver's token of its own, which is in no file.
    #[test]
    fn a_code_counts_once() {
        let tokens = Tokens::random().unwrap();
        let code = tokens.code().unwrap();
        assert_eq!(tokens.caller(&code), None, "a code is no token");
        assert!(tokens.sign_in("x").is_none());
        let page = tokens.sign_in(&code).unwrap();
        assert_eq!(tokens.caller(page.reveal()), Some(Caller::Approver));
        assert!(tokens.sign_in(&code).is_none(), "it was spent");
        let old = tokens.code().unwrap();
        let codes: Vec<String> = (0..MOST_CODES).map(|_| tokens.code().unwrap()).collect();
        assert!(tokens.sign_in(&old).is_none(), "there were many newer ones");
        assert!(codes.iter().all(|code| tokens.sign_in(code).is_some()));
        tokens.pages().codes.push_back((digest("late"), Instant::now()));
        let Some(long_ago) = Instant::now().checked_sub(CODE_LIFE) else { return };
        tokens.pages().codes.push_back((digest("old"), long_ago));
        assert!(tokens.sign_in("old").is_none() && tokens.sign_in("late").is_some());
    }

    #[test]
    fn nothing_shows_a_token_by_accident() {
        let tokens = Tokens::random().unwrap();
        let shown = format!("{tokens:?} {:?}", tokens.approver());
        assert!(!shown.contains(tokens.approver().reveal()));
    }
}
