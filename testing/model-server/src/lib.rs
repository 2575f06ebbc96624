//! A model server that does what a script says, for the tests of everything that talks with models.
//!
//! It speaks the three wire formats over real HTTP/1.1 with real server-sent events, refuses what the
//! real services refuse, and remembers what it was asked and when. What a model does is written once
//! and said in whatever format it is asked in. It is never shipped, and it is no model.
//!
//! ```
//! use sandgate_model_server::{ModelServer, Script, Turn};
//! use serde_json::json;
//!
//! let server = ModelServer::start(
//!     Script::new()
//!         .turn(Turn::new().message("I will look.").call("shell_command", json!({"command": "ls"})))
//!         .turn(Turn::new().expect("Cargo.toml").message("It is a Rust project.")),
//! );
//! // … point a client at server.url(), let it work, and then:
//! assert!(server.violations().is_empty());
//! ```

#![forbid(unsafe_code)]

mod check;
mod delivery;
mod fault;
mod record;
mod script;
mod seal;
mod server;
mod turn;
mod wire;

pub use delivery::{Delivery, LineEnd, Split};
pub use fault::Fault;
pub use record::{Answer, AnswerEnd, Request, ToolOutput, Violation};
pub use script::{Script, ScriptError};
pub use server::ModelServer;
pub use turn::{Stop, Turn, Usage};
pub use wire::Wire;
