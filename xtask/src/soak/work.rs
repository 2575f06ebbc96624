//! Commands whose answers are known beforehand.

use super::gate::Answer;
use super::random::Random;
use super::world::World;
use std::fmt::Write as _;

/// One command, and what must come of it.
#[derive(Debug, Clone)]
pub(super) struct Work {
    /// A word that nothing else has, which is in the command and in the log.
    pub(super) mark: String,
    pub(super) argv: Vec<String>,
    pub(super) stdout: String,
    pub(super) code: i32,
}

/// A script, what it prints and how it ends.
type Made = (String, String, i32);

/// The ways of making one.
const KINDS: &[fn(&mut Random, &World, &str) -> Made] =
    &[speaks, fails, counts, keeps_a_file, leaves_strays, bombs, tries_to_get_out, uses_tmp];

impl Work {
    /// Any of them.
    pub(super) fn any(random: &mut Random, world: &World, mark: String) -> Self {
        if random.percent(25) {
            let argv = ["printf", "%s|%s\n", &mark, "it's \"text\" $HOME"].map(str::to_owned);
            let stdout = format!("{mark}|it's \"text\" $HOME\n");
            return Self { mark, argv: argv.to_vec(), stdout, code: 0 };
        }
        let (script, stdout, code) = random.pick(KINDS)(random, world, &mark);
        Self { argv: sh(&mark, &script), mark, stdout, code }
    }

    /// Holds an answer of a tool against what is known. A process that was left to itself may not have let
    /// go of the output yet, which is told above it.
    pub(super) fn check(&self, answer: &Answer) -> anyhow::Result<()> {
        let told =
            format!("Processes were still holding its output open\nOutput:\n{}", self.stdout);
        let same = match self.code {
            0 => answer.output == self.stdout || answer.output.ends_with(&told),
            _ => answer.output.contains(self.stdout.trim_end()),
        };
        let right = same && answer.exit_code == Some(i64::from(self.code));
        anyhow::ensure!(right, "wanted {self:?}, was answered {answer:?}");
        Ok(())
    }

    /// One that prints so many lines.
    pub(super) fn flood(mark: String, lines: u64) -> Self {
        let argv = sh(&mark, &format!("seq 1 {lines}"));
        Self { mark, argv, stdout: count(1, lines), code: 0 }
    }

    /// One that would go on for ever, with others that would as well; what it prints first.
    pub(super) fn endless(mark: String) -> Self {
        let script =
            "echo begun; setsid sleep 1000 >/dev/null 2>&1 & (sleep 1000 &) ; sleep 1000; :";
        let argv = sh(&mark, script);
        Self { mark, argv, stdout: "begun\n".to_owned(), code: -1 }
    }
}

/// A script for a shell, with a mark as its name.
pub(super) fn sh(mark: &str, script: &str) -> Vec<String> {
    ["sh", "-c", script, mark].map(str::to_owned).to_vec()
}

/// What `seq` prints.
pub(super) fn count(from: u64, to: u64) -> String {
    (from..=to).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{number}");
        text
    })
}

fn speaks(_: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    (
        "echo \"$0 speaks\"; printf 'half a line'".to_owned(),
        format!("{mark} speaks\nhalf a line"),
        0,
    )
}

fn fails(random: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    // 77, 124 to 126 mean something of their own to whoever reads exit codes, and may be given all the same.
    let code = random.between(1, 127);
    (format!("echo $0; exit {code}"), format!("{mark}\n"), i32::try_from(code).unwrap_or(1))
}

fn counts(random: &mut Random, _: &World, _: &str) -> (String, String, i32) {
    let (from, lines) = (random.below(1000), random.between(1, 400));
    (format!("seq {from} {}", from + lines), count(from, from + lines), 0)
}

fn keeps_a_file(_: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    ("echo $0 > \"$0\" && cat \"$0\" && rm \"$0\"".to_owned(), format!("{mark}\n"), 0)
}

fn leaves_strays(_: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    let script = "exec 3>&1 >/dev/null 2>&1; (setsid sleep 1000 3>&- &); nohup sleep 1000 3>&- & \
                  setsid sh -c '(sleep 1000 &) ; sleep 1000' 3>&- & echo $0 >&3";
    (script.to_owned(), format!("{mark}\n"), 0)
}

fn bombs(random: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    let many = random.between(10, 60);
    let script = format!(
        "i=0; while [ $i -lt {many} ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done; echo $0"
    );
    (script, format!("{mark}\n"), 0)
}

/// Only what nobody is asked about; [`super::errands`] has some of the rest.
fn tries_to_get_out(random: &mut Random, world: &World, mark: &str) -> (String, String, i32) {
    let outside = world.path("outside");
    let outside = outside.display();
    let tries = [
        format!("echo x > {outside}/new"),
        format!("echo x > {outside}/a"),
        format!("rm {outside}/deep/b"),
        "mkdir .git".to_owned(),
    ];
    let script = format!("({}) 2>/dev/null || echo $0 is kept in", random.pick(&tries));
    (script, format!("{mark} is kept in\n"), 0)
}

fn uses_tmp(_: &mut Random, _: &World, mark: &str) -> (String, String, i32) {
    let script = "f=$(mktemp) && echo $0 > \"$f\" && cat \"$f\" && rm \"$f\"";
    (script.to_owned(), format!("{mark}\n"), 0)
}
