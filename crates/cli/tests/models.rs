//! `sandgate exec` with a model server that speaks what providers speak, over real HTTP.

#![cfg(target_os = "linux")]

mod support;

use sandgate_model_server::{Fault, ModelServer, Script, Turn, Wire};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::{Outcome, Running, World, eventually, is_alive};

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// What nobody may ever see.
const KEY: &str = "sk-a-key-that-nobody-may-see-0123456789";

fn name(wire: Wire) -> &'static str {
    match wire {
        Wire::Responses => "responses",
        Wire::Chat => "chat",
        Wire::Messages => "anthropic",
    }
}

/// Somebody whose model this server is.
fn world(server: &ModelServer, wire: Wire) -> World {
    let world = World::new();
    world.set(&format!(
        "{}model_provider = \"test\"\nmodel = \"m\"\n\
         [model_providers.test]\nbase_url = \"{}/v1\"\nwire_api = \"{}\"\nenv_key = \"TEST_API_KEY\"\n",
        support::AS_TRUSTED,
        server.url(),
        name(wire)
    ));
    world
}

fn program(world: &World, arguments: &[&str]) -> Command {
    let mut program = world.program(arguments);
    program.env("TEST_API_KEY", KEY);
    program
}

fn exec(world: &World, arguments: &[&str]) -> Outcome {
    Running::start(&mut program(world, &[&["exec"], arguments].concat())).wait()
}

fn runs(command: &str) -> Turn {
    Turn::new().call("shell", json!({ "command": ["/bin/sh", "-c", command] }))
}

/// Nothing that was asked is what a provider would refuse.
fn accept(server: &ModelServer, wire: Wire) {
    let violations = server.violations();
    assert!(violations.is_empty(), "{wire:?}: {violations:#?}");
}

/// spec AGENT.19: Over each of the three wire formats a task is done from end to end: files are
/// read side by side, a patch changes one, the tests are run, what the sandbox blocked is granted
/// narrowly, and the answer is printed.
#[test]
fn a_task_is_done_from_end_to_end_in_each_wire_format() {
    const PATCH: &str = "*** Begin Patch\n*** Update File: add.sh\n@@\n-echo $(($1 - $2))\n\
                         +echo $(($1 + $2))\n*** End Patch\n";
    for wire in Wire::ALL {
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let report = outside.path().join("report.txt");
        let script = Script::new()
            .turn(
                Turn::new()
                    .reasoning("I look at both files first")
                    .message("I look first.")
                    .call("read_file", json!({ "path": "add.sh" }))
                    .call("read_file", json!({ "path": "test.sh" }))
                    .interleaved(),
            )
            .turn(Turn::new().expect("add.sh 2 3").call("apply_patch", json!({ "input": PATCH })))
            .turn(runs("sh test.sh"))
            .turn(runs(&format!("echo passed > {}", report.display())))
            .turn(Turn::new().message("The sum was a difference; it is mended and tested."));
        let server = ModelServer::start(script);
        let world = world(&server, wire);
        fs::write(world.path("add.sh"), "echo $(($1 - $2))\n").unwrap();
        fs::write(world.path("test.sh"), "test \"$(sh add.sh 2 3)\" = 5 && echo good\n").unwrap();
        fs::write(world.path("answers"), "grant\n").unwrap();
        let ended = exec(&world, &["--decide", "answers", "mend add.sh"]);
        assert_eq!(ended.code, Some(0), "{wire:?}: {}", ended.stderr);
        assert_eq!(ended.stdout(), "The sum was a difference; it is mended and tested.\n");
        accept(&server, wire);
        let requests = server.requests();
        let outputs = requests.last().unwrap().tool_outputs();
        let texts: Vec<&str> = outputs.iter().map(|output| output.text.as_str()).collect();
        assert!(texts.contains(&"good\n"), "{wire:?}: {texts:?}");
        assert_eq!(fs::read_to_string(&report).unwrap(), "passed\n", "{wire:?}: {texts:?}");
        assert_eq!(fs::read_to_string(world.path("add.sh")).unwrap(), "echo $(($1 + $2))\n");
    }
}

