//! The same over TLS.

use crate::scene::Scene;
use rustls::pki_types::ServerName;
use sandgate_server::http::tls_acceptor;
use std::fs;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// spec HTTP.13: With a certificate it speaks TLS and nothing else.
#[tokio::test]
async fn with_a_certificate_it_speaks_tls_and_nothing_else() {
    let files = tempfile::tempdir().unwrap();
    let (cert, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let scene = Scene::tls(tls_acceptor(&cert, &key).unwrap()).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let address = scene.approver.address;
    let ask = async |origin: &str| {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let (port, token) = (address.port(), &scene.approver.token);
        let request = format!(
            "GET /settings/me HTTP/1.1\r\nhost: localhost:{port}\r\nauthorization: Bearer {token}\r\n\
             origin: {origin}://localhost:{port}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("https").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("approver"), "{answer}");
    assert!(ask("http").await.starts_with("HTTP/1.1 403 "), "a page that was not sent by TLS");
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    fs::write(&key, "no key").unwrap();
    assert!(tls_acceptor(&cert, &key).is_err());
    assert!(tls_acceptor(&files.path().join("missing"), &key).is_err());
}
