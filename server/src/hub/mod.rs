//! What the collector said last, and the way from there to every client.
//!
//! A sample is encoded once, by the collector; its line is shared by all clients. Samples go
//! through a `watch`, where the newest wins for a client that is slow; everything else goes through
//! a `broadcast`, where each one counts.

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

/// This many events and states may queue up for a slow client before it is told that it missed
/// some.
const NOTICES: usize = 256;

/// So many traces may queue up for a slow client that asked for them.
const TRACES: usize = 256;

/// gpumon's version, as clients see it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The meeting point of the collector and the clients.
pub(crate) struct Hub {
    state: RwLock<State>,
    /// Apart from the rest, since reading much of it takes milliseconds.
    history: RwLock<Past>,
    /// Who used how much since the server's start.
    usage: RwLock<UsageMeter>,
    /// The use of the GPUs by kernels of notebooks.
    kernels: RwLock<KernelMeter>,
    /// Counts what has been taken in, so that whoever has read something knows whether there is
    /// something newer.
    change_count: AtomicU64,
    /// Counts changes of the collector's state, of what is there, and Xids: what metrics must not
    /// tell late.
    state_change_count: AtomicU64,
    samples: watch::Sender<SampleFrame>,
    /// Counts samples and notices, so that a client waits for one thing alone.
    wakeups: watch::Sender<u64>,
    notices: broadcast::Sender<Notice>,
    traces: broadcast::Sender<TextFrame>,
    /// As of which sample the driver's answers are wanted.
    wanted_answers: watch::Sender<u64>,
    /// As of which sample they are known.
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

    /// The number of the last change of a state.
    pub(crate) fn state_change(&self) -> u64 {
        self.state_change_count.load(Ordering::Acquire)
    }

    fn count_state_change(&self) {
        self.state_change_count.fetch_add(1, Ordering::Release);
    }

    /// The number of the last change.
    pub(crate) fn change(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }

    /// Changes with every sample and every notice.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.wakeups.subscribe()
    }

    /// The samples to come.
    pub(crate) fn samples(&self) -> watch::Receiver<SampleFrame> {
        self.samples.subscribe()
    }

    /// The events and states to come.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// The traces to come.
    pub(crate) fn traces(&self) -> broadcast::Receiver<TextFrame> {
        self.traces.subscribe()
    }

    /// Every client begins anew, with what it may see.
    fn notify_hello(&self) {
        self.notify(Notice::new(
            TextFrame::new(&self.hello(&View::Whole)),
            About::Everything,
        ));
    }

    fn notify(&self, notice: Notice) {
        // An error means that no client is connected.
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

/// A frame, ready to be sent.
pub(crate) fn encode(frame: &ServerFrame) -> TextFrame {
    TextFrame::new(&write_json(frame))
}

fn write_json(frame: &ServerFrame) -> String {
    serde_json::to_string(frame).expect("frames have string keys and no failing parts")
}
