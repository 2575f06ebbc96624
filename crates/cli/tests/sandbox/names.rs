//! Names that tell other programs what to run.

use crate::cage::{Cage, again, has};
use crate::support::{Running, eventually};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

/// spec SANDBOX.20: `.git`, `.codex` and `.agents` of the workspace can be read, but not written to,
/// removed, renamed or covered.
#[test]
fn protected_names_stay_as_they_are() {
    let cage = Cage::new();
    cage.files(&[".git/config", ".git/hooks/sample", ".codex/config.toml", ".agents/skill"]);
    let outcome = cage.run("cat .git/config .codex/config.toml .agents/skill");
    assert_eq!(outcome.stdout(), "beforebeforebefore", "{outcome:?}");
    cage.refuses(&[
        "echo after > .git/config",
        "echo evil > .git/hooks/post-checkout",
        "echo after >> .codex/config.toml",
        "echo new > .agents/new",
        "rm -rf .git; test ! -e .git/config",
        "mv .git away",
        "mv .codex away",
        "mkdir evil && mv -T evil .git",
        "chmod 777 .git/config",
        "ln .git/config hard && echo after > hard",
        "umount .git",
    ]);
    for name in [".git/config", ".git/hooks/sample", ".codex/config.toml", ".agents/skill"] {
        assert_eq!(fs::read_to_string(cage.ws(name)).unwrap(), "before", "{name}");
    }
    assert!(!cage.ws(".git/hooks/post-checkout").exists());
}

/// spec SANDBOX.21: A protected name that is not there cannot be made, neither as a directory nor as
/// a file nor as a link nor by renaming, and nothing of it is left when the command has ended.
#[test]
fn absent_names_cannot_be_made() {
    let cage = Cage::new();
    cage.files(&["other/config"]);
    for name in [".git", ".codex", ".agents"] {
        for attempt in [
            format!("mkdir {name}/x || mkdir {name}"),
            format!("echo x > {name}"),
            format!("ln -s other {name} && test -L {name}"),
            format!("mv -T other {name}"),
            format!("rmdir {name} && mkdir {name}"),
            format!("echo x > {name}/config"),
            format!("mv {name} away"),
        ] {
            cage.refuses(&[&attempt]);
            assert_eq!(cage.listing(), ["other"], "{attempt}");
        }
    }
}

/// spec SANDBOX.22: Nothing that keeps a name free is left on the disk after SIGKILL of sandgate, and
/// the name stays taken until the last process of the command is gone.
#[test]
fn names_are_given_back_after_sigkill() {
    let cage = Cage::new();
    let mut pipe = cage.pipe("pipe");
    let script = "while :; do mkdir .git && echo made > .git/made; done 2>/dev/null & \
                  echo up > pipe; exec sleep 1000 > pipe";
    let running = Running::start(&mut cage.command(&["--full-auto"], script));
    pipe.until_written();
    assert!(cage.ws(".git").is_dir(), "something keeps the name free");
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    pipe.until_abandoned();
    eventually("the names are given back", || (cage.listing() == ["pipe"]).then_some(()));
}

/// spec SANDBOX.222: Nothing that keeps a name free is left on the disk after SIGKILL of sandgate, at whichever moment
/// between its start and its end.
#[test]
fn names_are_given_back_whenever_sandgate_is_killed() {
    const MOMENTS: u32 = 250;
    let cage = Cage::new();
    let start = || Running::start(&mut cage.command(&["--full-auto"], "true"));
    let undisturbed = (0..5).map(|_| {
        let began = Instant::now();
        assert_eq!(start().wait().code, Some(0));
        began.elapsed()
    });
    let life = undisturbed.max().unwrap();
    for number in 0..MOMENTS {
        let running = start();
        // Each time a little later, and past its end where it is quick.
        std::thread::sleep(life * number / MOMENTS);
        running.signal(Signal::KILL);
        running.wait();
        eventually("the names are given back", || cage.listing().is_empty().then_some(()));
    }
}

/// spec SANDBOX.223: In a directory that its owner has made read-only the names are kept free too, and nothing of them is
/// left when the command has ended.
#[test]
fn names_are_given_back_in_a_read_only_directory() {
    let cage = Cage::new();
    let set = |mode| fs::set_permissions(cage.ws(""), PermissionsExt::from_mode(mode)).unwrap();
    set(0o555);
    let outcome =
        cage.run("chmod 755 . && { mkdir .git/x || mkdir .git || echo held; }; chmod 555 .");
    assert_eq!(outcome.stdout(), "held\n", "{outcome:?}");
    assert_eq!(cage.listing(), [""; 0]);
    let mode = fs::metadata(cage.ws("")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o555);
    set(0o755);
}

