//! What the paths that a person named really are, and which of them are refused.

use super::RootError;
use super::protected::{has_protected_part, is_placeholder};
use super::way::Way;
use sandgate_protocol::SandboxPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The canonical form of a directory that was named as a root, and the way to it.
pub(super) fn root(path: &Path) -> Result<(PathBuf, Way), RootError> {
    let canonical = canonical(path).and_then(|canonical| {
        if !canonical.is_dir() {
            return Err("it is not a directory".to_owned());
        }
        refuse_too_much(&canonical)?;
        Ok((canonical, way(path)))
    });
    canonical.map_err(|reason| RootError::Writable { path: path.to_owned(), reason })
}

/// The way to a path that may be relative.
pub(super) fn way(path: &Path) -> Way {
    Way::of(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Refuses a root that is reached by a link in another root: a command could have made that link, or
/// have led it elsewhere, when its own roots were others.
pub(super) fn refuse_links_in(
    roots: &BTreeSet<PathBuf>,
    path: &Path,
    way: &Way,
) -> Result<(), RootError> {
    let in_a_root = |link: &Path| link.ancestors().skip(1).any(|above| roots.contains(above));
    refuse_links(path, way, |link| in_a_root(link) || is_open_to_all(link.parent()))
}

/// Refuses a workspace that is reached by a link which may not be the person's own: one beneath a
/// directory that everybody can write to, one in a repository, where commands work, and one in the
/// middle of the path, in a directory of this user's, if that is not the home directory.
pub(super) fn refuse_doubtful_links(
    path: &Path,
    way: &Way,
    home: Option<&Path>,
) -> Result<(), RootError> {
    let home = home.and_then(|home| home.canonicalize().ok());
    let named = path.parent().and_then(|above| above.canonicalize().ok());
    let named = named.zip(path.file_name()).map(|(above, name)| above.join(name));
    refuse_links(path, way, |link| {
        let mut above = link.ancestors().skip(1);
        let in_the_middle = named.as_deref() != Some(link) && link.parent() != home.as_deref();
        above.any(|above| is_open_to_all(Some(above)) || above.join(".git").exists())
            || (in_the_middle && is_in_own_directory(link))
    })
}

fn refuse_links(
    path: &Path,
    way: &Way,
    is_doubtful: impl Fn(&Path) -> bool,
) -> Result<(), RootError> {
    let Some(link) = way.links.iter().find(|link| is_doubtful(link)) else { return Ok(()) };
    let really = way.canonical().map(shown).unwrap_or_default();
    let reason = format!(
        "{} is a link that a command could have made; if you mean {really}, name that",
        shown(link)
    );
    Err(RootError::Writable { path: path.to_owned(), reason })
}

/// Whether every user can make something in a directory.
#[cfg(unix)]
fn is_open_to_all(directory: Option<&Path>) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let found = directory.and_then(|directory| directory.metadata().ok());
    found.is_some_and(|found| found.mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_directory: Option<&Path>) -> bool {
    false
}

/// Whether something lies in a directory of this user's. All of the system's are root's, which says
/// nothing about who made a link in them.
#[cfg(target_os = "linux")]
fn is_in_own_directory(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid();
    let found = path.parent().and_then(|directory| directory.metadata().ok());
    !user.is_root() && found.is_some_and(|found| found.uid() == user.as_raw())
}

#[cfg(not(target_os = "linux"))]
fn is_in_own_directory(_path: &Path) -> bool {
    false
}

/// The canonical form of a path that one grant opens. It may be a file, and it may be protected:
/// that is what such a grant is for. The person's own settings for us are the exception, because a
/// command that can write there can grant itself anything; `inside` are roots that lie in them all
/// the same.
pub(super) fn extra(
    path: &Path,
    settings: Option<&Path>,
    inside: &BTreeSet<PathBuf>,
) -> Result<PathBuf, RootError> {
    let canonical = canonical(path).and_then(|canonical| {
        refuse_too_much(&canonical)?;
        let found = canonical.symlink_metadata().map_err(|e| e.to_string())?;
        if is_placeholder(&found) {
            return Err(missing(path));
        }
        if !found.is_dir() && !found.is_file() {
            return Err("it is neither a directory nor a file".to_owned());
        }
        if settings.is_some_and(|settings| is_in_settings(&canonical, settings, inside)) {
            let text = "it is where sandgate's own settings are";
            return Err(text.to_owned());
        }
        Ok(canonical)
    });
    canonical.map_err(|reason| RootError::Writable { path: path.to_owned(), reason })
}

/// The canonical form of a socket that one grant opens.
pub(super) fn socket(path: &Path) -> Result<PathBuf, RootError> {
    let canonical = canonical(path).and_then(|canonical| {
        if !is_socket(&canonical) {
            return Err("it is not a socket".to_owned());
        }
        if has_protected_part(&canonical) {
            return Err("it lies in a protected directory".to_owned());
        }
        Ok(canonical)
    });
    canonical.map_err(|reason| RootError::Socket { path: path.to_owned(), reason })
}

#[cfg(unix)]
pub(super) fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(not(unix))]
pub(super) fn is_socket(_path: &Path) -> bool {
    false
}

/// Whether a path, absolute and canonical, lies in the person's settings and in no root there.
pub(super) fn is_in_settings(path: &Path, settings: &Path, roots: &BTreeSet<PathBuf>) -> bool {
    let mut in_a_root = path.ancestors().take_while(|above| *above != settings);
    path.starts_with(settings) && !in_a_root.any(|above| roots.contains(above))
}

/// Refuses what would undo the sandbox.
pub(super) fn refuse_too_much(path: &Path) -> Result<(), String> {
    if path.parent().is_none() {
        let text = "that is everything; use the mode danger-full-access if you mean it";
        return Err(text.to_owned());
    }
    if is_of_the_kernel(path) || is_on_a_kernel_file_system(path) {
        return Err("the kernel's own directories cannot be made writable".to_owned());
    }
    Ok(())
}

fn canonical(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(path),
        _ => error.to_string(),
    })
}

