#[path = "../../../../../testing/mangled.rs"]
mod mangled;

use super::super::{Asker, MOST_DIFF_BYTES, OpenQuestion, shortened};
use super::*;
use jiff::Timestamp;
use mangled::mangled;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};
use sandgate_protocol::{
    ApplyPatchApprovalRequest, ApprovalId, CallId, Event, PatchChange, PatchChangeKind,
};
use std::os::unix::fs::PermissionsExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

fn patch(diff: String) -> Event {
    let change =
        PatchChange { path: "/ws/a".into(), kind: PatchChangeKind::Update, moved_to: None, diff };
    Event::ApplyPatchApprovalRequest(Box::new(ApplyPatchApprovalRequest {
        approval_id: ApprovalId::new("approval_1"),
        call_id: CallId::new("call_1"),
        changes: vec![change.clone(), change],
        reason: "it is outside".to_owned(),
        grant_root: None,
        only_once: false,
        agent: None,
    }))
}

fn open(number: usize, question: Event) -> OpenQuestion {
    let asker =
        Asker { front_end: "exec".to_owned(), workspace: "/ws".to_owned(), conversation: None };
    let id = format!("a-{number}");
    OpenQuestion { id, asker, asked: Timestamp::now(), question, is_cut: false }
}

/// spec DESK.4: What is said of open questions fits a line of 8 MiB: of long diffs it has the beginnings, the
/// files that they change are all named, and how many questions there is no room for is said.
#[test]
fn a_list_has_a_limit() {
    let short = shortened(&patch("+ä\n".repeat(MOST_DIFF_BYTES))).unwrap();
    let Event::ApplyPatchApprovalRequest(request) = &short else { panic!("it is the patch") };
    assert_eq!(request.changes.len(), 2);
    assert!(request.changes[0].diff.ends_with("ä\n[the rest of it is too long to be here]\n"));
    assert!(request.changes.iter().map(|change| change.diff.len()).sum::<usize>() < 33 << 10);
    assert_eq!(shortened(&patch("+x\n".to_owned())), None);
    let many: Vec<_> = (0..1000).map(|number| open(number, short.clone())).collect();
    let reply = shown(&many);
    let Reply::Questions { questions, left_out } = &reply else { panic!("it lists questions") };
    assert!(*left_out > 0 && !questions.is_empty());
    assert_eq!(questions.len() as u64 + left_out, 1000);
    assert!(serde_json::to_vec(&reply).unwrap().len() < LONGEST_LIST);
}

#[test]
fn a_whole_question_has_a_limit_too() {
    let long = |bytes: usize| Some(open(1, patch("+".repeat(bytes / 2))));
    assert!(matches!(whole(long(9 << 20)), Reply::Question { question: Some(_) }));
    assert!(matches!(whole(long(LONGEST_REPLY)), Reply::Error { .. }));
    assert!(matches!(whole(None), Reply::Question { question: None }));
}

/// spec DESK.2: The socket lies in a directory of the settings that only its user can open; a name that is
/// too long for a socket is said, and nothing is left when the program ends.
#[tokio::test]
async fn the_directory_is_for_its_owner_only() {
    let settings = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::default());
    let socket = desk.listen(settings.path()).unwrap();
    let directory = settings.path().join(DIRECTORY);
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(socket);
    while directory.exists() {
        tokio::task::yield_now().await;
    }
    let long = settings.path().join("x".repeat(120));
    let error = desk.listen(&long).unwrap_err().to_string();
    assert!(error.contains("103 bytes") && error.contains("CODEX_HOME"), "{error}");
}

#[tokio::test]
async fn a_lock_that_is_held_is_not_waited_for_for_ever() {
    let settings = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::default());
    std::fs::create_dir(settings.path().join(DIRECTORY)).unwrap();
    let lock = settings.path().join(DIRECTORY).join(format!("{}.lock", desk.name));
    let lock = std::fs::File::create(lock).unwrap();
    lock.lock().unwrap();
    let error = desk.listen(settings.path()).unwrap_err();
    assert!(matches!(error, OwnSocketError::Held { .. }), "{error}");
    drop(lock);
    desk.listen(settings.path()).unwrap();
}

