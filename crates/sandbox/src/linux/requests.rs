//! The requests (`ioctl`) that a confined command may make, and those that it may not, as tables.
//!
//! What a request does is up to the file system or driver that it is made of, and some change what the caller could only
//! read, or something else than what its descriptor is: a subvolume by its number, whatever mount it is on. So one that is
//! in no table here is answered as by something that has no such request, and programs go on without. The tables of what
//! is refused are for what is worth telling. A number is judged by itself, whatever the descriptor is.

/// A request: its number, and the constant that names it.
pub(super) type Request = (u64, &'static str);

/// Pushes keystrokes into a terminal, where whoever uses it next runs them.
pub(super) const TIOCSTI: u64 = 0x5412;
pub(super) const TIOCLINUX: u64 = 0x541C;

/// What is refused of terminals: they are the person's, who uses them after the command.
pub(super) const TERMINAL_REQUESTS: &[Request] = &[
    (TIOCSTI, "TIOCSTI"),
    (TIOCLINUX, "TIOCLINUX"),
    // Nobody else can open it then.
    (0x540c, "TIOCEXCL"),
    // The terminal speaks another protocol then, and is dead for a person.
    (0x5423, "TIOCSETD"),
    (0x541d, "TIOCCONS"),
    (0x541f, "TIOCSSERIAL"),
    (0x5437, "TIOCVHANGUP"),
    // A line is broken, or spoken in another way, until somebody says otherwise.
    (0x5427, "TIOCSBRK"),
    (0x542f, "TIOCSRS485"),
    (0x5453, "TIOCSERCONFIG"),
    (0x5457, "TIOCSLCKTRMIOS"),
    // A console without a window around it shows nothing then, or hears no key, or is another one.
    (0x4b3a, "KDSETMODE"),
    (0x4b45, "KDSKBMODE"),
    (0x4b51, "KDSKBMUTE"),
    (0x4b47, "KDSKBENT"),
    (0x4b49, "KDSKBSENT"),
    (0x5602, "VT_SETMODE"),
    (0x5605, "VT_RELDISP"),
    (0x5606, "VT_ACTIVATE"),
    (0x560b, "VT_LOCKSWITCH"),
    (0x560f, "VT_SETACTIVATE"),
    // Its keys mean something else then, or come again too soon, and its lights say what is not so.
    (0x4b4b, "KDSKBDIACR"),
    (0x4bfb, "KDSKBDIACRUC"),
    (0x4b4d, "KDSETKEYCODE"),
    (0x4b63, "KDSKBMETA"),
    (0x4b52, "KDKBDREP"),
    (0x4b32, "KDSETLED"),
    (0x4b65, "KDSKBLED"),
    // It sounds, and goes on when the command has ended.
    (0x4b2f, "KIOCSOUND"),
    (0x4b30, "KDMKTONE"),
    // Its letters look like others then, or like nothing, and colours are gone.
    (0x4b61, "PIO_FONT"),
    (0x4b6c, "PIO_FONTX"),
    (0x4b6d, "PIO_FONTRESET"),
    (0x4b72, "KDFONTOP"),
    (0x4b71, "PIO_CMAP"),
    (0x4b41, "PIO_SCRNMAP"),
    (0x4b6a, "PIO_UNISCRNMAP"),
    (0x4b67, "PIO_UNIMAP"),
    (0x4b68, "PIO_UNIMAPCLR"),
    // It has other lines and columns then, and what stood on others is lost.
    (0x5609, "VT_RESIZE"),
    (0x560a, "VT_RESIZEX"),
    (0x5608, "VT_DISALLOCATE"),
    // They reach the screen's hardware past the kernel.
    (0x4b34, "KDADDIO"),
    (0x4b35, "KDDELIO"),
    (0x4b36, "KDENABIO"),
    (0x4b37, "KDDISABIO"),
    (0x4b3c, "KDMAPDISP"),
    (0x4b3d, "KDUNMAPDISP"),
];

/// Requests that change what a whole file system knows, through a descriptor of anything on it that was
/// opened for reading. They ask for no mount that can be written to: who takes a key away closes the
/// person's encrypted files.
pub(super) const KEY_REQUESTS: &[Request] = &[
    (0xc050_6617, "FS_IOC_ADD_ENCRYPTION_KEY"),
    (0xc040_6618, "FS_IOC_REMOVE_ENCRYPTION_KEY"),
    (0xc040_6619, "FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS"),
];

/// Requests that change something else than what the descriptor is, or a file that is open for reading only, on a mount that is
/// read-only too. A subvolume is removed by its name or number: only the mount of the descriptor is looked at, which can be
/// a writable one.
pub(super) const STRAY_REQUESTS: &[Request] = &[
    (0x5000_940f, "BTRFS_IOC_SNAP_DESTROY"),
    (0x5000_943f, "BTRFS_IOC_SNAP_DESTROY_V2"),
    (0x4020_bc11, "BCH_IOCTL_SUBVOLUME_DESTROY"),
    (0x4030_bc1e, "BCH_IOCTL_SUBVOLUME_DESTROY_v2"),
    (0x4004_f51b, "F2FS_IOC_IO_PRIO"),
];

/// Requests that change something about a file or make one, through a descriptor that was opened for reading. Landlock has
/// no rule on them; in namespaces they end at read-only mounts, and are allowed.
pub(super) const FILE_REQUESTS: &[Request] = &[
    (0x4008_6602, "FS_IOC_SETFLAGS"),
    (0x401c_5820, "FS_IOC_FSSETXATTR"),
    (0x4008_6604, "EXT4_IOC_SETVERSION"),
    (0x4008_7602, "FS_IOC_SETVERSION"),
    (0x800c_6613, "FS_IOC_SET_ENCRYPTION_POLICY"),
    (0x4080_6685, "FS_IOC_ENABLE_VERITY"),
    (0x6609, "EXT4_IOC_MIGRATE"),
    (0x660c, "EXT4_IOC_ALLOC_DA_BLKS"),
    (0x6611, "EXT4_IOC_SWAP_BOOT"),
    (0xc028_660f, "EXT4_IOC_MOVE_EXT"),
    (0x6628, "EXT4_IOC_CLEAR_ES_CACHE"),
    (0x4004_f50d, "F2FS_IOC_SET_PIN_FILE"),
    (0x4018_6f04, "OCFS2_IOC_REFLINK"),
    (0xcf04, "CIFS_IOC_SET_INTEGRITY"),
    (0x4028_9702, "CEPH_IOC_SET_LAYOUT"),
    (0x4028_9705, "CEPH_IOC_SET_LAYOUT_POLICY"),
    (0x4004_7211, "FAT_IOCTL_SET_ATTRIBUTES"),
    (0x5000_9401, "BTRFS_IOC_SNAP_CREATE"),
    (0x5000_940e, "BTRFS_IOC_SUBVOL_CREATE"),
    (0x5000_9417, "BTRFS_IOC_SNAP_CREATE_V2"),
    (0x5000_9418, "BTRFS_IOC_SUBVOL_CREATE_V2"),
    (0x4008_941a, "BTRFS_IOC_SUBVOL_SETFLAGS"),
    (0xc0c8_9425, "BTRFS_IOC_SET_RECEIVED_SUBVOL"),
    (0xc0c0_9425, "BTRFS_IOC_SET_RECEIVED_SUBVOL_32"),
    (0x5000_9402, "BTRFS_IOC_DEFRAG"),
    (0x4030_9410, "BTRFS_IOC_DEFRAG_RANGE"),
    (0x4020_bc10, "BCH_IOCTL_SUBVOLUME_CREATE"),
    (0x4030_bc1d, "BCH_IOCTL_SUBVOLUME_CREATE_v2"),
    (0x8008_bc40, "BCHFS_IOC_REINHERIT_ATTRS"),
];

/// Has a signal say that a descriptor is ready. Of a terminal it goes to the group of processes in the foreground, whoever has
/// asked; and the signal can be any.
pub(super) const SIGNAL_REQUESTS: &[Request] = &[(0x5452, "FIOASYNC")];

/// The bits of a number that say what the request is made of.
pub(super) const KIND: u32 = 0xff00;

/// Kinds of requests of which all are allowed that are not refused: none of them is made of a file system.
pub(super) const ALLOWED_KINDS: &[u32] = &[
    // Terminals and text consoles, and what every descriptor has (`FIONREAD`, `FIOCLEX`).
    0x5400, 0x4b00, 0x5600, // Sockets, those of a wireless network too.
    0x8900,
    0x8b00, // The notifications of a command's own filter, of its own epoll and of processes.
    0x2100, 0x8a00, 0xff00, // What a namespace is.
    0xb700, // How much is known to be random.
    0x5200,
];

/// Requests that only read, or write to a descriptor that must be open for that. All that programs make of files where
/// everything is allowed, but for what tools of a single file system do.
pub(super) const HARMLESS_REQUESTS: &[Request] = &[
    (0x2, "FIGETBSZ"),
    (0x4004_9409, "FICLONE"),
    (0x4020_940d, "FICLONERANGE"),
    (0xc018_9436, "FIDEDUPERANGE"),
    (0xc020_660b, "FS_IOC_FIEMAP"),
    (0x8008_6601, "FS_IOC_GETFLAGS"),
    (0x801c_581f, "FS_IOC_FSGETXATTR"),
    (0x8008_7601, "FS_IOC_GETVERSION"),
    (0x8008_6603, "EXT4_IOC_GETVERSION"),
    (0x8100_9431, "FS_IOC_GETFSLABEL"),
    (0x8011_1500, "FS_IOC_GETFSUUID"),
    (0x8081_1501, "FS_IOC_GETFSSYSFSPATH"),
    (0x400c_6615, "FS_IOC_GET_ENCRYPTION_POLICY"),
    (0xc009_6616, "FS_IOC_GET_ENCRYPTION_POLICY_EX"),
    (0xc080_661a, "FS_IOC_GET_ENCRYPTION_KEY_STATUS"),
    (0x8010_661b, "FS_IOC_GET_ENCRYPTION_NONCE"),
    (0xc004_6686, "FS_IOC_MEASURE_VERITY"),
    (0xc028_6687, "FS_IOC_READ_VERITY_METADATA"),
    // Of /proc/PID/maps and /proc/PID/pagemap.
    (0xc068_6611, "PROCMAP_QUERY"),
    (0xc060_6610, "PAGEMAP_SCAN"),
    (0xd000_9412, "BTRFS_IOC_INO_LOOKUP"),
    (0xd000_943e, "BTRFS_IOC_INO_LOOKUP_USER"),
    (0x8400_941f, "BTRFS_IOC_FS_INFO"),
    (0xc010_9414, "BTRFS_IOC_SPACE_INFO"),
    (0x8008_9419, "BTRFS_IOC_SUBVOL_GETFLAGS"),
    (0x81f8_943c, "BTRFS_IOC_GET_SUBVOL_INFO"),
    (0xd000_943d, "BTRFS_IOC_GET_SUBVOL_ROOTREF"),
    (0x800c_581e, "XFS_IOC_DIOINFO"),
    (0x8100_587e, "XFS_IOC_FSGEOMETRY"),
    (0x8004_7210, "FAT_IOCTL_GET_ATTRIBUTES"),
];

/// What a request is called that is refused anywhere.
pub(super) fn name(number: u64) -> Option<&'static str> {
    let all = [TERMINAL_REQUESTS, KEY_REQUESTS, STRAY_REQUESTS, FILE_REQUESTS, SIGNAL_REQUESTS];
    all.into_iter().flatten().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_raw_sys::ioctl;

    /// Numbers of the kernel's own headers, by their names.
    macro_rules! of_the_kernel {
        ($($name:ident)*) => { &[$((ioctl::$name, stringify!($name))),*] };
    }

    /// All in the tables that the headers for programs have. What only the source of a file system has was read there.
    const KNOWN: &[(u32, &str)] = of_the_kernel![
        TIOCEXCL TIOCSETD TIOCCONS TIOCSSERIAL TIOCVHANGUP TIOCSBRK TIOCSRS485 TIOCSERCONFIG
        TIOCSLCKTRMIOS KDSETMODE KDSKBMODE KDSKBENT KDSKBSENT VT_SETMODE VT_RELDISP VT_ACTIVATE
        KDSETKEYCODE KDSKBMETA KDSETLED KDSKBLED KIOCSOUND KDMKTONE PIO_FONT PIO_FONTX
        PIO_FONTRESET PIO_CMAP PIO_SCRNMAP PIO_UNISCRNMAP PIO_UNIMAP PIO_UNIMAPCLR VT_RESIZE
        VT_RESIZEX VT_DISALLOCATE KDADDIO KDDELIO KDENABIO KDDISABIO FS_IOC_ADD_ENCRYPTION_KEY
        FS_IOC_REMOVE_ENCRYPTION_KEY FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS BTRFS_IOC_SNAP_DESTROY
        BTRFS_IOC_SNAP_DESTROY_V2 FS_IOC_SETFLAGS FS_IOC_FSSETXATTR EXT4_IOC_SETVERSION
        FS_IOC_SETVERSION FS_IOC_SET_ENCRYPTION_POLICY FS_IOC_ENABLE_VERITY EXT4_IOC_MIGRATE
        EXT4_IOC_ALLOC_DA_BLKS EXT4_IOC_SWAP_BOOT EXT4_IOC_CLEAR_ES_CACHE F2FS_IOC_SET_PIN_FILE
        FAT_IOCTL_SET_ATTRIBUTES BTRFS_IOC_SNAP_CREATE BTRFS_IOC_SUBVOL_CREATE
        BTRFS_IOC_SNAP_CREATE_V2 BTRFS_IOC_SUBVOL_CREATE_V2 BTRFS_IOC_SUBVOL_SETFLAGS
        BTRFS_IOC_SET_RECEIVED_SUBVOL BTRFS_IOC_DEFRAG BTRFS_IOC_DEFRAG_RANGE FIOASYNC FIGETBSZ
        FICLONE FICLONERANGE FIDEDUPERANGE FS_IOC_FIEMAP FS_IOC_GETFLAGS FS_IOC_FSGETXATTR
        FS_IOC_GETVERSION EXT4_IOC_GETVERSION FS_IOC_GETFSLABEL FS_IOC_GET_ENCRYPTION_POLICY
        FS_IOC_GET_ENCRYPTION_POLICY_EX FS_IOC_GET_ENCRYPTION_KEY_STATUS
        FS_IOC_GET_ENCRYPTION_NONCE FS_IOC_MEASURE_VERITY FS_IOC_READ_VERITY_METADATA
        BTRFS_IOC_INO_LOOKUP BTRFS_IOC_INO_LOOKUP_USER BTRFS_IOC_FS_INFO BTRFS_IOC_SPACE_INFO
        BTRFS_IOC_SUBVOL_GETFLAGS BTRFS_IOC_GET_SUBVOL_INFO BTRFS_IOC_GET_SUBVOL_ROOTREF
        FAT_IOCTL_GET_ATTRIBUTES
    ];

    #[test]
    fn every_number_is_the_kernels() {
        let tables = [
            TERMINAL_REQUESTS,
            KEY_REQUESTS,
            STRAY_REQUESTS,
            FILE_REQUESTS,
            SIGNAL_REQUESTS,
            HARMLESS_REQUESTS,
        ];
        let mut compared = 0;
        for (number, name) in tables.into_iter().flatten() {
            if let Some((known, _)) = KNOWN.iter().find(|(_, known)| known == name) {
                assert_eq!(*number, u64::from(*known), "{name}");
                compared += 1;
            }
        }
        assert_eq!(compared, KNOWN.len(), "a name that is in no table");
    }
}
