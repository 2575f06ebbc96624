//! The least that would have let a command through.

use super::git::obeyed_part;
use super::protected::{is_placeholder, is_protected, protected_part};
use super::resolve;
use sandgate_policy::Extras;
use sandgate_protocol::{DenialEvidence, DenialRule, DeniedOperation};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The smallest grant that would have let through what was refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Narrowest {
    /// What to grant.
    pub extras: Extras,
    /// What would be refused all the same, because no such grant can open it.
    pub out_of_reach: Vec<DenialEvidence>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A socket.
    Socket,
    /// Something that no grant may open.
    Closed,
}

impl Narrowest {
    /// Works it out from what is on the disk now. `env` is the environment of the command.
    pub fn of(evidence: &[DenialEvidence], env: &BTreeMap<OsString, OsString>) -> Self {
        let settings = resolve::codex_home(env).and_then(|home| home.canonicalize().ok());
        Self::given(evidence, |path| look(path, settings.as_deref()))
    }

    /// Works it out, given what is where.
    pub fn given(evidence: &[DenialEvidence], look: impl Fn(&Path) -> Found) -> Self {
        let mut narrowest = Self::default();
        let mut writable = BTreeSet::new();
        let mut sockets = BTreeSet::new();
        // What git obeys is opened only by its own name.
        let mut obeyed = BTreeSet::new();
        for denial in evidence {
            let grantable = match denial.rule {
                DenialRule::NetworkOff => {
                    narrowest.extras.network = true;
                    true
                }
                DenialRule::SocketOutsideWritableRoots => {
                    insert(&mut sockets, socket_for(denial, &look))
                }
                DenialRule::OutsideWritableRoots | DenialRule::ProtectedName => {
                    let path = path_for(denial, &look);
                    let part = path.as_ref().and_then(|git| obeyed_for(denial, git, &look));
                    obeyed.extend(part);
                    insert(&mut writable, path)
                }
                // Nobody can write there, whatever the sandbox opens.
                DenialRule::NeverAllowed | DenialRule::ReadOnlyMount => false,
            };
            if !grantable {
                narrowest.out_of_reach.push(denial.clone());
            }
        }
        narrowest.extras.writable =
            writable.iter().filter(|path| !is_covered(path, &writable)).cloned().collect();
        obeyed.retain(|path| !narrowest.extras.writable.contains(path));
        narrowest.extras.writable.extend(obeyed);
        narrowest.extras.sockets = sockets.into_iter().collect();
        narrowest
    }
}

fn insert(set: &mut BTreeSet<PathBuf>, path: Option<PathBuf>) -> bool {
    let found = path.is_some();
    set.extend(path);
    found
}

/// The path that evidence names, if it names one exactly: what is not UTF-8 has been replaced there.
fn target(denial: &DenialEvidence) -> Option<&Path> {
    let path = Path::new(&denial.target);
    let exact = path.is_absolute() && !denial.target.contains(char::REPLACEMENT_CHARACTER);
    exact.then_some(path)
}

fn socket_for(denial: &DenialEvidence, look: impl Fn(&Path) -> Found) -> Option<PathBuf> {
    let path = target(denial)?;
    let can_be = look(path) == Found::Socket && protected_part(path).is_none();
    can_be.then(|| path.to_owned())
}

fn path_for(denial: &DenialEvidence, look: impl Fn(&Path) -> Found) -> Option<PathBuf> {
    let path = target(denial)?;
    let can_be = |path: &Path| matches!(look(path), Found::Directory | Found::File);
    // What is granted has a mount on it, and can be neither removed nor moved itself.
    let moves = matches!(denial.operation, DeniedOperation::Remove | DeniedOperation::Rename);
    if let Some(protected) = protected_part(path) {
        // A part of it is of no use: programs make new files there, and move them.
        let useful = can_be(&protected) && !(moves && protected == path);
        return useful.then_some(protected);
    }
    if !moves && look(path) != Found::Nothing {
        return can_be(path).then(|| path.to_owned());
    }
    let nearest = path.ancestors().skip(1).find(|above| look(above) != Found::Nothing)?;
    (look(nearest) == Found::Directory).then(|| nearest.to_owned())
}

