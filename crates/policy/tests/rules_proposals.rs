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

/// spec RULES.44: A proposed rule keeps the sandbox, unless the approval says otherwise; only for
/// programs of a closed list, which obey no file of the directory that they run in, can it leave it.
#[test]
fn a_proposed_rule_leaves_the_sandbox_for_few_programs() {
    assert_eq!(proposal("gh pr view 12").sandbox(), RuleSandbox::Keep);
    for text in ["gh pr view 12", "gh issue list --limit 5", "kubectl get pods -n x"] {
        let out = proposal(text).leaving_the_sandbox().unwrap();
        assert_eq!(out.sandbox(), RuleSandbox::Bypass, "{text}");
        let rules = Rules::from_iter([out.as_rule(Default::default())]);
        let ruling = judged(&words(text), &rules).ruling.unwrap();
        assert_eq!(ruling.sandbox, RuleSandbox::Bypass, "{text}");
    }
    for text in [
        "./scripts/x.sh",
        "python3 x.py",
        "/ws/bin/tool go",
        "uv run python x.py",
        "touch x",
        "pytest",
        "npx prettier x",
        "make test",
        "cargo run",
        "npm install x",
        "go test ./...",
        "mvn package",
        "gradle build",
        "rake spec",
        "ninja all",
        "pip install x",
        "python3 -m pytest",
        "git fetch",
        "git push origin main",
        "mytool build",
        "gh pr create",
        "kubectl get pods --unheard-of",
    ] {
        assert_eq!(proposal(text).leaving_the_sandbox(), None, "{text}");
    }
}

/// spec APPROVAL.62: A rule of more than 200 characters, or a grant that takes more than 600 to name, is not offered: it
/// would push away what it is about.
#[test]
fn what_is_long_is_not_proposed() {
    let long = format!("git pull {}", "x".repeat(300));
    assert_eq!(proposed(&long, Some(&long)).unwrap(), "git pull");
    let long = format!("cargo {} y", "x".repeat(300));
    assert_eq!(proposed(&long, None), None);
    assert!(proposed(&format!("cargo {} y", "x".repeat(100)), None).is_some());
}

/// spec RULES.52: Nothing is proposed that allows a wrapper without the command inside of it, nor
/// the bare name of that command.
#[test]
fn no_wrapper_is_proposed() {
    for text in [
        "setarch x86_64 true",
        "fakeroot prog x",
        "chrt 1 prog x",
        "conda run prog x",
        "direnv exec . prog x",
        "perf stat prog x",
        "ld.so /bin/prog x",
        "/lib64/ld-linux-x86-64.so.2 /bin/prog x",
        "chronic prog x",
        "xcrun prog x",
        "codex exec x",
        "sandgate run x",
        "asdf exec prog x",
        "doppler run prog x",
        "aws-vault exec me prog x",
    ] {
        assert_eq!(proposed(text, None), None, "{text}");
        assert_eq!(proposed(text, Some(text)), None, "{text}");
    }
}

