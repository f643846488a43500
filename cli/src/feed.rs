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
    model::{Record, type_of},
    vendor::SourceChoice,
};
use gpumon_recording::{Kind, stamp};
use gpumon_server::frame::{CollectorState, CollectorStatus, Hello};
use serde::Deserialize;

use crate::{
    background::spawn,
    children, collector,
    exit::{Failure, Result},
    local::{Frames, ServerArgs},
    options::SourceArgs,
};

/// An input for the receiver of a feed.
pub(crate) enum Input {
    /// A record in its serialized form.
    Record {
        text: String,
        kind: Kind,
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
    /// A request to stop.
    Stop,
}

/// A source of live records. The records are sent on the receiver's own channel, among other
/// inputs.
pub(crate) struct Feed<T> {
    source: SourceArgs,
    server: ServerArgs,
    traces: bool,
    inputs: SyncSender<T>,
    way: Way,
    /// Whether the server's GPUs are simulated.
    is_simulated: bool,
}

/// The current origin of the records.
enum Way {
    /// A server, until the flag is set.
    Server(Arc<AtomicBool>),
    /// A collector that this process has started, which ends when its standard input is dropped.
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
            way: Way::Nowhere,
            is_simulated: false,
        };
        let asks_server = !feed.source.no_daemon && feed.source.source == SourceChoice::Auto;
        match feed.server.connect() {
            Ok(server) if asks_server => {
                let at = server.path.display().to_string();
                let frames = server.stream(interval, traces).map_err(|error| {
                    anyhow!("the server at {at} does not answer: {error}; restart it, or use --no-daemon")
                })?;
                feed.follow(frames, &at)?;
            }
            Err(error) if asks_server && feed.server.is_typed() => {
                return Err(anyhow::Error::from(error).into());
            }
            _ => feed.sample(interval)?,
        }
        Ok(feed)
    }

    /// Starts a feed with traces on a new thread, so that the caller does not wait for a driver or
    /// a server. `started` converts the outcome to an input.
    pub(crate) fn start_in_background(
        source: &SourceArgs,
        server: &ServerArgs,
        interval: Duration,
        inputs: SyncSender<T>,
        started: fn(Result<Self>) -> T,
    ) -> io::Result<()> {
        let (source, server) = (source.clone(), server.clone());
        spawn("records", move || {
            let feed = Self::start(&source, &server, interval, true, inputs.clone());
            // Sending fails only if the receiver has ended.
            let _ = inputs.send(started(feed));
        })
    }

    /// Switches from the server to reading the driver directly.
    pub(crate) fn continue_without_server(&mut self, interval: Duration) -> Result {
        if self.is_simulated {
            return Err(anyhow!("the server has ended, and its GPUs were simulated").into());
        }
        let remark = "the server has ended: reading the driver directly".to_owned();
        let _ = self.inputs.try_send(Input::Remark(remark).into());
        self.sample(interval)
    }

    /// Changes the sampling interval. For a moment, some samples may arrive twice. If the server
    /// does not respond, nothing changes.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        let ended = match &mut self.way {
            Way::Server(ended) => Arc::clone(ended),
            Way::Collector(requests) => {
                // If the collector has ended, the thread that reads its records reports that.
                let _ = collector::set_interval(requests, interval);
                return;
            }
            Way::Nowhere => return,
        };
        let Ok(server) = self.server.connect() else {
            return;
        };
        let at = server.path.display().to_string();
        if let Ok(frames) = server.stream(interval, self.traces)
            && self.follow(frames, &at).is_ok()
        {
            ended.store(true, Ordering::Relaxed);
        }
    }

    /// Passes on the inventory and details from the server's first frame, and then each record that
    /// it streams.
    fn follow(&mut self, mut frames: Frames, at: &str) -> Result {
        let bad = |error: &dyn std::fmt::Display| {
            anyhow!("the server at {at} is not gpumon's: {error}; name it with --control")
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
                "the server at {at} replays a recording: name another with --control, or use --no-daemon"
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
        self.way = Way::Server(Arc::clone(&ended));
        spawn("records", move || {
            let passed_on = known
                .iter()
                .try_for_each(|record| send_record(&inputs, record));
            let _ = passed_on
                .and_then(|()| remark_on(&inputs, &collector))
                .and_then(|()| pass_on(&mut frames, &inputs, &ended));
            if !ended.load(Ordering::Relaxed) {
                // Sending fails only if the receiver has ended.
                let _ = send(&inputs, Input::ServerEnded);
            }
        })?;
        Ok(())
    }

    /// Starts a collector and passes on its records.
    fn sample(&mut self, interval: Duration) -> Result {
        let mut command = collector::command(&self.source, interval)?;
        let mut child = children::start(command.stderr(Stdio::piped()))
            .context("cannot start a gpumon collect")?;
        let (requests, records, said) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.way = requests.map_or(Way::Nowhere, Way::Collector);
        let (traces, inputs) = (self.traces, self.inputs.clone());
        let said = thread::Builder::new()
            .name("said".to_owned())
            .spawn(move || last_words(said))?;
        spawn("records", move || {
            for line in collector::read_lines(records) {
                let is_wanted = traces || type_of(&line).is_ok_and(|kind| kind != "trace");
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
fn last_words(said: Option<impl Read>) -> String {
    let last = collector::read_lines(said)
        .filter(|line| !line.trim().is_empty())
        .last()
        .unwrap_or_default();
    last.strip_prefix("gpumon: ").unwrap_or(&last).to_owned()
}

struct Left;

fn send<T: From<Input>>(inputs: &SyncSender<T>, input: Input) -> Result<(), Left> {
    inputs.send(input.into()).map_err(|_| Left)
}

fn send_record<T: From<Input>>(inputs: &SyncSender<T>, record: &Record) -> Result<(), Left> {
    let text =
        serde_json::to_string(record).expect("records have string keys and no failing parts");
    send_text(inputs, text)
}

fn send_text<T: From<Input>>(inputs: &SyncSender<T>, text: String) -> Result<(), Left> {
    match stamp(&text) {
        Ok((kind, at_ms)) => send(inputs, Input::Record { text, kind, at_ms }),
        Err(_) => Ok(()),
    }
}

#[derive(Deserialize)]
struct Lagged {
    missed: u64,
}

/// Passes on the frames that are records, unchanged, until the server ends or `ended` is set.
fn pass_on<T: From<Input>>(
    frames: &mut Frames,
    inputs: &SyncSender<T>,
    ended: &AtomicBool,
) -> Result<(), Left> {
    while let Ok(text) = frames.next_text() {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        match type_of(&text).as_deref() {
            Ok("inventory" | "sample" | "details" | "event" | "trace") => send_text(inputs, text)?,
            Ok("lagged") => {
                if let Ok(Lagged { missed }) = serde_json::from_str(&text) {
                    send(inputs, Input::Missed(missed))?;
                }
            }
            Ok("collector") => {
                if let Ok(status) = serde_json::from_str(&text) {
                    remark_on(inputs, &status)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends the reason why the server has no readings, if there is one.
fn remark_on<T: From<Input>>(inputs: &SyncSender<T>, status: &CollectorStatus) -> Result<(), Left> {
    match (status.state, &status.message) {
        (CollectorState::Running | CollectorState::Starting, _) | (_, None) => Ok(()),
        (_, Some(message)) => send(
            inputs,
            Input::NoReadings(format!("no readings at the moment: {message}")),
        ),
    }
}
