//! Makes an interactive shell print the marks that [`Marks`](super::marks::Marks) reads.
//!
//! What was judged and shown to a person stays the command as it was asked for. What is started differs
//! from it by one argument or one variable, which makes the shell read one more file, and by nothing
//! that its user sees: the user's own start-up files are read as ever, by the shell itself wherever it
//! can, and prompts, hooks, traps, history and `$?` stay theirs. Where a mark cannot be had without
//! changing something, there is none.
//!
//! | shell | how it is made to read our file |
//! | --- | --- |
//! | bash | `--rcfile`, and our file reads `~/.bashrc` first |
//! | bash as a login shell or with `--norc` | it looks at no such file: `PROMPT_COMMAND` in its environment reads ours at the first prompt and goes away. A start-up file that sets `PROMPT_COMMAND` without a look at what it was makes a shell without marks |
//! | zsh | `ZDOTDIR`, where our `.zshenv` puts the variable back before it reads the user's |
//! | fish | `--init-command`, which runs after the user's configuration |
//!
//! Nothing is exported to the commands that run in the shell; a shell started in the shell has no marks.

use sandgate_protocol::ExecParams;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

const BASH: &str = include_str!("shells/marks.bash");
const ZSH: &str = include_str!("shells/marks.zsh");
const FISH: &str = include_str!("shells/marks.fish");

/// The command changed so that it prints marks with this nonce, or nothing if it is not an interactive
/// shell that we know. The files it needs are written to `dir`, which must be there, private, and the
/// session's own and empty.
///
/// # Errors
/// When a file cannot be written, or the nonce is not made of ASCII letters and digits.
pub fn with_marks(asked: &ExecParams, nonce: &str, dir: &Path) -> io::Result<Option<ExecParams>> {
    if nonce.is_empty() || !nonce.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a nonce is letters and digits"));
    }
    let called = asked.arg0.as_ref().or(asked.command.first()).map_or("", String::as_str);
    let name = Path::new(called.strip_prefix('-').unwrap_or(called)).file_name();
    // A shell that is called by another shell's name behaves like that one.
    if name != asked.program.file_name() {
        return Ok(None);
    }
    let arguments = asked.command.get(1..).unwrap_or_default();
    let marks = Marked { asked, nonce, dir };
    match name.and_then(OsStr::to_str) {
        Some("bash") => match BashCall::read(called, arguments) {
            Some(call) => marks.bash(call).map(Some),
            None => Ok(None),
        },
        Some("zsh") if zsh_reads_its_files(arguments) => marks.zsh().map(Some),
        Some("fish") if fish_is_interactive(arguments) => marks.fish().map(Some),
        _ => Ok(None),
    }
}

struct Marked<'a> {
    asked: &'a ExecParams,
    nonce: &'a str,
    dir: &'a Path,
}

impl Marked<'_> {
    fn bash(&self, call: BashCall) -> io::Result<ExecParams> {
        let file = self.dir.join("marks.bash");
        let mut params = self.asked.clone();
        let mut text = OsString::new();
        match call.start_up {
            BashStartUp::Rc(own) => {
                let own = own.map_or(OsString::from("~/.bashrc"), |own| quoted(OsStr::new(&own)));
                text.push("if [ -r ");
                text.push(&own);
                text.push(" ]; then . ");
                text.push(&own);
                text.push(" || :; fi\n");
                text.push(BASH);
                text.push(
                    "{ __sandgate_install; \\builtin unset -f __sandgate_install __sandgate_nothing; } \
                     >/dev/null 2>&1\n",
                );
                let added = ["--rcfile".to_owned(), utf8(&file)?];
                let name = self.asked.command[..1].iter().cloned();
                params.command = name.chain(added).chain(call.arguments).collect();
            }
            BashStartUp::Other => {
                let mut reads_it = OsString::from(". ");
                reads_it.push(quoted(file.as_os_str()));
                let before = self.asked.env.get(OsStr::new("PROMPT_COMMAND"));
                let before = quoted(before.map_or(OsStr::new(""), OsString::as_os_str));
                text.push(BASH);
                text.push("{ __sandgate_install ");
                text.push(quoted(&reads_it));
                text.push(" ");
                text.push(&before);
                text.push("; \\builtin unset -f __sandgate_install; } >/dev/null 2>&1\n");
                // This is the first prompt already. If nothing could be installed, there are no marks.
                text.push("if [[ ${PROMPT_COMMAND[*]-} == *__sandgate_prompt_ends* ]]; then\n");
                text.push(
                    "{ __sandgate_prompt_starts || :; } 9>&2 >/dev/null 2>&1\n\\builtin eval ",
                );
                text.push(&before);
                text.push("\n{ __sandgate_prompt_ends; } 9>&2 >/dev/null 2>&1\nfi\n");
                params.env.insert("PROMPT_COMMAND".into(), reads_it);
            }
        }
        self.write(&file, &text)?;
        Ok(params)
    }

    fn zsh(&self) -> io::Result<ExecParams> {
        let directory = self.dir.join("zsh");
        DirBuilder::new().mode(0o700).create(&directory)?;
        let mut params = self.asked.clone();
        let mut text = OsString::new();
        match params.env.insert("ZDOTDIR".into(), directory.clone().into()) {
            Some(own) => {
                text.push("export ZDOTDIR=");
                text.push(quoted(&own));
            }
            None => text.push("unset ZDOTDIR"),
        }
        text.push("\n");
        text.push(ZSH);
        // The last thing, so that its options stay.
        text.push(
            "if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then . \"${ZDOTDIR-$HOME}/.zshenv\"; fi\n",
        );
        self.write(&directory.join(".zshenv"), &text)?;
        Ok(params)
    }

    fn fish(&self) -> io::Result<ExecParams> {
        let file = self.dir.join("marks.fish");
        self.write(&file, OsStr::new(FISH))?;
        let mut params = self.asked.clone();
        let path = utf8(&file)?.replace('\\', "\\\\").replace('\'', "\\'");
        params.command.push(format!("--init-command=source '{path}'"));
        Ok(params)
    }

    fn write(&self, file: &Path, text: &OsStr) -> io::Result<()> {
        let text = replaced(text.as_bytes(), b"@NONCE@", self.nonce.as_bytes());
        let mut options = OpenOptions::new();
        // Nobody else may have been here before.
        options.write(true).create_new(true).mode(0o600);
        options.open(file)?.write_all(&text)
    }
}

