//! What PowerShell runs: cmdlets that only show, by their own names and their usual aliases.
//!
//! Names and parameters count in any case, but parameters only when they are written out, since an
//! abbreviation can mean another one in another version. Paths must be plain: `\\host\share`
//! connects, and so can a drive whose name is longer than a letter.

use super::options::Seen;
use super::{NotSafe, git, options, search, shown, unknown};
use crate::command::{Shape, Word};

/// A cmdlet that only shows.
struct Cmdlet {
    /// Its name, and its aliases.
    names: &'static [&'static str],
    /// Parameters without a value.
    switches: &'static [&'static str],
    /// Parameters with a value. Not -OutVariable, -PipelineVariable and their like: set variables.
    valued: &'static [&'static str],
}

/// Each cmdlet's names (not the alias `write`, which is a program elsewhere), switches and parameters, in small letters.
#[rustfmt::skip] // A table, laid out by hand.
const CMDLETS: &[Cmdlet] = &[
    Cmdlet {
        names: &["get-childitem", "ls", "dir", "gci"],
        switches: &["-directory", "-file", "-force", "-hidden", "-name", "-readonly", "-recurse", "-system"],
        valued: &["-depth", "-exclude", "-filter", "-include", "-literalpath", "-path"],
    },
    // Not -Wait: it never ends.
    Cmdlet {
        names: &["get-content", "cat", "gc", "type"],
        switches: &["-force", "-raw"],
        valued: &["-encoding", "-first", "-head", "-literalpath", "-path", "-readcount", "-tail", "-totalcount"],
    },
    Cmdlet {
        names: &["select-string", "sls"],
        switches: &["-allmatches", "-casesensitive", "-list", "-notmatch", "-quiet", "-raw", "-simplematch"],
        valued: &["-context", "-encoding", "-exclude", "-include", "-literalpath", "-path", "-pattern"],
    },
    Cmdlet { names: &["get-location", "gl", "pwd"], switches: &[], valued: &[] },
    Cmdlet { names: &["get-date"], switches: &[], valued: &["-format", "-uformat"] },
    Cmdlet { names: &["get-item", "gi"], switches: &["-force"], valued: &["-literalpath", "-path"] },
    Cmdlet { names: &["get-process", "gps", "ps"], switches: &[], valued: &["-id", "-name"] },
    Cmdlet {
        names: &["get-filehash"],
        switches: &[],
        valued: &["-algorithm", "-literalpath", "-path"],
    },
    Cmdlet {
        names: &["measure-object", "measure"],
        switches: &["-average", "-character", "-line", "-maximum", "-minimum", "-sum", "-word"],
        valued: &["-property"],
    },
    Cmdlet { names: &["resolve-path", "rvpa"], switches: &["-relative"], valued: &["-literalpath", "-path"] },
    Cmdlet {
        names: &["select-object", "select"],
        switches: &["-unique"],
        valued: &["-expandproperty", "-first", "-last", "-property", "-skip"],
    },
    Cmdlet {
        names: &["sort-object", "sort"],
        switches: &["-casesensitive", "-descending", "-unique"],
        valued: &["-property"],
    },
    Cmdlet { names: &["split-path"], switches: &["-leaf", "-parent"], valued: &["-path"] },
    Cmdlet {
        names: &["test-path"],
        switches: &[],
        valued: &["-literalpath", "-path", "-pathtype"],
    },
    Cmdlet { names: &["format-list", "fl", "format-table", "ft"], switches: &["-autosize", "-wrap"], valued: &["-property"] },
    Cmdlet { names: &["write-output", "echo", "write-host"], switches: &["-nonewline"], valued: &[] },
    Cmdlet { names: &["set-location", "cd", "chdir", "sl"], switches: &[], valued: &["-literalpath", "-path"] },
];

/// Whether a command of a PowerShell script is known to be safe.
pub(super) fn check(name: &str, arguments: &[Word]) -> Result<(), NotSafe> {
    if let Some(word) = arguments.iter().find(|word| !is_plain(word)) {
        let text = shown(&word.text);
        return Err(NotSafe(format!("what {} does with {text} is not known", shown(name))));
    }
    // To others than Windows these are no names of cmdlets, but programs of the system.
    if !cfg!(windows) && ["cat", "ls", "ps", "sort"].contains(&name) {
        super::check_program(name, arguments)?;
    }
    let has_name = |cmdlet: &&Cmdlet| cmdlet.names.iter().any(|own| own.eq_ignore_ascii_case(name));
    match CMDLETS.iter().find(has_name) {
        Some(cmdlet) => check_cmdlet(cmdlet, arguments),
        // Older versions put a word with a blank in quotes and forget that a backslash before the
        // last of them takes it away.
        None if arguments.iter().any(|word| is_cut(&word.text)) => Err(unknown(name)),
        None if name == "git" => git::check(arguments),
        None if name == "rg" => {
            let Some(rg) = options::named_in(search::PROGRAMS, "rg") else {
                return Err(unknown(name));
            };
            options::walk(rg, arguments, &mut |_: Seen<'_>| Ok(()))
        }
        None => Err(unknown(name)),
    }
}

fn is_cut(text: &str) -> bool {
    text.ends_with('\\') && text.contains(char::is_whitespace)
}

/// Whether a path leads to another computer: `\\host\share`, with slashes of either kind, or one of
/// the kernel's own names, which can.
pub(super) fn is_remote(path: &str) -> bool {
    let slash = |byte: u8| matches!(byte, b'/' | b'\\');
    match path.as_bytes() {
        [first, second, ..] => slash(*first) && (slash(*second) || *second == b'?'),
        _ => false,
    }
}

fn check_cmdlet(cmdlet: &Cmdlet, arguments: &[Word]) -> Result<(), NotSafe> {
    for word in arguments.iter().filter(|word| word.text.starts_with('-')) {
        let known = |list: &[&str]| list.iter().any(|own| own.eq_ignore_ascii_case(&word.text));
        if !known(cmdlet.switches) && !known(cmdlet.valued) {
            let (parameter, name) = (shown(&word.text), cmdlet.names[0]);
            return Err(NotSafe(format!(
                "the parameter {parameter} of {name} is not among those known to be safe"
            )));
        }
    }
    Ok(())
}

/// A word that is the same to PowerShell and to a program that it starts, and names nothing on
/// another computer. Older versions pass a quotation mark on so that it ends the argument.
fn is_plain(word: &Word) -> bool {
    let text = word.text.as_str();
    let drive = text.as_bytes().get(1) == Some(&b':') && !text[2..].contains(':');
    let special = ['"', '$', '`', '(', ')', '{', '}', '@', ';', '|', '&', '<', '>'];
    word.shape != Shape::Dynamic
        && !is_remote(text)
        && !text.contains("\\\\")
        && !text.contains("//")
        && (drive || !text.contains(':'))
        && !text.contains(special)
        // Dashes that PowerShell takes for a hyphen.
        && !text.starts_with(['\u{2013}', '\u{2014}', '\u{2015}'])
}
