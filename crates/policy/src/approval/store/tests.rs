use super::*;
use AskForApproval::OnRequest;
use ReviewDecision::{Abort, Approved, ApprovedForSession};
use proptest::collection::vec;
use proptest::prelude::*;
use sandgate_protocol::SandboxPermissions;

fn patch(file: &str) -> ApprovalKey {
    ApprovalKey::patch(file)
}

fn command(word: &str) -> ApprovalKey {
    ApprovalKey::Command {
        tool: "shell".to_owned(),
        argv: vec![word.to_owned()],
        cwd: "/ws".into(),
        sandbox_permissions: SandboxPermissions::UseDefault,
        tty: false,
        runs: Vec::new(),
    }
}

fn knows(store: &ApprovalStore, keys: &[ApprovalKey]) -> bool {
    store.look_up(OnRequest, keys) == Remembered::Approved
}

/// spec APPROVAL.40: Only the answer that is meant for the session is remembered.
#[test]
fn an_answer_for_once_is_not_remembered() {
    for (decision, remembered) in [
        (Approved, false),
        (ApprovedForSession, true),
        (ReviewDecision::DENIED, false),
        (Abort, false),
    ] {
        let mut store = ApprovalStore::default();
        store.record(&decision, &[command("make")]);
        assert_eq!(knows(&store, &[command("make")]), remembered, "{decision:?}");
    }
}

/// spec APPROVAL.41: A request is approved already only if each of its keys is remembered; one
/// without keys never is.
/// spec APPROVAL.43: A patch has a key for each file.
#[test]
fn every_file_of_a_patch_must_have_been_approved() {
    let mut store = ApprovalStore::default();
    assert!(!knows(&store, &[]));
    store.record(&ApprovedForSession, &[patch("/ws/a"), patch("/ws/b")]);
    assert!(knows(&store, &[patch("/ws/b")]) && knows(&store, &[patch("/ws/b"), patch("/ws/a")]));
    assert!(!knows(&store, &[patch("/ws/a"), patch("/ws/c")]));
    assert!(!knows(&store, &[]));
}

/// spec APPROVAL.44: A directory that a person opened to patches covers the files beneath it,
/// compared by components, and nothing but patches.
#[test]
fn an_open_directory_covers_what_is_beneath_it() {
    let mut store = ApprovalStore::default();
    store.open_to_patches(Path::new("/ws/src")).unwrap();
    for (file, covered) in [
        ("/ws/src/main.rs", true),
        ("/ws/src/a/b/c.rs", true),
        ("/ws/src", false),
        ("/ws/src2/main.rs", false),
        ("/ws/srcmain.rs", false),
        ("/ws/src/../secret", false),
        ("/ws/src/a/../../secret", false),
        ("/ws/Cargo.toml", false),
        ("src/main.rs", false),
        ("/", false),
    ] {
        assert_eq!(knows(&store, &[patch(file)]), covered, "{file}");
    }
    let mut other = command("/ws/src/main.rs");
    if let ApprovalKey::Command { cwd, .. } = &mut other {
        *cwd = "/ws/src/x".into();
    }
    assert!(!knows(&store, &[other]));
    assert!(!knows(&store, &[patch("/ws/src/main.rs"), patch("/ws/Cargo.toml")]));
    store.record(&ApprovedForSession, &[patch("/ws/Cargo.toml")]);
    assert!(knows(&store, &[patch("/ws/src/main.rs"), patch("/ws/Cargo.toml")]));
}

/// spec APPROVAL.45: A directory to be opened that is relative, climbs, or is everything is refused.
#[test]
fn a_directory_that_could_be_more_than_it_seems_is_refused() {
    let mut store = ApprovalStore::default();
    let mut open = |root: &str| store.open_to_patches(Path::new(root));
    assert_eq!(open("src"), Err(RootRefused::NotAbsolute("src".into())));
    assert_eq!(open("/ws/.."), Err(RootRefused::Climbs("/ws/..".into())));
    assert_eq!(open("/"), Err(RootRefused::Everything("/".into())));
    for number in 0..MAX_ROOTS {
        assert_eq!(open(&format!("/ws/{number}")), Ok(()));
    }
    assert_eq!(open("/ws/7/inner"), Ok(()));
    assert_eq!(open("/ws/one-more"), Err(RootRefused::TooMany));
    assert!(
        !knows(&store, &[patch("/ws/one-more/file")]) && !knows(&store, &[patch("/etc/passwd")])
    );
}

/// A person's store: their home, their settings, a workspace.
fn at_home() -> ApprovalStore {
    let around = Surroundings {
        home: Some("/people/me".into()),
        roots: vec!["/people/me/work".into()],
        ..Surroundings::default()
    };
    ApprovalStore::new(around, Some("/people/me/x/conf".into()))
}

/// spec APPROVAL.48: A directory that is a home or holds one, that lies in the settings or at or beneath a
/// protected name, or that a person or the system keeps, is not opened to patches.
#[test]
fn a_directory_with_more_in_it_than_files_to_work_on_is_refused() {
    let mut store = at_home();
    for root in ["/people/me", "/people", "/home/other", "/root"] {
        let refused = store.open_to_patches(Path::new(root));
        assert_eq!(refused, Err(RootRefused::HoldsHome(root.into())), "{root}");
    }
    for root in [
        "/people/me/x/conf",
        "/people/me/x/conf/rules",
        "/people/me/.ssh",
        "/people/me/.config/systemd/user",
        "/people/me/repo/.git/hooks",
        "/people/me/repo/.GIT",
        "/elsewhere/.codex",
        "/etc",
        "/home",
        "/usr/local/bin",
    ] {
        let refused = store.open_to_patches(Path::new(root));
        assert!(matches!(refused, Err(RootRefused::Kept { .. })), "{root}: {refused:?}");
    }
    for root in ["/people/me/notes", "/people/you", "/elsewhere"] {
        assert_eq!(store.open_to_patches(Path::new(root)), Ok(()), "{root}");
    }
}

