//! The sources of readings: a running server, the screen's own sampler, or a recording. Histories
//! that are longer than a server's stream are requested separately.

mod sampling;
mod server;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    time::{Duration, Instant},
};

use gpumon_history::span::{HistorySpan, MetricSelection, SpanRequest};
use gpumon_probe::{model::Record, sampler::SharedInterval};
use gpumon_recording::{PlayedItem, Player};

use super::{history::FULL_RESOLUTION_MS, input::Input, model::Update};
use crate::{background::spawn_detached_thread, local_server::Server, options::SourceArgs};

pub(super) use self::server::ServerAddress;

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
    /// Follows a connected server and reconnects whenever the connection is lost. Until the server
    /// is reached again, `source` is read.
    pub(super) fn from_server(
        server: Server,
        source: &SourceArgs,
        interval: Duration,
        inputs: SyncSender<Input>,
    ) -> Self {
        let (interval_sender, interval_changes) = mpsc::channel();
        let Server { stream, path } = server;
        server::follow_server(
            ServerAddress::Socket(path),
            Some(stream),
            Some(source.clone()),
            interval,
            interval_changes,
            inputs,
        );
        Self::Server(interval_sender)
    }

    /// Follows the server of a fleet's node. If the server cannot be reached, the reason arrives as
    /// [`Input::Failed`].
    pub(super) fn from_node(
        address: ServerAddress,
        interval: Duration,
        inputs: SyncSender<Input>,
    ) -> Self {
        let (interval_sender, interval_changes) = mpsc::channel();
        server::follow_server(address, None, None, interval, interval_changes, inputs);
        Self::Server(interval_sender)
    }

    /// Reads the driver. If reading fails, the reason arrives as [`Input::Failed`].
    pub(super) fn from_driver(
        source: &SourceArgs,
        interval: Duration,
        inputs: SyncSender<Input>,
    ) -> Self {
        let shared = Arc::new(SharedInterval::new(interval));
        sampling::start_sampling(source.clone(), Arc::clone(&shared), inputs);
        Self::Driver(shared)
    }

    pub(super) fn set_interval(&self, interval: Duration) {
        match self {
            // Sending fails only if the server's thread has ended, and the thread has already
            // reported the reason.
            Self::Server(interval_sender) => drop(interval_sender.send(interval)),
            Self::Driver(shared) => shared.set(interval),
            Self::Recording(_) => {}
        }
    }
}

/// Converts replayed records to updates.
///
/// # Errors
/// Returns an error if reading the recording failed or a record is invalid.
pub(super) fn convert_records(played: io::Result<Vec<PlayedItem>>) -> io::Result<Vec<Update>> {
    let update = |played| match played {
        PlayedItem::Rewound => Ok(Update::Rewound),
        PlayedItem::Record(text) => {
            let record = Record::decode(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            Ok(Update::Record(Box::new(record)))
        }
    };
    played?.into_iter().map(update).collect()
}

// Requests for longer histories, on separate threads.

/// The maximum number of points in a history, sufficient for the dot columns of a wide terminal.
const MAX_HISTORY_POINTS: u32 = 500;
/// The delay before a history is requested again is its time range divided by this number. The two
/// constants below are the minimum and the maximum of this delay.
const REFRESH_DIVISOR: u32 = 100;
const MIN_REQUEST_INTERVAL: Duration = Duration::from_mins(1);
const MAX_REQUEST_INTERVAL: Duration = Duration::from_mins(10);

/// A reader for a history that is longer than the history in the server's stream.
pub(super) struct PastReader {
    address: ServerAddress,
    inputs: SyncSender<Input>,
    /// The time range that was last requested, in milliseconds, and the time of the request.
    last: Option<(u64, Instant)>,
    is_waiting: Arc<AtomicBool>,
}

impl PastReader {
    pub(super) fn new(address: ServerAddress, inputs: SyncSender<Input>) -> Self {
        Self {
            address,
            inputs,
            last: None,
            is_waiting: Arc::default(),
        }
    }

    /// Requests the history up to `end_ms`. Does nothing if the stream covers the whole range, or
    /// if the range was requested recently. The result arrives as [`Update::Past`]. If the request
    /// fails, the reason arrives as [`Update::NoPast`].
    pub(super) fn request_history(&mut self, span_ms: u64, end_ms: u64, now: Instant) {
        let again = (Duration::from_millis(span_ms) / REFRESH_DIVISOR)
            .clamp(MIN_REQUEST_INTERVAL, MAX_REQUEST_INTERVAL);
        let is_known = self
            .last
            .is_some_and(|(known, at)| known == span_ms && now.duration_since(at) < again);
        if span_ms <= FULL_RESOLUTION_MS
            || end_ms == 0
            || is_known
            || self.is_waiting.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.last = Some((span_ms, now));
        let (address, inputs, is_waiting) = (
            self.address.clone(),
            self.inputs.clone(),
            Arc::clone(&self.is_waiting),
        );
        let body = move || {
            let update = match read_history(&address, end_ms.saturating_sub(span_ms), end_ms) {
                Ok(past) => Update::Past(Box::new(past)),
                Err(why) => Update::NoPast(why),
            };
            is_waiting.store(false, Ordering::Release);
            // Sending fails only if the screen is closed.
            let _ = inputs.send(Input::Update(update));
        };
        if let Err(error) = spawn_detached_thread("past", body) {
            self.is_waiting.store(false, Ordering::Release);
            let _ = self
                .inputs
                .try_send(Input::Update(Update::NoPast(error.to_string())));
        }
    }
}

/// Reads the history of all metrics that can be charted.
fn read_history(address: &ServerAddress, from_ms: u64, to_ms: u64) -> Result<HistorySpan, String> {
    let request = SpanRequest {
        from_ms,
        to_ms,
        points: MAX_HISTORY_POINTS,
        resolution_ms: None,
        wanted: MetricSelection::select_charts(),
    };
    let target = request.request_target();
    let connected = address.connect().map(|stream| Server {
        stream,
        path: PathBuf::new(),
    });
    let answer =
        connected.and_then(|server| server.send_get_request(&address.endpoint_path(&target)));
    let answer = answer.map_err(|error: io::Error| error.to_string())?;
    match answer.status {
        200 => serde_json::from_str(&answer.body)
            .map_err(|error| format!("the response is invalid: {error}")),
        404 => Err("the server is older than this gpumon; restart the server".to_owned()),
        _ => Err(answer.body.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests;
