//! Ways to change what tells other programs what to run.

use super::{Case, NAMES, NEVER, PROTECTED};

pub(super) const REPOSITORY: &[Case] = &[
    Case::new("git-config", "t(lambda: w('.git/config'))", "EROFS")
        .seen(&[("write", "{ws}/.git/config", PROTECTED)])
        .alone(NAMES),
    Case::new("git-config-by-nested-path", "t(lambda: w('deep/../.git/./config'))", "EROFS")
        .seen(&[("write", "{ws}/.git/config", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "git-config-by-own-link",
        "os.symlink('.git', 'soft')\nt(lambda: w('soft/config'))",
        "EROFS",
    )
    .seen(&[("write", "{ws}/.git/config", PROTECTED)])
    .alone(NAMES),
    Case::new("git-truncate", "t(lambda: os.truncate('.git/HEAD', 0))", "EROFS")
        .seen(&[("write", "{ws}/.git/HEAD", PROTECTED)])
        .alone(NAMES),
    Case::new("git-hook", "t(lambda: w('.git/hooks/new', os.O_WRONLY | os.O_CREAT))", "EROFS")
        .seen(&[("create", "{ws}/.git/hooks/new", PROTECTED)])
        .alone(NAMES),
    Case::new("git-hook-linked-in", "t(lambda: os.link('file', '.git/hooks/new'))", "EROFS")
        .seen(&[("create", "{ws}/.git/hooks/new", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "git-hook-made-executable",
        "t(lambda: os.chmod('.git/hooks/sample', 0o755))",
        "EROFS",
    )
    .seen(&[("change", "{ws}/.git/hooks/sample", PROTECTED)])
    .alone(NAMES),
    Case::new("git-hook-moved-in", "t(lambda: os.rename('file', '.git/hooks/new'))", "EXDEV")
        .seen(&[("rename", "{ws}/.git/hooks/new", PROTECTED)])
        .alone(NAMES),
    Case::new("git-config-linked-out", "t(lambda: os.link('.git/config', 'hard'))", "EXDEV")
        .alone(NAMES),
    Case::new("git-config-removed", "t(lambda: os.unlink('.git/config'))", "EROFS")
        .seen(&[("remove", "{ws}/.git/config", PROTECTED)])
        .alone(NAMES),
    Case::new("git-unnamed-file", "t(lambda: os.open('.git', os.O_TMPFILE | os.O_RDWR))", "EROFS")
        .seen(&[("create", "{ws}/.git", PROTECTED)]),
    Case::new("git-moved-away", "t(lambda: os.rename('.git', 'away'))", "EBUSY")
        .seen(&[("rename", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "git-replaced",
        "os.mkdir('evil')\nt(lambda: os.rename('evil', '.git'))",
        "EBUSY|ENOTEMPTY",
    )
    .seen(&[("rename", "{ws}/.git", PROTECTED)]),
    Case::new(
        "git-exchanged",
        "os.mkdir('evil')\nt(lambda: sc('renameat2', CWD, 'evil', CWD, '.git', 2))",
        "EBUSY",
    )
    .seen(&[("rename", "{ws}/.git", PROTECTED)])
    .alone(NAMES),
    Case::new("git-removed", "t(lambda: os.rmdir('.git'))", "EBUSY|ENOTEMPTY").seen(&[(
        "remove",
        "{ws}/.git",
        PROTECTED,
    )]),
    Case::new(
        "git-mounted-over",
        "os.mkdir('evil')\nt(lambda: sc('mount', 'evil', '.git', None, 4096, None))",
        "EPERM",
    )
    .seen(&[("use", "mount", NEVER)]),
    Case::new("git-unmounted", "t(lambda: sc('umount2', WS + '/.git', 2))", "EPERM")
        .seen(&[("use", "umount2", NEVER)]),
    Case::new(
        "codex-config",
        "t(lambda: w('.codex/config.toml', os.O_APPEND | os.O_WRONLY))",
        "EROFS",
    )
    .seen(&[("write", "{ws}/.codex/config.toml", PROTECTED)])
    .alone(NAMES),
    Case::new("codex-moved-away", "t(lambda: os.rename('.codex', 'away'))", "EBUSY")
        .seen(&[("rename", "{ws}/.codex", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "codex-config-replaced",
        "t(lambda: os.rename('file', '.codex/config.toml'))",
        "EXDEV",
    )
    .seen(&[("rename", "{ws}/.codex/config.toml", PROTECTED)])
    .alone(NAMES),
    Case::new("agents-new", "t(lambda: os.mkdir('.agents/new'))", "EROFS")
        .seen(&[("create", "{ws}/.agents/new", PROTECTED)])
        .alone(NAMES),
    Case::new("agents-link", "t(lambda: os.symlink('x', '.agents/new'))", "EROFS")
        .seen(&[("create", "{ws}/.agents/new", PROTECTED)])
        .alone(NAMES),
    Case::new("nested-config", "t(lambda: w('deep/repo/.git/config'))", "EROFS")
        .seen(&[("write", "{ws}/deep/repo/.git/config", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "nested-moved-away",
        "t(lambda: os.rename('deep/repo/.git', 'deep/repo/x'))",
        "EBUSY",
    )
    .seen(&[("rename", "{ws}/deep/repo/.git", PROTECTED)])
    .alone(NAMES),
    Case::new(
        "nested-parent-moved-away",
        "t(lambda: os.rename('deep/repo', 'deep/away'))",
        "EBUSY",
    )
    .seen(&[("rename", "{ws}/deep/repo", PROTECTED)])
    .alone(NAMES),
    // Another name, where case matters; whoever reads `.git` does not see it.
    Case::new(
        "other-case",
        "t(lambda: os.mkdir('.GIT'))\nt(lambda: os.rmdir('.GIT'))",
        "done done",
    ),
    Case::new(
        "name-that-is-swapped",
        "os.mkdir('d'); open('d/config', 'w').close(); os.symlink('.git', 'l')\n\
         race(lambda: sc('renameat2', CWD, 'd', CWD, 'l', 2), lambda: w('d/config'), 500)",
        "",
    )
    .seen(&[("write", "{ws}/.git/config", PROTECTED)])
    .alone(NAMES),
];

/// Something stands where the name would be, so the kernel's answer to some of these is that it is
/// there already; then nothing was refused.
pub(super) const ABSENT: &[Case] = &[
    Case::new("absent-directory", "t(lambda: os.mkdir('.git'))", "EEXIST").alone(NAMES),
    Case::new("absent-inside", "t(lambda: os.mkdir('.git/hooks'))", "EROFS").seen(&[(
        "create",
        "{ws}/.git/hooks",
        PROTECTED,
    )]),
    Case::new("absent-file", "t(lambda: w('.git', os.O_WRONLY | os.O_CREAT))", "EISDIR")
        .alone(NAMES),
    Case::new(
        "absent-config",
        "t(lambda: w('.codex/config.toml', os.O_WRONLY | os.O_CREAT))",
        "EROFS",
    )
    .seen(&[("create", "{ws}/.codex/config.toml", PROTECTED)]),
    Case::new("absent-link", "t(lambda: os.symlink('other', '.agents'))", "EEXIST").alone(NAMES),
    Case::new("absent-by-renaming", "t(lambda: os.rename('other', '.git'))", "EBUSY")
        .seen(&[("rename", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new("absent-file-by-renaming", "t(lambda: os.rename('file', '.git'))", "EISDIR|EBUSY")
        .alone(NAMES),
    Case::new(
        "absent-by-exchanging",
        "t(lambda: sc('renameat2', CWD, 'other', CWD, '.codex', 2))",
        "EBUSY",
    )
    .seen(&[("rename", "{ws}/.codex", PROTECTED)]),
    Case::new(
        "absent-removed",
        "t(lambda: os.rmdir('.git'))\nt(lambda: os.mkdir('.git'))",
        "EBUSY EEXIST",
    )
    .seen(&[("remove", "{ws}/.git", PROTECTED)])
    .alone(NAMES),
    Case::new("absent-moved-away", "t(lambda: os.rename('.git', 'away'))", "EBUSY").seen(&[(
        "rename",
        "{ws}/.git",
        PROTECTED,
    )]),
    Case::new("absent-made-writable", "t(lambda: os.chmod('.git', 0o777))", "EROFS").seen(&[(
        "change",
        "{ws}/.git",
        PROTECTED,
    )]),
];

pub(super) const WORKTREE: &[Case] = &[
    Case::new("pointer-rewritten", "t(lambda: w('.git'))", "EROFS")
        .seen(&[("write", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new("pointer-removed", "t(lambda: os.unlink('.git'))", "EBUSY")
        .seen(&[("remove", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new("pointer-replaced", "t(lambda: os.rename('file', '.git'))", "EBUSY")
        .seen(&[("rename", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new("pointers-config", "t(lambda: w('store/main/config'))", "EROFS")
        .seen(&[("write", "{ws}/store/main/config", PROTECTED)])
        .alone(NAMES),
    Case::new("pointers-head", "t(lambda: w('store/main/worktrees/one/HEAD'))", "EROFS")
        .seen(&[("write", "{ws}/store/main/worktrees/one/HEAD", PROTECTED)])
        .alone(NAMES),
    Case::new("pointers-way", "t(lambda: os.rename('store', 'away'))", "EBUSY")
        .seen(&[("rename", "{ws}/store", PROTECTED)])
        .alone(NAMES),
];

pub(super) const LINKED: &[Case] = &[
    Case::new("link-removed", "t(lambda: os.unlink('.git'))", "EBUSY")
        .seen(&[("remove", "{ws}/.git", PROTECTED)])
        .alone(NAMES),
    Case::new(
        "link-led-elsewhere",
        "os.symlink('other', 'n')\nt(lambda: os.rename('n', '.git'))",
        "EBUSY",
    )
    .seen(&[("rename", "{ws}/.git", PROTECTED)])
    .alone(NAMES),
    Case::new("link-written-through", "t(lambda: w('.git/config'))", "EROFS")
        .seen(&[("write", "{ws}/store/repository/config", PROTECTED)])
        .alone(NAMES),
    Case::new("links-end-moved", "t(lambda: os.rename('store/repository', 'store/away'))", "EBUSY")
        .seen(&[("rename", "{ws}/store/repository", PROTECTED)])
        .alone(NAMES),
    Case::new("links-way-moved", "t(lambda: os.rename('store', 'away'))", "EBUSY")
        .seen(&[("rename", "{ws}/store", PROTECTED)])
        .alone(NAMES),
];
