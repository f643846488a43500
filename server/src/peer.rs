//! The peers of connections: their users, and whether they may change anything.
//!
//! The kernel reports the user of a Unix socket's peer (`SO_PEERCRED`). A TCP connection from this
//! machine is looked up with `sock_diag(7)` or, if the kernel does not support that, in
//! `/proc/net/tcp`.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::LazyLock,
};

use axum::{
    Extension,
    extract::Request,
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use gpumon_probe::bounded;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP, TCP_ESTABLISHED},
    inet::{ExtensionFlags, InetRequest, SocketId, StateFlags},
};
use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_SOCK_DIAG};
use rustix::process::geteuid;
use tokio::{sync::Semaphore, task::spawn_blocking};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A client on a TCP port.
    Port {
        ip: IpAddr,
        /// The user, if the connection is from this machine and the kernel reports the socket's
        /// owner.
        uid: Option<u32>,
    },
    /// A program of this user on this machine; `None` if the kernel does not report the user.
    Socket { uid: Option<u32> },
}

/// The key under which a client's connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    User(u32),
    /// The address of a client whose user is unknown.
    Address(IpAddr),
    /// A program on this machine whose user is unknown.
    Unknown,
}

impl Peer {
    /// Returns the peer of a TCP connection. The accept loop calls this function, so it must be
    /// fast: it reads no files, and queries the kernel only about connections from this machine. A
    /// query takes 10 us.
    pub(crate) fn from_tcp(client: SocketAddr, server: Option<SocketAddr>) -> Self {
        let local =
            server.filter(|server| is_local_connection(client, *server) && supports_sock_diag());
        Self::Port {
            ip: client.ip().to_canonical(),
            uid: local.and_then(|server| find_uid_by_sock_diag(client, server)),
        }
    }

    /// Returns the peer with its user. If the kernel does not support queries of single
    /// connections, the user is looked up in the kernel's table of connections. This function is
    /// called only for admitted connections that have sent data.
    pub(crate) async fn with_user_from_table(
        self,
        client: Option<SocketAddr>,
        server: Option<SocketAddr>,
    ) -> Self {
        let (Self::Port { ip, uid: None }, Some(client), Some(server)) = (self, client, server)
        else {
            return self;
        };
        if !is_local_connection(client, server) || supports_sock_diag() {
            return self;
        }
        let _turn = TABLE_SEARCHES.acquire().await;
        let search = move || find_uid_in_tables(to_canonical(client), to_canonical(server));
        Self::Port {
            ip,
            uid: spawn_blocking(search).await.ok().flatten(),
        }
    }

    /// Returns the user, if the kernel reports it.
    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::Port { uid, .. } | Self::Socket { uid } => uid,
        }
    }

    /// Returns the peer behind the reverse proxy that connected to the port. Its address is the one
    /// that the proxy reported, if any. The user is unknown.
    pub(crate) fn with_forwarded_address(self, forwarded: Option<IpAddr>) -> Self {
        match self {
            Self::Port { ip, .. } => Self::Port {
                ip: forwarded.unwrap_or(ip),
                uid: None,
            },
            Self::Socket { .. } => self,
        }
    }

    /// Returns the peer as seen by another machine. Users other than root and the
    /// server's own user are removed, because they have no meaning there.
    pub(crate) fn without_local_user(self) -> Self {
        match self {
            _ if self.belongs_to_server_user() => self,
            Self::Port { ip, .. } => Self::Port { ip, uid: None },
            Self::Socket { .. } => Self::Socket { uid: None },
        }
    }

    pub(crate) fn key(self) -> PeerKey {
        match self {
            Self::Port { uid: Some(uid), .. } | Self::Socket { uid: Some(uid) } => {
                PeerKey::User(uid)
            }
            Self::Port { ip, uid: None } => PeerKey::Address(ip),
            Self::Socket { uid: None } => PeerKey::Unknown,
        }
    }

    pub(crate) fn uses_port(self) -> bool {
        matches!(self, Self::Port { .. })
    }

    pub(crate) fn belongs_to_server_user(self) -> bool {
        self.uid().is_some_and(is_server_user_or_root)
    }

    fn is_user_or_root(self, own: u32) -> bool {
        self.uid().is_some_and(|uid| uid == own || uid == 0)
    }
}

/// Determines in advance whether the kernel can be queried for a connection's owner, so that the
/// first connection is not delayed.
pub(crate) fn detect_lookup_method() {
    supports_sock_diag();
}

/// Returns `true` for a connection between two programs on this machine. The client then has a
/// loopback address or the server's address.
fn is_local_connection(client: SocketAddr, server: SocketAddr) -> bool {
    let (client, server) = (client.ip().to_canonical(), server.ip().to_canonical());
    client.is_loopback() || client == server
}

