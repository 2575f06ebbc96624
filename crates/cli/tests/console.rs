//! The console of `sandgate serve`, in a real Chromium, with models that say what a file says.
//!
//! What the person does is in `crates/server/tests/console/`; here are the worlds that it happens in, and what must
//! have become of them. With `SANDGATE_CONSOLE_SHOTS` set to a directory, pictures of all pages are kept there.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "only the way to sign in is needed here")]
#[path = "support/http.rs"]
mod http;
mod support;
#[path = "support/terminal.rs"]
mod terminal;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::{Running, World, skipped};
use tempfile::TempDir;
use terminal::Terminal;

/// Asks before everything that is not known to be safe.
const CAREFUL: &[&str] = &["--ask-for-approval", "untrusted"];

fn says(text: &str) -> Value {
    json!({ "type": "message", "text": text })
}

fn runs(command: &str) -> Value {
    let arguments = json!({ "command": command, "login": false });
    json!({ "type": "call", "name": "shell_command", "arguments": arguments })
}

/// What the tests stand on.
struct Tools {
    directory: PathBuf,
    chromium: PathBuf,
}

/// The tools, or a loud word on what is missing.
fn tools() -> Option<Tools> {
    let on_path = |name: &str| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.is_file())
    };
    let directory = match std::env::var_os("SANDGATE_CONSOLE_TOOLS") {
        Some(named) => PathBuf::from(named),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("console-tools"),
    };
    if on_path("node").is_none() {
        skipped("there is no node to drive a browser with");
        return None;
    }
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path);
    let Some(chromium) = chromium else {
        skipped("there is no Chromium to show the console in");
        return None;
    };
    if !directory.join("node_modules/playwright-core").is_dir() {
        let place = directory.display();
        skipped(&format!("playwright-core is not in {place}; run scripts/console-tools"));
        return None;
    }
    Some(Tools { directory, chromium })
}

/// The directory of the scenarios.
fn scenarios() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("../server/tests/console")
}

/// A server with a console, and a browser before it.
struct Console {
    tools: Tools,
    world: World,
    model: Vec<Value>,
    options: Vec<&'static str>,
    how: &'static str,
}

impl Console {
    /// One whose model does this, one line for each time that it is asked.
    fn new(model: Vec<Value>) -> Option<Self> {
        let tools = tools()?;
        Some(Self { tools, world: World::new(), model, options: Vec::new(), how: "keys" })
    }

    fn with(mut self, options: &[&'static str]) -> Self {
        self.options.extend(options);
        self
    }

    /// Has a person do something, and gives the world back as it is then.
    #[track_caller]
    fn does(self, scenario: &str) -> World {
        let Self { tools, world, model, options, how } = self;
        let lines: Vec<String> = model.iter().map(Value::to_string).collect();
        let file = world.path("model.jsonl");
        fs::write(&file, lines.join("\n")).unwrap();
        let provider = format!("script:{}", file.display());
        let words = ["serve", "--listen", "127.0.0.1:0", "--provider", &provider];
        // The approver's token is shown to a person at a terminal, and to nobody else.
        let mut server = Terminal::start(&world, &[&words, &*options].concat());
        server.until("approve in the console: ");
        let address = server.until("\n");
        let (url, code) = address.trim().split_once("/#code=").expect("an address");
        let approver = http::sign_in(url.strip_prefix("http://").expect("a scheme"), code);
        let address = world.sandgate(&["console"]);
        let (_, code) = address.stdout().trim().split_once("/#code=").expect("another address");
        let told = fs::read_dir(world.path(".codex/serve")).unwrap();
        let told = told.map(|file| file.unwrap().path());
        let told =
            told.into_iter().find(|file| file.extension().is_some_and(|kind| kind == "json"));
        let told: Value = serde_json::from_slice(&fs::read(told.unwrap()).unwrap()).unwrap();
        let mut node = world.other("node");
        node.arg(scenarios().join("run.mjs")).arg(scenario);
        node.env("CONSOLE_TOOLS", &tools.directory).env("CONSOLE_CHROMIUM", &tools.chromium);
        node.env("CONSOLE_CODE", code)
            .env("CONSOLE_URL", url)
            .env("CONSOLE_APPROVER", &approver)
            .env("CONSOLE_HOW", how);
        node.env("CONSOLE_REQUESTER", told["requester_token"].as_str().unwrap());
        node.env("CONSOLE_WORLD", world.home());
        // What a browser keeps is nothing that a turn changed.
        let browser = tempfile::tempdir().unwrap();
        node.env("HOME", browser.path()).env("TMPDIR", browser.path());
        if let Some(shots) = std::env::var_os("SANDGATE_CONSOLE_SHOTS") {
            node.env("CONSOLE_SHOTS", shots);
        }
        node.stdout(Stdio::piped());
        let ended = Running::start(&mut node).wait();
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout(), ended.stderr);
        server.signal(rustix::process::Signal::INT);
        assert_eq!(server.end().1, Some(0));
        world
    }
}

