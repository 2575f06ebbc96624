//! The HTTP door: conversations, questions, calls and processes, for programs and for the console.

mod about;
mod approvals;
mod audit;
mod body;
mod conversations;
mod crowd;
mod elsewhere;
mod guard;
mod listen;
mod problem;
mod processes;
mod server;
mod sign_in;
mod sse;
mod tokens;
mod tools;

pub use guard::Reached;
pub use listen::{Listener, serve, tls_acceptor};
pub use server::{Limits, Server, ServerOptions};
pub use tokens::{Token, Tokens};

use crate::mcp::{self, APPROVAL_TIMEOUT, McpOptions, Workspace};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;
use axum::routing::get;
use problem::Problem;
use serde_json::Value;
use std::sync::Arc;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the document calls the way in which tokens are sent.
const SCHEME: &str = "token";

/// All routes, with their checks.
fn router(server: &Arc<Server>) -> Router {
    let approver = OpenApiRouter::new()
        .routes(routes!(approvals::answer))
        .routes(routes!(audit::list))
        .routes(routes!(audit::stats))
        .layer(from_fn_with_state(Arc::clone(server), guard::approves));
    let either = OpenApiRouter::new()
        .routes(routes!(conversations::begin::begin, conversations::list))
        .routes(routes!(conversations::show, conversations::close))
        .routes(routes!(conversations::items))
        .routes(routes!(conversations::turn::turn))
        .routes(routes!(conversations::events))
        .routes(routes!(conversations::interrupt))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show))
        .routes(routes!(approvals::events))
        .routes(routes!(tools::list))
        .routes(routes!(tools::call))
        .routes(routes!(processes::list))
        .routes(routes!(processes::output))
        .routes(routes!(processes::input))
        .routes(routes!(processes::resize))
        .routes(routes!(processes::kill))
        .routes(routes!(about::me))
        .routes(routes!(about::metrics));
    let nobody =
        OpenApiRouter::new().routes(routes!(about::health)).routes(routes!(sign_in::sign_in));
    let (known, document) = either.merge(approver).split_for_parts();
    let (open, more) = nobody.split_for_parts();
    let document = closed(serde_json::to_value(described(document.merge_from(more))));
    let document: Arc<str> = document.to_string().into();
    let known = known
        .route("/openapi.json", get(move || openapi(Arc::clone(&document))))
        .route(
            "/mcp",
            mcp_door(server).layer(from_fn_with_state(Arc::clone(server), body::in_time)),
        )
        .layer(from_fn_with_state(Arc::clone(server), guard::has_token));
    known
        .merge(open)
        .fallback(get(about::console).fallback(no_such_method))
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(Arc::clone(server), guard::was_meant))
        .with_state(Arc::clone(server))
}

/// The MCP server, for clients that have a token. All of them work where the server does.
fn mcp_door(server: &Server) -> axum::routing::MethodRouter<Arc<Server>> {
    let options = McpOptions {
        opener: Arc::clone(&server.opener),
        desk: server.desk.place(),
        person: server.person.clone(),
        tools: None,
        workspace: Workspace::Given,
        approval_timeout: APPROVAL_TIMEOUT,
    };
    mcp::http_service(&options, &server.reached.hosts, &server.stop.cancel)
}

async fn openapi(document: Arc<str>) -> axum::response::Response {
    ([(axum::http::header::CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

async fn no_such_method(State(_): State<Arc<Server>>) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here; see /openapi.json")
}

/// The document with what all of its parts have in common.
fn described(mut document: OpenApi) -> OpenApi {
    let about = "The gate between an AI agent and a person's machine, for programs. There are two tokens: \
        the requester's lets an agent have things done, the approver's lets a person say what may be done.";
    let info = InfoBuilder::new()
        .title("sandgate")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about))
        .build();
    document.merge(
        OpenApiBuilder::new()
            .info(info.clone())
            .security(Some([SecurityRequirement::new(SCHEME, [] as [&str; 0])]))
            .build(),
    );
    document.info = info;
    document.security = Some(vec![SecurityRequirement::new(SCHEME, [] as [&str; 0])]);
    let components = document.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    components.add_security_scheme(SCHEME, bearer);
    let (name, schema) =
        (<Problem as utoipa::ToSchema>::name(), <Problem as utoipa::PartialSchema>::schema());
    components.schemas.insert(name.into_owned(), schema);
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.post, &mut item.delete, &mut item.put, &mut item.patch];
        operations.into_iter().flatten().for_each(tells_problems);
    }
    document
}

/// The same with the types of the protocol, and with the fields of variants closed: what is read refuses others,
/// and the document cannot be told to say so where the types are.
fn closed(document: serde_json::Result<Value>) -> Value {
    let mut document = document.unwrap_or_default();
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.extend(approvals::shown_schemas());
    }
    for name in ["AnswerBody", "InputPart"] {
        let variants = document.pointer_mut(&format!("/components/schemas/{name}/oneOf"));
        for variant in variants.and_then(Value::as_array_mut).into_iter().flatten() {
            variant["additionalProperties"] = Value::Bool(false);
        }
    }
    document
}

/// Whatever goes wrong is told in one form.
fn tells_problems(operation: &mut Operation) {
    let problem = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(problem)).build();
    let response = ResponseBuilder::new()
        .description("It did not work, and why")
        .content("application/problem+json", content)
        .build();
    let others = operation.responses.responses.entry("default".to_owned());
    others.or_insert(RefOr::T(response));
}
