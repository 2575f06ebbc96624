//! Whatever the text is, reading it ends, and ends well. `PROPTEST_CASES` makes the run longer.

use proptest::prelude::*;
use proptest::sample::select;
use sandgate_policy::script;

/// Openers, closers and other pieces that have sent parsers down too deep or round in circles.
const PIECES: &[&str] = &[
    "$(",
    "${",
    "$((",
    "((",
    "(",
    ")",
    "))",
    "}",
    "{",
    "`",
    "\"",
    "'",
    "$'",
    "$\"",
    "<(",
    ">(",
    "[[",
    "]]",
    "[",
    "]",
    "<<E\n",
    "<<'E'\n",
    "\nE\n",
    "<<-E\n",
    "<<<",
    "case a in ",
    "esac",
    "if ",
    "then ",
    "fi",
    "for a in ",
    "do ",
    "done",
    "while ",
    "function f ",
    "f() ",
    "a[",
    "a=(",
    "$a",
    "${a[",
    "${a:-",
    "${#",
    "!(",
    "@(",
    "*(",
    "?",
    "*",
    "~",
    "\\",
    "\\\n",
    "\n",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ">",
    "<",
    ">&",
    "&>",
    "2>&1",
    "4441544415><.(",
    "#",
    "time ",
    "! ",
    "coproc ",
    "a",
    "b c",
    "-",
    "=",
    "é",
    "\u{202e}",
    "\r",
    "\t",
    "\0",
    "1",
    "{a,b}",
    "{1..9}",
    "$[",
    "%",
    "@",
    "^",
    "+=",
    "==",
    "=~",
    ",",
];

const SHELLS: &[(&str, &str)] = &[
    ("bash", "-lc"),
    ("zsh", "-c"),
    ("sh", "-c"),
    ("pwsh", "-Command"),
    ("cmd.exe", "/c"),
    ("fish", "-c"),
];

fn text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(select(PIECES), 0..60).prop_map(|pieces| pieces.concat());
    let repeated = (select(PIECES), select(PIECES), 1..2000usize, 0..50usize).prop_map(
        |(opener, filler, times, fillers)| opener.repeat(times) + &filler.repeat(fillers),
    );
    let alternating = (select(PIECES), select(PIECES), 1..1000usize)
        .prop_map(|(one, other, times)| format!("{one}{other}").repeat(times));
    prop_oneof![4 => pieces, 1 => repeated, 1 => alternating, 1 => any::<String>()]
}

fn config(cases: u32) -> ProptestConfig {
    let cases =
        std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(400))]

    /// spec SCRIPT.52: Reading any text ends without a panic, and gives a bounded list.
    #[test]
    fn any_text_can_be_read(
        text in text(),
        (shell, option) in select(SHELLS),
    ) {
        let argv = [shell, option, &text].map(str::to_owned);
        let reading = script::read(&argv);
        prop_assert!(reading.commands.len() <= 4097);
        if reading.opaque.is_none() {
            prop_assert!(reading.commands.len() <= 256);
            let is_script = matches!(reading.reader, script::Reader::Shell(_));
            prop_assert!(!(is_script && text.contains("\0")));
        }
    }

    /// spec SCRIPT.53: Words that are quoted by the rules are read back as they were, in every
    /// shell.
    #[test]
    fn quoted_words_are_read_back(
        words in prop::collection::vec("[ -~\n]{0,20}", 1..5),
        shell in select(&["bash", "zsh", "sh"][..]),
    ) {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let script = format!("x {}", quoted.join(" "));
        let reading = script::read(&[shell, "-c", &script].map(str::to_owned));
        if reading.opaque.is_none() {
            let read: Vec<&str> = reading.commands[0].literal_words().expect("all are literal");
            prop_assert_eq!(&read[1..], &words);
        } else {
            // zsh may be set to read two quotes in a row as one.
            prop_assert!(shell == "zsh" && script.contains("''"), "{:?}", script);
        }
    }
}
