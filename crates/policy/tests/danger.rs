//! What counts as dangerous and what does not, by two long tables of commands, and what may stand
//! around a command without hiding it.

#[path = "danger/builder.rs"]
mod builder;

use sandgate_policy::Surroundings;
use sandgate_policy::command::{Shape, SimpleCommand, Word};
use sandgate_policy::danger;
use sandgate_policy::script::{Reader, Reading};

const DANGEROUS: &str = include_str!("danger/dangerous.txt");
const HARMLESS: &str = include_str!("danger/harmless.txt");

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/home/u/project".into()),
        roots: vec!["/home/u/project".into()],
        home: Some("/home/u".into()),
        ..Surroundings::default()
    }
}

/// The commands of a table, each with what its reason must say.
fn table(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("# "))
        .map(|line| line.split_once("  #: ").unwrap_or((line, "")))
}

fn reason(line: &str, around: &Surroundings) -> Option<String> {
    danger::find(&builder::read(line), around).map(|danger| danger.reason)
}

fn words(line: &str, around: &Surroundings) -> Option<String> {
    let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let commands = vec![SimpleCommand::from_argv(&argv)];
    let reading = Reading { reader: Reader::Kernel, commands, opaque: None };
    danger::find(&reading, around).map(|danger| danger.reason)
}

