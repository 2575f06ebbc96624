//! The command line of `sandgate serve`: first parsed, then made sense of.

use super::door::{Listen, TlsFiles};
use crate::agent::CliModel;
use crate::arguments::usage_error;
use crate::session::CliSession;
use clap::error::ErrorKind;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// Where it listens if nobody says otherwise.
const USUAL: &str = "127.0.0.1:4747";

const HELP: &str = "\
Two tokens are made at each start. The requester's, for an agent, is in a file that only you can read,
whose name is printed. You approve in the console, whose address is printed if this is a terminal and
opens it once; sandgate console prints another. Whoever has the agent's token can never approve.

On other addresses than those of this machine it listens only with --tls-cert and --tls-key, or with
--insecure, which sends tokens in the clear.

Exit codes: 0 when it was ended; 125 if sandgate itself failed; 2 if this command line makes no sense.";

/// What may follow `sandgate serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliServe {
    /// Where to listen: an address and a port (0 picks a free one), or unix:PATH [default:
    /// server.listen of your settings, or 127.0.0.1:4747]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,

    /// Another name by which this server is reached
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Let requesters work in this directory too, and below it
    #[arg(long, value_name = "DIR")]
    also: Vec<PathBuf>,

    /// The certificates to speak TLS with, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The key that goes with them, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listen on an address that others can reach without TLS
    #[arg(long, conflicts_with = "tls_cert")]
    insecure: bool,

    #[command(flatten)]
    session: CliSession,

    #[command(flatten)]
    model: CliModel,
}

/// What `sandgate serve` is to do.
#[derive(Debug)]
pub(crate) struct ServeArguments {
    /// Nothing if the settings say it.
    listen: Option<Listen>,
    /// Names without ports.
    pub(super) hosts: Vec<String>,
    pub(super) also: Vec<PathBuf>,
    pub(super) exposure: Exposure,
    pub(super) session: CliSession,
    pub(super) model: CliModel,
}

/// What protects an address that others can reach.
#[derive(Debug)]
pub(super) struct Exposure {
    pub(super) tls: Option<TlsFiles>,
    insecure: bool,
}

impl Exposure {
    /// Whether it may listen there, or why not.
    fn allows(&self, listen: &Listen) -> Result<(), String> {
        match listen {
            Listen::Address(address)
                if !address.ip().is_loopback() && self.tls.is_none() && !self.insecure =>
            {
                Err(format!(
                    "others can reach {address}: add --tls-cert and --tls-key, or --insecure if the network \
                     is yours alone"
                ))
            }
            #[cfg(unix)]
            Listen::Unix(_) if self.tls.is_some() => {
                Err("TLS is not spoken on a unix socket".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl ServeArguments {
    /// Where to listen: as the command line says, or the settings, or as usual.
    ///
    /// # Errors
    /// When what the settings say is no address, or one that others can reach and nothing protects.
    pub(super) fn listen(&self, set: Option<&str>) -> Result<Listen, String> {
        match (&self.listen, set) {
            (Some(listen), _) => Ok(listen.clone()),
            (None, set) => {
                let listen: Listen = set.unwrap_or(USUAL).parse()?;
                self.exposure.allows(&listen)?;
                Ok(listen)
            }
        }
    }
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliServe) -> Result<ServeArguments, clap::Error> {
    let wrong = |message: String| usage_error("serve", ErrorKind::ArgumentConflict, message);
    cli.session.check().map_err(wrong)?;
    if cli.session.decide.is_some() {
        return Err(wrong(
            "questions are answered in the console here, not by --decide".to_owned(),
        ));
    }
    let tls = cli.tls_cert.zip(cli.tls_key).map(|(cert, key)| TlsFiles { cert, key });
    let exposure = Exposure { tls, insecure: cli.insecure };
    cli.listen.iter().try_for_each(|listen| exposure.allows(listen)).map_err(wrong)?;
    for host in &cli.allow_host {
        if !is_host(host) {
            return Err(wrong(format!(
                "--allow-host takes a name without a port, and not {host:?}"
            )));
        }
    }
    Ok(ServeArguments {
        listen: cli.listen,
        hosts: cli.allow_host,
        also: cli.also,
        exposure,
        session: cli.session,
        model: cli.model,
    })
}

/// Whether requests can name it as their host: a name, or an address, which has brackets if it has colons.
fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    }
    !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

#[cfg(test)]
mod tests {
    use crate::arguments::Verb;
    use crate::arguments::tests::understood;

    /// spec HTTP.1: It listens on 127.0.0.1 unless it is told otherwise, and on an address that others can
    /// reach only with TLS or `--insecure`.
    #[test]
    fn an_address_that_others_can_reach_takes_tls_or_insecure() {
        for fine in [
            &["serve"] as &[&str],
            &["serve", "--listen", "[::1]:0"],
            &["serve", "--listen", "0.0.0.0:1", "--insecure"],
            &["serve", "--allow-host", "gate.example", "--allow-host", "[2001:db8::1]"],
            &["serve", "--listen", "0.0.0.0:1", "--tls-cert", "c", "--tls-key", "k"],
        ] {
            assert!(matches!(understood(fine), Ok(Verb::Serve(_))), "{fine:?}");
        }
        for wrong in [
            &["serve", "--listen", "0.0.0.0:1"] as &[&str],
            &["serve", "--listen", "[::]:1"],
            &["serve", "--listen", "192.0.2.1:1", "--tls-cert", "c"],
            &["serve", "--listen", "somewhere"],
            &["serve", "--tls-cert", "c", "--tls-key", "k", "--insecure"],
            &["serve", "--allow-host", "http://x/"],
            &["serve", "--allow-host", "gate:8080"],
            &["serve", "--allow-host", "::1"],
            &["serve", "--allow-host", "[::1]:8080"],
            &["serve", "--allow-host", ""],
            &["serve", "--decide", "approve"],
        ] {
            assert!(understood(wrong).is_err(), "{wrong:?}");
        }
    }
}
