//! What reading the settings costs, beside what starting the least of programs does.

use super::bare::{self, Bare};
use super::program::Home;
use super::progress::Progress;
use super::row::{Quantity, Row, Target};
use super::samples::{by_turns, by_turns_timed, timed};
use super::session::Session;
use sandgate_config::{Sources, TrustLevel, load, preview, set_trust};
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;

/// How many loads are timed together: one alone is hardly longer than looking at a clock.
const TOGETHER: u32 = 20;

/// What a start may be longer for it.
const LIMIT: Target = Target::Within(Quantity::Seconds(1e-3));

pub(super) fn measure(session: &mut Session) {
    session.take("reading a full config.toml", read);
    session.take("sandgate run, with a full config.toml", run);
}

/// What of all that counts for a command.
const SAME_EFFECT: &str = "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n\
     [sandbox_workspace_write]\nwritable_roots = [\"/var/tmp\", \"~/.cache\"]\n\
     [shell_environment_policy]\ninherit = \"all\"\nexclude = [\"A*\"]\nset = { CI = \"1\" }\n";

/// Settings of somebody who has used every part of them, and works in many projects.
fn full() -> String {
    let mut text = String::from(
        "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\nmodel = \"m\"\n\
         model_provider = \"p0\"\nprofile = \"profile0\"\n\
         [sandbox_workspace_write]\nwritable_roots = [\"/var/tmp\", \"~/.cache\"]\n\
         [shell_environment_policy]\ninherit = \"all\"\nexclude = [\"AWS_*\", \"AZURE_*\"]\n\
         set = { CI = \"1\" }\n[timeouts]\napproval_ms = 600000\n[audit]\nfsync = \"never\"\n\
         [features]\nexperimental_sandbox_command_assessment = false\n",
    );
    for number in 0..20 {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "[profiles.profile{number}]\nmodel = \"m{number}\"\n\
             [profiles.profile{number}.shell_environment_policy]\nexclude = [\"A*\"]\n\
             [model_providers.p{number}]\nbase_url = \"http://localhost:1\"\nenv_key = \"K\"\n\
             [mcp_servers.s{number}]\ncommand = \"server\"\nargs = [\"--port\", \"1\"]\n\
             env = {{ A = \"b\" }}\n"
        );
    }
    for number in 0..100 {
        let _ =
            write!(text, "[projects.\"/home/me/project{number}\"]\ntrust_level = \"trusted\"\n");
    }
    text
}

/// A home and a trusted project with settings of its own.
fn sources(directory: &Path) -> anyhow::Result<Sources> {
    let home = directory.join("home");
    let project = directory.join("project");
    fs::create_dir_all(project.join(".git"))?;
    fs::create_dir_all(project.join(".codex/rules"))?;
    fs::create_dir_all(&home)?;
    fs::write(home.join("config.toml"), full())?;
    fs::write(project.join(".codex/config.toml"), "sandbox_mode = \"workspace-write\"\n")?;
    let sources =
        Sources { config_home: Some(home.clone()), directory: project, ..Sources::default() };
    let preview = preview(&sources)?;
    let seen = preview.noted();
    set_trust(&home, &preview.project.trust_root, TrustLevel::Trusted, &seen)?;
    Ok(sources)
}

fn read(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let scratch = session.scratch()?;
    let sources = sources(scratch.path())?;
    let bare = Bare::new(&bare::true_program()?)?;
    let pair = by_turns_timed(
        session.times(300, 30),
        progress,
        || {
            let together = timed(|| {
                for _ in 0..TOGETHER {
                    black_box(load(black_box(&sources))?);
                }
                Ok(())
            })?;
            Ok(together / TOGETHER)
        },
        || timed(|| bare.run()),
    )?;
    let row = Row::of_times("reading a full config.toml", "fork + exec of /bin/true", &pair);
    let size = Quantity::bytes(full().len() as u64);
    Ok(vec![row.target(LIMIT).detail("size", size)])
}

/// The program from start to end, with all of that and with next to nothing.
fn run(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let program = session.program()?;
    let (with, without) = (Home::new(session)?, Home::new(session)?);
    with.set(&full())?;
    // What these lines set costs something by itself: more roots, and a policy for the environment.
    without.set(SAME_EFFECT)?;
    let nothing = bare::text(&bare::true_program()?)?;
    let args = ["run", "--", &nothing, "x"];
    let pair = by_turns(
        session.times(200, 20),
        progress,
        || with.run(program, &args),
        || without.run(program, &args),
    )?;
    let what = "sandgate run -- /bin/true x, with a full config.toml";
    Ok(vec![Row::of_times(what, "with the few lines that count there", &pair)])
}
