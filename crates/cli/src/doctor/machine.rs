//! What is known of this machine, as far as it explains why something of the sandbox is missing.

use std::path::Path;

/// Facts about the machine. They are read once, and judged apart from that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// The version of the kernel.
    pub(super) kernel: Option<String>,
    /// How many user namespaces there may be.
    pub(super) max_user_namespaces: Option<u64>,
    /// Whether ordinary users may make them, where the system has a switch for that.
    pub(super) unprivileged_userns_clone: Option<u64>,
    /// Whether AppArmor lets only programs with a profile make them.
    pub(super) apparmor_restricts: Option<u64>,
    /// What kind of container this is.
    pub(super) container: Option<&'static str>,
    /// Whether somebody has put a filter on system calls around us.
    pub(super) is_filtered: bool,
    /// Whether this is a command of another sandbox of ours.
    pub(super) is_sandboxed: bool,
    /// The security modules of the kernel.
    pub(super) modules: Option<String>,
    /// Whether this is the administrator.
    pub(super) is_root: bool,
}

/// Why something is missing, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Cause {
    /// What stands in the way.
    pub(super) why: String,
    /// Commands that take it away.
    pub(super) fix: Vec<String>,
}

impl Cause {
    fn new<const N: usize>(why: &str, fix: [&str; N]) -> Self {
        Self { why: why.to_owned(), fix: fix.map(str::to_owned).into() }
    }
}

