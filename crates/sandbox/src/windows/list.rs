//! Access lists as the bytes that Windows keeps: reading, adding to and taking from them.
//!
//! Windows' own calls for this mix what they add with what is there and say nothing about the order.
//! The order decides, so it is made here, where it can be tested.

use super::{Entry, Kind, Reach};
use std::io;

const HEADER: usize = 8;
/// The form of a list with nothing special in it. One that has another keeps it.
const REVISION: u8 = 2;
const ALLOWED: u8 = 0;
const DENIED: u8 = 1;
/// An entry that came from a directory above.
const INHERITED: u8 = 0x10;
/// Files and directories beneath have it too.
const PASSED_ON: u8 = 0x3;

/// Adds an entry about an identity: what denies first of all, what allows behind all that deny and
/// were not inherited. An entry that is there already is not added again.
///
/// # Errors
/// When the bytes are no access list, or it would be too long.
pub fn with(list: &[u8], entry: Entry, sid: &[u8]) -> io::Result<Vec<u8>> {
    let mut entries = split(list)?;
    let new = encode(entry, sid)?;
    if !entries.contains(&new.as_slice()) {
        let denies = |entry: &&[u8]| entry[0] == DENIED && entry[1] & INHERITED == 0;
        let place = match entry.kind {
            Kind::Deny => 0,
            Kind::Allow => entries.iter().take_while(|entry| denies(entry)).count(),
        };
        entries.insert(place, &new);
    }
    join(list[0], &entries)
}

/// Takes away all that is said about an identity, but for what was inherited.
///
/// # Errors
/// When the bytes are no access list.
pub fn without(list: &[u8], sid: &[u8]) -> io::Result<Vec<u8>> {
    let about = |entry: &&[u8]| {
        matches!(entry[0], ALLOWED | DENIED) && entry[1] & INHERITED == 0 && entry[8..] == *sid
    };
    let entries: Vec<&[u8]> = split(list)?.into_iter().filter(|entry| !about(entry)).collect();
    join(list[0], &entries)
}

/// A list that allows everything to some identities and nothing to anybody else.
///
/// # Errors
/// When it would be too long.
pub fn everything_to(sids: &[&[u8]]) -> io::Result<Vec<u8>> {
    const EVERYTHING: u32 = 0x1000_0000;
    let entry = Entry { kind: Kind::Allow, rights: EVERYTHING, reach: Reach::ItselfOnly };
    let entries: Vec<Vec<u8>> =
        sids.iter().map(|sid| encode(entry, sid)).collect::<Result<_, _>>()?;
    join(REVISION, &entries.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn encode(entry: Entry, sid: &[u8]) -> io::Result<Vec<u8>> {
    let kind = if entry.kind == Kind::Allow { ALLOWED } else { DENIED };
    let flags = if entry.reach == Reach::AllBeneath { PASSED_ON } else { 0 };
    let size = u16::try_from(8 + sid.len()).map_err(|_| too_long())?;
    let mut bytes = vec![kind, flags];
    bytes.extend(size.to_le_bytes());
    bytes.extend(entry.rights.to_le_bytes());
    bytes.extend(sid);
    Ok(bytes)
}

/// The entries of a list.
fn split(list: &[u8]) -> io::Result<Vec<&[u8]>> {
    let count =
        u16::from_le_bytes(*list.get(4..).and_then(<[u8]>::first_chunk).ok_or_else(broken)?);
    let mut rest = list.get(HEADER..).ok_or_else(broken)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let size = *rest.get(2..).and_then(<[u8]>::first_chunk).ok_or_else(broken)?;
        let size = usize::from(u16::from_le_bytes(size));
        if size < 8 {
            return Err(broken());
        }
        let (entry, behind) = rest.split_at_checked(size).ok_or_else(broken)?;
        entries.push(entry);
        rest = behind;
    }
    Ok(entries)
}

fn join(revision: u8, entries: &[&[u8]]) -> io::Result<Vec<u8>> {
    let length = HEADER + entries.iter().map(|entry| entry.len()).sum::<usize>();
    let length = u16::try_from(length).map_err(|_| too_long())?;
    let count = u16::try_from(entries.len()).map_err(|_| too_long())?;
    let mut list = vec![revision, 0];
    list.extend(length.to_le_bytes());
    list.extend(count.to_le_bytes());
    list.extend([0, 0]);
    list.extend(entries.concat());
    Ok(list)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its access list cannot be read")
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "its access list is full")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::{Action, SessionSid};
    use proptest::prelude::*;

    /// Everyone, as Windows writes it.
    const EVERYONE: [u8; 12] = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];

    fn entry(kind: Kind, rights: u32) -> Vec<u8> {
        encode(Entry { kind, rights, reach: Reach::ItselfOnly }, &EVERYONE).unwrap()
    }

    /// spec PLATFORMS.48: Entries of a session are put where Windows reads them first, what denies
    /// before what allows, and taking them away leaves a list as it was.
    #[test]
    fn a_list_with_ours_is_in_order() {
        let mut inherited = entry(Kind::Deny, 3);
        inherited[1] |= INHERITED;
        let (denied, allowed) = (entry(Kind::Deny, 1), entry(Kind::Allow, 2));
        let before = join(REVISION, &[&denied, &allowed, &inherited]).unwrap();
        let sid = SessionSid::new().to_bytes();
        let [pin, allow] = [Action::Pin, Action::Allow].map(|action| action.entry().unwrap());
        let after = with(&with(&before, allow, &sid).unwrap(), pin, &sid).unwrap();
        let ours = [pin, allow].map(|entry| encode(entry, &sid).unwrap());
        assert_eq!(split(&after).unwrap(), [&ours[0], &denied, &ours[1], &allowed, &inherited]);
        assert_eq!(with(&with(&after, pin, &sid).unwrap(), allow, &sid).unwrap(), after);
        assert_eq!(without(&after, &sid).unwrap(), before);
        assert_eq!(without(&before, &sid).unwrap(), before);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let good = join(REVISION, &[&entry(Kind::Allow, 1)]).unwrap();
        for length in 0..good.len() {
            assert!(split(&good[..length]).is_err(), "{length}");
        }
        assert!(split(&[2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let full = join(REVISION, &vec![[0_u8; 60].as_slice(); 1_092]).unwrap();
        assert!(with(&full, Action::Pin.entry().unwrap(), &EVERYONE).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_upset_it(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let sid = SessionSid::new().to_bytes();
            if let Ok(list) = with(&bytes, Action::Allow.entry().unwrap(), &sid) {
                let left = without(&list, &sid).unwrap();
                prop_assert_eq!(split(&left).unwrap(), split(&bytes).unwrap());
            }
        }
    }
}
