//! What the commands of a session have in common, what one of them may be granted, and when the cage is
//! let go.

#![cfg(target_os = "linux")]

mod support;

use sandgate_policy::Extras;
use sandgate_process::{ExecuteOptions, Executed, Received, SpawnedProcess, Stdin, Stop, execute};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use support::caged::{Guards, Session, again_without_namespaces, python};
use support::{Nowhere, eventually_async, program, skipped};

/// The next piece of output.
async fn next(process: &mut SpawnedProcess) -> String {
    match process.output_rx.recv().await {
        Some(Received::Chunk(chunk)) => String::from_utf8_lossy(&chunk.bytes).into_owned(),
        other => panic!("no output but {other:?}"),
    }
}

/// Listens on a loopback, says on which port, and answers one.
const SERVER: &str = r#"
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].sendall(b"hello")
"#;

/// A program that asks a port of the loopback and prints what it hears.
fn client(port: &str) -> Option<sandgate_protocol::ExecParams> {
    python(&format!(
        "import socket\ntry:\n print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode())\n\
         except OSError:\n print('nobody')"
    ))
}

/// spec CAGED.60: The commands of a session share a loopback and `/dev/shm` of their own; another
/// session has others, and the host's are out of reach.
#[tokio::test]
async fn a_session_shares_its_loopback_and_memory() {
    let [session, other] = [Session::new(), Session::new()];
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    let Some(server) = python(SERVER) else { return };
    let env = session.confined(server);
    let mut process = session.spawner.spawn_pipe(&env, Stdin::Null).await.unwrap();
    let port = next(&mut process).await.trim().to_owned();
    let ask = async |session: &Session| {
        session.execute(client(&port).unwrap()).await.unwrap().output.stdout.text
    };
    assert_eq!(ask(&session).await, "hello\n");
    assert_eq!(ask(&other).await, "nobody\n");
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = client(&host.local_addr().unwrap().port().to_string()).unwrap();
    assert_eq!(session.execute(hosts).await.unwrap().output.stdout.text, "nobody\n");

    let name = format!("sg-{}", std::process::id());
    session.run(&format!("echo mine > /dev/shm/{name}")).await;
    let look = format!("cat /dev/shm/{name} 2>/dev/null || echo none");
    assert_eq!(session.run(&look).await.output.stdout.text, "mine\n");
    assert_eq!(other.run(&look).await.output.stdout.text, "none\n");
    assert!(!std::path::Path::new("/dev/shm").join(name).exists());
}

/// spec CAGED.67: Every command of a session sees the same mounts, and of processes only its own, whichever commands there
/// were before it, however those ended, and however many there are at once.
#[tokio::test]
async fn commands_see_nothing_of_those_before_them() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    // A glob is expanded by the shell itself. The numbers of mounts differ, and their order.
    let look = "set -- /proc/[0-9]*; echo $#; while read -r _ _ _ root place options; do \
                case $place in /proc) root=;; esac; echo \"$root $place\"; done </proc/self/mountinfo";
    let seen = async || {
        let text = session.run(look).await.output.stdout.text;
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let first = seen().await;
    let count = |line: &str| first.iter().filter(|seen| *seen == line).count();
    // The host's, a curtain, and its own; and of processes itself. Its guard is not shown.
    assert_eq!((count("1"), count(" /proc")), (1, 3), "{first:?}");
    let check = async |when: &str| assert_eq!(seen().await, first, "{when}");
    for number in 0..20 {
        check(&format!("after {number} others")).await;
    }
    let sleep = session.confined(program(&["/bin/sleep", "300"]));
    let mut killed = Vec::new();
    for _ in 0..3 {
        let process = session.spawner.spawn_pipe(&sleep, Stdin::Null).await.unwrap();
        let warden = support::parent_of(process.session.pid());
        support::caged::kill(warden);
        killed.push(process);
        check("after one whose guard was killed").await;
        check("after another").await;
    }
    let process = session.spawner.spawn_pipe(&sleep, Stdin::Null).await.unwrap();
    let guards = Guards::of(process.session.pid());
    for _ in 0..3 {
        let all = guards.at_rest(2).await;
        all.iter().for_each(|idle| support::caged::kill(idle.warden));
        eventually_async("they have ended", || !all.iter().any(|idle| support::alive(idle.warden)))
            .await;
        check("after a guard without a command was killed").await;
    }
    drop(process);
    let mut at_once = Vec::new();
    for _ in 0..12 {
        at_once.push(session.spawner.spawn_pipe(&sleep, Stdin::Null).await.unwrap());
        check("beside others").await;
    }
    for process in &at_once {
        // Who is beneath another /proc than the host's is not known by its number.
        assert!(process.session.pid() > 0);
    }
    drop(at_once);
    for _ in 0..12 {
        check("after many at once").await;
    }
}

