use super::*;
use crate::command::Assignment;

const BASH: Reader = Reader::Shell(ShellKind::Bash);

fn literals(words: &[&str]) -> Vec<Word> {
    words.iter().map(|word| Word::literal(*word)).collect()
}

fn command(words: &[&str]) -> SimpleCommand {
    SimpleCommand { words: literals(words), ..SimpleCommand::default() }
}

/// A command whose words with `*` or `?` are patterns, and those with a leading `~` below home.
fn typed(line: &str) -> SimpleCommand {
    let word = |text: &str| {
        let shape = match text {
            _ if text.starts_with('~') => Shape::Home,
            _ if text.contains(['*', '?']) => Shape::Pattern,
            _ => Shape::Literal,
        };
        Word { text: text.to_owned(), shape }
    };
    SimpleCommand { words: line.split(' ').map(word).collect(), ..SimpleCommand::default() }
}

fn after(connective: Connective, line: &str) -> SimpleCommand {
    SimpleCommand { connective, ..typed(line) }
}

fn redirected(kind: RedirectionKind, target: &str) -> SimpleCommand {
    let redirection = Redirection { descriptor: None, kind, target: Word::literal(target) };
    SimpleCommand { redirections: vec![redirection], ..command(&["ls"]) }
}

fn is_safe(command: &SimpleCommand) -> bool {
    check(command, BASH).is_ok()
}

#[test]
fn tables_are_sorted_and_written_as_the_engine_reads_them() {
    for table in TABLES.into_iter().chain(git::tables()) {
        assert!(options::is_sorted(table));
        assert_eq!(options::misspelt(table), [""; 0]);
    }
}

/// spec SAFE.3: Only a bare name, or an absolute path directly in `/bin`, `/usr/bin`, `/sbin` or
/// `/usr/sbin`, names a program that can be known to be safe, letter by letter.
#[test]
fn only_names_of_the_system_count() {
    for name in ["ls", "/bin/ls", "/usr/bin/ls", "/sbin/ls", "/usr/sbin/ls"] {
        assert!(is_safe(&command(&[name])), "{name}");
    }
    for name in ["./ls", "/usr/local/bin/ls", "/usr/bin/../bin/ls", "LS", "l\u{455}", "ls\u{200b}"]
    {
        assert!(!is_safe(&command(&[name])), "{name}");
    }
    assert!(!is_safe(&typed("~/ls")));
    assert!(!is_safe(&typed("l?")));
    assert!(!is_safe(&command(&[])));
}

/// spec SAFE.4: A variable set before a command makes it not safe.
#[test]
fn assignments_are_not_safe() {
    let value = Word::literal("./x");
    let assignments = vec![Assignment { name: "GIT_EXTERNAL_DIFF".to_owned(), value }];
    let mut set = command(&["git", "diff"]);
    assert!(is_safe(&set));
    set.assignments = assignments;
    assert!(!is_safe(&set));
    set.words.clear();
    assert!(!is_safe(&set));
}

