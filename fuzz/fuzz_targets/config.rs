//! Any text as a config.toml: it is read, or what is wrong is said with a place and in harmless words; and what a
//! project's file sets is no more than the same text would set as the person's own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_config::{Owner, Problem, check};
use sandgate_fuzz::shown::assert_harmless;

fn assert_placed(text: &str, problems: &[Problem]) {
    assert!(problems.len() <= 20 || problems.iter().all(|problem| problem.fault.is_warning()));
    for problem in problems {
        assert!(
            problem.line >= 1 && problem.line <= text.split('\n').count(),
            "{problem:?} of {text:?}"
        );
        assert!(problem.column >= 1, "{problem:?} of {text:?}");
        assert_harmless(&problem.to_string());
    }
}

fuzz_target!(|text: &str| {
    let own = check(text, "config.toml", Owner::Person);
    let project = check(text, "config.toml", Owner::Project);
    for result in [&own, &project] {
        match result {
            Ok(checked) => assert_placed(text, &checked.warnings),
            Err(problems) => {
                assert!(!problems.is_empty(), "{text:?} is refused without a word");
                assert_placed(text, problems);
            }
        }
    }
    if let (Ok(own), Ok(project)) = (&own, &project) {
        assert!(project.table.keys().all(|key| own.table.contains_key(key)), "{text:?}");
        // What was kept is in order by itself.
        let again = toml::to_string(&own.table).expect("a table can be written");
        let again = check(&again, "config.toml", Owner::Person);
        assert_eq!(again.as_ref().map(|checked| &checked.table), Ok(&own.table), "{text:?}");
        let again = toml::to_string(&project.table).expect("a table can be written");
        let again = check(&again, "config.toml", Owner::Project);
        assert_eq!(again.as_ref().map(|checked| &checked.table), Ok(&project.table), "{text:?}");
        assert!(again.is_ok_and(|checked| checked.warnings.is_empty()), "{text:?}");
    }
});
