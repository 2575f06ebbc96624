//! A terminal with a person at it: the program has it as its own, and a test types.

use super::support::{LIMIT, Running, World, eventually};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OutputModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A program on a terminal.
pub(crate) struct Terminal {
    running: Running,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// Where what is shown comes from, until somebody reads it.
    sender: Option<Sender<Vec<u8>>>,
    /// What was shown and not looked at.
    shown: String,
}

impl Terminal {
    /// Starts `sandgate` with these words on a terminal of its own.
    pub(crate) fn start(world: &World, words: &[&str]) -> Self {
        Self::start_unread(world, words).read()
    }

    /// Starts any program, of this world, on a terminal of its own.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn start_other(world: &World, command: &Command) -> Self {
        Self::on_a_terminal(world, command).read()
    }

    /// Reads what is shown as it comes.
    fn read(self) -> Self {
        let mut terminal = self;
        let mut reading = terminal.keyboard.try_clone().unwrap();
        // Its end is the end of what is shown.
        let sender = terminal.sender.take().expect("it was made with one");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other side is closed ends in an error after its last byte.
            while let Ok(length @ 1..) = reading.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        terminal
    }

    /// The same on a terminal that nobody looks at: what is shown stays there until it is full.
    pub(crate) fn start_unread(world: &World, words: &[&str]) -> Self {
        Self::on_a_terminal(world, &world.program(words))
    }

    fn on_a_terminal(world: &World, program: &Command) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let path = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(path).unwrap();
        // A new session, whose terminal is the one on standard input.
        let mut command = world.other("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = program.get_current_dir() {
            command.current_dir(directory);
        }
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        command.stdin(theirs.try_clone().unwrap());
        command.stdout(theirs.try_clone().unwrap()).stderr(Stdio::from(theirs));
        let running = Running::start(&mut command);
        drop(command);
        let keyboard = File::from(keyboard);
        let (sender, screen) = channel();
        Self { running, keyboard, screen, sender: Some(sender), shown: String::new() }
    }

    /// Waits until the screen shows this, and gives back what was shown up to there.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> String {
        let end = eventually(&format!("the screen shows {text:?}"), || {
            while let Ok(bytes) = self.screen.try_recv() {
                self.shown += &String::from_utf8_lossy(&bytes);
            }
            self.shown.find(text).map(|at| at + text.len())
        });
        let rest = self.shown.split_off(end);
        std::mem::replace(&mut self.shown, rest)
    }

    /// Waits until the screen shows one of these. Gives back which, and what was shown up to its end; or all that
    /// was shown, if none of them ever is.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn until_one_of(&mut self, texts: &[&str]) -> (Option<usize>, String) {
        let start = Instant::now();
        loop {
            while let Ok(bytes) = self.screen.try_recv() {
                self.shown += &String::from_utf8_lossy(&bytes);
            }
            let found = texts.iter().enumerate();
            let found = found
                .filter_map(|(which, text)| Some((self.shown.find(text)? + text.len(), which)));
            if let Some((end, which)) = found.min() {
                let rest = self.shown.split_off(end);
                return (Some(which), std::mem::replace(&mut self.shown, rest));
            }
            if start.elapsed() > LIMIT {
                return (None, std::mem::take(&mut self.shown));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Whether the terminal passes every key on as it is.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn is_raw(&self) -> bool {
        let Termios { output_modes, local_modes, .. } = tcgetattr(&self.keyboard).unwrap();
        let edits = local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        !(edits && output_modes.contains(OutputModes::OPOST))
    }

    /// Whether nothing more can be shown, because nobody reads: what waits has stopped to grow.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn is_full(&self) -> bool {
        let waiting = || rustix::io::ioctl_fionread(&self.keyboard).unwrap();
        let before = waiting();
        std::thread::sleep(std::time::Duration::from_millis(100));
        before > 2048 && waiting() == before
    }

    /// Ends the program and what it has in the foreground, when a test cannot wait for that.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn kill(&self) {
        let pid = rustix::process::Pid::from_child(&self.running.child);
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }

    /// Sends a signal to the program.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        self.running.signal(signal);
    }

    /// Waits for the program's end, and gives back its exit code and whether the terminal is left raw.
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn left(mut self) -> (Option<i32>, bool) {
        let code = self.running.child.wait().unwrap().code();
        (code, self.is_raw())
    }

    /// Waits for a question and answers it. Gives back what was shown up to there.
    #[track_caller]
    #[allow(dead_code, reason = "each test file uses its own share of this module")]
    pub(crate) fn answer(&mut self, line: &str) -> String {
        let shown = self.until("\n> ");
        self.press(&format!("{line}\n"));
        shown
    }

    /// Waits for the program's end. Gives back what was shown until then, and its exit code.
    pub(crate) fn end(self) -> (String, Option<i32>) {
        let code = self.running.wait().code;
        let rest: Vec<u8> = self.screen.iter().flatten().collect();
        (self.shown + &String::from_utf8_lossy(&rest), code)
    }
}
