//! Which words of a command name the files that it runs.
//!
//! A yes to `./build.sh` is a yes to what stands in that file. Whoever remembers it has to know which
//! files those are; looking at them is the runtime's. More may be named here than is run, and what is
//! run may not be left out: where a name shows only when the command runs, that is said.

use crate::command::{Connective, RedirectionKind, Shape, SimpleCommand, Word};
use crate::rules::obeys_recipes;
use crate::script::{Reading, read};
use crate::wrapper::code::INTERPRETERS;
use crate::wrapper::{base_name, shell_of, unwrapped, without_version};
use std::collections::BTreeSet;

/// The files that a command runs, by the words that name them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs {
    /// What is run if it names a file: programs with a path, and scripts.
    pub files: BTreeSet<String>,
    /// What may be run if it names a file that can be executed: any other word.
    pub words: BTreeSet<String>,
    /// Bare names of programs, which are looked for.
    pub programs: BTreeSet<String>,
    /// Directories in which it has programs looked for first.
    pub path: BTreeSet<String>,
    /// Directories that it goes to first, in that order.
    pub from: Vec<String>,
    /// Whether something that it runs is known only when it does.
    pub unknown: bool,
    /// Whether what it does stands in files that its words do not name, such as a recipe of make.
    pub obeys: bool,
}

/// Finds the words of a command that name what it runs.
pub fn runs(reading: &Reading) -> Runs {
    let inside = unwrapped(reading);
    let mut found = Runs { unknown: !inside.complete, ..Runs::default() };
    let own = reading.commands.iter().enumerate();
    let all = own.chain(inside.commands.iter().map(|(origin, command)| (*origin, command)));
    let mut goes_somewhere = false;
    for (origin, command) in all {
        goes_somewhere |= !found.add_place(command);
        found.add_variables(command);
        found.add(command, &reading.commands[..=origin]);
    }
    found.unknown |= goes_somewhere && !found.files.is_empty();
    found
}

/// Finds what a script has its shell read beside itself, as `source` and `.` do. What else it runs is not named: that
/// is no part of the script.
pub fn sourced(script: &str) -> Runs {
    let reading = read(&["bash", "-c", script].map(str::to_owned));
    let inside = unwrapped(&reading);
    let all = reading.commands.iter().chain(inside.commands.iter().map(|(_, command)| command));
    let mut found = Runs::default();
    let mut is_lost = false;
    for command in all {
        is_lost |= !found.add_place(command) || command.is_not_searched();
        let words = command.words.iter().map(|word| word.text.as_str());
        let before = words.take_while(|word| matches!(*word, "builtin" | "command")).count();
        let Some((program, arguments)) = command.words[before..].split_first() else { continue };
        if !matches!(program.text.as_str(), "." | "source") {
            continue;
        }
        match arguments.iter().find(|word| word.text != "--") {
            Some(file) if is_known(file) && !file.text.starts_with('-') => {
                found.files.insert(file.text.clone());
                if !file.text.contains('/') {
                    found.programs.insert(file.text.clone());
                }
            }
            Some(_) => found.unknown = true,
            None => {}
        }
    }
    // Where the rest of the script is not searched, or goes somewhere, nobody knows what it reads there.
    found.unknown |= is_lost && (!found.files.is_empty() || is_not_whole(&reading));
    found
}

fn is_not_whole(reading: &Reading) -> bool {
    reading.commands.iter().any(SimpleCommand::is_not_searched)
}

/// Programs that make a text of files or of their words, and nothing else.
const QUOTING: &[&str] = &[
    "base64", "cat", "cut", "echo", "envsubst", "grep", "gunzip", "head", "printf", "sed", "sort",
    "tail", "tr", "zcat",
];

/// Programs that do something to files and run none.
const HANDLING: &[&str] =
    &["chmod", "chown", "cp", "install", "ln", "mkdir", "mv", "rm", "rmdir", "tee", "touch"];

