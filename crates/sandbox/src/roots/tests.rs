mod links;
mod search;

use super::protected::PLACEHOLDER_MODE;
use super::*;
use sandgate_protocol::{DenialEvidence, DenialRule, DeniedOperation};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

/// Without anything that a grant adds.
fn plain(
    policy: &SandboxPolicy,
    workspace: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<Layout, RootError> {
    Layout::of(policy, workspace, env, &Extras::default())
}

/// With paths that a grant opens.
fn with(policy: &SandboxPolicy, workspace: &Path, opened: &[PathBuf]) -> Result<Layout, RootError> {
    let extras = Extras { writable: opened.to_vec(), ..Extras::default() };
    Layout::of(policy, workspace, &BTreeMap::new(), &extras)
}

fn paths(layout: &Layout) -> Vec<&Path> {
    layout.writable_roots().iter().map(|root| root.path.as_path()).collect()
}

fn policy(writable_roots: Vec<PathBuf>) -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite {
        writable_roots,
        network_access: Default::default(),
        exclude_tmpdir_env_var: false,
        exclude_slash_tmp: true,
    }
}

fn env(variables: &[(&str, &Path)]) -> BTreeMap<OsString, OsString> {
    variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn home() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::create_dir_all(path.join("ws")).unwrap();
    (directory, path)
}

#[track_caller]
fn check(layout: &Layout, root: &Path, expected: &[(&str, bool)]) {
    for (path, writable) in expected {
        let found = layout.writable_roots().iter().any(|r| r.is_path_writable(&root.join(path)));
        assert_eq!(found, *writable, "{path}");
    }
}

#[test]
fn repositories_are_found_wherever_they_are() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("ws/.git")).unwrap();
    fs::create_dir_all(root.join("ws/deep/nested/.git/hooks")).unwrap();
    fs::create_dir_all(root.join("ws/store/worktrees/one")).unwrap();
    fs::write(root.join("ws/store/worktrees/one/commondir"), "../..\n").unwrap();
    fs::create_dir_all(root.join("ws/tree")).unwrap();
    fs::write(root.join("ws/tree/.git"), "gitdir: ../store/worktrees/one\n").unwrap();
    let layout = plain(&policy(vec![]), &root.join("ws"), &env(&[])).unwrap();
    let expected = [
        ("ws/file", true),
        ("ws/.git/config", false),
        ("ws/.codex/config.toml", false),
        ("ws/deep/nested/.git/hooks/pre-commit", false),
        ("ws/deep/nested/file", true),
        ("ws/deep/nested/.codex", true),
        ("ws/tree/.git", false),
        ("ws/store/config", false),
    ];
    check(&layout, &root, &expected);
    let pinned = ["ws/deep", "ws/deep/nested", "ws/tree"].map(|path| root.join(path));
    assert_eq!(layout.pinned, pinned, "what is protected cannot be moved with what it lies in");
    assert_eq!(layout.absent, [root.join("ws/.agents"), root.join("ws/.codex")]);
}

#[test]
fn a_link_is_protected_with_all_that_it_leads_through() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("ws/a/b")).unwrap();
    symlink("a/b", root.join("ws/.git")).unwrap();
    symlink("a/gone", root.join("ws/.codex")).unwrap();
    let layout = plain(&policy(vec![]), &root.join("ws"), &env(&[])).unwrap();
    let expected =
        [("ws/.git", false), ("ws/a/b/config", false), ("ws/a/gone", false), ("ws/a/x", true)];
    check(&layout, &root, &expected);
    assert_eq!(layout.pinned, [root.join("ws/a")]);
    assert_eq!(layout.absent, [root.join("ws/.agents"), root.join("ws/a/gone")]);
}

#[test]
fn scratch_directories_have_no_absent_names_and_open_nothing_protected() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("ws/.git/tmp")).unwrap();
    fs::create_dir_all(root.join("scratch/repo/.git")).unwrap();
    let policy = policy(vec![]);
    let ws = root.join("ws");
    let layout = plain(&policy, &ws, &env(&[("TMPDIR", &root.join("scratch"))])).unwrap();
    let expected = [("scratch/.git", true), ("scratch/repo/.git/config", false)];
    check(&layout, &root, &expected);
    for useless in ["ws/.git/tmp", "nowhere"] {
        let layout = plain(&policy, &ws, &env(&[("TMPDIR", &root.join(useless))]));
        assert_eq!(layout.unwrap().roots.len(), 1, "{useless}");
    }
    let layout = plain(&policy, &ws, &env(&[("TMPDIR", Path::new("/"))])).unwrap();
    assert_eq!(layout.roots.len(), 1);
}

