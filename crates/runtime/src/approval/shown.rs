//! Text from a model or a repository, fit to be shown to the person who decides.
//!
//! What a person approves must be what runs: nothing here is left out, overwritten, reordered or
//! invisible. Every character that does not show itself is spelled out.

use sandgate_policy::is_system_program;
use sandgate_protocol::{ExecParams, visible, visible_line};
use std::path::Path;

/// A command as one piece of text: each word quoted where a shell would need it, everything visible.
/// A script that one of the system's shells is given stays a script, on as many lines as it has.
pub fn command_text(command: &[String]) -> String {
    match script_of(command) {
        Some((shell, script)) if is_system_program(shell).is_some() => visible(script),
        _ => in_words(command),
    }
}

/// The same for a command whose program was looked up. Its script stands alone only if the file that
/// reads it is the session's own shell or one of the system's: any other file may have borrowed the
/// name, so it is shown by its whole path.
pub(crate) fn resolved_command_text(params: &ExecParams, session_shell: &Path) -> String {
    let Some((_, script)) = script_of(&params.command) else {
        return in_words(&params.command);
    };
    let is_systems = params.program.to_str().is_some_and(|path| is_system_program(path).is_some());
    if is_systems || params.program == session_shell {
        return visible(script);
    }
    let mut words = params.command.clone();
    words[0] = params.program.to_string_lossy().into_owned();
    in_words(&words)
}

/// The shell and the script that it is given, if a command is just that.
fn script_of(command: &[String]) -> Option<(&str, &str)> {
    match command {
        [shell, flag, script] if is_script_flag(flag) && is_shell(shell) => Some((shell, script)),
        _ => None,
    }
}

fn in_words(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn is_script_flag(flag: &str) -> bool {
    matches!(flag, "-c" | "-lc" | "-Command")
}

/// Shells whose scripts may stand alone. fish is none of them: the same text means something else to it
/// than to the others, so the person has to see who reads it.
fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "zsh" | "sh" | "dash" | "pwsh" | "powershell")
}

/// A word as a shell would need it to be written.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let shown = visible_line(word);
    // Where something had to be spelled out, the quotes say that it is to be read like that.
    if shown != word {
        return format!("$'{}'", shown.replace('\'', "\\'"));
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(command_text(&words(&["ls", "-la", "src/main.rs"])), "ls -la src/main.rs");
        assert_eq!(command_text(&words(&["echo", "it's", ""])), r"echo 'it'\''s' ''");
        assert_eq!(command_text(&words(&["echo", "a b", "$HOME"])), "echo 'a b' '$HOME'");
        assert_eq!(command_text(&words(&["printf", "\x1b[2J"])), r"printf $'\u{1b}[2J'");
    }

    #[test]
    fn a_script_is_shown_as_it_is() {
        assert_eq!(command_text(&words(&["/bin/bash", "-lc", "ls\nrm x"])), "ls\nrm x");
        assert_eq!(command_text(&words(&["./bash", "-x", "ls"])), "./bash -x ls");
        assert_eq!(command_text(&words(&["./bash", "-c", "ls x"])), "./bash -c 'ls x'");
        assert_eq!(command_text(&words(&["fish", "-c", "ls x"])), "fish -c 'ls x'");
    }

    #[test]
    fn a_script_stands_alone_only_for_a_shell_that_is_known() {
        let text = |name: &str, program: &str| {
            let params = ExecParams {
                command: words(&[name, "-c", "git status"]),
                program: program.into(),
                cwd: "/ws".into(),
                env: Default::default(),
                expiration: Default::default(),
                sandbox_permissions: Default::default(),
                justification: None,
                arg0: None,
            };
            resolved_command_text(&params, Path::new("/opt/shells/zsh"))
        };
        for (name, program) in [
            ("bash", "/usr/bin/bash"),
            ("/bin/sh", "/bin/sh"),
            ("zsh", "/opt/shells/zsh"),
            ("/opt/shells/zsh", "/opt/shells/zsh"),
        ] {
            assert_eq!(text(name, program), "git status", "{name} {program}");
        }
        for (name, program) in [
            ("bin/bash", "/ws/bin/bash"),
            ("bash", "/ws/bin/bash"),
            ("/ws/bin/bash", "/ws/bin/bash"),
            ("/usr/bin/../../ws/bin/bash", "/usr/bin/../../ws/bin/bash"),
            ("/bin/bash", "/ws/bin/bash"),
        ] {
            let expected = format!("{program} -c 'git status'");
            assert_eq!(text(name, program), expected, "{name} {program}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_can_move_a_cursor(text in any::<String>()) {
            let shown = command_text(&["echo".to_owned(), text]);
            prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert!(!shown.chars().any(sandgate_protocol::is_invisible));
        }
    }
}
