//! The frames that many clients share: samples, and notices of events and states. Each is encoded
//! once for all clients with the same view.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpumon_probe::model::{Event, FiringAlert, GpuDetails, Sample};
use tokio::{
    sync::OnceCell,
    task::{JoinError, spawn_blocking},
    time::Instant,
};

use super::{Hub, encode};
use crate::{frame::ServerFrame, lock, stream::TextFrame, view::View};

/// The maximum number of views for which a notice's text is cached. For hello frames, which can be
/// megabytes long, the maximum is `MAX_CACHED_HELLOS`.
const MAX_CACHED_TEXTS: usize = 64;
const MAX_CACHED_HELLOS: usize = 2;

/// An event or state: its text for clients that may see everything, and its subject, from which the
/// texts for all other clients are made.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: NoticeSubject,
    /// The text for each view that may not see everything. It is encoded once for all clients with
    /// that view.
    by_view: Arc<Mutex<HashMap<View, Option<TextFrame>>>>,
}

#[derive(Debug, Clone)]
pub(super) enum NoticeSubject {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// The firing alerts.
    Alerts(Arc<Vec<FiringAlert>>),
    /// All data, sent as a new hello frame.
    Everything,
    /// Data that belongs to no user, which every client may see.
    Other,
}

/// Returns the frame of firing alerts.
pub(super) fn alerts_frame(firing: Vec<FiringAlert>) -> TextFrame {
    encode(&ServerFrame::Alerts { firing })
}

impl From<TextFrame> for Notice {
    fn from(text: TextFrame) -> Self {
        Self::new(text, NoticeSubject::Other)
    }
}

impl Notice {
    pub(super) fn from_alerts(firing: Vec<FiringAlert>) -> Self {
        Self::new(
            alerts_frame(firing.clone()),
            NoticeSubject::Alerts(Arc::new(firing)),
        )
    }

    pub(super) fn new(text: TextFrame, about: NoticeSubject) -> Self {
        Self {
            text,
            about,
            by_view: Arc::default(),
        }
    }

    /// Returns the text for clients with this view, or `None` if they may not see it.
    pub(crate) fn text_for_view(self, view: &View, hub: &Hub) -> Option<TextFrame> {
        let is_whole = match &self.about {
            NoticeSubject::Other => true,
            NoticeSubject::Details(_) => view.shows_other_users(),
            NoticeSubject::Event(_) | NoticeSubject::Alerts(_) | NoticeSubject::Everything => {
                view.hides_nothing()
            }
        };
        if is_whole {
            return Some(self.text);
        }
        let mut by_view = lock::lock(&self.by_view);
        if let Some(known) = by_view.get(view) {
            return known.clone();
        }
        let text = match &self.about {
            NoticeSubject::Event(event) => view
                .filter_event(event)
                .map(|event| encode(&ServerFrame::Event(event))),
            NoticeSubject::Details(details) => Some(encode(&ServerFrame::Details(
                view.filter_details((**details).clone()),
            ))),
            NoticeSubject::Alerts(firing) => {
                Some(alerts_frame(view.filter_alerts((**firing).clone())))
            }
            NoticeSubject::Everything => Some(TextFrame::new(&hub.encode_hello(view))),
            NoticeSubject::Other => None,
        };
        let most = if matches!(self.about, NoticeSubject::Everything) {
            MAX_CACHED_HELLOS
        } else {
            MAX_CACHED_TEXTS
        };
        if by_view.len() < most {
            by_view.insert(view.clone(), text.clone());
        }
        text
    }
}

/// A sample and its encoded texts.
#[derive(Debug, Clone)]
pub(crate) struct SampleFrame {
    /// The sample's number in this hub. The difference between two numbers shows how many samples a
    /// client missed.
    pub(crate) number: u64,
    /// The time at which the sample arrived.
    pub(crate) at: Instant,
    /// The sampling interval, and thus the expected time until the next sample.
    pub(crate) interval: Duration,
    /// The sample as one line, as written by the collector.
    line: TextFrame,
    sample: Option<Arc<Sample>>,
    /// The text for each view that may not see everything. Each text is encoded on demand.
    by_view: Arc<Mutex<HashMap<View, Arc<OnceCell<TextFrame>>>>>,
}

impl SampleFrame {
    /// Returns the frame that is used before the first sample.
    pub(super) fn new_empty() -> Self {
        Self {
            number: 0,
            at: Instant::now(),
            interval: Duration::ZERO,
            line: TextFrame::new(""),
            sample: None,
            by_view: Arc::default(),
        }
    }

    /// Returns the frame for the next sample. `line` is the collector's line.
    pub(super) fn make_next_frame(&self, line: &str, sample: Arc<Sample>) -> Self {
        Self {
            number: self.number + 1,
            at: Instant::now(),
            interval: Duration::from_millis(sample.interval_ms.into()),
            line: TextFrame::new(line),
            sample: Some(sample),
            by_view: Arc::default(),
        }
    }

    /// Returns the text for clients with this view. The text is encoded once for all of them,
    /// outside the event loop, because the sample of a machine with many processes can be a
    /// megabyte long.
    ///
    /// # Errors
    /// Returns an error if encoding fails.
    pub(crate) async fn text_for_view(&self, view: &View) -> Result<TextFrame, JoinError> {
        let (false, Some(sample)) = (*view == View::Whole, &self.sample) else {
            return Ok(self.line.clone());
        };
        let (sample, of_view) = (Arc::clone(sample), view.clone());
        let whole = self.line.clone();
        let write = move || match of_view.filter_sample(&sample) {
            Cow::Borrowed(_) => whole,
            Cow::Owned(seen) => encode(&ServerFrame::Sample(seen)),
        };
        let text = {
            let mut by_view = lock::lock(&self.by_view);
            Arc::clone(by_view.entry(view.clone()).or_default())
        };
        text.get_or_try_init(|| spawn_blocking(write))
            .await
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use gpumon_probe::host::HostReader;

    use super::*;

    #[test]
    fn filtered_sample_is_encoded_once_in_background() {
        let sample = Sample {
            seq: 0,
            at_ms: 1,
            interval_ms: 1000,
            gpus: Vec::new(),
            host: HostReader::new().read(),
        };
        let frame = SampleFrame::new_empty().make_next_frame("{}", Arc::new(sample));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            // This task blocks the runtime's only other thread.
            let (release, released) = std::sync::mpsc::channel::<()>();
            let busy = spawn_blocking(move || released.recv().is_err());
            assert!(
                frame.text_for_view(&View::Whole).now_or_never().is_some()
                    && frame
                        .text_for_view(&View::UNKNOWN_CLIENT)
                        .now_or_never()
                        .is_none()
            );
            drop(release);
            let (one, other, _) = tokio::join!(
                frame.text_for_view(&View::UNKNOWN_CLIENT),
                frame.text_for_view(&View::UNKNOWN_CLIENT),
                busy
            );
            assert_eq!(one.unwrap().text().as_ptr(), other.unwrap().text().as_ptr());
        });
    }
}
