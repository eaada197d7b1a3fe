//! The listener: bound with std, announced with one line.

use crate::config::Config;
use crate::signals::StopSignal;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};

/// Ports that are tried when the default one is in use, itself included.
const PORTS_TRIED: u16 = 10;

/// A listener that can be served, with the stop signals already caught.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) stop: StopSignal,
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error(
        "port {port} is in use\nhint: stop what listens there, or pass --port 0 for a free one"
    )]
    InUse { port: u16 },
    #[error("ports {first} to {last} are in use\nhint: pass --port 0 for a free one")]
    AllInUse { first: u16, last: u16 },
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(
        "state directory {path} cannot be used: it is not a directory\nhint: remove it, or pass --state-dir"
    )]
    State { path: String },
    #[error("cannot catch stop signals: {0}")]
    Signals(io::Error),
}

/// Checks the state directory without opening anything in it, and binds.
pub(crate) fn bind(config: &Config) -> Result<Bound, BindError> {
    if std::fs::symlink_metadata(&config.state_dir).is_ok_and(|found| !found.is_dir()) {
        return Err(BindError::State {
            path: config.state_dir.display().to_string(),
        });
    }
    let (listener, address) = listen(config)?;
    listener
        .set_nonblocking(true)
        .map_err(|source| BindError::Listen { address, source })?;
    let stop = StopSignal::register().map_err(BindError::Signals)?;
    Ok(Bound {
        listener,
        address,
        stop,
    })
}

fn listen(config: &Config) -> Result<(TcpListener, SocketAddr), BindError> {
    let first = config.address.port();
    let last = if config.port_walks {
        first.saturating_add(PORTS_TRIED - 1)
    } else {
        first
    };
    for port in first..=last {
        let address = SocketAddr::new(config.address.ip(), port);
        match TcpListener::bind(address) {
            Ok(listener) => {
                let address = listener
                    .local_addr()
                    .map_err(|source| BindError::Listen { address, source })?;
                return Ok((listener, address));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if port < last {
                    crate::log::info(&format!("port {port} is in use, trying {}", port + 1));
                }
            }
            Err(source) => return Err(BindError::Listen { address, source }),
        }
    }
    Err(if first == last {
        BindError::InUse { port: first }
    } else {
        BindError::AllInUse { first, last }
    })
}

/// Says on stdout, in one write, where the daemon listens. A closed stdout is no
/// reason to stop: who started the daemon may not care.
pub(crate) fn announce(config: &Config, bound: &Bound) {
    let line = format!(
        "coldpathd listening on http://{} (workspace={})\n",
        bound.address,
        config.workspace.display()
    );
    let _ = io::stdout().write_all(line.as_bytes());
}
