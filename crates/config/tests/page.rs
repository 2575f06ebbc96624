//! The page about settings and the schema for editors, made from the types.

use sandgate_config::schema;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
# Settings: `config.toml`

<!-- Made from crates/config/src/settings; `cargo xtask docs` writes it anew. -->

Settings are read from `~/.codex/config.toml` (`CODEX_HOME` names another directory) and, in a project that
you trust, from `.codex/config.toml` at the root of its repository. Later ones win, value by value:

1. defaults, and a preset by trust: `auto` (`workspace-write`, `on-request`) in a directory that you trust,
   `read-only` (`read-only`, `untrusted`) elsewhere
2. your `config.toml`
3. the project's, if you trust it; what it loosens counts only if you have seen exactly this file
4. the profile: `--profile NAME`, or `profile = \"NAME\"`
5. `-c KEY=VALUE`, like `-c sandbox_workspace_write.network_access=true`
6. options, like `--sandbox`

`sandgate config show --origin` tells what holds here and why, `sandgate config validate` what is wrong in a
file, `sandgate config set KEY VALUE` changes yours, and `sandgate trust` says that you trust a project.
A key that is no setting is a warning; a value that a setting cannot have is an error, and the file is not
used. Editors know the settings from [config.schema.json](config.schema.json): write
`#:schema PATH/config.schema.json` into the first line.
";

/// spec CONFIG.6: The page about settings and the schema for editors are made from the types that read
/// a file.
#[test]
fn the_page_and_the_schema_say_what_the_types_say() {
    let mut json = serde_json::to_string_pretty(schema()).unwrap();
    json.push('\n');
    holds("docs/config.schema.json", &json);
    holds("docs/config.md", &page());
}

/// Every example and every default is a value that the setting can have.
#[test]
fn examples_and_defaults_are_in_order() {
    let mut count = 0;
    for section in sections() {
        for (key, about) in section.keys {
            for value in [example(about), about.get("default")].into_iter().flatten() {
                let value: toml::Value = serde_json::from_value(value.clone()).unwrap();
                if value == toml::Value::Table(toml::Table::new()) {
                    continue;
                }
                let path = format!(
                    "{}{key}",
                    section.prefix.replace("NAME", "x").replace("\"PATH\"", "x")
                );
                let path = if key == "profiles" { format!("{path}.x") } else { path };
                let text = format!("{path} = {value}\n");
                let checked = sandgate_config::check(&text, &text, sandgate_config::Owner::Person);
                let checked = checked.unwrap_or_else(|problems| panic!("{}", problems[0]));
                let removed = about.get("deprecated").is_some();
                assert_eq!(checked.warnings.len(), usize::from(removed), "{text}");
                count += 1;
            }
        }
    }
    assert!(count > 90, "{count}");
}

/// What the page says is the default is what holds.
#[test]
fn defaults_hold() {
    use sandgate_config::{Layers, Origin, Trust, resolve};
    let config = resolve(&Layers::default(), Trust::Untrusted).unwrap();
    let mut count = 0;
    for (key, entry) in config.entries().filter(|(_, entry)| entry.origin == Origin::Default) {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", &key));
        let section =
            sections().into_iter().find(|section| section.prefix.trim_end_matches('.') == table);
        let keys = section.unwrap().keys;
        let (_, about) = keys.iter().find(|(key, _)| key == name).unwrap();
        let told: toml::Value = serde_json::from_value(about["default"].clone()).unwrap();
        assert_eq!(entry.value, told, "{key}");
        count += 1;
    }
    assert_eq!(count, 21);
}

/// The settings of one table.
struct Section {
    /// What stands before each key, with a dot at the end.
    prefix: String,
    about: String,
    keys: Vec<(String, &'static Value)>,
}

/// All tables that have keys of their own, the file itself first.
fn sections() -> Vec<Section> {
    let mut sections = Vec::new();
    collect(schema(), "", String::new(), &mut sections);
    sections
}

fn collect(shape: &'static Value, prefix: &str, about: String, sections: &mut Vec<Section>) {
    let keys: Vec<(String, &'static Value)> = keys_of(shape);
    sections.push(Section { prefix: prefix.to_owned(), about, keys: keys.clone() });
    for (key, shape) in keys {
        let about = text(shape, "description");
        let below = followed(shape);
        let entries =
            below.get("additionalProperties").filter(|entry| entry.is_object()).map(followed);
        // A profile holds what the file itself holds.
        let (below, name) = match entries {
            Some(entry) if key == "projects" => (entry, ".\"PATH\""),
            Some(entry) => (entry, ".NAME"),
            None => (below, ""),
        };
        if below.get("properties").is_some() && key != "profiles" {
            collect(below, &format!("{prefix}{key}{name}."), about, sections);
        }
    }
}

/// The keys, in the order of the schema.
fn keys_of(shape: &'static Value) -> Vec<(String, &'static Value)> {
    let keys = shape["properties"].as_object().unwrap();
    keys.iter().map(|(key, about)| (key.clone(), about)).collect()
}

fn followed(shape: &'static Value) -> &'static Value {
    match shape.get("$ref").and_then(Value::as_str) {
        Some("#") => schema(),
        Some(reference) => schema().pointer(&reference[1..]).unwrap(),
        None => shape,
    }
}

fn text(shape: &Value, name: &str) -> String {
    shape.get(name).and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

fn example(about: &Value) -> Option<&Value> {
    about.get("examples")?.get(0)
}

fn as_toml(value: &Value) -> String {
    let value: toml::Value = serde_json::from_value(value.clone()).unwrap();
    value.to_string()
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in sections() {
        let title = section.prefix.trim_end_matches('.');
        match title {
            "" => page.push_str("\n## At the top\n\n"),
            title => writeln!(page, "\n## `[{title}]`\n\n{}\n", section.about).unwrap(),
        }
        page.push_str("| key | value | default | example |\n| --- | --- | --- | --- |\n");
        let mut words = String::new();
        for (key, about) in &section.keys {
            let shape = followed(about);
            let kind = match (shape.get("oneOf"), text(shape, "type").as_str()) {
                (Some(choices), _) => {
                    writeln!(words, "\n`{key}` is one of:\n").unwrap();
                    for choice in choices.as_array().unwrap() {
                        writeln!(
                            words,
                            "- `{}`: {}",
                            as_toml(&choice["const"]),
                            text(choice, "description")
                        )
                        .unwrap();
                    }
                    "word"
                }
                (None, "boolean") => "true or false",
                (None, "integer") => "whole number",
                (None, "number") => "number",
                (None, "array") => "list of texts",
                (None, "object") => "table",
                _ => "text",
            };
            let shown = |value: Option<&Value>| value.map(|value| format!("`{}`", as_toml(value)));
            let default =
                shown(about.get("default").filter(|value| **value != serde_json::json!({})));
            let example = shown(example(about));
            let (default, example) = (default.unwrap_or_default(), example.unwrap_or_default());
            let about = text(about, "description");
            writeln!(page, "| `{key}` | {kind}. {about} | {default} | {example} |").unwrap();
        }
        page.push_str(&words);
    }
    page
}

/// Compares a file of the repository with what it should be, or writes it.
fn holds(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("SANDGATE_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name} is not what the types say; cargo xtask docs writes it anew");
}