/// A directory that no command may write to.
fn outside() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// spec WEB.10: Without a token there is a page to sign in and nothing else, and a token that the server does not
/// know is said to be one.
///
/// spec WEB.11: What the address has is taken out of it at once; the page keeps its token in memory, and neither the
/// browser's storage nor another page nor the same page loaded again has it.
#[test]
fn a_person_signs_in() {
    let Some(console) = Console::new(vec![says("hello")]) else { return };
    console.does("signIn");
}

/// spec WEB.30: A conversation is begun, streams what the model says and what commands print in their colours, takes
/// a message while it works and sends it when the turn is over, and is interrupted by a key.
///
/// spec WEB.31: A conversation looks the same when the page is loaded again, and what was said is there when it is
/// closed.
#[test]
fn a_conversation_is_held() {
    let loud = r"printf '\033[31mred\033[0m\n10%%\r99%%\n'; read line < pipe; echo $line";
    let first = json!([
        says("I will look:\n\n- `ls`\n- `make`"),
        runs(loud),
        { "type": "usage", "input_tokens": 100, "output_tokens": 20 },
    ]);
    let second = json!([runs("sleep 1000"), { "type": "usage", "input_tokens": 20 }]);
    let model = vec![first, says("That was all."), second];
    let Some(console) = Console::new(model) else { return };
    console.world.fifo("pipe");
    console.does("conversation");
}

/// spec WEB.35: Who looks at the end of a conversation goes on to, and so sees a question that comes up in it. Stars
/// with blanks behind them are stars.
#[test]
fn the_end_of_a_conversation_is_followed() {
    let long = "**strong** and from *** Begin to *** End\n\nmore\n\n".to_owned();
    let first = json!([says(&(long + &"a paragraph\n\n".repeat(30))), runs("seq 1 40")]);
    let Some(console) = Console::new(vec![first, runs("touch asked")]) else { return };
    console.with(CAREFUL).does("end");
}

/// What is answered one after the other.
fn answers(how: &'static str) {
    let model = vec![
        runs("touch one"),
        runs("touch two"),
        runs("touch two"),
        runs("mkdir three"),
        runs("touch four"),
        runs("touch five"),
        says("never said"),
    ];
    let Some(console) = Console::new(model) else { return };
    let world = Console { how, ..console.with(CAREFUL) }.does("answers");
    for (name, is_there) in
        [("one", true), ("two", true), ("three", true), ("four", false), ("five", false)]
    {
        assert_eq!(world.path(name).exists(), is_there, "{name}");
    }
    // The rule is kept: nobody is asked, and nobody could be.
    let again = world.sandgate(&[&["run"], CAREFUL, &["--", "mkdir", "again"]].concat());
    assert_eq!((again.code, world.path("again").exists()), (Some(0), true), "{}", again.stderr);
    let recorded = world.sandgate(&["audit", "show", "--json"]).stdout().to_owned();
    for word in ["approved_for_session", "approved_with_rule", "use make instead", "aborted"] {
        assert!(recorded.contains(word), "{word}: {recorded}");
    }
}

/// spec WEB.20: A question shows the command, where it would run, who asks, why, what the model says of it as the
/// model's words, what was blocked, and what a plain yes means.
///
/// spec WEB.21: Every answer of the terminal prompt can be given by its key: once, for the session, by a rule, no
/// with a word to the model, and stop.
///
/// spec WEB.36: What was answered to a question is told in a conversation in the words that every front end has for
/// it.
#[test]
fn questions_are_answered_by_keys() {
    answers("keys");
}

