//! Other programs that confine a command, to be measured beside ours where they are installed.

/// A program that confines the command that follows its arguments.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) args: &'static [&'static str],
}

impl Peer {
    /// Stands among the arguments for the directory that is to be writable.
    pub(super) const WORKSPACE: &'static str = "WORKSPACE";
}

/// Everything apart, the file system read-only but for the workspace and /tmp: what ours does by its
/// namespaces.
pub(super) const BUBBLEWRAP: Peer = Peer {
    name: "bubblewrap, all namespaces",
    program: "bwrap",
    args: &[
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--bind",
        "/tmp",
        "/tmp",
        "--bind",
        Peer::WORKSPACE,
        Peer::WORKSPACE,
        "--",
    ],
};

/// In the order of the table. Each does by its usual means what ours does, as far as it can.
pub(super) const PEERS: &[Peer] = &[
    BUBBLEWRAP,
    Peer {
        name: "firejail",
        program: "firejail",
        args: &["--quiet", "--noprofile", "--net=none", "--read-only=/usr", "--"],
    },
    Peer {
        name: "codex sandbox",
        program: "codex",
        args: &["sandbox", "linux", "--full-auto", "--"],
    },
    Peer { name: "srt", program: "srt", args: &["--"] },
];
