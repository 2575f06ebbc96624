//! Providers against a server that speaks the three wire formats and refuses what the services refuse.

use futures_util::StreamExt as _;
use sandgate_agent::{ModelEvent, ModelRequest, Provider, StopReason, Surroundings, provider};
use sandgate_config::{ModelProviderSettings, ReasoningEffort};
use sandgate_model_server::{Delivery, Fault, LineEnd, ModelServer, Script, Split, Turn};
use sandgate_protocol::{ResponseItem, Role, SessionSource};
use sandgate_runtime::ToolSpec;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const FORMS: [(&str, &str); 3] =
    [("responses", "gpt-5.1-codex"), ("chat", "some-model"), ("anthropic", "claude-sonnet-4-5")];

fn provider_at(server: &ModelServer, wire: &str) -> Arc<dyn Provider> {
    let text = format!(
        "base_url = \"{}/v1\"\nwire_api = \"{wire}\"\nenv_key = \"KEY\"\nstream_idle_timeout_ms = 2000\n",
        server.url()
    );
    let settings: ModelProviderSettings = toml::from_str(&text).unwrap();
    let settings = BTreeMap::from([("own".to_owned(), settings)]);
    let variable = |_: &str| Some("secret-key".to_owned());
    provider("own", &settings, Surroundings { variable: &variable, key_command: None }).unwrap()
}

/// Asks, and gives back what came of the last attempt and how many failed before it.
async fn ask(
    provider: &Arc<dyn Provider>,
    model: &str,
    items: &[ResponseItem],
) -> (Vec<ResponseItem>, usize) {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = ["read_file", "list_dir"].map(|name| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: path.clone(),
    });
    let request = ModelRequest {
        model,
        instructions: "You are careful.",
        items,
        tools: &tools,
        parallel_tool_calls: true,
        temperature: None,
        max_output_tokens: None,
        reasoning_effort: Some(ReasoningEffort::Medium),
        output_schema: None,
        conversation_id: "conversation-1",
        source: &SessionSource::Exec,
    };
    let mut stream = provider.stream(request);
    let (mut brought, mut failed) = (Vec::new(), 0);
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::Item(item) => brought.push(item),
            ModelEvent::Retrying { .. } => {
                brought.clear();
                failed += 1;
            }
            ModelEvent::End(reason) => assert_eq!(reason, StopReason::Done),
            _ => {}
        }
    }
    (brought, failed)
}

/// spec MODEL.31: A conversation with thoughts and calls that are made at once goes on over several
/// requests without one that the services would refuse, however their bytes come.
#[tokio::test]
async fn a_conversation_that_no_service_refuses() {
    let usual = Delivery::default();
    let deliveries = [
        usual,
        Delivery { split: Split::Bytes(1), line_end: LineEnd::Cr, byte_order_mark: true, ..usual },
        Delivery {
            split: Split::Awkward,
            line_end: LineEnd::CrLf,
            keep_alives: true,
            unknown: true,
            spread: true,
            tight: true,
            ..usual
        },
    ];
    for (wire, model) in FORMS {
        for delivery in deliveries {
            let calls = Turn::new()
                .reasoning("Grüße 🌍, hm")
                .message("I löök.")
                .call("read_file", json!({"path": "ä 🦀"}))
                .call("list_dir", json!({}))
                .interleaved()
                .delivery(delivery);
            let again = Turn::new()
                .expect("no such file")
                .reasoning("hm again")
                .call("list_dir", json!({"path": "."}))
                .delivery(delivery);
            let last = Turn::new().expect("second").message("Done 🦀.").delivery(delivery);
            let script = Script::new().key("secret-key").turn(calls).turn(again).turn(last);
            let server = ModelServer::start(script);
            let own = provider_at(&server, wire);
            let mut items = vec![ResponseItem::message(Role::User, "go")];
            for outputs in [&["first", "no such file"][..], &["second"], &[]] {
                let (brought, failed) = ask(&own, model, &items).await;
                assert_eq!(failed, 0);
                let called: Vec<_> = brought
                    .iter()
                    .filter_map(|item| match item {
                        ResponseItem::ToolCall { call_id, .. } => Some(call_id.clone()),
                        _ => None,
                    })
                    .collect();
                assert_eq!(called.len(), outputs.len(), "{wire} {brought:?}");
                items.extend(brought);
                items.extend(called.into_iter().zip(outputs).map(|(call_id, output)| {
                    let (output, content_items) = ((*output).to_owned(), Vec::new());
                    ResponseItem::ToolCallOutput { call_id, output, content_items, success: true }
                }));
            }
            assert_eq!(items.last().unwrap().text().unwrap(), "Done 🦀.");
            let first = items.iter().find_map(|item| match item {
                ResponseItem::ToolCall { input, .. } => Some(input.as_str()),
                _ => None,
            });
            let arguments: serde_json::Value = serde_json::from_str(first.unwrap()).unwrap();
            assert_eq!(arguments, json!({"path": "ä 🦀"}), "{wire}");
            let violations = server.violations();
            assert!(violations.is_empty(), "{wire}: {violations:?}");
        }
    }
}

/// spec MODEL.32: Whatever goes wrong with an answer for a time, the next attempt brings all of it.
#[tokio::test]
async fn what_goes_wrong_for_a_time_is_got_over() {
    let busy =
        Fault::Status { status: 503, retry_after: Some("0".to_owned()), code: None, message: None };
    let overloaded =
        Fault::Error { after: 2, code: "overloaded_error".to_owned(), message: "later".to_owned() };
    for (wire, model) in FORMS {
        for fault in [
            busy.clone(),
            overloaded.clone(),
            Fault::Disconnect,
            Fault::Cut { after: 2 },
            Fault::CutInCharacter,
        ] {
            let text = "Grüße 🌍";
            let broken = Turn::new().message(text).fault(fault.clone());
            let server =
                ModelServer::start(Script::new().turn(broken).turn(Turn::new().message(text)));
            let own = provider_at(&server, wire);
            let (brought, failed) =
                ask(&own, model, &[ResponseItem::message(Role::User, "go")]).await;
            assert_eq!(failed, 1, "{wire} {fault:?}");
            assert_eq!(brought, [ResponseItem::message(Role::Assistant, text)]);
            assert!(server.violations().is_empty());
        }
    }
}
