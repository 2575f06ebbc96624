//! What the files hold that a command runs, so that an approval of it ends when they change.
//!
//! Programs of the system are left out: no command in a sandbox can change them. What a shell reads by `source` and
//! `.` is part of its script. What a program reads beyond its own file and script, such as the sources of a build, is
//! not looked at: outside the sandbox no yes to such a program is remembered.

use crate::private::open_file;
use sandgate_policy::{BypassSandbox, Content, Runs, sourced};
use sandgate_protocol::ExecParams;
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How much of a file is read. What is larger is known by its size and its times as well.
const READ_BYTES: u64 = 8 << 20;

/// How many files are looked at.
const FILES: usize = 64;

/// How many directories names are looked for from.
const BASES: usize = 64;

/// How many names are looked for.
const NAMES: usize = 20_000;

/// How much of a script is read to learn what runs it. The kernel reads no more.
const FIRST_LINE_BYTES: u64 = 256;

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

/// The files that a command runs.
struct Files {
    /// Canonical, in the order of their names.
    files: Vec<PathBuf>,
    /// Whether these are all.
    complete: bool,
}

/// Whether a yes to a command can hold for longer than once: not where a file is run that is not known yet; and
/// outside the sandbox not where the program reads what it does from files that commands inside can write.
pub(crate) fn lasts(runs: &Runs, params: &ExecParams, bypass_sandbox: BypassSandbox) -> bool {
    let obeys = bypass_sandbox == BypassSandbox::Yes && runs.obeys;
    !obeys && files(runs, params).complete
}

/// What the files hold that a command runs, in the order of their names.
pub(crate) fn contents(runs: &Runs, params: &ExecParams) -> Vec<Content> {
    let found = files(runs, params).files;
    found.into_iter().map(|file| Content { is: known_by(&file), file }).collect()
}

/// The files that a command runs, as far as its words name them, with what runs those.
fn files(runs: &Runs, params: &ExecParams) -> Files {
    let mut search = Search::new(runs, params);
    search.add(params.program.clone());
    for word in &runs.files {
        search.add_word(word, Path::is_file);
    }
    // Which file of a package is run stands in there, and is not looked for.
    search.complete &= !search.found.iter().any(|file| file.ends_with("package.json"));
    for word in &runs.words {
        search.add_word(word, can_be_executed);
    }
    for name in &runs.programs {
        search.add_program(name);
    }
    // What runs a script may be a script, and so is what its shell reads beside it.
    let mut at = 0;
    while at < search.found.len() {
        let file = search.found[at].clone();
        search.add_interpreter(&file);
        search.add_sourced(&file);
        at += 1;
    }
    let Search { mut found, complete, .. } = search;
    found.sort();
    Files { files: found, complete: complete && !runs.unknown }
}

struct Search {
    home: PathBuf,
    /// The first is where the command begins.
    bases: Vec<PathBuf>,
    path: Vec<PathBuf>,
    found: Vec<PathBuf>,
    looked: usize,
    complete: bool,
}

impl Search {
    fn new(runs: &Runs, params: &ExecParams) -> Self {
        let variable = |name: &str| params.env.get(OsStr::new(name));
        let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
        let bases = vec![params.cwd.clone()];
        let (path, found) = (Vec::new(), Vec::new());
        let mut search = Self { home, bases, path, found, looked: 0, complete: true };
        for place in &runs.from {
            // It may go on from where it has gone to before.
            let further: Vec<PathBuf> =
                search.bases.iter().map(|base| search.at_home(base, place)).collect();
            for base in further {
                if !search.bases.contains(&base) {
                    search.bases.push(base);
                }
            }
            search.complete &= search.bases.len() <= BASES;
            search.bases.truncate(BASES);
        }
        for place in &runs.path {
            let places: Vec<PathBuf> =
                search.bases.iter().map(|base| search.at_home(base, place)).collect();
            search.path.extend(places);
        }
        let usual = variable("PATH").map(OsString::as_os_str).unwrap_or_default();
        search.path.extend(std::env::split_paths(usual).filter(|entry| entry.is_absolute()));
        search
    }