#[test]
fn the_persons_settings_are_protected_inside_a_root() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("ws/u/settings")).unwrap();
    let ws = root.join("ws");
    let variables = env(&[("CODEX_HOME", &ws.join("u/settings"))]);
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    check(&layout, &root, &[("ws/u/settings/auth.json", false), ("ws/u/file", true)]);
    assert_eq!(layout.pinned, [ws.join("u")]);
    let layout = plain(&policy(vec![]), &ws, &env(&[("HOME", &ws.join("u"))])).unwrap();
    check(&layout, &root, &[("ws/u/.codex", false), ("ws/u/settings", true)]);
    assert!(layout.absent.contains(&ws.join("u/.codex")));
}

/// spec DECISIONS.66: Where the home lies in a root that was named, what shells, logins, git and other programs
/// obey there is read-only if it is there, and so are keys; directories of that kind that are not there are
/// kept free.
#[test]
fn what_programs_obey_in_a_home_is_protected() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for directory in [".ssh", ".config/nvim", ".cargo/bin", "dotfiles"] {
        fs::create_dir_all(ws.join(directory)).unwrap();
    }
    for file in [".bashrc", ".bash_profile", ".gitconfig", ".cargo/config.toml", "dotfiles/zshrc"] {
        fs::write(ws.join(file), "").unwrap();
    }
    symlink("dotfiles/zshrc", ws.join(".zshrc")).unwrap();
    let expected = |open: bool| {
        [
            ("ws/.bashrc", open),
            ("ws/.bash_profile", open),
            ("ws/.ssh/authorized_keys", open),
            ("ws/.gitconfig", open),
            ("ws/.config/nvim/init.lua", open),
            ("ws/.config/systemd/user/x.service", open),
            ("ws/.cargo/config.toml", open),
            ("ws/.cargo/bin/cargo", open),
            ("ws/.zshrc", open),
            ("ws/dotfiles/zshrc", open),
            ("ws/.cargo/registry/x", true),
            ("ws/.config/other", true),
            ("ws/project/file", true),
        ]
    };
    let layout = plain(&policy(vec![]), &ws, &env(&[("HOME", &ws)])).unwrap();
    check(&layout, &root, &expected(false));
    assert!(layout.absent.contains(&ws.join(".config/systemd")));
    assert!(!layout.absent.contains(&ws.join(".profile")), "a shell would stop there");
    let layout = plain(&policy(vec![]), &ws, &env(&[("HOME", &root.join("elsewhere"))])).unwrap();
    check(&layout, &root, &expected(true));
}

#[test]
fn a_root_that_was_named_is_writable_even_inside_a_protected_name() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("ws/.git/objects")).unwrap();
    let objects = root.join("ws/.git/objects");
    let layout = plain(&policy(vec![objects]), &root.join("ws"), &env(&[])).unwrap();
    check(&layout, &root, &[("ws/.git/objects/pack", true), ("ws/.git/config", false)]);
}

/// spec DECISIONS.20: A root that does not exist is refused with the name of the nearest directory that
/// does.
#[test]
fn a_missing_root_is_refused_with_what_there_is() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    let refused = |path: &str| plain(&policy(vec![path.into()]), &ws, &env(&[])).unwrap_err();
    let gone = refused("out/of/here").to_string();
    let expected = format!(
        "cannot make {0}/out/of/here writable: it does not exist; the nearest directory that does is {0}",
        ws.display()
    );
    assert_eq!(gone, expected);
    assert!(refused("~/out").to_string().contains("a ~ is not expanded here"));
    symlink("nowhere", ws.join("dangling")).unwrap();
    let dangling = refused("dangling").to_string();
    assert!(dangling.ends_with("it is a link to nowhere, which does not exist"), "{dangling}");
    let workspace = plain(&policy(vec![]), &ws.join("dangling"), &env(&[])).unwrap_err();
    assert!(workspace.to_string().contains("which does not exist"), "{workspace}");
}

