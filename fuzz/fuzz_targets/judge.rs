//! Any words, judged: as a vector whose words are separated by U+0001, and as a script.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_policy::rules::Rules;
use sandgate_policy::{Surroundings, judge};

fuzz_target!(|text: &str| {
    let vector: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    let _ = judge(&vector, &Surroundings::default(), &Rules::default());
    let script = ["bash", "-lc", text].map(str::to_owned);
    let _ = judge(&script, &Surroundings::default(), &Rules::default());
});
