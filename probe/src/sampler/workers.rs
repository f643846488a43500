//! The threads that read, and their communication with the sampler.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender},
    },
    time::{Duration, Instant},
};

use rustix::thread::gettid;

use super::{
    Options,
    deadline::Deadline,
    gpu_worker::{FIRST_OWNERS, GpuWorker},
    host_worker::HostWorker,
    message::{Message, Query},
    process_list,
    threads::spawn,
};
use crate::{
    bounded,
    model::HostSample,
    owner::Finder,
    vendor::{Source, SourceError},
};

/// The minimum time without a CPU between two checks for a thread to count as starved.
const STARVED_STEP: Duration = Duration::from_millis(20);

/// One thread per GPU, and one for the host.
pub(super) struct Workers {
    gpus: Vec<SyncSender<Query>>,
    /// The kernel's ID of each GPU's thread, or 0 until the thread runs.
    threads: Vec<Arc<AtomicU32>>,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    /// The GPUs that were queried at this tick and have not answered.
    pending: BTreeSet<u32>,
    host: HostWorker,
}

impl Workers {
    pub(super) fn start(
        source: &Arc<dyn Source>,
        is_simulated: bool,
        count: u32,
        options: &Options,
    ) -> Result<Self, SourceError> {
        if let Some(folder) = &options.slurm_gpus {
            options.allocations.follow_slurm(folder.clone());
        }
        let (sender, messages) = mpsc::channel();
        // Simulated processes are not in `/proc`.
        let finder = (!is_simulated).then(|| Finder::new(&options.proc_root, options.commands));
        let budget = process_list::budget(count);
        let threads: Vec<Arc<AtomicU32>> = (0..count).map(|_| Arc::default()).collect();
        let gpus = (0..)
            .zip(&threads)
            .map(|(index, thread)| {
                let thread = Arc::clone(thread);
                let (ask, asked) = mpsc::sync_channel(1);
                let (source, options, sender) =
                    (Arc::clone(source), options.clone(), sender.clone());
                let finder = finder.clone();
                spawn(&format!("gpu-{index}"), move || {
                    thread.store(gettid().as_raw_nonzero().get().cast_unsigned(), Relaxed);
                    let mut worker = GpuWorker::new(
                        source,
                        index,
                        &options,
                        finder.as_ref(),
                        budget,
                        sender.clone(),
                    );
                    while let Ok(query) = asked.recv()
                        && sender.send(worker.answer(query)).is_ok()
                    {}
                })?;
                Ok(ask)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            gpus,
            threads,
            sender,
            messages,
            pending: BTreeSet::new(),
            host: HostWorker::start(options)?,
        })
    }

    /// Returns a channel for messages from other threads.
    pub(super) fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    /// Queries the host and these GPUs, and returns the indices of those that will answer.
    pub(super) fn ask(&mut self, queries: impl Iterator<Item = (usize, Query)>) -> Vec<usize> {
        self.host.ask();
        let asked = queries.filter(|(index, query)| self.gpus[*index].try_send(*query).is_ok());
        let asked: Vec<_> = asked.map(|(index, _)| index).collect();
        self.pending = asked.iter().map(|index| *index as u32).collect();
        asked
    }

    /// Returns the messages since the previous tick.
    pub(super) fn messages(&mut self) -> Vec<Message> {
        self.messages.try_iter().collect()
    }

    /// Returns the messages until all GPUs queried at this tick have answered, or `patience` is
    /// over. The wait is shorter if the answers so far show that the other GPUs hang.
    pub(super) fn messages_until_answered(&mut self, patience: Duration) -> Vec<Message> {
        let mut deadline = Deadline::after(patience);
        // These GPUs have been read, and will answer soon.
        let mut read = BTreeSet::new();
        let mut waited = BTreeMap::new();
        let mut messages = Vec::new();
        while !self.pending.is_empty() {
            let until = if read.is_empty() {
                deadline.at()
            } else {
                deadline.at() + FIRST_OWNERS
            };
            match self
                .messages
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Message::FirstRead { index, stays_open }) => {
                    read.insert(index);
                    deadline.on_first_read(stays_open, Instant::now());
                }
                Ok(message) => {
                    if let Message::Answer { index, .. } = &message {
                        self.pending.remove(index);
                        read.remove(index);
                    }
                    messages.push(message);
                }
                // A thread that waits for a CPU on a busy machine does not hang in the driver.
                Err(RecvTimeoutError::Timeout)
                    if self.is_any_starved(&mut waited) && deadline.extend(Instant::now()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        messages.extend(self.messages.try_iter());
        self.host.wait(deadline.at());
        messages
    }

    /// Returns `true` if the thread of a queried GPU has waited for a CPU since the previous call.
    /// `waited` contains the waiting times until then.
    fn is_any_starved(&self, waited: &mut BTreeMap<u32, Duration>) -> bool {
        let starved = self.pending.iter().filter(|index| {
            let thread = self.threads[**index as usize].load(Relaxed);
            let file = Path::new("/proc/self/task").join(thread.to_string());
            let text = bounded::text(file.join("schedstat"), bounded::STAT).unwrap_or_default();
            let waits = parse_run_delay(&text).unwrap_or_default();
            let before = waited.insert(**index, waits).unwrap_or_default();
            thread == 0 || waits.saturating_sub(before) >= STARVED_STEP
        });
        starved.count() > 0
    }

    /// Returns the newest reading of the host.
    pub(super) fn host(&self) -> HostSample {
        self.host.latest()
    }
}

/// Parses the time in which a thread was ready but had no CPU, from `/proc/PID/task/TID/schedstat`
/// (the kernel's `Documentation/scheduler/sched-stats.rst`).
fn parse_run_delay(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delay_is_second_number() {
        let delay = parse_run_delay("1200300 45000000 12\n");
        assert_eq!(delay, Some(Duration::from_millis(45)));
        assert_eq!(parse_run_delay(""), None);
        assert_eq!(parse_run_delay("1 x 2"), None);
    }
}
