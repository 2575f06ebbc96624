//! Rules on real scripts: read, classed and ruled on from the text to the end.

use sandgate_policy::rules::{Decision, Problem, RuleSandbox, Rules, propose};
use sandgate_policy::{Class, Judgement, Surroundings, judge};

const RULES: &str = r#"
[[rule]]
prefix = ["cargo", ["test", "build"]]
decision = "allow"
match = ["cargo test 2>&1 | tail -n 5", "NO_COLOR=1 cargo build"]
not_match = ["cargo publish", "PATH=. cargo test", "cargo test $(x)"]

[[rule]]
prefix = ["git", "fetch"]
decision = "allow"
sandbox = "bypass"

[[rule]]
prefix = ["git", "push"]
decision = "forbid"
match = ["cd x && sudo git push", "echo $(git push)"]
not_match = ["git pull"]
"#;

fn around() -> Surroundings {
    Surroundings {
        cwd: Some("/ws".into()),
        roots: vec!["/ws".into()],
        home: Some("/home/me".into()),
        ..Surroundings::default()
    }
}

fn judged(script: &str, rules: &Rules) -> Judgement {
    let argv = ["bash", "-lc", script].map(str::to_owned);
    judge(&argv, &around(), rules)
}

fn decided(script: &str) -> Option<(Decision, RuleSandbox)> {
    let rules = Rules::parse(RULES, "rules").unwrap().into_iter().collect();
    judged(script, &rules).ruling.map(|ruling| (ruling.decision, ruling.sandbox))
}

/// spec RULES.39: Rules are applied to the commands of a script as the shell would read it.
#[test]
fn scripts_are_ruled_on_part_by_part() {
    let kept = Some((Decision::Allow, RuleSandbox::Keep));
    let out = Some((Decision::Allow, RuleSandbox::Bypass));
    let forbidden = Some((Decision::Forbid, RuleSandbox::Keep));
    for (script, expected) in [
        ("cargo test", kept),
        ("cargo 'test' --quiet 2>&1", kept),
        ("cargo test 2>/dev/null | tail -n 20", kept),
        ("cargo build && cargo test > out.txt", kept),
        ("cd sub && cargo test", kept),
        ("NO_COLOR=1 cargo test", kept),
        ("echo start > log.txt; cargo test >> log.txt", kept),
        ("git fetch", out),
        ("git fetch --all 2>/dev/null && ls", out),
        ("git fetch > log.txt", kept),
        ("git fetch && cargo test", kept),
        ("PATH=. cargo test", None),
        ("cargo test > /etc/x", None),
        ("cargo test >> ~/.bashrc", None),
        ("cd /etc && cargo test > x", None),
        ("cargo test $(git fetch)", None),
        ("cargo test && make", None),
        ("cargo test | sh", None),
        ("ls | head", None),
        ("git push", forbidden),
        ("cargo test && git push --force", forbidden),
        ("sudo env A=b git -C x push", forbidden),
        ("bash -c 'git push'", forbidden),
        ("echo $(git push)", forbidden),
        ("if true; then git push; fi", forbidden),
    ] {
        assert_eq!(decided(script), expected, "{script}");
    }
}

/// spec RULES.7: An example can be a script, which must be understood to the last letter for a rule
/// that allows.
#[test]
fn an_example_can_be_a_script() {
    let with = |example: &str| {
        let rule = "[[rule]]\nprefix = [\"cargo\", \"test\"]\ndecision = \"allow\"\n";
        Rules::parse(&format!("{rule}match = [{example:?}]\n"), "f")
    };
    with("ls && cargo test | tail").unwrap();
    let error = with("cargo build").unwrap_err();
    assert_eq!(error.problem, Problem::ExampleNotMatched { reason: None });
    let error = with("cargo test $(x)").unwrap_err();
    assert!(matches!(error.problem, Problem::ExampleNotMatched { reason: Some(_) }), "{error}");
}

/// spec RULES.47: One rule is proposed for all parts of a script that need it; where they need
/// different ones, or the script was not understood, writes elsewhere or is dangerous, none is.
#[test]
fn a_script_gets_one_rule_or_none() {
    let proposed = |script: &str| {
        let judged = judged(script, &Rules::default());
        propose(&judged, None).map(|rule| rule.prefix().join(" "))
    };
    for (script, expected) in [
        ("cargo test -p a && cargo test -p b", Some("cargo test")),
        ("cd sub && npm run build 2>&1 | tail -n 3", Some("npm run build")),
        ("cargo test > out.txt", Some("cargo test")),
        ("make test *.c", Some("make test")),
        ("cargo test && make all", None),
        ("cargo test $(x)", None),
        ("cargo test > /etc/x", None),
        ("X=1 cargo test", None),
        ("git push --force", None),
        ("ls", None),
        ("echo hi > out.txt", None),
    ] {
        assert_eq!(proposed(script).as_deref(), expected, "{script}");
    }
}

/// spec RULES.48: A rule that was proposed for a harmless form of a command does not cover a
/// dangerous one.
#[test]
fn a_proposed_rule_covers_no_danger() {
    let push = propose(&judged("git push origin main", &Rules::default()), None).unwrap();
    let rules = Rules::from_iter([push.as_rule(Default::default())]);
    assert!(judged("git push origin dev", &rules).ruling.is_some());
    for script in ["git push --force", "git push origin +main", "git push origin :main"] {
        let judged = judged(script, &rules);
        assert!(matches!(judged.class, Class::Dangerous(_)), "{script}");
        assert_eq!(judged.ruling, None, "{script}");
    }
}

