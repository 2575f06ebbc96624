//! A supervisor that is gone, late or raced, and calls that make no sense.

use super::{NAMESPACES, Setting, Supervision, World, is_possible, run};
use crate::linux::supervisor::calls::FILE_CALLS;
use crate::sys::probe::{Argument, call, close_number, let_go_of_files};
use proptest::prelude::*;
use rustix::fs::{CWD, Mode as FileMode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// How often a race is run.
const ROUNDS: usize = 4_000;

fn number<T>(result: Result<T, Errno>) -> i32 {
    result.err().map_or(0, Errno::raw_os_error)
}

fn stream() -> OwnedFd {
    socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap()
}

fn is_untouched(listener: &UnixListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err()
}

#[test]
fn when_the_supervisor_is_gone_what_it_would_be_asked_about_fails() {
    let setting = Setting { supervision: Supervision::Dead, ..NAMESPACES };
    if !is_possible(setting) {
        return;
    }
    let world = World::new();
    let outside = UnixListener::bind(world.path("out/sock")).unwrap();
    let outcome = run(&world, setting, |say| {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
        for name in ["ws/new", "out/file"] {
            say(&format!("{} ", number(openat(CWD, world.path(name), flags, FileMode::RWXU))));
        }
        let address = SocketAddrUnix::new(world.path("out/sock")).unwrap();
        say(&format!("{} ", number(connect(stream(), &address))));
        say(&format!("{} ", number(call(libc::SYS_mount, &[]))));
        say(&fs::read_to_string(world.path("ws/file")).unwrap());
    });
    assert_eq!(outcome.said, "38 38 38 38 as it was");
    assert!(!world.path("ws/new").exists() && is_untouched(&outside));
    assert_eq!(fs::read_to_string(world.path("out/file")).unwrap(), "as it was");
}

#[test]
fn while_the_supervisor_is_late_nothing_is_opened() {
    let setting = Setting { supervision: Supervision::Late, ..NAMESPACES };
    if !is_possible(setting) {
        return;
    }
    let world = World::new();
    let outside = UnixListener::bind(world.path("out/sock")).unwrap();
    let (heard, to_host) = rustix::pipe::pipe().unwrap();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Both threads are held up by now.
            rustix::io::read(&heard, &mut [0; 1]).unwrap();
            assert!(!world.path("ws/new").exists());
            fs::write(world.path("ws/go-on"), "").unwrap();
        });
        run(&world, setting, |say| {
            let path = world.path("ws/new");
            let address = SocketAddrUnix::new(world.path("out/sock")).unwrap();
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let opening =
                std::thread::spawn(move || number(openat(CWD, &path, flags, FileMode::RWXU)));
            let connecting = std::thread::spawn(move || number(connect(stream(), &address)));
            let held_up = |name: &str| {
                fs::read_to_string(format!("/proc/self/task/{name}/syscall")).is_ok_and(|text| {
                    [libc::SYS_openat, libc::SYS_connect]
                        .iter()
                        .any(|call| text.starts_with(&format!("{call} ")))
                })
            };
            loop {
                let tasks = fs::read_dir("/proc/self/task").unwrap();
                let names = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
                if names.filter(|name| held_up(name)).count() >= 2 {
                    break;
                }
            }
            assert!(!opening.is_finished() && !connecting.is_finished());
            rustix::io::write(&to_host, b"x").unwrap();
            say(&format!("{} {}", opening.join().unwrap(), connecting.join().unwrap()));
        })
    });
    assert_eq!(outcome.said, "0 13");
    assert!(world.path("ws/new").exists() && is_untouched(&outside));
}

/// Memory that another thread writes to.
fn shared(bytes: &[u8]) -> Vec<AtomicU8> {
    bytes.iter().copied().map(AtomicU8::new).collect()
}