pub(crate) fn is_server_user_or_root(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0
}

pub(crate) async fn require_change_permission(
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match check_change_permission(peer, geteuid().as_raw()) {
        Ok(()) => next.run(request).await,
        Err(message) => (StatusCode::FORBIDDEN, message).into_response(),
    }
}

fn check_change_permission(peer: Peer, own: u32) -> Result<(), &'static str> {
    match peer {
        Peer::Socket { .. } if peer.is_user_or_root(own) => Ok(()),
        Peer::Socket { .. } => {
            Err("only the user who started this server, or root, may send this request\n")
        }
        Peer::Port { .. } => Err(
            "this request is accepted only over the server's local socket, not over its port: use \
             `gpumon pause`, `gpumon resume` or `gpumon alerts silence` on the machine itself\n",
        ),
    }
}

// Queries of single connections with `sock_diag(7)`. Both ends are sockets of this machine, so the
// kernel knows the user of each, and looks up one connection in about 10 us. The interface may be
// missing in a sandbox or an old kernel.

const MAX_SOCK_DIAG_BYTES: usize = 4096;

/// The cookie that matches any instance of a connection (`INET_DIAG_NOCOOKIE`).
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// Whether the kernel supports `sock_diag` for TCP. This is tested with a real connection of this
/// process, because the response "not found" can also mean that the interface is not available.
static SUPPORTS_SOCK_DIAG: LazyLock<bool> = LazyLock::new(|| {
    let loopback = [
        (Ipv4Addr::LOCALHOST, 0).into(),
        (Ipv6Addr::LOCALHOST, 0).into(),
    ];
    loopback
        .into_iter()
        .any(|address: SocketAddr| can_find_test_owner(address).unwrap_or(false))
});

fn can_find_test_owner(address: SocketAddr) -> io::Result<bool> {
    let listener = TcpListener::bind(address)?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (accepted, _) = listener.accept()?;
    Ok(find_uid_by_sock_diag(client.local_addr()?, accepted.local_addr()?).is_some())
}

/// Returns `true` if the kernel supports queries of single connections.
fn supports_sock_diag() -> bool {
    *SUPPORTS_SOCK_DIAG
}

/// Returns the user who owns the client's end of a connection, or `None` if the kernel does not
/// report one, for example because that end is closed.
fn find_uid_by_sock_diag(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let (client, server) = (to_canonical(client), to_canonical(server));
    let exchange = || -> io::Result<Vec<u8>> {
        let socket = Socket::new(NETLINK_SOCK_DIAG)?;
        // The kernel's response is already available when `send` returns, so receiving it does not
        // require waiting.
        socket.set_non_blocking(true)?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        socket.send(&build_sock_diag_request(client, server), 0)?;
        let mut answer = Vec::with_capacity(MAX_SOCK_DIAG_BYTES);
        socket.recv(&mut answer, 0)?;
        Ok(answer)
    };
    let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&exchange().ok()?).ok()?;
    let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) = answer.payload else {
        return None;
    };
    let header = found.header;
    // A closed end has no inode and is listed as root's, so its user is unknown.
    (header.state == TCP_ESTABLISHED && header.inode != 0).then_some(header.uid)
}

/// Converts an IPv4-mapped IPv6 address to IPv4, because the socket at the other end is an IPv4
/// socket.
fn to_canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the query for the client's socket. From that socket's point of view, the client is the
/// source.
fn build_sock_diag_request(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let question = SockDiagMessage::InetRequest(InetRequest {
        family: if client.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id: SocketId {
            source_port: client.port(),
            destination_port: server.port(),
            source_address: client.ip(),
            destination_address: server.ip(),
            interface_id: 0,
            cookie: NO_COOKIE,
        },
    });
    let mut message = NetlinkMessage::new(header, question.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

// Searches in the kernel's tables of TCP connections (`/proc/net/tcp`, `/proc/net/tcp6`).

/// The maximum size of a table in bytes, which is enough for about 50,000 connections.
const MAX_TABLE_BYTES: usize = 8 << 20;

/// Limits the number of simultaneous searches in the table of connections, which can be megabytes
/// long.
static TABLE_SEARCHES: Semaphore = Semaphore::const_new(1);

/// Returns the user who owns the client's end of a connection. Both addresses must be in canonical
/// form.
fn find_uid_in_tables(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    if client.is_ipv4()
        && let Some(uid) = find_uid_in_table(
            &bounded::read_text("/proc/net/tcp", MAX_TABLE_BYTES).ok()?,
            client,
            server,
        )
    {
        return Some(uid);
    }
    // The IPv6 table also lists the IPv4 connections of IPv6 sockets.
    find_uid_in_table(
        &bounded::read_text("/proc/net/tcp6", MAX_TABLE_BYTES).ok()?,
        to_ipv4_mapped(client),
        to_ipv4_mapped(server),
    )
}

fn to_ipv4_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Returns the user of a connection in the table. A closed end has no owner: it is listed as
/// root's, but without an inode.
fn find_uid_in_table(table: &str, client: SocketAddr, server: SocketAddr) -> Option<u32> {
    const ESTABLISHED: &str = "01";
    let (client, server) = (format_address(client), format_address(server));
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, uid, _, inode, ..] = fields[..] else {
            return None;
        };
        let is_it = local == client && remote == server && state == ESTABLISHED && inode != "0";
        is_it.then(|| uid.parse().ok())?
    })
}