/// spec SAFE.5: Reading a file, a here-document, a here-string, a duplicated descriptor and writing
/// to `/dev/null` are safe redirections; writing anywhere else, or opening `/dev/tcp` and
/// `/dev/udp`, is not.
#[test]
fn redirections_only_read_or_discard() {
    use RedirectionKind as Kind;
    let safe = [
        (Kind::Read, "a.txt"),
        (Kind::HereDocument, "text\n"),
        (Kind::HereString, "text"),
        (Kind::Duplicate, "1"),
        (Kind::Duplicate, "-"),
        (Kind::Duplicate, "3-"),
        (Kind::Write, "/dev/null"),
        (Kind::Append, "/dev/null"),
        (Kind::WriteBoth, "/dev/null"),
        (Kind::AppendBoth, "/dev/null"),
        (Kind::Clobber, "/dev/null"),
    ];
    for (kind, target) in safe {
        assert!(is_safe(&redirected(kind, target)), "{kind:?} {target}");
    }
    let writes = [Kind::Write, Kind::Append, Kind::Clobber, Kind::ReadWrite, Kind::WriteBoth];
    for kind in writes {
        for target in ["pwned", "/dev/null/", "//dev/null", "/dev/nul", "/dev/tty", "", "NUL"] {
            assert!(!is_safe(&redirected(kind, target)), "{kind:?} {target}");
        }
    }
    for target in ["/dev/tcp/h/1", "/dev/udp/h/1", "//dev//tcp/h/1", "/dev/./tcp/h/1", "/dev/tcp"] {
        assert!(!is_safe(&redirected(Kind::Read, target)), "{target}");
    }
    for target in ["pwned", "1x", "", "--"] {
        assert!(!is_safe(&redirected(Kind::Duplicate, target)), "{target}");
    }
    for shape in [Shape::Dynamic, Shape::Pattern] {
        let mut here = redirected(Kind::HereDocument, "$(touch pwned)");
        here.redirections[0].target.shape = shape;
        assert!(!is_safe(&here));
    }
}

/// spec SAFE.6: A file name pattern is safe where no name that it matches can be an option, a second
/// output or an action, or where the program has no harmful one.
#[test]
fn patterns_are_safe_where_they_cannot_become_options() {
    let safe = [
        "ls *",
        "ls *.md",
        "cat src/*",
        "cat *",
        "wc -l *",
        "head *.txt",
        "grep foo *",
        "du -sh *",
        "sort src/*",
        "sort ./*",
        "sort -- *",
        "rg foo src/*",
        "rg foo -- *",
        "find src/* -name a",
        "git log -- *",
        "git diff src/*",
        "file ./*",
        "diff src/a* src/b*",
        "echo *",
        "grep -r foo --include=*.rs",
        "stat *",
        "md5sum *",
    ];
    for line in safe {
        assert!(is_safe(&typed(line)), "{line}");
    }
    let refused = [
        "sort *",
        "sort -* a",
        "sort -k src/*",
        "rg foo *",
        "rg -e *",
        "find *",
        "find * -maxdepth 0",
        "find . -name *.rs",
        "find . -name a*",
        "uniq *",
        "uniq src/*",
        "uniq a ./*",
        "uniq -- *",
        "xxd src/*",
        "base64 src/*",
        "file *",
        "diff *",
        "date *",
        "date +*",
        "tree *",
        "git diff *",
        "git branch *",
        "git branch ./*",
        "git *",
        "sed p *",
        "sed *",
        "sed ./*",
        "sed -e * a",
        "fd *",
        "git show-ref ?",
        "shuf *",
        "jq . *",
        "test -f *",
        "cd *",
        "printf *",
        "hostname *",
        "sleep *",
        "ps *",
    ];
    for line in refused {
        assert!(!is_safe(&typed(line)), "{line}");
    }
}

#[test]
fn patterns_that_are_more_than_plain_are_refused_even_for_harmless_programs() {
    for text in ["*(e:'touch pwned':)", "{a,b}*", "*$(x)", "a*`x`", "*~b", "*<1-2>"] {
        let words =
            vec![Word::literal("ls"), Word { text: text.to_owned(), shape: Shape::Pattern }];
        assert!(!is_safe(&SimpleCommand { words, ..SimpleCommand::default() }), "{text}");
    }
}

/// spec SAFE.7: A path below home is an operand like any other, and a word that is made while the
/// script runs is never safe.
#[test]
fn home_is_an_operand_and_what_is_not_known_is_never_safe() {
    for line in
        ["ls ~", "cat ~/a", "sort ~/a", "find ~/src -name a", "uniq ~/a", "cd ~", "test -f ~/a"]
    {
        assert!(is_safe(&typed(line)), "{line}");
    }
    for line in ["uniq a ~/b", "sed ~/a", "git ~", "find . ~/a -delete", "printf ~"] {
        assert!(!is_safe(&typed(line)), "{line}");
    }
    for name in ["ls", "echo", "true", ":", "cat"] {
        let mut made = command(&[name, "x"]);
        made.words[1].shape = Shape::Dynamic;
        assert!(!is_safe(&made), "{name}");
    }
}

