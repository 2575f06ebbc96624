//! Deleting what cannot be brought back: outside the workspace, all of it, or nobody knows what.
//!
//! Plain names inside the workspace are no danger, forced and recursive or not: builds do that all
//! day. Outside of it, forced and recursive deletes are, and so is a target that is only known when
//! the script runs.

use super::place::{Base, Place, alternatives, is_any};
use super::scene::{Scene, shown};
use super::startup;
use crate::command::Word;
use crate::wrapper::arguments::{Argument, arguments};
use crate::wrapper::base_name;

/// What may be deleted in `.git`: what an interrupted git leaves behind.
const LEFT_BY_GIT: &[&str] = &["rebase-merge", "rebase-apply", "MERGE_HEAD", "gc.log", "gc.pid"];

/// Actions of find that run a program.
const RUNNING: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    match scene.name {
        "find" | "gfind" => find(scene),
        "mv" => moved_away(scene),
        "rsync" => mirrored(scene),
        "truncate" => emptied(scene),
        "shred" | "srm" | "wipe" => overwritten(scene),
        _ => removed(scene),
    }
}

/// How much a command deletes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Directories and all in them.
    Trees,
    /// Files, without asking.
    Files,
}

/// What deleting a place would mean.
pub(super) fn deleting(scene: &Scene<'_>, word: &Word, reach: Reach) -> Option<String> {
    if let Some(each) = alternatives(word) {
        return each.iter().find_map(|word| deleting(scene, word, reach));
    }
    let place = scene.place(word);
    let everything = place.parts.len();
    let place = place.without_everything();
    let everything = everything > place.parts.len();
    if reach == Reach::Files && !everything && place.base == Base::Unknown {
        return None;
    }
    let target = shown(word, &place);
    let around = scene.around;
    let why = if place.base == Base::Unknown {
        return Some(format!("deletes {target}, and what that is shows only when it runs"));
    } else if place.is_root_directory() {
        " and everything in it: the whole system"
    } else if place.in_home(around).is_some_and(<[String]>::is_empty) {
        " and everything in it: a whole home directory"
    } else if place.is_a_root(around) && place.open {
        return Some(format!("deletes {target}, and what that is shows only when it runs"));
    } else if place.is_a_root(around) {
        ": all of the workspace"
    } else if is_git(&place) {
        ": what git keeps of the project's history"
    } else if place.in_roots(around) {
        return None;
    } else if reach == Reach::Trees {
        " and everything in it, outside the workspace"
    } else {
        ", outside the workspace"
    };
    Some(format!("deletes {target}{why}"))
}

fn is_git(place: &Place) -> bool {
    let Some(at) = place.parts.iter().position(|part| is_any(part, &[".git"])) else {
        return false;
    };
    let last = &place.parts[place.parts.len() - 1];
    at + 1 == place.parts.len() || !(last.ends_with(".lock") || is_any(last, LEFT_BY_GIT))
}

fn removed(scene: &Scene<'_>) -> Option<String> {
    let (mut trees, mut forced, mut targets) = (scene.name == "rimraf", false, Vec::new());
    for (_, argument) in arguments(&scene.command.words, "", &[]) {
        trees |= argument.is('r', "recursive") || argument.is('R', "recursive");
        forced |= argument.is('f', "force");
        if let Argument::Operand(word) = argument {
            targets.push(word);
        }
    }
    let reach = if trees { Reach::Trees } else { Reach::Files };
    if trees || forced {
        return targets.iter().find_map(|word| deleting(scene, word, reach));
    }
    let kept = |word: &&Word| startup::kept_by_person(scene.around, &scene.place(word));
    targets.iter().find_map(|word| {
        kept(word).map(|what| format!("deletes {}, {what}", shown(word, &scene.place(word))))
    })
}

fn overwritten(scene: &Scene<'_>) -> Option<String> {
    let targets = scene.operands_of("nsi", &["iterations", "size", "random-source"]);
    targets.iter().find_map(|word| deleting(scene, word, Reach::Files))
}

fn emptied(scene: &Scene<'_>) -> Option<String> {
    let targets = scene.operands_of("srI", &["size", "reference"]);
    let reason = targets.iter().find_map(|word| deleting(scene, word, Reach::Files))?;
    Some(reason.replacen("deletes", "empties", 1))
}

fn find(scene: &Scene<'_>) -> Option<String> {
    let words = &scene.command.words;
    let (starts, all) = crate::wrapper::starts(words);
    // What a plain `rm` is told one by one is as gone as what find deletes by itself.
    let by_rm =
        all && words.windows(2).any(|pair| is_any(&pair[0].text, RUNNING) && is_rm(&pair[1]));
    if !scene.has_word("-delete") && !by_rm {
        return None;
    }
    let here = Word::literal(".");
    let starts = if starts.is_empty() { vec![&here] } else { starts };
    starts.into_iter().find_map(|start| {
        let inside = scene.place(start).in_roots(scene.around);
        if inside && !all { None } else { deleting(scene, start, Reach::Trees) }
    })
}

fn is_rm(word: &Word) -> bool {
    is_any(base_name(&word.text), &["rm", "grm", "unlink", "shred", "srm", "wipe"])
}

/// `mv x /dev/null` and moving away what must stay.
fn moved_away(scene: &Scene<'_>) -> Option<String> {
    let operands = scene.operands_of("St", &["suffix", "target-directory"]);
    let (target, sources) = operands.split_last()?;
    if target.text == "/dev/null" {
        let lost = sources.first()?;
        return Some(format!("loses {} by moving it to /dev/null", lost.text));
    }
    sources.iter().find_map(|word| {
        let place = scene.place(word).without_everything();
        let whole = place.is_root_directory()
            || place.in_home(scene.around).is_some_and(<[String]>::is_empty)
            || place.in_system(scene.around);
        whole.then(|| format!("moves {} away", shown(word, &place)))
    })
}

fn mirrored(scene: &Scene<'_>) -> Option<String> {
    let deletes =
        |word: &Word| word.text.starts_with("--del") || word.text == "--remove-source-files";
    if !scene.rest().iter().any(deletes) {
        return None;
    }
    let operands = scene.operands_of("efTMB", &["rsh", "exclude", "include", "filter"]);
    let target = operands.last()?;
    if target.text.contains(':') && !target.text.starts_with(['/', '.']) {
        return Some(format!("deletes in {} what is not here", target.text));
    }
    let reason = deleting(scene, target, Reach::Trees)?;
    Some(reason.replacen("deletes", "deletes what is not in the source from", 1))
}
