//! What the calls of a session share.

use super::SessionConfig;
use super::at_work::AtWork;
use super::child::{Ancestry, Place, Places};
use super::turn::TurnAbove;
use crate::approval::Broker;
use crate::audit::{Amended, AuditError, AuditLog, Record, SessionEnded, SessionStarted};
use crate::error::RuntimeError;
use crate::events::EventLog;
use crate::git::Repositories;
use crate::ours::Ours;
use crate::private::own_directory;
use crate::resolve::directory;
use crate::rules::append_rule;
use crate::runtime::Runtime;
use crate::served::Servers;
use crate::steady_path::SteadyPath;
use crate::telemetry::Telemetry;
use crate::tools::{SessionTools, ToolRegistry};
use crate::turn_diff::KeptContents;
use crate::unified_exec::UnifiedExecProcessManager;
use sandgate_patch::Roots as PatchRoots;
use sandgate_policy::Extras;
use sandgate_policy::rules::{Origin, ProposedRule, Rules};
use sandgate_policy::{ApprovalStore, Surroundings};
use sandgate_protocol::{CallId, Event, Notice, SandboxPolicy};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// What the calls of a session share.
pub(crate) struct Services {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) config: SessionConfig,
    pub(crate) broker: Arc<Broker>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) registry: SessionTools,
    /// Its live processes.
    pub(crate) live: UnifiedExecProcessManager,
    /// Its calls that have not ended.
    pub(crate) at_work: AtWork,
    /// The programs that serve it, by their names.
    pub(crate) servers: Servers,
    /// Itself, for those who outlive a call and not the session.
    me: Weak<Self>,
    pub(crate) repositories: Repositories,
    /// What is remembered of files from turn to turn.
    pub(crate) kept: Arc<KeptContents>,
    pub(crate) telemetry: Telemetry,
    /// What its turns belong to for whoever follows them.
    pub(crate) span: tracing::Span,
    /// What commands are given of the person's environment, which does not change in a session.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// Where programs are looked up that are believed by their names.
    steady_path: SteadyPath,
    /// What its login shells are.
    #[cfg(unix)]
    pub(crate) snapshots: Arc<crate::snapshot::Snapshots>,
    /// What the session is called by in the record.
    id: String,
    audit: Option<Arc<AuditLog>>,
    rules: Arc<RwLock<Arc<Rules>>>,
    approvals: Arc<Mutex<ApprovalStore>>,
    /// What a person has opened for the rest of the session.
    opened: Arc<Mutex<Extras>>,
    /// The session that it works for, if it is a subagent's.
    pub(super) above: Option<Ancestry>,
    /// The places for subagents in the whole of the tree.
    pub(super) places: Arc<Places>,
    /// How many subagents it has had.
    pub(super) had: AtomicU64,
    /// Warnings from before anybody could listen.
    unheard: Mutex<Vec<String>>,
}

/// What is approved in a session, which never reaches the person's settings.
fn remembering(config: &SessionConfig) -> ApprovalStore {
    // What is not there yet is known by its name.
    let canonical = |path: PathBuf| dunce::canonicalize(&path).unwrap_or(path);
    let around = Surroundings {
        home: config.home().map(canonical),
        roots: vec![config.workspace.clone()],
        ..Surroundings::default()
    };
    ApprovalStore::new(around, config.config_home.clone().map(canonical))
}

