//! What the interface cannot do by itself: open sessions by the settings, explain, review, look up.

use crate::agent::{CliModel, Conversing, converse};
use crate::decide::lay_beside_terminal;
use crate::sandbox::Mode;
use crate::session::{Asking, CliSession, PreparedSession};
use crate::settings::{SettingsError, config_home};
use crate::trust::{self, Asked, Seen};
use crate::{audit, policy, review};
use clap::ValueEnum as _;
use jiff::Timestamp;
use sandgate_agent::{ConversationOptions, Provider, default_model, rollout};
use sandgate_protocol::{
    AskForApproval, NetworkAccess, SandboxPermissions, SandboxPolicy, SessionSource, visible_line,
};
use sandgate_runtime::policy::Rules;
use sandgate_runtime::{Requester, Runtime, Session, Stop, enforcement};
use sandgate_tui::{Attending, Backstage, Change, Info, Opened, Reviewed};
use std::any::Any;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name by which sessions of the interface are recorded.
const FRONT_END: &str = "tui";

/// The settings and the command line, behind the interface.
pub(super) struct CliBackstage {
    runtime: Arc<Runtime>,
    session: CliSession,
    model: CliModel,
    began: Timestamp,
    now: Option<Now>,
    /// Those that were opened, by what they are called in the record.
    sessions: Vec<String>,
    /// The files of the project that the person was shown, and what they loosen.
    seen: RefCell<Option<Vec<String>>>,
}

/// What holds in the session that is open.
struct Now {
    approval: AskForApproval,
    sandbox: SandboxPolicy,
    rules: Rules,
    provider: Arc<dyn Provider>,
    options: ConversationOptions,
}

impl CliBackstage {
    pub(super) fn new(runtime: Arc<Runtime>, session: CliSession, model: CliModel) -> Self {
        let began = Timestamp::now();
        Self {
            runtime,
            session,
            model,
            began,
            now: None,
            sessions: Vec::new(),
            seen: RefCell::default(),
        }
    }

    /// Opens a session, and goes on with a conversation in it if one is named. Also says where figures
    /// are sent.
    pub(super) fn open(
        &mut self,
        conversation: Option<&str>,
    ) -> Result<(Opened, Option<String>), String> {
        let said = |error: SettingsError| error.into_message();
        // The directory was asked about before.
        let mut prepared = self.session.prepare_for(Asked::Nobody).map_err(said)?;
        prepared.config.front_end = FRONT_END.to_owned();
        prepared.config.source = Some(SessionSource::Interactive);
        let mut agent = self.model.prepare(&prepared, SessionSource::Interactive).map_err(said)?;
        agent.keys.run_by(&self.runtime);
        let home = config_home();
        // One that nothing was said in yet is not there to be gone on with.
        let recorded = conversation.zip(home.as_deref()).and_then(|(id, home)| {
            rollout::find(home, id).and_then(|path| rollout::read(&path)).ok()
        });
        let info = info(&prepared, &*agent.provider, &agent.options);
        let collector = prepared.collector.clone();
        self.now = Some(Now {
            approval: prepared.config.approval_policy,
            sandbox: prepared.config.sandbox_policy.clone(),
            rules: prepared.config.rules.clone(),
            provider: Arc::clone(&agent.provider),
            options: agent.options.clone(),
        });
        let notes = std::mem::take(&mut agent.notes);
        let mcp_servers = agent.mcp_servers.clone();
        let conversing = Conversing { recorded, recorded_in: home, output_schema: None };
        let opened = converse(Arc::clone(&self.runtime), prepared, agent, conversing);
        let (session, conversation) = opened.map_err(|error| error.to_string())?;
        self.sessions.push(session.id().to_owned());
        let own_env = std::env::vars_os().collect();
        Ok((Opened { session, conversation, mcp_servers, own_env, notes, info }, collector))
    }

    /// Takes a change over.
    fn take(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Settings => {}
            Change::Approval(word) => {
                self.give_up_full_auto();
                self.session.ask_for_approval = Some(asking(word)?);
            }
            Change::Sandbox(word) => {
                let mode = mode(word)?;
                self.give_up_full_auto();
                self.session.sandbox = Some(mode);
                if mode != Mode::WorkspaceWrite {
                    self.session.network = false;
                    self.session.writable.clear();
                }
            }
            Change::Model(word) => (self.model.provider, self.model.model) = self.named(word),
        }
        Ok(())
    }

    /// The option stands for two things, of which one is to be another now.
    fn give_up_full_auto(&mut self) {
        if std::mem::take(&mut self.session.full_auto) {
            self.session.ask_for_approval = Some(Asking::OnFailure);
            self.session.sandbox = Some(Mode::WorkspaceWrite);
        }
    }

    /// Who serves a model, and which: `NAME`, `PROVIDER:NAME` or a provider alone.
    fn named(&self, word: &str) -> (Option<String>, Option<String>) {
        let same = self.now.as_ref().map(|now| now.provider.name().to_owned());
        match word.split_once(':') {
            _ if word.starts_with("script:") || default_model(word).is_some() => {
                (Some(word.to_owned()), None)
            }
            // The names of some models have a colon, too.
            Some((provider, model)) if default_model(provider).is_some() => {
                (Some(provider.to_owned()), Some(model.to_owned()))
            }
            _ => (same, Some(word.to_owned())),
        }
    }

    fn directory(&self) -> PathBuf {
        self.session.cd.clone().unwrap_or_else(|| ".".into())
    }
}

