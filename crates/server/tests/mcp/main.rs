//! The MCP door, with the SDK's own client at the other end of a pipe, in both generations of the protocol.

#![cfg(target_os = "linux")]

mod approval;
mod calls;
mod conformance;
mod http;
mod malformed;
mod processes;
mod suite;
mod support;
mod workspace;
