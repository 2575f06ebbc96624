//! What the types say about each setting, as a JSON schema: for editors, for the page about settings,
//! and for telling what is wrong in a file.

use crate::settings::{Form, Settings, form};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The schema of a `config.toml`.
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(Settings).to_value();
        without_null(&mut schema);
        sorted(schema)
    })
}

/// The same in the order of the keys, whichever order the map of `serde_json` was built to keep.
fn sorted(schema: Value) -> Value {
    match schema {
        Value::Object(object) => {
            let entries: BTreeMap<String, Value> = object.into_iter().collect();
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// TOML has no null: what is not set is not there.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type") != Some(&Value::from("null")));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    // What is said about the setting outweighs what is said about its type.
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(values) => values.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// What a value may be, as far as the schema says it.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a>(&'a Value);

impl Shape<'static> {
    /// That of a whole file.
    pub(crate) fn of_file() -> Self {
        Self(schema())
    }
}

impl<'a> Shape<'a> {
    /// The shape with a reference followed. The schema names only definitions of its own.
    pub(crate) fn followed(self) -> Self {
        match self.0.get("$ref").and_then(Value::as_str) {
            Some("#") => Self(schema()),
            Some(reference) => {
                let target = reference.strip_prefix('#').and_then(|path| schema().pointer(path));
                target.map_or(self, Self)
            }
            None => self,
        }
    }

    /// The keys that a table of fixed keys has.
    pub(crate) fn keys(self) -> Option<&'a Map<String, Value>> {
        self.followed().0.get("properties").and_then(Value::as_object)
    }

    /// The shape below a key: its own, or that of every entry of a map.
    pub(crate) fn below(self, key: &str) -> Option<Self> {
        let named = self.keys().and_then(|keys| keys.get(key));
        named.or_else(|| self.followed().0.get("additionalProperties")).map(Self)
    }

    /// Whether it is a table with names of the person's own choosing.
    pub(crate) fn is_map(self) -> bool {
        self.followed().0.get("additionalProperties").is_some_and(Value::is_object)
    }

    /// The shape of the items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        self.followed().0.get("items").map(Self)
    }

    /// `string`, `boolean`, `integer`, `number`, `array` or `object`.
    pub(crate) fn kind(self) -> &'a str {
        let kind = self.followed().0.get("type").and_then(Value::as_str);
        // A choice of words is a list of constants.
        kind.unwrap_or("string")
    }

    /// The words that are allowed, each with what it means, if it is a choice of words.
    pub(crate) fn words(self) -> Option<Vec<(&'a str, &'a str)>> {
        let choices = self.followed().0.get("oneOf")?.as_array()?;
        let word = |choice: &'a Value| {
            let about = choice.get("description").and_then(Value::as_str).unwrap_or_default();
            Some((choice.get("const")?.as_str()?, about))
        };
        choices.iter().map(word).collect()
    }

    /// The smallest and the largest number that is allowed.
    pub(crate) fn bounds(self) -> (Option<f64>, Option<f64>) {
        let bound = |name| self.followed().0.get(name).and_then(Value::as_f64);
        (bound("minimum"), bound("maximum"))
    }

    /// What a text must be like, if not every one will do.
    pub(crate) fn form(self) -> Option<&'static Form> {
        form(self.followed().0.get("format")?.as_str()?)
    }

    /// The same for the names in a table with names of the person's own choosing.
    pub(crate) fn form_of_names(self) -> Option<&'static Form> {
        form(self.0.get("propertyNames")?.get("format")?.as_str()?)
    }

    /// How many items a list must have at least.
    pub(crate) fn least_items(self) -> u64 {
        self.followed().0.get("minItems").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Something that is said about the setting itself.
    pub(crate) fn said(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).or_else(|| self.followed().0.get(name))
    }
}