/// spec CAGED.69: A command that takes long to be executed holds up no other.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "somebody outside has to hold a lease")]
async fn a_command_that_is_not_executed_holds_up_no_other() {
    again_without_namespaces("a_command_that_is_not_executed_holds_up_no_other");
    let session = Session::new();
    let slow = session.ws().join("slow");
    fs::copy("/bin/true", &slow).unwrap();
    // Whoever opens a file that has a lease waits until that is given up.
    const LEASE: &str = "import fcntl, signal, sys\n\
        signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
        file = open(sys.argv[1])\n\
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
        print('held', flush=True)\n\
        sys.stdin.read()";
    let Some(python) = support::caged::found("python3") else {
        return skipped("there is no python3 here to hold a lease with");
    };
    let mut holder = std::process::Command::new(python)
        .args(["-c", LEASE])
        .arg(&slow)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut held).unwrap();
    let slow = session.confined(program(&[slow.to_str().unwrap()]));
    let others = async {
        for _ in 0..5 {
            assert_eq!(session.run("echo quick").await.output.stdout.text, "quick\n");
        }
        drop(holder.stdin.take());
    };
    let (stop, mut nowhere) = (Stop::default(), Nowhere);
    let executed = execute(&session.spawner, &slow, Default::default(), &stop, &mut nowhere);
    let (executed, ()) = tokio::join!(executed, others);
    assert_eq!(executed.unwrap().output.exit_code, 0);
    holder.wait().unwrap();
}

/// spec CAGED.16: Where the host is in another root than its mounts have, every command of a session is in that root.
#[tokio::test]
async fn commands_are_in_the_root_that_their_host_is_in() {
    const OTHER_ROOT: &str = "root=$(mktemp -d) && mount --rbind / $root && mount -t tmpfs tmpfs $root/srv && \
        touch $root/srv/inside && exec chroot $root \"$@\"";
    if !rustix::process::getuid().is_root() {
        return skipped("only root can have another root");
    }
    let before = ["unshare", "--mount", "sh", "-c", OTHER_ROOT, "sh"];
    if !support::caged::started_by(&before, "commands_are_in_the_root_that_their_host_is_in") {
        return;
    }
    let session = Session::new();
    assert!(fs::exists("/srv/inside").unwrap());
    for _ in 0..6 {
        let text = "test -e /srv/inside && pwd; echo x 2>/dev/null > /srv/inside || echo refused";
        let expected = format!("{}\nrefused\n", session.ws().display());
        assert_eq!(session.run(text).await.output.stdout.text, expected);
    }
}

/// Takes the root and the workspace from whoever connects, and says for each line that it reads which processes are to be
/// seen beneath the one, and whether it could write to what is protected in the other.
const KEEPER: &str = r#"
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind("keeper")
server.listen()
print("listening", flush=True)
_, (root, workspace), _, _ = socket.recv_fds(server.accept()[0], 1, 2)
print("kept", flush=True)
for line in sys.stdin:
    try:
        names = os.listdir(os.open("proc", os.O_RDONLY, dir_fd=root))
    except OSError:
        names = []
    seen = [name for name in names if name.isdigit()]
    try:
        os.open(".git/made", os.O_CREAT | os.O_WRONLY, dir_fd=workspace)
        seen.append("written")
    except OSError:
        pass
    print("seen", *seen, flush=True)
"#;

const HAND_OVER: &str = r#"
import os, socket
keeper = socket.socket(socket.AF_UNIX)
keeper.connect("keeper")
socket.send_fds(keeper, [b"x"], [os.open("/", os.O_RDONLY), os.open(".", os.O_RDONLY)])
"#;

