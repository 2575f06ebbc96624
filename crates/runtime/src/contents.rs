//! What the files hold that a command runs, so that an approval of it ends when they change.
//!
//! Programs of the system are left out: no command in a sandbox can change them. What a program reads
//! beyond its own file and script, such as the sources of a build, is not looked at.

use crate::private::open_file;
use sandgate_policy::{Content, Runs};
use sandgate_protocol::ExecParams;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How much of a file is read. What is larger is known by its size and its times as well.
const READ_BYTES: u64 = 8 << 20;

/// How many files are looked at.
const FILES: usize = 64;

/// Where the system's programs are, after links are followed.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/nix/store",
    "/System",
];

/// What the files hold that a command runs, in the order of their names.
pub(crate) fn contents(runs: &Runs, params: &ExecParams) -> Vec<Content> {
    let home = params.env.get(std::ffi::OsStr::new("HOME")).map(PathBuf::from).unwrap_or_default();
    let at_home = |base: &Path, word: &str| match word.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => base.join(word),
    };
    let mut bases = vec![params.cwd.clone()];
    for place in &runs.from {
        // It may go on from where it has gone to before.
        let further: Vec<PathBuf> = bases.iter().map(|base| at_home(base, place)).collect();
        bases.extend(further);
        bases.truncate(FILES);
    }
    let mut files = vec![params.program.clone()];
    for words in &runs.files {
        for base in &bases {
            let named = words.iter().map(|word| at_home(base, word)).find(|path| path.is_file());
            files.extend(named);
        }
    }
    let mut found: Vec<PathBuf> =
        files.iter().filter_map(|file| dunce::canonicalize(file).ok()).collect();
    found.sort();
    found.dedup();
    found.retain(|file| !SYSTEM.iter().any(|system| file.starts_with(system)));
    found.truncate(FILES);
    found.into_iter().map(|file| Content { is: known_by(&file), file }).collect()
}

/// What a file's content is known by. One that cannot be read is known by why.
fn known_by(file: &Path) -> String {
    let known = open_file(file).and_then(read);
    known.unwrap_or_else(|error| format!("not read: {}", error.kind()))
}

fn read(file: File) -> io::Result<String> {
    let about = file.metadata()?;
    let mut hash = Sha256::new();
    let mut bytes = vec![0; 64 * 1024];
    let mut limited = file.take(READ_BYTES);
    loop {
        let count = limited.read(&mut bytes)?;
        if count == 0 {
            break;
        }
        hash.update(&bytes[..count]);
    }
    let mut known = String::new();
    for byte in hash.finalize() {
        let _ = write!(known, "{byte:02x}");
    }
    if about.len() > READ_BYTES {
        let _ = write!(known, " {} {:?}", about.len(), about.modified()?);
    }
    Ok(known)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use sandgate_protocol::{ExecExpiration, SandboxPermissions};
    use std::fs;

    fn params(cwd: &Path) -> ExecParams {
        ExecParams {
            command: vec!["sh".to_owned()],
            program: "/bin/sh".into(),
            cwd: cwd.to_owned(),
            env: [("HOME".into(), cwd.join("home").into())].into(),
            expiration: ExecExpiration::Cancellation,
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            arg0: None,
        }
    }

    fn runs(files: &[&[&str]], from: &[&str]) -> Runs {
        let texts = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        Runs { files: files.iter().map(|words| texts(words)).collect(), from: texts(from) }
    }

    #[test]
    fn the_first_word_that_names_a_file_counts_wherever_the_command_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("sub/deep")).unwrap();
        fs::create_dir(place.join("home")).unwrap();
        for file in ["a", "sub/b", "sub/deep/c", "home/d"] {
            fs::write(place.join(file), file).unwrap();
        }
        let wanted =
            runs(&[&["ignore", "a", "sub/b"], &["b"], &["./c"], &["~/d"]], &["sub", "deep"]);
        let found = contents(&wanted, &params(&place));
        let names: Vec<PathBuf> = found.iter().map(|content| content.file.clone()).collect();
        assert_eq!(names, ["a", "home/d", "sub/b", "sub/deep/c"].map(|name| place.join(name)));
        fs::write(place.join("a"), "changed").unwrap();
        let later = contents(&wanted, &params(&place));
        assert_ne!(found[0], later[0]);
        assert_eq!(found[1..], later[1..]);
    }

    #[test]
    fn the_systems_programs_and_what_is_no_file_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = runs(&[&["/usr/bin/env"], &["."], &["nothing"]], &[]);
        assert_eq!(contents(&wanted, &params(directory.path())), []);
    }
}
