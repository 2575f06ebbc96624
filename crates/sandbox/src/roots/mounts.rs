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
const OF_FILES: &[&[u8]] = &[
    b"9p",
    b"acfs",
    b"afs",
    b"aufs",
    b"autofs",
    b"beegfs",
    b"ceph",
    b"cifs",
    b"coda",
    b"drvfs",
    b"ecryptfs",
    b"fakeowner",
    b"fuse",
    b"gpfs",
    b"hostfs",
    b"jffs2",
    b"lustre",
    b"nfs",
    b"nfs4",
    b"orangefs",
    b"overlay",
    b"prl_fs",
    b"ramfs",
    b"rootfs",
    b"sdcardfs",
    b"shiftfs",
    b"smb3",
    b"tmpfs",
    b"ubifs",
    b"vboxsf",
    b"virtiofs",
    b"vmhgfs",
    b"wslfs",
    b"zfs",
];

/// Something that is mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    number: u64,
    place: PathBuf,
    is_read_only: bool,
    file_system: &'a [u8],
}

/// A place at which something is mounted that is not of files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OfTheKernel {
    pub(super) place: PathBuf,
    /// Nobody can write to it as it is.
    pub(super) is_read_only: bool,
    pub(super) file_system: String,
}

/// The places in the roots at which something is mounted that is not of files, as far as they can be reached.
///
/// # Errors
/// When nobody says what is mounted.
pub(super) fn of_the_kernel(roots: &BTreeSet<PathBuf>) -> io::Result<Vec<OfTheKernel>> {
    let mounted = std::fs::read("/proc/self/mountinfo")?;
    let mut found = Vec::new();
    for line in mounted.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let unclear = || io::Error::other("a line about a mount cannot be understood");
        let mount = read(line).ok_or_else(unclear)?;
        if mount.place.ancestors().any(|above| roots.contains(above)) {
            found.push(mount);
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let with_devices = std::fs::read("/proc/filesystems")?;
    found.retain(|mount| !holds_files(mount.file_system, &with_devices) && is_on_top(mount));
    let told = |mount: Mount<'_>| OfTheKernel {
        place: mount.place,
        is_read_only: mount.is_read_only,
        file_system: String::from_utf8_lossy(mount.file_system).into_owned(),
    };
    Ok(found.into_iter().map(told).collect())
}

/// Whether files are what a file system is for, by its name and the list of those that the kernel knows. Behind a dot
/// stands which one of a kind it is.
fn holds_files(name: &[u8], known: &[u8]) -> bool {
    let kind = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    let has_device =
        |line: &[u8]| line.strip_prefix(b"\t").is_some_and(|known| known == kind || known == name);
    OF_FILES.contains(&kind) || known.split(|byte| *byte == b'\n').any(has_device)
}

/// One line: numbers, the root, the place, how it is mounted, and behind a dash the kind. Names in it are any bytes.
fn read(line: &[u8]) -> Option<Mount<'_>> {
    let mut words = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let place = as_path(&unescaped(words.nth(3)?))?;
    let is_read_only = words.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
    words.find(|word| *word == b"-")?;
    Some(Mount { number, place, is_read_only, file_system: words.next()? })
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
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
        let line = b"185 43 0:13 / /srv/a\\040b\\134c\\012\xff rw,relatime shared:1 - fuse.sshfs me@there:/\xfe rw";
        let mount = read(line).unwrap();
        assert_eq!((mount.number, mount.file_system), (185, b"fuse.sshfs".as_slice()));
        assert_eq!(mount.place, as_path(b"/srv/a b\\c\n\xff").unwrap());
        assert!(!mount.is_read_only);
        assert!(read(b"1 2 0:1 / /sys ro,nosuid - sysfs sysfs rw").unwrap().is_read_only);
        assert_eq!(read(b"nothing of the kind"), None);
        assert_eq!(unescaped(br"\9\0401\04"), br"\9 1\04");
    }

    #[test]
    fn a_file_system_is_known_by_its_kind() {
        let known = b"nodev\tsysfs\n\text4\n\tfuseblk\nnodev\tfuse\n";
        for name in [&b"ext4"[..], b"fuseblk.ntfs", b"fuse.sshfs", b"fakeowner", b"tmpfs"] {
            assert!(holds_files(name, known), "{}", String::from_utf8_lossy(name));
        }
        for name in [&b"sysfs"[..], b"proc", b"newfs", b"", b"ext", b"cgroup2"] {
            assert!(!holds_files(name, known), "{}", String::from_utf8_lossy(name));
        }
    }

    /// What every machine has.
    #[test]
    fn the_kernels_own_are_told_from_those_of_files() {
        let of = |root: &str| -> Vec<PathBuf> {
            let found = of_the_kernel(&BTreeSet::from([PathBuf::from(root)])).unwrap();
            found.into_iter().map(|found| found.place).collect()
        };
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
        proptest::proptest!(|(line in proptest::collection::vec(proptest::num::u8::ANY, 0..80))| {
            let _ = read(&line);
            let _ = unescaped(&line);
        });
    }
}