/// Says that something does not exist, and what does.
fn missing(path: &Path) -> String {
    if let Ok(target) = path.read_link() {
        return format!("it is a link to {}, which does not exist", shown(&target));
    }
    let nearest = path.ancestors().skip(1).find(|above| above.is_dir());
    let nearest = nearest.and_then(|above| above.canonicalize().ok());
    let hint = match path.iter().any(|part| part == "~") {
        true => " (a ~ is not expanded here)",
        false => "",
    };
    match nearest {
        Some(above) => {
            format!("it does not exist{hint}; the nearest directory that does is {}", shown(&above))
        }
        None => format!("it does not exist{hint}"),
    }
}

/// A path on one line, whatever its name.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_control) { format!("{path:?}") } else { text }
}

fn is_of_the_kernel(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|kernel| path.starts_with(kernel))
}

/// Whether a file system that is no file system is mounted there: the kernel's can be anywhere.
#[cfg(target_os = "linux")]
pub(super) fn is_on_a_kernel_file_system(path: &Path) -> bool {
    use rustix::fs::FsWord;
    const KERNEL: &[(FsWord, &str)] = &[
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x1cd1, "devpts"),
        (0x0027_e0eb, "cgroup"),
        (0x6367_7270, "cgroup2"),
        (0x6462_6720, "debugfs"),
        (0x7472_6163, "tracefs"),
        (0x7363_6673, "securityfs"),
        (0x6265_6570, "configfs"),
        (0xcafe_4a11, "bpf"),
        (0x6165_676c, "pstore"),
        (0x1980_0202, "mqueue"),
        (0x4249_4e4d, "binfmt_misc"),
        (0xde5e_81e4, "efivarfs"),
        (0xf97c_ff8c, "selinuxfs"),
        (0x4341_5d53, "smackfs"),
        (0x6e66_7364, "nfsd"),
        (0x6759_6969, "rpc_pipefs"),
        (0x6573_5543, "fusectl"),
        (0x0765_5821, "resctrl"),
        (0x6c6f_6f70, "binder"),
    ];
    let is_one = |kind| KERNEL.iter().any(|(number, _)| *number == kind);
    rustix::fs::statfs(path).is_ok_and(|found| is_one(found.f_type))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_on_a_kernel_file_system(_path: &Path) -> bool {
    false
}

