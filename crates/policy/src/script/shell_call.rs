//! Whether a command vector calls a shell with a script, and which text the script is.
//!
//! Only the options in these tables are known to leave the meaning of the script alone. Any other
//! makes the call opaque: an interactive shell reads files that nobody looked at, and some options
//! change how words are read.

use super::ShellKind;
use crate::program::is_system_program;

/// What a command vector is to the parser.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call<'a> {
    /// No shell is called with a script.
    Program,
    /// A shell whose language is not read here, with the script if one is in sight.
    OtherShell { name: &'a str, script: Option<&'a str> },
    /// A shell reads this script.
    Script { shell: ShellKind, script: Text<'a>, strange: Option<String> },
}

/// A script as it stands in the vector, or put together from several words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    One(&'a str),
    Joined(String),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::One(text) => text,
            Self::Joined(text) => text,
        }
    }
}

/// What is understood of one shell's own arguments.
struct Shell {
    names: &'static [&'static str],
    kind: ShellKind,
    /// Letters that leave the script's meaning alone, `c` and `o` apart.
    letters: &'static str,
    /// Long options that do.
    long: &'static [&'static str],
}

const SHELLS: &[Shell] = &[
    Shell {
        names: &["bash"],
        kind: ShellKind::Bash,
        // Login, stop at errors, refuse unset names, show lines, show commands.
        letters: "leuvx",
        long: &["--login", "--norc", "--noprofile"],
    },
    Shell { names: &["sh", "dash"], kind: ShellKind::Posix, letters: "leuvx", long: &[] },
    Shell {
        names: &["zsh"],
        kind: ShellKind::Zsh,
        // `f` and `d` read fewer start-up files.
        letters: "leuvxfd",
        long: &["--login"],
    },
];

/// What may follow `-o`.
const OPTIONS: &[&str] = &["errexit", "nounset", "pipefail", "verbose", "xtrace"];

/// Shells whose languages nothing here reads.
const OTHER_SHELLS: &[&str] = &[
    "ash", "csh", "elvish", "fish", "ion", "ksh", "ksh93", "lksh", "mksh", "nu", "oil", "osh",
    "pdksh", "rbash", "rc", "rksh", "rzsh", "tcsh", "xonsh", "yash", "ysh",
];

/// Names of PowerShell, in lower case.
const POWERSHELLS: &[&str] = &[
    "powershell",
    "powershell.exe",
    "pwsh",
    "pwsh.exe",
    r"c:\windows\system32\windowspowershell\v1.0\powershell.exe",
    r"c:\program files\powershell\7\pwsh.exe",
];

/// Switches of PowerShell that leave the script's meaning alone, in lower case.
const POWERSHELL_SWITCHES: &[&str] = &["-nologo", "-noprofile", "-nop", "-noninteractive", "-noni"];

/// Names of cmd, in lower case.
const CMDS: &[&str] = &["cmd", "cmd.exe", r"c:\windows\system32\cmd.exe"];

/// Recognises a call of a shell.
pub(super) fn recognise(argv: &[String]) -> Call<'_> {
    let Some((program, arguments)) = argv.split_first() else {
        return Call::Program;
    };
    if let Some(name) = is_system_program(program) {
        if let Some(shell) = SHELLS.iter().find(|shell| shell.names.contains(&name)) {
            return unix_shell(shell, arguments);
        }
        if OTHER_SHELLS.contains(&name) {
            return Call::OtherShell { name, script: script_in_sight(arguments) };
        }
    }
    // Only a name that can be one of these is worth a copy in lower case.
    if program.len() > 3 && program.is_ascii() && has_windows_shell_in_it(program) {
        let name = program.to_ascii_lowercase();
        let name = name.strip_prefix("/usr/bin/").unwrap_or(&name);
        if POWERSHELLS.contains(&name) {
            return powershell(arguments);
        }
        if CMDS.contains(&name) {
            return cmd(arguments);
        }
    } else if program.eq_ignore_ascii_case("cmd") {
        return cmd(arguments);
    }
    Call::Program
}

/// A cheap look that lets nearly every other program pass by.
fn has_windows_shell_in_it(program: &str) -> bool {
    let bytes = program.as_bytes();
    let ends = |tail: &[u8]| {
        bytes.len() >= tail.len() && bytes[bytes.len() - tail.len()..].eq_ignore_ascii_case(tail)
    };
    ends(b".exe") || ends(b"pwsh") || ends(b"shell")
}

