//! Shells are found where the system keeps them, and real ones run real command lines.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "real shells are run with the arguments that were derived for them, and nothing else"
)]

use sandgate_process::{Login, Shell, ShellError, ShellType};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs a single test of this file in a process of its own, where it finds `variable` set: the way
/// to look at the library under another environment and from another directory.
fn in_another_process(test: &str, variable: &str, env: &[(&str, &Path)], cwd: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(env.iter().copied())
        .env(variable, "1")
        .current_dir(cwd)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = printed.split_once("ANSWER<").expect("the other process answers");
    rest.split_once('>').unwrap().0.to_owned()
}

/// A directory with an executable of that name, as a repository could carry it.
fn directory_with(name: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, "#!/bin/sh\necho pwned\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    (dir, path)
}

/// spec SHELL.1: Commands run through the shell that the system's user database has for the person,
/// whatever the environment says.
#[test]
fn the_default_shell_comes_from_the_user_database() {
    if std::env::var_os("PRINT_DEFAULT_SHELL").is_some() {
        println!("ANSWER<{}>", Shell::default_user_shell().shell_path().display());
        return;
    }
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let Some(entry) = entry.into_iter().find(|fields| fields.get(2) == Some(&uid.as_str())) else {
        println!("SKIPPED: this person is not in /etc/passwd");
        return;
    };
    let expected = match Shell::named(entry[6]) {
        Ok(shell) => shell.shell_path().to_owned(),
        Err(error) => {
            println!("SKIPPED: the shell in /etc/passwd cannot be used: {error}");
            return;
        }
    };
    let (dir, evil) = directory_with("zsh", 0o755);
    let env = [("SHELL", evil.as_path()), ("PATH", dir.path())];
    let test = "the_default_shell_comes_from_the_user_database";
    let found = in_another_process(test, "PRINT_DEFAULT_SHELL", &env, dir.path());
    assert_eq!(Path::new(&found), expected);
}

/// spec SHELL.4: A shell named without a path is looked for in the system's directories, never in
/// `PATH` or the current directory.
#[test]
fn a_name_is_never_looked_up_in_path_or_the_current_directory() {
    if std::env::var_os("PRINT_NAMED_SHELL").is_some() {
        let found = Shell::named("mksh").map(|shell| shell.shell_path().display().to_string());
        println!("ANSWER<{}>", found.unwrap_or_else(|error| error.to_string()));
        return;
    }
    let (dir, evil) = directory_with("mksh", 0o755);
    let env = [("PATH", dir.path())];
    let test = "a_name_is_never_looked_up_in_path_or_the_current_directory";
    let found = in_another_process(test, "PRINT_NAMED_SHELL", &env, dir.path());
    assert!(!found.contains(evil.to_str().unwrap()), "{found}");
    assert!(found.starts_with('/') || found.contains("mksh"), "{found}");
    let sh = Shell::named("sh").unwrap();
    assert_eq!((sh.shell_type(), sh.shell_path()), (ShellType::Sh, Path::new("/bin/sh")));
}

/// spec SHELL.5: A shell named by a path must be absolute, exist, be an executable file and have a
/// known name.
#[test]
fn a_path_must_lead_to_a_known_executable() {
    let (_dir, usable) = directory_with("bash", 0o755);
    let shell = Shell::named(usable.to_str().unwrap()).unwrap();
    assert_eq!((shell.shell_type(), shell.shell_path()), (ShellType::Bash, usable.as_path()));

    let named = |path: &Path| Shell::named(path.to_str().unwrap()).unwrap_err();
    let relative = PathBuf::from("./bin/zsh");
    assert_eq!(named(&relative), ShellError::RelativePath { path: relative });
    let missing = usable.with_file_name("zsh");
    assert_eq!(named(&missing), ShellError::Missing { path: missing });
    let (dir, plain) = directory_with("bash", 0o644);
    assert_eq!(named(&plain), ShellError::NotExecutable { path: plain });
    let directory = dir.path().join("fish");
    fs::create_dir(&directory).unwrap();
    assert_eq!(named(&directory), ShellError::NotExecutable { path: directory });
    let (_dir, other) = directory_with("python3", 0o755);
    assert_eq!(named(&other), ShellError::Unknown { name: other.to_str().unwrap().to_owned() });
}

