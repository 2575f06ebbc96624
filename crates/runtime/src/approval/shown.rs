//! Text from a model or a repository, fit to be shown to the person who decides.
//!
//! What a person approves must be what runs: nothing here is left out, overwritten, reordered or
//! invisible. Every character that does not show itself is spelled out.

use sandgate_protocol::{visible, visible_line};

/// A command as one piece of text: each word quoted where a shell would need it, everything visible.
/// A script that a shell is given stays a script, on as many lines as it has.
pub fn command_text(command: &[String]) -> String {
    if let [shell, flag, script] = command
        && is_script_flag(flag)
        && is_shell(shell)
    {
        return visible(script);
    }
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn is_script_flag(flag: &str) -> bool {
    matches!(flag, "-c" | "-lc" | "-Command")
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "zsh" | "sh" | "dash" | "fish" | "pwsh" | "powershell")
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
