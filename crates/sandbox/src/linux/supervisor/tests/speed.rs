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
