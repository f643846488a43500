//! The sources of readings: a running server, the screen's own sampler, or a recording.

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

pub(super) use self::{past::PastReader, way::ServerAddress};
use super::input::Input;
use crate::{local::Server, options::SourceArgs};

/// A source of readings. Each reading arrives as an [`Input::Update`].
pub(super) enum Feed {
    /// A server. Changes of the sampling interval are sent to this channel.
    Server(mpsc::Sender<Duration>),
    /// Threads of this process that read the driver at a shared interval.
    Driver(Arc<SharedInterval>),
    /// A recording. The thread that draws requests updates from the player.
    Recording(Box<Player>),
}

impl Feed {
    /// Follows a connected server and reconnects whenever the connection is lost. While the server
    /// is lost, `source` is read.
    pub(super) fn from_server(
        server: Server,
        source: &SourceArgs,
        interval: Duration,
        inputs: mpsc::SyncSender<Input>,
    ) -> Self {
        let (ask, asked) = mpsc::channel();
        let Server { stream, path } = server;
        server::follow_server(
            ServerAddress::Socket(path),
            Some(stream),
            Some(source.clone()),
            interval,
            asked,
            inputs,
        );
        Self::Server(ask)
    }

    /// Follows the server of a fleet's node. If the server cannot be reached, the reason arrives as
    /// [`Input::Failed`].
    pub(super) fn from_node(
        way: ServerAddress,
        interval: Duration,
        inputs: mpsc::SyncSender<Input>,
    ) -> Self {
        let (ask, asked) = mpsc::channel();
        server::follow_server(way, None, None, interval, asked, inputs);
        Self::Server(ask)
    }

    /// Reads the driver. If reading fails, the reason arrives as [`Input::Failed`].
    pub(super) fn from_driver(
        source: &SourceArgs,
        interval: Duration,
        inputs: mpsc::SyncSender<Input>,
    ) -> Self {
        let shared = Arc::new(SharedInterval::new(interval));
        driver::start_sampling(source.clone(), Arc::clone(&shared), inputs);
        Self::Driver(shared)
    }

    pub(super) fn set_interval(&self, interval: Duration) {
        match self {
            // Sending fails only if the server's thread has ended, and the thread has already
            // reported the reason.
            Self::Server(ask) => drop(ask.send(interval)),
            Self::Driver(shared) => shared.set(interval),
            Self::Recording(_) => {}
        }
    }
}
