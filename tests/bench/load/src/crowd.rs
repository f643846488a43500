//! Many clients of the stream, read by a single thread.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use nix::{
    errno::Errno,
    sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
};

use crate::{
    client::{Client, ClientEvent},
    frame::FrameKind,
    receive::{Arrival, Receiver},
    server::Server,
};

/// The maximum number of sockets that are read between two checks of the clock.
const MAX_EVENTS: usize = 256;

/// The time to wait for events while connections are being opened.
const CONNECT_POLL: Duration = Duration::from_millis(1);

pub(crate) struct Crowd {
    server: Server,
    epoll: Epoll,
    receiver: Receiver,
    clients: Vec<Option<Client>>,
    pub(crate) counts: ClientCounts,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientCounts {
    /// Clients that have received a hello frame.
    pub(crate) welcomed: usize,
    /// Clients that did not receive a hello frame, but another answer or none.
    pub(crate) refused: usize,
    /// Clients whose connection ended after the hello frame.
    pub(crate) ended: usize,
}

impl Crowd {
    pub(crate) fn new(server: Server) -> Result<Self> {
        let receiver = Receiver::new(server.is_tcp());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self {
            server,
            epoll,
            receiver,
            clients: Vec::new(),
            counts: ClientCounts::default(),
        })
    }

    /// Returns the number of bytes that all clients have received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.receiver.bytes
    }

    /// Connects `count` clients at a rate of `per_second`. Waits until each client has received a
    /// hello frame or has failed.
    pub(crate) fn connect_clients(
        &mut self,
        count: usize,
        per_second: u32,
        patience: Duration,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut welcomed = vec![false; count];
        while begun.elapsed() < patience && self.counts.welcomed + self.counts.refused < count {
            let due = (begun.elapsed().as_secs_f64() * f64::from(per_second)) as usize + 1;
            while self.clients.len() < due.min(count) && self.start_connection()? {}
            self.process_events(CONNECT_POLL, |counts, number, said| match said {
                ClientEvent::Frame(..) if !welcomed[number] => {
                    welcomed[number] = true;
                    counts.welcomed += 1;
                }
                ClientEvent::Frame(..) => {}
                ClientEvent::Ended if welcomed[number] => counts.ended += 1,
                ClientEvent::Refused | ClientEvent::Ended => counts.refused += 1,
            })?;
        }
        // Clients without a hello frame count as refused and are dropped.
        for (client, _) in self
            .clients
            .iter_mut()
            .zip(&welcomed)
            .filter(|(_, welcomed)| !**welcomed)
        {
            self.counts.refused += usize::from(client.take().is_some());
        }
        Ok(())
    }

    /// Starts one more connection. Returns `false` if the server has too many pending connections.
    fn start_connection(&mut self) -> Result<bool> {
        let socket = match self.server.start_connection() {
            Ok(socket) => socket,
            Err(Errno::EAGAIN) => return Ok(false),
            Err(error) if self.clients.is_empty() => {
                return Err(error).context("cannot connect to the server");
            }
            Err(Errno::EMFILE) => {
                return Err(Errno::EMFILE)
                    .context("this process may not open more files; raise ulimit -Hn");
            }
            Err(_) => {
                self.clients.push(None);
                self.counts.refused += 1;
                return Ok(true);
            }
        };
        let number = self.clients.len() as u64;
        let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT;
        self.epoll.add(&socket, EpollEvent::new(both, number))?;
        self.clients.push(Some(Client::new(socket)));
        Ok(true)
    }

    pub(crate) fn read_frames_until(
        &mut self,
        end: Instant,
        mut on: impl FnMut(FrameKind, Arrival),
    ) -> Result<()> {
        while let Some(left) = end
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            self.process_events(left, |counts, _, said| match said {
                ClientEvent::Frame(kind, arrival) => on(kind, arrival),
                ClientEvent::Refused | ClientEvent::Ended => counts.ended += 1,
            })?;
        }
        Ok(())
    }

    fn process_events(
        &mut self,
        patience: Duration,
        mut on: impl FnMut(&mut ClientCounts, usize, ClientEvent),
    ) -> Result<()> {
        let mut events = [EpollEvent::empty(); MAX_EVENTS];
        let timeout = EpollTimeout::try_from(patience).unwrap_or(EpollTimeout::MAX);
        let ready = match self.epoll.wait(&mut events, timeout) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if ready == 0 && patience < CONNECT_POLL {
            thread::yield_now();
        }
        for event in &events[..ready] {
            let number = event.data() as usize;
            let Some(client) = &mut self.clients[number] else {
                continue;
            };
            if event.events().contains(EpollFlags::EPOLLOUT) {
                client.send_handshake(&self.server);
                self.epoll.modify(
                    client.socket(),
                    &mut EpollEvent::new(EpollFlags::EPOLLIN, number as u64),
                )?;
            }
            if event
                .events()
                .intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR)
            {
                let mut is_over = false;
                client.read_frames(&mut self.receiver, |said| {
                    is_over |= matches!(said, ClientEvent::Refused | ClientEvent::Ended);
                    on(&mut self.counts, number, said);
                });
                if is_over {
                    self.clients[number] = None;
                }
            }
        }
        Ok(())
    }
}
