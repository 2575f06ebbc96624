//! What `cmd.exe` runs by itself. Other programs are never safe there: it looks for them in the
//! working directory first.

use super::powershell::is_remote;
use super::{NotSafe, shown, unknown};
use crate::command::{Shape, Word};

/// Builtins that only show, and those of their switches that do. `cd` with an operand moves, which
/// `together` looks at.
const BUILTINS: [(&str, &[&str]); 8] = [
    ("cd", &["/d"]),
    ("chdir", &["/d"]),
    (
        "dir",
        &[
            "/a", "/ad", "/a-d", "/b", "/c", "/d", "/l", "/n", "/o", "/on", "/q", "/r", "/s", "/w",
            "/x",
        ],
    ),
    ("echo", &[]),
    ("rem", &[]),
    ("type", &[]),
    ("ver", &[]),
    ("vol", &[]),
];

/// Whether a builtin of cmd is called in a way that is known to be safe.
pub(super) fn check(name: &str, arguments: &[Word]) -> Result<(), NotSafe> {
    let known = BUILTINS.iter().find(|(builtin, _)| builtin.eq_ignore_ascii_case(name));
    let Some((_, switches)) = known else {
        return Err(unknown(name));
    };
    for word in arguments {
        let switch = word.text.starts_with('/')
            && !switches.iter().any(|switch| switch.eq_ignore_ascii_case(&word.text));
        // cmd replaces %NAME% and !NAME!, even in quotes, and ^ hides what follows.
        let plain = word.shape == Shape::Literal
            && !word.text.contains(['%', '!', '^', '&', '|', '<', '>']);
        if switch || !plain || is_remote(&word.text) {
            let text = shown(&word.text);
            return Err(NotSafe(format!("what {name} does with {text} is not known to be safe")));
        }
    }
    Ok(())
}
