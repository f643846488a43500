//! The thread of one GPU. At each tick, it opens the GPU if necessary, reads it, and finds the
//! owners of its processes.

use std::{
    mem,
    path::PathBuf,
    sync::{Arc, mpsc::Sender},
    time::{Duration, Instant},
};

use super::{
    Options, SharedInterval, process_list,
    schedule::{TimeSteps, WatchFlag},
    threads::{Message, Outcome, Query, Readings},
};
use crate::{
    allocation::{Allocations, ProcessNaming},
    cpu_use::{CpuUse, CpuUseReader},
    derive::{sanity_check, unlisted_bytes},
    model::{Absence, Gpu, GpuDetails, GpuSample, Health, ProcessRef, Reading, now_ms},
    owner::{Finder, Resolver},
    vendor::{Device, DeviceError, LatestAnswers, ReadDepth, Source},
};

/// A GPU that is busy for a larger share of the time does not wait for disks.
const MAX_WAITING_PERCENT: f64 = 95.0;

/// The interval between attempts to open a lost GPU, which usually stays lost until it is reset.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The interval between two readings of the details.
const DETAILS_INTERVAL: Duration = Duration::from_secs(10);

/// The number of time slots over which the GPUs are distributed, so that the details of all GPUs
/// are not read at the same time.
const DETAIL_SLOTS: u32 = 8;

/// The maximum time that the first reading waits for the owners of processes. The wait is long
/// because a one-shot command has no second reading, and a stream has nothing else to show yet.
pub(super) const FIRST_OWNER_WAIT: Duration = Duration::from_millis(500);

/// The maximum time that later readings wait for the owners of new processes. For short intervals,
/// the limit is a fifth of the interval.
const OWNER_WAIT: Duration = Duration::from_millis(50);

/// At this tick, the driver is queried for all values that only its vendor's own tools show. The
/// first tick is not used, so that the first sample is not delayed. Later, those values that can
/// change are read together with the details.
const TOOL_QUERY_TICK: u32 = 2;

/// A worker that reads one GPU on its own thread.
pub(super) struct GpuWorker {
    source: Arc<dyn Source>,
    index: u32,
    sender: Sender<Message>,
    /// The resolver of process owners; `None` if the processes are simulated and not in `/proc`.
    resolver: Option<Resolver>,
    /// Reads the CPU use of processes; `None` for simulated processes.
    cpu_use: Option<CpuUseReader>,
    /// Whether the GPU has ever been read.
    was_read: bool,
    /// The maximum size of the process list in JSON, in bytes.
    budget: usize,
    interval: Arc<SharedInterval>,
    allocations: Arc<Allocations>,
    sys_root: PathBuf,
    depth: ReadDepth,
    watched: Arc<WatchFlag>,
    steps: TimeSteps,
    /// The time of the next reading of details, or `None` if details are not requested.
    details_due: Option<Instant>,
    /// The destination of the driver's responses, or `None` if they are not requested.
    answers: Option<Arc<LatestAnswers>>,
    /// The number of readings since the GPU was opened.
    ticks: u32,
    /// Whether traces are requested.
    traces: bool,
    /// The latest identity that was reported to the sampler.
    reported: Option<Gpu>,
    state: State,
}

enum State {
    Closed,
    Open(Box<dyn Device>),
    Failed { error: DeviceError, at: Instant },
}

impl GpuWorker {
    pub(super) fn new(
        source: Arc<dyn Source>,
        index: u32,
        options: &Options,
        finder: Option<&Finder>,
        budget: usize,
        sender: Sender<Message>,
    ) -> Self {
        Self {
            source,
            index,
            sender,
            resolver: finder.map(Finder::new_resolver),
            cpu_use: finder.map(|_| CpuUseReader::new(options.proc_root.clone())),
            was_read: false,
            budget,
            interval: Arc::clone(&options.interval),
            allocations: Arc::clone(&options.allocations),
            sys_root: options.sys_root.clone(),
            depth: options.depth,
            watched: Arc::clone(&options.watched),
            steps: TimeSteps::new_for_history(),
            details_due: options.details.then(Instant::now),
            answers: options.answers.clone(),
            ticks: 0,
            traces: options.events,
            reported: None,
            state: State::Closed,
        }
    }

