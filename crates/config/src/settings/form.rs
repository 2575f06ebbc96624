//! Texts and numbers of which not every one will do: addresses, and what becomes part of a request, of
//! an environment or of a tool's name. A wrong one is told of where it is written, not where it is used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a text must be like.
pub(crate) struct Form {
    /// Its name, as the schema has it in `format`.
    name: &'static str,
    /// Whether a text is like that.
    pub(crate) holds: fn(&str) -> bool,
    /// What it must be, in a person's words.
    pub(crate) words: &'static str,
}

/// All of them.
const FORMS: &[Form] = &[
    Form {
        name: "uri",
        holds: is_address,
        words: "an address that begins with http:// or https://, without a password in it",
    },
    Form {
        name: "variable-name",
        holds: is_variable_name,
        words: "the name of a variable, like MY_KEY",
    },
    Form { name: "header-name", holds: is_header_name, words: "the name of an HTTP header" },
    Form { name: "header-value", holds: is_header_value, words: "printable ASCII, on one line" },
    Form {
        name: "server-name",
        holds: is_server_name,
        words: "at most 64 letters, digits, - and _, as it begins the names of its tools",
    },
];

/// The form of this name.
pub(crate) fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}

macro_rules! texts {
    ($($(#[$about:meta])* $name:ident = $form:literal;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(inline, extend("format" = $form))]
        pub struct $name(String);

        impl $name {
            /// As it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                match form($form) {
                    Some(form) if !(form.holds)(&text) => Err(format!("this must be {}", form.words)),
                    _ => Ok(Self(text)),
                }
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

texts! {
    /// An address that begins with `http://` or `https://` and has no password in it.
    Address = "uri";
    /// The name of a variable of the environment.
    VariableName = "variable-name";
    /// The name of an HTTP header.
    HeaderName = "header-name";
    /// What an HTTP header may say: nothing that could end it and begin another.
    HeaderValue = "header-value";
    /// The name of an MCP server, with which the names of its tools begin.
    ServerName = "server-name";
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
#[schemars(inline, extend("minItems" = 1))]
pub struct Argv(Vec<String>);

impl Argv {
    /// The program, and its arguments after it.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for Argv {
    type Error = &'static str;

    fn try_from(words: Vec<String>) -> Result<Self, Self::Error> {
        match words.first().is_some_and(|program| !program.is_empty()) {
            true => Ok(Self(words)),
            false => Err("this must begin with the name of a program"),
        }
    }
}

impl From<Argv> for Vec<String> {
    fn from(argv: Argv) -> Self {
        argv.0
    }
}

/// A whole number from 0 to `MOST`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(inline, extend("minimum" = 0, "maximum" = MOST))]
pub struct UpTo<const MOST: u32>(u32);

impl<const MOST: u32> UpTo<MOST> {
    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const MOST: u32> TryFrom<u32> for UpTo<MOST> {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        match number <= MOST {
            true => Ok(Self(number)),
            false => Err(format!("this must be at most {MOST}")),
        }
    }
}

impl<const MOST: u32> From<UpTo<MOST>> for u32 {
    fn from(number: UpTo<MOST>) -> Self {
        number.0
    }
}

/// The most bytes of an address, and of what a header says.
const MAX_LONG: usize = 4096;

/// The most bytes of a name of a variable or header.
const MAX_NAME: usize = 256;

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let plain = text.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c));
    // Before an `@` stands who one is, and often a password.
    !host.is_empty()
        && !host.starts_with(':')
        && !host.contains('@')
        && plain
        && text.len() <= MAX_LONG
}

fn is_variable_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty()
        && text.len() <= MAX_NAME
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(plain)
}

fn is_header_name(text: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(token)
}

fn is_header_value(text: &str) -> bool {
    text.len() <= MAX_LONG && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

fn is_server_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}
