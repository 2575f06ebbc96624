//! What a rules file can say, and what is said about one that says it wrongly.

use sandgate_policy::rules::{
    Author, Decision, MAX_PREFIX_WORDS, MAX_RULES, MAX_RULES_BYTES, PatternWord, Problem, Rule,
    RuleSandbox, Rules, RulesError,
};

fn parse(text: &str) -> Result<Vec<Rule>, RulesError> {
    Rules::parse(text, "rules/mine.toml")
}

fn one(text: &str) -> Rule {
    let mut rules = parse(text).unwrap();
    assert_eq!(rules.len(), 1);
    rules.remove(0)
}

/// The example of docs/rules.md, so that what people copy is what works.
#[test]
fn the_example_in_the_manual_is_a_rules_file() {
    let manual = include_str!("../../../docs/rules.md");
    let example = manual.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let rules = parse(example).unwrap();
    assert!(rules.len() >= 4);
    for decision in [Decision::Allow, Decision::Prompt, Decision::Forbid] {
        assert!(rules.iter().any(|rule| rule.decision == decision), "{decision}");
    }
}

/// spec RULES.1: A rule has a prefix of words, of lists of alternatives and of `*` for any one word;
/// a decision, which is allow, prompt or forbid; and it keeps the sandbox unless it says bypass.
#[test]
fn a_rule_says_what_begins_how_and_what_follows() {
    let rule = one(r#"# mine
[[rule]]
prefix = ["git", ["pull", "fetch"], "*"]
decision = "allow"
sandbox = "bypass"
justification = "the mirror needs the network"
"#);
    let word = |text: &str| text.to_owned();
    assert_eq!(
        rule.pattern,
        [
            PatternWord::Exact(word("git")),
            PatternWord::OneOf(vec![word("pull"), word("fetch")]),
            PatternWord::Any
        ]
    );
    assert_eq!((rule.decision, rule.sandbox), (Decision::Allow, RuleSandbox::Bypass));
    assert_eq!(rule.justification.as_deref(), Some("the mirror needs the network"));
    assert_eq!(rule.origin.to_string(), "rules/mine.toml:2");
    assert_eq!(rule.origin.author, Author::Person);
    assert_eq!(rule.to_string(), r#"["git", ["pull", "fetch"], "*"]"#);

    let kept = one("[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n");
    assert_eq!((kept.sandbox, kept.justification), (RuleSandbox::Keep, None));
    assert_eq!(parse("# nothing yet\n").unwrap(), []);
}

/// spec RULES.2: Inside a list every word is meant as it is, so that `["*"]` is a star.
#[test]
fn a_star_in_a_list_is_a_star() {
    let rule =
        one("[[rule]]\nprefix = [\"expr\", \"2\", [\"*\"], [\"a b\"]]\ndecision = \"prompt\"");
    assert_eq!(rule.pattern[2], PatternWord::Exact("*".to_owned()));
    assert_eq!(rule.pattern[3], PatternWord::Exact("a b".to_owned()));
    assert_eq!(rule.to_string(), r#"["expr", "2", ["*"], ["a b"]]"#);
}

/// spec RULES.3: Whatever is wrong in a file is reported with the file, the line, the column, the
/// line itself with the place marked, and what to do about it; no rule of such a file is used.
#[test]
fn an_error_shows_the_place_and_says_what_to_do() {
    let text = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n\n[[rule]]\nprefix = [\"é\", \"x\"]\ndecision = \"alow\"\n";
    let error = parse(text).unwrap_err();
    let expected = r#"rules/mine.toml:7:12: there is no decision called "alow"
  |
7 | decision = "alow"
  |            ^^^^^^
  = write "allow", "prompt" or "forbid"; until then no rule of this file is used"#;
    assert_eq!(error.to_string(), expected);
    assert_eq!((error.line, error.column), (7, 12));
}

#[test]
fn advice_is_about_the_mistake_that_was_made() {
    for (text, place, advice) in [
        ("[[rules]]\nprefix = [\"a\"]\n", (1, 3), "every rule begins with [[rule]]"),
        ("[Rule]\nprefix = [\"a\"]\n", (1, 2), "every rule begins with [[rule]]"),
        ("prefix = [\"a\"]\n", (1, 1), "write [[rule]] before it"),
        ("[[rule]\n", (1, 8), "close it with two brackets"),
        ("[[rule]]\nprefix = [\"a\"\ndecision = \"allow\"\n", (3, 1), "close the list with ]"),
        ("[[rule]]\nprefix = [\"a\", \"b\"", (2, 19), "close the list with ]"),
        ("[[rule]]\nprefix = [\"a\" \"b\"]\n", (2, 15), "put a comma between the words"),
        ("[[rule]]\ndecision = allow\n", (2, 12), "write text in quotes"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.line, error.column), place, "{error}");
        assert!(error.problem.advice().contains(advice), "{error}");
    }
}

#[test]
fn each_mistake_is_named_where_it_is() {
    let rule = |keys: &str| format!("[[rule]]\n{keys}\n");
    let with_decision = |prefix: &str| rule(&format!("prefix = {prefix}\ndecision = \"allow\""));
    let with = |key: &str| rule(&format!("prefix = [\"a\"]\ndecision = \"allow\"\n{key}"));
    let found = |text: &str| text.to_owned();
    let cases: Vec<(String, (usize, usize), Problem)> = vec![
        (with_decision("[]"), (2, 10), Problem::EmptyPrefix),
        (with_decision("[\"\"]"), (2, 11), Problem::EmptyProgram),
        (with_decision("[\"a\", []]"), (2, 16), Problem::NoAlternatives),
        (with_decision("[\"a\", \"b*\"]"), (2, 16), Problem::StarInWord { word: found("b*") }),
        (with_decision("[\"a b\"]"), (2, 11), Problem::SpaceInWord { word: found("a b") }),
        (
            with_decision("\"git pull\""),
            (2, 10),
            Problem::WrongKind { key: "prefix", wanted: "a list of words" },
        ),
        (
            with_decision("[\"a\", 1]"),
            (2, 16),
            Problem::WrongKind { key: "prefix", wanted: "a list of words" },
        ),
        (rule("decision = \"allow\""), (1, 1), Problem::Missing { key: "prefix" }),
        (rule("prefix = [\"a\"]"), (1, 1), Problem::Missing { key: "decision" }),
        (
            rule("prefix = [\"a\"]\ndecision = 1"),
            (3, 12),
            Problem::WrongKind { key: "decision", wanted: "text" },
        ),
        (
            with("justifcation = \"x\""),
            (4, 1),
            Problem::UnknownKey { key: found("justifcation"), place: "in a rule" },
        ),
        (with("sandbox = \"none\""), (4, 11), Problem::UnknownSandbox { found: found("none") }),
        (
            rule("prefix = [\"a\"]\ndecision = \"forbid\"\nsandbox = \"keep\""),
            (4, 1),
            Problem::SandboxWithoutAllow,
        ),
        (
            with("match = \"a b\""),
            (4, 9),
            Problem::WrongKind { key: "match", wanted: "a list of examples" },
        ),
        (
            with("not_match = [[]]"),
            (4, 14),
            Problem::WrongKind { key: "not_match", wanted: "a list of examples" },
        ),
        ("[rules]\n".to_owned(), (1, 2), Problem::UnknownTable { name: found("rules") }),
        ("[rule]\nprefix = [\"a\"]".to_owned(), (1, 2), Problem::NotTables),
        ("rule = []".to_owned(), (1, 1), Problem::NotTables),
    ];
    for (text, place, problem) in cases {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.problem, problem, "{text}");
        assert_eq!((error.line, error.column), place, "{error}");
    }
}

#[test]
fn what_is_not_toml_is_shown_where_it_stops_being_so() {
    let error = parse("[[rule]]\nprefix = [\"git\", pull]\n").unwrap_err();
    assert!(matches!(error.problem, Problem::Syntax(_)));
    assert_eq!((error.line, error.column), (2, 18), "{error}");
    let twice = parse("[[rule]]\ndecision = \"allow\"\ndecision = \"allow\"\n").unwrap_err();
    assert_eq!((twice.line, twice.column), (3, 1), "{twice}");
}

#[test]
fn what_is_shown_of_a_line_is_short_and_harmless() {
    let long = format!("[[rule]]\nprefix = [{}\"b*\"]\n", "\"a\", ".repeat(60));
    let error = parse(&long).unwrap_err();
    let shown = error.to_string();
    assert!(shown.lines().all(|line| line.chars().count() < 200), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    let place = lines[3].find('^').unwrap();
    assert_eq!(&lines[2][place..place + 4], "\"b*\"");

    let error = parse("[[rule]]\nprefix = [\"a\u{202e}*\"]\n").unwrap_err();
    assert!(!error.to_string().lines().nth(2).unwrap().contains('\u{202e}'));
}

/// spec RULES.4: A rule is tried on the examples that it must match and on those that it must not
/// when its file is read.
#[test]
fn examples_are_tried() {
    let with = |examples: &str| {
        parse(&format!("[[rule]]\nprefix = [\"git\", \"push\"]\ndecision = \"prompt\"\n{examples}"))
    };
    with("match = [[\"git\", \"push\", \"-f\"]]\nnot_match = [[\"git\", \"pull\"]]").unwrap();
    let error = with("match = [[\"git\", \"push\"], [\"git\", \"pull\"]]").unwrap_err();
    assert_eq!(error.problem, Problem::ExampleNotMatched { reason: None });
    assert_eq!((error.line, error.column), (4, 27), "{error}");
    let error = with("not_match = [[\"git\", \"push\"]]").unwrap_err();
    assert_eq!(error.problem, Problem::ExampleMatched);
}

/// spec RULES.5: A file of more than 1 MiB or 10,000 rules, and a prefix of more than 64 words, are
/// refused.
#[test]
fn there_are_limits() {
    let rule = "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n";
    assert_eq!(parse(&rule.repeat(MAX_RULES)).unwrap().len(), 10_000);
    let error = parse(&rule.repeat(MAX_RULES + 1)).unwrap_err();
    assert_eq!((error.problem, error.line), (Problem::TooManyRules, 30_001));

    let comment = "#".repeat(MAX_RULES_BYTES);
    assert_eq!(parse(&comment).unwrap(), []);
    let bytes = MAX_RULES_BYTES + 1;
    assert_eq!(parse(&format!("{comment}#")).unwrap_err().problem, Problem::TooLarge { bytes });

    let words = |count| {
        format!("[[rule]]\nprefix = [{}]\ndecision = \"allow\"\n", vec!["\"a\""; count].join(","))
    };
    assert_eq!(one(&words(MAX_PREFIX_WORDS)).pattern.len(), 64);
    assert_eq!(parse(&words(MAX_PREFIX_WORDS + 1)).unwrap_err().problem, Problem::LongPrefix);
}

/// spec RULES.6: A file of a project in which a rule leaves the sandbox is refused.
#[test]
fn a_projects_rule_does_not_leave_the_sandbox() {
    let text = "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\nsandbox = \"bypass\"\n";
    let error = Rules::parse_of_project(text, ".codex/rules/x.toml").unwrap_err();
    assert_eq!(error.problem, Problem::BypassOfProject);
    assert_eq!((error.line, error.column), (4, 11));
    let kept = text.replace("bypass", "keep");
    let rules = Rules::parse_of_project(&kept, ".codex/rules/x.toml").unwrap();
    assert_eq!(rules[0].origin.author, Author::Project);
}

#[test]
fn a_rule_that_allows_names_its_program() {
    for (prefix, decision, fine) in [
        (r#"["*"]"#, "allow", false),
        (r#"["*", "--version"]"#, "allow", false),
        (r#"["*"]"#, "prompt", true),
        (r#"["git", "*"]"#, "allow", true),
    ] {
        let text = format!("[[rule]]\nprefix = {prefix}\ndecision = \"{decision}\"\n");
        let parsed = Rules::parse(&text, "rules.toml");
        assert_eq!(parsed.is_ok(), fine, "{text}");
        if let Err(error) = parsed {
            assert!(error.to_string().contains("must name the program"), "{error}");
        }
    }
}