    /// Answers a query. This can block for as long as the driver does.
    pub(super) fn answer_query(&mut self, query: Query) -> Message {
        if query.details_now && self.details_due.is_some() {
            self.details_due = Some(Instant::now());
        }
        let outcome = match self.read() {
            Ok(Some(readings)) => Outcome::Read(Box::new(readings)),
            Ok(None) => Outcome::Asleep(self.identify_sleeping_gpu()),
            Err(error) => Outcome::Failed(error),
        };
        Message::Answer {
            index: self.index,
            outcome,
        }
    }

    /// Reads the GPU. Returns `None` if the GPU sleeps.
    fn read(&mut self) -> Result<Option<Readings>, DeviceError> {
        if !self.open()? {
            return Ok(None);
        }
        match self.read_open_gpu() {
            Ok(readings) => Ok(Some(readings)),
            // The GPU fell asleep after it was opened.
            Err(DeviceError::Asleep) => {
                self.state = State::Closed;
                Ok(None)
            }
            Err(error) => Err(self.record_failure(error)),
        }
    }

    /// Identifies a sleeping GPU, unless it has already been identified.
    fn identify_sleeping_gpu(&mut self) -> Option<Box<Gpu>> {
        if self.reported.is_none() {
            let gpu = self.source.identify_closed(self.index, &Absence::Asleep);
            self.reported = gpu.uuid.is_some().then_some(gpu);
            return self.reported.clone().map(Box::new);
        }
        None
    }

    fn read_open_gpu(&mut self) -> Result<Readings, DeviceError> {
        let State::Open(device) = &mut self.state else {
            unreachable!("open() succeeded")
        };
        let uuid = || self.reported.as_ref().and_then(|gpu| gpu.uuid.clone());
        let mut sample =
            GpuSample::new_absent(self.index, uuid(), now_ms(), Health::Ok, &Absence::NoAnswer);
        let depth = self
            .steps
            .choose_depth(self.depth, &self.watched, self.interval.get());
        device.read(&mut sample, depth)?;
        sanity_check::discard_impossible_readings(&mut sample);
        // Traces are read only while somebody watches, because they are not stored.
        let traces = if self.traces && depth == ReadDepth::Full {
            device.take_traces()
        } else {
            Vec::new()
        };
        let mut details = None;
        if self.details_due.is_some_and(|due| due <= Instant::now()) {
            let mut read = GpuDetails::new_absent(self.index, uuid(), now_ms(), &Absence::NoAnswer);
            device.read_details(&mut read)?;
            sanity_check::discard_impossible_details(&mut read);
            details = Some(read);
            self.details_due = Some(next_details_time(self.index, self.reported.is_none()));
        }
        self.ticks = self.ticks.saturating_add(1);
        if self.answers.is_some()
            && (self.ticks == TOOL_QUERY_TICK
                || (self.ticks > TOOL_QUERY_TICK && details.is_some()))
        {
            device.run_tool_queries(self.ticks == TOOL_QUERY_TICK);
        }
        let errors = device.take_errors();
        let identity = device.identify();
        sample.uuid.clone_from(&identity.uuid);
        if let Some(details) = &mut details {
            details.uuid.clone_from(&identity.uuid);
        }
        let changed = self.reported.as_ref() != Some(&identity);
        if changed {
            self.reported = Some(identity.clone());
        }
        let is_first = !mem::replace(&mut self.was_read, true);
        if is_first {
            let _ = self.sender.send(Message::FirstRead {
                index: self.index,
                stays_open: device.stays_open(),
            });
            self.allocations.wait_for_first_slurm_reading(OWNER_WAIT);
        }
        self.allocations
            .fill_gpu_allocations(&mut sample, identity.board.minor_number.value().copied());
        let omitted = self.fill_processes(&mut sample, is_first);
        let cpu_use = self.read_cpu_use(&sample, depth);
        Ok(Readings {
            identity: changed.then_some(identity),
            sample,
            omitted,
            cpu_use,
            details,
            traces,
            errors,
        })
    }

