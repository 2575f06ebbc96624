//! Disks, and who may do what to files: formatting, raw writes, modes and owners of what is not the
//! workspace's.

use super::forms::{Row, row};
use super::place::{Base, Place, is_any};
use super::scene::{Scene, shown};
use crate::command::Word;

#[rustfmt::skip]
pub(super) const FORMS: &[Row] = &[
    row("badblocks", &["-w"], "overwrites a disk"),
    row("blkdiscard", &[], "erases a disk"),
    row("btrfs", &["^subvolume|sub", "delete"], "deletes a file system"),
    row("cfdisk", &[], "changes the partitions of a disk"),
    row("cryptsetup", &["^luksFormat|luksErase|erase|reencrypt|luksKillSlot|luksRemoveKey"], "makes an encrypted disk unreadable"),
    row("debugfs", &["-w"], "writes to a file system behind its back"),
    row("diskutil", &["^eraseDisk|eraseVolume|partitionDisk|apfs|zeroDisk|secureErase|randomDisk"], "erases a disk"),
    row("efibootmgr", &["-B|-b|-c|-o|-O"], "changes how the machine starts"),
    row("fdisk", &["/dev/*"], "changes the partitions of a disk"),
    row("gdisk", &[], "changes the partitions of a disk"),
    row("growpart", &[], "changes the partitions of a disk"),
    row("hdparm", &["--security-erase|--security-erase-enhanced|--trim-sector-ranges|--write-sector|--repair-sector|--make-bad-sector|--security-set-pass"], "erases a disk"),
    row("losetup", &["/dev/*"], "changes the system's disks"),
    row("lvremove", &[], "deletes a volume"),
    row("mdadm", &["--create|--zero-superblock|--stop"], "changes a disk array"),
    row("mke2fs", &[], "formats a disk"),
    row("mkfs", &[], "formats a disk"),
    row("mkntfs", &[], "formats a disk"),
    row("mkswap", &[], "formats a disk"),
    row("mount", &["/|-o|--bind|--move|-t|/dev/*"], "mounts over the file system"),
    row("newfs", &[], "formats a disk"),
    row("nvme", &["^format|sanitize|delete-ns"], "erases a disk"),
    row("parted", &[], "changes the partitions of a disk"),
    row("partprobe", &[], "changes the partitions of a disk"),
    row("pvremove", &[], "deletes a volume"),
    row("sfdisk", &[], "changes the partitions of a disk"),
    row("sgdisk", &[], "changes the partitions of a disk"),
    row("swapoff", &[], "turns swap off"),
    row("tune2fs", &[], "changes a file system's settings"),
    row("umount", &[], "takes a file system away"),
    row("vgremove", &[], "deletes a volume"),
    row("wipefs", &["-a|--all|-o|--offset|/dev/*"], "erases a disk's file systems"),
    row("xfs_repair", &["-L"], "throws away a file system's journal"),
    row("zfs", &["^destroy|rollback"], "deletes a file system"),
    row("zpool", &["^destroy|labelclear|create"], "deletes a pool of disks"),
];

/// Devices that lead to no disk.
const HARMLESS_DEVICES: &[&str] = &[
    "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "fd", "shm",
    "pts", "ptmx", "console", "tcp", "udp",
];

/// The disk or other device that a place is, which nothing should write to.
pub(super) fn is_device(place: &Place) -> bool {
    place.base == Base::Root
        && matches!(place.names().as_slice(), ["dev", first, ..] if !is_any(first, HARMLESS_DEVICES))
}

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    match scene.name {
        "dd" => copied(scene),
        "tar" | "bsdtar" | "unzip" => unpacked(scene),
        "chmod" => mode(scene).or_else(|| widely(scene, "changes the mode of")),
        "chown" | "chgrp" => widely(scene, "changes the owner of"),
        "chattr" => widely(scene, "changes the attributes of"),
        "setfacl" => widely(scene, "changes who may use"),
        "setcap" => Some(format!("gives a program rights of the system: {}", scene.line())),
        _ => None,
    }
}