/// Where programs are looked up that are believed by their names: nowhere that a command of the session may write to,
/// nor in the workspace, which somebody else may have filled.
fn steady_path(environment: &BTreeMap<OsString, OsString>, config: &SessionConfig) -> SteadyPath {
    let variable = |name: &str| environment.get(OsStr::new(name));
    let temporary = ["TMPDIR", "TEMP", "TMP"].into_iter().filter_map(variable).map(PathBuf::from);
    let temporary = temporary.filter(|path| path.is_absolute());
    let places = std::iter::once(config.workspace.clone())
        .chain(writable_roots(config))
        .chain(["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from))
        .chain(temporary);
    SteadyPath::new(variable("PATH").map_or(OsStr::new(""), OsString::as_os_str), places)
}

/// Where the commands of a session may write, before anybody opened more to them.
fn writable_roots(config: &SessionConfig) -> Vec<PathBuf> {
    match &config.sandbox_policy {
        SandboxPolicy::WorkspaceWrite { writable_roots, .. } => {
            let workspace = &config.workspace;
            let beside = writable_roots.iter().map(|root| workspace.join(root));
            std::iter::once(workspace.clone()).chain(beside).collect()
        }
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
            vec![config.workspace.clone()]
        }
        SandboxPolicy::ReadOnly => Vec::new(),
    }
}

impl Services {
    pub(super) fn new(
        runtime: Arc<Runtime>,
        mut config: SessionConfig,
    ) -> Result<Arc<Self>, RuntimeError> {
        let env = std::env::vars_os().filter(|(name, _)| name == "HOME").collect();
        sandgate_sandbox::check_workspace(&config.workspace, &env)
            .map_err(sandgate_sandbox::SandboxTransformError::from)?;
        config.workspace = directory(&config.workspace)?;
        let ours = Ours::with_settings(config.config_home.as_deref());
        ours.refuse_inside(&places(&config))?;
        ours.protect(&runtime.sandbox, &writable(&config.sandbox_policy, &config));
        let audit = match (&config.config_home, config.audit) {
            (Some(home), Some(options)) => Some(Arc::new(AuditLog::open(home, options)?)),
            _ => None,
        };
        let environment = config.environment.apply(&config.own_env);
        let id = uuid::Uuid::now_v7().to_string();
        let span = tracing::info_span!("session", id, front_end = config.front_end);
        let services = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            live: UnifiedExecProcessManager::new(Arc::clone(&config.process_names)),
            at_work: AtWork::default(),
            servers: Servers::default(),
            id,
            span,
            audit,
            runtime,
            broker: Broker::new(config.approval_timeout),
            events: Arc::default(),
            registry: ToolRegistry::with(&config.tools).into(),
            repositories: Repositories::default(),
            kept: Arc::default(),
            telemetry: Telemetry::new(),
            steady_path: steady_path(&environment, &config),
            environment,
            #[cfg(unix)]
            snapshots: Arc::default(),
            rules: Arc::new(RwLock::new(Arc::new(std::mem::take(&mut config.rules)))),
            approvals: Arc::new(Mutex::new(remembering(&config))),
            opened: Arc::default(),
            unheard: Mutex::default(),
            above: None,
            places: Places::new(config.subagents),
            had: AtomicU64::new(0),
            config,
        });
        services.record(&Record::SessionStarted(services.beginning()))?;
        let settled = services.recover_patches();
        *services.unheard.lock().unwrap_or_else(PoisonError::into_inner) = settled;
        tracing::info!(parent: &services.span, "a session begins");
        Ok(services)
    }

    /// The session of a subagent: what it needs of its own, and everything else the parent's. What was
    /// approved and opened for the session counts for both only under the same policies.
    pub(super) fn below(
        parent: &Arc<Self>,
        config: SessionConfig,
        registry: ToolRegistry,
        agent: String,
        place: Place,
        turn: Option<TurnAbove>,
    ) -> Result<Arc<Self>, AuditError> {
        let same_policies = config.approval_policy == parent.config.approval_policy
            && config.sandbox_policy == parent.config.sandbox_policy;
        let (approvals, opened) = match same_policies {
            true => (Arc::clone(&parent.approvals), Arc::clone(&parent.opened)),
            false => (Arc::new(Mutex::new(remembering(&config))), Arc::default()),
        };
        let id = uuid::Uuid::now_v7().to_string();
        let span = tracing::info_span!(parent: &parent.span, "subagent", id, agent);
        let services = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            live: UnifiedExecProcessManager::new(Arc::clone(&config.process_names)),
            at_work: AtWork::default(),
            id,
            span,
            audit: parent.audit.clone(),
            runtime: Arc::clone(&parent.runtime),
            broker: Arc::clone(&parent.broker),
            events: Arc::new(EventLog::below(&parent.events, &agent)),
            registry: registry.into(),
            servers: Servers::default(),
            repositories: Repositories::default(),
            kept: Arc::clone(&parent.kept),
            telemetry: Telemetry::new(),
            steady_path: steady_path(&parent.environment, &config),
            environment: parent.environment.clone(),
            #[cfg(unix)]
            snapshots: Arc::clone(&parent.snapshots),
            rules: Arc::clone(&parent.rules),
            approvals,
            opened,
            unheard: Mutex::default(),
            places: Arc::clone(&parent.places),
            had: AtomicU64::new(0),
            above: Some(Ancestry { parent: Arc::clone(parent), agent, turn, _place: place }),
            config,
        });
        services.record(&Record::SessionStarted(services.beginning()))?;
        tracing::info!(parent: &services.span, "a subagent begins");
        Ok(services)
    }

    /// What the session is called by in the record.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Its name, if it is a subagent's session.
    pub(crate) fn agent(&self) -> Option<String> {
        self.above.as_ref().map(|above| above.agent.clone())
    }

    /// The turn that it works for, if it works for one.
    pub(super) fn turn_above(&self) -> Option<&TurnAbove> {
        self.above.as_ref()?.turn.as_ref()
    }

    fn beginning(&self) -> SessionStarted {
        SessionStarted {
            source: self.config.source.clone(),
            parent: self.above.as_ref().map(|above| above.parent.id.clone()),
            agent: self.agent(),
            front_end: self.config.front_end.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            workspace: self.config.workspace.to_string_lossy().into_owned(),
            sandbox_policy: self.config.sandbox_policy.clone(),
            approval_policy: self.config.approval_policy,
        }
    }

    /// Records something, before anything else happens.
    ///
    /// # Errors
    /// When it cannot be recorded, and the person wants nothing to happen then.
    pub(crate) fn record(&self, record: &Record) -> Result<(), AuditError> {
        match &self.audit {
            Some(audit) => audit.record(&self.id, record).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The rules as they are now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes by these rules from now on.
    #[cfg(unix)]
    pub(crate) fn replace_rules(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// The warnings that nobody could hear yet.
    pub(super) fn take_unheard(&self) -> Vec<String> {
        std::mem::take(&mut *self.unheard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was approved for the session.
    pub(crate) fn approvals(&self) -> MutexGuard<'_, ApprovalStore> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was opened for the session.
    pub(crate) fn opened(&self) -> Extras {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens something for the rest of the session.
    pub(crate) fn open_for_session(&self, extras: &Extras) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).extend(extras);
    }

    /// Where the session's commands may write, before anybody opened more to them.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        writable_roots(&self.config)
    }

    /// `PATH` for what is believed by its name.
    pub(crate) fn steady_path(&self) -> OsString {
        self.steady_path.without(&self.opened().writable)
    }

    /// Whether a program is what its name says, as far as the session's commands go.
    pub(crate) fn is_steady(&self, program: &Path) -> bool {
        self.steady_path.has(program, &self.opened().writable)
    }

    /// Where a patch may write, and to which files beside that a person said it may. What is protected
    /// there is looked for as it is for a command, so that a patch reaches nothing that one could not.
    pub(crate) fn patch_roots(&self, approved: Vec<PathBuf>) -> PatchRoots {
        let config = &self.config;
        let policy = match &config.sandbox_policy {
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
                return PatchRoots::everywhere();
            }
            SandboxPolicy::ReadOnly => return PatchRoots::new([], approved),
            policy @ SandboxPolicy::WorkspaceWrite { .. } => policy,
        };
        let (sandbox, env) = (&self.runtime.sandbox, &self.environment);
        let Ok(layout) = sandbox.layout(policy, &config.workspace, env) else {
            // No command runs there either.
            return PatchRoots::new([], approved);
        };
        // The directories for temporary files are for commands only.
        let named: Vec<PathBuf> = self.roots().iter().flat_map(dunce::canonicalize).collect();
        let settings = config.config_home.iter().flat_map(dunce::canonicalize);
        let settings: Vec<PathBuf> = settings.collect();
        let writable = layout.writable_roots().iter().filter(|root| named.contains(&root.path));
        let writable = writable.cloned().map(|mut root| {
            root.read_only_subpaths.extend_from_slice(&settings);
            root
        });
        PatchRoots::new(writable, approved)
    }

    /// Where patches keep what a crash would need, if there is a place for it.
    pub(crate) fn journals(&self) -> Option<PathBuf> {
        let place = self.config.config_home.clone().or_else(own_directory)?;
        Some(place.join("patches"))
    }

    /// Keeps a rule that a person agreed to, for this session and, if it can be written, later ones.
    pub(crate) async fn keep_rule(&self, proposed: &ProposedRule, call_id: &CallId) {
        let written = match &self.config.config_home {
            None => Err("there is no directory for settings".to_owned()),
            Some(home) => append_rule(home, proposed).map_err(|error| error.to_string()),
        };
        let (rule, failure) = match written {
            Ok(rule) => {
                let (rule_text, file) = (rule.to_string(), rule.origin.file.clone());
                let call_id = Some(call_id.clone());
                // The rule stands in its file, whatever becomes of the record.
                let _ = self.record(&Record::Amended(Amended { call_id, rule: rule_text, file }));
                (rule, None)
            }
            Err(error) => {
                let origin = Origin { file: "this session".to_owned(), ..Origin::default() };
                (proposed.as_rule(origin), Some(error))
            }
        };
        {
            let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut rules).extend([rule]);
        }
        if let Some(error) = failure {
            let message = format!("the rule holds for this session only: {error}");
            self.warn(Some(call_id.clone()), message).await;
        }
    }

    /// Itself, as long as it is there.
    pub(crate) fn me(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// Tells everybody of something that stops nothing.
    pub(crate) async fn warn(&self, call_id: Option<CallId>, message: String) {
        self.events.tell(&Event::Warning(Notice { call_id, message })).await;
    }
}

/// What this policy lets commands of a session write to.
fn writable(policy: &SandboxPolicy, config: &SessionConfig) -> Vec<PathBuf> {
    crate::ours::writable(policy, &config.workspace, &config.own_env)
}

/// The workspace, and all that commands and servers of a session may write to.
fn places(config: &SessionConfig) -> Vec<PathBuf> {
    let servers = config.servers.values().chain(config.client_servers.values());
    let policies = servers.map(|server| &server.sandbox_policy);
    let policies = std::iter::once(&config.sandbox_policy).chain(policies);
    let roots = policies.flat_map(|policy| writable(policy, config));
    std::iter::once(config.workspace.clone()).chain(roots).collect()
}

impl Drop for Services {
    fn drop(&mut self) {
        // There is nobody left to tell if this fails.
        let _ =
            self.record(&Record::SessionEnded(SessionEnded { reason: "it was over".to_owned() }));
    }
}
