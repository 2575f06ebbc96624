//! How many processes there may be, how long a call waits, how much it returns, and what is said of calls
//! that make no sense.

use crate::scene::{Place, Scene, caged, text};
use sandgate_protocol::{AskForApproval, Event, ReturnReason, ReviewDecision};
use sandgate_runtime::Events;
use serde_json::{Value, json};

/// The warnings that have been told.
fn warnings(events: &mut Events) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::Warning(notice) = &event.event {
            heard.push(notice.message.clone());
        }
    }
    heard
}

async fn ids(scene: &Scene) -> Vec<String> {
    let listed = scene.text("list_processes", json!({})).await;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    listed.iter().map(|info| info["process_id"].as_str().unwrap().to_owned()).collect()
}

/// spec SESSION.30: From 60 processes on each new one comes with a warning.
/// spec SESSION.31: When there are 64, a new process takes the place of one: of the one that has ended and
/// was not used for the longest time, else of the one that was not used for the longest time; but of none
/// of the eight that were used last.
#[tokio::test]
async fn there_are_so_many_processes_and_no_more() {
    let scene = Scene::new(Place::Free);
    let mut events = scene.events().await;
    let start = async |id: &str| scene.start(id, &["cat"]).await;
    for number in 0..59 {
        assert_eq!(start(&format!("p{number:02}")).await.returned(), "waiting_for_input");
    }
    assert_eq!(warnings(&mut events), Vec::<String>::new());
    start("p59").await;
    let warned = "there are 60 processes; at 64 the oldest will be ended";
    assert_eq!(warnings(&mut events), [warned]);
    for number in 60..64 {
        start(&format!("p{number:02}")).await;
    }
    assert_eq!((ids(&scene).await.len(), warnings(&mut events).len()), (64, 4));

    // p30 has ended, and so has p63, which was used just now; then p00 is used again.
    for id in ["p30", "p63"] {
        let arguments = json!({"process_id": id, "close_stdin": true, "yield_time_ms": 30000});
        let reply = scene.reply("write_stdin", arguments).await;
        assert_eq!((reply.returned(), &reply.0["exit_code"]), ("exited", &json!(0)));
    }
    scene.type_in("p00", "used\n").await;
    // Seven others are used after p30, so that only p63 is protected.
    for id in ["p01", "p02", "p03", "p04", "p05", "p06"] {
        scene.type_in(id, "used\n").await;
    }
    start("new1").await;
    let now = ids(&scene).await;
    assert!(!now.contains(&"p30".to_owned()) && now.contains(&"p63".to_owned()), "{now:?}");
    assert!(!warnings(&mut events).iter().any(|warning| warning.contains("to make room")));
    start("new2").await;
    let now = ids(&scene).await;
    // By now nine others were used after p63.
    assert!(!now.contains(&"p63".to_owned()) && now.contains(&"p07".to_owned()), "{now:?}");
    start("new3").await;
    let now = ids(&scene).await;
    assert!(!now.contains(&"p07".to_owned()) && now.len() == 64, "{now:?}");
    let room = "process p07 was ended to make room: there are 64 at the most";
    assert!(warnings(&mut events).contains(&room.to_owned()));
    let gone = scene.text("write_stdin", json!({"process_id": "p07"})).await;
    assert!(gone.contains("there is no process \"p07\"; alive are "), "{gone}");
}

/// spec SESSION.32: An id is taken before its process is started: of two calls at once that want the same
/// one, one gets it.
#[tokio::test]
async fn an_id_is_reserved_before_the_start() {
    let scene = Scene::new(Place::Free);
    let start = || scene.call("exec_command", json!({"command": ["cat"], "process_id": "twice"}));
    let (one, other) = tokio::join!(start(), start());
    let mut said = [text(&one), text(&other)];
    said.sort();
    let taken = "process \"twice\" is alive: write to it with write_stdin, or end it first";
    assert!(said.iter().any(|said| said == taken), "{said:?}");
    assert!(said.iter().any(|said| said.contains("waiting_for_input")), "{said:?}");
    assert_eq!(ids(&scene).await, ["twice"]);
    // Whoever has ended gives its id back.
    assert_eq!(
        scene.text("kill_process", json!({"process_id": "twice"})).await,
        "process twice was ended"
    );
    assert_eq!(scene.start("twice", &["cat"]).await.returned(), "waiting_for_input");
    // Without a wish there is an id all the same.
    let own = scene.reply("exec_command", json!({"command": ["cat"]})).await;
    assert_eq!(own.0["process_id"], "1000");
}

