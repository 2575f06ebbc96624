//! The one place where names are looked up: the working directory, the shell and the program.
//!
//! What is found travels on as data, and no later stage looks a name up again. What was judged is
//! therefore what runs.

use crate::error::RuntimeError;
use crate::request::CommandLine;
use sandgate_process::{Shell, SpawnError};
use sandgate_protocol::{ExecExpiration, ExecParams, SandboxPermissions};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

type Environment = BTreeMap<OsString, OsString>;

/// Turns a request into a command in which every name has been looked up. `shell` reads the scripts
/// that name none.
pub(crate) fn resolve(
    command: CommandLine,
    shell: &Shell,
    cwd: &Path,
    env: Environment,
    expiration: ExecExpiration,
) -> Result<ExecParams, RuntimeError> {
    resolve_words(words(command, shell)?, cwd, env, expiration)
}

/// The same for a program and its arguments, the program first.
pub(crate) fn resolve_words(
    command: Vec<String>,
    cwd: &Path,
    env: Environment,
    expiration: ExecExpiration,
) -> Result<ExecParams, RuntimeError> {
    let cwd = directory(cwd)?;
    let name = command.first().filter(|name| !name.is_empty()).ok_or(SpawnError::EmptyCommand)?;
    let program = program(name, &cwd, &env)?;
    refuse_words(&command)?;
    Ok(ExecParams {
        command,
        program,
        cwd,
        env,
        expiration,
        sandbox_permissions: SandboxPermissions::UseDefault,
        justification: None,
        arg0: None,
    })
}

/// The command as a program and its arguments; a script becomes the shell that reads it.
fn words(command: CommandLine, shell: &Shell) -> Result<Vec<String>, RuntimeError> {
    match command {
        CommandLine::Script { text, .. } if text.trim().is_empty() => {
            Err(SpawnError::EmptyCommand.into())
        }
        CommandLine::Script { text, shell: Some(name), login } => {
            Ok(Shell::named(&name)?.derive_exec_args(&text, login))
        }
        CommandLine::Script { text, shell: None, login } => {
            Ok(shell.derive_exec_args(&text, login))
        }
        CommandLine::Argv(words) => Ok(words),
    }
}

/// The canonical form of a directory that can be worked in.
pub(crate) fn directory(named: &Path) -> Result<PathBuf, SpawnError> {
    refuse_nul("the working directory", named.as_os_str())?;
    let canonical = dunce::canonicalize(named).map_err(|error| match error.kind() {
        kind @ io::ErrorKind::NotFound => io::Error::new(kind, "there is no such directory"),
        kind @ io::ErrorKind::NotADirectory => io::Error::new(kind, "a part of the path is a file"),
        _ => error,
    });
    let checked = canonical.and_then(|canonical| match std::fs::metadata(&canonical)?.is_dir() {
        true => Ok(canonical),
        false => Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory")),
    });
    checked.map_err(|source| SpawnError::Directory { cwd: named.to_owned(), source })
}

/// The file that a program's name stands for.
fn program(name: &str, cwd: &Path, env: &Environment) -> Result<PathBuf, RuntimeError> {
    refuse_nul("the program's name", OsStr::new(name))?;
    match name.contains(std::path::is_separator) {
        true => Ok(at_path(cwd.join(name))?),
        false => in_path(name, variable(env, "PATH").unwrap_or_default()),
    }
}

/// The program at a path that was named. The path is kept as it is, because a program behind a link
/// may look at its own name to know what it is to do.
fn at_path(named: PathBuf) -> Result<PathBuf, SpawnError> {
    let mut in_the_way = None;
    for candidate in candidates(&named) {
        match look(&candidate) {
            Found::Program => return Ok(candidate),
            Found::PlainFile(hint) | Found::Other(hint) => in_the_way = Some(hint),
            Found::Nothing => {}
        }
    }
    Err(match in_the_way {
        Some(hint) => SpawnError::NotExecutable { program: named, hint },
        None => SpawnError::ProgramNotFound { program: named },
    })
}

/// The first program of a name in the directories of `path`.
fn in_path(name: &str, path: &OsStr) -> Result<PathBuf, RuntimeError> {
    // An empty or relative entry means whatever directory the command happens to be in, so that a
    // repository could bring its own `ls`.
    let directories: Vec<PathBuf> =
        std::env::split_paths(path).filter(|directory| directory.is_absolute()).collect();
    let mut in_the_way = None;
    for candidate in directories.iter().flat_map(|directory| candidates(&directory.join(name))) {
        match look(&candidate) {
            Found::Program => return Ok(candidate),
            Found::PlainFile(hint) => in_the_way = in_the_way.or(Some((candidate, hint))),
            // A directory of that name, or an entry that this person may not search, is no find.
            Found::Other(_) | Found::Nothing => {}
        }
    }
    Err(match in_the_way {
        Some((program, hint)) => SpawnError::NotExecutable { program, hint }.into(),
        None => RuntimeError::NotInPath { name: name.to_owned(), searched: list(&directories) },
    })
}

