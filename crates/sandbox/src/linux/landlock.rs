//! The kernel's own rules on files: read anywhere, write beneath the roots.

use super::CageError;
use crate::sys;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use rustix::fd::OwnedFd;
use sandgate_protocol::{NetworkAccess, WritableRoot};
use std::path::Path;

/// The newest version that the rules below make use of. Older kernels get what they know.
const NEWEST: ABI = ABI::V6;

/// What stays writable outside the roots when the host's own `/dev` is used.
const HARMLESS_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Makes the rules. The descriptor can be given to as many processes as like to live by them.
///
/// `None` when this kernel has no Landlock.
pub(super) fn rules(
    roots: &[WritableRoot],
    network: NetworkAccess,
    own_network: bool,
) -> Result<Option<OwnedFd>, CageError> {
    let wrong = |e: landlock::RulesetError| CageError::Landlock(e.to_string());
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(wrong)?
        .scope(Scope::from_all(NEWEST))
        .map_err(wrong)?;
    if network == NetworkAccess::Restricted && !own_network {
        // No rule follows, so nothing is allowed.
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(wrong)?;
    }
    let mut created = ruleset.create().map_err(wrong)?;
    let mut allow = |path: &Path, access| -> Result<(), CageError> {
        let wrong = |reason: String| CageError::Landlock(format!("{}: {reason}", path.display()));
        let descriptor = PathFd::new(path).map_err(|e| wrong(e.to_string()))?;
        let rule = PathBeneath::new(descriptor, access).set_compatibility(CompatLevel::BestEffort);
        (&mut created).add_rule(rule).map(|_| ()).map_err(|e| wrong(e.to_string()))
    };
    allow(Path::new("/"), AccessFs::from_read(NEWEST))?;
    for root in roots {
        allow(&root.path, AccessFs::from_all(NEWEST))?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
    for device_path in HARMLESS_DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        allow(device_path, device)?;
    }
    Ok(created.into())
}

/// All that a rule may allow on this kernel: for what the cage itself mounts.
pub(super) fn everything() -> u64 {
    AccessFs::from_all(ABI::from(sys::landlock_version()).min(NEWEST)).bits()
}
