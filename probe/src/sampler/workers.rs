//! The threads that read, and what passes between them and the sampler.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Options,
    gpu_worker::{Answer, GpuWorker},
};
use crate::{
    model::{HostSample, SourceKind},
    owner::Resolver,
    source::{Source, host::HostReader},
};

/// One thread per GPU, and one for the host, whose readings can hang too (a dead disk).
pub(super) struct Workers {
    gpus: Vec<SyncSender<()>>,
    answers: Receiver<Answer>,
    awaited: usize,
    host_ask: SyncSender<()>,
    host: Arc<Mutex<HostSample>>,
    host_done: Receiver<()>,
}

impl Workers {
    pub(super) fn start(source: &Arc<dyn Source>, count: u32, options: &Options) -> Self {
        let (answer, answers) = mpsc::channel();
        let real = source.platform().source == SourceKind::Nvml;
        let gpus = (0..count)
            .map(|index| {
                let (ask, asked) = mpsc::sync_channel(1);
                let (source, answer) = (Arc::clone(source), answer.clone());
                let resolver = real.then(|| Resolver::new(Path::new(&options.proc_root), options.commands));
                spawn(&format!("gpu-{index}"), move || {
                    let mut worker = GpuWorker::new(source, index, resolver);
                    while asked.recv().is_ok() && answer.send(Answer { index, outcome: worker.read() }).is_ok() {}
                });
                ask
            })
            .collect();
        let mut reader = HostReader::new();
        let host = Arc::new(Mutex::new(reader.read()));
        let (host_ask, asked) = mpsc::sync_channel(1);
        let (done, host_done) = mpsc::channel();
        let shared = Arc::clone(&host);
        spawn("host", move || {
            while asked.recv().is_ok() {
                let sample = reader.read();
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = sample;
                if done.send(()).is_err() {
                    break;
                }
            }
        });
        Self { gpus, answers, awaited: 0, host_ask, host, host_done }
    }

    /// Asks the host and these GPUs, by index, and returns those that will answer.
    pub(super) fn ask(&mut self, gpus: impl Iterator<Item = usize>) -> Vec<usize> {
        while self.host_done.try_recv().is_ok() {}
        // A host that is still being read will answer soon enough.
        let _ = self.host_ask.try_send(());
        let asked: Vec<_> = gpus.filter(|index| self.gpus[*index].try_send(()).is_ok()).collect();
        self.awaited = asked.len();
        asked
    }

    /// The answers that come until all that were asked at this beat have answered, or `patience` is over. Answers to
    /// earlier beats come along.
    pub(super) fn answers(&mut self, patience: Duration) -> Vec<Answer> {
        let deadline = Instant::now() + patience;
        let mut answers = Vec::new();
        while answers.len() < self.awaited {
            match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => answers.push(answer),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        answers.extend(self.answers.try_iter());
        // The host is read at the same time and mostly done by now.
        let _ = self.host_done.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        answers
    }

    /// The newest reading of the host.
    pub(super) fn host(&self) -> HostSample {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .name(name.to_owned())
        // The reading needs little, and there can be 64 of them.
        .stack_size(256 * 1024)
        .spawn(body)
        .expect("the system refuses a thread");
}
