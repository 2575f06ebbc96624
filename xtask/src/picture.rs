//! `cargo xtask picture`: a whole run of the program, as a picture for the documentation.
//!
//! The real program runs in a terminal of its own with a model that follows a script; what it draws is read
//! by an emulator, and the moments that matter become the frames of an SVG.

#![expect(clippy::disallowed_methods, reason = "shows the real program at work")]

use anyhow::{Context as _, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The size of the terminal.
const COLUMNS: u16 = 84;
const ROWS: u16 = 26;
/// Where the picture is kept.
const PICTURE: &str = "docs/tui.svg";
/// The size of a character in the picture, and the room around them.
const WIDE: f32 = 8.4;
const HIGH: f32 = 18.0;
const MARGIN: f32 = 16.0;
/// Nothing takes this long unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a question is looked at before a key counts.
const LOOK: Duration = Duration::from_millis(500);

/// What the model does.
const SCRIPT: &str = r#"
[{"type":"message","text":"I run the tests first."},{"type":"call","name":"shell","arguments":{"command":["bash","-c","sh check.sh"]}},{"type":"usage","input_tokens":3100,"output_tokens":64}]
[{"type":"message","text":"`total` leaves out the last price. I fix that and look again."},{"type":"call","name":"apply_patch","input":"*** Begin Patch\n*** Update File: total.sh\n@@\n-head -n -1 prices | paste -sd+ | bc\n+paste -sd+ prices | bc\n*** End Patch\n"},{"type":"call","name":"shell","arguments":{"command":["bash","-c","sh check.sh"]}},{"type":"usage","input_tokens":3900,"output_tokens":180}]
[{"type":"call","name":"shell","arguments":{"command":["bash","-c","git commit -qam 'Count the last price'"]}},{"type":"usage","input_tokens":4200,"output_tokens":60}]
[{"type":"message","text":"The test passes, and the fix is committed:\n\n```sh\npaste -sd+ prices | bc   # every line counts\n```"},{"type":"usage","input_tokens":4600,"output_tokens":90}]
"#;

/// Makes the picture.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let program = match arguments {
        [program] => std::path::absolute(program)?,
        _ => {
            eprintln!("Usage: cargo xtask picture PROGRAM     such as target/release/sandgate");
            return Ok(ExitCode::from(2));
        }
    };
    let home = Home::make()?;
    prepare(home.0)?;
    let mut stage = Stage::start(home.0, &program)?;
    let mut frames = Vec::new();
    frames.push((stage.until("what is to be done?")?, 1.5));
    stage.press("fix the failing test")?;
    frames.push((stage.until("› fix the failing test")?, 1.0));
    stage.press("\r")?;
    stage.until("The sandbox blocked this")?;
    frames.push((stage.until("[e] explain")?, 6.0));
    std::thread::sleep(LOOK);
    stage.press("g")?;
    frames.push((stage.until("every line counts")?, 6.0));
    stage.press("\x04")?;
    let picture = crate::workspace_root().join(PICTURE);
    std::fs::write(&picture, svg(&frames)).with_context(|| picture.display().to_string())?;
    println!("{}", picture.display());
    Ok(ExitCode::SUCCESS)
}

