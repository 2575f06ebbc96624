//! Which shell runs a command line, and how it is told to.
//!
//! A shell is looked up in the system's user database and in fixed directories only. The environment
//! (`SHELL`, `PATH`) and the current directory are never asked: what a repository can set must not
//! decide which program reads every command.

use std::path::{Path, PathBuf};

/// The kinds of shells that are understood, by how they take a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShellType {
    /// zsh.
    Zsh,
    /// bash.
    Bash,
    /// A POSIX shell: sh, dash, ash, ksh, mksh.
    Sh,
    /// fish.
    Fish,
    /// PowerShell: pwsh, or powershell.exe as it comes with Windows.
    PowerShell,
    /// cmd.exe.
    Cmd,
}

/// Whether a shell starts as at login and so reads the person's profile first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Login {
    /// With the profile; the usual way, because that is where people set up their tools.
    #[default]
    Yes,
    /// Without it.
    No,
}

/// A shell that exists on this machine.
///
/// ```
/// use sandgate_process::{Login, Shell, ShellType};
///
/// # #[cfg(unix)] {
/// let shell = Shell::named("sh")?;
/// assert_eq!(shell.shell_type(), ShellType::Sh);
/// let command = shell.derive_exec_args("echo hello", Login::No);
/// assert_eq!(command[1..], ["-c", "echo hello"]);
/// # }
/// println!("{}", Shell::named("tcsh").unwrap_err()); // which it knows, and which are here
/// # Ok::<(), sandgate_process::ShellError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shell {
    shell_type: ShellType,
    /// Absolute, and valid UTF-8: it becomes the first element of a command.
    shell_path: PathBuf,
}

/// A shell that was asked for by name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    /// Not a shell, or none that we know how to call.
    #[error("{name:?} is not a known shell; known are {}", known_names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A shell that is not installed.
    #[error("the shell {name:?} is not in any of the system's directories; {}", installed())]
    NotInstalled {
        /// What was asked for.
        name: String,
    },
    /// A path that depends on the current directory.
    #[error("the shell {path:?} is a relative path; give an absolute one or a name such as \"sh\"")]
    RelativePath {
        /// What was asked for.
        path: PathBuf,
    },
    /// A path where nothing is.
    #[error("the shell {path:?} does not exist; {}", installed())]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// A path where something is, but no program.
    #[error("the shell {path:?} is not a file that you may execute; {}", installed())]
    NotExecutable {
        /// What was asked for.
        path: PathBuf,
    },
}

impl Shell {
    /// The person's own shell, as the system's user database has it; where that names nothing usable,
    /// another place of the same shell, and then `/bin/sh`.
    #[cfg(unix)]
    pub fn default_user_shell() -> Self {
        use nix::unistd::{User, getuid};
        let from_database = User::from_uid(getuid()).ok().flatten().map(|user| user.shell);
        Self::from_user_database(from_database.as_deref(), &is_usable)
    }

    /// PowerShell, the newest one first, else cmd.exe. Windows keeps no shell for each person.
    #[cfg(windows)]
    pub fn default_user_shell() -> Self {
        ["pwsh", "powershell", "cmd"]
            .iter()
            .find_map(|name| Self::find(name, &is_usable))
            .unwrap_or_else(|| Self {
                shell_type: ShellType::Cmd,
                shell_path: PathBuf::from(r"C:\Windows\System32\cmd.exe"),
            })
    }

    /// The shell that a person names: `zsh`, or `/usr/bin/fish`.
    ///
    /// # Errors
    /// See [`ShellError`]; each names the thing and what can be used instead.
    pub fn named(name: &str) -> Result<Self, ShellError> {
        let path = Path::new(name);
        let shell_type =
            ShellType::from_path(path).ok_or_else(|| ShellError::Unknown { name: name.into() })?;
        if path.file_name() == Some(path.as_os_str()) {
            return Self::find(name, &is_usable)
                .ok_or_else(|| ShellError::NotInstalled { name: name.into() });
        }
        let shell_path = path.to_owned();
        if !path.is_absolute() {
            return Err(ShellError::RelativePath { path: shell_path });
        }
        if !path.exists() {
            return Err(ShellError::Missing { path: shell_path });
        }
        if !is_usable(path) {
            return Err(ShellError::NotExecutable { path: shell_path });
        }
        Ok(Self { shell_type, shell_path })
    }

    /// What kind of shell it is.
    pub fn shell_type(&self) -> ShellType {
        self.shell_type
    }

    /// Where it is; absolute.
    pub fn shell_path(&self) -> &Path {
        &self.shell_path
    }

