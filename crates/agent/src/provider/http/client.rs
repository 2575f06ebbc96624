//! The HTTP client of a provider, made when it is first needed.

use crate::provider::ModelError;
use reqwest::{Certificate, Client, Url, redirect};
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The largest file of certificates that is read, in bytes.
const LARGEST_CA_FILE: u64 = 4 * 1024 * 1024;

/// Makes the client for an address.
pub(super) fn build(url: &Url, ca_file: Option<&Path>) -> Result<Client, ModelError> {
    // Fails only if somebody has done it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("sandgate/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would take the key and the conversation to somebody who was not named.
        .redirect(redirect::Policy::none())
        .referer(false);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder = match url.scheme() {
        // To read the certificates of the system takes longer than everything else.
        "http" => builder.tls_certs_only([]),
        _ => match ca_file {
            Some(file) => builder.https_only(true).tls_certs_merge(certificates(file)?),
            None => builder.https_only(true),
        },
    };
    builder.build().map_err(|error| {
        ModelError::Settings(format!("there is no way to speak HTTP: {}", root_cause(&error)))
    })
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, ModelError> {
    let wrong = |why: String| ModelError::Settings(format!("ca_file {}: {why}", file.display()));
    let mut pem = Vec::new();
    let opened = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let read = opened.take(LARGEST_CA_FILE + 1).read_to_end(&mut pem);
    read.map_err(|error| wrong(error.to_string()))?;
    if pem.len() as u64 > LARGEST_CA_FILE {
        return Err(wrong(format!("it has more than {LARGEST_CA_FILE} bytes")));
    }
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(root_cause(&error)))?;
    match found.is_empty() {
        true => Err(wrong("there is no certificate in it".to_owned())),
        false => Ok(found),
    }
}

/// Whether an address is on this machine.
pub(in crate::provider) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// What is behind an error, which is what helps.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(behind) = cause.source() {
        cause = behind;
    }
    cause.to_string()
}
