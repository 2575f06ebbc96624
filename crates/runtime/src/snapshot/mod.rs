//! What a person's login shell is after its start-up files, learned once, so that commands need not wait
//! for them.
//!
//! A command that asks for a login shell is judged, shown and recorded as that. Only what is started differs: the
//! same shell on the same text, which reads one script of ours instead of the start-up files. How, and
//! what is kept from whom, is in `docs/design/snapshot.md`.

mod kept;
mod prelude;
mod report;
mod start_up;
mod take;

use crate::audit::Record;
use crate::private::own_directory;
use crate::session::{Services, SnapshotOptions};
use kept::{About, Kept, Place};
use sandgate_process::{Shell, ShellType, Stop};
use sandgate_protocol::{CallId, ExecParams};
use sha2::{Digest as _, Sha256};
use start_up::{Seen, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use take::{NotTaken, Sitter};
use tokio::sync::Mutex;

/// What changes from one start of a program to the next, and means nothing to start-up files.
const PASSING: &[&str] = &["PWD", "OLDPWD", "SHLVL", "_"];

/// The snapshots of a session.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// By the shell.
    held: Mutex<BTreeMap<PathBuf, Kept>>,
    warned: AtomicBool,
}

/// A command that asked for a login shell.
pub(crate) struct LoginCommand<'a> {
    pub(crate) shell: &'a Shell,
    pub(crate) call_id: &'a CallId,
    pub(crate) stop: &'a Stop,
}

impl LoginCommand<'_> {
    /// Has the command start from the snapshot of its shell. Where there is none it starts a login shell,
    /// as it says.
    pub(crate) async fn use_snapshot(&self, params: &mut ExecParams, services: &Services) {
        let Some(options) = &services.config.snapshot else { return };
        match self.find(options, services).await {
            Ok(file) => start_from(&file, self.shell.shell_type(), params, &services.environment),
            Err(NotTaken::Cancelled) => {}
            Err(NotTaken::NotHere(why)) => tracing::debug!(why, "there is no shell snapshot"),
            Err(NotTaken::Failed(why)) => {
                if !services.snapshots.warned.swap(true, Ordering::Relaxed) {
                    let shell = self.shell.shell_path().display();
                    let message = format!(
                        "there is no snapshot of {shell}, so each command waits for a login shell: {why}"
                    );
                    services.warn(Some(self.call_id.clone()), message).await;
                }
            }
        }
    }

    /// The script of the shell's snapshot, which is taken if there is none that holds.
    async fn find(
        &self,
        options: &SnapshotOptions,
        services: &Services,
    ) -> Result<PathBuf, NotTaken> {
        let file = match self.shell.shell_type() {
            ShellType::Bash => "prelude.bash",
            ShellType::Zsh => ".zshenv",
            _ => return Err(NotTaken::NotHere("this shell cannot say what it is")),
        };
        let home = services.config.home().and_then(|home| home.canonicalize().ok());
        let Some(home) = home else { return Err(NotTaken::NotHere("the home is not known")) };
        let path = self.shell.shell_path();
        let mut held = services.snapshots.held.lock().await;
        if let Some(kept) = held.get(path).filter(|kept| kept.is_current()) {
            return usable(kept);
        }
        let key = key(self.shell, services);
        let safe = services.config.config_home.clone().or_else(own_directory);
        let safe = safe.ok_or(NotTaken::NotHere("there is no place for it"))?;
        let place = Place::make(&safe, &key, file)
            .map_err(|error| NotTaken::Failed(format!("it cannot be kept: {error}")))?;
        let kept = match place.load(&key) {
            Some(kept) if kept.about.seen.fits(&services.environment) => kept,
            _ => {
                let kept = self.take(options, &home, services, key, &place).await?;
                place.sweep();
                kept
            }
        };
        let result = usable(&kept);
        held.insert(path.to_owned(), kept);
        result
    }

    /// Takes a snapshot and keeps it, or the reason why there is none: the next command need not find out
    /// again.
    async fn take(
        &self,
        options: &SnapshotOptions,
        home: &Path,
        services: &Services,
        key: String,
        place: &Place,
    ) -> Result<Kept, NotTaken> {
        let variable = |name: &str| services.environment.get(OsStr::new(name)).map(PathBuf::from);
        let seen = Seen::known(self.shell.shell_type(), home, variable);
        let sitter =
            Sitter { services, shell: self.shell, home, timeout: options.timeout, stop: self.stop };
        let text = format!(
            "{} was started to learn what a login shell is",
            self.shell.shell_path().display()
        );
        services
            .record(&Record::Note { text })
            .map_err(|error| NotTaken::Failed(error.to_string()))?;
        let (about, script) = match sitter.take(seen.clone()).await {
            Ok(taken) => (About::new(key, taken.seen, None, &taken.script), taken.script),
            Err(NotTaken::Failed(why)) => (About::new(key, seen, Some(why), &[]), Vec::new()),
            Err(other) => return Err(other),
        };
        place
            .store(about, &script)
            .map_err(|error| NotTaken::Failed(format!("it cannot be kept: {error}")))
    }
}

fn usable(kept: &Kept) -> Result<PathBuf, NotTaken> {
    match &kept.about.failure {
        None => Ok(kept.file.clone()),
        Some(why) => Err(NotTaken::Failed(why.clone())),
    }
}

/// What a snapshot depends on besides the start-up files.
fn key(shell: &Shell, services: &Services) -> String {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    add(shell.shell_path().as_os_str().as_bytes());
    add(format!("{:?}", Stamp::of(shell.shell_path())).as_bytes());
    add(format!("{:?}", services.config.environment).as_bytes());
    for name in ["HOME", "PATH", "BASH_ENV", "ZDOTDIR"] {
        add(services.environment.get(OsStr::new(name)).map_or(b"", |value| value.as_bytes()));
    }
    kept::hex(&digest.finalize()[..16])
}

/// Changes a login shell's command into the same shell that reads our script instead.
fn start_from(
    file: &Path,
    shell: ShellType,
    params: &mut ExecParams,
    usual: &BTreeMap<OsString, OsString>,
) {
    let Some(text) = params.command.pop() else { return };
    params.command.truncate(1);
    let (options, variable, value): (&[&str], _, _) = match shell {
        ShellType::Zsh => (&["-c"], "ZDOTDIR", file.parent().unwrap_or(file)),
        // It is a login shell all the same, only without the files.
        _ => (&["--noprofile", "-lc"], "BASH_ENV", file),
    };
    params.command.extend(options.iter().map(|option| (*option).to_owned()).chain([text]));
    let names: BTreeSet<&OsString> = params.env.keys().chain(usual.keys()).collect();
    let mut of_the_call = OsString::from(":");
    for name in names.into_iter().filter(|name| params.env.get(*name) != usual.get(*name)) {
        of_the_call.push(name);
        of_the_call.push(":");
    }
    params.env.insert(prelude::OF_THE_CALL.into(), of_the_call);
    params.env.insert(variable.into(), value.into());
}