/// spec DANGER.1: A command that deletes, overwrites, gives away or takes over what is not the
/// workspace's is dangerous, and the reason names what.
#[test]
fn every_dangerous_command_is_found_and_its_reason_names_the_target() {
    let mut missed = Vec::new();
    for (line, says) in table(DANGEROUS) {
        match reason(line, &around()) {
            None => missed.push(format!("not found: {line}")),
            Some(reason) if !reason.contains(says) => {
                missed.push(format!("{line}: `{reason}` does not say `{says}`"));
            }
            Some(_) => {}
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// spec DANGER.2: Everyday work is not dangerous: what only touches the workspace, what only looks
/// at names, and what only speaks of dangerous things.
#[test]
fn everyday_work_is_not_dangerous() {
    let found: Vec<String> = table(HARMLESS)
        .filter_map(|(line, _)| Some(format!("{line}: {}", reason(line, &around())?)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// spec DANGER.3: Where nothing is known of the surroundings, plain relative names count as inside
/// the workspace, and a home is still recognised.
#[test]
fn without_surroundings_homes_are_known_and_plain_names_are_inside() {
    let nowhere = Surroundings::default();
    for line in ["rm -rf target", "rm -rf ./build", "rm -rf a/b/../c", "rm -rf /tmp/x", "cat a"] {
        assert_eq!(reason(line, &nowhere), None, "{line}");
    }
    for line in [
        "rm -rf ~",
        "rm -rf $HOME",
        "rm -rf /home/someone",
        "rm -rf ..",
        "rm -rf ../x",
        "rm -rf .",
        "rm -rf *",
        "rm -rf a/../..",
        "rm -rf .git",
        "cat ~/.ssh/id_rsa",
        "cat /Users/x/.npmrc",
        "echo x >> ~/.bashrc",
        "rm -rf /",
        "rm -rf /tmp",
        "rm -rf /tmp/*",
    ] {
        assert!(reason(line, &nowhere).is_some(), "{line}");
    }
}

/// spec DANGER.4: The working directory stands in for the workspace where no root is known, unless
/// it is a home or the system's.
#[test]
fn the_working_directory_stands_in_for_the_workspace() {
    let at = |cwd: &str| Surroundings { cwd: Some(cwd.into()), ..Surroundings::default() };
    assert_eq!(reason("rm -rf /ws/build", &at("/ws")), None);
    assert_eq!(reason("rm -rf build", &at("/ws")), None);
    for (line, cwd) in [
        ("rm -rf build", "/home/u"),
        ("rm -rf x", "/"),
        ("rm -rf x", "/etc"),
        ("rm -rf /ws", "/ws"),
        ("rm -rf /other", "/ws"),
    ] {
        assert!(reason(line, &at(cwd)).is_some(), "{line} in {cwd}");
    }
}

/// spec DANGER.5: A root that the person opened inside a protected place is the workspace, and what
/// lies beside it is not.
#[test]
fn a_root_inside_a_protected_place_is_open() {
    let around = Surroundings {
        cwd: Some("/home/u/.codex/worktrees/a".into()),
        roots: vec!["/home/u/.codex/worktrees/a".into()],
        home: Some("/home/u".into()),
        ..Surroundings::default()
    };
    assert_eq!(reason("echo x > file", &around), None);
    assert_eq!(reason("rm -rf target", &around), None);
    assert!(reason("echo x > ../../config.toml", &around).is_some());
    assert!(reason("echo x > .codex/config.toml", &around).is_some());
}

/// spec DANGER.6: Names are compared by the parts of a path and not by their first letters.
#[test]
fn a_name_that_begins_like_a_root_is_outside_of_it() {
    assert!(reason("rm -rf /home/u/project-two", &around()).is_some());
    assert!(reason("rm -rf /home/u/proj", &around()).is_some());
    assert_eq!(reason("cat ~/.sshrc-notes", &around()), None);
    assert_eq!(reason("rm -rf .github", &around()), None);
}

/// spec DANGER.22: A dangerous command is found inside every wrapper of the table.
#[test]
fn no_wrapper_hides_a_danger() {
    let wrappers = [
        "env",
        "env -i",
        "env -u A B=c",
        "env --unset A",
        "/usr/bin/env",
        "nice",
        "nice -n 5",
        "nice -5",
        "ionice -c 3",
        "timeout 5",
        "timeout -s KILL 5s",
        "timeout --signal=KILL 5",
        "time",
        "time -p",
        "nohup",
        "setsid",
        "setsid -w",
        "stdbuf -o0",
        "stdbuf -oL -eL",
        "sudo",
        "sudo -n",
        "sudo -u bob",
        "sudo -E -H -u bob --",
        "sudo A=b",
        "doas",
        "doas -u bob",
        "pkexec",
        "pkexec --user bob",
        "runuser -u bob --",
        "command",
        "command -p",
        "builtin",
        "exec",
        "exec -a x",
        "chroot /mnt",
        "chroot --userspec=a:b /mnt",
        "unshare -r",
        "nsenter -t 1 -m",
        "flock lock",
        "flock -n lock",
        "strace",
        "strace -f -e trace=file",
        "ltrace -o x",
        "gdb --args",
        "busybox",
        "toybox",
        "find . -exec",
        "xargs",
        "xargs -0 -n 1",
        "xargs -I {}",
        "parallel",
        "parallel -j 4",
        "fd -x",
        "unbuffer",
        "chrt -b 0",
        "taskset -c 0",
        "taskset 1",
        "setarch x86_64",
        "systemd-run --user",
        "xvfb-run -a",
        "poetry run",
        "pipenv run",
        "uv run",
        "bundle exec",
        "direnv exec .",
        "git bisect run",
        "caffeinate -i",
        "script -q log",
        "dbus-run-session --",
        "fakeroot",
        "numactl -N 0",
        "tini --",
        "gosu bob",
        "sshpass -p x",
        "$SUDO",
        "noglob",
        "prlimit --nofile=1",
        "setpriv --reuid 1",
        "firejail --net=none",
        "valgrind -q",
        "perf stat -e x",
        "git submodule foreach",
        "mise exec --",
        "proxychains -q",
        "bwrap --dev /dev --",
    ];
    let dangers = [
        "rm -rf /",
        "rm -rf /home/u/.ssh",
        "mkfs.ext4 /dev/sda1",
        "cat /etc/shadow",
        "git push --force origin main",
        "dd if=x of=/dev/sda",
        "shutdown now",
        "chmod -R 777 /etc",
        "cp x /etc/sudoers",
        "npm publish",
        "crontab x",
    ];
    let mut missed = Vec::new();
    for wrapper in wrappers {
        for danger in dangers {
            let line = format!("{wrapper} {danger}");
            if reason(&line, &around()).is_none() {
                missed.push(line);
            }
            for outer in ["env", "timeout 5", "nice"] {
                let line = format!("{outer} {wrapper} {danger}");
                if reason(&line, &around()).is_none() {
                    missed.push(line);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_wrapper_around_everyday_work_is_not_dangerous() {
    let wrappers =
        ["env A=b", "nice -n 5", "timeout 60", "time", "nohup", "xargs -n 1", "poetry run"];
    let work = ["cargo test", "rm -rf target", "git status", "npm run build", "cat README.md"];
    for wrapper in wrappers {
        for line in work {
            let line = format!("{wrapper} {line}");
            if line.starts_with("xargs") && line.contains("rm -rf") {
                continue;
            }
            assert_eq!(reason(&line, &around()), None, "{line}");
        }
    }
}

/// spec DANGER.7: The danger names the command of the reading that it was found in.
#[test]
fn the_danger_says_in_which_command_it_is() {
    let reading = builder::read("ls && env nice rm -rf / ; pwd");
    let danger = danger::find(&reading, &around()).expect("it is dangerous");
    assert_eq!(danger.command, 1);
    assert_eq!(danger.to_string(), "deletes / and everything in it: the whole system");
}

/// spec DANGER.8: A reason shows nothing that can move the cursor or turn the text around, and is
/// short however long the command is.
#[test]
fn a_reason_is_short_and_plain() {
    let reason = |text: &str| {
        let argv = ["rm".to_owned(), "-rf".to_owned(), text.to_owned()];
        let commands = vec![SimpleCommand::from_argv(&argv)];
        let reading = Reading { reader: Reader::Kernel, commands, opaque: None };
        danger::find(&reading, &around()).expect("it is dangerous").reason
    };
    let odd = reason("/x\u{1b}[2J\u{202e}y\nz");
    assert!(!odd.contains(['\u{1b}', '\u{202e}', '\n']), "{odd:?}");
    assert!(reason(&format!("/{}", "é".repeat(5000))).chars().count() < 250);
}

/// spec DANGER.9: Words of a command that no shell reads mean themselves: what follows a pipe sign
/// among them is an argument.
#[test]
fn without_a_shell_a_pipe_is_an_argument() {
    assert_eq!(words("echo a | sh", &around()), None);
    assert_eq!(words("echo a > /etc/passwd", &around()), None);
    assert!(words("rm -rf /", &around()).is_some());
}

/// spec DANGER.10: Whatever words there are, looking for danger ends and does not fail.
#[test]
fn no_words_make_it_fail() {
    let pieces = [
        "rm",
        "-rf",
        "--",
        "-",
        "",
        "~",
        "/",
        "..",
        "*",
        "$X",
        "${",
        "`",
        "find",
        "-exec",
        "{}",
        ";",
        "+",
        "xargs",
        "-I",
        "env",
        "-S",
        "-C",
        "sudo",
        "-u",
        "git",
        "push",
        "config",
        "-c",
        "a=!b",
        "bash",
        "-lc",
        "curl",
        "-o",
        "é\u{202e}",
        "=",
        ":",
        "://",
        "@",
        "dd",
        "of=",
        "cmd",
        "/c",
        "powershell",
        "-Command",
        "parallel",
        ":::",
        "::::",
        "tar",
        "-C",
        "chmod",
        "4755",
        "…",
        "timeout",
        "kill",
        "docker",
        "run",
        "-v",
        "watch",
        "eval",
        "trap",
        "\\",
        "C:\\",
        "ü",
        "-é",
    ];
    let shapes = [Shape::Literal, Shape::Pattern, Shape::Home, Shape::Dynamic];
    // A plain generator of numbers: the same ones every time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or_default()
    };
    for _ in 0..20_000 {
        let mut line = builder::read("a | b ; c");
        for command in &mut line.commands {
            command.words = (0..next(8))
                .map(|_| {
                    let mut text = pieces[next(pieces.len())].to_owned();
                    if next(4) == 0 {
                        text.push_str(pieces[next(pieces.len())]);
                    }
                    Word { text, shape: shapes[next(4)] }
                })
                .collect();
        }
        let _ = danger::find(&line, &around());
        let _ = danger::find(&line, &Surroundings::default());
        let _ = sandgate_policy::wrapper::unwrapped(&line);
    }
}
