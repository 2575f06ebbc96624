//! The server over HTTP, as a client sees it that believes nothing.

mod answer;
mod raw;
mod refuse;
