//! Requests for longer histories than the server's stream contains, on separate threads.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
    thread,
    time::{Duration, Instant},
};

use gpumon_history::{plan::SpanRequest, span::HistorySpan, wanted::Wanted};

use super::way::Way;
use crate::{
    local::Server,
    top::{history::FINE_MS, input::Input, model::Update},
};

/// The number of points, which suffices for the columns of dots of a wide terminal.
const POINTS: u32 = 500;
/// The chart is requested again when it has moved by this fraction of its time range, within the
/// limits below.
const MOVED: u32 = 100;
const SHORTEST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_mins(10);

/// A reader of a server's history.
pub(in crate::top) struct PastReader {
    way: Way,
    inputs: SyncSender<Input>,
    /// The time range of the last request in milliseconds, and the time of the request.
    last: Option<(u64, Instant)>,
    is_waiting: Arc<AtomicBool>,
}

impl PastReader {
    pub(in crate::top) fn new(way: Way, inputs: SyncSender<Input>) -> Self {
        Self {
            way,
            inputs,
            last: None,
            is_waiting: Arc::default(),
        }
    }

    /// Requests the history up to `end_ms` if the stream does not cover the whole range, unless
    /// that was done recently. The result arrives as [`Update::Past`], or the reason for its
    /// absence as [`Update::NoPast`].
    pub(in crate::top) fn need(&mut self, span_ms: u64, end_ms: u64, now: Instant) {
        let again = (Duration::from_millis(span_ms) / MOVED).clamp(SHORTEST, LONGEST);
        let is_known = self
            .last
            .is_some_and(|(known, at)| known == span_ms && now.duration_since(at) < again);
        if span_ms <= FINE_MS
            || end_ms == 0
            || is_known
            || self.is_waiting.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.last = Some((span_ms, now));
        let (way, inputs, is_waiting) = (
            self.way.clone(),
            self.inputs.clone(),
            Arc::clone(&self.is_waiting),
        );
        let body = move || {
            let update = match read(&way, end_ms.saturating_sub(span_ms), end_ms) {
                Ok(past) => Update::Past(Box::new(past)),
                Err(why) => Update::NoPast(why),
            };
            is_waiting.store(false, Ordering::Release);
            // Sending fails only if the screen has been closed.
            let _ = inputs.send(Input::Update(update));
        };
        if let Err(error) = thread::Builder::new().name("past".to_owned()).spawn(body) {
            self.is_waiting.store(false, Ordering::Release);
            let _ = self
                .inputs
                .try_send(Input::Update(Update::NoPast(error.to_string())));
        }
    }
}

/// Reads the history of everything that can be charted.
fn read(way: &Way, from_ms: u64, to_ms: u64) -> Result<HistorySpan, String> {
    let request = SpanRequest {
        from_ms,
        to_ms,
        points: POINTS,
        resolution_ms: None,
        wanted: Wanted::all_charted(),
    };
    let target = request.target();
    let connected = way.connect().map(|stream| Server {
        stream,
        path: PathBuf::new(),
    });
    let answer = connected.and_then(|server| server.ask("GET", &way.endpoint(&target)));
    let answer = answer.map_err(|error: io::Error| error.to_string())?;
    match answer.status {
        200 => serde_json::from_str(&answer.body)
            .map_err(|error| format!("its answer is not understood: {error}")),
        404 => Err("it is older than this program: restart it".to_owned()),
        _ => Err(answer.body.trim().to_owned()),
    }
}
