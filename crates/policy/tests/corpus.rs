//! Corpora of commands, held against the judgement: our own, and the project's shared one when it is
//! there.

use sandgate_policy::command::SimpleCommand;
use sandgate_policy::rules::Rules;
use sandgate_policy::script::Reader;
use sandgate_policy::{Class, Surroundings, judge, safe, script};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[path = "support/lines.rs"]
mod lines;

fn known_safe(argv: &[String]) -> Result<(), safe::NotSafe> {
    safe::check(&SimpleCommand::from_argv(argv), Reader::Kernel)
}

/// spec SAFE.1: A command that only reads is known to be safe by its program, its options and its
/// operands, in every spelling that people use.
#[test]
fn every_command_of_the_safe_list_is_known_to_be_safe() {
    let mut refused = Vec::new();
    for argv in lines::words_of(include_str!("safe_commands.txt")) {
        if let Err(reason) = known_safe(&argv) {
            refused.push(format!("{argv:?}: {reason}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// spec SAFE.16: Reading a file in which projects keep passwords, such as `.env`, is not safe; one that
/// is an example of it is.
#[test]
fn where_projects_keep_passwords_is_asked_about() {
    let class = |script: &str| {
        let argv = ["bash", "-c", script].map(str::to_owned);
        judge(&argv, &Surroundings::default(), &Rules::default()).class
    };
    for script in ["cat .env", "cat < .env", "cat app/.env.local", "grep -n KEY .env", "cat .e*"] {
        assert!(matches!(class(script), Class::Unknown { .. }), "{script}");
    }
    for script in ["cat .env.example", "ls .env", "cat .editorconfig", "cat env"] {
        assert_eq!(class(script), Class::Safe, "{script}");
    }
}

/// spec SAFE.2: A command that can write, run, connect, signal or set something is not known to be
/// safe, however it is spelt: grouped, attached, abbreviated, behind operands or behind `--`.
#[test]
fn no_command_of_the_unsafe_list_is_known_to_be_safe() {
    let argvs = lines::words_of(include_str!("unsafe_commands.txt"));
    let missed: Vec<_> = argvs.iter().filter(|argv| known_safe(argv).is_ok()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// spec SAFE.20: Everyday scripts that only read are safe: lists, pipelines and quotes of such commands.
#[test]
fn every_script_of_the_safe_list_is_safe() {
    let scripts = include_str!("safe_scripts.txt").lines().filter(|line| !line.starts_with("# "));
    let mut count = 0;
    let mut refused = Vec::new();
    for script in scripts {
        count += 1;
        let argv = ["bash", "-lc", script].map(str::to_owned);
        let class = judge(&argv, &Surroundings::default(), &Rules::default()).class;
        if class != Class::Safe {
            refused.push(format!("{script}: {class:?}"));
        }
    }
    assert!(count > 700, "only {count} scripts were tried");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// One entry of the shared corpus.
struct Entry {
    argv: Vec<String>,
    safe: bool,
    core: bool,
}

/// The shared corpus, if it is beside the workspace.
fn shared_corpus() -> Option<Vec<Entry>> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/safety/corpus.jsonl");
    let text = fs::read_to_string(place).ok()?;
    let entry = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let words = value["argv"].as_array().unwrap().iter();
        Entry {
            argv: words.map(|word| word.as_str().unwrap().to_owned()).collect(),
            safe: value["expect"] == "safe",
            core: value["tier"] == "core",
        }
    };
    Some(text.lines().map(entry).collect())
}

fn is_judged_safe(argv: &[String]) -> bool {
    matches!(judge(argv, &Surroundings::default(), &Rules::default()).class, Class::Safe)
}

#[test]
fn nothing_that_the_shared_corpus_calls_unsafe_is_judged_safe() {
    let Some(corpus) = shared_corpus() else {
        println!("SKIPPED: the shared corpus is not beside the workspace");
        return;
    };
    let missed = corpus.iter().filter(|entry| !entry.safe && is_judged_safe(&entry.argv));
    let missed: Vec<_> = missed.map(|entry| &entry.argv).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Of what the shared corpus calls safe, the part that no shell reads, and the scripts when this
/// build reads them.
#[test]
fn nearly_all_that_the_shared_corpus_calls_safe_is_judged_safe() {
    let Some(corpus) = shared_corpus() else {
        println!("SKIPPED: the shared corpus is not beside the workspace");
        return;
    };
    let shells = ["bash", "cmd.exe", "powershell.exe", "pwsh", "sh", "zsh"];
    let reads = |name: &str, flag: &str| {
        let argv = [name, flag, "ls"].map(str::to_owned);
        script::read(&argv).reader != Reader::Kernel
    };
    let reads_scripts = reads("bash", "-c");
    if !reads_scripts {
        println!("SKIPPED: this build reads no scripts yet, only plain vectors are tried");
    }
    let tried = |entry: &&Entry| {
        let script = entry.argv.first().is_some_and(|name| shells.contains(&name.as_str()));
        entry.safe && (reads_scripts || !script)
    };
    let (mut core, mut missed_core, mut missed) = (0, 0, Vec::new());
    for entry in corpus.iter().filter(tried) {
        let judged = is_judged_safe(&entry.argv);
        core += usize::from(entry.core);
        missed_core += usize::from(entry.core && !judged);
        if !judged {
            let judgement = judge(&entry.argv, &Surroundings::default(), &Rules::default());
            missed.push(format!("{:?}: {:?}", entry.argv, judgement.class));
        }
    }
    println!("missed {missed_core} of {core} in the core tier");
    println!("{}", missed.join("\n"));
    assert!(missed_core * 100 <= core * 3, "{}", missed.join("\n"));
}
