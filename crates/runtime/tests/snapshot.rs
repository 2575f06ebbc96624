//! Commands that ask for a login shell start from what it was found to be, and see what it would have
//! shown. `docs/spec/snapshot.md` is what this proves.

#![cfg(unix)]

mod support;

use sandgate_protocol::{AskForApproval, Event, SandboxPolicy};
use sandgate_runtime::audit::{AuditOptions, Record, audit_directory, entries};
use sandgate_runtime::{
    AskedCommand, CommandLine, CommandOutcome, Delivery, Events, Login, Runtime, Session,
    SessionConfig, ShellEnvironmentPolicy, SnapshotOptions, new_call_id,
};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::scene::heard;

/// The shells, each with the file that its login shell reads last.
const SHELLS: [(&str, &str); 2] = [("bash", ".bash_profile"), ("zsh", ".zprofile")];

/// A person with a home, and a workspace elsewhere.
struct Person {
    shell: &'static str,
    start_up: &'static str,
    home: tempfile::TempDir,
    work: tempfile::TempDir,
    environment: ShellEnvironmentPolicy,
    policy: SandboxPolicy,
    timeout: Duration,
    more: Vec<(&'static str, &'static str)>,
}

/// One program of theirs, from start to end.
struct Program {
    session: Session,
    events: Events,
}

impl Person {
    fn new(shell: &'static str, start_up: &'static str) -> Self {
        Self {
            shell,
            start_up,
            home: tempfile::tempdir().unwrap(),
            work: tempfile::tempdir().unwrap(),
            environment: ShellEnvironmentPolicy::default(),
            policy: SandboxPolicy::workspace_write(),
            timeout: Duration::from_secs(60),
            more: Vec::new(),
        }
    }

    fn write(&self, text: &str) {
        fs::write(self.home.path().join(self.start_up), text).unwrap();
    }

    fn settings(&self) -> PathBuf {
        self.home.path().join("settings")
    }

    fn config(&self) -> SessionConfig {
        let mut config = SessionConfig::new(self.work.path().to_owned());
        config.approval_policy = AskForApproval::Never;
        config.sandbox_policy = self.policy.clone();
        config.own_env = [("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8")]
            .iter()
            .chain(&self.more)
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        config.own_env.insert("HOME".into(), self.home.path().into());
        config.environment = self.environment.clone();
        config.config_home = Some(self.settings());
        fs::create_dir_all(self.settings()).unwrap();
        config.audit = Some(AuditOptions::default());
        config.snapshot = Some(SnapshotOptions { timeout: self.timeout });
        config
    }

    /// Starts a program that uses snapshots.
    async fn program(&self) -> Program {
        self.program_with(self.config()).await
    }

    /// Starts one that starts a login shell for each command.
    async fn plain(&self) -> Program {
        let mut config = self.config();
        config.snapshot = None;
        self.program_with(config).await
    }

    async fn program_with(&self, config: SessionConfig) -> Program {
        let runtime = Runtime::start().unwrap().with_shell(self.shell).unwrap();
        let session = Session::start(Arc::new(runtime), config).unwrap();
        let events = session.events(Delivery::Complete).await;
        Program { session, events }
    }

    /// The files that snapshots are kept in.
    fn kept(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for directory in fs::read_dir(self.settings().join("snapshots")).into_iter().flatten() {
            files.extend(
                fs::read_dir(directory.unwrap().path()).unwrap().map(|file| file.unwrap().path()),
            );
        }
        files
    }

    /// How often the shell was started to learn what it is.
    fn taken(&self) -> usize {
        let directory = audit_directory(&self.settings());
        let records = entries(&directory, None).unwrap().map(|entry| entry.unwrap().record);
        records
            .filter(|one| matches!(one, Record::Note { text } if text.contains("to learn")))
            .count()
    }
}

