//! Whom trust belongs to, and what it lets in.

use sandgate_config::{
    Loaded, Project, Sources, TrustLevel, TrustState, find_project, load, preview, set_trust,
};
use sandgate_protocol::{AskForApproval, SandboxPolicy};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A home and some projects.
struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(world.path("home")).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        // Whatever the umask is, nobody else can write it.
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// A repository, as far as its root can be told.
    fn repository(&self, name: &str) -> PathBuf {
        self.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        self.path(name)
    }

    fn sources(&self, directory: &Path) -> Sources {
        Sources {
            config_home: Some(self.path("home/.codex")),
            home: Some(self.path("home")),
            directory: directory.to_owned(),
            ..Sources::default()
        }
    }

    fn load(&self, directory: &Path) -> Loaded {
        load(&self.sources(directory)).unwrap()
    }

    /// What a person does who looks at everything and says yes.
    fn trust(&self, directory: &Path) {
        let preview = preview(&self.sources(directory)).unwrap();
        let root = &preview.project.trust_root;
        let noted = preview.noted();
        set_trust(&self.path("home/.codex"), root, TrustLevel::Trusted, &noted).unwrap();
    }
}

/// spec CONFIG.25: Trust belongs to the root of the git repository, for a worktree to that of its
/// main repository; a repository inside of another one and a directory above or below do not inherit
/// it.
#[test]
fn trust_belongs_to_the_root_of_the_repository() {
    let world = World::new();
    let main = world.repository("main");
    world.write("main/src/deep/file", "");
    let nested = world.repository("main/vendor/nested");
    let plain = world.path("plain");
    fs::create_dir_all(plain.join("below")).unwrap();

    // A worktree, as git makes one.
    world.write("tree/.git", &format!("gitdir: {}/.git/worktrees/tree\n", main.display()));
    world.write("main/.git/worktrees/tree/commondir", "../..\n");
    let back = format!("{}\n", world.path("tree/.git").display());
    world.write("main/.git/worktrees/tree/gitdir", &back);
    let tree = world.path("tree");
    fs::create_dir(tree.join("below")).unwrap();

    // A submodule is a repository of its own.
    world.write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
    world.write("main/.git/modules/sub/HEAD", "");
    let sub = world.path("main/sub");

    let project = |root: &Path, trust_root: &Path| Project {
        root: root.into(),
        trust_root: trust_root.into(),
    };
    assert_eq!(find_project(&main.join("src/deep")).unwrap(), project(&main, &main));
    assert_eq!(find_project(&nested).unwrap(), project(&nested, &nested));
    assert_eq!(find_project(&tree.join("below")).unwrap(), project(&tree, &main));
    assert_eq!(find_project(&sub).unwrap(), project(&sub, &sub));
    assert_eq!(find_project(&plain.join("below")).unwrap().root, plain.join("below"));
    assert!(find_project(&world.path("nowhere")).is_err());

    world.trust(&main.join("src"));
    world.trust(&plain);
    for (directory, trusted) in [
        (main.join("src/deep"), true),
        (tree, true),
        (nested, false),
        (sub, false),
        (plain.clone(), true),
        (plain.join("below"), false),
        (world.path("home"), false),
    ] {
        assert_eq!(world.load(&directory).trust.is_trusted(), trusted, "{}", directory.display());
    }
    #[cfg(unix)]
    {
        // A link is where it leads to.
        let link = world.path("link");
        std::os::unix::fs::symlink(&main, &link).unwrap();
        assert_eq!(find_project(&link).unwrap(), project(&main, &main));
    }
}

