//! `config.toml`: the layers it is made of, profiles, trust, and edits that keep what a person wrote.
//!
//! [`load`] reads what there is and hands it to [`resolve`], which is pure. This crate starts no
//! process, asks nobody and decides nothing about commands: it says what the person has set, and sees
//! to it that a repository cannot loosen its own cage.

#![forbid(unsafe_code)]

mod check;
mod config;
mod edit;
mod file;
mod layer;
mod load;
mod loosen;
mod plain;
mod problem;
mod reach;
mod resolve;
mod schema;
mod services;
mod settings;
mod trust;

pub use check::{Checked, MAX_CONFIG_BYTES, Owner, check};
pub use config::{Config, Entry};
pub use edit::{EditError, change_own_file, change_project_file, set, set_trust};
pub use file::{FileError, read_below, read_own, read_settings};
pub use layer::{Anchor, Layer, Origin, OverrideError};
pub use load::{
    CONFIG_FILE, ConfigError, Loaded, Preview, ProjectRulesFile, Sources, load, preview,
};
pub use loosen::{Loosening, loosenings};
pub use problem::{Fault, Problem};
pub use reach::leads_out;
pub use resolve::{KnownProfiles, Layers, ResolveError, Trust, resolve};
pub use schema::schema;
pub use services::{
    KeySource, McpServer, McpTools, McpTransport, ModelProvider, ServiceError, ServiceFault,
};
pub use settings::*;
pub use trust::{Project, ProjectFile, ProjectFiles, TrustState, find_project};