    /// The command that makes this shell run a command line: the shell itself, its options, the line.
    pub fn derive_exec_args(&self, command: &str, login: Login) -> Vec<String> {
        let options: &[&str] = match (self.shell_type, login) {
            (ShellType::Zsh | ShellType::Bash | ShellType::Sh, Login::Yes) => &["-lc"],
            (ShellType::Zsh | ShellType::Bash | ShellType::Sh, Login::No) => &["-c"],
            (ShellType::Fish, Login::Yes) => &["-l", "-c"],
            (ShellType::Fish, Login::No) => &["-c"],
            (ShellType::PowerShell, Login::Yes) => &["-Command"],
            (ShellType::PowerShell, Login::No) => &["-NoProfile", "-Command"],
            // cmd.exe has no profile to leave out.
            (ShellType::Cmd, _) => &["/c"],
        };
        let mut args = vec![self.shell_path.to_string_lossy().into_owned()];
        args.extend(options.iter().map(ToString::to_string));
        args.push(command.to_owned());
        args
    }

    #[cfg(unix)]
    fn from_user_database(entry: Option<&Path>, is_usable: &dyn Fn(&Path) -> bool) -> Self {
        let own = entry.and_then(|path| {
            let shell_type = ShellType::from_path(path)?;
            if path.is_absolute() && is_usable(path) {
                return Some(Self { shell_type, shell_path: path.to_owned() });
            }
            Self::find(path.file_name()?.to_str()?, is_usable)
        });
        own.unwrap_or_else(|| Self {
            shell_type: ShellType::Sh,
            shell_path: PathBuf::from("/bin/sh"),
        })
    }

    /// Looks a known name up in the system's own directories.
    fn find(name: &str, is_usable: &dyn Fn(&Path) -> bool) -> Option<Self> {
        let shell_type = ShellType::from_path(Path::new(name))?;
        let mut places = places(name).into_iter();
        places.find(|path| is_usable(path)).map(|shell_path| Self { shell_type, shell_path })
    }
}

/// Base names and what they mean. The POSIX shells all take `-c` and `-lc` alike.
const KNOWN: [(&str, ShellType); 11] = [
    ("zsh", ShellType::Zsh),
    ("bash", ShellType::Bash),
    ("sh", ShellType::Sh),
    ("dash", ShellType::Sh),
    ("ash", ShellType::Sh),
    ("ksh", ShellType::Sh),
    ("mksh", ShellType::Sh),
    ("fish", ShellType::Fish),
    ("pwsh", ShellType::PowerShell),
    ("powershell", ShellType::PowerShell),
    ("cmd", ShellType::Cmd),
];

impl ShellType {
    /// By the base name; `.exe` and, in names that have it, the case of letters do not matter.
    fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let folded = name.to_ascii_lowercase();
        let stem =
            folded.strip_suffix(".exe").unwrap_or(if cfg!(windows) { &folded } else { name });
        KNOWN.iter().find(|(known, _)| *known == stem).map(|(_, shell_type)| *shell_type)
    }
}

/// Where a bare name is looked for: the system first, then the package managers.
#[cfg(unix)]
const DIRECTORIES: [&str; 6] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/run/current-system/sw/bin",
];

#[cfg(unix)]
fn places(name: &str) -> Vec<PathBuf> {
    DIRECTORIES.iter().map(|directory| Path::new(directory).join(name)).collect()
}

/// Where Windows shells are, below the system drive's own directories.
#[cfg(windows)]
const PLACES: [(&str, WindowsBase, &str); 8] = [
    ("pwsh", WindowsBase::ProgramFiles, r"PowerShell\7\pwsh.exe"),
    ("pwsh", WindowsBase::ProgramFiles, r"PowerShell\7-preview\pwsh.exe"),
    ("pwsh", WindowsBase::ProgramFiles, r"PowerShell\6\pwsh.exe"),
    ("powershell", WindowsBase::System, r"System32\WindowsPowerShell\v1.0\powershell.exe"),
    ("cmd", WindowsBase::System, r"System32\cmd.exe"),
    ("bash", WindowsBase::ProgramFiles, r"Git\bin\bash.exe"),
    ("sh", WindowsBase::ProgramFiles, r"Git\bin\sh.exe"),
    ("bash", WindowsBase::System, r"System32\bash.exe"),
];

/// A directory that Windows may have put on another drive. The usual place is asked first, so that
/// the environment has a say only on machines where that place does not exist.
#[cfg(windows)]
#[derive(Clone, Copy)]
enum WindowsBase {
    ProgramFiles,
    System,
}

#[cfg(windows)]
impl WindowsBase {
    fn directory(self) -> PathBuf {
        let (usual, variable) = match self {
            Self::ProgramFiles => (r"C:\Program Files", "ProgramFiles"),
            Self::System => (r"C:\Windows", "SystemRoot"),
        };
        let usual = PathBuf::from(usual);
        if usual.is_dir() {
            return usual;
        }
        let moved = std::env::var_os(variable).map(PathBuf::from);
        moved.filter(|directory| directory.is_absolute()).unwrap_or(usual)
    }
}

#[cfg(windows)]
fn places(name: &str) -> Vec<PathBuf> {
    let folded = name.to_ascii_lowercase();
    let stem = folded.strip_suffix(".exe").unwrap_or(&folded);
    let places = PLACES.iter().filter(|(known, _, _)| *known == stem);
    places.map(|(_, base, below)| base.directory().join(below)).collect()
}

