//! The threads that read, and what passes between them and the sampler.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Options,
    gpu_worker::{Answer, GpuWorker},
    host_worker::HostWorker,
};
use crate::{
    model::{HostSample, SourceKind},
    owner::Resolver,
    source::{Source, SourceError},
};

/// One thread per GPU, and one for the host.
pub(super) struct Workers {
    gpus: Vec<SyncSender<()>>,
    answers: Receiver<Answer>,
    /// The GPUs that were asked at this beat and have not answered.
    awaited: BTreeSet<u32>,
    host: HostWorker,
}

impl Workers {
    pub(super) fn start(
        source: &Arc<dyn Source>,
        kind: SourceKind,
        count: u32,
        options: &Options,
    ) -> Result<Self, SourceError> {
        let (answer, answers) = mpsc::channel();
        let real = kind == SourceKind::Nvml;
        let gpus = (0..count)
            .map(|index| {
                let (ask, asked) = mpsc::sync_channel(1);
                let (source, answer) = (Arc::clone(source), answer.clone());
                let resolver = real.then(|| Resolver::new(Path::new(&options.proc_root), options.commands));
                spawn(&format!("gpu-{index}"), move || {
                    let mut worker = GpuWorker::new(source, index, resolver);
                    while asked.recv().is_ok() && answer.send(Answer { index, outcome: worker.read() }).is_ok() {}
                })?;
                Ok(ask)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { gpus, answers, awaited: BTreeSet::new(), host: HostWorker::start()? })
    }

    /// Asks the host and these GPUs, by index, and returns those that will answer.
    pub(super) fn ask(&mut self, gpus: impl Iterator<Item = usize>) -> Vec<usize> {
        self.host.ask();
        let asked: Vec<_> = gpus.filter(|index| self.gpus[*index].try_send(()).is_ok()).collect();
        self.awaited = asked.iter().map(|index| *index as u32).collect();
        asked
    }

    /// The answers to earlier beats that have come since.
    pub(super) fn late_answers(&mut self) -> Vec<Answer> {
        self.answers.try_iter().collect()
    }

    /// The answers that come until all that were asked at this beat have answered, or `patience` is over. Answers to
    /// earlier beats come along.
    pub(super) fn answers(&mut self, patience: Duration) -> Vec<Answer> {
        let deadline = Instant::now() + patience;
        let mut answers = Vec::new();
        while !self.awaited.is_empty() {
            match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => {
                    self.awaited.remove(&answer.index);
                    answers.push(answer);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        answers.extend(self.answers.try_iter());
        self.host.wait(deadline);
        answers
    }

    /// The newest reading of the host.
    pub(super) fn host(&self) -> HostSample {
        self.host.latest()
    }
}

/// A thread that is left behind where it hangs.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map(drop).map_err(|error| SourceError::NoThread { cause: error.to_string() })
}
