//! `sandgate serve`: the program, its tokens, and what is left when it ends.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "these tests are about the real program")]

#[path = "support/http.rs"]
mod http;
mod support;
#[path = "support/terminal.rs"]
mod terminal;

use http::{Served, exchange, sign_in};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use support::{World, eventually, is_alive, skipped};
use terminal::Terminal;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All files below a directory that have this text in them.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    // A token may begin with a dash.
    let grep = Command::new("grep").args(["-rlaF", "-e", text]).arg(directory).output().unwrap();
    String::from_utf8(grep.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// spec HTTP.3: The requester's token is in a file of mode 0600 in a directory of mode 0700; the
/// approver's is in no file, argument or variable, and is printed only at a terminal.
#[test]
fn the_approvers_token_is_nowhere_but_with_the_person() {
    let world = World::new();
    let served = Served::start(&world, &[]);
    assert_eq!(
        (mode(&served.token_file), mode(served.token_file.parent().unwrap())),
        (0o600, 0o700)
    );
    assert_eq!(served.get(&served.requester, "/settings/me").json()["role"], "requester");
    assert_eq!(served.get(&served.approver, "/settings/me").json()["role"], "approver");
    // Something has been written by then.
    let call = json!({ "arguments": { "command": ["env"] } });
    let env = served.post(&served.approver, "/tools/shell", &call);
    assert_eq!(env.json()["success"], true, "{env:?}");
    assert!(!env.body.contains(&served.approver) && !env.body.contains(&served.requester));
    assert_eq!(files_with(world.home(), &served.approver), [] as [String; 0]);
    assert_eq!(files_with(world.home(), &served.requester), [served.token_file.to_str().unwrap()]);
    let pid = served.running.child.id();
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&served.approver), "{file}");
    }
    served.running.signal(Signal::TERM);
    let outcome = served.running.wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("sandgate console prints the address"), "{outcome:?}");
    assert!(!outcome.stderr.contains(&served.approver) && outcome.stdout.is_empty());
}

/// spec HTTP.3: The requester's token is in a file of mode 0600 in a directory of mode 0700; the
/// approver's is in no file, argument or variable, and is printed only at a terminal.
///
/// spec HTTP.14: When it is ended, all that it started ends, and its token file and socket are
/// gone.
#[test]
fn at_a_terminal_the_person_is_told_and_ctrl_c_ends_it() {
    let world = World::new();
    let mut terminal = Terminal::start(&world, &["serve", "--listen", "127.0.0.1:0"]);
    let shown = terminal.until("/#code=");
    assert!(shown.contains("approve in the console: http://127.0.0.1:"), "{shown}");
    let code = terminal.until("\n").trim().to_owned();
    assert_eq!(code.len(), 43);
    let console = eventually("the console is known", || {
        let outcome = world.sandgate(&["console"]);
        (outcome.code == Some(0)).then(|| outcome.stdout().trim().to_owned())
    });
    let (place, another) = console.split_once("/#code=").unwrap();
    assert_ne!(another, code, "each address is for one page");
    let address = place.strip_prefix("http://").unwrap();
    let (first, second) = (sign_in(address, &code), sign_in(address, another));
    assert!(first != second && ![&code, another].contains(&&*first));
    terminal.press("\x03");
    assert_eq!(terminal.end().1, Some(0));
    let left = fs::read_dir(world.path(".codex/serve")).unwrap();
    assert!(left.map(|entry| entry.unwrap().file_name()).eq([".lock"]));
}

/// spec HTTP.14: When it is ended, all that it started ends, and its token file and socket are
/// gone.
#[test]
fn nothing_is_left_when_it_is_ended() {
    let world = World::new();
    let served = Served::start(&world, &["--sandbox", "danger-full-access"]);
    let kept =
        json!({ "arguments": { "cmd": "echo $$ > kept; exec sleep 1000", "yield_time_ms": 250 } });
    let started = served.post(&served.requester, "/tools/exec_command", &kept);
    assert_eq!(started.json()["success"], true, "{started:?}");
    let call =
        json!({ "arguments": { "command": ["bash", "-c", "echo $$ > call; sleep 1000; true"] } });
    let pid = |name: &str| {
        let path = world.path(name);
        eventually(name, || fs::read_to_string(&path).ok()?.trim().parse::<i32>().ok())
    };
    let answer = std::thread::scope(|scope| {
        let calling = scope.spawn(|| served.post(&served.requester, "/tools/shell", &call));
        let pids = [pid("kept"), pid("call")];
        assert!(pids.iter().all(|&pid| is_alive(pid)));
        served.running.signal(Signal::INT);
        let answer = calling.join().unwrap();
        eventually("they are gone", || (!pids.iter().any(|&pid| is_alive(pid))).then_some(()));
        answer
    });
    assert_eq!(answer.json()["success"], false, "whoever waited was told: {answer:?}");
    let outcome = served.running.wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!served.token_file.exists());
    assert_eq!(world.sandgate(&["console"]).code, Some(125));
}

