//! The audit log: who asked for what, who decided, what confined it, and how it ended.
//!
//! One line of JSON a record, one file a day, each line chained to the one before by its hash. It is
//! written before a command runs and after it ended, and a record that was not written stops the
//! command, unless the person wants it otherwise. `docs/design/audit.md` says how, and what the
//! chain proves.

mod cut;
mod end;
mod error;
mod findings;
mod folder;
mod head;
mod line;
mod log;
mod read;
mod record;
mod verify;
mod writer;

pub use cut::{Cut, MAX_LINE_BYTES};
pub use error::AuditError;
pub use findings::{Finding, Notice, Problem, Verification};
pub use line::Follows;
pub use log::{AuditLog, AuditOptions, Fsync, WhenFull, Written, audit_directory};
pub use read::{AuditEntries, AuditEntry, MAX_READ_LINE_BYTES, entries};
pub use record::{Amended, Began, CallAsked, ChangeKind, DecidedBy, Decision, DecisionKind, Ended};
pub use record::{Granted, GrantedConfinement, GrantedExtras, Judged, PatchApplied, PatchedFile};
pub use record::{Record, RiskClass, SessionEnded, SessionStarted};
pub use verify::{verify, verify_since};
