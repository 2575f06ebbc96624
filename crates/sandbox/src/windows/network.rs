//! With the network off on Windows: variables and programs that tell well-behaved tools so.
//!
//! Windows closes the network to a process only by a rule of its firewall, which takes an
//! administrator. What is here keeps honest tools from trying; it holds nothing that does not want
//! to be held, and `sandgate sandbox --status` says so.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

/// Nothing answers on the port of the discard protocol.
const NOWHERE: &str = "http://127.0.0.1:9";

/// What is set, and to what.
const VARIABLES: [(&str, &str); 12] = [
    ("ALL_PROXY", NOWHERE),
    ("CARGO_NET_OFFLINE", "true"),
    ("FTP_PROXY", NOWHERE),
    ("GIT_ALLOW_PROTOCOL", "file"),
    ("GOPROXY", "off"),
    ("HTTPS_PROXY", NOWHERE),
    ("HTTP_PROXY", NOWHERE),
    ("NO_PROXY", "localhost,127.0.0.1,::1"),
    ("NPM_CONFIG_OFFLINE", "true"),
    ("PIP_NO_INDEX", "1"),
    ("UV_OFFLINE", "1"),
    ("YARN_ENABLE_NETWORK", "false"),
];

/// Programs that heed no variable, so that others stand before them in `PATH`.
const STUBBED: [&str; 7] = ["ftp", "rsync", "scp", "sftp", "ssh", "telnet", "tftp"];

/// What stands there. A batch file of a name is found before an `.exe` of it in a later directory.
const STUB: &str = "@echo off\r\n\
    echo %~n0: the network is off in this sandbox 1>&2\r\n\
    exit /b 1\r\n";

/// Which extensions a name is tried with where the environment does not say.
const PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// Sets the variables. Their names have no case here: other spellings of one are taken out, because
/// a program that finds a name twice may take either, or stop.
pub fn close(env: &mut BTreeMap<OsString, OsString>, stubs: &Path) {
    for (name, value) in VARIABLES {
        replace(env, name, value.into());
    }
    let mut path = stubs.as_os_str().to_owned();
    if let Some(old) = value(env, "PATH").filter(|old| !old.is_empty()) {
        path.push(";");
        path.push(old);
    }
    replace(env, "PATH", path);
    let extensions = value(env, "PATHEXT").and_then(OsStr::to_str).unwrap_or(PATHEXT);
    let first = [".BAT", ".CMD"];
    let rest = extensions.split(';').filter(|extension| {
        !extension.is_empty() && !first.iter().any(|first| first.eq_ignore_ascii_case(extension))
    });
    let extensions: Vec<&str> = first.into_iter().chain(rest).collect();
    let extensions = extensions.join(";");
    replace(env, "PATHEXT", extensions.into());
}

/// Puts the programs that stand in for others into a directory.
///
/// # Errors
/// When they cannot be written.
pub fn write_stubs(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for name in STUBBED {
        for extension in ["bat", "cmd"] {
            let file = directory.join(name).with_extension(extension);
            // What is there already may be in use by another session.
            if std::fs::read(&file).is_ok_and(|text| text == STUB.as_bytes()) {
                continue;
            }
            std::fs::write(file, STUB)?;
        }
    }
    Ok(())
}

fn value<'a>(env: &'a BTreeMap<OsString, OsString>, name: &str) -> Option<&'a OsStr> {
    let same = |(key, _): &(&OsString, &OsString)| key.eq_ignore_ascii_case(name);
    env.iter().find(same).map(|(_, value)| value.as_os_str())
}

fn replace(env: &mut BTreeMap<OsString, OsString>, name: &str, value: OsString) {
    env.retain(|key, _| !key.eq_ignore_ascii_case(name));
    env.insert(name.into(), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec PLATFORMS.30: With the network off on Windows every proxy variable leads nowhere, however
    /// it was spelled, package managers are told to stay offline, and programs that say so and fail
    /// stand before `ssh` and its kin.
    #[test]
    fn tools_are_told_that_the_network_is_off() {
        let pairs = [
            ("https_proxy", "http://proxy:3128"),
            ("Path", r"C:\Windows\System32"),
            ("PathExt", ".COM;.EXE;.cmd;.PY"),
            ("TEMP", r"C:\T"),
            ("http_proxy", "http://proxy:3128"),
        ];
        let mut env = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        close(&mut env, Path::new(r"C:\stubs"));
        let shown = |(name, value): (&OsString, &OsString)| {
            format!("{}={}\n", name.display(), value.display())
        };
        insta::assert_snapshot!("network_off", env.iter().map(shown).collect::<String>());
        let stubs = tempfile::tempdir().unwrap();
        write_stubs(stubs.path()).unwrap();
        write_stubs(stubs.path()).unwrap();
        for file in ["ssh.bat", "ssh.cmd", "scp.cmd", "sftp.bat"] {
            let text = std::fs::read_to_string(stubs.path().join(file)).unwrap();
            assert!(text.ends_with("exit /b 1\r\n"), "{text}");
        }
    }

    #[test]
    fn an_environment_without_a_path_gets_one() {
        let mut env = BTreeMap::new();
        close(&mut env, Path::new(r"C:\stubs"));
        assert_eq!(env[OsStr::new("PATH")], r"C:\stubs");
        assert_eq!(env[OsStr::new("PATHEXT")], ".BAT;.CMD;.COM;.EXE");
    }
}
