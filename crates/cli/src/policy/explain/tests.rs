use super::*;
use sandgate_runtime::policy::{ExplainedAssignment, ExplainedPattern, ExplainedProposal};
use sandgate_runtime::policy::{ExplainedRedirection, ExplainedRule, ExplainedRuling};

fn literal(text: &str) -> ExplainedWord {
    ExplainedWord { text: text.to_owned(), shape: "literal" }
}

fn safe(connective: &'static str, words: &[&str]) -> ExplainedCommand {
    ExplainedCommand {
        connective,
        assignments: Vec::new(),
        words: words.iter().map(|word| literal(word)).collect(),
        redirections: Vec::new(),
        class: ClassName::Safe,
        reason: None,
        rules: Vec::new(),
    }
}

fn rule(decision: &'static str, sandbox: &'static str, line: usize) -> ExplainedRule {
    ExplainedRule {
        prefix: vec![
            ExplainedPattern::One("make".to_owned()),
            ExplainedPattern::OneOf(vec!["all".to_owned(), "the docs".to_owned()]),
            ExplainedPattern::One("*".to_owned()),
        ],
        decision,
        sandbox,
        justification: Some("it takes\nlong".to_owned()),
        file: "rules/team.toml".to_owned(),
        line,
    }
}

fn terms() -> ExplainedTerms {
    ExplainedTerms {
        approval_policy: AskForApproval::OnRequest,
        sandbox_mode: "workspace-write",
        sandbox_permissions: SandboxPermissions::UseDefault,
        sandbox_available: true,
        network: false,
        writable: Vec::new(),
    }
}

fn runs() -> ExplainedRequirement {
    ExplainedRequirement::Skip { bypass_sandbox: false, sandbox: "workspace-write" }
}

/// `bash -lc` with a script that is understood.
fn pipeline() -> Explanation {
    let make = ExplainedCommand {
        assignments: vec![ExplainedAssignment { name: "CC".to_owned(), value: literal("my cc") }],
        redirections: vec![
            ExplainedRedirection {
                descriptor: Some(2),
                operator: ">&",
                target: literal("1"),
                writes: false,
            },
            ExplainedRedirection {
                descriptor: None,
                operator: ">",
                target: literal("log"),
                writes: true,
            },
        ],
        class: ClassName::Unknown,
        reason: Some("make runs what its Makefile says".to_owned()),
        rules: vec![rule("prompt", "keep", 7)],
        ..safe("&&", &["make", "all", "x"])
    };
    let mut list = safe("|", &["ls", "-l"]);
    list.words.push(ExplainedWord { text: "*.rs".to_owned(), shape: "pattern" });
    Explanation {
        argv: ["bash", "-lc", "cd 'a b' && CC='my cc' make all x 2>&1 > log | ls -l *.rs"]
            .map(str::to_owned)
            .to_vec(),
        reader: "bash",
        opaque: None,
        commands: vec![safe("", &["cd", "a b"]), make, list],
        class: ClassName::Unknown,
        reason: Some("make runs what its Makefile says".to_owned()),
        ruling: Some(ExplainedRuling {
            decision: "prompt",
            sandbox: "keep",
            rules: vec![rule("prompt", "keep", 7)],
        }),
        withheld: None,
        terms: terms(),
        requirement: ExplainedRequirement::NeedsApproval {
            reason: "a rule asks (rules/team.toml:7: it takes\nlong)".to_owned(),
            bypass_sandbox: false,
            sandbox: "workspace-write",
            proposed_rule: None,
        },
    }
}

/// A program that wants out of the sandbox, and a rule that would let it.
fn leaving() -> Explanation {
    Explanation {
        argv: vec!["cargo".to_owned(), "publish".to_owned(), "a\u{1b}[31mb".to_owned()],
        reader: "kernel",
        commands: vec![ExplainedCommand {
            class: ClassName::Unknown,
            reason: Some("cargo runs programs".to_owned()),
            ..safe("", &["cargo", "publish", "a\u{1b}[31mb"])
        }],
        reason: Some("cargo runs programs".to_owned()),
        ruling: None,
        terms: ExplainedTerms {
            sandbox_permissions: SandboxPermissions::RequireEscalated,
            sandbox_available: false,
            ..terms()
        },
        requirement: ExplainedRequirement::NeedsApproval {
            reason: "it asks to run without the sandbox; no sandbox available".to_owned(),
            bypass_sandbox: true,
            sandbox: "none",
            proposed_rule: Some(ExplainedProposal {
                prefix: vec!["cargo".to_owned(), "publish".to_owned()],
                sandbox: "bypass",
            }),
        },
        ..pipeline()
    }
}

