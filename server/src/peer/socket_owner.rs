//! The owner of the client's end of a TCP connection within this machine.
//!
//! Both ends are sockets of this machine, so the kernel knows the user of each. `sock_diag(7)`
//! looks up one connection in about 10 us. It may be missing in a sandbox or an old kernel.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::LazyLock,
};

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP, TCP_ESTABLISHED},
    inet::{ExtensionFlags, InetRequest, SocketId, StateFlags},
};
use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_SOCK_DIAG};

const MAX_RESPONSE_BYTES: usize = 4096;

/// The cookie that matches any instance of a connection (`INET_DIAG_NOCOOKIE`).
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// Whether the kernel has found a test connection of this process. A real connection has to be
/// looked up, because the response "not found" can also mean that `sock_diag` is not available for
/// TCP.
static IS_AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
    let loopback = [
        (Ipv4Addr::LOCALHOST, 0).into(),
        (Ipv6Addr::LOCALHOST, 0).into(),
    ];
    loopback
        .into_iter()
        .any(|address: SocketAddr| finds_test_connection(address).unwrap_or(false))
});

fn finds_test_connection(address: SocketAddr) -> std::io::Result<bool> {
    let listener = TcpListener::bind(address)?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (accepted, _) = listener.accept()?;
    Ok(find_uid_by_sock_diag(client.local_addr()?, accepted.local_addr()?).is_some())
}

/// Returns `true` if the kernel supports queries of single connections.
pub(super) fn is_available() -> bool {
    *IS_AVAILABLE
}

/// Returns the user who owns the client's end of a connection, or `None` if the kernel does not
/// report one, for example because that end is closed.
pub(super) fn find_uid_by_sock_diag(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    let (client, server) = (to_canonical(client), to_canonical(server));
    let exchange = || -> std::io::Result<Vec<u8>> {
        let socket = Socket::new(NETLINK_SOCK_DIAG)?;
        // The kernel's response is already available when `send` returns.
        socket.set_non_blocking(true)?;
        socket.connect(&NetlinkAddress::new(0, 0))?;
        socket.send(&build_request(client, server), 0)?;
        let mut answer = Vec::with_capacity(MAX_RESPONSE_BYTES);
        socket.recv(&mut answer, 0)?;
        Ok(answer)
    };
    let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&exchange().ok()?).ok()?;
    let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) = answer.payload else {
        return None;
    };
    let header = found.header;
    // A closed end has no inode and is listed as root's.
    (header.state == TCP_ESTABLISHED && header.inode != 0).then_some(header.uid)
}

/// Converts an IPv4-mapped IPv6 address to IPv4, because the socket at the other end is an IPv4
/// socket.
pub(super) fn to_canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns the query for the client's socket. From that socket's point of view, the client is the
/// source.
fn build_request(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        thread,
        time::{Duration, Instant},
    };

    use rustix::process::geteuid;

    use super::{super::tcp_table, *};

    #[test]
    fn connection_of_test_belongs_to_current_user() {
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
                tcp_table::find_uid_in_tables(to_canonical(client), to_canonical(server)),
                Some(geteuid().as_raw()),
                "{connect}"
            );
            drop(stream);
            // A process started by another test may have inherited the socket, and keeps it until
            // it executes its program.
            let end = Instant::now() + Duration::from_secs(20);
            while find_uid_by_sock_diag(client, server).is_some() && Instant::now() < end {
                thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(find_uid_by_sock_diag(client, server), None, "closed, it is nobody's");
        }
    }
}
