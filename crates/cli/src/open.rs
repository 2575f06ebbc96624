//! Opens sessions for the doors of `sandgate-server`, as the person's settings and the command line say.

use crate::agent::{CliModel, Conversing, PreparedAgent, converse};
use crate::session::{CliSession, PreparedSession};
use crate::settings::{SettingsError, config_home};
use crate::trust::Asked;
use sandgate_agent::rollout::{self, RolloutError};
use sandgate_runtime::{Runtime, Session, TurnDiffs};
use sandgate_server::{
    NewConversation, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
};
use std::sync::Arc;

/// Opens sessions by what was said on the command line.
pub(crate) struct CliOpener {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) session: CliSession,
    pub(crate) model: CliModel,
}

impl CliOpener {
    fn prepare(&self, wanted: WantedSession) -> Result<PreparedSession, OpenError> {
        let mut session = self.session.clone();
        session.cd = wanted.workspace.or(session.cd);
        // Nobody sits here: a directory that the person was not asked about counts as not trusted.
        let mut prepared = session.prepare_for(Asked::Nobody).map_err(failed)?;
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
        let equipped = model.prepare(&prepared, agent.source);
        let mut equipped = equipped.map_err(|error| match is_clients {
            true => OpenError::Refused(error.into_message()),
            false => failed(error),
        })?;
        equipped.keys.run_by(&self.runtime);
        let notes = std::mem::take(&mut equipped.notes);
        let recorded_in = home.filter(|_| agent.conversation != NewConversation::Ephemeral);
        let conversing = Conversing { recorded, recorded_in, output_schema: None };
        let runtime = Arc::clone(&self.runtime);
        let PreparedAgent { mcp_servers, .. } = &equipped;
        let mcp_servers = mcp_servers.clone();
        let opened = converse(runtime, prepared, equipped, conversing);
        let (session, conversation) =
            opened.map_err(|error| OpenError::Refused(error.to_string()))?;
        let own_env = std::env::vars_os().collect();
        Ok(OpenedConversation { session, conversation, mcp_servers, own_env, notes })
    }
}

fn failed(error: SettingsError) -> OpenError {
    OpenError::Failed(error.into_message())
}

fn not_found(error: &RolloutError) -> OpenError {
    OpenError::NoSuchConversation(error.to_string())
}