/// spec CAGED.68: A command that was handed a directory by another one sees by way of it neither the processes of those
/// that come later nor the host's, and what is protected in it stays so when the other one has ended.
#[tokio::test]
async fn a_way_into_a_room_leads_to_nobody_who_comes_later() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    let (Some(keeper), Some(hand_over)) = (python(KEEPER), python(HAND_OVER)) else { return };
    fs::create_dir(session.ws().join(".git")).unwrap();
    // So that the one that hands something over is not the first.
    session.run("exit 0").await;
    let env = session.confined(keeper);
    let mut keeper = session.spawner.spawn_pipe(&env, Stdin::Piped).await.unwrap();
    assert_eq!(next(&mut keeper).await, "listening\n");
    let handed = session.execute(hand_over).await.unwrap();
    assert_eq!(handed.output.exit_code, 0, "{}", handed.output.stderr.text);
    assert_eq!(next(&mut keeper).await, "kept\n");
    let mut seen = async || {
        keeper.session.writer_sender().unwrap().send("look\n".into()).await.unwrap();
        next(&mut keeper).await
    };
    // The guard of the one that has handed it over goes a moment later.
    while seen().await == "seen 1\n" {}
    let sleep = session.confined(program(&["/bin/sleep", "300"]));
    let mut later = Vec::new();
    for number in 0..12 {
        assert_eq!(seen().await, "seen\n", "after {number} others");
        // By turns, and all at once.
        if number == 6 {
            later.clear();
        }
        session.run("exit 0").await;
        later.push(session.spawner.spawn_pipe(&sleep, Stdin::Null).await.unwrap());
    }
}

/// spec CAGED.61: A cage that nobody uses is let go with all that belongs to it, and made anew when
/// somebody does.
#[tokio::test]
async fn an_unused_cage_is_let_go() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    for _ in 0..2 {
        let text = "echo x >> ran; mkdir .git 2>/dev/null || echo taken";
        assert_eq!(session.run(text).await.output.stdout.text, "taken\n");
        assert!(session.ws().join(".git").exists(), "the next command would find it ready");
        eventually_async("the cage is let go", || session.listing() == ["ran".to_owned()].into())
            .await;
        // Whoever gives the names back goes a moment later.
        let place = session.place.path();
        let gone = || support::caged::caged_over(place).is_empty();
        eventually_async("its processes are gone", gone).await;
    }
    assert_eq!(fs::read_to_string(session.ws().join("ran")).unwrap(), "x\nx\n");
}

/// spec CAGED.62: A protected name that a person makes between two commands is protected from the next
/// one, and stays.
#[tokio::test]
async fn a_name_that_came_is_protected() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    let git = session.ws().join(".git");
    session.run("exit 0").await;
    eventually_async("the cage is let go", || !git.exists()).await;
    // One that was transformed before, and is started after.
    let early = session.confined(session.script("echo x 2>/dev/null > .git/config || echo no"));
    fs::create_dir(&git).unwrap();
    fs::write(git.join("config"), "before").unwrap();
    let stop = Stop::default();
    let done = execute(&session.spawner, &early, Default::default(), &stop, &mut Nowhere).await;
    assert_eq!(done.unwrap().output.stdout.text, "no\n");
    let done = session.run("echo x 2>/dev/null > .git/config || echo no; cat .git/config").await;
    assert_eq!(done.output.stdout.text, "no\nbefore");
    assert_eq!(done.output.denials.evidence.len(), 1);
    // A warm cage does not hide that it went, and came again.
    fs::rename(&git, session.ws().join("old")).unwrap();
    fs::create_dir(&git).unwrap();
    let done = session.run("echo x 2>/dev/null > .git/config || echo no").await;
    assert_eq!(done.output.stdout.text, "no\n");
    assert!(git.is_dir() && !git.join("config").exists());
}

/// spec CAGED.63: Several spawners over one workspace keep its names free together, and the last one
/// gives them back.
#[tokio::test]
async fn the_last_spawner_gives_the_names_back() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    let beside = Session::beside(session.place.path());
    let git = session.ws().join(".git");
    for _ in 0..20 {
        let third = Session::beside(session.place.path());
        let text = "mkdir .git 2>/dev/null || echo taken";
        let all = tokio::join!(session.run(text), beside.run(text), third.run(text));
        for done in [all.0, all.1, all.2] {
            assert_eq!(done.output.stdout.text, "taken\n");
        }
        drop(third);
        assert!(git.exists());
    }
    drop(beside);
    assert!(git.exists());
    let Session { spawner, place, .. } = session;
    drop(spawner);
    assert_eq!(fs::read_dir(place.path().join("ws")).unwrap().count(), 0);
}

async fn widened(session: &Session, text: &str, extras: &Extras) -> Executed {
    let env = session.widened(session.script(text), extras);
    let stop = Stop::default();
    execute(&session.spawner, &env, ExecuteOptions::default(), &stop, &mut Nowhere).await.unwrap()
}