/// spec DESK.3: A line that is no request, or is longer than 64 KiB, is answered by an error and ends the
/// connection that it came by, and no other.
#[tokio::test]
async fn what_makes_no_sense_ends_its_connection_only() {
    let settings = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::default());
    let _socket = desk.listen(settings.path()).unwrap();
    let connect = async || {
        let place = place(settings.path(), &desk.name);
        let (read, write) = place.connect().await.unwrap().unwrap().into_split();
        let mut lines = BufReader::new(read).lines();
        let hello = lines.next_line().await.unwrap().unwrap();
        assert!(hello.contains(r#""type":"hello","protocol":1"#), "{hello}");
        (lines, write)
    };
    let (mut other, mut writer) = connect().await;
    for (line, why) in [
        ("not JSON".to_owned(), "this is no request"),
        (r#"{"type":"list","more":1}"#.to_owned(), "unknown field"),
        ("x".repeat(LONGEST_REQUEST + 1), "longer than 65536 bytes"),
    ] {
        let (mut lines, mut writer) = connect().await;
        let _ = writer.write_all(format!("{line}\n").as_bytes()).await;
        let reply = lines.next_line().await.unwrap().unwrap();
        assert!(reply.contains(r#""type":"error""#) && reply.contains(why), "{reply}");
        // Or reset, because not all of what was said has been read.
        assert!(!matches!(lines.next_line().await, Ok(Some(_))), "it is closed");
    }
    writer.write_all(b"{\"type\":\"list\"}\n").await.unwrap();
    let reply = other.next_line().await.unwrap().unwrap();
    assert_eq!(reply, r#"{"type":"questions","questions":[],"left_out":0}"#);
}

/// Requests that make sense, about a question that there is not.
const HONEST: [&str; 6] = [
    r#"{"type":"list"}"#,
    r#"{"type":"watch"}"#,
    r#"{"type":"question","id":"a-1"}"#,
    r#"{"type":"answer","id":"a-1","decision":{"decision":"approved_with_grant","scope":"call"}}"#,
    r#"{"type":"outcome","id":"a-1"}"#,
    r#"{"type":"link"}"#,
];

/// spec DESK.18: What makes no sense on one connection leaves questions as they are, and the next connection is answered.
#[test]
fn nothing_that_is_said_ends_the_desk() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let settings = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::default());
    let (broker, asked) = (crate::approval::Broker::new(None), open(1, patch("+x\n".to_owned())));
    let id = asked.question.asks().unwrap();
    desk.lay(&asked.asker, &Arc::new(broker.approver("exec")), id, &asked.question);
    let socket = runtime.block_on(async { desk.listen(settings.path()).unwrap() });
    let desks = super::super::Desks::in_settings(settings.path());
    let long = (1_usize..2 * LONGEST_REQUEST).prop_map(|length| vec![b'['; length]);
    let line = prop_oneof![11 => select(&HONEST[..]).prop_flat_map(mangled), 1 => long];
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&prop::collection::vec(line, 0..6), |lines| {
        let (listed, answers) = runtime.block_on(async {
            let place = place(settings.path(), &desk.name);
            let (read, mut write) = place.connect().await.unwrap().unwrap().into_split();
            // Whoever reads may have gone at one that is too long.
            let _ = write.write_all(&lines.join(&b'\n')).await;
            drop(write);
            let mut answers = BufReader::new(read).lines();
            let mut last = None;
            while let Ok(Some(line)) = answers.next_line().await {
                last = Some(serde_json::from_str::<Reply>(&line));
            }
            (desks.list().await.unwrap(), last)
        });
        prop_assert!(answers.is_none_or(|last| last.is_ok()));
        prop_assert_eq!(listed.notes, Vec::<String>::new());
        prop_assert_eq!(listed.questions.len(), 1);
        prop_assert_eq!(desk.open().len(), 1);
        Ok(())
    });
    ran.unwrap();
    runtime.block_on(async { drop(socket) });
}
