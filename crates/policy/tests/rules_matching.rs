//! Which commands a rule speaks of.

use sandgate_policy::command::{Assignment, Shape, SimpleCommand, Word};
use sandgate_policy::rules::Rules;

fn rules(prefix: &str, decision: &str) -> Rules {
    let text = format!("[[rule]]\nprefix = {prefix}\ndecision = \"{decision}\"\n");
    Rules::parse(&text, "rules").unwrap().into_iter().collect()
}

fn command(text: &str) -> SimpleCommand {
    let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
    SimpleCommand::from_argv(&argv)
}

/// A command whose words, after a mark, are of another shape: `*` pattern, `~` home, `$` unknown.
fn shaped(text: &str) -> SimpleCommand {
    let mut command = command(text);
    for word in &mut command.words {
        word.shape = match &word.text {
            text if text.contains('$') => Shape::Dynamic,
            text if text.starts_with('~') => Shape::Home,
            text if text.contains(['*', '?']) => Shape::Pattern,
            _ => Shape::Literal,
        };
    }
    command
}

fn with_variable(text: &str, name: &str, value: &str) -> SimpleCommand {
    let assignment = Assignment { name: name.to_owned(), value: Word::literal(value) };
    SimpleCommand { assignments: vec![assignment], ..command(text) }
}

fn matched(rules: &Rules, command: &SimpleCommand) -> bool {
    rules.matching(command).next().is_some()
}

/// spec RULES.10: A rule matches a command that begins with its words, each compared as a whole.
#[test]
fn words_are_compared_as_a_whole() {
    for decision in ["allow", "prompt", "forbid"] {
        let rules = rules(r#"["git", ["pull", "fetch"], "*"]"#, decision);
        for text in ["git pull origin", "git fetch x y", "git pull --all"] {
            assert!(matched(&rules, &command(text)), "{text}");
        }
        for text in
            ["git pull", "git", "git pul origin", "git pullx origin", "git push x", "gi x y"]
        {
            assert!(!matched(&rules, &command(text)), "{text}");
        }
    }
}

/// spec RULES.11: A rule for a bare name matches the program in a directory of the system too; a
/// path that is spelled out in a rule matches as it is.
#[test]
fn a_name_means_the_systems_program() {
    let allow = rules(r#"["git", "pull"]"#, "allow");
    for text in ["/usr/bin/git pull", "/bin/git pull"] {
        assert!(matched(&allow, &command(text)), "{text}");
    }
    for text in ["./git pull", "bin/git pull", "/tmp/git pull", "/usr/bin/../../tmp/git pull"] {
        assert!(!matched(&allow, &command(text)), "{text}");
    }
    let path = rules(r#"["./gradlew", "test"]"#, "allow");
    assert!(matched(&path, &command("./gradlew test")));
    assert!(!matched(&path, &command("gradlew test")));
    assert!(!matched(&path, &command("x/gradlew test")));
}

/// spec RULES.12: A rule that allows does not match a command with variables before it, unless each
/// is known to change nothing but how the output looks.
#[test]
fn variables_keep_a_rule_from_allowing() {
    let allow = rules(r#"["cargo", "test"]"#, "allow");
    for (name, value) in [("NO_COLOR", "1"), ("RUST_BACKTRACE", "full"), ("LC_ALL", "C.UTF-8")] {
        assert!(matched(&allow, &with_variable("cargo test", name, value)), "{name}");
    }
    for name in ["PATH", "LD_PRELOAD", "RUSTC_WRAPPER", "GIT_SSH_COMMAND", "PAGER", "EDITOR", "X"] {
        assert!(!matched(&allow, &with_variable("cargo test", name, "x")), "{name}");
    }
    let mut unknown = with_variable("cargo test", "LANG", "$X");
    unknown.assignments[0].value.shape = Shape::Dynamic;
    assert!(!matched(&allow, &unknown));
}

/// spec RULES.13: A rule that asks or forbids also matches behind variables, by any path and letter
/// case of its program, behind options before the subcommand, and where a file name pattern could
/// become its words, or words that are only known when it runs have its name in them or turn out to
/// be none.
#[test]
fn a_strict_rule_is_not_got_round_by_spelling() {
    for decision in ["prompt", "forbid"] {
        let strict = rules(r#"["git", "push"]"#, decision);
        assert!(matched(&strict, &with_variable("git push", "PATH", "/x")));
        for text in ["./git push", "/opt/x/git push", "GIT push", "git.exe push", "git -C /x push"]
        {
            assert!(matched(&strict, &command(text)), "{text}");
        }
        for text in
            ["git pus? -f", "/usr/bin/gi? push", "~/bin/git push", "git push $X", "git push *"]
        {
            assert!(matched(&strict, &shaped(text)), "{text}");
        }
        for text in ["$GIT push", "${GIT} push", "$(git) push -f", "git $X push"] {
            assert!(matched(&strict, &shaped(text)), "{text}");
        }
        for text in ["git * push", "git $X", "~/bin/hub push", "gi $X", "$X pull", "$GIT $X"] {
            assert!(!matched(&strict, &shaped(text)), "{text}");
        }
        assert!(!matched(&strict, &command("git PUSH")));
        let any = rules(r#"["rm", "*"]"#, decision);
        assert!(matched(&any, &shaped("rm *.o")) && matched(&any, &shaped("rm $X")));
    }
}

/// spec RULES.14: For a rule that allows, a word that is not known to the letter equals nothing, not
/// even `*`; after its prefix there may be any words but those of RULES.53.
#[test]
fn what_is_not_known_is_not_allowed() {
    let allow = rules(r#"["cat", "*"]"#, "allow");
    for text in ["cat *.c", "cat ~/x", "cat $X"] {
        assert!(!matched(&allow, &shaped(text)), "{text}");
    }
    assert!(matched(&allow, &shaped("cat a.c *.c ~/x")));
    let strict = rules(r#"["git", "push"]"#, "allow");
    for text in ["gi? push", "git pus?", "~/bin/git push", "GIT push", "git -C /x push"] {
        assert!(!matched(&strict, &shaped(text)), "{text}");
    }
}

#[test]
fn rules_that_match_come_in_the_order_they_were_written() {
    let rule = |prefix: &str| format!("[[rule]]\nprefix = {prefix}\ndecision = \"prompt\"\n");
    let prefixes =
        [r#"["*"]"#, r#"["a"]"#, r#"["b"]"#, r#"["*", "x"]"#, r#"[["a", "b", "A"], "x"]"#];
    let text: String = prefixes.iter().map(|prefix| rule(prefix)).collect();
    let rules: Rules = Rules::parse(&text, "f").unwrap().into_iter().collect();
    let lines = |text: &str| -> Vec<usize> {
        rules.matching(&shaped(text)).map(|rule| rule.origin.line).collect()
    };
    assert_eq!(lines("a x"), [1, 4, 10, 13]);
    assert_eq!(lines("b"), [1, 7]);
    assert_eq!(lines("c"), [1]);
    assert_eq!(lines("a? x"), [1, 10], "a pattern without a match in it becomes no other name");
    assert_eq!(rules.matching(&SimpleCommand::default()).count(), 0);
}
