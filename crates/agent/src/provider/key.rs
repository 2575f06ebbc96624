//! The keys of providers: where they come from, and what keeps them out of everything that is shown.

use super::ModelError;
use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret as _, SecretString};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The longest key that is taken, in bytes.
const LONGEST_KEY: u64 = 64 * 1024;

/// What is shorter is no secret, and to hide it would hide half of what a provider says.
const SHORTEST_SECRET: usize = 4;

/// Runs the program of `key_command`. Only the program around this crate can start processes, so it
/// brings this along.
pub trait KeyCommand: Send + Sync {
    /// What the program printed; or why there is nothing, as one sentence without any of its output.
    fn run<'a>(&'a self, argv: &'a [String]) -> BoxFuture<'a, Result<SecretString, String>>;
}

/// Where the key of a provider comes from.
pub(super) enum Key {
    /// It needs none.
    None,
    /// It was there when the provider was chosen.
    Given(SecretString),
    /// A file, read for every request: whoever changes keys changes it there.
    File(PathBuf),
    /// A program, run once and again when the provider refuses what it printed.
    Command {
        argv: Vec<String>,
        command: Arc<dyn KeyCommand>,
        printed: Mutex<Option<SecretString>>,
    },
}

impl Key {
    /// The key, if there is one.
    pub(super) async fn get(&self) -> Result<Option<SecretString>, ModelError> {
        match self {
            Self::None => Ok(None),
            Self::Given(key) => Ok(Some(key.clone())),
            Self::File(path) => {
                let wrong = |why: String| ModelError::Key(format!("{}: {why}", path.display()));
                let text = read_private(path).map_err(|error| wrong(error.to_string()))?;
                usable(text.expose_secret()).map(Some).map_err(wrong)
            }
            Self::Command { argv, command, printed } => {
                let mut printed = printed.lock().await;
                if printed.is_none() {
                    let program = argv.first().map_or("", String::as_str);
                    let wrong =
                        |why: String| ModelError::Key(format!("key_command {program}: {why}"));
                    let text = command.run(argv).await.map_err(wrong)?;
                    *printed = Some(usable(text.expose_secret()).map_err(wrong)?);
                }
                Ok(printed.clone())
            }
        }
    }

    /// The provider refused it. Whether there may be another now.
    pub(super) async fn refused(&self) -> bool {
        match self {
            Self::None | Self::Given(_) | Self::File(_) => false,
            Self::Command { printed, .. } => printed.lock().await.take().is_some(),
        }
    }
}

/// A key without the space around it.
///
/// # Errors
/// When it cannot stand in a header. Nothing of it is in the sentence.
pub(super) fn usable(text: &str) -> Result<SecretString, String> {
    let key = text.trim();
    if key.is_empty() {
        return Err("there is no key in it".to_owned());
    }
    if key.len() as u64 > LONGEST_KEY || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("what is in it is no key: a key is one word of ASCII letters".to_owned());
    }
    Ok(SecretString::from(key))
}

/// Reads a file that nobody but its owner may read, and whose owner we are.
fn read_private(path: &Path) -> io::Result<SecretString> {
    let file = open(path)?;
    check(&file)?;
    let mut text = String::new();
    file.take(LONGEST_KEY + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_KEY {
        return Err(io::Error::other("it is too long for a key"));
    }
    Ok(SecretString::from(text))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // A pipe must not hold us up.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(unix)]
fn check(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to somebody else"));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        let why = format!("others can read it (mode {mode:o}); use chmod 600");
        return Err(io::Error::other(why));
    }
    Ok(())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn check(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is no file")),
    }
}

/// What must not be seen in anything that is told.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<SecretString>);

impl Secrets {
    /// Adds a secret, in the forms that a server may repeat it in.
    pub(super) fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST_SECRET {
            return;
        }
        self.0.push(secret.into());
        let mut address = String::new();
        for part in reqwest::Url::parse_with_params("http://x/", [("", secret)])
            .iter()
            .filter_map(|url| url.query())
        {
            address.push_str(part.trim_start_matches('='));
        }
        if address != secret {
            self.0.push(address.into());
        }
        // The longest first, so that none is hidden by half because it begins like another.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
    }

    /// The text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        let hidden =
            |text: String, secret: &SecretString| text.replace(secret.expose_secret(), "[hidden]");
        self.0.iter().fold(text.to_owned(), hidden)
    }
}
