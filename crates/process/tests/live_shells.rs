//! Real shells that print marks: what they say is what was typed, printed and returned, and what their
//! users wrote in their start-up files still holds.

#![cfg(target_os = "linux")]

#[path = "../src/live/marks.rs"]
mod marks;
mod support;

use bytes::Bytes;
use marks::{Mark, Marks, Piece};
use sandgate_process::{Received, SpawnedProcess, Spawner, TerminalSize, with_marks};
use sandgate_protocol::ExecParams;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{granted, program, skipped};
use tempfile::TempDir;

const NONCE: &str = "4e6f6e6365";

/// Where a shell's user is at home, with the files that its shell is to print marks with beside it.
struct Home {
    directory: TempDir,
}

impl Home {
    fn new(files: &[(&str, &str)]) -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        fs::create_dir(home.files()).unwrap();
        home
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn files(&self) -> PathBuf {
        self.path().join("it's ours")
    }

    /// A shell whose user lives here.
    fn shell(&self, command: &[&str]) -> Option<ExecParams> {
        let Some(file) = found(command[0]) else {
            skipped(&format!("there is no {} here", command[0]));
            return None;
        };
        let mut params = program(command);
        params.program = file;
        params.cwd = self.path().canonicalize().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        params.env.insert("PATH".into(), path);
        params.env.insert("HOME".into(), self.path().into());
        params.env.insert("TERM".into(), "dumb".into());
        Some(params)
    }

    /// The same, made to print marks.
    fn marked(&self, params: &ExecParams) -> ExecParams {
        with_marks(params, NONCE, &self.files()).unwrap().expect("a shell that we know")
    }
}

fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|at| at.join(name)).find(|file| file.is_file())
}

/// What one command did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ran {
    output: String,
    status: Option<i32>,
    prompt: String,
    echo: String,
}

/// A shell on a terminal.
struct Shell {
    process: SpawnedProcess,
    marks: Marks,
    /// What was shown before the first prompt, and then at each.
    start: Ran,
    raw: Vec<u8>,
    /// Whether the shell prints a title before each command's output.
    sets_title: bool,
}

impl Shell {
    async fn start(params: ExecParams) -> Self {
        let is_dumb = params.env[std::ffi::OsStr::new("TERM")] == "dumb";
        let sets_title = params.program.ends_with("fish") && !is_dumb;
        let spawner = Spawner::start().unwrap();
        let process = spawner.spawn_pty(&granted(params), TerminalSize::default()).await.unwrap();
        let (marks, start, raw) = (Marks::new(NONCE), Ran::default(), Vec::new());
        let mut shell = Self { process, marks, start, raw, sets_title };
        shell.start = shell.until_prompt().await;
        shell
    }

    async fn types(&self, keys: &str) {
        let keys = Bytes::from(keys.to_owned());
        self.process.session.writer_sender().unwrap().send(keys).await.unwrap();
    }

    /// Reads on until the shell shows a prompt.
    async fn until_prompt(&mut self) -> Ran {
        let mut ran = Ran::default();
        let mut prompted = false;
        while !prompted {
            let next = self.process.output_rx.recv();
            let chunk = match tokio::time::timeout(Duration::from_secs(30), next).await {
                Ok(Some(Received::Chunk(chunk))) => chunk.bytes,
                other => panic!("{other:?} after {}", self.raw.escape_ascii()),
            };
            self.raw.extend_from_slice(&chunk);
            self.marks.read(&chunk, |piece| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                match piece {
                    Piece::Output(bytes) => ran.output += &text(bytes),
                    Piece::Prompt(bytes) => ran.prompt += &text(bytes),
                    Piece::Echo(bytes) => ran.echo += &text(bytes),
                    Piece::Mark(Mark::CommandEnd { status }) => ran.status = status,
                    Piece::Mark(Mark::PromptEnd) => prompted = true,
                    Piece::Mark(_) => {}
                }
            });
        }
        assert!(self.marks.at_prompt(), "{}", self.raw.escape_ascii());
        ran
    }

    async fn run(&mut self, line: &str) -> Ran {
        self.types(&format!("{line}\r")).await;
        self.until_prompt().await
    }

    /// Runs a command that must print exactly this and nothing else.
    async fn gives(&mut self, line: &str, output: &str, status: i32) {
        let ran = self.run(line).await;
        let raw = self.raw.escape_ascii();
        let mut printed = ran.output;
        if self.sets_title {
            printed = printed.split_once("\x1b[m\r").expect("a title comes first").1.to_owned();
        }
        assert_eq!((printed.as_str(), ran.status), (output, Some(status)), "{line:?}: {raw}");
    }

    /// Types something and waits until this is shown.
    async fn shows(&mut self, keys: &str, text: &str) {
        self.types(keys).await;
        let mut seen = Vec::new();
        while !seen.windows(text.len()).any(|window| window == text.as_bytes()) {
            let next = self.process.output_rx.recv();
            match tokio::time::timeout(Duration::from_secs(30), next).await {
                Ok(Some(Received::Chunk(chunk))) => {
                    seen.extend_from_slice(&chunk.bytes);
                    self.marks.read(&chunk.bytes, |_| ());
                }
                other => panic!("{other:?} after {}", seen.escape_ascii()),
            }
        }
    }

    /// Presses Ctrl-C until it is heard: a shell that is just about to read may miss it.
    async fn interrupted(&mut self) -> Ran {
        for _ in 0..100 {
            self.types("\x03").await;
            let heard = tokio::time::timeout(Duration::from_millis(300), self.until_prompt());
            if let Ok(ran) = heard.await {
                return ran;
            }
        }
        panic!("never heard: {}", self.raw.escape_ascii());
    }
}

