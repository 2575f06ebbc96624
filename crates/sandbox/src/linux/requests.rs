//! The requests (`ioctl`) that a confined command may not make, as tables.
//!
//! A request is a number that means something only to what it is made of, so that all of them are refused whatever the
//! descriptor is: none of these numbers means anything that honest work needs.

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

/// Requests that change something about a file or make one, through a descriptor that was opened for
/// reading. Landlock has no rule on them; in namespaces they end at read-only mounts.
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
    (0x4020_9702, "CEPH_IOC_SET_LAYOUT"),
    (0x4020_9705, "CEPH_IOC_SET_LAYOUT_POLICY"),
    (0x4004_7211, "FAT_IOCTL_SET_ATTRIBUTES"),
    (0x5000_9401, "BTRFS_IOC_SNAP_CREATE"),
    (0x5000_940e, "BTRFS_IOC_SUBVOL_CREATE"),
    (0x5000_940f, "BTRFS_IOC_SNAP_DESTROY"),
    (0x5000_9417, "BTRFS_IOC_SNAP_CREATE_V2"),
    (0x5000_9418, "BTRFS_IOC_SUBVOL_CREATE_V2"),
    (0x4008_941a, "BTRFS_IOC_SUBVOL_SETFLAGS"),
    (0x5000_943f, "BTRFS_IOC_SNAP_DESTROY_V2"),
    (0xc0c8_9425, "BTRFS_IOC_SET_RECEIVED_SUBVOL"),
    (0xc0c0_9425, "BTRFS_IOC_SET_RECEIVED_SUBVOL_32"),
    (0x5000_9402, "BTRFS_IOC_DEFRAG"),
    (0x4030_9410, "BTRFS_IOC_DEFRAG_RANGE"),
];

/// Has a signal say that a descriptor is ready. Of a terminal it goes to the group of processes in the foreground, whoever has
/// asked; and the signal can be any.
pub(super) const SIGNAL_REQUESTS: &[Request] = &[(0x5452, "FIOASYNC")];

/// What a request is called that is refused anywhere.
pub(super) fn name(number: u64) -> Option<&'static str> {
    let all = [TERMINAL_REQUESTS, KEY_REQUESTS, FILE_REQUESTS, SIGNAL_REQUESTS];
    all.into_iter().flatten().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