/// spec CONFIG.26: A directory that points at a trusted repository like a worktree, without that
/// repository knowing it, is not trusted.
#[test]
fn a_directory_cannot_claim_to_be_a_worktree() {
    let world = World::new();
    let main = world.repository("main");
    world.trust(&main);
    world.write("main/.git/worktrees/tree/commondir", "../..\n");
    world.write("main/.git/worktrees/tree/gitdir", "/elsewhere/.git\n");

    // It names an entry that is another's.
    world.write("one/.git", &format!("gitdir: {}/.git/worktrees/tree\n", main.display()));
    // It brings an entry of its own, which names the trusted repository.
    world.write("two/.git", "gitdir: admin\n");
    world.write("two/admin/commondir", &format!("{}/.git\n", main.display()));
    world.write("two/admin/gitdir", &format!("{}\n", world.path("two/.git").display()));
    // It says it is the trusted repository itself.
    world.write("three/.git", &format!("gitdir: {}/.git\n", main.display()));
    // It has far too much to say.
    world.write("four/.git", &"gitdir: ".repeat(10_000));
    for name in ["one", "two", "three", "four"] {
        let directory = world.path(name);
        let project = find_project(&directory).unwrap();
        assert_eq!(project.trust_root, directory);
        assert_eq!(world.load(&directory).trust, TrustState::Unknown);
    }
    #[cfg(unix)]
    {
        fs::create_dir(world.path("five")).unwrap();
        std::os::unix::fs::symlink(main.join(".git"), world.path("five/.git")).unwrap();
        assert_eq!(find_project(&world.path("five")).unwrap().trust_root, world.path("five"));
    }
}

/// spec CONFIG.24: What loosens in a trusted project's file counts while the file is as the person has
/// seen it; when the file has changed it does not count and is named, and what makes things stricter
/// counts all the same.
#[test]
fn a_changed_file_must_be_seen_again_if_it_loosens() {
    let world = World::new();
    let main = world.repository("main");
    let config = "main/.codex/config.toml";
    world.write(config, "approval_policy = \"never\"\n");
    assert_eq!(world.load(&main).trust, TrustState::Unknown);
    world.trust(&main);
    let loaded = world.load(&main);
    assert_eq!(loaded.trust, TrustState::Trusted);
    assert_eq!(loaded.config.approval_policy(), AskForApproval::Never);

    world.write(config, "approval_policy = \"never\"\nsandbox_mode = \"read-only\"\n");
    let loaded = world.load(&main);
    let TrustState::ChangedSince { loosenings } = loaded.trust else { panic!("it has changed") };
    assert_eq!(loosenings[0].to_string(), "you are never asked (approval_policy)");
    assert_eq!(loosenings.len(), 1);
    assert_eq!(loaded.config.approval_policy(), AskForApproval::OnRequest);
    assert_eq!(loaded.config.sandbox_policy(), SandboxPolicy::ReadOnly);

    // Only stricter: nobody needs to look at it.
    world.write(config, "sandbox_mode = \"read-only\"\n");
    let loaded = world.load(&main);
    assert_eq!(loaded.trust, TrustState::Trusted);
    assert_eq!(loaded.config.sandbox_policy(), SandboxPolicy::ReadOnly);

    // As it was: it has been seen.
    world.write(config, "approval_policy = \"never\"\n");
    assert_eq!(world.load(&main).config.approval_policy(), AskForApproval::Never);
}

/// spec CONFIG.28: Of a file that the person has seen only that loosens something which they were told
/// of: if it loosens more since their own settings became stricter, they are told first.
#[test]
fn what_was_not_told_does_not_count_when_the_persons_settings_become_stricter() {
    let world = World::new();
    let main = world.repository("main");
    let theirs = "sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n";
    world.write("main/.codex/config.toml", theirs);
    // They are told of one of the two, as their own settings allow the other.
    world.write("home/.codex/config.toml", "sandbox_mode = \"danger-full-access\"\n");
    let told: Vec<String> = preview(&world.sources(&main))
        .unwrap()
        .loosenings
        .iter()
        .map(|one| one.key.clone())
        .collect();
    assert_eq!(told, ["approval_policy"]);
    world.trust(&main);
    assert_eq!(world.load(&main).trust, TrustState::Trusted);

    let own = fs::read_to_string(world.path("home/.codex/config.toml")).unwrap();
    let stricter = own.replace("danger-full-access", "workspace-write");
    world.write("home/.codex/config.toml", &stricter);
    let loaded = world.load(&main);
    let TrustState::ChangedSince { loosenings } = &loaded.trust else {
        panic!("{:?}", loaded.trust)
    };
    assert_eq!(loosenings[0].to_string(), "commands run without a sandbox (sandbox_mode)");
    assert!(matches!(loaded.config.sandbox_policy(), SandboxPolicy::WorkspaceWrite { .. }));
    assert_eq!(loaded.config.approval_policy(), AskForApproval::OnRequest);

    // Told of both, they say yes to both.
    world.trust(&main);
    let loaded = world.load(&main);
    assert_eq!(loaded.trust, TrustState::Trusted);
    assert_eq!(loaded.config.sandbox_policy(), SandboxPolicy::DangerFullAccess);

    // Looser settings of their own are nothing new.
    world.write(
        "home/.codex/config.toml",
        &format!(
            "approval_policy = \"never\"\n{}",
            fs::read_to_string(world.path("home/.codex/config.toml")).unwrap()
        ),
    );
    assert_eq!(world.load(&main).trust, TrustState::Trusted);
}

