//! Tools, results, output while it is printed, and the end of calls.

use crate::support::{
    Client, GENERATIONS, World, eventually, facts, mark, request, running_with, text,
};
use rmcp::model::{ErrorCode, ProtocolVersion};
use rmcp::service::ServiceError;
use sandgate_protocol::AskForApproval;
use sandgate_runtime::ToolRegistry;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// spec MCPS.1: The tools that are offered are those of the session, with the session's own
/// schemas; where only some are to be offered, the others are not there.
#[tokio::test]
async fn the_tools_are_those_of_the_session() {
    let world = World::usual();
    for version in GENERATIONS {
        let client = world.connect(Client::plain(), &version).await;
        let listed = client.service.list_all_tools().await.unwrap();
        let specs = ToolRegistry::standard().specs();
        assert_eq!(listed.len(), specs.len());
        for (tool, spec) in listed.iter().zip(specs) {
            assert_eq!(tool.name, spec.name);
            assert_eq!(tool.schema_as_json_value(), spec.parameters, "{}", spec.name);
            assert!(tool.annotations.is_some() && tool.output_schema.is_some(), "{}", spec.name);
        }
    }
    let mut world = World::usual();
    world.options.tools = Some(BTreeSet::from(["shell".to_owned()]));
    let client = world.connect(Client::plain(), &GENERATIONS[0]).await;
    let names: Vec<_> =
        client.service.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["shell"]);
    for tool in ["shell_command", "container.exec", "none"] {
        let refused = client.service.call_tool(request(tool, json!({ "command": "id" }))).await;
        let Err(ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    }
}

/// spec MCPS.2: A result is the text that a model is given, and the same as facts by the schema
/// that every tool declares.
#[tokio::test]
async fn a_result_is_text_and_facts() {
    let world = World::usual();
    for version in GENERATIONS {
        let client = world.connect(Client::plain(), &version).await;
        let done = client.script("echo one; echo two; exit 0").await;
        assert_eq!(text(&done), "one\ntwo\n");
        assert_eq!(done.is_error, Some(false));
        assert_eq!(
            (&facts(&done)["exit_code"], &facts(&done)["output"]),
            (&json!(0), &json!("one\ntwo\n"))
        );
        assert!(facts(&done)["duration_ms"].is_u64());
        let failed = client.script("echo no; exit 3").await;
        assert_eq!((failed.is_error, &facts(&failed)["exit_code"]), (Some(true), &json!(3)));
        assert_eq!(facts(&failed)["output"], "no\n");
        // What a command prints is never taken for what a tool says.
        let faked = client.script("echo '[{\"process_id\":\"x\"}]'").await;
        assert!(!facts(&faked).contains_key("processes"), "{faked:?}");
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
        let patched = client.call("apply_patch", json!({ "input": patch })).await;
        assert_eq!(patched.is_error, Some(false), "{patched:?}");
        assert_eq!(std::fs::read_to_string(world.path("new.txt")).unwrap(), "hello\n");
        std::fs::remove_file(world.path("new.txt")).unwrap();
    }
}

/// spec MCPS.4: What the sandbox, a policy or a tool refuses is a result that says so and names it,
/// and no error of the protocol.
#[tokio::test]
async fn a_refusal_is_a_result_that_names_it() {
    let world = World::new(AskForApproval::Never);
    for version in GENERATIONS {
        let client = world.connect(Client::plain(), &version).await;
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("x");
        let blocked = client.script(&format!("echo x > {}", file.display())).await;
        assert_eq!(blocked.is_error, Some(true));
        let denials = facts(&blocked)["denials"].as_array().unwrap();
        assert_eq!(denials[0]["target"], file.display().to_string(), "{blocked:?}");
        assert_eq!(denials[0]["rule"], "outside-writable-roots");
        assert!(!file.exists());
        let forbidden = client.script("rm -rf /").await;
        assert_eq!(forbidden.is_error, Some(true));
        assert!(facts(&forbidden)["error"]["code"].is_string(), "{forbidden:?}");
        let wrong = client.call("shell", json!({ "command": "ls" })).await;
        assert_eq!(facts(&wrong)["error"]["code"], "invalid_arguments", "{wrong:?}");
    }
}

