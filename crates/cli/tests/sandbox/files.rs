//! What can be written, and what cannot.

use crate::cage::Cage;
use crate::support::{Running, skipped};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// spec SANDBOX.1: In workspace-write mode a command writes in the workspace, in `/tmp` and in the
/// directory that `TMPDIR` names, and nowhere else.
#[test]
fn a_command_writes_in_its_roots_and_nowhere_else() {
    let cage = Cage::new();
    let scratch = cage.base().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let script = "echo a > \"$WS/in\" && t=$(mktemp /tmp/sg-XXXXXX) && rm \"$t\" \
                  && echo b > \"$TMPDIR/in\"";
    let mut command = cage.command(&["--full-auto"], script);
    let outcome = crate::support::Running::start(command.env("TMPDIR", &scratch)).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(fs::read_to_string(cage.ws("in")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(scratch.join("in")).unwrap(), "b\n");
    cage.refuses(&[
        "echo after > \"$OUT/victim\"",
        "echo new > \"$OUT/new\"",
        "mkdir \"$OUT/new\"",
        "rm -f \"$OUT/victim\"",
        "mv \"$OUT/victim\" \"$WS/stolen\"",
        "ln \"$OUT/victim\" \"$WS/link\" && echo after > \"$WS/link\"",
        "ln -s \"$OUT/victim\" \"$WS/soft\" && echo after > \"$WS/soft\"",
        "echo after > \"/proc/self/root$OUT/victim\"",
        "cd .. && echo new > new",
        "mv \"$WS\" \"$WS-moved\"",
        "echo new > /etc/sg-new",
    ]);
    assert_eq!(fs::read_to_string(cage.outside("victim")).unwrap(), "before");
    assert_eq!(fs::read_dir(cage.outside("")).unwrap().count(), 1);
    assert!(!fs::exists("/etc/sg-new").unwrap());
}

/// spec SANDBOX.2: In read-only mode, which is the default, a command reads anything and writes
/// nowhere.
#[test]
fn read_only_is_the_default_and_writes_nowhere() {
    let cage = Cage::new();
    cage.files(&["file"]);
    for options in [&[][..], &["--sandbox", "read-only"]] {
        let outcome = cage.run_with(options, "cat file \"$OUT/victim\"; echo x > /dev/null");
        assert_eq!((outcome.code, outcome.stdout()), (Some(0), "beforebefore"), "{outcome:?}");
        for attempt in ["echo x > file", "mkdir .git", "rm file", "mktemp /tmp/sg-XXXXXX"] {
            let outcome = cage.run_with(options, attempt);
            assert!(!matches!(outcome.code, Some(0 | 125..)), "{attempt}: {outcome:?}");
        }
    }
    assert_eq!(cage.listing(), ["file"]);
    assert_eq!(fs::read_to_string(cage.ws("file")).unwrap(), "before");
}

/// spec SANDBOX.3: `--writable` makes another directory writable, whatever its name; a link means
/// what it leads to.
#[test]
fn other_directories_can_be_named() {
    let cage = Cage::new();
    for name in ["a b", "new\nline", "-dash", "quote'\""] {
        let root = cage.base().join(name);
        fs::create_dir(&root).unwrap();
        let option = format!("--writable={}", root.display());
        let outcome = cage.run_with(&["--full-auto", &option], "echo x > \"$OUT/../\"*/in; exit 0");
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let mut command = cage.command(&["--full-auto", &option], "echo x > \"$ROOT/in\"");
        let outcome = crate::support::Running::start(command.env("ROOT", &root)).wait();
        assert_eq!(outcome.code, Some(0), "{name:?}: {outcome:?}");
        assert!(root.join("in").is_file());
    }
    symlink(cage.base().join("a b"), cage.base().join("link")).unwrap();
    let option = format!("--writable={}", cage.base().join("link").display());
    let outcome = cage.run_with(&["--full-auto", &option], "echo x > \"$OUT/../a b/through\"");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(cage.base().join("a b/through").is_file());
}

/// spec SANDBOX.4: A root that does not exist, is a file, is everything, or belongs to the kernel is
/// refused by name, with exit code 125, and nothing runs.
#[test]
fn roots_that_cannot_be_are_refused() {
    let cage = Cage::new();
    let victim = cage.outside("victim");
    for root in
        ["/nowhere/at/all", victim.to_str().unwrap(), "/", "/proc", "/dev/shm", "/sys/kernel"]
    {
        let outcome = cage.run_with(&["--full-auto", "--writable", root], "echo ran > \"$WS/ran\"");
        assert_eq!(outcome.code, Some(125), "{root}: {outcome:?}");
        assert!(outcome.stderr.contains(root), "{root}: {}", outcome.stderr);
    }
    let outcome = cage.run_with(&["--full-auto", "--cd", "/"], "echo ran > \"$WS/ran\"");
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(!cage.ws("ran").exists());
}

/// spec SANDBOX.5: Modes, owners and times of what lies outside the roots stay as they
/// are.
#[test]
fn nothing_about_a_file_outside_changes() {
    let cage = Cage::new();
    let before = fs::metadata(cage.outside("victim")).unwrap();
    cage.refuses(&[
        "chmod 777 \"$OUT/victim\"",
        "chown $(id -u) \"$OUT/victim\"",
        "touch -d 2001-01-01 \"$OUT/victim\"",
        "chmod 777 \"$OUT\"",
    ]);
    let after = fs::metadata(cage.outside("victim")).unwrap();
    assert_eq!(before.permissions().mode(), after.permissions().mode());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

/// spec SANDBOX.74: Where namespaces are refused, modes, owners and times of what lies outside the roots
/// stay as they are as well, and in the roots they can be changed.
#[test]
fn nothing_about_a_file_outside_changes_without_namespaces() {
    let cage = Cage::new();
    cage.files(&["file", "dated"]);
    let before = fs::metadata(cage.outside("victim")).unwrap();
    let script = "chmod 777 \"$OUT/victim\"; chmod 777 \"$OUT\"; chown $(id -u) \"$OUT/victim\"; \
                  touch -d 2001-01-01 \"$OUT/victim\"; touch \"$OUT/victim\"; \
                  chmod 751 file && touch -d 2001-02-03T00:00:00Z dated && echo changed";
    let Some(mut command) = cage.without_namespaces(&["--full-auto", "--log-denials"], script)
    else {
        return;
    };
    let outcome = Running::start(&mut command).wait();
    assert_eq!(outcome.stdout(), "changed\n", "{outcome:?}");
    let told = format!("blocked: change {}", cage.outside("victim").display());
    assert!(outcome.stderr.contains(&told), "{outcome:?}");
    let after = fs::metadata(cage.outside("victim")).unwrap();
    assert_eq!((before.mode(), before.ctime_nsec()), (after.mode(), after.ctime_nsec()));
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(fs::metadata(cage.ws("file")).unwrap().mode() & 0o777, 0o751);
    assert_eq!(fs::metadata(cage.ws("dated")).unwrap().mtime(), 981_158_400);
}

/// spec SANDBOX.180: Where namespaces are refused, files are copied, installed and unpacked with their modes and times, as
/// on a file system that has no other attributes.
#[test]
fn files_are_copied_with_all_that_belongs_to_them_without_namespaces() {
    let cage = Cage::new();
    cage.files(&["file"]);
    fs::set_permissions(cage.ws("file"), fs::Permissions::from_mode(0o751)).unwrap();
    let script = "cp -p file copy && cp -a file whole && install -m 751 file installed && \
                  mkdir unpacked && tar cf - file | tar xpf - -C unpacked && echo copied";
    let Some(mut command) = cage.without_namespaces(&["--full-auto", "--log-denials"], script)
    else {
        return;
    };
    let outcome = Running::start(&mut command).wait();
    assert_eq!(outcome.stdout(), "copied\n", "{outcome:?}");
    assert!(!outcome.stderr.contains("blocked: "), "{outcome:?}");
    let before = fs::metadata(cage.ws("file")).unwrap();
    for name in ["copy", "whole", "installed", "unpacked/file"] {
        assert_eq!(fs::metadata(cage.ws(name)).unwrap().mode(), before.mode(), "{name}");
    }
    for name in ["copy", "whole"] {
        let copied = fs::metadata(cage.ws(name)).unwrap();
        assert_eq!(copied.modified().unwrap(), before.modified().unwrap(), "{name}");
    }
}

/// spec SANDBOX.9: No device can be opened but those in `/dev`, wherever another one lies.
#[test]
fn no_device_is_opened_elsewhere() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let cage = Cage::new();
    let zero = makedev(1, 5);
    let mode = Mode::RUSR | Mode::WUSR;
    if mknodat(CWD, cage.outside("zero"), FileType::CharacterDevice, mode, zero).is_err() {
        return crate::support::skipped("only root can make a device");
    }
    cage.refuses(&["head -c 1 \"$OUT/zero\"", "echo x > \"$OUT/zero\""]);
    let outcome = cage.run_with(&["--full-auto", "--log-denials"], "echo x > \"$OUT/zero\"");
    let told = format!("blocked: write {}", cage.outside("zero").display());
    assert!(outcome.stderr.contains(&told), "{outcome:?}");
}

/// spec SANDBOX.6: `/dev` holds the devices that touch nothing, terminals and shared memory of the
/// cage's own, and nothing else.
#[test]
fn dev_is_minimal() {
    let cage = Cage::new();
    let outcome = cage.run("ls /dev; echo shared > /dev/shm/sg-probe; cat /dev/shm/sg-probe");
    let expected = [
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero", "shared",
    ];
    let found: Vec<_> = outcome.stdout().lines().collect();
    assert_eq!(found, expected, "{outcome:?}");
    assert!(!fs::exists("/dev/shm/sg-probe").unwrap());
}

/// spec SANDBOX.8: A device can be written to, but its mode, owner and times stay as they are.
#[test]
fn devices_stay_as_they_are() {
    let cage = Cage::new();
    let status =
        || fs::metadata("/dev/null").map(|found| (found.mode(), found.ctime_nsec())).unwrap();
    let before = status();
    cage.refuses(&["chmod 0600 /dev/null", "chown 1:1 /dev/null", "touch -m /dev/null"]);
    let outcome = cage.run("echo x > /dev/null && head -c 1 /dev/zero | wc -c");
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "1\n"), "{outcome:?}");
    assert_eq!(status(), before);
}

