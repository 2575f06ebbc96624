//! Directories that are this person's own, and nobody else's.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use unix::make;
#[cfg(unix)]
pub(crate) use unix::own_directory;

/// Where our files belong that can be lost without harm. Windows gives each person a directory for
/// temporary files that only they can open.
#[cfg(not(unix))]
pub(crate) fn own_directory() -> Option<PathBuf> {
    Some(std::env::temp_dir().join("sandgate"))
}

/// Makes a directory that only its owner can open, and those above it that do not exist. One that is
/// there already is fine, if it is the owner's.
///
/// # Errors
/// When it cannot be made, or is somebody else's.
pub fn make_private(directory: &Path) -> io::Result<()> {
    make_with(directory, Above::IsMade)
}

/// The same for a directory whose place must be there: what somebody removed in the meantime is not made anew.
///
/// # Errors
/// As [`make_private`], and when the directory above it does not exist.
pub(crate) fn make_private_in_place(directory: &Path) -> io::Result<()> {
    make_with(directory, Above::MustBeThere)
}

/// What becomes of the directories above one that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Above {
    IsMade,
    MustBeThere,
}

fn make_with(directory: &Path, above: Above) -> io::Result<()> {
    make(directory, above).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot make {}: {error}", directory.display()))
    })
}

/// Makes it, unless it is there.
fn create(builder: &mut std::fs::DirBuilder, directory: &Path, above: Above) -> io::Result<()> {
    match builder.recursive(above == Above::IsMade).create(directory) {
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && above == Above::MustBeThere =>
        {
            Ok(())
        }
        created => created,
    }
}

/// Makes a directory that is not there yet, for its owner only.
#[cfg(unix)]
pub(crate) fn make_new(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(directory)
}

