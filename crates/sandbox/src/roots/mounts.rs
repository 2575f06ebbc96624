//! What is mounted beneath the roots and must not be written to.
//!
//! A root is opened with everything that is mounted in it. What holds files is the person's own. A file system of the
//! kernel's, as a tree that is to become a container has them, is the machine itself: who writes to `/proc` there
//! sets what the kernel runs as root.

use super::find::as_path;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The file systems without a device that hold somebody's files. All others without one are taken for the kernel's.
const OF_FILES: &[&str] = &[
    "9p", "acfs", "afs", "aufs", "beegfs", "ceph", "cifs", "coda", "drvfs", "ecryptfs", "fuse",
    "gpfs", "hostfs", "jffs2", "lustre", "nfs", "nfs4", "orangefs", "overlay", "prl_fs", "ramfs",
    "rootfs", "shiftfs", "smb3", "tmpfs", "ubifs", "vboxsf", "virtiofs", "vmhgfs", "wslfs", "zfs",
];

/// Something that is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    number: u64,
    place: PathBuf,
    file_system: &'a str,
}

/// The places in the roots at which something is mounted that is not of files, as far as they can be reached.
///
/// # Errors
/// When nobody says what is mounted.
pub(super) fn of_the_kernel(roots: &BTreeSet<PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mounted = std::fs::read("/proc/self/mountinfo")?;
    let mounted = String::from_utf8_lossy(&mounted);
    let in_roots = |mount: &Mount<'_>| mount.place.ancestors().any(|above| roots.contains(above));
    let mut found = mounted.lines().filter_map(read).filter(in_roots).peekable();
    if found.peek().is_none() {
        return Ok(Vec::new());
    }
    let with_devices = std::fs::read_to_string("/proc/filesystems")?;
    let holds_files = |mount: &Mount<'_>| {
        let name = mount.file_system;
        let kind = name.split_once('.').map_or(name, |(kind, _)| kind);
        OF_FILES.contains(&kind)
            || with_devices.lines().any(|line| line.strip_prefix('\t') == Some(name))
    };
    Ok(found
        .filter(|mount| !holds_files(mount) && is_on_top(mount))
        .map(|mount| mount.place)
        .collect())
}

/// One line: numbers, the place, and behind a dash the kind.
fn read(line: &str) -> Option<Mount<'_>> {
    let (about, what) = line.split_once(" - ")?;
    let mut about = about.split(' ');
    let number = about.next()?.parse().ok()?;
    let place = as_path(&unescaped(about.nth(3)?))?;
    Some(Mount { number, place, file_system: what.split(' ').next()? })
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let digits = others.get(..3).filter(|_| first == b'\\');
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = others.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    bytes
}

/// Whether a path leads to a mount: another one may lie over it, or over what it lies in. Who cannot tell says yes.
fn is_on_top(mount: &Mount<'_>) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(CWD, &mount.place, flags, StatxFlags::MNT_ID) {
        Ok(found) => {
            let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
            !is_told || found.stx_mnt_id == mount.number
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => false,
        Err(_) => true,
    }
}

/// What can be looked at of a place: itself, or else what is nearest above it.
pub(super) fn nearest(place: &Path) -> Option<&Path> {
    place.ancestors().find(|above| above.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_is_mounted_where() {
        let line =
            r"185 43 0:13 / /srv/a\040b\134c\012 rw,relatime shared:1 - fuse.sshfs me@there:/a rw";
        let mount = read(line).unwrap();
        assert_eq!((mount.number, mount.file_system), (185, "fuse.sshfs"));
        assert_eq!(mount.place, Path::new("/srv/a b\\c\n"));
        assert_eq!(read("nothing of the kind"), None);
        assert_eq!(unescaped(r"\9\0401\04"), br"\9 1\04");
    }

    /// What every machine has.
    #[test]
    fn the_kernels_own_are_told_from_those_of_files() {
        let of = |root: &str| of_the_kernel(&BTreeSet::from([PathBuf::from(root)])).unwrap();
        assert!(of("/proc").contains(&"/proc".into()));
        assert!(of("/sys").contains(&"/sys".into()));
        assert!(!of("/").contains(&"/".into()));
        assert!(!of("/dev").contains(&"/dev/shm".into()));
        let directory = tempfile::tempdir().unwrap();
        assert!(of(directory.path().to_str().unwrap()).is_empty());
    }

    /// The lines are the kernel's, but names in them are anybody's.
    #[test]
    fn no_line_makes_it_fail() {
        proptest::proptest!(|(line in "[ -~\\\\0-9 /-]{0,80}")| {
            let _ = read(&line);
            let _ = unescaped(&line);
        });
    }
}