/// spec DECISIONS.21: A root that is a file, is everything, or belongs to the kernel, wherever that is
/// mounted, is refused.
#[test]
fn roots_that_would_undo_the_sandbox_are_refused() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::write(ws.join("file"), "").unwrap();
    symlink("/proc/sys", ws.join("kernel")).unwrap();
    symlink("/", ws.join("everything")).unwrap();
    for (path, reason) in [
        ("file", "not a directory"),
        ("file/beneath", "directory"),
        ("/", "that is everything"),
        ("everything", "that is everything"),
        ("../../../../../../../../../..", "that is everything"),
        ("/proc", "kernel"),
        ("/proc/self", "kernel"),
        ("/dev/shm", "kernel"),
        ("/sys", "kernel"),
        ("kernel", "kernel"),
    ] {
        let error = plain(&policy(vec![path.into()]), &ws, &env(&[])).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(reason), "{path}: {error}");
    }
    if cfg!(target_os = "linux") {
        // Known by the kind of file system too, not only by where it usually is.
        assert!(resolve::is_on_a_kernel_file_system(Path::new("/proc/self")));
        assert!(!resolve::is_on_a_kernel_file_system(&ws));
    }
}

/// spec DECISIONS.22: Roots may be links, relative to the workspace, named twice, nested, and called
/// anything.
#[test]
fn odd_roots_are_roots() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    let odd = OsStr::from_bytes(b"odd \n\xff name");
    fs::create_dir_all(root.join(odd)).unwrap();
    fs::create_dir_all(root.join("beside")).unwrap();
    fs::create_dir_all(ws.join("a/b/repo/.git")).unwrap();
    symlink(root.join("beside"), root.join("link")).unwrap();
    let roots = ["../link", "../beside", "../beside/", "a", "a/b", "."].map(PathBuf::from);
    let named = roots.into_iter().chain([root.join(odd)]).collect();
    let layout = plain(&policy(named), &ws, &env(&[])).unwrap();
    let expected = [root.join("beside"), root.join(odd), ws.clone(), ws.join("a"), ws.join("a/b")];
    assert_eq!(paths(&layout), expected);
    check(&layout, &root, &[("ws/a/b/repo/.git/config", false), ("ws/a/b/repo/x", true)]);
    assert!(layout.is_complete());
    let named = vec![root.join(odd).join("gone")];
    let error = plain(&policy(named), &ws, &env(&[])).unwrap_err().to_string();
    assert!(!error.contains('\n'), "an error is one line: {error}");
}

/// spec DECISIONS.23: A place that a `.git` leads to and that is not there is kept free.
#[test]
fn a_place_that_something_protected_leads_to_is_kept_free() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for directory in ["file", "link", "odd", "nul"] {
        fs::create_dir_all(ws.join(directory)).unwrap();
    }
    fs::write(ws.join("file/.git"), "gitdir: ../store/of/git\n").unwrap();
    // Git reads it up to the NUL.
    fs::write(ws.join("nul/.git"), b"gitdir: ../kept\0../decoy\n").unwrap();
    symlink("../one", ws.join("link/.git")).unwrap();
    symlink("two/three", ws.join("one")).unwrap();
    let odd = OsStr::from_bytes(b"store \xff ");
    fs::create_dir_all(ws.join(odd)).unwrap();
    fs::write(ws.join("odd/.git"), b"gitdir: ../store \xff \r\n").unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    check(&layout, &root, &[("ws/store", false), ("ws/one", false), ("ws/two", false)]);
    check(&layout, &root, &[("ws/kept", false), ("ws/decoy", true)]);
    check(&layout, &root, &[("ws/file/x", true), ("ws/odd/x", true)]);
    assert!(layout.absent.contains(&ws.join("store")) && layout.absent.contains(&ws.join("two")));
    assert!(!layout.absent.contains(&ws.join("one")), "the link is there");
    assert!(!layout.roots[0].is_path_writable(&ws.join(odd).join("config")));
}