/// spec APPROVAL.49: An open directory covers nothing of the settings, nothing at or beneath a protected
/// name, and nothing that is run or obeyed later without anybody asking, or secret.
#[test]
fn an_open_directory_does_not_cover_what_must_be_asked_about_by_itself() {
    let mut store = at_home();
    store.open_to_patches(Path::new("/people/me/x")).unwrap();
    store.open_to_patches(Path::new("/people/me/.config")).unwrap();
    assert!(knows(&store, &[patch("/people/me/x/a")]));
    assert!(knows(&store, &[patch("/people/me/.config/app/a")]));
    for file in [
        "/people/me/x/.git/config",
        "/people/me/x/conf/config.toml",
        "/people/me/x/.git/hooks/pre-commit",
        "/people/me/x/deep/.Codex/config.toml",
        "/people/me/x/.agents",
        "/people/me/x/.ssh/authorized_keys",
        "/people/me/x/id_ed25519",
        "/people/me/.config/fish/config.fish",
        "/people/me/.config/gh/hosts.yml",
    ] {
        assert!(!knows(&store, &[patch(file)]), "{file}");
    }
    // A file that was named is another matter.
    store.record(&ApprovedForSession, &[patch("/people/me/x/.git/config")]);
    assert!(knows(&store, &[patch("/people/me/x/.git/config")]));
    assert!(!knows(&store, &[patch("/people/me/x/.git/hooks/pre-commit")]));
}

/// spec APPROVAL.50: A change of the settings is asked about each time: no answer to it is remembered.
#[test]
fn no_answer_about_the_settings_is_remembered() {
    let mut store = at_home();
    let keys = [patch("/people/me/notes"), patch("/people/me/x/conf/config.toml")];
    assert!(!store.can_remember(&keys) && store.can_remember(&keys[..1]));
    store.record(&ApprovedForSession, &keys);
    assert!(!knows(&store, &keys) && !knows(&store, &keys[..1]) && !knows(&store, &keys[1..]));
}

/// spec APPROVAL.46: Not more than 10,000 keys are remembered; the oldest are forgotten first, and
/// asked about again.
#[test]
fn the_oldest_answers_are_forgotten() {
    let mut store = ApprovalStore::default();
    let key = |number: usize| command(&number.to_string());
    for number in 0..=MAX_KEYS {
        store.record(&ApprovedForSession, &[key(number)]);
    }
    assert_eq!((store.keys.len(), store.order.len()), (10_000, 10_000));
    assert!(
        !knows(&store, &[key(0)]) && knows(&store, &[key(1)]) && knows(&store, &[key(MAX_KEYS)])
    );

    let too_many: Vec<ApprovalKey> = (0..=MAX_KEYS).map(|n| patch(&format!("/ws/{n}"))).collect();
    store.record(&ApprovedForSession, &too_many);
    assert!(!knows(&store, &too_many) && !knows(&store, &too_many[..1]));
    assert!(knows(&store, &[key(1)]));
}

fn any_key() -> impl Strategy<Value = ApprovalKey> {
    prop_oneof![
        "[ab]{1,2}".prop_map(|word| command(&word)),
        "(/[ab.]{1,2}){1,3}".prop_map(|file| patch(&file)),
    ]
}

proptest! {
    #[test]
    fn a_request_is_approved_exactly_if_each_key_was(
        answers in vec((prop_oneof![Just(ApprovedForSession), Just(Approved), Just(ReviewDecision::DENIED)],
                        vec(any_key(), 0..4)), 0..8),
        asked in vec(any_key(), 0..4),
    ) {
        let mut store = ApprovalStore::default();
        let mut approved = HashSet::new();
        for (decision, keys) in &answers {
            store.record(decision, keys);
            if *decision == ApprovedForSession {
                approved.extend(keys.iter().cloned());
            }
        }
        let expected = !asked.is_empty() && asked.iter().all(|key| approved.contains(key));
        prop_assert_eq!(knows(&store, &asked), expected);
    }

    #[test]
    fn an_open_directory_covers_only_paths_that_begin_with_it(
        root in "(/[ab]{1,2}){1,2}",
        file in "(/([ab]{1,2}|\\.\\.)){1,4}",
    ) {
        let mut store = ApprovalStore::default();
        store.open_to_patches(Path::new(&root)).unwrap();
        let expected = file.starts_with(&format!("{root}/")) && !file.split('/').any(|p| p == "..");
        prop_assert_eq!(knows(&store, &[patch(&file)]), expected);
    }

    #[test]
    fn remembering_more_never_forgets_what_fits(first in any_key(), others in vec(any_key(), 0..20)) {
        let mut store = ApprovalStore::default();
        store.record(&ApprovedForSession, std::slice::from_ref(&first));
        store.record(&ApprovedForSession, &others);
        prop_assert!(knows(&store, &[first]));
    }
}
