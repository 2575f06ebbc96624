//! The arguments of a call, read strictly, so that a model hears exactly what is wrong with them.

use sandgate_protocol::CodexErr;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest arguments that are looked at.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 10 << 20;

/// Reads the arguments of a tool.
///
/// # Errors
/// One short sentence that says what is wrong with them, for the model.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, arguments: &str) -> Result<T, CodexErr> {
    let wrong = |reason: String| CodexErr::InvalidArguments { tool: tool.to_owned(), reason };
    if arguments.len() >= MAX_ARGUMENT_BYTES {
        let reason = format!(
            "they are {} bytes long, and at most {} are read",
            arguments.len(),
            MAX_ARGUMENT_BYTES - 1
        );
        return Err(wrong(reason));
    }
    // Some models leave the arguments out when a tool needs none.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|error| {
        let place = match (error.classify(), error.column()) {
            (serde_json::error::Category::Data, _) | (_, 0) => String::new(),
            _ => ", which is not JSON".to_owned(),
        };
        let text = error.to_string();
        let text = text.replace(" at line 1 column ", " at column ");
        wrong(format!("{}{place}", shortened(&text)))
    })
}

/// What a tool takes, as a JSON schema, made from the type that reads it.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T);
    // Nobody needs to be told which edition of the language of schemas this is, or what we call it.
    schema.remove("$schema");
    schema.remove("title");
    schema.remove("description");
    schema.into()
}

/// A message may quote what it complains of, however long that is.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    if text.len() <= MOST {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(MOST / 2), text.len() - MOST / 2);
    let tail = (tail..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{} … {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{ReadFileToolCallParams, ShellToolCallParams};

    fn wrong(arguments: &str) -> String {
        parse::<ShellToolCallParams>("shell", arguments).unwrap_err().for_model()
    }

    #[test]
    fn what_is_right_is_read() {
        let read: ShellToolCallParams =
            parse("shell", r#"{"command":["ls"],"workdir":"src"}"#).unwrap();
        assert_eq!((read.command, read.workdir), (vec!["ls".to_owned()], Some("src".to_owned())));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_short_sentence() {
        let said = "invalid arguments for shell: ";
        for (arguments, reason) in [
            (r#"{"command":["ls"],"cwd":"x"}"#, "unknown field `cwd`"),
            (r#"{"command":"ls"}"#, "invalid type: string \"ls\", expected a sequence"),
            ("{}", "missing field `command`"),
            ("", "missing field `command`"),
            (r#"{"command":["ls"]"#, "EOF while parsing an object at column 17, which is not JSON"),
            ("[]", "invalid length 0"),
            (r#"{"command":["ls"],"command":[]}"#, "duplicate field `command`"),
            (r#"{"command":["ls"],"timeout_ms":-1}"#, "invalid value: integer `-1`"),
        ] {
            let message = wrong(arguments);
            assert!(message.starts_with(said) && message.contains(reason), "{message}");
        }
    }

    #[test]
    fn too_much_is_not_looked_at() {
        let message = wrong(&" ".repeat(MAX_ARGUMENT_BYTES));
        assert!(message.contains("10485760 bytes"), "{message}");
        let long = format!(r#"{{"path": {:?}}}"#, [0; 3000]);
        let error = parse::<ReadFileToolCallParams>("read_file", &long).unwrap_err();
        assert!(error.for_model().len() < 400);
        let long = format!(r#"{{"{}": 1}}"#, "ä".repeat(3000));
        let error = parse::<ReadFileToolCallParams>("read_file", &long).unwrap_err();
        assert!(error.for_model().len() < 500, "{error}");
    }
}
