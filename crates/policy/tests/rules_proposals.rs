//! Rules that are offered with a question, and how they get into a file.

use sandgate_policy::rules::{Decision, ProposedRule, RuleSandbox, Rules, append, propose};
use sandgate_policy::{Judgement, Surroundings, judge};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn judged(argv: &[String], rules: &Rules) -> Judgement {
    judge(argv, &Surroundings::default(), rules)
}

fn proposed(text: &str, suggested: Option<&str>) -> Option<String> {
    let suggested = suggested.map(words);
    propose(&judged(&words(text), &Rules::default()), suggested.as_deref())
        .map(|rule| rule.prefix().join(" "))
}

fn proposal(text: &str) -> ProposedRule {
    propose(&judged(&words(text), &Rules::default()), None).unwrap()
}

/// spec RULES.40: With a question goes the rule that the call suggests, if it is a prefix of the part
/// in question and not too broad; otherwise the shortest prefix that is not too broad.
#[test]
fn a_suggestion_is_taken_if_it_fits() {
    let pull = "git pull origin main";
    assert_eq!(proposed(pull, None).unwrap(), "git pull");
    assert_eq!(proposed(pull, Some("git pull")).unwrap(), "git pull");
    assert_eq!(proposed(pull, Some("git pull origin")).unwrap(), "git pull origin");
    for unfit in ["git", "git push", "git pull origin main extra", "bash -c", ""] {
        assert_eq!(proposed(pull, Some(unfit)).unwrap(), "git pull", "{unfit}");
    }
    assert_eq!(proposed("/usr/bin/git pull", Some("git pull")).unwrap(), "git pull");
    assert_eq!(
        propose(&judged(&words(pull), &Rules::default()), Some(&[])).unwrap().prefix().len(),
        2
    );
}

/// spec RULES.41: Shells, interpreters without a script, wrappers, what deletes and what connects are
/// never proposed, nor is a program with many uses without the one in question.
#[test]
fn what_is_too_broad_is_not_proposed() {
    for text in [
        "bash script.sh",
        "python3 -c x",
        "python3",
        "node -e x",
        "env A=b make all",
        "sudo make all",
        "xargs make",
        "find . -delete",
        "ssh host ls",
        "docker run x",
        "rm -r build",
        "curl http://x",
        "git",
        "git -C x pull",
        "cargo",
        "npm run",
        "npx",
    ] {
        assert_eq!(proposed(text, Some(text)), None, "{text}");
    }
    assert_eq!(proposed("npm run build", None).unwrap(), "npm run build");
    assert_eq!(proposed("python3 tools/gen.py --all", None).unwrap(), "python3 tools/gen.py");
}

/// spec RULES.42: A proposed rule allows the command that it was proposed for.
#[test]
fn a_proposed_rule_helps() {
    for text in
        ["cargo test -p a", "/usr/bin/git pull", "npm run build -- --x", "make all", "pytest"]
    {
        let rule = proposal(text).as_rule(Default::default());
        let rules = Rules::from_iter([rule]);
        let ruling = judged(&words(text), &rules).ruling.unwrap();
        assert_eq!(
            (ruling.decision, ruling.sandbox),
            (Decision::Allow, RuleSandbox::Keep),
            "{text}"
        );
    }
}

/// spec RULES.43: Nothing is proposed where a rule asks or forbids, because the strictest wins.
#[test]
fn nothing_is_proposed_against_a_rule() {
    for decision in ["prompt", "forbid"] {
        let text = format!("[[rule]]\nprefix = [\"make\"]\ndecision = \"{decision}\"\n");
        let rules = Rules::parse(&text, "f").unwrap().into_iter().collect();
        assert_eq!(propose(&judged(&words("make all"), &rules), None), None);
    }
}

/// spec RULES.44: A proposed rule keeps the sandbox, unless the approval says otherwise; one that
/// names a script cannot leave it.
#[test]
fn a_rule_that_names_a_script_stays_in_the_sandbox() {
    assert_eq!(proposal("git fetch").sandbox(), RuleSandbox::Keep);
    let out = proposal("git fetch").leaving_the_sandbox().unwrap();
    assert_eq!(out.sandbox(), RuleSandbox::Bypass);
    for text in ["./scripts/x.sh", "python3 x.py", "/ws/bin/tool go", "uv run python x.py"] {
        assert_eq!(proposal(text).leaving_the_sandbox(), None, "{text}");
    }
}

/// spec RULES.52: A rule that names a program, and nothing of what the program does, is not proposed
/// for commands that leave the sandbox.
#[test]
fn a_bare_program_stays_in_the_sandbox() {
    for text in ["touch x", "mkdir -p x", "pytest", "npx prettier x", "uv run pytest x"] {
        assert_eq!(proposal(text).sandbox(), RuleSandbox::Keep, "{text}");
        assert_eq!(proposal(text).leaving_the_sandbox(), None, "{text}");
    }
    let suggested = words("touch build/stamp");
    let rule = propose(&judged(&suggested, &Rules::default()), Some(&suggested)).unwrap();
    assert_eq!(rule.leaving_the_sandbox(), None, "more files may follow");
    for text in ["make install", "cargo build", "python3 -m pytest x"] {
        assert!(proposal(text).leaving_the_sandbox().is_some(), "{text}");
    }
}

/// spec RULES.45: A rule is added at the end of a file, every byte before it stays as it was, and a
/// rule that is there already is not added again.
#[test]
fn a_rule_is_added_at_the_end() {
    let text = "# mine\r\n[[rule]]\r\nprefix = [ 'make' ]  # short\r\ndecision = \"prompt\"";
    let rule = proposal("git pull").with_justification("say \"yes\"\nto it");
    let longer = append(text, "f", &rule).unwrap();
    let expected = format!(
        "{text}\r\n\r\n[[rule]]\r\nprefix = [\"git\", \"pull\"]\r\ndecision = \"allow\"\r\n\
         justification = \"say \\\"yes\\\"\\nto it\"\r\n"
    );
    assert_eq!(longer, expected);
    let rules = Rules::parse(&longer, "f").unwrap();
    assert_eq!(rules[1].justification.as_deref(), Some("say \"yes\"\nto it"));
    assert_eq!(append(&longer, "f", &rule).unwrap(), longer);

    let out = rule.leaving_the_sandbox().unwrap();
    let longest = append(&longer, "f", &out).unwrap();
    assert!(
        longest
            .ends_with("sandbox = \"bypass\"\r\njustification = \"say \\\"yes\\\"\\nto it\"\r\n")
    );
    assert_eq!(append(&longest, "f", &out).unwrap(), longest);
}

/// spec RULES.46: Nothing is added to a file that is broken.
#[test]
fn a_broken_file_is_left_alone() {
    let error = append("[[rule]]\n", "f", &proposal("git pull")).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("f", 1));
}

#[test]
fn the_first_rule_of_a_file_begins_it() {
    let text = append("", "f", &proposal("make all")).unwrap();
    assert_eq!(text, "[[rule]]\nprefix = [\"make\", \"all\"]\ndecision = \"allow\"\n");
}
