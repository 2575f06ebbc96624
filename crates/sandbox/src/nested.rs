//! What the environment says of a sandbox around this program.
//!
//! For tests and tools that cannot work in a sandbox. A variable is a hint and no proof: nothing here
//! may decide what is allowed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Tells a command what confines it.
pub(crate) const SANDBOX: &str = "CODEX_SANDBOX";
/// Tells a command that the network is closed to it.
pub(crate) const NETWORK_DISABLED: &str = "CODEX_SANDBOX_NETWORK_DISABLED";

/// Whether this program was started in a sandbox, as its environment says.
pub fn is_sandboxed() -> bool {
    says_sandboxed(|name| std::env::var_os(name))
}

/// Whether the network is closed to this program, as its environment says.
pub fn is_network_disabled() -> bool {
    says_network_disabled(|name| std::env::var_os(name))
}

/// The same as [`is_sandboxed`] for a command with this environment.
pub fn is_sandboxed_in(env: &BTreeMap<OsString, OsString>) -> bool {
    says_sandboxed(|name| env.get(OsStr::new(name)).cloned())
}

/// The same as [`is_network_disabled`] for a command with this environment.
pub fn is_network_disabled_in(env: &BTreeMap<OsString, OsString>) -> bool {
    says_network_disabled(|name| env.get(OsStr::new(name)).cloned())
}

fn says_sandboxed(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable(SANDBOX).is_some()
}

fn says_network_disabled(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable(NETWORK_DISABLED).is_some_and(|value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec DECISIONS.40: A program is sandboxed when `CODEX_SANDBOX` is set, whatever to, and has no
    /// network when `CODEX_SANDBOX_NETWORK_DISABLED` is 1.
    #[test]
    fn the_environment_tells_of_a_sandbox() {
        for (name, value, sandboxed, disabled) in [
            ("CODEX_SANDBOX", "linux", true, false),
            ("CODEX_SANDBOX", "seatbelt", true, false),
            ("CODEX_SANDBOX", "", true, false),
            ("CODEX_SANDBOX_NETWORK_DISABLED", "1", false, true),
            ("CODEX_SANDBOX_NETWORK_DISABLED", "0", false, false),
            ("CODEX_SANDBOX_NETWORK_DISABLED", "", false, false),
            ("CODEX_SANDBOX_NETWORK_DISABLED", "true", false, false),
            ("OTHER", "1", false, false),
        ] {
            let env = BTreeMap::from([(name.into(), value.into())]);
            assert_eq!(is_sandboxed_in(&env), sandboxed, "{name}={value}");
            assert_eq!(is_network_disabled_in(&env), disabled, "{name}={value}");
        }
    }

    #[test]
    fn this_programs_own_environment_is_asked() {
        let own = std::env::vars_os().collect();
        assert_eq!(is_sandboxed(), is_sandboxed_in(&own));
        assert_eq!(is_network_disabled(), is_network_disabled_in(&own));
    }
}