/// Variables by which programs load or run a file, and the interpreter that completes its name. Sorted.
const LOADING: &[(&str, &str)] = &[
    ("BASH_ENV", "bash"),
    ("CLASSPATH", "java"),
    ("DYLD_INSERT_LIBRARIES", ""),
    ("ENV", "sh"),
    ("GIT_CONFIG", ""),
    ("GIT_CONFIG_GLOBAL", ""),
    ("GIT_CONFIG_SYSTEM", ""),
    ("JAVA_TOOL_OPTIONS", "java"),
    ("LD_AUDIT", ""),
    ("LD_PRELOAD", ""),
    ("MAKEFILES", "make"),
    ("NODE_OPTIONS", "node"),
    ("PERL5OPT", "perl"),
    ("PYTHONSTARTUP", "python"),
    ("RIPGREP_CONFIG_PATH", ""),
    ("RUBYOPT", "ruby"),
];

/// By what interpreters take the parts of a name apart, if they do, and how they complete it. Sorted.
const COMPLETED: &[(&str, Option<&str>, &[&str])] = &[
    ("bun", None, MODULES),
    ("deno", None, MODULES),
    ("java", Some("."), &[".class"]),
    ("lua", Some("."), &[".lua"]),
    ("node", None, MODULES),
    ("perl", Some("::"), &[".pm"]),
    ("python", Some("."), &[".py", "/__init__.py", "/__main__.py"]),
    ("ruby", None, &[".rb"]),
    ("ts-node", None, MODULES),
    ("tsx", None, MODULES),
];

/// What modules of JavaScript may be called.
const MODULES: &[&str] = &[
    ".cjs",
    ".cts",
    ".js",
    ".json",
    ".jsx",
    ".mjs",
    ".mts",
    ".node",
    ".ts",
    ".tsx",
    "/index.js",
    "/package.json",
];

/// What make reads where it is told nothing else.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

impl Runs {
    /// The directory that a command goes to, or has a program go to. False if it is not known.
    fn add_place(&mut self, command: &SimpleCommand) -> bool {
        let Some((program, arguments)) = command.words.split_first() else { return true };
        let mut known = true;
        let mut add = |word: &Word| match is_known(word) {
            true => self.from.push(word.text.clone()),
            false => known = false,
        };
        if matches!(program.text.as_str(), "cd" | "chdir" | "pushd") {
            let place = |word: &&Word| !word.text.starts_with(['-', '+']);
            add(arguments.iter().find(place).unwrap_or(&Word::literal("~")));
        }
        for (at, word) in arguments.iter().enumerate() {
            let text = word.text.as_str();
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            match name {
                "-C" | "--chdir" | "--cwd" | "--directory" | "--prefix" if value.is_empty() => {
                    arguments.get(at + 1).into_iter().for_each(&mut add);
                }
                "--chdir" | "--cwd" | "--directory" | "--prefix" => {
                    add(&Word { text: value.to_owned(), shape: word.shape });
                }
                _ => {
                    let attached = text.strip_prefix("-C").filter(|place| !place.is_empty());
                    let attached =
                        attached.map(|place| Word { text: place.to_owned(), ..word.clone() });
                    attached.iter().for_each(&mut add);
                }
            }
        }
        known
    }

    /// What variables have programs run, also those that `env` and `export` set.
    fn add_variables(&mut self, command: &SimpleCommand) {
        let before = command.assignments.iter().map(|one| (one.name.as_str(), one.value.clone()));
        let behind = command.words.iter().filter_map(|word| {
            let (name, value) = word.text.split_once('=')?;
            Some((name, Word { text: value.to_owned(), shape: word.shape }))
        });
        for (name, value) in before.chain(behind) {
            let pieces = value.text.split([':', ' ', '=', ',']);
            let pieces = pieces.filter(|piece| !piece.is_empty() && !piece.contains(['$', '`']));
            let pieces = pieces.map(str::to_owned);
            match name {
                "PATH" => self.path.extend(pieces),
                _ => match LOADING.iter().find(|(loading, _)| *loading == name) {
                    Some((_, interpreter)) => {
                        self.unknown |= !is_known(&value);
                        pieces.for_each(|piece| self.add_option(interpreter, &piece));
                    }
                    None => self.words.extend(pieces),
                },
            }
        }
    }

