//! Scripts that other gates, or earlier versions of this one, let through: none of them may be judged
//! safe, and no rule may let more through than its words.

use sandgate_policy::rules::{Decision, Rules};
use sandgate_policy::{Class, Judgement, Surroundings, judge};

fn judged(shell: &str, script: &str, rules: &Rules) -> Judgement {
    let option = match shell {
        "pwsh" => "-Command",
        "cmd" => "/c",
        _ => "-c",
    };
    let around = Surroundings {
        cwd: Some("/ws".into()),
        roots: vec!["/ws".into()],
        ..Surroundings::default()
    };
    judge(&[shell, option, script].map(str::to_owned), &around, rules)
}

/// spec SAFE.15: No script of the list of those that got past a gate is safe.
#[test]
fn no_script_of_the_unsafe_list_is_safe() {
    let lines = include_str!("unsafe_scripts.txt").lines();
    let mut count = 0;
    let mut missed = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (shell, script) = line.split_once(' ').expect("a shell and a script");
        let script: String = serde_json::from_str(script).expect("a JSON string");
        count += 1;
        if judged(shell, &script, &Rules::default()).class == Class::Safe {
            missed.push(line);
        }
    }
    assert!(count > 400, "only {count} scripts were tried");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// spec RULES.51: A rule allows no redirection whose target the shell reads a second time, and no
/// words that another shell would read otherwise.
#[test]
fn a_rule_allows_nothing_that_is_not_in_its_words() {
    let text = "[[rule]]\nprefix = [\"npm\", \"test\"]\ndecision = \"allow\"\n";
    let rules: Rules = Rules::parse(text, "rules").unwrap().into_iter().collect();
    let decided = |shell: &str, script: &str| {
        judged(shell, script, &rules).ruling.map(|ruling| ruling.decision)
    };
    for script in ["npm test", "npm test >& log.txt", "npm test &> log.txt", "npm test 2>&1"] {
        assert_eq!(decided("bash", script), Some(Decision::Allow), "{script}");
    }
    for script in [
        "npm test >& '$(touch x)'",
        "npm test >& \"\\`touch x\\`\"",
        "npm test >& '~/x'",
        "npm test >& 'a b'",
        "npm test >& \\*",
    ] {
        assert_eq!(decided("bash", script), None, "{script}");
    }
    assert_eq!(decided("zsh", "npm test 1&> log.txt"), None);
    assert_eq!(decided("cmd", "npm test"), None);
}
