//! The profile, held against golden files and against what a layout means.

use super::*;
use proptest::prelude::*;
use sandgate_protocol::WritableRoot;

fn root(path: &str, read_only: &[&str]) -> WritableRoot {
    let read_only_subpaths = read_only.iter().map(PathBuf::from).collect();
    WritableRoot { path: path.into(), read_only_subpaths }
}

fn two_roots() -> Layout {
    let roots = vec![
        root("/Users/me/app", &["/Users/me/app/.codex", "/Users/me/app/.git"]),
        root("/private/tmp", &[]),
    ];
    let pinned = vec!["/Users/me/app/vendor/lib".into()];
    let absent = vec!["/Users/me/app/.codex".into()];
    Layout::made_of(roots, pinned, absent)
}

fn built(layout: &Layout, network: NetworkAccess) -> Seatbelt {
    Seatbelt::build(layout, network).unwrap()
}

/// Everything that `sandbox-exec` is given, one argument a line but for the profile.
fn shown(seatbelt: &Seatbelt) -> String {
    let arguments = ["-c", "echo 'a \"b\"'"].map(OsStr::new);
    let argv = seatbelt.wrap(Path::new("/bin/sh"), arguments);
    argv.iter().map(|argument| format!("{}\n", argument.display())).collect()
}

/// spec PLATFORMS.1: A Seatbelt profile denies whatever it does not name, lets everything be read,
/// and lets nothing be written to but the roots, harmless devices and terminals of the command's
/// own.
#[test]
fn a_read_only_profile_names_no_root() {
    let seatbelt = built(&Layout::default(), NetworkAccess::Restricted);
    assert_eq!(seatbelt.parameters(), []);
    insta::assert_snapshot!("read_only", shown(&seatbelt));
}

/// spec PLATFORMS.2: A root is writable but for what is protected in it, present or not, and neither
/// it nor the directory of a repository inside it can be moved away.
#[test]
fn a_profile_for_two_roots_protects_what_is_in_them() {
    let seatbelt = built(&two_roots(), NetworkAccess::Restricted);
    insta::assert_snapshot!("workspace_write", shown(&seatbelt));
}

/// spec PLATFORMS.3: With the network off a profile allows no address of the internet, the host's
/// loopback included; sockets that are files work beneath the roots only, whatever the network.
#[test]
fn the_network_is_a_text_of_its_own() {
    let off = built(&two_roots(), NetworkAccess::Restricted);
    let on = built(&two_roots(), NetworkAccess::Enabled);
    for closed in [" ip ", "localhost", "mDNSResponder", "(allow network*", "trustd"] {
        assert!(!off.profile().contains(closed), "{closed}");
    }
    let added = on.profile().strip_prefix(off.profile()).unwrap();
    assert_eq!(added.trim(), NETWORK.trim());
    let unix = |profile: &str| -> Vec<String> {
        let lines = profile.lines().filter(|line| line.contains("unix-socket"));
        lines.filter(|line| !line.contains("mDNSResponder")).map(str::to_owned).collect()
    };
    assert_eq!(unix(on.profile()), unix(off.profile()));
    assert!(unix(off.profile()).iter().all(|line| line.contains("(param \"WRITABLE_ROOT_")));
}

/// spec PLATFORMS.4: No path is part of a profile's text: whatever a directory is called, it stands
/// in a parameter, and the text depends on the number of directories only.
#[test]
fn a_hostile_name_changes_a_parameter_and_nothing_else() {
    let layout =
        |name: &str| Layout::made_of(vec![root(name, &[&format!("{name}/.git")])], vec![], vec![]);
    let plain = built(&layout("/w"), NetworkAccess::Restricted);
    for name in ["/w\") (allow default) (\"", "/w\n(allow default)", "/w=x -D y", "/w\u{7f}\\"] {
        let hostile = built(&layout(name), NetworkAccess::Restricted);
        assert_eq!(hostile.profile(), plain.profile());
        assert_eq!(hostile.parameters()[0], ("WRITABLE_ROOT_0".to_owned(), name.into()));
        let argv = hostile.wrap(Path::new("/bin/ls"), []);
        assert_eq!(argv[4], OsString::from(format!("WRITABLE_ROOT_0={name}")));
    }
}