/// A script that is not understood, and what is dangerous in it.
fn opaque() -> Explanation {
    let mut delete = safe("", &["rm", "-rf"]);
    delete.words.push(ExplainedWord { text: "\"$DIR\"".to_owned(), shape: "dynamic" });
    delete.class = ClassName::Dangerous;
    delete.reason = Some("deletes whatever \"$DIR\" names".to_owned());
    Explanation {
        argv: vec!["sh".to_owned(), "-c".to_owned(), "rm -rf \"$DIR\"".to_owned()],
        reader: "sh",
        opaque: Some("it uses a variable".to_owned()),
        commands: vec![delete],
        class: ClassName::Dangerous,
        reason: Some("deletes whatever \"$DIR\" names".to_owned()),
        ruling: None,
        withheld: Some("rules allow only what was understood to the last letter".to_owned()),
        terms: ExplainedTerms { approval_policy: AskForApproval::Never, ..terms() },
        requirement: ExplainedRequirement::Forbidden {
            reason: "This command is dangerous. Do the work in another way.".to_owned(),
        },
    }
}

/// A program that rules let out.
fn allowed() -> Explanation {
    Explanation {
        argv: vec!["make".to_owned(), "all".to_owned(), "y".to_owned()],
        reader: "kernel",
        commands: vec![ExplainedCommand {
            rules: vec![rule("allow", "bypass", 3)],
            ..safe("", &["make", "all", "y"])
        }],
        ruling: Some(ExplainedRuling {
            decision: "allow",
            sandbox: "bypass",
            rules: vec![rule("allow", "bypass", 3)],
        }),
        requirement: ExplainedRequirement::Skip { bypass_sandbox: true, sandbox: "none" },
        ..pipeline()
    }
}

fn plain(explanation: &Explanation) -> String {
    anstream::adapter::strip_str(&tree(explanation).render()).to_string()
}

/// spec POLICY.1: An explanation shows the vector, who reads it, each command with its words,
/// redirections, class and reason, the rules with where they are written, the session's policies, and
/// what must happen.
#[test]
fn the_trees_are_what_a_person_reads() {
    insta::assert_snapshot!("pipeline", plain(&pipeline()));
    insta::assert_snapshot!("leaving", plain(&leaving()));
    insta::assert_snapshot!("opaque", plain(&opaque()));
    insta::assert_snapshot!("allowed", plain(&allowed()));
    let everyday = Explanation {
        argv: vec!["ls".to_owned()],
        commands: vec![safe("", &["ls"])],
        class: ClassName::Safe,
        reason: None,
        ruling: None,
        requirement: runs(),
        ..allowed()
    };
    insta::assert_snapshot!("everyday", plain(&everyday));
}

/// spec POLICY.2: As JSON an explanation is one object on one line with the same content.
#[test]
fn the_names_in_the_json_stay() {
    insta::assert_json_snapshot!("pipeline_json", pipeline());
    insta::assert_json_snapshot!("leaving_json", leaving());
    insta::assert_json_snapshot!("opaque_json", opaque());
}

/// spec POLICY.3: Nothing in a command reaches a terminal that it would obey, or that would turn or
/// hide what is shown.
#[test]
fn what_a_command_holds_is_only_shown() {
    let mut turned = opaque();
    turned.argv[2].push('\u{202e}');
    turned.commands[0].words[2].text.push('\u{202e}');
    turned.reason = Some("deletes \u{7}\u{202e}".to_owned());
    for explanation in [pipeline(), leaving(), turned] {
        let shown = plain(&explanation);
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{shown}");
    }
    // A newline in what a rule says makes no line.
    assert!(plain(&pipeline()).contains(r"it takes\nlong"));
}
