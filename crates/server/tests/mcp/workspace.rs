//! Where a client's session works.

use crate::support::{Client, GENERATIONS, World, eventually, facts, mark, running_with, text};
use sandgate_server::mcp::Workspace;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// spec MCPS.5: A session works where the person said; if they did not, in the client's root;
/// without one, where the program was started.
#[tokio::test]
async fn it_works_where_the_person_said_or_in_the_clients_root() {
    for version in GENERATIONS {
        let mut world = World::usual();
        let root = world.path("root");
        std::fs::create_dir(&root).unwrap();
        let missing = world.path("missing");
        let client = || Client::plain().with_roots(&[&missing, &root]);
        let given = world.connect(client(), &version).await;
        let here = format!("{}\n", world.directory.path().display());
        assert_eq!(text(&given.script("pwd").await), here);
        world.options.workspace = Workspace::ByRoots;
        let by_roots = world.connect(client(), &version).await;
        assert_eq!(by_roots.service.list_all_tools().await.unwrap().len(), 11);
        for _ in 0..2 {
            assert_eq!(text(&by_roots.script("pwd").await), format!("{}\n", root.display()));
        }
        for without in [Client::plain(), Client::plain().with_roots(&[&missing])] {
            let without = world.connect(without, &version).await;
            assert_eq!(text(&without.script("pwd").await), here);
        }
    }
}

/// spec MCPS.7: When the client's roots change, later calls work in a session of their own there,
/// and the processes of the one before end.
#[tokio::test]
async fn other_roots_are_another_session() {
    let mut world = World::usual();
    world.options.workspace = Workspace::ByRoots;
    let (one, two) = (world.path("one"), world.path("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    let client = Client::plain().with_roots(&[&one]);
    let roots = client.roots.clone().unwrap();
    let client = world.connect(client, &GENERATIONS[0]).await;
    let sleep = mark(57);
    let live = json!({ "command": ["sleep", sleep], "yield_time_ms": 250 });
    let started = client.call("exec_command", live).await;
    assert!(facts(&started).contains_key("process_id"), "{started:?}");
    *roots.lock().unwrap() = vec![two.clone()];
    client.service.notify_roots_list_changed().await.unwrap();
    let opened = Arc::clone(&world.opener);
    let now = |path: &Path| format!("{}\n", path.display());
    // The notice and the call may come in either order.
    loop {
        let there = text(&client.script("pwd").await);
        if there == now(&two) {
            break;
        }
        assert_eq!(there, now(&one));
    }
    assert_eq!(*opened.opened.lock().unwrap(), [one, two]);
    eventually("the old process has ended", || running_with(&sleep) == 0).await;
    let told = |heard: &crate::support::Heard| {
        heard.logged.lock().unwrap().iter().any(|line| line.contains("workspace")).then_some(())
    };
    client.heard.until("a notice", told).await;
}
