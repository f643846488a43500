//! The source of readings: a running server, this program's own sampler, or a recording.

mod decode;
mod driver;
mod past;
mod server;
mod usage;
mod way;

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use gpumon_probe::sampler::SharedInterval;
use gpumon_recording::Player;

pub(super) use self::{past::PastReader, way::Way};
use super::input::Input;
use crate::{local::Server, options::SourceArgs};

/// A source of readings. Each reading arrives as an [`Input::Update`].
pub(super) enum Feed {
    /// A server, to which changes of the interval are sent.
    Server(mpsc::Sender<Duration>),
    /// Threads of this process that read the driver.
    Driver(Arc<SharedInterval>),
    /// A recording, from which the drawing thread requests updates.
    Recording(Box<Player>),
}

impl Feed {
    /// Follows a connected server, and reconnects whenever the connection is lost. In the meantime,
    /// `source` is read.
    pub(super) fn from_server(
        server: Server,
        source: &SourceArgs,
        interval: Duration,
        inputs: mpsc::SyncSender<Input>,
    ) -> Self {
        let (ask, asked) = mpsc::channel();
        let Server { stream, path } = server;
        server::follow(
            Way::Socket(path),
            Some(stream),
            Some(source.clone()),
            interval,
            asked,
            inputs,
        );
        Self::Server(ask)
    }

    /// Follows the server of a fleet's node. If it cannot be reached, the reason arrives as an
    /// [`Input::Failed`].
    pub(super) fn from_node(way: Way, interval: Duration, inputs: mpsc::SyncSender<Input>) -> Self {
        let (ask, asked) = mpsc::channel();
        server::follow(way, None, None, interval, asked, inputs);
        Self::Server(ask)
    }

    /// Reads the driver. If that fails, the reason arrives as an [`Input::Failed`].
    pub(super) fn from_driver(
        source: &SourceArgs,
        interval: Duration,
        inputs: mpsc::SyncSender<Input>,
    ) -> Self {
        let shared = Arc::new(SharedInterval::new(interval));
        driver::sample(source.clone(), Arc::clone(&shared), inputs);
        Self::Driver(shared)
    }

    pub(super) fn set_interval(&self, interval: Duration) {
        match self {
            // A thread that has ended has already reported the reason.
            Self::Server(ask) => drop(ask.send(interval)),
            Self::Driver(shared) => shared.set(interval),
            Self::Recording(_) => {}
        }
    }
}