impl Program {
    async fn outcome(&self, text: &str, login: Login) -> CommandOutcome {
        let shell = None;
        let command = CommandLine::Script { text: text.to_owned(), shell, login };
        let turn = self.session.begin_turn();
        let asked = AskedCommand::new(command);
        let ran = self.session.requester().run_command(&new_call_id(), asked, &turn).await;
        ran.unwrap().output
    }

    /// All that a login shell prints and ends with.
    async fn run(&self, text: &str) -> String {
        let output = self.outcome(text, Login::Yes).await.output;
        format!("{}{}[{}]", output.stdout.text, output.stderr.text, output.exit_code)
    }

    fn warnings(&mut self) -> Vec<String> {
        let events = heard(&mut self.events).into_iter();
        let warnings = events.filter_map(|event| match event {
            Event::Warning(notice) => Some(notice.message),
            _ => None,
        });
        warnings.collect()
    }
}

/// Whether the shell is there, and something that confines it.
fn can_run(shell: &str) -> bool {
    let confined = sandgate_runtime::enforcement().sandbox != sandgate_protocol::SandboxType::None;
    let found =
        ["/bin", "/usr/bin"].iter().any(|directory| Path::new(directory).join(shell).exists());
    if !confined || !found {
        println!("SKIPPED: there is no {shell} or no sandbox here");
    }
    confined && found
}

fn persons() -> impl Iterator<Item = Person> {
    SHELLS
        .into_iter()
        .filter(|(shell, _)| can_run(shell))
        .map(|(shell, file)| Person::new(shell, file))
}

const RICH: &str = r#"
export EXPORTED='a  b"c$d`e\f'
PLAIN='only here'
LINES_OF_IT='one
two'
ARRAY=(x 'y z')
PATH="$HOME/bin:$PATH"
greet() { echo "hello $1"; }
lazy() { unset -f lazy; lazy() { echo "loaded $LAZY_HOME"; }; lazy; }
LAZY_HOME=/opt/lazy
alias ll='echo long'
set -o noclobber
umask 027
unset LANG
printf 'noise on stdout\n'
printf 'noise on stderr\n' >&2
"#;

/// What is asked of both kinds of shells. None may tell them apart.
const PROBES: &[&str] = &[
    "echo \"$EXPORTED\"; printenv EXPORTED",
    "echo \"$PLAIN\"; printenv PLAIN",
    "echo \"$LINES_OF_IT\"",
    "echo \"${ARRAY[@]}\" \"${#ARRAY[@]}\"",
    "echo $PATH; printenv PATH",
    "greet you",
    "lazy; lazy",
    "alias ll",
    "set -o | grep -i clobber",
    "umask",
    "echo \"${LANG-none}\"",
    "echo \"$0\" \"$#\" \"$@\"",
    "exit 7",
    "false",
    "set -e; false; echo not here",
    "cat <<EOF\n  $PLAIN 'x' \"y\"\nEOF",
    "echo one\necho two",
    "kill -TERM $$",
    "echo $((1",
    "echo $LINENO; nonsense-command",
    "set -- a b; echo $# $1",
    "pwd; echo $PWD $OLDPWD",
    "f() { local x=1; echo $x; }; f | cat",
    "echo ${BASH_ENV-none} ${ZDOTDIR-none} ${__sandgate_call-none}; printenv | grep -c sandgate_",
    "export -p | grep -v -e CODEX_ -e _= | sort",
];

/// spec SNAP.1: A command that asks for a login shell sees the variables, functions, aliases, options and
/// the umask of one, in bash and in zsh.
/// spec SNAP.2: What the command is given (its text, `$0`, arguments, directory, exit code, errors) is the same as
/// in a login shell.
#[tokio::test]
async fn a_command_sees_what_a_login_shell_shows() {
    for person in persons() {
        person.write(RICH);
        let (plain, program) = (person.plain().await, person.program().await);
        for probe in PROBES {
            let expected = plain.run(probe).await;
            let expected =
                expected.replace("noise on stdout\n", "").replace("noise on stderr\n", "");
            assert_eq!(program.run(probe).await, expected, "{} {probe}", person.shell);
        }
        assert_eq!(person.taken(), 1, "{}", person.shell);
    }
}