/// spec DECISIONS.24: A directory of one's own that cannot be looked into is read-only as a whole.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_looked_into_is_read_only() {
    if rustix::process::geteuid().is_root() {
        let reason = "root can look into everything";
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let (_directory, root) = home();
    let ws = root.join("ws");
    let modes = [("unreadable", 0o300), ("untraversable", 0o600), ("closed", 0o000)];
    for (name, mode) in modes {
        fs::create_dir_all(ws.join(name).join("repo/.git")).unwrap();
        fs::create_dir_all(ws.join(name).join(".git")).unwrap();
        fs::set_permissions(ws.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let layout = plain(&policy(vec![]), &ws, &env(&[]));
    for (name, _) in modes {
        fs::set_permissions(ws.join(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let layout = layout.unwrap();
    for (name, _) in modes {
        let inside = format!("ws/{name}/repo/.git/hooks");
        check(&layout, &root, &[(&inside, false), ("ws/file", true)]);
    }
}

/// spec DECISIONS.32: A root that is too large to be searched to the end is named.
#[test]
fn a_root_that_is_too_large_is_named() {
    let (_directory, root) = home();
    let scratch = root.join("scratch");
    let enough = walk::Limits::SCRATCH.directories / 2 - 1;
    for number in 0..enough {
        fs::create_dir_all(scratch.join(number.to_string()).join("in it")).unwrap();
    }
    let variables = env(&[("TMPDIR", &scratch)]);
    let of = || plain(&policy(vec![]), &root.join("ws"), &variables).unwrap();
    assert!(of().is_complete());
    for number in enough..2 * enough + 3 {
        fs::create_dir_all(scratch.join(number.to_string()).join("in it")).unwrap();
    }
    let layout = of();
    assert!(!layout.is_complete());
    assert_eq!(layout.unfinished(), [scratch]);
}

/// spec DECISIONS.60: A grant can open a directory or a file, in read-only mode too, and opens
/// nothing else.
#[test]
fn a_grant_opens_what_it_names_and_nothing_else() {
    let (_directory, root) = home();
    fs::create_dir_all(root.join("data/in/.git")).unwrap();
    fs::write(root.join("data/file"), "").unwrap();
    let ws = root.join("ws");
    let read_only = SandboxPolicy::ReadOnly;
    let layout = with(&read_only, &ws, &[root.join("data/file")]).unwrap();
    assert_eq!(paths(&layout), [root.join("data/file")]);
    assert!(layout.pinned.is_empty() && layout.absent.is_empty());
    check(&layout, &root, &[("data/file", true), ("data/other", false), ("ws/file", false)]);
    let layout = with(&read_only, &ws, &[root.join("data")]).unwrap();
    let expected = [("data/new", true), ("data/in/.git/config", false), ("data/.git", false)];
    check(&layout, &root, &expected);
    assert!(with(&read_only, &ws, &[]).unwrap().writable_roots().is_empty());
    let layout = with(&policy(vec![]), &ws, &[ws.join("."), root.join("ws")]).unwrap();
    assert_eq!(paths(&layout), [ws], "what is writable is not opened again");
    let opened = with(&SandboxPolicy::DangerFullAccess, &root, &[root.join("data")]).unwrap();
    assert_eq!(opened, Layout::default());
}

/// spec DECISIONS.61: A grant for a protected directory opens all of it but what git obeys, and a grant
/// for a part of one opens that part; what else is protected stays so.
#[test]
fn a_grant_can_open_what_is_protected() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join(".git/hooks")).unwrap();
    fs::create_dir_all(ws.join("sub/.git")).unwrap();
    fs::create_dir_all(ws.join(".codex/deep")).unwrap();
    fs::write(ws.join(".git/index"), "").unwrap();
    let layout = with(&policy(vec![]), &ws, &[ws.join(".git")]).unwrap();
    check(&layout, &root, &[("ws/.git/index", true), ("ws/sub/.git/config", false)]);
    check(&layout, &root, &[("ws/.codex", false), ("ws/file", true)]);
    assert!(!layout.absent.contains(&ws.join(".git/.codex")), "it is no workspace");
    let layout = with(&policy(vec![]), &ws, &[ws.join(".codex")]).unwrap();
    check(&layout, &root, &[("ws/.codex/deep/file", true), ("ws/.git/index", false)]);
    let layout = with(&policy(vec![]), &ws, &[ws.join(".git/index")]).unwrap();
    check(&layout, &root, &[("ws/.git/index", true), ("ws/.git/hooks/x", false)]);
    let layout = with(&SandboxPolicy::ReadOnly, &ws, &[ws.join(".git")]).unwrap();
    check(&layout, &root, &[("ws/.git/index", true), ("ws/file", false)]);
}

/// spec DECISIONS.68: A name that some file system takes for a protected one is protected like it, a grant for
/// something in it is that directory, and what git obeys in it stays closed.
#[test]
fn another_spelling_opens_nothing_more() {
    for name in [".GIT", "git~1", ".git.", ".g\u{200c}it"] {
        let (_directory, root) = home();
        let ws = root.join("ws");
        fs::create_dir_all(ws.join("sub").join(name).join("objects")).unwrap();
        let git = ws.join("sub").join(name);
        let at = |inside: &str| format!("ws/sub/{name}/{inside}");
        let layout = with(&policy(vec![]), &ws, &[]).unwrap();
        check(&layout, &root, &[(&at("config"), false), (&at("objects/x"), false)]);
        let refused = DenialEvidence {
            operation: DeniedOperation::Create,
            target: git.join("index.lock").to_str().unwrap().to_owned(),
            syscall: "openat".to_owned(),
            rule: DenialRule::ProtectedName,
        };
        let narrowest = Narrowest::of(&[refused], &BTreeMap::new());
        assert_eq!(narrowest.extras.writable, std::slice::from_ref(&git));
        let layout = with(&policy(vec![]), &ws, &[git]).unwrap();
        check(&layout, &root, &[(&at("index"), true), (&at("config"), false)]);
        check(&layout, &root, &[(&at("hooks/pre-commit"), false)]);
    }
}

/// spec DECISIONS.64: A grant for a git directory leaves closed what git obeys in it, in its submodules and
/// in its worktrees (`hooks`, `config`, `config.worktree`, `info/attributes`, and a `commondir` that is
/// there), and keeps the names free that are not there, but for those that the grant names themselves.
#[test]
fn a_grant_for_a_git_directory_leaves_closed_what_git_obeys() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for git in [".git", ".git/modules/a/b", ".git/worktrees/w", "store"] {
        fs::create_dir_all(ws.join(git).join("info")).unwrap();
        fs::write(ws.join(git).join("config"), "").unwrap();
        fs::write(ws.join(git).join("HEAD"), "").unwrap();
    }
    fs::write(ws.join(".git/worktrees/w/commondir"), "../..").unwrap();
    fs::create_dir_all(ws.join("tree")).unwrap();
    fs::write(ws.join("tree/.git"), "gitdir: ../store\n").unwrap();
    let layout = with(&policy(vec![]), &ws, &[ws.join(".git"), ws.join("store")]).unwrap();
    for git in ["ws/.git", "ws/.git/modules/a/b", "ws/.git/worktrees/w", "ws/store"] {
        for (name, open) in [
            ("config", false),
            ("config.worktree", false),
            ("hooks/pre-commit", false),
            ("info/attributes", false),
            ("index.lock", true),
            ("objects/00/11", true),
            ("refs/heads/hooks", true),
        ] {
            check(&layout, &root, &[(&format!("{git}/{name}"), open)]);
        }
        assert!(layout.absent.contains(&root.join(git).join("hooks")), "{git}");
    }
    check(&layout, &root, &[("ws/.git/worktrees/w/commondir", false)]);
    let named = [ws.join(".git"), ws.join(".git/config")];
    let layout = with(&policy(vec![]), &ws, &named).unwrap();
    check(&layout, &root, &[("ws/.git/config", true), ("ws/.git/hooks/pre-commit", false)]);
    let mut roots = layout.roots.iter().map(|root| &root.path);
    assert!(roots.all(|path| *path != named[1]), "a mount there could not be replaced by git");
}

#[test]
fn a_repository_elsewhere_is_opened_by_its_own_path() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join("store")).unwrap();
    fs::write(ws.join(".git"), "gitdir: store\n").unwrap();
    let layout = with(&policy(vec![]), &ws, &[ws.join("store")]).unwrap();
    check(&layout, &root, &[("ws/store/index.lock", true), ("ws/.git", false)]);
    assert!(!layout.absent.contains(&ws.join("store/.git")));
}

