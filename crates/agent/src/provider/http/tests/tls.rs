//! Providers behind TLS: who is believed, and by what.

use super::server::{Server, stream};
use super::{answer, ask, outcome, own};
use crate::provider::{ModelError, StopReason};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server that an authority of its own stands for, and the certificate of that as PEM.
async fn server() -> (Server, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);

    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    (Server::start_tls(vec![stream(&answer("responses"))], tls).await, authority.pem())
}

/// spec MODEL.18: A server is believed if an authority stands for it that the system or `ca_file` knows,
/// and else it gets nothing.
#[tokio::test]
async fn a_server_needs_an_authority_that_is_known() {
    let (server, pem) = server().await;
    let (retried, end) = outcome(ask(&own(&server, "responses", "")).await);
    let Err(ModelError::Settings(told)) = end else { panic!("{end:?}") };
    assert!(told.contains("certificate") && told.contains("ca_file"), "{told}");
    assert!(retried.is_empty() && server.received().is_empty());

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, pem).unwrap();
    let lines = format!("ca_file = \"{}\"", file.display());
    let (retried, end) = outcome(ask(&own(&server, "responses", &lines)).await);
    assert_eq!((retried, end), (vec![], Ok(StopReason::Done)));
    assert!(server.received()[0].head.contains("authorization: bearer sk-very-secret-1"));

    for (text, why) in
        [("", "there is no certificate in it"), ("-----BEGIN CERTIFICATE-----\nx", "")]
    {
        std::fs::write(&file, text).unwrap();
        let (_, end) = outcome(ask(&own(&server, "responses", &lines)).await);
        let Err(ModelError::Settings(told)) = end else { panic!("{end:?}") };
        assert!(told.starts_with("ca_file ") && told.contains(why), "{told}");
    }
}
