//! What `sandgate run` does with a command, and how it ends.

#![cfg(unix)]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use support::{FULL_ACCESS, Running, UNCONFINED, World, run_words, skipped};

/// spec RUN.1: One word is a script for the person's own shell.
#[test]
fn one_word_is_a_script() {
    let outcome = World::new().run(&["--", "echo hello from the cage | tr a-z A-Z"]);
    assert_eq!(outcome.stdout(), "HELLO FROM THE CAGE\n");
    assert_eq!(outcome.code, Some(0));
}

/// spec RUN.2: Several words are a program and its arguments, which no shell ever reads.
#[test]
fn several_words_are_never_read_by_a_shell() {
    let outcome = World::new().run(&["--", "printf", "%s|", "$HOME", "a  b", "*", "; exit 9"]);
    assert_eq!(outcome.stdout(), "$HOME|a  b|*|; exit 9|");
    assert_eq!(outcome.code, Some(0));
}

/// spec RUN.3: Before a command starts that nothing confines, one line on standard error says so.
#[test]
fn an_unconfined_command_is_announced() {
    let world = World::new();
    for format in [&[][..], &["--json"]] {
        let outcome = world.run(&[format, &FULL_ACCESS, &["--", "echo hi"]].concat());
        assert_eq!(outcome.stderr, format!("{UNCONFINED}\n"));
        let outcome = world.run(&[format, &["--", "echo hi"]].concat());
        assert_eq!(outcome.stderr, "");
    }
}

