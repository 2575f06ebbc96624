//! `sandgate` alone: the interface in a real terminal, with a model that says what a script says.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::{World, eventually, skipped};
use terminal::Terminal;

/// How long a person looks at a question before they press a key. What is pressed earlier does not count,
/// and there is nothing to see by which the end of that moment could be waited for.
const LOOK: Duration = Duration::from_millis(450);

/// A person at a tmux, in which the program runs.
struct Person {
    world: World,
    socket: String,
}

impl Person {
    /// Starts the program in a terminal of this size. None if there is no tmux here.
    fn at(world: World, size: (u16, u16), words: &[&str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = format!("sandgate-{}-{number}", std::process::id());
        let person = Self { world, socket };
        let program = person.world.program(words);
        let mut tmux = person.tmux();
        tmux.args(["new-session", "-d", "-x", &size.0.to_string(), "-y", &size.1.to_string()]);
        tmux.arg("-e").arg(format!("HOME={}", person.world.home().display()));
        // It says by itself how it ended: not every tmux can tell.
        tmux.args(["sh", "-c", r#""$@"; echo "left with $?"; exec cat"#, "sh"]);
        tmux.arg(program.get_program()).args(program.get_args());
        match tmux.stdin(Stdio::null()).output() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(_) => {
                skipped("there is no tmux here");
                return None;
            }
        }
        Some(person)
    }

    /// The same with a model that follows a script.
    fn with_script(world: World, turns: &[Value], more: &[&str]) -> Option<Self> {
        let script: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
        std::fs::write(world.path("script.jsonl"), script).unwrap();
        let provider = format!("script:{}", world.path("script.jsonl").display());
        Self::at(world, (80, 24), &[&["--provider", provider.as_str()], more].concat())
    }

    fn tmux(&self) -> std::process::Command {
        let mut tmux = self.world.other("tmux");
        tmux.args(["-L", &self.socket, "-f", "/dev/null"])
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8");
        tmux
    }

    fn ask_tmux(&self, words: &[&str]) -> String {
        let output = self.tmux().args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.ask_tmux(&["capture-pane", "-p"])
    }

    fn scrollback(&self) -> String {
        self.ask_tmux(&["capture-pane", "-p", "-S", "-"])
    }

    #[track_caller]
    fn sees(&self, text: &str) -> String {
        let mut screen = String::new();
        let seen = || {
            screen = self.screen();
            screen.contains(text).then_some(())
        };
        let what = format!("the screen shows {text:?}");
        let looked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually(&what, seen)));
        assert!(looked.is_ok(), "{what}, but it shows:\n{screen}");
        screen
    }

    fn types(&self, text: &str) {
        self.ask_tmux(&["send-keys", "-l", "--", text]);
    }

    fn presses(&self, keys: &[&str]) {
        self.ask_tmux(&[&["send-keys"], keys].concat());
    }

    /// Writes a message and sends it.
    fn says(&self, text: &str) {
        self.sees("›");
        self.types(text);
        self.presses(&["Enter"]);
    }

    /// Looks at a question, and presses a key.
    #[track_caller]
    fn answers(&self, question: &str, key: &str) -> String {
        let screen = self.sees(question);
        std::thread::sleep(LOOK);
        self.types(key);
        screen
    }

    /// Leaves, and gives back the exit code and all that was shown.
    #[track_caller]
    fn leaves(&self) -> (String, String) {
        self.presses(&["C-d"]);
        let screen = self.sees("left with ");
        let code = screen.split("left with ").nth(1).and_then(|rest| rest.lines().next());
        (code.unwrap_or_default().trim().to_owned(), self.scrollback())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}

fn shell(command: &str) -> Value {
    json!({"type": "call", "name": "shell", "arguments": {"command": ["bash", "-c", command]}})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "text": text})
}

