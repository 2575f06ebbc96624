//! `sandgate run` starts from a snapshot of the person's login shell. `docs/spec/snapshot.md` is what this
//! proves.

#![cfg(unix)]

mod support;

use std::fs;
use support::World;

/// The shells, each with the file that its login shell reads last.
const SHELLS: [(&str, &str); 2] = [("bash", ".bash_profile"), ("zsh", ".zprofile")];

/// The worlds in which a snapshot can be taken of a shell, with what names the shell and its file.
fn worlds() -> impl Iterator<Item = (World, &'static str, std::path::PathBuf)> {
    SHELLS.into_iter().filter_map(|(shell, file)| {
        let world = World::new();
        let is_confined = world.sandgate(&["sandbox", "--", "true"]).code == Some(0);
        let is_there = world.run(&["--shell", shell, "--no-login", "--", "true"]).code == Some(0);
        if !is_confined || !is_there {
            println!("SKIPPED: there is no {shell} or no sandbox here");
            return None;
        }
        let file = world.path(file);
        Some((world, shell, file))
    })
}

/// spec SNAP.20: `sandgate run` takes a snapshot once: the next one does not wait for the start-up files.
#[test]
fn the_second_run_reads_no_start_up_file() {
    for (world, shell, file) in worlds() {
        fs::write(file, "export WHEN=$(date +%s%N)\n").unwrap();
        let said = || world.run(&["--shell", shell, "--", "echo $WHEN"]);
        let (first, second) = (said(), said());
        assert!(first.stdout().len() > 15, "{first:?}");
        assert_eq!(first.stdout(), second.stdout(), "{shell}");
        assert_eq!(first.stderr, "");
    }
}

/// spec SNAP.21: With `features.shell_snapshot = false` each command starts a login shell.
#[test]
fn it_can_be_turned_off() {
    for (world, shell, file) in worlds() {
        fs::write(file, "export WHEN=$(date +%s%N)\n").unwrap();
        let said = || {
            let off = "features.shell_snapshot=false";
            world.run(&["-c", off, "--shell", shell, "--", "echo $WHEN"]).stdout().to_owned()
        };
        assert_ne!(said(), said(), "{shell}");
        assert!(!world.path(".codex/snapshots").exists());
    }
}

/// spec SNAP.22: Start-up files that take longer than `timeouts.shell_snapshot_ms` are waited for by each command,
/// and `sandgate run` says so.
#[test]
fn a_slow_start_up_file_is_told_of() {
    for (world, shell, file) in worlds() {
        // Only the login shell of a command may write here.
        let probe = world.path("probe");
        fs::write(
            file,
            format!(
                "export LOGIN=yes\n: 2>/dev/null >| {} || {{ sleep 1000 & wait; }}\n",
                probe.display()
            ),
        )
        .unwrap();
        for _ in 0..2 {
            let limit = "timeouts.shell_snapshot_ms=700";
            let outcome = world.run(&["-c", limit, "--shell", shell, "--", "echo $LOGIN"]);
            assert_eq!(outcome.stdout(), "yes\n", "{shell} {outcome:?}");
            let expected =
                "each command waits for a login shell: its start-up files took more than 700 ms";
            assert_eq!(outcome.stderr.matches(expected).count(), 1, "{shell} {outcome:?}");
        }
    }
}

/// Changes a snapshot wherever it finds one, its checksum too, and puts one like it where others were once.
const POISON: &str = r##"
import glob, hashlib, json, os, shutil
first = b"# sandgate snapshot "
home = os.environ["HOME"]
for file in glob.glob(home + "/.codex/snapshots/*/*") + glob.glob(home + "/.codex/snapshots/*/.z*"):
    line, script = open(file, "rb").read().split(b"\n", 1)
    about, script = json.loads(line[len(first):]), b"echo poison\n" + script
    about["sha256"] = hashlib.sha256(script).hexdigest()
    other = file.replace("/.codex/", "/.cache/sandgate/")
    for place in (file, other):
        try:
            os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
            with open(place, "wb") as new:
                new.write(first + json.dumps(about).encode() + b"\n" + script)
            print("wrote", place)
        except OSError:
            pass
"##;

/// spec SNAP.24: A snapshot lies in the person's settings, where no command can write, whoever confines it: also
/// after a command that was at home no later one obeys anything else.
#[test]
fn no_command_writes_what_later_ones_obey() {
    for (world, shell, file) in worlds() {
        if world.other("python3").arg("--version").output().is_err() {
            println!("SKIPPED: there is no python3 here");
            return;
        }
        fs::write(file, "export SEEN=yes\n").unwrap();
        let unconfined = ["--sandbox", "danger-full-access", "--ask-for-approval", "never"];
        let words: Vec<&str> =
            unconfined.into_iter().chain(["--shell", shell, "--", "echo $SEEN"]).collect();
        assert_eq!(world.run(&words).stdout(), "yes\n");
        let kept = fs::read_dir(world.path(".codex/snapshots")).unwrap().count();
        assert_eq!(kept, 1, "there is something to be written");
        let poison = ["sandbox", "--full-auto", "--", "python3", "-c", POISON];
        let outcome = world.sandgate(&poison);
        assert_eq!((outcome.code, outcome.stdout()), (Some(0), ""), "{shell} {outcome:?}");
        assert_eq!(world.run(&words).stdout(), "yes\n", "{shell}");
    }
}
