//! The hub, which distributes the collector's data to all clients and keeps the current state.
//!
//! The collector encodes each sample once, and all clients share its line. Samples are sent through
//! a `watch` channel, from which a slow client gets only the newest. Everything else is sent
//! through a `broadcast` channel, because no event may be skipped.

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

use self::{event_log::EventLog, notice::NoticeSubject, state::HubState};
pub(crate) use self::{
    known::HubData, notice::Notice, sample_frame::SampleFrame, xid_counts::XidCounts,
};
use crate::{frame::ServerFrame, history::HistoryStore, lock, stream::TextFrame, view::View};

/// The maximum number of events and states that are waiting for a slow client. If there are more,
/// the oldest are dropped and the client is notified.
const MAX_NOTICES: usize = 256;

/// The maximum number of traces that wait for a slow client.
const MAX_TRACES: usize = 256;

/// The version of gpumon that hello frames and snapshots report.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The connection between the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<HubState>,
    /// The history, which has a separate lock because long reads take milliseconds.
    history: RwLock<HistoryStore>,
    /// The usage by owner since the server's start.
    usage: RwLock<UsageMeter>,
    /// The use of GPUs by notebooks' kernels.
    kernels: RwLock<KernelMeter>,
    /// The number of changes so far. Readers compare it to detect newer data.
    change_count: AtomicU64,
    /// The number of changes of the collector's state, of the inventory and of Xids. Metrics must
    /// report these without delay.
    state_change_count: AtomicU64,
    samples: watch::Sender<SampleFrame>,
    /// The number of samples and notices so far. Clients use it to wait for both at the same time.
    wakeups: watch::Sender<u64>,
    notices: broadcast::Sender<Notice>,
    traces: broadcast::Sender<TextFrame>,
    /// The number of the newest sample for which the driver's answers were requested.
    wanted_answers: watch::Sender<u64>,
    /// The number of the newest sample for which the driver's answers have arrived.
    known_answers: watch::Sender<u64>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(HubState::new()),
            history: RwLock::default(),
            usage: RwLock::default(),
            kernels: RwLock::default(),
            change_count: AtomicU64::new(0),
            state_change_count: AtomicU64::new(0),
            samples: watch::Sender::new(SampleFrame::new_empty()),
            wakeups: watch::Sender::new(0),
            notices: broadcast::Sender::new(MAX_NOTICES),
            traces: broadcast::Sender::new(MAX_TRACES),
            wanted_answers: watch::Sender::new(0),
            known_answers: watch::Sender::new(0),
        }
    }

    /// Returns the number of state changes so far.
    pub(crate) fn state_change_count(&self) -> u64 {
        self.state_change_count.load(Ordering::Acquire)
    }

    fn count_state_change(&self) {
        self.state_change_count.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of changes so far.
    pub(crate) fn change_count(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }

    /// Returns a channel that changes whenever there is a new sample or notice.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<u64> {
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

    /// Sends every client a new hello frame. Each client receives only the data that it may see.
    fn notify_hello(&self) {
        self.notify(Notice::new(
            TextFrame::new(&self.encode_hello(&View::Whole)),
            NoticeSubject::Everything,
        ));
    }

    fn notify(&self, notice: Notice) {
        // Sending fails if no client is connected, and then no client has to be woken.
        if self.notices.send(notice).is_ok() {
            self.wake_clients();
        }
    }

    fn wake_clients(&self) {
        self.wakeups.send_modify(|number| *number += 1);
    }

    fn read_state<T>(&self, read: impl FnOnce(&HubState) -> T) -> T {
        read(&lock::read(&self.state))
    }

    fn write_state<T>(&self, write: impl FnOnce(&mut HubState) -> T) -> T {
        let written = write(&mut lock::write(&self.state));
        self.change_count.fetch_add(1, Ordering::Release);
        written
    }
}

/// Encodes a frame for sending.
pub(crate) fn encode(frame: &ServerFrame) -> TextFrame {
    TextFrame::new(&to_json(frame))
}

fn to_json(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("frames can always be serialized")
}
