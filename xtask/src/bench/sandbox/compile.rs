//! What the cage costs a compiler, which starts many programs and writes many files.

use super::confined::Confined;
use crate::bench::bare;
use crate::bench::progress::Progress;
use crate::bench::row::{Row, Target};
use crate::bench::samples::{by_turns_timed, timed};
use crate::bench::session::Session;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const MOST: Target = Target::RatioAtMost(1.03);

/// The same compile takes a few hundredths more or less from one time to the next, so that a target of three takes many.
pub(super) const TIMES: usize = 61;

const C_FILES: usize = 40;

const RUST_MODULES: usize = 12;

pub(super) fn make(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    bare::find("cc")?;
    let confined = Confined::start(session)?;
    write_c_project(confined.workspace())?;
    let (make, args) = make_in(confined.workspace())?;
    let args = args.each_ref().map(String::as_str);
    let command = confined.command(&make, &args)?;
    let plain = || timed(|| bare::run_quietly(&make, &args));
    let times = session.times(TIMES, 2);
    let what = format!("make -j2 of {C_FILES} files");
    let pair = by_turns_timed(times, progress, || confined.time(&command), plain)?;
    let row = confined.label(Row::of_times(&what, "plain", &pair))?;
    // How far two figures of the same thing are apart here and now.
    let twice = by_turns_timed(times, progress, plain, plain)?;
    Ok(vec![row, Row::of_times(format!("{what}, plain"), "the same again", &twice)])
}

/// The compiler of such a program, in a directory.
pub(super) fn make_in(directory: &Path) -> anyhow::Result<(PathBuf, [String; 5])> {
    let args = ["--always-make", "--silent", "-j2", "-C", &bare::text(directory)?];
    Ok((bare::find("make")?, args.map(str::to_owned)))
}

pub(super) fn cargo(session: &Session, progress: &Progress) -> anyhow::Result<Vec<Row>> {
    let cargo = bare::find("cargo")?;
    let confined = Confined::start(session)?;
    write_crate(confined.workspace())?;
    let manifest = bare::text(confined.workspace().join("Cargo.toml"))?;
    let built = confined.workspace().join("built");
    let target = bare::text(&built)?;
    let args =
        ["build", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target];
    let command = confined.command(&cargo, &args)?;
    let clear = || match fs::remove_dir_all(&built) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let pair = by_turns_timed(
        session.times(TIMES, 2),
        progress,
        || {
            clear()?;
            confined.time(&command)
        },
        || {
            clear()?;
            timed(|| bare::run_quietly(&cargo, &args))
        },
    )?;
    let row = Row::of_times("cargo build --offline of a small crate", "plain", &pair);
    Ok(vec![confined.judge(row, MOST)?])
}

/// A program of many small files.
pub(super) fn write_c_project(directory: &Path) -> anyhow::Result<()> {
    let mut main = String::from("#include <stdio.h>\n");
    let mut sum = String::from("0");
    for number in 0..C_FILES {
        let text = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
             int part{number}(int n) {{\n\
             \x20   char line[64];\n\
             \x20   snprintf(line, sizeof line, \"%d\", n * {number});\n\
             \x20   return atoi(line) + (int) strlen(line);\n}}\n"
        );
        fs::write(directory.join(format!("part{number}.c")), text)?;
        writeln!(main, "int part{number}(int);")?;
        write!(sum, " + part{number}(n)")?;
    }
    writeln!(main, "int main(int n, char **v) {{ (void) v; printf(\"%d\\n\", {sum}); }}")?;
    fs::write(directory.join("main.c"), main)?;
    let makefile = "CFLAGS = -O1\n\
                    objects = $(patsubst %.c,%.o,$(wildcard *.c))\n\
                    all: program\n\
                    program: $(objects)\n\
                    \t$(CC) -o $@ $^\n";
    Ok(fs::write(directory.join("Makefile"), makefile)?)
}

/// A crate without dependencies.
fn write_crate(directory: &Path) -> anyhow::Result<()> {
    let manifest = "[package]\nname = \"small\"\nedition = \"2021\"\n\n[workspace]\n";
    fs::write(directory.join("Cargo.toml"), manifest)?;
    let source = directory.join("src");
    fs::create_dir(&source)?;
    let mut main = String::new();
    let mut calls = String::new();
    for number in 0..RUST_MODULES {
        let text = format!(
            "#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
             pub struct Part {{ pub name: String, pub numbers: Vec<u64> }}\n\n\
             pub fn make(seed: u64) -> Part {{\n\
             \x20   let numbers = (0..seed).map(|n| n * {number}).collect();\n\
             \x20   Part {{ name: format!(\"part {number} of {{seed}}\"), numbers }}\n}}\n"
        );
        fs::write(source.join(format!("part{number}.rs")), text)?;
        writeln!(main, "mod part{number};")?;
        writeln!(calls, "    println!(\"{{:?}}\", part{number}::make(3));")?;
    }
    write!(main, "\nfn main() {{\n{calls}}}\n")?;
    Ok(fs::write(source.join("main.rs"), main)?)
}
