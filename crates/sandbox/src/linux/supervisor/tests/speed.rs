//! What it costs to be asked about. Measured by hand: no test depends on it.

use super::{LANDLOCK, NAMESPACES, Setting, Supervision, World, is_possible, run};
use rustix::fs::{AtFlags, CWD, Mode as FileMode, OFlags, openat, unlinkat};
use std::time::Instant;

const BATCHES: usize = 40;
const ROUNDS: u32 = 500;

/// The best and the middle of many batches: whatever else runs only adds to them.
fn measure(what: &str, say: &mut dyn FnMut(&str), mut work: impl FnMut()) {
    let mut batch = || {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            work();
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
    };
    let mut micros: Vec<f64> = (0..BATCHES).map(|_| batch()).collect();
    micros.sort_by(f64::total_cmp);
    say(&format!("  {what}: {:.2} µs, best {:.2}\n", micros[BATCHES / 2], micros[0]));
}

fn all(world: &World, say: &mut dyn FnMut(&str)) {
    std::env::set_current_dir(world.path("ws")).unwrap();
    let (old, new, outside) = (world.c("ws/file"), world.c("ws/new"), world.c("out/file"));
    let open = |path: &std::ffi::CStr, flags| drop(openat(CWD, path, flags, FileMode::RWXU));
    measure("open for reading, close", say, || open(&old, OFlags::RDONLY));
    measure("open for writing, close", say, || open(&old, OFlags::WRONLY));
    measure("open for writing by a relative path, close", say, || open(c"file", OFlags::WRONLY));
    measure("create, close, remove", say, || {
        open(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        unlinkat(CWD, &*new, AtFlags::empty()).unwrap();
    });
    measure("open for writing outside", say, || open(&outside, OFlags::WRONLY));
    measure("getppid", say, || {
        let _ = rustix::process::getppid();
    });
}

#[test]
#[ignore = "it measures, and asserts nothing"]
fn what_a_call_costs() {
    println!("without a cage:");
    all(&World::new(), &mut |line| print!("{line}"));
    for setting in [NAMESPACES, LANDLOCK] {
        for supervision in [Supervision::None, Supervision::Full] {
            let setting = Setting { supervision, ..setting };
            if is_possible(setting) {
                let world = World::new();
                let outcome = run(&world, setting, |say| all(&world, say));
                println!("{:?}, supervision {supervision:?}:\n{}", setting.mode, outcome.said);
            }
        }
    }
}

const FILES: usize = 40;

/// Compiles everything a few times, and says how many microseconds each time took.
#[expect(clippy::disallowed_methods, reason = "the compiler is what is measured")]
fn compile(world: &World, say: &mut dyn FnMut(&str)) {
    let workspace = world.path("ws");
    for _ in 0..3 {
        let start = Instant::now();
        let made = std::process::Command::new("make")
            .args(["--always-make", "--silent", "-j2"])
            .env("TMPDIR", &workspace)
            .current_dir(&workspace)
            .status();
        assert!(made.unwrap().success());
        say(&format!("{}\n", start.elapsed().as_micros()));
    }
}

/// A program of many small files.
fn write_sources(world: &World) {
    for number in 0..FILES {
        let text = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
             int part{number}(int n) {{ char t[64]; sprintf(t, \"%d\", n); return atoi(t) + (int) strlen(t); }}\n"
        );
        std::fs::write(world.path(&format!("ws/part{number}.c")), text).unwrap();
    }
    let makefile = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n";
    std::fs::write(world.path("ws/Makefile"), makefile).unwrap();
}

/// By turns, so that whatever else the machine does hits all three.
#[test]
#[ignore = "it measures, and asserts nothing"]
fn what_a_compile_costs() {
    if !is_possible(NAMESPACES) {
        return;
    }
    let world = World::new();
    write_sources(&world);
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..10 {
        let [none, cage, supervised] = &mut times;
        let note = |into: &mut Vec<u64>, said: &str| {
            into.extend(said.lines().map(|line| line.parse::<u64>().unwrap()));
        };
        compile(&world, &mut |line| note(none, line));
        for (into, supervision) in [(cage, Supervision::None), (supervised, Supervision::Full)] {
            let setting = Setting { supervision, ..NAMESPACES };
            note(into, &run(&world, setting, |say| compile(&world, say)).said);
        }
    }
    let [none, cage, supervised] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2] as f64 / 1000.0
    });
    println!("make -j2 of {FILES} files: {none:.1} ms without a cage");
    println!("in a cage: {cage:.1} ms, {:.3} of that", cage / none);
    println!("with its supervisor: {supervised:.1} ms, {:.3} of the cage", supervised / cage);
}