/// spec DECISIONS.62: A grant for what does not exist, is only kept free, is everything, belongs to
/// the kernel, or is sandgate's own settings is refused.
#[test]
fn grants_that_cannot_be_are_refused() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(root.join("settings/rules")).unwrap();
    fs::create_dir_all(root.join("settings/tree/.git")).unwrap();
    fs::create_dir(ws.join(".codex")).unwrap();
    let kept_free = fs::Permissions::from_mode(PLACEHOLDER_MODE);
    fs::set_permissions(ws.join(".codex"), kept_free).unwrap();
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    let variables = env(&[("CODEX_HOME", &root.join("settings"))]);
    let open = |policy: &SandboxPolicy, path: &Path| {
        let extras = Extras { writable: vec![path.to_owned()], ..Extras::default() };
        Layout::of(policy, &ws, &variables, &extras)
    };
    for (path, reason) in [
        (root.join("gone/deep"), format!("the nearest directory that does is {}", root.display())),
        (ws.join(".codex"), "does not exist".to_owned()),
        (root.join("socket"), "neither a directory nor a file".to_owned()),
        (root.join("settings"), "sandgate's own settings".to_owned()),
        (root.join("settings/rules"), "sandgate's own settings".to_owned()),
        (PathBuf::from("/"), "everything".to_owned()),
        (PathBuf::from("/proc/self/mem"), "kernel".to_owned()),
        (PathBuf::from("/dev/null"), "kernel".to_owned()),
    ] {
        for policy in [SandboxPolicy::ReadOnly, policy(vec![])] {
            let error = open(&policy, &path).unwrap_err().to_string();
            assert!(error.contains(&reason), "{}: {error}", path.display());
        }
    }
    let tree = root.join("settings/tree");
    let layout = open(&policy(vec![tree.clone()]), &tree.join(".git")).unwrap();
    check(&layout, &root, &[("settings/tree/.git/x", true), ("settings/rules/x", false)]);
    let layout = open(&SandboxPolicy::ReadOnly, &root).unwrap();
    check(&layout, &root, &[("file", true), ("settings/rules/x", false)]);
}