/// spec SANDBOX.7: A working directory outside the roots is not writable: only the workspace is.
#[test]
fn changing_the_directory_widens_nothing() {
    let cage = Cage::new();
    cage.refuses(&["cd \"$OUT\" && echo new > new", "cd /var/tmp && mktemp ./sg-XXXXXX"]);
    assert!(!cage.outside("new").exists());
}

/// spec SANDBOX.102: What is mounted in a writable directory and holds the kernel's own, as a `/proc` for a container, can be
/// read and not written to.
#[test]
fn a_proc_in_a_writable_directory_is_read_only() {
    const SCRIPT: &str = "\
        mv * away 2>/dev/null && echo moved >> \"$WS/written\"; \
        cd */proc 2>/dev/null || cd */*/proc || exit; \
        for file in self/oom_score_adj self/comm sys/kernel/core_pattern; do \
        if (echo 1000 > $file) 2>/dev/null; then echo $file >> \"$WS/written\"; fi; done; \
        read name < self/comm && echo \"$name\" > \"$WS/name\"";
    // Its name may have a blank, or what is a letter nowhere.
    for place in [b"a tree/of mine/proc".as_slice(), b"\xff/proc"] {
        let cage = Cage::new();
        let place = Path::new(OsStr::from_bytes(place));
        fs::create_dir_all(cage.ws(".").join(place)).unwrap();
        let Some(mut command) = cage.where_proc_is_in(place, &["--full-auto"], SCRIPT) else {
            return skipped("there is no unshare here, or it may not do this");
        };
        let outcome = Running::start(&mut command).wait();
        if outcome.stderr.contains("the kernel's mounts in writable places") {
            // What else there is to see of it: nothing has run.
            assert_eq!(outcome.code, Some(125), "{outcome:?}");
            assert!(!cage.ws("name").exists() && !cage.ws("written").exists());
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(fs::read_to_string(cage.ws("name")).unwrap(), "sh\n");
        assert_eq!(fs::read_to_string(cage.ws("written")).ok(), None, "{}", place.display());
    }
}
