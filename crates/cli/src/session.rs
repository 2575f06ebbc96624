//! The session that `run`, `call` and `patch` work in: its policies from the command line and the
//! settings.

use crate::decide::Decide;
use crate::sandbox::Mode;
use crate::settings::{self, CliSettings, Effective, SettingsError, config_home};
use crate::trust::Asked;
use clap::ValueEnum as _;
use sandgate_config::{AuditFailure, AuditFsync, Config, InheritPolicy, Layer};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use sandgate_runtime::audit::{AuditOptions, Fsync, WhenFull};
use sandgate_runtime::{
    InheritEnvironment, Keeping, ModelFormat, PartialEnforcement, SessionConfig,
    ShellEnvironmentPolicy, SnapshotOptions, SubAgentLimits,
};
use std::ffi::OsStr;
use std::path::PathBuf;

/// What may be said about a session.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CliSession {
    /// Run commands in this directory, which is the workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,

    /// When a person is asked [default: as your settings say; without them on-request in a directory
    /// that you trust, untrusted elsewhere]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) ask_for_approval: Option<Asking>,

    /// What commands may touch [default: as your settings say; without them workspace-write in a
    /// directory that you trust, read-only elsewhere]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) sandbox: Option<Mode>,

    /// The same as --sandbox workspace-write --ask-for-approval on-failure
    #[arg(long, conflicts_with_all = ["sandbox", "ask_for_approval"])]
    pub(crate) full_auto: bool,

    /// Let commands write to this directory too; with workspace-write
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,

    /// Let commands reach the network; with workspace-write
    #[arg(long)]
    pub(crate) network: bool,

    /// Answer questions without asking: approve, deny, or a file with an answer a line (approve, session,
    /// grant, grant-session, rule, deny, abort); or wait for sandgate approvals: approvals; with call also
    /// stdin
    #[arg(long, value_name = "ANSWER")]
    pub(crate) decide: Option<String>,

    /// Count a question as answered with no when nobody has answered it after so many seconds
    /// [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    pub(crate) approval_timeout: Option<u64>,

    #[command(flatten)]
    pub(crate) settings: CliSettings,
}

/// The longest time that a question can be told to wait: a year, which is for ever.
const MOST_SECONDS: u64 = 366 * 24 * 60 * 60;

/// What is said when options of one mode are given with another.
pub(crate) const ONLY_WORKSPACE_WRITE: &str =
    "--writable and --network are for --sandbox workspace-write only";

/// When a person is asked: the words for the approval policies, wherever they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Asking {
    /// Before everything that is not known to be safe
    Untrusted,
    /// Before what is dangerous, and when the sandbox has blocked something
    OnFailure,
    /// Before what is dangerous or asks to leave the sandbox, and when the sandbox has blocked
    /// something
    OnRequest,
    /// Never: what would need an answer is refused
    Never,
}

impl From<Asking> for AskForApproval {
    fn from(asking: Asking) -> Self {
        match asking {
            Asking::Untrusted => Self::UnlessTrusted,
            Asking::OnFailure => Self::OnFailure,
            Asking::OnRequest => Self::OnRequest,
            Asking::Never => Self::Never,
        }
    }
}

/// A session that can be started, and what else the settings say about the work in it.
pub(crate) struct PreparedSession {
    pub(crate) config: SessionConfig,
    /// Where figures and spans are sent.
    pub(crate) collector: Option<String>,
    /// All that is set.
    pub(crate) settings: Config,
    /// The root of the project, if the person trusts it.
    pub(crate) trusted_root: Option<PathBuf>,
}

impl CliSession {
    /// Who answers questions.
    pub(crate) fn decide(&self) -> Decide {
        Decide::of(self.decide.as_deref())
    }

    /// What is wrong with it, if something is.
    pub(crate) fn check(&self) -> Result<(), String> {
        let writes = self.sandbox.unwrap_or(Mode::WorkspaceWrite) == Mode::WorkspaceWrite;
        match writes || (self.writable.is_empty() && !self.network) {
            true => Ok(()),
            false => Err(ONLY_WORKSPACE_WRITE.to_owned()),
        }
    }

    /// The same for a session in the daemon.
    ///
    /// # Errors
    /// When the settings are not in order, or the options do not go with them.
    #[cfg(unix)]
    pub(crate) fn terms(&self) -> Result<sandgate_runtime::daemon::SessionTerms, SettingsError> {
        let config = self.prepare()?.config;
        Ok(sandgate_runtime::daemon::SessionTerms {
            workspace: std::path::absolute(&config.workspace).unwrap_or(config.workspace),
            approval_policy: config.approval_policy,
            sandbox_policy: config.sandbox_policy,
            env: (&config.own_env).into(),
        })
    }

    /// The session. A person who sits there may be asked whether they trust the directory, so this
    /// comes before all else.
    ///
    /// # Errors
    /// When the settings are not in order, or the options do not go with them.
    pub(crate) fn prepare(&self) -> Result<PreparedSession, SettingsError> {
        let asked = match self.decide() {
            Decide::AtTerminal => Asked::Person,
            _ => Asked::Nobody,
        };
        self.prepare_for(asked)
    }

