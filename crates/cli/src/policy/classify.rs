//! `sandgate policy classify`: one class for each line of standard input, for programs.
//!
//! Whatever a read of standard input gives is answered before the next one, so somebody who writes
//! a line and waits has the answer, and somebody who writes a million gets them in large pieces.

use super::{NOT_IN_ORDER, of_writing};
use crate::{exit, notes};
use sandgate_runtime::policy::{ClassName, Rules, Surroundings, class_of, home, judge};
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// The most bytes of one line.
const MAX_LINE: usize = 1 << 20;

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// Fewer bytes than this are not worth a second thread.
const WORTH_A_THREAD: usize = 16 << 10;

const HELP: &str = r#"Standard input has one JSON object a line, and each is answered with one line, in order:
  {"argv": ["git", "push", "--force"], "cwd": "/home/me/project", "roots": ["/home/me/project"]}
  {"class": "dangerous", "reason": "…", "commands": [["git", "push", "--force"]]}

argv       the command; a script is ["bash", "-lc", "…"]
cwd        where it would run, absolute; otherwise that is not known
roots      the directories that it may write to, absolute; otherwise the cwd
class      safe, unknown or dangerous
reason     why it is not safe
commands   the words of the commands that it may run, as far as they can be made out

A line that makes no sense is answered with {"error": "…"}. A line may have 1 MiB. No rules count.

Exit codes: 0; 1 if a line made no sense; 2 if this command line makes no sense."#;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct CliClassify {}

/// One question.
#[derive(Deserialize)]
struct Question {
    argv: Vec<String>,
    cwd: Option<PathBuf>,
    roots: Option<Vec<PathBuf>>,
}

/// One answer.
#[derive(Serialize)]
struct Answer<'a> {
    class: ClassName,
    reason: Option<String>,
    commands: Vec<Vec<&'a str>>,
}

/// The answer to a line that makes no sense.
#[derive(Serialize)]
struct Nonsense {
    error: String,
}

pub(super) fn classify() -> u8 {
    let mut classifier = Classifier { home: home(), ..Classifier::default() };
    let (mut input, mut output) = (io::stdin(), io::stdout().lock());
    let mut piece = vec![0; PIECE];
    loop {
        let length = match input.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let what = format!("cannot read standard input: {error}");
                let _ = io::stderr().write_all(&notes::error(&what, None));
                return exit::FAILED;
            }
        };
        let answers = match length {
            0 => classifier.finish(),
            length => classifier.take(&piece[..length]),
        };
        let written = output.write_all(&answers).and_then(|()| output.flush());
        if written.is_err() {
            return of_writing(&written);
        }
        if length == 0 {
            return if classifier.met_nonsense { NOT_IN_ORDER } else { 0 };
        }
    }
}

/// Answers lines, in whatever pieces they arrive.
#[derive(Default)]
struct Classifier {
    home: Option<PathBuf>,
    /// A line that has not ended yet.
    begun: Vec<u8>,
    /// The line has become too long, and is no longer kept.
    too_long: bool,
    met_nonsense: bool,
}

impl Classifier {
    /// The answers to the lines that end in this piece.
    fn take(&mut self, mut piece: &[u8]) -> Vec<u8> {
        let mut answers = Vec::new();
        if self.too_long {
            let Some(end) = piece.iter().position(|&byte| byte == b'\n') else { return answers };
            self.too_long = false;
            self.met_nonsense = true;
            refuse(too_long(), &mut answers);
            piece = &piece[end + 1..];
        }
        let already = self.begun.len();
        self.begun.extend_from_slice(piece);
        if let Some(end) = piece.iter().rposition(|&byte| byte == b'\n') {
            let end = already + end;
            let unfinished = self.begun.split_off(end + 1);
            let lines = std::mem::replace(&mut self.begun, unfinished);
            answers.extend(self.answer(&lines[..end]));
        }
        if self.begun.len() > MAX_LINE {
            self.begun.clear();
            self.too_long = true;
        }
        answers
    }

    /// The answer to a last line that nothing ended.
    fn finish(&mut self) -> Vec<u8> {
        match self.too_long || !self.begun.is_empty() {
            true => self.take(b"\n"),
            false => Vec::new(),
        }
    }

    /// The answers to lines, by as many threads as there are cores if that is worth it.
    fn answer(&mut self, lines: &[u8]) -> Vec<u8> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let shares = shares(lines, cores.min(lines.len() / WORTH_A_THREAD + 1));
        let home = self.home.as_deref();
        let answered: Vec<(Vec<u8>, bool)> = std::thread::scope(|scope| {
            let (first, others) = shares.split_first().expect("there is one share at least");
            let others: Vec<_> =
                others.iter().map(|share| scope.spawn(move || answer_share(share, home))).collect();
            let first = answer_share(first, home);
            let others = others.into_iter().map(|thread| thread.join().expect("it does not panic"));
            std::iter::once(first).chain(others).collect()
        });
        self.met_nonsense |= answered.iter().any(|(_, nonsense)| *nonsense);
        answered.into_iter().flat_map(|(answers, _)| answers).collect()
    }
}