/// The arguments of bash, sh, dash or zsh.
fn unix_shell<'a>(shell: &Shell, arguments: &'a [String]) -> Call<'a> {
    let mut strange: Option<String> = None;
    let mut has_script = false;
    let mut rest = arguments.iter();
    let mut script = None;
    while let Some(argument) = rest.next() {
        if argument == "-" || argument == "--" {
            // Options end here. Nobody writes that who does not want to hide what follows.
            note(&mut strange, argument);
            script = rest.next();
            break;
        } else if let Some(long) = argument.strip_prefix("--") {
            // These print and end, or take a file: there is no script in sight yet.
            if !shell.long.contains(&argument.as_str()) {
                note(&mut strange, &format!("--{long}"));
                if matches!(long, "rcfile" | "init-file") {
                    rest.next();
                }
            }
        } else if let Some(letters) = argument.strip_prefix(['-', '+']).filter(|l| !l.is_empty()) {
            if has_script && shell.kind == ShellKind::Zsh {
                // zsh takes the word after its options; which words those are is its own affair.
                note(&mut strange, argument);
            }
            for letter in letters.chars() {
                match letter {
                    'c' if argument.starts_with('-') => has_script = true,
                    'o' if argument.starts_with('-') => {
                        let option = rest.next();
                        if !option.is_some_and(|option| OPTIONS.contains(&option.as_str())) {
                            note(&mut strange, &format!("-o {}", option.map_or("", |o| o)));
                        }
                    }
                    _ if argument.starts_with('-') && shell.letters.contains(letter) => {}
                    'O' | 'o' => {
                        note(&mut strange, argument);
                        rest.next();
                    }
                    _ => note(&mut strange, argument),
                }
            }
        } else {
            script = Some(argument);
            break;
        }
    }
    match script.filter(|_| has_script) {
        Some(script) => Call::Script { shell: shell.kind, script: Text::One(script), strange },
        // A file of commands, a question for the version, or nothing at all.
        None => Call::Program,
    }
}

fn note(strange: &mut Option<String>, option: &str) {
    strange.get_or_insert_with(|| {
        format!("the shell is called with {option}, which can change what the script means")
    });
}

/// The text after the first option with a `c` in it.
fn script_in_sight(arguments: &[String]) -> Option<&str> {
    let is_option = |word: &String| word.starts_with('-') && word.contains('c');
    let at = arguments.iter().position(is_option)?;
    arguments.get(at + 1).map(String::as_str)
}

/// The arguments of PowerShell: everything after `-Command` is the script.
fn powershell(arguments: &[String]) -> Call<'_> {
    for (at, argument) in arguments.iter().enumerate() {
        let option = argument.to_ascii_lowercase();
        if matches!(option.as_str(), "-command" | "-c") {
            let script = join(&arguments[at + 1..]);
            return Call::Script { shell: ShellKind::PowerShell, script, strange: None };
        }
        if !POWERSHELL_SWITCHES.contains(&option.as_str()) {
            // A file, an encoded script, a start-up setting, or a script without `-Command`.
            let script = join(&arguments[at..]);
            let mut strange = None;
            note(&mut strange, argument);
            return Call::Script { shell: ShellKind::PowerShell, script, strange };
        }
    }
    Call::Program
}

/// The arguments of cmd: everything after `/c` is the script.
fn cmd(arguments: &[String]) -> Call<'_> {
    let Some(at) = arguments.iter().position(|word| {
        word.get(..2).is_some_and(|start| {
            start.eq_ignore_ascii_case("/c") || start.eq_ignore_ascii_case("/k")
        })
    }) else {
        return Call::Program;
    };
    let mut strange = None;
    if at != 0 || !arguments[0].eq_ignore_ascii_case("/c") {
        note(&mut strange, &arguments[..=at].join(" "));
    }
    Call::Script { shell: ShellKind::Cmd, script: join(&arguments[at + 1..]), strange }
}

fn join(words: &[String]) -> Text<'_> {
    match words {
        [one] => Text::One(one),
        words => Text::Joined(words.join(" ")),
    }
}
