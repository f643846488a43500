//! The sampler, which schedules all readings: one thread per GPU and one for the host, a common
//! tick, and one sample per tick.
//!
//! A worker that does not answer in time delays nothing: the sample contains the GPU's last
//! readings, and reports the GPU as hung after one interval.

mod attention;
mod clock_watch;
mod deadline;
mod gpu_state;
mod gpu_worker;
mod host_worker;
mod learned;
mod message;
mod placed;
pub(crate) mod process_list;
mod sampling;
mod shared_interval;
mod threads;
mod ticker;
mod workers;

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::attention::Watched;
pub use self::deadline::{OPENING, OPENING_ONCE};
pub use self::learned::Learned;
pub use self::placed::identify_gpus;
pub use self::shared_interval::SharedInterval;
use self::{sampling::Sampling, ticker::Ticker};
use crate::{
    allocation::Allocations,
    benchmarks::BelowBaselines,
    derive::ConditionSettings,
    model::{GpuDetails, Inventory, KnownGpu, Record, Sample},
    owner::CommandLines,
    vendor::{LatestAnswers, ReadDepth, Source, SourceError},
};

/// The options of the sampler.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time between samples.
    pub interval: Arc<SharedInterval>,
    /// Whether somebody watches. While nobody does, expensive readings are only read as often as
    /// the history needs them.
    pub watched: Arc<Watched>,
    /// The users whose command lines may be shown.
    pub commands: CommandLines,
    /// The folder with the processes, `/proc` except in tests.
    pub proc_root: PathBuf,
    /// The folder that shows whether a laptop's GPU sleeps, `/sys` except in tests.
    pub sys_root: PathBuf,
    /// The file of the kernel's log, `/dev/kmsg` except in tests, or `None` to ignore the log.
    pub kernel_log: Option<PathBuf>,
    /// The amount of data in each sample.
    pub depth: ReadDepth,
    /// Whether to read details, too.
    pub details: bool,
    /// Whether to wait for events of the driver, to read its traces, and to find the links between
    /// GPUs. One-shot commands need none of these.
    pub events: bool,
    /// The destination of the driver's single answers, for programs that imitate the vendor's own
    /// tools.
    pub answers: Option<Arc<LatestAnswers>>,
    /// The allocations of GPUs by schedulers.
    pub allocations: Arc<Allocations>,
    /// The folder in which Slurm's prolog writes the jobs of GPUs, or `None` to ignore it.
    pub slurm_gpus: Option<PathBuf>,
    /// The settings of conditions.
    pub conditions: ConditionSettings,
    /// The benchmark results of GPUs, or `None` if there are none.
    pub below_baselines: Option<Arc<BelowBaselines>>,
    /// The learned baselines of GPUs, or `None` if they are not kept.
    pub learned: Option<Arc<Learned>>,
    /// The GPUs that an earlier collector read, by their index, which they keep. Empty if there was
    /// none.
    pub known_gpus: Arc<[KnownGpu]>,
}

impl Options {
    /// Returns the options for this machine, without details and without the kernel's log.
    pub fn new(interval: Duration, commands: CommandLines) -> Self {
        Self {
            interval: Arc::new(SharedInterval::new(interval)),
            watched: Arc::default(),
            commands,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            kernel_log: None,
            depth: ReadDepth::Full,
            details: false,
            events: false,
            answers: None,
            allocations: Arc::default(),
            slurm_gpus: None,
            conditions: ConditionSettings::default(),
            below_baselines: None,
            learned: None,
            known_gpus: Arc::default(),
        }
    }
}

/// An inventory and one sample.
#[derive(Debug)]
pub struct OneShot {
    pub inventory: Inventory,
    pub sample: Sample,
    /// The details of each GPU that answered; empty if they were not requested.
    pub details: Vec<GpuDetails>,
}

/// Passes an inventory, and then a sample per interval with the records before it, to `emit`, until
/// `emit` returns `Break`.
///
/// Threads that hang in the driver are abandoned. They cannot be stopped, so that the process
/// should end soon afterwards.
///
/// # Errors
/// Returns [`SourceError`] if there is no GPU to sample, or if the driver was replaced after its
/// library was loaded.
pub fn run(
    source: &Arc<dyn Source>,
    options: &Options,
    mut emit: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING)?;
    if emit(&Record::Inventory(sampling.inventory())).is_break() {
        return Ok(());
    }
    let mut interval = options.interval.get();
    let mut ticker = Ticker::new(interval);
    loop {
        let sampled_at = Instant::now();
        for record in sampling.tick(interval)? {
            if emit(&record).is_break() {
                return Ok(());
            }
        }
        let mut wait = ticker.until_next(Instant::now());
        while !options.interval.sleep(interval, wait) {
            interval = options.interval.get();
            // The interval starts at the last sample, so that clients that change it often do not
            // get more samples than others.
            let now = Instant::now();
            ticker = Ticker::after(sampled_at, interval, now);
            wait = ticker.until_next(now);
        }
    }
}

/// Returns the inventory and one sample, in which GPUs that have not answered are hung.
///
/// # Errors
/// Returns [`SourceError`] if there is no GPU to sample.
pub fn once(source: &Arc<dyn Source>, options: &Options) -> Result<OneShot, SourceError> {
    let mut sampling = Sampling::start(source, options, OPENING_ONCE)?;
    sampling.give_up_waiting();
    let sample = sampling.compose(options.interval.get());
    Ok(OneShot {
        inventory: sampling.inventory(),
        sample,
        details: sampling.details(),
    })
}

#[cfg(test)]
mod tests {
    use std::{thread, thread::sleep};

    use super::*;
    use crate::vendor::SourceChoice;

    #[test]
    fn an_interval_that_changes_all_the_time_makes_no_more_samples() {
        let source = SourceChoice::Sim(1)
            .open(&crate::vendor::Roots::default())
            .unwrap();
        let (fast, slow) = (Duration::from_millis(100), Duration::from_mins(1));
        let options = Options::new(fast, CommandLines::All);
        let shared = Arc::clone(&options.interval);
        let begun = Instant::now();
        thread::spawn(move || {
            for interval in [slow, fast].into_iter().cycle().take(2_000) {
                shared.set(interval);
                sleep(Duration::from_millis(3));
            }
        });
        let mut samples = Vec::new();
        run(&source, &options, |record| {
            samples.extend(matches!(record, Record::Sample(_)).then(Instant::now));
            if samples.len() < 10 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .unwrap();
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(850), "10 samples in {took:?}");
        assert!(took < Duration::from_secs(10), "10 samples in {took:?}");
    }
}
