//! What a search does not know, cannot read or has no room for.

use super::*;

/// An index with submodules at these places.
fn index(places: &[String]) -> Vec<u8> {
    let count = u32::try_from(places.len()).unwrap();
    let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for place in places {
        let start = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(0o160_000_u32.to_be_bytes());
        bytes.extend([0; 32]);
        bytes.extend(u16::try_from(place.len()).unwrap().to_be_bytes());
        bytes.extend(place.as_bytes());
        bytes.resize(start + ((bytes.len() - start) / 8 + 1) * 8, 0);
    }
    bytes
}

/// spec SANDBOX.186: Where an index cannot be understood, is enormous, or has more submodules than can be told apart, the
/// repository is read-only, and a workspace that is one is refused with its name.
#[test]
fn an_index_that_is_not_understood_closes_its_repository() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join("a/.git")).unwrap();
    let whole = index(&["sub".to_owned()]);
    fs::write(ws.join("a/.git/index"), &whole).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    check(&layout, &root, &[("ws/a/file", true), ("ws/a/sub", false)]);
    fs::write(ws.join("a/.git/index"), &whole[..60]).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    check(&layout, &root, &[("ws/a/file", false), ("ws/file", true)]);
    assert_eq!(layout.unfit, None);
    let (place, why) = plain(&policy(vec![]), &ws.join("a"), &env(&[])).unwrap().unfit.unwrap();
    assert_eq!(place, ws.join("a"));
    assert!(why.contains("a/.git/index"), "{why}");
}

/// spec SANDBOX.190: Where more directories of submodules are gone than names can be kept free, nothing runs, and the
/// repository is named with what to do.
#[test]
fn submodules_that_are_gone_are_told_of() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    let places: Vec<_> = (0..450).map(|number| format!("sub{number:03}")).collect();
    fs::create_dir_all(ws.join(".git")).unwrap();
    fs::write(ws.join(".git/index"), index(&places)).unwrap();
    let (place, why) = plain(&policy(vec![]), &ws, &env(&[])).unwrap().unfit.unwrap();
    assert_eq!(place, ws);
    assert!(why.contains("ws has 450 submodules") && why.contains("update --init"), "{why}");
    places.iter().for_each(|place| fs::create_dir(ws.join(place)).unwrap());
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    assert_eq!(layout.unfit, None);
    check(&layout, &root, &[("ws/sub007/.git", false), ("ws/file", true)]);
    // Below a directory that is no root, that is closed.
    fs::create_dir_all(ws.join("in/.git")).unwrap();
    fs::write(ws.join(".git/index"), "").unwrap();
    fs::write(ws.join("in/.git/index"), index(&places)).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    assert_eq!(layout.unfit, None);
    check(&layout, &root, &[("ws/in/sub449", false), ("ws/file", true)]);
}

/// spec SANDBOX.188: What the search cannot open for whatever reason, as a path that is longer than the kernel takes, is
/// read-only; if that is a root, nothing runs.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_opened_is_read_only() {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let (_directory, root) = home();
    let ws = root.join("ws");
    let name = "d".repeat(200);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut here = openat(CWD, &ws, flags, Mode::empty()).unwrap();
    for _ in 0..25 {
        mkdirat(&here, &name, Mode::RWXU).unwrap();
        here = openat(&here, &name, flags, Mode::empty()).unwrap();
    }
    mkdirat(&here, ".git", Mode::RWXU).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    let closed = layout.roots[0].read_only_subpaths.iter().find(|path| path.ends_with(&name));
    assert!(closed.is_some_and(|path| path.as_os_str().len() < 4096), "{closed:?}");
    assert_eq!((layout.unfit, layout.too_large), (None, None));
}

/// spec SANDBOX.191: A directory for temporary files that lies in the workspace is searched as deep as the rest of it.
#[test]
fn a_directory_for_temporary_files_in_the_workspace_is_part_of_it() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    fs::create_dir_all(ws.join("tmp/a/b/c/d/e/.git")).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[("TMPDIR", &ws.join("tmp"))])).unwrap();
    let expected = [("ws/tmp/a/b/c/d/e/.git/config", false), ("ws/tmp/a/b/c/d/e/file", true)];
    check(&layout, &root, &expected);
}

/// spec SANDBOX.193: What is mounted in a root and is not known to hold files is read-only, and told of with its file
/// system.
#[cfg(target_os = "linux")]
#[test]
fn what_is_not_known_to_hold_files_is_told_of() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    let mounted = |name: &str, is_unknown| mounts::OfTheKernel {
        place: ws.join(name),
        is_read_only: false,
        file_system: "newfs".to_owned(),
        is_unknown,
    };
    for name in ["known", "new"] {
        fs::create_dir(ws.join(name)).unwrap();
    }
    let mut finder = find::Finder::new(BTreeSet::from([ws.clone()]));
    let inside = vec![mounted("known", false), mounted("new", true)];
    finder.close_mounted(mounts::Mounted { inside, roots: Vec::new() });
    let layout = finder.finish(BTreeSet::new(), Vec::new());
    check(&layout, &root, &[("ws/new/file", false), ("ws/known/file", false), ("ws/file", true)]);
    let note = format!(
        "{} is read-only: its file system, newfs, is not known to hold files",
        ws.join("new").display()
    );
    assert_eq!(layout.notes(), [note]);
    // A root on such a mount.
    let mut finder = find::Finder::new(BTreeSet::from([ws.clone()]));
    let roots = vec![(ws.clone(), "devtmpfs".to_owned())];
    finder.close_mounted(mounts::Mounted { inside: Vec::new(), roots });
    let (place, why) = finder.finish(BTreeSet::new(), Vec::new()).unfit.unwrap();
    assert_eq!(place, ws);
    assert!(why.contains("devtmpfs"), "{why}");
}