/// What a caged command achieves that tries to approve a question of its own server.
fn attack(world: &World, served: &Served) {
    let escalated = json!({ "arguments": {
        "command": ["touch", world.path("outside")],
        "sandbox_permissions": "require_escalated", "justification": "because",
    }});
    fs::create_dir_all(world.path("ws")).unwrap();
    let script = include_str!("support/approves_itself.py");
    let attack = json!({ "arguments": { "command": [
        "python3", "-c", script, world.path(".codex"), served.running.child.id().to_string(),
    ]}});
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.post(&served.requester, "/tools/shell", &escalated));
        let question = served.question();
        let tried = served.post(&served.requester, "/tools/shell", &attack).json();
        let output = tried["output"].as_str().unwrap();
        assert_eq!(tried["success"], true, "{output}");
        assert!(output.contains("with the token of the file: 403"), "{output}");
        let others = output.lines().find(|line| line.starts_with("others")).unwrap();
        let others = others.split(": ").nth(1).unwrap();
        assert!(["[]", "[401]", "[403]", "[401, 403]"].contains(&others), "{output}");
        assert!(output.contains("sockets that told: 0"), "{output}");
        // It is still open, and nothing was done; the person's own answer counts.
        assert_eq!(served.question()["id"], question["id"]);
        assert!(!world.path("outside").exists());
        let path = format!("/approvals/{}", question["id"].as_str().unwrap());
        let yes = json!({ "decision": "approved" });
        assert_eq!(served.post(&served.approver, &path, &yes).status, 204);
        assert_eq!(waiting.join().unwrap().json()["success"], true);
    });
    assert!(world.path("outside").exists());
}

/// Words for a server whose commands are caged, and have the network.
fn with_network(world: &World) -> [String; 4] {
    fs::create_dir_all(world.path("ws")).unwrap();
    let workspace = world.path("ws").to_str().unwrap().to_owned();
    ["--network".into(), "--sandbox=workspace-write".into(), "--cd".into(), workspace]
}

/// spec HTTP.8: A caged command that has the network, reads the token file and posts an approval is
/// refused, with namespaces and without, as root and as an ordinary user.
#[test]
fn a_caged_command_cannot_approve() {
    let world = World::new();
    let words = with_network(&world);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let served = Served::start(&world, &words);
    attack(&world, &served);
    served.running.signal(Signal::TERM);
    let outcome = served.running.wait();
    assert!(outcome.stderr.contains("refused a request: "), "{outcome:?}");
}

/// spec HTTP.8: A caged command that has the network, reads the token file and posts an approval is
/// refused, with namespaces and without, as root and as an ordinary user.
#[test]
fn a_caged_command_cannot_approve_where_there_are_no_namespaces() {
    let world = World::new();
    let mut alone = world.other("python3");
    alone.args(["-c", include_str!("support/without_namespaces.py")]);
    let sandgate = world.program(["serve", "--listen", "127.0.0.1:0"]);
    alone.arg(sandgate.get_program()).args(sandgate.get_args()).args(with_network(&world));
    let served = Served::of(&world, &mut alone);
    let sandbox = served.get(&served.requester, "/settings/me").json()["sandbox"].clone();
    if sandbox["namespaces"] != false || sandbox["landlock_abi"].as_u64().unwrap_or(0) == 0 {
        skipped("namespaces cannot be taken away here, or nothing confines without them");
        return;
    }
    attack(&world, &served);
    served.running.signal(Signal::TERM);
    served.running.wait();
}

