//! Whether a repository has git run programs although git was told to only read.
//!
//! [`keep_to_reading`](crate::environment::keep_to_reading) overrules the settings whose names are
//! known. Filters, converters and external diffs have names that the repository chooses, and no
//! variable reaches them; a file that is included could hold anything. So the settings are looked at
//! before a command is judged. `docs/design/safe.md` has the table of what really runs.

use super::config::{Setting, settings};
use super::index::{Index, NameLength, Wanted};
use super::{common_directory, git_directory, read_bounded};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The largest configuration that is read.
const LARGEST: u64 = 1 << 20;

/// The most repositories inside of each other that are looked at.
const MOST_REPOSITORIES: usize = 256;

/// Variables by which git takes another repository than the one around it.
pub(crate) const ELSEWHERE: [&str; 5] =
    ["GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"];

/// Looks at repositories, and remembers what it saw until a file changes.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    configs: Mutex<HashMap<PathBuf, (Stamp, Arc<Config>)>>,
    indexes: Mutex<HashMap<PathBuf, (Stamp, Arc<Index>)>>,
}

/// What one file of settings says.
#[derive(Debug, Default)]
struct Config {
    /// Names of settings that have git run something.
    runs: Vec<String>,
    /// Settings by which missing objects are fetched, and what that would run.
    fetches: bool,
    fetching_runs: Vec<String>,
    worktree: Option<PathBuf>,
    sha256: bool,
}

/// What tells that a file is the same as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and the change of status in seconds and nanoseconds, where the system has them.
    identity: [i128; 4],
}

impl Repositories {
    /// What has git run programs in the repository around a directory. Nothing if there is none.
    pub(crate) fn runs(&self, cwd: &Path, env: &BTreeMap<OsString, OsString>) -> Vec<String> {
        let mut look = Look { known: self, runs: Vec::new(), seen: Vec::new() };
        for name in ELSEWHERE.iter().filter(|name| env.contains_key(std::ffi::OsStr::new(name))) {
            look.runs.push(format!("{name} names another repository"));
        }
        // Which of them git takes depends on what it thinks of each; so all of them count.
        for directory in cwd.ancestors() {
            let dot_git = directory.join(".git");
            if fs::symlink_metadata(&dot_git).is_ok() {
                look.dot_git(&dot_git, directory);
            }
            // A repository without a work tree, or the inside of another.
            if fs::symlink_metadata(directory.join("HEAD")).is_ok() {
                look.repository(directory, directory);
            }
        }
        let mut runs = look.runs;
        runs.sort();
        runs.dedup();
        runs
    }

    fn config(&self, path: &Path) -> io::Result<Arc<Config>> {
        remembered(&self.configs, path, || {
            let settings = settings(&read_bounded(path, LARGEST)?);
            Ok(Config::of(&settings.map_err(|_| io::ErrorKind::InvalidData)?))
        })
    }

    fn index(&self, git_directory: &Path, name: NameLength) -> io::Result<Arc<Index>> {
        let path = git_directory.join("index");
        remembered(&self.indexes, &path, || Index::read(git_directory, Wanted::Gitlinks, name))
    }
}

/// One look at a repository and those in it.
struct Look<'a> {
    known: &'a Repositories,
    runs: Vec<String>,
    seen: Vec<PathBuf>,
}

impl Look<'_> {
    fn odd(&mut self, path: &Path) {
        self.runs.push(format!("{} cannot be read", path.display()));
    }

    fn dot_git(&mut self, dot_git: &Path, work_tree: &Path) {
        match git_directory(dot_git) {
            Ok(directory) => self.repository(&directory, work_tree),
            Err(_) => self.odd(dot_git),
        }
    }

    fn repository(&mut self, directory: &Path, work_tree: &Path) {
        if self.seen.iter().any(|seen| seen == directory) {
            return;
        }
        if self.seen.len() == MOST_REPOSITORIES {
            return self.odd(directory);
        }
        self.seen.push(directory.to_owned());
        let Ok(common) = common_directory(directory) else { return self.odd(directory) };
        let mut files = vec![common.join("config"), directory.join("config.worktree")];
        if common != directory {
            // Not git's place for it, but nobody should have to know that.
            files.push(directory.join("config"));
            files.push(common.join("config.worktree"));
        }
        let mut configs = Vec::new();
        for file in &files {
            match self.known.config(file) {
                Ok(config) => configs.push(config),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => self.odd(file),
            }
        }
        self.runs.extend(configs.iter().flat_map(|config| config.runs.iter().cloned()));
        if configs.iter().any(|config| config.fetches) {
            let runs = configs.iter().flat_map(|config| config.fetching_runs.iter().cloned());
            self.runs.extend(runs);
        }
        let name = match configs.iter().any(|config| config.sha256) {
            true => NameLength::Sha256,
            false => NameLength::Sha1,
        };
        let elsewhere = configs.iter().rev().find_map(|config| config.worktree.clone());
        let work_tree = elsewhere.map_or_else(|| work_tree.to_owned(), |path| directory.join(path));
        match self.known.index(directory, name) {
            Ok(index) => self.inner(&index, &work_tree),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.odd(&directory.join("index")),
        }
    }

    /// Git asks each repository in the repository whether it was changed, and that one obeys its own
    /// settings.
    fn inner(&mut self, index: &Index, work_tree: &Path) {
        for path in &index.gitlinks {
            let Ok(path) = std::str::from_utf8(path) else { return self.odd(work_tree) };
            let inner = work_tree.join(path);
            let dot_git = inner.join(".git");
            if fs::symlink_metadata(&dot_git).is_ok() {
                self.dot_git(&dot_git, &inner);
            }
        }
    }
}