/// spec SANDBOX.224: Whatever bits the caller's mask takes from new files, nothing that keeps a name free is left, and the
/// command has that mask.
#[test]
fn names_are_given_back_whatever_the_mask() {
    for mask in ["0777", "0477", "0577", "0700", "0027"] {
        let cage = Cage::new();
        let model = cage.command(&["--full-auto"], "umask; mkdir .git || echo held");
        let mut command = again(&model, &"/bin/sh".into());
        command.args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"]);
        command.arg(model.get_program()).args(model.get_args());
        let outcome = Running::start(&mut command).wait();
        assert_eq!(outcome.stdout(), format!("{mask}\nheld\n"), "{outcome:?}");
        assert_eq!(cage.listing(), [""; 0], "{mask}");
    }
}

/// spec SANDBOX.23: Two commands in one workspace at once both find the names taken, and the one that
/// ends last gives them back.
#[test]
fn two_cages_share_a_workspace() {
    let cage = Cage::new();
    let start = |name: &str| {
        let script = format!("echo up > {name}; cat; mkdir .git/x || mkdir .git");
        let mut command = cage.command(&["--full-auto"], &script);
        let mut pipe = cage.pipe(name);
        let running = Running::start(command.stdin(std::process::Stdio::piped()));
        pipe.until_written();
        running
    };
    let (mut first, mut second) = (start("first"), start("second"));
    drop(first.child.stdin.take());
    let outcome = first.wait();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(cage.ws(".git").is_dir(), "the second still needs it");
    drop(second.child.stdin.take());
    let outcome = second.wait();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(cage.listing(), ["first", "second"]);
}

