//! The program's own sampler. It has a thread of its own, so that keys work whatever the driver
//! does.

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
    options::{SourceArgs, watching},
    top::{input::Input, model::Update},
};

/// Samples until the screen is closed. A failure is sent as an [`Input::Failed`].
pub(super) fn sample(source: SourceArgs, interval: Arc<SharedInterval>, inputs: SyncSender<Input>) {
    let failed = inputs.clone();
    let body = move || {
        if let Err(failure) = read(&source, interval, &inputs) {
            let _ = inputs.send(Input::Failed(failure));
        }
    };
    // The thread also opens the driver, because the driver can hang while opening.
    if let Err(error) = thread::Builder::new()
        .name("sampler".to_owned())
        .spawn(body)
    {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

fn read(
    source: &SourceArgs,
    interval: Arc<SharedInterval>,
    inputs: &SyncSender<Input>,
) -> Result<(), Failure> {
    run(&source.open()?, interval, inputs, &AtomicBool::new(false))
}

fn run(
    source: &Arc<dyn Source>,
    interval: Arc<SharedInterval>,
    inputs: &SyncSender<Input>,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    let mut usage = UsageReader::new();
    sampler::run(source, &watching(interval), |record| {
        if is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        // Traces only fill buffers, so they are not worth copying.
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

/// A sampler that replaces a lost server until this value is dropped.
pub(super) struct StandIn {
    is_over: Arc<AtomicBool>,
    failure: Receiver<Failure>,
}

impl StandIn {
    /// Starts sampling. Opens the source only if `opened` is still empty, because a driver is
    /// opened once.
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
                .and_then(|source| run(&source, interval, &inputs, &over));
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

    /// Returns the reason why there are no readings, the first time it is called.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.try_recv().ok()?.message()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
