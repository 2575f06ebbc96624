//! A terminal with a person at it: the program has it as its own, and a test types.

use super::support::{Running, World, eventually};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

/// A program on a terminal.
pub(crate) struct Terminal {
    running: Running,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What was shown and not looked at.
    shown: String,
}

impl Terminal {
    /// Starts `sandgate` with these words on a terminal of its own.
    pub(crate) fn start(world: &World, words: &[&str]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let path = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(path).unwrap();
        let sandgate = world.program(words);
        // A new session, whose terminal is the one on standard input.
        let mut command = world.other("setsid");
        command.arg("--ctty").arg(sandgate.get_program()).args(sandgate.get_args());
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        command.stdin(theirs.try_clone().unwrap());
        command.stdout(theirs.try_clone().unwrap()).stderr(Stdio::from(theirs));
        let running = Running::start(&mut command);
        drop(command);
        let keyboard = File::from(keyboard);
        let (sender, screen) = channel();
        let mut reading = keyboard.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other side is closed ends in an error after its last byte.
            while let Ok(length @ 1..) = reading.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { running, keyboard, screen, shown: String::new() }
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

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a question and answers it. Gives back what was shown up to there.
    #[track_caller]
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
