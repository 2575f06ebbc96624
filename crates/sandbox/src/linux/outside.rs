//! What the cage told, looked at from outside of it.

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, open};
use sandgate_protocol::DenialRule;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Why something was refused that a supervisor told of. In there one read-only mount is like another; out here those
/// that the cage made are not there, so what is read-only here as well is so for everybody.
pub fn rule_seen_from_outside(rule: DenialRule, target: &[u8]) -> DenialRule {
    match rule {
        DenialRule::ProtectedName if is_read_only(Path::new(OsStr::from_bytes(target))) => {
            DenialRule::ReadOnlyMount
        }
        rule => rule,
    }
}

/// Whether the nearest thing to a path that is there lies on a read-only mount.
fn is_read_only(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = path.ancestors().find_map(|path| open(path, flags, Mode::empty()).ok());
    let flags = held.and_then(|held| fstatvfs(held).ok()).map(|found| found.f_flag);
    flags.is_some_and(|flags| flags.contains(StatVfsMountFlags::RDONLY))
}
