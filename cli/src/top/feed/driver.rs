//! The screen's own sampler. It runs on a separate thread, so that keys work even while the driver
//! hangs.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Instant,
};

use gpumon_probe::{
    model::Record,
    sampler::{self, SharedInterval},
    vendor::Source,
};

use super::usage::UsageReader;
use crate::{
    exit::Failure,
    options::{SourceArgs, build_live_view_options},
    top::{input::Input, model::Update},
};

/// Samples until the screen is closed. A failure is sent as an [`Input::Failed`].
pub(super) fn start_sampling(
    source: SourceArgs,
    interval: Arc<SharedInterval>,
    inputs: SyncSender<Input>,
) {
    let failed = inputs.clone();
    let body = move || {
        if let Err(failure) = open_and_sample(&source, interval, &inputs) {
            let _ = inputs.send(Input::Failed(failure));
        }
    };
    // The thread also opens the driver, because opening a driver can hang.
    if let Err(error) = thread::Builder::new()
        .name("sampler".to_owned())
        .spawn(body)
    {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

fn open_and_sample(
    source: &SourceArgs,
    interval: Arc<SharedInterval>,
    inputs: &SyncSender<Input>,
) -> Result<(), Failure> {
    sample_until_over(&source.open()?, interval, inputs, &AtomicBool::new(false))
}

fn sample_until_over(
    source: &Arc<dyn Source>,
    interval: Arc<SharedInterval>,
    inputs: &SyncSender<Input>,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    let mut usage = UsageReader::new();
    sampler::run_sampler(source, &build_live_view_options(interval), |record| {
        if is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        // Traces only fill buffers that the screen does not use, so they are not copied.
        if matches!(record, Record::Trace(_)) {
            return ControlFlow::Continue(());
        }
        if let Record::Sample(sample) = record {
            let _ = inputs.send(Input::Update(Update::Usage(
                usage.read(sample, Instant::now()),
            )));
        }
        match inputs.send(Input::Update(Update::Record(Box::new(record.clone())))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    Ok(())
}

/// A sampler that replaces a lost server. Sampling ends when this value is dropped.
pub(super) struct FallbackSampler {
    is_over: Arc<AtomicBool>,
    failure: Receiver<Failure>,
}

impl FallbackSampler {
    /// Starts sampling. The source is opened only if `opened` is empty, because a driver should be
    /// opened only once.
    pub(super) fn start(
        source: SourceArgs,
        opened: Arc<OnceLock<Arc<dyn Source>>>,
        interval: Arc<SharedInterval>,
        inputs: SyncSender<Input>,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (failed, failure) = sync_channel(2);
        let (over, failed_too) = (Arc::clone(&is_over), failed.clone());
        let body = move || {
            let source = match opened.get() {
                Some(source) => Ok(Arc::clone(source)),
                None => source
                    .open()
                    .map(|source| Arc::clone(opened.get_or_init(|| source))),
            };
            let ended = source
                .map_err(Failure::from)
                .and_then(|source| sample_until_over(&source, interval, &inputs, &over));
            if let Err(failure) = ended {
                let _ = failed.send(failure);
            }
        };
        if let Err(error) = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(body)
        {
            let _ = failed_too.send(error.into());
        }
        Self { is_over, failure }
    }

    /// Returns the reason why sampling failed. After the first call, returns `None` for the same
    /// failure.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.try_recv().ok()?.message()
    }
}

impl Drop for FallbackSampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