    /// A file that an interpreter is told of, however it completes the name.
    fn add_named(&mut self, interpreter: &str, name: &str) {
        self.files.insert(name.to_owned());
        let interpreter = without_version(interpreter);
        for (_, apart, ends) in COMPLETED.iter().filter(|(program, ..)| *program == interpreter) {
            let parts = apart.map(|apart| name.replace(apart, "/"));
            for path in parts.iter().map(String::as_str).chain([name]) {
                self.files.extend(ends.iter().map(|end| format!("{path}{end}")));
            }
        }
    }

    /// A word that may be an option with a value: both count.
    fn add_option(&mut self, interpreter: &str, text: &str) {
        let value = text.split_once('=').map(|(_, value)| value);
        let attached = text.strip_prefix(['-', '+']).and_then(|option| option.get(1..));
        for name in
            [Some(text), value, attached].into_iter().flatten().filter(|name| !name.is_empty())
        {
            self.add_named(interpreter, name);
        }
    }

    /// One command, the last of `line` or inside of that one.
    fn add(&mut self, command: &SimpleCommand, line: &[SimpleCommand]) {
        let Some(program) = command.words.first() else { return };
        let name = base_name(&program.text);
        self.obeys |= obeys_recipes(name);
        if !is_known(program) {
            self.unknown = true;
        } else if program.text.contains('/') {
            self.files.insert(program.text.clone());
        } else {
            self.programs.insert(program.text.clone());
        }
        for (at, word) in command.words.iter().enumerate() {
            let inner = base_name(&word.text);
            let is_dot = matches!(inner, "." | "source");
            if !is_known(word) || !reads_a_script(inner) || (at > 0 && is_dot) {
                continue;
            }
            let script = self.script(inner, &command.words[at + 1..], at == 0);
            if at > 0 {
                continue;
            }
            self.add_redirections(command);
            if script == Script::Input {
                self.add_input(line);
            }
        }
        if !HANDLING.contains(&name) {
            let known = command.words.iter().skip(1).filter(|word| is_known(word));
            self.words.extend(known.map(|word| word.text.clone()));
        }
    }

    /// Files that an interpreter is fed with.
    fn add_redirections(&mut self, command: &SimpleCommand) {
        use RedirectionKind::{Read, ReadWrite};
        let fed = command.redirections.iter().filter(|one| matches!(one.kind, Read | ReadWrite));
        for redirection in fed {
            self.unknown |= !is_known(&redirection.target);
            self.files.insert(redirection.target.text.clone());
        }
    }

    /// What is piped into the last command of `line`, which is run.
    fn add_input(&mut self, line: &[SimpleCommand]) {
        let mut at = line.len() - 1;
        while at > 0 && matches!(line[at].connective, Connective::Pipe | Connective::PipeBoth) {
            at -= 1;
            let command = &line[at];
            let quotes = command.program().is_some_and(|name| QUOTING.contains(&base_name(name)));
            self.unknown |= !quotes || !command.words.iter().all(is_known);
            self.files.extend(command.words.iter().skip(1).map(|word| word.text.clone()));
            self.add_redirections(command);
        }
    }