/// spec WEB.22: Every answer can be given by its button.
#[test]
fn questions_are_answered_by_buttons() {
    answers("click");
}

/// What was blocked is opened, or left.
fn blocked(how: &'static str) {
    let (outside, elsewhere) = (outside(), outside());
    let place = outside.path().display();
    let model = vec![
        runs(&format!("echo x > {place}/first")),
        runs(&format!("echo x > {place}/second")),
        runs(&format!("echo y > {place}/second")),
        runs(&format!("echo x > {}/elsewhere", elsewhere.path().display())),
        says("done"),
    ];
    let Some(console) = Console::new(model) else { return };
    let world = Console { how, ..console }.does("blocked");
    let read = |directory: &TempDir, name| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read(&outside, "first"), "x\n");
    assert_eq!(read(&outside, "second"), "y\n");
    assert_eq!(read(&elsewhere, "elsewhere"), "x\n");
    let recorded = world.sandgate(&["audit", "show", "--json"]).stdout().to_owned();
    assert_eq!(recorded.matches("\"decision\":\"approved_with_grant\"").count(), 2, "{recorded}");
}

/// spec WEB.23: What the sandbox blocked can be granted for the call and for the session, by key and by button, and
/// left only by a yes that says so; an explanation lists what the grant opens.
#[test]
fn what_was_blocked_is_granted() {
    blocked("keys");
    blocked("click");
}

/// spec WEB.24: A key or a click is an answer only if the question has the focus of the keyboard or is under the
/// pointer, has stood still for a moment, and the key is not held down or pressed with another.
#[test]
fn what_was_pressed_before_is_no_answer() {
    let Some(console) = Console::new(vec![runs("touch one"), says("done")]) else { return };
    let world = console.with(CAREFUL).does("guard");
    assert!(world.path("one").exists());
}

/// spec WEB.12: With a requester's token questions can be read and not answered, terminals watched and not typed
/// into, and the audit is not shown; the server refuses the answer as well.
#[test]
fn whoever_asks_does_not_answer() {
    let Some(console) = Console::new(vec![runs("touch one"), says("done")]) else { return };
    let world = console.with(CAREFUL).does("requester");
    assert!(!world.path("one").exists());
}

/// spec WEB.28: Who hears what is said with a no is told as it is: the model, the program that made the call, or
/// nobody but the record.
#[test]
fn it_is_said_who_hears_a_no() {
    let Some(console) = Console::new(vec![runs("touch one"), says("done")]) else { return };
    let world = console.with(CAREFUL).does("hearers");
    assert!(!world.path("one").exists() && !world.path("two").exists());
}

/// spec WEB.25: A patch lists every file that it changes, and shows the changes side by side where there is room,
/// and one after the other.
#[test]
fn a_patch_is_looked_at() {
    let outside = outside();
    let directory = outside.path().join("outside");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("old"), "one\ntwo\nthree\n").unwrap();
    let place = directory.display();
    let input = format!(
        "*** Begin Patch\n*** Update File: {place}/old\n@@\n one\n-two\n+2\n three\n+four\n\
         *** Add File: {place}/new\n+new \u{202e}here\n*** End Patch\n"
    );
    let patch = json!({ "type": "call", "name": "apply_patch", "input": input });
    let Some(console) = Console::new(vec![patch, says("done")]) else { return };
    console.does("patch");
    assert_eq!(fs::read_to_string(directory.join("old")).unwrap(), "one\n2\nthree\nfour\n");
    assert_eq!(fs::read_to_string(directory.join("new")).unwrap(), "new \u{202e}here\n");
}

/// spec WEB.27: Of a patch that is too long for the list of questions the whole is shown.
#[test]
fn a_long_patch_is_shown_in_whole() {
    let outside = outside();
    let file = outside.path().join("long");
    let lines = "+a line of a long file\n".repeat(5000);
    let input =
        format!("*** Begin Patch\n*** Add File: {}\n{lines}*** End Patch\n", file.display());
    let patch = json!({ "type": "call", "name": "apply_patch", "input": input });
    let Some(console) = Console::new(vec![patch, says("done")]) else { return };
    console.does("longPatch");
    assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 5000);
}