/// spec SANDBOX.24: What a crash of the machine left of a name that was kept free is removed with the
/// next command; a directory that somebody else made stays.
#[test]
fn leftovers_of_a_crash_are_removed() {
    let cage = Cage::new();
    for (name, mode) in [(".git", 0o1555), (".codex", 0o755)] {
        fs::create_dir(cage.ws(name)).unwrap();
        fs::set_permissions(cage.ws(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(cage.run("true").code, Some(0));
    assert_eq!(cage.listing(), [".codex"]);
}

/// spec SANDBOX.212: A command that locks what keeps a name free, or takes its user's rights to the directory around it
/// away, does not keep it on the disk.
#[test]
fn no_command_keeps_a_name_taken() {
    let cage = Cage::new();
    let before = fs::metadata(cage.ws("")).unwrap().permissions();
    for mode in [0o000, 0o444, 0o111, 0o2555] {
        let outcome = cage.run(&format!("chmod {mode:o} ."));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let after = fs::metadata(cage.ws("")).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(cage.ws(""), before.clone()).unwrap();
        assert_eq!(after, mode & 0o777, "what a command may do stays done");
        assert!(cage.listing().is_empty(), "{mode:o}: {:?}", cage.listing());
    }
    // Then it is the guard that gives the names back, which has mounts over them.
    let script = "chmod 000 . && echo up && exec sleep 1000";
    let mut running = Running::start(&mut cage.command(&["--full-auto"], script));
    assert_eq!(running.line(), "up\n");
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    fs::set_permissions(cage.ws(""), before).unwrap();
    eventually("the names are given back", || cage.listing().is_empty().then_some(()));
    if !has("python3") {
        return;
    }
    // A lock that is on its way is let go by the kernel when it gets round to it.
    let script = r#"python3 -c '
import fcntl, os, socket
names = [os.open(name, os.O_RDONLY) for name in (".git", ".codex", ".agents")]
for name in names:
    fcntl.flock(name, fcntl.LOCK_SH | fcntl.LOCK_NB)
one, other = socket.socketpair()
socket.send_fds(one, [b"x"], [one.fileno(), other.fileno(), *names])
'"#;
    for _ in 0..5 {
        let outcome = cage.run(script);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(cage.listing().is_empty(), "{:?}", cage.listing());
    }
}

/// spec SANDBOX.25: A repository inside the workspace is protected like the workspace's own, and neither
/// its directory nor one above that can be moved away.
#[test]
fn nested_repositories_are_protected() {
    let cage = Cage::new();
    cage.files(&["deep/repo/.git/config", "deep/repo/source"]);
    cage.refuses(&[
        "echo after > deep/repo/.git/config",
        "mv deep/repo deep/away",
        "mv deep away",
        "rm -rf deep/repo; test ! -e deep/repo/.git/config",
    ]);
    assert_eq!(fs::read_to_string(cage.ws("deep/repo/.git/config")).unwrap(), "before");
    let outcome = cage.run("echo after > deep/repo/source && mv deep/repo/source deep/repo/moved");
    assert_eq!(outcome.code, Some(0), "the rest of it is writable: {outcome:?}");
}

/// spec SANDBOX.26: A `.git` that is a file is protected with the directories that it leads to.
#[test]
fn worktrees_are_protected_with_what_they_point_to() {
    let cage = Cage::new();
    cage.files(&["store/main/config", "store/main/worktrees/one/HEAD"]);
    fs::write(cage.ws("store/main/worktrees/one/commondir"), "../..\n").unwrap();
    fs::write(cage.ws(".git"), "gitdir: store/main/worktrees/one\n").unwrap();
    cage.refuses(&[
        "echo 'gitdir: evil' > .git",
        "rm .git",
        "echo after > store/main/config",
        "echo after > store/main/worktrees/one/HEAD",
        "mv store away",
    ]);
    assert_eq!(fs::read_to_string(cage.ws("store/main/config")).unwrap(), "before");
}

/// spec SANDBOX.27: A `.git` that is a link can be neither replaced nor led elsewhere.
#[test]
fn links_are_protected_with_what_they_lead_to() {
    let cage = Cage::new();
    cage.files(&["a/repository/config"]);
    symlink("a/repository", cage.ws(".git")).unwrap();
    let outcome = cage.run("cat .git/config");
    assert_eq!(outcome.stdout(), "before", "{outcome:?}");
    cage.refuses(&[
        "rm .git",
        "mv .git away",
        "ln -sfn evil .git",
        "echo after > .git/config",
        "echo after > a/repository/config",
        "mv a/repository away",
        "mv a away",
    ]);
    assert_eq!(fs::read_link(cage.ws(".git")).unwrap().to_str(), Some("a/repository"));
    assert_eq!(fs::read_to_string(cage.ws("a/repository/config")).unwrap(), "before");
}

/// spec SANDBOX.28: The directory of the person's own settings, `CODEX_HOME` or `~/.codex`, stays
/// read-only inside a writable root.
#[test]
fn settings_are_protected_inside_a_root() {
    let cage = Cage::new();
    cage.files(&["me/settings/auth.json", "home/.codex/auth.json"]);
    let mut home = cage.command(&["--full-auto"], "echo after > home/.codex/auth.json");
    let mut named = cage.command(&["--full-auto"], "echo after > me/settings/auth.json");
    let mut moved = cage.command(&["--full-auto"], "mv me away");
    for command in [
        home.env("HOME", cage.ws("home")),
        named.env("CODEX_HOME", cage.ws("me/settings")),
        moved.env("CODEX_HOME", cage.ws("me/settings")),
    ] {
        let outcome = Running::start(command).wait();
        assert!(!matches!(outcome.code, Some(0 | 125..)), "{outcome:?}");
    }
    for name in ["me/settings/auth.json", "home/.codex/auth.json"] {
        assert_eq!(fs::read_to_string(cage.ws(name)).unwrap(), "before", "{name}");
    }
}

/// spec SANDBOX.29: In directories for temporary files a command may make its own repositories.
#[test]
fn scratch_directories_have_no_reserved_names() {
    let cage = Cage::new();
    let scratch = cage.base().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let script = "mkdir \"$TMPDIR/.git\" && mkdir -p fixture/.git && echo ok > fixture/.git/config";
    let outcome =
        Running::start(cage.command(&["--full-auto"], script).env("TMPDIR", &scratch)).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(scratch.join(".git").is_dir());
}

/// spec SANDBOX.90: No link on the way to something protected can be replaced.
#[test]
fn links_on_the_way_stay_as_they_are() {
    let cage = Cage::new();
    cage.files(&["store/a/git/config", "dots/codex/auth.json", "evil/git/config"]);
    symlink("store/a", cage.ws("mid")).unwrap();
    symlink("mid/git", cage.ws(".git")).unwrap();
    symlink("dots", cage.ws("settings")).unwrap();
    for attempt in
        ["ln -sfn evil mid", "rm mid", "mv mid away", "ln -sfn evil settings", "mv dots x"]
    {
        let mut command = cage.command(&["--full-auto"], attempt);
        let home = cage.ws("settings/codex");
        let outcome = Running::start(command.env("CODEX_HOME", home)).wait();
        assert!(!matches!(outcome.code, Some(0 | 125..)), "{attempt}: {outcome:?}");
    }
    assert_eq!(fs::read_link(cage.ws("mid")).unwrap().to_str(), Some("store/a"));
    assert_eq!(fs::read_link(cage.ws("settings")).unwrap().to_str(), Some("dots"));
}

/// spec SANDBOX.91: A link that one command leaves at the place that `TMPDIR` names opens nothing to the
/// next.
#[test]
fn a_command_does_not_choose_the_roots_of_the_next() {
    let cage = Cage::new();
    let temporary = cage.ws("tmp");
    let run = |script: &str| {
        let mut command = cage.command(&["--full-auto", "--json"], script);
        Running::start(command.env("TMPDIR", &temporary)).wait()
    };
    assert_eq!(run("ln -s \"$OUT\" tmp").code, Some(0));
    let outcome = run("echo x > \"$TMPDIR/in\"");
    assert!(!matches!(outcome.code, Some(0 | 125..)), "{outcome:?}");
    assert!(!cage.outside("in").exists());
    assert!(outcome.stderr.contains("a link leads to it"), "{outcome:?}");
}

/// spec SANDBOX.92: A workspace that is reached by a link which a command could have made is refused, and
/// the path that it leads to is named.
#[test]
fn a_workspace_behind_a_commands_link_is_refused() {
    let cage = Cage::new();
    fs::create_dir(cage.outside("project")).unwrap();
    assert_eq!(cage.run("ln -s \"$OUT\" mid").code, Some(0));
    let named = cage.ws("mid/project");
    let option = format!("--cd={}", named.display());
    let outcome = cage.run_with(&["--full-auto", &option], "touch made");
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    let real = cage.outside("project").canonicalize().unwrap();
    assert!(outcome.stderr.contains(real.to_str().unwrap()), "{outcome:?}");
    assert!(!cage.outside("project/made").exists());
}

/// spec SANDBOX.93: In a directory above the workspace that a command can write to, it cannot make the
/// protected names either.
#[test]
fn names_above_the_workspace_cannot_be_made() {
    let cage = Cage::new();
    for name in [".git", ".codex", ".agents"] {
        let attempt = format!("touch ../allowed && {{ mkdir ../{name}/x || mkdir ../{name}; }}");
        let mut command = cage.command(&["--full-auto"], &attempt);
        let outcome = Running::start(command.env("TMPDIR", cage.base())).wait();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(cage.base().join("allowed").is_file() && !cage.base().join(name).exists());
    }
}

/// spec SANDBOX.94: Where the index of a repository, whole or split over two files, has a submodule that
/// nobody has fetched, a command cannot make a repository.
#[test]
#[expect(clippy::disallowed_methods, reason = "git prepares the repository")]
fn a_submodule_cannot_be_made_up() {
    for split in ["", " && git update-index --split-index"] {
        let cage = Cage::new();
        let script = "git init -q . && mkdir sub && git update-index --add --cacheinfo \
                      160000,1111111111111111111111111111111111111111,sub";
        let ready = std::process::Command::new("sh")
            .args(["-c", &format!("{script}{split}")])
            .current_dir(cage.ws(""))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        if !ready.is_ok_and(|status| status.success()) {
            crate::support::skipped("there is no git here");
            return;
        }
        cage.refuses(&["mkdir sub/.git/x || mkdir sub/.git", "mv sub away", "git init -q sub"]);
        assert_eq!(cage.run("echo ok > sub/file").code, Some(0));
        assert!(!cage.ws("sub/.git").exists());
    }
}

/// spec SANDBOX.95: Neither pipes in the place of git's files nor hundreds of links that lead nowhere keep a
/// command from running.
#[test]
fn odd_repositories_do_not_keep_commands_from_running() {
    let cage = Cage::new();
    let script = "mkdir gd x && echo 'gitdir: ../gd' > x/.git && mkfifo gd/commondir; \
                  for n in $(seq 300); do mkdir d$n && ln -s ../nowhere$n d$n/.git; done";
    assert_eq!(cage.run(script).code, Some(0));
    let outcome = cage.run("mkdir nowhere7/x || mkdir nowhere7 || echo held");
    assert!(outcome.stdout().contains("held"), "{outcome:?}");
}