/// spec SESSION.33: A call waits for at least 250 ms where nothing can be answered before, however little
/// it asks for.
#[tokio::test]
async fn a_short_patience_is_lengthened() {
    let scene = Scene::new(Place::Free);
    let arguments = json!({"command": ["sleep", "30"], "yield_time_ms": 1});
    let reply = scene.reply("exec_command", arguments).await;
    assert_eq!(reply.returned(), "yield_elapsed");
    assert!(reply.0["wall_time_seconds"].as_f64().unwrap() >= 0.25, "{}", reply.0);
}

/// The next event that tells of a process nobody waited for.
async fn woke(events: &mut Events) -> (String, ReturnReason, Option<i32>) {
    loop {
        if let Event::ProcessWoke(woke) = &events.next().await.unwrap().event {
            return (woke.process_id.clone(), woke.reason, woke.exit_code);
        }
    }
}

/// spec SESSION.34: A call that waits for a pattern is answered when it is printed, even while the process
/// is at work.
/// spec SESSION.35: A pattern that a call waited for in vain is told by an event when it is printed later,
/// and so is the end of a process.
#[tokio::test]
async fn patterns_and_ends_are_told() {
    let scene = Scene::new(Place::Free);
    let fifo = scene.path("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let mut events = scene.events().await;
    // Who opens the pipe before its last writer has closed it reads nothing at first.
    let script = "echo starting; echo listening on 8080; until read x < go; do :; done; echo later 42; \
                  until read x < go; do :; done; exit 7";
    let arguments = json!({
        "command": ["bash", "-c", script],
        "process_id": "server",
        "wait_for": "^listening on \\d+",
        "yield_time_ms": 30000,
    });
    let reply = scene.reply("exec_command", arguments).await;
    assert_eq!(reply.returned(), "pattern");
    assert!(reply.output().ends_with("listening on 8080\n"), "{}", reply.output());
    let vain = json!({"process_id": "server", "wait_for": "later \\d", "yield_time_ms": 250});
    assert_eq!(scene.reply("write_stdin", vain).await.returned(), "yield_elapsed");
    let go = async || {
        tokio::task::spawn_blocking({
            let fifo = fifo.clone();
            move || std::fs::write(fifo, "\n").unwrap()
        })
        .await
        .unwrap();
    };
    go().await;
    assert_eq!(woke(&mut events).await, ("server".to_owned(), ReturnReason::Pattern, None));
    go().await;
    assert_eq!(woke(&mut events).await, ("server".to_owned(), ReturnReason::Exited, Some(7)));
    // What was printed meanwhile is still there to be asked for.
    let last = scene.reply("write_stdin", json!({"process_id": "server"})).await;
    assert_eq!((last.returned(), last.output()), ("exited", "later 42\n"));
    assert_eq!((&last.0["exit_code"], &last.0["process_id"]), (&json!(7), &Value::Null));
}

/// spec SESSION.36: An answer has no more tokens than were asked for, says how much was left out and how
/// much there was, and what was left out can be read.
#[tokio::test]
async fn an_answer_is_bounded_and_nothing_is_lost() {
    let scene = Scene::new(Place::Free);
    let arguments = json!({
        "command": ["bash", "-c", "seq 10000"],
        "process_id": "much",
        "max_output_tokens": 256,
        "yield_time_ms": 30000,
    });
    let reply = scene.reply("exec_command", arguments).await;
    let output = reply.output();
    // Fewer than 256 tokens nobody can use.
    assert!(output.len() <= 1024, "{output}");
    assert!(output.starts_with("1\n2\n") && output.ends_with("\n10000\n"), "{output}");
    assert!(output.contains("bytes omitted; full output: much"), "{output}");
    // With a carriage return before each newline, as a terminal has them.
    assert_eq!(reply.0["original_bytes"], 48_894 + 10_000);
    let read = async |arguments: Value| scene.text("read_output", arguments).await;
    let middle = read(json!({"id": "much", "first_line": 5000, "lines": 2})).await;
    assert_eq!(middle, "5000\n5001\n[more after line 5001]\n");
    let matching = read(json!({"id": "much", "pattern": "^99[89]\\d\\b", "lines": 3})).await;
    assert_eq!(matching, "9980: 9980\n9981: 9981\n9982: 9982\n[more after line 9982]\n");
}

/// spec SESSION.37: What a process printed can be read by lines from the beginning or from the end, by
/// bytes, and by a pattern; as a person would have read it, or as it was printed.
#[tokio::test]
async fn output_is_read_in_parts() {
    let scene = Scene::new(Place::Free);
    let script = "printf 'one\\n\\033[31mtwo\\033[0m\\nthree\\nfour'";
    let start = json!({"command": ["bash", "-c", script], "process_id": "p", "tty": false});
    scene.reply("exec_command", start).await;
    let read = async |arguments: Value| scene.text("read_output", arguments).await;
    for (arguments, expected) in [
        (json!({"id": "p"}), "one\ntwo\nthree\nfour"),
        (json!({"id": "p", "raw": true}), "one\n\u{1b}[31mtwo\u{1b}[0m\nthree\nfour"),
        (json!({"id": "p", "first_line": 2, "lines": 1}), "two\n[more after line 2]\n"),
        (json!({"id": "p", "first_line": -2}), "three\nfour"),
        (json!({"id": "p", "first_line": -2, "lines": 1}), "three\n[more after line 3]\n"),
        (json!({"id": "p", "first_line": -99, "lines": 1}), "one\n[more after line 1]\n"),
        (json!({"id": "p", "first_line": 5}), "[nothing there]\n"),
        (json!({"id": "p", "lines": 0}), "[nothing there]\n"),
        (json!({"id": "p", "pattern": "t.*"}), "2: two\n3: three\n"),
        (json!({"id": "p", "pattern": "t", "first_line": 3}), "3: three\n"),
        (json!({"id": "p", "pattern": "nine"}), "[nothing there]\n"),
        (json!({"id": "p", "offset": 0, "bytes": 3}), "[bytes 0 to 3 of 27]\none"),
        (json!({"id": "p", "offset": 23}), "[bytes 23 to 27 of 27]\nfour"),
        (json!({"id": "p", "offset": 99}), "[bytes 27 to 27 of 27]\n"),
    ] {
        assert_eq!(read(arguments.clone()).await, expected, "{arguments}");
    }
}

/// spec SESSION.38: Of a line that is longer than 64 KiB the beginning is shown, and the lines after it
/// keep their numbers; all of it can be read by bytes.
#[tokio::test]
async fn a_very_long_line_is_one_line() {
    let scene = Scene::new(Place::Free);
    let script = "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last";
    let start = json!({"command": ["bash", "-c", script], "process_id": "p", "tty": false});
    scene.reply("exec_command", start).await;
    let read = async |arguments: Value| scene.text("read_output", arguments).await;
    assert_eq!(read(json!({"id": "p", "first_line": 3})).await, "last\n");
    assert_eq!(read(json!({"id": "p", "pattern": "^l"})).await, "3: last\n");
    let long = json!({"id": "p", "first_line": 2, "lines": 1, "max_output_tokens": 100000});
    let line = read(long).await;
    let line = line.strip_suffix("[more after line 2]\n").unwrap();
    assert_eq!((line.len(), line.trim_end_matches('\n').len()), (65_537, 65_536));
    let end = read(json!({"id": "p", "offset": 100_000})).await;
    assert_eq!(end, "[bytes 100000 to 100012 of 100012]\nxxxxxx\nlast\n");
}

/// spec SESSION.39: A call that makes no sense is answered by what is wrong with it, and does nothing.
#[tokio::test]
async fn senseless_calls_are_told_why() {
    let scene = Scene::new(Place::Free);
    scene.start("p", &["cat"]).await;
    let long = "x".repeat(5000);
    for (tool, arguments, expected) in [
        ("write_stdin", json!({"process_id": "q"}), "there is no process \"q\"; alive are p"),
        ("kill_process", json!({"process_id": "q"}), "there is no process \"q\"; alive are p"),
        ("read_output", json!({"id": "q"}), "there is no process \"q\"; alive are p"),
        (
            "exec_command",
            json!({"command": ["cat"], "process_id": "a b"}),
            "invalid arguments for exec_command: process_id has 1 to 64 letters, digits, `-`, `_` or `.`",
        ),
        (
            "exec_command",
            json!({"command": ["cat"], "shell": "bash"}),
            "invalid arguments for exec_command: shell is for a command that is one text",
        ),
        (
            "exec_command",
            json!({"command": ["cat"], "size": {"rows": 0, "columns": 80}}),
            "invalid arguments for exec_command: a terminal has 1 to 500 rows and columns",
        ),
        (
            "write_stdin",
            json!({"process_id": "p", "wait_for": long}),
            "invalid arguments for write_stdin: wait_for is longer than 4096 bytes",
        ),
        (
            "write_stdin",
            json!({"process_id": "p", "signal": "WINCH"}),
            "invalid arguments for write_stdin: signal is HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, \
             STOP or TSTP",
        ),
        (
            "write_stdin",
            json!({"process_id": "p", "keys": ["entr"]}),
            "invalid arguments for write_stdin: there is no key called \"entr\"; did you mean enter?",
        ),
        (
            "read_output",
            json!({"id": "p", "first_line": 0}),
            "invalid arguments for read_output: first_line counts from 1, or from the end if it is negative",
        ),
        (
            "read_output",
            json!({"id": "p", "offset": 0, "pattern": "x"}),
            "invalid arguments for read_output: offset and bytes go neither with lines nor with a pattern",
        ),
    ] {
        assert_eq!(scene.text(tool, arguments.clone()).await, expected, "{tool} {arguments}");
    }
    let bad = scene.text("write_stdin", json!({"process_id": "p", "wait_for": "("})).await;
    assert!(
        bad.starts_with("invalid arguments for write_stdin: wait_for is no pattern: "),
        "{bad}"
    );
    assert_eq!(scene.text("read_output", json!({"id": "p"})).await, "[nothing there]\n");
}

/// spec SESSION.40: With `raw` an answer holds what was printed as it was printed, with prompt and echo.
#[tokio::test]
async fn raw_output_is_as_it_was_printed() {
    let scene = Scene::new(Place::Free);
    scene.start("p", &["bash", "-i"]).await;
    let arguments = json!({"process_id": "p", "input": "echo hi\n", "raw": true});
    let reply = scene.reply("write_stdin", arguments).await;
    assert!(reply.output().starts_with("echo hi\r\n"), "{:?}", reply.output());
    assert!(reply.output().contains("hi\r\n\u{1b}]133;D;0;"), "{:?}", reply.output());
}

/// spec SESSION.42: Where a person said no to another start with what the sandbox refused, the answer says
/// so beside what the first one printed.
#[tokio::test]
async fn why_there_was_no_second_start_is_told() {
    let scene = Scene::with(AskForApproval::OnFailure, caged(), |_| {});
    let arguments =
        json!({"command": ["touch", "/var/tmp/never-made-by-a-test"], "process_id": "p"});
    let decision = ReviewDecision::DENIED;
    let (asked, result) = scene.answered("exec_command", arguments, decision).await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    let said = text(&result);
    let reply: Value =
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("no reply but {said}"));
    assert!(reply["output"].as_str().unwrap().contains("/var/tmp/never-made-by-a-test"), "{reply}");
    assert!(reply["not_again"].as_str().unwrap().ends_with("the user said no."), "{reply}");
}
