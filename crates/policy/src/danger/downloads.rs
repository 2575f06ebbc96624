//! Running what nobody has read: a download handed to a shell or an interpreter, by a pipe, by a
//! substitution, by a variable or by a file; and a script that comes out of a decoder.

use crate::command::{Connective, RedirectionKind, Shape, SimpleCommand, Word};
use crate::wrapper::{self, DEPTH, base_name, shell_of};

/// Programs that bring text from elsewhere.
const FETCHING: &[&str] = &[
    "aria2c",
    "axel",
    "curl",
    "fetch",
    "ftp",
    "gh",
    "http",
    "https",
    "httpie",
    "invoke-restmethod",
    "invoke-webrequest",
    "irm",
    "iwr",
    "lwp-request",
    "lynx",
    "nc",
    "ncat",
    "netcat",
    "scp",
    "telnet",
    "w3m",
    "wget",
    "wget2",
    "xh",
    "start-bitstransfer",
];

/// Programs that turn one text into another, with the words that make them decode.
#[rustfmt::skip]
const DECODING: &[(&str, &[&str])] = &[
    ("base32", &["-d", "--decode", "-D"]),
    ("base64", &["-d", "--decode", "-D", "-di"]),
    ("basenc", &["-d", "--decode"]),
    ("bunzip2", &[""]),
    ("bzcat", &[""]),
    ("bzip2", &["-d", "-dc", "-cd", "--decompress"]),
    ("gpg", &["-d", "--decrypt"]),
    ("gunzip", &[""]),
    ("gzip", &["-d", "-dc", "-cd", "--decompress", "--uncompress"]),
    ("openssl", &["-d"]),
    ("rev", &[""]),
    ("uudecode", &[""]),
    ("xxd", &["-r", "-rp", "-p"]),
    ("xz", &["-d", "-dc", "-cd", "--decompress"]),
    ("xzcat", &[""]),
    ("zcat", &[""]),
    ("zstd", &["-d", "-dc", "-cd", "--decompress"]),
    ("zstdcat", &[""]),
];

/// Interpreters that run their input when they are given no code and no file.
const INTERPRETERS: &[&str] = &[
    "awk",
    "bun",
    "deno",
    "lua",
    "node",
    "perl",
    "php",
    "python",
    "python2",
    "python3",
    "ruby",
    "tclsh",
    "powershell",
    "pwsh",
    "iex",
    "invoke-expression",
    "osascript",
    "psql",
];

/// What a list of commands has brought so far.
#[derive(Default)]
pub(super) struct Downloads {
    /// Names of files, with where they come from.
    files: Vec<(String, String)>,
    /// Names of variables, with where what they hold comes from.
    variables: Vec<(String, String)>,
}

impl Downloads {
    /// Whether the command at `index` runs a download.
    pub(super) fn check(&mut self, list: &[SimpleCommand], index: usize) -> Option<String> {
        let command = &list[index];
        let reason = piped(list, index)
            .or_else(|| substituted(command, &self.variables))
            .or_else(|| self.run_from_file(command));
        if index + 1 < list.len() {
            self.remember(command);
        }
        reason
    }

    fn remember(&mut self, command: &SimpleCommand) {
        for assignment in &command.assignments {
            if let Some(source) = fetched_in(&assignment.value) {
                self.variables.push((assignment.name.clone(), source));
            }
        }
        let Some(name) = name_of(command) else { return };
        if matches!(name, "export" | "local" | "declare" | "readonly") {
            for word in &command.words[1..] {
                if let (Some((name, _)), Some(source)) =
                    (word.text.split_once('='), fetched_in(word))
                {
                    self.variables.push((name.to_owned(), source));
                }
            }
        }
        let Some(source) = fetches(command, DEPTH) else { return };
        let mut words = command.words.iter().skip(1).peekable();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            let named = text.starts_with('-')
                && (matches!(text, "--output" | "--output-document" | "--out" | "-OutFile")
                    || (!text.starts_with("--") && text.ends_with(['o', 'O'])));
            if let (true, Some(next)) = (named, words.peek()) {
                self.files.push((last_part(&next.text).to_owned(), source.clone()));
            }
            let attached =
                text.strip_prefix("--output=").or_else(|| text.strip_prefix("--output-document="));
            if let Some(file) = attached.or_else(|| text.strip_prefix("-o")) {
                self.files.push((last_part(file).to_owned(), source.clone()));
            }
            if text.contains("://") {
                let path = text.split(['?', '#']).next().unwrap_or(text);
                self.files.push((last_part(path).to_owned(), source.clone()));
            }
        }
        for redirection in &command.redirections {
            if redirection.kind.writes() {
                self.files.push((last_part(&redirection.target.text).to_owned(), source.clone()));
            }
        }
    }

    fn run_from_file(&self, command: &SimpleCommand) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        let first = command.words.first()?;
        let known = |text: &str| {
            let name = last_part(text);
            self.files.iter().find(|(file, _)| !file.is_empty() && file == name)
        };
        let mut found = if first.text.contains('/') { known(&first.text) } else { None };
        let name = base_name(&first.text);
        if runs_files(name) {
            let inputs = command.redirections.iter().filter(|r| r.kind == RedirectionKind::Read);
            let texts =
                command.words[1..].iter().chain(inputs.map(|redirection| &redirection.target));
            found = found.or_else(|| texts.map(|word| word.text.as_str()).find_map(known));
        }
        found.map(|(file, source)| format!("runs {file}, which it downloads from {source}"))
    }
}

