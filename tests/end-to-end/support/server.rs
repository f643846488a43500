//! A running `gpumon serve`, which ends with the test.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use super::{FakeNvml, HttpResponse, Stream, send_get};

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// The log stays open so that the server can write to it.
    log: Option<BufReader<ChildStderr>>,
}

impl Server {
    /// Starts a server for the fake GPUs on a free port.
    pub(crate) fn start_with_fake(fake: &FakeNvml, arguments: &[&str]) -> Self {
        Self::start(
            fake.gpumon_command(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat()),
        )
    }

    /// Starts a server for simulated GPUs, with the scenario of `fake`.
    pub(crate) fn start_simulated(fake: &FakeNvml, arguments: &[&str]) -> Self {
        let source = format!("sim:{}", fake.path("scenario.toml").display());
        Self::start_with_fake(fake, &[&["--source", &source], arguments].concat())
    }

    /// Starts a server and reads its port from its first message.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        messages.read_line(&mut first).unwrap();
        let port = first
            .trim_end()
            .trim_end_matches('/')
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("{first:?} contains no port"));
        Self {
            child,
            port,
            log: Some(messages),
        }
    }

    /// Returns the next line of the log.
    pub(crate) fn next_message(&mut self) -> String {
        let mut message = String::new();
        self.log
            .as_mut()
            .expect("the log must still be read")
            .read_line(&mut message)
            .unwrap();
        message
    }

    /// Ends the server, and returns the unread part of its log.
    pub(crate) fn end_and_read_log(mut self) -> String {
        self.terminate();
        let mut log = String::new();
        self.log
            .take()
            .expect("the log must still be read")
            .read_to_string(&mut log)
            .unwrap();
        log
    }

    /// Closes the read end of the server's standard error.
    pub(crate) fn close_log(&mut self) {
        self.log = None;
    }

    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        send_get(self.port, path, &[])
    }

    pub(crate) async fn open_stream(&self) -> Stream {
        Stream::connect(self.port, "").await
    }

    /// Returns the PID of the collector, the server's only child.
    pub(crate) fn collector_pid(&self) -> Option<u32> {
        let id = self.child.id();
        let children =
            fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let of_other_threads = fs::read_dir(format!("/proc/{id}/task"))
            .into_iter()
            .flatten()
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
            .collect::<String>();
        format!("{children} {of_other_threads}")
            .split_ascii_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// Sends SIGTERM. Returns the exit status and the time until the exit.
    pub(crate) fn terminate(&mut self) -> (ExitStatus, Duration) {
        send_signal("-TERM", self.child.id());
        let begun = Instant::now();
        (self.child.wait().unwrap(), begun.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process. `name` is an option of `kill`, such as `-INT`.
pub(crate) fn send_signal(name: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill {name} {pid}");
}
