//! The `half-open` command: connections that never send a whole request.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    time::Instant,
};

use anyhow::{Context, Result};
use clap::Args;
use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        socket::{MsgFlags, send},
    },
};
use serde_json::json;

use crate::{
    ServerAddress,
    receive::{Received, Receiver},
    spread::Times,
    usage::{cpu_seconds, round_hundredths},
};

const MAX_SOCKETS: usize = 256;

#[derive(Debug, Args)]
pub(crate) struct HalfOpenArgs {
    #[command(flatten)]
    server: ServerAddress,

    /// The number of connections to open
    #[arg(long, default_value_t = 1100)]
    connections: usize,

    /// The number of connections to open per second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 2000)]
    rate: u32,

    /// Maximum seconds to wait for the server to close the connections
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,

    /// Send the first half of a request instead of nothing
    #[arg(long)]
    partial: bool,
}

struct HalfOpen {
    socket: OwnedFd,
    opened: Instant,
}

pub(crate) fn run_half_open(args: &HalfOpenArgs) -> Result<()> {
    let server = args.server.server();
    let half = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nUser-Ag",
        server.host()
    );
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut receiver = Receiver::new(server.is_tcp());
    let mut connections: Vec<Option<HalfOpen>> = Vec::new();
    let (mut closed, mut refused, mut said) = (Times::default(), 0, false);
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < args.seconds && closed.len() + refused < args.connections
    {
        let due = (begun.elapsed().as_secs_f64() * f64::from(args.rate)) as usize + 1;
        while connections.len() < due.min(args.connections) {
            let opened = Instant::now();
            let socket = match server.start_connection() {
                Ok(socket) => socket,
                Err(Errno::EAGAIN) => break,
                Err(error) if connections.is_empty() => {
                    return Err(error).context("cannot connect to the server");
                }
                Err(Errno::EMFILE) => {
                    return Err(Errno::EMFILE)
                        .context("this process may not open more files; raise ulimit -Hn");
                }
                Err(_) => {
                    refused += 1;
                    connections.push(None);
                    continue;
                }
            };
            // A connection can send half a request as soon as it is established.
            let interest = if args.partial {
                EpollFlags::EPOLLOUT
            } else {
                EpollFlags::EPOLLIN
            };
            epoll.add(&socket, EpollEvent::new(interest, connections.len() as u64))?;
            connections.push(Some(HalfOpen { socket, opened }));
        }
        if connections.len() == args.connections && !said {
            said = true;
            // The measuring script waits for this line before it continues.
            eprintln!("opened {}", connections.len() - refused);
        }
        let mut events = [EpollEvent::empty(); MAX_SOCKETS];
        let patience = if said { 50u8 } else { 1 };
        let ready = epoll
            .wait(&mut events, EpollTimeout::from(patience))
            .or_else(|error| match error {
                Errno::EINTR => Ok(0),
                error => Err(error),
            })?;
        for event in &events[..ready] {
            let number = event.data() as usize;
            let Some(connection) = &connections[number] else {
                continue;
            };
            if event.events() == EpollFlags::EPOLLOUT {
                let _ = send(
                    connection.socket.as_raw_fd(),
                    half.as_bytes(),
                    MsgFlags::MSG_NOSIGNAL,
                );
                let reading = &mut EpollEvent::new(EpollFlags::EPOLLIN, event.data());
                epoll.modify(&connection.socket, reading)?;
                continue;
            }
            // The server may send an error before it closes the connection.
            if receiver.skip(&connection.socket, 4096) == Received::End {
                closed.push(connection.opened.elapsed());
                connections[number] = None;
            }
        }
    }
    let line = json!({
        "opened": connections.len() - refused,
        "refused": refused,
        "closed": closed.len(),
        "still_open": connections.iter().flatten().count(),
        "bytes_received": receiver.bytes,
        "closed_after_ms": closed.into_spread(),
        "seconds": round_hundredths(begun.elapsed().as_secs_f64()),
        "own_cpu_s": round_hundredths(cpu_seconds()),
    });
    println!("{line}");
    drop(connections);
    Ok(())
}
