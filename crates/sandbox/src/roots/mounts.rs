//! What is mounted beneath the roots and must not be written to.
//!
//! A root is opened with everything that is mounted in it. What holds files is the person's own. A file system of the
//! kernel's, as a tree that is to become a container has them, is the machine itself: who writes to `/proc` there
//! sets what the kernel runs as root.

use super::find::as_path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const TABLE: &str = "/proc/self/mountinfo";

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
    b"overlay",
    b"prl_fs",
    b"pvfs2",
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

/// Those that are known to be the kernel's, wherever somebody has mounted them.
const OF_THE_KERNEL: &[&[u8]] = &[
    b"anon_inodefs",
    b"bdev",
    b"binder",
    b"binfmt_misc",
    b"bpf",
    b"cgroup",
    b"cgroup2",
    b"configfs",
    b"cpuset",
    b"debugfs",
    b"devpts",
    b"devtmpfs",
    b"efivarfs",
    b"functionfs",
    b"fusectl",
    b"hugetlbfs",
    b"ipathfs",
    b"mqueue",
    b"nfsd",
    b"nsfs",
    b"pipefs",
    b"proc",
    b"pstore",
    b"resctrl",
    b"rpc_pipefs",
    b"securityfs",
    b"selinuxfs",
    b"smackfs",
    b"sockfs",
    b"sysfs",
    b"tracefs",
    b"usbfs",
    b"xenfs",
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfTheKernel {
    pub(super) place: PathBuf,
    /// Nobody can write to it as it is.
    pub(super) is_read_only: bool,
    pub(super) file_system: String,
    /// Nobody has said so; it is only not known to hold files.
    pub(super) is_unknown: bool,
}

/// What is mounted in roots and holds no files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) inside: Vec<OfTheKernel>,
    /// Roots that lie on such a mount themselves, and its file system.
    pub(super) roots: Vec<(PathBuf, String)>,
}

/// What was mounted in roots, and whether it still is.
#[derive(Debug, Clone)]
pub(super) struct Watch(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    /// The kernel says of an open table whether it has changed.
    table: File,
    roots: BTreeSet<PathBuf>,
    found: Mounted,
    is_past: AtomicBool,
}

/// Two that were made at different times may have found the same.
impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        self.0.found == other.0.found
    }
}

impl Eq for Watch {}

impl Watch {
    /// Looks at what is mounted.
    ///
    /// # Errors
    /// When nobody says what is.
    pub(super) fn begin(roots: &BTreeSet<PathBuf>) -> io::Result<Self> {
        let mut table = File::open(TABLE)?;
        let found = look(&mut table, roots)?;
        let is_past = AtomicBool::new(false);
        Ok(Self(Arc::new(Watched { table, roots: roots.clone(), found, is_past })))
    }

    pub(super) fn found(&self) -> &Mounted {
        &self.0.found
    }

    /// Whether the same is mounted. Costs one call, unless somebody has mounted something somewhere.
    pub(super) fn is_current(&self) -> bool {
        let Watched { table, roots, found, is_past } = &*self.0;
        let mut asked = [PollFd::new(table, PollFlags::PRI)];
        // The kernel says so once; whoever heard it must not be the only one who knows.
        let stayed = matches!(poll(&mut asked, Some(&Timespec::default())), Ok(0));
        if !stayed && !of_the_kernel(roots).is_ok_and(|now| now == *found) {
            is_past.store(true, Ordering::Release);
        }
        !is_past.load(Ordering::Acquire)
    }
}

/// The places in the roots at which something is mounted that is not of files, as far as they can be reached.
///
/// # Errors
/// When nobody says what is mounted.
pub(super) fn of_the_kernel(roots: &BTreeSet<PathBuf>) -> io::Result<Mounted> {
    look(&mut File::open(TABLE)?, roots)
}