/// Cuts lines into at most so many shares of about the same size, at the ends of lines.
fn shares(mut lines: &[u8], count: usize) -> Vec<&[u8]> {
    let size = lines.len() / count.max(1);
    let mut shares = Vec::with_capacity(count);
    while shares.len() + 1 < count {
        let Some(end) = lines.iter().skip(size).position(|&byte| byte == b'\n') else { break };
        shares.push(&lines[..size + end]);
        lines = &lines[size + end + 1..];
    }
    shares.push(lines);
    shares
}

/// The answers to some lines, and whether one made no sense.
fn answer_share(lines: &[u8], home: Option<&Path>) -> (Vec<u8>, bool) {
    let mut answers = Vec::with_capacity(lines.len());
    let mut met_nonsense = false;
    for line in lines.split(|&byte| byte == b'\n') {
        if let Err(why) = answer_line(line, home, &mut answers) {
            met_nonsense = true;
            refuse(why, &mut answers);
        }
    }
    (answers, met_nonsense)
}

/// # Errors
/// When the line makes no sense, with the reason; nothing has been added to the answers then.
fn answer_line(line: &[u8], home: Option<&Path>, answers: &mut Vec<u8>) -> Result<(), String> {
    if line.len() > MAX_LINE {
        return Err(too_long());
    }
    if line.trim_ascii().is_empty() {
        return Err("the line is empty".to_owned());
    }
    let question: Question = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let around = surroundings(question.cwd, question.roots, home)?;
    let judgement = judge(&question.argv, &around, &Rules::default());
    let (class, reason) = class_of(&judgement.class);
    let commands = judgement.reading.commands.iter();
    let commands = commands
        .map(|command| command.words.iter().map(|word| word.text.as_str()).collect())
        .collect();
    append(&Answer { class, reason, commands }, answers);
    Ok(())
}

fn surroundings(
    cwd: Option<PathBuf>,
    roots: Option<Vec<PathBuf>>,
    home: Option<&Path>,
) -> Result<Surroundings, String> {
    let roots = roots.unwrap_or_else(|| cwd.iter().cloned().collect());
    let relative = cwd.iter().chain(&roots).find(|path| !path.is_absolute());
    match relative {
        Some(path) => Err(format!("{path:?} is not an absolute path")),
        None => Ok(Surroundings {
            cwd,
            roots,
            home: home.map(Path::to_owned),
            ..Surroundings::default()
        }),
    }
}

fn too_long() -> String {
    format!("the line has more than {MAX_LINE} bytes")
}

fn refuse(error: String, answers: &mut Vec<u8>) {
    append(&Nonsense { error }, answers);
}

fn append(answer: &impl Serialize, answers: &mut Vec<u8>) {
    serde_json::to_writer(&mut *answers, answer).expect("words are valid JSON");
    answers.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(word: &str) -> String {
        format!(r#"{{"argv":["{word}"]}}"#) + "\n"
    }

    fn words_of(answers: &[u8]) -> Vec<String> {
        let word = |line: &str| {
            let answer: serde_json::Value = serde_json::from_str(line).expect("JSON");
            match &answer["commands"][0][0] {
                serde_json::Value::String(word) => word.clone(),
                _ => answer["error"].as_str().expect("an answer or an error").to_owned(),
            }
        };
        std::str::from_utf8(answers).expect("text").lines().map(word).collect()
    }

    #[test]
    fn lines_may_arrive_in_any_pieces() {
        let text: String = ["a", "b", "c"].map(line).concat();
        for size in 1..=text.len() {
            let mut classifier = Classifier::default();
            let mut answers = Vec::new();
            text.as_bytes().chunks(size).for_each(|piece| answers.extend(classifier.take(piece)));
            answers.extend(classifier.finish());
            assert_eq!(words_of(&answers), ["a", "b", "c"], "{size}");
            assert!(!classifier.met_nonsense);
        }
    }

    #[test]
    fn a_last_line_needs_no_end() {
        let mut classifier = Classifier::default();
        assert_eq!(classifier.take(line("a").trim_end().as_bytes()), b"");
        assert_eq!(words_of(&classifier.finish()), ["a"]);
    }

    #[test]
    fn many_lines_are_answered_in_order_by_several_threads() {
        let words: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
        let text: String = words.iter().map(|word| line(word)).collect();
        assert!(text.len() > 2 * WORTH_A_THREAD);
        assert_eq!(words_of(&Classifier::default().take(text.as_bytes())), words);
    }

    #[test]
    fn shares_are_whole_lines_and_lose_none() {
        let lines = b"one\ntwo\n\nthree\nfour";
        for count in 1..=10 {
            let shares = shares(lines, count);
            assert!(shares.len() <= count);
            assert_eq!(shares.join(&b'\n'), lines);
        }
        assert_eq!(shares(b"", 4), [b""]);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_however_it_arrives() {
        let mut text = vec![b'x'; MAX_LINE + 1];
        text.extend(format!("\n{}", line("next")).bytes());
        for size in [1 << 10, PIECE, text.len()] {
            let mut classifier = Classifier::default();
            let mut answers = Vec::new();
            for piece in text.chunks(size) {
                answers.extend(classifier.take(piece));
                assert!(classifier.begun.len() <= MAX_LINE);
            }
            assert_eq!(words_of(&answers), [too_long(), "next".to_owned()], "{size}");
            assert!(classifier.met_nonsense);
        }
        let mut classifier = Classifier::default();
        classifier.take(&text[..=MAX_LINE]);
        assert_eq!(words_of(&classifier.finish()), [too_long()]);
    }
}