/// spec TUI.1: A person writes, the model answers and calls, a question is shown where one is needed, a yes
/// lets the command run, and what happened stays in the terminal's own scrollback when they leave.
#[test]
fn a_whole_conversation() {
    let outside = World::untouched();
    let made = outside.path("made");
    let command = format!("touch {}", made.display());
    let turns = [
        json!([message("I look first."), shell("echo looked around")]),
        shell(&command),
        message("All is **done** now."),
    ];
    let settings = ["-c", "sandbox_workspace_write.exclude_slash_tmp=true"];
    let Some(person) = Person::with_script(World::new(), &turns, &settings) else { return };
    person.says("make the file");
    let screen = person.answers("The sandbox blocked this", "y");
    assert!(screen.contains("blocked  create") && screen.contains("[g] only let it"), "{screen}");
    person.sees("All is done now.");
    assert!(made.exists());
    let (code, shown) = person.leaves();
    assert_eq!(code, "0");
    for text in [
        "› make the file",
        "● I look first.",
        "$ echo looked around",
        "│ looked around",
        "✓ you said yes",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(shown.contains("go on with: sandgate resume"), "{shown}");
    assert!(!shown.contains("▌"), "the question is gone\n{shown}");
}

/// spec TUI.2: A no with a sentence is told to the model and recorded, and the work goes on; an abort ends
/// it.
#[test]
fn a_no_and_an_abort() {
    let turns = [
        shell("rm -rf /etc/hosts"),
        message("then not"),
        shell("rm -rf /etc/passwd"),
        message("never said"),
    ];
    let Some(person) = Person::with_script(World::new(), &turns, &["clean up please"]) else {
        return;
    };
    person.answers("May this run?", "n");
    person.types("use git instead");
    person.presses(&["Enter"]);
    person.sees("then not");
    person.says("again");
    person.answers("May this run?", "a");
    let screen = person.sees("no, and stop");
    assert!(screen.contains("you said no: use git instead"), "{screen}");
    // Nobody leaves in the middle of a turn.
    person.sees("called off");
    let (code, shown) = person.leaves();
    assert_eq!(code, "0");
    assert!(!shown.contains("never said"), "{shown}");
    let audit = person.world.sandgate(&["audit", "show", "--json"]);
    assert!(audit.stdout().contains("use git instead"), "{audit:?}");
}

/// spec TUI.3: A command after ! is judged, confined and recorded like any other, its output is shown, and
/// no model is needed for it.
#[test]
fn a_command_of_the_persons_own() {
    let Some(person) = Person::at(World::new(), (80, 24), &[]) else { return };
    person.sees("no model is set");
    person.says("!echo mine; touch /usr/not-there");
    person.answers("May this run?", "n");
    person.presses(&["Enter"]);
    person.sees("you said no");
    person.says("!echo 40 + 2 = $((40 + 2))");
    person.sees("│ 40 + 2 = 42");
    let (code, _) = person.leaves();
    assert_eq!(code, "0");
}

/// spec TUI.4: The pane of processes lists what lives, shows what one prints, types lines to it, leaves it
/// alone again with Ctrl-], and ends it when that is confirmed.
#[test]
fn processes_are_attached_to_and_ended() {
    let turns = [
        json!({"type": "call", "name": "exec_command", "arguments": {
            "command": ["cat"], "process_id": "echo", "yield_time_ms": 500}}),
        message("it lives"),
    ];
    let Some(person) = Person::with_script(World::new(), &turns, &["start it"]) else { return };
    person.sees("it lives");
    person.says("/processes");
    person.sees("waits for input");
    person.presses(&["Enter"]);
    person.sees("echo · attached");
    person.types("hello there");
    person.presses(&["Enter"]);
    // The terminal echoes it, and then the process does.
    eventually("the process has said it", || {
        (person.screen().matches("│ hello there").count() >= 2).then_some(())
    });
    person.presses(&["C-]"]);
    person.sees("Processes of this session");
    person.types("x");
    person.sees("End echo and all that it started?");
    person.types("y");
    eventually("it has ended", || {
        let screen = person.screen();
        (screen.contains("none is alive") || screen.contains("ended")).then_some(())
    });
    person.presses(&["Escape"]);
    person.sees("it lives");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.5: While a command prints 200 MB the person can write, and Esc ends it.
#[test]
fn a_flood_holds_nobody_up() {
    let Some(person) = Person::at(World::new(), (80, 24), &[]) else { return };
    person.says("!yes 0123456789012345678901234567890123456789 | head -c 200000000; sleep 1000");
    person.sees("lines · ctrl-t shows more");
    person.types("still here");
    person.sees("› still here");
    person.presses(&["Escape"]);
    person.sees("called off");
    person.presses(&["C-c"]);
    person.sees("no model is set");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.6: No sequence that a command prints reaches the terminal: not its title, its modes, its
/// colours of the background or a question of its own.
#[test]
fn no_sequence_of_a_command_reaches_the_terminal() {
    let Some(person) = Person::at(World::new(), (80, 24), &[]) else { return };
    let title = person.ask_tmux(&["display-message", "-p", "#{pane_title}"]);
    let script = r"for a in $(seq 0 255); do for b in '[2J' '[?1049h' '[41m' ']0;owned\a' ']2;owned\a' '[8m' 'c' '[10;10H' '[?25l' '(0'; do printf '\033'$b; printf '\x'$(printf %x $a); done; done; printf '\n\342\226\214 May this run?\n\342\226\214 [y] once\n'";
    std::fs::write(person.world.path("evil"), script).unwrap();
    person.says("!bash evil; echo the end of it");
    let screen = person.sees("✓ ok");
    assert!(screen.contains("│ the end of it") && screen.contains("› no model is set"), "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with('▌')), "{screen}");
    assert_eq!(person.ask_tmux(&["display-message", "-p", "#{pane_title}"]), title);
    assert_eq!(person.ask_tmux(&["display-message", "-p", "#{alternate_on}"]).trim(), "0");
    let coloured = person.ask_tmux(&["capture-pane", "-p", "-e"]);
    assert!(!coloured.contains("[41m") && !coloured.contains(";41"), "{coloured}");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.40: In a tmux that is made narrower and wider the composer stands there once, and what is
/// finished stays.
#[test]
fn another_size_is_drawn_cleanly() {
    let Some(person) = Person::at(World::new(), (80, 24), &[]) else { return };
    person.says("!echo finished");
    person.sees("✓ ok");
    person.types("some text that is being written");
    person.sees("› some text");
    for (columns, rows) in [("40", "20"), ("100", "30"), ("50", "10"), ("80", "24")] {
        person.ask_tmux(&["resize-window", "-x", columns, "-y", rows]);
        eventually("it is drawn once", || {
            let screen = person.screen();
            let once = |text: &str| screen.matches(text).count() == 1;
            (once("› some text") && once("│ finished") && once("workspace-write ·")).then_some(())
        });
    }
    person.presses(&["C-c"]);
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.7: In a directory that the person has not been asked about, they are asked first, with what it
/// means; the answer is kept in their own settings.
#[test]
fn an_unknown_directory_is_asked_about() {
    let world = World::untouched();
    std::fs::create_dir_all(world.path("project/.git")).unwrap();
    let project = world.path("project");
    let Some(person) = Person::at(world, (80, 24), &["--cd", project.to_str().unwrap()]) else {
        return;
    };
    let screen = person.answers("Do you trust this directory?", "y");
    assert!(screen.contains("commands may write there"), "{screen}");
    person.sees("workspace-write");
    assert_eq!(person.leaves().0, "0");
    let settings = std::fs::read_to_string(person.world.path(".codex/config.toml")).unwrap();
    assert!(settings.contains("trusted"), "{settings}");
}

/// spec TUI.16: /trust yes counts only for what was shown: what the project loosens since then is shown
/// first.
#[test]
fn only_what_was_seen_is_trusted() {
    let world = World::untouched();
    std::fs::create_dir_all(world.path("project/.git")).unwrap();
    std::fs::create_dir_all(world.path("project/.codex")).unwrap();
    let (project, file) = (world.path("project"), world.path("project/.codex/config.toml"));
    std::fs::write(&file, "[sandbox_workspace_write]\nnetwork_access = true\n").unwrap();
    let Some(person) = Person::at(world, (80, 24), &["--cd", project.to_str().unwrap()]) else {
        return;
    };
    person.answers("Do you trust this directory?", "l");
    person.says("/trust");
    person.sees("commands can reach the network");
    std::fs::write(&file, "approval_policy = \"never\"\n").unwrap();
    person.says("/trust yes");
    let screen = person.sees("/trust yes once more");
    assert!(screen.contains("you are never asked"), "{screen}");
    person.says("/trust yes");
    person.sees("is trusted");
    person.sees("· workspace-write · never ·");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.8: What /sandbox, /approvals and /model change holds from then on, in the same conversation;
/// what cannot be is refused, and nothing changes.
#[test]
fn policies_are_changed_on_the_way() {
    let turns = [message("hello to you"), message("again")];
    let Some(person) = Person::with_script(World::new(), &turns, &["hello you"]) else { return };
    person.sees("hello to you");
    // The ids that /status has said, when it has said so many.
    let conversations = |number: usize| -> Vec<String> {
        person.says("/status");
        eventually("the conversation is named", || {
            let shown = person.scrollback();
            let ids = shown.split("sandgate resume ").skip(1);
            let ids: Vec<String> =
                ids.filter_map(|rest| Some(rest.lines().next()?.trim().to_owned())).collect();
            (ids.len() == number).then_some(ids)
        })
    };
    conversations(1);
    person.says("/sandbox read-only");
    person.sees("· read-only · on-request");
    person.says("/approvals sometimes");
    person.sees("sometimes is no policy");
    person.says("/approvals never");
    person.sees("· read-only · never");
    person.says("/model no-such-provider:x");
    person.says("!touch here");
    person.sees("exit code 1");
    assert!(!person.world.path("here").exists());
    let ids = conversations(2);
    assert!(!ids[0].is_empty() && ids[0] == ids[1], "{ids:?}");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.9: `sandgate resume ID` without a prompt goes on with a conversation in the interface, as the
/// hint at the end says; /audit shows what this session had recorded and nothing else.
#[test]
fn a_conversation_is_gone_on_with() {
    let turns = [json!([message("one"), shell("echo in the first")]), message("first done")];
    let Some(first) = Person::with_script(World::new(), &turns, &["begin"]) else { return };
    first.sees("first done");
    let (_, shown) = first.leaves();
    let id = shown.split("go on with: sandgate resume ").nth(1).unwrap().lines().next().unwrap();
    let script = format!("{}\n{}\n", shell("echo in the second"), message("second done"));
    std::fs::write(first.world.path("second.jsonl"), script).unwrap();
    let provider = format!("script:{}", first.world.path("second.jsonl").display());
    let program = first.world.program(&["resume", "--provider", &provider, id.trim()]);
    let words = [program.get_program()].into_iter().chain(program.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    first.ask_tmux(&["respawn-pane", "-k", &words.join(" ")]);
    first.says("go on");
    first.sees("second done");
    first.says("/audit");
    let screen = first.sees("Recorded in this session");
    let recorded = screen.split("Recorded in this session").nth(1).unwrap();
    assert!(recorded.contains("in the second") && !recorded.contains("in the first"), "{screen}");
    let shown = first.world.sandgate(&["sessions", "show", id.trim()]);
    let conversation = shown.stdout();
    for said in ["begin", "first done", "go on", "second done"] {
        assert!(conversation.contains(said), "{said}: {conversation}");
    }
}

/// spec TUI.28: A question can be answered by `sandgate approvals` too; it is taken away then, and who
/// answered is said.
#[test]
fn a_question_is_answered_elsewhere() {
    let turns = [shell("rm -rf /etc/hosts"), message("then not")];
    let Some(person) = Person::with_script(World::new(), &turns, &["clean up please"]) else {
        return;
    };
    person.sees("May this run?");
    let id = eventually("the question is open", || {
        let listed = person.world.sandgate(&["approvals", "list", "--json"]);
        let open: Vec<Value> = serde_json::from_slice(&listed.stdout).ok()?;
        Some(open.first()?["id"].as_str()?.to_owned())
    });
    let answered = person.world.sandgate(&["approvals", "answer", &id, "deny"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let screen = person.sees("then not");
    assert!(screen.contains("answered by approvals: no"), "{screen}");
    assert!(!screen.contains('▌'), "{screen}");
    assert_eq!(person.leaves().0, "0");
}

/// spec TUI.42: When SIGTERM ends it, or the person leaves, the terminal is as it was.
#[test]
fn the_terminal_is_as_it_was() {
    for leave in ["signal", "key"] {
        let world = World::new();
        let mut terminal = Terminal::start(&world, &[]);
        terminal.until("no model is set");
        assert!(terminal.is_raw());
        match leave {
            "signal" => terminal.signal(Signal::TERM),
            _ => terminal.press("\x04"),
        }
        // The cursor is shown, pastes are not marked, rows wrap.
        terminal.until("\x1b[?2004l");
        let (code, raw) = terminal.left();
        assert_eq!((code, raw), (Some(if leave == "signal" { 143 } else { 0 }), false));
    }
}

/// spec TUI.43: With NO_COLOR no colour is written.
#[test]
fn no_colours_where_none_are_wanted() {
    // The terminal of these tests wants none.
    let world = World::new();
    let mut terminal = Terminal::start(&world, &[]);
    let shown = terminal.until("no model is set");
    for colour in 30..50 {
        assert!(
            !shown.contains(&format!("\x1b[{colour}m")) && !shown.contains(&format!(";{colour}m"))
        );
    }
    terminal.press("\x04");
    assert_eq!(terminal.end().1, Some(0));
}

/// spec TUI.18: Who leaves without having said anything to a model is not told how to go on, and no conversation was
/// written down; where one is left because the program was killed, no list has it.
#[test]
fn nothing_was_begun_that_could_be_gone_on_with() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &[]);
    terminal.until("no model is set");
    terminal.press("\x04");
    let (shown, code) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(!shown.contains("sandgate resume"), "{shown}");
    let written = || {
        let mut find = world.other("find");
        find.arg(world.path(".codex/sessions")).args(["-name", "*.jsonl"]);
        String::from_utf8(find.output().unwrap().stdout).unwrap().lines().count()
    };
    assert_eq!(written(), 0);

    let mut terminal = Terminal::start(&world, &[]);
    terminal.until("no model is set");
    terminal.signal(Signal::KILL);
    terminal.end();
    assert_eq!(written(), 1);
    let listed = world.sandgate(&["sessions", "list"]);
    assert_eq!(listed.stdout(), "", "{}", listed.stderr);
    assert!(listed.stderr.contains("no conversation was written down yet"), "{}", listed.stderr);
}

/// spec TUI.44: A terminal that takes nothing does not stop the work.
#[test]
fn a_stalled_terminal_stops_nothing() {
    let world = World::new();
    let script = json!({"type": "call", "name": "shell", "arguments": {"command":
        ["bash", "-c", "for n in $(seq 1 3000); do echo $n; done; touch done"]}});
    std::fs::write(world.path("script.jsonl"), format!("{script}\n{}\n", message("end"))).unwrap();
    let provider = format!("script:{}", world.path("script.jsonl").display());
    let terminal = Terminal::start_unread(&world, &["--provider", &provider, "go on then"]);
    eventually("the command has run", || world.path("done").exists().then_some(()));
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.left().0, Some(143));
}

/// spec TUI.50: With --plain everything is a line, nothing that a terminal obeys is written, and a question
/// is answered with a letter.
#[test]
fn line_by_line() {
    let world = World::new();
    let turns = [shell("rm -rf /etc/hosts"), message("**done** then")];
    let script: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
    std::fs::write(world.path("script.jsonl"), script).unwrap();
    let provider = format!("script:{}", world.path("script.jsonl").display());
    let mut terminal =
        Terminal::start(&world, &["--plain", "--provider", &provider, "clean up now"]);
    let mut shown = terminal.until("answer> ");
    std::thread::sleep(LOOK);
    terminal.press("n not that\n");
    shown += &terminal.until("done then");
    terminal.press("/quit\n");
    let (rest, code) = terminal.end();
    shown += &rest;
    assert_eq!(code, Some(0), "{shown}");
    for text in [
        "› clean up now",
        "QUESTION",
        "May this run?",
        "rm -rf /etc/hosts",
        "y: yes, once",
        "you said no: not that",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

/// spec TUI.51: Without a terminal it says what to use instead.
#[test]
fn no_terminal_is_told_of() {
    let outcome = World::new().sandgate(&[]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("sandgate exec"), "{}", outcome.stderr);
}

/// spec TUI.52: One word that is no verb is an error that names the nearest verb and says how a prompt is
/// written.
#[test]
fn a_mistyped_verb_is_told_of() {
    let outcome = World::new().sandgate(&["exce"]);
    assert_eq!(outcome.code, Some(2));
    for text in ["unrecognized subcommand 'exce'", "'exec'", "sandgate -- exce"] {
        assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    }
}