/// spec SAFE.8: What a shell does by itself is safe only where it sets nothing and evaluates nothing.
#[test]
fn builtins_are_safe_only_where_they_set_and_evaluate_nothing() {
    let safe: &[&[&str]] = &[
        &["cd", "src"],
        &["cd"],
        &["cd", "-"],
        &["cd", "--", "src"],
        &["pushd", "src"],
        &["popd"],
        &["command", "-v", "git"],
        &["command", "-V", "ls"],
        &["type", "ls"],
        &["type", "-a", "ls"],
        &["set", "-e"],
        &["set", "-euo", "pipefail"],
        &["set", "-e", "-o", "pipefail"],
        &["exit"],
        &["exit", "0"],
        &[":"],
        &["true"],
        &["echo", "$x"],
        &["printf", "%s\\n", "a[$(x)]"],
        &["printf", "%5.2f%%\\n", "1.5"],
        &["printf", "--", "%d", "-3"],
        &["printf", "hello"],
        &["test", "-f", "a"],
        &["[", "-d", "src", "]"],
        &["[", "a", "=", "b", "]"],
        &["[", "]"],
        &["[", "1", "-eq", "-2", "]"],
        &["[", "-n", "x", "-a", "!", "-e", "b", "]"],
    ];
    for words in safe {
        assert!(is_safe(&command(words)), "{words:?}");
    }
    let refused: &[&[&str]] = &[
        &["cd", "a", "b"],
        &["cd", "-x", "a"],
        &["cd", "+1"],
        &["pushd", "-n", "a"],
        &["popd", "+1"],
        &["command", "ls"],
        &["command", "-p", "ls"],
        &["command", "-pv", "ls"],
        &["type", "-x", "a"],
        &["set"],
        &["set", "-x"],
        &["set", "-a"],
        &["set", "--", "a"],
        &["set", "-o", "allexport"],
        &["set", "-eo"],
        &["set", "a"],
        &["set", "-"],
        &["exit", "x[$(y)]"],
        &["exit", "1", "2"],
        &["printf", "-v", "x", "y"],
        &["printf", "-vx", "y"],
        &["printf", "--", "-v", "x"],
        &["printf", "%n", "x"],
        &["printf", "%s%n", "a", "x[$(y)]"],
        &["printf", "%d", "x[$(y)]"],
        &["printf", "%*s", "x[$(y)]", "a"],
        &["printf", "%(%s)T", "1"],
        &["printf", "%1$n", "x"],
        &["printf", "%"],
        &["printf", "%.*f", "a", "1"],
        &["printf", "%5n", "x"],
        &["printf", "%ln", "x"],
        &["test", "-v", "x[$(y)]"],
        &["[", "-v", "x[$(y)]", "]"],
        &["[", "-R", "x", "]"],
        &["[", "x[$(y)]", "-eq", "1", "]"],
        &["[", "1", "-lt", "x", "]"],
        &["[", "-t", "x[$(y)]", "]"],
        &["[", "!", "-v", "x", "]"],
        &["[", "-d", "src"],
        &["[", "-eq", "]"],
        &["test", "-eq"],
        &["export", "A=1"],
        &["eval", "ls"],
        &["exec", "ls"],
        &["source", "x"],
        &[".", "x"],
        &["alias", "ls=x"],
        &["hash", "-p", "x", "ls"],
        &["trap", "x", "EXIT"],
        &["read", "x"],
        &["declare", "x"],
        &["unset", "x"],
        &["builtin", "echo"],
        &["enable", "x"],
        &["let", "x=1"],
        &["mapfile", "x"],
        &["shopt", "-s", "nullglob"],
        &["kill", "1"],
        &["wait"],
        &["umask", "0"],
    ];
    for words in refused {
        assert!(!is_safe(&command(words)), "{words:?}");
    }
}