/// What was refused of what git obeys, if a grant of its directory would leave it closed.
fn obeyed_for(
    denial: &DenialEvidence,
    git: &Path,
    look: impl Fn(&Path) -> Found,
) -> Option<PathBuf> {
    let part = obeyed_part(target(denial)?, git)?;
    matches!(look(&part), Found::Directory | Found::File).then_some(part)
}

/// Whether a path is opened by another one of them: it lies beneath that, and is not protected there.
fn is_covered(path: &Path, all: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().skip(1).any(|above| {
        let inside = path.strip_prefix(above).unwrap_or(path);
        all.contains(above) && !inside.iter().any(is_protected)
    })
}

fn look(path: &Path, settings: Option<&Path>) -> Found {
    let Ok(found) = path.symlink_metadata() else { return Found::Nothing };
    if is_placeholder(&found) {
        return Found::Nothing;
    }
    if resolve::is_socket(path) {
        return Found::Socket;
    }
    let in_settings = settings.is_some_and(|settings| path.starts_with(settings));
    if in_settings || resolve::refuse_too_much(path).is_err() {
        return Found::Closed;
    }
    match found.file_type() {
        kind if kind.is_dir() => Found::Directory,
        kind if kind.is_file() => Found::File,
        _ => Found::Closed,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::roots::protected::PLACEHOLDER_MODE;
    use DenialRule::{NetworkOff, NeverAllowed, OutsideWritableRoots, ProtectedName};
    use DeniedOperation::{Bind, Change, Connect, Create, Remove, Rename, Use, Write};

    fn denial(operation: DeniedOperation, target: &str, rule: DenialRule) -> DenialEvidence {
        DenialEvidence { operation, target: target.to_owned(), syscall: "call".to_owned(), rule }
    }

    /// A small disk.
    fn disk(path: &Path) -> Found {
        match path.to_str().unwrap() {
            "/" | "/settings" | "/settings/auth" => Found::Closed,
            "/etc" | "/data" | "/data/in" | "/ws" | "/ws/.git" | "/ws/.git/refs" => {
                Found::Directory
            }
            "/etc/hosts" | "/ws/.git/config" | "/ws/.git/index" | "/data/file" => Found::File,
            "/run/docker.sock" | "/ws/.git/fsmonitor.sock" => Found::Socket,
            _ => Found::Nothing,
        }
    }

    fn granted(evidence: &[DenialEvidence]) -> (Vec<String>, usize) {
        let narrowest = Narrowest::given(evidence, disk);
        let text = |path: &PathBuf| path.display().to_string();
        (narrowest.extras.writable.iter().map(text).collect(), narrowest.out_of_reach.len())
    }

    /// spec DECISIONS.50: The smallest grant for a write is the file itself, and for something that is
    /// not there, or is removed or moved, the nearest directory that is.
    #[test]
    fn a_path_is_granted_by_itself_or_by_its_directory() {
        for (operation, target, expected) in [
            (Write, "/etc/hosts", "/etc/hosts"),
            (Change, "/etc/hosts", "/etc/hosts"),
            (Create, "/etc/hosts", "/etc/hosts"),
            (Change, "/data", "/data"),
            (Create, "/data/new", "/data"),
            (Create, "/data/new/deeper/file", "/data"),
            (Bind, "/data/in/socket", "/data/in"),
            (Remove, "/etc/hosts", "/etc"),
            (Rename, "/data/in", "/data"),
        ] {
            let found = granted(&[denial(operation, target, OutsideWritableRoots)]);
            assert_eq!(found, (vec![expected.to_owned()], 0), "{operation:?} {target}");
        }
    }

    /// spec DECISIONS.51: Whatever was refused in a protected directory, the smallest grant is that
    /// directory.
    #[test]
    fn several_things_in_a_repository_are_one_grant() {
        let refused = [
            denial(Create, "/ws/.git/index.lock", ProtectedName),
            denial(Create, "/ws/.git/refs/heads/main.lock", ProtectedName),
            denial(Rename, "/ws/.git/index", OutsideWritableRoots),
            denial(Create, "/ws/.git/refs/heads/config.lock", ProtectedName),
        ];
        assert_eq!(granted(&refused), (vec!["/ws/.git".to_owned()], 0));
    }

    /// spec DECISIONS.54: What git obeys is part of the smallest grant only where it was refused itself, and
    /// is named then.
    #[test]
    fn what_git_obeys_is_granted_by_its_own_name() {
        for name in ["config", "config.lock"] {
            let refused = [
                denial(Create, "/ws/.git/index.lock", ProtectedName),
                denial(Create, &format!("/ws/.git/{name}"), ProtectedName),
            ];
            let expected = ["/ws/.git", "/ws/.git/config"].map(str::to_owned).to_vec();
            assert_eq!(granted(&refused), (expected, 0), "{name}");
        }
    }

    /// spec DECISIONS.52: What no grant can open is named.
    #[test]
    fn what_cannot_be_granted_is_named() {
        for refused in [
            denial(Use, "mount", NeverAllowed),
            denial(Create, "/new", OutsideWritableRoots),
            denial(Write, "/settings/auth", OutsideWritableRoots),
            denial(Create, "/settings/new", ProtectedName),
            denial(Create, "/ws/.codex/config.toml", ProtectedName),
            denial(Remove, "/ws/.git", ProtectedName),
            denial(Write, "/data/\u{fffd}", OutsideWritableRoots),
            denial(Write, "relative", OutsideWritableRoots),
            denial(Connect, "@abstract", DenialRule::SocketOutsideWritableRoots),
            denial(Connect, "/ws/.git/fsmonitor.sock", DenialRule::SocketOutsideWritableRoots),
            denial(Connect, "/run/gone.sock", DenialRule::SocketOutsideWritableRoots),
            denial(Write, "/run/docker.sock", OutsideWritableRoots),
            denial(Create, "/data/in/new", DenialRule::ReadOnlyMount),
        ] {
            let narrowest = Narrowest::given(std::slice::from_ref(&refused), disk);
            let expected = Narrowest { extras: Extras::default(), out_of_reach: vec![refused] };
            assert_eq!(narrowest, expected);
        }
    }

    #[test]
    fn the_network_and_a_socket_are_granted_by_themselves() {
        let refused = [
            denial(Connect, "93.184.216.34:443", NetworkOff),
            denial(Connect, "/run/docker.sock", DenialRule::SocketOutsideWritableRoots),
            denial(Connect, "/run/docker.sock", DenialRule::SocketOutsideWritableRoots),
        ];
        let extras = Extras {
            writable: Vec::new(),
            sockets: vec!["/run/docker.sock".into()],
            network: true,
        };
        let expected = Narrowest { extras, out_of_reach: Vec::new() };
        assert_eq!(Narrowest::given(&refused, disk), expected);
    }

    #[test]
    fn what_another_grant_opens_is_not_granted_twice() {
        let refused = [
            denial(Write, "/data/file", OutsideWritableRoots),
            denial(Create, "/data/new", OutsideWritableRoots),
            denial(Create, "/data/in/new", OutsideWritableRoots),
            denial(Write, "/ws/.git/index", ProtectedName),
            denial(Change, "/ws", OutsideWritableRoots),
        ];
        let expected = ["/data", "/ws", "/ws/.git"].map(str::to_owned).to_vec();
        assert_eq!(granted(&refused), (expected, 0));
    }

    #[test]
    fn the_disk_is_asked() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;
        use std::os::unix::net::UnixListener;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("settings")).unwrap();
        fs::write(root.join("settings/auth"), "").unwrap();
        fs::write(root.join("file"), "").unwrap();
        fs::create_dir(root.join(".codex")).unwrap();
        let only_kept_free = fs::Permissions::from_mode(PLACEHOLDER_MODE);
        fs::set_permissions(root.join(".codex"), only_kept_free).unwrap();
        let _listener = UnixListener::bind(root.join("socket")).unwrap();
        let at = |path: &str| root.join(path).display().to_string();
        let refused = [
            denial(Write, &at("file"), OutsideWritableRoots),
            denial(Connect, &at("socket"), DenialRule::SocketOutsideWritableRoots),
            denial(Create, &at(".codex/config.toml"), ProtectedName),
            denial(Write, &at("settings/auth"), OutsideWritableRoots),
            denial(Write, "/proc/sys/kernel/core_pattern", OutsideWritableRoots),
        ];
        let env = BTreeMap::from([("CODEX_HOME".into(), root.join("settings").into())]);
        let narrowest = Narrowest::of(&refused, &env);
        assert_eq!(narrowest.extras.writable, [root.join("file")]);
        assert_eq!(narrowest.extras.sockets, [root.join("socket")]);
        assert_eq!(narrowest.out_of_reach, refused[2..]);
    }
}
