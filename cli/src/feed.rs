//! A live feed of records from a running server or from the driver.

use std::{
    io::{self, Read},
    process::{ChildStdin, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
    thread,
    time::Duration,
};

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Record, read_type},
    vendor::SourceChoice,
};
use gpumon_recording::{RecordKind, parse_kind_and_time};
use gpumon_server::frame::{CollectorState, CollectorStatus, Hello};
use serde::Deserialize;

use crate::{
    background::spawn_detached_thread,
    child_processes,
    exit::{Failure, Result},
    local_server::{Frames, ServerArgs},
    options::SourceArgs,
};

/// An input for the receiver of a feed.
pub(crate) enum Input {
    /// A record and its serialized form.
    Record {
        text: String,
        kind: RecordKind,
        at_ms: u64,
    },
    /// The number of samples that the receiver has missed.
    Missed(u64),
    /// A message for the user.
    Remark(String),
    /// The reason why the server has no readings at the moment.
    NoReadings(String),
    ServerEnded,
    Failed(Failure),
    /// A request to stop receiving.
    Stop,
}

/// A source of live records. It sends the records to the receiver's channel, which may also carry
/// other inputs.
pub(crate) struct Feed<T> {
    source: SourceArgs,
    server: ServerArgs,
    traces: bool,
    inputs: SyncSender<T>,
    way: Origin,
    /// Whether the server's GPUs are simulated.
    is_simulated: bool,
}

/// The current source of the records.
enum Origin {
    /// A server. Setting the flag ends the connection to it.
    Server(Arc<AtomicBool>),
    /// A collector started by this process. It ends when its standard input is dropped.
    Collector(ChildStdin),
    Nowhere,
}

impl<T: From<Input> + Send + 'static> Feed<T> {
    pub(crate) fn start(
        source: &SourceArgs,
        server: &ServerArgs,
        interval: Duration,
        traces: bool,
        inputs: SyncSender<T>,
    ) -> Result<Self> {
        let (source, server) = (source.clone(), server.clone());
        let mut feed = Self {
            source,
            server,
            traces,
            inputs,
            way: Origin::Nowhere,
            is_simulated: false,
        };
        let asks_server = !feed.source.no_daemon && feed.source.source == SourceChoice::Auto;
        match feed.server.connect() {
            Ok(server) if asks_server => {
                let at = server.path.display().to_string();
                let frames = server.start_stream(interval, traces).map_err(|error| {
                    anyhow!(
                        "the server at {at} does not respond: {error}; restart the server, or use \
                         --no-daemon"
                    )
                })?;
                feed.follow_server(frames, &at)?;
            }
            Err(error) if asks_server && feed.server.is_typed() => {
                return Err(anyhow::Error::from(error).into());
            }
            _ => feed.start_collector(interval)?,
        }
        Ok(feed)
    }

    /// Starts a feed on a new thread, so that the caller does not wait for a driver or a server.
    /// The feed includes traces, which are values that the driver itself has recorded. When the
    /// feed has started or failed to start, `started` creates the input that reports this to the
    /// receiver.
    pub(crate) fn start_in_background(
        source: &SourceArgs,
        server: &ServerArgs,
        interval: Duration,
        inputs: SyncSender<T>,
        started: fn(Result<Self>) -> T,
    ) -> io::Result<()> {
        let (source, server) = (source.clone(), server.clone());
        spawn_detached_thread("records", move || {
            let feed = Self::start(&source, &server, interval, true, inputs.clone());
            // Sending fails only if the receiver no longer exists.
            let _ = inputs.send(started(feed));
        })
    }

    /// Switches from the server to reading the driver directly.
    pub(crate) fn continue_without_server(&mut self, interval: Duration) -> Result {
        if self.is_simulated {
            return Err(anyhow!(
                "the server has ended; its GPUs were simulated and cannot be read without the \
                 server"
            )
            .into());
        }
        let remark = "the server has ended: reading the driver directly".to_owned();
        let _ = self.inputs.try_send(Input::Remark(remark).into());
        self.start_collector(interval)
    }

    /// Changes the sampling interval. If samples come from a server, a new connection replaces the
    /// old one, and some samples may arrive on both. If the server does not respond, the interval
    /// does not change.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        let ended = match &mut self.way {
            Origin::Server(ended) => Arc::clone(ended),
            Origin::Collector(requests) => {
                // If the collector has ended, the thread that reads its records reports the
                // failure.
                let _ = child_processes::set_collector_interval(requests, interval);
                return;
            }
            Origin::Nowhere => return,
        };
        let Ok(server) = self.server.connect() else {
            return;
        };
        let at = server.path.display().to_string();
        if let Ok(frames) = server.start_stream(interval, self.traces)
            && self.follow_server(frames, &at).is_ok()
        {
            ended.store(true, Ordering::Relaxed);
        }
    }

    /// Forwards the inventory and details in the server's first frame, and then each record in the
    /// stream.
    fn follow_server(&mut self, mut frames: Frames, at: &str) -> Result {
        let bad = |error: &dyn std::fmt::Display| {
            anyhow!(
                "the server at {at} is not a gpumon server: {error}; choose another socket with \
                 --control"
            )
        };
        let hello = frames.next_text().map_err(|error| bad(&error))?;
        let Hello {
            inventory,
            details,
            collector,
            ..
        } = serde_json::from_str(&hello).map_err(|error| bad(&error))?;
        if inventory
            .as_ref()
            .is_some_and(|inventory| inventory.playback.is_some())
        {
            return Err(anyhow!(
                "the server at {at} replays a recording: choose another server with --control, or \
                 use --no-daemon"
            )
            .into());
        }
        self.is_simulated = inventory
            .as_ref()
            .is_some_and(|inventory| inventory.platform.is_simulated);
        let known = inventory
            .map(Record::Inventory)
            .into_iter()
            .chain(details.into_iter().map(Record::Details));
        let known: Vec<Record> = known.collect();
        let inputs = self.inputs.clone();
        let ended = Arc::new(AtomicBool::new(false));
        self.way = Origin::Server(Arc::clone(&ended));
        spawn_detached_thread("records", move || {
            let passed_on = known
                .iter()
                .try_for_each(|record| send_record(&inputs, record));
            let _ = passed_on
                .and_then(|()| send_collector_problem(&inputs, &collector))
                .and_then(|()| forward_records(&mut frames, &inputs, &ended));
            if !ended.load(Ordering::Relaxed) {
                // Sending fails only if the receiver no longer exists.
                let _ = send(&inputs, Input::ServerEnded);
            }
        })?;
        Ok(())
    }

    /// Starts a collector and forwards its records.
    fn start_collector(&mut self, interval: Duration) -> Result {
        let mut command = child_processes::build_collector_command(&self.source, interval)?;
        let mut child = child_processes::start_program(command.stderr(Stdio::piped()))
            .context("cannot start `gpumon collect`")?;
        let (requests, records, said) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.way = requests.map_or(Origin::Nowhere, Origin::Collector);
        let (traces, inputs) = (self.traces, self.inputs.clone());
        let said = thread::Builder::new()
            .name("said".to_owned())
            .spawn(move || read_last_line(said))?;
        spawn_detached_thread("records", move || {
            for line in child_processes::read_lines(records) {
                let is_wanted = traces || read_type(&line).is_ok_and(|kind| kind != "trace");
                if is_wanted && send_text(&inputs, line).is_err() {
                    return;
                }
            }
            let code = child
                .wait()
                .ok()
                .and_then(|status| status.code())
                .map_or(1, |code| code as u8);
            let said = said.join().unwrap_or_default();
            let why = if said.is_empty() {
                "the collector has ended".to_owned()
            } else {
                said
            };
            let _ = send(
                &inputs,
                Input::Failed(Failure::with_code(anyhow!(why), code)),
            );
        })
        .map_err(Failure::from)
    }
}