/// spec MCPS.10: What a command prints is sent as progress while it runs, to clients that ask for
/// progress.
#[tokio::test]
async fn output_is_shown_while_it_is_printed() {
    let world = World::usual();
    for version in GENERATIONS {
        let client = world.connect(Client::plain(), &version).await;
        let script = "printf 'first \\033[1m'; while [ ! -e go ]; do sleep 0.02; done; echo last";
        let calling = client.script(script);
        let going = async {
            let all = |heard: &crate::support::Heard| heard.progress.lock().unwrap().concat();
            client.heard.until("output", |heard| all(heard).contains("first").then_some(())).await;
            std::fs::write(world.path("go"), "").unwrap();
        };
        let (done, ()) = tokio::join!(calling, going);
        assert_eq!(done.is_error, Some(false));
        std::fs::remove_file(world.path("go")).unwrap();
        let shown = client.heard.until("the end", |heard| {
            let shown = heard.progress.lock().unwrap().concat();
            shown.contains("last").then_some(shown)
        });
        assert_eq!(shown.await, "first \\u{1b}[1mlast\n");
    }
}

/// spec MCPS.14: A call that is cancelled ends with all that it started, also while it waits for an
/// answer.
#[tokio::test]
async fn a_cancelled_call_ends_with_all_that_it_started() {
    let world = World::usual();
    for (index, version) in GENERATIONS.iter().enumerate() {
        let sleep = mark(51 + index as u32);
        let client = world.connect(Client::plain(), version).await;
        let script = format!("setsid sleep {sleep} & sleep {sleep}; :");
        let arguments = json!({ "command": ["sh", "-c", script], "timeout_ms": 60_000 });
        let calling = client.service.call_tool(request("shell", arguments));
        tokio::select! {
            done = calling => panic!("{done:?}"),
            () = eventually("it sleeps", || running_with(&sleep) >= 3) => {}
        }
        // The call is dropped, and the client says so.
        eventually("it has ended", || running_with(&sleep) == 0).await;
        let next = client.script("echo still here").await;
        assert_eq!(text(&next), "still here\n");
    }
}

/// spec MCPS.15: When a client closes its end, everything that it started ends, and so do its
/// questions.
#[tokio::test]
async fn a_client_that_goes_leaves_nothing() {
    let world = World::usual();
    for (index, version) in GENERATIONS.iter().enumerate() {
        let sleep = mark(53 + index as u32);
        let client = world.connect(Client::plain(), version).await;
        let live = json!({ "command": ["sleep", sleep], "yield_time_ms": 250 });
        let started = client.call("exec_command", live).await;
        assert_eq!(started.is_error, Some(false), "{started:?}");
        let arguments = json!({ "command": ["sleep", sleep], "timeout_ms": 60_000 });
        let peer = client.service.peer().clone();
        let calling =
            tokio::spawn(async move { peer.call_tool_once(request("shell", arguments)).await });
        eventually("both sleep", || running_with(&sleep) >= 2).await;
        client.service.cancel().await.unwrap();
        let ended = tokio::time::timeout(crate::support::LIMIT, client.serving).await;
        assert_eq!(ended.expect("it ends").unwrap(), Ok(()));
        assert!(calling.await.unwrap().is_err());
        eventually("nothing sleeps", || running_with(&sleep) == 0).await;
    }
}

/// spec MCPS.41: A thousand calls, 32 at a time, are all made.
#[tokio::test]
async fn a_thousand_calls_at_once_are_all_made() {
    let world = World::usual();
    let client = Arc::new(world.connect(Client::plain(), &ProtocolVersion::V_2025_11_25).await);
    let mut calling = tokio::task::JoinSet::new();
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..32 {
        let (client, next) = (Arc::clone(&client), Arc::clone(&next));
        calling.spawn(async move {
            let mut made = 0;
            loop {
                let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if number >= 1000 {
                    return made;
                }
                let command =
                    json!({ "command": ["echo", number.to_string()], "timeout_ms": 60_000 });
                let done = client.call("shell", command).await;
                assert_eq!(text(&done), format!("{number}\n"));
                made += 1;
            }
        });
    }
    assert_eq!(calling.join_all().await.into_iter().sum::<usize>(), 1000);
}