/// spec RULES.53: A rule that allows does not allow an option after its prefix by which the program
/// would run another, in whatever spelling; without the sandbox it allows, of programs that are known
/// to have such options, only plain words and options that are known to be harmless.
#[test]
fn what_follows_a_prefix_runs_nothing_else() {
    let ruled = |prefix: &str, sandbox: &str, text: &str| {
        let prefix = words(prefix);
        let rule = format!(
            "[[rule]]\nprefix = {prefix:?}\ndecision = \"allow\"\nsandbox = \"{sandbox}\"\n"
        );
        let rules = Rules::parse(&rule, "f").unwrap().into_iter().collect();
        let judged = judged(&words(text), &rules);
        (judged.ruling.is_some(), judged.withheld.map(|why| why.to_string()).unwrap_or_default())
    };
    for (prefix, text, word) in [
        ("git fetch", "git fetch --upload-pack=x .", "--upload-pack=x"),
        ("git fetch", "git fetch --upl x .", "--upl"),
        ("git push", "git push --receive-pack=x", "--receive-pack=x"),
        ("git push", "git push --exec=x", "--exec=x"),
        ("git rebase", "git rebase -ix x main", "-ix"),
        ("git clone", "git clone -ux y", "-ux"),
        ("go test", "go test -exec x ./...", "-exec"),
        ("cargo test", "cargo test --config x", "--config"),
        ("tar", "tar xf a --to-command=x", "--to-command=x"),
        ("rsync", "rsync -ae x a b", "-ae"),
        ("ssh host", "ssh host -oproxycommand=x", "-oproxycommand=x"),
        ("find", "find . -exec x ;", "-exec"),
        ("git", "git -c core.pager=x fetch", "-c"),
        ("git fetch", "git fetch ext::x", "ext::x"),
        ("git log", "git log --ext-d", "--ext-d"),
        ("gcc-12 a.c", "gcc-12 a.c -wrapper x", "-wrapper"),
        ("g++ a.cc", "g++ a.cc -fplugin=x", "-fplugin=x"),
        ("rustc a.rs", "rustc a.rs -Clinker=x", "-Clinker=x"),
        ("pip3 install", "pip3 install --python x a", "--python"),
        ("split a", "split a --filt=x", "--filt=x"),
        ("hg pull", "hg pull -e x", "-e"),
    ] {
        for sandbox in ["keep", "bypass"] {
            let (allowed, why) = ruled(prefix, sandbox, text);
            assert!(
                !allowed && why.contains(&format!("and not {word}, by which")),
                "{text}: {why}"
            );
        }
    }
    for (prefix, text) in [
        ("git fetch", "git fetch --unheard-of"),
        ("make test", "make test -f x"),
        ("make test", "make test -C x"),
        ("make test", "make test SHELL=x"),
        ("cargo build", "cargo build --manifest-path x"),
        ("npm install", "npm install --prefix x"),
    ] {
        assert!(ruled(prefix, "keep", text).0, "{text}");
        assert!(!ruled(prefix, "bypass", text).0, "{text}");
    }
    for (prefix, text) in [
        ("git fetch --upload-pack=x", "git fetch --upload-pack=x ."),
        ("git fetch", "git fetch --all -pv --depth=1 origin main"),
        ("make test", "make test -j8 -ks"),
        ("mytool go", "mytool go --anything"),
    ] {
        assert!(ruled(prefix, "bypass", text).0, "{text}");
    }
}

/// spec RULES.59: Nor does it allow, of whatever program, a long option after its prefix whose name says that
/// something is run by it, such as a command, a shell, a pager, a plugin or a hook.
#[test]
fn an_option_that_says_that_it_runs_something_is_not_allowed() {
    let allowed = |text: &str| {
        let prefix = "[[rule]]\nprefix = [\"mytool\", \"go\"]\ndecision = \"allow\"\n";
        let rules = Rules::parse(prefix, "f").unwrap().into_iter().collect();
        judged(&words(text), &rules).ruling.is_some()
    };
    for option in [
        "--password-command=x",
        "--exec",
        "--script-shell=x",
        "--pager=x",
        "--plugin",
        "--on_hook=x",
        "--python-executable=x",
    ] {
        assert!(!allowed(&format!("mytool go {option} y")), "{option}");
    }
    for option in ["--no-pager", "--filter=x", "-exec", "--pager=never", "--commands"] {
        assert!(allowed(&format!("mytool go {option} y")), "{option}");
    }
    // Who spells it out means it.
    let rule = "[[rule]]\nprefix = [\"mytool\", \"--exec\"]\ndecision = \"allow\"\n";
    let rules = Rules::parse(rule, "f").unwrap().into_iter().collect();
    assert!(judged(&words("mytool --exec y"), &rules).ruling.is_some());
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

    let out = proposal("gh pr view").with_justification("say \"yes\"\nto it");
    let out = out.leaving_the_sandbox().unwrap();
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
