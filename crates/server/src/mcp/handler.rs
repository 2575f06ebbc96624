//! What the server answers to each request of a client.

// Logging and single subscriptions are on their way out of the protocol, and are what clients have now.
#![expect(deprecated, reason = "clients of the older generation use them")]

use super::connection::Connection;
use super::{answer, resources, table};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sandgate_runtime::ToolRegistry;
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a model is told about the gate.
const INSTRUCTIONS: &str = "\
Commands and patches go through a gate on the user's machine. Commands run in a sandbox: as a rule they can \
write in the workspace only and cannot reach the network. What the sandbox refuses is in the result, by name. \
Some commands need the user's approval: the call waits for it, and a no comes back as a result with the user's \
words. If the user's program shows no question, tell the user to answer with `sandgate approvals` in a \
terminal, or in the console of `sandgate serve`. If a command cannot work inside the sandbox, call it with sandbox_permissions \"require_escalated\" and \
a justification of one sentence; do not look for ways around the sandbox. Use exec_command and write_stdin for \
what lives on: shells, servers, REPLs. If nothing can be written in the workspace, the user has not said that \
it may be: tell them of `sandgate trust DIRECTORY`.";

/// Which of the two protocols a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Up to 2025-11-25: both sides can ask the other.
    Handshake,
    /// From 2026-07-28 on: only the client asks, and comes again with what it was asked for.
    Stateless,
}

impl Generation {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.protocol_version() {
            // Versions are dates, and compare like them.
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
                Self::Stateless
            }
            _ => Self::Handshake,
        }
    }
}

/// The server of one client.
pub(super) struct Server {
    /// What a client of the older generation has for itself.
    pub(super) connection: Arc<Connection>,
    /// What clients of the newer one share where each request stands alone.
    pub(super) shared: Option<Arc<Connection>>,
    /// The places for clients of the older generation, where many can come.
    pub(super) places: Option<Arc<Semaphore>>,
    /// The place of this one.
    pub(super) permit: OnceLock<OwnedSemaphorePermit>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .build();
        let us = Implementation::new("sandgate", env!("CARGO_PKG_VERSION")).with_title("Sandgate");
        ServerConfig::new(capabilities).with_server_info(us).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let Some(places) = &self.places {
            let Ok(permit) = Arc::clone(places).try_acquire_owned() else {
                let message = "there are too many clients; try again when one has gone";
                return Err(ErrorData::internal_error(message, None));
            };
            // A client that begins twice keeps the place that it has.
            let _ = self.permit.set(permit);
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let place = self.connection(&context).place_if_clear(&context).await;
        let place = place.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let specs = match place {
            Some(place) => place.requester.tools(),
            // A session has at least these.
            None => ToolRegistry::standard().specs(),
        };
        let answers = answer::schema();
        let offered = specs.into_iter().filter(|spec| self.offers(&spec.name));
        Ok(ListToolsResult::with_all_items(
            offered.map(|spec| table::tool(spec, &answers)).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.offers(&request.name) {
            let name: String = request.name.chars().take(100).collect();
            return Err(ErrorData::invalid_params(
                format!("there is no tool called {name:?}"),
                None,
            ));
        }
        self.connection(&context).call(request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self.connection(&context), &context).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self.connection(&context), &request.uri, &context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::subscribe(self.connection(&context), request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection(&context).followed.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(resources::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        resources::listen(self.connection(context.request_context()), &context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.set_level(request.level.into());
        Ok(())
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.connection.roots_changed();
    }
}

impl Server {
    /// The connection that a request belongs to.
    fn connection(&self, context: &RequestContext<RoleServer>) -> &Arc<Connection> {
        match (&self.shared, Generation::of(context)) {
            (Some(shared), Generation::Stateless) => shared,
            _ => &self.connection,
        }
    }

    fn offers(&self, tool: &str) -> bool {
        self.connection.options.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }
}
