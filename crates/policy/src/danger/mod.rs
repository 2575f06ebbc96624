//! Commands that can destroy, give away or take over more than an agent's work should: found in
//! whatever can be made out of a script, through the wrappers around them.
//!
//! Each subject has a file, and each file begins with its table. A danger is what a person would
//! want to be asked about, so what only touches the workspace is none, unless it loses work for
//! good.

mod credentials;
mod deletes;
mod disks;
mod downloads;
mod forms;
mod git;
mod place;
mod remote;
mod scene;
mod startup;
mod system;
mod windows;

use crate::command::{Connective, Shape, SimpleCommand, Word};
use crate::script::Reading;
use crate::surroundings::Surroundings;
use crate::wrapper::code::INTERPRETERS;
use crate::wrapper::{self, DEPTH, TOTAL, base_name};
use downloads::Downloads;
use place::{Here, Place};
use sandgate_protocol::visible_line;
use scene::Scene;
use std::path::Path;

pub use startup::obeyed_in_home;

/// A danger that was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Danger {
    /// What it would do, in a person's words.
    pub reason: String,
    /// Which of the reading's commands it was found in.
    pub command: usize,
}

/// The first danger in a reading.
pub fn find(reading: &Reading, around: &Surroundings) -> Option<Danger> {
    let mut search = Search { around, left: TOTAL };
    let (command, reason) = search.list(&reading.commands, &Here::start(around), DEPTH)?;
    Some(Danger { reason: visible_line(&reason), command })
}

/// What a path is, absolute and canonical, if a person or the system keeps it: run or obeyed later
/// without anybody asking, or secret.
pub(crate) fn kept(path: &Path, around: &Surroundings) -> Option<&'static str> {
    let place = Place::at(path);
    startup::kept_by_person(around, &place).or_else(|| credentials::what_is(around, &place))
}

/// Whether a directory, absolute and canonical, is a home or holds the person's.
pub(crate) fn holds_home(directory: &Path, around: &Surroundings) -> bool {
    around.home.as_ref().is_some_and(|home| home.starts_with(directory))
        || Place::at(directory).in_home(around).is_some_and(<[String]>::is_empty)
}

struct Search<'a> {
    around: &'a Surroundings,
    /// How many more commands inside wrappers are looked at.
    left: usize,
}

impl Search<'_> {
    /// The first danger in commands that run one after the other or side by side.
    fn list(
        &mut self,
        commands: &[SimpleCommand],
        start: &Here<'_>,
        depth: usize,
    ) -> Option<(usize, String)> {
        let mut moved: Option<Here<'_>> = None;
        let mut downloads = Downloads::default();
        let mut given: &[Word] = &[];
        for (index, command) in commands.iter().enumerate() {
            let here = moved.as_ref().unwrap_or(start);
            if command.is_not_searched() {
                return Some((index, "is too long to be searched for what it would do".to_owned()));
            }
            let reason = self
                .inside(commands, index, here, depth)
                .or_else(|| downloads.check(commands, index))
                .or_else(|| look(command, here, self.around))
                .or_else(|| look_in_small_letters(command, here, self.around))
                .or_else(|| look(&with_given(command, given)?, here, self.around));
            if let Some(reason) = reason {
                return Some((index, reason));
            }
            if let [set, dashes, rest @ ..] = command.words.as_slice()
                && set.text == "set"
                && dashes.text == "--"
            {
                given = rest;
            }
            if let Some(place) = moves(command, here, self.around) {
                moved = Some(Here::at(place, self.around));
            }
        }
        system::fork_bomb(commands)
    }

    /// The first danger in what a wrapper runs.
    fn inside(
        &mut self,
        commands: &[SimpleCommand],
        index: usize,
        here: &Here<'_>,
        depth: usize,
    ) -> Option<String> {
        let mut inner = wrapper::inner(&commands[index]);
        inner.extend(wrapper::piped(commands, index));
        if inner.is_empty() {
            return None;
        }
        if depth == 0 {
            return Some(format!("hides what it runs in more than {DEPTH} commands around it"));
        }
        self.left = match self.left.checked_sub(inner.len()) {
            Some(left) => left,
            None => return Some(format!("runs more than {TOTAL} commands inside others")),
        };
        if index > 0 && matches!(commands[index].connective, Connective::Pipe) {
            name_the_unknown(&mut inner, &commands[index - 1]);
        }
        self.list(&inner, here, depth - 1).map(|(_, reason)| reason)
    }
}