    /// Returns the CPU use of the GPU's processes. While the hardware counters are read rarely, so
    /// is the CPU use, so that both cover the same time.
    fn read_cpu_use(&mut self, sample: &GpuSample, depth: ReadDepth) -> CpuUse {
        let Some(reader) = &mut self.cpu_use else {
            let processes = match &self.state {
                State::Open(device) => device.simulated_cpu_use(),
                State::Closed | State::Failed { .. } => Vec::new(),
            };
            return CpuUse {
                at_ms: sample.at_ms,
                processes,
            };
        };
        let is_due = matches!(
            depth,
            ReadDepth::Full | ReadDepth::Unwatched { closes_step: true }
        );
        let processes = sample.processes.items().iter();
        let pids = processes.map(|process| process.pid);
        let utilization = sample.utilization.gpu_percent.value();
        let may_wait = utilization.is_none_or(|percent| *percent < MAX_WAITING_PERCENT);
        reader.read(pids, sample.at_ms, is_due, may_wait)
    }

    /// Fills in the owners of processes, and returns the processes that do not fit into the sample.
    fn fill_processes(&mut self, sample: &mut GpuSample, is_first: bool) -> Vec<ProcessRef> {
        if self
            .resolver
            .as_ref()
            .is_some_and(Resolver::is_in_child_pid_namespace)
        {
            sample.unlisted_memory_bytes = unlisted_bytes(sample);
        }
        let mut naming = ProcessNaming::new(sample);
        let Reading::Now(processes) = &mut sample.processes else {
            return Vec::new();
        };
        let patience = if is_first {
            FIRST_OWNER_WAIT
        } else {
            OWNER_WAIT.min(self.interval.get() / 5)
        };
        if let Some(resolver) = &mut self.resolver {
            resolver.request_details(
                processes.iter().map(|process| process.pid).collect(),
                patience,
            );
        }
        if !naming.is_empty() {
            for process in &*processes {
                match &self.resolver {
                    Some(resolver) => {
                        resolver.with_cgroup_owner(process.pid, |owner| {
                            naming.record_owner(process.mig, owner);
                        });
                    }
                    None => process
                        .owner
                        .value()
                        .into_iter()
                        .for_each(|owner| naming.record_owner(process.mig, owner)),
                }
            }
        }
        let describe = |process: &mut _, how| {
            if let Some(resolver) = &self.resolver {
                resolver.fill_known_details(process, how);
            }
            naming.fill_job_or_pod(process);
        };
        let (listed, omitted) = process_list::select_processes_within_budget(
            mem::take(processes),
            self.budget,
            describe,
        );
        *processes = listed;
        sample.processes_omitted = omitted.len() as u32;
        omitted
    }

    /// Opens the GPU if necessary. Returns `false` if the GPU sleeps.
    fn open(&mut self) -> Result<bool, DeviceError> {
        match &self.state {
            State::Open(_) => return Ok(true),
            State::Failed { error, at } if at.elapsed() < RETRY_AFTER => return Err(error.clone()),
            State::Failed { .. } | State::Closed => {}
        }
        if self.source.is_asleep(self.index, &self.sys_root) {
            return Ok(false);
        }
        match self.source.open(self.index) {
            Ok(device) => {
                if let (Some(answers), Some(reader)) = (&self.answers, device.answers_reader()) {
                    answers.set_reader(self.index, reader);
                }
                (self.state, self.ticks) = (State::Open(device), 0);
                let _ = self.sender.send(Message::Opened { index: self.index });
                Ok(true)
            }
            Err(DeviceError::Asleep) => Ok(false),
            Err(error) => Err(self.record_failure(error)),
        }
    }

    fn record_failure(&mut self, error: DeviceError) -> DeviceError {
        self.state = State::Failed {
            error: error.clone(),
            at: Instant::now(),
        };
        error
    }
}

/// Returns the time at which the details are read next. All GPUs read their first details
/// immediately. Later readings are distributed over the interval.
fn next_details_time(index: u32, are_first: bool) -> Instant {
    let turn = f64::from(index % DETAIL_SLOTS) / f64::from(DETAIL_SLOTS);
    Instant::now() + DETAILS_INTERVAL.mul_f64(if are_first { 0.5 + turn / 2.0 } else { 1.0 })
}