fn runs_files(name: &str) -> bool {
    shell_of(name).is_some() || INTERPRETERS.contains(&name) || matches!(name, "." | "source")
}

fn last_part(text: &str) -> &str {
    text.trim_end_matches(['/', '"', '\'']).rsplit(['/', '\\']).next().unwrap_or(text)
}

fn name_of(command: &SimpleCommand) -> Option<&str> {
    command
        .words
        .first()
        .filter(|word| word.shape != Shape::Dynamic)
        .map(|word| base_name(&word.text))
}

/// Where a command brings text from, if it does, through its wrappers.
fn fetches(command: &SimpleCommand, depth: usize) -> Option<String> {
    let name = name_of(command)?;
    if is_fetching(name) {
        return Some(source(command.words.iter().map(|word| word.text.as_str())));
    }
    if depth == 0 {
        return None;
    }
    wrapper::inner(command).iter().find_map(|inner| fetches(inner, depth - 1))
}

fn is_fetching(name: &str) -> bool {
    FETCHING.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The machine that words name.
fn source<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut likely = None;
    for word in words.skip(1) {
        if let Some((_, rest)) = word.split_once("://") {
            let host = rest.split(['/', '?', '#', '"', '\'', ')']).next().unwrap_or(rest);
            return host.rsplit('@').next().unwrap_or(host).to_owned();
        }
        let host = word.split('/').next().unwrap_or(word);
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:".contains(letter);
        if !word.starts_with('-') && host.contains('.') && host.chars().all(plain) {
            likely.get_or_insert(host);
        }
    }
    likely.unwrap_or("elsewhere").to_owned()
}

/// Whether a command runs what it reads, through its wrappers.
fn runs_its_input(command: &SimpleCommand, depth: usize) -> Option<String> {
    let name = name_of(command)?;
    let lower = name.to_ascii_lowercase();
    let rest = &command.words[1..];
    if shell_of(name).is_some() {
        let option = |word: &&Word| word.text.starts_with(['-', '+']);
        let options: Vec<&Word> = rest.iter().take_while(option).collect();
        let letter = |letter: char| {
            options.iter().any(|word| !word.text.starts_with("--") && word.text.contains(letter))
        };
        let file = rest.get(options.len());
        let input = file
            .is_none_or(|word| matches!(word.text.as_str(), "/dev/stdin" | "pipefail" | "errexit"));
        return (letter('s') || (!letter('c') && input)).then(|| name.to_owned());
    }
    if matches!(name, "." | "source") {
        let input = rest.first().is_some_and(|word| {
            matches!(word.text.as_str(), "/dev/stdin" | "-" | "/proc/self/fd/0")
        });
        return input.then(|| name.to_owned());
    }
    if INTERPRETERS.contains(&lower.as_str()) {
        let input = match lower.as_str() {
            "iex" | "invoke-expression" => true,
            "awk" | "psql" => false,
            _ => rest.iter().all(|word| is_input(&word.text)),
        };
        return input.then(|| name.to_owned());
    }
    if depth == 0 {
        return None;
    }
    let inner = wrapper::inner(command);
    let by_xargs = matches!(name, "xargs" | "parallel");
    inner.iter().find_map(|inner| {
        let runs_script = by_xargs
            && name_of(inner).is_some_and(|name| {
                shell_of(name).is_some()
                    && inner.words.iter().any(|word| word.text == "-c")
                    && inner.words.last().is_some_and(|word| word.shape == Shape::Dynamic)
            });
        if runs_script {
            name_of(inner).map(str::to_owned)
        } else {
            runs_its_input(inner, depth - 1)
        }
    })
}

/// An argument with which an interpreter still reads its input: `-`, or an option without code.
fn is_input(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin" | "--")
        || (text.starts_with('-')
            && !matches!(
                text,
                "-c" | "-e"
                    | "-m"
                    | "-E"
                    | "-r"
                    | "-p"
                    | "-n"
                    | "-ne"
                    | "-pe"
                    | "-lane"
                    | "-V"
                    | "--version"
                    | "--eval"
                    | "-Command"
                    | "-File"
                    | "-h"
                    | "--help"
            )
            && !text.starts_with("-e")
            && !text.starts_with("-c")
            && !text.starts_with("-n")
            && !text.starts_with("-p"))
}

