//! Any words, judged: as a vector whose words are separated by U+0001, and as a script.
//!
//! What is safe was understood and writes nothing; what is dangerous stays so whatever is put behind it; and what a
//! person is told about it shows itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_fuzz::shown::assert_harmless_line;
use sandgate_policy::rules::{Decision, Rules, append, propose};
use sandgate_policy::{Class, Judgement, Surroundings, judge};

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/ws".into()),
        roots: vec!["/ws".into()],
        home: Some("/home/me".into()),
        ..Surroundings::default()
    }
}

fn check(argv: &[String]) -> Judgement {
    let judged = judge(argv, &around(), &Rules::default());
    match &judged.class {
        Class::Safe => {
            assert_eq!(judged.reading.opaque, None, "{argv:?}");
            for redirection in judged.reading.commands.iter().flat_map(|it| &it.redirections) {
                let nowhere = redirection.target.as_literal() == Some("/dev/null");
                assert!(!redirection.kind.writes() || nowhere, "{argv:?}");
            }
        }
        Class::Unknown { reason } => assert_harmless_line(reason),
        Class::Dangerous(danger) => assert_harmless_line(&danger.reason),
    }
    if let Some(rule) = propose(&judged, None) {
        assert!(!matches!(judged.class, Class::Dangerous(_)), "{argv:?}");
        assert_eq!(judged.reading.opaque, None, "{argv:?}");
        let text = append("", "f", &rule).expect("it can be written down");
        let rules: Rules =
            Rules::parse(&text, "f").expect("it can be read again").into_iter().collect();
        let ruling = judge(argv, &around(), &rules).ruling;
        assert!(ruling.is_none_or(|ruling| ruling.decision == Decision::Allow), "{argv:?}");
    }
    judged
}

fuzz_target!(|text: &str| {
    let vector: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    check(&vector);
    for (shell, option) in
        [("bash", "-lc"), ("sh", "-c"), ("zsh", "-c"), ("pwsh", "-Command"), ("cmd", "/c")]
    {
        let judged = check(&[shell, option, text].map(str::to_owned));
        // A script that begins like an option is none, and a backslash takes the end of its line away.
        if !matches!(shell, "bash" | "sh" | "zsh")
            || text.starts_with(['-', '+'])
            || text.ends_with('\\')
        {
            continue;
        }
        // In what was not understood, what follows may belong to a word that has no end.
        if judged.reading.opaque.is_some() {
            continue;
        }
        let followed_by = |more: &str| {
            check(&[shell, option, &format!("{text}\n{more}")].map(str::to_owned)).class
        };
        assert!(
            matches!(followed_by("rm -rf /"), Class::Dangerous(_)),
            "{shell}: {text:?} hides what follows it"
        );
        assert!(
            !matches!(judged.class, Class::Dangerous(_))
                || matches!(followed_by("ls"), Class::Dangerous(_)),
            "{shell}: {text:?} is harmless with ls behind it"
        );
    }
});
