//! When each thing is read: one thread per GPU and one for the host, a common beat, one sample per beat.
//!
//! A worker that does not answer in time holds up nobody: the sample goes out with that GPU's last readings, and from
//! one interval on says that it hangs.

mod beat;
mod gpu_worker;
mod host_worker;
mod pace;
mod track;
mod workers;

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::pace::Pace;
use self::{beat::Beat, gpu_worker::Answer, track::Track, workers::Workers};
use crate::{
    derive::HostRates,
    model::{Event, GpuDetails, Inventory, Platform, Record, Sample, now_ms},
    owner::CommandLines,
    source::{Source, SourceError},
};

/// How to sample.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time between samples.
    pub pace: Arc<Pace>,
    /// Whose command lines may be shown.
    pub commands: CommandLines,
    /// Where processes are looked up; `/proc` but in tests.
    pub proc_root: PathBuf,
    /// Where the system tells whether a laptop's GPU sleeps; `/sys` but in tests.
    pub sys_root: PathBuf,
    /// Where the kernel's log is read, `/dev/kmsg` but in tests; `None` reads none.
    pub kernel_log: Option<PathBuf>,
    /// Whether to read what changes slowly, too.
    pub details: bool,
}

impl Options {
    /// On this machine, without what changes slowly and without the kernel's log.
    pub fn new(interval: Duration, commands: CommandLines) -> Self {
        Self {
            pace: Arc::new(Pace::new(interval)),
            commands,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            kernel_log: None,
            details: false,
        }
    }
}

/// What is there, and one sample of it.
#[derive(Debug)]
pub struct Moment {
    /// What is there.
    pub inventory: Inventory,
    /// What was read.
    pub sample: Sample,
    /// What changes slowly, of each GPU that answered; empty where it was not asked for.
    pub details: Vec<GpuDetails>,
}

/// The driver opens a GPU at its first use, which takes milliseconds with persistence mode and seconds without.
const OPENING: Duration = Duration::from_secs(2);

/// A sample does not wait for a late GPU any longer than this, however long the interval is.
const LATEST: Duration = Duration::from_millis(500);

/// A one-shot command has nothing else to show, so it waits longer.
const OPENING_ONCE: Duration = Duration::from_secs(10);

/// Hands an inventory, and then a sample per interval, to `emit` until that breaks off.
///
/// Threads that hang in the driver are left behind: they cannot be ended, and the process is expected to end soon.
///
/// # Errors
/// [`SourceError`] where there is no GPU to sample.
pub fn run(
    source: &Arc<dyn Source>,
    options: &Options,
    mut emit: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING)?;
    if emit(&Record::Inventory(sampling.inventory())).is_break() {
        return Ok(());
    }
    let mut interval = options.pace.interval();
    let mut beat = Beat::new(interval);
    loop {
        let (events, sample) = sampling.sample(interval);
        let inventory = sampling.take_inventory_change().then(|| Record::Inventory(sampling.inventory()));
        let records =
            inventory.into_iter().chain(events.into_iter().map(Record::Event)).chain([Record::Sample(sample)]);
        for record in records {
            if emit(&record).is_break() {
                return Ok(());
            }
        }
        if !options.pace.sleep(interval, beat.until_next(Instant::now())) {
            interval = options.pace.interval();
            beat = Beat::new(interval);
        }
    }
}

/// What is there, and one sample of it.
///
/// # Errors
/// [`SourceError`] where there is no GPU to sample.
pub fn once(source: &Arc<dyn Source>, options: &Options) -> Result<Moment, SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING_ONCE)?;
    let (_, sample) = sampling.compose(options.pace.interval());
    Ok(Moment { inventory: sampling.inventory(), sample, details: Vec::new() })
}

/// The state between two samples.
struct Sampling {
    platform: Platform,
    workers: Workers,
    tracks: Vec<Track>,
    host_rates: HostRates,
    seq: u64,
    inventory_changed: bool,
}

impl Sampling {
    /// Starts the workers and takes their first answers, as far as they come within `patience`.
    fn start(source: &Arc<dyn Source>, options: &Options, patience: Duration) -> Result<Self, SourceError> {
        let count = source.device_count()?;
        // Read once: later on, this thread must not wait for the driver.
        let platform = source.platform();
        let workers = Workers::start(source, platform.source, count, options)?;
        let tracks = (0..count).map(Track::new).collect();
        let mut sampling =
            Self { platform, workers, tracks, host_rates: HostRates::default(), seq: 0, inventory_changed: false };
        sampling.ask_and_collect(patience);
        sampling.inventory_changed = false;
        Ok(sampling)
    }

    fn inventory(&self) -> Inventory {
        Inventory {
            at_ms: now_ms(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            platform: self.platform.clone(),
            gpus: self.tracks.iter().map(Track::gpu).collect(),
            topology: Vec::new(),
        }
    }

    fn take_inventory_change(&mut self) -> bool {
        std::mem::take(&mut self.inventory_changed)
    }

    fn sample(&mut self, interval: Duration) -> (Vec<Event>, Sample) {
        // The first sample is what the workers answered when they were started.
        if self.seq > 0 {
            self.ask_and_collect((interval / 2).min(LATEST));
        }
        self.compose(interval)
    }

    /// Asks every worker that is free, and waits for those until `patience` is over.
    fn ask_and_collect(&mut self, patience: Duration) {
        // What came late frees its GPU for this beat.
        let late = self.workers.late_answers();
        self.take_in(late);
        let free = self.tracks.iter().enumerate().filter(|(_, track)| !track.is_awaited()).map(|(index, _)| index);
        for index in self.workers.ask(free) {
            self.tracks[index].asked();
        }
        let answers = self.workers.answers(patience);
        self.take_in(answers);
    }

    fn take_in(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let track = &mut self.tracks[answer.index as usize];
            self.inventory_changed |= track.take_in(answer);
        }
    }

    fn compose(&mut self, interval: Duration) -> (Vec<Event>, Sample) {
        let now = now_ms();
        let mut events = Vec::new();
        let gpus = self.tracks.iter_mut().map(|track| track.compose(interval, now, &mut events)).collect();
        let mut host = self.workers.host();
        self.host_rates.fill(&mut host);
        let seq = self.seq;
        self.seq += 1;
        (events, Sample { seq, at_ms: now, interval_ms: interval.as_millis() as u32, gpus, host })
    }
}