    fn at_home(&self, base: &Path, word: &str) -> PathBuf {
        match word.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None if word == "~" => self.home.clone(),
            None => base.join(word),
        }
    }

    /// Counts another look at a name, unless there were too many.
    fn may_look(&mut self) -> bool {
        self.looked += 1;
        self.complete &= self.looked <= NAMES;
        self.looked <= NAMES
    }

    /// The files that a word names, from wherever it may be looked for.
    fn add_word(&mut self, word: &str, is_meant: fn(&Path) -> bool) {
        for at in 0..self.bases.len() {
            let path = self.at_home(&self.bases[at], word);
            if self.may_look() && is_meant(&path) {
                self.add(path);
            }
        }
    }

    /// The program of a bare name, which is the first there is.
    fn add_program(&mut self, name: &str) {
        for at in 0..self.path.len() {
            let path = self.path[at].join(name);
            if self.may_look() && can_be_executed(&path) {
                self.add(path);
                return;
            }
        }
    }

    /// What the first line of a script names.
    fn add_interpreter(&mut self, file: &Path) {
        let Some(line) = first_line(file) else { return };
        let mut words = line.split_ascii_whitespace();
        let Some(interpreter) = words.next() else { return };
        let interpreter = self.bases[0].join(interpreter);
        let asks_path = interpreter.file_name() == Some(OsStr::new("env"));
        self.add(interpreter);
        for word in words {
            self.add_word(word, Path::is_file);
            if asks_path && !word.contains('/') {
                self.add_program(word);
            }
        }
    }

    /// What a script has its shell read beside itself.
    fn add_sourced(&mut self, file: &Path) {
        let Some(text) = shell_script(file) else { return };
        let sourced = sourced(&String::from_utf8_lossy(&text));
        // Shells read on where we stop, and pass over what separates for us.
        self.complete &= !sourced.unknown && text.len() < SCRIPT_BYTES && !text.contains(&0);
        let bases = self.bases.len();
        for place in &sourced.from {
            let further: Vec<PathBuf> =
                self.bases.iter().map(|base| self.at_home(base, place)).collect();
            self.bases.extend(further);
            self.complete &= self.bases.len() <= BASES;
            self.bases.truncate(BASES);
        }
        for word in &sourced.files {
            self.add_word(word, Path::is_file);
        }
        for name in &sourced.programs {
            self.add_program(name);
        }
        // Where one script goes another does not begin.
        self.bases.truncate(bases);
    }

    fn add(&mut self, path: PathBuf) {
        let Ok(file) = dunce::canonicalize(path) else { return };
        if SYSTEM.iter().any(|system| file.starts_with(system)) || self.found.contains(&file) {
            return;
        }
        if self.found.len() == FILES {
            self.complete = false;
            return;
        }
        self.found.push(file);
    }
}

/// Whether it is a file that anybody may execute.
#[cfg(unix)]
fn can_be_executed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether it is a file: nothing says which of them can be executed.
#[cfg(not(unix))]
fn can_be_executed(path: &Path) -> bool {
    path.is_file()
}