/// Returns the last line of the collector's standard error, without the prefix `gpumon: `.
fn read_last_line(said: Option<impl Read>) -> String {
    let last = child_processes::read_lines(said)
        .filter(|line| !line.trim().is_empty())
        .last()
        .unwrap_or_default();
    last.strip_prefix("gpumon: ").unwrap_or(&last).to_owned()
}

struct ReceiverGone;

fn send<T: From<Input>>(inputs: &SyncSender<T>, input: Input) -> Result<(), ReceiverGone> {
    inputs.send(input.into()).map_err(|_| ReceiverGone)
}

fn send_record<T: From<Input>>(
    inputs: &SyncSender<T>,
    record: &Record,
) -> Result<(), ReceiverGone> {
    let text = serde_json::to_string(record).expect(
        "records have string keys and only serializable \
         values",
    );
    send_text(inputs, text)
}

fn send_text<T: From<Input>>(inputs: &SyncSender<T>, text: String) -> Result<(), ReceiverGone> {
    match parse_kind_and_time(&text) {
        Ok((kind, at_ms)) => send(inputs, Input::Record { text, kind, at_ms }),
        Err(_) => Ok(()),
    }
}

#[derive(Deserialize)]
struct LaggedFrame {
    missed: u64,
}

/// Forwards frames that contain records, unchanged, until the server ends or `ended` is set.
fn forward_records<T: From<Input>>(
    frames: &mut Frames,
    inputs: &SyncSender<T>,
    ended: &AtomicBool,
) -> Result<(), ReceiverGone> {
    while let Ok(text) = frames.next_text() {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        match read_type(&text).as_deref() {
            Ok("inventory" | "sample" | "details" | "event" | "trace") => send_text(inputs, text)?,
            Ok("lagged") => {
                if let Ok(LaggedFrame { missed }) = serde_json::from_str(&text) {
                    send(inputs, Input::Missed(missed))?;
                }
            }
            Ok("collector") => {
                if let Ok(status) = serde_json::from_str(&text) {
                    send_collector_problem(inputs, &status)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends the reason why the server has no readings, if it has none.
fn send_collector_problem<T: From<Input>>(
    inputs: &SyncSender<T>,
    status: &CollectorStatus,
) -> Result<(), ReceiverGone> {
    match (status.state, &status.message) {
        (CollectorState::Running | CollectorState::Starting, _) | (_, None) => Ok(()),
        (_, Some(message)) => send(
            inputs,
            Input::NoReadings(format!("no readings at the moment: {message}")),
        ),
    }
}
