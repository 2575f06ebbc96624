//! Any text, read as a script for each shell.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_policy::script;

fuzz_target!(|text: &str| {
    for (shell, option) in
        [("bash", "-lc"), ("zsh", "-c"), ("sh", "-c"), ("pwsh", "-Command"), ("cmd.exe", "/c")]
    {
        let reading = script::read(&[shell, option, text].map(str::to_owned));
        assert!(reading.opaque.is_some() || reading.commands.len() <= 256);
    }
});