impl Config {
    fn of(settings: &[Setting]) -> Self {
        let mut config = Self::default();
        for setting in settings {
            let shown = || String::from_utf8_lossy(&setting.name).into_owned();
            let value = setting.value.as_deref().unwrap_or_default();
            match kind(setting) {
                Kind::Runs => config.runs.push(shown()),
                Kind::RunsWhenFetching => config.fetching_runs.push(shown()),
                Kind::Fetches => config.fetches = true,
                Kind::WorkTree => match std::str::from_utf8(value) {
                    Ok(path) => config.worktree = Some(PathBuf::from(path)),
                    Err(_) => config.runs.push(shown()),
                },
                Kind::ObjectFormat => config.sha256 = value.eq_ignore_ascii_case(b"sha256"),
                Kind::Harmless => {}
            }
        }
        config
    }
}

enum Kind {
    /// Git runs it, or reads more settings, while it only reads.
    Runs,
    /// Versions of git that do not know `GIT_NO_LAZY_FETCH` run it for what a clone left out.
    RunsWhenFetching,
    Fetches,
    WorkTree,
    ObjectFormat,
    Harmless,
}

fn kind(setting: &Setting) -> Kind {
    let (section, named, key) = setting.parts();
    match (section, named, key) {
        (b"filter", _, b"clean" | b"smudge" | b"process")
        | (b"diff", Some(_), b"command" | b"textconv")
        | (b"diff", None, b"external")
        | (b"include", _, b"path")
        | (b"includeif", _, b"path")
        | (b"hook", _, b"command") => Kind::Runs,
        (b"core", None, b"sshcommand" | b"gitproxy" | b"askpass")
        | (b"remote", _, b"uploadpack" | b"vcs")
        | (b"credential", _, b"helper")
        | (b"protocol", _, b"allow") => Kind::RunsWhenFetching,
        (b"extensions", None, b"partialclone")
        | (b"remote", _, b"promisor" | b"partialclonefilter") => Kind::Fetches,
        (b"core", None, b"worktree") => Kind::WorkTree,
        (b"extensions", None, b"objectformat") => Kind::ObjectFormat,
        _ => Kind::Harmless,
    }
}

/// What was made of a file, if it is the same file still; otherwise made again.
fn remembered<T>(
    known: &Mutex<HashMap<PathBuf, (Stamp, Arc<T>)>>,
    path: &Path,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<Arc<T>> {
    /// So many files are remembered.
    const MOST: usize = 1024;
    let stamp = Stamp::of(path)?;
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((before, made)) = lock().get(path)
        && *before == stamp
    {
        return Ok(Arc::clone(made));
    }
    let made = Arc::new(make()?);
    let mut known = lock();
    if known.len() >= MOST {
        known.clear();
    }
    // A file that was changed just now could change once more without a difference in its times.
    match stamp.is_settled() {
        true => known.insert(path.to_owned(), (stamp, Arc::clone(&made))),
        false => known.remove(path),
    };
    Ok(made)
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt as _;
            [
                found.dev().into(),
                found.ino().into(),
                found.ctime().into(),
                found.ctime_nsec().into(),
            ]
        };
        #[cfg(not(unix))]
        let identity = [0; 4];
        Ok(Self { size: found.len(), modified: found.modified().ok(), identity })
    }

    fn is_settled(&self) -> bool {
        /// Longer than the clock of any file system takes for a step.
        const STEP: Duration = Duration::from_secs(2);
        let [_, _, seconds, nanoseconds] = self.identity;
        let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok()).map(
            |(seconds, nanoseconds)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds),
        );
        let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > STEP);
        self.modified.is_some_and(is_old) && (cfg!(not(unix)) || changed.is_some_and(is_old))
    }
}
