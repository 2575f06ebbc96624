//! How command vectors are read: tables of scripts, and what each of them is.

use std::fmt::Write as _;

use sandgate_policy::command::{RedirectionKind, Shape, SimpleCommand, Word};
use sandgate_policy::script::{self, Reader, Reading, ShellKind};

fn vector(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn read(words: &[&str]) -> Reading {
    script::read(&vector(words))
}

/// One line for a reading, so that a table can be compared by eye. A pattern is written in `*…*`,
/// a word with the home directory in `~…~` and one that is not known in `?…?`.
fn line(reading: &Reading) -> String {
    let mut line = String::new();
    for command in &reading.commands {
        let _ = write!(line, "{}{:?}", if line.is_empty() { "" } else { " " }, command.connective);
        for assignment in &command.assignments {
            let _ = write!(line, " {}={}", assignment.name, shown(&assignment.value));
        }
        for word in &command.words {
            let _ = write!(line, " {}", shown(word));
        }
        for redirection in &command.redirections {
            let descriptor = redirection.descriptor.map_or(String::new(), |it| it.to_string());
            let _ =
                write!(line, " {descriptor}{:?}({})", redirection.kind, shown(&redirection.target));
        }
    }
    line
}

fn shown(word: &Word) -> String {
    match word.shape {
        Shape::Literal => format!("{:?}", word.text),
        Shape::Pattern => format!("*{}*", word.text),
        Shape::Home => format!("~{}~", word.text),
        Shape::Dynamic => format!("?{}?", word.text),
    }
}

fn assert_understood(shell: &str, table: &[(&str, &str)]) {
    for (script, expected) in table {
        let reading = read(&[shell, "-c", script]);
        assert_eq!(reading.opaque, None, "{shell}: {script:?}");
        assert_eq!(line(&reading), *expected, "{shell}: {script:?}");
    }
}

fn assert_opaque(shell: &str, scripts: &[&str]) {
    for script in scripts {
        let reading = read(&[shell, "-c", script]);
        assert!(reading.opaque.is_some(), "{shell}: {script:?} was read as {}", line(&reading));
    }
}

/// spec SCRIPT.1: A vector that calls no shell is one command that the kernel reads, word by word.
#[test]
fn a_vector_without_a_shell_is_one_command() {
    for words in
        [&["ls", "-l", "$(x)", "a > b"][..], &["./bash", "-c", "ls"], &["/tmp/sh", "-c", "x"]]
    {
        let reading = read(words);
        assert_eq!(reading.reader, Reader::Kernel);
        assert_eq!(reading.commands, [SimpleCommand::from_argv(&vector(words))]);
        assert_eq!(reading.opaque, None);
    }
    assert_eq!(read(&[]).commands, [SimpleCommand::default()]);
}

/// spec SCRIPT.2: A call of bash, zsh, sh or dash with a script is read as that script, whichever
/// way its harmless options are written.
#[test]
fn a_shell_with_a_script_is_read_as_the_script() {
    for words in [
        &["bash", "-c", "ls"][..],
        &["bash", "-lc", "ls"],
        &["bash", "-cl", "ls"],
        &["bash", "-l", "-c", "ls"],
        &["bash", "-c", "-l", "ls"],
        &["bash", "--login", "-c", "ls"],
        &["bash", "--norc", "--noprofile", "-c", "ls"],
        &["bash", "-xec", "ls"],
        &["bash", "-o", "errexit", "-c", "ls"],
        &["bash", "-euo", "pipefail", "-c", "ls"],
        &["bash", "-c", "ls", "name", "argument"],
        &["/bin/bash", "-c", "ls"],
        &["/usr/bin/zsh", "-lc", "ls"],
        &["zsh", "-f", "-c", "ls"],
        &["sh", "-c", "ls"],
        &["dash", "-ec", "ls"],
    ] {
        let reading = read(words);
        assert!(matches!(reading.reader, Reader::Shell(_)), "{words:?}");
        assert_eq!(reading.opaque, None, "{words:?}");
        assert_eq!(line(&reading), "First \"ls\"", "{words:?}");
    }
}

/// spec SCRIPT.3: A shell that is called with any other option is not understood, but its script
/// is still searched.
#[test]
fn strange_options_of_a_shell_are_not_understood() {
    for words in [
        &["bash", "-ic", "ls"][..],
        &["bash", "-i", "-c", "ls"],
        &["bash", "--rcfile", "x", "-c", "ls"],
        &["bash", "--init-file", "x", "-c", "ls"],
        &["bash", "-O", "extglob", "-c", "ls"],
        &["bash", "-o", "keyword", "-c", "ls"],
        &["bash", "+x", "-c", "ls"],
        &["bash", "-kc", "ls"],
        &["bash", "-sc", "ls"],
        &["bash", "--posix", "-c", "ls"],
        &["zsh", "-o", "extendedglob", "-c", "ls"],
        &["zsh", "-c", "-l", "ls"],
        &["sh", "-ic", "ls"],
    ] {
        let reading = read(words);
        assert!(reading.opaque.is_some(), "{words:?}");
        assert_eq!(line(&reading), "First \"ls\"", "{words:?}");
    }
}

/// spec SCRIPT.4: A shell with a file, or with no script at all, is one command like any other.
#[test]
fn a_shell_without_a_script_is_a_program() {
    for words in [
        &["bash"][..],
        &["bash", "x.sh"],
        &["bash", "-l"],
        &["bash", "-lc"],
        &["sh", "x", "-c", "ls"],
    ] {
        let reading = read(words);
        assert_eq!(reading.reader, Reader::Kernel, "{words:?}");
        assert_eq!(reading.commands, [SimpleCommand::from_argv(&vector(words))]);
    }
}

/// spec SCRIPT.5: A call of a shell whose language is not read is opaque, and holds both the vector
/// and what its script looks like.
#[test]
fn other_shells_are_opaque() {
    for name in ["fish", "ksh", "mksh", "nu", "tcsh", "/bin/ksh"] {
        let reading = read(&[name, "-c", "ls; rm -rf x"]);
        assert!(reading.opaque.is_some(), "{name}");
        assert_eq!(reading.reader, Reader::Kernel);
        assert!(line(&reading).ends_with("First \"ls\" Then \"rm\" \"-rf\" \"x\""), "{name}");
    }
}

/// spec SCRIPT.10: Lists, pipelines, negation, comments, subshells and groups of plain commands are
/// understood, each command with how it hangs on the one before it.
#[test]
fn lists_and_pipelines_are_understood() {
    assert_understood(
        "bash",
        &[
            ("a; b", r#"First "a" Then "b""#),
            ("a\nb\n\n", r#"First "a" Then "b""#),
            ("a && b || c", r#"First "a" And "b" Or "c""#),
            ("a | b |& c", r#"First "a" Pipe "b" PipeBoth "c""#),
            ("a & b &", r#"First "a" Beside "b""#),
            ("! a | b", r#"First "a" Pipe "b""#),
            ("a # not b", r#"First "a""#),
            ("# a\nb", r#"First "b""#),
            ("(a; b) && c", r#"First "a" Then "b" And "c""#),
            ("{ a; b; } | c", r#"First "a" Then "b" Pipe "c""#),
            ("a \\\n  -x \\\n  | b", r#"First "a" "-x" Pipe "b""#),
            ("a &&\n b", r#"First "a" And "b""#),
            ("time a b", r#"First "a" "b""#),
            ("[ -f a ] && b", r#"First "[" "-f" "a" "]" And "b""#),
            ("test a = b", r#"First "test" "a" "=" "b""#),
            ("exit 3", r#"First "exit" "3""#),
            ("", ""),
            ("# nothing", ""),
        ],
    );
}

/// spec SCRIPT.11: Quotes and backslashes are undone as the shell does it, and what they protect
/// is nothing but text.
#[test]
fn quotes_are_undone() {
    assert_understood(
        "bash",
        &[
            (r#"a 'b c' "d e""#, r#"First "a" "b c" "d e""#),
            (r#"a '' "" x''y"#, r#"First "a" "" "" "xy""#),
            (r"a b\ c \; \*", r#"First "a" "b c" ";" "*""#),
            (r#"a 'it'\''s' "q\"r" "\a""#, r#"First "a" "it's" "q\"r" "\\a""#),
            (r#"a -de"le"te 'x'"y"z"#, r#"First "a" "-delete" "xyz""#),
            (r#"a '$(b)' '`b`' "\$c""#, r#"First "a" "$(b)" "`b`" "$c""#),
            (r#"a "b$" "c$|d""#, r#"First "a" "b$" "c$|d""#),
            ("a 'b\nc'", r#"First "a" "b\nc""#),
            (r"\a", r#"First "a""#),
            ("a b#c", r#"First "a" "b#c""#),
            (r"a {} stash@{0} HEAD^ b!", r#"First "a" "{}" "stash@{0}" "HEAD^" "b!""#),
            ("echo if then done", r#"First "echo" "if" "then" "done""#),
        ],
    );
}

/// spec SCRIPT.12: File name patterns without quotes and `~` keep their shape.
#[test]
fn patterns_and_the_home_directory_keep_their_shape() {
    assert_understood(
        "bash",
        &[
            ("a *.rs b? [cd]e", r#"First "a" **.rs* *b?* *[cd]e*"#),
            ("a ~ ~/x HEAD~1", r#"First "a" ~~~ ~~/x~ "HEAD~1""#),
            ("a '*' \"~\" \\~", r#"First "a" "*" "~" "~""#),
            ("A=* b", r#"First A="*" "b""#),
        ],
    );
    assert_opaque("bash", &["a \"b\"*", "a ~root", "a b=~/c", "A=~ b", "A=x:~ b", "a ~/*", "* a"]);
}

/// spec SCRIPT.13: Assignments and redirections are kept with their command, and those of a group
/// with each command in it.
#[test]
fn assignments_and_redirections_are_kept() {
    assert_understood(
        "bash",
        &[
            ("A=b C=\"d e\" f", r#"First A="b" C="d e" "f""#),
            ("A=b", r#"First A="b""#),
            ("A= b", r#"First A="" "b""#),
            ("export A=b C=\"d e\"", r#"First "export" "A=b" "C=d e""#),
            ("a >b 2>&1", r#"First "a" Write("b") 2Duplicate("1")"#),
            ("a > b c", r#"First "a" "c" Write("b")"#),
            (">b a", r#"First "a" Write("b")"#),
            ("> b", r#"First Write("b")"#),
            ("a >>b <c", r#"First "a" Append("b") Read("c")"#),
            ("a &>b", r#"First "a" WriteBoth("b")"#),
            ("a >&b", r#"First "a" WriteBoth("b")"#),
            ("a &>>b", r#"First "a" AppendBoth("b")"#),
            ("a >|b", r#"First "a" Clobber("b")"#),
            ("a >&2 2>&- <&0", r#"First "a" Duplicate("2") 2Duplicate("-") Duplicate("0")"#),
            ("a <<< 'b c'", r#"First "a" HereString("b c")"#),
            ("a && b > c", r#"First "a" And "b" Write("c")"#),
            ("a | b > c", r#"First "a" Pipe "b" Write("c")"#),
            ("{ a; b >d; } >c", r#"First "a" Write("c") Then "b" Write("c") Write("d")"#),
            ("(a; b) 2>c", r#"First "a" 2Write("c") Then "b" 2Write("c")"#),
            ("a > ~/b", r#"First "a" Write(~~/b~)"#),
        ],
    );
}

/// spec SCRIPT.14: Here-documents are understood when their text is known to the letter.
#[test]
fn here_documents_are_understood() {
    assert_understood(
        "bash",
        &[
            ("a <<'E'\n$x `y`\nE\n", "First \"a\" HereDocument(\"$x `y`\\n\")"),
            ("a <<\"E\"\nb \\\nE", "First \"a\" HereDocument(\"b \\\\\\n\")"),
            ("a <<\\E\n$x\nE\nb", "First \"a\" HereDocument(\"$x\\n\") Then \"b\""),
            ("a <<E\nb\nE", "First \"a\" HereDocument(\"b\\n\")"),
            ("a - <<E\nb\nE", "First \"a\" \"-\" HereDocument(\"b\\n\")"),
            ("a <<-E\n\t\tb\n\tE\nc", "First \"a\" HereDocument(\"b\\n\") Then \"c\""),
            ("a > b <<E\nc\nE", "First \"a\" Write(\"b\") HereDocument(\"c\\n\")"),
            ("a <<E > b\nc\nE", "First \"a\" HereDocument(\"c\\n\") Write(\"b\")"),
            ("a <<E | b\nc\nE", "First \"a\" HereDocument(\"c\\n\") Pipe \"b\""),
            (
                "a <<'E' > f && b\nc\nE\nd",
                "First \"a\" HereDocument(\"c\\n\") Write(\"f\") And \"b\" Then \"d\"",
            ),
            ("a <<E\nE\n", "First \"a\" HereDocument(\"\")"),
        ],
    );
    assert_opaque(
        "bash",
        &[
            "a <<E\n$x\nE",
            "a <<E\n`b`\nE",
            "a <<E\n\\\nE\nE",
            "a <<E\nb",
            "a <<E <<F\nb\nE\nc\nF",
            "a <<'E F'\nb\nE F",
            "a <<$E\nb\n$E",
            "a <<E'F'\nb\nEF",
        ],
    );
}

/// spec SCRIPT.20: Whatever is made while a script runs makes it opaque: expansions, substitutions,
/// arithmetic, brace expansion, extended patterns and special quotes.
#[test]
fn expansions_are_opaque() {
    assert_opaque(
        "bash",
        &[
            "a $b",
            "a ${b}",
            "a \"$b\"",
            "a \"${b@P}\"",
            "a ${b:=c}",
            "$b",
            "a$IFS-b",
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a \"`b`\"",
            "a <(b)",
            "a > >(b)",
            "a $((1))",
            "a $[1]",
            "((1))",
            "a {b,c}",
            "a {1..3}",
            "a b{c,d}",
            "a !(b)",
            "a @(b|c)",
            "a +(b)",
            "$'a'",
            "a $'b'",
            "a $\"b\"",
            "a $",
            "a b$",
            "a \\\\$(b)",
            "a '\\'$(b)",
            "a 'b'$c",
            "tou\\\nch x",
        ],
    );
}

/// spec SCRIPT.21: Compound commands, functions, arrays and anything that does not parse make a
/// script opaque.
#[test]
fn compound_commands_are_opaque() {
    assert_opaque(
        "bash",
        &[
            "if a; then b; fi",
            "for a in b; do c; done",
            "while a; do b; done",
            "until a; do b; done",
            "case a in b) c;; esac",
            "select a in b; do c; done",
            "a() { b; }; a",
            "function a { b; }",
            "coproc a",
            "[[ a ]]",
            "A=(b)",
            "A[0]=b",
            "A+=b",
            "a 'b",
            "a \"b",
            "a &&",
            "a |",
            "a ;; b",
            "a; }",
            "(a",
            "{ a",
            "a )",
            "a )(",
            "( )",
            "{ }",
            "then a",
            "do a",
            "! ! a",
            "time",
            "time -- a",
            "a <",
            "a > >",
            "{v}>a b",
            "12>a b",
            "a 2>&1-",
            "a >&3x",
            "a <&b",
        ],
    );
}

/// spec SCRIPT.22: Commands of the shell itself that run text, change how it reads or evaluate an
/// index make a script opaque, also behind `command`.
#[test]
fn builtins_that_hide_something_are_opaque() {
    assert_opaque(
        "bash",
        &[
            "eval a",
            "source a",
            ". a",
            "trap a EXIT",
            "alias a=b",
            "unalias a",
            "hash -p a b",
            "enable -f a b",
            "exec a",
            "exec > a",
            "builtin a",
            "set -k",
            "set -- a",
            "set -f",
            "set +o posix",
            "shopt -s extglob",
            "bind a",
            "complete -C a b",
            "compgen -C a",
            "mapfile -C a -c 1 b",
            "readarray a",
            "read a",
            "declare -x A=b",
            "typeset A=b",
            "local A=b",
            "readonly A=b",
            "export -f a",
            "export 'A[0]=b'",
            "unset a",
            "let a=1",
            "getopts a b",
            "printf -v a b",
            "test -v a",
            "[ -v a ]",
            "wait -p a",
            "jobs -x a",
            "fc -s",
            "command eval a",
            "command -p . a",
            "command command eval a",
            "'eval' a",
            "e\\val a",
            "%1",
            "PS4=x a",
            "IFS=x a",
            "BASH_ENV=x a",
            "POSIXLY_CORRECT=1",
            "export PS4=x",
        ],
    );
    assert_understood(
        "bash",
        &[
            ("set -euo pipefail", r#"First "set" "-euo" "pipefail""#),
            ("set -e; set +x", r#"First "set" "-e" Then "set" "+x""#),
            ("command -v a", r#"First "command" "-v" "a""#),
        ],
    );
}

/// spec SCRIPT.26: A script in which a backslash, a backquote or a bar stands behind a letter that is not ASCII is opaque:
/// in some locales it is a part of that letter.
#[test]
fn what_a_locale_may_take_for_a_part_of_a_letter_makes_it_opaque() {
    assert_opaque(
        "bash",
        &["echo 中\\; rm x", "echo \"中\\\" ; rm x; echo \"", "sort é|grep -o x", "a '中`'"],
    );
    assert_understood("bash", &[("echo 中 '\\' | b é", r#"First "echo" "中" "\\" Pipe "b" "é""#)]);
}

/// spec SCRIPT.23: A script is opaque when it is longer than 32 KiB, has more than 256 commands, is
/// nested deeper than 32 groups, or contains a character that does not show as what it is.
#[test]
fn limits_and_hidden_characters_make_it_opaque() {
    let long = format!("a {}", "b".repeat(32 * 1024));
    let many = "a;".repeat(257);
    let deep = format!("{}a{}", "( ".repeat(40), " )".repeat(40));
    assert_opaque("bash", &[&long, &many, &deep]);
    assert_opaque(
        "bash",
        &[
            "a\rb",
            "a \u{b} b",
            "a\u{a0}b",
            "a '\u{202e}'",
            "a \u{200b}b",
            "a\u{feff}",
            "a\u{3000}b",
            "a\u{7}",
            "a \u{85} b",
            "a \u{2028}b",
            "a \u{1b}[0m",
            "a\0b",
            "a # \u{2066}",
        ],
    );
    let enough = "a;".repeat(256);
    assert_eq!(read(&["bash", "-c", &enough]).opaque, None);
    assert_eq!(read(&["bash", "-c", "a 'é ü 中文 ✨'"]).opaque, None);
}

/// spec SCRIPT.24: What sh or zsh may read in another way than bash makes a script for them opaque.
#[test]
fn each_shell_has_its_own_language() {
    assert_opaque("sh", &["a |& b", "a &> b", "a &>> b", "a >& b", "a <<< b", "time a", "a {b,c}"]);
    assert_opaque(
        "zsh",
        &[
            "a =b",
            "a >! b",
            "a >>! b",
            "a >>| b",
            "a >&! b",
            "a =(b)",
            "a ^b",
            "a b#",
            "a *(e:b:)",
            "a <1-3>",
            "a (b|c)",
            "a {b}",
            "a &! b",
            "a &| b",
            "repeat 2 a",
            "foreach a (b) c",
            "noglob a",
            "nocorrect a",
            "b; - a",
            "> a",
            "a 'b''c'",
            "setopt a",
            "exit 'a[$(b)]'",
            "[ 'a[$(b)]' -eq 1 ]",
            "printf %d 'a[$(b)]'",
            "a !b",
            "print -P a",
        ],
    );
    assert_understood(
        "zsh",
        &[
            (
                "a -n 'b' c.d | e && f 2>/dev/null",
                r#"First "a" "-n" "b" "c.d" Pipe "e" And "f" 2Write("/dev/null")"#,
            ),
            ("a HEAD~1 *.rs {} x=y", r#"First "a" "HEAD~1" **.rs* "{}" "x=y""#),
        ],
    );
    assert_eq!(read(&["zsh", "-c", "a"]).reader, Reader::Shell(ShellKind::Zsh));
    assert_eq!(read(&["dash", "-c", "a"]).reader, Reader::Shell(ShellKind::Posix));
}

/// spec SCRIPT.30: An opaque script still gives every command that can be made out in it, also in
/// substitutions, loops, functions and deep nests, with what is not known marked.
#[test]
fn opaque_scripts_give_what_can_be_made_out() {
    for (script, part) in [
        ("a $(rm -rf ~/b)", r#""rm" "-rf" ~~/b~"#),
        ("a `rm -rf b`", r#""rm" "-rf" "b""#),
        ("a \"$(rm -rf b)\" | sh", r#"?"$(rm -rf b)"? Pipe "sh" Then "rm" "-rf" "b""#),
        ("a <(rm -rf b)", r#""rm" "-rf" "b""#),
        ("for f in *; do rm -rf $f; done", r#""rm" "-rf" ?$f?"#),
        ("f() { rm -rf b; }; f", r#""rm" "-rf" "b""#),
        ("if a; then rm -rf b; fi", r#""rm" "-rf" "b""#),
        ("case a in b) rm -rf b;; esac", r#""rm" "-rf" "b""#),
        ("A=$(rm -rf b)", r#""rm" "-rf" "b""#),
        ("export A=$(rm -rf b)", r#""rm" "-rf" "b""#),
        ("a <<E\n$(rm -rf b)\nE", r#""rm" "-rf" "b""#),
        ("rm -rf ~/*", r#""rm" "-rf" ~~/*~"#),
        ("rm -rf \"$HOME\"", r#""rm" "-rf" ?"$HOME"?"#),
        ("rm -rf b 'unterminated", r#""rm" "-rf" "b""#),
        ("rm -rf b &&", r#""rm" "-rf" "b""#),
        ("curl a | (sudo bash", r#""curl" "a" Pipe "sudo" "bash""#),
        ("a $(b $(c \"$(rm -rf d)\"))", r#""rm" "-rf" "d""#),
        ("eval 'x'; rm -rf b", r#""rm" "-rf" "b""#),
        ("a\r\nrm -rf b", r#""rm" "-rf" "b""#),
        ("[[ $(rm -rf b) ]]", r#""rm" "-rf" "b""#),
        ("a > $(rm -rf b)", r#""rm" "-rf" "b""#),
    ] {
        let reading = read(&["bash", "-c", script]);
        assert!(reading.opaque.is_some(), "{script:?}");
        assert!(line(&reading).contains(part), "{script:?} gave {}", line(&reading));
    }
    let deep = format!("{}rm -rf b{}", "( ".repeat(900), " )".repeat(900));
    assert!(line(&read(&["bash", "-c", &deep])).contains(r#""rm" "-rf" "b""#));
    let broken = format!("{} ; rm -rf b", ")!(".repeat(4000));
    assert!(line(&read(&["bash", "-c", &broken])).contains(r#""rm" "-rf" "b""#));
    let padded = format!("rm -rf b # {}", "x".repeat(60_000));
    assert!(line(&read(&["bash", "-c", &padded])).contains(r#""rm" "-rf" "b""#));
}

/// spec SCRIPT.40: Plain PowerShell commands joined by `;` and `|` are understood; everything else
/// of PowerShell is opaque.
#[test]
fn powershell_is_read_with_care() {
    for (words, expected) in [
        (
            &["powershell.exe", "-NoLogo", "-NoProfile", "-Command", "Get-ChildItem"][..],
            r#"First "Get-ChildItem""#,
        ),
        (
            &["pwsh", "-c", "Get-Content a.txt -TotalCount 5 | Select-String -Pattern 'b c'"],
            r#"First "Get-Content" "a.txt" "-TotalCount" "5" Pipe "Select-String" "-Pattern" "b c""#,
        ),
        (
            &["pwsh", "-Command", "Get-ChildItem", ";", "Remove-Item", "a"],
            r#"First "Get-ChildItem" Then "Remove-Item" "a""#,
        ),
        (
            &["PowerShell.EXE", "-Command", "git log --oneline -n 5"],
            r#"First "git" "log" "--oneline" "-n" "5""#,
        ),
    ] {
        let reading = read(words);
        assert_eq!(reading.reader, Reader::Shell(ShellKind::PowerShell));
        assert_eq!(reading.opaque, None, "{words:?}");
        assert_eq!(line(&reading), expected, "{words:?}");
    }
    for script in [
        "Get-Content a > b",
        "& './x'",
        ". ./x",
        "iex 'a'",
        "a $(b)",
        "a (b)",
        "a $b",
        "a \"$b\"",
        "a `b",
        "a --% b",
        "a @(b)",
        "a { b }",
        "a; if ($b) { c }",
        "$a = 1",
        "a,b",
        "a 'b",
        "a b,c",
        "a\u{2019}b\u{2019}",
        "ForEach-Object { a }",
        "[a]::b()",
        "a -b:c",
        "a && b",
        "a | % b",
        "function a { b }",
    ] {
        let reading = read(&["pwsh", "-Command", script]);
        assert!(reading.opaque.is_some(), "{script:?} was read as {}", line(&reading));
    }
    for words in [
        &["powershell", "-EncodedCommand", "AAAA"][..],
        &["powershell", "-File", "a.ps1"],
        &["pwsh", "-ExecutionPolicy", "Bypass", "-Command", "ls"],
        &["pwsh", "a.ps1"],
    ] {
        assert!(read(words).opaque.is_some(), "{words:?}");
    }
    let hidden = read(&["pwsh", "-Command", "a (Remove-Item b)"]);
    assert!(line(&hidden).contains(r#""Remove-Item" "b""#));
}

/// spec SCRIPT.41: cmd is understood only as `/c` and plain words.
#[test]
fn cmd_is_read_with_more_care() {
    let reading = read(&["cmd.exe", "/c", "dir src"]);
    assert_eq!(reading.reader, Reader::Shell(ShellKind::Cmd));
    assert_eq!(reading.opaque, None);
    assert_eq!(line(&reading), r#"First "dir" "src""#);
    for words in [
        &["cmd.exe", "/c", "echo %COMSPEC% & start x"][..],
        &["cmd", "/c", "a > b"],
        &["cmd", "/c", "a ^& b"],
        &["cmd", "/c", "(a)"],
        &["cmd", "/c", "a \"b\""],
        &["cmd", "/v:on", "/c", "a !b!"],
        &["cmd", "/k", "a"],
        &["cmd", "/ca"],
    ] {
        assert!(read(words).opaque.is_some(), "{words:?}");
    }
}

/// spec SCRIPT.60: At most one in ten of the commands that agents ordinarily write is opaque.
#[test]
fn ordinary_commands_are_understood() {
    let text = include_str!("agent_commands.txt");
    let (lines, blocks) = text.split_once("\n%%\n").expect("the file has two parts");
    let lines = lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let scripts: Vec<&str> = lines.chain(blocks.split("\n%%\n")).collect();
    assert!(scripts.len() > 300, "{}", scripts.len());
    let mut opaque = 0;
    for script in &scripts {
        if let Some(why) = read(&["bash", "-lc", script]).opaque {
            opaque += 1;
            println!("{why}: {script}");
        }
    }
    println!("{opaque} of {} are opaque", scripts.len());
    assert!(opaque * 10 <= scripts.len(), "{opaque} of {}", scripts.len());
}

/// spec SCRIPT.13: Assignments and redirections are kept with their command, and those of a group
/// with each command in it.
#[test]
fn writing_redirections_can_be_told_from_others() {
    let reading = read(&["bash", "-c", "a >b <c 2>&1 <<< d"]);
    let kinds: Vec<bool> =
        reading.commands[0].redirections.iter().map(|it| it.kind.writes()).collect();
    assert_eq!(kinds, [true, false, false, false]);
    assert!(RedirectionKind::AppendBoth.writes());
}

/// Found by a fuzzer: the last letter was taken for one byte, and `set -é` ended in a panic.
#[test]
fn regression_an_option_of_set_may_have_letters_of_several_bytes() {
    for shell in ["bash", "zsh", "sh"] {
        assert_opaque(
            shell,
            &["set -é", "set +é", "set -eé", "set -éo pipefail", "set -", "set +"],
        );
    }
}