/// spec RUN.20: The exit code is the command's own; when signal N ended the command it is 128+N.
#[test]
fn the_exit_code_is_the_commands_own() {
    let world = World::new();
    for (script, code) in [
        ("true", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("kill -INT $$", 130),
    ] {
        let outcome = world.run(&["--shell", "sh", "--", script]);
        assert_eq!(outcome.code, Some(code), "{script}");
        assert_eq!(outcome.notes(), "", "{script}");
    }
}

/// spec RUN.21: A program that does not exist ends in exit code 127, and the error names it and where
/// it was looked for.
#[test]
fn a_program_that_does_not_exist_is_127() {
    let world = World::new();
    let mut command = world.program(run_words(&["--", "no-such-program", "x"]));
    let outcome = Running::start(command.env("PATH", "/somewhere:/else")).wait();
    assert_eq!(outcome.code, Some(127));
    let expected =
        "sandgate: there is no program called \"no-such-program\" in PATH (/somewhere:/else)\n";
    assert!(outcome.stderr.starts_with(expected), "{}", outcome.stderr);

    let outcome = world.run(&["--", "./no-such-program", "x"]);
    assert_eq!(outcome.code, Some(127));
    assert!(outcome.stderr.contains("./no-such-program"), "{}", outcome.stderr);
}

/// spec RUN.22: A file that cannot be executed ends in exit code 126, and the error names it and the
/// reason; so does a script whose interpreter does not exist.
#[test]
fn a_file_that_cannot_be_executed_is_126() {
    let world = World::new();
    for (name, mode, text, reason) in [
        ("plain", 0o644, "#!/bin/sh\n", "not marked as executable"),
        ("orphan", 0o755, "#!/no/such/interpreter\n", "interpreter"),
        ("garbage", 0o755, "\u{1}\u{2}\u{3}", "neither a program"),
    ] {
        let file = world.path(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let outcome = world.run(&["--", &format!("./{name}"), "x"]);
        assert_eq!(outcome.code, Some(126), "{name}");
        let said = outcome.stderr.lines().last().unwrap();
        assert!(said.contains(name) && said.contains(reason), "{said}");
    }
}

/// spec RUN.23: When sandgate itself fails the exit code is 125, and the error says what happened.
#[test]
fn a_directory_that_does_not_exist_is_125() {
    let world = World::new();
    let missing = world.path("missing");
    let outcome = world.run(&["--cd", missing.to_str().unwrap(), "--", "pwd"]);
    assert_eq!(outcome.code, Some(125));
    let expected = format!("sandgate: cannot work in {}: there is no such", missing.display());
    assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--cd"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout(), "");
}

/// spec RUN.24: A command line that makes no sense ends in exit code 2 and says what to write instead.
#[test]
fn a_command_line_that_makes_no_sense_is_2() {
    let world = World::new();
    for (arguments, said) in [
        (&["run"][..], "sandgate run [OPTIONS] -- COMMAND..."),
        (&["run", "--"], "sandgate run [OPTIONS] -- COMMAND..."),
        (&["run", "--", ""], "the command is empty"),
        (&["run", "--", " \n"], "the command is empty"),
        (&["run", "--", "", "x"], "the command is empty"),
        (&["run", "echo", "hi"], "sandgate run -- echo"),
        (&["run", "--timeout-ms", "soon", "--", "true"], "--timeout-ms"),
        (&["run", "--tiemout-ms", "1", "--", "true"], "a similar argument exists: '--timeout-ms'"),
        (&["runn", "--", "true"], "a similar subcommand exists: 'run'"),
        (&["run", "--shell", "ls", "--", "true"], "not a known shell; known are"),
        (&["run", "--shell", "./sh", "--", "true"], "relative path"),
    ] {
        let outcome = world.sandgate(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}");
        assert!(outcome.stderr.contains(said), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout(), "", "{arguments:?}");
    }
}

/// spec RUN.4: `--shell` and `--no-login` with several words are refused with an explanation, because
/// no shell would read them.
#[test]
fn a_shell_for_several_words_is_refused() {
    let world = World::new();
    let both = ["--shell", "bash", "--no-login"];
    for options in [&both[..], &both[..2], &both[2..]] {
        let outcome = world.run(&[options, &["--", "ls", "-la"]].concat());
        assert_eq!(outcome.code, Some(2));
        let options = options.join(" ");
        for expected in [
            format!("{options} is for a script, which is one word"),
            format!("sandgate run {options} -- 'ls -la'"),
            format!("leave {options} out"),
        ] {
            assert!(outcome.stderr.contains(&expected), "{}", outcome.stderr);
        }
    }
}

/// spec RUN.5: A word that is not UTF-8 is refused and shown with its bytes.
#[test]
fn a_word_that_is_not_text_is_shown() {
    let words = ["run", "--", "cat"].map(OsStr::new);
    let world = World::new();
    let command = &mut world.program(words.into_iter().chain([OsStr::from_bytes(b"caf\xe9")]));
    let outcome = Running::start(command).wait();
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains(r"word 2 of the command is not valid UTF-8: caf\xe9"));
}

/// spec RUN.6: What the command writes to standard output and to standard error goes to the same
/// stream of sandgate.
#[test]
fn the_two_streams_stay_apart() {
    let outcome = World::new().run(&["--shell", "sh", "--", "echo out; echo err >&2"]);
    assert_eq!((outcome.stdout(), outcome.notes().as_str()), ("out\n", "err\n"));
}

/// spec RUN.7: A command reads nothing, unless `--stdin` passes sandgate's own standard input on.
#[test]
fn standard_input_is_passed_on_only_when_asked_for() {
    let world = World::new();
    for (option, seen) in [(&[][..], "[]"), (&["--stdin"], "[a word]")] {
        let arguments = [option, &["--shell", "sh", "--", "printf '[%s]' \"$(cat)\""]].concat();
        let mut running =
            Running::start(world.program(run_words(&arguments)).stdin(Stdio::piped()));
        let mut stdin = running.child.stdin.take().unwrap();
        // Nobody may be reading.
        let _ = stdin.write_all(b"a word");
        drop(stdin);
        assert_eq!(running.wait().stdout(), seen);
    }
}

/// spec RUN.8: `--cd` names the directory that the command runs in; without it that is sandgate's own.
#[test]
fn the_command_runs_where_it_is_told_to() {
    let world = World::new();
    let home = fs::canonicalize(world.home()).unwrap();
    let elsewhere = home.join("else where");
    fs::create_dir(&elsewhere).unwrap();
    let pwd = |arguments: &[&str]| world.run(arguments).stdout().trim_end().to_owned();
    assert_eq!(Path::new(&pwd(&["--", "pwd -P"])), home);
    assert_eq!(Path::new(&pwd(&["--cd", "else where", "--", "pwd -P"])), elsewhere);
    let absolute = elsewhere.to_str().unwrap();
    assert_eq!(Path::new(&pwd(&["--cd", absolute, "--", "pwd", "-P"])), elsewhere);
}

#[test]
fn a_relative_program_is_found_from_the_directory_of_the_command() {
    let world = World::new();
    fs::create_dir(world.path("bin")).unwrap();
    let tool = world.path("bin/tool");
    fs::write(&tool, "#!/bin/sh\necho \"tool got $1\"\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = world.run(&["--cd", "bin", "--", "./tool", "one"]);
    assert_eq!(outcome.stdout(), "tool got one\n");
}

/// spec RUN.9: `--shell` names the shell that reads the script.
#[test]
fn a_script_is_read_by_the_shell_that_was_named() {
    let world = World::new();
    for (shell, script, seen) in [
        ("bash", "a=(1 2 3); echo ${#a[@]}${BASH_VERSION:+ bash}", "3 bash\n"),
        ("dash", "echo plain${BASH_VERSION}${ZSH_VERSION}", "plain\n"),
        ("zsh", "a=(1 2 3); echo $a[3]${ZSH_VERSION:+ zsh}", "3 zsh\n"),
        ("fish", "set a 1 2 3; test -n \"$version\"; and echo $a[3] fish", "3 fish\n"),
    ] {
        let is_here = |directory: &str| Path::new(directory).join(shell).exists();
        if !["/bin", "/usr/bin", "/usr/local/bin"].into_iter().any(is_here) {
            skipped(&format!("{shell} is not installed, so `--shell {shell}` was not tried"));
            continue;
        }
        for option in [&[][..], &["--no-login"]] {
            let outcome = world.run(&[&["--shell", shell], option, &["--", script]].concat());
            assert_eq!((outcome.stdout(), outcome.code), (seen, Some(0)), "{shell}");
        }
    }
}

/// spec RUN.10: The shell reads the person's profile first, unless `--no-login` is given.
#[test]
fn the_profile_is_read_unless_it_is_not_wanted() {
    let world = World::new();
    fs::write(world.path(".profile"), "WORD=from-the-profile\n").unwrap();
    let script = ["--shell", "sh", "--", "echo \"[$WORD]\""];
    assert_eq!(world.run(&script).stdout(), "[from-the-profile]\n");
    assert_eq!(world.run(&[&["--no-login"][..], &script].concat()).stdout(), "[]\n");
}

/// spec RUN.11: The command has the environment of sandgate without the variables whose names look like
/// secrets, and with those by which a program knows that it is confined.
#[test]
fn the_environment_is_passed_on_but_for_secrets() {
    let world = World::new();
    let variables = |options: &[&str]| {
        // Not known to be safe, so that nothing is set to keep git from running programs.
        let words = [options, &["--shell", "sh", "--no-login", "--", "unset PWD; exec env -0"]];
        let mut command = world.program(run_words(&words.concat()));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("WORD", "a\nb =c");
        command.env("API_TOKEN", "secret").env("CODEX_HOME", world.path(".codex"));
        let outcome = Running::start(&mut command).wait();
        let variables = outcome.stdout().split_terminator('\0').map(str::to_owned);
        variables.filter(|line| !line.starts_with("CODEX_HOME=")).collect::<BTreeSet<String>>()
    };
    let plain = BTreeSet::from(["PATH=/usr/bin:/bin", "WORD=a\nb =c"].map(str::to_owned));
    assert_eq!(variables(&FULL_ACCESS), plain);
    let confined = variables(&[]);
    let mut expected = plain;
    let added = ["CODEX_SANDBOX=linux", "CODEX_SANDBOX_NETWORK_DISABLED=1"];
    expected.extend(added.map(str::to_owned));
    assert_eq!(confined, expected);
}