/// spec SAFE.9: Commands that are safe alone are safe together, unless one goes on in the background
/// or git runs after a change of the directory.
#[test]
fn safe_commands_are_safe_together_unless_they_change_what_the_others_do() {
    use Connective as By;
    let here = Surroundings { cwd: Some("/work/here".into()), ..Surroundings::default() };
    let together = |commands: &[SimpleCommand]| together(commands, &here);
    let first = || typed("ls");
    for connective in [By::Then, By::And, By::Or, By::Pipe, By::PipeBoth] {
        assert_eq!(together(&[first(), after(connective, "wc -l")]), Ok(()), "{connective:?}");
    }
    assert!(together(&[first(), after(By::Beside, "pwd")]).is_err());
    assert!(together(&[SimpleCommand { left_running: true, ..first() }]).is_err());
    assert_eq!(together(&[typed("cd src"), after(By::And, "ls")]), Ok(()));
    assert_eq!(together(&[typed("git status"), after(By::And, "cd src")]), Ok(()));
    for mover in
        ["cd src", "pushd src", "popd", "Set-Location src", "chdir src", "CD src", "SL src"]
    {
        for git in ["git status", "/usr/bin/git status"] {
            let script = [typed(mover), after(By::Then, "ls"), after(By::And, git)];
            assert!(together(&script).is_err(), "{mover}, {git}");
        }
    }
}

/// spec SAFE.18: `cd .` and the whole path of the directory that commands run in are no change of the
/// directory.
#[test]
fn a_change_to_the_same_directory_is_none() {
    let here = Surroundings { cwd: Some("/work/here".into()), ..Surroundings::default() };
    let git_after = |mover: &str| {
        together(&[typed(mover), after(Connective::And, "git status")], &here).is_ok()
    };
    for mover in ["cd .", "cd ./", "cd /work/here", "cd /work/here/"] {
        assert!(git_after(mover), "{mover}");
    }
    for mover in [
        "cd",
        "cd ..",
        "cd here",
        "cd /work",
        "cd /work/here/sub",
        "cd /work/here/../x",
        "cd ./sub",
        "cd . sub",
        "cd -",
        "cd //work/here",
        "pushd .",
        "cd ~",
        "cd /work/her?",
    ] {
        assert!(!git_after(mover), "{mover}");
    }
    let twice =
        [typed("cd sub"), after(Connective::And, "cd ."), after(Connective::And, "git log")];
    assert!(together(&twice, &here).is_err());
    let nowhere = [typed("cd /work/here"), after(Connective::And, "git log")];
    assert!(together(&nowhere, &Surroundings::default()).is_err());
}

/// spec SAFE.14: A word that names a device other than the quiet ones, or a place in `/net` or
/// `/afs`, is not safe for a program that would open it.
#[test]
fn what_acts_when_it_is_opened_is_not_safe() {
    for line in ["cat /dev/null", "head -c 16 /dev/urandom", "ls -l /dev/sda", "cat /devices/x"] {
        assert!(is_safe(&typed(line)), "{line}");
    }
    for line in ["stat /dev/sda", "find /dev -name tty", "echo /net/host", "cat net/x dev/sda"] {
        assert!(is_safe(&typed(line)), "{line}");
    }
    for line in ["cat /dev/watchdog", "head -c1 //dev/./st0", "tail -f /dev/ttyS0", "cat /dev/*"] {
        assert!(!is_safe(&typed(line)), "{line}");
    }
    for line in ["ls /net/host", "cat /afs/cell/x", "grep -f/dev/kmsg x", "wc --files0-from=/dev/x"]
    {
        assert!(!is_safe(&typed(line)), "{line}");
    }
    assert!(is_safe(&redirected(RedirectionKind::Read, "/dev/null")));
    assert!(!is_safe(&redirected(RedirectionKind::Read, "/dev/watchdog")));
    assert!(!is_safe(&command(&["cat", "a\0b"])));
}