/// spec PLATFORMS.5: Paths in a profile are those behind the system's own links, `/private/var` for
/// `/var`, and one that is relative or goes up again is refused.
#[test]
fn paths_are_those_behind_the_links() {
    for (path, expected) in [
        ("/var/folders/x", "/private/var/folders/x"),
        ("/tmp", "/private/tmp"),
        ("/etc/x", "/private/etc/x"),
        ("/private/tmp", "/private/tmp"),
        ("/variable", "/variable"),
    ] {
        assert_eq!(canonical(Path::new(path)), Ok(PathBuf::from(expected)));
    }
    for path in ["work", "", "/work/../etc", "/a\0b"] {
        let error = canonical(Path::new(path)).unwrap_err().to_string();
        assert!(error.contains("cannot be named in a sandbox profile"), "{error}");
    }
}

/// spec PLATFORMS.6: A command is entered into its profile by `/usr/bin/sandbox-exec`, called by that
/// path, with two dashes before the program.
#[test]
fn a_program_cannot_be_taken_for_an_option() {
    let seatbelt = built(&Layout::default(), NetworkAccess::Restricted);
    let argv = seatbelt.wrap(Path::new("-p"), [OsStr::new("-D")]);
    assert_eq!(argv[0], "/usr/bin/sandbox-exec");
    assert_eq!(argv[3..], ["--", "-p", "-D"]);
}

/// What Seatbelt makes of a filter, written down a second time.
fn matches(filter: &Filter, parameters: &[(String, PathBuf)], path: &Path) -> bool {
    let value = |name: &String| &parameters.iter().find(|(other, _)| other == name).unwrap().1;
    match filter {
        Filter::Literal(name) => path == value(name),
        Filter::Subpath(name) => path.starts_with(value(name)),
        Filter::Respelled(name) => respelled(path, name),
        Filter::Not(filter) => !matches(filter, parameters, path),
        Filter::All(filters) => filters.iter().all(|filter| matches(filter, parameters, path)),
    }
}

fn respelled(path: &Path, name: &str) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(name) && part != name)
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    let part = prop::sample::select(vec!["w", "w2", "a", ".git", ".GIT", ".Codex", ".agents"]);
    prop::collection::vec(part, 1..5)
        .prop_map(|parts| Path::new("/").join(PathBuf::from_iter(parts)))
}

fn any_root() -> impl Strategy<Value = WritableRoot> {
    let inside = prop::collection::vec(any_path(), 0..4);
    (any_path(), inside).prop_map(|(path, inside)| {
        let beneath = |inner: &PathBuf| path.join(inner.strip_prefix("/").unwrap());
        let read_only_subpaths = inside.iter().map(beneath).collect();
        WritableRoot { path, read_only_subpaths }
    })
}

proptest! {
    /// spec PLATFORMS.7: A profile lets exactly those paths be written to that are writable in one
    /// of the roots, without names that differ from protected ones by capitals only.
    #[test]
    fn a_profile_means_what_its_layout_says(
        roots in prop::collection::vec(any_root(), 0..3),
        paths in prop::collection::vec(any_path(), 20),
    ) {
        let layout = Layout::made_of(roots, vec![], vec![]);
        let mut seatbelt = built(&Layout::default(), NetworkAccess::Restricted);
        let filters = seatbelt.filters(&layout).unwrap();
        for path in paths {
            let writable = layout.roots.iter().any(|root| root.is_path_writable(&path));
            let expected = writable && !PROTECTED.iter().any(|name| respelled(&path, name));
            let found = filters.iter().any(|f| matches(f, seatbelt.parameters(), &path));
            prop_assert_eq!(found, expected, "{}", path.display());
        }
    }
}