fn piped(list: &[SimpleCommand], index: usize) -> Option<String> {
    let is_pipe = |command: &SimpleCommand| {
        matches!(command.connective, Connective::Pipe | Connective::PipeBoth)
    };
    if !is_pipe(&list[index]) {
        return None;
    }
    let mut at = index;
    if let Some(target) = fetches(&list[index], DEPTH) {
        return given_away(list, index, &target);
    }
    let runner = runs_its_input(&list[index], DEPTH)?;
    let mut decoder = None;
    while at > 0 && is_pipe(&list[at]) {
        at -= 1;
        if let Some(source) = fetches(&list[at], DEPTH) {
            return Some(format!("runs what it downloads from {source}, in {runner}"));
        }
        decoder = decoder.or_else(|| decodes(&list[at]));
    }
    decoder.map(|decoder| format!("runs in {runner} what {decoder} makes readable only then"))
}

/// A shell, or all variables, handed to a machine by a pipe.
fn given_away(list: &[SimpleCommand], index: usize, target: &str) -> Option<String> {
    let before = &list[index.checked_sub(1)?];
    let alone = before.words.len() == 1;
    match name_of(before)? {
        "env" | "printenv" | "export" | "set" if alone => {
            Some(format!("sends every variable, keys among them, to {target}"))
        }
        name if shell_of(name).is_some() && runs_its_input(before, 0).is_some() => {
            Some(format!("lets whoever is at {target} run commands here, in {name}"))
        }
        _ => None,
    }
}

fn decodes(command: &SimpleCommand) -> Option<&str> {
    let name = name_of(command)?;
    let (_, options) = DECODING.iter().find(|(known, _)| *known == name)?;
    let decodes = options.contains(&"")
        || command.words.iter().any(|word| options.contains(&word.text.as_str()));
    decodes.then_some(name)
}

/// `sh -c "$(curl …)"`, `bash <(curl …)`, `eval "$X"` after `X=$(curl …)`, `iex (iwr …)`.
fn substituted(command: &SimpleCommand, variables: &[(String, String)]) -> Option<String> {
    let name = name_of(command).unwrap_or("");
    let powershell = ["iex", "invoke-expression"].iter().any(|n| name.eq_ignore_ascii_case(n));
    let known = |word: &Word| word.shape == Shape::Literal;
    if !powershell && command.redirections.is_empty() && command.words.iter().all(known) {
        return None;
    }
    let runs = powershell
        || runs_files(name)
        || matches!(name, "eval" | "exec" | "env" | "sudo" | "xargs" | "command");
    let itself = command.words.first().filter(|word| word.shape == Shape::Dynamic);
    let words = if runs { command.words.get(1..).unwrap_or_default() } else { &[] };
    let fed = command.redirections.iter().filter(|redirection| {
        runs && matches!(redirection.kind, RedirectionKind::Read | RedirectionKind::HereString)
    });
    for word in itself.into_iter().chain(words).chain(fed.map(|redirection| &redirection.target)) {
        if word.shape == Shape::Literal && !powershell {
            continue;
        }
        let through = variables.iter().find(|(name, _)| {
            word.text.contains(&format!("${name}")) || word.text.contains(&format!("${{{name}}}"))
        });
        let source = through.map(|(_, source)| source.clone()).or_else(|| fetched_in(word));
        if let Some(source) = source {
            return Some(format!("runs what it downloads from {source}"));
        }
        if let Some(decoder) = decoded_in(word) {
            return Some(format!("runs what {decoder} makes readable only then"));
        }
    }
    if powershell
        && command
            .words
            .iter()
            .any(|word| word.text.to_ascii_lowercase().contains("downloadstring"))
    {
        return Some(format!("runs what it downloads: {name}"));
    }
    None
}

/// The decoder whose output a substitution in a word puts there.
fn decoded_in(word: &Word) -> Option<&'static str> {
    let (_, inside) = word.text.split_once("$(").or_else(|| word.text.split_once('`'))?;
    let apart = |letter: char| letter.is_whitespace() || "\"'`()<>;|&$=".contains(letter);
    let pieces: Vec<&str> = inside.split(apart).filter(|piece| !piece.is_empty()).collect();
    let decodes = |name: &str, options: &[&str]| {
        pieces.iter().enumerate().any(|(at, piece)| {
            base_name(piece) == name
                && (options.contains(&"") || pieces[at..].iter().any(|word| options.contains(word)))
        })
    };
    DECODING.iter().find(|(name, options)| decodes(name, options)).map(|(name, _)| *name)
}

/// Where a substitution in a word brings text from.
fn fetched_in(word: &Word) -> Option<String> {
    if !word.text.contains(['(', '`']) && word.shape != Shape::Dynamic {
        return is_fetching(&word.text).then(|| "elsewhere".to_owned());
    }
    let apart = |letter: char| letter.is_whitespace() || "\"'`()<>;|&$=".contains(letter);
    let mut pieces = word.text.split(apart).filter(|piece| !piece.is_empty());
    pieces.find(|piece| is_fetching(base_name(piece)))?;
    let words =
        word.text.split(|letter: char| letter.is_whitespace() || "\"'`()<>;|&".contains(letter));
    Some(source(std::iter::once("").chain(words)))
}
