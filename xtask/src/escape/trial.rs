//! One attempt in one sandbox, and what can be seen of it from outside.

use super::attempts::{Attempt, LEFT_OPEN, PRELUDE, Proof, SCRIPT, Scene, Stage};
use crate::peers::work::end_group;
use crate::peers::{Place, Sandbox, Tools};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// An attempt that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(40);

/// What any command may do: write in its workspace and read outside of it. Nothing is learned where that fails.
const READY: &str = "open('own', 'w').close(); os.unlink('own'); print(open(VICTIM).read())";

/// What signals and datagrams are given to arrive.
const ARRIVAL: Duration = Duration::from_millis(20);

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It got out, and this is what shows it.
    Escaped(String),
    Held,
    /// The machine lacks what it is about.
    Missing,
    /// It was not made: the sandbox did not start, or hung.
    Broken(String),
}

pub(super) type World = BTreeMap<String, String>;

/// A sandbox that attempts are made in, and what it changes by itself when nothing is attempted.
pub(super) struct Trials<'a> {
    pub(super) sandbox: Sandbox,
    pub(super) tools: &'a Tools,
    /// A directory for what the sandbox is told, and for what is printed.
    pub(super) scratch: &'a Path,
    own_changes: BTreeMap<&'static str, World>,
}

impl<'a> Trials<'a> {
    /// Learns first what the sandbox does to the world when a command does nothing.
    ///
    /// # Errors
    /// Why no command runs in it.
    pub(super) fn begin(
        sandbox: Sandbox,
        tools: &'a Tools,
        scratch: &'a Path,
    ) -> Result<Self, String> {
        let mut trials = Self { sandbox, tools, scratch, own_changes: BTreeMap::new() };
        let mut first_failure = None;
        for (name, scene) in SCENES {
            match trials.run(READY, scene) {
                Ok((before, after, said)) if said.trim() == "before" => {
                    let changed = after.into_iter().filter(|(key, is)| before.get(key) != Some(is));
                    trials.own_changes.insert(name, changed.collect());
                }
                Ok((_, _, said)) => first_failure = Some(format!("a command in it said {said:?}")),
                Err(why) => first_failure = Some(why),
            }
        }
        // What it does not run in at all is told attempt by attempt.
        if trials.own_changes.is_empty() {
            return Err(first_failure.unwrap_or_default());
        }
        Ok(trials)
    }

    /// The paths that the sandbox leaves behind or changes by itself.
    pub(super) fn left_behind(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.own_changes.values().flat_map(|w| w.keys().cloned()).collect();
        all.iter_mut().for_each(|path| *path = below_base(path));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Makes one attempt, a second time if it could not be made.
    pub(super) fn make(&self, attempt: &Attempt) -> Verdict {
        let once = || match self.run(attempt.does, attempt.scene) {
            Ok((before, after, said)) => {
                let own = SCENES.iter().find(|(_, scene)| *scene == attempt.scene);
                let own = own.and_then(|(name, _)| self.own_changes.get(name));
                judge(attempt.proof, &changes(&before, &after, own), &said)
            }
            Err(why) => Verdict::Broken(why),
        };
        match once() {
            Verdict::Broken(_) => once(),
            verdict => verdict,
        }
    }

    /// The world before and after a command, and what it printed.
    #[expect(clippy::disallowed_methods, reason = "starts other programs than ours")]
    fn run(&self, does: &str, scene: Scene) -> Result<(World, World, String), String> {
        let stage = Stage::set(scene);
        let workspace = stage.cage.ws("").components().collect::<std::path::PathBuf>();
        let place = Place { workspace: &workspace, settings: self.scratch };
        let wrapper = self.sandbox.wrap(self.tools, place)?;
        let before = stage.fingerprint();
        let printed = self.scratch.join("printed");
        let file = fs::File::create(&printed).map_err(|error| error.to_string())?;
        let complaints = self.scratch.join("complaints");
        let other = fs::File::create(&complaints).map_err(|error| error.to_string())?;
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", LEFT_OPEN, "sh"]).args(&wrapper.words).args(["/bin/sh", "-c", SCRIPT]);
        command.envs(wrapper.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&workspace).env("HOME", stage.cage.base().join("home"));
        command.env("WS", &workspace).env("OUT", stage.cage.base().join("outside"));
        for name in ["TMPDIR", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        command.env("ATTEMPT", format!("{PRELUDE}\n{does}\n"));
        stage.describe(&mut command);
        command.stdin(Stdio::null()).stdout(file).stderr(other).process_group(0);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let began = Instant::now();
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if began.elapsed() > LIMIT => {
                    end_group(&mut child);
                    return Err(format!("it took longer than {} s", LIMIT.as_secs()));
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        std::thread::sleep(ARRIVAL);
        let after = stage.fingerprint();
        let said = fs::read_to_string(&printed).unwrap_or_default();
        if !status.success() {
            let why = fs::read_to_string(&complaints).unwrap_or_default();
            let last = why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let base = format!("{}/", stage.cage.base().display());
            let last: String = last.replace(&base, "").chars().take(120).collect();
            // Whoever reached the world and failed then has reached it.
            if before == after {
                return Err(format!("{status}: {last}"));
            }
        }
        Ok((before, after, said))
    }
}

/// What the workspace can hold, by name.
const SCENES: [(&str, Scene); 4] = [
    ("repository", Scene::Repository),
    ("bare", Scene::Bare),
    ("worktree", Scene::Worktree),
    ("linked", Scene::Linked),
];

/// What is not as it was, but for what the sandbox does by itself.
fn changes(before: &World, after: &World, own: Option<&World>) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let is_own = |name: &String| {
        let usual = own.and_then(|own| own.get(name_in(own, name)?));
        matches!((after.get(name), usual), (Some(is), Some(usual)) if looks(is) == looks(usual))
    };
    let changed = names.filter(|name| before.get(*name) != after.get(*name) && !is_own(name));
    changed.map(|name| below_base(name)).collect()
}

/// The name of the same thing in another stage, whose directory is called otherwise.
fn name_in<'w>(world: &'w World, name: &str) -> Option<&'w String> {
    world.keys().find(|key| below_base(key) == below_base(name))
}

