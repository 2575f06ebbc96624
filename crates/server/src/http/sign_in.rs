//! How the console's page comes by its token.

use super::body::Json;
use super::problem::Problem;
use super::server::Server;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The largest body of one who has no token: a code fits many times.
const MOST_BYTES: usize = 4 << 10;

/// What a page signs in with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// The code of the console's address.
    code: String,
}

/// What it is given.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignedIn {
    /// A token of the approver's, for this page.
    token: String,
}

/// Gives a page a token for the code of the console's address, which counts once.
#[utoipa::path(
    post,
    path = "/console/sign-in",
    tag = "server",
    request_body = SignIn,
    responses((status = 200, body = SignedIn)),
    security(())
)]
pub(super) async fn sign_in(
    State(server): State<Arc<Server>>,
    Json(SignIn { code }): Json<SignIn, MOST_BYTES>,
) -> Result<axum::Json<SignedIn>, Problem> {
    let why = "this address was opened before, or is too old; sandgate console prints a new one";
    let token = server.tokens.sign_in(&code);
    let token = token.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, why))?;
    Ok(axum::Json(SignedIn { token: token.reveal().to_owned() }))
}
