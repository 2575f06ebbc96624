//! The project's own chores, run as `cargo xtask NAME`.
//!
//! A task is one line in [`TASKS`] and one module. Nothing here is shipped.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod bench;
#[cfg(not(target_os = "linux"))]
#[path = "bench/elsewhere.rs"]
mod bench;
mod dist;
mod docs;
#[cfg(target_os = "linux")]
mod escape;
#[cfg(target_os = "linux")]
mod ordinary_user;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod picture;
#[cfg(target_os = "linux")]
mod plot;
#[cfg(target_os = "linux")]
mod sandgate;
#[cfg(target_os = "linux")]
mod soak;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

/// One chore. What follows its name on the command line is its own to read.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> anyhow::Result<ExitCode>,
}

const TASKS: &[Task] = &[
    Task { name: "tidy", about: "check the house rules that no compiler checks", run: tidy::run },
    Task {
        name: "bench",
        about: "measure against the lower limits beside it, and print the ratios",
        run: bench::run,
    },
    Task {
        name: "docs",
        about: "write the pages anew that are made from the code",
        run: docs::run,
    },
    Task { name: "dist", about: "make what people install", run: dist::run },
    #[cfg(target_os = "linux")]
    Task {
        name: "picture",
        about: "draw a whole run of the program for the documentation",
        run: picture::run,
    },
    #[cfg(target_os = "linux")]
    Task {
        name: "escape",
        about: "try to get out of our cages and of others, and write the table",
        run: escape::run,
    },
    #[cfg(target_os = "linux")]
    Task {
        name: "soak",
        about: "work the program hard for a while, and check that it leaves nothing behind",
        run: soak::run,
    },
];

fn main() -> anyhow::Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let named = args.split_first().and_then(|(name, rest)| {
        TASKS.iter().find(|task| task.name == name).map(|task| (task, rest))
    });
    match named {
        Some((task, rest)) => (task.run)(rest),
        None => {
            eprintln!("Usage: cargo xtask TASK");
            for task in TASKS {
                eprintln!("  {:<8} {}", task.name, task.about);
            }
            Ok(ExitCode::from(2))
        }
    }
}

/// The directory of the workspace. Cargo tells where this package is when it runs the task; without
/// cargo the task looks at the current directory.
fn workspace_root() -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(package) => PathBuf::from(package).join(".."),
        None => PathBuf::from("."),
    }
}