/// A path without the directory of its stage.
fn below_base(path: &str) -> String {
    match path.strip_prefix("/var/tmp/sg-").and_then(|rest| rest.split_once('/')) {
        Some((_, rest)) => rest.to_owned(),
        None => path.to_owned(),
    }
}

/// Kind and contents, without the numbers of the inode and its times.
fn looks(value: &str) -> (&str, &str) {
    let kind = value.split(" (").next().unwrap_or(value);
    let contents = value.rsplit_once(") ").map_or("", |(_, contents)| contents);
    (kind, contents)
}

/// What an attempt came to, from what changed and what was answered.
fn judge(proof: Proof, changes: &[String], said: &str) -> Verdict {
    let answers: Vec<&str> = said.split_whitespace().collect();
    let refused = |answer: &&str| matches!(*answer, "EPERM" | "ENOSYS" | "EACCES" | "missing");
    match proof {
        _ if answers.contains(&"missing") && changes.is_empty() => Verdict::Missing,
        Proof::World if changes.is_empty() => Verdict::Held,
        Proof::World => Verdict::Escaped(changes.join(", ")),
        Proof::Answer if !changes.is_empty() => Verdict::Escaped(changes.join(", ")),
        Proof::Answer if answers.contains(&"done") => {
            Verdict::Escaped("it was answered".to_owned())
        }
        Proof::Answer => Verdict::Held,
        Proof::Reached => match answers.iter().find(|answer| !refused(answer)) {
            Some(answer) => Verdict::Escaped((*answer).to_owned()),
            None => Verdict::Held,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(entries: &[(&str, &str)]) -> World {
        entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn what_changed_is_told_by_its_path_in_the_stage() {
        let before = world(&[
            ("/var/tmp/sg-a/outside/victim", "file (1) (2) \"before\""),
            ("canary", "alive"),
        ]);
        let after = world(&[
            ("/var/tmp/sg-a/outside/victim", "file (1) (3) \"after\""),
            ("canary", "alive"),
        ]);
        assert_eq!(changes(&before, &after, None), ["outside/victim"]);
        assert!(changes(&before, &before, None).is_empty());
    }

    #[test]
    fn what_a_sandbox_does_by_itself_is_no_escape_unless_it_looks_different() {
        let own = world(&[("/var/tmp/sg-a/ws/.git", "dir (1) (2) ")]);
        let before = World::new();
        let same = world(&[("/var/tmp/sg-b/ws/.git", "dir (7) (8) ")]);
        let other = world(&[("/var/tmp/sg-b/ws/.git", "file (7) (8) \"x\"")]);
        assert!(changes(&before, &same, Some(&own)).is_empty());
        assert_eq!(changes(&before, &other, Some(&own)), ["ws/.git"]);
    }

    #[test]
    fn an_answer_proves_only_where_nothing_else_can() {
        let escaped = |what: &str| Verdict::Escaped(what.to_owned());
        assert_eq!(judge(Proof::World, &[], "done"), Verdict::Held);
        assert_eq!(judge(Proof::World, &["canary".to_owned()], "EPERM"), escaped("canary"));
        assert_eq!(judge(Proof::Answer, &[], "ESRCH done"), escaped("it was answered"));
        assert_eq!(judge(Proof::Answer, &[], "ESRCH"), Verdict::Held);
        assert_eq!(judge(Proof::Reached, &[], "EPERM"), Verdict::Held);
        assert_eq!(judge(Proof::Reached, &[], "EINVAL"), escaped("EINVAL"));
        assert_eq!(judge(Proof::Reached, &[], "missing"), Verdict::Missing);
    }
}