/// spec AGENT.20: An interrupt while the model thinks, speaks, or has a command run ends the turn,
/// closes the connection, and leaves a conversation that the provider accepts when it is gone on
/// with.
#[test]
fn an_interrupt_in_any_phase_leaves_what_the_provider_accepts() {
    let phases = [
        ("thinks", Turn::new().message("never").fault(Fault::NoAnswer)),
        ("speaks", Turn::new().message("I was about to").fault(Fault::Silence { after: 4 })),
        ("runs", runs("echo $$ > pid; exec sleep 1000")),
    ];
    for wire in Wire::ALL {
        for (phase, turn) in &phases {
            let goes_on = Turn::new().message("gone on");
            let server = ModelServer::start(Script::new().turn(turn.clone()).turn(goes_on));
            let world = world(&server, wire);
            let arguments = ["exec", "go", "--sandbox", "danger-full-access"];
            let running = Running::start(&mut program(&world, &arguments));
            let pid = match *phase {
                "runs" => Some(eventually("the command runs", || {
                    fs::read_to_string(world.path("pid")).ok()?.trim().parse().ok()
                })),
                _ => {
                    assert!(server.wait_until(PATIENCE, |all| !all.is_empty()));
                    None
                }
            };
            running.signal(rustix::process::Signal::INT);
            let ended = running.wait();
            assert_eq!(ended.code, Some(130), "{wire:?} {phase}: {}", ended.stderr);
            assert!(pid.is_none_or(|pid: i32| !is_alive(pid)));
            let arguments = ["resume", "--last", "go on"];
            let ended = Running::start(&mut program(&world, &arguments)).wait();
            assert_eq!(ended.stdout(), "gone on\n", "{wire:?} {phase}: {}", ended.stderr);
            accept(&server, wire);
        }
    }
}

/// spec AGENT.21: After a `kill -9` in the middle of a call the provider accepts the conversation
/// that is gone on with.
#[test]
fn a_killed_conversation_is_accepted_when_it_goes_on() {
    for wire in Wire::ALL {
        let calls =
            runs("echo $$ > pid; exec sleep 1000").call("read_file", json!({ "path": "pid" }));
        let goes_on = Turn::new().expect("there is no result").message("gone on");
        let server = ModelServer::start(Script::new().turn(calls).turn(goes_on));
        let world = world(&server, wire);
        let running = Running::start(&mut program(&world, &["exec", "wait"]));
        eventually("the command runs", || world.path("pid").exists().then_some(()));
        running.signal(rustix::process::Signal::KILL);
        running.wait();
        let ended = Running::start(&mut program(&world, &["resume", "--last", "go on"])).wait();
        assert_eq!(ended.stdout(), "gone on\n", "{wire:?}: {}", ended.stderr);
        accept(&server, wire);
    }
}

/// spec AGENT.22: An answer that breaks off, and one that is refused for now, is asked for again,
/// and its calls are made once.
#[test]
fn what_breaks_off_is_asked_again_and_called_once() {
    let busy = Fault::Status {
        status: 429,
        retry_after: Some("0".to_owned()),
        code: None,
        message: Some("later".to_owned()),
    };
    for wire in Wire::ALL {
        let touch = || runs("echo x >> file");
        let script = Script::new()
            .turn(Turn::new().fault(busy.clone()))
            .turn(touch().fault(Fault::Cut { after: 3 }))
            .turn(touch())
            .turn(Turn::new().message("done"));
        let server = ModelServer::start(script);
        let world = world(&server, wire);
        let ended = exec(&world, &["go"]);
        assert_eq!(ended.stdout(), "done\n", "{wire:?}: {}", ended.stderr);
        assert_eq!(fs::read_to_string(world.path("file")).unwrap(), "x\n");
        accept(&server, wire);
    }
}

/// spec AGENT.23: A conversation that the provider calls too long is summed up, and the work goes
/// on.
#[test]
fn what_is_too_long_is_summed_up() {
    for wire in Wire::ALL {
        let script = Script::new()
            .turn(runs("echo something long"))
            .turn(Turn::new().fault(Fault::ContextOverflow))
            .turn(Turn::new().message("they greeted"))
            .turn(Turn::new().message("done"));
        let server = ModelServer::start(script);
        let world = world(&server, wire);
        let ended = exec(&world, &["greet"]);
        assert_eq!(ended.stdout(), "done\n", "{wire:?}: {}", ended.stderr);
        let requests = server.requests();
        let last = requests.last().unwrap().body.to_string();
        assert!(last.contains("they greeted") && !last.contains("something long"), "{last}");
        assert_eq!(requests[2].header("x-openai-subagent"), Some("compact"));
        accept(&server, wire);
    }
}

