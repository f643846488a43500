//! Snapshots taken at an interval until the user stops the command.

use std::{
    collections::BTreeMap,
    io,
    ops::ControlFlow,
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    time::Duration,
};

use gpumon_probe::{
    model::{GpuDetails, Inventory, Record},
    owner::CommandLines,
    sampler::{self, Options, SharedInterval},
    vendor::Source,
};
use gpumon_server::frame::{self, CollectorState, ServerFrame};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH},
    iterator::Signals,
};

use crate::{
    background::spawn_detached_thread,
    exit::{Failure, Result},
    local_server::Frames,
    options::build_live_view_options,
    snapshot::{HiddenCommands, Snapshot, SnapshotContents, SourceSelection},
    table::UtilizationHistory,
    workload_run,
};

/// A snapshot to show, or an event.
pub(super) enum Message {
    Snapshot(Box<Snapshot>),
    Resized,
    Stop,
    ServerEnded,
    Failed(Failure),
}

/// The maximum number of queued messages, after which the sender waits.
const QUEUE_LENGTH: usize = 2;

/// A source of snapshots and events: a server if one is running, otherwise the driver.
pub(super) struct SnapshotFeed<'a> {
    at: SourceSelection<'a>,
    need: SnapshotContents,
    interval: Duration,
    sender: SyncSender<Message>,
    messages: Receiver<Message>,
}

impl<'a> SnapshotFeed<'a> {
    /// Starts to take a snapshot every `interval`.
    pub(super) fn start(
        at: SourceSelection<'a>,
        need: SnapshotContents,
        interval: Duration,
    ) -> Result<Self> {
        let (sender, messages) = mpsc::sync_channel(QUEUE_LENGTH);
        let feed = Self {
            at,
            need,
            interval,
            sender,
            messages,
        };
        // If the server has no fresh sample, no stream is requested from it.
        let first = Snapshot::from_server(at, SnapshotContents::Past)?;
        let frames = first.and_then(|first| {
            Some((
                first,
                at.server
                    .connect()
                    .ok()?
                    .start_stream(interval, false)
                    .ok()?,
            ))
        });
        match frames {
            Some((first, frames)) => feed.follow_server(first, frames)?,
            None => feed.start_sampling()?,
        }
        Ok(feed)
    }

    /// Starts a thread that sends a message when the terminal is resized or a signal requests a
    /// stop. A second stop signal ends the process immediately.
    pub(super) fn install_signal_handlers(&self) -> io::Result<()> {
        workload_run::install_signal_handlers()?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGWINCH])?;
        let sender = self.sender.clone();
        spawn_detached_thread("snapshots", move || {
            for signal in signals.forever() {
                let messages = if signal == SIGWINCH {
                    Message::Resized
                } else {
                    Message::Stop
                };
                if sender.send(messages).is_err() {
                    return;
                }
            }
        })
    }

    pub(super) fn next(&self) -> Message {
        self.messages.recv().unwrap_or(Message::Stop)
    }

    fn follow_server(&self, first: Snapshot, frames: Frames) -> Result {
        let follower = StreamFollower {
            past: first.past,
            known: None,
            hidden: HiddenCommands::new(),
            sender: self.sender.clone(),
        };
        spawn_detached_thread("snapshots", move || follower.run(frames))?;
        Ok(())
    }

    /// Starts a thread that reads the driver and sends snapshots.
    pub(super) fn start_sampling(&self) -> Result {
        let source = self.at.source.open()?;
        let (sender, need, interval) = (self.sender.clone(), self.need, self.interval);
        spawn_detached_thread("snapshots", move || {
            if let Err(error) = send_samples(&source, need, interval, &sender) {
                let _ = sender.send(Message::Failed(error));
            }
        })?;
        Ok(())
    }
}

