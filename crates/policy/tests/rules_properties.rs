//! What holds for every rules file and every command.

use proptest::prelude::*;
use sandgate_policy::command::{Shape, SimpleCommand, Word};
use sandgate_policy::rules::{
    Decision, Origin, PatternWord, Rule, RuleSandbox, Rules, append, propose,
};
use sandgate_policy::{Surroundings, judge};
use sandgate_protocol::is_invisible;

/// Text with more of TOML in it than chance would put there.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => Just("[[rule]]\n".to_owned()),
        3 => Just("prefix = [\"git\", [\"a\", \"*\"], \"*\"]\n".to_owned()),
        3 => Just("decision = \"allow\"\n".to_owned()),
        1 => Just("decision = \"prompt\"\r\n".to_owned()),
        1 => Just("sandbox = \"bypass\"\n".to_owned()),
        1 => Just("match = [\"git a b\", [\"git\", \"a\", \"b\"]]\n".to_owned()),
        1 => Just("not_match = [\"git\"]\n".to_owned()),
        1 => Just("# é comment\n\n".to_owned()),
        1 => Just("rule.prefix = 1\n".to_owned()),
        1 => Just("[rule]\n".to_owned()),
        1 => Just("\u{feff}".to_owned()),
        1 => "[\\[\\]{}\"'=.,#\\\\\n\r\t a-c1-3é\u{ad}\u{2028}\u{3164}\u{e0041}]{0,12}",
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// A file that can be read.
fn file() -> impl Strategy<Value = String> {
    let rule =
        Just("[[rule]]\nprefix = ['git', [\"push\", '*']]\ndecision = \"prompt\"\n".to_owned());
    let quiet = prop_oneof![Just("\n"), Just("# note\n"), Just("\t# é\r\n"), Just("  \n")];
    let piece = prop_oneof![rule, quiet.prop_map(str::to_owned)];
    let end = prop_oneof![Just(""), Just("# the end"), Just("  ")];
    (prop::collection::vec(piece, 0..6), end).prop_map(|(pieces, end)| pieces.concat() + end)
}

fn word() -> impl Strategy<Value = Word> {
    let shape = prop_oneof![
        6 => Just(Shape::Literal),
        1 => Just(Shape::Pattern),
        1 => Just(Shape::Home),
        1 => Just(Shape::Dynamic),
    ];
    ("[ab*?/\\[\\]]{0,3}", shape).prop_map(|(text, shape)| Word { text, shape })
}

fn command() -> impl Strategy<Value = SimpleCommand> {
    prop::collection::vec(word(), 0..5)
        .prop_map(|words| SimpleCommand { words, ..SimpleCommand::default() })
}

fn pattern_word() -> impl Strategy<Value = PatternWord> {
    let text = || "[ab*]{1,2}";
    prop_oneof![
        4 => text().prop_map(PatternWord::Exact),
        2 => prop::collection::vec(text(), 2..4).prop_map(PatternWord::OneOf),
        1 => Just(PatternWord::Any),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let decision =
        prop_oneof![Just(Decision::Allow), Just(Decision::Prompt), Just(Decision::Forbid)];
    (prop::collection::vec(pattern_word(), 1..5), decision).prop_map(|(pattern, decision)| Rule {
        pattern,
        decision,
        sandbox: RuleSandbox::Keep,
        justification: None,
        origin: Origin::default(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused_with_a_place_in_it(text in text()) {
        if let Err(error) = Rules::parse(&text, "f") {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count());
            prop_assert!(error.column >= 1);
            let shown = error.to_string();
            prop_assert_eq!(shown.split('\n').count(), 5, "{}", shown);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown);
            prop_assert!(!shown.chars().any(is_invisible), "{:?}", shown);
        }
    }

    #[test]
    fn adding_a_rule_keeps_every_byte_and_says_it_once(
        text in file(),
        arguments in prop::collection::vec("[a-z*\"'\\\\ é\u{1}\n]{1,4}", 0..3),
        reason in any::<Option<String>>(),
    ) {
        let argv: Vec<String> =
            ["pytest".to_owned()].into_iter().chain(arguments).collect();
        let judged = judge(&argv, &Surroundings::default(), &Rules::default());
        let mut rule = propose(&judged, Some(&argv)).unwrap();
        if let Some(reason) = &reason {
            rule = rule.with_justification(reason.clone());
        }
        let longer = append(&text, "f", &rule).unwrap();
        prop_assert!(longer.starts_with(&text));
        let (before, after) = (Rules::parse(&text, "f").unwrap(), Rules::parse(&longer, "f").unwrap());
        prop_assert_eq!(&after[..before.len()], &before[..]);
        prop_assert_eq!(after.len(), before.len() + 1);
        let added = &after[before.len()];
        prop_assert_eq!(added, &rule.as_rule(added.origin.clone()));
        prop_assert_eq!(append(&longer, "f", &rule).unwrap(), longer);
    }

    #[test]
    fn a_longer_prefix_matches_less(rule in rule(), command in command()) {
        let mut shorter = rule.clone();
        shorter.pattern.pop();
        if !shorter.pattern.is_empty() && rule.matches(&command) {
            prop_assert!(shorter.matches(&command));
        }
    }

    #[test]
    fn what_a_rule_allows_it_would_also_forbid(rule in rule(), command in command()) {
        let allow = Rule { decision: Decision::Allow, ..rule.clone() };
        let forbid = Rule { decision: Decision::Forbid, ..rule };
        prop_assert!(!allow.matches(&command) || forbid.matches(&command));
    }

    #[test]
    fn the_index_finds_every_rule_that_matches(
        all in prop::collection::vec(rule(), 0..12),
        command in command(),
    ) {
        let rules: Rules = all.iter().cloned().collect();
        let found: Vec<Rule> = rules.matching(&command).cloned().collect();
        let expected: Vec<Rule> = all.into_iter().filter(|rule| rule.matches(&command)).collect();
        prop_assert_eq!(found, expected);
    }
}
