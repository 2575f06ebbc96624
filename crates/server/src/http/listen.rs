//! Connections: how many there may be, and how long they may take.
//!
//! HTTP/1.1 alone is spoken. A client that sends its head or its body slowly is let go, and so is one that
//! does not read what it is sent: whatever it costs, it costs for a while.

use super::crowd::Seat;
use super::server::{Limits, Server};
use axum::Router;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future as _;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;

/// How long the beginning of TLS may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The most that waits in memory for a client that reads slowly, and the longest head.
const BUFFER_BYTES: usize = 64 * 1024;

/// How long requests may take to end when the server does.
const FAREWELL: Duration = Duration::from_secs(5);

/// What is listened on.
pub enum Listener {
    /// An address.
    Tcp(TcpListener),
    /// An address, with TLS.
    Tls(TcpListener, TlsAcceptor),
    /// A socket in the file system.
    #[cfg(unix)]
    Unix(UnixListener),
}

/// What speaks TLS with these certificates and their key, each a PEM file.
///
/// # Errors
/// When they cannot be read, or do not fit together.
pub fn tls_acceptor(certificates: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        io::Error::other(format!("cannot use {}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificates, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(certificates, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until it is told to end, and then ends all that was begun.
pub async fn serve(listener: Listener, server: Arc<Server>, end: CancellationToken) {
    let router = super::router(&server);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = end.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => match server.crowd.sit() {
                    Some(seat) => {
                        let (router, limits, end) = (router.clone(), server.limits, end.clone());
                        connections.spawn(async move {
                            let leave = seat.leave.clone();
                            tokio::select! {
                                () = talk(stream, router, seat, limits, end) => {}
                                () = leave.cancelled() => {}
                            }
                        });
                    }
                    None => server.note("refused a connection: there are too many"),
                },
                Err(error) => {
                    // Most likely there are no file descriptors left, and one comes back soon.
                    server.note(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    drop(listener);
    // First what is done, so that those who wait for it are told.
    server.close().await;
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, ended).await;
}

enum Accepted {
    Tcp(tokio::net::TcpStream),
    Tls(Box<tokio_rustls::Accept<tokio::net::TcpStream>>),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An event is small, and somebody waits for it.
                let _ = stream.set_nodelay(true);
                Ok(Accepted::Tcp(stream))
            }
            Self::Tls(listener, acceptor) => {
                let (stream, _) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok(Accepted::Tls(Box::new(acceptor.accept(stream))))
            }
            #[cfg(unix)]
            Self::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}

async fn talk(
    stream: Accepted,
    router: Router,
    seat: Arc<Seat>,
    limits: Limits,
    end: CancellationToken,
) {
    match stream {
        Accepted::Tcp(stream) => talk_over(stream, router, seat, limits, end).await,
        Accepted::Tls(handshake) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, *handshake).await {
                talk_over(stream, router, seat, limits, end).await;
            }
        }
        #[cfg(unix)]
        Accepted::Unix(stream) => talk_over(stream, router, seat, limits, end).await,
    }
}

async fn talk_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    seat: Arc<Seat>,
    limits: Limits,
    end: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Arc::clone(&seat));
        router.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream, limits.reading)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// A stream whose other side must take what it is sent in a while.
struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Since when it takes nothing, if it does not.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, until: None }
    }

    /// What became of an attempt to send, if it is not too late.
    fn in_time<T>(
        &mut self,
        attempt: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.until = None;
            return attempt;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match until.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(attempt, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.in_time(attempt, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(attempt, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.in_time(attempt, cx)
    }
}
