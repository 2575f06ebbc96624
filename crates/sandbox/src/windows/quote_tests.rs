//! Quoting, held against the documented rules for taking a command line apart.

use super::*;
use proptest::prelude::*;

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn line(program: &str, arguments: &[String]) -> Result<String, QuoteError> {
    let arguments: Vec<Vec<u16>> = arguments.iter().map(|text| wide(text)).collect();
    let arguments = arguments.iter().map(Vec::as_slice);
    command_line(&wide(program), arguments).map(|line| String::from_utf16(&line).unwrap())
}

fn batch(script: &str, arguments: &[String]) -> Result<String, QuoteError> {
    let arguments: Vec<Vec<u16>> = arguments.iter().map(|text| wide(text)).collect();
    let arguments = arguments.iter().map(Vec::as_slice);
    let interpreter = wide(r"C:\Windows\System32\cmd.exe");
    let line = batch_line(&interpreter, &wide(script), arguments);
    line.map(|line| String::from_utf16(&line).unwrap())
}

/// The rules of the C runtime, as Microsoft documents them for `main`.
fn parse(line: &str) -> Vec<String> {
    let mut rest = line.chars().peekable();
    let mut argv = Vec::new();
    // The first one: a quotation mark switches, nothing else means anything.
    let mut name = String::new();
    let mut inside = false;
    while let Some(c) = rest.next_if(|c| inside || !matches!(c, ' ' | '\t')) {
        if c == '"' { inside = !inside } else { name.push(c) }
    }
    argv.push(name);
    loop {
        while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if rest.peek().is_none() {
            return argv;
        }
        argv.push(parse_one(&mut rest));
    }
}

fn parse_one(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut argument = String::new();
    let mut inside = false;
    while let Some(&c) = rest.peek() {
        let mut backslashes = 0;
        while rest.next_if_eq(&'\\').is_some() {
            backslashes += 1;
        }
        if backslashes > 0 {
            let before_quote = rest.peek() == Some(&'"');
            let kept = if before_quote { backslashes / 2 } else { backslashes };
            argument.extend(std::iter::repeat_n('\\', kept));
            if before_quote && backslashes % 2 == 1 {
                rest.next();
                argument.push('"');
            }
            continue;
        }
        if !inside && matches!(c, ' ' | '\t') {
            break;
        }
        rest.next();
        if c != '"' {
            argument.push(c);
        } else if inside && rest.next_if_eq(&'"').is_some() {
            // Two within quotes are one of them.
            argument.push('"');
        } else {
            inside = !inside;
        }
    }
    argument
}

/// What `cmd.exe` makes of the text behind `/s /c`: the outer quotes go, and nothing but a space may
/// then stand outside of quotes, nor anything inside that means something there.
fn through_cmd(line: &str) -> Vec<String> {
    let (_, command) = line.split_once(" /d /e:on /v:off /s /c ").unwrap();
    let command = command.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
    let mut inside = false;
    for c in command.chars() {
        if c == '"' {
            inside = !inside;
        } else {
            assert!(inside || c == ' ', "{c:?} is outside of quotes in {command}");
            assert!(!matches!(c, '%' | '\n' | '\r'), "{c:?} means something in {command}");
        }
    }
    assert!(!inside, "the quotes of {command} do not end");
    parse(command)
}

