//! The pages of the book that are made from what the program says to its clients.

#![cfg(target_os = "linux")]

#[path = "../support/http.rs"]
#[allow(dead_code, reason = "each test file uses its own share of this module")]
mod http;
mod schema;
#[path = "../support/mod.rs"]
mod support;

use http::Served;
use sandgate_protocol::SessionEvent;
use schema::{Parts, Types, about};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use support::World;

const EVENTS: &str = "\
# Events

<!-- Made from crates/protocol/src; `cargo xtask docs` writes it anew. -->

What happens in a session is told as one line of events. `sandgate run --json` and `sandgate exec --json` print them,
one JSON object a line; `GET /conversations/ID/events` of [HTTP](http.md) streams them; `sandgate call` prints its
questions in this form ([agents.md](agents.md)). Programs can check them against
[events.schema.json](events.schema.json).

Each has `seq`, its number in the session, from 1 and without gaps, and `type`, its name below. New events and new
fields may come with a new version; those that are here keep their names and meanings.
";

const TOOLS: &str = "\
# Tools

<!-- Made from what `sandgate call --tools` prints; `cargo xtask docs` writes it anew. -->

What a model can ask for, wherever it works: `sandgate call`, `sandgate exec`, [MCP](mcp-server.md), [ACP](acp.md) and
[HTTP](http.md) offer these tools, with these words for the model. In `sandgate exec` and its kin a model may also have
`spawn_agent`, which lets it give a task to another, and the tools of [MCP servers](mcp-servers.md). What comes back is
told in [agents.md](agents.md).
";

const HTTP: &str = "\
# HTTP, request by request

<!-- Made from the OpenAPI document that `sandgate serve` gives out; `cargo xtask docs` writes it anew. -->

[http.md](http.md) tells how they go together. `GET /openapi.json` has the same for programs. Every request but those to
`/healthz` and `/console/sign-in` has a token, as `Authorization: Bearer TOKEN`; what goes wrong is answered with a
[`Problem`](#problem).
";

/// The directory of the project.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("the tests are run by cargo");
    Path::new(&package).join("../..")
}

/// Compares a file with what it should be, or writes it if that is asked for.
#[track_caller]
fn holds(file: &str, made: &str) {
    let path = root().join(file);
    if std::env::var_os("SANDGATE_BLESS").is_some() {
        fs::write(&path, made).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == written,
        "{file} is not what the program says; cargo xtask docs writes it anew"
    );
}

/// The types that a page has named, each told of once.
fn told<'a>(types: &Types<'a>, mut parts: Parts<'a>, level: &str) -> String {
    let (mut text, mut index) = (String::new(), 0);
    while let Some(&(name, part)) = parts.get(index) {
        let _ = write!(text, "\n{level} `{name}`\n");
        let said = about(part);
        if !said.is_empty() {
            let _ = write!(text, "\n{said}\n");
        }
        text += &types.table(part, &mut parts);
        index += 1;
    }
    text
}

/// spec GEN.4: The page about events and their schema are made from the types that are sent.
#[test]
fn the_page_about_events_says_what_the_types_say() {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<SessionEvent>().to_value();
    let mut json = serde_json::to_string_pretty(&schema).unwrap();
    json.push('\n');
    holds("docs/events.schema.json", &json);
    let types = Types { defs: schema["$defs"].as_object().unwrap(), prefix: "#/$defs/" };
    let mut found = Vec::new();
    events(&types, &schema, &mut found);
    assert!(found.len() > 25, "{}", found.len());
    let (mut page, mut parts) = (EVENTS.to_owned(), Vec::new());
    for (name, event) in found {
        let _ = write!(page, "\n## `{name}`\n\n{}\n", about(event));
        page += &types.table(event, &mut parts);
    }
    page += "\n## What is in them\n";
    page += &told(&types, parts, "###");
    holds("docs/events.md", &page);
}

/// Every schema with a name of its own in `type`.
fn events<'a>(types: &Types<'a>, schema: &'a Value, found: &mut Parts<'a>) {
    if let Some(name) = schema["properties"]["type"]["const"].as_str() {
        found.push((name, schema));
        return;
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for variant in schema[key].as_array().into_iter().flatten() {
            events(types, variant, found);
        }
    }
    if let Some((_, target)) = types.target(schema) {
        events(types, target, found);
    }
}

