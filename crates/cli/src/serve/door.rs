//! Where it is listened, and by what name that is known.

use sandgate_server::http::{Listener, tls_acceptor};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listen {
    /// An address and a port.
    Address(SocketAddr),
    /// A socket in the file system.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// What TLS is spoken with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            #[cfg(unix)]
            Some(path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(_) => Err("unix: takes the path of a socket, where there are such".to_owned()),
            None => text
                .parse()
                .map(Self::Address)
                .map_err(|_| "an address and a port are needed, such as 127.0.0.1:4747".to_owned()),
        }
    }
}

/// What is listened on.
pub(super) struct Door {
    listener: Listener,
    address: String,
    name: String,
    hosts: Vec<String>,
    /// The socket, which goes when this does.
    socket: Option<SocketPath>,
}

impl Door {
    /// Begins to listen.
    pub(super) async fn open(listen: &Listen, tls: Option<&TlsFiles>) -> io::Result<Self> {
        match listen {
            Listen::Address(address) => {
                let acceptor = match tls {
                    Some(files) => Some(tls_acceptor(&files.cert, &files.key)?),
                    None => None,
                };
                let bound = tokio::net::TcpListener::bind(address).await;
                let listener = bound.map_err(|error| {
                    let hint = match error.kind() {
                        io::ErrorKind::AddrInUse => "; --listen 127.0.0.1:0 picks a free port",
                        _ => "",
                    };
                    io::Error::new(
                        error.kind(),
                        format!("cannot listen on {address}: {error}{hint}"),
                    )
                })?;
                let address = listener.local_addr()?;
                let hosts = match address.ip() {
                    ip if ip.is_unspecified() => Vec::new(),
                    std::net::IpAddr::V4(ip) => vec![ip.to_string()],
                    std::net::IpAddr::V6(ip) => vec![format!("[{ip}]")],
                };
                let scheme = if tls.is_some() { "https" } else { "http" };
                let listener = match acceptor {
                    Some(acceptor) => Listener::Tls(listener, acceptor),
                    None => Listener::Tcp(listener),
                };
                let (name, address) = (address.port().to_string(), format!("{scheme}://{address}"));
                Ok(Self { listener, address, name, hosts, socket: None })
            }
            #[cfg(unix)]
            Listen::Unix(path) => {
                let path = std::path::absolute(path)?;
                let listener = unix::listen(&path).map_err(|error| {
                    let path = path.display();
                    io::Error::new(error.kind(), format!("cannot listen on {path}: {error}"))
                })?;
                let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                Ok(Self {
                    listener: Listener::Unix(listener),
                    address: format!("unix:{}", path.display()),
                    name: name.chars().map(plain).collect(),
                    hosts: Vec::new(),
                    socket: Some(SocketPath(path)),
                })
            }
        }
    }

    /// The address, as clients write it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// What it is known by among the servers of this person: its port, or the name of its socket.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The hosts that requests may name, beside those of loopback.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.listener, Listener::Tls(..))
    }

    pub(super) fn split(self) -> (Listener, Option<SocketPath>) {
        (self.listener, self.socket)
    }
}

/// The name of a socket, which is removed when this goes.
pub(super) struct SocketPath(PathBuf);

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::fs::FileTypeExt as _;
    use std::path::Path;
    use tokio::net::UnixListener;

    /// Listens on a socket that only its owner can connect to, in the place of one that nobody listens on.
    pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
        if let Ok(found) = path.symlink_metadata() {
            if !found.file_type().is_socket() {
                return Err(io::Error::other("there is something else of that name"));
            }
            match std::os::unix::net::UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path)?;
                }
                _ => return Err(io::Error::other("another program listens there")),
            }
        }
        let others = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        rustix::process::umask(others);
        listener
    }
}
