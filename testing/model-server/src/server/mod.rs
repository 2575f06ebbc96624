//! The server itself: a thread of its own, so that it works beside any runtime and beside none.

mod answer;
mod connection;

use crate::record::{Record, Request, Violation};
use crate::script::Script;
use answer::Service;
use connection::{Clock, Timed};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A model server that does what a script says. It ends when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    service: Arc<Service>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server on a free port of this machine, which nobody outside of it can reach.
    ///
    /// # Panics
    /// When there is none, which is the end of any test.
    pub fn start(script: Script) -> Self {
        Self::listen(0, script).expect("a free port of 127.0.0.1")
    }

    /// Starts a server on a port of this machine.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no thread.
    pub fn listen(port: u16, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let service = Arc::new(Service::new(script));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let of_thread = Arc::clone(&service);
        let thread =
            std::thread::Builder::new().name("model-server".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(listener, &of_thread) => {}
                        // A sender that is gone says the same as one that has sent.
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self { address, service, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it is: `http://127.0.0.1:PORT`. The paths of the formats, with their `/v1`, come behind.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that it was asked so far and could read.
    pub fn requests(&self) -> Vec<Request> {
        self.service.record().requests()
    }

    /// What was wrong with what it was asked so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.service.record().violations()
    }

    /// How many turns of the script nobody has asked for yet.
    pub fn turns_left(&self) -> usize {
        self.service.turns_left()
    }

    /// Waits, at most so long, until the requests are as they should be, and says whether they are.
    pub fn wait_until(&self, limit: Duration, reached: impl FnMut(&[Request]) -> bool) -> bool {
        self.record().wait_until(limit, reached)
    }

    /// Waits until the requests are as they should be, without holding up a runtime.
    pub async fn until(&self, reached: impl FnMut(&[Request]) -> bool) {
        self.record().until(reached).await;
    }

    fn record(&self) -> &Record {
        self.service.record()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What it panicked with has been printed, and a panic in here would end the program.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, service: &Arc<Service>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => panic!("the model server cannot listen: {error}"),
    };
    loop {
        // What goes wrong here is the client's: it went away before it was let in.
        let Ok((stream, _)) = listener.accept().await else { continue };
        // What is cut into pieces is to go out in pieces.
        let _ = stream.set_nodelay(true);
        let clock = Arc::new(Clock::default());
        let service = Arc::clone(service);
        let stream = TokioIo::new(Timed::new(stream, Arc::clone(&clock), Arc::clone(&service)));
        tokio::spawn(async move {
            let answer = service_fn(|request| service.answer(request, &clock));
            // An answer that is cut off on purpose ends in an error here, and so does a client that
            // goes away; the record says which.
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await;
        });
    }
}
