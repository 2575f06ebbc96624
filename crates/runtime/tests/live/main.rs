//! Processes that live across calls, through a whole session.

#![cfg(target_os = "linux")]

mod bounds;
mod cases;
mod judged;
mod limits;
mod postgres;
mod reasons;
mod scene;
mod terminal;
