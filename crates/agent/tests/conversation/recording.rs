use super::*;
use proptest::prelude::*;
use sandgate_agent::UserInput;
use sandgate_agent::rollout::{self, RolloutError};
use sandgate_runtime::Stop;
use std::fs;
use std::path::PathBuf;

fn resumed(world: &World, model: &Arc<Model>, file: &Path) -> Conversation {
    let provider: Arc<dyn Provider> = Arc::clone(model) as Arc<_>;
    let recorded = rollout::read(file).unwrap();
    let options = ConversationOptions::new("m");
    Conversation::resume(world.session.requester(), provider, options, recorded).unwrap()
}

/// A conversation of one turn with a call, written down, and its file.
async fn written(world: &World, home: &Path) -> (PathBuf, Vec<ResponseItem>) {
    let calls = vec![Does::CallsAs("a", "shell", shell("echo hi"))];
    let model = Model::new([calls, vec![Does::Says("done")]]);
    let mut conversation = world.conversation(&model).recorded(home, None).unwrap();
    conversation.turn(UserInput::text("greet"), &Stop::default()).await;
    let file = rollout::find(home, conversation.id()).unwrap();
    (file, conversation.items().to_vec())
}

/// spec AGENT.7: A conversation is written down line by line, in a file that only its owner can
/// read, before anything follows from it.
#[tokio::test]
async fn what_was_said_and_done_is_on_disk_for_its_owner_only() {
    let (world, home) = (World::new(), tempfile::tempdir().unwrap());
    let (file, items) = written(&world, home.path()).await;
    let recorded = rollout::read(&file).unwrap();
    assert_eq!((recorded.items.clone(), recorded.everything.clone()), (items.clone(), items));
    assert_eq!(recorded.meta.cwd, fs::canonicalize(world.path()).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }
    let listed = rollout::list(home.path(), 10, |_| true).unwrap();
    assert_eq!(listed[0].prompt.as_deref(), Some("greet"));
}

/// spec AGENT.8: After a crash in the middle of a line, the conversation is read up to the last
/// whole one, gone on with, and has an answer for every call.
#[tokio::test]
async fn a_conversation_that_broke_off_anywhere_is_gone_on_with() {
    let (world, home) = (World::new(), tempfile::tempdir().unwrap());
    let (file, items) = written(&world, home.path()).await;
    let whole = fs::read(&file).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let cuts = (first + 1..whole.len()).step_by(97).chain([whole.len()]);
    for cut in cuts {
        fs::write(&file, &whole[..cut]).unwrap();
        let model = Model::new([vec![Does::Says("went on")]]);
        let mut conversation = resumed(&world, &model, &file);
        conversation.turn(UserInput::text("and now?"), &Stop::default()).await;
        let known = rollout::read(&file).unwrap().items;
        assert_eq!(known, conversation.items());
        check(&known);
        let same = known.iter().zip(&items).take_while(|(one, other)| one == other).count();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert!(same + 1 >= lines, "{same} of {lines} lines after {cut} bytes");
    }
}

/// spec AGENT.9: Two programs cannot go on with the same conversation at once.
#[tokio::test]
async fn nobody_else_goes_on_with_it_meanwhile() {
    let (world, home) = (World::new(), tempfile::tempdir().unwrap());
    let (file, _) = written(&world, home.path()).await;
    let model = Model::new([]);
    let _first = resumed(&world, &model, &file);
    let second = rollout::read(&file).unwrap().go_on();
    assert!(matches!(second, Err(RolloutError::InUse(_))), "{second:?}");
}

/// spec AGENT.9: Two programs cannot go on with the same conversation at once.
#[tokio::test]
async fn what_another_program_wrote_meanwhile_is_not_cut_off() {
    let (world, home) = (World::new(), tempfile::tempdir().unwrap());
    let (file, _) = written(&world, home.path()).await;
    let read_before = rollout::read(&file).unwrap();
    let model = Model::new([vec![Does::Says("went on")]]);
    let mut other = resumed(&world, &model, &file);
    other.turn(UserInput::text("and now?"), &Stop::default()).await;
    drop(other);
    let whole = fs::read(&file).unwrap();
    assert!(matches!(read_before.go_on(), Err(RolloutError::InUse(_))));
    assert_eq!(fs::read(&file).unwrap(), whole);
}

/// spec AGENT.10: A conversation is found by the beginning of its id; one that fits several is not
/// guessed.
#[tokio::test]
async fn a_name_that_fits_several_is_not_guessed() {
    let (world, home) = (World::new(), tempfile::tempdir().unwrap());
    let (file, _) = written(&world, home.path()).await;
    written(&world, home.path()).await;
    let id = file.file_stem().unwrap().to_str().unwrap();
    assert_eq!(rollout::find(home.path(), id).unwrap(), file);
    assert!(matches!(rollout::find(home.path(), &id[..4]), Err(RolloutError::Ambiguous(_))));
    for name in ["zzz", "", "../.."] {
        assert!(
            matches!(rollout::find(home.path(), name), Err(RolloutError::NotFound(_))),
            "{name}"
        );
    }
}

proptest! {
    /// spec AGENT.11: Whatever a file holds, reading it as a conversation ends with one or with an
    /// error.
    #[test]
    fn any_file_is_a_conversation_or_an_error(lines in prop::collection::vec(".{0,80}|\\{\"at\":\"2026-01-01T00:00:00Z\",\"type\":\"[a-z_]{0,14}\".{0,40}", 0..6), raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.jsonl");
        fs::write(&file, lines.join("\n")).unwrap();
        let _ = rollout::read(&file);
        fs::write(&file, raw).unwrap();
        let _ = rollout::read(&file);
    }
}