/// How bash was called, if it was called to be typed at.
#[derive(Debug, PartialEq, Eq)]
struct BashCall {
    start_up: BashStartUp,
    /// What it is given, without the file in `start_up`.
    arguments: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum BashStartUp {
    /// It reads this file, or `~/.bashrc`.
    Rc(Option<String>),
    /// It is a login shell, or reads nothing.
    Other,
}

impl BashCall {
    fn read(called: &str, arguments: &[String]) -> Option<Self> {
        let mut start_up = BashStartUp::Rc(None);
        let mut kept = Vec::new();
        if called.starts_with('-') {
            start_up = BashStartUp::Other;
        }
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--login" | "--norc" => start_up = BashStartUp::Other,
                "--noprofile" | "--noediting" => {}
                "--rcfile" | "--init-file" => {
                    let file = rest.next()?.clone();
                    match &mut start_up {
                        BashStartUp::Rc(own) => *own = Some(file),
                        BashStartUp::Other => kept.extend([argument.clone(), file]),
                    }
                    continue;
                }
                short => {
                    let letters = short.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty())?;
                    // `c` and `s` say where commands come from, `r` and `D` make another kind of shell,
                    // and `p` reads nothing that its user could have written.
                    if !letters.chars().all(|c| "abefhiklmntuvxBCEHPToO".contains(c)) {
                        return None;
                    }
                    if letters.contains('l') {
                        start_up = BashStartUp::Other;
                    }
                    kept.push(argument.clone());
                    for _ in letters.matches(['o', 'O']) {
                        let option = rest.next().filter(|option| *option != "posix")?;
                        kept.push(option.clone());
                    }
                    continue;
                }
            }
            kept.push(argument.clone());
        }
        Some(Self { start_up, arguments: kept })
    }
}

/// Whether zsh reads what it is typed, and its start-up files before.
fn zsh_reads_its_files(arguments: &[String]) -> bool {
    arguments.iter().all(|argument| match argument.as_str() {
        "--login" | "--interactive" => true,
        short => short.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|c| "dil".contains(c))
        }),
    })
}

/// Whether fish reads what it is typed.
fn fish_is_interactive(arguments: &[String]) -> bool {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--login" | "--interactive" | "--private" | "--no-config" => {}
            "-C" | "--init-command" => {
                if rest.next().is_none() {
                    return false;
                }
            }
            other if other.starts_with("--init-command=") => {}
            short => {
                let letters = short.strip_prefix('-').unwrap_or_default();
                if letters.is_empty() || !letters.chars().all(|c| "ilPN".contains(c)) {
                    return false;
                }
            }
        }
    }
    true
}

/// One word of a shell's, whatever is in it.
fn quoted(text: &OsStr) -> OsString {
    let mut word = OsString::from("'");
    word.push(OsStr::from_bytes(&replaced(text.as_bytes(), b"'", br"'\''")));
    word.push("'");
    word
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut new = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, from) {
        new.extend_from_slice(&rest[..at]);
        new.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    new.extend_from_slice(rest);
    new
}

fn utf8(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))
}