#[test]
fn a_profile_of_a_project_can_be_asked_for_once_it_was_seen() {
    let world = World::new();
    let main = world.repository("main");
    world.write("main/.codex/config.toml", "[profiles.fast]\napproval_policy = \"never\"\n");
    world.trust(&main);
    let asked = Sources { profile: Some("fast".to_owned()), ..world.sources(&main) };
    assert_eq!(load(&asked).unwrap().config.approval_policy(), AskForApproval::Never);
    world.write("main/.codex/config.toml", "[profiles.fast]\nsandbox_mode = \"read-only\"\n");
    let error = load(&asked).unwrap_err().to_string();
    assert!(error.contains("there is no profile called \"fast\""), "{error}");
}

#[test]
fn rules_are_seen_file_by_file() {
    let world = World::new();
    let main = world.repository("main");
    world.write("main/.codex/rules/a.toml", "# one\n");
    world.write("main/.codex/rules/b.toml", "# two\n");
    world.trust(&main);
    world.write("main/.codex/rules/b.toml", "# three\n");
    // A file under another name has not been seen either.
    world.write("main/.codex/rules/c.toml", "# one\n");
    let rules = world.load(&main).rules;
    let seen: Vec<(&str, bool)> =
        rules.iter().map(|rules| (rules.file.name.as_str(), rules.seen)).collect();
    assert_eq!(seen, [("rules/a.toml", true), ("rules/b.toml", false), ("rules/c.toml", false)]);
}

/// spec CONFIG.20: The files of a project that is not trusted are not opened.
#[test]
#[cfg(unix)]
fn nothing_of_an_untrusted_project_is_opened() {
    let world = World::new();
    let main = world.repository("main");
    world.write("main/.codex/config.toml", "model = \"theirs\"\n");
    // Whoever looked at this would complain.
    std::os::unix::fs::symlink("nowhere", main.join(".codex/rules")).unwrap();
    // Opening one is noted in its time of access, which is set long ago and far off.
    let path = world.path("main/.codex/config.toml");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let times = fs::FileTimes::new().set_accessed(long_ago).set_modified(long_ago);
    fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    let accessed = || fs::metadata(&path).unwrap().accessed().unwrap();
    let before = accessed();
    for level in [None, Some(TrustLevel::Untrusted)] {
        if let Some(level) = level {
            set_trust(&world.path("home/.codex"), &main, level, &[]).unwrap();
        }
        let loaded = world.load(&main);
        assert!(!loaded.trust.is_trusted());
        assert_eq!(loaded.config.settings().model, None);
        assert!(loaded.rules.is_empty() && loaded.notes.is_empty());
        assert_eq!(accessed(), before);
    }
    world.trust(&main);
    let loaded = world.load(&main);
    assert_eq!(loaded.config.settings().model.as_deref(), Some("theirs"));
    assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
}

/// spec CONFIG.14: A project's file that is broken is reported, nothing of it is used, and the
/// person's settings apply.
#[test]
fn a_broken_file_of_a_project_takes_only_itself_away() {
    let world = World::new();
    let main = world.repository("main");
    world.write("home/.codex/config.toml", "model = \"mine\"\n");
    world.trust(&main);
    for broken in [
        "model = \"theirs\"\nsandbox_mode = \"none\"\n",
        "model = \"theirs\"\nsandbox_mode = \n",
        "model = \"theirs\"\n[",
    ] {
        world.write("main/.codex/config.toml", broken);
        let loaded = world.load(&main);
        assert_eq!(loaded.config.settings().model.as_deref(), Some("mine"));
        let notes = loaded.notes.join("\n");
        assert!(notes.contains(".codex/config.toml:2:"), "{notes}");
        assert!(notes.contains("is not used until that is corrected"), "{notes}");
    }
}