impl Backstage for CliBackstage {
    fn check(&self, change: &Change) -> Result<(), String> {
        match change {
            Change::Approval(word) => asking(word).map(drop),
            Change::Sandbox(word) => mode(word).map(drop),
            Change::Model(_) | Change::Settings => Ok(()),
        }
    }

    fn reopen(&mut self, change: &Change, conversation: Option<&str>) -> Result<Opened, String> {
        let before = (self.session.clone(), self.model.clone());
        let opened = self.take(change).and_then(|()| self.open(conversation));
        match opened {
            Ok((opened, _)) => Ok(opened),
            Err(error) => {
                (self.session, self.model) = before;
                Err(error)
            }
        }
    }

    fn attend<'a>(&'a self, session: &'a Session, conversation: Option<&'a str>) -> Attending<'a> {
        Box::pin(async move {
            let on_desk = lay_beside_terminal(session, conversation).await?;
            Some(Box::new(on_desk) as Box<dyn Any>)
        })
    }

    fn explain(&self, command: &[String], cwd: &Path, permissions: SandboxPermissions) -> String {
        let Some(Now { approval, sandbox, rules, .. }) = &self.now else { return String::new() };
        policy::in_words(command, cwd, *approval, sandbox, rules, permissions)
    }

    fn review(&self, requester: Requester, stop: Stop) -> Reviewed {
        match &self.now {
            Some(now) => Box::pin(review::look_at_uncommitted(
                requester,
                Arc::clone(&now.provider),
                now.options.clone(),
                stop,
            )),
            None => Box::pin(std::future::ready(Err("there is no session".to_owned()))),
        }
    }

    fn audit(&self) -> Result<Vec<(String, String)>, String> {
        audit::lines_of(&self.sessions, self.began).map_err(|error| error.to_string())
    }

    fn trust(&self, answer: Option<bool>) -> Result<(String, bool), String> {
        let said = |error: SettingsError| error.into_message();
        let directory = self.directory();
        let Seen { text, loosens, noted } = trust::look(&directory).map_err(said)?;
        let before = self.seen.replace(Some(noted.clone()));
        match answer {
            None => Ok((format!("{text}/trust yes and /trust no change that."), false)),
            // What it loosens has to be seen first, as it is now.
            Some(true) if loosens && before.as_ref() != Some(&noted) => {
                Ok((format!("{text}To trust it with that, write /trust yes once more."), false))
            }
            Some(trusted) => {
                let decided = trust::decide(&directory, trusted, &noted);
                decided.map(|text| (text, true)).map_err(said)
            }
        }
    }
}

fn asking(word: &str) -> Result<Asking, String> {
    Asking::from_str(word, true).map_err(|_| {
        format!("{} is no policy: untrusted, on-failure, on-request or never", visible_line(word))
    })
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::from_str(word, true).map_err(|_| {
        let word = visible_line(word);
        format!("{word} is no mode: read-only, workspace-write or danger-full-access")
    })
}

/// What is shown of a session.
fn info(
    prepared: &PreparedSession,
    provider: &dyn Provider,
    options: &ConversationOptions,
) -> Info {
    let workspace = prepared.config.workspace.canonicalize();
    let workspace = workspace.unwrap_or_else(|_| prepared.config.workspace.clone());
    let home = sandgate_runtime::policy::home();
    let below = home.as_deref().and_then(|home| workspace.strip_prefix(home).ok());
    let shown = match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => workspace.display().to_string(),
    };
    let machine = enforcement();
    Info {
        provider: provider.name().to_owned(),
        model: options.model.clone(),
        offline: provider.name() == "offline",
        workspace: shown,
        root: workspace,
        trusted: prepared.trusted_root.is_some(),
        approval: prepared.config.approval_policy,
        sandbox: in_words(&prepared.config.sandbox_policy),
        missing: machine.missing,
        conversation: None,
    }
}

/// What a policy lets commands touch, in a few words; its name first.
fn in_words(policy: &SandboxPolicy) -> String {
    let network = match policy.network_access() {
        NetworkAccess::Restricted => "network off",
        NetworkAccess::Enabled => "network on",
    };
    match policy {
        SandboxPolicy::ReadOnly => "read-only, network off".to_owned(),
        SandboxPolicy::WorkspaceWrite { .. } => format!("workspace-write, {network}"),
        SandboxPolicy::DangerFullAccess => "danger-full-access, no sandbox at all".to_owned(),
        SandboxPolicy::ExternalSandbox { .. } => format!("external-sandbox, {network}"),
    }
}
