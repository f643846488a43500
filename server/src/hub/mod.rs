//! The hub, which passes the collector's data on to all clients and keeps its current state.
//!
//! A sample is encoded once, by the collector, and its line is shared by all clients. Samples go
//! through a `watch`, from which a slow client gets only the newest. Everything else goes through a
//! `broadcast`, because no event may be skipped.

mod driver_answers;
mod event_log;
mod intake;
mod joined;
mod known;
mod notice;
mod now;
mod past;
mod readings;
mod sample_frame;
mod state;
mod xid_counts;

use std::sync::{
    RwLock,
    atomic::{AtomicU64, Ordering},
};

use gpumon_probe::usage::{UsageMeter, cost::KernelMeter};
use tokio::sync::{broadcast, watch};

use self::{event_log::EventLog, notice::About, state::State};
pub(crate) use self::{
    known::Known, notice::Notice, sample_frame::SampleFrame, xid_counts::XidCounts,
};
use crate::{frame::ServerFrame, history::Past, lock, stream::TextFrame, view::View};

/// The maximum number of events and states that wait for a slow client. Beyond that, some are
/// dropped and the client is notified.
const NOTICES: usize = 256;

/// The maximum number of traces that wait for a slow client.
const TRACES: usize = 256;

/// The version of gpumon in hellos and snapshots.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The connection between the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<State>,
    /// The history, which has a lock of its own because long reads take milliseconds.
    history: RwLock<Past>,
    /// The usage by owner since the server's start.
    usage: RwLock<UsageMeter>,
    /// The use of GPUs by the kernels of notebooks.
    kernels: RwLock<KernelMeter>,
    /// The number of changes so far, by which readers detect newer data.
    change_count: AtomicU64,
    /// The number of changes of the collector's state and the inventory, and of Xids. Metrics must
    /// not report these late.
    state_change_count: AtomicU64,
    samples: watch::Sender<SampleFrame>,
    /// The number of samples and notices so far, so that a client can wait for both at once.
    wakeups: watch::Sender<u64>,
    notices: broadcast::Sender<Notice>,
    traces: broadcast::Sender<TextFrame>,
    /// The number of the sample for which the driver's answers are requested.
    wanted_answers: watch::Sender<u64>,
    /// The number of the sample for which the driver's answers are known.
    known_answers: watch::Sender<u64>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State::new()),
            history: RwLock::default(),
            usage: RwLock::default(),
            kernels: RwLock::default(),
            change_count: AtomicU64::new(0),
            state_change_count: AtomicU64::new(0),
            samples: watch::Sender::new(SampleFrame::none()),
            wakeups: watch::Sender::new(0),
            notices: broadcast::Sender::new(NOTICES),
            traces: broadcast::Sender::new(TRACES),
            wanted_answers: watch::Sender::new(0),
            known_answers: watch::Sender::new(0),
        }
    }

    /// Returns the number of state changes so far.
    pub(crate) fn state_change(&self) -> u64 {
        self.state_change_count.load(Ordering::Acquire)
    }

    fn count_state_change(&self) {
        self.state_change_count.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of changes so far.
    pub(crate) fn change(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }

    /// Returns a channel that changes with every sample and notice.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.wakeups.subscribe()
    }

    /// Returns the channel of samples.
    pub(crate) fn samples(&self) -> watch::Receiver<SampleFrame> {
        self.samples.subscribe()
    }

    /// Returns the channel of events and states.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Returns the channel of traces.
    pub(crate) fn traces(&self) -> broadcast::Receiver<TextFrame> {
        self.traces.subscribe()
    }

    /// Sends every client a new hello with the data that it may see.
    fn notify_hello(&self) {
        self.notify(Notice::new(
            TextFrame::new(&self.hello(&View::Whole)),
            About::Everything,
        ));
    }

    fn notify(&self, notice: Notice) {
        // Sending fails if no client is connected.
        if self.notices.send(notice).is_ok() {
            self.wake_clients();
        }
    }

    fn wake_clients(&self) {
        self.wakeups.send_modify(|number| *number += 1);
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&lock::read(&self.state))
    }

    fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let written = write(&mut lock::write(&self.state));
        self.change_count.fetch_add(1, Ordering::Release);
        written
    }
}

/// Encodes a frame for sending.
pub(crate) fn encode(frame: &ServerFrame) -> TextFrame {
    TextFrame::new(&write_json(frame))
}

fn write_json(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("frames have string keys and no failing parts")
}
