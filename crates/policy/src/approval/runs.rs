//! Which words of a command name the files that it runs.
//!
//! A yes to `./build.sh` is a yes to what stands in that file. Whoever remembers it has to know which
//! files those are; looking at them is the runtime's.

use crate::command::{Shape, SimpleCommand};
use crate::script::Reading;
use crate::wrapper::code::INTERPRETERS;
use crate::wrapper::{base_name, shell_of, unwrapped};

/// The files that a command runs, by the words that name them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// For each file the words that may name it: the first of them that names a file does.
    pub files: Vec<Vec<String>>,
    /// Directories that it goes to first.
    pub from: Vec<String>,
}

/// Finds the words of a command that name what it runs.
pub fn runs(reading: &Reading) -> Runs {
    let inside = unwrapped(reading).commands.into_iter().map(|(_, command)| command);
    let all = reading.commands.iter().cloned().chain(inside);
    let mut found = Runs::default();
    for command in all {
        for words in of(&command) {
            if !found.files.contains(&words) {
                found.files.push(words);
            }
        }
        if let [name, place, ..] = command.words.as_slice()
            && matches!(name.text.as_str(), "cd" | "pushd")
            && !found.from.contains(&place.text)
        {
            found.from.push(place.text.clone());
        }
    }
    found
}

/// The program, and what an interpreter reads: options are left out, and one of their values may stand
/// before the script.
fn of(command: &SimpleCommand) -> Vec<Vec<String>> {
    let Some((program, arguments)) = command.words.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    if program.text.contains('/') {
        found.push(vec![program.text.clone()]);
    }
    if reads_a_script(base_name(&program.text)) {
        let candidates = arguments.iter().filter(|word| {
            matches!(word.shape, Shape::Literal | Shape::Home) && !word.text.starts_with('-')
        });
        let candidates: Vec<String> = candidates.map(|word| word.text.clone()).collect();
        if !candidates.is_empty() {
            found.push(candidates);
        }
    }
    found
}

fn reads_a_script(name: &str) -> bool {
    let plain = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    matches!(name, "." | "source" | "make" | "gmake" | "Rscript" | "julia" | "ts-node" | "tsx")
        || shell_of(name).is_some()
        || INTERPRETERS.iter().any(|interpreter| [name, plain].contains(interpreter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::read;

    fn found(argv: &[&str]) -> Vec<Vec<String>> {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        runs(&read(&argv)).files
    }

    #[test]
    fn programs_with_a_path_and_scripts_of_interpreters_are_named() {
        assert_eq!(found(&["./build.sh", "--fast"]), [["./build.sh"]]);
        assert_eq!(
            found(&["python3.12", "-W", "ignore", "gen.py", "in"]),
            [["ignore", "gen.py", "in"]]
        );
        assert_eq!(found(&["bash", "-x", "a.sh"]), [["a.sh"]]);
        assert_eq!(found(&["env", "A=b", "timeout", "9", "tools/x"]), [["tools/x"]]);
        assert_eq!(found(&["ls", "-l", "a.sh"]), [] as [Vec<String>; 0]);
    }

    #[test]
    fn scripts_of_a_shell_are_read() {
        let script = "cd sub && ./one.sh; sudo ./two.sh | sh three.sh; . ./four";
        let argv = ["bash", "-lc", script].map(str::to_owned);
        let Runs { files: found, from } = runs(&read(&argv));
        assert_eq!(from, ["sub"]);
        for file in ["./one.sh", "./two.sh", "three.sh", "./four"] {
            assert!(
                found.iter().any(|words| words.contains(&file.to_owned())),
                "{file}: {found:?}"
            );
        }
    }
}
