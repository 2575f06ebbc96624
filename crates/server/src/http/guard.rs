//! Who is let in: the checks that every request passes before anything is read of it but its head.
//!
//! The order is that of what a stranger could learn: first whether the request was meant for this server at
//! all (the host that it names, the page that it comes from), then who makes it.

use super::crowd::Seat;
use super::problem::Problem;
use super::server::Server;
use crate::asking::Caller;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use std::sync::Arc;

/// What the console may load, and from where: from here, and nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// By which names and how a server is reached.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// Its names, beside the addresses and the names of loopback: each a host without a port.
    pub hosts: Vec<String>,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// Refuses what was not meant for this server, or is made by a page of another origin.
pub(super) async fn was_meant(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let checked = check(request.headers(), request.uri(), &server.reached);
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            server.refused(&problem, request.method(), request.uri());
            problem.into_response()
        }
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

/// Finds out who calls, and refuses whoever has no token.
pub(super) async fn has_token(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response {
    let seat = request.extensions().get::<Arc<Seat>>();
    let known = caller(request.headers(), &server).and_then(|caller| {
        let working = seat.map(|seat| seat.work_for(caller)).transpose()?;
        Ok((caller, working))
    });
    match known {
        Ok((caller, working)) => {
            request.extensions_mut().insert(caller);
            let answer = next.run(request).await;
            // Until the last of the answer is sent.
            answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _ = &working;
                    frame
                }))
            })
        }
        Err(problem) => {
            server.refused(&problem, request.method(), request.uri());
            problem.into_response()
        }
    }
}

/// Refuses whoever does not have the approver's token. Comes after [`has_token`].
pub(super) async fn approves(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if caller == Caller::Approver {
        return next.run(request).await;
    }
    let problem = Problem::forbidden("this takes the approver's token, which a person has");
    server.refused(&problem, request.method(), request.uri());
    problem.into_response()
}

fn caller(headers: &HeaderMap, server: &Server) -> Result<Caller, Problem> {
    let presented = only(headers, &header::AUTHORIZATION)?.ok_or_else(no_token)?;
    let token = presented.split_once(' ').filter(|(how, _)| how.eq_ignore_ascii_case("bearer"));
    let (_, token) = token.ok_or_else(no_token)?;
    server
        .tokens
        .caller(token.trim())
        .ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "this is no token of this server"))
}

fn no_token() -> Problem {
    let why = "a token is needed: Authorization: Bearer TOKEN";
    Problem::new(StatusCode::UNAUTHORIZED, why)
}

fn check(headers: &HeaderMap, uri: &Uri, reached: &Reached) -> Result<(), Problem> {
    let host = only(headers, &header::HOST)?.ok_or_else(|| Problem::bad("it names no host"))?;
    let foreign = || {
        let why = "it names a host that this server is not; --allow-host adds a name";
        Problem::new(StatusCode::MISDIRECTED_REQUEST, why)
    };
    let named = name_in(host).ok_or_else(foreign)?;
    let also_named = uri.authority().is_none_or(|other| name_in(other.as_str()) == Some(named));
    if !is_ours(named, reached) || !also_named {
        return Err(foreign());
    }
    let from_elsewhere = || Problem::forbidden("it comes from a page of another origin");
    if let Some(origin) = only(headers, &header::ORIGIN)? {
        let scheme = if reached.tls { "https://" } else { "http://" };
        if origin.strip_prefix(scheme) != Some(host) {
            return Err(from_elsewhere());
        }
    }
    // What browsers add by themselves, and no page can change.
    match only(headers, &HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(from_elsewhere()),
    }
}

/// The name in a host that may have a port. None if it is anything else than these two, with nothing before,
/// between or after them.
fn name_in(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, rest) = host.split_at(end);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5;
    let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    (is_whole && !name.contains(['@', '/', '\\'])).then_some(name)
}

/// A name that an attacker's name server could not have pointed here: an address of loopback, `localhost`,
/// or one that the person allowed.
fn is_ours(name: &str, reached: &Reached) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    ["localhost", "127.0.0.1", "[::1]"].into_iter().any(is)
        || reached.hosts.iter().any(|host| is(host))
}

/// The value of a header that may be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str();
            text.map(Some).map_err(|_| Problem::bad(format!("{name} is not text")))
        }
        (Some(_), Some(_)) => Err(Problem::bad(format!("{name} is there more than once"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(host: &str, more: &[(&str, &str)], reached: &Reached) -> u16 {
        let mut headers = HeaderMap::new();
        let named = [("host", host)];
        for (name, value) in named.iter().chain(more) {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        match check(&headers, &Uri::from_static("/approvals"), reached) {
            Ok(()) => 200,
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    /// spec HTTP.5: A request that names a host other than loopback, the address it listens on or one that
    /// `--allow-host` names is refused.
    #[test]
    fn a_foreign_host_is_refused() {
        let reached = Reached { hosts: vec!["gate.example".to_owned()], tls: false };
        for ours in
            ["127.0.0.1:8", "localhost", "LOCALHOST:80", "[::1]:9", "[::1]", "Gate.example:1"]
        {
            assert_eq!(status(ours, &[], &reached), 200, "{ours}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8",
            "0.0.0.0:8",
            "evil.example@127.0.0.1",
            "127.0.0.1@evil.example",
            "xgate.example",
            "[::1]evil.example",
            "[::1]evil.example:80",
            "[::1].evil.example",
            "[::1",
            "[::1]:80@evil.example",
            "localhost:80evil.example",
            "localhost:80:80",
            "localhost:http",
            "localhost/evil.example",
            "user@localhost",
            "localhost ",
            " localhost",
            "",
        ] {
            assert_eq!(status(foreign, &[], &reached), 421, "{foreign}");
        }
        assert_eq!(status("localhost", &[("host", "evil.example")], &reached), 400);
    }

    /// spec HTTP.6: A request of a page is refused unless the page is of the same origin.
    #[test]
    fn a_foreign_page_is_refused() {
        let plain = Reached::default();
        let tls = Reached { tls: true, ..plain.clone() };
        let host = "127.0.0.1:8";
        assert_eq!(status(host, &[("origin", "http://127.0.0.1:8")], &plain), 200);
        assert_eq!(status(host, &[("origin", "https://127.0.0.1:8")], &tls), 200);
        assert_eq!(status(host, &[("sec-fetch-site", "none")], &plain), 200);
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:9"),
            ("origin", "https://127.0.0.1:8"),
            ("origin", "http://localhost:8"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(status(host, &[(name, value)], &plain), 403, "{name}: {value}");
        }
    }
}
