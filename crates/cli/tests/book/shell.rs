//! Runs the commands of a page as a reader would: one after the other, in one shell, at a terminal, in a
//! home of their own. Questions are answered as the page says.

use crate::page::{Block, Mark, Terms};
use crate::support::World;
use crate::terminal::Terminal;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What ends a step. Nothing that a page shows prints it.
const END: char = '\u{1e}';
/// What ends a step, and what a question of sandgate and a pause of its demo end with.
const STOPS: [&str; 3] = ["\u{1e}", "\n> ", "[q] quit  "];

/// What a page started to stay does not.
const END_OF_DAEMON: &str = "if [ -d ~/.codex/daemon ]; then sandgate session stop; fi";

/// Pages whose reader has set nothing yet. The readers of others trust the directory that they are in.
const NEWCOMERS: [&str; 2] = ["README.md", "docs/tutorial.md"];

/// One thing that is run: a block, or a command of one that shows what it prints.
struct Step<'a> {
    place: &'a str,
    terms: &'a Terms,
    script: String,
    /// What the page shows of its output.
    shown: Option<String>,
}

/// Runs what is to be run of a page. `Err` says why it cannot be tried here.
pub(crate) fn run(path: &str, blocks: &[&Block]) -> Result<(), String> {
    let steps: Vec<Step<'_>> = blocks.iter().flat_map(|block| steps(block)).collect();
    for program in steps.iter().flat_map(|step| &step.terms.needs) {
        if !is_here(program) {
            return Err(format!("{path} needs {program}"));
        }
    }
    let world = World::elsewhere();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let place = furnish(&world, path, &port);
    let mut script = String::from("trap 'failed=\"$failed $?\"' ERR\n");
    for step in &steps {
        let text = step.script.replace("4747", &port);
        let _ = match &step.terms.until {
            None => writeln!(script, "failed=\n{text}"),
            Some(file) => {
                let file = file.replace("4747", &port);
                let text = text.trim_end();
                writeln!(script, "failed=\n{text} &\nuntil [ -s {file} ]; do sleep 0.02; done")
            }
        };
        let _ = writeln!(script, "printf '\\036%s\\036\\n' \"$failed\"");
    }
    let _ = writeln!(script, "trap - ERR\nkill $(jobs -p) 2>/dev/null\nwait\n{END_OF_DAEMON}");
    fs::write(world.path("page.sh"), script).unwrap();
    let mut bash = world.other("bash");
    let path = std::env::var("PATH").unwrap_or_default();
    bash.arg(world.path("page.sh")).current_dir(place);
    bash.env("PATH", format!("{}:{path}", world.path("bin").display()));
    bash.env("TMPDIR", world.path("tmp"));
    // The network is off or on for readers, and never elsewhere.
    for proxy in
        ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"]
    {
        bash.env_remove(proxy);
    }
    let mut terminal = Terminal::start_other(&world, &bash);
    let taken = catch_unwind(AssertUnwindSafe(|| {
        steps.iter().for_each(|step| take(&mut terminal, step));
    }));
    if let Err(fault) = taken {
        terminal.kill();
        resume_unwind(fault);
    }
    terminal.end();
    Ok(())
}

/// The program, a directory to work in, and a server's address that nobody else has.
fn furnish(world: &World, path: &str, port: &str) -> std::path::PathBuf {
    let (bin, project) = (world.path("bin"), world.path("project"));
    for directory in [&bin, &project, &world.path("tmp")] {
        fs::create_dir(directory).unwrap();
    }
    let sandgate = world.program(Vec::<String>::new()).get_program().to_owned();
    let sandgate = std::path::absolute(sandgate).unwrap();
    std::os::unix::fs::symlink(sandgate, bin.join("sandgate")).unwrap();
    if !NEWCOMERS.contains(&path) {
        world.set(&format!("[server]\nlisten = \"127.0.0.1:{port}\"\n"));
        let trusted = world.sandgate(&["trust", project.to_str().unwrap()]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }
    project
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The steps of a block.
fn steps(block: &Block) -> Vec<Step<'_>> {
    let Mark::Run(terms) = &block.mark else { return Vec::new() };
    let place = &block.place;
    if block.language != "console" {
        return vec![Step { place, terms, script: block.text.clone(), shown: None }];
    }
    let mut steps: Vec<Step<'_>> = Vec::new();
    for line in block.text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                let shown = Some(String::new());
                steps.push(Step { place, terms, script: format!("{command}\n"), shown });
            }
            (None, Some(step)) => *step.shown.get_or_insert_default() += &format!("{line}\n"),
            (None, None) => panic!("{place}: a console begins with `$ ` and a command"),
        }
    }
    steps
}

/// Waits for the end of a step, and answers what it asks.
fn take(terminal: &mut Terminal, step: &Step<'_>) {
    let (place, mut told) = (step.place, String::new());
    let mut answers = step.terms.answers.iter();
    let failed = loop {
        let (which, shown) = terminal.until_one_of(&STOPS);
        told += &shown;
        match (which, answers.next()) {
            (Some(0), None) => {
                told.pop();
                break terminal.until("\u{1e}").trim_end_matches(END).trim().to_owned();
            }
            (Some(0), Some(left)) => {
                panic!("{place}: nobody asked for the answer {left:?}: {told}")
            }
            (Some(_), Some(answer)) => terminal.press(&format!("{answer}\n")),
            (None, _) => panic!("{place}: it comes to no end: {told}"),
            (Some(_), None) => {
                panic!("{place}: this is asked, and the page gives no answer: {told}")
            }
        }
    };
    let expected = step.terms.ends.join(" ");
    assert_eq!(failed, expected, "{place}: how its commands ended. It printed: {told}");
    if let Some(shown) = &step.shown {
        let told = told.replace('\r', "");
        // What follows a marker's line end belongs to the step before.
        let told = told.strip_prefix('\n').unwrap_or(&told);
        assert!(is_like(shown, told), "{place}: the page shows\n{shown}and it is\n{told}");
    }
}

/// Whether what was printed is what the page shows, where `…` stands for anything in a line, and alone in
/// a line for any lines.
pub(crate) fn is_like(shown: &str, told: &str) -> bool {
    let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let told: Vec<&str> = told.lines().map(str::trim_end).collect();
    lines_are_like(&shown, &told)
}

fn lines_are_like(shown: &[&str], told: &[&str]) -> bool {
    match (shown.split_first(), told.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=told.len()).any(|n| lines_are_like(rest, &told[n..])),
        (Some((line, shown)), Some((other, told))) => {
            line_is_like(line, other) && lines_are_like(shown, told)
        }
        _ => false,
    }
}

fn line_is_like(shown: &str, mut told: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(rest) = told.strip_prefix(first) else { return false };
    told = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return told.is_empty() };
    for part in middle {
        match told.find(part) {
            Some(at) => told = &told[at + part.len()..],
            None => return false,
        }
    }
    told.ends_with(last)
}
