//! Argument vectors as the one string that Windows hands to a program, and back to the same vector.
//!
//! A program takes the string apart by itself, almost always with the rules of the C runtime. A
//! batch file is taken apart by `cmd.exe`, whose rules are others: what cannot be said to it without
//! being read as something else is refused. Everything here is UTF-16, as Windows has it.

/// The longest command line that a process can be given, its end included.
const MAX_UNITS: usize = 32_767;

/// The longest that `cmd.exe` reads.
const MAX_CMD_UNITS: usize = 8_191;

/// The longest path that every program takes, its end included.
const MAX_PLAIN_PATH: usize = 260;

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const SPACE: u16 = b' ' as u16;

/// How a batch file is run: no start-up commands of the registry, extensions on, no `!variables!`,
/// and the outer quotes of what follows always taken off.
const CMD_OPTIONS: &str = " /d /e:on /v:off /s /c \"";

/// What no command line can hold.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum QuoteError {
    /// The program's path ends early wherever it is quoted.
    #[error("a program's path cannot contain a quotation mark or a NUL: {0}")]
    Program(String),
    /// A string that ends at its first NUL.
    #[error("an argument contains a NUL, which no program can be given: {0}")]
    Nul(String),
    /// Something that `cmd.exe` would not take as it is.
    #[error(
        "a batch file cannot be given {what}, because cmd.exe would read it as something else: \
         {shown}"
    )]
    Batch {
        /// The character.
        what: &'static str,
        /// The argument.
        shown: String,
    },
    /// It does not fit.
    #[error("the command line is too long for Windows: {units} characters, and {limit} fit")]
    TooLong {
        /// Its length.
        units: usize,
        /// What fits.
        limit: usize,
    },
}

/// The command line of a program. `program` is what it is to see as its own name.
///
/// # Errors
/// When it cannot be said.
pub fn command_line<'a>(
    program: &[u16],
    arguments: impl IntoIterator<Item = &'a [u16]>,
) -> Result<Vec<u16>, QuoteError> {
    // The name is taken apart by a rule of its own, which knows no escapes.
    if program.contains(&QUOTE) || program.contains(&0) {
        return Err(QuoteError::Program(shown(program)));
    }
    let mut line = vec![QUOTE];
    line.extend_from_slice(program);
    line.push(QUOTE);
    for argument in arguments {
        if argument.contains(&0) {
            return Err(QuoteError::Nul(shown(argument)));
        }
        line.push(SPACE);
        push_argument(&mut line, argument, Quotes::WhereNeeded);
    }
    fits(line, MAX_UNITS)
}

/// The command line by which `cmd.exe`, at the path `interpreter`, runs a batch file.
///
/// # Errors
/// When something would not arrive as it is.
pub fn batch_line<'a>(
    interpreter: &[u16],
    script: &'a [u16],
    arguments: impl IntoIterator<Item = &'a [u16]>,
) -> Result<Vec<u16>, QuoteError> {
    let mut line = command_line(interpreter, [])?;
    line.extend(CMD_OPTIONS.encode_utf16());
    for (index, part) in std::iter::once(script).chain(arguments).enumerate() {
        if let Some(what) = part.iter().find_map(|unit| unsayable(*unit)) {
            return Err(QuoteError::Batch { what, shown: shown(part) });
        }
        if index > 0 {
            line.push(SPACE);
        }
        push_argument(&mut line, part, Quotes::Always);
    }
    line.push(QUOTE);
    fits(line, MAX_CMD_UNITS)
}

/// Whether Windows runs a file with `cmd.exe`, by its name. Dots and spaces at the end are no part of
/// a name, so that `x.bat. .` is a batch file too.
pub fn is_batch(program: &[u16]) -> bool {
    let end = program.iter().rposition(|unit| !matches!(*unit, 0x20 | 0x2e)).map_or(0, |at| at + 1);
    let extension: Vec<u16> = program[..end].iter().rev().take(4).rev().copied().collect();
    let extension = String::from_utf16_lossy(&extension).to_ascii_lowercase();
    extension == ".bat" || extension == ".cmd"
}

/// A path without the prefix `\\?\`, which canonical paths have and which `cmd.exe` and others do not
/// work in. A path that means something else without it keeps it.
pub fn plain_path(path: &[u16]) -> &[u16] {
    let prefix: [u16; 4] = [BACKSLASH, BACKSLASH, b'?'.into(), BACKSLASH];
    let Some(plain) = path.strip_prefix(&prefix) else { return path };
    let letter = |unit: &u16| u8::try_from(*unit).is_ok_and(|unit| unit.is_ascii_alphabetic());
    let drive = matches!(plain, [first, 0x3a, BACKSLASH, ..] if letter(first));
    let trimmed = |name: &[u16]| matches!(name.last(), Some(0x20 | 0x2e));
    let exact = plain.split(|unit| *unit == BACKSLASH).any(trimmed);
    if drive && !exact && plain.len() < MAX_PLAIN_PATH { plain } else { path }
}

/// Characters that `cmd.exe` does not leave alone between quotation marks.
fn unsayable(unit: u16) -> Option<&'static str> {
    match char::from_u32(u32::from(unit))? {
        '"' => Some("a quotation mark"),
        '%' => Some("a percent sign"),
        '\n' | '\r' => Some("a line break"),
        '\t' => None,
        '\0'..='\x1f' => Some("a control character"),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Always,
    WhereNeeded,
}

/// Backslashes mean themselves, unless a quotation mark follows; then two mean one.
fn push_argument(line: &mut Vec<u16>, argument: &[u16], quotes: Quotes) {
    let parts = |unit: &u16| matches!(*unit, 0x09..=0x0d | SPACE);
    let quoted = quotes == Quotes::Always || argument.is_empty() || argument.iter().any(parts);
    if quoted {
        line.push(QUOTE);
    }
    let mut backslashes = 0;
    for unit in argument {
        if *unit == QUOTE {
            line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
        }
        backslashes = if *unit == BACKSLASH { backslashes + 1 } else { 0 };
        line.push(*unit);
    }
    if quoted {
        line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
        line.push(QUOTE);
    }
}

fn fits(line: Vec<u16>, limit: usize) -> Result<Vec<u16>, QuoteError> {
    // One more for the NUL behind it.
    match line.len() + 1 {
        units if units > limit => Err(QuoteError::TooLong { units, limit }),
        _ => Ok(line),
    }
}

fn shown(text: &[u16]) -> String {
    String::from_utf16_lossy(text).escape_debug().take(80).collect()
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