/// spec RULES.49: Why a command is not known to be safe names the part that is not.
#[test]
fn the_reason_names_the_part() {
    for (script, expected) in [
        ("ls && make all", "make is not among the commands that are known to be safe: `make all`"),
        ("ls && git fetch", "git fetch is not known to only read"),
        ("ls; git fetch --all", "git fetch is not known to only read: `git fetch --all`"),
        (
            "ls; sort -o x y",
            "`sort -o x y`: the option -o of sort is not among the options known to be safe",
        ),
    ] {
        let Class::Unknown { reason } = judged(script, &Rules::default()).class else {
            panic!("neither safe nor dangerous: {script}");
        };
        assert_eq!(reason, expected);
    }
}

/// spec RULES.13: A rule that asks or forbids also matches behind variables, by any path and letter
/// case of its program, behind options before the subcommand, and where a file name pattern could
/// become its words, or words that are only known when it runs have its name in them or turn out to
/// be none.
/// spec RULES.55: A command whose words, only known when it runs, could be those of a rule that asks
/// or forbids is at least a question, and so is a script that gives the rule's program another name.
#[test]
fn no_spelling_gets_past_a_strict_rule() {
    let rules = |prefixes: &[&str]| -> Rules {
        let rule = |prefix: &&str| {
            let words: Vec<&str> = prefix.split(' ').collect();
            format!("[[rule]]\nprefix = {words:?}\ndecision = \"forbid\"\n")
        };
        let text: String = prefixes.iter().map(rule).collect();
        Rules::parse(&text, "f").unwrap().into_iter().collect()
    };
    let rules = rules(&[
        "git push",
        "npm publish",
        "kubectl delete",
        "systemctl stop",
        "cargo publish",
        "docker run",
    ]);
    let decision = |script: &str| judged(script, &rules).ruling.map(|ruling| ruling.decision);
    for script in [
        "git --shallow-file x push",
        "npm --access=public publish",
        "kubectl -nprod delete pod x",
        "systemctl --force stop x",
        "cargo -vvv publish",
        "git $'push'",
        "git {push,}",
        "git -c alias.p=push p",
        "git-push",
        "/usr/lib/git-core/git-push origin",
        "docker container run x",
    ] {
        assert_eq!(decision(script), Some(Decision::Forbid), "{script}");
    }
    for script in [
        "bash -c 'git \"$@\"' _ push",
        "echo push | xargs git",
        "alias g=git; g push",
        "git $(echo push)",
        &format!("{}git push --force origin main", ":;".repeat(5000)),
    ] {
        assert!(decision(script).is_some(), "{}", &script[..script.len().min(40)]);
    }
    for script in [
        "git commit -m push",
        "git log --grep push",
        "git status",
        "echo git push",
        "git commit -m \"$X\"",
    ] {
        assert_eq!(decision(script), None, "{script}");
    }
}

/// spec RULES.54: Where a bound keeps a script from being searched to its end, every rule that asks
/// or forbids makes it at least a question.
#[test]
fn what_was_not_searched_is_asked_about() {
    let long = format!("{}ls", ":;".repeat(5000));
    let rules: Rules = Rules::parse(RULES, "rules").unwrap().into_iter().collect();
    assert_eq!(judged(&long, &rules).ruling.unwrap().decision, Decision::Prompt);
    assert_eq!(judged(&long, &Rules::default()).ruling, None);
}

/// spec RULES.56: Git that is merely safe leaves no sandbox with what a rule lets out: it is safe only
/// while it is told to run nothing of the repository's.
#[test]
fn a_git_that_is_merely_safe_is_not_let_out() {
    let rules = r#"
[[rule]]
prefix = ["gh", "pr", "view"]
decision = "allow"
sandbox = "bypass"

[[rule]]
prefix = ["git", "fetch"]
decision = "allow"
sandbox = "bypass"
"#;
    let rules: Rules = Rules::parse(rules, "rules").unwrap().into_iter().collect();
    let sandbox = |script: &str| {
        let judgement = judged(script, &rules);
        (judgement.ruling.unwrap().sandbox, judgement.parts.len())
    };
    for script in ["gh pr view 1", "ls && gh pr view 1", "git fetch && gh pr view 1 | head"] {
        assert_eq!(sandbox(script).0, RuleSandbox::Bypass, "{script}");
    }
    for script in [
        "git status && gh pr view 1",
        "gh pr view 1; git log -1",
        "gh pr view 1 | git grep -f - x",
        "/usr/bin/git status; gh pr view 1",
        "git fetch && git status",
    ] {
        assert_eq!(sandbox(script).0, RuleSandbox::Keep, "{script}");
        assert!(judged(script, &rules).has_git_that_is_merely_safe(), "{script}");
    }
    assert!(!judged("git fetch && ls", &rules).has_git_that_is_merely_safe());
}

/// spec RULES.57: Git that would run a program of the repository's is not merely safe beside what rules
/// allow, also where what it prints is written to a file.
#[test]
fn a_git_that_runs_programs_of_the_repository_is_not_safe_beside_a_rule() {
    let rules: Rules = Rules::parse(RULES, "rules").unwrap().into_iter().collect();
    let around = Surroundings { git_runs: vec!["filter.x.clean".to_owned()], ..around() };
    let allowed = |script: &str, around: &Surroundings| {
        let argv = ["bash", "-lc", script].map(str::to_owned);
        judge(&argv, around, &rules).ruling.is_some()
    };
    for script in ["git diff; cargo test", "git diff > x.txt; cargo test"] {
        assert!(allowed(script, &self::around()), "{script}");
        assert!(!allowed(script, &around), "{script}");
    }
}
