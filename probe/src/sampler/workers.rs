//! The worker threads that read GPUs and the host, and the sampler's communication with these
//! threads.

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
    Options, SharedInterval,
    gpu_worker::{FIRST_OWNER_WAIT, GpuWorker},
    process_list,
    schedule::{Deadline, HOST_STEP_MS, TimeSteps, WatchFlag},
    threads::{Message, Query, spawn},
};
use crate::{
    bounded,
    host::HostReader,
    model::HostSample,
    owner::Finder,
    process_stat::ProcessStat,
    vendor::{Source, SourceError},
};

/// The folder with a subfolder for each thread of this process.
const THREADS_FOLDER: &str = "/proc/self/task";

/// A thread counts as starved if, between two checks, it was ready to run but had no CPU for at
/// least this long.
const STARVED_STEP: Duration = Duration::from_millis(20);

/// One thread per GPU, and one for the host.
pub(super) struct Workers {
    gpus: Vec<SyncSender<Query>>,
    /// The thread ID of each GPU's thread in the kernel, or 0 until the thread runs.
    threads: Vec<Arc<AtomicU32>>,
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
            options
                .allocations
                .start_following_slurm_files(folder.clone());
        }
        let (sender, messages) = mpsc::channel();
        // There is no finder for simulated processes, because they are not in `/proc`.
        let finder = (!is_simulated).then(|| Finder::new(&options.proc_root, options.commands));
        let budget = process_list::max_process_bytes_per_gpu(count);
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
        // GPUs that have been read, so that their responses will arrive soon.
        let mut read = BTreeSet::new();
        let mut waited = BTreeMap::new();
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
                    deadline.adjust_after_first_read(stays_open, Instant::now());
                }
                Ok(message) => {
                    if let Message::Answer { index, .. } = &message {
                        self.pending.remove(index);
                        read.remove(index);
                    }
                    messages.push(message);
                }
                // On a busy machine, a thread may be waiting for a CPU. It does not count as hung.
                Err(RecvTimeoutError::Timeout)
                    if self.is_any_starved(&mut waited)
                        && deadline.extend_for_starved_threads(Instant::now()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        messages.extend(self.messages.try_iter());
        self.host.wait_for_reading(deadline.instant());
        messages
    }

    /// Returns `true` if the thread of a queried GPU has waited for a CPU for at least
    /// `STARVED_STEP` since the previous call, or has not run yet. `waited` contains each thread's
    /// total waiting time at the previous call. It is empty at the first call, so that all waiting
    /// since the thread's start counts.
    fn is_any_starved(&self, waited: &mut BTreeMap<u32, Duration>) -> bool {
        let starved = self.pending.iter().filter(|index| {
            let thread = self.threads[**index as usize].load(Relaxed);
            let file = Path::new(THREADS_FOLDER).join(thread.to_string());
            let text =
                bounded::read_text(file.join("schedstat"), bounded::STAT_LIMIT).unwrap_or_default();
            let waits = parse_run_delay(&text).unwrap_or_default();
            let before = waited.insert(**index, waits).unwrap_or_default();
            thread == 0 || waits.saturating_sub(before) >= STARVED_STEP
        });
        starved.count() > 0
    }

    /// Returns `true` if a GPU's thread is not blocked in the driver, but runs or waits for a CPU.
    pub(super) fn is_runnable(&self, index: usize) -> bool {
        let thread = self.threads[index].load(Relaxed);
        let stat = ProcessStat::read_with_boot_time(Path::new(THREADS_FOLDER), thread, None);
        stat.is_ok_and(|stat| stat.state == 'R')
    }

    /// Returns the latest reading of the host.
    pub(super) fn latest_host(&self) -> HostSample {
        self.host.latest.clone()
    }
}

/// Parses the total time for which a thread was ready to run but had no CPU, from
/// `/proc/PID/task/TID/schedstat` (the kernel's `Documentation/scheduler/sched-stats.rst`).
fn parse_run_delay(text: &str) -> Option<Duration> {
    let nanoseconds = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// The host is read again only if its latest reading is at least this old. The limit is slightly
/// less than a second, so that an early tick does not skip a reading.
const MIN_HOST_AGE: Duration = Duration::from_millis(900);

/// A worker that reads the host on its own thread, because readings of the host can hang, for
/// example on a failed disk.
struct HostWorker {
    queries: SyncSender<()>,
    readings: Receiver<HostSample>,
    latest: HostSample,
    queried_at: Option<Instant>,
    state: HostState,
    interval: Arc<SharedInterval>,
    watched: Arc<WatchFlag>,
    steps: TimeSteps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HostState {
    /// All queries have been answered.
    Free,
    /// The host was queried at this tick.
    Queried,
    /// An earlier query has not been answered yet. The sampler does not wait for the response,
    /// because that would delay the readings of GPUs.
    Late,
}

impl HostWorker {
    /// Reads the host once, so that there is always a latest reading, and starts the thread. If
    /// this first reading hangs, the function does not return, which the supervisor detects.
    fn start(options: &Options) -> Result<Self, SourceError> {
        let mut reader = HostReader::new();
        let latest = reader.read();
        let (queries, incoming) = mpsc::sync_channel(1);
        let (sender, readings) = mpsc::channel();
        spawn("host", move || {
            while incoming.recv().is_ok() && sender.send(reader.read()).is_ok() {}
        })?;
        let (interval, watched) = (Arc::clone(&options.interval), Arc::clone(&options.watched));
        let steps = TimeSteps::new(HOST_STEP_MS);
        Ok(Self {
            queries,
            readings,
            latest,
            queried_at: None,
            state: HostState::Free,
            interval,
            watched,
            steps,
        })
    }

    /// Requests a reading, unless a query is pending or the latest reading is new enough.
    fn request_reading(&mut self) {
        self.ingest(self.readings.try_recv().ok());
        let is_due = self.is_due();
        self.state = match self.state {
            HostState::Free if is_due && self.queries.try_send(()).is_ok() => HostState::Queried,
            HostState::Free => HostState::Free,
            HostState::Queried | HostState::Late => HostState::Late,
        };
        if self.state == HostState::Queried {
            self.queried_at = Some(Instant::now());
        }
    }

    fn is_due(&mut self) -> bool {
        if self.watched.is_watched() {
            self.queried_at
                .is_none_or(|at| at.elapsed() >= MIN_HOST_AGE)
        } else {
            self.steps.closes_step(self.interval.get())
        }
    }

    /// Waits for the response to the current tick's query.
    fn wait_for_reading(&mut self, deadline: Instant) {
        if self.state == HostState::Queried {
            self.ingest(
                self.readings
                    .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                    .ok(),
            );
        }
    }

    fn ingest(&mut self, reading: Option<HostSample>) {
        if let Some(sample) = reading {
            self.latest = sample;
            self.state = HostState::Free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delay_is_parsed_from_schedstat() {
        let delay = parse_run_delay("1200300 45000000 12\n");
        assert_eq!(delay, Some(Duration::from_millis(45)));
        assert_eq!(parse_run_delay(""), None);
        assert_eq!(parse_run_delay("1 x 2"), None);
    }
}
