//! The worker threads that read GPUs and the host, and the sampler's communication with these
//! threads.

use std::{
    collections::BTreeSet,
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
    gpu_worker::{FIRST_OWNER_WAIT, GpuWorker},
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

/// The minimum time without a CPU, between two checks, for which a thread counts as starved.
const STARVED_STEP: Duration = Duration::from_millis(20);

/// One thread per GPU, and one for the host.
pub(super) struct Workers {
    gpus: Vec<SyncSender<Query>>,
    /// The thread ID of each GPU's thread in the kernel, or 0 until the thread runs.
    threads: Vec<Arc<AtomicU32>>,
    /// The total time for which each GPU's thread had waited for a CPU at its latest check.
    run_delays: Vec<Duration>,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    /// The GPUs that were queried at this tick and have not responded yet.
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
        // There is no finder for simulated processes, because they are not in `/proc`.
        let finder = (!is_simulated).then(|| Finder::new(&options.proc_root, options.commands));
        let budget = process_list::budget_per_gpu(count);
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
                        && sender.send(worker.answer_query(query)).is_ok()
                    {}
                })?;
                Ok(ask)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            gpus,
            run_delays: vec![Duration::ZERO; threads.len()],
            threads,
            sender,
            messages,
            pending: BTreeSet::new(),
            host: HostWorker::start(options)?,
        })
    }

    /// Returns a channel on which other threads can send messages.
    pub(super) fn sender(&self) -> Sender<Message> {
        self.sender.clone()
    }

    /// Queries the host and the given GPUs. Returns the indices of the GPUs that were queried.
    pub(super) fn send_queries(
        &mut self,
        queries: impl Iterator<Item = (usize, Query)>,
    ) -> Vec<usize> {
        self.host.request_reading();
        let asked = queries.filter(|(index, query)| self.gpus[*index].try_send(*query).is_ok());
        let asked: Vec<_> = asked.map(|(index, _)| index).collect();
        self.pending = asked.iter().map(|index| *index as u32).collect();
        asked
    }

    /// Returns the messages received since the previous tick.
    pub(super) fn take_messages(&mut self) -> Vec<Message> {
        self.messages.try_iter().collect()
    }

    /// Returns messages until all GPUs queried at this tick have responded, or `patience` has
    /// passed. The wait is shorter if the responses so far suggest that the other GPUs hang.
    pub(super) fn collect_until_answered(&mut self, patience: Duration) -> Vec<Message> {
        let mut deadline = Deadline::with_patience(patience);
        // The GPUs that have been read, and whose responses will arrive soon.
        let mut read = BTreeSet::new();
        let mut messages = Vec::new();
        while !self.pending.is_empty() {
            let until = if read.is_empty() {
                deadline.instant()
            } else {
                deadline.instant() + FIRST_OWNER_WAIT
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
                // A thread that waits for a CPU on a busy machine does not count as hung.
                Err(RecvTimeoutError::Timeout)
                    if self.is_any_starved() && deadline.extend(Instant::now()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        messages.extend(self.messages.try_iter());
        self.host.wait_for_reading(deadline.instant());
        messages
    }

    /// Returns `true` if the thread of a queried GPU is starved.
    fn is_any_starved(&mut self) -> bool {
        let mut is_any = false;
        for index in self.pending.clone() {
            is_any |= self.is_starved(index as usize);
        }
        is_any
    }

    /// Returns `true` if a GPU's thread has waited for a CPU since the previous call.
    pub(super) fn is_starved(&mut self, index: usize) -> bool {
        let thread = self.threads[index].load(Relaxed);
        let file = Path::new("/proc/self/task").join(thread.to_string());
        let text =
            bounded::read_text(file.join("schedstat"), bounded::STAT_LIMIT).unwrap_or_default();
        let delay = parse_run_delay(&text).unwrap_or_default();
        let before = std::mem::replace(&mut self.run_delays[index], delay);
        thread == 0 || delay.saturating_sub(before) >= STARVED_STEP
    }

    /// Returns the latest reading of the host.
    pub(super) fn latest_host(&self) -> HostSample {
        self.host.latest()
    }
}

/// Parses the total time for which a thread was ready to run but had no CPU, from
/// `/proc/PID/task/TID/schedstat` (the kernel's `Documentation/scheduler/sched-stats.rst`).
fn parse_run_delay(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delay_is_second_number_of_schedstat() {
        let delay = parse_run_delay("1200300 45000000 12\n");
        assert_eq!(delay, Some(Duration::from_millis(45)));
        assert_eq!(parse_run_delay(""), None);
        assert_eq!(parse_run_delay("1 x 2"), None);
    }
}