fn list(directories: &[PathBuf]) -> String {
    match std::env::join_paths(directories) {
        Ok(joined) if !joined.is_empty() => joined.to_string_lossy().into_owned(),
        _ => "which names no directory".to_owned(),
    }
}

/// What is at a path.
enum Found {
    /// A file that may be executed.
    Program,
    /// A file that may not be, and why.
    PlainFile(&'static str),
    /// Something else, or something that cannot be looked at; and what.
    Other(&'static str),
    /// Nothing.
    Nothing,
}

fn look(candidate: &Path) -> Found {
    match std::fs::metadata(candidate) {
        Ok(found) if found.is_dir() => Found::Other("it is a directory"),
        Ok(found) if !found.is_file() => Found::Other("it is not a file"),
        Ok(_) if may_execute(candidate) => Found::Program,
        Ok(_) => Found::PlainFile(
            "it is not marked as executable for you, or its file system forbids programs",
        ),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Found::Nothing,
            io::ErrorKind::PermissionDenied => {
                Found::Other("you may not search a directory on the way to it")
            }
            _ => Found::Other("its path cannot be followed; it may be a loop of links"),
        },
    }
}

#[cfg(unix)]
fn may_execute(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn may_execute(_file: &Path) -> bool {
    true
}

/// The files that a name may stand for.
#[cfg(not(windows))]
fn candidates(named: &Path) -> Vec<PathBuf> {
    vec![named.to_owned()]
}

/// The files that a name may stand for: on Windows programs are called without their extension.
#[cfg(windows)]
fn candidates(named: &Path) -> Vec<PathBuf> {
    const EXTENSIONS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
    let mut candidates = Vec::with_capacity(EXTENSIONS.len() + 1);
    candidates.extend(named.extension().is_some().then(|| named.to_owned()));
    candidates.extend(EXTENSIONS.map(|extension| {
        let mut extended = named.as_os_str().to_owned();
        extended.push(extension);
        PathBuf::from(extended)
    }));
    candidates
}

#[cfg(not(windows))]
fn variable<'a>(env: &'a Environment, name: &str) -> Option<&'a OsStr> {
    env.get(OsStr::new(name)).map(OsString::as_os_str)
}

/// The names of variables have no case on Windows.
#[cfg(windows)]
fn variable<'a>(env: &'a Environment, name: &str) -> Option<&'a OsStr> {
    env.iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_os_str())
}

/// The most bytes that Linux takes in one word, with the NUL byte that ends it.
const MOST_IN_A_WORD: usize = 131_072;

/// Refuses words that no program can be given. They would be found where it is started, and by then a person would
/// have been asked about megabytes.
fn refuse_words(command: &[String]) -> Result<(), SpawnError> {
    for (index, word) in command.iter().enumerate().skip(1) {
        refuse_nul(&format!("argument {index}"), OsStr::new(word))?;
        if cfg!(target_os = "linux") && word.len() >= MOST_IN_A_WORD {
            return Err(SpawnError::TooLarge {
                what: format!("argument {index} is"),
                bytes: word.len(),
                limit: "one string may have 131,072",
            });
        }
    }
    Ok(())
}

