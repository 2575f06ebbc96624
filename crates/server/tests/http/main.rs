//! The HTTP door, over real connections and with real sessions behind it.

#![cfg(target_os = "linux")]

mod approvals;
mod bodies;
mod client;
mod conversations;
mod malformed;
mod processes;
mod scene;
mod streams;
mod tls;
mod tools;
mod who;