/// spec DECISIONS.63: A grant can open a unix socket that exists and does not lie in a protected
/// directory.
#[test]
fn a_grant_can_open_a_socket() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join(".git")).unwrap();
    let _one = UnixListener::bind(root.join("socket")).unwrap();
    let _two = UnixListener::bind(ws.join(".git/socket")).unwrap();
    symlink(root.join("socket"), ws.join("link")).unwrap();
    let open = |path: PathBuf| {
        let extras = Extras { sockets: vec![path], ..Extras::default() };
        Layout::of(&SandboxPolicy::ReadOnly, &ws, &env(&[]), &extras)
    };
    for path in [root.join("socket"), ws.join("link"), "link".into()] {
        let layout = open(path).unwrap();
        assert_eq!(layout.sockets(), [root.join("socket")]);
        assert!(layout.writable_roots().is_empty());
    }
    for (path, reason) in [
        (root.join("gone"), "does not exist"),
        (ws.clone(), "not a socket"),
        (ws.join(".git/socket"), "protected"),
    ] {
        let error = open(path).unwrap_err().to_string();
        assert!(error.starts_with("cannot open the socket") && error.contains(reason), "{error}");
    }
}

/// spec DECISIONS.33: A layout is out of date when a protected name at a root was made, removed,
/// replaced or led elsewhere, or when a root or the person's settings were replaced.
#[test]
fn a_layout_is_out_of_date_when_something_was_replaced() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 8] = [
        ("made", |root| fs::create_dir(root.join("ws/.agents")).unwrap()),
        ("removed", |root| fs::remove_dir(root.join("ws/.git")).unwrap()),
        ("replaced by the like", |root| {
            fs::remove_dir(root.join("ws/.git")).unwrap();
            fs::create_dir(root.join("ws/.git")).unwrap();
        }),
        ("moved into place", |root| fs::rename(root.join("git"), root.join("ws/.git")).unwrap()),
        ("led elsewhere", |root| {
            fs::remove_file(root.join("ws/.codex")).unwrap();
            symlink(root.join("elsewhere"), root.join("ws/.codex")).unwrap();
        }),
        ("replaced where a link leads", |root| {
            fs::rename(root.join("elsewhere"), root.join("target")).unwrap();
        }),
        ("the workspace", |root| {
            fs::rename(root.join("ws"), root.join("moved")).unwrap();
            fs::create_dir(root.join("ws")).unwrap();
        }),
        ("the settings", |root| fs::rename(root.join("elsewhere"), root.join("home")).unwrap()),
    ];
    for (name, change) in changes {
        let (_directory, root) = home();
        for directory in ["ws/.git", "git", "target", "elsewhere", "home"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        symlink(root.join("target"), root.join("ws/.codex")).unwrap();
        let variables = env(&[("CODEX_HOME", &root.join("home"))]);
        let layout = plain(&policy(vec![]), &root.join("ws"), &variables).unwrap();
        assert!(layout.is_current(), "{name}");
        change(&root);
        assert!(!layout.is_current(), "{name}");
    }
}