/// spec PLATFORMS.20: A command line that Windows is given is quoted so that the rules of the C
/// runtime give the same arguments back.
#[test]
fn the_awkward_ones_come_back() {
    let arguments =
        ["", " ", "a b", "\"", "\\", "a\\", "a b\\", "a\\\"b", "\\\\\"\\\\", "\t", "%x%"];
    let arguments = arguments.map(str::to_owned);
    let found = line(r"C:\Program Files\x.exe", &arguments).unwrap();
    assert_eq!(parse(&found)[1..], arguments);
    assert_eq!(parse(&found)[0], r"C:\Program Files\x.exe");
    assert_eq!(line("x", &["a b\\".into(), "c\\\"".into()]).unwrap(), r#""x" "a b\\" c\\\""#);
}

/// spec PLATFORMS.21: What no quoting can say to Windows is refused: a NUL, a quotation mark in a
/// program's path, a line of more than 32,766 characters.
#[test]
fn what_cannot_be_said_is_refused() {
    assert!(matches!(line("a\"b", &[]), Err(QuoteError::Program(_))));
    assert!(matches!(line("a\0", &[]), Err(QuoteError::Program(_))));
    assert!(matches!(line("a", &["b\0c".into()]), Err(QuoteError::Nul(_))));
    let longest = "x".repeat(32_767 - 5);
    assert_eq!(line("x", std::slice::from_ref(&longest)).unwrap().len(), 32_766);
    let error = line("x", &[longest + "x"]).unwrap_err();
    assert_eq!(error, QuoteError::TooLong { units: 32_768, limit: 32_767 });
}

/// spec PLATFORMS.22: A batch file is run by `cmd.exe` with every argument in quotes, and an argument
/// with a character that `cmd.exe` would not leave alone there is refused.
#[test]
fn cmd_is_told_nothing_that_it_would_read() {
    let calm = ["a&calc", "^|<>()!x!", "a b\\", ""].map(str::to_owned);
    let found = batch(r"C:\t\x.cmd", &calm).unwrap();
    assert_eq!(through_cmd(&found)[1..], calm);
    for hostile in ["\"&calc", "%PATH%", "a\nb", "a\rb", "\x1a", "\0"] {
        let found = batch(r"C:\t\x.cmd", &[hostile.to_owned()]);
        assert!(matches!(found, Err(QuoteError::Batch { .. })), "{hostile:?}");
    }
    assert!(matches!(batch(r"C:\%t%\x.cmd", &[]), Err(QuoteError::Batch { .. })));
    let long = batch("x.cmd", &["x".repeat(8_191)]);
    assert!(matches!(long, Err(QuoteError::TooLong { limit: 8_191, .. })));
}

/// spec PLATFORMS.23: A file is a batch file by its extension, in any letters and with any dots and
/// spaces behind it.
#[test]
fn a_batch_file_is_known_by_its_name() {
    for name in ["x.bat", "X.BAT", r"C:\a b\x.cmd", "x.cmd.", "x.bat . .", ".bat"] {
        assert!(is_batch(&wide(name)), "{name}");
    }
    for name in ["x.exe", "bat", "x.bat.exe", "xbat", "", ". ."] {
        assert!(!is_batch(&wide(name)), "{name}");
    }
}

#[test]
fn a_path_is_plain_where_that_means_the_same() {
    let long = format!(r"\\?\C:\{}", "x".repeat(260));
    for (path, expected) in [
        (r"\\?\C:\work", r"C:\work"),
        (r"C:\work", r"C:\work"),
        (r"\\?\UNC\server\share", r"\\?\UNC\server\share"),
        (r"\\?\C:\work.\x", r"\\?\C:\work.\x"),
        (&long, &long),
    ] {
        assert_eq!(String::from_utf16(plain_path(&wide(path))).unwrap(), expected);
    }
}

proptest! {
    /// spec PLATFORMS.20: A command line that Windows is given is quoted so that the rules of the C
    /// runtime give the same arguments back.
    #[test]
    fn any_argument_comes_back(
        arguments in prop::collection::vec(r#"([ab"\\ \t^&|<>%!é𝄞]|\PC){0,8}"#, 0..5),
    ) {
        let found = line(r"C:\Program Files\x.exe", &arguments).unwrap();
        prop_assert_eq!(&parse(&found)[1..], &arguments[..]);
    }

    /// spec PLATFORMS.22: A batch file is run by `cmd.exe` with every argument in quotes, and an
    /// argument with a character that `cmd.exe` would not leave alone there is refused.
    #[test]
    fn any_argument_that_cmd_is_given_comes_back(
        arguments in prop::collection::vec(r#"[ab"\\ \t^&|<>%!(),;=é\n]{0,6}"#, 0..4),
    ) {
        let refused = arguments.iter().any(|text| text.contains(['"', '%', '\n']));
        match batch(r"C:\t\x.bat", &arguments) {
            Ok(found) => {
                prop_assert!(!refused);
                prop_assert_eq!(&through_cmd(&found)[1..], &arguments[..]);
            }
            Err(_) => prop_assert!(refused),
        }
    }
}