/// What one command would do itself.
fn look(command: &SimpleCommand, here: &Here<'_>, around: &Surroundings) -> Option<String> {
    let name = match command.words.first() {
        Some(first) if first.shape != Shape::Dynamic => base_name(&first.text),
        _ => "",
    };
    let scene = Scene { command, name, here, around };
    let own = match name {
        "rm" | "grm" | "unlink" | "srm" | "shred" | "wipe" | "rimraf" | "find" | "gfind"
        | "truncate" | "mv" | "rsync" => deletes::check(&scene),
        "git" => git::check(&scene),
        "dd" | "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "setcap" | "tar" | "bsdtar"
        | "unzip" => disks::check(&scene),
        "kill" | "pkill" | "killall" | "init" | "telinit" | "crontab" | "history" | "unset"
        | "systemctl" | "export" | "declare" | "typeset" => system::check(&scene),
        "nc" | "ncat" | "netcat" | "socat" | "docker" | "podman" | "psql" | "mysql" | "sqlite3"
        | "mariadb" | "mongo" | "mongosh" => remote::check(&scene),
        _ if INTERPRETERS.contains(&name) => remote::code(&scene),
        _ => None,
    };
    own.or_else(|| forms::check(&scene))
        .or_else(|| windows::check(&scene))
        .or_else(|| system::environment(&scene))
        .or_else(|| startup::check(&scene))
        .or_else(|| credentials::check(&scene))
}

/// Where the file system does not tell letters apart, `RM` is `rm`.
fn look_in_small_letters(
    command: &SimpleCommand,
    here: &Here<'_>,
    around: &Surroundings,
) -> Option<String> {
    let name = command.words.first().filter(|name| name.shape != Shape::Dynamic)?;
    if !name.text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut folded = command.clone();
    folded.words[0].text.make_ascii_lowercase();
    look(&folded, here, around)
}

/// `set -- -rf /; rm "$@"`: a command with the words that the script gave itself.
fn with_given(command: &SimpleCommand, given: &[Word]) -> Option<SimpleCommand> {
    let all = |word: &Word| {
        word.shape == Shape::Dynamic
            && matches!(word.text.trim_matches('"'), "$@" | "$*" | "${@}" | "${*}")
    };
    if given.is_empty() || !command.words.iter().any(all) {
        return None;
    }
    let put = |word: &Word| if all(word) { given.to_vec() } else { vec![word.clone()] };
    let words = command.words.iter().flat_map(put).collect();
    Some(SimpleCommand { words, ..command.clone() })
}

/// Where a command leaves the shell, if it moves it.
fn moves(command: &SimpleCommand, here: &Here<'_>, around: &Surroundings) -> Option<Place> {
    let name = command.program()?;
    if !matches!(name, "cd" | "pushd" | "chdir" | "Set-Location" | "sl") {
        return None;
    }
    let target = command.words.iter().skip(1).find(|word| !word.text.starts_with('-'));
    Some(match target {
        Some(word) => Place::of_word(word, here.place(), around),
        None => Place::of("~", Shape::Home, here.place(), around),
    })
}

/// What `xargs` is given can be told when it comes from a program that finds names.
fn name_the_unknown(inner: &mut [SimpleCommand], source: &SimpleCommand) {
    use wrapper::{UNKNOWN, found_by_find, found_by_others};
    let names = match source.program().map(base_name) {
        Some("find" | "gfind") => found_by_find(&source.words),
        Some("fd" | "fdfind" | "rg" | "grep" | "ls" | "git") => found_by_others(&source.words),
        _ => return,
    };
    for command in inner {
        if let Some(at) = command.words.iter().position(|word| word.text == UNKNOWN) {
            command.words.splice(at..=at, names.iter().cloned());
        }
    }
}
