//! What a client carries back to us with a call that it makes again: signed, for this connection and this
//! call only, and not for ever.

use rmcp::model::{JsonObject, RequestStateCodec, RequestStateError, SealOptions};
use sandgate_protocol::{ApprovalId, CallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a call that is made again goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GoOn {
    /// It has not begun: first the roots are asked for.
    Roots,
    /// It waits for the answer to this question, and to no other.
    Approval { call: CallId, question: ApprovalId },
}

/// Signs and checks it, with a key that nobody else has and that ends with the program.
pub(super) struct States {
    codec: RequestStateCodec,
}

impl Default for States {
    fn default() -> Self {
        let random = || *uuid::Uuid::new_v4().as_bytes();
        let key = [random(), random(), random()].concat();
        Self { codec: RequestStateCodec::try_new(key).expect("the key is long enough") }
    }
}

impl States {
    /// Signs it for a call on a connection.
    pub(super) fn seal(
        &self,
        connection: &str,
        call: &Fingerprint,
        go_on: &GoOn,
        life: Duration,
    ) -> Result<String, RequestStateError> {
        let bound = bound(connection, call);
        let options = SealOptions::new().associated_data(&bound).ttl(life);
        self.codec.seal_json_with(go_on, &options)
    }

    /// What a client brought back, if it is ours and for this call.
    pub(super) fn open(
        &self,
        connection: &str,
        call: &Fingerprint,
        sealed: &str,
    ) -> Result<GoOn, RequestStateError> {
        self.codec.open_json_with(sealed, &bound(connection, call))
    }
}

fn bound(connection: &str, call: &Fingerprint) -> Vec<u8> {
    [connection.as_bytes(), b"\0", &call.0].concat()
}

/// What tells one call from another: its tool and its arguments, in whatever order these are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(tool: &str, arguments: Option<&JsonObject>) -> Self {
        let arguments = arguments.map(|arguments| Value::Object(arguments.clone()));
        let words = [Value::from(tool), ordered(arguments.unwrap_or(Value::Null))];
        Self(Sha256::digest(Value::from(words.to_vec()).to_string()).into())
    }
}

/// The same value with the members of every object in the order of their names.
fn ordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> =
                members.into_iter().map(|(name, value)| (name, ordered(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(values) => values.into_iter().map(ordered).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &str) -> Fingerprint {
        Fingerprint::of(tool, serde_json::from_str(arguments).ok().as_ref())
    }

    /// spec MCPS.22: What a client carries back counts only as it was signed, on the same connection, for the
    /// same tool with the same arguments, and in time.
    #[test]
    fn what_is_carried_back_is_good_for_one_call() {
        let (states, life) = (States::default(), Duration::from_secs(60));
        let one = call("shell", r#"{"a":[{"x":1,"y":2}],"b":2}"#);
        let go_on = GoOn::Approval { call: CallId::new("c"), question: ApprovalId::new("q") };
        let sealed = states.seal("here", &one, &go_on, life).unwrap();
        let other_order = call("shell", r#"{"b":2,"a":[{"y":2,"x":1}]}"#);
        assert_eq!(states.open("here", &other_order, &sealed).unwrap(), go_on);
        for other in [
            call("shell", r#"{"a":[{"x":1,"y":3}],"b":2}"#),
            call("shell_command", r#"{"a":[{"x":1,"y":2}],"b":2}"#),
            call("shell", "null"),
        ] {
            assert!(states.open("here", &other, &sealed).is_err());
        }
        assert!(states.open("there", &one, &sealed).is_err());
        assert!(States::default().open("here", &one, &sealed).is_err());
        let mut forged = sealed.clone().into_bytes();
        let middle = forged.len() / 2;
        forged[middle] ^= 1;
        assert!(states.open("here", &one, &String::from_utf8(forged).unwrap()).is_err());
        let old = states.seal("here", &one, &go_on, Duration::ZERO).unwrap();
        let limit = std::time::Instant::now() + Duration::from_secs(60);
        while states.open("here", &one, &old).is_ok() {
            assert!(std::time::Instant::now() < limit, "it counts for ever");
        }
    }
}