/// The variables that say where temporary files go, and where the person is at home.
const TEMPORARY: &[&str] = if cfg!(windows) { &["TEMP", "TMP"] } else { &["TMPDIR"] };
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// The directories for temporary files, and why one that a variable names is not among them. What it
/// names may be gone or of no use; nothing is lost by leaving it out.
pub(super) fn scratch(
    policy: &SandboxPolicy,
    env: &BTreeMap<OsString, OsString>,
) -> (BTreeSet<PathBuf>, Vec<String>) {
    let (mut scratch, mut notes) = (BTreeSet::new(), Vec::new());
    let SandboxPolicy::WorkspaceWrite { exclude_tmpdir_env_var, exclude_slash_tmp, .. } = policy
    else {
        return (scratch, notes);
    };
    if !exclude_slash_tmp && cfg!(unix) {
        let canonical = Path::new("/tmp").canonicalize();
        scratch.extend(canonical.ok().filter(|path| path.is_dir() && is_fit_for_scratch(path)));
    }
    let variables = TEMPORARY.iter().filter_map(|name| Some((name, env.get(OsStr::new(name))?)));
    for (name, path) in variables.filter(|_| !exclude_tmpdir_env_var) {
        let path = Path::new(path);
        let Ok(canonical) = path.canonicalize() else { continue };
        if !path.is_absolute() || !canonical.is_dir() || !is_fit_for_scratch(&canonical) {
            continue;
        }
        match doubt_about(&way(path), &canonical) {
            _ if scratch.contains(&canonical) => {}
            None => {
                scratch.insert(canonical);
            }
            Some(why) => notes
                .push(format!("{name} is {}, and commands cannot write there: {why}", shown(path))),
        }
    }
    (scratch, notes)
}

/// Why a directory that a variable names is perhaps not what the person means. A command whose roots
/// were others may have made it.
#[cfg(target_os = "linux")]
fn doubt_about(way: &Way, directory: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid();
    // The system's own links are in directories that only root can write to.
    let settled = |link: &PathBuf| {
        let above = link.parent().and_then(|above| Some((above, above.metadata().ok()?)));
        above.is_some_and(|(path, found)| {
            let of_the_system = found.uid() == 0 && found.mode() & 0o022 == 0;
            of_the_system && (!user.is_root() || path.parent().is_none())
        })
    };
    if !way.links.iter().all(settled) {
        return Some("a link leads to it, which a command could have made");
    }
    let found = directory.metadata().ok()?;
    let everybodys = found.uid() == 0 && found.mode() & 0o1002 == 0o1002;
    (found.uid() != user.as_raw() && !everybodys).then_some("it is not this user's own directory")
}

#[cfg(not(target_os = "linux"))]
fn doubt_about(_way: &Way, _directory: &Path) -> Option<&'static str> {
    None
}

fn is_fit_for_scratch(path: &Path) -> bool {
    // A variable must not open what is protected.
    refuse_too_much(path).is_ok() && !has_protected_part(path)
}

/// Where the person is at home.
pub(super) fn home(env: &BTreeMap<OsString, OsString>) -> Option<&Path> {
    env.get(OsStr::new(HOME)).map(Path::new).filter(|home| home.is_absolute())
}

/// Where the person's own settings are.
pub(super) fn codex_home(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let variable = |name: &str| env.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let named = variable("CODEX_HOME").map(PathBuf::from);
    let path = named.or_else(|| Some(Path::new(variable(HOME)?).join(".codex")))?;
    // A relative one starts where this program does.
    std::path::absolute(path).ok()
}