/// A live process that says what it was told.
const ECHOES: &str = "printf '\\033[6n\\033[c'; while printf 'ready> '; read -r line; do case $line in \
    colour) printf '\\033[38;2;250;120;10morange\\033[0m\\n';; \
    ask) printf '\\033[6n\\033[?6n\\033[5n\\033[c\\033[>c\\033[?25$p\\033P$qm\\033\\134\\033]11;?\\007asked\\n';; \
    size) stty size | sed 's/^/rows /; s/ \\([0-9]*\\)$/ columns \\1/';; \
    *) echo \"got $line, ${#line} letters\";; esac; done";

fn live(script: &str) -> Value {
    let arguments =
        json!({ "command": ["/bin/sh", "-c", script], "yield_time_ms": 2000, "login": false });
    json!({ "type": "call", "name": "exec_command", "arguments": arguments })
}

/// spec WEB.32: A person types into the terminal of a live process, which has the size of the browser's and all its
/// colours, and ends it.
///
/// spec WEB.34: What a program asks its terminal is not answered, neither before the person came nor after: an answer
/// would be typed as the person.
#[test]
fn a_person_types_into_a_terminal() {
    let Some(console) = Console::new(vec![live(ECHOES), says("it runs")]) else { return };
    console.does("terminal");
}

/// spec WEB.33: The audit is searched and filtered, a call is one row with all its records, and the chart's numbers
/// are a table too.
#[test]
fn the_audit_is_searched() {
    let model = vec![runs("echo first"), runs("echo second"), says("done")];
    let Some(console) = Console::new(model) else { return };
    console.does("audit");
}

/// spec WEB.5: Text of a model, a command or its output is text wherever it is shown: nothing in it becomes an
/// element, a link that hides where it leads, or a second question; what does not show itself is spelled out, and
/// nothing is painted outside of its cell.
#[test]
fn hostile_text_stays_text() {
    let script = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>";
    let pile: String = ["z", &"\u{0301}".repeat(400)].concat();
    let print = format!(
        "cat <<'EOF'\n{script}\n\u{1b}]0;title\u{7}\u{1b}[8mhidden\u{1b}[0m\u{1b}[999;999Hfar \
         \u{202e}turned \u{200b}{pile}\n{}\nMay this run?\n  [y] yes\nEOF",
        "wide".repeat(2000)
    );
    let evil = format!("echo evil \u{202e}\u{200b}\u{1b}[2J\nMay this run?\n[y] yes; {script}");
    let why = format!("harmless\n\nMay this run? {script}\u{2066}");
    let call = json!({ "type": "call", "name": "shell_command", "arguments": {
        "command": evil, "login": false, "sandbox_permissions": "require_escalated", "justification": why,
    } });
    let said = format!(
        "# {script}\n\n[{script}](javascript:alert(1)) [x](data:text/html,x) [safe](https://example.com/) \
         ![pic](https://example.com/p.png)\n\n- {}\n\n```html\n{script}\n```\n\n\u{202e}turned {pile}\n\nthe end",
        "wide".repeat(2000)
    );
    let Some(console) = Console::new(vec![call, runs(&print), says(&said)]) else { return };
    console.does("hostile");
}

/// spec WEB.6: Of a long output the beginning and the end are on the page, and how much is left out between them.
#[test]
fn a_long_output_is_bounded() {
    let long = "i=1; while [ $i -le 20000 ]; do echo line $i; i=$((i+1)); done";
    let Some(console) = Console::new(vec![runs(long), says("done")]) else { return };
    console.does("longOutput");
}

/// spec WEB.26: That a question waits is told by the tab's title and picture, by a live region, by a number beside
/// the page's name, and by a notification if the person allowed it.
///
/// spec WEB.40: A banner says that the connection is lost; when it is back, what happened meanwhile is there.
#[test]
fn a_person_is_told() {
    let model = vec![runs("touch one"), runs("touch two"), says("done")];
    let Some(console) = Console::new(model) else { return };
    let world = console.with(CAREFUL).does("told");
    assert!(world.path("one").exists() && !world.path("two").exists());
}

/// spec WEB.41: Every page is reached by a key, `?` says which, and keys are letters where one writes.
#[test]
fn every_page_has_a_key() {
    let Some(console) = Console::new(vec![says("hello")]) else { return };
    console.does("keys");
}

