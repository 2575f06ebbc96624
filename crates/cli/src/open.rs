//! Opens sessions for the doors of `sandgate-server`, as the person's settings and the command line say.

use crate::agent::{CliModel, Conversing, PreparedAgent, converse};
use crate::notes;
use crate::say::say;
use crate::session::{CliSession, PreparedSession};
use crate::settings::{SettingsError, config_home};
use crate::trust::Asked;
use sandgate_agent::rollout::{self, RolloutError};
use sandgate_protocol::{SandboxPolicy, visible_line};
use sandgate_runtime::{Runtime, Session, TurnDiffs};
use sandgate_server::{
    NewConversation, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
    WorkspaceFrom,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens sessions by what was said on the command line.
pub(crate) struct CliOpener {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) session: CliSession,
    pub(crate) model: CliModel,
}

impl CliOpener {
    fn prepare(&self, mut wanted: WantedSession) -> Result<PreparedSession, OpenError> {
        let mut session = self.session.clone();
        let of_client = match wanted.workspace_from {
            WorkspaceFrom::Client => wanted.workspace.clone(),
            WorkspaceFrom::Person => None,
        };
        session.cd = wanted.workspace.or(session.cd);
        // Nobody sits here: a directory that the person was not asked about counts as not trusted.
        let mut prepared = session.prepare_for(Asked::Nobody).map_err(failed)?;
        let known = Known::now(prepared.trusted_root.as_ref());
        if let Some(root) = of_client
            && !root.canonicalize().is_ok_and(|root| known.is_for_writing(&root))
        {
            wanted.sandbox_policy = Some(SandboxPolicy::ReadOnly);
            let root = visible_line(&root.display().to_string());
            let warning = format!(
                "the client works in {root}, which is neither in the directory that sandgate was \
                 started in nor trusted, so nothing can be written there: use sandgate trust {root}, or \
                 start sandgate mcp with --cd {root}"
            );
            say(&notes::warning(&warning));
        }
        prepared.config = prepared.config.tightened(wanted.approval_policy, wanted.sandbox_policy);
        prepared.config.front_end = wanted.front_end.to_owned();
        prepared.config.approval_timeout =
            prepared.config.approval_timeout.or(wanted.approval_timeout);
        Ok(prepared)
    }
}

impl Opener for CliOpener {
    fn session(&self, wanted: WantedSession) -> Result<Session, OpenError> {
        let mut prepared = self.prepare(wanted)?;
        // Each call is a turn, and nobody hears what one changed: a look at the whole workspace for each would be
        // for nothing.
        prepared.config.turn_diffs = TurnDiffs::Off;
        Session::start(Arc::clone(&self.runtime), prepared.config)
            .map_err(|error| OpenError::Refused(error.to_string()))
    }

    fn conversation(
        &self,
        mut wanted: WantedSession,
        agent: WantedAgent,
    ) -> Result<OpenedConversation, OpenError> {
        let home = config_home();
        let mut model = self.model.clone();
        let is_clients = agent.provider.is_some() || agent.model.is_some();
        model.provider = agent.provider.or(model.provider);
        model.model = agent.model.or(model.model);
        let recorded = match &agent.conversation {
            NewConversation::Resumed(id) => {
                let home = home.clone().unwrap_or_default();
                let found = rollout::find(&home, id).and_then(|path| rollout::read(&path));
                Some(found.map_err(|error| not_found(&error))?)
            }
            NewConversation::Recorded | NewConversation::Ephemeral => None,
        };
        if let Some(recorded) = &recorded {
            wanted.workspace.get_or_insert_with(|| recorded.meta.cwd.clone());
            model.goes_on(&recorded.meta);
        }
        let mut prepared = self.prepare(wanted)?;
        prepared.config.source = Some(agent.source.clone());
        prepared.config.server_answers = agent.server_answers;
        let equipped = model.prepare(&prepared, agent.source);
        let mut equipped = equipped.map_err(|error| match is_clients {
            true => OpenError::Refused(error.into_message()),
            false => failed(error),
        })?;
        equipped.keys.run_by(&self.runtime);
        equipped.add_client_servers(agent.mcp_servers);
        let notes = std::mem::take(&mut equipped.notes);
        let recorded_in = home.filter(|_| agent.conversation != NewConversation::Ephemeral);
        let conversing = Conversing { recorded, recorded_in, output_schema: None };
        let runtime = Arc::clone(&self.runtime);
        let PreparedAgent { mcp_servers, client_servers, .. } = &equipped;
        let mcp_servers = mcp_servers.iter().chain(client_servers).cloned().collect();
        let opened = converse(runtime, prepared, equipped, conversing);
        let (session, conversation) =
            opened.map_err(|error| OpenError::Refused(error.to_string()))?;
        let own_env = std::env::vars_os().collect();
        Ok(OpenedConversation { session, conversation, mcp_servers, own_env, notes })
    }
}

/// What the person has said about directories.
#[derive(Debug, Default)]
struct Known {
    home: Option<PathBuf>,
    /// Where they started this program.
    start: Option<PathBuf>,
    /// The root of a project that they trust.
    trusted: Option<PathBuf>,
}

impl Known {
    fn now(trusted: Option<&PathBuf>) -> Self {
        let canonical = |path: PathBuf| path.canonicalize().ok();
        Self {
            home: sandgate_runtime::policy::home().and_then(canonical),
            start: std::env::current_dir().ok().and_then(canonical),
            trusted: trusted.cloned().and_then(canonical),
        }
    }

    /// Whether commands may write to a directory that a client named by itself: the person started us
    /// there or above, or trusts it. Their home, and what holds it, is too much for either.
    fn is_for_writing(&self, root: &Path) -> bool {
        let is_too_much = |path: &Path| {
            path.parent().is_none() || self.home.as_ref().is_some_and(|home| home.starts_with(path))
        };
        let mut places = [&self.start, &self.trusted].into_iter().flatten();
        !is_too_much(root) && places.any(|place| root.starts_with(place) && !is_too_much(place))
    }
}

fn failed(error: SettingsError) -> OpenError {
    OpenError::Failed(error.into_message())
}

fn not_found(error: &RolloutError) -> OpenError {
    OpenError::NoSuchConversation(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec MCPS.8: In a client's root nothing is written unless it lies in the directory that the program
    /// was started in or in a project that the person trusts, and never in a home, what holds one, or
    /// everything.
    #[test]
    fn a_clients_root_is_written_to_only_where_the_person_said_something() {
        let known = |start: &str, trusted: Option<&str>| Known {
            home: Some("/home/u".into()),
            start: Some(start.into()),
            trusted: trusted.map(PathBuf::from),
        };
        for (root, start, trusted, expected) in [
            ("/home/u/a", "/home/u/a", None, true),
            ("/home/u/a/sub", "/home/u/a", None, true),
            ("/home/u/ab", "/home/u/a", None, false),
            ("/home/u/b", "/home/u/a", Some("/home/u/b"), true),
            ("/home/u", "/home/u", None, false),
            ("/home/u", "/home/u", Some("/home/u"), false),
            ("/home", "/home", None, false),
            ("/", "/", Some("/"), false),
            ("/home/u/.ssh", "/home/u", None, false),
            ("/srv/x", "/", None, false),
            ("/srv/x", "/srv", None, true),
        ] {
            let found = known(start, trusted).is_for_writing(Path::new(root));
            assert_eq!(found, expected, "{root} from {start}, trusted: {trusted:?}");
        }
    }
}