fn copied(scene: &Scene<'_>) -> Option<String> {
    for word in scene.rest() {
        let Some(target) = word.text.strip_prefix("of=") else { continue };
        let word = Word { text: target.to_owned(), shape: word.shape };
        let place = scene.place(&word);
        if is_device(&place) {
            return Some(format!("overwrites {}, and all that is on it", shown(&word, &place)));
        }
        if place.base == Base::Unknown {
            return Some(format!("overwrites {}, which shows only when it runs", word.text));
        }
    }
    None
}

/// Unpacking over the system or a home.
fn unpacked(scene: &Scene<'_>) -> Option<String> {
    let first = scene.rest().first()?.text.trim_start_matches('-');
    let extracts = scene.name == "unzip"
        || first.contains('x') && !first.starts_with("ex")
        || scene.has_word("--extract");
    if !extracts {
        return None;
    }
    let mut words = scene.rest().iter();
    while let Some(word) = words.next() {
        let directory = match word.text.as_str() {
            "-C" | "--directory" => words.next().cloned(),
            "-d" if scene.name == "unzip" => words.next().cloned(),
            text => text
                .strip_prefix("--directory=")
                .or_else(|| text.strip_prefix("-C"))
                .map(|text| Word { text: text.to_owned(), shape: word.shape }),
        };
        let Some(directory) = directory else { continue };
        let place = scene.place(&directory);
        let home = place.in_home(scene.around).is_some_and(<[String]>::is_empty);
        if place.is_root_directory() || home || place.in_system(scene.around) {
            return Some(format!("unpacks over {}", shown(&directory, &place)));
        }
    }
    scene.has_word("-P").then(|| format!("unpacks to wherever the archive says: {}", scene.line()))
}

/// A mode that lets anybody in, or that lends a program its owner's rights.
fn mode(scene: &Scene<'_>) -> Option<String> {
    let lends = |text: &str| {
        let symbolic =
            text.contains(['+', '=']) && text.bytes().all(|b| b"ugoa+=,-rwxstX".contains(&b));
        let octal = text.len() >= 4 && text.bytes().all(|b| b.is_ascii_digit());
        let digits = text.trim_start_matches('0');
        let high = digits.len() == 4 && matches!(digits.as_bytes()[0], b'2' | b'4'..=b'7');
        let after = text.split(['+', '=']).nth(1).unwrap_or_default();
        (octal && high) || (symbolic && after.contains('s'))
    };
    let operands = scene.operands();
    // `-w` and `-x` before the files are modes, which look like options.
    let given = operands.first()?;
    if lends(&given.text) {
        let file = operands.get(1).map_or("it", |word| word.text.as_str());
        return Some(format!("lets whoever runs {file} act as its owner"));
    }
    let open = matches!(
        given.text.as_str(),
        "777" | "0777" | "666" | "a+rwx" | "ugo+rwx" | "a+w" | "o+w" | "a=rwx"
    );
    if !open {
        return None;
    }
    let recursive = scene.has('R', "recursive");
    operands.iter().skip(1).find_map(|word| {
        let place = scene.place(word);
        let outside = !place.in_roots(scene.around);
        (recursive || outside).then(|| format!("lets everybody change {}", shown(word, &place)))
    })
}

/// Modes and owners outside the workspace: of whole trees, or of the system's own files.
fn widely(scene: &Scene<'_>, does: &str) -> Option<String> {
    let recursive = scene.has('R', "recursive");
    scene.operands().into_iter().skip(usize::from(scene.name != "setfacl")).find_map(|word| {
        let place = scene.place(word).without_everything();
        let outside = !place.in_roots(scene.around);
        let tree = recursive && outside && place.base != Base::Unknown;
        let all = recursive && place.base == Base::Unknown;
        let system = place.is_root_directory() || place.in_system(scene.around);
        let all_in_it = if recursive { " and everything in it" } else { "" };
        (tree || all || system)
            .then(|| format!("{does} {}{all_in_it}, outside the workspace", shown(word, &place)))
    })
}
