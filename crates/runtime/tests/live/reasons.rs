//! Why answers come, for each program of the table, in the cage and outside.

use crate::cases::{Answer, Beside, CASES, Case, Group, Output, Reason, Step};
use crate::postgres::Server;
use crate::scene::{PLACES, Place, Reply, Scene, is_here};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How often each conversation is held.
const ROUNDS: &str = "SANDGATE_TEST_SESSION_ROUNDS";

/// Set to write the page anew instead of comparing it.
const BLESS: &str = "SANDGATE_BLESS";

/// Holds every conversation of a group, in the cage and outside, and tells all that went wrong.
async fn hold(group: Group) {
    let rounds = std::env::var(ROUNDS).map_or(1_u32, |rounds| rounds.parse().unwrap());
    let mut errors = Vec::new();
    let mut held = 0_u32;
    for case in CASES.iter().filter(|case| case.group == group) {
        if let Some(missing) = case.needs.iter().find(|program| !is_here(program)) {
            println!("SKIPPED: {} is not here for {}", missing, case.name);
            continue;
        }
        for place in PLACES {
            // A server that was started outside is out of the cage's reach.
            if case.beside == Beside::Postgres && place == Place::Caged {
                continue;
            }
            let scene = Scene::new(place);
            let server = match case.beside {
                Beside::Nothing => Ok(None),
                Beside::Postgres => Server::start(scene.home()).map(Some),
            };
            let _server = match server {
                Ok(server) => server,
                Err(why) => {
                    println!("SKIPPED: {why}, for {}", case.name);
                    break;
                }
            };
            for round in 0..rounds {
                held += 1;
                if let Err(error) = converse(&scene, case).await {
                    let name = case.name;
                    eprintln!("{name}, {place:?}, round {round}: {error}");
                    errors.push(format!("{name}, {place:?}, round {round}: {error}"));
                }
                let _ = scene.text("kill_process", json!({"process_id": "p"})).await;
            }
        }
    }
    println!("{held} conversations, {} errors", errors.len());
    assert!(errors.is_empty(), "{} of {held}: {errors:#?}", errors.len());
}

async fn converse(scene: &Scene, case: &Case) -> Result<(), String> {
    let arguments = json!({
        "command": case.command,
        "process_id": "p",
        "screen": case.screen,
        "size": {"rows": 24, "columns": 80},
        "yield_time_ms": case.first.limit_ms,
    });
    let reply = scene.reply("exec_command", arguments).await;
    check(case.first, &reply).map_err(|error| format!("start: {error}"))?;
    for Step { input, answer } in case.steps {
        let (text, key) = match input
            .split_once('<')
            .and_then(|(text, key)| key.strip_suffix('>').map(|key| (text, key)))
        {
            Some((text, key)) => (text, Some(key)),
            None => (*input, None),
        };
        let mut arguments =
            json!({"process_id": "p", "input": text, "yield_time_ms": answer.limit_ms});
        if let Some(key) = key {
            arguments["keys"] = json!([key]);
        }
        let mut reply = scene.reply("write_stdin", arguments.clone()).await;
        // On a busy machine work takes longer than a call may.
        let mut again = 0;
        while reply.returned() == "yield_elapsed" && answer.reason == Reason::Exited && again < 4 {
            again += 1;
            reply = scene
                .reply("write_stdin", json!({"process_id": "p", "yield_time_ms": 30000}))
                .await;
        }
        check(*answer, &reply).map_err(|error| format!("{input:?}: {error}"))?;
    }
    Ok(())
}

fn check(expected: Answer, reply: &Reply) -> Result<(), String> {
    let reason = match (reply.returned(), &reply.0["hides_input"]) {
        ("waiting_for_input", hides) if *hides == json!(true) => Some(Reason::WaitsHidden),
        ("waiting_for_input", _) => Some(Reason::Waits),
        ("exited", _) => Some(Reason::Exited),
        ("yield_elapsed", _) => Some(Reason::YieldElapsed),
        _ => None,
    };
    let output = reply.output();
    let is_right = match expected.output {
        Output::Any => true,
        Output::Is(text) => output == text,
        Output::Has(text) => output.contains(text),
        Output::Lacks(text) => !output.contains(text),
        Output::ScreenHas(text) => format!("\n{}", reply.screen()).contains(text),
        Output::ScreenLacks(text) => !reply.screen().contains(text),
    };
    match reason == Some(expected.reason) && is_right {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, got {}", reply.0)),
    }
}