/// A person's home, whose name is the same in every picture. It goes when the picture is made.
struct Home(&'static Path);

impl Home {
    fn make() -> Result<Self> {
        let home = Path::new("/tmp/me");
        std::fs::create_dir(home).with_context(|| home.display().to_string())?;
        Ok(Self(home))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

/// A person's home with a project in it, whose test fails.
fn prepare(home: &Path) -> Result<()> {
    let project = home.join("shop");
    std::fs::create_dir_all(home.join(".codex"))?;
    std::fs::create_dir_all(&project)?;
    let settings = "sandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n\
                    model_context_window = 200000\n";
    let file = home.join(".codex/config.toml");
    std::fs::write(&file, settings)?;
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    std::fs::write(home.join("demo"), SCRIPT.trim_start())?;
    std::fs::write(project.join("prices"), "12\n30\n")?;
    std::fs::write(project.join("total.sh"), "head -n -1 prices | paste -sd+ | bc\n")?;
    let check = "got=$(sh total.sh)\nif [ \"$got\" = 42 ]; then echo 'ok 1 - the total is 42'; else\n\
                 echo \"not ok 1 - the total is 42, not $got\"; exit 1; fi\n";
    std::fs::write(project.join("check.sh"), check)?;
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "Begin"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Me", "-c", "user.email=me@example.org"]).args(words);
        let done = git.current_dir(&project).env("HOME", home).status().context("git")?;
        if !done.success() {
            bail!("git {} failed", words.join(" "));
        }
    }
    std::fs::write(home.join(".gitconfig"), "[user]\n\tname = Me\n\temail = me@example.org\n")?;
    Ok(())
}

/// The program in its terminal.
struct Stage {
    child: Child,
    keyboard: File,
    written: Receiver<Vec<u8>>,
    terminal: avt::Terminal,
    held: Vec<u8>,
}

impl Stage {
    fn start(home: &Path, program: &Path) -> Result<Self> {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&keyboard)?;
        unlockpt(&keyboard)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keyboard, size)?;
        let path = ptsname(&keyboard, Vec::new())?.into_string()?;
        let theirs = File::options().read(true).write(true).open(path)?;
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program).args(["--provider", "script:../demo"]);
        command.current_dir(home.join("shop")).env("HOME", home).env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR").env_remove("CODEX_HOME");
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(Stdio::from(theirs));
        let child = command.spawn().context("setsid")?;
        drop(command);
        let keyboard = File::from(keyboard);
        let mut reading = keyboard.try_clone()?;
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = reading.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let terminal = avt::Terminal::new(COLUMNS.into(), ROWS.into())?;
        Ok(Self { child, keyboard, written, terminal, held: Vec::new() })
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    /// Waits until the screen shows this, and gives back what it shows.
    fn until(&mut self, text: &str) -> Result<Vec<Vec<Piece>>> {
        let begun = Instant::now();
        loop {
            while let Ok(bytes) = self.written.recv_timeout(Duration::from_millis(60)) {
                self.feed(&bytes);
            }
            let screen = self.terminal.screen().text().join("\n");
            if screen.contains(text) {
                return Ok(self.frame());
            }
            if begun.elapsed() > LIMIT {
                bail!("the screen never showed {text:?}:\n{screen}");
            }
        }
    }

    /// Characters may come in two halves.
    fn feed(&mut self, bytes: &[u8]) {
        self.held.extend(bytes);
        let whole = match std::str::from_utf8(&self.held) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.held.split_off(whole);
        let text = std::mem::replace(&mut self.held, rest);
        self.terminal.feed([String::from_utf8_lossy(&text).as_ref()]);
    }

    fn frame(&self) -> Vec<Vec<Piece>> {
        self.terminal.screen().visible_lines().map(pieces).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Characters that look the same, and where they begin.
struct Piece {
    column: usize,
    text: String,
    class: String,
}

fn pieces(line: &avt::Line) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut column = 0;
    for cell in line.cells() {
        let pen = cell.pen();
        let mut class = match pen.foreground() {
            Some(avt::Color::Indexed(number)) => format!("c{number}"),
            _ => String::new(),
        };
        for (is, name) in [(pen.is_bold(), " b"), (pen.is_faint(), " d"), (pen.is_italic(), " i")] {
            class.push_str(if is { name } else { "" });
        }
        match pieces.last_mut() {
            Some(last) if last.class == class => last.text.push(cell.char()),
            _ => pieces.push(Piece { column, text: cell.char().to_string(), class }),
        }
        column += usize::from(cell.width());
    }
    pieces
}

/// The frames, one after the other and then again.
fn svg(frames: &[(Vec<Vec<Piece>>, f32)]) -> String {
    let (width, height) =
        (f32::from(COLUMNS) * WIDE + 2.0 * MARGIN, f32::from(ROWS) * HIGH + 2.0 * MARGIN);
    let whole: f32 = frames.iter().map(|(_, seconds)| seconds).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"14\">\n<style>\n\
         text{{fill:#d8dee9;white-space:pre}}.b{{font-weight:bold}}.d{{opacity:.6}}.i{{font-style:italic}}\n\
         .c1{{fill:#e06c75}}.c2{{fill:#98c379}}.c3{{fill:#e5c07b}}.c4{{fill:#61afef}}.c5{{fill:#c678dd}}\
         .c6{{fill:#56b6c2}}\n"
    );
    let mut from = 0.0;
    // Writing to a string does not fail.
    for (number, (_, seconds)) in frames.iter().enumerate() {
        let (begin, end) = (from / whole * 100.0, (from + seconds) / whole * 100.0);
        let _ = writeln!(
            out,
            "@keyframes f{number}{{0%,100%{{visibility:hidden}}{begin:.2}%{{visibility:visible}}\
             {end:.2}%{{visibility:hidden}}}}.f{number}{{visibility:hidden;\
             animation:f{number} {whole}s step-end infinite}}"
        );
        from += seconds;
    }
    // Whoever wants nothing to move sees the question.
    let still = frames.len().saturating_sub(2);
    let _ = writeln!(
        out,
        "@media (prefers-reduced-motion){{g{{animation:none!important}}.f{still}{{visibility:visible}}}}\n\
         </style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e222a\"/>"
    );
    for (number, (rows, _)) in frames.iter().enumerate() {
        let _ = writeln!(out, "<g class=\"f{number}\">");
        for (row, pieces) in rows.iter().enumerate() {
            for piece in pieces.iter().filter(|piece| !piece.text.trim().is_empty()) {
                let x = MARGIN + piece.column as f32 * WIDE;
                let y = MARGIN + row as f32 * HIGH + 13.0;
                let text = piece.text.trim_end();
                let long = text.chars().count() as f32 * WIDE;
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{long:.1}\" class=\"{}\">{}</text>",
                    piece.class,
                    escaped(text)
                );
            }
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
