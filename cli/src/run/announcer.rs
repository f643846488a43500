//! Passes reports on to a running server of this machine, so that its pages show the run. It is a favor: whatever
//! goes wrong with it, nothing else waits or fails.

use std::{
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    sync::mpsc::{self, Receiver, SyncSender, TrySendError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    local::{Server, ServerArgs},
    options::SourceArgs,
};

/// Lines that may wait for a server that is slow; beyond that it gets nothing more.
const WAITING: usize = 1000;
/// How long a server may take for one line.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the end waits for the last line to be on its way.
const LAST: Duration = Duration::from_millis(300);

pub(super) struct Announcer(Option<(SyncSender<String>, JoinHandle<()>)>);

impl Announcer {
    /// To the server that reads the GPUs which are meant, where there is one.
    pub(super) fn new(source: &SourceArgs) -> Self {
        if source.is_read_here() {
            return Self(None);
        }
        let (sender, lines) = mpsc::sync_channel(WAITING);
        let thread = thread::spawn(move || {
            if let Ok(server) = ServerArgs::from_environment().connect() {
                // A server that does not want to know hangs up.
                let _ = stream(server, &lines);
            }
        });
        Self(Some((sender, thread)))
    }

    pub(super) fn pass_on(&mut self, line: &str) {
        let Some((sender, _)) = &self.0 else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            sender.try_send(format!("{line}\n"))
        {
            self.0 = None;
        }
    }

    pub(super) fn end(&mut self) {
        let Some((sender, thread)) = self.0.take() else {
            return;
        };
        drop(sender);
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < LAST {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// One request, whose body is the lines as they come.
fn stream(server: Server, lines: &Receiver<String>) -> io::Result<()> {
    let mut stream = server.stream;
    stream.set_write_timeout(Some(PATIENCE))?;
    let id = RandomState::new().hash_one(std::process::id());
    write!(
        stream,
        "POST /api/v1/runs/announced HTTP/1.1\r\nHost: localhost\r\nX-Gpumon-Run: {id:016x}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )?;
    for line in lines {
        write!(stream, "{:x}\r\n{line}\r\n", line.len())?;
    }
    write!(stream, "0\r\n\r\n")
}