/// spec SESSION.1: A call on a shell is answered when the shell waits for the next command, however long
/// the last one took, and with nothing but what that one printed where the shell prints marks.
#[tokio::test]
async fn shells_are_answered_at_their_prompts() {
    hold(Group::Shells).await;
}

/// spec SESSION.2: A program that asks for commands is answered when it asks for the next one.
#[tokio::test]
async fn programs_with_prompts_are_answered_at_them() {
    hold(Group::Prompts).await;
}

/// spec SESSION.3: A program that reads its terminal is answered as soon as it waits there, with a word
/// about it where what is typed is not shown; also one that nobody may look at.
#[tokio::test]
async fn readers_are_answered_when_they_read() {
    hold(Group::Readers).await;
}

/// spec SESSION.4: A program that is at work and silent is not taken for one that waits: computing,
/// sleeping, compiling, with one thread of several, or with a glance at its input now and then.
#[tokio::test]
async fn work_is_not_taken_for_waiting() {
    hold(Group::Work).await;
}

/// spec SESSION.5: A pipeline waits for input when one of its programs waits for it at the terminal, and
/// not when it waits for another.
#[tokio::test]
async fn a_pipeline_waits_only_at_the_terminal() {
    hold(Group::Pipelines).await;
}

/// spec SESSION.6: A program that passes on what comes from another terminal is answered when it waits
/// and has been silent for a moment.
#[tokio::test]
async fn relays_are_answered_when_they_are_silent() {
    hold(Group::Relays).await;
}

/// spec SESSION.7: For a program that draws on the whole screen the answer holds the screen as it looks,
/// and keys work by their names.
#[tokio::test]
async fn screens_are_shown_and_keys_work() {
    hold(Group::Screens).await;
}

/// spec SESSION.8: The page about sessions shows the table that these tests run.
#[test]
fn the_page_is_what_the_table_says() {
    // Beside the tests' own directory at run time: they may run as another user, in a copy.
    let crate_directory = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let crate_directory = crate_directory.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let page = Path::new(&crate_directory).join("../../docs/sessions.md");
    let made = page_text();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&page, &made).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        made == written,
        "docs/sessions.md is not what crates/runtime/tests/live/cases.rs says. If that is right, write \
         the page anew and read what changed:\n  {BLESS}=1 cargo nextest run -p sandgate-runtime --test \
         live the_page"
    );
}

fn page_text() -> String {
    let mut page = String::from(
        "\
# What calls on live processes are answered with

`exec_command` and `write_stdin` are answered when the process has ended, when it waits for input, or when the time of
the call is over; which of these it was is in `returned`. This is the table that the tests in
`crates/runtime/tests/live/` run, in the cage and outside, as root and as an ordinary user; a row that is not true fails
them. How waiting is found out is in [design/session.md](design/session.md).

| program | at its start | then | notes |
| --- | --- | --- | --- |
",
    );
    for case in CASES {
        let steps: Vec<String> = case
            .steps
            .iter()
            .map(|Step { input, answer }| format!("{} → {}", typed(input), word(*answer)))
            .collect();
        let (name, note) = (escaped(case.name), escaped(case.note));
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {note} |",
            word(case.first),
            escaped(&steps.join("; ")),
        );
    }
    page.push_str(DIFFERENCES);
    page
}

/// What a terminal in the cage cannot do.
const DIFFERENCES: &str = "
## What is different in the cage

`tty` says `not a tty`, and `ttyname` finds no name, although the terminal is one: it is made outside, on the host's
`/dev/pts`, and the cage has a `/dev/pts` of its own in which it has no name. `/dev/tty` leads to it. To give it a name
the host's `/dev/pts` would have to be in the cage, and with it the terminals of everybody else; or the terminal would
have to be made in the `/dev/pts` that all commands of a session share, where each of them could open it by its name, read
what is typed to another one, and print what that one did not. A `/dev/pts` for each process would be safe, with its
terminal made in it and handed out; that is not done yet.
";

fn typed(input: &str) -> String {
    match input {
        "" => "nothing".to_owned(),
        text => format!("`{}`", text.replace('\n', "⏎")),
    }
}

fn word(answer: Answer) -> String {
    match answer.reason {
        Reason::Waits => "waits".to_owned(),
        Reason::WaitsHidden => "waits, hides input".to_owned(),
        Reason::Exited => "exited".to_owned(),
        Reason::YieldElapsed => {
            format!("time over ({} s)", answer.limit_ms as f64 / 1000.0)
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