/// What every shell must tell alike.
async fn a_day_at_the_prompt(params: ExecParams) -> Shell {
    let called =
        format!("{:?} TERM={:?}", params.command, params.env.get(std::ffi::OsStr::new("TERM")));
    println!("{called}");
    let is_fish = params.program.ends_with("fish");
    let mut shell = Shell::start(params).await;
    shell.gives("echo hi", "hi\r\n", 0).await;
    shell.gives("false", "", 1).await;
    shell.gives("printf no-newline", "no-newline", 0).await;
    shell.gives("bash -c 'exit 3'", "", 3).await;
    shell.gives("cd /", "", 0).await;
    shell.gives("pwd", "/\r\n", 0).await;
    if is_fish {
        shell.gives("begin\recho one\recho two\rend", "one\r\ntwo\r\n", 0).await;
    } else {
        shell.gives("cat <<END\rone\rtwo\rEND", "one\r\ntwo\r\n", 0).await;
        shell.gives("for i in 1 2; do\recho $i\rdone", "1\r\n2\r\n", 0).await;
    }
    shell.shows("sh -c 'echo go\"\"ing; exec sleep 100'\r", "going\r\n").await;
    let ran = shell.interrupted().await;
    // The title was shown before.
    assert_eq!((ran.output.trim_end(), ran.status), ("^C", Some(130)), "{called}");
    // An empty line runs nothing.
    let ran = shell.run("").await;
    assert_eq!(ran.output, "", "{called}");
    shell.gives("echo after", "after\r\n", 0).await;
    // A shell in the shell has no marks, and the outer one goes on when it ends.
    shell.gives("sh -c 'echo inner; exit 4'", "inner\r\n", 4).await;
    shell.gives("printf '\\033]133;A\\007x\\n'", "\x1b]133;A\x07x\r\n", 0).await;
    // A line that is given up runs nothing. Fish stays at the same prompt and says nothing.
    if !is_fish {
        shell.shows("echo given-up", "given-up").await;
        assert_eq!(shell.interrupted().await.output, "", "{called}");
    }
    shell.gives("echo last", "last\r\n", 0).await;
    shell
}

const TERMS: [&str; 2] = ["dumb", "xterm-256color"];

/// spec LIVE.1: In a shell that prints marks, the output of a command is told from its prompt and from
/// the echo of what was typed, to the byte, and its exit status is known.
#[tokio::test]
async fn bash_tells_output_from_prompt_and_echo() {
    for arguments in [&["-i"][..], &[], &["-l"], &["--login", "-i"], &["--norc"], &["-il"]] {
        for term in TERMS {
            let home = Home::new(&[]);
            let Some(mut params) = home.shell(&[&["bash"], arguments].concat()) else { return };
            params.env.insert("TERM".into(), term.into());
            a_day_at_the_prompt(home.marked(&params)).await;
        }
    }
}

/// spec LIVE.1: In a shell that prints marks, the output of a command is told from its prompt and from
/// the echo of what was typed, to the byte, and its exit status is known.
#[tokio::test]
async fn zsh_tells_output_from_prompt_and_echo() {
    for arguments in [&["-i"][..], &[], &["-l"]] {
        for term in TERMS {
            // Without a file of its own zsh asks a new user questions.
            let home = Home::new(&[(".zshrc", "")]);
            let Some(mut params) = home.shell(&[&["zsh"], arguments].concat()) else { return };
            params.env.insert("TERM".into(), term.into());
            a_day_at_the_prompt(home.marked(&params)).await;
        }
    }
}

