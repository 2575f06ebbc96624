//! What a script may run, as data: simple commands, their words and their redirections.
//!
//! Nothing here is expanded or looked up. A word is either known to the letter, or its shape says
//! what is not known about it, and whoever judges it decides what that is worth.

/// One simple command of a script, or a whole command that no shell reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// How it hangs on the command before it.
    pub connective: Connective,
    /// `NAME=value` before the program's name.
    pub assignments: Vec<Assignment>,
    /// The program's name and its arguments. Empty where a command only assigns or redirects.
    pub words: Vec<Word>,
    /// Where its descriptors lead, in the order they were written.
    pub redirections: Vec<Redirection>,
    /// Whether `&` stands behind it, so that nobody waits for it: also where nothing follows.
    pub left_running: bool,
}

/// How a command hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connective {
    /// It is the first.
    #[default]
    First,
    /// `;` or a new line.
    Then,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`: it reads what the one before it writes.
    Pipe,
    /// `|&`: also what that one writes to standard error.
    PipeBoth,
    /// `&` after the one before it, which goes on beside this one.
    Beside,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word after quoting was undone; for shapes other than a literal, as it was written.
    pub text: String,
    /// What is known about it.
    pub shape: Shape,
}

/// What is known about a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The program gets exactly this text.
    Literal,
    /// A file name pattern without quotes in it: the program gets the names that it matches, or
    /// the pattern itself. The text up to its first `*`, `?` or `[` begins each of them.
    Pattern,
    /// `~` or `~/…`: the program gets the person's home directory in the place of `~`. Only in what
    /// was not understood can the rest hold a pattern or an expansion.
    Home,
    /// It is made while the script runs: nothing is known. Found only in what was not understood.
    Dynamic,
}

/// `NAME=value` before a program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: Word,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The descriptor that is written before it, if one is.
    pub descriptor: Option<u32>,
    /// What it does.
    pub kind: RedirectionKind,
    /// The file, the other descriptor (`1`, `-`), or the text that is fed in.
    pub target: Word,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    /// `<`
    Read,
    /// `>`
    Write,
    /// `>|`
    Clobber,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>` or `>&` before a file name: standard output and standard error.
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<&` or `>&` before a descriptor or `-`.
    Duplicate,
    /// `<<`
    HereDocument,
    /// `<<<`
    HereString,
}

impl RedirectionKind {
    /// Whether the target is a file that is written to, or made.
    pub fn writes(self) -> bool {
        match self {
            Self::Write
            | Self::Clobber
            | Self::Append
            | Self::ReadWrite
            | Self::WriteBoth
            | Self::AppendBoth => true,
            Self::Read | Self::Duplicate | Self::HereDocument | Self::HereString => false,
        }
    }
}

impl Word {
    /// A word that is known to the letter.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), shape: Shape::Literal }
    }

    /// The text, if the program gets exactly that.
    pub fn as_literal(&self) -> Option<&str> {
        (self.shape == Shape::Literal).then_some(self.text.as_str())
    }
}

/// Stands in the place of the commands of a script that nobody looked at.
const NOT_SEARCHED: &str = "… (the rest is too long to be searched)";

impl SimpleCommand {
    /// What stands for the rest of a script where a bound on reading it was reached. Whoever looks for
    /// what must not be takes it for the worst.
    pub(crate) fn not_searched() -> Self {
        let rest = Word { text: NOT_SEARCHED.to_owned(), shape: Shape::Dynamic };
        Self { connective: Connective::Then, words: vec![rest], ..Self::default() }
    }

    /// Whether it stands for commands that nobody looked at.
    pub(crate) fn is_not_searched(&self) -> bool {
        matches!(self.words.as_slice(), [only]
            if only.shape == Shape::Dynamic && only.text == NOT_SEARCHED)
    }

    /// A command that no shell reads.
    pub fn from_argv(argv: &[String]) -> Self {
        let words = argv.iter().map(Word::literal).collect();
        Self { words, ..Self::default() }
    }

    /// The program's name, if it is known to the letter.
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::as_literal)
    }

    /// Every word, if all of them are known to the letter.
    pub fn literal_words(&self) -> Option<Vec<&str>> {
        self.words.iter().map(Word::as_literal).collect()
    }
}