/// spec HTTP.12: A unix socket can be connected to by its owner only, and one that a killed server
/// left is replaced.
#[test]
fn a_unix_socket_is_its_owners() {
    let world = World::new();
    let socket = world.path("gate.sock");
    // What a killed server left.
    drop(UnixListener::bind(&socket).unwrap());
    let listen = format!("unix:{}", socket.display());
    let words = ["serve", "--listen", listen.as_str()];
    let served = Served::of(&world, &mut world.program(words));
    assert_eq!(mode(&socket), 0o600);
    let name = served.token_file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with('+') && name.ends_with("+gate.sock.json"), "{name}");
    let ask = |token: &str| {
        let stream = UnixStream::connect(&socket).unwrap();
        exchange(stream, "localhost", token, "GET", "/settings/me", "")
    };
    assert_eq!(ask(&served.approver).json()["role"], "approver");
    assert_eq!(ask("x").status, 401);
    // A second one does not take its place.
    let second = world.sandgate(&words);
    assert_eq!(second.code, Some(125), "{second:?}");
    assert!(second.stderr.contains("another program listens there"), "{second:?}");
    served.running.signal(Signal::TERM);
    let outcome = served.running.wait();
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("no browser opens a socket"), "{outcome:?}");
    assert!(!socket.exists());
    fs::write(&socket, "mine").unwrap();
    let refused = world.sandgate(&words);
    assert_eq!(refused.code, Some(125), "{refused:?}");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "mine");
}

/// spec HTTP.1: It listens on 127.0.0.1 unless it is told otherwise, and on an address that others
/// can reach only with TLS or `--insecure`.
#[test]
fn a_port_that_is_taken_is_said_so() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let outcome = world.sandgate(&["serve", "--listen", &address]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("picks a free port"), "{outcome:?}");
    let outcome = world.sandgate(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--insecure"), "{outcome:?}");
}

/// spec HTTP.41: `server.listen` of the settings says where it listens, `--listen` outweighs it, and an address
/// that others can reach takes TLS or `--insecure` from either.
#[test]
fn the_settings_say_where_it_listens() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    world.set(&format!("[server]\nlisten = \"{address}\"\n"));
    let outcome = world.sandgate(&["serve"]);
    assert_eq!(outcome.code, Some(125));
    assert!(outcome.stderr.contains("picks a free port"), "{outcome:?}");
    world.set("[server]\nlisten = \"0.0.0.0:0\"\n");
    let outcome = world.sandgate(&["serve"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("server.listen") && outcome.stderr.contains("--insecure"));
    let outcome = world.sandgate(&["serve", "--listen", &address]);
    assert!(outcome.stderr.contains("picks a free port"), "{outcome:?}");
}

/// spec HTTP.24: The first answer to a question counts; a second is answered with 409, one to no
/// question with 404, and one that the question does not offer with 422.
#[test]
fn questions_of_other_programs_are_answered_here_too() {
    let world = World::new();
    let served = Served::start(&world, &[]);
    let words =
        ["run", "--ask-for-approval", "untrusted", "--decide", "approvals", "--", "touch", "made"];
    let waiting = support::Running::start(&mut world.program(words));
    let question = served.question();
    assert_eq!(question["front_end"], "run");
    let path = format!("/approvals/{}", question["id"].as_str().unwrap());
    let answer = |token: &str, decision: &str| {
        served.post(token, &path, &json!({ "decision": decision })).status
    };
    assert_eq!(answer(&served.requester, "approved"), 403);
    assert!(!world.path("made").exists());
    assert_eq!(answer(&served.approver, "approved"), 204);
    assert_eq!(waiting.wait().code, Some(0));
    assert!(world.path("made").exists());
    assert!([404, 409].contains(&answer(&served.approver, "approved")));
    // And one of the server's own is answered from a terminal.
    let call = json!({ "arguments": {
        "command": ["rm", "made"], "sandbox_permissions": "require_escalated", "justification": "x",
    }});
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| served.post(&served.requester, "/tools/shell", &call));
        let question = served.question();
        let id = question["id"].as_str().unwrap();
        assert_eq!(world.sandgate(&["approvals", "answer", id, "approve"]).code, Some(0));
        assert_eq!(calling.join().unwrap().json()["success"], true);
    });
    assert!(!world.path("made").exists());
    served.running.signal(Signal::TERM);
    served.running.wait();
}