/// spec LIVE.6: Where a terminal has a title, fish sets it at the beginning of a command's output, and
/// the rest of the output is exact.
#[tokio::test]
async fn fish_tells_output_from_prompt_and_echo() {
    for arguments in [&["-i"][..], &[], &["-l"]] {
        for term in TERMS {
            let home = Home::new(&[]);
            let Some(mut params) = home.shell(&[&["fish"], arguments].concat()) else { return };
            params.env.insert("TERM".into(), term.into());
            a_day_at_the_prompt(home.marked(&params)).await;
        }
    }
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_bash_with_hooks_of_its_own_keeps_them() {
    let rc = r#"
        set -u
        PS1='first> '
        PS0='<ps0>'
        PROMPT_COMMAND='\printf "[was %s]" "${PIPESTATUS[*]}"; PS1="mine $((round += 1))> "'
        round=0
        trap 'echo trapped' DEBUG
        alias local=false printf=false unset=false builtin=false
        HISTFILE=~/.history
    "#;
    let home = Home::new(&[(".bashrc", rc)]);
    let Some(params) = home.shell(&["bash", "-i"]) else { return };
    let mut shell = Shell::start(home.marked(&params)).await;
    // The trap shows the command, and nothing of ours.
    shell.gives("\\echo hi", "trapped\r\nhi\r\n", 0).await;
    let ran = shell.run("false | true | (exit 7)").await;
    assert_eq!((ran.output.replace("trapped\r\n", ""), ran.status), (String::new(), Some(7)));
    assert!(ran.prompt.contains("[was 1 0 7]"), "{ran:?}");
    assert!(ran.prompt.ends_with("mine 3> "), "{ran:?}");
    assert!(ran.echo.contains("\r\n<ps0>"), "{ran:?}");
    shell.gives("trap - DEBUG", "trapped\r\n", 0).await;
    shell.gives("history | sed 's/^ *[0-9]* *//'", "\\echo hi\r\nfalse | true | (exit 7)\r\ntrap - DEBUG\r\nhistory | sed 's/^ *[0-9]* *//'\r\n", 0).await;
    // Whoever changes the prompt's parts while the shell runs changes the user's, not ours.
    // The first prompt after it is told late, and with the old commands once more.
    let ran = shell.run("PROMPT_COMMAND='echo other'").await;
    assert_eq!(ran.status, Some(0));
    assert!(ran.output.starts_with("other\r\n"), "{ran:?}");
    shell.gives("PS1='later> '", "", 0).await;
    let ran = shell.run("set -x; true").await;
    assert!(ran.prompt.ends_with("later> "), "{ran:?}");
    let ran = shell.run("true 2").await;
    assert_eq!(ran.output, "+ true 2\r\n");
    assert!(ran.prompt.contains("other\r\n") && !ran.prompt.contains("was"), "{ran:?}");
    shell.run("set +x; PROMPT_COMMAND=\"echo more; $PROMPT_COMMAND\"; PS0=").await;
    shell.run("true").await;
    let ran = shell.run("PS1=\"(venv) $PS1\"").await;
    assert_eq!(ran.output, "");
    assert!(ran.prompt.contains("more\r\nother\r\n"), "{ran:?}");
    assert!(ran.prompt.ends_with("(venv) later> "), "{ran:?}");
    // What comes after ours is found at the next prompt; this one has no end that is told.
    shell.shows("PROMPT_COMMAND+=('PS1=\"la\"\"te> \"')\r", "late> ").await;
    shell.run("true").await;
    let ran = shell.run("echo still").await;
    assert_eq!((ran.output.as_str(), ran.prompt.ends_with("late> ")), ("still\r\n", true));
}

/// spec LIVE.3: Commands in a shell that prints marks inherit nothing of them.
#[tokio::test]
async fn nothing_is_inherited() {
    let own = "unset _; env | sort | grep -v '^_='";
    for command in [&["bash"][..], &["bash", "-l"], &["bash", "--norc"], &["zsh"], &["fish"]] {
        let home = Home::new(&[(".zshrc", ""), (".zshenv", ""), (".config/fish/config.fish", "")]);
        let Some(params) = home.shell(command) else { continue };
        let line = if command[0] == "fish" { "env | sort | grep -v '^_='" } else { own };
        let mut shell = Shell::start(home.marked(&params)).await;
        let inherited = shell.run(line).await.output;
        assert!(inherited.contains("TERM=dumb"), "{inherited}");
        for name in ["PROMPT_COMMAND", "ZDOTDIR", "PERIOD", "PS1", "__sandgate", NONCE] {
            assert!(!inherited.contains(name), "{command:?}: {inherited}");
        }
    }
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_login_bash_is_one() {
    let home = Home::new(&[
        (
            ".bash_profile",
            "echo profile; . ~/.bashrc; PROMPT_COMMAND=\"echo hook; ${PROMPT_COMMAND-}\"\n",
        ),
        (".bashrc", "echo rc; PS1='in> '\n"),
        (".bash_logout", "echo out > ~/logout\n"),
    ]);
    let Some(params) = home.shell(&["bash", "--login", "-i"]) else { return };
    let mut shell = Shell::start(home.marked(&params)).await;
    assert!(shell.start.output.ends_with("profile\r\nrc\r\nhook\r\n"), "{:?}", shell.start);
    shell.gives("shopt -q login_shell", "", 0).await;
    let ran = shell.run("false").await;
    assert_eq!((ran.output.as_str(), ran.status), ("", Some(1)));
    assert_eq!(ran.prompt, "hook\r\nin> ");
    shell.types("exit 9\r").await;
    assert_eq!((&mut shell.process.exit_rx).await, Ok(9));
    assert_eq!(fs::read_to_string(home.path().join("logout")).unwrap(), "out\n");
}

/// spec LIVE.4: Where a shell's start-up files leave no room for marks there are none, and nothing is
/// shown that would not be shown without them.
#[tokio::test]
async fn a_bash_that_cannot_have_marks_shows_nothing_of_it() {
    for rc in ["PS1='plain> '; readonly PROMPT_COMMAND=:", "PS1='plain> '; readonly PS1"] {
        let home = Home::new(&[(".bashrc", rc)]);
        let Some(params) = home.shell(&["bash", "-i"]) else { return };
        let spawner = Spawner::start().unwrap();
        let env = granted(home.marked(&params));
        let mut process = spawner.spawn_pty(&env, TerminalSize::default()).await.unwrap();
        let keys = Bytes::from("true\rexit\r");
        process.session.writer_sender().unwrap().send(keys).await.unwrap();
        let mut shown = String::new();
        while let Some(Received::Chunk(chunk)) = process.output_rx.recv().await {
            shown += &String::from_utf8_lossy(&chunk.bytes);
        }
        assert!(shown.contains("plain> "), "{shown:?}");
        assert!(!shown.contains("sandgate") && !shown.contains("readonly"), "{shown:?}");
        assert!(!shown.contains("133;"), "{shown:?}");
    }
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_strict_bash_goes_on() {
    let home = Home::new(&[(
        ".bashrc",
        "set -eu; trap 'echo failed' ERR; PS1='strict> '; (exit 3) || :\n",
    )]);
    let Some(params) = home.shell(&["bash"]) else { return };
    let mut shell = Shell::start(home.marked(&params)).await;
    shell.gives("false && true", "", 1).await;
    shell.gives("echo on", "on\r\n", 0).await;
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_zsh_with_hooks_of_its_own_keeps_them() {
    let rc = r#"
        setopt ksh_arrays no_unset prompt_subst
        alias print=false local=false
        mine() { echo "[was $? $pipestatus]"; PS1='rewritten> ' }
        precmd_functions=(mine)
        preexec() { echo "[runs $1]" }
        RPROMPT=right
        [[ -v ZDOTDIR ]] && echo "ZDOTDIR is $ZDOTDIR"
        PROMPT_EOL_MARK='(no end)'
    "#;
    let files = [(".zshenv", "echo env"), (".zprofile", "echo profile"), (".zlogin", "echo login")];
    let home = Home::new(&[&files[..], &[(".zshrc", rc)]].concat());
    let Some(params) = home.shell(&["zsh", "-l"]) else { return };
    let mut shell = Shell::start(home.marked(&params)).await;
    assert!(shell.start.output.contains("env\r\nprofile\r\nlogin\r\n"), "{:?}", shell.start);
    assert!(!shell.start.output.contains("ZDOTDIR"), "{:?}", shell.start);
    shell.gives("echo hi", "hi\r\n", 0).await;
    let ran = shell.run("(exit 7)").await;
    assert_eq!((ran.output.as_str(), ran.status), ("", Some(7)));
    assert!(ran.prompt.contains("[was 7 7]"), "{ran:?}");
    assert!(ran.prompt.contains("rewritten> "), "{ran:?}");
    assert!(ran.echo.contains("[runs (exit 7)]"), "{ran:?}");
    let ran = shell.run("printf no-end").await;
    assert_eq!(ran.output, "no-end");
    assert!(ran.prompt.starts_with("(no end)"), "{ran:?}");
    shell.gives("unsetopt prompt_sp; false", "", 1).await;
    shell.gives("true", "", 0).await;
    shell.gives("echo ${periodic_functions-none} ${PERIOD-none}", "none none\r\n", 0).await;
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_zsh_with_a_directory_of_its_own_keeps_it() {
    let home = Home::new(&[("own/.zshrc", "echo \"read from $ZDOTDIR\"\n")]);
    let Some(mut params) = home.shell(&["zsh"]) else { return };
    let own = home.path().join("own");
    params.env.insert("ZDOTDIR".into(), own.clone().into());
    let mut shell = Shell::start(home.marked(&params)).await;
    let own = own.display();
    assert!(shell.start.output.contains(&format!("read from {own}\r\n")), "{:?}", shell.start);
    shell.gives("sh -c 'echo $ZDOTDIR'", &format!("{own}\r\n"), 0).await;
}

/// spec LIVE.2: A shell that prints marks reads its user's start-up files, and keeps the prompts, hooks,
/// traps and the history in them.
#[tokio::test]
async fn a_fish_with_a_prompt_of_its_own_keeps_it() {
    let config = "function fish_prompt; echo \"[was $status $pipestatus]\"; echo 'mine> '; end\n";
    let home = Home::new(&[(".config/fish/config.fish", config)]);
    let Some(params) = home.shell(&["fish", "-C", "echo asked"]) else { return };
    let mut shell = Shell::start(home.marked(&params)).await;
    assert!(shell.start.output.contains("asked\r\n"), "{:?}", shell.start);
    let ran = shell.run("false | sh -c 'exit 7'").await;
    assert_eq!((ran.output.as_str(), ran.status), ("", Some(7)));
    assert!(ran.prompt.contains("[was 7 1 7]"), "{ran:?}");
    assert!(ran.prompt.contains("mine> "), "{ran:?}");
    shell.gives("function fish_prompt; echo 'other> '; end", "", 0).await;
    let ran = shell.run("echo hi").await;
    assert_eq!((ran.output.as_str(), ran.prompt.contains("other> ")), ("hi\r\n", true));
}

/// spec LIVE.1: In a shell that prints marks, the output of a command is told from its prompt and from
/// the echo of what was typed, to the byte, and its exit status is known.
#[tokio::test]
async fn no_home_is_needed() {
    for command in [&["bash"][..], &["bash", "-l"], &["zsh"], &["fish"]] {
        let home = Home::new(&[]);
        let Some(mut params) = home.shell(command) else { continue };
        params.env.remove(std::ffi::OsStr::new("HOME"));
        if command[0] == "zsh" {
            // It would ask a new user questions.
            params.env.insert("ZDOTDIR".into(), home.path().into());
            fs::write(home.path().join(".zshrc"), "").unwrap();
        }
        let mut shell = Shell::start(home.marked(&params)).await;
        shell.gives("echo hi", "hi\r\n", 0).await;
        shell.gives("false", "", 1).await;
    }
}

/// spec LIVE.5: A command that is no interactive shell of a kind that we know is started as it was asked
/// for.
#[test]
fn other_commands_are_left_alone() {
    let files = tempfile::tempdir().unwrap();
    for command in [
        &["bash", "-c", "true"][..],
        &["bash", "-lc", "true"],
        &["bash", "script"],
        &["bash", "--posix"],
        &["bash", "-o", "posix"],
        &["bash", "-s"],
        &["bash", "-r"],
        &["bash", "--unheard-of"],
        &["bash", "--rcfile"],
        &["bash", "--", "script"],
        &["sh", "-i"],
        &["dash"],
        &["ksh"],
        &["python3"],
        &["zsh", "-c", "true"],
        &["zsh", "-f"],
        &["zsh", "script"],
        &["zsh", "-o", "norcs"],
        &["fish", "-c", "true"],
        &["fish", "script"],
        &["fish", "-C"],
    ] {
        let mut params = program(command);
        params.program = Path::new("/usr/bin").join(command[0]);
        let marked = with_marks(&params, NONCE, files.path()).unwrap();
        assert!(marked.is_none(), "{command:?}: {marked:?}");
    }
    // A bash that is called sh behaves like one.
    let mut params = program(&["sh"]);
    params.program = "/usr/bin/bash".into();
    assert!(with_marks(&params, NONCE, files.path()).unwrap().is_none());
    assert!(with_marks(&params, "no\nnonce", files.path()).is_err());
    assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
}
