//! The kernel's tables of TCP connections (`/proc/net/tcp`, `/proc/net/tcp6`).

use std::net::{IpAddr, SocketAddr};

use gpumon_probe::bounded;

/// The maximum size of a table in bytes, which is enough for about 50,000 connections.
const MAX_TABLE_BYTES: usize = 8 << 20;

/// Returns the user who owns the client's end of a connection. Both addresses must be in canonical
/// form.
pub(super) fn find_uid_in_tables(client: SocketAddr, server: SocketAddr) -> Option<u32> {
    if client.is_ipv4()
        && let Some(uid) = find_uid_in_table(
            &bounded::read_text("/proc/net/tcp", MAX_TABLE_BYTES).ok()?,
            client,
            server,
        )
    {
        return Some(uid);
    }
    // IPv4 connections of IPv6 sockets are listed in the IPv6 table.
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
    let words = octets
        .as_chunks()
        .0
        .iter()
        .map(|word| u32::from_ne_bytes(*word));
    let words = words
        .map(|word| format!("{word:08X}"))
        .collect::<Vec<_>>()
        .concat();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn client_end_of_connection_is_found_in_table() {
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