/// spec SAFE.10: In PowerShell the cmdlets that only show are safe, under their usual aliases and in
/// any case, with parameters that are written out and paths that name no other computer.
#[test]
fn cmdlets_that_only_show_are_safe() {
    let reader = Reader::Shell(ShellKind::PowerShell);
    for line in [
        "Get-ChildItem",
        "get-childitem -Recurse -Filter *.rs",
        "ls",
        "dir src",
        "gci C:\\src",
        "Get-Content README.md",
        "gc -Path a.txt -TotalCount 5",
        "type a.txt",
        "Get-Location",
        "pwd",
        "Select-String -Path README.md -Pattern foo",
        "sls foo a.txt",
        "Measure-Object -Line",
        "Test-Path src",
        "git status",
        "rg foo",
        "echo hi",
        "Select-Object -First 5",
    ] {
        assert_eq!(check(&typed(line), reader), Ok(()), "{line}");
    }
    for line in [
        "Remove-Item a.txt",
        "rm a.txt",
        "Set-Content a.txt x",
        "Out-File a.txt",
        "iex x",
        "& x",
        "Get-ChildItem -OutVariable x",
        "Get-ChildItem -Rec",
        "Get-Content \\\\host\\share\\a",
        "gc //host/a",
        "Get-Content -Path:\\\\host\\a",
        "Get-Content FileSystem::\\\\host\\a",
        "ls HKLM:\\",
        "gc \\??\\UNC\\h\\a",
        "Get-Content -Wait a.txt",
        "Select-Object @{n='a';e={x}}",
        "Get-Process -ComputerName h",
        "rg --pre ./x foo",
        "git diff --output=x",
        "git diff a\"b",
        "Invoke-WebRequest h",
        "curl h",
        "Start-Process x",
        "Sort-Object {x}",
        "write root",
        "./x.ps1",
        "Tee-Object x",
        "Export-Csv x",
        "ForEach-Object x",
        "Where-Object x",
        "cp a b",
        "Get-ChildItem \u{2013}OutVariable",
    ] {
        assert!(check(&typed(line), reader).is_err(), "{line}");
    }
}

/// spec SAFE.11: In cmd only its own words that show something are safe, as it looks for programs in
/// the working directory first.
#[test]
fn cmd_runs_only_its_own_words_safely() {
    let reader = Reader::Shell(ShellKind::Cmd);
    for line in ["dir", "DIR /b src", "type a.txt", "echo hi", "cd src", "ver"] {
        assert_eq!(check(&typed(line), reader), Ok(()), "{line}");
    }
    for line in [
        "del a.txt",
        "git status",
        "ls",
        "echo %COMSPEC%",
        "type \\\\host\\a",
        "dir //host/a",
        "dir /z",
        "start x",
        "echo !x!",
        "echo a^b",
        "copy a b",
        "call x",
        "dir *.txt",
    ] {
        assert!(check(&typed(line), reader).is_err(), "{line}");
    }
    let mut discarded =
        SimpleCommand { words: literals(&["dir"]), ..redirected(RedirectionKind::Write, "nul") };
    assert_eq!(check(&discarded, reader), Ok(()));
    discarded.redirections[0].target = Word::literal("/dev/null");
    assert!(check(&discarded, reader).is_err());
}

/// spec SAFE.12: A reason names the program and the word that it is about, briefly and without
/// characters that play with the screen.
#[test]
fn reasons_name_what_they_are_about() {
    let reason = |words: &[&str]| check(&command(words), Reader::Kernel).unwrap_err().to_string();
    assert_eq!(
        reason(&["touch", "a"]),
        "touch is not among the commands that are known to be safe"
    );
    assert_eq!(
        reason(&["sort", "-ro", "x"]),
        "the option -ro of sort is not among the options known to be safe"
    );
    assert_eq!(reason(&["uniq", "a", "b"]), "what uniq does with b is not known to be safe");
    assert_eq!(reason(&["git", "push"]), "git push is not known to only read");
    let odd = reason(&["\u{202e}x\u{1b}[31m"]);
    assert!(odd.is_ascii() && !odd.contains('\u{1b}'), "{odd}");
    assert!(reason(&["x".repeat(5000).as_str()]).len() < 200);
}