/// spec CAGED.64: A file outside the roots, a protected name or a socket that a grant opens to one
/// command is open to that command, and nothing else is.
#[tokio::test]
async fn a_grant_opens_what_it_names() {
    let session = Session::new();
    if !session.has_namespaces() {
        return skipped("there are no namespaces here");
    }
    let git = session.ws().join(".git");
    fs::create_dir(&git).unwrap();
    fs::write(session.outside("other"), "before").unwrap();
    let text = "for f in \"$OUT/victim\" \"$OUT/other\" .git/index .git/config; do \
                echo x 2>/dev/null >> $f && echo ${f##*/}; done; true";
    let writable = |path: std::path::PathBuf| Extras { writable: vec![path], ..Default::default() };
    for _ in 0..2 {
        let done = widened(&session, text, &writable(session.outside("victim"))).await;
        assert_eq!(done.output.stdout.text, "victim\n");
        let done = widened(&session, text, &writable(git.clone())).await;
        assert_eq!(done.output.stdout.text, "index\n");
        assert_eq!(session.run(text).await.output.stdout.text, "");
    }
    assert_eq!(fs::read_to_string(session.outside("other")).unwrap(), "before");

    let [one, two] = ["one", "two"].map(|name| session.outside(name));
    let _listeners = [&one, &two].map(|path| UnixListener::bind(path).unwrap());
    let text = "import os, socket\nfor name in ['one', 'two']:\n try:\n  \
                socket.socket(socket.AF_UNIX).connect(os.environ['OUT'] + name)\n  print(name)\n \
                except OSError:\n  pass";
    let Some(mut params) = python(text) else { return };
    params.env.insert("OUT".into(), session.outside("").into());
    let extras = Extras { sockets: vec![one], ..Default::default() };
    let stop = Stop::default();
    let env = session.widened(params.clone(), &extras);
    let done = execute(&session.spawner, &env, Default::default(), &stop, &mut Nowhere).await;
    assert_eq!(done.unwrap().output.stdout.text, "one\n");
    let done = session.execute(params).await.unwrap().output;
    assert_eq!((&*done.stdout.text, done.denials.evidence.len()), ("", 2));
}

/// spec CAGED.65: A grant of the network opens the network, and no file.
#[tokio::test]
async fn a_grant_of_the_network_opens_that() {
    again_without_namespaces("a_grant_of_the_network_opens_that");
    let session = Session::new();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for client in host.incoming() {
            let _ = client.unwrap().write_all(b"hello");
        }
    });
    let Some(mut params) = client(&port) else { return };
    params.env.insert("CODEX_SANDBOX_NETWORK_DISABLED".into(), "unset".into());
    let extras = Extras { network: true, ..Default::default() };
    let stop = Stop::default();
    let env = session.widened(params.clone(), &extras);
    let done = execute(&session.spawner, &env, Default::default(), &stop, &mut Nowhere).await;
    assert_eq!(done.unwrap().output.stdout.text, "hello\n");
    assert_eq!(session.execute(params).await.unwrap().output.stdout.text, "nobody\n");
    let done = widened(&session, "echo x 2>/dev/null > \"$OUT/victim\" || echo no", &extras).await;
    assert_eq!(done.output.stdout.text, "no\n");
}

/// spec CAGED.66: Inside a cage the library confines with what is left there, and never runs a command
/// unconfined.
#[tokio::test]
async fn a_cage_in_a_cage_holds() {
    const TEST: &str = "a_cage_in_a_cage_holds";
    const INNER: &str = "SANDGATE_TEST_INNER";
    again_without_namespaces(TEST);
    if let Some(place) = std::env::var_os(INNER) {
        // Only half of what the outer cage may write to is the inner one's workspace.
        let session = Session::beside(place.as_ref());
        let done = session.run("echo x > made; echo x > \"$OUT/made\"; exit 9").await;
        assert_eq!((done.output.exit_code, done.namespaces, done.supervised), (9, false, false));
        return;
    }
    let session = Session::new();
    let inner = session.ws().join("inner");
    for directory in ["ws", "outside"] {
        fs::create_dir_all(inner.join(directory)).unwrap();
    }
    let executable = std::env::current_exe().unwrap();
    let mut params = program(&[executable.to_str().unwrap(), "--exact", TEST, "--nocapture"]);
    params.env.insert(INNER.into(), inner.clone().into());
    if std::env::var_os("SANDGATE_TEST_NAMESPACES").is_some() {
        params.env.insert("SANDGATE_TEST_NAMESPACES".into(), "yes".into());
    } else {
        // The inner run is not to be run again.
        params.env.insert("SANDGATE_TEST_NAMESPACES".into(), "caged".into());
    }
    let done = session.execute(params).await.unwrap().output;
    assert_eq!(done.exit_code, 0, "{}{}", done.stdout.text, done.stderr.text);
    assert!(inner.join("ws/made").exists());
    assert!(!inner.join("outside/made").exists());
}