/// spec CONFIG.27: A project's file is not read through a link, and not if it is larger than 1 MiB.
#[test]
#[cfg(unix)]
fn a_projects_file_is_a_file_of_the_project() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    let main = world.repository("main");
    world.trust(&main);
    world.write("secret/config.toml", "model = \"theirs\"\n");
    let noted = || {
        let loaded = world.load(&main);
        assert_eq!(loaded.config.settings().model, None);
        loaded.notes.join("\n")
    };
    symlink(world.path("secret"), main.join(".codex")).unwrap();
    assert!(noted().contains("is a link"), "{}", noted());
    fs::remove_file(main.join(".codex")).unwrap();
    fs::create_dir(main.join(".codex")).unwrap();
    symlink(world.path("secret/config.toml"), main.join(".codex/config.toml")).unwrap();
    assert!(noted().contains("is a link"), "{}", noted());
    fs::remove_file(main.join(".codex/config.toml")).unwrap();
    let large = format!("model = \"theirs\"\n{}", "#\n".repeat(600_000));
    world.write("main/.codex/config.toml", &large);
    assert!(noted().contains("more than 1048576 bytes"), "{}", noted());
    fs::remove_file(main.join(".codex/config.toml")).unwrap();
    // A pipe must not make us wait for its writer.
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = main.join(".codex/config.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(noted().contains("is not a file"), "{}", noted());
}

#[test]
fn a_home_directory_that_is_a_project_has_no_file_twice() {
    let world = World::new();
    world.repository("home");
    world.write("home/.codex/config.toml", "approval_policy = \"never\"\nmodel = \"mine\"\n");
    world.trust(&world.path("home"));
    let loaded = world.load(&world.path("home"));
    assert_eq!(loaded.trust, TrustState::Trusted);
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
}

#[test]
fn trust_that_codex_wrote_holds_and_of_two_spellings_the_stricter_does() {
    let world = World::new();
    let main = world.repository("main");
    let entry =
        |path: &str, level: &str| format!("[projects.\"{path}\"]\ntrust_level = \"{level}\"\n");
    let path = main.display().to_string();
    world.write("home/.codex/config.toml", &entry(&path, "trusted"));
    assert_eq!(world.load(&main).trust, TrustState::Trusted);
    let both = entry(&path, "trusted") + &entry(&format!("{path}/"), "untrusted");
    world.write("home/.codex/config.toml", &both);
    assert_eq!(world.load(&main).trust, TrustState::Untrusted);
    // What is said now is said about both.
    world.trust(&main);
    assert_eq!(world.load(&main).trust, TrustState::Trusted);
}

/// spec CONFIG.5: A file of the person's that other users can write, or that belongs to another user,
/// is refused with a sentence that says what to do.
#[test]
#[cfg(unix)]
fn a_file_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let file = world.path("home/.codex/config.toml");
    world.write("home/.codex/config.toml", "model = \"x\"\n");
    let refused = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        load(&world.sources(&world.path("home"))).err().map(|error| error.to_string())
    };
    for mode in [0o600, 0o644, 0o400] {
        assert_eq!(refused(&file, mode), None);
    }
    for mode in [0o620, 0o602, 0o666] {
        let error = refused(&file, mode).unwrap();
        assert!(error.contains("can be written by other users"), "{error}");
        assert!(error.ends_with(&format!("chmod go-w {}", file.display())), "{error}");
    }
    assert_eq!(refused(&file, 0o600), None);
    let error = refused(&world.path("home/.codex"), 0o777).unwrap();
    assert!(error.contains("chmod go-w"), "{error}");
    assert_eq!(refused(&world.path("home/.codex"), 0o700), None);

    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can make a file that belongs to another user");
        return;
    }
    std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    let error = refused(&file, 0o600).unwrap();
    assert!(error.contains("belongs to another user"), "{error}");
}
