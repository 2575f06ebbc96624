//! The servers that live as long as the soak, so that what they lose little by little shows.

use super::http_client::Http;
use super::in_process::InProcess;
use super::mcp_client::Mcp;
use super::program::{LIMIT, Talking};
use super::world::{Namespaces, World};
use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The process in the daemon that keeps it from ending.
const ANCHOR: &str = "anchor";

/// One of each kind.
pub(super) struct Steady {
    pub(super) http: Http,
    serve: Mutex<Talking>,
    mcp: Mutex<Mcp>,
    daemon: u32,
    library: Mutex<InProcess>,
    followers: Mutex<Vec<TcpStream>>,
    to_kill: Mutex<Vec<String>>,
}

impl Steady {
    pub(super) fn start(world: &World) -> anyhow::Result<Self> {
        // It forks, which is best done before there are threads.
        let library = Mutex::new(InProcess::start(world)?);
        let (serve, http) = serve(world)?;
        let mcp = Mutex::new(Mcp::start(world)?);
        // It works elsewhere, so that nothing of its cage is in the workspace.
        let place = world.path("anchor");
        let place = place.to_str().context("the directory is no text")?;
        let words = ["session", "start", "--id", ANCHOR, "--cd", place, "--", "cat", "-"];
        let anchored = world.run(&words)?;
        anyhow::ensure!(anchored.code == Some(0), "no daemon: {}", anchored.stderr);
        let daemon = daemon_of(world, "home")?;
        let (serve, followers, to_kill) = (Mutex::new(serve), Mutex::default(), Mutex::default());
        Ok(Self { http, serve, mcp, daemon, library, followers, to_kill })
    }

    /// Whose descriptors, threads and memory are watched.
    pub(super) fn hosts(&self) -> [(&'static str, u32); 4] {
        let serve = lock(&self.serve).pid();
        let mcp = lock(&self.mcp).talking.pid();
        [("soak", std::process::id()), ("serve", serve), ("mcp", mcp), ("daemon", self.daemon)]
    }

    pub(super) fn mcp(&self) -> MutexGuard<'_, Mcp> {
        lock(&self.mcp)
    }

    pub(super) fn library(&self) -> MutexGuard<'_, InProcess> {
        lock(&self.library)
    }

    /// Connections that nobody reads from.
    pub(super) fn idle_followers(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        lock(&self.followers)
    }

    /// A process of the daemon's that may be there or not, and is to go when the round is over.
    pub(super) fn to_kill(&self, id: String) {
        lock(&self.to_kill).push(id);
    }

    /// Lets everybody go who was to stay until the end of the round.
    pub(super) fn settle(&self, world: &World) -> anyhow::Result<()> {
        self.idle_followers().clear();
        for id in lock(&self.to_kill).drain(..) {
            world.run(&["session", "kill", &id])?;
        }
        Ok(())
    }

    /// Which of them has ended although nobody wanted it to.
    pub(super) fn lost(&self) -> anyhow::Result<Option<&'static str>> {
        if lock(&self.serve).has_ended()? {
            return Ok(Some("serve"));
        }
        if lock(&self.mcp).talking.has_ended()? {
            return Ok(Some("mcp"));
        }
        let daemon = std::path::PathBuf::from(format!("/proc/{}/stat", self.daemon));
        Ok((!daemon.exists()).then_some("daemon"))
    }

    /// Ends them all, as a person would.
    pub(super) fn end(self, world: &World) -> anyhow::Result<()> {
        let serve = self.serve.into_inner().unwrap_or_else(PoisonError::into_inner);
        serve.signal(Signal::TERM)?;
        let ended = serve.end().context("serve")?;
        anyhow::ensure!(ended.code == Some(0), "serve ended badly: {ended:?}");
        let mcp = self.mcp.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ended = mcp.talking.end().context("mcp")?;
        anyhow::ensure!(ended.code == Some(0), "mcp ended badly: {ended:?}");
        let ended = world.run(&["session", "stop"])?;
        anyhow::ensure!(ended.code == Some(0), "session stop ended badly: {ended:?}");
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a server on a port that was free a moment ago, and signs in.
pub(super) fn serve(world: &World) -> anyhow::Result<(Talking, Http)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("127.0.0.1:{port}");
    let words = ["serve", "--listen", &address];
    let mut running = Talking::start(&mut world.command(Namespaces::Possible, &words))?;
    let file = world.path(&format!("home/.codex/serve/127.0.0.1_{port}.json"));
    let token = eventually("a token file", || {
        anyhow::ensure!(!running.has_ended()?, "the server ended at its start");
        let told: Option<Value> =
            std::fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok());
        // One that was killed on the same port has left its own.
        let told = told.filter(|told| told["pid"] == running.pid());
        Ok(told.and_then(|told| told["requester_token"].as_str().map(str::to_owned)))
    })?;
    let code = eventually("the console", || {
        let ended = world.run(&["console"])?;
        let told = String::from_utf8(ended.stdout)?;
        let place = format!("http://{address}/#code=");
        Ok(told.lines().find_map(|line| line.strip_prefix(&place)).map(str::to_owned))
    })?;
    let mut http = Http { address, requester: token, approver: String::new(), conversation: None };
    let body = json!({ "code": code }).to_string();
    let signed = http.json("", ("POST", "/console/sign-in"), &body)?;
    http.approver = signed["token"].as_str().context("no token to approve by")?.to_owned();
    Ok((running, http))
}

/// The number of a daemon's process, as it says hello.
pub(super) fn daemon_of(world: &World, home: &str) -> anyhow::Result<u32> {
    use std::io::BufRead as _;
    let socket = world.path(&format!("{home}/.codex/daemon/socket"));
    let stream = std::os::unix::net::UnixStream::connect(socket).context("no daemon answers")?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut line = String::new();
    std::io::BufReader::new(stream).read_line(&mut line)?;
    let hello: Value = serde_json::from_str(&line)?;
    Ok(u32::try_from(hello["pid"].as_u64().context("it does not say who it is")?)?)
}

/// Waits until something is there.
pub(super) fn eventually<T>(
    what: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        anyhow::ensure!(Instant::now() < until, "there is no {what} after {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
