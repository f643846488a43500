//! Connections to nodes. They use TLS unless the node is this machine.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gpumon_fleet::credentials::NO_AUTHORITIES;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, pki_types::ServerName},
};
use tokio_util::either::Either;

use super::{problem::NodeProblem, url::NodeTarget};

pub(super) type NodeSocket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// The time limit for resolving a name, connecting, and the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a node. Connections without TLS are only made to this machine.
///
/// # Errors
/// Returns the reason why there is no connection.
pub(super) async fn connect_to_node(
    target: &NodeTarget,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<NodeSocket, NodeProblem> {
    let name = target.to_string();
    let opened = timeout(CONNECT_TIMEOUT, open_socket(target, tls)).await;
    opened.unwrap_or_else(|_| {
        Err(NodeProblem::Unreachable(
            name,
            format!("no response within {} s", CONNECT_TIMEOUT.as_secs()),
        ))
    })
}

async fn open_socket(
    target: &NodeTarget,
    tls: Option<&Arc<ClientConfig>>,
) -> Result<NodeSocket, NodeProblem> {
    let name = target.to_string();
    let failed = |error: io::Error| NodeProblem::from_connection_error(&name, &error);
    let found = lookup_host((target.host.as_str(), target.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(failed)?.collect();
    let connect = async || -> io::Result<TcpStream> {
        let socket = TcpStream::connect(addresses.as_slice()).await?;
        let _ = socket.set_nodelay(true);
        Ok(socket)
    };
    if !target.is_tls {
        if !addresses
            .iter()
            .all(|address| belongs_to_this_machine(address.ip()))
        {
            return Err(NodeProblem::NotEncrypted(name));
        }
        return connect().await.map(Either::Left).map_err(failed);
    }
    let config = tls.ok_or_else(|| {
        let cure = "or specify the CA certificate of the nodes with --node-ca-file FILE";
        NodeProblem::Settings(format!("{NO_AUTHORITIES}, {cure}"))
    })?;
    let server = ServerName::try_from(target.host.clone())
        .map_err(|_| NodeProblem::NotAName(target.host.clone()))?;
    let socket = connect().await.map_err(failed)?;
    let encrypted = TlsConnector::from(Arc::clone(config))
        .connect(server, socket)
        .await
        .map_err(failed)?;
    Ok(Either::Right(Box::new(encrypted)))
}

fn belongs_to_this_machine(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
