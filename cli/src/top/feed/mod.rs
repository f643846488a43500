//! Where readings come from, and how often: a running server, this program's own sampler, or a
//! recording.

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

/// Readings that come, each as an [`Input::Update`].
pub(super) enum Feed {
    /// From a server, which is told the interval.
    Server(mpsc::Sender<Duration>),
    /// From threads of this process, which read the driver.
    Driver(Arc<SharedInterval>),
    /// From a recording, when the one who draws asks for it.
    Recording(Box<Player>),
}

impl Feed {
    /// Follows a server that has been reached, and reaches it again whenever it is gone; meanwhile,
    /// it reads `source`.
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

    /// Follows the server of a node of a fleet. Where it cannot be reached, the reason comes as an
    /// [`Input::Failed`].
    pub(super) fn from_node(way: Way, interval: Duration, inputs: mpsc::SyncSender<Input>) -> Self {
        let (ask, asked) = mpsc::channel();
        server::follow(way, None, None, interval, asked, inputs);
        Self::Server(ask)
    }

    /// Reads the driver. Where that fails, the reason comes as an [`Input::Failed`].
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
            // A thread that has ended has said why.
            Self::Server(ask) => drop(ask.send(interval)),
            Self::Driver(shared) => shared.set(interval),
            Self::Recording(_) => {}
        }
    }
}