/// spec SNAP.3: The start-up files are read once, for later commands and for later programs too.
#[tokio::test]
async fn start_up_files_are_read_once() {
    for person in persons() {
        person.write("export WHEN=$(date +%s%N)\n");
        let first = person.program().await;
        let when = first.run("echo $WHEN").await;
        assert!(when.len() > 15, "{when}");
        assert_eq!(first.run("echo $WHEN").await, when);
        drop(first);
        assert_eq!(person.program().await.run("echo $WHEN").await, when);
        assert_eq!(person.taken(), 1);
        assert_ne!(person.plain().await.run("echo $WHEN").await, when, "a login shell reads them");
    }
}

/// spec SNAP.4: A command that asks for no login shell gets nothing of it.
#[tokio::test]
async fn without_login_there_is_nothing_of_it() {
    for person in persons() {
        person.write(RICH);
        let program = person.program().await;
        program.run("true").await;
        let output = program.outcome("echo ${PLAIN-none}; umask; alias ll", Login::No).await.output;
        let umask = program.outcome("umask", Login::No).await.output.stdout.text;
        assert_eq!(output.stdout.text, format!("none\n{umask}"), "{}", person.shell);
        assert_ne!(umask.trim_start_matches('0').trim(), "27");
    }
}

/// spec SNAP.5: What is judged, shown and recorded is the command as it was asked for.
#[tokio::test]
async fn what_is_shown_is_what_was_asked_for() {
    for person in persons() {
        person.write("export SEEN=yes\n");
        let mut program = person.program().await;
        assert_eq!(program.run("echo $SEEN").await, "yes\n[0]");
        let expected = |command: &[String]| {
            assert!(command[0].ends_with(person.shell), "{command:?}");
            assert_eq!(command[1..], ["-lc", "echo $SEEN"]);
        };
        let mut begun = 0;
        for event in heard(&mut program.events) {
            if let Event::ExecCommandBegin(begin) = event {
                expected(&begin.command);
                begun += 1;
            }
        }
        let directory = audit_directory(&person.home.path().join("settings"));
        for entry in entries(&directory, None).unwrap() {
            if let Record::CallAsked(asked) = entry.unwrap().record {
                expected(&asked.argv);
                begun += 1;
            }
        }
        assert_eq!(begun, 2);
    }
}

/// spec SNAP.6: Aliases are expanded where a login shell would expand them: in bash after `shopt -s
/// expand_aliases`.
#[tokio::test]
async fn aliases_are_expanded_where_a_login_shell_would() {
    for person in persons() {
        let alias = "alias hi='echo from-alias'\n";
        let expanding = format!(
            "shopt -s expand_aliases extglob\n{alias}f() {{ case $1 in !(y)) hi;; esac; }}\n"
        );
        let texts: &[&str] = if person.shell == "bash" { &[alias, &expanding] } else { &[alias] };
        for text in texts {
            person.write(text);
            let (plain, program) = (person.plain().await, person.program().await);
            for probe in ["hi there", "hi a\nhi b", "shopt -p 2>/dev/null", "f x"] {
                let expected = plain.run(probe).await;
                assert_eq!(program.run(probe).await, expected, "{} {probe}", person.shell);
            }
        }
        let hi = person.program().await.run("hi there").await;
        assert_eq!(hi, "from-alias there\n[0]", "{}", person.shell);
    }
}