    /// The words behind an interpreter's name that may be its script, and what options load. A word
    /// behind an option may be the option's value, so both it and the next one count.
    fn script(&mut self, name: &str, words: &[Word], surely: bool) -> Script {
        let is_make = matches!(name, "make" | "gmake");
        if is_make {
            self.files.extend(MAKEFILES.map(str::to_owned));
        }
        let (mut may_be_value, mut is_module) = (false, false);
        for word in words {
            let text = word.text.as_str();
            match text {
                "--" => may_be_value = false,
                "-" => return Script::Input,
                _ if is_known(word) && text.starts_with(['-', '+']) => {
                    self.add_option(name, text);
                    match before_code(name, text) {
                        Some(Code::Text) => return Script::Named,
                        Some(Code::Module) => is_module = true,
                        None => {}
                    }
                    may_be_value = true;
                }
                // Every version of it builds what it is told to: only an option names a recipe.
                _ if is_make && !may_be_value => {}
                _ => {
                    self.unknown |= surely && !is_known(word);
                    self.add_named(name, text);
                    if is_module {
                        return Script::Named;
                    }
                    let is_verb = matches!(name, "bun" | "deno" | "tsx")
                        && text.bytes().all(|byte| byte.is_ascii_lowercase());
                    if !may_be_value && !is_verb {
                        let is_input = text.starts_with("/dev/") || text.starts_with("/proc/");
                        return if is_input { Script::Input } else { Script::Named };
                    }
                    may_be_value = false;
                }
            }
        }
        // What may have been a value was perhaps all that was named.
        if is_make { Script::Named } else { Script::Input }
    }
}

/// Where an interpreter finds what it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// A word names it, or is it.
    Named,
    /// It may read it.
    Input,
}

/// Whether the program gets this text, or a path below home.
fn is_known(word: &Word) -> bool {
    match word.shape {
        Shape::Literal => true,
        Shape::Home => !word.text.contains(['$', '`', '*', '?', '[', '{']),
        Shape::Pattern | Shape::Dynamic => false,
    }
}

/// What the word behind an option is, so that no word after it is a script.
#[derive(Clone, Copy)]
enum Code {
    Text,
    Module,
}

/// The options of interpreters behind which code stands, and the letters that may stand before theirs in a group: those
/// of options without a value. Behind any other letter it would be part of a value, as in `-rdate`.
const CODE: &[(&str, char, Code, &str)] = &[
    ("lua", 'e', Code::Text, ""),
    ("node", 'e', Code::Text, "ip"),
    ("perl", 'e', Code::Text, "0TUWXacdlnpstuw"),
    ("php", 'r', Code::Text, "nq"),
    ("python", 'c', Code::Text, "BEIOPRSVbdhiqsuvx"),
    ("python", 'm', Code::Module, "BEIOPRSVbdhiqsuvx"),
    ("ruby", 'e', Code::Text, "Sacdlnpsvw"),
];

fn before_code(name: &str, option: &str) -> Option<Code> {
    let (name, group) = (without_version(name), option.strip_prefix('-')?);
    let mut rows = CODE.iter().filter(|(program, ..)| *program == name);
    let found = rows.find(|(_, letter, _, flags)| {
        group
            .strip_suffix(*letter)
            .is_some_and(|before| before.chars().all(|one| flags.contains(one)))
    });
    found.map(|(_, _, code, _)| *code)
}

/// Interpreters that are not in the table of those that take code in an argument. Sorted.
const OTHERS: &[&str] = &[
    ".", "Rscript", "elixir", "expect", "gdb", "gmake", "groovy", "guile", "java", "julia", "make",
    "mono", "octave", "scala", "source", "swift", "ts-node", "tsx", "wish",
];