/// A program whose name can be an argument.
fn is_usable(path: &Path) -> bool {
    path.to_str().is_some() && is_executable_file(path)
}

/// Whether there is a file, behind links too, that this person may execute.
#[cfg(unix)]
fn is_executable_file(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Whether there is a file, behind links too. Windows tells programs by their names.
#[cfg(windows)]
fn is_executable_file(path: &Path) -> bool {
    path.is_file()
}

fn known_names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

/// The end of an error message: what the person can use instead.
fn installed() -> String {
    let found = KNOWN.iter().filter_map(|(name, _)| Shell::find(name, &is_usable));
    let paths: Vec<String> = found.map(|shell| shell.shell_path.display().to_string()).collect();
    match paths.is_empty() {
        true => "no known shell is installed".to_owned(),
        false => format!("installed are {}", paths.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(shell_type: ShellType, path: &str) -> Shell {
        Shell { shell_type, shell_path: path.into() }
    }

    /// spec SHELL.7: A command line runs through zsh, bash and the POSIX shells with `-lc`, through
    /// fish with `-l -c`, through PowerShell with `-Command` and through cmd with `/c`; without login
    /// that is `-c`, `-c`, `-NoProfile -Command` and `/c`.
    #[test]
    fn every_kind_of_shell_is_called_in_its_own_way() {
        let cases: [(ShellType, &[&str], &[&str]); 6] = [
            (ShellType::Zsh, &["-lc"], &["-c"]),
            (ShellType::Bash, &["-lc"], &["-c"]),
            (ShellType::Sh, &["-lc"], &["-c"]),
            (ShellType::Fish, &["-l", "-c"], &["-c"]),
            (ShellType::PowerShell, &["-Command"], &["-NoProfile", "-Command"]),
            (ShellType::Cmd, &["/c"], &["/c"]),
        ];
        for (shell_type, with_login, without_login) in cases {
            let shell = shell(shell_type, "/opt/shell");
            for (login, options) in [(Login::Yes, with_login), (Login::No, without_login)] {
                let expected = [&["/opt/shell"], options, &["echo 'a  b' | cat"]].concat();
                assert_eq!(shell.derive_exec_args("echo 'a  b' | cat", login), expected);
            }
        }
    }

    #[test]
    fn the_base_name_tells_the_kind() {
        let kind = |path: &str| ShellType::from_path(Path::new(path));
        assert_eq!(kind("/usr/local/bin/zsh"), Some(ShellType::Zsh));
        for posix in ["sh", "dash", "ash", "ksh", "mksh"] {
            assert_eq!(kind(&format!("/bin/{posix}")), Some(ShellType::Sh));
        }
        assert_eq!(kind("/mnt/c/Windows/System32/CMD.EXE"), Some(ShellType::Cmd));
        assert_eq!(kind("powershell.exe"), Some(ShellType::PowerShell));
        for other in ["/usr/sbin/nologin", "/bin/false", "/bin/shx", "/bin/python3", "/", ""] {
            assert_eq!(kind(other), None, "{other}");
        }
    }

    /// spec SHELL.2: A shell that the user database names but that is not there is looked for in the
    /// system's other directories.
    #[cfg(unix)]
    #[test]
    fn a_shell_that_moved_is_found_elsewhere() {
        let only_here = |path: &Path| path == Path::new("/opt/homebrew/bin/fish");
        let found = Shell::from_user_database(Some(Path::new("/usr/bin/fish")), &only_here);
        assert_eq!(found, shell(ShellType::Fish, "/opt/homebrew/bin/fish"));
        let anywhere = |_: &Path| true;
        let found = Shell::from_user_database(Some(Path::new("mine/zsh")), &anywhere);
        assert_eq!(found, shell(ShellType::Zsh, "/bin/zsh"));
    }

    /// spec SHELL.3: Where the user database names no usable shell (nologin, false, one that is not
    /// installed, nothing at all) commands run through `/bin/sh`.
    #[cfg(unix)]
    #[test]
    fn without_a_usable_shell_it_is_sh() {
        let sh = shell(ShellType::Sh, "/bin/sh");
        let everything = |_: &Path| true;
        let nothing = |_: &Path| false;
        for entry in ["/usr/sbin/nologin", "/bin/false", "", "relative/nologin"] {
            assert_eq!(Shell::from_user_database(Some(Path::new(entry)), &everything), sh);
        }
        assert_eq!(Shell::from_user_database(Some(Path::new("/bin/zsh")), &nothing), sh);
        assert_eq!(Shell::from_user_database(None, &everything), sh);
    }

    #[cfg(unix)]
    #[test]
    fn a_usable_shell_from_the_user_database_is_taken_as_it_is() {
        let everything = |_: &Path| true;
        let found = Shell::from_user_database(Some(Path::new("/home/me/bin/zsh")), &everything);
        assert_eq!(found, shell(ShellType::Zsh, "/home/me/bin/zsh"));
    }
}