/// Formats an address as in the table: words of four bytes in native byte order.
fn format_address(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words: Vec<_> = octets
        .as_chunks()
        .0
        .iter()
        .map(|word| format!("{:08X}", u32::from_ne_bytes(*word)))
        .collect();
    format!("{}:{:04X}", words.concat(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_connection_is_not_local() {
        let is_local = |client: &str, server: &str| {
            is_local_connection(client.parse().unwrap(), server.parse().unwrap())
        };
        assert!(
            is_local("127.0.0.1:50000", "127.0.0.1:9123") && is_local("[::1]:50000", "[::1]:9123")
        );
        assert!(
            is_local("10.0.0.7:50000", "10.0.0.7:9123")
                && is_local("[::ffff:10.0.0.7]:1", "10.0.0.7:9123")
        );
        assert!(
            !is_local("10.0.0.8:50000", "10.0.0.7:9123")
                && !is_local("[fd00::8]:50000", "[fd00::7]:9123")
        );
    }

    #[test]
    fn only_server_user_and_root_may_change_state() {
        let from = |uid| check_change_permission(Peer::Socket { uid }, 1000).is_ok();
        assert!(from(Some(1000)) && from(Some(0)));
        assert!(!from(Some(1001)) && !from(None));
        let port = Peer::Port {
            ip: [127, 0, 0, 1].into(),
            uid: Some(1000),
        };
        assert!(
            check_change_permission(port, 1000)
                .unwrap_err()
                .contains("gpumon pause")
        );
    }
}

#[cfg(test)]
mod tcp_table_tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn client_user_is_found_in_socket_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:23A3 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 20 4 0 10 -1
   1: 0100007F:C350 0100007F:23A3 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 0 10 -1
   2: 0100007F:C351 0100007F:23A3 06 00000000:00000000 03:00000F2E 00000000     0        0 0 3 0
   3: 0100007F:C352 0100007F:23A3 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 0 10 -1";
        let server = "127.0.0.1:9123".parse().unwrap();
        let of = |port: u16| {
            find_uid_in_table(
                table,
                SocketAddr::new("127.0.0.1".parse().unwrap(), port),
                server,
            )
        };
        assert_eq!(of(50_000), Some(1000));
        assert_eq!(of(50_001), None, "it waits for its end");
        assert_eq!(of(50_002), None, "its program has closed it");
        assert_eq!(of(50_003), None);
    }
}

#[cfg(test)]
mod sock_diag_tests {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn local_connection_belongs_to_user_of_client_process() {
        for (listen, connect) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "::1"),
            // The first pair is an IPv4 client of an IPv6 listener, the second an IPv6 client of an
            // IPv4 listener.
            ("[::]:0", "127.0.0.1"),
            ("127.0.0.1:0", "::ffff:127.0.0.1"),
        ] {
            let Ok(listener) = TcpListener::bind(listen) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let stream = TcpStream::connect((connect, port)).unwrap();
            let (accepted, client) = listener.accept().unwrap();
            let server = accepted.local_addr().unwrap();
            assert_eq!(
                find_uid_by_sock_diag(client, server),
                Some(geteuid().as_raw()),
                "{connect}"
            );
            assert_eq!(
                find_uid_in_tables(to_canonical(client), to_canonical(server)),
                Some(geteuid().as_raw()),
                "{connect}"
            );
            drop(stream);
            // Another test may be starting a process that has inherited the socket. Until that
            // process executes its program, the socket stays open.
            let end = Instant::now() + Duration::from_secs(20);
            while find_uid_by_sock_diag(client, server).is_some() && Instant::now() < end {
                thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(
                find_uid_by_sock_diag(client, server),
                None,
                "closed, it is nobody's"
            );
        }
    }
}