fn reads_a_script(name: &str) -> bool {
    OTHERS.contains(&name)
        || shell_of(name).is_some()
        || INTERPRETERS.contains(&name)
        || INTERPRETERS.contains(&without_version(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(argv: &[&str]) -> Runs {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        runs(&read(&argv))
    }

    fn in_bash(script: &str) -> Runs {
        found(&["bash", "-c", script])
    }

    #[track_caller]
    fn assert_named(runs: &Runs, files: &[&str]) {
        for file in files {
            assert!(runs.files.contains(*file), "{file}: {runs:?}");
        }
        assert!(!runs.unknown, "{runs:?}");
    }

    #[test]
    fn programs_with_a_path_and_scripts_of_interpreters_are_named() {
        assert_named(&found(&["./build.sh", "--fast"]), &["./build.sh"]);
        assert_named(&found(&["bash", "-x", "a.sh"]), &["a.sh"]);
        assert_named(&found(&["env", "A=b", "timeout", "9", "tools/x"]), &["tools/x"]);
        assert_named(&found(&["bun", "run", "a.ts"]), &["a.ts"]);
        assert_named(&found(&["java", "-jar", "a.jar"]), &["a.jar"]);
        assert_named(&found(&["make", "-f", "a.mk", "-k"]), &["a.mk", "Makefile"]);
        assert_named(&found(&["python3", "-Im", "a.b"]), &["a/b.py", "a/b/__main__.py"]);
        assert_named(&found(&["some-wrapper", "python3", "a.py"]), &["a.py"]);
        let listed = found(&["ls", "-l", "a.sh"]);
        assert!(listed.files.is_empty() && listed.words.contains("a.sh"), "{listed:?}");
    }

    #[test]
    fn the_value_of_an_option_does_not_stand_for_the_script() {
        let runs = found(&["python3.12", "-W", "ignore", "gen.py", "in"]);
        assert_named(&runs, &["ignore", "gen.py"]);
        assert!(!runs.files.contains("in"), "{runs:?}");
        assert_named(&found(&["node", "-r", "./hook.js", "main.js"]), &["./hook.js", "main.js"]);
        assert_named(&found(&["node", "--require=./hook.js", "a.js"]), &["./hook.js", "a.js"]);
        assert_named(&found(&["ruby", "-r./hook", "a.rb"]), &["./hook.rb", "a.rb"]);
        assert_named(&found(&["bash", "-o", "pipefail", "--", "a.sh"]), &["pipefail", "a.sh"]);
        assert_named(&found(&["ruby", "-rdate", "a.rb"]), &["date", "a.rb"]);
        assert_named(&found(&["perl", "-MData::Tree", "a.pl"]), &["a.pl"]);
        assert_named(&found(&["perl", "-pi.e", "a.pl"]), &["a.pl"]);
        assert_named(&found(&["php", "-dvariables_order", "a.php"]), &["a.php"]);
        assert_named(&found(&["python3", "-Xm", "-X", "dev", "a.py"]), &["a.py"]);
        assert!(!found(&["python3", "-c", "print(1)", "a.json"]).files.contains("a.json"));
        assert!(!found(&["perl", "-lane", "print", "a.txt"]).files.contains("a.txt"));
        assert!(!found(&["make", "all.o"]).files.contains("all.o"));
    }

    #[test]
    fn a_name_that_an_interpreter_completes_is_completed() {
        assert_named(&found(&["python3", "./pkg"]), &["./pkg/__main__.py"]);
        assert_named(&found(&["node", "-r", "./hook", "main"]), &["./hook.js", "main.js"]);
        assert_named(&found(&["node", "."]), &["./index.js", "./package.json"]);
        assert_named(&found(&["perl", "-MA::B", "a.pl"]), &["A/B.pm"]);
        assert_named(&found(&["lua5.4", "-l", "a.b", "c.lua"]), &["a/b.lua"]);
        assert_named(&found(&["java", "-cp", "out", "a.Main"]), &["a/Main.class"]);
        assert_named(&in_bash("RUBYOPT=-r./hook ruby a.rb"), &["./hook.rb"]);
        assert_named(&in_bash("NODE_OPTIONS='-r ./hook' node a"), &["./hook.js", "a.js"]);
    }

    #[test]
    fn scripts_of_a_shell_are_read() {
        let runs = in_bash("cd -P sub && ./one.sh; sudo ./two.sh | sh three.sh; . ./four; cd -- ~");
        assert_eq!(runs.from, ["sub", "~"]);
        assert_named(&runs, &["./one.sh", "./two.sh", "three.sh", "./four"]);
        let mut from = in_bash("make -C sub; env --chdir=deep ./x").from;
        from.dedup();
        assert_eq!(from, ["sub", "deep"]);
    }

    #[test]
    fn what_a_script_has_its_shell_read_is_named() {
        let script = "#!/bin/sh\nset -e\ncd sub\nif [ -e x ]; then . ./a.sh; fi\nsource ~/b\n\
                      command . c.sh\nfor f in *; do cat \"$f\"; done\nfind . -name x\n./run it";
        let found = sourced(script);
        assert_named(&found, &["./a.sh", "~/b", "c.sh"]);
        assert_eq!((found.files.len(), found.from.as_slice()), (3, &["sub".to_owned()][..]));
        for script in
            [". \"$DIR/a.sh\"", "source $(dirname $0)/a", "f() { . ./*.sh; }", "cd $X; . ./a"]
        {
            assert!(sourced(script).unknown, "{script}");
        }
        let long = format!("{}\n. ./late.sh", "echo hello\n".repeat(200_000));
        assert!(sourced(&long).unknown);
        for script in ["", "echo source $X", "cd $X; make", "./a $X", "\u{0}\u{1}(((("] {
            let found = sourced(script);
            assert!(!found.unknown && found.files.is_empty(), "{script}");
        }
    }

    #[test]
    fn what_is_fed_into_an_interpreter_is_named() {
        assert_named(&in_bash("bash < a.sh"), &["a.sh"]);
        assert_named(&in_bash("python3 - < a.py"), &["a.py"]);
        assert_named(&in_bash("cat a.sh b.sh | grep -v x | sudo bash -s"), &["a.sh", "b.sh"]);
        assert_named(&in_bash("cat a.sh | bash /dev/stdin"), &["a.sh"]);
        assert_named(&in_bash("cat a.py | python3 -W ignore"), &["a.py"]);
        assert!(in_bash("./make-script | sh").unknown);
        assert!(!in_bash("cat a.json | python3 tool.py").files.contains("a.json"));
    }

    #[test]
    fn variables_that_load_files_are_named() {
        assert_named(&in_bash("BASH_ENV=./env bash a.sh"), &["./env", "a.sh"]);
        assert_named(&found(&["env", "LD_PRELOAD=./a.so", "ls"]), &["./a.so"]);
        assert_named(&in_bash("NODE_OPTIONS=--require=./a.js node b.js"), &["./a.js", "b.js"]);
        assert!(in_bash("PATH=./bin:$PATH tool").path.contains("./bin"));
        assert!(in_bash("tool").programs.contains("tool"));
        assert!(in_bash("LD_PRELOAD=$X ls").unknown);
    }

    #[test]
    fn a_name_that_shows_only_when_the_command_runs_is_not_known() {
        for script in [
            "bash $X",
            "for f in a.sh b.sh; do bash \"$f\"; done",
            "./tests/*.sh",
            "bash te*.sh",
            "$X",
            "cd $X && ./a.sh",
            "ls *.sh | xargs bash",
            "find . -name '*.sh' -exec {} ';'",
            ". ~/$X",
        ] {
            assert!(in_bash(script).unknown, "{script}");
        }
        for script in ["echo $X", "cd $X && ls", "python3 a.py $X", "for f in *; do cat $f; done"] {
            assert!(!in_bash(script).unknown, "{script}");
        }
    }

    #[test]
    fn programs_that_obey_recipes_are_told_apart() {
        for script in ["make test", "cd sub && npm test", "timeout 9 cargo test"] {
            assert!(in_bash(script).obeys, "{script}");
        }
        assert!(!in_bash("./deploy.sh; curl x; ls").obeys);
    }

    #[test]
    fn the_tables_are_sorted() {
        assert!([QUOTING, HANDLING, OTHERS, MODULES].iter().all(|table| table.is_sorted()));
        assert!(LOADING.is_sorted() && COMPLETED.is_sorted());
    }
}
