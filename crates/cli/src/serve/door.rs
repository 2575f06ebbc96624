//! Where it is listened, and by what name that is known.

use sandgate_server::http::{Listener, tls_acceptor};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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
    /// Where it listens, if that is not what clients write.
    everywhere: Option<SocketAddr>,
    address: String,
    name: String,
    hosts: Vec<String>,
    /// The socket, which goes when this does.
    socket: Option<SocketPath>,
}

impl Door {
    /// Begins to listen. The first of the names by which it is reached is the one that clients are told,
    /// where the address itself is none.
    pub(super) async fn open(
        listen: &Listen,
        tls: Option<&TlsFiles>,
        names: &[String],
    ) -> io::Result<Self> {
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
                let bound = listener.local_addr()?;
                let (everywhere, hosts) = match bound.ip() {
                    ip if ip.is_unspecified() => (Some(bound), Vec::new()),
                    ip => (None, vec![host(ip)]),
                };
                let scheme = if tls.is_some() { "https" } else { "http" };
                let listener = match acceptor {
                    Some(acceptor) => Listener::Tls(listener, acceptor),
                    None => Listener::Tcp(listener),
                };
                let address =
                    format!("{scheme}://{}:{}", reached_as(bound.ip(), names), bound.port());
                let name = file_name(&format!("{}:{}", bound.ip(), bound.port()));
                Ok(Self { listener, everywhere, address, name, hosts, socket: None })
            }
            #[cfg(unix)]
            Listen::Unix(path) => {
                let path = std::path::absolute(path)?;
                let listener = unix::listen(&path).map_err(|error| {
                    let path = path.display();
                    io::Error::new(error.kind(), format!("cannot listen on {path}: {error}"))
                })?;
                Ok(Self {
                    listener: Listener::Unix(listener),
                    everywhere: None,
                    address: format!("unix:{}", path.display()),
                    name: file_name(&path.to_string_lossy()),
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

    /// What it is known by among the servers of this person: the whole address, as the name of a file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens, as the person is told.
    pub(super) fn place(&self) -> String {
        match self.everywhere {
            Some(bound) => format!("{} (on all addresses: {bound})", self.address),
            None => self.address.clone(),
        }
    }

    /// Whether a browser can open it.
    pub(super) fn is_for_browsers(&self) -> bool {
        self.socket.is_none()
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

fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The host that clients name. "All addresses" is none, and requests that name it are refused.
fn reached_as(ip: IpAddr, names: &[String]) -> String {
    match (ip, names.first()) {
        (ip, _) if !ip.is_unspecified() => host(ip),
        (_, Some(name)) => name.clone(),
        (IpAddr::V4(_), None) => host(Ipv4Addr::LOCALHOST.into()),
        (IpAddr::V6(_), None) => host(Ipv6Addr::LOCALHOST.into()),
    }
}

/// An address as the name of a file. Two addresses never have the same one.
fn file_name(address: &str) -> String {
    let mut name = String::new();
    for byte in address.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => name.push(byte.into()),
            b':' => name.push('_'),
            b'/' => name.push('+'),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
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

#[cfg(test)]
mod tests {
    use super::*;

    /// spec HTTP.33: Whoever is told where it listens is told an address whose host is not refused.
    #[test]
    fn all_addresses_are_not_told_as_one() {
        let names = ["gate.example".to_owned()];
        for (ip, names, expected) in [
            ("0.0.0.0", &[] as &[String], "127.0.0.1"),
            ("::", &[], "[::1]"),
            ("0.0.0.0", &names, "gate.example"),
            ("192.0.2.1", &names, "192.0.2.1"),
            ("::1", &[], "[::1]"),
        ] {
            assert_eq!(reached_as(ip.parse().unwrap(), names), expected, "{ip}");
        }
    }

    /// spec HTTP.34: The token file is named after the whole address, so that servers that run at the same
    /// time do not replace each other's.
    #[test]
    fn addresses_have_names_of_their_own() {
        assert_eq!(file_name("127.0.0.1:4747"), "127.0.0.1_4747");
        let all = [
            "127.0.0.1:4747",
            "::1:4747",
            "/a/gate.sock",
            "/b/gate.sock",
            "/a/gate_sock",
            "/a:gate.sock",
            "/a+gate.sock",
            "/a%2Bgate.sock",
        ];
        let names: std::collections::BTreeSet<String> = all.map(file_name).into();
        assert_eq!(names.len(), all.len(), "{names:?}");
        assert!(names.iter().all(|name| !name.contains('/')));
    }
}