/// Writes one and the other text to shared memory until it is told to stop.
fn flip(memory: &[AtomicU8], texts: [&[u8]; 2], stop: &AtomicBool) {
    for text in texts.iter().cycle() {
        for (to, from) in memory.iter().zip(*text) {
            to.store(*from, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

#[test]
fn a_path_that_changes_under_the_supervisor_opens_nothing_outside() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    fs::write(world.path("out/a"), "as it was").unwrap();
    let outcome = run(&world, NAMESPACES, |say| {
        let [inside, outside] = ["ws/aa", "out/a"].map(|name| world.c(name));
        let memory = shared(inside.as_bytes_with_nul());
        let stop = AtomicBool::new(false);
        let texts = [inside.as_bytes_with_nul(), outside.as_bytes_with_nul()];
        let opened = std::thread::scope(|scope| {
            scope.spawn(|| flip(&memory, texts, &stop));
            let flags = i64::from(libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC);
            let pointer = memory.as_ptr() as i64;
            let arguments = [libc::AT_FDCWD.into(), pointer.into(), flags.into(), 0o600.into()];
            let opened = (0..ROUNDS).filter_map(|_| call(libc::SYS_openat, &arguments).ok());
            let opened = opened.map(close_number).count();
            stop.store(true, Ordering::Relaxed);
            opened
        });
        say(if opened > 0 { "some were opened" } else { "none was" });
    });
    assert_eq!(outcome.said, "some were opened");
    assert_eq!(fs::read_to_string(world.path("out/a")).unwrap(), "as it was");
}

#[test]
fn an_address_that_changes_under_the_supervisor_leads_to_no_socket_outside() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outside = UnixListener::bind(world.path("out/s")).unwrap();
    let outcome = run(&world, NAMESPACES, |say| {
        let server = UnixListener::bind(world.path("ws/ss")).unwrap();
        let accepting = std::thread::spawn(move || {
            while let Ok((mut client, _)) = server.accept() {
                if std::io::Read::read(&mut client, &mut [0; 1]).unwrap() == 1 {
                    break;
                }
            }
        });
        let address = |name: &str| [b"\x01\0", world.c(name).as_bytes_with_nul()].concat();
        let texts = [address("ws/ss"), address("out/s")];
        let memory = shared(&texts[0]);
        let stop = AtomicBool::new(false);
        let connected = std::thread::scope(|scope| {
            scope.spawn(|| flip(&memory, [&texts[0], &texts[1]], &stop));
            let attempt = || {
                let socket = stream();
                let arguments = [
                    socket.as_raw_fd().into(),
                    (memory.as_ptr() as i64).into(),
                    i64::try_from(memory.len()).unwrap().into(),
                ];
                call(libc::SYS_connect, &arguments).is_ok()
            };
            let connected = (0..ROUNDS).filter(|_| attempt()).count();
            stop.store(true, Ordering::Relaxed);
            connected
        });
        let last = stream();
        connect(&last, &SocketAddrUnix::new(world.path("ws/ss")).unwrap()).unwrap();
        rustix::io::write(&last, b"x").unwrap();
        accepting.join().unwrap();
        say(if connected > 0 { "some were made" } else { "none was" });
    });
    assert_eq!(outcome.said, "some were made");
    assert!(is_untouched(&outside));
}

#[test]
fn a_socket_that_is_swapped_under_the_supervisor_reaches_nothing_outside() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outside = UnixListener::bind(world.path("out/sock")).unwrap();
    let outcome = run(&world, NAMESPACES, |say| {
        let unix = stream();
        let internet = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        let mut number = rustix::io::dup(&internet).unwrap();
        let raw = number.as_raw_fd();
        let stop = AtomicBool::new(false);
        let address = [b"\x01\0", world.c("out/sock").as_bytes_with_nul()].concat();
        let reached = std::thread::scope(|scope| {
            scope.spawn(|| {
                for socket in [&unix, &internet].into_iter().cycle() {
                    rustix::io::dup2(socket, &mut number).unwrap();
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let length = i64::try_from(address.len()).unwrap();
            let arguments = [raw.into(), Argument::Bytes(&address), length.into()];
            let reached = (0..ROUNDS).filter(|_| call(libc::SYS_connect, &arguments).is_ok());
            let reached = reached.count();
            stop.store(true, Ordering::Relaxed);
            reached
        });
        say(&reached.to_string());
    });
    assert_eq!(outcome.said, "0");
    assert!(is_untouched(&outside));
}

#[test]
fn after_a_hundred_things_the_rest_is_counted() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outcome = run(&world, NAMESPACES, |_| {
        for _round in 0..2 {
            for index in 0..130 {
                let path = world.path(&format!("out/new-{index}"));
                let flags = OFlags::CREATE | OFlags::WRONLY;
                assert_eq!(number(openat(CWD, path, flags, FileMode::RWXU)), libc::EROFS);
            }
        }
    });
    assert_eq!((outcome.denials.len(), outcome.more), (100, 60));
    assert!(outcome.denials[99].contains("out/new-99 "));
}

#[test]
fn a_process_that_is_killed_while_it_waits_leaves_nothing_behind() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    let outcome = run(&world, NAMESPACES, |say| {
        let path = world.path("ws/sock");
        let server = stream();
        let address = SocketAddrUnix::new(path).unwrap();
        rustix::net::bind(&server, &address).unwrap();
        rustix::net::listen(&server, 0).unwrap();
        let mut waiting = Vec::new();
        // More than the queue has room for: the last of them waits.
        for _ in 0..3 {
            waiting.push(crate::sys::probe::in_process(|| number(connect(stream(), &address))));
        }
        let last = waiting.last().unwrap().as_raw_nonzero();
        let held_up = || {
            fs::read_to_string(format!("/proc/{last}/syscall"))
                .is_ok_and(|text| text.starts_with(&format!("{} ", libc::SYS_connect)))
        };
        let options = rustix::process::WaitOptions::NOHANG;
        while !held_up() {
            let ended = rustix::process::waitpid(Some(waiting[2]), options).unwrap();
            if ended.is_some() {
                break;
            }
        }
        for pid in &waiting {
            let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(*pid), rustix::process::WaitOptions::empty());
        }
        // Nobody is there any more who could take the place of one that is taken out of the queue.
        let mine = stream();
        rustix::io::ioctl_fionbio(&server, true).unwrap();
        rustix::io::ioctl_fionbio(&mine, true).unwrap();
        let code = loop {
            while rustix::net::accept(&server).is_ok() {}
            match number(connect(&mine, &address)) {
                // One was being put there just when it was killed.
                libc::EAGAIN => {}
                code => break code,
            }
        };
        say(&code.to_string());
    });
    assert_eq!(outcome.said, "0");
}

/// An argument that may mean anything.
#[derive(Debug, Clone)]
enum Wild {
    Number(i64),
    Bytes(Vec<u8>),
}

fn wild() -> impl Strategy<Value = Wild> {
    prop_oneof![
        any::<i64>().prop_map(Wild::Number),
        (-2i64..12).prop_map(Wild::Number),
        Just(Wild::Number(libc::AT_FDCWD.into())),
        Just(Wild::Number(0x7fff_ffff_f000)),
        Just(Wild::Number(-4096)),
        (0u32..32).prop_map(|bit| Wild::Number(1 << bit)),
        prop::collection::vec(any::<u8>(), 1..300).prop_map(Wild::Bytes),
        "[a-z./]{0,40}".prop_map(|text| Wild::Bytes([text.as_bytes(), b"\0"].concat())),
        // Not what is being executed: that was found before the cage was entered, and its mode
        // could be changed.
        "(/proc/self/(fd/[0-9]|cwd|root)|\\.\\./out)[a-z/.]{0,9}"
            .prop_map(|text| Wild::Bytes([text.as_bytes(), b"\0"].concat())),
    ]
}

fn wild_call() -> impl Strategy<Value = (libc::c_long, Vec<Wild>)> {
    let others = [libc::SYS_connect, libc::SYS_bind, libc::SYS_sendto, libc::SYS_socket];
    let files = FILE_CALLS.iter().map(|((number, _), _)| *number);
    let calls: Vec<_> = files.chain(others).chain(others).collect();
    (prop::sample::select(calls), prop::collection::vec(wild(), 6))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_arguments_stop_the_supervisor(calls in prop::collection::vec(wild_call(), 200)) {
        if is_possible(NAMESPACES) {
            let world = World::new();
            let outcome = run(&world, NAMESPACES, |say| {
                std::env::set_current_dir(world.path("ws")).unwrap();
                let_go_of_files();
                for (number, arguments) in &calls {
                    let arguments: Vec<_> = arguments
                        .iter()
                        .map(|argument| match argument {
                            Wild::Number(number) => Argument::Number(*number),
                            Wild::Bytes(bytes) => Argument::Bytes(bytes),
                        })
                        .collect();
                    // Whatever it comes to; an open must not wait for a pipe's other end.
                    let _ = call(*number, &arguments);
                }
                say("all were answered");
            });
            prop_assert_eq!(outcome.said, "all were answered");
            prop_assert_eq!(fs::read_to_string(world.path("out/file")).unwrap(), "as it was");
        }
    }
}
