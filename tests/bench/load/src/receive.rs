//! Reading from sockets with few system calls, with arrival times.

use std::{
    io::IoSliceMut,
    os::fd::{AsFd, AsRawFd},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg},
        time::TimeSpec,
    },
};

/// The arrival time of the last byte that was read, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The kernel's own time stamp, if the socket supports time stamps.
    pub(crate) kernel: Option<Duration>,
    /// The time at which this process read the data.
    pub(crate) read: Duration,
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Bytes(usize, Arrival),
    /// No data is available yet.
    Nothing,
    End,
}

pub(crate) struct Receiver {
    scratch: Vec<u8>,
    control: Vec<u8>,
    /// The flag that makes the kernel discard received bytes of a TCP connection without copying
    /// them.
    discard: MsgFlags,
    pub(crate) bytes: u64,
}

impl Receiver {
    pub(crate) fn new(is_tcp: bool) -> Self {
        Self {
            scratch: vec![0; 1 << 20],
            control: cmsg_space!(TimeSpec),
            discard: if is_tcp {
                MsgFlags::MSG_TRUNC
            } else {
                MsgFlags::empty()
            },
            bytes: 0,
        }
    }

    pub(crate) fn read(&mut self, socket: impl AsFd, into: &mut [u8]) -> Received {
        let received = receive(socket, into, &mut self.control, MsgFlags::empty());
        self.add_received_bytes(received)
    }

    /// Reads and discards at most `count` bytes.
    pub(crate) fn skip(&mut self, socket: impl AsFd, count: usize) -> Received {
        let count = count.min(self.scratch.len());
        let received = receive(
            socket,
            &mut self.scratch[..count],
            &mut self.control,
            self.discard,
        );
        self.add_received_bytes(received)
    }

    fn add_received_bytes(&mut self, received: Received) -> Received {
        if let Received::Bytes(count, _) = received {
            self.bytes += count as u64;
        }
        received
    }
}

fn receive(socket: impl AsFd, into: &mut [u8], control: &mut Vec<u8>, flags: MsgFlags) -> Received {
    control.clear();
    control.resize(control.capacity(), 0);
    let mut slices = [IoSliceMut::new(into)];
    match recvmsg::<()>(
        socket.as_fd().as_raw_fd(),
        &mut slices,
        Some(control),
        flags | MsgFlags::MSG_DONTWAIT,
    ) {
        Ok(message) if message.bytes == 0 => Received::End,
        Ok(message) => {
            let stamps = message
                .cmsgs()
                .into_iter()
                .flatten()
                .find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
                    _ => None,
                });
            Received::Bytes(
                message.bytes,
                Arrival {
                    kernel: stamps,
                    read: time_since_epoch(),
                },
            )
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Received::Nothing,
        Err(_) => Received::End,
    }
}

pub(crate) fn time_since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