/// spec GEN.9: The pages about tools and HTTP are made from what the program says of them to its clients, and the
/// page about rules names the keys that a rule has.
#[test]
fn the_page_about_tools_is_what_the_program_says() {
    let listed = World::new().sandgate(&["call", "--tools"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let tools: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let mut page = TOOLS.to_owned();
    for tool in &tools {
        let (schema, none) = (&tool["parameters"], Map::new());
        let defs = schema["$defs"].as_object().unwrap_or(&none);
        let types = Types { defs, prefix: "#/$defs/" };
        let said = tool["description"].as_str().unwrap();
        let _ = write!(page, "\n## `{}`\n\n", tool["name"].as_str().unwrap());
        page += &match said.split_once("\n\n") {
            Some((said, sample)) => format!("{said}\n\n```text\n{sample}\n```\n"),
            None => format!("{said}\n"),
        };
        let mut parts = Vec::new();
        page += &types.table(schema, &mut parts);
        page += &told(&types, parts, "###");
    }
    holds("docs/tools.md", &page);
}

#[test]
fn the_page_about_http_is_what_the_server_says() {
    let world = World::new();
    let served = Served::start(&world, &["--provider", "offline"]);
    let document: Value =
        serde_json::from_str(&served.get(&served.requester, "/openapi.json").body).unwrap();
    let defs = document["components"]["schemas"].as_object().unwrap();
    let types = Types { defs, prefix: "#/components/schemas/" };
    let (mut page, mut parts) = (HTTP.to_owned(), vec![]);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            page += &request(&types, path, method, operation, &mut parts);
        }
    }
    let problem = defs.get_key_value("Problem").unwrap();
    parts.push((problem.0.as_str(), problem.1));
    page += "\n## What is in them\n";
    page += &told(&types, parts, "###");
    holds("docs/http-reference.md", &page);
}

/// One request.
fn request<'a>(
    types: &Types<'a>,
    path: &str,
    method: &str,
    operation: &'a Value,
    parts: &mut Parts<'a>,
) -> String {
    let said = operation["summary"].as_str().unwrap_or_default();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("\n## `{} {path}`\n\n{said}\n", method.to_uppercase());
    let parameters: Vec<&Value> =
        operation["parameters"].as_array().into_iter().flatten().collect();
    if !parameters.is_empty() {
        text += "\n| | in | value | |\n| --- | --- | --- | --- |\n";
    }
    for parameter in parameters {
        let kind = types.kind(&parameter["schema"], parts);
        let optional = if parameter["required"] == true { "" } else { ", or absent" };
        let (name, place) = (&parameter["name"], &parameter["in"]);
        let (name, place) = (name.as_str().unwrap(), place.as_str().unwrap());
        let _ = writeln!(text, "| `{name}` | {place} | {kind}{optional} | {} |", about(parameter));
    }
    let content = |of: &'a Value| of["content"].as_object().into_iter().flatten();
    for (kind, body) in content(&operation["requestBody"]) {
        let _ = write!(text, "\nTakes {}, `{kind}`.\n", types.kind(&body["schema"], parts));
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        if status == "default" {
            continue;
        }
        let said = response["description"].as_str().unwrap_or_default().to_owned();
        let bodies = content(response).map(|(kind, body)| (kind, &body["schema"]));
        let bodies = bodies.map(|(kind, body)| format!("{}, `{kind}`", types.kind(body, parts)));
        let said: Vec<String> =
            std::iter::once(said).chain(bodies).filter(|s| !s.is_empty()).collect();
        let _ = write!(text, "\nAnswers `{status}`: {}.\n", said.join("; "));
    }
    text
}

#[test]
fn the_page_about_rules_has_the_keys_of_a_rule() {
    let world = World::untouched();
    let file = world.path("rules.toml");
    fs::write(&file, "[[rule]]\nno_key_of_a_rule = 1\n").unwrap();
    let told = world.sandgate(&["policy", "check", "--rules", file.to_str().unwrap()]).stderr;
    let keys = told.split("a rule has ").nth(1).unwrap().split(';').next().unwrap();
    let keys: Vec<&str> =
        keys.split([',', ' ']).filter(|word| !["", "and"].contains(word)).collect();
    let page = fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let table = page.split("## The keys of a rule").nth(1).unwrap().split("\n- ").next().unwrap();
    let told: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(told, keys);
}