    /// The same for somebody who sits there or not.
    ///
    /// # Errors
    /// When the settings are not in order, or the options do not go with them.
    pub(crate) fn prepare_for(&self, asked: Asked) -> Result<PreparedSession, SettingsError> {
        let workspace = self.cd.clone().unwrap_or_else(|| ".".into());
        let sources = settings::sources(&self.settings, &workspace, self.flags());
        let Effective { config: settings, rules, trusted_root } =
            settings::effective(&sources, asked)?;
        let mut config = SessionConfig::new(workspace);
        config.approval_policy = settings.approval_policy();
        config.approval_timeout = settings.approval_timeout();
        config.command_timeout = settings.command_timeout();
        config.sandbox_policy =
            with_options(settings.sandbox_policy(), &self.writable, self.network)?;
        if settings.requires_full_sandbox() {
            config.partial_enforcement = PartialEnforcement::Refused;
        }
        config.own_env = std::env::vars_os().collect();
        // Whatever they are called: what a model has run must not have the keys to the model.
        let models = sandgate_agent::key_variables(&settings.settings().model_providers);
        let servers = settings.settings().mcp_servers.values().flat_map(|server| {
            server.bearer_token_env_var.iter().chain(server.env_http_headers.values())
        });
        for variable in models.into_iter().chain(servers.map(ToString::to_string)) {
            config.own_env.remove(OsStr::new(&variable));
        }
        config.environment = environment(&settings);
        config.config_home = config_home();
        if let Ok(program) = std::env::current_exe() {
            config.keeping = Keeping::ByDaemon { program };
        }
        config.snapshot = settings.shell_snapshot().map(|timeout| SnapshotOptions { timeout });
        config.audit = Some(audit(&settings));
        if let Some(tokens) = settings.output_tokens() {
            config.model_format = ModelFormat::new(tokens);
        }
        config.rules = rules;
        config.subagents = subagents(&settings);
        let collector =
            settings.settings().otel.clone().and_then(|otel| otel.endpoint).map(String::from);
        Ok(PreparedSession { config, collector, settings, trusted_root })
    }

    /// What the options stand for, as settings.
    fn flags(&self) -> Vec<Layer> {
        let mut flags = policy_flags(self.ask_for_approval, self.sandbox, self.full_auto);
        if let Some(seconds) = self.approval_timeout {
            let milliseconds = i64::try_from(seconds * 1000).unwrap_or(i64::MAX);
            let setting = [("timeouts.approval_ms", milliseconds.into())];
            flags.push(Layer::of_flag("--approval-timeout", setting));
        }
        flags
    }
}

/// What the options for policies stand for, as settings.
pub(crate) fn policy_flags(
    asking: Option<Asking>,
    sandbox: Option<Mode>,
    full_auto: bool,
) -> Vec<Layer> {
    let word = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map(|value| value.get_name().to_owned()).unwrap_or_default().into()
    };
    let mut flags = Vec::new();
    if full_auto {
        let settings =
            [("sandbox_mode", "workspace-write".into()), ("approval_policy", "on-failure".into())];
        flags.push(Layer::of_flag("--full-auto", settings));
    }
    if let Some(sandbox) = sandbox {
        let setting = ("sandbox_mode", word(&|| sandbox.to_possible_value()));
        flags.push(Layer::of_flag("--sandbox", [setting]));
    }
    if let Some(asking) = asking {
        let setting = ("approval_policy", word(&|| asking.to_possible_value()));
        flags.push(Layer::of_flag("--ask-for-approval", [setting]));
    }
    flags
}

/// A policy with what options add to it.
///
/// # Errors
/// When they add to what cannot have it.
pub(crate) fn with_options(
    policy: SandboxPolicy,
    writable: &[PathBuf],
    network: bool,
) -> Result<SandboxPolicy, SettingsError> {
    match policy {
        SandboxPolicy::WorkspaceWrite {
            mut writable_roots,
            network_access,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
        } => {
            // They start where this program does, not in the workspace.
            writable_roots.extend(writable.iter().flat_map(std::path::absolute));
            Ok(SandboxPolicy::WorkspaceWrite {
                writable_roots,
                network_access: if network { NetworkAccess::Enabled } else { network_access },
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            })
        }
        other if writable.is_empty() && !network => Ok(other),
        other => {
            let mode = other.name();
            Err(SettingsError::usage(format!(
                "{ONLY_WORKSPACE_WRITE}, and here it is {mode}; add --sandbox workspace-write, or \
                 trust this directory with sandgate trust"
            )))
        }
    }
}

/// How many subagents there may be.
fn subagents(settings: &Config) -> SubAgentLimits {
    let agent = settings.settings().agent.clone().unwrap_or_default();
    let usual = SubAgentLimits::default();
    let number = |most: u32| usize::try_from(most).unwrap_or(usize::MAX);
    SubAgentLimits {
        depth: agent.max_subagent_depth.map_or(usual.depth, |most| number(most.get())),
        at_once: agent.max_subagents.map_or(usual.at_once, |most| number(most.get())),
    }
}

/// How what happens is recorded.
fn audit(settings: &Config) -> AuditOptions {
    let audit = settings.settings().audit.clone().unwrap_or_default();
    AuditOptions {
        fsync: match audit.fsync {
            Some(AuditFsync::Each) => Fsync::Each,
            Some(AuditFsync::Never) | None => Fsync::Never,
        },
        when_full: match audit.on_failure {
            Some(AuditFailure::GoOn) => WhenFull::GoOn,
            Some(AuditFailure::Stop) | None => WhenFull::StopCommands,
        },
    }
}

/// What of the person's environment commands are given.
fn environment(settings: &Config) -> ShellEnvironmentPolicy {
    let policy = settings.settings().shell_environment_policy.clone().unwrap_or_default();
    ShellEnvironmentPolicy {
        inherit: match policy.inherit {
            Some(InheritPolicy::Core) => InheritEnvironment::Core,
            Some(InheritPolicy::None) => InheritEnvironment::None,
            Some(InheritPolicy::All) | None => InheritEnvironment::All,
        },
        ignore_default_excludes: policy.ignore_default_excludes.unwrap_or(false),
        exclude: policy.exclude.unwrap_or_default(),
        set: policy.set,
        include_only: policy.include_only.unwrap_or_default(),
    }
}
