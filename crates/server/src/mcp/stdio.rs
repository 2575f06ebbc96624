//! One client at the other end of two pipes.

use super::connection::Connection;
use super::handler::Server;
use super::{MAX_MESSAGE_BYTES, McpOptions};
use rmcp::model::JsonRpcMessage;
use rmcp::service::{
    RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio_pipes};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
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
    let transport = Opening { transport, opened: false };
    let server = Server {
        connection: Arc::clone(&connection),
        shared: None,
        places: None,
        permit: OnceLock::new(),
    };
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

/// Passes over what comes before the first request: to begin with something else ends no conversation that
/// has not begun.
struct Opening<T> {
    transport: T,
    opened: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Opening<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.transport.receive().await?;
            self.opened |= matches!(message, JsonRpcMessage::Request(_));
            if self.opened {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
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