#[test]
fn nothing_makes_the_check_panic() {
    let odd = [
        "", "-", "--", "---", "--=", "-=", "é", "-é", "--é=é", "\0", "\u{fffd}", "%", "[", "{",
        "\\", "s/",
    ];
    let names = [
        "ls", "sort", "uniq", "xxd", "tree", "find", "sed", "git", "printf", "test", "[", "date",
        "set",
    ];
    let readers =
        [Reader::Kernel, BASH, Reader::Shell(ShellKind::PowerShell), Reader::Shell(ShellKind::Cmd)];
    for reader in readers {
        for name in names {
            for one in odd {
                for two in odd {
                    let _ = check(&command(&[name, one, two]), reader);
                    let _ = check(&command(&[name, "log", one, two]), reader);
                }
            }
        }
    }
}

#[test]
fn what_goes_on_in_the_background_is_not_safe_wherever_it_stands() {
    for script in ["ls &", "ls & pwd", "ls && pwd &", "(ls &); pwd", "{ ls & }"] {
        for shell in ["bash", "zsh", "sh"] {
            let argv = [shell, "-c", script].map(str::to_owned);
            let reading = crate::script::read(&argv);
            assert!(reading.opaque.is_none(), "{shell} {script}: {:?}", reading.opaque);
            assert!(
                together(&reading.commands, &Surroundings::default()).is_err(),
                "{shell} {script}"
            );
        }
    }
}

/// spec SAFE.17: A word that may be a file of more options is not safe for a program that reads such
/// files, also behind `--`.
#[test]
fn files_of_options_are_not_safe() {
    for program in ["nm", "readelf", "size"] {
        assert!(is_safe(&typed(&format!("{program} a.out lib/*.o"))), "{program}");
        for words in ["@x", "a.out @x", "-- @x", "*", "-- *", "-- ?x"] {
            assert!(!is_safe(&typed(&format!("{program} {words}"))), "{program} {words}");
        }
    }
    // None of its options does harm.
    assert!(is_safe(&typed("strings @x")));
}

/// spec SAFE.19: A pattern that may meet such a device, place or file of passwords counts as its name, and
/// a file of passwords in a commit counts too; what is looked for, or is a program of jq, names no file.
#[test]
fn what_a_pattern_may_meet_counts_and_what_is_looked_for_does_not() {
    for line in [
        "cat /d*/watchdog",
        "cat /?ev/sda",
        "ls /n*/host",
        "echo /net/host/*",
        "cat .??*",
        "head .e*",
        "grep .e* x",
        "git show HEAD:.env",
        "git cat-file -p HEAD:app/.env.local",
        "grep KEY .env",
        "grep -f .env x",
        "jq . .env",
        "file -f .env",
        "ls /dev/sda /net/host",
    ] {
        assert!(!is_safe(&typed(line)), "{line}");
    }
    for line in [
        "ls /dev/*",
        "ls /d*",
        "echo /dev/*",
        "cat .g*",
        "grep .env x",
        "rg -n .env src",
        "jq .env x.json",
        "git check-ignore .env",
        "git ls-files .env",
        "ls .env*",
        "file .env",
    ] {
        assert!(is_safe(&typed(line)), "{line}");
    }
    assert!(is_safe(&command(&["jq", ".[] | {a, b}", "x.json"])));
    assert!(is_safe(&command(&["grep", "-c", ".*", "x"])));
    assert!(!is_safe(&command(&["rg", "-g", ".e*", "KEY"])));
}
