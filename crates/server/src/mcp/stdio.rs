//! One client at the other end of two pipes.

use super::connection::Connection;
use super::handler::Server;
use super::{MAX_MESSAGE_BYTES, McpOptions};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use rmcp::service::serve_server_with_ct;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Serves the client that started this program, until it closes its end or `stop` ends it. Nobody else may
/// write to standard output meanwhile.
///
/// # Errors
/// When the client begins with something that is no beginning.
pub async fn serve_stdio(options: McpOptions, stop: CancellationToken) -> io::Result<()> {
    let (read, write) = stdio_pipes();
    serve(options, read, write, stop).await
}

/// Serves a client. When it goes, everything that it started ends.
///
/// # Errors
/// When the client begins with something that is no beginning.
pub async fn serve(
    options: McpOptions,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let over = stop.child_token();
    let read = Ending { read, over: over.clone() };
    let connection = Arc::new(Connection::new(options, &over));
    let transport = AsyncRwTransport::<RoleServer, _, _>::new_server(read, write)
        .with_max_line_length(MAX_MESSAGE_BYTES);
    let server = Server { connection: Arc::clone(&connection), shared: None };
    match serve_server_with_ct(server, transport, over).await {
        Ok(running) => {
            let _ = running.waiting().await;
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => return Err(io::Error::other(error)),
    }
    connection.ended().await;
    Ok(())
}

/// Ends everything as soon as the client has closed its end: whoever is gone waits for nothing.
struct Ending<R> {
    read: R,
    over: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Ending<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.read).poll_read(context, buffer);
        let is_over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.over.cancel();
        }
        read
    }
}
