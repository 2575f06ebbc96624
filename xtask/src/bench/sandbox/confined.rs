//! Commands in the cage of a session, run through the library as a program of its own would run them.

use super::layers::Layers;
use crate::bench::library::{self, Library};
use crate::bench::row::{Row, Target};
use crate::bench::session::Session;
use anyhow::Context as _;
use sandgate_policy::Grant;
use sandgate_process::{ExecuteOptions, Executed};
use sandgate_protocol::{ExecParams, NetworkAccess, SandboxPolicy};
use sandgate_sandbox::SandboxManager;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A session: its guards, its cages and its workspace.
pub(in crate::bench) struct Confined {
    pub(super) library: Library,
    manager: SandboxManager,
    workspace: PathBuf,
    layers: RefCell<Option<Layers>>,
    /// Removed last, if it is this session's own.
    _directory: Option<TempDir>,
}

impl Confined {
    /// A session in an empty workspace, which has run a command already.
    pub(in crate::bench) fn start(session: &Session) -> anyhow::Result<Self> {
        let directory = session.scratch()?;
        let workspace = directory.path().to_owned();
        Ok(Self { _directory: Some(directory), ..Self::start_in(&workspace)? })
    }

    /// The same in somebody else's workspace.
    pub(super) fn start_in(workspace: &Path) -> anyhow::Result<Self> {
        let library = Library::start()?;
        let workspace = workspace.canonicalize()?;
        let confined = Self {
            library,
            manager: SandboxManager::new(),
            workspace,
            layers: RefCell::default(),
            _directory: None,
        };
        confined.time(&confined.command(&crate::bench::bare::true_program()?, &[])?)?;
        Ok(confined)
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// A command in the workspace.
    pub(in crate::bench) fn command(
        &self,
        program: &Path,
        args: &[&str],
    ) -> anyhow::Result<ExecParams> {
        command_in(&self.workspace, program, args)
    }

    /// How long a command takes whoever asks for it, from the grant to the result.
    pub(in crate::bench) fn time(&self, command: &ExecParams) -> anyhow::Result<Duration> {
        Ok(self.run(command)?.0)
    }

    /// The same, with what it left.
    pub(super) fn run(&self, command: &ExecParams) -> anyhow::Result<(Duration, Executed)> {
        let grant = grant(command, &self.workspace, Tmp::Writable);
        let began = Instant::now();
        let env = self.manager.transform(grant)?;
        let executed = self.library.run(&env, ExecuteOptions::default())?;
        let time = began.elapsed();
        let enforced = self.manager.enforced(executed.namespaces, executed.supervised);
        let layers = Layers::of(&enforced);
        let before = self.layers.replace(Some(layers.clone()));
        anyhow::ensure!(
            before.is_none_or(|before| before == layers),
            "two commands of one session were not held by the same layers"
        );
        Ok((time, executed))
    }

    /// States what was promised of a row that was taken here.
    pub(super) fn judge(&self, row: Row, target: Target) -> anyhow::Result<Row> {
        Ok(self.layers()?.judge(row, target))
    }

    /// The row of something that nothing was promised of.
    pub(super) fn label(&self, row: Row) -> anyhow::Result<Row> {
        Ok(self.layers()?.label(row))
    }

    fn layers(&self) -> anyhow::Result<Layers> {
        self.layers.borrow().clone().context("nothing has been confined yet")
    }
}

/// A command in a workspace. The directory for temporary files is /tmp, so that it is the same whoever
/// runs this.
pub(super) fn command_in(
    workspace: &Path,
    program: &Path,
    args: &[&str],
) -> anyhow::Result<ExecParams> {
    let mut command = library::params(program, args)?;
    workspace.clone_into(&mut command.cwd);
    command.env.remove(OsStr::new("TMPDIR"));
    Ok(command)
}

/// The permission to run it in the workspace's cage.
pub(super) fn grant(command: &ExecParams, workspace: &Path, tmp: Tmp) -> Grant {
    Grant::sandboxed_by_person(command.clone(), tmp.policy(), workspace.to_owned())
}

/// What becomes of /tmp. It is searched for protected names, and every repository in it costs mounts,
/// so what a session costs at first depends on what lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tmp {
    /// It is writable, as it is unless somebody says otherwise.
    Writable,
    /// It is read-only like the rest, and nobody looks into it.
    LeftOut,
}

impl Tmp {
    pub(super) fn policy(self) -> SandboxPolicy {
        SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: self == Self::LeftOut,
            exclude_slash_tmp: self == Self::LeftOut,
        }
    }
}
