//! What the sessions of a program share: the means to start commands and to confine them.

use crate::directory::SessionDirectory;
use crate::error::RuntimeError;
use crate::request::KeepOutput;
use crate::spills::{Room, Spills};
use sandgate_process::{Shell, Spawner, SpillPolicy};
use sandgate_protocol::ExecParams;
use sandgate_sandbox::SandboxManager;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What commands are run by. A front end makes one and keeps it as long as it lives; when it goes, everything
/// that was started through it ends, and the files of its session are removed.
///
/// ```
/// # #[cfg(unix)] {
/// let runtime = sandgate_runtime::Runtime::start()?.with_shell("sh")?;
/// assert!(runtime.shell_path().ends_with("sh"));
/// # }
/// # Ok::<(), sandgate_runtime::RuntimeError>(())
/// ```
pub struct Runtime {
    pub(crate) spawner: Spawner,
    pub(crate) sandbox: SandboxManager,
    directory: Arc<SessionDirectory>,
    /// The full outputs of commands that have ended.
    pub(crate) spills: Spills,
    /// What reads the scripts that name no shell.
    pub(crate) shell: Shell,
}

impl Runtime {
    /// Makes everything ready to run commands, and finds out which shell is the person's own.
    ///
    /// On Linux this forks, so call it first: before the program has threads, an asynchronous
    /// runtime or much memory. Later it works too, only slower.
    ///
    /// # Errors
    /// When the system makes no process for it.
    pub fn start() -> Result<Self, RuntimeError> {
        // First of all, because it forks: to ask for the shell may load libraries and open files.
        let spawner = Spawner::start()?;
        let shell = Shell::default_user_shell();
        let directory = Arc::new(SessionDirectory::named());
        let spills = Spills::new(Room::DEFAULT);
        Ok(Self { spawner, sandbox: SandboxManager::new(), directory, spills, shell })
    }

    /// Has scripts read by this shell, a name or an absolute path, instead of the person's own. A
    /// request may still name another.
    ///
    /// # Errors
    /// When there is no such shell.
    pub fn with_shell(mut self, name: &str) -> Result<Self, RuntimeError> {
        self.shell = Shell::named(name)?;
        Ok(self)
    }

    /// The shell that reads scripts which name no other.
    pub fn shell_path(&self) -> &Path {
        self.shell.shell_path()
    }

    /// The same command with marks, if it is a shell that can print them. Blocks while it writes files.
    #[cfg(unix)]
    pub(crate) fn with_marks(
        &self,
        asked: &ExecParams,
        nonce: &str,
    ) -> io::Result<Option<ExecParams>> {
        const SHELLS: &[&str] = &["bash", "zsh", "fish"];
        let name = asked.program.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| SHELLS.contains(&name)) {
            return Ok(None);
        }
        let directory = self.directory.make()?.join(format!("shell-{nonce}"));
        crate::private::make_new(&directory)?;
        sandgate_process::with_marks(asked, nonce, &directory)
    }

    /// No shell here can.
    #[cfg(not(unix))]
    pub(crate) fn with_marks(
        &self,
        _asked: &ExecParams,
        _nonce: &str,
    ) -> io::Result<Option<ExecParams>> {
        Ok(None)
    }

    /// The full output of a command by the name that its result gave, if there is one.
    pub(crate) fn spilled(&self, name: &str) -> Option<std::fs::File> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_name = name.starts_with("output-") && name.len() < 64 && name.chars().all(is_plain);
        // Another name could be a path, and to open a pipe or a device is to do something to it.
        let directory = self.directory.path().filter(|_| is_name)?;
        crate::private::open_file(&directory.join(name)).ok()
    }

    /// Where output goes that memory does not hold: to the session's directory, which is made when
    /// the first of it comes.
    pub(crate) fn spill(&self, keep: KeepOutput) -> Option<SpillPolicy> {
        match keep {
            KeepOutput::HeadAndTail => None,
            KeepOutput::Everything => {
                let directory = Arc::clone(&self.directory);
                Some(SpillPolicy::made_by(move || directory.make()))
            }
        }
    }
}
