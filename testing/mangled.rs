//! Messages that something was done to, for tests of whatever reads them. They name this file by its path.

use proptest::prelude::*;
use proptest::sample::Index;

/// A message of which up to three bytes were changed, its beginning, or any bytes.
pub(crate) fn mangled(honest: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    let changed = changes.prop_map(|changes| {
        let mut bytes = honest.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    let cut = any::<Index>().prop_map(|at| honest.as_bytes()[..at.index(honest.len())].to_vec());
    prop_oneof![6 => changed, 2 => cut, 3 => prop::collection::vec(any::<u8>(), 0..300)]
}