/// spec HTTP.36: However many listen to the questions, each other program is listened to once, and
/// the first list has its questions.
#[test]
fn many_who_listen_do_not_lock_the_person_out() {
    let world = World::new();
    let served = Served::start(&world, &[]);
    let words =
        ["run", "--ask-for-approval", "untrusted", "--decide", "approvals", "--", "touch", "made"];
    let waiting = support::Running::start(&mut world.program(words));
    let listed = || {
        let outcome = world.sandgate(&["approvals", "list"]);
        assert!(!outcome.stderr.contains("does not answer"), "{outcome:?}");
        outcome.stdout().contains("touch made").then_some(())
    };
    eventually("the question is open", listed);
    // A desk takes 32 connections.
    let listening: Vec<_> = (0..40).map(|_| served.first_list(&served.requester)).collect();
    for (_, first) in &listening {
        assert!(first.contains("touch made"), "{first}");
    }
    assert!(listed().is_some());
    let question = served.question();
    let path = format!("/approvals/{}", question["id"].as_str().unwrap());
    let yes = json!({ "decision": "approved" });
    assert_eq!(served.post(&served.approver, &path, &yes).status, 204);
    assert_eq!(waiting.wait().code, Some(0));
    drop(listening);
    served.running.signal(Signal::TERM);
    served.running.wait();
}

/// spec HTTP.33: Whoever is told where it listens is told an address whose host is not refused.
#[test]
fn on_all_addresses_the_address_that_is_told_works() {
    let world = World::new();
    let words = ["serve", "--insecure", "--listen", "0.0.0.0:0"];
    let served = Served::of(&world, &mut world.program(words));
    assert!(served.address.starts_with("127.0.0.1:"), "{}", served.address);
    assert_eq!(served.get(&served.approver, "/settings/me").status, 200);
    served.running.signal(Signal::TERM);
    served.running.wait();
}

/// An agent asks for something, and the person says no.
fn asks_and_hears_a_no(served: &Served) {
    let call = json!({ "arguments": { "command": ["touch", "made"] } });
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| served.post(&served.requester, "/tools/shell", &call));
        let path = format!("/approvals/{}", served.question()["id"].as_str().unwrap());
        let no = json!({ "decision": "denied" });
        assert_eq!(served.post(&served.approver, &path, &no).status, 204);
        calling.join().unwrap();
    });
}

/// spec HTTP.35: Each question that comes is told in a line where the server was started.
#[test]
fn a_question_that_waits_is_told_in_the_servers_terminal() {
    let world = World::new();
    let served = Served::start(&world, &["--ask-for-approval", "untrusted"]);
    asks_and_hears_a_no(&served);
    served.running.signal(Signal::TERM);
    let outcome = served.running.wait();
    let told = outcome.stderr.matches("a question waits: touch made").count();
    assert_eq!(told, 1, "{outcome:?}");
}

/// spec ERRORS.8: What a program that serves others has to say never holds it up: where nobody reads it, it is
/// left out, and how much that was is said when somebody reads again.
#[test]
fn a_full_pipe_behind_standard_error_holds_nobody_up() {
    let world = World::new();
    let mut served = Served::start(&world, &["--ask-for-approval", "untrusted"]);
    // What it could say to is full from here on.
    let pipe = format!("/proc/{}/fd/2", served.running.child.id());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK;
    let pipe = fs::File::from(rustix::fs::open(pipe, flags, Mode::empty()).unwrap());
    while (&pipe).write(&[b'x'; 4096]).is_ok() {}
    while (&pipe).write(b"x").is_ok() {}
    for _ in 0..2 {
        asks_and_hears_a_no(&served);
    }
    served.running.signal(Signal::TERM);
    let ended = eventually("it ends", || served.running.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

/// spec HTTP.51: A call by the id of one of the same session that is still at work, or whose process is, is refused
/// with 409.
#[test]
fn two_calls_at_once_have_two_ids() {
    let world = World::new();
    let served = Served::start(&world, &["--ask-for-approval", "untrusted"]);
    let call = json!({ "arguments": { "command": ["touch", "made"] }, "call_id": "mine" });
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| served.post(&served.requester, "/tools/shell", &call));
        let path = format!("/approvals/{}", served.question()["id"].as_str().unwrap());
        let second = served.post(&served.requester, "/tools/shell", &call);
        assert_eq!(second.status, 409, "{second:?}");
        assert!(second.body.contains("the call mine is still at work"), "{second:?}");
        let yes = json!({ "decision": "approved" });
        assert_eq!(served.post(&served.approver, &path, &yes).status, 204);
        assert_eq!(calling.join().unwrap().json()["success"], true);
    });
    assert!(world.path("made").exists());
    let safe = json!({ "arguments": { "command": ["true"] }, "call_id": "mine" });
    assert_eq!(served.post(&served.requester, "/tools/shell", &safe).status, 200);
    served.running.signal(Signal::TERM);
    assert_eq!(served.running.wait().code, Some(0));
}