/// spec AGENT.24: No key is in a log, an event, a file or the environment of a command.
#[test]
fn a_key_is_nowhere() {
    for wire in Wire::ALL {
        let refused = Fault::Status {
            status: 401,
            retry_after: None,
            code: None,
            message: Some(format!("the key {KEY} is wrong")),
        };
        let script = Script::new()
            .turn(runs("env; cat /proc/self/environ; cat /proc/$PPID/environ; ps axeww"))
            .turn(Turn::new().fault(refused));
        let server = ModelServer::start(script);
        let world = world(&server, wire);
        let ended = exec(&world, &["--json", "go"]);
        assert_eq!(ended.code, Some(1), "{wire:?}: {}", ended.stderr);
        assert!(!ended.stdout().contains(KEY) && !ended.stderr.contains(KEY), "{wire:?}");
        let requests = server.requests();
        assert!(requests.iter().all(|request| !request.body.to_string().contains(KEY)));
        assert!(!holds(world.home(), KEY), "{wire:?}");
    }
}

/// spec AGENT.25: Over each of the three wire formats a subagent works in a conversation of its
/// own, its question is answered by the person of its parent and carries its name, and its result
/// reaches its parent.
#[test]
fn a_subagent_asks_the_person_of_its_parent() {
    for wire in Wire::ALL {
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let report = outside.path().join("report.txt");
        let task = "write the report of the subagent";
        let arguments = json!({ "task": task, "name": "writer" });
        let script = Script::new()
            .turn(Turn::new().call("spawn_agent", arguments))
            .turn(runs(&format!("echo written > {}", report.display())).when(task))
            .turn(Turn::new().when(task).message("the report is written"))
            .turn(Turn::new().expect("the report is written").message("done"));
        let server = ModelServer::start(script);
        let world = world(&server, wire);
        fs::write(world.path("answers"), "grant\n").unwrap();
        let ended = exec(&world, &["--json", "--decide", "answers", "have it written"]);
        assert_eq!(ended.code, Some(0), "{wire:?}: {}", ended.stderr);
        accept(&server, wire);
        assert_eq!(fs::read_to_string(&report).unwrap(), "written\n", "{wire:?}");
        let events = ended.events();
        let of =
            |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
        assert_eq!(of("ExecApprovalRequest")[0]["agent"], "writer-1", "{wire:?}");
        assert!(of("ExecCommandEnd").is_empty() && !of("SubAgent").is_empty(), "{wire:?}");
        assert_eq!(of("TaskComplete")[0]["last_agent_message"], "done");
        let requests = server.requests();
        let sources: Vec<_> = requests.iter().map(|one| one.header("x-openai-subagent")).collect();
        assert_eq!(sources, [None, Some("writer"), Some("writer"), None], "{wire:?}");
    }
}

/// spec AGENT.26: A key can be printed by a program of the person's own settings, which is run at
/// home and not in the project.
#[test]
fn a_key_can_come_from_a_program() {
    let server = ModelServer::start(Script::new().turn(Turn::new().message("hello")));
    let world = World::new();
    world.set(&format!(
        "{}model_provider = \"test\"\nmodel = \"m\"\n[model_providers.test]\nbase_url = \"{}/v1\"\n\
         key_command = [\"sh\", \"-c\", \"echo {KEY}; pwd > where-it-ran\"]\n",
        support::AS_TRUSTED,
        server.url(),
    ));
    fs::create_dir(world.path("work")).unwrap();
    let ended = exec(&world, &["--cd", "work", "--json", "hi"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let requests = server.requests();
    let key = requests[0].header("authorization").unwrap();
    assert_eq!(key, format!("Bearer {KEY}"));
    assert!(world.path("where-it-ran").exists());
    assert!(!ended.stdout().contains(KEY));
}

/// Whether a file below a directory holds a text.
fn holds(directory: &Path, text: &str) -> bool {
    directory.read_dir().unwrap().flatten().any(|entry| match entry.path() {
        path if path.is_dir() => holds(&path, text),
        path => fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes())),
    })
}