/// spec SNAP.7: A snapshot is taken again when a start-up file, or a file that one is seen to source, is
/// changed, made or removed, and when a variable that
/// one asks for or the environment policy is another.
#[tokio::test]
async fn what_changes_is_seen() {
    for mut person in persons() {
        let sourced = person.home.path().join("tools.sh");
        fs::write(&sourced, "export TOOLS=1\n").unwrap();
        person.write("export TOOLS_DIR=$HOME\n[ -s \"$TOOLS_DIR/tools.sh\" ] && \\. \"$TOOLS_DIR/tools.sh\"\n");
        let program = person.program().await;
        assert_eq!(program.run("echo $TOOLS $MORE").await, "1\n[0]");
        fs::write(&sourced, "export TOOLS=2\n").unwrap();
        assert_eq!(program.run("echo $TOOLS $MORE").await, "2\n[0]");
        let early = if person.shell == "bash" { ".bash_profile" } else { ".zshenv" };
        fs::write(person.home.path().join(early), "export MORE=3\n. ~/tools.sh\n").unwrap();
        assert_eq!(program.run("echo $TOOLS $MORE").await, "2 3\n[0]");
        fs::remove_file(&sourced).unwrap();
        assert!(program.run("echo $TOOLS.$MORE").await.contains(".3\n"));
        assert_eq!(person.taken(), 4, "{}", person.shell);
        assert!(program.run("echo $TOOLS.$MORE").await.contains(".3\n"));
        assert_eq!(person.taken(), 4, "{}", person.shell);
        person.more.push(("RUN_ID", "7"));
        person.program().await.run("true").await;
        assert_eq!(person.taken(), 4, "nobody asks for that one");
        person.more.push(("TOOLS_DIR", "/opt"));
        fs::write(person.home.path().join(early), "export MORE=3 WHERE=${TOOLS_DIR-none}\n")
            .unwrap();
        assert_eq!(person.program().await.run("echo $WHERE").await, "/opt\n[0]");
        assert_eq!(person.taken(), 5, "another file");
        person.more.pop();
        assert_eq!(person.program().await.run("echo $WHERE").await, "none\n[0]");
        assert_eq!(person.taken(), 6, "another value of what it asks for");
        person.environment.exclude.push("MORE".to_owned());
        assert_eq!(person.program().await.run("echo ${MORE-none}").await, "none\n[0]");
        assert_eq!(person.taken(), 7, "another policy");
    }
}

/// spec SNAP.8: What the environment policy leaves out by its name is neither seen nor written, nor is anything
/// else whose text holds its value.
#[tokio::test]
async fn no_secret_is_written() {
    for mut person in persons() {
        person.more.push(("GIVEN_TOKEN", "given-0123456789"));
        person.environment.exclude.push("PRIVATE_*".to_owned());
        person.write(
            "export API_KEY='sk-\"0123456789'\nDB_SECRET=unexported-0123\nexport PRIVATE_NOTE=confidential\n\
             export URL=\"db://me:$DB_SECRET@host\"\nLIST=(a \"$API_KEY\")\n\
             alias call=\"curl -H $API_KEY\"\nalias fine='echo fine'\n\
             note() { echo confidential; }\nmine() { echo given-0123456789; }\nkeep() { echo kept; }\n\
             export SHORT_TOKEN=abc\nexport ABC=abcdef\n",
        );
        let program = person.program().await;
        let probe = "echo ${API_KEY-no} ${DB_SECRET-no} ${PRIVATE_NOTE-no} ${URL-no} ${LIST-no} $ABC; keep; alias fine";
        let seen = program.run(probe).await;
        assert!(seen.starts_with("no no no no no abcdef\nkept\n"), "{} {seen}", person.shell);
        assert!(seen.contains("echo fine"), "{seen}");
        let files = person.kept();
        assert_eq!(files.len(), 1);
        let bytes = fs::read(&files[0]).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["0123456789", "unexported-0123", "confidential"] {
            assert!(!text.contains(secret), "{} {secret}\n{text}", person.shell);
        }
        assert!(text.contains("echo kept"));
    }
}

