//! Directories that are this person's own, and nobody else's.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub(crate) use unix::{make_private, own_directory};

/// Where our files belong that can be lost without harm. Windows gives each person a directory for
/// temporary files that only they can open.
#[cfg(not(unix))]
pub(crate) fn own_directory() -> PathBuf {
    std::env::temp_dir().join("sandgate")
}

/// Makes a directory, and those above it that do not exist.
#[cfg(not(unix))]
pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

#[cfg(unix)]
mod unix {
    use super::{Path, PathBuf, io};
    use std::collections::VecDeque;
    use std::ffi::{OsStr, OsString};
    use std::fs::{self, DirBuilder, Metadata, Permissions};
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

    /// As many links as the kernel itself would follow in one path.
    const MAX_LINKS: usize = 40;

    /// Where our files belong that can be lost without harm: in the person's cache, or without one
    /// among the temporary files.
    pub(crate) fn own_directory() -> PathBuf {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        choose(variable("XDG_CACHE_HOME"), variable("HOME"), &std::env::temp_dir())
    }

    fn choose(cache: Option<PathBuf>, home: Option<PathBuf>, temporary: &Path) -> PathBuf {
        // A relative path would be somewhere else for every directory we are started in. And under
        // sudo the home may be somebody else's: what root makes there they could not use.
        let usable = |path: &PathBuf| path.is_absolute() && !is_of_another(path);
        let in_home = || home.filter(usable).map(|home| home.join(".cache"));
        match cache.filter(usable).or_else(in_home) {
            Some(cache) => cache.join("sandgate"),
            None => temporary.join(format!("sandgate-{}", me())),
        }
    }

    fn is_of_another(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| found.uid() != me())
    }

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Makes a directory that only its owner can open, and those above it that do not exist. Refuses
    /// one that belongs to somebody else, and every link on the way that somebody else made.
    pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
        let real = walk(directory)?;
        let found = fs::symlink_metadata(&real)?;
        if !found.is_dir() || found.uid() != me() {
            return Err(refusal(&real, "it is not a directory of yours"));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&real, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Follows a path from the root, link by link, and makes the directories that are missing.
    fn walk(path: &Path) -> io::Result<PathBuf> {
        let mut here = PathBuf::from("/");
        let mut parts: VecDeque<OsString> = path.iter().map(OsStr::to_owned).collect();
        let mut links = 0;
        while let Some(part) = parts.pop_front() {
            if part == ".." {
                here.pop();
                continue;
            }
            // Joining the root, which begins an absolute path, leads back to it.
            let next = here.join(&part);
            if !make_or_look(&next)?.is_symlink() {
                here = next;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(refusal(path, "too many links"));
            }
            for part in fs::read_link(&next)?.iter().rev() {
                parts.push_front(part.to_owned());
            }
        }
        Ok(here)
    }

    /// What is at a path, which is a new directory if nothing was.
    fn make_or_look(path: &Path) -> io::Result<Metadata> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o700).create(path) {
                    // Somebody was faster; what they made is looked at like anything else.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => fs::symlink_metadata(path)?,
                }
            }
            found => found?,
        };
        // The system's own links are as good as its directories.
        if found.is_symlink() && found.uid() != me() && found.uid() != 0 {
            return Err(refusal(path, "it is a link that another user made"));
        }
        Ok(found)
    }

    fn refusal(path: &Path, reason: &str) -> io::Error {
        let message = format!("cannot use {}: {reason}", path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, message)
    }

    #[cfg(test)]
    mod tests {
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
        fn our_own_links_are_followed() {
            let base = tempfile::tempdir().unwrap();
            fs::create_dir(base.path().join("real")).unwrap();
            symlink("real", base.path().join("link")).unwrap();
            make_private(&base.path().join("link").join("inner")).unwrap();
            assert!(base.path().join("real").join("inner").is_dir());
        }

        #[test]
        fn a_link_to_itself_is_refused() {
            let base = tempfile::tempdir().unwrap();
            symlink("loop", base.path().join("loop")).unwrap();
            let error = make_private(&base.path().join("loop")).unwrap_err();
            assert!(error.to_string().contains("too many links"), "{error}");
        }

        #[test]
        fn a_file_in_the_way_is_refused() {
            let base = tempfile::tempdir().unwrap();
            fs::write(base.path().join("file"), "").unwrap();
            assert!(make_private(&base.path().join("file")).is_err());
            assert!(make_private(&base.path().join("file").join("below")).is_err());
        }

        #[test]
        fn the_cache_is_looked_for_where_the_person_keeps_it() {
            let home = tempfile::tempdir().unwrap();
            let temporary = Path::new("/temporary");
            let some = |path: &str| Some(PathBuf::from(path));
            let own = Some(home.path().to_owned());
            let in_home = home.path().join(".cache/sandgate");
            let among_temporary = temporary.join(format!("sandgate-{}", me()));
            let cases = [
                (some("/cache"), own.clone(), Path::new("/cache/sandgate")),
                (some("cache"), own.clone(), &in_home),
                (None, own, &in_home),
                (None, some("relative"), &among_temporary),
                (None, None, &among_temporary),
            ];
            for (cache, home, expected) in cases {
                assert_eq!(choose(cache, home, temporary), expected);
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
            let error = make_private(&link).unwrap_err();
            assert!(error.to_string().contains("a link that another user made"), "{error}");
            lchown(&directory, Some(12345), None).unwrap();
            let error = make_private(&directory).unwrap_err();
            assert!(error.to_string().contains("not a directory of yours"), "{error}");
            assert!(is_of_another(&directory));
        }
    }
}