/// What follows `#!` at the beginning of a script.
fn first_line(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    open_file(file).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// How much of a script is searched for what its shell reads.
const SCRIPT_BYTES: usize = 1 << 20;

/// Shells that have `source` or `.`.
const SHELLS: &[&str] = &["ash", "bash", "busybox", "dash", "ksh", "mksh", "sh", "zsh"];

/// How the names of files end that no shell reads, where their first line does not say.
const OTHER_LANGUAGES: &[&str] = &[
    "class", "cjs", "go", "jar", "java", "js", "json", "jsx", "lua", "mjs", "php", "pl", "py",
    "rb", "rs", "scala", "so", "swift", "toml", "ts", "tsx", "yaml", "yml",
];

/// The beginning of a file, if a shell may read it.
fn shell_script(file: &Path) -> Option<Vec<u8>> {
    let ends_like_other = |end: &OsStr| OTHER_LANGUAGES.iter().any(|other| end == *other);
    let may_be = match first_line(file) {
        Some(line) => line.split_ascii_whitespace().any(|word| {
            Path::new(word).file_name().is_some_and(|name| SHELLS.iter().any(|one| name == *one))
        }),
        None => !file.extension().is_some_and(ends_like_other),
    };
    may_be.then_some(())?;
    let mut bytes = Vec::new();
    open_file(file).ok()?.take(SCRIPT_BYTES as u64).read_to_end(&mut bytes).ok()?;
    (!bytes.starts_with(b"\x7fELF")).then_some(())?;
    Some(bytes)
}

/// What a file's content is known by. One that cannot be read can be run all the same, and is known by
/// what the file system knows of it.
fn known_by(file: &Path) -> String {
    let known = open_file(file).and_then(read);
    known.unwrap_or_else(|error| {
        let about = std::fs::symlink_metadata(file).map(|about| changed(&about));
        format!("not read: {} {}", error.kind(), about.unwrap_or_default())
    })
}

/// Size, place and times of a file. The time of its last change is the kernel's: nobody can set it back.
fn changed(about: &Metadata) -> String {
    #[cfg(unix)]
    let (inode, seconds, part) = {
        use std::os::unix::fs::MetadataExt as _;
        (about.ino(), about.ctime(), about.ctime_nsec())
    };
    #[cfg(not(unix))]
    let (inode, seconds, part) = (0, 0, 0);
    format!("{} {inode} {seconds}.{part} {:?}", about.len(), about.modified().ok())
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
        let _ = write!(known, " {}", changed(&about));
    }
    Ok(known)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use sandgate_protocol::{ExecExpiration, SandboxPermissions};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

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

    fn runs(files: &[&str], from: &[&str]) -> Runs {
        let files = files.iter().map(ToString::to_string).collect();
        let from = from.iter().map(ToString::to_string).collect();
        Runs { files, from, ..Runs::default() }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        (directory, place)
    }

    fn write(file: &Path, text: &str, mode: u32) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(runs: &Runs, place: &Path) -> Vec<String> {
        let found = files(runs, &params(place));
        assert!(found.complete);
        let inside = |file: &PathBuf| file.strip_prefix(place).unwrap().display().to_string();
        found.files.iter().map(inside).collect()
    }

    #[test]
    fn names_are_looked_for_wherever_the_command_goes() {
        let (_directory, place) = place();
        for file in ["a", "sub/b", "sub/deep/c", "home/d", "home/e"] {
            write(&place.join(file), file, 0o644);
        }
        let wanted = runs(&["none", "a", "b", "./c", "~/d", "e"], &["sub", "deep", "~"]);
        let all = ["a", "home/d", "home/e", "sub/b", "sub/deep/c"];
        assert_eq!(names(&wanted, &place), all);
        let before = contents(&wanted, &params(&place));
        fs::write(place.join("a"), "changed").unwrap();
        let later = contents(&wanted, &params(&place));
        assert_ne!(before[0], later[0]);
        assert_eq!(before[1..], later[1..]);
    }

    #[test]
    fn the_systems_programs_and_what_is_no_file_are_left_out() {
        let (_directory, place) = place();
        assert!(names(&runs(&["/usr/bin/env", ".", "nothing"], &[]), &place).is_empty());
    }

    #[test]
    fn what_runs_a_script_counts_too() {
        let (_directory, place) = place();
        write(&place.join("a.sh"), &format!("#!{}/inner -x\n", place.display()), 0o755);
        write(&place.join("inner"), "#!/usr/bin/env -S tool ./more\n", 0o755);
        write(&place.join("bin/tool"), "", 0o755);
        write(&place.join("more"), "", 0o644);
        let wanted = Runs { path: ["bin".to_owned()].into(), ..runs(&["./a.sh"], &[]) };
        assert_eq!(names(&wanted, &place), ["a.sh", "bin/tool", "inner", "more"]);
    }

    /// spec APPROVAL.69: What a script has its shell read by `source` or `.` counts among the files that a command
    /// runs, and so does what is read there; where its name shows only when the script runs, a yes holds once.
    #[test]
    fn what_a_shell_reads_beside_its_script_counts_too() {
        let (_directory, place) = place();
        write(&place.join("a.sh"), "#!/bin/bash\n. ./lib.sh\ncd sub\nsource inner\n", 0o755);
        write(&place.join("lib.sh"), "set -e\n. deep/more.conf\n", 0o644);
        write(&place.join("deep/more.conf"), "X=1\n", 0o644);
        write(&place.join("sub/inner"), "Y=2\n", 0o644);
        write(&place.join("x.py"), "#!/usr/bin/python3\nsource = '$X'\nsource . $X\n", 0o755);
        let wanted = runs(&["./a.sh", "x.py"], &[]);
        assert_eq!(
            names(&wanted, &place),
            ["a.sh", "deep/more.conf", "lib.sh", "sub/inner", "x.py"]
        );
        let before = contents(&wanted, &params(&place));
        fs::write(place.join("deep/more.conf"), "rm -rf /\n").unwrap();
        assert_ne!(before, contents(&wanted, &params(&place)));
        fs::write(place.join("lib.sh"), ". \"$(dirname \"$0\")/more\"\n").unwrap();
        assert!(!files(&wanted, &params(&place)).complete);
        let long = format!("#!/bin/bash\n{}. ./lib.sh\n", ":\n".repeat(SCRIPT_BYTES / 2));
        for (script, complete) in
            [("true\n", true), (&*long, false), ("so\0urce ./lib.sh\n", false)]
        {
            fs::write(place.join("lib.sh"), script).unwrap();
            assert_eq!(files(&wanted, &params(&place)).complete, complete);
        }
    }

    #[test]
    fn any_word_counts_that_names_what_can_be_executed() {
        let (_directory, place) = place();
        write(&place.join("x"), "", 0o755);
        write(&place.join("data"), "", 0o644);
        let words = ["x", "data", "none"].map(str::to_owned).into();
        assert_eq!(names(&Runs { words, ..Runs::default() }, &place), ["x"]);
    }

    #[test]
    fn what_cannot_be_read_or_is_large_is_known_by_its_last_change() {
        let (_directory, place) = place();
        let file = place.join("large");
        write(&file, "", 0o755);
        let length = READ_BYTES + 10;
        File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        let times = file.metadata().unwrap().modified().unwrap();
        let before = known_by(&file);
        assert_eq!(before, known_by(&file));
        // The kernel's clock goes in ticks: it is another file, whatever the tick.
        fs::rename(&file, place.join("old")).unwrap();
        write(&file, "", 0o755);
        let other = File::options().write(true).open(&file).unwrap();
        other.set_len(length).unwrap();
        other.set_modified(times).unwrap();
        assert_ne!(before, known_by(&file));
        let (one, two) = (place.join("one"), place.join("two"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        assert_ne!(known_by(&one), known_by(&two), "neither can be read");
    }

    #[test]
    fn more_than_is_looked_at_is_not_all() {
        let (_directory, place) = place();
        let named: Vec<String> = (0..=FILES).map(|number| format!("f{number}")).collect();
        for name in &named {
            write(&place.join(name), name, 0o644);
        }
        let files_of = |count: usize, from: &[String]| {
            let wanted: Vec<&str> = named[..count].iter().map(String::as_str).collect();
            let from: Vec<&str> = from.iter().map(String::as_str).collect();
            files(&runs(&wanted, &from), &params(&place)).complete
        };
        assert!(files_of(FILES, &[]));
        assert!(!files_of(FILES + 1, &[]));
        assert!(!files_of(1, &named[..8]), "too many places");
        let words = (0..=NAMES).map(|number| number.to_string()).collect();
        assert!(!files(&Runs { words, ..Runs::default() }, &params(&place)).complete);
        assert!(!files(&Runs { unknown: true, ..Runs::default() }, &params(&place)).complete);
        write(&place.join("package.json"), "{}", 0o644);
        assert!(!files(&runs(&["./package.json"], &[]), &params(&place)).complete);
    }
}
