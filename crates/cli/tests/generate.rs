//! Completions and manual pages, read by the programs that they are for.

#![cfg(unix)]

mod support;

use std::fs;
use support::World;

/// The verbs that `sandgate --help` shows.
fn verbs(world: &World) -> Vec<String> {
    let help = world.sandgate(&["--help"]);
    let lines = help.stdout().lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let verbs: Vec<String> = lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect();
    assert!(verbs.len() > 10, "{}", help.stdout());
    verbs
}

/// spec GEN.1: The completions of bash, zsh and fish are scripts that those shells read without a complaint,
/// and name every command that the help shows.
#[test]
fn shells_read_their_completions() {
    let world = World::new();
    let verbs = verbs(&world);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let printed = world.sandgate(&["completions", shell]);
        assert_eq!(printed.code, Some(0), "{shell} {}", printed.stderr);
        for verb in &verbs {
            assert!(printed.stdout().contains(verb.as_str()), "{shell} {verb}");
        }
        if shell == "powershell" {
            println!("SKIPPED: there is no PowerShell here to read its completions");
            continue;
        }
        let file = world.path(shell);
        fs::write(&file, printed.stdout()).unwrap();
        let read = world.other(shell).arg("-n").arg(&file).output();
        match read {
            Ok(read) => {
                assert!(read.status.success() && read.stderr.is_empty(), "{shell} {read:?}");
            }
            Err(error) => println!("SKIPPED: there is no {shell} here ({error})"),
        }
    }
}

/// spec GEN.2: bash completes the beginning of a verb.
#[test]
fn bash_completes_a_verb() {
    let world = World::new();
    let file = world.path("completions");
    fs::write(&file, world.sandgate(&["completions", "bash"]).stdout()).unwrap();
    let script = "source \"$0\"; COMP_WORDS=(sandgate sandb) COMP_CWORD=1; \
                  _sandgate sandgate sandb sandgate; echo \"${COMPREPLY[@]}\"";
    let completed = world.other("bash").args(["-c", script]).arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout), "sandbox\n", "{completed:?}");
}

/// spec GEN.3: There is a manual page for every command that the help shows, with its name and its options.
#[test]
fn every_command_has_a_manual_page() {
    let world = World::new();
    let pages = world.path("man");
    let made = world.sandgate(&["man", pages.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    for verb in verbs(&world) {
        let page = fs::read_to_string(pages.join(format!("sandgate-{verb}.1")));
        let page = page.unwrap_or_else(|error| panic!("{verb}: {error}"));
        assert!(page.contains(&format!(".TH sandgate-{verb} 1")), "{verb}: {page}");
        assert!(page.contains(".SH OPTIONS"), "{verb}");
    }
    assert!(pages.join("sandgate.1").is_file());
    assert!(pages.join("sandgate-policy-explain.1").is_file());
    assert!(!pages.join("sandgate-daemon.1").exists(), "what is hidden has no page");
}
