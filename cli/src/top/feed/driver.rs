//! This program's own sampler, on a thread of its own: whatever the driver does, keys still work.

use std::{
    ops::ControlFlow,
    sync::{Arc, mpsc::SyncSender},
    thread,
};

use gpumon_probe::sampler::{self, SharedInterval};

use crate::{
    exit::Failure,
    options::{SourceArgs, watching},
    top::{input::Input, model::Update},
};

/// Samples until the screen is gone, and says why where that fails.
pub(super) fn sample(source: SourceArgs, interval: Arc<SharedInterval>, inputs: SyncSender<Input>) {
    let failed = inputs.clone();
    let body = move || {
        if let Err(failure) = read(&source, interval, &inputs) {
            let _ = inputs.send(Input::Failed(failure));
        }
    };
    // Also the opening is done there: the driver can hang in it.
    if let Err(error) = thread::Builder::new().name("sampler".to_owned()).spawn(body) {
        let _ = failed.send(Input::Failed(error.into()));
    }
}

fn read(source: &SourceArgs, interval: Arc<SharedInterval>, inputs: &SyncSender<Input>) -> Result<(), Failure> {
    let source = source.open()?;
    sampler::run(&source, &watching(interval), |record| {
        // What only fills buffers is not worth a copy.
        if matches!(record, gpumon_probe::model::Record::Trace(_)) {
            return ControlFlow::Continue(());
        }
        match inputs.send(Input::Update(Update::Record(Box::new(record.clone())))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    Ok(())
}
