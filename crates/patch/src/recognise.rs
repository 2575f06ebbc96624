//! Knows a patch when it comes as a shell command.
//!
//! Models write `apply_patch <<'EOF'` where they could call the tool. What they write is taken for a
//! patch only if the whole command is nothing else, so that whatever is not certain goes the way of
//! every other command and is judged there.

use std::path::{Path, PathBuf};

/// A patch that came in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchText {
    /// Its text, not parsed yet.
    pub text: String,
    /// The directory that the command changes to first, as it was written.
    pub directory: Option<PathBuf>,
}

const NAMES: [&str; 2] = ["apply_patch", "applypatch"];

const SHELLS: [&str; 4] = ["bash", "sh", "zsh", "dash"];

const SHELL_FLAGS: [&str; 2] = ["-c", "-lc"];

/// The patch in a command: `apply_patch PATCH`, or a shell that is given a here-document for
/// `apply_patch` and at most a `cd DIR &&` before it.
pub fn from_script(argv: &[String]) -> Option<PatchText> {
    match argv {
        [name, text] if NAMES.contains(&name.as_str()) => Some(from_here_document(text, None)),
        [shell, flag, script] if is_shell(shell) && SHELL_FLAGS.contains(&flag.as_str()) => {
            from_shell(script)
        }
        _ => None,
    }
}

/// The patch in a here-document that somebody else has found, with the directory that its command
/// changed to.
pub fn from_here_document(body: &str, directory: Option<&Path>) -> PatchText {
    PatchText { text: body.to_owned(), directory: directory.map(Path::to_owned) }
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    SHELLS.contains(&name)
}

fn from_shell(script: &str) -> Option<PatchText> {
    let script = script.trim_start();
    let (command, rest) = script.split_once('\n')?;
    let (directory, command) = match command.strip_prefix("cd ") {
        Some(after) => {
            let (directory, command) = after.split_once("&&")?;
            (Some(plain_word(directory.trim())?), command.trim())
        }
        None => (None, command.trim()),
    };
    let redirection = NAMES.iter().find_map(|name| command.strip_prefix(name))?.trim_start();
    let (word, quoted) = here_document(redirection)?;
    let mut body = String::new();
    let mut lines = rest.split_inclusive('\n');
    for line in lines.by_ref() {
        if line.strip_suffix('\n').unwrap_or(line) == word {
            let is_all = lines.all(|line| line.trim().is_empty());
            // Without quotes the shell would change these before anybody reads the patch.
            let is_literal = quoted || !body.contains(['$', '`', '\\']);
            let found = from_here_document(&body, directory.as_deref().map(Path::new));
            return (is_all && is_literal).then_some(found);
        }
        body.push_str(line);
    }
    None
}

/// The word of a here-document, and whether it is quoted.
fn here_document(redirection: &str) -> Option<(&str, bool)> {
    let written = redirection.strip_prefix("<<")?.trim_start();
    let unquote = |quote: char| written.strip_prefix(quote)?.strip_suffix(quote);
    let (word, quoted) = match unquote('\'').or_else(|| unquote('"')) {
        Some(word) => (word, true),
        None => (written, false),
    };
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word.then_some((word, quoted))
}

/// A word that means itself to every shell, and to `cd`.
fn plain_word(written: &str) -> Option<String> {
    let inside = |quote: char| written.strip_prefix(quote)?.strip_suffix(quote);
    let (word, is_plain) = match (inside('\''), inside('"')) {
        (Some(word), _) => (word, !word.contains('\'')),
        (_, Some(word)) => (word, !word.contains(['"', '$', '`', '\\', '!'])),
        _ => {
            let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%,:".contains(c);
            (written, written.chars().all(is_plain))
        }
    };
    (is_plain && !word.is_empty() && !word.starts_with('-')).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";

    fn shell(script: &str) -> Option<PatchText> {
        from_script(&["bash".to_owned(), "-lc".to_owned(), script.to_owned()])
    }

    /// spec PATCH.80: A command that is `apply_patch PATCH`, or a shell with nothing but a
    /// here-document for `apply_patch` and at most a `cd` before it, is recognised as a patch.
    #[test]
    fn a_command_that_is_only_a_patch_is_one() {
        for name in NAMES {
            let found = from_script(&[name.to_owned(), PATCH.to_owned()]);
            assert_eq!(found, Some(from_here_document(PATCH, None)));
            for opening in ["<<'EOF'", "<< 'EOF'", "<<\"EOF\"", "<<EOF"] {
                for closing in ["EOF", "EOF\n", "EOF\n\n"] {
                    let found = shell(&format!("{name} {opening}\n{PATCH}{closing}"));
                    assert_eq!(found, Some(from_here_document(PATCH, None)), "{opening}");
                }
            }
        }
        for (written, directory) in
            [("sub/dir", "sub/dir"), ("'my dir'", "my dir"), ("\"my dir\"", "my dir"), ("/x", "/x")]
        {
            let found = shell(&format!("cd {written} && apply_patch <<'EOF'\n{PATCH}EOF\n"));
            assert_eq!(found, Some(from_here_document(PATCH, Some(Path::new(directory)))));
        }
    }

    /// spec PATCH.81: A command that does anything besides, or whose here-document the shell would
    /// change, is not recognised as a patch.
    #[test]
    fn whatever_is_not_certain_is_a_command() {
        for script in [
            format!("apply_patch <<'EOF'\n{PATCH}EOF\nrm -r x"),
            format!("apply_patch <<'EOF' > log\n{PATCH}EOF\n"),
            format!("apply_patch <<'EOF' && rm x\n{PATCH}EOF\n"),
            format!("apply_patch x <<'EOF'\n{PATCH}EOF\n"),
            format!("apply_patch <<-'EOF'\n{PATCH}EOF\n"),
            format!("apply_patch <<'EOF'\n{PATCH}"),
            format!("apply_patch <<'EOF'\n{PATCH} EOF\n"),
            format!("apply_patch_all <<'EOF'\n{PATCH}EOF\n"),
            format!("true && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd $HOME && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd ~ && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd - && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd '-' && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd a b && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd \"$(rm x)\" && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd a; apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd a && cd b && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("apply_patch <<EOF\n{PATCH}$(rm x)\nEOF\n"),
            format!("apply_patch <<EOF\n{PATCH}`rm x`\nEOF\n"),
            format!("apply_patch <<EOF\n{PATCH}a \\\nEOF\n"),
            "apply_patch".to_owned(),
        ] {
            assert_eq!(shell(&script), None, "{script}");
        }
        let other =
            |argv: &[&str]| from_script(&argv.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert_eq!(other(&["python", "-c", "apply_patch <<'EOF'\nEOF\n"]), None);
        assert_eq!(other(&["bash", "-x", "apply_patch <<'EOF'\nEOF\n"]), None);
        assert_eq!(other(&["apply_patch"]), None);
        assert_eq!(other(&["apply_patch", "a", "b"]), None);
    }
}