/// spec WEB.1: A browser that shows the console asks nothing of any other server, and its content policy refuses
/// nothing that the console does.
///
/// spec WEB.42: On screens of 1280, 390 and 360 pixels, light and dark, no page is wider than the screen, everything
/// that can be pressed or filled in has a name, and every text stands out from what is behind it by 4.5 to 1, or 3
/// to 1 if it is large.
#[test]
fn every_page_looks_right() {
    let fix = "*** Begin Patch\n*** Update File: lamp.rs\n@@\n pub fn lamp() -> Lamp {\n-    Lamp::off()\n\
        +    // The keeper sleeps; the lamp does not.\n+    Lamp::lit(Colour::Warm)\n }\n*** End Patch\n";
    let plan = "The lamp goes out after a second. The plan:\n\n1. run the tests\n2. keep the lamp lit in `lamp.rs`\n\
        3. commit";
    let usage = json!({ "type": "usage", "input_tokens": 18_412, "output_tokens": 903 });
    let lamp = [
        json!([says(plan), live("./watch"), usage]),
        json!([runs("./test --all"), usage]),
        json!([{ "type": "call", "name": "apply_patch", "input": fix }, usage]),
        json!([runs("git commit -qam 'Keep the lamp lit'"), usage]),
        says("It is committed."),
    ];
    let Some(console) = Console::new(lamp.to_vec()) else { return };
    let world = &console.world;
    let lines = "pub fn lamp() -> Lamp {\n    Lamp::off()\n}\n";
    fs::write(world.path("lamp.rs"), lines).unwrap();
    let [bold, red, green, plain] = [1, 31, 32, 0].map(|number| format!("\\033[{number}m"));
    let ok = format!("{green}ok{plain}");
    let tests = format!(
        "printf '{bold}running 3 tests{plain}\\ntest greets ... {ok}\\ntest lamp::stays_lit ... \
         {red}FAILED{plain}\\ntest lamp::is_warm ... {ok}\\n'; exit 101"
    );
    let watch = format!(
        "printf 'watching {bold}lamp.rs{plain}\\n{green}built in 0.4 s{plain}\\n'; exec sleep 1000"
    );
    for (name, script) in [("test", tests), ("watch", watch)] {
        fs::write(world.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(world.path(name), runnable).unwrap();
    }
    // Something for the audit to tell.
    for (answer, command) in [
        ("approve", "touch lamp.rs"),
        ("approve", "touch lamp.rs"),
        ("deny", "rm -rf lamp.rs"),
        ("approve", "cat lamp.rs"),
    ] {
        let words = ["run", "--ask-for-approval", "untrusted", "--decide", answer, "--"];
        let command: Vec<&str> = command.split(' ').collect();
        world.sandgate(&[&words, &*command].concat());
    }
    for words in [
        &["init", "--quiet"] as &[&str],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.com"],
        &["add", "lamp.rs"],
    ] {
        let ended = Running::start(world.other("git").args(words)).wait();
        assert_eq!(ended.code, Some(0), "git {words:?}: {}", ended.stderr);
    }
    let outside = outside();
    fs::write(outside.path().join("lamp.toml"), "[lamp]\ncolour = \"cold\"\nheight = 12\n")
        .unwrap();
    let place = outside.path().display();
    let settings = format!(
        "*** Begin Patch\n*** Update File: {place}/lamp.toml\n@@\n [lamp]\n-colour = \"cold\"\n\
         +colour = \"warm\"\n+brightness = 80\n height = 12\n*** Add File: {place}/keeper.md\n\
         +# The keeper\n+\n+Looks after the lamp, and sleeps when it is lit.\n*** End Patch\n"
    );
    let patch = json!({ "type": "call", "name": "apply_patch", "input": settings });
    fs::write(world.path("second.jsonl"), patch.to_string()).unwrap();
    console.does("pages");
}

/// spec WEB.4: The console's sources have no type that does not fit another.
#[test]
fn types_fit() {
    let Some(tools) = tools() else { return };
    let tsc = tools.directory.join("node_modules/typescript/bin/tsc");
    if !tsc.is_file() {
        skipped("typescript is not there; run scripts/console-tools");
        return;
    }
    let mut node = World::untouched().other("node");
    node.current_dir(scenarios()).arg(tsc).arg("--project").arg("tsconfig.json");
    let ended = Running::start(&mut node).wait();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout(), ended.stderr);
}