impl Machine {
    /// Looks at this machine.
    pub(super) fn look() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok();
        let number = |path: &str| text(path)?.trim().parse().ok();
        let status = text("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        let here = |path: &str| Path::new(path).exists();
        let container = match () {
            () if here("/run/.containerenv") => Some("podman"),
            () if here("/.dockerenv") => Some("docker"),
            () if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Some("kubernetes"),
            () => None,
        };
        Self {
            kernel: text("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            container,
            is_filtered: field("Seccomp:").is_some_and(|mode| mode != "0"),
            is_sandboxed: std::env::var_os("CODEX_SANDBOX").is_some(),
            modules: text("/sys/kernel/security/lsm"),
            is_root: field("Uid:").is_some_and(|id| id == "0"),
        }
    }

    /// Why namespaces are refused: all that could be the reason.
    pub(super) fn why_no_namespaces(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.is_sandboxed {
            causes.push(Cause::new(
                "this runs inside a sandbox of Sandgate or Codex, which makes no further ones",
                ["run it in a terminal of your own, outside of that sandbox"],
            ));
        }
        if self.max_user_namespaces == Some(0) {
            causes.push(Cause::new(
                "user namespaces are switched off on this machine (user.max_user_namespaces is 0)",
                [
                    "sudo sysctl -w user.max_user_namespaces=15000",
                    "echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/50-sandgate.conf",
                ],
            ));
        }
        if self.unprivileged_userns_clone == Some(0) && !self.is_root {
            causes.push(Cause::new(
                "ordinary users may not make namespaces (kernel.unprivileged_userns_clone is 0)",
                [
                    "sudo sysctl -w kernel.unprivileged_userns_clone=1",
                    "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/50-sandgate.conf",
                ],
            ));
        }
        if self.apparmor_restricts == Some(1) && !self.is_root {
            causes.push(Cause::new(
                "AppArmor lets only programs that have a profile for it make namespaces",
                [
                    "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile sandgate %s \
                     flags=(unconfined) { userns, }\\n' \"$(command -v sandgate)\" | sudo tee \
                     /etc/apparmor.d/sandgate",
                    "sudo apparmor_parser -r /etc/apparmor.d/sandgate",
                ],
            ));
        }
        if let Some(container) = self.container {
            let run = match container {
                "podman" => {
                    "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL …"
                }
                "kubernetes" => {
                    "in the pod: securityContext: { seccompProfile: { type: Unconfined }, procMount: \
                     Unmasked }, and hostUsers: false"
                }
                _ => {
                    "docker run --security-opt seccomp=unconfined --security-opt \
                     apparmor=unconfined --security-opt systempaths=unconfined …"
                }
            };
            causes.push(Cause::new(
                "this is a container, whose filter or masked /proc refuses them; docs/containers.md \
                 says what that costs",
                [run],
            ));
        } else if causes.is_empty() && self.is_filtered {
            causes.push(Cause::new(
                "a filter on system calls that was put around this program refuses them",
                ["grep -E 'Seccomp|NoNewPrivs' /proc/self/status"],
            ));
        }
        if causes.is_empty() {
            causes.push(Cause::new(
                "the kernel refuses them and does not say why; it may be built without them",
                ["unshare --user --map-root-user true"],
            ));
        }
        causes
    }

    /// Why there is no Landlock.
    pub(super) fn why_no_landlock(&self) -> Cause {
        let is_old = self.kernel.as_deref().and_then(version).is_some_and(|at| at < (5, 13));
        match &self.modules {
            _ if is_old => Cause::new(
                "the kernel is older than 5.13, which brought it",
                ["boot a kernel of 5.13 or newer; 6.12 has all of it"],
            ),
            Some(modules) if !modules.split(',').any(|name| name.trim() == "landlock") => {
                let on = format!("lsm=landlock,{}", modules.trim());
                Cause {
                    why: "it is not among the kernel's security modules".to_owned(),
                    fix: vec![format!("add this to the kernel's command line and restart: {on}")],
                }
            }
            _ if self.container.is_some() => Cause::new(
                "this is a container, whose filter refuses it; newer versions of Docker and Podman \
                 allow it",
                ["docker run --security-opt seccomp=unconfined …"],
            ),
            _ => Cause::new(
                "the kernel is built without it, or it is switched off",
                [
                    "grep LANDLOCK /boot/config-$(uname -r)   (a kernel with =y, and lsm=landlock,… on \
                  its command line)",
                ],
            ),
        }
    }
}

/// The first two numbers of a kernel's version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whys(machine: &Machine) -> Vec<String> {
        machine.why_no_namespaces().into_iter().map(|cause| cause.why).collect()
    }

    /// spec DOC.2: Where namespaces are refused, each thing that could be the reason is named with the
    /// commands that change it: the limit, the switch for ordinary users, AppArmor, a container, a filter.
    #[test]
    fn every_reason_is_named_with_what_changes_it() {
        let plain = Machine { kernel: Some("6.8.0-45-generic".to_owned()), ..Machine::default() };
        let cases = [
            (Machine { max_user_namespaces: Some(0), ..plain.clone() }, "max_user_namespaces"),
            (Machine { unprivileged_userns_clone: Some(0), ..plain.clone() }, "userns_clone"),
            (Machine { apparmor_restricts: Some(1), ..plain.clone() }, "AppArmor"),
            (Machine { container: Some("docker"), ..plain.clone() }, "container"),
            (Machine { is_filtered: true, ..plain.clone() }, "filter"),
            (plain.clone(), "does not say why"),
        ];
        for (machine, word) in cases {
            let causes = machine.why_no_namespaces();
            assert_eq!(causes.len(), 1, "{causes:?}");
            assert!(causes[0].why.contains(word), "{causes:?}");
            assert!(!causes[0].fix.is_empty(), "{causes:?}");
        }
        let both = Machine { max_user_namespaces: Some(0), apparmor_restricts: Some(1), ..plain };
        assert_eq!(whys(&both).len(), 2);
    }

    #[test]
    fn what_holds_only_ordinary_users_is_no_reason_for_root() {
        let root = Machine {
            is_root: true,
            unprivileged_userns_clone: Some(0),
            apparmor_restricts: Some(1),
            ..Machine::default()
        };
        assert!(whys(&root)[0].contains("does not say why"), "{:?}", whys(&root));
    }

    #[test]
    fn landlock_is_missing_for_a_reason() {
        let why = |kernel: &str, modules: Option<&str>| {
            let (kernel, modules) = (Some(kernel.to_owned()), modules.map(str::to_owned));
            Machine { kernel, modules, ..Machine::default() }.why_no_landlock()
        };
        assert!(why("5.10.0-amd64", None).why.contains("5.13"));
        let off = why("6.1.0", Some("lockdown,capability,apparmor\n"));
        assert!(off.fix[0].contains("lsm=landlock,lockdown,capability,apparmor"), "{off:?}");
        assert!(why("6.1.0", Some("capability,landlock")).why.contains("built without"));
        assert!(why("odd", None).why.contains("built without"));
        for (kernel, modules) in [("5.10.0", None), ("6.1.0", Some("capability")), ("odd", None)] {
            assert!(!why(kernel, modules).fix.is_empty(), "{kernel}");
        }
    }
}
