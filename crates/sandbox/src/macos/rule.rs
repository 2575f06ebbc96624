//! The rules of a profile that depend on a session, as data and as text.

use std::fmt;

/// Which paths a rule is about. Paths are named by their parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filter {
    /// This path only.
    Literal(String),
    /// This path and everything beneath it.
    Subpath(String),
    /// Any path with a component that is this name in other letters, `.GIT` for `.git`. Most disks
    /// of a Mac take both for the same, and Seatbelt does not.
    Respelled(&'static str),
    /// None of these.
    Not(Box<Filter>),
    /// All of these at once.
    All(Vec<Filter>),
}

impl Filter {
    pub(super) fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(parameter) => write!(f, "(literal (param \"{parameter}\"))"),
            Self::Subpath(parameter) => write!(f, "(subpath (param \"{parameter}\"))"),
            Self::Respelled(name) => write!(f, "(regex #\"{}\")", respelled(name)),
            Self::Not(filter) => write!(f, "(require-not {filter})"),
            Self::All(filters) => {
                f.write_str("(require-all")?;
                for filter in filters {
                    write!(f, "\n    {filter}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// An expression for a name in which at least one letter is a capital: one alternative for each
/// letter that may be the one. The name itself does not match, so that nothing has to be taken out.
fn respelled(name: &str) -> String {
    let letters = || name.chars().filter(char::is_ascii_lowercase);
    let alternative = |capital: usize| -> String {
        let one = |(index, letter): (usize, char)| {
            let upper = letter.to_ascii_uppercase();
            if index == capital { upper.to_string() } else { format!("[{letter}{upper}]") }
        };
        letters().enumerate().map(one).collect()
    };
    let alternatives: Vec<String> = (0..letters().count()).map(alternative).collect();
    format!("/\\.({})(/|$)", alternatives.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_other_letters_is_one_with_a_capital_somewhere() {
        assert_eq!(respelled(".ab"), r"/\.(A[bB]|[aA]B)(/|$)");
    }
}