/// Makes a file that is not there yet, for its owner only.
#[cfg(unix)]
pub(crate) fn make_new_file(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file to read it, if it is one: a link or a pipe in its place is refused.
///
/// # Errors
/// When it cannot be opened, or is no file.
pub fn open_file(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

/// Whether a name still stands for the file that was opened by it.
#[cfg(unix)]
pub fn is_in_place(path: &Path, file: &std::fs::File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(named), Ok(opened)) = (path.symlink_metadata(), file.metadata()) else { return false };
    (named.dev(), named.ino()) == (opened.dev(), opened.ino())
}

/// Nothing can be moved away here while it is open.
#[cfg(not(unix))]
pub fn is_in_place(path: &Path, _: &std::fs::File) -> bool {
    path.exists()
}

#[cfg(not(unix))]
fn make(directory: &Path, above: Above) -> io::Result<()> {
    create(&mut std::fs::DirBuilder::new(), directory, above)
}

#[cfg(unix)]
mod unix {
    use super::{Above, Path, PathBuf, create, io};
    use rustix::fs::{Mode, OFlags};
    use std::fs::{self, DirBuilder, File, Permissions};
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

    /// Where our files belong that can be lost without harm: in the person's cache. Who has none goes without:
    /// among the temporary files anybody could be there first, a command above all.
    pub(crate) fn own_directory() -> Option<PathBuf> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        choose(cache, std::env::home_dir())
    }

    fn choose(cache: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
        // A relative path would be somewhere else for every directory we are started in. And under
        // sudo the home may be somebody else's: what root makes there they could not use.
        let usable = |path: &PathBuf| path.is_absolute() && !is_of_another(path);
        let in_home = || home.filter(usable).map(|home| home.join(".cache"));
        Some(cache.filter(usable).or_else(in_home)?.join("sandgate"))
    }

    fn is_of_another(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| found.uid() != me())
    }

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Refuses a directory that belongs to somebody else, and a link in its place, whoever made it.
    pub(super) fn make(directory: &Path, above: Above) -> io::Result<()> {
        create(DirBuilder::new().mode(0o700), directory, above)?;
        // What is looked at is what was opened, even if the name stands for something else by now.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = File::from(rustix::fs::open(directory, flags, Mode::empty())?);
        if opened.metadata()?.uid() != me() {
            return Err(io::Error::other("it belongs to another user"));
        }
        opened.set_permissions(Permissions::from_mode(0o700))
    }

    #[cfg(test)]
    mod tests {
        use super::super::make_private;
        use super::*;
        use std::os::unix::fs::{lchown, symlink};

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().mode() & 0o777
        }

        #[test]
        fn new_directories_are_for_their_owner_only() {
            let base = tempfile::tempdir().unwrap();
            let inner = base.path().join("a").join("b");
            make_private(&inner).unwrap();
            assert_eq!((mode(&inner), mode(&base.path().join("a"))), (0o700, 0o700));
        }

        #[test]
        fn an_open_directory_of_ours_is_closed_to_others() {
            let base = tempfile::tempdir().unwrap();
            let open = base.path().join("open");
            fs::create_dir(&open).unwrap();
            fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
            make_private(&open).unwrap();
            assert_eq!(mode(&open), 0o700);
        }

        #[test]
        fn a_link_on_the_way_is_followed_and_one_at_the_end_is_refused() {
            let base = tempfile::tempdir().unwrap();
            fs::create_dir(base.path().join("real")).unwrap();
            let link = base.path().join("link");
            symlink("real", &link).unwrap();
            make_private(&link.join("inner")).unwrap();
            assert!(base.path().join("real").join("inner").is_dir());
            let error = make_private(&link).unwrap_err();
            assert!(error.to_string().contains("link: "), "{error}");
        }

        #[test]
        fn a_link_to_nowhere_or_to_itself_is_refused() {
            let base = tempfile::tempdir().unwrap();
            for target in ["loop", "nowhere"] {
                let link = base.path().join("loop");
                symlink(target, &link).unwrap();
                assert!(make_private(&link).is_err(), "{target}");
                fs::remove_file(&link).unwrap();
            }
            assert!(!base.path().join("nowhere").exists());
        }

        #[test]
        fn a_file_in_the_way_is_refused() {
            let base = tempfile::tempdir().unwrap();
            fs::write(base.path().join("file"), "").unwrap();
            assert!(make_private(&base.path().join("file")).is_err());
            assert!(make_private(&base.path().join("file").join("below")).is_err());
        }

        /// spec SANDBOX.202: Who has no home and no cache of their own goes without what would be kept there: nothing
        /// that is trusted later lies among the temporary files.
        #[test]
        fn the_cache_is_looked_for_where_the_person_keeps_it() {
            let home = tempfile::tempdir().unwrap();
            let some = |path: &str| Some(PathBuf::from(path));
            let own = Some(home.path().to_owned());
            let in_home = home.path().join(".cache/sandgate");
            let cases = [
                (some("/cache"), own.clone(), some("/cache/sandgate")),
                (some("cache"), own.clone(), Some(in_home.clone())),
                (None, own, Some(in_home)),
                (None, some("relative"), None),
                (None, None, None),
            ];
            for (cache, home, expected) in cases {
                assert_eq!(choose(cache, home), expected);
            }
        }

        /// Only root can make something that belongs to another user.
        #[test]
        fn what_belongs_to_another_user_is_refused() {
            let base = tempfile::tempdir().unwrap();
            let link = base.path().join("link");
            let directory = base.path().join("directory");
            symlink("directory", &link).unwrap();
            fs::create_dir(&directory).unwrap();
            if me() != 0 {
                assert!(is_of_another(Path::new("/")));
                assert!(make_private(Path::new("/usr")).is_err());
                return;
            }
            lchown(&link, Some(12345), None).unwrap();
            assert!(make_private(&link).is_err());
            lchown(&directory, Some(12345), None).unwrap();
            fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
            let error = make_private(&directory).unwrap_err();
            assert!(error.to_string().ends_with("it belongs to another user"), "{error}");
            assert_eq!(mode(&directory), 0o755, "it is left as it was");
            assert!(is_of_another(&directory));
        }
    }
}