/// Reads the GPUs with one sampler for all snapshots, so that the driver is opened only once.
fn send_samples(
    source: &Arc<dyn Source>,
    need: SnapshotContents,
    interval: Duration,
    sender: &SyncSender<Message>,
) -> Result {
    let mut inventory = None;
    let mut details: BTreeMap<u32, GpuDetails> = BTreeMap::new();
    let mut events = Vec::new();
    let mut past = UtilizationHistory::default();
    // Details and events are not read for CSV and short output, which do not show them.
    let options = match need {
        SnapshotContents::Nothing => Options::new(interval, CommandLines::All),
        SnapshotContents::Past | SnapshotContents::Everything => {
            build_live_view_options(Arc::new(SharedInterval::new(interval)))
        }
    };
    sampler::run_sampler(source, &options, |record| {
        match record {
            Record::Inventory(is_there) => inventory = Some(is_there.clone()),
            Record::Details(read) => drop(details.insert(read.index, read.clone())),
            Record::Event(event) => events.push(event.clone()),
            Record::Trace(_) | Record::Answers(_) => {}
            Record::Sample(sample) => {
                past.push(sample);
                let inventory: Inventory = inventory
                    .clone()
                    .expect("an inventory comes before every sample");
                let details = details.values().cloned().collect();
                let mut snapshot = Snapshot::from_reading(inventory, sample.clone(), details);
                (snapshot.past, snapshot.frame.events) =
                    (past.clone(), std::mem::take(&mut events));
                snapshot.is_single = false;
                if sender.send(Message::Snapshot(Box::new(snapshot))).is_err() {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

struct StreamFollower {
    past: UtilizationHistory,
    /// The last state sent by the server, updated with each frame.
    known: Option<frame::Snapshot>,
    hidden: HiddenCommands,
    sender: SyncSender<Message>,
}

impl StreamFollower {
    fn run(mut self, mut frames: Frames) {
        while let Ok(frame) = frames.next() {
            if self.ingest(frame) && !self.send_snapshot() {
                return;
            }
        }
        // Sending fails only if the receiver no longer exists.
        let _ = self.sender.send(Message::ServerEnded);
    }

    /// Applies a frame, and returns `true` if a new snapshot should be shown.
    fn ingest(&mut self, frame: ServerFrame) -> bool {
        if let ServerFrame::Hello(hello) = frame {
            self.known = Some(frame::Snapshot {
                version: hello.version,
                collector: hello.collector,
                inventory: hello.inventory,
                sample: None,
                details: hello.details,
                events: hello.events,
                alerts: hello.alerts,
                history: None,
            });
            let sample = hello.sample.map(ServerFrame::Sample);
            return sample.is_some_and(|sample| self.ingest(sample));
        }
        let Some(known) = &mut self.known else {
            return false;
        };
        match frame {
            ServerFrame::Inventory(inventory) => known.inventory = Some(inventory),
            ServerFrame::Details(details) => {
                known.details.retain(|known| known.index != details.index);
                known.details.push(details);
                known.details.sort_by_key(|details| details.index);
            }
            ServerFrame::Event(event) => known.events.push(event),
            ServerFrame::Collector(collector) => {
                let was_running = known.collector.state == CollectorState::Running;
                known.collector = collector;
                // A new snapshot is needed only if the collector was running until now. After a
                // restart, the first sample of the collector causes a new snapshot.
                return was_running;
            }
            ServerFrame::Sample(mut sample) => {
                if known
                    .inventory
                    .as_ref()
                    .is_some_and(|there| !there.platform.is_simulated)
                {
                    self.hidden.fill_in_hidden_commands(&mut sample);
                }
                self.past.push(&sample);
                known.sample = Some(sample);
                return true;
            }
            ServerFrame::Alerts { firing } => known.alerts = firing,
            _ => {}
        }
        false
    }

    fn send_snapshot(&mut self) -> bool {
        let Some(known) = &mut self.known else {
            return true;
        };
        let Some(snapshot) = Snapshot::new(known.clone(), self.past.clone()) else {
            return true;
        };
        known.events.clear();
        self.sender
            .send(Message::Snapshot(Box::new(snapshot)))
            .is_ok()
    }
}