/// spec DECISIONS.34: Work in a root, and names that are kept free, leave a layout up to date.
#[test]
fn work_leaves_a_layout_up_to_date() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join(".git")).unwrap();
    fs::write(root.join("granted"), "").unwrap();
    let layout = with(&policy(vec![]), &ws, &[root.join("granted")]).unwrap();
    fs::write(ws.join(".git/index"), "new").unwrap();
    fs::write(ws.join("file"), "new").unwrap();
    fs::write(root.join("granted"), "new").unwrap();
    fs::create_dir(ws.join(".agents")).unwrap();
    let kept_free = fs::Permissions::from_mode(PLACEHOLDER_MODE);
    fs::set_permissions(ws.join(".agents"), kept_free).unwrap();
    assert!(layout.is_current());
    fs::write(root.join("other"), "").unwrap();
    fs::rename(root.join("other"), root.join("granted")).unwrap();
    assert!(!layout.is_current(), "the file that was granted is another one");
}

/// spec DECISIONS.35: Every link on the way to something protected is protected, and no directory on it
/// can be moved.
#[test]
fn links_on_the_way_are_protected() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for directory in ["store/a/git", "store/b/git", "dots/codex", "side"] {
        fs::create_dir_all(ws.join(directory)).unwrap();
    }
    fs::create_dir_all(ws.join("tree")).unwrap();
    symlink("store/a", ws.join("mid")).unwrap();
    symlink("mid/git", ws.join(".git")).unwrap();
    symlink("../store/b", ws.join("side/link")).unwrap();
    fs::write(ws.join("tree/.git"), "gitdir: ../side/link/git\n").unwrap();
    symlink("dots", ws.join("settings")).unwrap();
    let variables = env(&[("CODEX_HOME", &ws.join("settings/codex"))]);
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    let read_only = &layout.roots[0].read_only_subpaths;
    for path in ["mid", ".git", "store/a/git", "side/link", "store/b/git", "settings", "dots/codex"]
    {
        assert!(read_only.contains(&ws.join(path)), "{path}: {read_only:?}");
    }
    for path in ["store", "store/a", "store/b", "side", "tree", "dots"] {
        assert!(layout.pinned.contains(&ws.join(path)), "{path}: {:?}", layout.pinned);
    }
}

/// spec DECISIONS.36: What a limit of the search leaves out of a root is read-only, and a root of which
/// only that would be left is refused.
#[test]
fn what_a_limit_leaves_out_is_read_only() {
    let root = Path::new("/ws");
    let few = vec![root.join("a/b"), root.join("c")];
    assert_eq!(find::border(root, few.clone()), Some(few.into_iter().collect()));
    let many = |parent: &Path| (0..2000).map(|number| parent.join(number.to_string())).collect();
    let above = BTreeSet::from([root.join("deep/er")]);
    assert_eq!(find::border(root, many(&root.join("deep/er"))), Some(above));
    assert_eq!(find::border(root, many(root)), None);
    assert_eq!(find::border(root, vec![root.to_owned()]), None);
}

