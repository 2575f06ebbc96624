//! Edits that keep what a person wrote.

use sandgate_config::{Owner, TrustLevel, check, set, set_trust};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const BEFORE: &str = r#"# My settings.

model = "a" # the cheap one
sandbox_mode   =   'read-only'


[sandbox_workspace_write] # what commands may write
# roots
writable_roots = [
  "/one", # first
  "/two",
]

[profiles.ci]
approval_policy = "never"

audit.fsync = "each"
# the end
"#;

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file that nobody else can write, whatever the umask is.
fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    #[cfg(unix)]
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

fn text(home: &Path) -> String {
    fs::read_to_string(home.join("config.toml")).unwrap()
}

/// spec CONFIG.30: Setting a value keeps every comment, the order and everything else in the file as
/// it was.
#[test]
fn a_value_is_set_and_the_rest_stays() {
    let home = home();
    write(&home.path().join("config.toml"), BEFORE);
    let change = |profile, key, value, old: &str, new: &str| {
        let before = text(home.path());
        assert_eq!(before.matches(old).count(), 1, "{before}");
        set(home.path(), profile, key, value).unwrap();
        assert_eq!(text(home.path()), before.replacen(old, new, 1));
    };
    change(None, "model", "b", "model = \"a\" # the cheap one", "model = \"b\" # the cheap one");
    change(
        None,
        "sandbox_mode",
        "workspace-write",
        "   =   'read-only'",
        "   =   \"workspace-write\"",
    );
    // A new one goes to the end of its table, and a new table to the end of the file.
    change(
        None,
        "model_provider",
        "x",
        "workspace-write\"\n",
        "workspace-write\"\nmodel_provider = \"x\"\n",
    );
    change(
        None,
        "sandbox_workspace_write.network_access",
        "true",
        "\"/two\",\n]\n",
        "\"/two\",\n]\nnetwork_access = true\n",
    );
    change(
        Some("ci"),
        "model",
        "c",
        "audit.fsync = \"each\"\n",
        "audit.fsync = \"each\"\nmodel = \"c\"\n",
    );
    change(Some("ci"), "audit.fsync", "never", "audit.fsync = \"each\"", "audit.fsync = \"never\"");
    set(home.path(), Some("new one"), "limits.output_tokens", "5").unwrap();
    let after = text(home.path());
    assert!(after.contains("[profiles.\"new one\".limits]\noutput_tokens = 5\n"), "{after}");
    assert!(after.starts_with("# My settings.\n") && after.contains("# the end\n"), "{after}");

    // The same again changes nothing.
    set(home.path(), None, "model", "b").unwrap();
    assert_eq!(text(home.path()), after);
}

#[test]
fn what_was_written_in_line_stays_in_line() {
    let home = home();
    write(&home.path().join("config.toml"), "audit = { fsync = \"each\" } # x\n");
    set(home.path(), None, "audit.on_failure", "stop").unwrap();
    assert_eq!(text(home.path()), "audit = { fsync = \"each\", on_failure = \"stop\" } # x\n");
}

#[test]
fn a_file_of_comments_keeps_them_first() {
    for (key, value, expected) in [
        ("model", "x", "# about\nmodel = \"x\"\n"),
        ("audit.fsync", "each", "# about\n\n[audit]\nfsync = \"each\"\n"),
    ] {
        let home = home();
        write(&home.path().join("config.toml"), "# about\n");
        set(home.path(), None, key, value).unwrap();
        assert_eq!(text(home.path()), expected);
    }
}

#[test]
fn trust_is_noted_with_what_was_seen() {
    let home = home();
    let root = Path::new("/a/b.c");
    set_trust(home.path(), root, TrustLevel::Trusted, &["one".to_owned()]).unwrap();
    set_trust(home.path(), root, TrustLevel::Trusted, &["two".to_owned()]).unwrap();
    let expected = "[projects.\"/a/b.c\"]\ntrust_level = \"trusted\"\nseen = [\"one\", \"two\"]\n";
    assert_eq!(text(home.path()), expected);
    set_trust(home.path(), root, TrustLevel::Untrusted, &[]).unwrap();
    let expected = "[projects.\"/a/b.c\"]\ntrust_level = \"untrusted\"\nseen = []\n";
    assert_eq!(text(home.path()), expected);
}

/// spec CONFIG.31: A file is replaced whole and keeps its mode; where a link leads to it the link
/// stays.
#[test]
#[cfg(unix)]
fn mode_and_link_stay() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let (home, dotfiles) = (home(), home());
    let real = dotfiles.path().join("codex.toml");
    fs::write(&real, "model = \"a\"\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, home.path().join("config.toml")).unwrap();
    let before = fs::metadata(&real).unwrap().ino();
    set(home.path(), None, "model", "b").unwrap();
    assert_eq!(fs::read_to_string(&real).unwrap(), "model = \"b\"\n");
    let after = fs::metadata(&real).unwrap();
    assert_eq!(after.mode() & 0o777, 0o640);
    assert_ne!(after.ino(), before, "it was written in place, and a reader could see half of it");
    assert!(home.path().join("config.toml").is_symlink());
    // Nothing is left beside either, but for what writers lock.
    for directory in [home.path(), dotfiles.path()] {
        let left = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name != ".config.lock").count(), 1);
    }

    fs::remove_file(&real).unwrap();
    let error = set(home.path(), None, "model", "c").unwrap_err();
    assert!(error.to_string().contains("leads nowhere"), "{error}");
}

/// spec CONFIG.32: Changes that are made at the same time are all kept, and whoever reads meanwhile
/// finds a whole file.
#[test]
fn writers_lose_nothing() {
    const WRITERS: usize = 8;
    const CHANGES: usize = 12;
    let home = home();
    set(home.path(), None, "model", "first").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let text = text(home.path());
                assert!(text.starts_with("model = \"first\"\n"), "{text}");
                check(&text, "config.toml", Owner::Person).unwrap();
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let home = home.path();
                scope.spawn(move || {
                    for change in 0..CHANGES {
                        let root = format!("/{writer}/{change}");
                        set_trust(home, Path::new(&root), TrustLevel::Trusted, &[]).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    let checked = check(&text(home.path()), "config.toml", Owner::Person).unwrap();
    assert_eq!(checked.table["projects"].as_table().unwrap().len(), WRITERS * CHANGES);
}

/// spec CONFIG.33: A value that a setting cannot have is not written, and nothing is written to a
/// broken file.
#[test]
fn what_is_wrong_is_not_written() {
    let home = home();
    for (key, value) in [("sandbox_mode", "none"), ("modle", "x"), ("a b", "x"), ("audit", "x")] {
        assert!(set(home.path(), None, key, value).is_err());
    }
    assert!(set(home.path(), Some("p"), "profile", "x").is_err());
    assert!(!home.path().join("config.toml").exists());
    for broken in ["model = \n", "sandbox_mode = \"none\"\n"] {
        write(&home.path().join("config.toml"), broken);
        let error = set(home.path(), None, "model", "x").unwrap_err();
        assert!(error.to_string().contains("config.toml:1:"), "{error}");
        assert_eq!(text(home.path()), broken);
    }
}

/// spec CONFIG.34: The directory of the settings is made for its owner only, and so is the file.
#[test]
#[cfg(unix)]
fn what_is_new_is_private() {
    use std::os::unix::fs::MetadataExt as _;
    let parent = home();
    let home = parent.path().join("new/.codex");
    set(&home, None, "model", "x").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("config.toml")), 0o600);
}