/// spec SNAP.9: Where a snapshot cannot be taken, because start-up files end the shell, hang or print without end,
/// commands start a login shell, and one warning in a session says why.
#[tokio::test]
async fn without_a_snapshot_there_is_a_login_shell_and_one_warning() {
    for mut person in persons() {
        // It tells the two cages apart by what they let it write.
        let here = person.work.path().join("probe");
        let only = |doing: &str| {
            format!("export LOGIN=yes\n: 2>/dev/null >| {} || {doing}\n", here.display())
        };
        let cases = [
            (only("exit 3"), "exit code 3"),
            (only("{ sleep 1000 & wait; }"), "took more than 1500 ms"),
            (
                only("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done"),
                "printed more than",
            ),
        ];
        person.timeout = Duration::from_millis(1500);
        for (text, why) in cases {
            person.write(&text);
            let mut program = person.program().await;
            for _ in 0..2 {
                assert_eq!(program.run("echo $LOGIN").await, "yes\n[0]", "{} {text}", person.shell);
            }
            let warnings = program.warnings();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(why), "{warnings:?}");
            let before = person.taken();
            let mut again = person.program().await;
            assert_eq!(again.run("echo $LOGIN").await, "yes\n[0]");
            assert_eq!(again.warnings(), warnings, "the next program says so too");
            assert_eq!(person.taken(), before, "and need not find out again");
        }
    }
}

/// spec SNAP.10: A snapshot is kept in a file for its owner only; one that others can write, that is a link,
/// or that is not whole is not used and taken again.
#[tokio::test]
async fn a_file_that_somebody_may_have_changed_is_not_used() {
    for person in persons() {
        person.write("export SEEN=yes\n");
        person.program().await.run("true").await;
        let file = person.kept().remove(0);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let good = fs::read_to_string(&file).unwrap();
        let evil = good.replace("SEEN=yes", "SEEN=evil").replace("SEEN=\"yes\"", "SEEN=\"evil\"");
        assert_ne!(good, evil);
        let elsewhere = person.home.path().join("elsewhere");
        let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let changes: [(&str, &dyn Fn()); 6] = [
            ("changed", &|| fs::write(&file, &evil).unwrap()),
            ("cut off", &|| fs::write(&file, &good[..good.len() - 2]).unwrap()),
            ("open to others", &|| set_mode(0o622)),
            ("a link", &|| {
                fs::rename(&file, &elsewhere).unwrap();
                symlink(&elsewhere, &file).unwrap();
            }),
            ("linked twice", &|| fs::hard_link(&file, person.home.path().join("twin")).unwrap()),
            ("too large", &|| {
                fs::write(&file, good.clone() + &" ".repeat(5 << 20)).unwrap();
            }),
        ];
        for (name, change) in changes {
            let before = person.taken();
            change();
            let mut program = person.program().await;
            assert_eq!(program.run("echo $SEEN").await, "yes\n[0]", "{name}");
            assert_eq!(person.taken(), before + 1, "{name}");
            assert!(program.warnings().is_empty());
            let found = fs::symlink_metadata(&file).unwrap();
            assert!(found.is_file() && found.mode() & 0o777 == 0o600, "{name}");
        }
        // Within a session as well.
        let program = person.program().await;
        program.run("true").await;
        fs::write(&file, &evil).unwrap();
        assert_eq!(program.run("echo $SEEN").await, "yes\n[0]");
    }
}

/// spec SNAP.11: The start-up files are read in the person's home, where they can write nothing and reach
/// no network; the project has no part in it.
#[tokio::test]
async fn start_up_files_are_confined() {
    for person in persons() {
        let here = person.work.path().join("written");
        let at_home = person.home.path().join("written");
        person.write(&format!(
            "export WHERE=$PWD OFF=$CODEX_SANDBOX_NETWORK_DISABLED\n: >| {}\n: >| {}\n[ -f .project ] && . ./.project\n",
            here.display(),
            at_home.display()
        ));
        fs::write(person.work.path().join(".project"), "export PROJECT=1\n").unwrap();
        let home = person.home.path().canonicalize().unwrap();
        let seen = person.program().await.run("echo $WHERE $OFF ${PROJECT-none}").await;
        assert_eq!(seen, format!("{} 1 none\n[0]", home.display()));
        assert!(!here.exists() && !at_home.exists());
    }
}