/// Refuses a name that no lookup could be asked for. The other strings of a command are checked where
/// it is started.
fn refuse_nul(what: &str, name: &OsStr) -> Result<(), SpawnError> {
    if !name.as_encoded_bytes().contains(&0) {
        return Ok(());
    }
    let shown = name.to_string_lossy().escape_debug().take(80).collect();
    Err(SpawnError::NulByte { what: what.to_owned(), shown })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use sandgate_protocol::FailureKind;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use tempfile::TempDir;

    /// A directory with some files, each with its permissions.
    fn files(entries: &[(&str, u32)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, mode) in entries {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(*mode)).unwrap();
        }
        root
    }

    fn with_path(root: &TempDir, entries: &[&str]) -> Environment {
        let entries: Vec<String> = entries
            .iter()
            .map(|entry| entry.replace("ROOT", root.path().to_str().unwrap()))
            .collect();
        BTreeMap::from([("PATH".into(), entries.join(":").into())])
    }

    /// spec RUN.12: A bare name is looked for in the `PATH` of the command's own environment, and the
    /// first file there that can be executed is the program.
    #[test]
    fn the_first_executable_file_in_path_wins() {
        let root = files(&[("a/tool", 0o644), ("b/tool", 0o755), ("c/tool", 0o755)]);
        fs::create_dir_all(root.path().join("d/tool")).unwrap();
        let env = with_path(&root, &["ROOT/none", "ROOT/d", "ROOT/a", "ROOT/b", "ROOT/c"]);
        assert_eq!(program("tool", root.path(), &env).unwrap(), root.path().join("b/tool"));
    }

    /// spec RUN.13: Entries of `PATH` that are empty or relative are not searched.
    #[test]
    fn the_working_directory_is_not_searched_for_programs() {
        let root = files(&[("tool", 0o755), ("bin/tool", 0o755)]);
        let env = with_path(&root, &["", ".", "bin", "./bin"]);
        let error = program("tool", root.path(), &env).unwrap_err();
        assert_eq!(error.kind(), FailureKind::NotFound);
        assert!(error.to_string().contains("no program called \"tool\" in PATH"), "{error}");
    }

    #[test]
    fn an_entry_of_path_that_cannot_be_searched_is_no_obstacle() {
        let root = files(&[("bin/tool", 0o755)]);
        symlink("loop", root.path().join("loop")).unwrap();
        fs::create_dir_all(root.path().join("sbin/directory")).unwrap();
        let env = with_path(&root, &["ROOT/loop", "ROOT/sbin", "ROOT/bin"]);
        assert_eq!(program("tool", root.path(), &env).unwrap(), root.path().join("bin/tool"));
        for missing in ["missing", "directory"] {
            let error = program(missing, root.path(), &env).unwrap_err();
            assert_eq!(error.kind(), FailureKind::NotFound, "{error}");
        }
    }

    #[test]
    fn an_environment_without_path_finds_nothing_and_says_so() {
        let error = program("ls", Path::new("/"), &Environment::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no program called \"ls\" in PATH (which names no directory)"
        );
    }

    /// spec RUN.14: A program named with a separator is looked for from the working directory of the
    /// command, and stays the path that was named: links are not replaced by what they lead to.
    #[test]
    fn a_program_behind_a_link_keeps_its_name() {
        let root = files(&[("bin/many", 0o755)]);
        symlink("many", root.path().join("bin/one")).unwrap();
        let env = Environment::new();
        let bin = root.path().join("bin");
        assert_eq!(program("bin/one", root.path(), &env).unwrap(), bin.join("one"));
        assert_eq!(program("./one", &bin, &env).unwrap(), bin.join("./one"));
        let absolute = bin.join("one");
        let found = program(absolute.to_str().unwrap(), Path::new("/"), &env).unwrap();
        assert_eq!(found, absolute);
    }

    #[test]
    fn a_file_that_cannot_be_executed_is_told_apart_from_one_that_is_missing() {
        let root = files(&[("plain", 0o644)]);
        let env = with_path(&root, &["ROOT"]);
        for name in ["plain", "./plain"] {
            let error = program(name, root.path(), &env).unwrap_err();
            assert_eq!(error.kind(), FailureKind::NotExecutable);
            assert!(error.to_string().contains("plain may not be executed: it is not marked"));
        }
        let error = program("./", root.path(), &env).unwrap_err();
        assert!(error.to_string().ends_with("may not be executed: it is a directory"), "{error}");
        let error = program("./missing", root.path(), &env).unwrap_err();
        assert_eq!(error.kind(), FailureKind::NotFound);
        assert!(error.to_string().starts_with("there is no program at "), "{error}");
        let error = program("plain/below", root.path(), &env).unwrap_err();
        assert_eq!(error.kind(), FailureKind::NotFound);
    }

    /// spec RUN.15: The working directory is made canonical once; one that does not exist, or is no
    /// directory, is an error that names it.
    #[test]
    fn a_directory_is_canonical_or_refused_by_name() {
        let root = files(&[("real/file", 0o644)]);
        symlink("real", root.path().join("link")).unwrap();
        let real = root.path().canonicalize().unwrap().join("real");
        assert_eq!(directory(&root.path().join("link/../link/.")).unwrap(), real);
        for (bad, reason) in [
            ("missing", "there is no such directory"),
            ("real/file", "it is not a directory"),
            ("real/file/below", "a part of the path is a file"),
        ] {
            let named = root.path().join(bad);
            let error = directory(&named).unwrap_err();
            let expected = format!("cannot work in {}: {reason}", named.display());
            assert_eq!(error.to_string(), expected);
        }
    }
}
