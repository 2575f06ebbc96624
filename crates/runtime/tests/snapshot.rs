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
    shell: &'static str,
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

    fn cache(&self) -> PathBuf {
        self.home.path().join("cache")
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
        config.config_home = Some(self.home.path().join("settings"));
        fs::create_dir_all(self.home.path().join("settings")).unwrap();
        config.audit = Some(AuditOptions::default());
        config.snapshot =
            Some(SnapshotOptions { timeout: self.timeout, directory: Some(self.cache()) });
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
        Program { session, events, shell: self.shell }
    }

    /// The files that snapshots are kept in.
    fn kept(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for directory in fs::read_dir(self.cache().join("snapshots")).into_iter().flatten() {
            files.extend(
                fs::read_dir(directory.unwrap().path()).unwrap().map(|file| file.unwrap().path()),
            );
        }
        files
    }

    /// How often the shell was started to learn what it is.
    fn taken(&self) -> usize {
        let directory = audit_directory(&self.home.path().join("settings"));
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
