//! What one GPU's thread does at a beat: open the GPU if it is not open, read it, find its processes' owners.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    model::{Absence, Gpu, GpuSample, Health, Reading, now_ms},
    owner::Resolver,
    source::{Device, DeviceError, Source},
};

/// A GPU that is lost stays lost until somebody resets it or the machine, so it is tried only so often.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// What one GPU's thread found at one beat.
pub(super) struct Answer {
    pub(super) index: u32,
    pub(super) outcome: Outcome,
}

/// What came of a beat.
pub(super) enum Outcome {
    /// It was read. The identity is there when it was opened anew.
    Read(Option<Gpu>, Box<GpuSample>),
    /// It could not be.
    Failed(DeviceError),
}

/// One GPU, on its own thread.
pub(super) struct GpuWorker {
    source: Arc<dyn Source>,
    index: u32,
    resolver: Option<Resolver>,
    uuid: Option<String>,
    state: State,
}

enum State {
    Closed,
    Open(Box<dyn Device>),
    Failed { error: DeviceError, at: Instant },
}

impl GpuWorker {
    /// `resolver` is `None` where the processes are not real ones.
    pub(super) fn new(source: Arc<dyn Source>, index: u32, resolver: Option<Resolver>) -> Self {
        Self { source, index, resolver, uuid: None, state: State::Closed }
    }

    /// Reads the GPU once. It may block for as long as the driver does.
    pub(super) fn read(&mut self) -> Outcome {
        match self.try_read() {
            Ok((identity, sample)) => Outcome::Read(identity, Box::new(sample)),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn try_read(&mut self) -> Result<(Option<Gpu>, GpuSample), DeviceError> {
        let mut identity = self.open()?;
        let State::Open(device) = &mut self.state else { unreachable!("open() succeeded") };
        // A passing error while it was opened must not leave it nameless for good.
        if identity.is_none() && self.uuid.is_none() {
            let gpu = device.identity();
            self.uuid.clone_from(&gpu.uuid);
            identity = gpu.uuid.is_some().then_some(gpu);
        }
        let mut sample = GpuSample::absent(self.index, self.uuid.clone(), now_ms(), Health::Ok, &Absence::NoAnswer);
        if let Err(error) = device.read(&mut sample) {
            return Err(self.fail(error));
        }
        if let (Some(resolver), Reading::Now(processes)) = (&mut self.resolver, &mut sample.processes) {
            resolver.fill(processes);
        }
        Ok((identity, sample))
    }

    /// The identity, where the GPU was opened just now.
    fn open(&mut self) -> Result<Option<Gpu>, DeviceError> {
        match &self.state {
            State::Open(_) => return Ok(None),
            State::Failed { error, at } if at.elapsed() < TRY_AGAIN => return Err(error.clone()),
            State::Failed { .. } | State::Closed => {}
        }
        match self.source.open(self.index) {
            Ok(mut device) => {
                let identity = device.identity();
                self.uuid.clone_from(&identity.uuid);
                self.state = State::Open(device);
                Ok(Some(identity))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn fail(&mut self, error: DeviceError) -> DeviceError {
        self.state = State::Failed { error: error.clone(), at: Instant::now() };
        error
    }
}
