//! Processes that live across calls, and their output as resources.

#![expect(deprecated, reason = "clients of the older generation subscribe one by one")]

use crate::support::{Client, Connected, GENERATIONS, Heard, World, facts, text};
use rmcp::model::{
    ReadResourceRequestParams, ResourceContents, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use sandgate_server::mcp::Workspace;
use serde_json::json;

async fn start_cat(client: &Connected) -> String {
    let started = client
        .call("exec_command", json!({ "command": ["cat"], "yield_time_ms": 250, "tty": false }))
        .await;
    facts(&started)["process_id"].as_str().expect("it lives").to_owned()
}

async fn say(client: &Connected, process: &str, words: &str) -> String {
    let arguments = json!({ "process_id": process, "input": words, "wait_for": words.trim(), "yield_time_ms": 20_000 });
    text(&client.call("write_stdin", arguments).await)
}

async fn read(client: &Connected, uri: &str) -> String {
    let read = client.service.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
    match &read.contents[..] {
        [ResourceContents::TextResourceContents { text, .. }] => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// spec MCPS.17: A process that a call starts is talked to, listed and ended by later calls.
/// spec MCPS.18: What processes printed are resources, and nothing else is.
#[tokio::test]
async fn a_process_is_talked_to_and_its_output_is_a_resource() {
    let world = World::usual();
    for version in GENERATIONS {
        let client = world.connect(Client::plain(), &version).await;
        let process = start_cat(&client).await;
        assert!(say(&client, &process, "hello\n").await.contains("hello"));
        let listed = client.call("list_processes", json!({})).await;
        assert_eq!(facts(&listed)["processes"][0]["process_id"], json!(process));
        let resources = client.service.list_all_resources().await.unwrap();
        let uri = format!("sandgate://process/{process}/output");
        assert_eq!(resources.len(), 1);
        assert_eq!(resources[0].uri, uri);
        assert_eq!(read(&client, &uri).await, "hello\n");
        for wrong in ["sandgate://process/none/output", "file:///etc/passwd", "x", ""] {
            let refused = client.service.read_resource(ReadResourceRequestParams::new(wrong)).await;
            assert!(refused.is_err(), "{wrong}");
        }
        let ended = client.call("kill_process", json!({ "process_id": process })).await;
        assert_eq!(ended.is_error, Some(false), "{ended:?}");
    }
}

/// spec MCPS.19: Who follows such a resource hears when it has changed, also in the session of other roots.
#[tokio::test]
async fn who_follows_an_output_hears_that_it_changed() {
    let world = World::usual();
    let client = world.connect(Client::plain(), &GENERATIONS[0]).await;
    let process = start_cat(&client).await;
    let uri = format!("sandgate://process/{process}/output");
    client.service.subscribe(SubscribeRequestParams::new(uri.clone())).await.unwrap();
    say(&client, &process, "more\n").await;
    let updated =
        client.heard.until("an update", |heard| heard.updated.lock().unwrap().pop()).await;
    assert_eq!(updated, uri);

    let client = world.connect(Client::plain(), &GENERATIONS[1]).await;
    let process = start_cat(&client).await;
    let uri = format!("sandgate://process/{process}/output");
    let mut wanted = SubscriptionFilter::default();
    wanted.resource_subscriptions = Some(vec![uri.clone(), "file:///etc/passwd".to_owned()]);
    let mut following = client.service.listen(wanted).await.unwrap();
    assert_eq!(following.acknowledged().resource_subscriptions, Some(vec![uri.clone()]));
    say(&client, &process, "more\n").await;
    let told =
        tokio::time::timeout(crate::support::LIMIT, following.next()).await.expect("it comes");
    match told {
        Ok(Some(ServerNotification::ResourceUpdatedNotification(update))) => {
            assert_eq!(update.params.uri, uri);
        }
        other => panic!("{other:?}"),
    }
}

/// spec MCPS.19: Who follows such a resource hears when it has changed, also in the session of other roots.
#[tokio::test]
async fn who_follows_outputs_hears_of_them_in_another_session() {
    let mut world = World::usual();
    world.options.workspace = Workspace::ByRoots;
    let (one, two) = (world.path("one"), world.path("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    let client = Client::plain().with_roots(&[&one]);
    let roots = client.roots.clone().unwrap();
    let client = world.connect(client, &GENERATIONS[0]).await;
    let hears = async |words: &str| {
        let process = start_cat(&client).await;
        let uri = format!("sandgate://process/{process}/output");
        client.service.subscribe(SubscribeRequestParams::new(uri.clone())).await.unwrap();
        say(&client, &process, words).await;
        let is_told = |heard: &Heard| heard.updated.lock().unwrap().contains(&uri).then_some(());
        client.heard.until("an update", is_told).await;
        uri
    };
    let first = hears("one\n").await;
    // Whoever stops and begins again hears again.
    client.service.unsubscribe(UnsubscribeRequestParams::new(first)).await.unwrap();
    hears("again\n").await;
    *roots.lock().unwrap() = vec![two.clone()];
    client.service.notify_roots_list_changed().await.unwrap();
    // The notice and the call may come in either order.
    while text(&client.script("pwd").await) != format!("{}\n", two.display()) {}
    client.heard.updated.lock().unwrap().clear();
    hears("two\n").await;
}
