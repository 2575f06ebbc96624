//! What a command's redirections write, judged as writes of their own, so that `2>/dev/null` does not
//! keep a rule from matching and `>> ~/.bashrc` is not hidden behind one that does.

use crate::command::{RedirectionKind, SimpleCommand, Word};
use crate::script::{Reader, Reading, ShellKind};
use crate::surroundings::Surroundings;
use sandgate_protocol::may_be_protected;
use std::path::Path;

/// Where the redirections of one command write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    /// Nowhere, or only where nothing is kept: `/dev/null`, another descriptor.
    Nothing,
    /// Into files in the directories that the session may write to. The sandbox holds them there,
    /// as long as there is one.
    InRoots,
    /// Somewhere else, or nobody knows where; or it reads from the network.
    Elsewhere {
        /// As it is written.
        target: String,
    },
}

/// What is written to and kept nowhere.
const KEPT_NOWHERE: &[&str] = &["/dev/null", "/dev/stderr", "/dev/stdout"];

/// What shells open as a connection, whatever the file system holds.
const CONNECTIONS: &[&str] = &["/dev/tcp/", "/dev/udp/"];

/// What changes the directory that relative paths begin in.
const MOVES: &[&str] = &["cd", "chdir", "popd", "pushd"];

/// Whether a script may change its working directory, so that it is not known what a relative path
/// in it means.
pub(crate) fn moves(reading: &Reading) -> bool {
    // The shells of Windows have more names for it than are worth listing.
    let of_windows = matches!(
        reading.reader,
        Reader::Shell(ShellKind::PowerShell) | Reader::Shell(ShellKind::Cmd)
    );
    if of_windows {
        return reading.commands.len() > 1;
    }
    let moves = |word: &Word| word.as_literal().is_none_or(|text| MOVES.contains(&text));
    reading.commands.iter().any(|command| match command.program() {
        Some("builtin" | "command") => command.words.iter().any(moves),
        Some(program) => MOVES.contains(&program),
        // A command that only assigns or redirects stays where it is.
        None => !command.words.is_empty(),
    })
}

/// Where the redirections of one command write. `moved` says whether the script it stands in
/// [moves](moves).
pub(crate) fn writes_of(command: &SimpleCommand, around: &Surroundings, moved: bool) -> Writes {
    let mut writes = Writes::Nothing;
    for redirection in &command.redirections {
        let target = &redirection.target;
        let elsewhere = || Writes::Elsewhere { target: target.text.clone() };
        match redirection.kind {
            RedirectionKind::Read => {
                let text = target.as_literal().unwrap_or(&target.text);
                if CONNECTIONS.iter().any(|connection| text.starts_with(connection)) {
                    return elsewhere();
                }
            }
            RedirectionKind::Duplicate if !is_descriptor(target) => return elsewhere(),
            kind if kind.writes() => match target.as_literal() {
                Some(text) if KEPT_NOWHERE.contains(&text) => {}
                Some(text) if in_roots(text, around, moved) => writes = Writes::InRoots,
                _ => return elsewhere(),
            },
            _ => {}
        }
    }
    writes
}

/// `1`, `-` or `1-`: a descriptor, or the end of one.
fn is_descriptor(target: &Word) -> bool {
    target.as_literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn in_roots(target: &str, around: &Surroundings, moved: bool) -> bool {
    let relative = !Path::new(target).is_absolute();
    // A `~` in quotes is a file of that name and not somebody's home.
    if target.is_empty() || target.starts_with('~') || relative && moved {
        return false;
    }
    around.absolute(target).is_some_and(|path| {
        // These stay read-only inside a writable root. Where no sandbox protects them a rule must not open them
        // either.
        let protected = path.components().any(|part| may_be_protected(part.as_os_str()));
        around.in_roots(&path)
            && !protected
            && !path.starts_with("/dev")
            && !path.starts_with("/proc")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Redirection, Shape};

    fn around() -> Surroundings {
        Surroundings {
            cwd: Some("/ws/sub".into()),
            roots: vec!["/ws".into(), "/tmp".into()],
            home: Some("/home/me".into()),
            ..Surroundings::default()
        }
    }

    fn writes(kind: RedirectionKind, text: &str, shape: Shape, moved: bool) -> Writes {
        let target = Word { text: text.to_owned(), shape };
        let redirections = vec![Redirection { descriptor: None, kind, target }];
        let command = SimpleCommand { redirections, ..SimpleCommand::default() };
        writes_of(&command, &around(), moved)
    }

    #[test]
    fn only_literal_paths_inside_the_roots_are_known_to_be_there() {
        use RedirectionKind::{AppendBoth, Write};
        let literal = |text, moved| writes(Write, text, Shape::Literal, moved);
        for inside in ["out.txt", "../out.txt", "/tmp/x", "/ws/a/../b"] {
            assert_eq!(literal(inside, false), Writes::InRoots, "{inside}");
        }
        for outside in [
            "/etc/x",
            "../../x",
            "~/x",
            "",
            "/ws/../etc/x",
            "../.git/config",
            ".GIT/x",
            "git~1/x",
            "/wsx/a",
        ] {
            assert!(matches!(literal(outside, false), Writes::Elsewhere { .. }), "{outside}");
        }
        assert!(matches!(literal("out.txt", true), Writes::Elsewhere { .. }));
        assert_eq!(literal("/tmp/x", true), Writes::InRoots);
        assert_eq!(literal("/dev/null", true), Writes::Nothing);
        for shape in [Shape::Pattern, Shape::Home, Shape::Dynamic] {
            assert!(matches!(writes(AppendBoth, "x", shape, false), Writes::Elsewhere { .. }));
        }
    }

    #[test]
    fn descriptors_and_what_is_read_write_nothing_but_a_connection_does() {
        use RedirectionKind::{Duplicate, HereString, Read};
        let literal = |kind, text| writes(kind, text, Shape::Literal, false);
        for (kind, text) in [(Duplicate, "1"), (Duplicate, "-"), (Duplicate, "2-"), (Read, "x")] {
            assert_eq!(literal(kind, text), Writes::Nothing, "{text}");
        }
        assert_eq!(literal(HereString, "/etc/x"), Writes::Nothing);
        assert!(matches!(literal(Duplicate, "file"), Writes::Elsewhere { .. }));
        assert!(matches!(literal(Read, "/dev/tcp/h/80"), Writes::Elsewhere { .. }));
    }
}