/// spec DECISIONS.25: A directory that `TMPDIR` names is left out, with a note, when a link leads to it or
/// it is not this user's own.
#[cfg(target_os = "linux")]
#[test]
fn a_doubtful_directory_for_temporary_files_is_left_out() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(root.join("victim")).unwrap();
    fs::create_dir_all(root.join("own")).unwrap();
    symlink(root.join("victim"), ws.join("link")).unwrap();
    let of = |path: &Path| plain(&policy(vec![]), &ws, &env(&[("TMPDIR", path)])).unwrap();
    let layout = of(&root.join("own"));
    assert_eq!(paths(&layout), [root.join("own"), ws.clone()]);
    assert!(layout.notes().is_empty());
    let layout = of(&ws.join("link"));
    assert_eq!(paths(&layout), [ws.as_path()]);
    assert!(layout.notes()[0].contains("a link leads to it"), "{:?}", layout.notes());
    if !rustix::process::geteuid().is_root() {
        let layout = of(Path::new("/usr"));
        assert_eq!(paths(&layout), [ws.as_path()]);
        assert!(layout.notes()[0].contains("not this user's own"), "{:?}", layout.notes());
    }
}

/// spec DECISIONS.26: A root that is reached by a link in another root is refused with the path to name
/// instead.
#[test]
fn a_root_behind_a_link_in_a_root_is_refused() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(root.join("victim/in")).unwrap();
    symlink(root.join("victim"), ws.join("link")).unwrap();
    let error = plain(&policy(vec!["link/in".into()]), &ws, &env(&[])).unwrap_err().to_string();
    let real = root.join("victim/in");
    assert!(error.contains("a link that a command could have made"), "{error}");
    assert!(error.ends_with(&format!("if you mean {}, name that", real.display())), "{error}");
}

/// spec DECISIONS.27: A workspace is refused that is reached by a link beneath a directory which everybody
/// can write to, or in a repository.
#[test]
fn a_workspace_behind_a_doubtful_link_is_refused() {
    let (_directory, root) = home();
    symlink(root.join("ws"), root.join("link")).unwrap();
    let error = check_workspace(&root.join("link"), &env(&[])).unwrap_err().to_string();
    assert!(error.contains(&root.join("ws").display().to_string()), "{error}");
    check_workspace(&root.join("ws"), &env(&[])).unwrap();
}

/// spec DECISIONS.37: The protected names are kept free in every directory above a workspace that commands
/// can write to, and in the directories of submodules.
#[test]
fn names_above_and_in_submodules_are_kept_free() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    let layout = plain(&policy(vec![]), &ws, &env(&[("TMPDIR", &root)])).unwrap();
    for name in [".git", ".codex", ".agents"] {
        assert!(layout.absent.contains(&root.join(name)), "{:?}", layout.absent);
    }
    assert!(layout.absent.contains(&ws.join(".git")));
}

/// spec DECISIONS.28: Settings that a relative `CODEX_HOME` names are protected.
#[test]
fn relative_settings_are_protected() {
    let home = resolve::codex_home(&env(&[("CODEX_HOME", Path::new("some/where"))])).unwrap();
    assert_eq!(home, std::env::current_dir().unwrap().join("some/where"));
}

/// spec DECISIONS.38: Nothing that stands in the place of a file of git's holds a search up.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_does_not_hold_the_search_up() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join("x")).unwrap();
    fs::create_dir_all(ws.join("gd")).unwrap();
    fs::write(ws.join("x/.git"), "gitdir: ../gd").unwrap();
    for name in ["gd/commondir", "gd/index"] {
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, ws.join(name), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
    }
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    check(&layout, &root, &[("ws/gd/config", false), ("ws/x/file", true)]);
}

/// spec DECISIONS.29: Where there are too many names to be kept free, the directories that they would be in
/// are read-only.
#[test]
fn too_many_absent_names_close_their_directories() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join("away")).unwrap();
    for number in 0..find::MOST_KEPT_FREE + 50 {
        fs::create_dir(ws.join(number.to_string())).unwrap();
        let target = format!("../away/{number}");
        symlink(target, ws.join(number.to_string()).join(".git")).unwrap();
    }
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    assert!(layout.absent.len() <= find::MOST_KEPT_FREE, "{}", layout.absent.len());
    check(&layout, &root, &[("ws/away/new", false), ("ws/.git", false), ("ws/file", true)]);
}
