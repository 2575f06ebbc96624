//! Any text, read as a script for each shell.
//!
//! What was understood is known to the letter: nothing in it is made while it runs, and its commands, written out
//! again with everything quoted, are never read as other commands.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_fuzz::shell::{makes_something, written};
use sandgate_policy::command::Shape;
use sandgate_policy::script::{self, Reader};

fuzz_target!(|text: &str| {
    for (shell, option) in [
        ("bash", "-lc"),
        ("zsh", "-c"),
        ("sh", "-c"),
        ("pwsh", "-Command"),
        ("cmd.exe", "/c"),
        ("fish", "-c"),
    ] {
        let reading = script::read(&[shell, option, text].map(str::to_owned));
        assert!(reading.commands.len() <= 4097);
        if reading.opaque.is_some() {
            continue;
        }
        assert!(reading.commands.len() <= 256);
        assert!(shell != "fish", "its language is not read");
        if !matches!(reading.reader, Reader::Shell(_)) {
            continue;
        }
        for command in &reading.commands {
            let values = command.assignments.iter().map(|assignment| &assignment.value);
            let targets = command.redirections.iter().map(|redirection| &redirection.target);
            for word in command.words.iter().chain(values).chain(targets) {
                assert!(word.shape != Shape::Dynamic, "{shell}: {text:?} has {word:?}");
                assert!(!word.text.contains('\0'), "{shell}: {text:?}");
            }
        }
        if matches!(shell, "bash" | "sh") {
            assert!(!makes_something(text), "{shell} makes something in {text:?}");
            if let Some(again) = written(&reading.commands) {
                let second = script::read(&[shell, option, &again].map(str::to_owned));
                // Not to understand it is no mistake; to read something else is.
                let same = second.opaque.is_some() || second.commands == reading.commands;
                assert!(same, "{shell}: {text:?} is {again:?}: {:?}", second.commands);
            }
        }
    }
});