/// spec SNAP.12: No confined command can write to a snapshot, also where its workspace has it in it.
#[tokio::test]
async fn commands_cannot_write_snapshots() {
    for mut person in persons() {
        person.write("export SEEN=yes\n");
        // The home is the workspace.
        person.work = tempfile::tempdir_in(person.home.path()).unwrap();
        let mut config = person.config();
        config.workspace = person.home.path().to_owned();
        let program = person.program_with(config).await;
        program.run("true").await;
        let file = person.kept().remove(0);
        let before = fs::read(&file).unwrap();
        let path = file.display();
        for attempt in [
            format!("echo 'export SEEN=evil' >> {path}"),
            format!("rm -f {path}"),
            format!("mv {} {}-moved", person.settings().display(), person.settings().display()),
            format!("rm -rf {}", person.settings().join("snapshots").display()),
            format!("echo x > {}", person.settings().join("snapshots/new").display()),
        ] {
            let said = program.run(&attempt).await;
            assert!(!said.ends_with("[0]"), "{attempt}: {said}");
            assert_eq!(fs::read(&file).unwrap(), before, "{attempt}");
        }
        assert_eq!(program.run("touch ~/written; echo $SEEN").await, "yes\n[0]");
        assert!(
            person.home.path().join("written").exists(),
            "the rest of the workspace is writable"
        );
    }
}

/// spec SNAP.13: What a call sets for itself, and what the sandbox sets, stays as the call has it.
#[tokio::test]
async fn what_the_call_sets_stays() {
    for person in persons() {
        person.write("export PAGER=less CODEX_SANDBOX=none EDITOR=vi\n");
        let program = person.program().await;
        assert_eq!(program.run("echo $PAGER $EDITOR $CODEX_SANDBOX").await, "less vi linux\n[0]");
        let call = sandgate_protocol::ToolCall {
            call_id: new_call_id(),
            name: "exec_command".to_owned(),
            payload: sandgate_protocol::ToolPayload::Function {
                arguments: serde_json::json!({"command": "echo got $PAGER $EDITOR", "tty": false})
                    .to_string(),
            },
        };
        let turn = program.session.begin_turn();
        let result = program.session.requester().call(vec![call], &turn).await.remove(0);
        let said = support::scene::text(&result);
        assert!(said.contains("got cat vi"), "{said}");
        assert_eq!(person.taken(), 1);
    }
}

/// spec SNAP.14: Hooks that start-up files install for prompts are there, and are not run by commands.
#[tokio::test]
async fn hooks_for_prompts_are_not_run() {
    for person in persons() {
        person.write(
            "hook() { export HOOKED=yes; }\nPROMPT_COMMAND='hook;'\nprecmd_functions=(hook)\nchpwd_functions=(hook)\n",
        );
        let (plain, program) = (person.plain().await, person.program().await);
        for probe in [
            "echo ${HOOKED-no}",
            "cd /; echo ${HOOKED-no}",
            "echo $PROMPT_COMMAND",
            "hook; echo $HOOKED",
        ] {
            assert_eq!(
                program.run(probe).await,
                plain.run(probe).await,
                "{} {probe}",
                person.shell
            );
        }
    }
}

/// spec SNAP.15: Shells that cannot say what they are (sh, dash, fish) start as login shells, without a
/// warning.
#[tokio::test]
async fn other_shells_start_as_ever() {
    let mut person = Person::new("sh", ".profile");
    if !can_run("sh") {
        return;
    }
    person.policy = SandboxPolicy::ReadOnly;
    person.write("export SEEN=$(date +%s%N)\n");
    let mut program = person.program().await;
    assert_ne!(program.run("echo $SEEN").await, program.run("echo $SEEN").await);
    assert_eq!(program.warnings(), Vec::<String>::new());
    assert_eq!(person.taken(), 0);
    assert!(!person.settings().join("snapshots").exists());
}
