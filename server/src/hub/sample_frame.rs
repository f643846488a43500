//! A sample that is sent to the clients.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpumon_probe::model::Sample;
use tokio::{
    sync::OnceCell,
    task::{JoinError, spawn_blocking},
    time::Instant,
};

use super::encode;
use crate::{frame::ServerFrame, lock, stream::TextFrame, view::View};

/// A sample and its encoded text.
#[derive(Debug, Clone)]
pub(crate) struct SampleFrame {
    /// The number of the sample in this hub, by which the number of missed samples is determined.
    pub(crate) number: u64,
    /// The time at which the sample arrived.
    pub(crate) at: Instant,
    /// The time until the next sample.
    pub(crate) interval: Duration,
    /// The line that the collector wrote.
    line: TextFrame,
    sample: Option<Arc<Sample>>,
    /// The text for each view that may not see everything, which is encoded on demand.
    by_view: Arc<Mutex<HashMap<View, Arc<OnceCell<TextFrame>>>>>,
}

impl SampleFrame {
    /// Returns the frame before the first sample.
    pub(super) fn none() -> Self {
        Self {
            number: 0,
            at: Instant::now(),
            interval: Duration::ZERO,
            line: TextFrame::new(""),
            sample: None,
            by_view: Arc::default(),
        }
    }

    /// Returns the frame of the next sample, with the collector's line.
    pub(super) fn next(&self, line: &str, sample: Arc<Sample>) -> Self {
        Self {
            number: self.number + 1,
            at: Instant::now(),
            interval: Duration::from_millis(sample.interval_ms.into()),
            line: TextFrame::new(line),
            sample: Some(sample),
            by_view: Arc::default(),
        }
    }

    /// Returns the text for clients with this view. It is encoded once for all of them, outside the
    /// event loop, because the sample of a machine with many processes can have a megabyte.
    ///
    /// # Errors
    /// Returns an error if encoding fails.
    pub(crate) async fn text(&self, view: &View) -> Result<TextFrame, JoinError> {
        let (false, Some(sample)) = (*view == View::Whole, &self.sample) else {
            return Ok(self.line.clone());
        };
        let (sample, of_view) = (Arc::clone(sample), view.clone());
        let whole = self.line.clone();
        let write = move || match of_view.sample(&sample) {
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
    fn a_sample_without_command_lines_is_written_once_and_off_the_event_loop() {
        let sample = Sample {
            seq: 0,
            at_ms: 1,
            interval_ms: 1000,
            gpus: Vec::new(),
            host: HostReader::new().read(),
        };
        let frame = SampleFrame::none().next("{}", Arc::new(sample));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            // This blocks the only thread besides the event loop.
            let (release, released) = std::sync::mpsc::channel::<()>();
            let busy = spawn_blocking(move || released.recv().is_err());
            assert!(
                frame.text(&View::Whole).now_or_never().is_some()
                    && frame.text(&View::ANYBODY).now_or_never().is_none()
            );
            drop(release);
            let (one, other, _) =
                tokio::join!(frame.text(&View::ANYBODY), frame.text(&View::ANYBODY), busy);
            assert_eq!(one.unwrap().text().as_ptr(), other.unwrap().text().as_ptr());
        });
    }
}