/// spec SHELL.6: An error about a shell names what was asked for and what can be used instead.
#[test]
fn errors_name_the_thing_and_the_way_out() {
    let message = |name: &str| Shell::named(name).unwrap_err().to_string();
    let unknown = message("tcsh");
    assert!(unknown.contains("\"tcsh\"") && unknown.contains("zsh, bash, sh"), "{unknown}");
    let missing = message("/nowhere/bin/bash");
    assert!(missing.contains("\"/nowhere/bin/bash\"") && missing.contains("/bin/sh"), "{missing}");
    let relative = message("bin/bash");
    assert!(relative.contains("\"bin/bash\"") && relative.contains("absolute"), "{relative}");
    let not_installed = message("cmd");
    assert!(not_installed.contains("\"cmd\"") && not_installed.contains("/bin/sh"));
    assert!(message("").contains("\"\""));
    assert!(message("\u{1b}[31m").contains("\\u{1b}"), "control characters are not printed");
}

fn run(shell: &Shell, script: &str, login: Login, home: &Path) -> Output {
    let args = shell.derive_exec_args(script, login);
    let mut command = Command::new(&args[0]);
    command.args(&args[1..]).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.current_dir(home).output().unwrap()
}

/// The tests that every shell goes through, each by itself so that one that is missing is missed.
macro_rules! real_shells {
    ($($name:ident),*) => {$(
        mod $name {
            /// spec SHELL.8: Every shell runs a command line as it was written, quotes and all, and
            /// its exit code is the command line's.
            #[test]
            fn runs_a_command_line_as_it_was_written() {
                super::if_installed(stringify!($name), super::runs_as_written);
            }

            /// spec SHELL.9: With login a shell reads the person's profile first, without login it
            /// does not.
            #[test]
            fn reads_the_profile_only_with_login() {
                super::if_installed(stringify!($name), super::reads_profile_with_login_only);
            }
        }
    )*};
}

real_shells!(sh, bash, dash, zsh, fish, ksh, mksh, pwsh);

fn if_installed(name: &str, test: fn(&Shell, &Path)) {
    match Shell::named(name) {
        Ok(shell) => test(&shell, tempfile::tempdir().unwrap().path()),
        Err(error) => {
            assert_ne!(name, "sh", "every Unix has sh");
            assert_eq!(error, ShellError::NotInstalled { name: name.to_owned() });
            println!("SKIPPED: {name} is not installed");
        }
    }
}

fn runs_as_written(shell: &Shell, home: &Path) {
    let script = match shell.shell_type() {
        ShellType::PowerShell => "\"it's  ok\".ToUpper(); exit 7",
        _ => "printf '%s\\n' \"it's  ok\" | tr a-z A-Z; exit 7",
    };
    for login in [Login::Yes, Login::No] {
        let output = run(shell, script, login, home);
        assert_eq!(output.stdout, b"IT'S  OK\n", "{login:?}: {output:?}");
        assert_eq!(output.status.code(), Some(7), "{login:?}");
    }
}

fn reads_profile_with_login_only(shell: &Shell, home: &Path) {
    for profile in [".profile", ".bash_profile", ".zprofile"] {
        fs::write(home.join(profile), "SEEN=profile\n").unwrap();
    }
    let script = match shell.shell_type() {
        ShellType::Fish => "status is-login; and echo profile; or echo",
        ShellType::PowerShell => {
            let place = run(shell, "$PROFILE.CurrentUserAllHosts", Login::No, home).stdout;
            let profile = PathBuf::from(String::from_utf8(place).unwrap().trim_end());
            fs::create_dir_all(profile.parent().unwrap()).unwrap();
            fs::write(profile, "$SEEN = 'profile'\n").unwrap();
            "\"$SEEN\""
        }
        _ => "echo $SEEN",
    };
    let seen = |login| run(shell, script, login, home).stdout;
    assert_eq!(seen(Login::Yes), b"profile\n");
    assert_eq!(seen(Login::No), b"\n");
}
