//! Whatever a model writes, judging it comes to an end and says something.
//!
//! `PROPTEST_CASES=20000` in front of the tests is the long profile; `fuzz/` has the same as targets for
//! cargo-fuzz.

use proptest::prelude::*;
use sandgate_policy::rules::{Rules, propose};
use sandgate_policy::{Class, Surroundings, judge};
use sandgate_protocol::is_invisible;

const RULES: &str = r#"
[[rule]]
prefix = ["git", ["push", "fetch"]]
decision = "prompt"

[[rule]]
prefix = ["npm", "test"]
decision = "allow"

[[rule]]
prefix = ["rm"]
decision = "forbid"
"#;

fn rules() -> Rules {
    Rules::parse(RULES, "rules.toml").unwrap().into_iter().collect()
}

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/ws".into()),
        roots: vec!["/ws".into()],
        home: Some("/home/me".into()),
        ..Surroundings::default()
    }
}

/// What scripts are made of, in any order: more of it makes sense than of letters by chance.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "ls",
        "rm -rf",
        "git push",
        "npm test",
        "sudo",
        "env",
        "xargs",
        "sh -c",
        "find . -exec",
        "sed -n",
        "cat",
        "curl",
        "|",
        "||",
        "&&",
        ";",
        "&",
        "\n",
        ">",
        ">>",
        "<",
        "<<E\n",
        "E\n",
        "<<<",
        "2>&1",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "${",
        "$x",
        "'",
        "\"",
        "\\",
        " ",
        "*",
        "~",
        "~/",
        "#",
        "!",
        "=",
        "[[",
        "]]",
        "[",
        "]",
        "if",
        "then",
        "fi",
        "for",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "function",
        "time",
        "-",
        "--",
        "/",
        "/etc/passwd",
        "../..",
        "\t",
        "é",
    ];
    prop_oneof![
        8 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn script() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat())
}

/// What the corpora call, with a few of the shell's own commands: all that tables say something of, more or less.
fn programs() -> Vec<&'static str> {
    let corpora = [include_str!("safe_commands.txt"), include_str!("unsafe_commands.txt")];
    let lines = corpora.into_iter().flat_map(str::lines).filter(|line| !line.starts_with('#'));
    let mut programs: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    programs.extend(["set", "export", "command", "trap", "read", "alias", "printf", "typeset"]);
    programs.sort_unstable();
    programs.dedup();
    programs
}

/// Words as nobody writes them: options of letters that no program has, of several bytes each.
fn odd_word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "(-|--|\\+|/|-o)?[a-zéˌ🦀=:,+@%]{0,4}",
        1 => "[-+=:,./~a-c0-2é]{0,6}",
        1 => "-?[a-c\u{1}\u{7f}\u{ad}\u{202e}\u{3164}]{0,3}",
    ]
}

fn check(argv: &[String]) -> Result<(), TestCaseError> {
    let judged = judge(argv, &around(), &rules());
    // What was not understood is never safe, and no rule allows it.
    if judged.reading.opaque.is_some() {
        prop_assert!(judged.class != Class::Safe, "{argv:?}");
        let allowed = judged
            .ruling
            .as_ref()
            .is_some_and(|ruling| ruling.decision == sandgate_policy::rules::Decision::Allow);
        prop_assert!(!allowed, "{argv:?}");
    }
    let reason = match &judged.class {
        Class::Safe => "",
        Class::Unknown { reason } => reason,
        Class::Dangerous(danger) => &danger.reason,
    };
    let hides = |c: char| c.is_control() || is_invisible(c);
    prop_assert!(!reason.contains(hides), "{reason:?} of {argv:?}");
    let _ = propose(&judged, None);
    Ok(())
}

proptest! {
    #[test]
    fn any_script_is_judged_in_every_shell(script in script()) {
        for shell in ["bash", "zsh", "sh", "dash", "pwsh", "cmd"] {
            let flag = match shell {
                "pwsh" => "-Command",
                "cmd" => "/c",
                _ => "-lc",
            };
            check(&[shell, flag, &script].map(str::to_owned))?;
        }
    }

    #[test]
    fn any_vector_is_judged(words in prop::collection::vec(piece(), 0..20)) {
        check(&words)?;
    }

    #[test]
    fn odd_words_after_any_known_program_are_judged(
        program in prop::sample::select(programs()),
        words in prop::collection::vec(odd_word(), 0..4),
    ) {
        let argv: Vec<String> = [program.to_owned()].into_iter().chain(words).collect();
        check(&argv)?;
        let after_shell: Vec<String> = ["bash".to_owned()].into_iter().chain(argv.clone()).collect();
        check(&after_shell)?;
        for (shell, flag) in [("bash", "-c"), ("zsh", "-c"), ("pwsh", "-Command"), ("cmd", "/c")] {
            check(&[shell, flag, &argv.join(" ")].map(str::to_owned))?;
        }
    }

    #[test]
    fn a_command_stays_what_it_is_under_any_wrapper(
        wrapper in prop::sample::select(vec!["env", "nice", "nohup", "sudo", "command", "setsid"]),
        depth in 1_usize..8,
    ) {
        let mut argv = vec![wrapper.to_owned(); depth];
        argv.extend(["rm", "-rf", "/"].map(str::to_owned));
        let judged = judge(&argv, &around(), &rules());
        prop_assert!(matches!(judged.class, Class::Dangerous(_)), "{argv:?}");
        let forbidden = judged.ruling.is_some_and(|ruling| {
            ruling.decision == sandgate_policy::rules::Decision::Forbid
        });
        prop_assert!(forbidden, "{argv:?}");
    }
}