/// spec HTTP.16: A turn is answered with its events up to its end, and while one is taken another
/// is refused with 409.
///
/// spec HTTP.31: `/metrics` has what the runtime counts and how much is open, as Prometheus reads
/// it.
#[test]
fn a_model_from_a_script_works_for_whoever_asks() {
    let world = World::new();
    let script = [
        json!([{ "type": "message", "text": "let me look" },
            { "type": "call", "name": "shell_command", "arguments": { "command": "echo hello > file" } }]),
        json!({ "type": "message", "text": "it is there" }),
    ];
    let script: Vec<String> = script.iter().map(Value::to_string).collect();
    fs::write(world.path("script.jsonl"), script.join("\n")).unwrap();
    let provider = format!("script:{}", world.path("script.jsonl").display());
    let served = Served::start(&world, &["--provider", &provider]);
    let begun = served.post(&served.requester, "/conversations", &json!({}));
    assert_eq!(begun.status, 201, "{begun:?}");
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let turn = format!("/conversations/{id}/turns");
    let taken = served.post(&served.requester, &turn, &json!({ "input": "make a file" }));
    assert!(taken.body.contains("event: TaskComplete\n"), "{taken:?}");
    assert_eq!(fs::read_to_string(world.path("file")).unwrap(), "hello\n");
    let figures = served.get(&served.requester, "/metrics").body;
    let called = r#"codex_tool_call_total{success="true",tool="shell_command"} 1"#;
    assert!(figures.lines().any(|line| line == called), "{figures}");
    assert!(figures.lines().any(|line| line == "sandgate_conversations 1"), "{figures}");
    served.running.signal(Signal::TERM);
    assert_eq!(served.running.wait().code, Some(0));
    // What was said can be gone on with elsewhere.
    let listed = world.sandgate(&["sessions", "list"]);
    assert!(listed.stdout().contains("make a file"), "{listed:?}");
}

/// Where schemathesis is, if it is anywhere.
fn checker() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("SANDGATE_HTTP_CHECKER").map(std::path::PathBuf::from);
    let here = std::env::current_exe().unwrap();
    let built = here.ancestors().map(|above| above.join("http-checker"));
    let found = named.into_iter().chain(built).map(|place| place.join("bin/schemathesis"));
    found.into_iter().find(|program| program.exists())
}

/// spec HTTP.30: What the served OpenAPI document says holds, also for requests that make no sense.
#[test]
fn what_the_document_says_holds() {
    let Some(checker) = checker() else {
        skipped("schemathesis is not installed (scripts/http-checker)");
        return;
    };
    let world = World::new();
    let served = Served::start(&world, &["--provider", "offline"]);
    let document = served.get(&served.requester, "/openapi.json");
    fs::write(world.path("openapi.json"), &document.body).unwrap();
    // 422 is for what the document allows and cannot be done all the same, such as a model that there is not.
    let settings = "[checks.positive_data_acceptance]\n\
        expected-statuses = [\"2xx\", \"401\", \"403\", \"404\", \"409\", \"422\", \"429\"]\n";
    fs::write(world.path("schemathesis.toml"), settings).unwrap();
    let mut command = world.other(checker.to_str().unwrap());
    // A conversation that was closed can still be read, which it takes for a mistake. Streams that never end
    // by themselves are left to the tests that read them.
    command.args([
        "--config-file",
        "schemathesis.toml",
        "run",
        "openapi.json",
        "--checks",
        "all",
        "--exclude-checks",
        "use_after_free",
        "--phases",
        "examples,coverage,fuzzing,stateful",
        "--max-examples",
        "30",
    ]);
    command.args(["--seed", "1", "--request-timeout", "20", "--workers", "2", "--no-color"]);
    command.args(["--exclude-path-regex", "/events$|/output$"]);
    command.args(["--url", &format!("http://{}", served.address)]);
    command.args(["--header", &format!("Authorization: Bearer {}", served.approver)]);
    let checked = support::Running::start(&mut command).wait();
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout(), checked.stderr);
    // It is there as it was.
    assert_eq!(served.get(&served.approver, "/healthz").status, 200);
    served.running.signal(Signal::TERM);
    assert_eq!(served.running.wait().code, Some(0));
}
