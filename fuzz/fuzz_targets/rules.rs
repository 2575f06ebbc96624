//! Any text as a rules file: read, or refused with a place in it; and a rule that is added to one changes nothing
//! else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_fuzz::shown::assert_harmless;
use sandgate_policy::rules::{Rules, append, propose};
use sandgate_policy::{Surroundings, judge};

fuzz_target!(|text: &str| {
    let before = match Rules::parse(text, "f") {
        Ok(before) => before,
        Err(error) => {
            assert!(error.line >= 1 && error.line <= text.split('\n').count(), "{text:?}");
            assert!(error.column >= 1, "{text:?}");
            assert_harmless(&error.to_string());
            return;
        }
    };
    let argv = ["pytest", "-k", text.lines().last().unwrap_or("x")].map(str::to_owned);
    let judged = judge(&argv, &Surroundings::default(), &Rules::default());
    let Some(rule) = propose(&judged, Some(&argv)) else { return };
    // Only a file that is as long as one may be takes no more.
    let Ok(longer) = append(text, "f", &rule) else {
        assert!(text.len() > 1000 || before.len() > 10, "{text:?}");
        return;
    };
    assert!(longer.starts_with(text), "{text:?}");
    let after = Rules::parse(&longer, "f").expect("what was added can be read");
    assert_eq!(after[..before.len()], before[..], "{text:?}");
    assert!(after.len() <= before.len() + 1, "{text:?}");
    assert_eq!(append(&longer, "f", &rule).as_deref(), Ok(&*longer), "it is added once");
});
