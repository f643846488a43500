//! A sample on its way to the clients.

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

/// A sample as it travels.
#[derive(Debug, Clone)]
pub(crate) struct SampleFrame {
    /// Counts the samples that went through this hub, so that a client's gap can be told in
    /// numbers.
    pub(crate) number: u64,
    /// When it came.
    pub(crate) at: Instant,
    /// The time after which the next is to come.
    pub(crate) interval: Duration,
    /// The collector's line.
    line: TextFrame,
    sample: Option<Arc<Sample>>,
    /// For those who may not see all of it, written when somebody needs it.
    by_view: Arc<Mutex<HashMap<View, Arc<OnceCell<TextFrame>>>>>,
}

impl SampleFrame {
    /// What there is before the first sample.
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

    /// The next sample, as it came in this line.
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

    /// As a client of this view gets it. It is written once for all of them, off the event loop,
    /// since one of a machine with many processes is a megabyte.
    ///
    /// # Errors
    /// Where writing it fails.
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
            // The one thread beside the event loop is busy for now.
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