fn look(table: &mut File, roots: &BTreeSet<PathBuf>) -> io::Result<Mounted> {
    let mut lines = Vec::new();
    table.read_to_end(&mut lines)?;
    let (mut found, mut mounts) = (Vec::new(), Vec::new());
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let unclear = || io::Error::other("a line about a mount cannot be understood");
        let mount = read(line).ok_or_else(unclear)?;
        match mount.place.ancestors().any(|above| roots.contains(above)) {
            true => found.push(mount),
            false => mounts.push(mount),
        }
    }
    let mut on = Vec::new();
    for root in roots {
        let mount = mount_of(root, found.iter().chain(&mounts));
        if let Some(kernel) = mount.filter(|mount| is_the_kernels(mount.file_system)) {
            on.push((root.clone(), named(kernel.file_system)));
        }
    }
    if found.is_empty() {
        return Ok(Mounted { inside: Vec::new(), roots: on });
    }
    let with_devices = std::fs::read("/proc/filesystems")?;
    found.retain(|mount| !holds_files(mount.file_system, &with_devices) && is_on_top(mount));
    let told = |mount: Mount<'_>| OfTheKernel {
        is_read_only: mount.is_read_only,
        file_system: named(mount.file_system),
        is_unknown: !is_the_kernels(mount.file_system),
        place: mount.place,
    };
    Ok(Mounted { inside: found.into_iter().map(told).collect(), roots: on })
}

fn is_the_kernels(file_system: &[u8]) -> bool {
    OF_THE_KERNEL.contains(&file_system)
}

fn named(file_system: &[u8]) -> String {
    String::from_utf8_lossy(file_system).into_owned()
}

/// The mount that a path lies on: by its number, or where the kernel does not tell that the last one of those nearest
/// above it.
fn mount_of<'a, 'b: 'a>(
    path: &Path,
    mounts: impl Iterator<Item = &'a Mount<'b>> + Clone,
) -> Option<&'a Mount<'b>> {
    let number = number_of_mount(path).ok().flatten();
    let by_number = mounts.clone().find(|mount| Some(mount.number) == number);
    let above = || mounts.filter(|mount| path.starts_with(&mount.place));
    by_number.or_else(|| above().max_by_key(|mount| mount.place.components().count()))
}

/// The number of the mount that a path leads to, if the kernel tells.
fn number_of_mount(path: &Path) -> rustix::io::Result<Option<u64>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(CWD, path, flags, StatxFlags::MNT_ID)?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    Ok(is_told.then_some(found.stx_mnt_id))
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
    match number_of_mount(&mount.place) {
        Ok(number) => number.is_none_or(|number| number == mount.number),
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
        for name in [&b"ext4"[..], b"fuseblk.ntfs", b"fuse.sshfs", b"fakeowner", b"tmpfs", b"pvfs2"]
        {
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
            found.inside.into_iter().map(|found| found.place).collect()
        };
        assert!(of("/proc").contains(&"/proc".into()));
        assert!(of("/sys").contains(&"/sys".into()));
        assert!(!of("/").contains(&"/".into()));
        assert!(!of("/dev").contains(&"/dev/shm".into()));
        let directory = tempfile::tempdir().unwrap();
        assert!(of(directory.path().to_str().unwrap()).is_empty());
    }

    /// spec SANDBOX.192: A root that lies anywhere on a mount of the kernel's own, as a `/dev` for a container, is refused by
    /// the name of its file system.
    #[test]
    fn a_root_is_on_the_mount_that_is_nearest_above_it() {
        let on = |root: &str| of_the_kernel(&BTreeSet::from([PathBuf::from(root)])).unwrap().roots;
        assert_eq!(on("/proc/sys"), [("/proc/sys".into(), "proc".to_owned())]);
        assert_eq!(on("/sys/kernel"), [("/sys/kernel".into(), "sysfs".to_owned())]);
        assert!(on(tempfile::tempdir().unwrap().path().to_str().unwrap()).is_empty());
        let lines = [&b"1 0 0:1 / / rw - ext4 d rw"[..], b"2 1 0:2 / /gone/dev rw - devtmpfs d rw"];
        let mounts = lines.map(|line| read(line).unwrap());
        let of = |path| mount_of(Path::new(path), mounts.iter()).unwrap().file_system;
        assert_eq!(of("/gone/dev/disk/by-id"), b"devtmpfs");
        assert_eq!(of("/gone/devices"), b"ext4");
        assert!(is_the_kernels(b"devtmpfs") && !is_the_kernels(b"tmpfs"));
    }

    #[test]
    fn a_watch_lasts_while_the_same_is_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let roots = BTreeSet::from([directory.path().canonicalize().unwrap()]);
        let watch = Watch::begin(&roots).unwrap();
        assert!(watch.is_current() && watch.is_current());
        let Watched { table, roots, .. } = Arc::into_inner(watch.0).unwrap();
        let found = Mounted { inside: Vec::new(), roots: vec![("/".into(), "proc".to_owned())] };
        let is_past = AtomicBool::new(true);
        assert!(!Watch(Arc::new(Watched { table, roots, found, is_past })).is_current());
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
